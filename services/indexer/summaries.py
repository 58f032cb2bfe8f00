"""A body in three levels, by extraction: one sentence for all of it, the outline that its headings
make, and the best sentences of each section. No model runs, and each is a place in the body."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Protocol

from contracts.artifacts import SectionSummary, Sentence, Summary
from kernel.headings import inline_text
from kernel.keywords import analyse
from services.indexer.blocks import Block, Span, blocks
from services.indexer.chunker import Bytes
from services.indexer.splitting import clauses, ended_lines, items, parts, sentences, years

EXTRACTIVE = "extractive-1"
"""A name changes when the same body would be summarised in another way."""

LEAST_HEADINGS = 2
"""With fewer there is no outline: the digest is of the whole body."""
MOST_SECTIONS = 500
"""Of an outline; a longer one loses its deepest levels first."""
MOST_SENTENCES = 2000
"""That are weighed in one body, shared by its sections: a bound of the time that it takes."""
LONGEST = 400
"""Characters of a sentence; of a longer one its first clauses."""
WORDS = (5, 45)
"""Of a sentence that says something by itself and is still one sentence."""
ALIKE = 0.6
"""Of two sentences that share so much of the shorter one, a digest has only the better."""
WITHOUT_OUTLINE = 5
"""Sentences of the digest of a body that has no outline, at most."""


class Summariser(Protocol):
    """Makes the summary of a body; `name` is recorded with it."""

    @property
    def name(self) -> str: ...

    async def __call__(
        self, body: str, body_sha256: str, *, title: str, language: str
    ) -> Summary: ...


class Extractive:
    """Sentences of the body itself, chosen by what they share with all of it."""

    name = EXTRACTIVE

    async def __call__(self, body: str, body_sha256: str, *, title: str, language: str) -> Summary:
        return await asyncio.to_thread(summarise, body, body_sha256, title=title, language=language)


def summarise(body: str, body_sha256: str, *, title: str, language: str) -> Summary:
    """The summary of a body; the same for the same arguments, always.

    Args:
        body: Markdown.
        body_sha256: its name.
        title: of the document.
        language: of the document; decides what stop words and stems are.
    """
    sections, outline, left_out = _outline(body)
    terms = _Terms(language)
    share = max(3, MOST_SENTENCES // max(1, len(sections)))
    for section in sections:
        section.read(body, share, terms)
    every = [s for section in sections for s in section.weighed]
    place = Bytes(body)
    lead = _lead(every, terms.of(title)) or next(_lines(body, blocks(body)), None)
    whole = _Weights(every)
    told = [
        SectionSummary(
            heading_path=section.path,
            depth=section.depth,
            byte_start=place.at(section.start),
            byte_end=place.at(section.end),
            digest=tuple(
                _told(body, s, place) for s in section.digest(body, whole, terms, outline=outline)
            ),
        )
        for section in sections
    ]
    return Summary(
        body_sha256=body_sha256,
        summariser=EXTRACTIVE,
        language=language,
        outline=outline,
        lead=_told(body, lead, place) if lead else None,
        sections=tuple(told),
        left_out=left_out,
    )


@dataclass(frozen=True)
class _Weighed(Span):
    """A sentence with its terms in order, each once. `fit`: it can stand by itself."""

    terms: tuple[str, ...] = ()
    fit: bool = True


@dataclass
class _Section:
    """A heading of the outline and the text up to the next one; `count`: its sentences."""

    path: tuple[str, ...]
    depth: int
    start: int
    end: int
    blocks: list[Block] = field(default_factory=list)
    weighed: list[_Weighed] = field(default_factory=list)
    count: int = 0

    def read(self, body: str, most: int, terms: "_Terms") -> None:
        """Weigh its first sentences."""
        found = chain.from_iterable(_prose(body, block) for block in self.blocks)
        for span in islice(found, 4 * most):
            self.count += 1
            if len(self.weighed) < most:
                self.weighed.append(_weigh(body, span, terms))

    def digest(
        self, body: str, whole: "_Weights", terms: "_Terms", *, outline: bool
    ) -> Sequence[Span]:
        """Its best sentences in reading order: those in the middle of what it speaks of, rather
        than of what the document speaks of, the heading and the beginning counting too. Of one
        without prose (a table, code) the first line."""
        if not self.weighed:
            return list(islice(_lines(body, self.blocks), 1))
        own, heading = _Weights(self.weighed), terms.of(" ".join(self.path[-1:]))
        scores = [
            own.centrality(s) + 0.2 * whole.centrality(s) + 0.3 * _shared(s.terms, heading)
            + 0.2 / (1 + number) - (0.0 if s.fit else 0.5)
            for number, s in enumerate(self.weighed)
        ]  # fmt: skip
        most = _digest_size(self.count) if outline else _whole_size(self.count)
        return _best(self.weighed, scores, most)


def _digest_size(count: int) -> int:
    return 1 if count <= 3 else 2 if count <= 10 else 3


def _whole_size(count: int) -> int:
    return min(WITHOUT_OUTLINE, 1 + count // 3)


def _outline(body: str) -> tuple[list[_Section], bool, int]:
    """Sections by the headings; whether they make an outline; headings left out."""
    found = list(blocks(body))
    marks = [b for b in found if b.kind == "heading" and b.text]
    if len(marks) < LEAST_HEADINGS:
        prose = [b for b in found if b.kind != "heading"]
        return ([_Section((), 0, 0, len(body), prose)] if found else []), False, 0
    depths = Counter(b.depth for b in marks)
    levels = sorted(depths)
    while len(levels) > 1 and sum(depths[d] for d in levels) > MOST_SECTIONS:
        levels.pop()
    sections = _sections(body, found, levels[-1])
    kept = [s for s in sections if s.depth or s.blocks]
    left = sum(s.depth > 0 for s in kept[MOST_SECTIONS:])
    return kept[:MOST_SECTIONS], True, left + len(marks) - sum(depths[d] for d in levels)


def _sections(body: str, found: Iterable[Block], deepest: int) -> list[_Section]:
    sections, force = [_Section((), 0, 0, len(body))], list[Block]()
    for block in found:
        if block.kind != "heading":
            sections[-1].blocks.append(block)
            continue
        if not block.text or block.depth > deepest:
            continue
        force = [*(h for h in force if h.depth < block.depth), block]
        sections[-1].end = block.start
        path = tuple(h.text for h in force)
        sections.append(_Section(path, block.depth, block.start, len(body)))
    return sections


# -- sentences -------------------------------------------------------------------------------------

_MARKED = re.compile(r"[ \t>]*(?:(?:[-*+•]|\d{1,9}[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?")
"""What stands before the words of a list's item or a quoted line."""
_WORD = re.compile(r"[^\W_]")
_QUOTED = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_HEADING = re.compile(r"#{1,6}[ \t]+")
_NUMBERED = re.compile(r"\d\\\.\s+\Z")
"""`27\\. April`: escaped, so that it begins no list; it ends no sentence either."""
_ENDED = re.compile(r"[.!?…;][\"'»«”“’)\]*_~]*\Z")


def _prose(body: str, block: Block) -> Iterator[Span]:
    """The sentences of a block; none of code and tables."""
    if block.kind in ("code", "table"):
        return
    runs: Iterable[Span] = block.parts if block.kind == "list" else (block,)
    for run in runs:
        for item in parts(body, run, _items(body, run)):
            begin = _MARKED.match(body, item.start, item.end)
            span = Span(begin.end() if begin else item.start, item.end)
            yield from (s for s in _sentences(body, span) if _WORD.search(body, s.start, s.end))


def _items(body: str, span: Span) -> Iterator[int]:
    """Items inside a block: nested ones, and those that a paragraph lists line by line. A line that
    only happens to begin with a number (`of 27` / `1. April`) is none."""
    for place in items(body, span):
        before = body[span.start : place].rstrip()[-1:]
        if before in set(".;:,") or body[place:].lstrip()[:1] in set("-*+•"):
            yield place


def _sentences(body: str, span: Span) -> Iterator[Span]:
    ends = {*sentences(body, span), *years(body, span)}
    numbered = {e for e in ends if _NUMBERED.search(body, max(span.start, e - 16), e)}
    for whole in parts(body, span, sorted(ends - numbered)):
        if whole.end - whole.start <= LONGEST:
            yield whole
            continue
        cuts = sorted({*ended_lines(body, whole), *clauses(body, whole)})
        for part in parts(body, whole, cuts):
            yield _clipped(body, part)


def _clipped(body: str, span: Span) -> Span:
    """Its first words."""
    if span.end - span.start <= LONGEST:
        return span
    end = body.rfind(" ", span.start + LONGEST // 2, span.start + LONGEST)
    return Span(span.start, end if end > 0 else span.start + LONGEST)


def _weigh(body: str, span: Span, terms: "_Terms") -> _Weighed:
    text = body[span.start : span.end]
    words = len(text.split())
    whole = _ENDED.search(text) is not None and not text[0].islower()
    return _Weighed(span.start, span.end, terms.of(text), whole and WORDS[0] <= words <= WORDS[1])


def _told(body: str, span: Span, place: Bytes) -> Sentence:
    text = body[span.start : span.end]
    if text.startswith("|"):
        text = ", ".join(cell for part in text.split("|") if (cell := part.strip()))
    text = inline_text(_QUOTED.sub("", _HEADING.sub("", text)))
    if body[span.end : span.end + 1].strip():
        text += "…"
    return Sentence(text=text, byte_start=place.at(span.start), byte_end=place.at(span.end))


def _lines(body: str, found: Iterable[Block]) -> Iterator[Span]:
    """The first line of each block: what is there to say of what is no prose."""
    for block in found:
        end = body.find("\n", block.start, block.end)
        yield _clipped(body, Span(block.start, end if end > 0 else block.end))


# -- weights ---------------------------------------------------------------------------------------


class _Weights:
    """What some sentences speak of: the middle of their vectors of terms (Radev's centroid), a term
    weighing less the more of them have it. Linear in the text, where a graph would be quadratic."""

    def __init__(self, found: Sequence[_Weighed]) -> None:
        held = Counter(term for s in found for term in s.terms)
        self._rarity = {t: math.log(1 + len(found) / n) for t, n in held.items()}
        self._middle = {t: n * self._rarity[t] for t, n in held.items()}
        self._norm = _norm(self._middle.values())
        self._mean = sum(map(self._length, found)) / max(1, len(found))

    def centrality(self, sentence: _Weighed) -> float:
        """The cosine between a sentence and the middle; the length of the sentence counts half of
        what it would (pivoted), for else a few common words would be the middle of any text."""
        dot = sum(self._rarity[t] * self._middle[t] for t in sentence.terms)
        return dot / ((self._mean + self._length(sentence)) / 2 * self._norm) if dot else 0.0

    def _length(self, sentence: _Weighed) -> float:
        return _norm([self._rarity[t] for t in sentence.terms])


def _norm(weights: Iterable[float]) -> float:
    return math.sqrt(sum(w * w for w in weights))


_WORDS = re.compile(r"\w+")


class _Terms:
    """The terms of texts in a language; each word is analysed once, however often it comes."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, text: str) -> tuple[str, ...]:
        """In order, each once, stop words left out."""
        return tuple(dict.fromkeys(t for word in _WORDS.findall(text) for t in self._term(word)))

    def _term(self, word: str) -> tuple[str, ...]:
        if word not in self._known:
            self._known[word] = tuple(w.terms[0] for w in analyse(word, self._language))
        return self._known[word]


def _shared(terms: Sequence[str], others: Sequence[str]) -> float:
    """The part of `others` that is among `terms`."""
    return len(set(terms) & set(others)) / len(others) if others else 0.0


def _lead(every: Sequence[_Weighed], title: Sequence[str]) -> _Weighed | None:
    """The one sentence: central, near the beginning, with words of the title."""
    if not every:
        return None
    weights = _Weights(every)
    scores = [
        weights.centrality(s) + 0.3 * _shared(s.terms, title) + 0.3 / (1 + number / 10)
        - (0.0 if s.fit else 0.7)
        for number, s in enumerate(every)
    ]  # fmt: skip
    return _best(every, scores, 1)[0]


def _best(found: Sequence[_Weighed], scores: Sequence[float], most: int) -> list[_Weighed]:
    """The best that do not repeat each other, in reading order."""
    chosen: list[int] = []
    for n in sorted(range(len(found)), key=lambda n: (-scores[n], n)):
        if len(chosen) == most:
            break
        if not any(_alike(found[n].terms, found[c].terms) for c in chosen):
            chosen.append(n)
    return [found[n] for n in sorted(chosen)]


def _alike(mine: Sequence[str], theirs: Sequence[str]) -> bool:
    least = min(len(mine), len(theirs))
    return least > 0 and len(set(mine) & set(theirs)) > ALIKE * least
