"""Parsers, run in the child process only: bytes of one format to a `ParsedDocument`."""

from collections.abc import Callable
from pathlib import Path

from kernel.errors import Refusal
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
    unread,
)
from services.converter.parsing.result import Parse
from services.converter.settings import ParseOptions


def parse(path: Path, media_type: str, options: ParseOptions) -> Parse:
    """The document at `path` and notes for its journal. Same bytes, same result.

    Raises:
        Refusal: the document cannot be read, with a stable code.
    """
    parser = _PARSERS.get(media_type)
    if parser is None:
        raise Refusal("unsupported-media-type", unread(media_type), status=415)
    return parser(path, media_type, options)


# Imported when needed: docling alone takes seconds and hundreds of megabytes.


def _text(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.text import parse_text

    return parse_text(path.read_bytes(), media_type, options)


def _html(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.html import parse_html

    return parse_html(path.read_bytes(), options)


def _csv(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.table_text import parse_csv

    return parse_csv(path, options)


def _json(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.data import parse_json

    return parse_json(path, options)


def _pdf(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.pdf import parse_pdf

    return parse_pdf(path, options)


def _docx(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.docx import parse_docx

    return parse_docx(path, options)


def _xlsx(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.xlsx import parse_xlsx

    return parse_xlsx(path, options)


def _xls(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.xls import parse_xls

    return parse_xls(path, options)


def _pptx(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.slides import parse_pptx

    return parse_pptx(path, options)


def _odt(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.odf_text import parse_odt

    return parse_odt(path, options)


def _ods(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.odf_sheets import parse_ods

    return parse_ods(path, options)


def _odp(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.odf_slides import parse_odp

    return parse_odp(path, options)


def _epub(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.epub import parse_epub

    return parse_epub(path, options)


def _rtf(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.rtf import parse_rtf

    return parse_rtf(path, options)


def _mail(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.mail import parse_mail

    return parse_mail(path, media_type, options)


def _image(path: Path, media_type: str, options: ParseOptions) -> Parse:
    from services.converter.parsing.image import parse_image

    return parse_image(path, media_type, options)


_PARSERS: dict[str, Callable[[Path, str, ParseOptions], Parse]] = {
    MARKDOWN: _text,
    PLAIN: _text,
    HTML: _html,
    CSV: _csv,
    JSON: _json,
    PDF: _pdf,
    DOCX: _docx,
    XLSX: _xlsx,
    XLS: _xls,
    PPTX: _pptx,
    ODT: _odt,
    ODS: _ods,
    ODP: _odp,
    EPUB: _epub,
    RTF: _rtf,
    EML: _mail,
    MSG: _mail,
    **dict.fromkeys(PICTURES, _image),
}
