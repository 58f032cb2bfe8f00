"""The keyword leg: BM25 over `read.chunk` in plain Postgres, with the filters of the vector leg."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg

from kernel.db import queries
from kernel.keywords import KeywordQuery, Mode
from kernel.vectors import VectorFilter

SMALL = 2000
"""Passages of a base up to which every word of a question may bring passages."""

MATCHES = 2000
"""About so many passages are read and scored for a question; each costs some 10 µs."""

MOST = 10_000
"""Passages that are read for a question of frequent words alone. Where more match, these are any of
them: without a bound such a question takes minutes in a base of large tables."""

_SAMPLE = 2000
_LEAST = 5  # of the sample: what is rarer is not worth knowing
_KEEP_S = 600.0


@dataclass(frozen=True, slots=True)
class KeywordHit:
    """A found passage; `score` orders one list and means nothing outside it."""

    point_id: UUID
    version_id: str
    chunk_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """Size of a generation, and in how many of its passages the frequent terms are."""

    passages: int
    frequent: Mapping[str, float] = field(default_factory=dict)

    def bound(self, terms: Iterable[str]) -> int | None:
        """`MOST` where more passages than that may hold one of `terms`; None: read all."""
        held = sum(self.frequent.get(term, 0.0) for term in terms)
        return MOST if held > MOST else None


class KeywordIndex:
    """Reads `read.chunk` and `read.validity`; the indexer and the projector write them.

    A base of over `SMALL` passages is sampled every ten minutes: only as many of a question's
    rarest terms bring passages as about `MATCHES` hold; the frequent ones add to their scores.
    Where these are too few, frequent terms bring more, out of at most `MOST` passages.
    """

    def __init__(
        self, pool: "asyncpg.Pool[Any]", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pool, self._sql, self._clock = pool, queries("kernel.sql", "keywords"), clock
        self._known: dict[tuple[str, int], tuple[float, Statistics]] = {}

    async def search(
        self,
        project: str,
        generation: int,
        query: KeywordQuery,
        flt: VectorFilter,
        *,
        limit: int,
        mode: Mode = "or",
    ) -> list[KeywordHit]:
        """The best passages that pass `flt`; [] for a question without a word.

        Exactly the best unless only words bring them that over `MOST` passages hold.
        """
        if not query.words or limit < 1:
            return []
        async with self._pool.acquire() as connection, connection.transaction(readonly=True):
            await self._sql.prepare_search(connection)
            known = await self.statistics(connection, project, generation)
            bringing = query.terms if mode == "legacy" else rarest(query.terms, known)
            hits: list[KeywordHit] = []
            for terms in (bringing, query.terms):
                most = known.bound(terms)
                found = [
                    KeywordHit(row["point_id"], row["version_id"], row["chunk_id"], row["score"])
                    async for row in self._sql.search_keywords(
                        connection,
                        tsquery=query.tsquery(mode, set(terms)),
                        terms=query.terms,
                        groups=query.groups,
                        rarity=[known.frequent.get(term) for term in query.terms],
                        passages=known.passages,
                        large=known.passages > SMALL,
                        most=most,
                        required=query.required,
                        complete_first=mode == "and_or",
                        project=project,
                        generation=generation,
                        languages=sorted(flt.languages),
                        documents=sorted(flt.documents),
                        heading_prefix=list(flt.heading_prefix),
                        moment=flt.moment,
                        limit=limit,
                    )
                ]
                first = hits if most else []  # a part of the passages may lack what was found
                known_ids = {hit.point_id for hit in first}
                hits = [*first, *(hit for hit in found if hit.point_id not in known_ids)][:limit]
                if len(hits) >= limit or len(terms) == len(query.terms):
                    break
        return hits

    async def statistics(
        self, connection: "asyncpg.pool.PoolConnectionProxy[Any]", project: str, generation: int
    ) -> Statistics:
        """Of the last ten minutes; sampled now if there are none."""
        at, known = self._known.get((project, generation), (-_KEEP_S, Statistics(0)))
        if self._clock() - at < _KEEP_S and known.passages > SMALL:
            return known
        base = {"project": project, "generation": generation}
        passages = await self._sql.count_passages(connection, **base)
        known = Statistics(passages)
        if passages > SMALL:
            known = Statistics(passages, await self._frequent(connection, passages, base))
            self._known[project, generation] = (self._clock(), known)
        return known

    async def _frequent(
        self,
        connection: "asyncpg.pool.PoolConnectionProxy[Any]",
        passages: int,
        base: dict[str, Any],
    ) -> dict[str, float]:
        percent = min(100.0, 100.0 * _SAMPLE / passages)
        sampled = await self._sql.sample_size(connection, percent=percent, **base)
        rows = self._sql.sample_terms(connection, percent=percent, least=_LEAST, **base)
        return {row["term"]: row["passages"] * passages / max(sampled, 1) async for row in rows}


def rarest(terms: list[str], known: Statistics, matches: int = MATCHES) -> list[str]:
    """The rarest terms, as many as are in `matches` passages together, and at least one.

    A term that the sample did not show counts as rare. All of them in a small base.
    """
    if known.passages <= SMALL:
        return terms
    ordered = sorted(terms, key=lambda term: known.frequent.get(term, 0.0))
    chosen, holding = ordered[:1], known.frequent.get(ordered[0], 0.0)
    for term in ordered[1:]:
        holding += known.frequent.get(term, 0.0)
        if holding > matches:
            break
        chosen.append(term)
    return chosen
