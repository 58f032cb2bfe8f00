"""A body as sections, and which section of another body each of them became. Pure.

A section is a heading with the text below it, up to the next heading of any level.
"""

import hashlib
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kernel.headings import MOST, Heading, headings, plain

MOST_SECTIONS = 10_000
"""Of one body; with more headings than that, the deepest levels count as text."""
MOST_WORDS = 5_000
"""Words of a section that its likeness to another is judged by."""
MOST_READ = 400_000
"""Words of all sections of one body that are looked at for a likeness."""
LIKE = 0.5
"""A pair of sections is one section if its score (`_Judge.score`) reaches this."""
TELLING = 40
"""Bytes of a text that is not found twice by chance."""
ROOT = -1

_WORD = re.compile(r"\w+")
# `§ 7a`, `Article 12.`, `3.2.1`, `IV)`, `(b)`, `Член 5`: the number of a heading, its word with it.
_NUMBER = re.compile(
    r"\s*(?:§+\s*|\w{1,12}\.?\s+(?=\d|[IVXLC]+\b))?\(?(?:\d+(?:\.\d+)*\s?[a-z]?|[IVXLC]+|[a-z])\b[.):]*\s*"
)


@dataclass(frozen=True, slots=True)
class Section:
    """Bytes `[start, end)` of a body; its text without the heading is `[text_start, text_end)`.

    `parent`: the number of the section whose heading is above this one's; `ROOT`: none is.
    """

    start: int
    end: int
    text_start: int
    text_end: int
    path: tuple[str, ...]
    parent: int
    digest: bytes

    @property
    def heading(self) -> str:
        """Its own heading; "" for the text before the first one."""
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True)
class Sections:
    """All sections of a body in order: they cover it without a gap."""

    body: bytes
    all: list[Section]
    merged: bool

    def words(self, number: int) -> list[str]:
        """The first words of a section's text, in lower case."""
        section = self.all[number]
        text = self.body[section.text_start : section.text_end][: 12 * MOST_WORDS]
        return _WORD.findall(text.decode("utf-8", "replace").lower())[:MOST_WORDS]


def sections(body: bytes) -> Sections:
    """The sections of a canonical body."""
    found = headings(body)
    kept = _kept(found)
    marks = [0, *(h.start for h in kept), len(body)]
    all_: list[Section] = []
    open_: list[tuple[int, int]] = []
    titles: dict[bytes, str] = {}
    if marks[1] > 0 or not kept:
        all_.append(_section(body, 0, marks[1], 0, (), ROOT))
    for number, heading in enumerate(kept):
        while open_ and open_[-1][0] >= heading.depth:
            open_.pop()
        parent = open_[-1][1] if open_ else ROOT
        title = titles.get(heading.source) or plain(heading.source.decode("utf-8", "replace"))
        titles[heading.source] = title
        above = all_[parent].path if parent != ROOT else ()
        open_.append((heading.depth, len(all_)))
        end = marks[number + 2]
        all_.append(_section(body, heading.start, end, heading.end, (*above, title), parent))
    return Sections(body, all_, merged=len(kept) < len(found) or len(found) >= MOST)


def _kept(found: list[Heading]) -> list[Heading]:
    """The headings down to the deepest level at which there are not too many."""
    counts = Counter(h.depth for h in found)
    total, deepest = 0, 0
    for depth in sorted(counts):
        total += counts[depth]
        if total > MOST_SECTIONS:
            break
        deepest = depth
    return found if deepest == max(counts, default=0) else [h for h in found if h.depth <= deepest]


def _section(
    body: bytes, start: int, end: int, behind: int, path: tuple[str, ...], parent: int
) -> Section:
    text_end = behind + len(body[behind:end].rstrip())
    text_start = text_end - len(body[behind:text_end].lstrip(b"\n"))
    digest = hashlib.sha256(memoryview(body)[text_start:text_end]).digest()
    return Section(start, end, text_start, text_end, path, parent, digest)


@dataclass(frozen=True)
class Aligned:
    """Which new section each old one became (`to_new`), and which of them changed its place."""

    old: Sections
    new: Sections
    to_new: dict[int, int]
    moved: frozenset[int]
    """New sections."""

    def in_order(self) -> Iterator[tuple[int | None, int | None]]:
        """`(old, new)` in the order of the new side; what went comes where it was."""
        to_old = {new: old for old, new in self.to_new.items()}
        gone: dict[int, list[int]] = defaultdict(list)
        last = ROOT
        for number in range(len(self.old.all)):
            new = self.to_new.get(number)
            if new is None:
                gone[last].append(number)
            elif new not in self.moved:
                last = new
        yield from ((number, None) for number in gone[ROOT])
        for number in range(len(self.new.all)):
            yield to_old.get(number), number
            yield from ((old, None) for old in gone[number])


def align(old: Sections, new: Sections) -> Aligned:
    """Pair the sections of two bodies: by their text first, since numbers and headings change.

    Whatever is the same, wherever it went, is a pair; then the likest; then a heading that only
    has other words above the same sections.
    """
    pairs = _Pairs(old, new)
    pairs.equal(lambda s: (s.path, s.digest))
    pairs.equal(lambda s: (s.heading, s.digest), once=True)
    pairs.equal(lambda s: s.digest if s.text_end - s.text_start >= TELLING else None, once=True)
    _alike(pairs)
    _above(pairs)
    return Aligned(old, new, pairs.to_new, _moved(pairs))


Key = Callable[[Section], Hashable]
"""None: the section has no key."""


@dataclass
class _Pairs:
    old: Sections
    new: Sections
    to_new: dict[int, int] = field(default_factory=dict)
    to_old: dict[int, int] = field(default_factory=dict)

    def add(self, i: int, j: int) -> bool:
        free = i not in self.to_new and j not in self.to_old
        if free:
            self.to_new[i], self.to_old[j] = j, i
        return free

    def left(self) -> tuple[list[int], list[int]]:
        """Sections of both sides that have no partner."""
        return (
            [i for i in range(len(self.old.all)) if i not in self.to_new],
            [j for j in range(len(self.new.all)) if j not in self.to_old],
        )

    def equal(self, key: Key, *, once: bool = False) -> None:
        """Pair those with equal keys, in order; `once`: only if a key is there once a side."""
        olds, news = self.left()
        mine, theirs = _by(key, self.old, olds), _by(key, self.new, news)
        for name, numbers in mine.items():
            others = theirs.get(name, [])
            if not once or len(numbers) == len(others) == 1:
                for i, j in zip(numbers, others, strict=False):
                    self.add(i, j)


def _by(key: Key, side: Sections, numbers: Iterable[int]) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for number in numbers:
        if (name := key(side.all[number])) is not None:
            found[name].append(number)
    return found


def title_of(section: Section) -> str | None:
    """A heading without its number, in lower case; None if it is nothing but a number."""
    return _NUMBER.sub("", section.heading, count=1).strip().casefold() or None


_NO_WORDS: Counter[str] = Counter()


class _Judge:
    """How alike sections are that have no partner yet."""

    def __init__(self, pairs: _Pairs) -> None:
        self._old, self._new = pairs.old, pairs.new
        self._olds, self._news = pairs.left()
        self._old_words = dict(_words(pairs.old, self._olds))
        self._new_words = dict(_words(pairs.new, self._news))
        self._old_bags = {i: Counter(words) for i, words in self._old_words.items()}
        self._new_bags = {j: Counter(words) for j, words in self._new_words.items()}

    def candidates(self) -> set[tuple[int, int]]:
        """Pairs that are worth a look: by heading, or by words that few sections have."""
        found: set[tuple[int, int]] = set()
        for key in (lambda s: s.path, title_of):
            mine = _by(key, self._old, self._olds)
            for name, theirs in _by(key, self._new, self._news).items():
                found |= _few(mine.get(name, []), theirs)
        runs: dict[Hashable, list[int]] = defaultdict(list)
        for i, words in self._old_words.items():
            for run in dict.fromkeys(_runs(words)):
                runs[run].append(i)
        for j, words in self._new_words.items():
            shared = Counter(
                i
                for run in dict.fromkeys(_runs(words))
                if len(rare := runs.get(run, ())) <= _RARE
                for i in rare
            )
            found.update((i, j) for i, _ in shared.most_common(_RARE))
        return found

    def score(self, i: int, j: int) -> float:
        """Sørensen-Dice over the words, 0 to 1, and more for what the headings have in common.

        0.5 for the same path, else 0.3 for the same heading, else 0.2 for one but for its number:
        a heading alone makes a pair where no likeness of texts says otherwise.
        """
        a, b = self._old.all[i], self._new.all[j]
        title = title_of(a)
        same = (
            0.5 if a.path == b.path
            else 0.3 if a.heading == b.heading
            else 0.2 if title is not None and title == title_of(b)
            else 0.0
        )  # fmt: skip
        mine, theirs = self._old_bags.get(i, _NO_WORDS), self._new_bags.get(j, _NO_WORDS)
        total = mine.total() + theirs.total()
        return same + (2 * (mine & theirs).total() / total if total else 0.0)


_RARE = 5
"""A run of words that more sections have says nothing; more partners are not weighed."""


def _words(side: Sections, numbers: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
    room = MOST_READ
    for number in numbers:
        words = side.words(number)
        room -= len(words)
        if room < 0:
            return
        yield number, words


def _runs(words: Sequence[str]) -> Iterable[Hashable]:
    """Three words in a row; all of a text that has fewer."""
    if len(words) < 3:
        return (tuple(words),) if words else ()
    return zip(words, words[1:], words[2:], strict=False)


def _few(mine: Sequence[int], theirs: Sequence[int]) -> set[tuple[int, int]]:
    """Every pair of a few; of many the first with the first, and so on."""
    if len(mine) * len(theirs) <= _RARE * _RARE:
        return {(i, j) for i in mine for j in theirs}
    return set(zip(mine, theirs, strict=False))


def _alike(pairs: _Pairs) -> None:
    judge = _Judge(pairs)
    scored = [(judge.score(i, j), i, j) for i, j in judge.candidates()]
    for score, i, j in sorted(scored, key=lambda c: (-c[0], c[1], c[2])):
        if score >= LIKE:
            pairs.add(i, j)


def _above(pairs: _Pairs) -> None:
    """Headings without a partner over the same sections: at least half of those of one of them."""
    while True:
        votes: Counter[tuple[int, int]] = Counter()
        children: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
        for side, counts in zip((pairs.old, pairs.new), children, strict=True):
            counts.update(s.parent for s in side.all)
        for i, j in pairs.to_new.items():
            votes[pairs.old.all[i].parent, pairs.new.all[j].parent] += 1
        agreed = [
            pairs.add(i, j)
            for (i, j), count in votes.most_common()
            if ROOT not in (i, j) and 2 * count >= min(children[0][i], children[1][j])
        ]
        if not any(agreed):
            return


def _moved(pairs: _Pairs) -> frozenset[int]:
    """New sections below another heading than before, or in another order below the same one.

    What is left in order is as much as can be. A heading that was put in between moves nothing.
    """
    found: set[int] = set()
    groups: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for j in sorted(pairs.to_old):
        i = pairs.to_old[j]
        above = _ancestor(pairs.old, i, pairs.to_new)
        below = _ancestor(pairs.new, j, pairs.to_old)
        if pairs.to_new.get(above, ROOT) == below:
            groups[below].append((i, j))
        else:
            found.add(j)
    for group in groups.values():
        kept = longest_rise([i for i, _ in group])
        found |= {j for n, (_, j) in enumerate(group) if n not in kept}
    return frozenset(found)


def _ancestor(side: Sections, number: int, paired: Mapping[int, int]) -> int:
    """The nearest heading above that has a partner; `ROOT`: there is none."""
    number = side.all[number].parent
    while number != ROOT and number not in paired:
        number = side.all[number].parent
    return number


def longest_rise(numbers: Sequence[int]) -> set[int]:
    """Places of a longest increasing subsequence (patience sorting, O(n log n))."""
    tails: list[int] = []
    places: list[int] = []
    before: list[int] = []
    for place, number in enumerate(numbers):
        at = bisect_left(tails, number)
        tails[at : at + 1] = [number]
        places[at : at + 1] = [place]
        before.append(places[at - 1] if at else -1)
    kept: set[int] = set()
    place = places[-1] if places else -1
    while place >= 0:
        kept.add(place)
        place = before[place]
    return kept
