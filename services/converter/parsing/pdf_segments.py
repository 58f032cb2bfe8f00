"""Lines of words parted at wide gaps, and how they make the rows and columns of a table."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from services.converter.parsing.pdf_shapes import BULLET, Word
from services.converter.parsing.pdf_table import Cell, cell_text

Segment = tuple[float, float, list[Word]]
"""Left and right edge, and the words."""

_FAR, _BLANK, _WIDE_BLANK, _WIDER = 1.3, 0.45, 0.7, 1.3
TOUCH = 3.0


def segments_of(line: Sequence[Word]) -> list[Segment]:
    """Runs of words with no wide gap in them."""
    parts: list[list[Word]] = []
    for word in sorted(line, key=lambda w: w.left):
        if parts and word.left - parts[-1][-1].right < _FAR * word.size:
            parts[-1].append(word)
        else:
            parts.append([word])
    return [(part[0].left, part[-1].right, part) for part in parts]


def segments_at(line: Sequence[Word], cuts: Sequence[float]) -> list[Segment]:
    """Words by column; those that run on over a cut, with no more than a blank, stay together."""
    parts: list[list[Word]] = []
    before = -1
    gaps = [b.left - a.right for a, b in pairwise(line)]
    blank = _WIDER * max(min(gaps, default=0.0), 0.0)
    for word in line:
        column = sum((word.left + word.right) / 2 > cut for cut in cuts)
        widest = min(max(blank, _BLANK * word.size), _WIDE_BLANK * word.size)
        near = bool(parts) and word.left - parts[-1][-1].right < widest
        if parts and (column == before or near):
            parts[-1].append(word)
        else:
            parts.append([word])
        before = column
    return [(part[0].left, part[-1].right, part) for part in parts]


def stripes_of(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for left, right in sorted(spans):
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


def lies_across(row: Sequence[Segment], cuts: Sequence[float]) -> bool:
    return any(left < cut < right for left, right, _ in row for cut in cuts)


def height_of(row: Sequence[Segment]) -> tuple[float, float]:
    words = [word for _, _, part in row for word in part]
    return min(w.top for w in words), max(w.bottom for w in words)


def wraps(segments: Sequence[Segment], stripes: Sequence[tuple[float, float]]) -> bool:
    """Nothing under the first column."""
    return segments[0][0] > stripes[0][1]


def joined_rows(
    lines: Sequence[list[Segment]], stripes: Sequence[tuple[float, float]]
) -> list[list[Segment]]:
    """Lines of one row together: by wide and narrow distances if both occur, else by wrapping.

    One wide distance tells nothing: it may be that below the header. Nor do several where lines
    that stand close are rows of their own: then rows come in groups.
    """
    starts = [height_of(line)[0] for line in lines]
    pitches = [b - a for a, b in pairwise(starts)]
    narrow = min(pitches, default=0.0)
    apart = [pitch > 1.3 * narrow for pitch in pitches]
    near_pairs = [pair for pair, far in zip(pairwise(lines), apart, strict=True) if not far]
    whole_lines = sum(are_rows(above, below, stripes) for above, below in near_pairs)
    grouped = sum(apart) > 1 and not all(apart) and whole_lines * 2 < len(near_pairs)
    rows: list[list[Segment]] = []
    for number, line in enumerate(lines):
        hangs = bool(stripes) and wraps(line, stripes) and len(line) == 1
        near = grouped and number > 0 and not apart[number - 1]
        goes_on = number > 0 and _goes_on(lines[number - 1], line, stripes)
        if rows and (near if grouped else hangs or goes_on):
            rows[-1] = [*rows[-1], *line]
        else:
            rows.append(line)
    whole = sum(len(row) > 1 for row in rows)
    if grouped and whole * 3 < len(rows) * 2:
        return [list(line) for line in lines if len(line) > 1]
    return rows


def are_rows(
    above: Sequence[Segment], below: Sequence[Segment], stripes: Sequence[tuple[float, float]]
) -> bool:
    """Figures under figures, or words that would have had room in the line above."""
    for left, right, part in below:
        column, over = _over(left, right, above, stripes)
        if column is None or not over:
            continue
        if _is_figure(part) and _is_figure(over[-1][2]):
            return True
        first = part[0]
        needed = over[-1][1] - over[0][0] + 0.25 * first.size + first.right - first.left
        if needed < column[1] - column[0] - 0.5 * first.size:
            return True
    return False


def _is_figure(words: Sequence[Word]) -> bool:
    text = "".join(word.text for word in words)
    return any(map(str.isdigit, text)) and not any(map(str.isalpha, text))


def _goes_on(
    above: Sequence[Segment], below: Sequence[Segment], stripes: Sequence[tuple[float, float]]
) -> bool:
    """Fewer cells, each of words, and each of them would not have fitted into the line above."""
    if len(below) >= len(above):
        return False
    for left, right, part in below:
        column, over = _over(left, right, above, stripes)
        first = part[0]
        blank = 0.25 * first.size
        if (
            column is None
            or not over
            or not re.search(r"[^\W\d_]{2}", " ".join(word.text for word in part))
        ):
            return False
        if over[-1][1] + blank + first.right - first.left <= column[1]:
            return False
    return True


def _over(
    left: float,
    right: float,
    above: Sequence[Segment],
    stripes: Sequence[tuple[float, float]],
) -> tuple[tuple[float, float] | None, list[Segment]]:
    """The column that a segment stands in, if any, and what the line above has there."""
    column = next((s for s in stripes if s[0] <= (left + right) / 2 <= s[1]), None)
    if column is None:
        return None, []
    return column, [a for a in above if column[0] <= (a[0] + a[1]) / 2 <= column[1]]


def tabular(rows: Sequence[Sequence[Segment]]) -> bool:
    """Short cells, not lines of running text or a list with marks."""
    segments = [part for row in rows for _, _, part in row]
    words = sum(map(len, segments)) / len(segments)
    marks = sum(len(row[0][2]) == 1 and len(row[0][2][0].text) <= 3 for row in rows)
    bullets = sum(BULLET.match(f"{row[0][2][0].text} ") is not None for row in rows)
    listed = bullets * 2 >= len(rows) and max(map(len, rows)) == 2
    if listed or (marks == len(rows) and words > 2.5):
        return False
    return words < 9


def row_cells(number: int, row: Sequence[Segment], cuts: Sequence[float]) -> list[Cell]:
    """A cell for each column; one that lies over several takes their place."""
    parts: dict[tuple[int, int], list[list[Word]]] = {}
    for left, right, part in row:
        column = sum((left + right) / 2 > cut for cut in cuts)
        over = [n for n, cut in enumerate(cuts) if left < cut < right]
        span = (over[0], over[-1] + 1) if over else (column, column)
        parts.setdefault(span, []).append(part)
    taken = {n for first, last in parts for n in range(first, last + 1)}
    if len(taken) < sum(last - first + 1 for first, last in parts):
        # They overlap: what is written below a heading over several columns.
        return _single_cells(number, row, cuts)
    parts.update(((n, n), []) for n in range(len(cuts) + 1) if n not in taken)
    return [
        Cell(number, first, cell_text(lines), column_span=last - first + 1, lines=lines)
        for (first, last), lines in sorted(parts.items())
    ]


def _single_cells(number: int, row: Sequence[Segment], cuts: Sequence[float]) -> list[Cell]:
    parts: list[list[list[Word]]] = [[] for _ in range(len(cuts) + 1)]
    for left, right, part in row:
        parts[sum((left + right) / 2 > cut for cut in cuts)].append(part)
    return [
        Cell(number, column, cell_text(lines), lines=lines) for column, lines in enumerate(parts)
    ]


def words_in(words: Sequence[Word], box: tuple[float, float, float, float]) -> list[Word]:
    left, top, right, bottom = box
    return [
        w for w in words
        if left <= (w.left + w.right) / 2 < right and top <= (w.top + w.bottom) / 2 < bottom
    ]  # fmt: skip


def lines_in(words: Iterable[Word]) -> list[list[Word]]:
    """Words of a cell line by line."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda w: ((w.top + w.bottom) / 2, w.left)):
        middle = (word.top + word.bottom) / 2
        if lines and lines[-1][0].top <= middle <= lines[-1][0].bottom:
            lines[-1].append(word)
        else:
            lines.append([word])
    return [sorted(line, key=lambda w: w.left) for line in lines]


def merged(values: Iterable[float]) -> list[float]:
    """Positions that lie within a touch are one."""
    cuts: list[float] = []
    for value in sorted(values):
        if cuts and value - cuts[-1] < TOUCH:
            continue
        cuts.append(value)
    return cuts
