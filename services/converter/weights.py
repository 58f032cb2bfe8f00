"""Where docling's layout and table models are: a folder, docling's own cache, or the hub."""

from pathlib import Path

import structlog

from kernel.errors import KbError
from services.converter.settings import ConverterSettings

log = structlog.get_logger()

_CACHE = Path(".cache") / "docling" / "models"
"""Below the home folder: where docling's own tools put models."""


class NoWeights(KbError):
    """`KB_CONVERTER_PDF_ENGINE=models`, and there are no models to be had."""


def with_weights(settings: ConverterSettings) -> ConverterSettings:
    """The settings with `artifacts` set to the models that PDF will be read with, or to None.

    `auto` takes models that are on the machine. `models` also fetches them from the hub, which
    takes minutes: call it off the event loop.

    Raises:
        NoWeights: they are wanted and cannot be had; the message says what to do.
    """
    return settings.model_copy(update={"artifacts": _found(settings)})


def _found(settings: ConverterSettings) -> Path | None:
    if settings.pdf_engine == "heuristic":
        return None
    if settings.artifacts is not None:
        return settings.artifacts
    cache = Path.home() / _CACHE
    if has_layout(cache):
        return cache
    return _fetched(cache) if settings.pdf_engine == "models" else None


def has_layout(folder: Path) -> bool:
    """Whether a folder holds a layout model of docling."""
    return any(folder.glob("*docling-layout*"))


def _fetched(folder: Path) -> Path:
    """Heron and TableFormer from the hub, in the folders that docling looks for."""
    from docling.datamodel.pipeline_options import LayoutObjectDetectionOptions
    from docling.models.utils.hf_model_download import download_hf_model

    layout = LayoutObjectDetectionOptions.from_preset("layout_heron_default").model_spec
    wanted = (
        (layout.repo_id, layout.revision),
        ("docling-project/docling-models", "v2.3.0"),
    )
    try:
        for repository, revision in wanted:
            target = folder / repository.replace("/", "--")
            log.info("converter.fetching_models", repository=repository, folder=str(target))
            download_hf_model(repository, local_dir=target, revision=revision)
    except Exception as error:
        raise NoWeights(
            f"docling's models are not on this machine and cannot be fetched "
            f"({type(error).__name__}): set KB_DOCLING_ARTIFACTS to a folder with them, or "
            "KB_CONVERTER_PDF_ENGINE to auto"
        ) from error
    return folder
