"""From a parse to the canonical body: noise out, headings recovered, Markdown in one form. Pure."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from contracts.artifacts import BodyMeta, ParsedDocument, Span
from kernel.media import MARKDOWN, PLAIN
from services.converter.form import formed, marked
from services.converter.laws import name_of_law, recover_law
from services.converter.lines import Line, body_of, carried, cleaned, split
from services.converter.noise import without_noise
from services.converter.pages import without_page_edges
from services.converter.papers import recover_paper
from services.converter.underlined import underlined

CONVERTER = "canonical-4"
"""Name of this form; a new number whenever the same parse would give another body."""

_MOST_ROUNDS = 8


class Canonical(NamedTuple):
    """The body, its metadata, and where in the source its bytes came from, as in a `SpanMap`."""

    body: str
    meta: BodyMeta
    spans: tuple[Span, ...]


class Settled(NamedTuple):
    """As `Canonical`, with the lines of the body: they hold no second copy of a long text."""

    lines: list[Line]
    meta: BodyMeta
    spans: tuple[Span, ...]


def canonical(parsed: ParsedDocument, fallback_title: str) -> Canonical:
    r"""The body of a document, its metadata and its places.

    The body is Markdown with `\n` line ends, one blank line between blocks, ATX headings, no
    trailing blanks, closed fences and a last line end; it has no front matter and cannot be taken
    for one. Made canonical again it stays the same. It is empty only if the parse was.

    Args:
        parsed: what the parser saw.
        fallback_title: the title if neither metadata nor a first-level heading gives one.
    """
    lines, meta, spans = settled(parsed, fallback_title)
    return Canonical(body_of(lines), meta, spans)


def settled(parsed: ParsedDocument, fallback_title: str) -> Settled:
    """As `canonical`, the body in lines."""
    text, edits = cleaned(parsed.markdown)
    media_type = parsed.meta.media_type
    plain = marked(split(text), literal=media_type != MARKDOWN)
    plain = underlined(plain) if media_type == PLAIN else plain
    paged = formed(marked(without_page_edges(plain)))
    quiet = _quiet(paged, media_type)
    lines = _settled(paged, _headed(quiet, media_type), media_type) or formed(plain)
    # `Chapter I`, which was found to be a heading, is the title of no law.
    found = _first_heading(quiet) or name_of_law(lines)
    title = parsed.meta.title or found or fallback_title.strip()[:500]
    spans = carried(parsed.spans, parsed.markdown, edits, lines)
    return Settled(lines, parsed.meta.model_copy(update={"title": title}), spans)


def _quiet(lines: Sequence[Line], media_type: str) -> list[Line]:
    return formed(without_noise(lines, media_type))


def _headed(lines: list[Line], media_type: str) -> list[Line]:
    law = recover_law(lines, indented=media_type == PLAIN)
    return law if law is not None else recover_paper(lines)


def _settled(before: list[Line], lines: list[Line], media_type: str) -> list[Line]:
    """Another round changes nothing: what a heading or a gap uncovers is seen to as well."""
    for _ in range(_MOST_ROUNDS):
        if [line.text for line in lines] == [line.text for line in before]:
            break
        before = lines
        lines = _headed(_quiet(formed(marked(lines)), media_type), media_type)
    return lines


# --- title ------------------------------------------------------------------------------------


def _first_heading(lines: Sequence[Line]) -> str:
    """The text of the first heading of the first level, without markup."""
    for line in lines:
        if not line.code and line.text.startswith("# "):
            return plain_text(line.text[2:2002])[:500]
    return ""


def plain_text(markdown: str) -> str:
    """A line of Markdown as a reader sees it."""
    steps: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
        (r"!?\[([^\]]*)\]\([^)]*\)", r"\1"),
        (r"`+([^`]*)`+", r"\1"),
        (r"(\*\*|__|~~)(.+?)\1", r"\2"),
        (r"(?<![\w*])\*([^*]+)\*(?![\w*])", r"\1"),
        (r"<[^<>]*>", ""),
        (r"\\([\\`*_{}\[\]()#+\-.!<>|~])", r"\1"),
        (r"\s+", " "),
    )
    for pattern, replacement in steps:
        markdown = re.sub(pattern, replacement, markdown)
    return markdown.strip()
