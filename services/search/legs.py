"""What the two legs of a question bring, and what of it is valid."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any
from uuid import UUID

from kernel.keyword_index import KeywordHit
from kernel.vectors import VectorHit
from services.search.answerable import answerable
from services.search.domain import Fused, Fusion, by_scores, rrf


@dataclass(frozen=True, slots=True)
class Found:
    """What a leg brought; `score`: cosine similarity or BM25. `share`: that of a `KeywordHit`."""

    point_id: UUID
    version_id: str
    score: float
    share: float = 0.0

    @classmethod
    def of(cls, hit: VectorHit | KeywordHit) -> "Found":
        """The same of either leg."""
        return cls(hit.point_id, hit.version_id, hit.score, getattr(hit, "share", 0.0))


@dataclass(frozen=True)
class Candidate:
    """A passage that the legs brought and Postgres confirmed; `twins` stand behind it and say the
    same."""

    fused: Fused[UUID]
    row: Any
    rerank_score: float | None = None
    twins: "tuple[Candidate, ...]" = ()


@dataclass(frozen=True)
class Legs:
    """What both legs brought, best first, and the rows that Postgres confirmed, by point.

    `by_model`: the dense leg, of each model by itself, for cosines of different models do not
    compare.
    """

    by_model: Mapping[str, list[Found]]
    keyword: list[Found]
    rows: dict[UUID, Any]

    @property
    def dense(self) -> list[Found]:
        """What the models brought: the first of each, then the second of each, …"""
        turns = zip_longest(*self.by_model.values())
        return [found for turn in turns for found in turn if found is not None]

    @property
    def refused(self) -> list[str]:
        """Versions with a passage that is not valid, or not there."""
        every = {f.point_id: f.version_id for f in (*self.dense, *self.keyword)}
        return sorted({version for point, version in every.items() if point not in self.rows})

    def crowded(self, depth: int) -> bool:
        """Did what is not valid take most of the places in the dense leg of a model?"""
        return any(
            len(found) == depth and len(self.valid(found)) < depth // 2
            for found in self.by_model.values()
        )

    def full(self, depth: int) -> bool:
        """May a leg have more?"""
        return any(len(found) >= depth for found in (self.keyword, *self.by_model.values()))

    def valid(self, leg: Sequence[Found]) -> list[Found]:
        """What of a leg Postgres confirmed: its ranks count."""
        return [f for f in leg if f.point_id in self.rows]

    def candidates(self, fusion: Fusion = "rrf") -> list[Candidate]:
        """Fused; a rank is one among those that are valid, in the dense leg of one model."""
        dense = [self._points(found) for found in self.by_model.values()] or [[]]
        fused = rrf(dense[0], self._points(self.keyword), others=dense[1:])
        if fusion == "scores":
            cosines = [self._scores(found) for found in self.by_model.values()]
            shares = {f.point_id: f.share for f in self.valid(self.keyword)}
            fused = by_scores(fused, cosines, shares)
        return [Candidate(f, self.rows[f.key]) for f in fused]

    @property
    def answerable(self) -> float | None:
        """How likely it is that the base has an answer."""
        cosines = [[f.score for f in self.valid(found)] for found in self.by_model.values()]
        return answerable(cosines, [f.share for f in self.valid(self.keyword)])

    def _points(self, leg: Sequence[Found]) -> list[UUID]:
        return [f.point_id for f in self.valid(leg)]

    def _scores(self, leg: Sequence[Found]) -> dict[UUID, float]:
        return {f.point_id: f.score for f in self.valid(leg)}


def nearest(hits: Iterable[VectorHit], depth: int) -> list[Found]:
    """The best of what one model found in several projects."""
    ordered = sorted(hits, key=lambda h: (-h.score, h.point_id))
    return [Found.of(hit) for hit in ordered[:depth]]
