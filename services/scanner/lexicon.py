"""Finds the places where phrases may stand: one pass over a text, however many phrases there are.

Of each phrase the rarest word that it cannot do without is its anchor. All anchors and all first
words of phrases are found at once; a phrase is tried only where one of its first words stands
within reach of one of its anchors.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

import ahocorasick

STEM = 4
"""Letters by which a word that goes on is looked up."""

_SHORT = 3  # letters of a word that stands inside too many others
_LONG = 7  # letters of a word that hardly is part of another
_TAGS = 400  # characters that markup between the words of a phrase may take


class Anchored(Protocol):
    """What a phrase says about where it may stand; all words are folded."""

    @property
    def openings(self) -> tuple[str, ...]:
        """Its first words; one that goes on ends with `*`."""

    @property
    def anchors(self) -> tuple[str, ...]:
        """Words one of which must be in it, written alike."""

    @property
    def reach(self) -> int:
        """Characters from its beginning to the end of its anchor, at most."""


P = TypeVar("P", bound=Anchored)


@dataclass(slots=True)
class _Anchor(Generic[P]):
    """The phrases that hold a word, by their first words."""

    reach: int = 0
    openings: dict[str, list[P]] = field(default_factory=dict)
    short: set[str] = field(default_factory=set)
    """Those of its openings that are too short to be looked for everywhere."""

    def add(self, phrase: P) -> None:
        self.reach = max(self.reach, phrase.reach)
        for opening in phrase.openings:
            self.openings.setdefault(opening, []).append(phrase)
            if len(opening) <= _SHORT:
                self.short.add(opening)


_Meaning: TypeAlias = tuple[str, _Anchor[P] | None] | None
_Row: TypeAlias = tuple[int, tuple[int, ...], _Meaning[P], _Meaning[P], tuple[str, ...]]


@dataclass(slots=True)
class _Entry(Generic[P]):
    """What a string means: as a word, as the beginning of one, anywhere."""

    length: int
    word: _Anchor[P] | None = None
    opening: str = ""
    signals: list[str] = field(default_factory=list)
    stem: _Anchor[P] | None = None
    stem_opening: str = ""
    signs: list[int] = field(default_factory=list)

    def row(self) -> _Row[P]:
        """What `Lexicon.look` reads: it does so for every second word of a text."""
        beginning = (self.stem_opening, self.stem) if self.stem_opening or self.stem else None
        whole = (self.opening, self.word) if self.opening or self.word else None
        return self.length, tuple(self.signs), beginning, whole, tuple(self.signals)


@dataclass(slots=True)
class Look(Generic[P]):
    """What may be in a text.

    `phrases`: each with the place of its first word, in no order. `signs`: by number, where the
    strings of an expression stand. `signals`: by name, where the words of one stand. `inner`:
    where a long word stands in the middle of a longer one.
    """

    phrases: list[tuple[P, int]]
    signs: dict[int, list[tuple[int, int]]]
    signals: dict[str, list[tuple[int, int]]]
    inner: list[int]


class Lexicon(Generic[P]):
    """All words and strings to look for.

    Args:
        phrases: what is found by its words.
        signs: by number, strings that are found anywhere.
        signals: by name, words that are found as words.
        vocabulary: other words that belong to phrases; one that goes on ends with `*`.
    """

    def __init__(
        self,
        phrases: Iterable[P],
        signs: Mapping[int, Sequence[str]] | None = None,
        signals: Mapping[str, Iterable[str]] | None = None,
        vocabulary: Iterable[str] = (),
    ) -> None:
        self._entries: dict[str, _Entry[P]] = {}
        self._words: set[str] = set()
        self._stems: set[str] = set()
        for phrase in phrases:
            self._add(phrase)
        for number, strings in (signs or {}).items():
            for string in filter(None, strings):
                self._entry(string).signs.append(number)
        for name, words in (signals or {}).items():
            for word in words:
                self._entry(word).signals.append(name)
        for word in vocabulary:
            (self._stems if word[-1] == "*" else self._words).add(word.rstrip("*"))
        self._automaton = ahocorasick.Automaton()
        for string, entry in self._entries.items():
            self._automaton.add_word(string, entry.row())
        if self._entries:
            self._automaton.make_automaton()

    def _entry(self, string: str) -> _Entry[P]:
        return self._entries.setdefault(string, _Entry(len(string)))

    def _add(self, phrase: P) -> None:
        for opening in phrase.openings:
            if opening[-1] == "*":
                self._entry(opening[:-1]).stem_opening = opening
            elif len(opening) > _SHORT:
                self._entry(opening).opening = opening
        for anchor in phrase.anchors:
            entry = self._entry(anchor.rstrip("*"))
            if anchor[-1] == "*":
                entry.stem = entry.stem or _Anchor()
                entry.stem.add(phrase)
            else:
                entry.word = entry.word or _Anchor()
                entry.word.add(phrase)

    def knows(self, word: str) -> bool:
        """Is it a word of the vocabulary?"""
        return word in self._words or any(
            word[:length] in self._stems for length in range(2, len(word) + 1)
        )

    def look(self, text: str) -> Look[P]:
        """What may be in a folded text."""
        found: Look[P] = Look([], {}, {}, [])
        seen: list[tuple[int, int, tuple[str, _Anchor[P] | None]]] = []
        for last, (length, signs, beginning, whole, names) in self._found(text):
            end = last + 1
            start = end - length
            for number in signs:
                found.signs.setdefault(number, []).append((start, end))
            if start and text[start - 1].isalnum():
                if length >= _LONG:
                    found.inner.append(start)
                continue
            if beginning is not None:
                seen.append((start, end, beginning))
            if (whole is not None or names) and not text[end : end + 1].isalnum():
                if whole is not None:
                    seen.append((start, end, whole))
                for name in names:
                    found.signals.setdefault(name, []).append((start, end))
        found.phrases = list(_opened(text, seen))
        return found

    def _found(self, text: str) -> Iterator[tuple[int, _Row[P]]]:
        return self._automaton.iter(text) if self._entries else iter(())

    def inside(self, text: str) -> set[P]:
        """The phrases whose anchors are in a text without gaps between its words."""
        found: set[P] = set()
        for _, (_, _, beginning, whole, _) in self._found(text):
            for _, anchor in filter(None, (beginning, whole)):
                if anchor is not None:
                    found.update(*anchor.openings.values())
        return found


def _opened(
    text: str, seen: Sequence[tuple[int, int, tuple[str, _Anchor[P] | None]]]
) -> Iterator[tuple[P, int]]:
    """The phrases with an anchor that one of their openings is in reach of; each pair once."""
    places, openings = _openings(seen)
    tried: set[tuple[int, int]] = set()
    for start, end, (_, anchor) in seen:
        if anchor is None:
            continue
        low = _reached(text, start, end, anchor.reach)
        wanted = anchor.openings
        near = []
        for i in range(bisect_left(places, low), bisect_left(places, end)):
            if openings[i] in wanted:
                near.append((places[i], openings[i]))
        for opening in anchor.short:
            near += [(at, opening) for at in _places(text, opening, low, end)]
        for at, opening in near:
            for phrase in wanted[opening]:
                if (key := (id(phrase), at)) not in tried:
                    tried.add(key)
                    yield phrase, at


def _openings(
    seen: Sequence[tuple[int, int, tuple[str, _Anchor[P] | None]]],
) -> tuple[list[int], list[str]]:
    """Where first words of phrases stand, in ascending order, and which."""
    found = sorted((start, opening) for start, _, (opening, _) in seen if opening)
    return [start for start, _ in found], [opening for _, opening in found]


def _places(text: str, word: str, low: int, high: int) -> Iterator[int]:
    """Where a word stands in a part of a text."""
    at = text.find(word, low, high)
    while at >= 0:
        end = at + len(word)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            yield at
        at = text.find(word, end, high)


def _reached(text: str, start: int, end: int, reach: int) -> int:
    """Where a phrase with an anchor at [start, end) begins at the earliest."""
    low = max(0, end - reach)
    return max(0, low - _TAGS) if text.find("<", low, start) >= 0 else low
