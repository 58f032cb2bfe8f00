"""What a Markdown text says: plain text, headings with depth, tables, list items. Pure."""

import html
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

Table = tuple[tuple[str, ...], ...]

_TAG = re.compile(r"<!--.*?-->|<[^<>]*>", re.DOTALL)
_TEXTS = frozenset({"text", "code_inline", "text_special"})


class Outline(NamedTuple):
    """`headings`, `items`: (depth from 1, words); `tables`: rows of cells."""

    plain: str
    headings: tuple[tuple[int, str], ...]
    tables: tuple[Table, ...]
    items: tuple[tuple[int, str], ...]


@lru_cache(maxsize=512)
def outline(markdown: str) -> Outline:
    """Read CommonMark with pipe tables.

    The depth of a heading is its place in the tree of the document, not its number of `#`: the
    first heading has depth 1, and so has `##` in a text that knows no `#`.
    """
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    levels = [
        (int(token.tag[1]), words(_inline(tokens[at + 1])))
        for at, token in enumerate(tokens)
        if token.type == "heading_open"
    ]
    return Outline(
        " ".join(_plain(tokens)).strip(),
        tuple(_depths([(level, text) for level, text in levels if text])),
        tuple(_tables(tokens)),
        tuple(_items(tokens)),
    )


def words(text: str) -> str:
    """Letters and digits only, folded: what makes two headings or items the same."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def cell(text: str) -> str:
    """White space and case folded; signs are kept, since `-5` is not `5`."""
    return " ".join(text.casefold().split())


def _depths(levels: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    above: list[int] = []
    for level, text in levels:
        while above and above[-1] >= level:
            above.pop()
        above.append(level)
        yield len(above), text


def _plain(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "inline":
            yield _inline(token)
        elif token.type in {"fence", "code_block"}:
            yield token.content.strip()
        elif token.type == "html_block":
            yield _untagged(token.content)


def _inline(token: Token) -> str:
    """Text of a line as a reader sees it; tags and images say nothing."""
    parts = []
    for child in token.children or ():
        if child.type in _TEXTS:
            parts.append(child.content)
        elif child.type in {"softbreak", "hardbreak", "html_inline"}:
            parts.append(" ")
    return " ".join("".join(parts).split())


def _untagged(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())


def _tables(tokens: Sequence[Token]) -> Iterator[Table]:
    rows: list[list[str]] = []
    for at, token in enumerate(tokens):
        match token.type:
            case "table_open":
                rows = []
            case "tr_open":
                rows.append([])
            case "th_open" | "td_open":
                rows[-1].append(cell(_inline(tokens[at + 1])))
            case "table_close":
                yield tuple(tuple(row) for row in rows)


def _items(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    depth, fresh = 0, False
    for token in tokens:
        if token.type in {"bullet_list_open", "ordered_list_open"}:
            depth += 1
        elif token.type in {"bullet_list_close", "ordered_list_close"}:
            depth -= 1
        elif token.type == "list_item_open":
            fresh = True
        elif token.type == "inline" and fresh:
            fresh = False
            yield depth, words(_inline(token))
