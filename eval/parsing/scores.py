"""How near a text is to its reference: one number from 0 to 1 for each side of it. Pure.

Each function takes the reference and the result, both Markdown, and gives None where the question
makes no sense (no table on either side).
"""

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from rapidfuzz.distance import Indel

from eval.parsing.outline import Table, outline, words

Score = Callable[[str, str], float | None]

_SHINGLE = 3


def tokens(reference: str, result: str) -> float | None:
    r"""F1 over the multiset of words of the Markdown source.

    `2 |R ∩ H| / (|R| + |H|)` with words `\w+`, lower-cased: the measure of
    `evaldata/tools/score.py markdown`.
    """
    return f1(re.findall(r"\w+", reference.lower()), re.findall(r"\w+", result.lower()))


def edit(reference: str, result: str) -> float | None:
    """Similarity of the plain texts as sequences of characters, white space folded.

    `1 - d / (|R| + |H|)`, d the least number of insertions and deletions (rapidfuzz `Indel`).
    """
    left, right = outline(reference).plain, outline(result).plain
    if not left and not right:
        return None
    return float(Indel.normalized_similarity(" ".join(left.split()), " ".join(right.split())))


def headings(reference: str, result: str) -> float | None:
    """F1 over the multiset of headings by their words, whatever their level."""
    return f1([t for _, t in outline(reference).headings], [t for _, t in outline(result).headings])


def tree(reference: str, result: str) -> float | None:
    """F1 over the multiset of headings by words and depth in the tree of headings."""
    return f1(outline(reference).headings, outline(result).headings)


def exact_headings(reference: str, result: str) -> float | None:
    """Recall of heading lines as written: the measure of `evaldata/tools/score.py markdown`."""
    heading = re.compile(r"^#{1,6}\s+(.+)$", re.MULTILINE)
    wanted = [" ".join(h.split()) for h in heading.findall(reference)]
    got = {" ".join(h.split()) for h in heading.findall(result)}
    return sum(h in got for h in wanted) / len(wanted) if wanted else None


def cells(reference: str, result: str) -> float | None:
    """F1 over the filled cells of tables, each table against its best counterpart.

    Tables are paired one to one, the pair with most cells in common first; tables without a
    counterpart count against the result. Cells are equal when their text is.
    """
    return _over_tables(reference, result, _filled)


def grid(reference: str, result: str) -> float | None:
    """F1 over neighbours in tables, paired as in `cells`: whether cells stand where they should.

    A relation is (cell, next filled cell to the right or below, direction): Göbel, Hassan, Oro,
    Orsi, ICDAR 2013 Table Competition.
    """
    return _over_tables(reference, result, relations)


def items(reference: str, result: str) -> float | None:
    """F1 over the multiset of list items by words and depth of nesting."""
    return f1(outline(reference).items, outline(result).items)


def order(reference: str, result: str) -> float | None:
    """Share of pairs of passages that come in the reference's order: `(1 + Kendall's tau) / 2`.

    Passages are runs of three words that occur once in either text, so that lines and blocks need
    not be cut alike. None with fewer than two in common.
    """
    left, right = _unique_runs(reference), _unique_runs(result)
    places = [right[run] for run in left if run in right]
    if len(places) < 2:
        return None
    pairs = len(places) * (len(places) - 1) / 2
    return 1 - inversions(places) / pairs


def contained(wanted: Sequence[str], result: str) -> float | None:
    """Share of the strings that the result holds, case and white space folded."""
    text = " ".join(result.lower().split())
    found = sum(" ".join(w.lower().split()) in text for w in wanted)
    return found / len(wanted) if wanted else None


def f1(reference: Iterable[object], result: Iterable[object]) -> float | None:
    """`2 |R ∩ H| / (|R| + |H|)` over multisets; None when both are empty."""
    left, right = Counter(reference), Counter(result)
    size = left.total() + right.total()
    return 2 * (left & right).total() / size if size else None


def inversions(places: Sequence[int]) -> int:
    """Pairs that stand the wrong way round: `i < j` with `places[i] > places[j]`."""
    seen: list[int] = []
    count = 0
    for place in places:
        count += len(seen) - bisect_left(seen, place)
        insort(seen, place)
    return count


def relations(table: Table) -> Counter[object]:
    """Each filled cell with its next filled neighbour to the right and below."""
    found: Counter[object] = Counter()
    width = max((len(row) for row in table), default=0)
    columns = [[row[x] if x < len(row) else "" for row in table] for x in range(width)]
    for direction, lines in (("right", table), ("below", columns)):
        for line in lines:
            filled = [text for text in line if text]
            found.update((a, b, direction) for a, b in pairwise(filled))
    return found


def _filled(table: Table) -> Counter[object]:
    return Counter(text for row in table for text in row if text)


def _over_tables(
    reference: str, result: str, parts: Callable[[Table], Counter[object]]
) -> float | None:
    left, right = outline(reference).tables, outline(result).tables
    common = sum((parts(left[i]) & parts(right[j])).total() for i, j in _paired(left, right))
    size = sum(parts(table).total() for table in (*left, *right))
    return 2 * common / size if size else None


def _paired(left: Sequence[Table], right: Sequence[Table]) -> list[tuple[int, int]]:
    """One-to-one pairs, most cells in common first, then the earlier table."""
    shared = {
        (i, j): (_filled(a) & _filled(b)).total()
        for i, a in enumerate(left)
        for j, b in enumerate(right)
    }
    pairs: list[tuple[int, int]] = []
    for i, j in sorted((p for p in shared if shared[p]), key=lambda p: (-shared[p], p)):
        if all(i != a and j != b for a, b in pairs):
            pairs.append((i, j))
    return pairs


def _unique_runs(markdown: str) -> dict[tuple[str, ...], int]:
    """Place of every run of words that occurs once, in the order of the text."""
    found = words(outline(markdown).plain).split()
    runs = [tuple(found[n : n + _SHINGLE]) for n in range(len(found) - _SHINGLE + 1)]
    counts = Counter(runs)
    return {run: n for n, run in enumerate(runs) if counts[run] == 1}


SCORES: dict[str, Score] = {
    "tokens": tokens,
    "edit": edit,
    "headings": headings,
    "tree": tree,
    "cells": cells,
    "grid": grid,
    "items": items,
    "order": order,
    "exact": exact_headings,
}
"""Column name → measure."""
