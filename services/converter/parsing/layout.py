"""Blocks of a page in reading order, from its words and ruled lines. Pure geometry, no model.

Coordinates are points with the origin at the top left.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from services.converter.parsing.fitting import FormField, labelled, value_words, without_values
from services.converter.parsing.pdf_columns import main_size, regions, rows_of
from services.converter.parsing.pdf_shapes import BULLET, Rule, Word, join_words
from services.converter.parsing.pdf_table import Table
from services.converter.parsing.pdf_texts import FigureBox, figure_texts
from services.converter.parsing.tables import ruled_tables, unruled_table

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
        self.size = main_size(self.words)
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
    for column, region in enumerate(regions(flow)):
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


# --- blocks of a column -----------------------------------------------------------------------


def _blocks_of_column(region: Sequence[Word | Table], column: int) -> list[Block]:
    rows = rows_of(region)
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
            rows = [[w for w in row if isinstance(w, Word)] for row in rows_of(words)]
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
        size=main_size(word for line in lines for word in line.words),
        bold=all(line.bold for line in lines),
        italic=all(line.italic for line in lines),
        upright=all(word.upright for line in lines for word in line.words),
        column=column,
        lines=lines,
    )


def _is_capitals(text: str) -> bool:
    """A line of words in capitals, as `II. THE MODEL`."""
    return text.isupper() and re.search(r"[^\W\d_]{5}", text) is not None


class _Margin:
    """The edges and the leading of a column, and where paragraphs end in it."""

    def __init__(self, lines: Sequence[Line]) -> None:
        body = main_size(word for line in lines for word in line.words)
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
            or (not full and not line.mono and _is_capitals(before.text) != _is_capitals(line.text))
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
