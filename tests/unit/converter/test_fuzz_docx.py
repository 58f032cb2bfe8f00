"""DOCX, damaged in every way."""

from pathlib import Path

import docx
from hypothesis import given

from kernel.media import DOCX
from tests.unit.converter.fuzzing import SLOW, check, damaged_zip, made


def _valid() -> bytes:
    document = docx.Document()
    document.add_heading("Title", 1)
    document.add_paragraph("text").add_run(" bold").bold = True
    document.add_paragraph("item", style="List Number")
    table = document.add_table(2, 2)
    table.cell(0, 0).merge(table.cell(1, 0)).text = "cell"
    return made(document.save)


@SLOW
@given(data=damaged_zip(_valid(), r"word/(?:document|styles|numbering)\.xml"))
def test_a_damaged_document_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    check(tmp_path / "a", data, DOCX)
