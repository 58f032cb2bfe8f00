"""A table as layout gives it: cells in a grid, and the words that they took."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from services.converter.parsing.pdf_shapes import Word, join_words

_TOUCHING = 0.04
_SAME_EDGE = 8.0


@dataclass(slots=True)
class Cell:
    """`row`, `column` from 0; spans from 1."""

    row: int
    column: int
    text: str
    row_span: int = 1
    column_span: int = 1
    lines: list[list[Word]] = field(default_factory=list)
    box: tuple[float, float, float, float] | None = None

    def __post_init__(self) -> None:
        words = self.words
        if words:
            self.box = (
                min(w.left for w in words), min(w.top for w in words),
                max(w.right for w in words), max(w.bottom for w in words),
            )  # fmt: skip

    @property
    def words(self) -> list[Word]:
        """In reading order."""
        return [word for line in self.lines for word in line]


@dataclass(slots=True)
class Table:
    """A grid of cells with its place on the page and the words it took.

    A `form` is a grid of boxes to fill in: its cells are read one by one, not as rows and columns.
    A `figure` has one cell, with what is written in it.
    """

    left: float
    top: float
    right: float
    bottom: float
    rows: int
    columns: int
    cells: list[Cell]
    words: list[Word] = field(default_factory=list)
    kind: Literal["grid", "form", "figure"] = "grid"

    @property
    def head_rows(self) -> int:
        """Rows of the header: the first, and what is under its cells that lie over columns."""
        spans = [cell for cell in self.cells if cell.row == 0 and cell.text]
        below = any(1 < cell.column_span < self.columns for cell in spans)
        deep = max((cell.row_span for cell in spans if cell.row_span < self.rows), default=1)
        return min(max(deep, 2 if below else 1), 3, max(1, self.rows - 1))

    def goes_on_in(self, other: "Table") -> bool:
        """Whether `other`, at the head of the next page, has the same columns."""
        if self.repeats_in(other):
            return True
        return (
            self.kind == other.kind == "grid"
            and self.columns == other.columns
            and abs(self.left - other.left) < _SAME_EDGE
            and abs(self.right - other.right) < _SAME_EDGE
        )

    def repeats_in(self, other: "Table") -> bool:
        """Whether `other` has the same columns under the same header."""
        head = _head_texts(self, self.head_rows)
        return (
            self.kind == other.kind == "grid"
            and self.columns == other.columns > 1
            and len(head) > 1
            and head == _head_texts(other, self.head_rows)
            and abs(self.left - other.left) < 3 * _SAME_EDGE
        )

    def add(self, other: "Table") -> None:
        """The rows of `other` below, without its header if that is repeated."""
        head = self.head_rows
        repeated = 0
        if _head_texts(self, head) == _head_texts(other, head):
            repeated = head
        for cell in other.cells:
            if cell.row >= repeated:
                cell.row += self.rows - repeated
                self.cells.append(cell)
        self.rows += other.rows - repeated

    def settle(self) -> None:
        """Let go of the words; texts and boxes stay."""
        self.words = []
        for cell in self.cells:
            cell.lines = []


def _head_texts(table: Table, rows: int) -> list[tuple[int, int, str]]:
    return sorted((c.row, c.column, c.text) for c in table.cells if c.row < rows and c.text)


def cell_text(lines: Iterable[Iterable[Word]]) -> str:
    """Lines of a cell as one, words mended that were divided at a line's end."""
    text = ""
    for line in lines:
        more = join_words(line, _TOUCHING)
        divided = re.search(r"[^\W\d_][-\u00ad]$", text) is not None and more[:1].islower()
        text = text[:-1] + more if divided else f"{text} {more}"
    return text.strip()
