"""Tables: ruled by drawn lines, or unruled by columns of text that keep their distance."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from services.converter.parsing.pdf_shapes import BULLET, Rule, Word
from services.converter.parsing.pdf_table import Cell, Table, cell_text

_Segment = tuple[float, float, list[Word]]

_LEADERS = re.compile(r"(?:[.…·]\s?){5}")
_TOUCH = 3.0
_LEAST_ROWS = 3
_MOST_RULES = 3000
_FAR = 1.3
_BLANK = 0.45
_SHORT = 5
_EQUATION = re.compile(r"\([A-Z]?\d+(?:\.\d+)*[a-z]?\)")
_FEW_BOXES, _LONG_BOX = 4, 35


# --- ruled ------------------------------------------------------------------------------------


def ruled_tables(words: Sequence[Word], rules: Sequence[Rule]) -> list[Table]:
    """Tables whose cells are drawn, largest first where they overlap."""
    found: list[Table] = []
    if len(rules) > _MOST_RULES:
        # A drawing: what its lines enclose is no table.
        return found
    for group in _connected(rules):
        table = _grid_table(words, group)
        if table is not None:
            found.append(table)
    for lines in _parallel([r for r in rules if r.horizontal], words):
        table = _lined_table(words, lines)
        if table is not None and not any(_touch(table, other) for other in found):
            found.append(table)
    return found


def _parallel(rules: Sequence[Rule], words: Sequence[Word]) -> Iterator[Sequence[Rule]]:
    """Horizontal rules with the same ends, three or more, as printed tables have them."""
    groups: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda r: (r.top, r.left)):
        for group in groups:
            same = (
                abs(group[0].left - rule.left) < _TOUCH
                and abs(group[0].right - rule.right) < _TOUCH
            )
            if same:
                group.append(rule)
                break
        else:
            groups.append([rule])
    for group in groups:
        for part in _without_text_between(group, words):
            if len(_merged(r.top for r in part)) >= 3:
                yield part


def _without_text_between(rules: Sequence[Rule], words: Sequence[Word]) -> Iterator[Sequence[Rule]]:
    """Rules parted where text lies between them that reaches out over their ends."""
    if len(rules) < 3:
        return
    left, right = rules[0].left - 4, rules[0].right + 4
    start = 0
    for index, (above, below) in enumerate(pairwise(rules), 1):
        band = [w for w in words if above.top < w.middle < below.top]
        lines = _read(w for w in band if w.right > left - 99 and w.left < right + 99)
        spans = ((s[0], s[1]) for line in lines for s in _segments(line))
        if any(a < left < b or a < right < b for a, b in spans):
            yield rules[start:index]
            start = index
    yield rules[start:]


def _lined_table(words: Sequence[Word], rules: Sequence[Rule]) -> Table | None:
    """A table between horizontal rules only: its columns are the stripes that stay blank.

    What lies across such a stripe in the head is a heading over several columns.
    """
    left, right = rules[0].left, rules[0].right
    ys = _merged(r.top for r in rules)
    inside = _words_in(words, (left - 2, ys[0], right + 2, ys[-1]))
    lines = _read(inside)
    # Text that reaches out of the rules, or hardly any: they divide something else.
    if len(lines) < 2 or any(w.left < left - 4 or w.right > right + 4 for w in inside):
        return None
    cuts = _cuts_of_lines(lines, ys)
    rows = [_segments_at(line, cuts) for line in lines]
    across = sum(_lies_across(row, cuts) and _height(row)[0] > ys[1] for row in rows)
    if not cuts or across * 5 > len(rows) or not _tabular(rows) or ys[-1] - ys[0] > 40 * len(lines):
        return None
    rows = _rows_in_bands(rows, ys, cuts)
    if len(rows) < 2:
        return None
    cells = [cell for r, row in enumerate(rows) for cell in _row_cells(r, row, cuts)]
    return Table(left, ys[0], right, ys[-1], len(rows), len(cuts) + 1, cells, inside)


def _cuts_of_lines(lines: Sequence[Sequence[Word]], ys: Sequence[float]) -> list[float]:
    """Where columns part: by the lines under the head that have several parts, else by all."""
    narrow = 0.45 * min(w.size for line in lines for w in line)
    body = [line for line in lines if line[0].middle > ys[1]]
    parted = [
        line for line in body if any(b.left - a.right > 2 * narrow for a, b in pairwise(line))
    ]
    told = parted if len(parted) > 1 and len(parted) * 2 > len(body) else lines
    stripes = _stripes((w.left - narrow, w.right + narrow) for line in told for w in line)
    return [(a[1] + b[0]) / 2 for a, b in pairwise(stripes)]


def _rows_in_bands(
    rows: Sequence[list[_Segment]], ys: Sequence[float], cuts: Sequence[float]
) -> list[list[_Segment]]:
    """Lines between two rules as one row, if they are what is left of wrapped cells."""
    stripes = _stripes(
        (left, right) for row in rows if not _lies_across(row, cuts) for left, right, _ in row
    )
    joined: list[list[_Segment]] = []
    for top, bottom in pairwise(ys):
        band = [r for r in rows if top <= sum(_height(r)) / 2 < bottom]
        whole = sum(len(row) > len(cuts) for row in band)
        spans = any(_lies_across(row, cuts) for row in band)
        if len(band) < 2 or (spans and whole):
            joined += band
        elif whole > 1:
            joined += _joined_rows(band, stripes)
        else:
            joined.append([segment for row in band for segment in row])
    return joined


def _lies_across(row: Sequence[_Segment], cuts: Sequence[float]) -> bool:
    return any(left < cut < right for left, right, _ in row for cut in cuts)


def _height(row: Sequence[_Segment]) -> tuple[float, float]:
    words = [word for _, _, part in row for word in part]
    return min(w.top for w in words), max(w.bottom for w in words)


def _segments_at(line: Sequence[Word], cuts: Sequence[float]) -> list[_Segment]:
    """Words by column; those that run on over a cut stay together."""
    parts: list[list[Word]] = []
    before = -1
    for word in line:
        column = sum((word.left + word.right) / 2 > cut for cut in cuts)
        near = bool(parts) and word.left - parts[-1][-1].right < _BLANK * word.size
        if parts and (column == before or near):
            parts[-1].append(word)
        else:
            parts.append([word])
        before = column
    return [(part[0].left, part[-1].right, part) for part in parts]


def table_in(words: Sequence[Word], rules: Sequence[Rule]) -> Table | None:
    """The table that is known to be made of these words; None if no columns can be told."""
    drawn = [table for table in ruled_tables(words, rules) if table.kind == "grid"]
    if drawn:
        return max(drawn, key=lambda table: len(table.words))
    lines = _read(words)
    unruled, used = unruled_table(lines)
    if unruled is not None and used == len(lines):
        return unruled
    stripes = _stripes((w.left - w.size / 4, w.right + w.size / 4) for w in words)
    cuts = [(a[1] + b[0]) / 2 for a, b in pairwise(stripes)]
    if not cuts:
        return None
    cells = [
        cell
        for r, line in enumerate(lines)
        for cell in _row_cells(r, _segments_at(line, cuts), cuts)
    ]
    box = stripes[0][0], min(w.top for w in words), stripes[-1][1], max(w.bottom for w in words)
    return Table(*box, len(lines), len(cuts) + 1, cells, list(words))


def _connected(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Rules that touch one another, directly or through others."""
    left = np.array([r.left for r in rules]) - _TOUCH / 2
    right = np.array([r.right for r in rules]) + _TOUCH / 2
    top = np.array([r.top for r in rules]) - _TOUCH / 2
    bottom = np.array([r.bottom for r in rules]) + _TOUCH / 2
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


def _touch(a: Rule | Table, b: Rule | Table) -> bool:
    return (
        a.left <= b.right + _TOUCH
        and b.left <= a.right + _TOUCH
        and a.top <= b.bottom + _TOUCH
        and b.top <= a.bottom + _TOUCH
    )


def _merged(values: Iterable[float]) -> list[float]:
    """Positions that lie within a touch are one."""
    cuts: list[float] = []
    for value in sorted(values):
        if cuts and value - cuts[-1] < _TOUCH:
            continue
        cuts.append(value)
    return cuts


def _grid_table(words: Sequence[Word], rules: Sequence[Rule]) -> Table | None:
    horizontal = [r for r in rules if r.horizontal]
    vertical = [r for r in rules if not r.horizontal]
    ys = _merged((r.top + r.bottom) / 2 for r in horizontal)
    xs = _merged((r.left + r.right) / 2 for r in vertical)
    if len(ys) < 2 or not xs:
        return None
    # Tables are often open at the sides, or at head and foot.
    xs = _merged([*xs, min(r.left for r in horizontal), max(r.right for r in horizontal)])
    ys = _merged([*ys, min(r.top for r in vertical), max(r.bottom for r in vertical)])
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
    cells, rows = _split_rows(cells, len(ys) - 1)
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


def _split_rows(cells: Sequence[Cell], rows: int) -> tuple[list[Cell], int]:
    """Rows of figures set close, with no rule between them, as rows of their own."""
    split: list[Cell] = []
    shift = 0
    for row in range(rows):
        own = [cell for cell in cells if cell.row == row]
        counts = [len(cell.lines) for cell in own if cell.text]
        most = max(counts, default=0)
        many = [cell for cell in own if len(cell.lines) == most]
        short = sum(len(line) <= 2 for cell in many for line in cell.lines)
        divisible = (
            most > 1
            and len(many) >= max(3, 0.6 * len(counts))
            and short >= 0.8 * most * len(many)
            and all(cell.row_span == 1 for cell in own)
        )
        for cell in own:
            split += _divided(cell, most if divisible else 1, row + shift)
        shift += most - 1 if divisible else 0
    return split, rows + shift


def _divided(cell: Cell, parts: int, row: int) -> list[Cell]:
    if parts > 1 and len(cell.lines) == parts:
        return [
            Cell(row + n, cell.column, cell_text([line]), 1, cell.column_span, [line])
            for n, line in enumerate(cell.lines)
        ]
    return [
        Cell(row, cell.column, cell.text, cell.row_span + parts - 1, cell.column_span, cell.lines)
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
            lines = _read(_words_in(words, box))
            text = cell_text(lines)
            cells.append(Cell(row, column, text, down, across, lines))
    return cells


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
        if near < _TOUCH and spans:
            return True
    return False


def _words_in(words: Sequence[Word], box: tuple[float, float, float, float]) -> list[Word]:
    left, top, right, bottom = box
    return [
        w for w in words
        if left <= (w.left + w.right) / 2 < right and top <= (w.top + w.bottom) / 2 < bottom
    ]  # fmt: skip


def _read(words: Iterable[Word]) -> list[list[Word]]:
    """Words of a cell line by line."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda w: ((w.top + w.bottom) / 2, w.left)):
        middle = (word.top + word.bottom) / 2
        if lines and lines[-1][0].top <= middle <= lines[-1][0].bottom:
            lines[-1].append(word)
        else:
            lines.append([word])
    return [sorted(line, key=lambda w: w.left) for line in lines]


# --- unruled ----------------------------------------------------------------------------------


def unruled_table(lines: Sequence[Sequence[Word]]) -> tuple[Table | None, int]:
    """A table that starts with the first of `lines`, and how many lines it takes."""
    rows, used = _rows_of_table(lines)
    if len(rows) < _LEAST_ROWS and not _is_head_with_row(rows):
        return None, 0
    cuts = _cuts(rows)
    if not cuts or not _tabular(rows) or _is_formula(rows):
        return None, 0
    words = [w for row in rows for _, _, part in row for w in part]
    cells = [cell for r, row in enumerate(rows) for cell in _row_cells(r, row, cuts)]
    table = Table(
        min(w.left for w in words), min(w.top for w in words),
        max(w.right for w in words), max(w.bottom for w in words),
        len(rows), len(cuts) + 1, cells, words,
    )  # fmt: skip
    return table, used


def _rows_of_table(lines: Sequence[Sequence[Word]]) -> tuple[list[list[_Segment]], int]:
    """Rows from the first line on, wrapped cells joined, and the number of lines."""
    taken: list[list[_Segment]] = []
    stripes: list[tuple[float, float]] = []
    for line in lines:
        segments = _segments(line)
        if _LEADERS.search(" ".join(word.text for word in line)):
            break
        size = segments[0][2][0].size
        gap = _distance(taken[-1], segments) if taken else 0.0
        if not taken:
            fits = len(segments) > 1
        elif len(segments) > 1:
            fits = gap <= 3.0 * size and _aligned(stripes, segments)
        else:
            fits = gap < 0.8 * size and _under(stripes, segments[0])
        if not fits:
            break
        taken.append(segments)
        stripes = _stripes([*stripes, *((left, right) for left, right, _ in segments)])
    while taken and len(taken[-1]) == 1 and not _wraps(taken[-1], stripes):
        taken.pop()
    return _joined_rows(taken, stripes), len(taken)


def _is_head_with_row(rows: Sequence[Sequence[_Segment]]) -> bool:
    """A head in bold over one row with as many cells, none of them long."""
    if len(rows) != 2 or not 2 <= len(rows[0]) <= len(rows[1]):
        return False
    head, row = ([part for _, _, part in one] for one in rows)
    return (
        all(word.bold for part in head for word in part)
        and not any(word.bold for part in row for word in part)
        and all(len(part) <= _SHORT for part in (*head, *row))
    )


def _is_formula(rows: Sequence[Sequence[_Segment]]) -> bool:
    """Lines that end with their number: `(2.4)`."""
    ends = [" ".join(word.text for word in row[-1][2]) for row in rows if len(row) > 1]
    return sum(_EQUATION.fullmatch(end) is not None for end in ends) * 2 > len(ends)


def _stripes(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for left, right in sorted(spans):
        if merged and left <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


def _aligned(stripes: Sequence[tuple[float, float]], segments: Sequence[_Segment]) -> bool:
    """No segment reaches over two columns, and most stand in one that is known."""
    hits = 0
    for left, right, _ in segments:
        over = sum(start < right and left < end for start, end in stripes)
        if over > 1:
            return False
        hits += over
    return hits >= max(1, len(segments) - 1)


def _under(stripes: Sequence[tuple[float, float]], segment: _Segment) -> bool:
    """A lone segment that starts where a column starts and does not reach the next one."""
    nexts = [*(left for left, _ in stripes[1:]), float("inf")]
    return any(
        abs(left - segment[0]) < 3 and segment[1] < after
        for (left, _), after in zip(stripes, nexts, strict=True)
    )


def _wraps(segments: Sequence[_Segment], stripes: Sequence[tuple[float, float]]) -> bool:
    """Nothing under the first column."""
    return segments[0][0] > stripes[0][1]


def _joined_rows(
    lines: Sequence[list[_Segment]], stripes: Sequence[tuple[float, float]]
) -> list[list[_Segment]]:
    """Lines of one row together: by wide and narrow distances if both occur, else by wrapping.

    One wide distance tells nothing: it may be that below the header.
    """
    starts = [_height(line)[0] for line in lines]
    pitches = [b - a for a, b in pairwise(starts)]
    narrow = min(pitches, default=0.0)
    apart = [pitch > 1.3 * narrow for pitch in pitches]
    grouped = sum(apart) > 1 and not all(apart)
    rows: list[list[_Segment]] = []
    for number, line in enumerate(lines):
        hangs = bool(stripes) and _wraps(line, stripes) and len(line) == 1
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


def _goes_on(
    above: Sequence[_Segment], below: Sequence[_Segment], stripes: Sequence[tuple[float, float]]
) -> bool:
    """Fewer cells, each of words, and each of them would not have fitted into the line above."""
    if len(below) >= len(above):
        return False
    for left, right, part in below:
        column = [s for s in stripes if s[0] <= (left + right) / 2 <= s[1]]
        over = [a for a in above if column and column[0][0] <= (a[0] + a[1]) / 2 <= column[0][1]]
        first = part[0]
        blank = 0.25 * first.size
        if not over or not re.search(r"[^\W\d_]{2}", " ".join(word.text for word in part)):
            return False
        if over[-1][1] + blank + first.right - first.left <= column[0][1]:
            return False
    return True


def _segments(line: Sequence[Word]) -> list[_Segment]:
    """Runs of words with no wide gap in them."""
    parts: list[list[Word]] = []
    for word in sorted(line, key=lambda w: w.left):
        if parts and word.left - parts[-1][-1].right < _FAR * word.size:
            parts[-1].append(word)
        else:
            parts.append([word])
    return [(part[0].left, part[-1].right, part) for part in parts]


def _distance(above: Sequence[_Segment], below: Sequence[_Segment]) -> float:
    return min(p[2][0].top for p in below) - max(w.bottom for p in above for w in p[2])


def _cuts(rows: Sequence[Sequence[_Segment]]) -> list[float]:
    """Stripes that no row's text enters, as x positions."""
    stripes = _stripes((left, right) for row in rows for left, right, _ in row)
    return [(a[1] + b[0]) / 2 for a, b in pairwise(stripes)]


def _tabular(rows: Sequence[Sequence[_Segment]]) -> bool:
    """Short cells, not lines of running text or a list with marks."""
    segments = [part for row in rows for _, _, part in row]
    words = sum(map(len, segments)) / len(segments)
    marks = sum(len(row[0][2]) == 1 and len(row[0][2][0].text) <= 3 for row in rows)
    bullets = sum(BULLET.match(f"{row[0][2][0].text} ") is not None for row in rows)
    listed = bullets * 2 >= len(rows) and max(map(len, rows)) == 2
    if listed or (marks == len(rows) and words > 2.5):
        return False
    return words < 9


def _row_cells(number: int, row: Sequence[_Segment], cuts: Sequence[float]) -> list[Cell]:
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


def _single_cells(number: int, row: Sequence[_Segment], cuts: Sequence[float]) -> list[Cell]:
    parts: list[list[list[Word]]] = [[] for _ in range(len(cuts) + 1)]
    for left, right, part in row:
        parts[sum((left + right) / 2 > cut for cut in cuts)].append(part)
    return [
        Cell(number, column, cell_text(lines), lines=lines) for column, lines in enumerate(parts)
    ]
