"""Sheets of cells as sections of tables, written row by row; for XLSX, XLS and ODS."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from contracts.artifacts import Place
from services.converter.parsing.literal import paragraph
from services.converter.parsing.looks import Links
from services.converter.parsing.table_text import has_head, is_value, table_row, table_rule
from services.converter.parsing.writer import Writer

_BUFFERED_ROWS = 1000
_ROWS_WITH_SPANS = 2000
_ROWS_FOR_HEAD = 200
_GROUP = 100
_MOST_SUMS = 5
_MOST_MERGED = 10_000

SHEET_LEVEL = 2
"""Level of a sheet's heading: its name is not the title of the document."""


class Area(NamedTuple):
    """Cells that were merged into one; all from 1, both ends included."""

    top: int
    left: int
    bottom: int
    right: int


class Row(NamedTuple):
    """A row with text: its number from 1, and texts by column from 1.

    `copied` are the columns whose text stands elsewhere, in the first cell of a merged area;
    `areas` are those that start in this row, for formats that tell them there.
    """

    number: int
    cells: dict[int, str]
    copied: frozenset[int] = frozenset()
    areas: tuple[Area, ...] = ()


def column_name(column: int) -> str:
    """`A` for 1, `AA` for 27."""
    name = ""
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(65 + letter) + name
    return name


def write_sheet(
    writer: Writer,
    name: str,
    rows: Iterable[Row],
    merged: Sequence[Area] = (),
    links: Links | None = None,
) -> None:
    """A heading, then the tables of the sheet, each cell text literal; nothing without rows.

    Blank rows part tables, but for sums under one, and so do blank columns where a table has at
    most 1,000 rows. A row with one text over a table, and a column of words, are paragraphs. Merged
    cells all show their text. The first 2,000 rows have a span each, later ones every 100 together.
    `links` are those whose signs are in the texts.
    """
    section = _Section(writer, name, links)
    for number, row in enumerate(_unmerged(rows, merged)):
        if number == 0:
            sheet_heading(writer, name)
        section.row(row)
    section.end()


def sheet_heading(writer: Writer, name: str) -> None:
    """The heading of a sheet that has something to show."""
    writer.heading(name, SHEET_LEVEL, Place(sheet=name))


def _unmerged(rows: Iterable[Row], merged: Sequence[Area]) -> Iterator[Row]:
    """Rows with the text of merged cells in every one of them."""
    areas = sorted(area for area in merged if _size(area) <= _MOST_MERGED)
    coming = iter([*areas, None])
    following = next(coming)
    active: list[tuple[Area, str]] = []
    for row in rows:
        while following is not None and following.top <= row.number:
            text = row.cells.get(following.left, "") if following.top == row.number else ""
            if text:
                active.append((following, text))
            following = next(coming)
        for area in row.areas:
            if row.cells.get(area.left) and _size(area) <= _MOST_MERGED:
                active.append((area, row.cells[area.left]))
        if active:
            active = [(area, text) for area, text in active if area.bottom >= row.number]
            filled: dict[int, str] = {}
            for area, text in active:
                filled |= dict.fromkeys(range(area.left, area.right + 1), text)
            copied = frozenset(filled.keys() - row.cells.keys())
            yield Row(row.number, {**filled, **row.cells}, copied)
        else:
            yield row


def _size(area: Area) -> int:
    return (area.bottom - area.top + 1) * (area.right - area.left + 1)


class _Section:
    """One sheet as it comes in."""

    def __init__(self, writer: Writer, sheet: str, links: Links | None) -> None:
        self._writer, self._sheet = writer, sheet
        self._linked: Callable[[str], str] = links.written if links else str
        self._buffer: list[Row] = []
        self._last = 0
        self._columns: list[int] = []
        """Of the table that is being written; empty while rows are only collected."""
        self._table_before: tuple[list[int], int] | None = None
        """Columns and last row of the table that was written last, if nothing followed it."""
        self._valued: set[int] = set()
        """Columns of that table with a number or date."""
        self._group: list[str] = []
        self._first = self._latest = 0
        self._written = 0

    def row(self, row: Row) -> None:
        """The next row with text."""
        if row.number > self._last + 1:
            self.end()
        self._last = row.number
        if self._columns:
            self._table_row(row)
            return
        self._buffer.append(row)
        if len(self._buffer) == _BUFFERED_ROWS:
            self._long_table()

    def end(self) -> None:
        """No more rows without a blank one between."""
        self._close()
        rows, self._buffer = self._buffer, []
        rows = rows[self._sums(rows) :]
        for columns in _apart(rows):
            for part in _together(_only(rows, columns)):
                self._region(part)

    def _sums(self, rows: Sequence[Row]) -> int:
        """Sums under a table, with one blank row between: a few rows with values in line with its
        own, written as rows of it; how many there were."""
        if not rows or self._table_before is None or self._table_before[1] != rows[0].number - 2:
            return 0
        columns = self._table_before[0]
        found = list(takewhile(partial(self._in_line, columns), rows))
        if not 0 < len(found) <= _MOST_SUMS or has_head([_texts(row, columns) for row in found]):
            return 0
        if any(len(row.cells) > 1 for row in rows[len(found) :]):
            # The first rows of another table.
            return 0
        self._columns = columns
        for row in found:
            self._table_row(row)
        self._close()
        return len(found)

    def _in_line(self, columns: Sequence[int], row: Row) -> bool:
        inside = len(columns) > 1 and columns[0] <= min(row.cells) <= max(row.cells) <= columns[-1]
        return inside and any(is_value(row.cells.get(column, "")) for column in self._valued)

    # --- one region -----------------------------------------------------------------------------

    def _region(self, rows: list[Row]) -> None:
        rows = rows[self._captions(rows) :]
        columns = _range(rows)
        if len(columns) == 1 and not any(is_value(t) for r in rows[1:] for t in r.cells.values()):
            self._paragraphs(rows)
            return
        self._table(rows, columns)
        self._close()

    def _table(self, rows: list[Row], columns: list[int]) -> None:
        texts = [_texts(row, columns) for row in rows[:_ROWS_FOR_HEAD]]
        head = has_head(texts) or (len(rows) == 1 and not any(map(is_value, texts[0])))
        # One blank row may part groups of rows of one table: then no head follows it.
        goes_on = self._table_before == (columns, rows[0].number - 2) and not head
        self._columns = columns
        self._valued = {
            c for row in rows[:_ROWS_FOR_HEAD] for c in row.cells if is_value(row.cells[c])
        }
        self._latest = rows[0].number
        if not goes_on:
            self._open(rows[0] if head else None)
        for row in rows[int(head) :]:
            self._table_row(row)

    def _captions(self, rows: Sequence[Row]) -> int:
        """Rows of one text over a table, written as paragraphs; how many there were."""
        number = next((n for n, row in enumerate(rows) if not _is_caption(row)), 0)
        self._paragraphs(rows[:number])
        return number

    def _paragraphs(self, rows: Sequence[Row]) -> None:
        for row in rows:
            column = min(row.cells)
            cells = f"{column_name(column)}{row.number}"
            text = self._linked(paragraph(row.cells[column]))
            self._writer.block(text, Place(sheet=self._sheet, cells=cells))
            self._table_before = None

    # --- one table ------------------------------------------------------------------------------

    def _long_table(self) -> None:
        rows, self._buffer = self._buffer, []
        rows = rows[self._captions(rows) :]
        self._table(rows, _range(rows))

    def _open(self, head: Row | None) -> None:
        place = self._place(head.number, head.number) if head else None
        texts = _texts(head, self._columns) if head else [""] * len(self._columns)
        self._writer.block(self._linked(table_row(texts)), place)
        self._writer.add("\n" + table_rule(len(self._columns)))

    def _table_row(self, row: Row) -> None:
        first, last = self._columns[0], self._columns[-1]
        if min(row.cells) < first or max(row.cells) > last:
            # A column that no row before had.
            self._close()
            self._columns = list(range(min(first, *row.cells), max(last, *row.cells) + 1))
            self._open(None)
        if not self._group:
            self._first = row.number
        self._group.append(self._linked(table_row(_texts(row, self._columns))))
        self._latest = row.number
        self._written += 1
        if self._written <= _ROWS_WITH_SPANS or len(self._group) == _GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._group:
            self._writer.add("\n")
            self._writer.add("\n".join(self._group), self._place(self._first, self._latest))
            self._group = []

    def _close(self) -> None:
        self._flush()
        if self._columns:
            self._table_before = (self._columns, self._latest)
        self._columns = []

    def _place(self, first: int, last: int) -> Place:
        left, right = column_name(self._columns[0]), column_name(self._columns[-1])
        one = first == last and left == right
        cells = f"{left}{first}" if one else f"{left}{first}:{right}{last}"
        return Place(sheet=self._sheet, cells=cells)


def _is_caption(row: Row) -> bool:
    """One text, in one cell or in one that was merged over several."""
    return len(set(row.cells.values())) == len(row.cells.keys() - row.copied) == 1


def _texts(row: Row, columns: Sequence[int]) -> list[str]:
    return [row.cells.get(column, "") for column in columns]


def _range(rows: Sequence[Row]) -> list[int]:
    """Every column from the first to the last that is used."""
    return list(range(min(min(r.cells) for r in rows), max(max(r.cells) for r in rows) + 1))


def _apart(rows: Sequence[Row]) -> list[set[int]]:
    """Columns that stand together, without a blank one between."""
    groups: list[set[int]] = []
    for column in sorted({column for row in rows for column in row.cells}):
        if groups and column - 1 in groups[-1]:
            groups[-1].add(column)
        else:
            groups.append({column})
    return groups


def _only(rows: Sequence[Row], columns: set[int]) -> list[Row]:
    parts = (
        Row(r.number, {c: t for c, t in r.cells.items() if c in columns}, r.copied) for r in rows
    )
    return [row for row in parts if row.cells]


def _together(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that follow each other, in groups."""
    groups: list[list[Row]] = []
    for row in rows:
        if groups and row.number == groups[-1][-1].number + 1:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups
