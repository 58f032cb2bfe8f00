"""A document as its author meant it, and the Markdown that it should become. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal

from eval.parsing.made.texts import Words

Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Centred(Heading):
    """A heading of a law as printed: the label in the middle, its title bold on a line below."""

    label: str
    title: str


@dataclass(frozen=True)
class Grid:
    """The first row is the head; `rules`: around its cells, only across (as in papers), or none.

    `spans`: the head is a row more, whose second cell lies over all but the first column.
    """

    rows: Rows
    rules: Literal["all", "across", "none"] = "all"
    spans: str = ""

    @property
    def full(self) -> Rows:
        """With the row of the span, its text in each column that it covers."""
        first, *rest = self.rows[0]
        return ((first, *[self.spans] * len(rest)), *self.rows) if self.spans else self.rows


@dataclass(frozen=True)
class Items:
    """`entries`: (depth from 1, text)."""

    entries: tuple[tuple[int, str], ...]
    numbered: bool = False


Block = Heading | Paragraph | Grid | Items


@dataclass(frozen=True)
class Made:
    """`running` stands on every page and is no content; the footnote is.

    `bold_headings`: those below the title are bold and no larger than the text.
    """

    name: str
    language: str
    blocks: tuple[Block, ...]
    running: str = ""
    footnote: str = ""
    bold_headings: bool = False

    @property
    def title(self) -> str:
        return next(block.text for block in self.blocks if isinstance(block, Heading))

    @property
    def markdown(self) -> str:
        parts = [_markdown(block) for block in self.blocks]
        return "\n\n".join([*parts, *([self.footnote] if self.footnote else [])]) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            # `1. ` would begin a list.
            return re.sub(r"^(\d+)\.", r"\1\\.", text)
        case Grid():
            lines = [f"| {' | '.join(row)} |" for row in block.full]
            return "\n".join([lines[0], f"|{' --- |' * len(block.rows[0])}", *lines[1:]])
        case Items(entries, numbered):
            # Four blanks reach below either kind of mark.
            marks = [f"{n}." if numbered else "-" for n in range(1, len(entries) + 1)]
            listed = zip(marks, entries, strict=True)
            return "\n".join(f"{'    ' * (d - 1)}{mark} {text}" for mark, (d, text) in listed)


def report(words: Words, *, numbered: bool = True) -> Made:
    """Three levels of headings, a ruled and an unruled table, a list and a numbered list."""
    text = _prose(words)
    second = tuple((row[0], *row[2:]) for row in words.table)
    numbers = ("1 ", "1.1 ", "1.2 ", "2 ", "2.1 ", "3 ") if numbered else ("",) * 6
    names = [number + part for number, part in zip(numbers, words.parts, strict=True)]
    levels = (2, 3, 3, 2, 3, 2)
    heads = [Heading(level, name) for level, name in zip(levels, names, strict=True)]
    nested = ((1, words.items[0]), (2, words.items[1]), (2, words.items[2]), (1, words.items[3]))
    flat = tuple((1, item) for item in words.items)
    blocks = (
        Heading(1, words.title), next(text),
        heads[0], next(text), heads[1], next(text), Grid(words.table), next(text),
        heads[2], next(text), Items(nested), next(text),
        heads[3], next(text), heads[4], next(text), Grid(second, rules="none"), next(text),
        heads[5], next(text), Items(flat, numbered=True), next(text),
    )  # fmt: skip
    kind = "report" if numbered else "unnumbered"
    name = f"{kind}-{words.language}"
    return Made(name, words.language, blocks, words.running, words.footnote)


def law(words: Words) -> Made:
    """Chapters with articles, their titles behind a colon, paragraphs numbered inside the text."""
    text = _prose(words)
    chapter, article = words.law
    blocks: list[Block] = [Heading(1, words.title), next(text)]
    numbers = count(1)
    for roman, parts in (("I", words.parts[:3]), ("II", words.parts[3:])):
        blocks.append(Heading(2, f"{chapter} {roman}"))
        for part in parts:
            blocks.append(Heading(3, f"{article} {next(numbers)}: {part}"))
            blocks += [Paragraph(f"({n}) {next(text).text}") for n in (1, 2)]
    return Made(f"law-{words.language}", words.language, tuple(blocks), words.running)


def regulation(words: Words) -> Made:
    """A law in the form of the Official Journal: nothing is larger than the text.

    The heading is label and title together, whatever sign joins them.
    """
    text = _prose(words)
    chapter, article = words.law
    blocks: list[Block] = [Heading(1, words.title), next(text)]
    numbers = count(1)

    def headed(level: int, label: str, title: str) -> Centred:
        return Centred(level, f"{label} {title}", label, title)

    for roman, parts in (("I", words.parts[:3]), ("II", words.parts[3:])):
        blocks.append(headed(2, f"{chapter} {roman}".upper(), parts[0].upper()))
        for part in parts[1:]:
            blocks.append(headed(3, f"{article} {next(numbers)}", part))
            blocks += [Paragraph(f"{n}. {next(text).text}") for n in (1, 2)]
            blocks += [Paragraph(f"({x}) {words.items[n]};") for n, x in enumerate("abc")]
    return Made(f"regulation-{words.language}", words.language, tuple(blocks))


def long_table(words: Words, rows: int = 70) -> Made:
    """A table over pages, its head repeated on each, between two paragraphs."""
    text = _prose(words)
    head, *body = words.table
    lines = [
        (f"{first} {n + 1}", *(f"{value}-{n}" for value in rest))
        for n, (first, *rest) in ((n, body[n % len(body)]) for n in range(rows))
    ]
    blocks = (Heading(1, words.title), next(text), Grid((head, *lines)), next(text))
    return Made(f"long-table-{words.language}", words.language, blocks, words.running)


def paper(words: Words) -> Made:
    """An abstract, numbered sections, a table with rules across and a caption, references."""
    text = _prose(words)
    names = [f"{n} {part}" for n, part in enumerate(words.parts[:4], 1)]
    caption = Paragraph(f"Table 1. {words.running}.")
    sources = [Paragraph(f"[{n}] {words.sentences[n]}") for n in range(1, 6)]
    blocks: tuple[Block, ...] = (
        Heading(1, words.title), next(text),
        Heading(2, names[0]), next(text), next(text), next(text),
        Heading(2, names[1]), next(text), caption, Grid(words.table, "across"), next(text),
        Heading(3, f"2.1 {words.parts[4]}"), next(text), next(text),
        Heading(2, names[2]), next(text), next(text), next(text),
        Heading(2, names[3]), next(text), *sources,
    )  # fmt: skip
    return Made(f"paper-{words.language}", words.language, blocks)


def tables(words: Words) -> Made:
    """A head of two rows, a wide table, and cells of several lines."""
    text = _prose(words)
    head, *body = words.table
    wide = tuple((*row, *(f"{cell}/{n}" for n, cell in enumerate(row))) for row in words.table)
    tall = [(row[0], words.sentences[n], *row[2:]) for n, row in enumerate(body)]
    blocks = (
        Heading(1, words.title), next(text),
        Heading(2, words.parts[0]), Grid(words.table, spans=words.parts[1]), next(text),
        Heading(2, words.parts[2]), Grid((head, *tall)), next(text),
        Heading(2, words.parts[3]), Grid(wide), next(text),
        Heading(2, words.parts[4]), Grid((head, *tall), "across"), next(text),
    )  # fmt: skip
    return Made(f"tables-{words.language}", words.language, blocks)


def _prose(words: Words) -> Iterator[Paragraph]:
    """Paragraphs of three sentences, each another choice, so that their order can be told."""
    size = len(words.sentences)
    for n in count():
        picked = [words.sentences[(n * 3 + k + n // size) % size] for k in range(3)]
        yield Paragraph(" ".join([*picked[:2], f"{_marked(picked[2])} {n + 1}."]))


def _marked(sentence: str) -> str:
    """The sentence without its stop, for a number that makes it the only one of its kind."""
    return sentence.rstrip(".") + ","
