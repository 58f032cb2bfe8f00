"""Near-identical passages among the candidates: the best one is shown, the others stand under it.

What differs must not matter: numbers, names, and words that deny, oblige or allow are the same, in
the same order, and all but few other words are. Headings do not count, so one text in two documents
is one. But within a version the headings tell passages apart, and of one document's versions only
equal words are twins: what differs between them is what somebody asks who asks for all of them.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest
from itertools import chain

from contracts.artifacts import breadcrumb
from services.search.legs import Candidate

LIKE = 0.9
"""Of all groups of `SHINGLE` words in two passages, this part is in both."""
SHINGLE = 3

_WORD = re.compile(r"\w+(?:'\w+)*")
_TELLING = frozenset({
    "not", "no", "nor", "never", "none", "without", "cannot", "except", "unless", "neither",
    "nicht", "kein", "keine", "keinen", "keinem", "keiner", "keines", "nie", "niemals", "ohne",
    "weder", "außer", "не", "ни", "нет", "без", "никогда", "кроме", "няма", "нито", "никога",
    "освен", "нема", "ниту", "никогаш", "није", "нису", "нити", "никада", "осим", "ne", "ni",
    "nije", "nisu", "nema", "bez", "niti", "nikada", "osim", "niso", "nima", "brez", "nikoli",
    "razen",
    "must", "may", "might", "shall", "should", "can", "could", "will", "would",
    "muss", "müssen", "darf", "dürfen", "kann", "können", "soll", "sollen", "sollte", "sollten",
    "может", "могут", "должен", "должна", "должно", "должны", "обязан", "обязана", "обязаны",
    "вправе", "може", "могат", "трябва", "треба", "мора", "морају", "мораат", "сме", "смеат",
    "смеју", "могу", "можат", "дужан", "дужна", "дужни", "mora", "moraju", "morajo",
    "može", "mogu", "treba", "smije", "smiju", "sme", "smeju", "smejo", "lahko", "dužan", "dužna",
    "dužni", "dolžan", "dolžna", "dolžni",
})  # fmt: skip
"""Words that deny, except, oblige or allow, in the eight languages."""


@dataclass(frozen=True)
class _Text:
    """A candidate and its words."""

    candidate: Candidate
    written: tuple[str, ...]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """In small letters."""
        return tuple(word.casefold() for word in self.written)

    @cached_property
    def telling(self) -> tuple[str, ...]:
        """Words in which twins do not differ, names among them."""
        return tuple(
            word
            for word, as_written in zip(self.words, self.written, strict=True)
            if word in _TELLING or not word.isalpha() or _is_name(as_written)
        )

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        """All groups of words that follow each other."""
        size = min(SHINGLE, len(self.words))
        return frozenset(zip(*(self.words[n:] for n in range(size)), strict=False))

    @cached_property
    def anchors(self) -> list[tuple[str, ...]]:
        """The first of them in any one order, more than may be missing in a twin: two texts that
        are alike have one of these in common."""
        few = len(self.shingles) - int(LIKE * len(self.shingles)) + 1
        return nsmallest(few, self.shingles, key=hash)

    def as_long_as(self, other: "_Text") -> bool:
        """About so."""
        shorter, longer = sorted((len(self.words), len(other.words)))
        return shorter >= LIKE * longer

    def is_twin_of(self, other: "_Text") -> bool:
        """Do they say the same?"""
        mine, theirs = self.candidate.row, other.candidate.row
        same = mine["version_id"] == theirs["version_id"]
        if same and mine["heading_path"] != theirs["heading_path"]:
            return False
        if self.words == other.words:
            return True
        if not same and mine["document_id"] == theirs["document_id"]:
            return False
        if not self.as_long_as(other):
            return False
        common = len(self.shingles & other.shingles)
        return common >= LIKE * (len(self.shingles) + len(other.shingles) - common)


class _Alike:
    """Passages that are shown and have the same telling words."""

    def __init__(self) -> None:
        self.groups: list[list[_Text]] = []
        self._holding: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._held = 0

    def first(self, text: _Text) -> list[_Text] | None:
        """The first group of whose shown passage it is a twin."""
        if not any(text.as_long_as(group[0]) for group in self.groups):
            return None  # the usual case, and the quick one
        for number in range(self._held, len(self.groups)):
            for shingle in self.groups[number][0].anchors:
                self._holding[shingle].append(number)
        self._held = len(self.groups)
        rivals = sorted(set(chain(*(self._holding[s] for s in text.anchors if s in self._holding))))
        groups = (self.groups[number] for number in rivals)
        return next((group for group in groups if text.is_twin_of(group[0])), None)


def fold_twins(candidates: Iterable[Candidate], most: int) -> list[Candidate]:
    """Each passage once, in the order of the candidates, with its twins; the first one is shown.
    Behind the first `most` of them, which alone are of interest, nothing is folded together."""
    shown: list[list[_Text]] = []
    alike: dict[tuple[str, ...], _Alike] = defaultdict(_Alike)
    for candidate in candidates:
        text = _Text(candidate, _words(candidate))
        group = alike[text.telling].first(text)
        if group is not None:
            group.append(text)
            continue
        shown.append([text])
        if len(shown) <= most:
            alike[text.telling].groups.append(shown[-1])
    return [_with(group) for group in shown]


def _with(group: Sequence[_Text]) -> Candidate:
    twins = tuple(text.candidate for text in group[1:])
    return replace(group[0].candidate, twins=twins) if twins else group[0].candidate


def _words(candidate: Candidate) -> tuple[str, ...]:
    row = candidate.row
    path = tuple(row["heading_path"])
    lines = row["text"].removeprefix(breadcrumb(row["title"], path)).splitlines()
    text = "\n".join(line for line in lines if line.lstrip("# ").rstrip() not in path)
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return tuple(_WORD.findall(text.replace("’", "'")))


def _is_name(word: str) -> bool:
    """With a capital letter, as names have, and in German all nouns; not in a text of capitals."""
    return word[0].isupper() and len(word) > 1 and not word.isupper()
