"""XLS, Excel's format until 2003, by xlrd: the same sections and tables as of an XLSX.

Not by docling: it converts such files by LibreOffice, which most machines do not have.
"""

import struct
from collections.abc import Iterator
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import XLS
from services.converter.parsing.cells import shower
from services.converter.parsing.hidden import Unseen
from services.converter.parsing.properties import line, told_title
from services.converter.parsing.result import Parse
from services.converter.parsing.sheets import Area, Row, write_sheet
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

# What xlrd raises on damaged files, besides its own error.
_DAMAGE = (
    struct.error, IndexError, KeyError, ValueError, TypeError, AttributeError, AssertionError,
    OverflowError, ZeroDivisionError, UnicodeError, LookupError, NotImplementedError,
    RecursionError,
)  # fmt: skip
_WHITE_INDEX = 9


def parse_xls(path: Path, options: ParseOptions) -> Parse:
    """An old workbook.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`, `too-large`, `empty-document`.
    """
    book = _opened(path)
    writer = Writer(options.max_output_bytes)
    hidden = Unseen()
    try:
        for index in range(book.nsheets):
            _sheet(book, index, writer, hidden)
    except _DAMAGE as error:
        raise Refusal("corrupt-document", "the workbook is damaged") from error
    if writer.empty:
        raise Refusal("empty-document", "the workbook has no visible text")
    facts = _properties(path)
    markdown, spans = writer.finish()
    texts = [*hidden.taken(), *(HiddenText(kind="metadata", text=t) for t in facts.values())]
    meta = BodyMeta(
        title=told_title(line(facts.get("title"))),
        language=UNKNOWN,
        media_type=XLS,
        author=line(facts.get("author")) or None,
        date=facts.get("create_time"),
    )
    document = ParsedDocument(
        markdown=markdown, hidden=tuple(dict.fromkeys(texts)), meta=meta, spans=spans
    )
    return Parse(document)


def _opened(path: Path) -> Any:
    import xlrd
    from xlrd.compdoc import CompDocError

    try:
        try:
            return _book(filename=str(path))
        except CompDocError:
            # A table of sectors that contradicts itself: the sheets may be whole.
            return _book(file_contents=_stream(path))
    except xlrd.XLRDError as error:
        if "encrypted" in str(error).lower():
            raise Refusal("encrypted-document", "the document is protected by a password") from None
        raise Refusal("corrupt-document", "the workbook cannot be read") from error
    except (CompDocError, *_DAMAGE) as error:
        raise Refusal("corrupt-document", "the workbook is damaged") from error


def _book(**source: Any) -> Any:
    import xlrd

    return xlrd.open_workbook(logfile=StringIO(), formatting_info=True, ragged_rows=True, **source)


def _stream(path: Path) -> bytes:
    """The workbook out of its container, as another library finds it."""
    import olefile

    try:
        with olefile.OleFileIO(str(path)) as container:
            name = next(one for one in ("Workbook", "Book") if container.exists(one))
            return bytes(container.openstream(name).read())
    except (OSError, StopIteration) as error:
        raise Refusal("corrupt-document", "the workbook is damaged") from error


def _properties(path: Path) -> dict[str, str]:
    """What the summary of the container says."""
    import olefile

    try:
        with olefile.OleFileIO(str(path)) as container:
            facts = container.get_metadata()
    except (OSError, *_DAMAGE):
        return {}
    found: dict[str, str] = {}
    for name in ("title", "author", "subject", "keywords", "comments", "company", "create_time"):
        value = getattr(facts, name, None)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        text = value.isoformat() if isinstance(value, datetime) else line(value)
        if text:
            found[name] = text
    return found


def _sheet(book: Any, index: int, writer: Writer, hidden: Unseen) -> None:
    sheet = book.sheet_by_index(index)
    for note in sheet.cell_note_map.values():
        hidden.add("comment", note.text)
    if sheet.visibility:
        for row in range(sheet.nrows):
            hidden.add("invisible-style", " ".join(_texts(book, sheet, row).values()))
        return
    # xlrd counts from 0 and leaves out the end.
    merged = [Area(top + 1, left + 1, bottom, right) for top, bottom, left, right in
              sheet.merged_cells]  # fmt: skip
    write_sheet(writer, sheet.name, _visible(book, sheet, hidden), merged)


def _visible(book: Any, sheet: Any, hidden: Unseen) -> Iterator[Row]:
    unseen = {column + 1 for column, info in sheet.colinfo_map.items() if info.hidden}
    for number in range(sheet.nrows):
        texts = _texts(book, sheet, number)
        info = sheet.rowinfo_map.get(number)
        if info is not None and info.hidden:
            hidden.add("invisible-style", " ".join(texts.values()))
            continue
        hidden.add("invisible-style", " ".join(t for c, t in texts.items() if c in unseen))
        cells: dict[int, str] = {}
        for column, text in texts.items():
            if column in unseen:
                continue
            if _is_white(book, sheet.cell_xf_index(number, column - 1)):
                hidden.add("background-colour", text)
                continue
            cells[column] = text
        if cells:
            yield Row(number + 1, cells)


def _texts(book: Any, sheet: Any, row: int) -> dict[int, str]:
    """Texts of a row by column from 1."""
    return {
        column + 1: text
        for column in range(sheet.row_len(row))
        if (text := _text(book, sheet.cell(row, column)).strip())
    }


def _text(book: Any, cell: Any) -> str:
    import xlrd

    match cell.ctype:
        case xlrd.XL_CELL_TEXT:
            return str(cell.value)
        case xlrd.XL_CELL_NUMBER | xlrd.XL_CELL_DATE:
            form = book.format_map.get(book.xf_list[cell.xf_index].format_key)
            code = (form.format_str if form is not None else "") or "General"
            return shower(code[:200], from_1904=bool(book.datemode))(float(cell.value))
        case xlrd.XL_CELL_BOOLEAN:
            return "TRUE" if cell.value else "FALSE"
        case xlrd.XL_CELL_ERROR:
            return str(xlrd.error_text_from_code.get(cell.value, "#ERROR"))
    return ""


def _is_white(book: Any, format_index: int) -> bool:
    """White letters on a cell that nothing paints."""
    form = book.xf_list[format_index]
    painted = form.background.fill_pattern != 0
    return not painted and book.font_list[form.font_index].colour_index == _WHITE_INDEX
