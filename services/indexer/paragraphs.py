"""Paragraph-first cutting: paragraphs are gathered up to a number of characters, and neighbours
share the last words of the one before, whatever the headings say."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from services.indexer.blocks import Block, Span, trimmed
from services.indexer.splitting import (
    PROSE,
    Way,
    items,
    paragraphs,
    parts,
    rows,
    slices,
    words,
)

CHARACTERS = 2000
"""Of a passage, at most, with what it shares."""
OVERLAP = 200
"""Characters that a passage repeats of the one before it, at most."""


@dataclass(frozen=True)
class Measure:
    """How large a text is: in characters, or in tokens where those are the tighter limit.

    `tokens`: the most that the model reads of an embedded text.
    """

    body: str
    count_tokens: Callable[[str], int]
    tokens: int

    def __call__(self, span: Span) -> int:
        """Size in characters; a text of `tokens` tokens is as large as one of `CHARACTERS`."""
        text = self.body[span.start : span.end]
        # No tokenizer makes more tokens than bytes: most texts need not be counted.
        if len(text.encode()) * CHARACTERS <= self.tokens * len(text):
            return len(text)
        return max(len(text), -(-self.count_tokens(text) * CHARACTERS // self.tokens))


def passages(body: str, measure: Measure) -> Iterator[Span]:
    """Passages of at most `CHARACTERS` by `measure`, in order; each but the first begins with up
    to `OVERLAP` characters of the one before it, from a word on."""
    lead = 0
    fresh: Span | None = None
    for piece in _pieces(body, measure):
        if fresh is None:
            lead = piece.start
        elif measure(Span(lead, piece.end)) > CHARACTERS:
            yield Span(lead, fresh.end)
            lead, fresh = _shared(body, fresh, piece.start, measure), None
        fresh = Span(fresh.start if fresh else piece.start, piece.end)
    if fresh is not None:
        yield Span(lead, fresh.end)


def _pieces(body: str, measure: Measure) -> Iterator[Span]:
    """Paragraphs; of one that is too large its rows, items or sentences; of such a sentence its
    clauses, of such a clause runs of words, of such a word runs of characters."""
    room = CHARACTERS - OVERLAP
    ways: tuple[Way, ...] = (paragraphs, rows, items, *PROSE)

    def split(span: Span, ways: Sequence[Way]) -> Iterator[Span]:
        if measure(span) <= room and not (ways and ways[0] is paragraphs):
            yield span
        elif ways:
            for part in parts(body, span, ways[0](body, span)):
                yield from split(part, ways[1:])
        else:
            yield from _runs(body, span, room, measure)

    return split(trimmed(body, 0, len(body)), ways)


def _runs(body: str, span: Span, room: int, measure: Measure) -> Iterator[Span]:
    start, end, load = span.start, span.start, 0
    for word in words(body, span):
        size = measure(word) + 1
        if load and load + size > room:
            yield Span(start, end)
            load = 0
        if size > room:
            yield from slices(body, word, room, measure)
            continue
        start = start if load else word.start
        end, load = word.end, load + size
    if load:
        yield Span(start, end)


def _shared(body: str, before: Span, start: int, measure: Measure) -> int:
    """Where the passage that goes on at `start` begins: at a word near the end of the last one."""
    window = Span(max(before.start, before.end - OVERLAP), before.end)
    for word in words(body, window):
        whole = word.start == before.start or body[word.start - 1].isspace()
        if whole and measure(Span(word.start, before.end)) <= OVERLAP:
            return word.start
    return start


@dataclass
class Paths:
    """Heading paths by place."""

    _starts: list[int] = field(default_factory=list)
    _paths: list[tuple[str, ...]] = field(default_factory=list)

    @classmethod
    def of(cls, found: Iterable[Block]) -> "Paths":
        """Of a body's blocks."""
        paths, force = cls(), list[Block]()
        for block in found:
            if block.kind == "heading":
                force = [*(h for h in force if h.depth < block.depth), block]
                paths._starts.append(block.start)
                paths._paths.append(tuple(h.text for h in force if h.text))
        return paths

    @property
    def all(self) -> set[tuple[str, ...]]:
        """Every path once, that of a text before the first heading too."""
        return {(), *self._paths}

    def at(self, place: int) -> tuple[str, ...]:
        """The headings in force at a character."""
        number = bisect_right(self._starts, place)
        return self._paths[number - 1] if number else ()
