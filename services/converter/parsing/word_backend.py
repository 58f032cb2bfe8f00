"""Docling's reader of Word documents without what this product reads by itself or not at all.

Docling would decode every picture and, where LibreOffice is installed, start it for every drawing
and let it open what a stranger wrote. It also reads heads, feet, notes and comments, into layers
that are never written.
"""

from typing import Any

from docling.backend.msword_backend import MsWordDocumentBackend
from docling_core.types.doc.common.formatting import Formatting


class WordBackend(MsWordDocumentBackend):
    """The body: headings, paragraphs, lists, tables, formulas, charts; pictures as empty places.

    For a document that `wordml.clean` has gone through.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # As if it had looked for LibreOffice and found none.
        self.docx_to_pdf_converter_init = True
        # Hidden runs were taken out.
        self._uses_hidden_text = False

    @classmethod
    def _get_format_from_run(cls, *_: Any) -> Formatting:
        # Emphasis was made signs in the text; to look for it takes a dozen searches a run.
        return Formatting()

    def _get_image_from_relationship(self, *_: Any) -> bytes | None:
        return None

    def _add_header_footer(self, *_: Any) -> None:
        pass

    def _add_footnotes_and_endnotes(self, *_: Any) -> None:
        pass

    def _add_comments(self, *_: Any) -> None:
        pass

    def _extract_comment_ranges(self) -> None:
        pass

    def _get_comment_ids_for_element(self, *_: Any) -> set[str]:
        return set()
