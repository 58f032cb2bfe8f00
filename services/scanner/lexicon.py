"""Finds the places where phrases may stand: one pass over a text, however many phrases there are.

Of each phrase the rarest word that it cannot do without is its anchor. A text is cut into words,
and what a word means is looked up: does it open phrases, is it an anchor. A phrase is tried only
where one of its first words stands within reach of one of its anchors.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import ahocorasick

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.int64]

STEM = 4
"""Letters by which a word that goes on is looked up."""

_HEAD = 2  # letters of a stem at least
_TAGS = 400  # characters that markup between the words of a phrase may take
_FLOOD = 8_000  # pairs of first words and anchors in one text; prose of a window has 2,000
_BEFORE, _AFTER = 750, 250  # characters around an anchor that decide whether a phrase is there
_AGAIN = 50  # times that an anchor is followed up between the same words
_REMEMBERED = 100_000  # words whose meaning is kept, twice
_LONGEST = 40  # letters of such a word


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

    @property
    def followers(self) -> Mapping[str, frozenset[str]]:
        """Words one of which follows on a first word; a first word that is missing has any."""


P = TypeVar("P", bound=Anchored)


_Tries: TypeAlias = list[tuple[int, int]]
"""Reach and number of each phrase."""


@dataclass(slots=True)
class _Entry:
    """What a string means where it stands as a word, or where a word begins with it.

    `tries`: of the phrases whose anchor it is, by their first words. `opens`: is it such a word?
    `followers`: of it; None: any word. Entries that are neither only follow on such words.
    """

    opens: bool = False
    followers: set[str | None] = field(default_factory=set)
    tries: dict[str, _Tries] = field(default_factory=dict)
    signals: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Kind:
    """What a word means: all entries that it is, and all that it begins with, taken together.

    `tries` are told by the beginning of the word: their reach ends there. `followers`: what may
    stand behind it if it opens a phrase; None: anything. `signals`: name and length.
    """

    words: frozenset[str] = frozenset()
    openings: tuple[str, ...] = ()
    followers: frozenset[str | None] = frozenset()
    tries: dict[str, _Tries] = field(default_factory=dict)
    signals: list[tuple[str, int]] = field(default_factory=list)
    reach: int = 0


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
        self._words: set[str] = set()
        self._stems: set[str] = set()
        self._anywhere: Any = None
        self._phrases = tuple(phrases)
        for number, phrase in enumerate(self._phrases):
            self._add(number, phrase)
        for name, words in (signals or {}).items():
            for word in words:
                self._entry(word).signals.append(name)
        for word in vocabulary:
            (self._stems if word[-1] == "*" else self._words).add(word.rstrip("*"))
        self._heads = {stem[:_HEAD] for stem in self._stems if len(stem) >= _HEAD}
        self._signs = _Signs(signs or {})
        self._kinds = _Kinds(self._entries, [phrase.followers for phrase in self._phrases])
        self._codes: dict[str, int] = {}
        self._older: dict[str, int] = {}

    def _entry(self, word: str) -> _Entry:
        return self._entries.setdefault(word, _Entry())

    def _add(self, number: int, phrase: P) -> None:
        for word, openings in phrase.anchors.items():
            entry = self._entry(word)
            for opening in openings:
                entry.tries.setdefault(opening, []).append((phrase.reach, number))
                first = self._entry(opening)
                first.opens = True
                first.followers.update(phrase.followers.get(opening, (None,)))
        for word in frozenset().union(*phrase.followers.values()):
            self._entry(word)

    def knows(self, word: str) -> bool:
        """Is it a word of the vocabulary?"""
        if word in self._words:
            return True
        if word[:_HEAD] not in self._heads:
            return False
        return any(word[:length] in self._stems for length in range(_HEAD, len(word) + 1))

    def look(self, text: str) -> Look[P]:
        """What may be in a folded text."""
        import numpy as np

        plain = parted(text)
        words = plain.split()
        # Through an array, since numpy asks each number of a list what it is.
        codes = np.frombuffer(array("q", self._coded(words)), np.int64)
        starts = _starts(plain)
        signs = self._signs.bare(text)
        signals: dict[str, list[tuple[int, int]]] = {}
        for i in (codes & _TELLS).nonzero()[0].tolist():
            at = int(starts[i])
            self._signs.look(text, words[i], at, signs)
            for name, length in self._kinds.of(int(codes[i]) >> _FLAGS).signals:
                signals.setdefault(name, []).append((at, at + length))
        for places in signs.values():
            places.sort()
        phrases = self._phrases
        found = sorted(set(_near(text, codes, starts, self._kinds)))
        return Look([(phrases[key >> _PLACE], key & _PLACES) for key in found], signs, signals)

    def _coded(self, words: list[str]) -> list[int]:
        """What each word means, as a code."""
        known, older = self._codes, self._older
        codes: list[Any] = [*map(known.get, words)]
        at = -1
        unknown: dict[str, list[int]] = {}
        for _ in range(codes.count(None)):
            at = codes.index(None, at + 1)
            unknown.setdefault(words[at], []).append(at)
        if not unknown:
            return codes
        found = self._meant([word for word in unknown if word not in older])
        for word, places in unknown.items():
            code = found[word] if word in found else older[word]
            for place in places:
                codes[place] = code
            if len(word) <= _LONGEST:
                known[word] = code
        if len(known) > _REMEMBERED:
            self._codes, self._older = {}, known
        return codes

    def _meant(self, words: Collection[str]) -> dict[str, int]:
        """What words mean that were not met before."""
        telling = self._signs.among(words)
        code = self._kinds.code
        return {word: code(word) | _TELLS * (word in telling) for word in words}

    def inside(self, text: str) -> list[P]:
        """The phrases with an anchor and an opening in a text without gaps between its words."""
        if self._anywhere is None:
            rows: dict[str, list[str]] = {}
            for word, entry in self._entries.items():
                if entry.tries or entry.opens:
                    rows.setdefault(word.rstrip("*"), []).append(word)
            self._anywhere = _automaton(rows)
        words = {word for _, found in self._anywhere.iter(text) for word in found}
        return [self._phrases[number] for number in sorted(self._together(words))]

    def _together(self, words: Collection[str]) -> set[int]:
        """The phrases whose anchor and opening are among the words."""
        return {
            number
            for word in words
            for opening, tries in self._entries[word].tries.items()
            if opening in words
            for _, number in tries
        }


_OPENS, _ANCHORS, _TELLS = 1, 2, 4
_FLAGS = 3
_ANY = -1
"""A code is the number of a kind above three flags: does it open phrases, is it the anchor of some,
is anything else in the word. 0 is a word that means nothing; any kind stands for all of them."""


class _Kinds:
    """The kinds of words that there are: one for each entry, since a word that goes on is known by
    the longest entry that it begins with."""

    def __init__(
        self, entries: Mapping[str, _Entry], followers: Sequence[Mapping[str, frozenset[str]]]
    ) -> None:
        import numpy as np

        self._followers = followers
        self._kinds = [_Kind()]
        self._words: dict[str, int] = {}
        self._stems: dict[str, int] = {}
        self._lengths = sorted({len(w) - 1 for w in entries if w[-1] == "*"}, reverse=True) or [1]
        self._tries: dict[int, _Tries] = {}
        for word in entries:
            stem = word.removesuffix("*")
            (self._words if stem == word else self._stems)[stem] = len(self._kinds)
            self._kinds.append(_kind([*_prefixes(word, entries)], entries))
        self._heads = {stem[: self._lengths[-1]] for stem in self._stems}
        self.reach = np.array([kind.reach for kind in self._kinds])
        """Characters between an opening and an anchor, at most; by the anchor's number."""

        meant: dict[str, list[int]] = {}
        for number, kind in enumerate(self._kinds):
            for word in kind.words:
                meant.setdefault(word, []).append(number)
        free = [number for number, kind in enumerate(self._kinds) if None in kind.followers]
        self._belong = self._relation(lambda kind: kind.tries, meant)
        self._follow = self._relation(lambda kind: kind.followers, meant, free)

    def _relation(
        self,
        related: Callable[[_Kind], Iterable[str | None]],
        meant: Mapping[str, list[int]],
        free: Collection[int] = (),
    ) -> "_Relation":
        """Each kind with the kinds that its related entries are words of; a `free` one with any."""
        rows = {
            number: {other for word in related(kind) if word for other in meant[word]}
            for number, kind in enumerate(self._kinds)
        }
        pairs = {number: row for number, row in rows.items() if row}
        return _Relation(len(self._kinds), pairs, free)

    def of(self, number: int) -> _Kind:
        """The kind of that number."""
        return self._kinds[number]

    def belong(self, anchors: "Numbers", openings: "Numbers") -> "Numbers":
        """Of the anchors with an opening beside each: where is there a phrase that has both?"""
        return self._belong.held(anchors, openings)

    def go_on(self, openings: "Numbers", followers: "Numbers") -> "Numbers":
        """Of the openings with a word behind each: where is there a phrase that has both?"""
        return self._follow.held(openings, followers)

    def keys(self, anchors: "Numbers", openings: "Numbers", followers: "Numbers") -> "Numbers":
        """One number for each anchor, opening and word behind the opening."""
        size = len(self._kinds) + 1  # one more for any word
        return (anchors * size + openings) * size + followers - _ANY

    def tries(self, key: int) -> _Tries:
        """The phrases that have all three words."""
        tries = self._tries.get(key)
        if tries is None:
            if len(self._tries) > _REMEMBERED:
                self._tries = {}
            self._tries[key] = tries = self._told(key)
        return tries

    def _told(self, key: int) -> _Tries:
        size = len(self._kinds) + 1
        rest, follower = divmod(key, size)
        anchor, opening = divmod(rest, size)
        tries, words = self._kinds[anchor].tries, self._kinds[opening].openings
        pairs = ((word, t) for word in words for t in tries.get(word, ()))
        found = {t for word, t in pairs if self._goes_on(t[1], word, follower + _ANY)}
        return sorted(found, reverse=True)

    def _goes_on(self, phrase: int, opening: str, follower: int) -> bool:
        """May a word of the kind `follower` stand second in a phrase?"""
        wanted = self._followers[phrase].get(opening)
        return (
            follower == _ANY or wanted is None or not wanted.isdisjoint(self._kinds[follower].words)
        )

    def code(self, word: str) -> int:
        """What a word means, signs apart."""
        number = self._words.get(word)
        if number is None and word[: self._lengths[-1]] not in self._heads:
            return 0
        if number is None:
            stems, size = self._stems, len(word)
            number = next(
                (stems[s] for n in self._lengths if n <= size and (s := word[:n]) in stems), 0
            )
        kind = self._kinds[number]
        flags = _OPENS * bool(kind.openings) | _ANCHORS * bool(kind.tries)
        return number << _FLAGS | flags | _TELLS * bool(kind.signals)


class _Relation:
    """Which numbers below `size` belong to which, as bits.

    All belong to the `free` ones, and `_ANY` belongs to all.
    """

    def __init__(
        self, size: int, pairs: Mapping[int, Collection[int]], free: Collection[int] = ()
    ) -> None:
        import numpy as np

        columns = sorted(set().union(*pairs.values()))
        width = len(columns) + 2  # one for all others, and one for any
        self._column = np.zeros(size + 1, np.int64)
        self._column[columns] = np.arange(1, width - 1)
        self._column[_ANY] = width - 1
        row = np.zeros(size, np.int64)
        row[[*pairs]] = np.arange(1, len(pairs) + 1)
        row[[*free]] = len(pairs) + 1
        table = np.zeros((len(pairs) + 2, width), np.bool_)
        for number, others in pairs.items():
            table[row[number], self._column[[*others]]] = True
        table[-1] = True
        table[:, -1] = True
        self._row = row * width
        self._bits = np.packbits(table, bitorder="little")
        self._masks = 1 << np.arange(8, dtype=np.uint8)

    def held(self, left: "Numbers", right: "Numbers") -> "Numbers":
        """Where, among pairs, the second number belongs to the first."""
        place = self._row[left] + self._column[right]
        held: Numbers = (self._bits[place >> 3] & self._masks[place & 7]).nonzero()[0]
        return held


def _prefixes(word: str, entries: Collection[str]) -> Iterator[str]:
    """The entries that a word is or begins with; `word` is one of them."""
    stem = word.removesuffix("*")
    yield from (s for n in range(1, len(stem) + 1) if (s := stem[:n] + "*") in entries)
    if stem == word:
        yield word


def _kind(words: Sequence[str], entries: Mapping[str, _Entry]) -> _Kind:
    opens = tuple(word for word in words if entries[word].opens)
    followers = frozenset[str | None]().union(*(entries[word].followers for word in opens))
    kind = _Kind(frozenset(words), opens, followers)
    for word in words:
        length = len(word.removesuffix("*"))
        kind.signals += ((name, length) for name in entries[word].signals)
        for opening, tries in entries[word].tries.items():
            shorter = ((reach - length, number) for reach, number in tries)
            kind.tries.setdefault(opening, []).extend(shorter)
    kind.reach = max((reach for tries in kind.tries.values() for reach, _ in tries), default=0)
    return kind


class _Signs:
    """Strings that are found anywhere, also within words and between them.

    A string is looked for where the longest of its words stands, within a longer one or not.
    """

    def __init__(self, signs: Mapping[int, Sequence[str]]) -> None:
        self._bare: dict[str, list[int]] = {}
        inner: dict[str, list[tuple[str, int, int]]] = {}
        for number, strings in signs.items():
            for string in filter(None, strings):
                words = parted(string).split(" ")
                if word := max(words, key=len):
                    inner.setdefault(word, []).append((string, string.index(word), number))
                else:
                    self._bare.setdefault(string, []).append(number)
        self._inner = _automaton({word: (len(word), rows) for word, rows in inner.items()})

    def bare(self, text: str) -> dict[int, list[tuple[int, int]]]:
        """Where those without any word in them stand, by number."""
        found: dict[int, list[tuple[int, int]]] = {}
        for sign, numbers in self._bare.items():
            at = text.find(sign) if sign[0] in text else -1
            while at >= 0:
                for number in numbers:
                    found.setdefault(number, []).append((at, at + len(sign)))
                at = text.find(sign, at + len(sign))
        return found

    def among(self, words: Collection[str]) -> set[str]:
        """Those of some words in which a sign may be."""
        joined = f" {' '.join(words)} "
        ends = (last for last, _ in self._inner.iter(joined))
        return {joined[joined.rfind(" ", 0, end) + 1 : joined.find(" ", end)] for end in ends}

    def look(
        self, text: str, word: str, start: int, found: dict[int, list[tuple[int, int]]]
    ) -> None:
        """Add what stands at a word of a text, which begins at `start`."""
        for last, (length, rows) in self._inner.iter(word):
            for string, before, number in rows:
                at = start + last + 1 - length - before
                if at >= 0 and text.startswith(string, at):
                    found.setdefault(number, []).append((at, at + len(string)))


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


def _characters(text: str) -> "NDArray[Any]":
    import numpy as np

    code, size = ("ascii", np.uint8) if text.isascii() else ("utf-32-le", np.uint32)
    return np.frombuffer(text.encode(code, "surrogatepass"), size)


def _starts(plain: str) -> "Numbers":
    """Where each word of a parted text begins, counted without the blank at its beginning."""
    blanks = _characters(plain) == ord(" ")
    starts: Numbers = (blanks[:-1] & ~blanks[1:]).nonzero()[0]
    return starts


_PLACE = 32  # bits of the place in what stands for a phrase at a place
_PLACES = (1 << _PLACE) - 1
_STEP = 1_000  # anchors that are looked at together


def _near(text: str, codes: "Numbers", starts: "Numbers", kinds: _Kinds) -> Iterator[int]:
    """The phrases with an anchor that one of their openings is in reach of.

    This is the inner loop of a scan and written to be fast: what is found is numbers, which cost
    the collection of garbage nothing.
    """
    anchors = (codes & _ANCHORS).nonzero()[0]
    openings = (codes & _OPENS).nonzero()[0]
    if not len(anchors) or not len(openings):
        return
    kind = codes >> _FLAGS
    tags = (_characters(text) == ord("<")).nonzero()[0] if "<" in text else starts[:0]
    after = _followers(kind, starts, tags)
    openings = openings[kinds.go_on(kind[openings], after[openings])]
    limits = starts[anchors]
    lows = limits - kinds.reach[kind[anchors]]
    if len(tags):
        tagged = tags.searchsorted(lows) < tags.searchsorted(limits)
        limits, lows = limits - _TAGS * tagged, lows - _TAGS * tagged
    firsts = starts[openings].searchsorted(lows)
    counts = openings.searchsorted(anchors, "right") - firsts
    if counts.sum() > _FLOOD:
        fresh = _fresh(text, starts[anchors].tolist())
        anchors, limits, firsts, counts = (a[fresh] for a in (anchors, limits, firsts, counts))
    for low in range(0, len(anchors), _STEP):
        part = slice(low, low + _STEP)
        rows, columns = _pairs(firsts[part], counts[part])
        anchor, opening = anchors[part][rows], openings[columns]
        belong = kinds.belong(kind[anchor], kind[opening])
        opening = opening[belong]
        keys = kinds.keys(kind[anchor[belong]], kind[opening], after[opening])
        table = (keys, starts[opening], limits[part][rows[belong]])
        for key, at, limit in zip(*(column.tolist() for column in table), strict=True):
            for reach, number in kinds.tries(key):
                if at + reach < limit:
                    break
                yield number << _PLACE | at


def _followers(kind: "Numbers", starts: "Numbers", tags: "Numbers") -> "Numbers":
    """The kind of the word behind each word; any, where a tag begins in between."""
    import numpy as np

    after = np.zeros_like(kind)
    after[:-1] = kind[1:]
    if len(tags):
        before = tags.searchsorted(starts)
        after[:-1][before[:-1] < before[1:]] = _ANY
    return after


def _pairs(firsts: "Numbers", counts: "Numbers") -> tuple["Numbers", "Numbers"]:
    """Each row, as often as it counts, and beside it the numbers from its first one on."""
    import numpy as np

    rows = np.arange(len(counts)).repeat(counts)
    before = counts.cumsum() - counts
    return rows, np.arange(len(rows)) + (firsts - before)[rows]


def _fresh(text: str, places: Sequence[int]) -> list[bool]:
    """Of each word: is it worth a look? In a flood the same stands between the same words."""
    contexts: Counter[str] = Counter()
    fresh = []
    for at in places:
        context = text[max(0, at - _BEFORE) : at + _AFTER]
        contexts[context] += 1
        fresh.append(contexts[context] <= _AGAIN)
    return fresh
