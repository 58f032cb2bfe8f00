"""What search decides: how two rankings become one, and what a day sees."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, Literal, TypeVar

Key = TypeVar("Key", bound=Hashable)

Fusion = Literal["rrf", "scores"]
"""rrf: by the ranks in both legs; scores: by how near a passage is and how many words it holds."""

RRF_K = 60
SPAN = 50
"""Passages of the dense leg that say how near is near, however many are looked at."""
WORDS, CURVE = 1.5, 1.5
"""What all words of a question in one passage are worth, where the span from the nearest passage
to the last one of the dense leg is worth 1; and by which power fewer words are worth less, since a
few are in many passages. Chosen on the tuning half of eval/labelled.py and on XQuAD: between 1 and
2 of either there is little."""


@dataclass(frozen=True, slots=True)
class Fused(Generic[Key]):
    """A candidate of one or both legs; ranks count from 1, None: the leg did not find it.

    `score`: by the ranks. `blend`: by the scores, 0 to 1, where these were asked for.
    """

    key: Key
    score: float
    dense_rank: int | None
    keyword_rank: int | None
    blend: float | None = None


def rrf(
    dense: Sequence[Key],
    keyword: Sequence[Key],
    k: int = RRF_K,
    *,
    others: Iterable[Sequence[Key]] = (),
) -> list[Fused[Key]]:
    """Reciprocal rank fusion: each leg adds 1 / (k + rank). Equal sums: the dense leg first.

    A key that a leg names twice counts at its first place. `others`: dense rankings by further
    models, of other keys. Their scores do not compare with each other, so the first of each is a
    first.
    """
    by_dense, by_keyword = _ranks(dense), _ranks(keyword)
    for other in others:
        by_dense = by_dense | _ranks(other)
    fused = [
        Fused(
            key,
            sum(1 / (k + ranks[key]) for ranks in (by_dense, by_keyword) if key in ranks),
            by_dense.get(key),
            by_keyword.get(key),
        )
        for key in by_dense | by_keyword
    ]
    last = len(fused) + 1
    return sorted(fused, key=lambda f: (-f.score, f.dense_rank or last, f.keyword_rank or last))


def by_scores(
    fused: Sequence[Fused[Key]],
    cosines: Iterable[Mapping[Key, float]],
    shares: Mapping[Key, float],
) -> list[Fused[Key]]:
    """The same candidates by their scores, ties in the order that they had.

    A leg that finds nothing good has a say by its ranks all the same: a question in a language in
    which there is no answer has a first place in the keyword leg too. By its scores it has none.

    Args:
        fused: candidates in some order.
        cosines: those of the dense leg, of each model. They count from the last to the first.
        shares: how much of the question's words the passages of the keyword leg hold, 0 to 1.
    """
    near = {key: value for leg in cosines for key, value in _from_last_to_first(leg)}

    def blend(key: Key) -> float:
        words = math.pow(shares.get(key, 0.0), CURVE)
        return (near.get(key, 0.0) + WORDS * words) / (1 + WORDS)

    blended = [replace(f, blend=blend(f.key)) for f in fused]
    return sorted(blended, key=lambda f: -(f.blend or 0.0))


def moment_of(
    as_of: datetime | None,
    *,
    include_historical: bool,
    now: datetime,
    recorded_as_of: datetime | None = None,
) -> datetime | None:
    """The instant that a passage must be valid at: `as_of`, else that of the knowledge, else now.

    None: all history, for `include_historical` wins: it asks for everything.
    """
    return None if include_historical else as_of or recorded_as_of or now


def holds(begin: datetime, until: datetime | None, moment: datetime | None) -> bool:
    """Is a span of validity in force at a moment? None: at any."""
    return moment is None or (begin <= moment and (until is None or until > moment))


def _from_last_to_first(scores: Mapping[Key, float]) -> Iterator[tuple[Key, float]]:
    """Scores from 0, the last of the first `SPAN`, to 1, the first."""
    ordered = sorted(scores.values(), reverse=True)[:SPAN] or [0.0]
    low, high = ordered[-1], ordered[0]
    for key, score in scores.items():
        yield key, max(0.0, score - low) / (high - low or 1.0)


def _ranks(keys: Sequence[Key]) -> dict[Key, int]:
    ranks: dict[Key, int] = {}
    for rank, key in enumerate(keys, 1):
        ranks.setdefault(key, rank)
    return ranks
