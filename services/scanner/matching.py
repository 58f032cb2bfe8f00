"""Where the phrases and expressions of the tables stand in a text, read in every way."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from contracts.events import Severity
from services.scanner.decode import Decoded, decoded
from services.scanner.detectors import DETECTORS, MIXED, NEAR_STRANGE, NEARBY, NEEDS
from services.scanner.identifiers import mixed_words
from services.scanner.normalise import (
    ALL_TRAITS,
    OTHERS,
    STRANGE,
    Mapped,
    Place,
    around,
    fold,
    strange_regions,
    traits,
    unescaped,
)
from services.scanner.readings import Reading, Shape, readings, squeezed
from services.scanner.ruleset import Phrase, Rule, Ruleset

WINDOW = 32_768
OVERLAP = 2_048
"""Characters that a window reads beyond its end; longer than any phrase."""

BEFORE = 96
"""Characters before a phrase that are read for what it means."""

MAX_HITS = 2_000
"""Hits of one rule and severity in one text that are looked at: a flood says no more."""

UP: dict[Severity, Severity] = {"low": "medium", "medium": "high", "high": "high"}
_REPORTED: dict[Severity, Severity] = {"high": "medium", "medium": "medium", "low": "low"}
RANK: dict[Severity, int] = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where one rule fires: characters [start, end) of its text.

    `hidden` is the number of the hidden text that it is in; `decoded` as in `Finding`.
    """

    rule: Rule
    severity: Severity
    start: int
    end: int
    softened: bool = False
    hidden: int | None = None
    decoded: tuple[str, ...] = ()

    @property
    def place(self) -> tuple[int, int, int]:
        """Where it is, to sort by: the text first, then the hidden texts."""
        return (-1 if self.hidden is None else self.hidden, self.start, self.end)


def all_hits(text: str, ruleset: Ruleset) -> Iterator[Hit]:
    """Everything that the rules of visible text find, in no order; some of it more than once."""
    odd = traits(text)
    strange = list(strange_regions(text, NEARBY)) if odd & STRANGE else []
    mixed = [*mixed_words(text)] if odd & OTHERS else []
    for rule in ruleset.detectors:
        if rule.detector in MIXED:
            if not mixed:
                continue
            found = islice(MIXED[rule.detector](text, mixed), MAX_HITS)
            yield from (Hit(rule, rule.severity, *span) for span in found)
            continue
        name = rule.detector or ""
        if name in NEEDS and not odd & NEEDS[name]:
            continue
        places = strange if name in NEAR_STRANGE else [(0, len(text))]
        spans = islice(_detected(name, text, places), MAX_HITS)
        yield from (Hit(rule, rule.severity, *span) for span in spans)
    yield from _windows(text, ruleset, odd)
    for passage in decoded(text, strange=bool(strange)):
        yield from _decoded_hits(passage, text, ruleset)


def _detected(name: str, text: str, places: Sequence[Place]) -> Iterator[Place]:
    for low, high in places:
        for start, end in DETECTORS[name](text[low:high]):
            yield start + low, end + low


def said_unseen(text: str, start: int, ruleset: Ruleset) -> Iterator[Hit]:
    """Orders that are harmless where everybody sees them, in a text that begins at `start`."""
    for low in range(0, len(text), WINDOW):
        view = unescaped(fold(text[low : low + WINDOW + OVERLAP], start + low))
        yield from _phrases(view, ruleset.hidden_phrases.look(view.text).phrases, ruleset)


def _decoded_hits(passage: Decoded, text: str, ruleset: Ruleset) -> Iterator[Hit]:
    """The worst hit in a decoded passage, and that it was hidden if nobody writes like that."""
    if passage.text is None:
        rule = ruleset.rules["encoded.beyond-limits"]
        yield Hit(rule, rule.severity, *passage.span, decoded=passage.names)
        return
    inner = min(_windows(passage.text, ruleset), key=lambda h: RANK[h.severity], default=None)
    if inner is None:
        return
    start, end = passage.span
    names = passage.names + inner.decoded
    if not passage.hiding:
        words = passage.text[inner.start : inner.end]
        if (plain := text.find(words, start, end)) >= 0:  # nothing of it was encoded
            start, end, names = plain, plain + len(words), ()
        else:
            start, end = _without_margins(text, start, end, passage.text, inner)
    found = replace(inner, start=start, end=end, decoded=names)
    yield from _unveiled(found, ruleset) if passage.hiding else (found,)


def _without_margins(text: str, start: int, end: int, said: str, hit: Hit) -> Place:
    """Where in `text[start:end]`, which says `said`, a hit in `said` comes from.

    What both have in common at their ends is not encoded and stands where it stood.
    """
    size = min(end - start, len(said))
    head = next((i for i in range(size) if not _alike(text[start + i], said[i])), size)
    size -= head
    tail = next((i for i in range(size) if not _alike(text[end - 1 - i], said[-1 - i])), size)
    before, after = hit.start, len(said) - hit.end
    return start + min(before, head), end - min(after, tail)


def _alike(written: str, said: str) -> bool:
    """Is it one character, as decoders for ASCII pass it on?"""
    return written == said or (said == "?" and written > "\x7f") or written + said == "+ "


def _unveiled(hit: Hit, ruleset: Ruleset) -> Iterator[Hit]:
    """A hit in what somebody took pains to hide, and that it was hidden."""
    rule = ruleset.rules["encoded.instruction"]
    severity = UP[hit.severity]
    level: Severity = rule.severity if severity == "high" else "medium"
    yield replace(hit, rule=rule, severity=level)
    yield replace(hit, severity=severity)


def _windows(text: str, ruleset: Ruleset, odd: int = ALL_TRAITS) -> Iterator[Hit]:
    """Phrases and expressions in `text`, piece by piece, so that no step takes long."""
    for low in range(0, len(text), WINDOW):
        first = max(0, low - BEFORE)
        raw = Mapped.of(text[first : low + WINDOW + OVERLAP], first)
        seen: set[tuple[str, int]] = set()
        for hit in _window_hits(raw, ruleset, odd):
            if low <= hit.start < low + WINDOW and (hit.rule.id, hit.start) not in seen:
                seen.add((hit.rule.id, hit.start))
                yield hit


def _window_hits(raw: Mapped, ruleset: Ruleset, odd: int) -> Iterator[Hit]:
    lexicon = ruleset.phrases
    view = unescaped(fold(raw.text, int(raw.origin[0])))
    look = lexicon.look(view.text)
    yield from _phrases(view, look.phrases, ruleset)
    yield from _expressions(view, look.signs, ruleset)
    shape = Shape(view.text)
    for reading in readings(raw, view, shape, look.signals, lexicon.knows, odd):
        yield from _reading_hits(reading, ruleset)
    orders: dict[str, list[tuple[Rule, int, int]]] = {}  # a flood says the same again and again
    for word in squeezed(view, shape):
        if word.text not in orders:
            orders[word.text] = _squeezed(word.text, ruleset)
        for rule, start, end in orders[word.text]:
            yield Hit(rule, rule.severity, *word.span(start, end))


def _reading_hits(reading: Reading, ruleset: Ruleset) -> Iterator[Hit]:
    look = ruleset.phrases.look(reading.view.text)
    for hits in (
        _phrases(reading.view, look.phrases, ruleset),
        _expressions(reading.view, look.signs, ruleset),
    ):
        for hit in hits:
            if reading.name is None:
                yield hit
            else:
                yield from _unveiled(replace(hit, decoded=(reading.name,)), ruleset)


def _phrases(view: Mapped, places: Sequence[tuple[Phrase, int]], ruleset: Ruleset) -> Iterator[Hit]:
    text = view.text
    known: dict[tuple[str, str], Hit] = {}
    for phrase, at in places:
        found = phrase.spaced.match(text, at)
        if found is not None and (not phrase.initial or _begins_sentence(text, at)):
            # A flood says the same again and again: what it means is worked out once.
            key = phrase.rule.id, text[max(0, at - BEFORE) : found.end()]
            if key not in known:
                known[key] = _in_context(phrase.rule, view, found, ruleset)
            start, end = view.span(*found.span())
            yield replace(known[key], start=start, end=end)


def _begins_sentence(text: str, at: int) -> bool:
    return not text[max(0, at - 8) : at].rstrip(" *_")[-1:].isalnum()


def _in_context(rule: Rule, view: Mapped, match: re.Match[str], ruleset: Ruleset) -> Hit:
    """A hit, milder when the words before it deny it, report it or make it depend on something."""
    hit = Hit(rule, rule.severity, *view.span(*match.span()))
    before = view.text[max(0, match.start() - BEFORE) : match.start()]
    said = ruleset.contexts
    if said.negated.search(before):
        return replace(hit, severity="low", softened=True)
    if rule.severity == "low":
        return hit
    depends = said.conditional.search(before) and not said.addressed.search(before)
    if depends or said.reported.search(before):
        return replace(hit, severity=_REPORTED[rule.severity], softened=True)
    return hit


def _expressions(view: Mapped, signs: dict[int, list[Place]], ruleset: Ruleset) -> Iterator[Hit]:
    size = len(view.text)
    for number, places in signs.items():
        rule, expression = ruleset.expressions[number]
        anchored = _marked(view.text, places, rule.marks) if rule.marks else places
        for low, high in around(anchored, size, rule.around):
            for match in expression.finditer(view.text, low, high):
                yield Hit(rule, rule.severity, *view.span(*match.span()))


def _marked(text: str, places: Sequence[Place], marks: frozenset[str]) -> list[Place]:
    """The places with a mark right before them, or with some blanks in between."""
    return [p for p in places if not marks.isdisjoint(text[max(0, p[0] - _MARKED) : p[0]])]


_MARKED = 3  # characters before an anchor that its mark is among


def _squeezed(text: str, ruleset: Ruleset) -> list[tuple[Rule, int, int]]:
    """Where orders stand in a text without gaps."""
    orders = (
        phrase
        for phrase in ruleset.phrases.inside(text)
        if phrase.rule.kind == "override" and phrase.rule.severity != "low"
    )
    matches = ((phrase.rule, phrase.squeezed.search(text)) for phrase in orders)
    return [(rule, *match.span()) for rule, match in matches if match is not None]
