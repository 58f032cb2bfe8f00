"""XLS, damaged in every way."""

from datetime import date
from pathlib import Path

import xlwt
from hypothesis import given

from kernel.media import XLS
from tests.unit.converter.fuzzing import BOUNDED, check, damaged, made


def _valid() -> bytes:
    book = xlwt.Workbook()
    sheet = book.add_sheet("Лист")
    for row in range(4):
        sheet.write(row, 0, f"текст {row}")
        sheet.write(row, 1, row / 3)
    sheet.write(4, 0, date(2024, 1, 2), xlwt.easyxf(num_format_str="DD.MM.YYYY"))
    sheet.write_merge(5, 6, 0, 1, "merged")
    return made(book.save)


@BOUNDED
@given(data=damaged(_valid()))
def test_a_damaged_old_workbook_is_read_or_refused(tmp_path: Path, data: bytes) -> None:
    check(tmp_path / "a", data, XLS)
