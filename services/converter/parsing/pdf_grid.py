"""Tables whose cells are drawn."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np

from services.converter.parsing.pdf_segments import (
    TOUCH,
    are_rows,
    lies_across,
    lines_in,
    merged,
    segments_at,
    words_in,
)
from services.converter.parsing.pdf_shapes import Rule, Word
from services.converter.parsing.pdf_table import Cell, Table, cell_text

_FEW_BOXES, _LONG_BOX = 4, 35
_SURELY = 0.9
_FEW_ENTRIES, _MOST_ROWS, _SAME_LEVEL = 4, 0.8, 0.35


def connected(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Rules that touch one another, directly or through others."""
    left = np.array([r.left for r in rules]) - TOUCH / 2
    right = np.array([r.right for r in rules]) + TOUCH / 2
    top = np.array([r.top for r in rules]) - TOUCH / 2
    bottom = np.array([r.bottom for r in rules]) + TOUCH / 2
    free = np.ones(len(rules), dtype=bool)
    groups: list[list[Rule]] = []
    for first in range(len(rules)):
        if not free[first]:
            continue
        free[first] = False
        group, waiting = [first], [first]
        while waiting:
            one = waiting.pop()
            touching = np.flatnonzero(
                free & (left <= right[one]) & (right >= left[one])
                & (top <= bottom[one]) & (bottom >= top[one])
            )  # fmt: skip
            free[touching] = False
            group += touching.tolist()
            waiting += touching.tolist()
        groups.append([rules[n] for n in sorted(group)])
    return groups


def grid_table(words: Sequence[Word], rules: Sequence[Rule]) -> Table | None:
    horizontal = [r for r in rules if r.horizontal]
    vertical = [r for r in rules if not r.horizontal]
    ys = merged((r.top + r.bottom) / 2 for r in horizontal)
    xs = merged((r.left + r.right) / 2 for r in vertical)
    if len(ys) < 2 or not xs:
        return None
    # Tables are often open at the sides, or at head and foot.
    xs = merged([*xs, min(r.left for r in horizontal), max(r.right for r in horizontal)])
    ys = merged([*ys, min(r.top for r in vertical), max(r.bottom for r in vertical)])
    if len(ys) < 3 or len(xs) < 3:
        return None
    inside = [
        w for w in words
        if xs[0] - 1 <= (w.left + w.right) / 2 <= xs[-1] + 1
        and ys[0] - 1 <= (w.top + w.bottom) / 2 <= ys[-1] + 1
    ]  # fmt: skip
    if not inside:
        return None
    cells = _cells(inside, xs, ys, horizontal, vertical)
    filled = sum(bool(cell.text) for cell in cells)
    if len(cells) < 3 or filled < 3:
        return None
    place = xs[0], ys[0], xs[-1], ys[-1]
    if _is_form(cells, len(xs) - 1):
        return Table(*place, len(ys) - 1, len(xs) - 1, cells, inside, kind="form")
    cells, rows = _split_rows(cells, len(ys) - 1, xs)
    return Table(*place, rows, len(xs) - 1, cells, inside)


def _is_form(cells: Sequence[Cell], columns: int) -> bool:
    """Boxes of all widths: most of the cells that hold text lie across several columns.

    Or few boxes with much text in each: they set a page out.
    """
    filled = [cell for cell in cells if cell.text]
    if len(filled) <= _FEW_BOXES and sum(len(c.words) for c in filled) > _LONG_BOX * len(filled):
        return True
    wide = sum(cell.column_span > 1 for cell in filled)
    return columns > 6 and wide * 2 > len(filled)


def _split_rows(cells: Sequence[Cell], rows: int, xs: Sequence[float]) -> tuple[list[Cell], int]:
    """Rows set close, with no rule between them, as rows of their own."""
    split: list[Cell] = []
    shift = 0
    for row in range(rows):
        own = [cell for cell in cells if cell.row == row]
        tops = _starts(own, xs)
        parts = len(tops)
        for cell in own:
            split += _divided(cell, tops, row + shift)
        shift += max(0, parts - 1)
    return split, rows + shift


def _starts(own: Sequence[Cell], xs: Sequence[float]) -> list[float]:
    """Heights at which rows start that have no rule between them; none if it is one row."""
    filled = [cell for cell in own if cell.text]
    if len(filled) < 2 or any(cell.row_span > 1 or cell.column_span > 1 for cell in own):
        return []
    words = [word for cell in filled for word in cell.words]
    edges = list(pairwise(xs))
    stripes = [edges[cell.column] for cell in own]
    lines = [segments_at(line, xs[1:-1]) for line in lines_in(words)]
    level = sum(len(line) > 1 for line in lines)
    pairs = list(pairwise(lines))
    apart = sum(are_rows(above, below, stripes) for above, below in pairs)
    if len(lines) < 2 or level < 0.8 * len(lines) or apart < _SURELY * len(pairs):
        return []
    return [min(w.top for _, _, part in line for w in part) for line in lines]


def _part(word: Word, tops: Sequence[float]) -> int:
    return max(0, sum(top <= word.middle for top in tops) - 1)


def _divided(cell: Cell, tops: Sequence[float], row: int) -> list[Cell]:
    if len(tops) < 2:
        return [replace(cell, row=row)]
    parts: list[list[list[Word]]] = [[] for _ in tops]
    for line in cell.lines:
        for n, words in groupby(line, lambda word: _part(word, tops)):
            parts[n].append(list(words))
    return [
        Cell(row + n, cell.column, cell_text(lines), 1, cell.column_span, lines)
        for n, lines in enumerate(parts)
    ]


def _cells(
    words: Sequence[Word],
    xs: Sequence[float],
    ys: Sequence[float],
    horizontal: Sequence[Rule],
    vertical: Sequence[Rule],
) -> list[Cell]:
    """Grid squares, joined where no rule lies between them."""
    taken: set[tuple[int, int]] = set()
    cells: list[Cell] = []
    for row in range(len(ys) - 1):
        for column in range(len(xs) - 1):
            if (row, column) in taken:
                continue
            across = 1
            while column + across < len(xs) - 1 and not _covered(
                vertical, xs[column + across], (ys[row] + ys[row + 1]) / 2, upright=True
            ):
                across += 1
            down = 1
            while row + down < len(ys) - 1 and not _covered(
                horizontal, ys[row + down], (xs[column] + xs[column + across]) / 2, upright=False
            ):
                down += 1
            square = {
                (r, c) for r in range(row, row + down) for c in range(column, column + across)
            }
            if square & taken:
                square, down, across = {(row, column)}, 1, 1
            taken |= square
            box = (xs[column], ys[row], xs[column + across], ys[row + down])
            lines = lines_in(words_in(words, box))
            whole = Cell(row, column, cell_text(lines), down, across, lines)
            stacked = _stacked(whole, ys, words)
            cells += stacked or _parted(whole, xs)
    return cells


def _stacked(cell: Cell, ys: Sequence[float], words: Sequence[Word]) -> list[Cell]:
    """A cell over many rows with an entry in each, as cells: names left of a box that is open.

    None, if it holds one text: its lines stand level with those of the other columns by chance
    only, and they go on in small letters.
    """
    edges = list(pairwise(ys))[cell.row : cell.row + cell.row_span]
    rows = [sum(low <= _level(line) for _, low in edges[:-1]) for line in cell.lines]
    if len(edges) < _FEW_ENTRIES or not _MOST_ROWS * len(edges) <= len({*rows}) == len(rows):
        return []
    others = [w for w in words if all(w is not mine for mine in cell.words)]
    starts = sum(not line[0].text[:1].islower() for line in cell.lines)
    level = sum(
        any(abs(w.middle - _level(line)) < _SAME_LEVEL * w.size for w in others)
        for line in cell.lines
    )
    if min(starts, level) < _SURELY * len(rows):
        return []
    filled = dict(zip(rows, cell.lines, strict=True))
    parts = [[filled[n]] if n in filled else [] for n in range(len(edges))]
    return [
        Cell(cell.row + n, cell.column, cell_text(part), 1, cell.column_span, part)
        for n, part in enumerate(parts)
    ]


def _level(line: Sequence[Word]) -> float:
    return line[0].middle


def _parted(cell: Cell, xs: Sequence[float]) -> list[Cell]:
    """A drawn cell over several columns of the grid, if its text keeps to these columns.

    Many tables have upright rules in their head only.
    """
    cuts = xs[cell.column + 1 : cell.column + cell.column_span]
    rows = [segments_at(line, cuts) for line in cell.lines]
    parted = max(map(len, rows), default=0) > 1 and not any(lies_across(row, cuts) for row in rows)
    if not cuts or not parted:
        return [cell]
    found: list[Cell] = []
    for n in range(cell.column_span):
        own = [
            [w for w in line if sum((w.left + w.right) / 2 > c for c in cuts) == n]
            for line in cell.lines
        ]
        lines = [line for line in own if line]
        found.append(Cell(cell.row, cell.column + n, cell_text(lines), cell.row_span, 1, lines))
    return found


def _covered(rules: Sequence[Rule], at: float, along: float, *, upright: bool) -> bool:
    for rule in rules:
        if upright:
            near, spans = (
                abs((rule.left + rule.right) / 2 - at),
                rule.top - 1 <= along <= rule.bottom + 1,
            )
        else:
            near, spans = (
                abs((rule.top + rule.bottom) / 2 - at),
                rule.left - 1 <= along <= rule.right + 1,
            )
        if near < TOUCH and spans:
            return True
    return False
