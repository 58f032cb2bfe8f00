"""Parsers, run in the child process only: bytes of one format to a `ParsedDocument`."""

from pathlib import Path

from kernel.errors import Refusal
from kernel.media import CSV, DOCX, EML, HTML, MARKDOWN, MSG, PDF, PLAIN
from services.converter.parsing.result import Parse
from services.converter.settings import ParseOptions


def parse(path: Path, media_type: str, options: ParseOptions) -> Parse:
    """The document at `path` and notes for its journal. Same bytes, same result.

    Raises:
        Refusal: the document cannot be read, with a stable code.
    """
    # Imported when needed: docling alone takes seconds and hundreds of megabytes.
    match media_type:
        case t if t in {MARKDOWN, PLAIN}:
            from services.converter.parsing.text import parse_text

            return parse_text(path.read_bytes(), media_type)
        case t if t == HTML:
            from services.converter.parsing.html import parse_html

            return parse_html(path.read_bytes(), options)
        case t if t == DOCX:
            from services.converter.parsing.docx import parse_docx

            return parse_docx(path, options)
        case t if t == PDF:
            from services.converter.parsing.pdf import parse_pdf

            return parse_pdf(path, options)
        case t if t == CSV:
            from services.converter.parsing.table_text import parse_csv

            return parse_csv(path, options)
        case t if t in {EML, MSG}:
            from services.converter.parsing.mail import parse_mail

            return parse_mail(path, media_type, options)
    raise Refusal("unsupported-media-type", f"no parser for {media_type}", status=415)
