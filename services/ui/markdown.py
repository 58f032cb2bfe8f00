"""Markdown of strangers as safe HTML, with a byte range or words highlighted.

Raw HTML in the source stays text, links go to http, https and mailto only, images become words (a
page asks no other host for anything).
"""

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

PART_BYTES = 96_000
"""A longer body is shown in parts of about this size."""

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # noncharacters: no text has a right to them
_FENCE = re.compile(rb" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(rb" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_SAFE_LINK = re.compile(r"(?:https?://|mailto:|#)", re.IGNORECASE)


@dataclass(frozen=True)
class Heading:
    """An ATX heading at `start` (UTF-8 bytes into the body)."""

    level: int
    text: str
    start: int

    @property
    def anchor(self) -> str:
        """The id of the rendered heading."""
        return f"s{self.start}"


@dataclass(frozen=True)
class Part:
    """A stretch of a body, cut between lines."""

    start: int
    end: int


def outline(body: bytes) -> list[Heading]:
    """Every ATX heading outside fenced code, in order."""
    found = []
    for start, line, fenced in _lines(body):
        if not fenced and (hit := _HEADING.match(line)):
            text = _plain(hit[2].decode("utf-8", "replace"))
            found.append(Heading(len(hit[1]), text, start))
    return found


def parts(body: bytes, size: int = PART_BYTES) -> list[Part]:
    """The body in stretches of about `size` bytes, cut before a heading or after an empty line."""
    cuts, last, blank = [0], 0, True
    for start, line, fenced in _lines(body):
        far = start - last
        good = not fenced and (blank or _HEADING.match(line))
        if far and ((far >= size and good) or far >= 4 * size):
            cuts.append(start)
            last = start
        blank = not line.strip()
    cuts.append(len(body))
    return [Part(a, b) for a, b in pairwise(cuts)]


def part_at(all_parts: Sequence[Part], offset: int) -> int:
    """Index of the part that holds byte `offset`."""
    return max(0, bisect_right([p.start for p in all_parts], offset) - 1)


def render(source: bytes, *, base: int = 0, passage: tuple[int, int] | None = None) -> str:
    """Safe HTML of a part of a body.

    Args:
        source: UTF-8 Markdown; invalid bytes become U+FFFD.
        base: byte offset of `source` in the body; headings get the ids `s<offset in the body>`.
        passage: byte range in the body to highlight; the id `passage` is where it begins.
    """
    md, text = _parser(), _clean(source.decode("utf-8", "replace"))
    tokens: list[Token] = []
    md.block.parse(text, md, {}, tokens)
    starts = _line_starts(text)
    for token in tokens:
        if token.type == "heading_open" and token.map and token.level == 0:
            token.attrSet("id", f"s{base + starts[token.map[0]]}")
    if passage:
        span = (passage[0] - base, passage[1] - base)
        _mark_passage(md, tokens, text.encode(), starts, span)
    return _finish(md, tokens)


def snippet(text: str, matches: Callable[[str], bool]) -> str:
    """Safe HTML of a passage for a card: headings are plain lines, matching words are marked."""
    md = _parser()
    tokens: list[Token] = []
    md.block.parse(_clean(text), md, {}, tokens)
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = "p"
            if token.nesting == 1:
                token.attrJoin("class", "heading")
        elif token.type == "inline":
            token.children = _with_words(_inline(md, token.content), matches)
    return _finish(md, tokens)


def _parser() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": False, "maxNesting": 40})
    md.enable(["table", "strikethrough"])
    md.add_render_rule("image", _image)
    md.add_render_rule("link_open", _link_open)
    md.validateLink = lambda url: bool(_SAFE_LINK.match(url))  # type: ignore[method-assign]
    return md


def _image(_: object, tokens: Sequence[Token], index: int, *__: object) -> str:
    return f'<span class="image">{html.escape(tokens[index].content or "image")}</span>'


def _link_open(_: object, tokens: Sequence[Token], index: int, *__: object) -> str:
    href = html.escape(str(tokens[index].attrGet("href") or ""))
    return f'<a href="{href}" rel="noopener noreferrer nofollow ugc">'


def _clean(text: str) -> str:
    """What the parser would change by itself, changed without moving a byte."""
    for bad, good in ((_OPEN, "\ufffd"), (_CLOSE, "\ufffd"), ("\r", " "), ("\0", " ")):
        text = text.replace(bad, good)
    return text


def _inline(md: MarkdownIt, content: str) -> list[Token]:
    children: list[Token] = []
    md.inline.parse(content, md, {}, children)
    return children


def _finish(md: MarkdownIt, tokens: list[Token]) -> str:
    for token in tokens:
        if token.type in {"table_open", "fence", "code_block"}:
            token.attrSet("tabindex", "0")  # it may scroll sideways: a keyboard must reach it
        if token.type == "inline":
            if token.children is None or (not token.children and token.content):
                token.children = _inline(md, token.content)
            if token.meta.get("anchor"):
                token.children.insert(0, _raw('<a id="passage"></a>'))
    return str(md.renderer.render(tokens, md.options, {}))


def _mark_passage(
    md: MarkdownIt, tokens: list[Token], raw: bytes, starts: list[int], span: tuple[int, int]
) -> None:
    """A block inside the range gets a class; of a block that the range cuts, the text is marked."""
    anchored = False
    for index, token in enumerate(tokens):
        if token.type not in _LEAVES or token.map is None:
            continue
        block = raw[starts[token.map[0]] : starts[token.map[1]]]
        begin = starts[token.map[0]] + len(block) - len(block.lstrip())
        end = starts[token.map[0]] + len(block.rstrip())
        if end <= span[0] or begin >= span[1]:
            continue
        inline = tokens[index + 1] if token.nesting == 1 and token.type != "tr_open" else None
        inside = span[0] <= begin and end <= span[1]
        cut = (span[0] - starts[token.map[0]], span[1] - starts[token.map[0]])
        if inline is not None and inside and token.hidden:  # a tight list item has no <p>
            inline.children = _with_range(
                [Token("text", "", 0, content=_OPEN), *_inline(md, inline.content)]
            )
        elif inside or inline is None or not _mark_cut(md, inline, block, cut):
            token.attrJoin("class", "passage")
        if not anchored and inline is not None:
            inline.meta["anchor"] = True
        elif not anchored:
            token.attrSet("id", "passage")
        anchored = True


_LEAVES = frozenset({"paragraph_open", "heading_open", "fence", "code_block", "tr_open", "hr"})


def _mark_cut(md: MarkdownIt, inline: Token, block: bytes, cut: tuple[int, int]) -> bool:
    """Mark bytes `cut` of `block` in its inline text; False where they cannot be told apart.

    The parser drops indentation and markers (`>`, `-`, `#`), so places are found by counting
    characters that are not blank, from the end.
    """
    solid = ["".join(t.split()) for t in (block.decode("utf-8", "replace"), inline.content)]
    if not solid[1] or not solid[0].endswith(solid[1]):
        return False
    dropped = len(solid[0]) - len(solid[1])
    first, last = (
        max(0, len("".join(block[: max(0, at)].decode("utf-8", "ignore").split())) - dropped)
        for at in cut
    )
    if first >= last:
        return False
    places = [i for i, c in enumerate(inline.content) if not c.isspace()]
    a, b = places[first], places[last - 1] + 1
    text = inline.content
    children = _inline(md, f"{text[:a]}{_OPEN}{text[a:b]}{_CLOSE}{text[b:]}")
    seen = "".join(t.content for t in children if t.type in _TEXT)
    if seen.count(_OPEN) != 1 or seen.count(_CLOSE) != 1:
        return False
    inline.children = _with_range(children)
    return True


_TEXT = frozenset({"text", "code_inline"})


def _with_range(children: list[Token]) -> list[Token]:
    """The text between the two sentinels in `<mark>`s, the sentinels gone."""
    out: list[Token] = []
    on = False
    for token in children:
        if token.type not in _TEXT:
            out.append(token)
            continue
        for piece in re.split(f"([{_OPEN}{_CLOSE}])", token.content):
            if piece in {_OPEN, _CLOSE}:
                on = piece == _OPEN
            elif piece:
                out += _piece(token, piece, marked=on)
    return out


def _with_words(children: list[Token], matches: Callable[[str], bool]) -> list[Token]:
    """Matching words of plain text in `<mark>`s."""
    out: list[Token] = []
    for token in children:
        if token.type != "text":
            out.append(token)
            continue
        for piece in re.split(r"(\w+)", token.content):
            if piece:
                out += _piece(token, piece, marked=piece[0].isalnum() and matches(piece))
    return out


def _piece(token: Token, content: str, *, marked: bool) -> list[Token]:
    piece = token.copy(content=content)
    return [_raw("<mark>"), piece, _raw("</mark>")] if marked else [piece]


def _raw(markup: str) -> Token:
    """Our own markup, never a stranger's."""
    return Token("html_inline", "", 0, content=markup)


def _plain(text: str) -> str:
    """A heading's text without Markdown signs, for the outline."""
    return re.sub(r"[*`\\]|(?<!\w)_|_(?!\w)", "", _LINK.sub(r"\1", text)).strip()


def _line_starts(text: str) -> list[int]:
    """Byte offset of every line, and of the end."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line.encode()) + 1)
    starts[-1] -= 1
    starts.append(starts[-1])
    return starts


def _lines(body: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """`(offset, line, is it inside fenced code)`."""
    start, fence = 0, b""
    for line in body.split(b"\n"):
        hit = _FENCE.match(line)
        if fence:
            yield start, line, True
            if hit and hit[1].startswith(fence) and not line[hit.end() :].strip():
                fence = b""
        else:
            yield start, line, hit is not None
            fence = hit[1] if hit else b""
        start += len(line) + 1
