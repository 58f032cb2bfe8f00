"""Names of the parsers: known before parsing, since they are part of the parse cache's key."""

import shutil
import subprocess
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec

from kernel.media import (
    CSV,
    DOCX,
    EML,
    EPUB,
    HTML,
    JSON,
    MARKDOWN,
    MSG,
    ODP,
    ODS,
    ODT,
    PDF,
    PICTURES,
    PLAIN,
    PPTX,
    RTF,
    XLS,
    XLSX,
)
from services.converter.settings import ParseOptions

# Raise a number when the same bytes give another parse; parsed documents are cached under it.
_REVISIONS = {
    MARKDOWN: "markdown-7",
    PLAIN: "text-6",
    CSV: "csv-3",
    JSON: "json-3",
    XLSX: "xlsx-9",
    XLS: "xls-5",
    PPTX: "pptx-5",
    ODT: "odt-7",
    ODS: "ods-8",
    ODP: "odp-6",
    RTF: "rtf-7",
}
_HTML = "html-12"
_BY_DOCLING = {
    HTML: _HTML,
    EPUB: f"{_HTML}+epub-2",
    EML: f"{_HTML}+mail-5",
    MSG: f"{_HTML}+mail-6",
    DOCX: "docx-8",
}
HEURISTIC_REVISION = 12
_MODELS_REVISION = 6
_OCR_REVISION = 3


def parser_for(media_type: str, options: ParseOptions) -> str:
    """`docling-2.143.0+heuristic-1+tesseract-5.3.0`, `markdown-1`, …: engine and versions."""
    if media_type in _REVISIONS:
        return _REVISIONS[media_type]
    docling = f"docling-{version('docling-slim')}"
    if media_type in _BY_DOCLING:
        return f"{docling}+{_BY_DOCLING[media_type]}"
    if media_type == PDF:
        return docling + _pdf_engines(options)
    if media_type in PICTURES:
        return f"{docling}+heuristic-{HEURISTIC_REVISION}{_ocr_engines(options)}"
    return "none"


def _pdf_engines(options: ParseOptions) -> str:
    layout = f"+heuristic-{HEURISTIC_REVISION}"
    if options.artifacts:
        tables = "tableformer" if has_table_models() else f"tables-{HEURISTIC_REVISION}"
        layout = f"+heron-{_MODELS_REVISION}+{tables}"
    return layout + _ocr_engines(options)


def _ocr_engines(options: ParseOptions) -> str:
    if not options.ocr:
        return ""
    names = [f"ocr-{_OCR_REVISION}"]
    if tesseract_version():
        names.append(f"tesseract-{tesseract_version()}-{tesseract_languages()}langs")
    if find_spec("rapidocr") is not None:
        names.append(f"rapidocr-{version('rapidocr')}")
    return "+" + "+".join(names)


def has_table_models() -> bool:
    """Docling's table models run on torchvision only."""
    return find_spec("torchvision") is not None


@cache
def tesseract_version() -> str:
    """`5.3.0`, or empty when tesseract is not installed."""
    program = shutil.which("tesseract")
    if not program:
        return ""
    words = _answer(program, "--version").split()
    return words[1] if len(words) > 1 else "unknown"


@cache
def tesseract_languages() -> int:
    """How many languages it has: with another one, the same page may be read otherwise."""
    program = shutil.which("tesseract")
    listed = _answer(program, "--list-langs").splitlines()[1:] if program else []
    return len({*listed} - {"osd"})


def _answer(program: str, question: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own argument list
        [program, question], capture_output=True, text=True, timeout=10, check=False
    )
    return done.stdout or done.stderr
