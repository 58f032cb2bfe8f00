"""Blocks of a page in reading order, from its words and ruled lines. Pure geometry, no model.

Coordinates are points with the origin at the top left.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Literal, NamedTuple

from services.converter.parsing.fitting import FormField, labelled, value_words, without_values
from services.converter.parsing.pdf_shapes import BULLET, Rule, Word, join_words
from services.converter.parsing.pdf_texts import FigureBox, figure_texts
from services.converter.parsing.tables import Table, ruled_tables, unruled_table

BlockKind = Literal["text", "list", "table", "code", "contents", "figure"]


@dataclass(slots=True)
class Line:
    """Words on one baseline within one column."""

    words: list[Word]
    left: float = 0
    top: float = 0
    right: float = 0
    bottom: float = 0
    size: float = 0
    bold: bool = False
    italic: bool = False
    mono: bool = False
    text: str = ""

    def __post_init__(self) -> None:
        self.words.sort(key=lambda word: word.left)
        self.left = min(w.left for w in self.words)
        self.right = max(w.right for w in self.words)
        self.top = min(w.top for w in self.words)
        self.bottom = max(w.bottom for w in self.words)
        self.size = _main_size(self.words)
        marked = [w for w in self.words if any(map(str.isalnum, w.text))] or self.words
        self.bold = all(w.bold for w in marked)
        self.italic = all(w.italic for w in marked)
        # A listing may have its lines numbered in another type.
        numbered = len(marked) > 1 and marked[0].text.isdecimal()
        self.mono = all(w.mono for w in marked[numbered:])
        self.text = join_words(self.words)


@dataclass(slots=True)
class Block:
    """A paragraph, list item, table, …; `lines` is empty for a table."""

    kind: BlockKind
    left: float
    top: float
    right: float
    bottom: float
    size: float = 0
    bold: bool = False
    italic: bool = False
    upright: bool = True
    column: int = 0
    space_above: float = 0
    lines: list[Line] = field(default_factory=list)
    table: Table | None = None

    @property
    def text(self) -> str:
        """The lines as they stand, joined by line ends."""
        return "\n".join(line.text for line in self.lines)

    def settle(self) -> None:
        """Let go of the words: a long document has millions, and its lines are enough."""
        for line in self.lines:
            line.words = []
        if self.table is not None:
            self.table.settle()


@dataclass(slots=True)
class Page:
    """Blocks of one page in reading order; `number` from 1."""

    number: int
    width: float
    height: float
    blocks: list[Block]


ENUMERATOR = re.compile(
    r"^(?!\(\d{3}\) \d{3}\b)"
    r"(\(?(?:\d{1,3}|[a-zа-яђјљњћџѓѕќčćžšđ]|[ivxlcdm]{1,6}|[A-ZА-Я])\)|\d{1,3}\.(?!\d)|[a-zа-я]\.)\s+(?=\S)",
)
LEADERS = re.compile(r"(?:\.\s?|…\s?|_|·\s?){4,}\s*(?:\d+|[ivxlc]+)?\s*$|(?:\s\.){4,}")
_MOST_ALIKE = 300
_OFTEN = 3
_LETTER_MARKS = frozenset("lmnopqrstuvwØ§à❶❷❸❹❺❻❼❽❾❿")
_NOTHING_ABOVE = 99.0
_SENTENCE_END = re.compile(r"[.!?:;…]['\"»”“)\]]*$")


def blocks_of_page(
    words: Sequence[Word],
    rules: Sequence[Rule],
    *,
    fields: Sequence[FormField] = (),
    figures: Sequence[FigureBox] = (),
) -> list[Block]:
    """Blocks in reading order; `fields` are those of a form."""
    if not words and not fields:
        return []
    words = [*_without_doubles(w for w in words if w.upright), *_turned_runs(words)]
    blocks: list[Block] = []
    drawn, words = figure_texts(words, figures)
    flow = [*drawn, *_flow(words, rules, fields)]
    for column, region in enumerate(_regions(flow)):
        in_column = _blocks_of_column(region, column)
        for block in in_column[:1]:
            block.space_above = _NOTHING_ABOVE
        for above, block in pairwise(in_column):
            block.space_above = block.top - above.bottom
        blocks += in_column
    return blocks


def _flow(
    words: Sequence[Word], rules: Sequence[Rule], fields: Sequence[FormField]
) -> list[Word | Table]:
    """Tables, filled-in fields with their labels, and the words that are in none of them."""
    words = without_values(words, fields) if fields else list(words)
    fields = [field for field in fields if field.kind != "secret"]
    values = value_words(fields, words)
    tables = ruled_tables([*words, *values], rules)
    held = {id(word) for table in tables if table.kind != "form" for word in table.words}
    free = [(f, v) for f, v in zip(fields, values, strict=True) if id(v) not in held]
    filled = {id(value) for _, value in free}
    # The boxes of a form say less than the labels of its fields.
    tables = [t for t in tables if t.kind != "form" or not any(id(w) in filled for w in t.words)]
    inside = {id(word) for table in tables for word in table.words}
    rest = [word for word in words if id(word) not in inside]
    forms, rest = labelled([f for f, _ in free], [v for _, v in free], rest)
    return [*tables, *forms, *rest]


def _without_doubles(words: Iterable[Word]) -> Iterator[Word]:
    """Text printed twice to look bold counts once."""
    seen: defaultdict[str, list[Word]] = defaultdict(list)
    for word in words:
        near = max(0.3 * word.size, 0.75)
        if not any(
            abs(word.left - other.left) < near and abs(word.top - other.top) < near
            for other in seen[word.text][-_MOST_ALIKE:]
        ):
            seen[word.text].append(word)
            yield word


def _turned_runs(words: Iterable[Word]) -> Iterator[Word]:
    """Words of text set upwards or downwards, each run of them as one word."""
    run: list[Word] = []
    turned = (w for w in words if not w.upright)
    for word in sorted(turned, key=lambda w: (round((w.left + w.right) / 6), -w.top)):
        if run and (
            abs(word.left - run[-1].left) > word.size or run[-1].top - word.bottom > 1.5 * word.size
        ):
            yield _as_one(run)
            run = []
        run.append(word)
    if run:
        yield _as_one(run)


def _as_one(run: Sequence[Word]) -> Word:
    return Word(
        " ".join(w.text for w in run),
        min(w.left for w in run), min(w.top for w in run),
        max(w.right for w in run), max(w.bottom for w in run),
        size=run[0].size, bold=run[0].bold, upright=False,
    )  # fmt: skip


def _main_size(words: Iterable[Word]) -> float:
    weights: Counter[float] = Counter()
    for word in words:
        weights[round(word.size * 2) / 2] += len(word.text)
    return max(weights.items(), key=lambda item: (item[1], item[0]))[0]


# --- columns ----------------------------------------------------------------------------------


def _rows(items: Iterable[Word | Table]) -> list[list[Word | Table]]:
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


def _regions(flow: Sequence[Word | Table], depth: int = 0) -> Iterator[list[Word | Table]]:
    """Runs of items that are read top to bottom, columns one after the other."""
    rows = _rows(flow)
    gutter = (_gutter(rows, flow) or _table_gutter(rows, flow)) if depth < 3 else None
    if gutter is None:
        yield list(flow)
        return
    for crossing, zone in _zones(rows, gutter):
        items = [item for row in zone for item in row]
        left = [i for i in items if (i.left + i.right) / 2 < gutter]
        right = [i for i in items if (i.left + i.right) / 2 >= gutter]
        if crossing or not left or not right:
            yield from _regions(items, 3) if crossing else _regions(items, depth + 1)
        else:
            yield from _regions(left, depth + 1)
            yield from _regions(right, depth + 1)


def _gutter(rows: Sequence[Sequence[Word | Table]], flow: Sequence[Word | Table]) -> float | None:
    """Where a blank stripe divides two columns of running text."""
    words = [w for w in flow if isinstance(w, Word)]
    if len(words) < 30:
        return None
    size = _main_size(words)
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


# --- blocks of a column -----------------------------------------------------------------------


def _blocks_of_column(region: Sequence[Word | Table], column: int) -> list[Block]:
    rows = _rows(region)
    blocks: list[Block] = []
    run: list[Line] = []
    for row in rows:
        if isinstance(row[0], Table):
            blocks += _blocks_of_lines(run, column)
            run = []
            blocks += _blocks_of_table(row[0], column)
        else:
            run.append(Line([w for w in row if isinstance(w, Word)]))
    return blocks + _blocks_of_lines(run, column)


def _blocks_of_table(table: Table, column: int) -> list[Block]:
    if table.kind == "grid":
        return [_table_block(table, column)]
    blocks = _form_blocks(table, column)
    if table.kind == "figure":
        for block in blocks:
            block.kind = "figure"
    return blocks


def _table_block(table: Table, column: int) -> Block:
    return Block(
        "table", table.left, table.top, table.right, table.bottom, column=column, table=table
    )


def _form_blocks(form: Table, column: int) -> list[Block]:
    """Each filled box as a paragraph of its own."""
    blocks: list[Block] = []
    for cell in form.cells:
        words = [w for w in cell.words if isinstance(w, Word)]
        if words:
            rows = [[w for w in row if isinstance(w, Word)] for row in _rows(words)]
            blocks.append(_text_block([Line(row) for row in rows], column))
    return blocks


def _blocks_of_lines(lines: list[Line], column: int) -> list[Block]:
    """Paragraphs, list items and unruled tables."""
    if not lines:
        return []
    _mark_items(lines)
    blocks: list[Block] = []
    start = 0
    index = 0
    while index < len(lines):
        table, used = None, 0
        if not lines[index].mono:
            table, used = unruled_table([line.words for line in lines[index : index + 200]])
        if table is None:
            index += 1
            continue
        blocks += _paragraphs(lines[start:index], lines, column)
        blocks.append(_table_block(table, column))
        index += used
        start = index
    return blocks + _paragraphs(lines[start:], lines, column)


def _mark_items(lines: Iterable[Line]) -> None:
    """Bullets that the file gives as letters of a symbol font: one and the same, over and over.

    Word's list marks are the `o` of Courier and letters of Wingdings; TeX's come as `❼`.
    """
    marked: defaultdict[tuple[str, int, int], list[Line]] = defaultdict(list)
    for line in lines:
        if len(line.words) > 1 and line.words[0].text in _LETTER_MARKS:
            mark, behind = line.words[:2]
            if behind.left - mark.right > 0.2 * mark.size:
                marked[mark.text, round(mark.left), round(behind.left / 2)].append(line)
    for alike in marked.values():
        if len(alike) >= (_OFTEN if alike[0].words[0].text.isalpha() else 2):
            for line in alike:
                line.words[0].text = "•"
                line.text = join_words(line.words)


def _paragraphs(lines: Sequence[Line], column_lines: Sequence[Line], column: int) -> list[Block]:
    if not lines:
        return []
    margin = _Margin(column_lines)
    groups: list[list[Line]] = [[lines[0]]]
    for before, line in pairwise(lines):
        if margin.breaks(before, line, groups[-1]):
            groups.append([line])
        else:
            groups[-1].append(line)
    return [_text_block(group, column) for group in groups]


def _text_block(lines: list[Line], column: int) -> Block:
    first = lines[0].text
    kind: BlockKind = "text"
    if all(line.mono for line in lines) and any(len(line.text) > 3 for line in lines):
        kind = "code"
    elif any(LEADERS.search(line.text) for line in lines):
        kind = "contents"
    elif BULLET.match(first) or ENUMERATOR.match(first):
        kind = "list"
    return Block(
        kind,
        min(line.left for line in lines),
        lines[0].top,
        max(line.right for line in lines),
        max(line.bottom for line in lines),
        size=_main_size(word for line in lines for word in line.words),
        bold=all(line.bold for line in lines),
        italic=all(line.italic for line in lines),
        upright=all(word.upright for line in lines for word in line.words),
        column=column,
        lines=lines,
    )


class _Margin:
    """The edges and the leading of a column, and where paragraphs end in it."""

    def __init__(self, lines: Sequence[Line]) -> None:
        body = _main_size(word for line in lines for word in line.words)
        usual = [line for line in lines if abs(line.size - body) < 1] or list(lines)
        lefts = Counter(round(line.left) for line in usual)
        self.left = float(max(lefts.items(), key=lambda item: (item[1], -item[0]))[0])
        rights = sorted(line.right for line in usual)
        self.right = rights[int(len(rights) * 0.9) if len(rights) > 1 else 0]
        steps = [
            b.top - a.top
            for a, b in pairwise(lines)
            if abs(a.size - b.size) < 0.6 and 0 < b.top - a.top < 2.2 * a.size
        ]
        # Not the median: a head of the page has few lines, most of them far apart.
        self.leading = sorted(steps)[len(steps) // 4] / body if steps else 1.2
        full = Counter(
            round(b.bottom - a.bottom)
            for a, b in pairwise(lines)
            if abs(a.size - b.size) < 0.6 and self.fills(a) and b.bottom - a.bottom < 2.8 * a.size
        )
        self._regular = {step for step, count in full.items() if count >= _OFTEN}

    def fills(self, line: Line) -> bool:
        """Whether the line reaches the right edge, or nearly."""
        return line.right > self.right - 2.5 * line.size

    def breaks(self, before: Line, line: Line, group: Sequence[Line]) -> bool:
        """Whether a new block starts with `line`."""
        if self._restyled(before, line, group) or self._apart(before, line, group):
            return True
        return not line.mono and self._new_paragraph(before, line, group)

    def _restyled(self, before: Line, line: Line, group: Sequence[Line]) -> bool:
        full = self.fills(before)
        # Words in bold or italics may fill a line of a paragraph and yet be a part of it.
        runs_on = full and not _SENTENCE_END.search(before.text) and line.text[:1].islower()
        return (
            abs(before.size - line.size) > max(0.6, 0.07 * max(before.size, line.size))
            or (before.bold != line.bold and not runs_on)
            or before.mono != line.mono
            or (before.italic != line.italic and len(group) == 1 and not full)
            or bool(LEADERS.search(line.text)) != bool(LEADERS.search(before.text))
        )

    def _apart(self, before: Line, line: Line, group: Sequence[Line]) -> bool:
        step = line.bottom - before.bottom
        most = max(1.25 * self._leading_of(group), 1.15) * max(before.size, line.size)
        # Text may be set wide on a page where other text is not.
        wide = self.fills(before) and bool(self._regular & {round(step) + d for d in (-1, 0, 1)})
        return not (0 <= step <= most or (step >= 0 and wide))

    def _leading_of(self, group: Sequence[Line]) -> float:
        """In font heights; a block of large type keeps its own distance."""
        if len(group) > 1:
            return (group[-1].bottom - group[-2].bottom) / max(group[-1].size, 1)
        return min(max(self.leading, 1.0), 1.8)

    def _new_paragraph(self, before: Line, line: Line, group: Sequence[Line]) -> bool:
        size = line.size
        ended = _SENTENCE_END.search(before.text) is not None
        short = before.right < self.right - 2.5 * size
        if BULLET.match(line.text):
            # A dash between words may come to stand at the start of a line.
            level = abs(line.left - before.left) < 0.3 * size
            return not (line.text[0] in "-–—" and level and not ended and not short)
        if ENUMERATOR.match(line.text) and (ended or short):
            return True
        hanging = bool(BULLET.match(group[0].text) or ENUMERATOR.match(group[0].text))
        if hanging and ENUMERATOR.match(line.text) and line.left < group[0].left + 0.3 * size:
            return True
        if hanging:
            # The item's own lines stand under its text, not under its mark.
            return line.left < group[0].left + 0.3 * size and ended and short
        indented = line.left > self.left + 0.8 * size and before.left < line.left - 0.8 * size
        if indented and (ended or short):
            return True
        first = line.text[:1]
        # Most scripts have no capitals.
        upper = (first.isalnum() and not first.islower()) or first in '„«“"(§'
        return (
            ended and short and upper and before.right < self.right - 0.2 * (self.right - self.left)
        )
