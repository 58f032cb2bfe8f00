"""Where a block that is too large may be cut: each way gives the places where a part begins."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from services.indexer.blocks import Block, Span, trimmed

Way = Callable[[str, Span], Iterable[int]]

LINE = re.compile(r"(?:\r\n?|\n)(?=[^\r\n])")
BLANK = re.compile(r"(?:\r\n?|\n)[^\S\r\n]*(?:\r\n?|\n)(?=[^\r\n])")
MARKER = re.compile(r"(?:\r\n?|\n)(?=[ \t>]*(?:[-*+•]|\w{1,3}[.)]|\(\w{1,3}\))[ \t])")
SENTENCE = re.compile(r"(?<![.!?…])[.!?…]++[\"'»«”“’)\]*_~]*+(?:\\?\[\^?\w{1,4}\\?\])*+\s++(?=\S)")
"""A full stop, what closes with it, the numbers of its notes, white space."""
ENDED_LINE = re.compile(r"[;:][\"'»”“’)\]*_]*+[^\S\r\n]*(?:\r\n?|\n)(?=[^\r\n])")
CLAUSE = re.compile(r"[;:]\s++(?=\S)|\s[–—]\s++(?=\S)")
COMMA = re.compile(r"(?<=\w),\s++(?=\S)")
LAST_WORD = re.compile(r"\w+\Z")
SHORT = """
    abs art bd bzw ca dipl dr evtl fig gem ggf ing inkl mag mr mrs ms nr prof sec sog st vgl vol
    br čl inž npr odn sv tač tč tj toč tzv ul
    акад бр бул гр доц изд инж напр нпр обл одн проф ред св см ср ст стр тач тзв тј ул чл
"""
ABBREVIATIONS = frozenset(SHORT.split())
"""Words that end in a full stop and go on with a capital: `Dr. Novak`, `ул. Ленина`. Not those
that often end a sentence, as `etc.` does."""
WORD = re.compile(r"\S+")
ROW = re.compile(r"(?:\r\n?|\n)(?=\|)")
CELL = re.compile(r"(?<!\\)\|")
JOINERS = frozenset("\u200c\u200d\ufe0e\ufe0f")


def parts(body: str, span: Span, starts: Iterable[int]) -> Iterator[Span]:
    """`span` cut at those of `starts` in it; blank edges are taken off, nothing else is lost."""
    begin = span.start
    for start in chain((s for s in starts if s < span.end), (span.end,)):
        if start <= begin:
            continue
        part = trimmed(body, begin, start)
        if part.start < part.end:
            yield part
        begin = start


def ways(block: Block) -> tuple[Way, ...]:
    """How to cut a block, coarse to fine; words and characters come after these."""
    starts = block.parts.starts()
    if block.kind == "table":
        return (lambda _body, _span: starts[1:], lambda _body, _span: starts, cells, *PROSE)
    if block.kind == "code":
        return (paragraphs, lines)
    if block.kind == "list":
        return (lambda _body, _span: starts, paragraphs, items, *PROSE)
    return (paragraphs, items, *PROSE)


def paragraphs(body: str, span: Span) -> Iterator[int]:
    """After a blank line."""
    return (m.end() for m in BLANK.finditer(body, span.start, span.end))


def lines(body: str, span: Span) -> Iterator[int]:
    """At every line."""
    return (m.end() for m in LINE.finditer(body, span.start, span.end))


def items(body: str, span: Span) -> Iterator[int]:
    """At a line that begins like an item of a list, nested or not: `- `, `a) `, `(2) `."""
    return (m.end() for m in MARKER.finditer(body, span.start, span.end))


def rows(body: str, span: Span) -> Iterator[int]:
    """At a line that begins with a bar."""
    return (m.end() for m in ROW.finditer(body, span.start, span.end))


def cells(body: str, span: Span) -> Iterator[int]:
    """At a bar of a table's row."""
    return (m.start() for m in CELL.finditer(body, span.start, span.end))


def sentences(body: str, span: Span) -> Iterator[int]:
    """After a full stop that ends a sentence in all likelihood: not `Art. 5`, `3. Mai`, `z. B.`."""
    for m in SENTENCE.finditer(body, span.start, span.end):
        following = body[m.end()]
        if following.islower():
            continue
        word = LAST_WORD.search(body, max(span.start, m.start() - 16), m.start())
        if word is None or body[m.start()] != "." or not _abbreviation(word.group(), following):
            yield m.end()


def _abbreviation(word: str, following: str) -> bool:
    if word.isdigit() or len(word) == 1 or word.lower() in ABBREVIATIONS:
        return True
    return len(word) <= 4 and following.isdigit()


def years(body: str, span: Span) -> Iterator[int]:
    """After a number that no day or article has, before a capital: `since 2019. The`."""
    for m in SENTENCE.finditer(body, span.start, span.end):
        word = LAST_WORD.search(body, max(span.start, m.start() - 16), m.start())
        if word and word.group().isdigit() and len(word.group()) > 2 and body[m.end()].isupper():
            yield m.end()


def ended_lines(body: str, span: Span) -> Iterator[int]:
    """At a line below one that ends in a semicolon or a colon: definitions, one a line."""
    return (m.end() for m in ENDED_LINE.finditer(body, span.start, span.end))


def clauses(body: str, span: Span) -> Iterator[int]:
    """After a semicolon, a colon, a dash between words."""
    return (m.end() for m in CLAUSE.finditer(body, span.start, span.end))


def commas(body: str, span: Span) -> Iterator[int]:
    """After a comma."""
    return (m.end() for m in COMMA.finditer(body, span.start, span.end))


PROSE: tuple[Way, ...] = (sentences, years, ended_lines, clauses, commas)
"""How to cut prose: a sentence that is itself too large, where its parts end."""


def words(body: str, span: Span) -> Iterator[Span]:
    """Runs without white space."""
    return (Span(m.start(), m.end()) for m in WORD.finditer(body, span.start, span.end))


def slices(body: str, span: Span, budget: int, weigh: Callable[[Span], int]) -> Iterator[Span]:
    """A word of any length in parts of at most `budget` tokens, between characters."""
    start, size = span.start, 4 * budget
    while start < span.end:
        end = min(span.end, start + size)
        while end > start + 1 and (weight := weigh(Span(start, end))) > budget:
            end = start + max(1, min(end - start - 1, (end - start) * budget // weight))
        end = _between_characters(body, start, end, span.end)
        yield Span(start, end)
        start = end


def _between_characters(body: str, start: int, end: int, last: int) -> int:
    """`end`, moved back so that no accent or joined emoji is torn off, if that is near."""
    if end < last:
        for place in range(end, max(start, end - 16), -1):
            if not _joined(body[place - 1], body[place]):
                return place
    return end


def _joined(before: str, after: str) -> bool:
    return after in JOINERS or before == "\u200d" or unicodedata.combining(after) != 0
