"""Which PDF engine is taken: models where they are, our own elsewhere, else an error."""

from pathlib import Path

import pytest

from services.converter.parsers import parser_for
from services.converter.settings import ConverterSettings
from services.converter.weights import NoWeights, with_weights

HERON = "docling-project--docling-layout-heron"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def cache(home: Path) -> Path:
    folder = home / ".cache" / "docling" / "models"
    (folder / HERON).mkdir(parents=True)
    return folder


def test_auto_reads_without_models_where_there_are_none() -> None:
    settings = with_weights(ConverterSettings())
    assert settings.artifacts is None
    assert "heuristic" in parser_for("application/pdf", settings.parse_options)


def test_auto_takes_the_models_that_docling_keeps(home: Path) -> None:
    folder = cache(home)
    settings = with_weights(ConverterSettings())
    assert settings.artifacts == folder
    assert "heron" in parser_for("application/pdf", settings.parse_options)


def test_a_folder_that_is_told_goes_before_the_cache(home: Path) -> None:
    cache(home)
    own = home / "models"
    (own / HERON).mkdir(parents=True)
    assert with_weights(ConverterSettings.model_validate({"artifacts": own})).artifacts == own


def test_heuristic_means_no_models_even_if_they_are_there(home: Path) -> None:
    cache(home)
    assert with_weights(ConverterSettings(pdf_engine="heuristic")).artifacts is None


def test_models_that_must_be_and_cannot_be_had_stop_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: object, **__: object) -> None:
        raise OSError("no route to the hub")

    monkeypatch.setattr("docling.models.utils.hf_model_download.download_hf_model", away)
    with pytest.raises(NoWeights, match="KB_DOCLING_ARTIFACTS"):
        with_weights(ConverterSettings(pdf_engine="models"))
