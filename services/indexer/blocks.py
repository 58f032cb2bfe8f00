"""Markdown as a sequence of blocks with exact places: positions are carried, never searched."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Kind = Literal["heading", "paragraph", "list", "table", "code", "other"]

LONGEST_HEADING = 200
"""Characters of a heading's text in a path; more is cut, so that a path is never a passage."""

KINDS: dict[str, Kind] = {
    "heading_open": "heading", "paragraph_open": "paragraph", "bullet_list_open": "list",
    "ordered_list_open": "list", "table_open": "table", "fence": "code", "code_block": "code",
    "html_block": "code",
}  # fmt: skip
PARTS = {"list": "list_item_open", "table": "tr_open"}
INLINE_TEXT = frozenset({"text", "code_inline", "image"})


@dataclass(frozen=True, slots=True)
class Span:
    """`body[start:end]`, in characters."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Block(Span):
    """A block of the document's top level.

    `parts`: the items of a list or the rows of a table's body. `header`: a table's head with its
    rule. `depth` and `text`: a heading's level, 1 to 6, and its words without markup.
    """

    kind: Kind
    parts: tuple[Span, ...] = ()
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


@cache
def _inline_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.parseInline("compiled before a second thread can see it")
    return parser


def blocks(body: str) -> Iterator[Block]:
    """The blocks of `body` in order. Whatever is in none of them is blank.

    What Markdown makes no block of (link definitions) comes as `other`.
    """
    lines = _Lines(body)
    done = 0
    for block in _tokens_to_blocks(_parser().parse(body), lines):
        yield from _unseen(lines, done, block.start)
        yield block
        done = block.end
    yield from _unseen(lines, done, len(body))


class _Lines:
    """Line numbers to places, blank edges taken off."""

    def __init__(self, body: str) -> None:
        self.body = body
        self.starts = [0, *(m.end() for m in re.finditer(r"\r\n?|\n", body)), len(body)]

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


def _spans(tokens: "Iterator[Token]", lines: _Lines) -> tuple[Span, ...]:
    spans = (lines.span(token) for token in tokens)
    return tuple(span for span in spans if span.start < span.end)


def plain(markdown: str) -> str:
    """Words of a heading: markup gone, code and image descriptions kept, on one line."""
    (inline,) = _inline_parser().parseInline(markdown[: 10 * LONGEST_HEADING])
    words = (
        child.content if child.type in INLINE_TEXT else " "
        for child in inline.children or []
        if child.type in INLINE_TEXT or child.type.endswith("break")
    )
    text = " ".join("".join(words).split())
    return text if len(text) <= LONGEST_HEADING else f"{text[: LONGEST_HEADING - 1].rstrip()}…"
