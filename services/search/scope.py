"""What a question may see: which generations, at what moment, by which knowledge.

Postgres has the last word on validity. The vectors learn of a new line of versions a little later,
never earlier. So a question says itself which versions are valid wherever the vectors may be behind
(`Scope.filters`). Whenever Postgres refuses what a leg brought, the question is asked again by a
snapshot of Postgres, with the documents of what was refused added: so what was valid before a
change and what is valid after it are never both missed.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from contracts.query import QueryRequest
from kernel.db import queries
from kernel.errors import Refusal
from kernel.fit import ANY, Fit
from kernel.keyword_index import Base
from kernel.media import types_of
from kernel.vectors import VectorFilter
from services.search.domain import moment_of

FEW = 2000
"""Versions that are named to the vector engine. A list of 1,000 costs it 1 ms, of 10,000 some 30,
of 100,000 some 400, and Postgres more to make it: where neither those that are valid nor those of
which something else is said are so few, what the engine finds is sifted instead."""


DEEP = 4
"""Where a project has so many times more windows than valid versions, and these are few, they are
named to both legs: else the past costs every question."""
LEAST = 500
"""Windows of a project from which on its past may be deep."""
KEEP_S = 600.0
"""Seconds until it is counted again whether the past of a project is deep."""


@dataclass(frozen=True)
class Scope:
    """One state of Postgres as a question sees it.

    `embedders`: the model of each project's vectors. `moment` None: any. `known` None: by what is
    known now. `position`: what is folded in, at least. `filters`: for the vectors of each project.
    `sifted`: projects of which the filter lets too much pass. `fit`, `narrow`: what else the
    question asks of a version, and of a passage.
    """

    bases: tuple[Base, ...]
    embedders: Mapping[str, str]
    moment: datetime | None
    known: datetime | None
    position: int
    filters: Mapping[str, VectorFilter] = field(default_factory=dict)
    sifted: frozenset[str] = frozenset()
    fit: Fit = ANY
    narrow: Mapping[str, Any] = field(default_factory=dict)

    @property
    def filter(self) -> VectorFilter:
        """For the keyword leg, which reads validity in Postgres itself.

        Where the valid versions are named for all projects they are all that it needs: what is not
        valid any more when it looks is refused afterwards, and seen to be.
        """
        named = [f.versions for f in self.filters.values() if f.versions is not None]
        if self.known is None and named and len(named) == len(self.filters):
            return self.narrowed(_named(frozenset().union(*named)))
        return self.narrowed(
            VectorFilter(as_of=self.moment, include_historical=self.moment is None)
        )

    def narrowed(self, flt: VectorFilter) -> VectorFilter:
        """With what the question asks of a passage."""
        return replace(flt, **self.narrow)

    @property
    def models(self) -> dict[str, list[Base]]:
        """The bases of each model, in the order in which they were asked."""
        of: dict[str, list[Base]] = {}
        for base in self.bases:
            of.setdefault(self.embedders[base[0]], []).append(base)
        return of

    @property
    def times(self) -> dict[str, datetime | None]:
        """Parameters of the queries."""
        return {"moment": self.moment, "known": self.known}

    @property
    def dates(self) -> dict[str, datetime | None]:
        """Between which the validity begins that lets a passage pass."""
        return {"dated_from": self.fit.dated_from, "dated_until": self.fit.dated_until}

    @property
    def named(self) -> list[str]:
        """The bases as the queries name them."""
        return [f"{project} {generation}" for project, generation in self.bases]


class Scopes:
    """Opens scopes."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._sql, self._clock = queries("services.search", "queries"), clock
        self._deep: dict[str, tuple[float, bool]] = {}

    async def open(
        self, connection: Any, request: QueryRequest, documents: Iterable[str] = ()
    ) -> Scope:
        """The state that `connection` (a pool, or a transaction with a snapshot) reads now.

        `documents`: the vectors are told exactly which of their versions are valid. No bases: none
        of the projects has an index.

        Raises:
            Refusal: `invalid-request`: there is no such type of file.
        """
        projects, deep, fit = list(request.bases), list[str](), fit_of(request)
        if not fit and not request.include_historical and request.recorded_as_of is None:
            deep = [p for p in projects if await self._is_deep(connection, p)]
        moment = moment_of(
            request.as_of,
            include_historical=request.include_historical,
            recorded_as_of=request.recorded_as_of,
            now=datetime.now(UTC),
        )
        which: dict[str, Any] = {"projects": projects, "moment": moment, "deep": deep}
        rows = [r async for r in self._sql.opening(connection, **which, limit=FEW + 1)]
        bases = tuple((r["project"], r["generation"]) for r in rows if r["generation"] is not None)
        embedders = {r["project"]: r["embedder"] for r in rows if r["generation"] is not None}
        scope = Scope(
            bases,
            embedders,
            moment,
            request.recorded_as_of,
            rows[0]["position"],
            fit=fit,
            narrow=_narrow(request),
        )
        named = list(documents)
        exact: dict[str, dict[str, bool]] = defaultdict(dict)
        if named or any(r["unsettled"] for r in rows):
            which = {"projects": projects, "documents": named}
            async for r in self._sql.exactly(connection, **which, **scope.times):
                exact[r["project"]][r["version_id"]] = r["valid"]
        filters: dict[str, VectorFilter] = {}
        sifted: set[str] = set()
        valid = {r["project"]: r["valid"] for r in rows}
        for project, _ in bases:
            made = _only(valid[project])
            if made is None and fit:
                made = await self._fitting(connection, scope, project)
                if made is None:  # too many: what is valid is found first, and sifted
                    sifted.add(project)
            if made is None:
                made = await self._filter(connection, scope, project, exact[project])
            filters[project] = scope.narrowed(made or VectorFilter(include_historical=True))
            if made is None:
                sifted.add(project)
        return replace(scope, filters=filters, sifted=frozenset(sifted))

    async def sift(
        self, connection: Any, scope: Scope, version_ids: Iterable[str], *, exact: bool
    ) -> frozenset[str]:
        """Those versions that fit the question and are valid in the scope. Not `exact`: what is
        valid may change before Postgres has its last word, so that is left to it; what was known
        in the past does not change."""
        which: dict[str, Any] = {"version_ids": list(version_ids), **scope.times}
        which |= {"exact": exact or scope.known is not None, **scope.fit.parameters}
        return frozenset([r["version_id"] async for r in self._sql.sifted(connection, **which)])

    async def _fitting(self, connection: Any, scope: Scope, project: str) -> VectorFilter | None:
        """The versions that fit and are valid; None: they are too many to name."""
        which: dict[str, Any] = {"project": project, **scope.times, **scope.fit.parameters}
        rows = self._sql.fitting(connection, **which, limit=FEW + 1)
        return _only([r["version_id"] async for r in rows])

    async def _filter(
        self, connection: Any, scope: Scope, project: str, exact: dict[str, bool]
    ) -> VectorFilter | None:
        """What lets all valid versions pass and no others; None: it would be too long."""
        words = dict(exact)
        if scope.known is not None:
            which = {"project": project, "limit": FEW + 1, **scope.times}
            others = [r["version_id"] async for r in self._sql.others(connection, **which)]
            if len(others) > FEW:
                rows = self._sql.known_versions(connection, **which)
                return _only([r["version_id"] async for r in rows])
            rows = self._sql.judged(connection, version_ids=others, **scope.times)
            words = {
                r["version_id"]: r["valid"] async for r in rows if r["valid"] != r["now"]
            } | words
        return replace(
            scope.filter,
            also=frozenset(v for v, valid in words.items() if valid),
            without=frozenset(v for v, valid in words.items() if not valid),
        )

    async def _is_deep(self, connection: Any, project: str) -> bool:
        """Are few of many versions valid? Counted every ten minutes."""
        at, deep = self._deep.get(project, (-KEEP_S, False))
        if self._clock() - at < KEEP_S:
            return deep
        windows = await self._sql.windows(connection, project=project, limit=FEW * DEEP)
        deep = windows >= LEAST
        if deep:
            now = {"moment": datetime.now(UTC), "limit": FEW + 1}
            valid = await self._sql.count_valid(connection, project=project, **now)
            deep = bool(valid <= FEW and valid * DEEP <= windows)
        self._deep[project] = (self._clock(), deep)
        return deep


def _only(versions: list[str] | None) -> VectorFilter | None:
    """These and no others; None: nobody named any, or they are too many."""
    if versions is None or len(versions) > FEW:
        return None
    return _named(frozenset(versions))


def _named(versions: frozenset[str]) -> VectorFilter:
    return VectorFilter(include_historical=True, versions=versions)


def fit_of(request: QueryRequest) -> Fit:
    """What a question asks of versions.

    Raises:
        Refusal: `invalid-request`: there is no such type of file.
    """
    types = set[str]()
    for number, name in enumerate(request.types):
        try:
            types |= types_of(name)
        except ValueError as error:
            raise Refusal("invalid-request", f"types.{number}: {error}") from error
    return Fit(
        media_types=frozenset(types),
        tags=frozenset(f"tag:{tag}" for tag in request.tags),
        classes=frozenset(f"class:{name}" for name in request.classes),
        received_from=request.received_from,
        received_until=request.received_until,
        dated_from=request.dated_from,
        dated_until=request.dated_until,
    )


def _narrow(request: QueryRequest) -> dict[str, Any]:
    """What a question asks of passages, as vectors and words are filtered by it."""
    return {
        "languages": frozenset(request.languages),
        "documents": frozenset(request.documents),
        "heading_prefix": request.heading_prefix,
    }
