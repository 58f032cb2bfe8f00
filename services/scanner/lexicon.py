"""Finds the places where phrases may stand: one pass over a text, however many phrases there are.

Of each phrase the rarest word that it cannot do without is its anchor. All anchors and all first
words of phrases are found at once; a phrase is tried only where one of its first words stands
within reach of one of its anchors.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import ahocorasick

STEM = 4
"""Letters by which a word that goes on is looked up."""

_SHORT = 3  # letters of a word that stands inside too many others
_TAGS = 400  # characters that markup between the words of a phrase may take
_FLOOD = 1_000  # first words, and anchors, in one text; more than any prose of a window has
_CONTEXT = 600  # characters after a first word that decide whether a phrase stands there
_AGAIN = 16  # times that a first word is followed up between the same words


class Anchored(Protocol):
    """What a phrase says about where it may stand; all words are folded."""

    @property
    def anchors(self) -> Mapping[str, tuple[str, ...]]:
        """Words one of which must be in it, and the first words that it may have then.

        A word that goes on ends with `*`.
        """

    @property
    def reach(self) -> int:
        """Characters from its beginning to the end of its anchor, at most."""


P = TypeVar("P", bound=Anchored)


_Tries: TypeAlias = list[tuple[int, int]]
"""Reach and number of each phrase, the longest reach first."""


@dataclass(slots=True)
class _Anchor:
    """The phrases that hold a word, by their first words."""

    reach: int = 0
    openings: dict[str, _Tries] = field(default_factory=dict)
    short: list[tuple[str, int, _Tries]] = field(default_factory=list)
    """Those of its openings that are too short to be looked for everywhere: parted, and reach."""

    def add(self, number: int, reach: int, openings: Iterable[str]) -> None:
        self.reach = max(self.reach, reach)
        for opening in openings:
            self.openings.setdefault(opening, []).append((reach, number))

    def finish(self) -> None:
        """Sort what was added."""
        for opening, tries in self.openings.items():
            tries.sort(reverse=True)
            if len(opening) <= _SHORT:
                self.short.append((f" {opening} ", tries[0][0], tries))


@dataclass(slots=True)
class _Entry:
    """What a string means where it stands as a word, or where a word begins with it."""

    opening: str = ""
    anchor: _Anchor | None = None
    signals: list[str] = field(default_factory=list)


_Row: TypeAlias = tuple[int, int, str, _Anchor | None, tuple[str, ...], tuple[int, ...]]


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
        self._entries: dict[str, _Entry] = {}
        self._signs: dict[str, list[int]] = {}
        self._words: set[str] = set()
        self._stems: set[str] = set()
        self._anywhere: Any = None
        self._phrases = tuple(phrases)
        for number, phrase in enumerate(self._phrases):
            self._add(number, phrase)
        for number, strings in (signs or {}).items():
            for string in filter(None, strings):
                self._signs.setdefault(string, []).append(number)
        for name, words in (signals or {}).items():
            for word in words:
                self._entry(word).signals.append(name)
        for word in vocabulary:
            (self._stems if word[-1] == "*" else self._words).add(word.rstrip("*"))
        for entry in self._entries.values():
            if entry.anchor is not None:
                entry.anchor.finish()
        rows = dict(self._rows())
        self._automaton = _automaton(rows)
        self._marks = {s: tuple(n) for s, n in self._signs.items() if s not in rows}

    def _entry(self, word: str) -> _Entry:
        return self._entries.setdefault(word, _Entry())

    def _add(self, number: int, phrase: P) -> None:
        for word, openings in phrase.anchors.items():
            entry = self._entry(word)
            entry.anchor = entry.anchor or _Anchor()
            entry.anchor.add(number, phrase.reach, openings)
            for opening in openings:
                if len(opening) > _SHORT:
                    self._entry(opening).opening = opening

    def _rows(self) -> Iterator[tuple[str, _Row]]:
        """What is looked for in a parted text, and what it means."""
        for word, entry in self._entries.items():
            stem = word.removesuffix("*")
            whole = stem == word
            signals = tuple(entry.signals)
            row = (int(whole), len(stem), entry.opening, entry.anchor, signals, ())
            yield f" {word} " if whole else f" {stem}", row
        for sign, numbers in self._signs.items():
            if sign.isalnum():
                yield sign, (0, len(sign), "", None, (), tuple(numbers))

    def knows(self, word: str) -> bool:
        """Is it a word of the vocabulary?"""
        return word in self._words or any(
            word[:length] in self._stems for length in range(2, len(word) + 1)
        )

    def look(self, text: str) -> Look[P]:
        """What may be in a folded text."""
        words = parted(text)
        near = _Near(text, words)
        signs = self._marked(text)
        signals: dict[str, list[tuple[int, int]]] = {}
        for last, (tail, length, opening, anchor, names, numbers) in self._automaton.iter(words):
            end = last - tail
            if opening:
                near.opens(opening, end - length)
            if anchor is not None:
                near.closes(anchor, end)
            for name in names:
                signals.setdefault(name, []).append((end - length, end))
            for number in numbers:
                signs.setdefault(number, []).append((end - length, end))
        phrases = self._phrases
        return Look(
            [(phrases[key >> _PLACE], key & _PLACES) for key in sorted(near.found)], signs, signals
        )

    def _marked(self, text: str) -> dict[int, list[tuple[int, int]]]:
        """Where the strings with marks in them stand."""
        found: dict[int, list[tuple[int, int]]] = {}
        for sign, numbers in self._marks.items():
            at = text.find(sign)
            while at >= 0:
                for number in numbers:
                    found.setdefault(number, []).append((at, at + len(sign)))
                at = text.find(sign, at + len(sign))
        return found

    def inside(self, text: str) -> list[P]:
        """The phrases whose anchors are in a text without gaps between its words."""
        if self._anywhere is None:
            rows: dict[str, list[_Anchor]] = {}
            for word, entry in self._entries.items():
                if entry.anchor is not None:
                    rows.setdefault(word.rstrip("*"), []).append(entry.anchor)
            self._anywhere = _automaton(rows)
        found: set[int] = set()
        for _, anchors in self._anywhere.iter(text):
            for anchor in anchors:
                found.update(number for tries in anchor.openings.values() for _, number in tries)
        return [self._phrases[number] for number in sorted(found)]


def _automaton(rows: Mapping[str, Any]) -> Any:
    automaton = ahocorasick.Automaton()
    for string, row in (rows or {"\0": ()}).items():
        automaton.add_word(string, row)
    automaton.make_automaton()
    return automaton


_PARTED = bytes(c if c > 127 or chr(c).isalnum() else 32 for c in range(256))
_OTHER_MARK = re.compile(r"[^\x00-\x7f\w]")


def parted(text: str) -> str:
    """A text with a blank for each character that no word has, and one more at both ends."""
    words = text.encode("utf-8", "surrogatepass").translate(_PARTED)
    plain = words.decode("utf-8", "surrogatepass")
    return f" {plain if plain.isascii() else _OTHER_MARK.sub(' ', plain)} "


_PLACE = 32  # bits of the place in what stands for a phrase at a place
_PLACES = (1 << _PLACE) - 1


class _Near:
    """Collects the phrases with an anchor that one of their openings is in reach of; each once.

    Words are told in the order of the text. This is the inner loop of a scan and written to be
    fast: what is found is numbers, which cost the collection of garbage nothing.
    """

    __slots__ = (
        "_closed",
        "_contexts",
        "_openings",
        "_places",
        "_tags",
        "_text",
        "_words",
        "found",
    )

    def __init__(self, text: str, words: str) -> None:
        self._text = text
        self._words = words
        self._tags = "<" in text
        self._places: list[int] = []
        self._openings: list[str] = []
        self._contexts: Counter[str] = Counter()
        self._closed = 0
        self.found: set[int] = set()

    def opens(self, opening: str, start: int) -> None:
        """A first word of phrases."""
        if len(self._places) > _FLOOD and self._is_stale(start, start + _CONTEXT):
            return
        self._places.append(start)
        self._openings.append(opening)

    def _is_stale(self, start: int, end: int) -> bool:
        """Has it stood between the same words again and again? The same would be found again."""
        context = self._text[max(0, start - _CONTEXT // 4) : end]
        self._contexts[context] += 1
        return self._contexts[context] > _AGAIN

    def closes(self, anchor: _Anchor, end: int) -> None:
        """An anchor."""
        self._closed += 1
        if self._closed > _FLOOD and self._is_stale(end - _CONTEXT, end):
            return
        limit = end
        if self._tags and self._text.find("<", max(0, end - anchor.reach), end) >= 0:
            limit = end - _TAGS
        low = limit - anchor.reach
        wanted, places, openings, found = anchor.openings, self._places, self._openings, self.found
        i = len(places) - 1
        while i >= 0 and (at := places[i]) >= low:
            if openings[i] in wanted:
                for reach, number in wanted[openings[i]]:
                    if at + reach < limit:
                        break
                    found.add(number << _PLACE | at)
            i -= 1
        if anchor.short:
            self._closes_short(anchor, limit, end)

    def _closes_short(self, anchor: _Anchor, limit: int, end: int) -> None:
        found = self.found
        for word, reach, tries in anchor.short:
            at = self._words.find(word, max(0, limit - reach), end + 2)
            while at >= 0:
                for longest, number in tries:
                    if at + longest < limit:
                        break
                    found.add(number << _PLACE | at)
                at = self._words.find(word, at + 1, end + 2)
