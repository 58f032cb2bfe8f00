"""XLSX, damaged in every way."""

from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
from hypothesis import given
from openpyxl.comments import Comment

from kernel.media import XLSX
from tests.unit.converter.fuzzing import BOUNDED, check, damaged_zip, made


def _valid() -> bytes:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    for row in (["a", "b", "c"], ["x", date(2024, 1, 2), 0.5], ["y", 1e9, True]):
        sheet.append(row)
    sheet.merge_cells("A5:B6")
    sheet["A5"] = "merged"
    sheet["C2"].number_format = "0%"
    sheet["A1"].comment = Comment("remark", "me")
    sheet.column_dimensions["C"].hidden = True
    book.create_sheet("Two").append(["z"])
    return made(book.save)


@BOUNDED
@given(data=damaged_zip(_valid()))
def test_a_damaged_workbook_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    check(tmp_path / "a", data, XLSX)
