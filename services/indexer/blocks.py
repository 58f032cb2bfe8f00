"""Markdown as a sequence of blocks with exact places: positions are carried, never searched."""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, overload

from kernel.headings import LONGEST_HEADING, plain

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Kind = Literal["heading", "paragraph", "list", "table", "code", "other"]

KINDS: dict[str, Kind] = {
    "heading_open": "heading", "paragraph_open": "paragraph", "bullet_list_open": "list",
    "ordered_list_open": "list", "table_open": "table", "fence": "code", "code_block": "code",
    "html_block": "code",
}  # fmt: skip
PARTS = {"list": "list_item_open", "table": "tr_open"}


@dataclass(frozen=True, slots=True)
class Span:
    """`body[start:end]`, in characters."""

    start: int
    end: int


class Spans(Sequence[Span]):
    """Many spans in sixteen bytes each."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._places = array("q", (place for span in spans for place in span))

    def __len__(self) -> int:
        return len(self._places) // 2

    @overload
    def __getitem__(self, index: int) -> Span: ...
    @overload
    def __getitem__(self, index: slice) -> "Spans": ...
    def __getitem__(self, index: int | slice) -> "Span | Spans":
        if isinstance(index, slice):
            numbers = range(len(self))[index]
            return Spans((self._places[2 * n], self._places[2 * n + 1]) for n in numbers)
        number = range(len(self))[index]
        return Span(self._places[2 * number], self._places[2 * number + 1])

    def starts(self) -> "array[int]":
        """Where each begins."""
        return self._places[::2]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spans) and self._places == other._places

    def __hash__(self) -> int:
        return hash(self._places.tobytes())


NO_SPANS = Spans(())


@dataclass(frozen=True, slots=True)
class Block(Span):
    """A block of the document's top level.

    `parts`: the items of a list or the rows of a table's body. `header`: a table's head with its
    rule. `depth` and `text`: a heading's level, 1 to 6, and its words without markup.
    """

    kind: Kind
    parts: Spans = NO_SPANS
    header: Span | None = None
    depth: int = 0
    text: str = ""


@cache
def _parser() -> "MarkdownIt":
    """CommonMark and tables. Inline markup is not looked at: it is most of the work."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    parser.parse("compiled before a second thread can see it")
    return parser


def blocks(body: str) -> Iterator[Block]:
    """The blocks of `body` in order. Whatever is in none of them is blank.

    What Markdown makes no block of (link definitions) comes as `other`.
    """
    at = 0
    for table in _long_tables(body):
        yield from _parsed(body, at, table.start)
        yield table
        at = table.end
    yield from _parsed(body, at, len(body))


# Possessive: nothing is remembered of its lines for a way back.
_LONG_TABLE = re.compile(r"(?:^\|[^\n]*\|[ \t]*(?:\n|\Z)){100,}+", re.MULTILINE)
_RULE = re.compile(r"\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*\n")
_ROW = re.compile(r"\|[^\n]*\|")
_BAR = re.compile(r"(?<!\\)\|")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


def _long_tables(body: str) -> Iterator[Block]:
    """Tables of a hundred lines and more, found without the parser: it would take sixty bytes of
    memory for each of theirs. Those that are not surely tables are left to it."""
    fence, seen = "", 0
    for match in _LONG_TABLE.finditer(body):
        fence = _fence_after(body, seen, match.start(), fence)
        seen = match.end()
        head_end = body.index("\n", match.start()) + 1
        rule = _RULE.match(body, head_end)
        before = body[max(0, match.start() - 2) : match.start()]
        alone = before in {"", "\n", "\n\n"} and body[match.end() : match.end() + 1] in {"", "\n"}
        bars = len(_BAR.findall(body, match.start(), head_end))
        if alone and not fence and rule is not None and bars == rule[0].count("|"):
            yield _long_table(body, match.start(), rule.end(), match.end())


def _fence_after(body: str, start: int, end: int, fence: str) -> str:
    """The mark of the code block that is open at `end`, if one is."""
    for mark in _FENCE.finditer(body, start, end):
        if not fence:
            fence = mark[1] if mark[1][0] == "~" or "`" not in mark[2] else ""
        elif mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
    return fence


def _long_table(body: str, start: int, rows: int, end: int) -> Block:
    parts = Spans(match.span() for match in _ROW.finditer(body, rows, end))
    return Block(start, parts[-1].end, "table", parts=parts, header=trimmed(body, start, rows))


def _parsed(body: str, start: int, end: int) -> Iterator[Block]:
    """The blocks of `body[start:end]`, by the parser."""
    if not body[start:end].strip():
        return
    lines = _Lines(body, start, end)
    done = start
    for block in _tokens_to_blocks(_parser().parse(body[start:end]), lines):
        yield from _unseen(lines, done, block.start)
        yield block
        done = block.end
    yield from _unseen(lines, done, end)


class _Lines:
    """Line numbers of a part of the body to places in it, blank edges taken off."""

    def __init__(self, body: str, start: int, end: int) -> None:
        self.body = body
        breaks = (m.end() for m in re.compile(r"\r\n?|\n").finditer(body, start, end))
        self.starts = [start, *breaks, end]

    def span(self, token: "Token") -> Span:
        first, last = token.map or [0, 0]
        end = self.starts[min(last, len(self.starts) - 1)]
        return trimmed(self.body, self.starts[first], end)


def trimmed(body: str, start: int, end: int) -> Span:
    """Without blank lines before and blank characters after; an indent is kept."""
    end = start + len(body[start:end].rstrip())
    while (line := BLANK_LINE.match(body, start, end)) is not None:
        start = line.end()
    return Span(start, end)


BLANK_LINE = re.compile(r"[^\S\r\n]*(?:\r\n?|\n)|[^\S \t]+")


def _unseen(lines: _Lines, start: int, end: int) -> Iterator[Block]:
    span = trimmed(lines.body, start, end)
    if span.start < span.end:
        yield Block(span.start, span.end, "other")


def _tokens_to_blocks(tokens: "list[Token]", lines: _Lines) -> Iterator[Block]:
    index = 0
    while index < len(tokens):
        token = tokens[index]
        size = _extent(tokens, index)
        span = lines.span(token)
        if span.start < span.end:
            yield _block(span, tokens[index : index + size], lines)
        index += size


def _extent(tokens: "list[Token]", index: int) -> int:
    """How many tokens belong to the one at `index`."""
    if tokens[index].nesting != 1:
        return 1
    size = 1
    while tokens[index + size].level > tokens[index].level:
        size += 1
    return size + 1


def _block(span: Span, tokens: "list[Token]", lines: _Lines) -> Block:
    kind = KINDS.get(tokens[0].type, "other")
    if kind == "heading":
        return _heading(span, tokens[0], tokens[1].content)
    if kind == "table":
        return _table(span, tokens, lines)
    if kind == "list":
        items = (t for t in tokens if t.type == "list_item_open" and t.level == tokens[0].level + 1)
        return Block(span.start, span.end, kind, parts=_spans(items, lines))
    return Block(span.start, span.end, kind)


def _heading(span: Span, token: "Token", content: str) -> Block:
    """A paragraph with a rule right below it is a heading to Markdown, however long: not to us."""
    if token.markup in {"-", "="} and len(content) > LONGEST_HEADING:
        return Block(span.start, span.end, "paragraph")
    return Block(span.start, span.end, "heading", depth=int(token.tag[1:]), text=plain(content))


def _table(span: Span, tokens: "list[Token]", lines: _Lines) -> Block:
    rows = _spans((t for t in tokens if t.type == "tr_open"), lines)[1:]
    header_end = rows[0].start if rows else span.end
    header = trimmed(lines.body, span.start, header_end)
    return Block(span.start, span.end, "table", parts=rows, header=header)


def _spans(tokens: "Iterator[Token]", lines: _Lines) -> Spans:
    spans = (lines.span(token) for token in tokens)
    return Spans((span.start, span.end) for span in spans if span.start < span.end)
