"""Tables between horizontal rules, as they are printed."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from services.converter.parsing.pdf_segments import (
    TOUCH,
    Segment,
    height_of,
    joined_rows,
    lies_across,
    lines_in,
    merged,
    row_cells,
    segments_at,
    segments_of,
    stripes_of,
    tabular,
    words_in,
)
from services.converter.parsing.pdf_shapes import Rule, Word
from services.converter.parsing.pdf_table import Table

_MUCH = 0.6


def parallel(rules: Sequence[Rule], words: Sequence[Word]) -> Iterator[Sequence[Rule]]:
    """Horizontal rules with the same ends, three or more, as printed tables have them."""
    groups: list[list[Rule]] = []
    for rule in _in_one(rules):
        for group in groups:
            same = (
                abs(group[0].left - rule.left) < TOUCH and abs(group[0].right - rule.right) < TOUCH
            )
            if same:
                group.append(rule)
                break
        else:
            groups.append([rule])
    for group in groups:
        for part in _without_text_between(group, words):
            if len(merged(r.top for r in part)) >= 3:
                yield part


def _in_one(rules: Sequence[Rule]) -> list[Rule]:
    """Rules from top to bottom; those drawn in pieces, one for each column, as one."""
    whole: list[Rule] = []
    for rule in sorted(rules, key=lambda r: (round(r.top), r.left)):
        last = whole[-1] if whole else None
        if (
            last
            and abs(last.top - rule.top) < 1
            and 0 <= rule.left - last.left <= (last.right - last.left + TOUCH)
        ):
            right, bottom = max(last.right, rule.right), max(last.bottom, rule.bottom)
            whole[-1] = Rule(last.left, last.top, right, bottom)
        else:
            whole.append(rule)
    return sorted(whole, key=lambda r: (r.top, r.left))


def _without_text_between(rules: Sequence[Rule], words: Sequence[Word]) -> Iterator[Sequence[Rule]]:
    """Rules parted where text lies between them that is no part of a table."""
    if len(rules) < 3:
        return
    left, right = rules[0].left - 4, rules[0].right + 4
    start = 0
    for index, (above, below) in enumerate(pairwise(rules), 1):
        band = [w for w in words if above.top < w.middle < below.top]
        lines = lines_in(w for w in band if w.right > left - 99 and w.left < right + 99)
        parts = [segments_of(line) for line in lines]
        spans = [(s[0], s[1]) for line in parts for s in line]
        outside = any(a < left < b or a < right < b for a, b in spans)
        # What stands between two tables is no row of either.
        text = all(len(line) == 1 for line in parts) and any(
            b - a > _MUCH * (right - left) for a, b in spans
        )
        if outside or text:
            yield rules[start:index]
            start = index
    yield rules[start:]


def lined_table(words: Sequence[Word], rules: Sequence[Rule]) -> Table | None:
    """A table between horizontal rules only: its columns are the stripes that stay blank.

    What lies across such a stripe in the head is a heading over several columns.
    """
    left, right = rules[0].left, rules[0].right
    ys = merged(r.top for r in rules)
    inside = words_in(words, (left - 2, ys[0], right + 2, ys[-1]))
    lines = lines_in(inside)
    # Text that reaches out of the rules, or hardly any: they divide something else.
    if len(lines) < 2 or any(w.left < left - 4 or w.right > right + 4 for w in inside):
        return None
    cuts = _cuts_of_lines(lines, ys)
    rows = [segments_at(line, cuts) for line in lines]
    across = sum(lies_across(row, cuts) and height_of(row)[0] > ys[1] for row in rows)
    if not cuts or across * 5 > len(rows) or not tabular(rows) or ys[-1] - ys[0] > 40 * len(lines):
        return None
    rows = _rows_in_bands(rows, ys, cuts)
    if len(rows) < 2:
        return None
    cells = [cell for r, row in enumerate(rows) for cell in row_cells(r, row, cuts)]
    return Table(left, ys[0], right, ys[-1], len(rows), len(cuts) + 1, cells, inside)


def _cuts_of_lines(lines: Sequence[Sequence[Word]], ys: Sequence[float]) -> list[float]:
    """Where columns part: by the lines under the head that have several parts, else by all."""
    narrow = 0.45 * min(w.size for line in lines for w in line)
    body = [line for line in lines if line[0].middle > ys[1]]
    parted = [
        line for line in body if any(b.left - a.right > 2 * narrow for a, b in pairwise(line))
    ]
    told = parted if len(parted) > 1 and len(parted) * 2 > len(body) else lines
    stripes = stripes_of((w.left - narrow, w.right + narrow) for line in told for w in line)
    return [(a[1] + b[0]) / 2 for a, b in pairwise(stripes)]


def _rows_in_bands(
    rows: Sequence[list[Segment]], ys: Sequence[float], cuts: Sequence[float]
) -> list[list[Segment]]:
    """Lines between two rules as one row, if they are what is left of wrapped cells."""
    stripes = stripes_of(
        (left, right) for row in rows if not lies_across(row, cuts) for left, right, _ in row
    )
    joined: list[list[Segment]] = []
    for top, bottom in pairwise(ys):
        band = [r for r in rows if top <= sum(height_of(r)) / 2 < bottom]
        whole = sum(len(row) > len(cuts) for row in band)
        spans = any(lies_across(row, cuts) for row in band)
        if len(band) < 2 or (spans and whole):
            joined += band
        elif whole > 1:
            joined += joined_rows(band, stripes)
        else:
            joined.append([segment for row in band for segment in row])
    return joined
