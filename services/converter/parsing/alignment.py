"""Where the runs of a page stand in the text that an extractor took from it.

Both have one order, and each piece of the text comes from one run only: a headline that stands on
the page three times, or a paragraph that a list of other articles quotes, is taken once, where it
fits best to what stands around it.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

DISTINCT = 24
"""Letters and digits from which on a text is not found in another one by chance."""
_GRAM = DISTINCT // 2
_MOST = 16
"""Places of one run that are weighed, of those nearest to where it is expected."""
_TOUCHING = DISTINCT // 2
"""Worth, in letters, of a place that begins where the one of another run ends."""
_SHARE = 0.6
_NOT_SQUEEZED = re.compile(r"[\W_]+")
_WORD = re.compile(r"\w+")

Span = tuple[int, int]


def squeezed(text: str) -> str:
    """Letters and digits only, in small letters."""
    return _NOT_SQUEEZED.sub("", text).lower()


class _Place(NamedTuple):
    """A run at one of its places in the text."""

    run: int
    start: int
    end: int


def aligned(runs: list[str], article: str, *, repeats: bool = False) -> list[bool]:
    """Which runs the article has.

    Long ones are looked up as they are, or by most of their three-word sequences where the
    extractor changed something in them; short ones only right after or before another run.

    Args:
        runs: their texts in document order.
        article: what the extractor gave.
        repeats: a long run that another one repeats is known, too, as on pages with contents.
    """
    text, texts = squeezed(article), [squeezed(run) for run in runs]
    spans: list[Span | None] = [None] * len(runs)
    places = list(_places(texts, text))
    for place in _chain(places):
        spans[place.run] = (place.start, place.end)
    signs = _grow_down(texts, text, spans)
    _grow_up(texts, text, spans)
    known = [span is not None or sign for span, sign in zip(spans, signs, strict=True)]
    for place in places if repeats else ():
        known[place.run] = True
    left = _sequences_left(article, sorted(span for span in spans if span))
    return [
        found or (len(short) >= DISTINCT and _mostly(run, left))
        for found, short, run in zip(known, texts, runs, strict=True)
    ]


def _places(texts: list[str], text: str) -> Iterator[_Place]:
    """Every long run at the places where it may stand, by an index of pieces of the text.

    Of `_GRAM` pieces of a run that begin one letter after the other, one is in the index, wherever
    the run stands: no search goes through all of the text.
    """
    index: defaultdict[str, list[int]] = defaultdict(list)
    for at in range(0, len(text) - _GRAM + 1, _GRAM):
        index[text[at : at + _GRAM]].append(at)
    expected = 0
    for run, own in enumerate(texts):
        if len(own) < DISTINCT:
            continue
        starts: list[int] = []
        for offset in range(_GRAM):
            found = index.get(own[offset : offset + _GRAM], ())
            middle = bisect_left(found, expected)
            nearest = found[max(0, middle - _MOST // 4) : middle + _MOST]
            starts += [at - offset for at in nearest if text.startswith(own, at - offset)]
        starts.sort()
        middle = bisect_left(starts, expected)
        for start in starts[max(0, middle - _MOST // 4) : middle + _MOST]:
            yield _Place(run, start, start + len(own))
        if middle < len(starts):
            expected = starts[middle] + len(own)


class _Best:
    """The heaviest chain among those that end at or before a position (a Fenwick tree)."""

    def __init__(self, ends: list[int]) -> None:
        self._ends = ends
        self._tree = [(0, -1)] * (len(ends) + 1)
        self._at: dict[int, tuple[int, int]] = {}

    def add(self, end: int, weight: int, place: int) -> None:
        """A chain of this weight whose last place ends there."""
        self._at[end] = max(self._at.get(end, (0, -1)), (weight, place))
        i = bisect_right(self._ends, end)
        while i < len(self._tree):
            self._tree[i] = max(self._tree[i], (weight, place))
            i += i & -i

    def before(self, start: int) -> tuple[int, int]:
        """Weight and last place; -1 for none."""
        best, i = (0, -1), bisect_right(self._ends, start)
        while i:
            best = max(best, self._tree[i])
            i -= i & -i
        weight, place = self._at.get(start, (0, -1))
        return max(best, (weight + _TOUCHING, place)) if place >= 0 else best


def _chain(places: list[_Place]) -> list[_Place]:
    """Those that cover most of the text, one of each run, none before the one of an earlier run."""
    best = _Best(sorted({place.end for place in places}))
    weights: list[int] = []
    previous: list[int] = []
    done = 0
    for n, place in enumerate(places):
        if place.run != places[done].run:
            for earlier in range(done, n):
                best.add(places[earlier].end, weights[earlier], earlier)
            done = n
        weight, last = best.before(place.start)
        weights.append(weight + place.end - place.start)
        previous.append(last)
    chain = []
    at = max(range(len(places)), key=weights.__getitem__, default=-1)
    while at >= 0:
        chain.append(places[at])
        at = previous[at]
    return chain


def _grow_down(texts: list[str], text: str, spans: list[Span | None]) -> list[bool]:
    """Give a short run its place when the article goes on with it.

    Returns which runs are nothing but signs and stand after one that has a place.
    """
    ends = _following(spans, len(text))
    signs = [False] * len(texts)
    at, last = 0, False
    for n, own in enumerate(texts):
        span = spans[n]
        if not own:
            signs[n] = last
        elif span is None and _is_short(own) and text.startswith(own, at, ends[n]):
            spans[n] = (at, at + len(own))
        at = (spans[n] or (0, at))[1]
        last = spans[n] is not None or signs[n]
    return signs


def _grow_up(texts: list[str], text: str, spans: list[Span | None]) -> None:
    begins = _following([span and (-span[1], 0) for span in reversed(spans)], 0)
    at = len(text)
    for n in reversed(range(len(texts))):
        own, begin = texts[n], -begins[len(texts) - 1 - n]
        if spans[n] is None and own and _is_short(own) and text.endswith(own, begin, at):
            spans[n] = (at - len(own), at)
        at = (spans[n] or (at, 0))[0]


def _following(spans: list[Span | None], end: int) -> list[int]:
    """For each run where the place of the next one begins that has any."""
    following = []
    for span in reversed(spans):
        following.append(end)
        end = span[0] if span else end
    return following[::-1]


def _is_short(own: str) -> bool:
    return len(own) < DISTINCT


_Sequence = tuple[str | None, str | None, str | None]


def _sequences_left(article: str, covered: list[Span]) -> set[_Sequence]:
    """Three words each, of what no run has its place in."""
    words: list[str | None] = []
    at = n = 0
    for word in _WORD.findall(article):
        own = squeezed(word)
        while n < len(covered) and covered[n][1] <= at:
            n += 1
        words.append(None if n < len(covered) and covered[n][0] <= at else own)
        at += len(own)
    triples = zip(words, words[1:], words[2:], strict=False)
    return {triple for triple in triples if None not in triple}


def _mostly(run: str, sequences: set[_Sequence]) -> bool:
    words = [squeezed(word) for word in _WORD.findall(run)]
    own = list(zip(words, words[1:], words[2:], strict=False))
    return len(own) > 3 and sum(s in sequences for s in own) >= _SHARE * len(own)
