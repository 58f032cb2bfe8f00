"""The keyword leg: BM25 over `read.chunk` in plain Postgres, with the filters of the vector leg."""

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from kernel.db import queries
from kernel.fit import ANY, Fit
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
_KEPT = 256  # combinations of bases whose statistics are kept

Base = tuple[str, int]
"""A project and the generation of its index."""


@dataclass(frozen=True, slots=True)
class KeywordHit:
    """A found passage; `score` orders one list and means nothing outside it.

    `share`: of the question's words, the rare ones counting most, how much the passage holds, 0 to
    1; it compares between questions.
    """

    point_id: UUID
    version_id: str
    chunk_id: str
    score: float
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Statistics:
    """Size of a base, and in how many of its passages the frequent terms are.

    `versions`: to which the passages belong; counted in a base of over `SMALL` passages.
    """

    passages: int
    frequent: Mapping[str, float] = field(default_factory=dict)
    versions: int = 0

    def part(self, versions: int) -> "Statistics":
        """About what so many of the versions hold: how much a question of these alone reads."""
        share = min(1.0, versions / max(self.versions, 1))
        held = {term: passages * share for term, passages in self.frequent.items()}
        return Statistics(round(self.passages * share), held, min(versions, self.versions))

    def bound(self, terms: Iterable[str]) -> int | None:
        """`MOST` where more passages than that may hold one of `terms`; None: read all."""
        held = sum(self.frequent.get(term, 0.0) for term in terms)
        return MOST if held > MOST else None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A search and what is known of its bases."""

    bases: tuple[Base, ...]
    query: KeywordQuery
    flt: VectorFilter
    known: Statistics
    limit: int
    mode: Mode
    known_at: datetime | None
    fit: Fit

    def parameters(self, bringing: list[str]) -> dict[str, Any]:
        """Of the query, but for `most`."""
        query, flt, known = self.query, self.flt, self.known
        return {
            "tsquery": query.tsquery(self.mode, set(bringing)),
            "terms": query.terms,
            "groups": query.groups,
            "rarity": [known.frequent.get(term) for term in query.terms],
            "passages": known.passages,
            "large": known.passages > SMALL and flt.versions is None,
            "required": query.required,
            "complete_first": self.mode == "and_or",
            **_named(self.bases),
            "languages": sorted(flt.languages),
            "documents": sorted(flt.documents),
            "heading_prefix": list(flt.heading_prefix),
            "versions": None if flt.versions is None else list(flt.versions),
            "moment": flt.moment,
            "known": self.known_at,
            "fitted": bool(self.fit),
            **self.fit.parameters,
            "limit": self.limit,
        }


class KeywordIndex:
    """Reads `read.chunk` and `read.known`; the indexer and the projector write them.

    Several projects are asked as if they were one base: a word is as rare as it is in all of them
    together, so the scores of their passages compare.

    A base of over `SMALL` passages is sampled every ten minutes: only as many of a question's
    rarest terms bring passages as about `MATCHES` hold; the frequent ones add to their scores.
    Where these are too few, frequent terms bring more, out of at most `MOST` passages. Of the
    passages of named versions only these count: where they are few, every term brings at once.
    """

    def __init__(
        self, pool: "asyncpg.Pool[Any]", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pool, self._sql, self._clock = pool, queries("kernel.sql", "keywords"), clock
        self._known: dict[tuple[Base, ...], tuple[float, Statistics]] = {}

    async def search(
        self,
        bases: Sequence[Base],
        query: KeywordQuery,
        flt: VectorFilter,
        *,
        limit: int,
        mode: Mode = "or",
        known_at: datetime | None = None,
        fit: Fit = ANY,
        connection: Any = None,
    ) -> list[KeywordHit]:
        """The best passages that pass `flt`; [] for a question without a word.

        Exactly the best unless only words bring them that over `MOST` passages hold. Validity is
        looked up here, so `also` and `without` of the filter say nothing.

        `known_at`: by what was known of validity then; None: by what is known now. `fit`: what the
        version of a passage must be like. `connection`: with a transaction whose snapshot is to be
        read; None: the newest state.
        """
        if not query.words or limit < 1 or flt.empty:
            return []
        async with self._reading(connection) as reading:
            await self._sql.prepare_search(reading)
            known = await self.statistics(reading, bases)
            asked = _Asked(tuple(bases), query, flt, known, limit, mode, known_at, fit)
            return await self._best(reading, asked)

    async def _best(self, reading: Any, asked: "_Asked") -> list[KeywordHit]:
        every, known, versions = asked.query.terms, asked.known, asked.flt.versions
        bringing = every if asked.mode == "legacy" else rarest(every, known)
        if versions is not None and len(bringing) < len(every):
            more = rarest(every, known.part(len(versions)))
            found, whole = await self._look(reading, asked, more)
            if whole and (len(found) >= asked.limit or len(more) == len(every)):
                return found
        hits: list[KeywordHit] = []
        for terms in (bringing, every):
            found, _ = await self._look(reading, asked, terms)
            # a part of the passages may lack what was found
            first = hits if known.bound(terms) else []
            known_ids = {hit.point_id for hit in first}
            hits = [*first, *(hit for hit in found if hit.point_id not in known_ids)][: asked.limit]
            if len(hits) >= asked.limit or len(terms) == len(every):
                break
        return hits

    async def _look(
        self, reading: Any, asked: "_Asked", terms: list[str]
    ) -> tuple[list[KeywordHit], bool]:
        """What `terms` bring, best first; and whether all that they bring was read."""
        most = asked.known.bound(terms)
        found, whole = list[KeywordHit](), True
        async for row in self._sql.search_keywords(reading, **asked.parameters(terms), most=most):
            share = min(1.0, row["score"] / row["possible"]) if row["possible"] else 0.0
            hit = KeywordHit(
                row["point_id"], row["version_id"], row["chunk_id"], row["score"], share
            )  # fmt: skip
            found.append(hit)
            whole = most is None or row["matched"] < most
        return found, whole

    @asynccontextmanager
    async def _reading(self, connection: Any) -> AsyncIterator[Any]:
        if connection is not None:
            yield connection
            return
        async with self._pool.acquire() as own, own.transaction(readonly=True):
            yield own

    async def statistics(self, connection: Any, bases: Sequence[Base]) -> Statistics:
        """Of the last ten minutes; sampled now if there are none."""
        key = tuple(bases)
        at, known = self._known.get(key, (-_KEEP_S, Statistics(0)))
        if self._clock() - at < _KEEP_S and known.passages > SMALL:
            return known
        passages = await self._sql.count_passages(connection, **_named(bases))
        known = Statistics(passages)
        if passages > SMALL:
            frequent = await self._frequent(connection, passages, bases)
            versions = await self._sql.count_versions(connection, **_named(bases))
            known = Statistics(passages, frequent, versions)
            self._known.pop(key, None)
            self._known[key] = (self._clock(), known)
            while len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]
        return known

    async def _frequent(
        self, connection: Any, passages: int, bases: Sequence[Base]
    ) -> dict[str, float]:
        which = {"bases": _named(bases)["bases"]}
        percent = min(100.0, 100.0 * _SAMPLE / passages)
        sampled = await self._sql.sample_size(connection, percent=percent, **which)
        rows = self._sql.sample_terms(connection, percent=percent, least=_LEAST, **which)
        return {row["term"]: row["passages"] * passages / max(sampled, 1) async for row in rows}


def _named(bases: Sequence[Base]) -> dict[str, Any]:
    return {
        "projects": [project for project, _ in bases],
        "generations": [generation for _, generation in bases],
        "bases": [f"{project} {generation}" for project, generation in bases],
    }


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
