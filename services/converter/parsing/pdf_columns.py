"""Columns of a page: where its gutters are, and the order in which the columns are read.

Coordinates are points with the origin at the top left.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from services.converter.parsing.pdf_shapes import Word
from services.converter.parsing.pdf_table import Table


def main_size(words: Iterable[Word]) -> float:
    """The size that most letters of `words` have, to half a point."""
    weights: Counter[float] = Counter()
    for word in words:
        weights[round(word.size * 2) / 2] += len(word.text)
    return max(weights.items(), key=lambda item: (item[1], item[0]))[0]


def rows_of(items: Iterable[Word | Table]) -> list[list[Word | Table]]:
    """Items that stand side by side; a table is a row of its own."""
    rows: list[list[Word | Table]] = []
    for item in sorted(items, key=lambda i: ((i.top + i.bottom) / 2, i.left)):
        last = rows[-1][-1] if rows else None
        if isinstance(item, Word) and isinstance(last, Word) and _level(item, rows[-1]):
            rows[-1].append(item)
        else:
            rows.append([item])
    for row in rows:
        row.sort(key=lambda i: i.left)
    return sorted(rows, key=lambda row: min(i.top for i in row))


def _level(word: Word, row: Sequence[Word | Table]) -> bool:
    """Whether `word` overlaps the row's tallest word by half of the smaller one's height."""
    tallest = max((w for w in row if isinstance(w, Word)), key=lambda w: w.bottom - w.top)
    if not (word.upright and tallest.upright):
        return False
    overlap = min(word.bottom, tallest.bottom) - max(word.top, tallest.top)
    return overlap > 0.5 * min(word.bottom - word.top, tallest.bottom - tallest.top)


def regions(flow: Sequence[Word | Table], depth: int = 0) -> Iterator[list[Word | Table]]:
    """Runs of items that are read top to bottom, columns one after the other."""
    rows = rows_of(flow)
    gutter = (_gutter(rows, flow) or _table_gutter(rows, flow)) if depth < 3 else None
    if gutter is None:
        yield list(flow)
        return
    for crossing, zone in _zones(rows, gutter):
        items = [item for row in zone for item in row]
        left = [i for i in items if (i.left + i.right) / 2 < gutter]
        right = [i for i in items if (i.left + i.right) / 2 >= gutter]
        if crossing or not left or not right:
            yield from regions(items, 3) if crossing else regions(items, depth + 1)
        else:
            yield from regions(left, depth + 1)
            yield from regions(right, depth + 1)


def _gutter(rows: Sequence[Sequence[Word | Table]], flow: Sequence[Word | Table]) -> float | None:
    """Where a blank stripe divides two columns of running text."""
    words = [w for w in flow if isinstance(w, Word)]
    if len(words) < 30:
        return None
    size = main_size(words)
    left, right = min(w.left for w in words), max(w.right for w in words)
    best: tuple[float, float] | None = None
    edges = _edges(rows)
    x = left + 0.15 * (right - left)
    while x < right - 0.15 * (right - left):
        score = _gutter_score(edges, x, size)
        if score > 0 and (best is None or score > best[0]):
            best = (score, x)
        x += max(1.0, size / 4)
    if best is None or not _looks_like_columns(rows, best[1], size):
        return None
    return _centre_of_gutter(edges, best[1], best[0], size)


def _table_gutter(
    rows: Sequence[Sequence[Word | Table]], flow: Sequence[Word | Table]
) -> float | None:
    """The stripe between tables that stand side by side: each belongs to the text over it."""
    tables = sorted((i for i in flow if isinstance(i, Table)), key=lambda t: t.left)
    for table in tables:
        others = [t for t in tables if t.left > table.right and _beside_one_another(t, table)]
        if not others:
            continue
        x = (table.right + min(t.left for t in others)) / 2
        if any(t.left < x < t.right for t in tables):
            continue
        crossing = sum(any(i.left < x < i.right for i in row) for row in rows)
        if crossing * 2 < len(rows):
            return x
    return None


def _beside_one_another(a: Table, b: Table) -> bool:
    common = min(a.bottom, b.bottom) - max(a.top, b.top)
    return a.kind == b.kind == "grid" and common > 0.3 * min(a.bottom - a.top, b.bottom - b.top)


class _Edges(NamedTuple):
    """Left and right edges of the items of a row, each in order, and the row's top."""

    lefts: list[float]
    rights: list[float]
    top: float


def _edges(rows: Iterable[Sequence[Word | Table]]) -> list[_Edges]:
    return [
        _Edges(sorted(i.left for i in row), sorted(i.right for i in row), min(i.top for i in row))
        for row in rows
    ]


def _gutter_score(rows: Sequence[_Edges], x: float, size: float) -> float:
    """Rows with text on both sides and a gap at `x`, less the rows that run across it.

    Columns need not share their baselines: a row on one side counts when the row before or
    behind it stands on the other side at nearly the same height.
    """
    support = against = 0
    before: tuple[int, float] = (0, 0.0)
    for lefts, rights, top in rows:
        left, right = bisect_right(rights, x), bisect_left(lefts, x)
        if left < right:
            against += 1
            before = (0, 0.0)
        elif left and right < len(lefts):
            wide = lefts[right] - rights[left - 1] >= 0.9 * size
            support, against = support + wide, against + (not wide)
            before = (0, 0.0)
        else:
            side = -1 if left else 1
            support += before[0] == -side and top - before[1] < size
            before = (side, top)
    return support - against if support >= max(3, 0.2 * len(rows)) else 0


def _centre_of_gutter(rows: Sequence[_Edges], x: float, score: float, size: float) -> float:
    end = x
    while _gutter_score(rows, end + 1, size) >= score:
        end += 1
    return (x + end) / 2


def _looks_like_columns(rows: Sequence[Sequence[Word | Table]], x: float, size: float) -> bool:
    """Running text fills its column; cells of a table mostly do not."""
    left: list[tuple[float, float, int]] = []
    right: list[tuple[float, float, int]] = []
    for row in rows:
        if any(i.left < x < i.right for i in row):
            continue
        for side, items in (
            (left, _beside([i for i in row if i.right <= x][::-1], size)[::-1]),
            (right, _beside([i for i in row if i.left >= x], size)),
        ):
            if items and all(isinstance(i, Word) for i in items):
                side.append((items[0].left, items[-1].right, len(items)))
    left, right = _next_to(left, x), _next_to(right, x)
    if not left or not right:
        return False
    strong, weak = sorted((left, right), key=len, reverse=True)
    wide = _width(strong)
    # The last column of a text may hold a few lines only.
    least = 4 if len(strong) < 12 else 1
    return _fills(strong, wide, 4, size) and _fills(weak, wide, least, size)


def _next_to(spans: Sequence[tuple[float, float, int]], x: float) -> list[tuple[float, float, int]]:
    """The spans of the column beside `x`; where lines do not stand level, others come between."""
    if not spans:
        return []
    reach = 0.6 * median(stop - begin for begin, stop, _ in spans)
    nearest = sorted(min(abs(begin - x), abs(stop - x)) for begin, stop, _ in spans)
    edge = nearest[len(nearest) // 10] + reach
    return [s for s in spans if min(abs(s[0] - x), abs(s[1] - x)) <= edge]


def _width(spans: Sequence[tuple[float, float, int]]) -> float:
    """From edge to edge, but for the tenth that reaches farthest: a running head, a page number."""
    few = len(spans) // 10
    return sorted(s[1] for s in spans)[-1 - few] - sorted(s[0] for s in spans)[few]


def _beside(items: Sequence[Word | Table], size: float) -> list[Word | Table]:
    """The items from the first one on to the next gutter: there may be a third column."""
    run: list[Word | Table] = []
    for item in items:
        if run and max(item.left - run[-1].right, run[-1].left - item.right) > 1.6 * size:
            break
        run.append(item)
    return run


def _fills(spans: Sequence[tuple[float, float, int]], wide: float, least: int, size: float) -> bool:
    own = _width(spans)
    if len(spans) < least or not 8 * size < own < 1.5 * wide:
        return False
    full = sum((stop - begin) > 0.75 * min(wide, own) for begin, stop, _ in spans) / len(spans)
    return full >= 0.4 and median(s[2] for s in spans) >= 3


def _crosses(row: Sequence[Word | Table], x: float) -> bool:
    """Something lies across `x`, or it falls into the narrow gap between two words of a line."""
    if any(i.left < x < i.right for i in row):
        return True
    left = [i for i in row if i.right <= x]
    right = [i for i in row if i.left >= x]
    if not left or not right:
        return False
    sizes = [i.size for i in row if isinstance(i, Word)]
    return min(i.left for i in right) - max(i.right for i in left) < 0.6 * max(sizes, default=0.0)


def _zones(
    rows: Sequence[Sequence[Word | Table]], x: float
) -> Iterator[tuple[bool, list[Sequence[Word | Table]]]]:
    """Runs of rows that cross the gutter, and runs that do not."""
    run: list[Sequence[Word | Table]] = []
    crossing = False
    for row in rows:
        crosses = _crosses(row, x)
        if run and crosses != crossing:
            yield crossing, run
            run = []
        crossing = crosses
        run.append(row)
    if run:
        yield crossing, run
