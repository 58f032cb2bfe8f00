"""The headings of a body: found line by line, since a parser of Markdown takes hundreds of bytes of
memory for each line of a hostile text, and only headings are wanted."""

import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST_HEADING = 200
"""Characters of a heading's text in a path; more is cut, so that a path is never a passage."""
INLINE_TEXT = frozenset({"text", "code_inline", "image"})


class Heading(NamedTuple):
    """A heading in bytes `[start, end)` of a body, its line end left out.

    `depth`: 1 to 6. `source`: its words as Markdown; `plain(source)` are those that are read.
    """

    start: int
    end: int
    depth: int
    source: bytes


_LINES = re.compile(
    rb"^(?:(?P<marks>#{1,6})[ \t]+(?P<words>[^\n]*)| {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*))$",
    re.MULTILINE,
)
_CLOSING = re.compile(rb"(?:^|[ \t]+)#+[ \t]*$")


MOST = 100_000


def headings(body: bytes, most: int = MOST) -> list[Heading]:
    """Every heading of a canonical body, in order: ATX ones at the start of a line, none in code.

    After `most` headings, and lines that begin or end code, no further one is looked for.

    A canonical body (`services.converter.domain`) has no other ones, no open code block, and no
    HTML: the parse made Markdown of that. After code that is open at the end of a list's item there
    may be headings that are not found; the section before them is then longer.
    """
    found: list[Heading] = []
    fence = b""
    for line in islice(_LINES.finditer(body), most):
        mark = line["fence"]
        if mark is None:
            if not fence:
                words = _CLOSING.sub(b"", line["words"]).strip()
                found.append(Heading(line.start(), line.end(), len(line["marks"]), words))
        elif not fence:
            fence = mark if mark[:1] == b"~" or b"`" not in line["info"] else b""
        elif mark.startswith(fence) and not line["info"].strip():
            fence = b""
    return found


_MARKUP = re.compile(r"[\\`*_\[<&!\x00]")
"""Without these, words are only words."""


@cache
def _inline_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.parseInline("compiled before a second thread can see it")
    return parser


def plain(markdown: str) -> str:
    """Words of a heading: `inline_text`, cut at `LONGEST_HEADING`."""
    text = inline_text(markdown[: 10 * LONGEST_HEADING])
    return text if len(text) <= LONGEST_HEADING else f"{text[: LONGEST_HEADING - 1].rstrip()}…"


def inline_text(markdown: str) -> str:
    """Words of Markdown: markup gone, code and image descriptions kept, on one line."""
    if not _MARKUP.search(markdown):
        return " ".join(markdown.split())
    (inline,) = _inline_parser().parseInline(markdown)
    words = (
        child.content if child.type in INLINE_TEXT else " "
        for child in inline.children or []
        if child.type in INLINE_TEXT or child.type.endswith("break")
    )
    return " ".join("".join(words).split())
