"""The columns of an RTF table: a merged cell shows its text in every one that it covers."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from services.converter.parsing.looks import Runs, plain_text
from services.converter.parsing.markdown import LONGEST_REPEATED

_SLACK = 60
"""Twips (3 points) by which edges of one column may differ between rows."""
_MOST_TIMES = 3
"""Of the cells of the longest row: what has more columns was drawn, and has no common ones."""


@dataclass
class TableRow:
    """A row as it is written."""

    cells: list[Runs] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    """For each cell `<` for one that belongs to the left one, `^` to the one above, or nothing."""
    edges: list[int] = field(default_factory=list)
    """Where each cell ends on the right, in twips. Most programs merge cells by leaving one out."""


def grid(rows: Sequence[TableRow]) -> Iterator[list[Runs]]:
    """The cells of each row, one for each column of the table that it reaches."""
    above: list[Runs] = []
    for row, widths in zip(rows, _widths(rows), strict=True):
        line: list[Runs] = []
        for number, (runs, width) in enumerate(zip(row.cells, widths, strict=True)):
            mark = row.merged[number] if number < len(row.merged) else ""
            if mark == "<" and number:
                runs = runs or _repeated(line[-1])  # noqa: PLW2901
            elif mark == "^" and len(line) < len(above):
                runs = runs or _repeated(above[len(line)])  # noqa: PLW2901
            line += [runs, *[_repeated(runs)] * (width - 1)]
        above = line
        yield line


def _repeated(runs: Runs) -> Runs:
    return runs if len(plain_text(runs)) <= LONGEST_REPEATED else []


def _widths(rows: Sequence[TableRow]) -> list[list[int]]:
    """How many columns each cell covers; one, if the rows do not tell where all of them end, or
    if most of the table would be repetition."""
    told: list[list[int]] = []
    for row in rows:
        # A row without a definition has that of the row before.
        edges = row.edges or (told[-1] if told else [])
        told.append(edges[: len(row.cells)])
    gaps = [right - left for edges in told for left, right in pairwise(edges)]
    least = min(gaps, default=0)
    bounds: list[int] = []
    for edge in sorted({edge for edges in told for edge in edges}):
        if not bounds or edge - bounds[-1] > min(_SLACK, least // 2):
            bounds.append(edge)
    longest = max((len(row.cells) for row in rows), default=0)
    known = all(len(e) == len(row.cells) for e, row in zip(told, rows, strict=True))
    if not known or least < 0 or 0 in gaps or len(bounds) > _MOST_TIMES * longest:
        return [[1] * len(row.cells) for row in rows]
    ends = ([bisect_right(bounds, edge) for edge in edges] for edges in told)
    widths = [[right - left for left, right in pairwise([0, *row])] for row in ends]
    return widths if _bounded(rows, widths) else [[1] * len(row.cells) for row in rows]


def _bounded(rows: Sequence[TableRow], widths: Sequence[Sequence[int]]) -> bool:
    """As for the tables of other formats, see `markdown.py`."""
    raw = spread = 0
    for row, wide in zip(rows, widths, strict=True):
        for runs, width in zip(row.cells, wide, strict=True):
            size = len(plain_text(_repeated(runs)))
            raw += size
            spread += size * width
    return spread <= 4 * raw + 2000
