"""Finds the places where phrases may stand: one pass over a text, however many phrases there are.

Of each phrase the rarest word that it cannot do without is its anchor. All anchors and all first
words of phrases are found at once; a phrase is tried only where one of its first words stands
within reach of one of its anchors.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Generic, Protocol, TypeVar

import ahocorasick

STEM = 4
"""Letters by which a word that goes on is looked up."""

_SHORT = 3  # letters of a word that stands inside too many others
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


@cache
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, words))})(?![^\W_])")


@dataclass(slots=True)
class _Anchor(Generic[P]):
    """The phrases that hold a word, by their first words."""

    reach: int = 0
    openings: dict[str, list[P]] = field(default_factory=dict)
    short: re.Pattern[str] | None = None
    """Finds those of its openings that are too short to be looked for everywhere."""

    def add(self, phrase: P) -> None:
        self.reach = max(self.reach, phrase.reach)
        for opening in phrase.openings:
            self.openings.setdefault(opening, []).append(phrase)

    def close(self) -> None:
        short = sorted(opening for opening in self.openings if len(opening) <= _SHORT)
        if short:
            self.short = _any_of(tuple(short))


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


@dataclass(slots=True)
class _Seen(Generic[P]):
    """Anchors and first words of phrases in a text."""

    anchors: list[tuple[int, int, _Anchor[P]]]
    openings: list[tuple[int, str]]

    def note(self, start: int, end: int, opening: str, anchor: _Anchor[P] | None) -> None:
        if opening:
            self.openings.append((start, opening))
        if anchor is not None:
            self.anchors.append((start, end, anchor))


@dataclass(slots=True)
class Look(Generic[P]):
    """What may be in a text.

    `phrases`: each with the place of its first word, in no order. `signs`: by number, where the
    strings of an expression stand. `signals`: by name, where the words of one stand.
    """

    phrases: list[tuple[P, int]]
    signs: dict[int, list[tuple[int, int]]]
    signals: dict[str, list[tuple[int, int]]]


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
        self._close()
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
            self._automaton.add_word(string, entry)
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

    def _close(self) -> None:
        for entry in self._entries.values():
            for anchor in filter(None, (entry.word, entry.stem)):
                anchor.close()

    def knows(self, word: str) -> bool:
        """Is it a word of the vocabulary?"""
        return word in self._words or any(
            word[:length] in self._stems for length in range(2, len(word) + 1)
        )

    def look(self, text: str) -> Look[P]:
        """What may be in a folded text."""
        found: Look[P] = Look([], {}, {})
        seen: _Seen[P] = _Seen([], [])
        for last, entry in self._automaton.iter(text) if self._entries else ():
            end = last + 1
            start = end - entry.length
            for number in entry.signs:
                found.signs.setdefault(number, []).append((start, end))
            if start and text[start - 1].isalnum():
                continue
            seen.note(start, end, entry.stem_opening, entry.stem)
            if not text[end : end + 1].isalnum():
                seen.note(start, end, entry.opening, entry.word)
                for name in entry.signals:
                    found.signals.setdefault(name, []).append((start, end))
        if seen.anchors:
            found.phrases = list(_opened(text, seen))
        return found

    def inside(self, text: str) -> set[P]:
        """The phrases whose anchors are in a text without gaps between its words."""
        found: set[P] = set()
        for _, entry in self._automaton.iter(text) if self._entries else ():
            for anchor in (entry.word, entry.stem):
                if anchor is not None:
                    found.update(*anchor.openings.values())
        return found


def _opened(text: str, seen: _Seen[P]) -> Iterator[tuple[P, int]]:
    """The phrases with an anchor that one of their openings is in reach of; each pair once."""
    openings = sorted(seen.openings)
    tried: set[tuple[int, int]] = set()
    for start, end, anchor in seen.anchors:
        low = _reached(text, start, end, anchor.reach)
        near = openings[bisect_left(openings, (low, "")) : bisect_left(openings, (end, ""))]
        if anchor.short is not None:
            near += [(m.start(), m.group()) for m in anchor.short.finditer(text, low, end)]
        for at, opening in near:
            for phrase in anchor.openings.get(opening, ()):
                if (key := (id(phrase), at)) not in tried:
                    tried.add(key)
                    yield phrase, at


def _reached(text: str, start: int, end: int, reach: int) -> int:
    """Where a phrase with an anchor at [start, end) begins at the earliest."""
    low = max(0, end - reach)
    return max(0, low - _TAGS) if text.find("<", low, start) >= 0 else low
