"""Tables: ruled by drawn lines, or unruled by columns of text that keep their distance."""

import re
from collections.abc import Sequence
from itertools import pairwise

from services.converter.parsing.pdf_grid import connected, grid_table
from services.converter.parsing.pdf_lined import lined_table, parallel
from services.converter.parsing.pdf_segments import (
    TOUCH,
    Segment,
    joined_rows,
    lies_across,
    lines_in,
    row_cells,
    segments_at,
    segments_of,
    stripes_of,
    tabular,
    wraps,
)
from services.converter.parsing.pdf_shapes import Rule, Word
from services.converter.parsing.pdf_table import Table

_LEADERS = re.compile(r"(?:[.…·]\s?){5}")
_LEAST_ROWS = 3
_MOST_RULES = 3000
_SHORT = 5
_SHORT_SECTION, _DEEPEST_HEAD = 0.6, 3
_EQUATION = re.compile(r"\([A-Z]?\d+(?:\.\d+)*[a-z]?\)")


# --- ruled ------------------------------------------------------------------------------------


def ruled_tables(words: Sequence[Word], rules: Sequence[Rule]) -> list[Table]:
    """Tables whose cells are drawn, largest first where they overlap."""
    found: list[Table] = []
    if len(rules) > _MOST_RULES:
        # A drawing: what its lines enclose is no table.
        return found
    for group in connected(rules):
        table = grid_table(words, group)
        if table is not None:
            found.append(table)
    for lines in parallel([r for r in rules if r.horizontal], words):
        table = lined_table(words, lines)
        if table is not None and not any(_touch(table, other) for other in found):
            found.append(table)
    return found


def table_in(words: Sequence[Word], rules: Sequence[Rule]) -> Table | None:
    """The table that is known to be made of these words; None if no columns can be told."""
    drawn = [table for table in ruled_tables(words, rules) if table.kind == "grid"]
    if drawn:
        return max(drawn, key=lambda table: len(table.words))
    lines = lines_in(words)
    unruled, used = unruled_table(lines)
    if unruled is not None and used == len(lines):
        return unruled
    stripes = stripes_of((w.left - w.size / 4, w.right + w.size / 4) for w in words)
    cuts = [(a[1] + b[0]) / 2 for a, b in pairwise(stripes)]
    if not cuts:
        return None
    cells = [
        cell for r, line in enumerate(lines) for cell in row_cells(r, segments_at(line, cuts), cuts)
    ]
    box = stripes[0][0], min(w.top for w in words), stripes[-1][1], max(w.bottom for w in words)
    return Table(*box, len(lines), len(cuts) + 1, cells, list(words))


def _touch(a: Rule | Table, b: Rule | Table) -> bool:
    return (
        a.left <= b.right + TOUCH
        and b.left <= a.right + TOUCH
        and a.top <= b.bottom + TOUCH
        and b.top <= a.bottom + TOUCH
    )


# --- unruled ----------------------------------------------------------------------------------


def unruled_table(lines: Sequence[Sequence[Word]]) -> tuple[Table | None, int]:
    """A table that starts with the first of `lines`, and how many lines it takes."""
    taken = _lines_of_table(lines)
    head = _spanning_lines(taken)
    body = taken[head:]
    rows = [*taken[:head], *joined_rows(body, _stripes_of_lines(body))]
    if len(rows) - head < _LEAST_ROWS and not _is_head_with_row(rows):
        return None, 0
    cuts = _cuts(rows[head:])
    if not cuts or not tabular(rows) or _is_formula(rows):
        return None, 0
    words = [w for row in rows for _, _, part in row for w in part]
    cells = [cell for r, row in enumerate(rows) for cell in row_cells(r, row, cuts)]
    table = Table(
        min(w.left for w in words), min(w.top for w in words),
        max(w.right for w in words), max(w.bottom for w in words),
        len(rows), len(cuts) + 1, cells, words,
    )  # fmt: skip
    return table, len(taken)


def _lines_of_table(lines: Sequence[Sequence[Word]]) -> list[list[Segment]]:
    """Lines from the first one on that keep to its columns."""
    taken: list[list[Segment]] = []
    stripes: list[tuple[float, float]] = []
    parted = [segments_of(line) for line in lines]
    for number, segments in enumerate(parted):
        if _LEADERS.search(" ".join(word.text for word in lines[number])):
            break
        size = segments[0][2][0].size
        gap = _distance(taken[-1], segments) if taken else 0.0
        section = False
        if not taken:
            fits = len(segments) > 1
        elif len(segments) > 1:
            fits = gap <= 3.0 * size and _aligned(stripes, segments)
        else:
            section = gap < 2.0 * size and _is_section(taken, stripes, parted[number : number + 2])
            fits = section or (gap < 0.8 * size and _under(stripes, segments[0]))
        if not fits:
            break
        taken.append(segments)
        if not section:
            stripes = stripes_of([*stripes, *((left, right) for left, right, _ in segments)])
    while taken and len(taken[-1]) == 1 and not wraps(taken[-1], stripes):
        taken.pop()
    return taken


def _is_section(
    taken: Sequence[Sequence[Segment]],
    stripes: Sequence[tuple[float, float]],
    lines: Sequence[Sequence[Segment]],
) -> bool:
    """A short line over further rows of the table, at its left edge: `Education level`."""
    if len(taken) < 2 or len(lines) < 2 or len(lines[1]) < 2:
        return False
    left, right, words = lines[0][0]
    size = words[0].size
    width = stripes[-1][1] - stripes[0][0]
    text = " ".join(word.text for word in words)
    row = taken[-1][0][2][0]
    return (
        abs(left - stripes[0][0]) < 1.5 * size
        and right - left < _SHORT_SECTION * width
        and abs(size - row.size) < 0.6
        and re.match(r"\d|.*[.:;,]$", text) is None
        and _distance([lines[0][0]], lines[1]) < 1.2 * size
        and _aligned(stripes, lines[1])
    )


def _spanning_lines(taken: Sequence[Sequence[Segment]]) -> int:
    """How many of the first lines lie over several columns that the others have."""
    columns = len(_stripes_of_lines(taken))
    best = 0
    for head in range(1, min(_DEEPEST_HEAD, len(taken) - _LEAST_ROWS) + 1):
        cuts = _cuts(taken[head:])
        across = all(lies_across(line, cuts) for line in taken[:head])
        if across and len(cuts) + 1 > columns:
            best, columns = head, len(cuts) + 1
    return best


def _stripes_of_lines(lines: Sequence[Sequence[Segment]]) -> list[tuple[float, float]]:
    return stripes_of((left, right) for line in lines for left, right, _ in line)


def _is_head_with_row(rows: Sequence[Sequence[Segment]]) -> bool:
    """A head in bold over one row with as many cells, none of them long."""
    if len(rows) != 2 or not 2 <= len(rows[0]) <= len(rows[1]):
        return False
    head, row = ([part for _, _, part in one] for one in rows)
    return (
        all(word.bold for part in head for word in part)
        and not any(word.bold for part in row for word in part)
        and all(len(part) <= _SHORT for part in (*head, *row))
    )


def _is_formula(rows: Sequence[Sequence[Segment]]) -> bool:
    """Lines that end with their number: `(2.4)`."""
    ends = [" ".join(word.text for word in row[-1][2]) for row in rows if len(row) > 1]
    return sum(_EQUATION.fullmatch(end) is not None for end in ends) * 2 > len(ends)


def _aligned(stripes: Sequence[tuple[float, float]], segments: Sequence[Segment]) -> bool:
    """No segment reaches over two columns, and most stand in one that is known."""
    hits = 0
    for left, right, _ in segments:
        over = sum(start < right and left < end for start, end in stripes)
        if over > 1:
            return False
        hits += over
    return hits >= max(1, len(segments) - 1)


def _under(stripes: Sequence[tuple[float, float]], segment: Segment) -> bool:
    """A lone segment that starts where a column starts and does not reach the next one."""
    nexts = [*(left for left, _ in stripes[1:]), float("inf")]
    return any(
        abs(left - segment[0]) < 3 and segment[1] < after
        for (left, _), after in zip(stripes, nexts, strict=True)
    )


def _distance(above: Sequence[Segment], below: Sequence[Segment]) -> float:
    return min(p[2][0].top for p in below) - max(w.bottom for p in above for w in p[2])


def _cuts(rows: Sequence[Sequence[Segment]]) -> list[float]:
    """Stripes that no row's text enters, as x positions; only a line alone may."""
    parted = [row for row in rows if len(row) > 1]
    return [(a[1] + b[0]) / 2 for a, b in pairwise(_stripes_of_lines(parted or rows))]
