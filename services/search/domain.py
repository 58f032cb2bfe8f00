"""What search decides: how two rankings become one, and what a day sees."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

RRF_K = 60


@dataclass(frozen=True, slots=True)
class Fused(Generic[Key]):
    """A candidate of one or both legs; ranks count from 1, None: the leg did not find it."""

    key: Key
    score: float
    dense_rank: int | None
    keyword_rank: int | None


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


def _ranks(keys: Sequence[Key]) -> dict[Key, int]:
    ranks: dict[Key, int] = {}
    for rank, key in enumerate(keys, 1):
        ranks.setdefault(key, rank)
    return ranks
