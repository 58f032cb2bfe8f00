"""A question through both legs, fused, checked against validity, fenced."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from contracts.query import Hit, QueryReply, QueryRequest
from kernel.db import queries
from kernel.embedder import Embedder, Embedders
from kernel.embedder.registry import UnknownEmbedder
from kernel.errors import Refusal
from kernel.fence import fence, fence_name, visible
from kernel.keyword_index import Base, KeywordIndex
from kernel.keywords import KeywordQuery, Mode, query_terms
from kernel.log import Log
from kernel.telemetry import QUERY_SECONDS
from kernel.vectors import VectorHit, VectorIndex, collection_name
from services.search.domain import Fused, rrf
from services.search.position import Positions
from services.search.projection import Projection
from services.search.rerank import Reranker, by_reading
from services.search.scope import Scope, Scopes

CANDIDATES = 50
"""Passages that each leg brings to the fusion."""
MORE = 10
"""So many times more passages are looked at where what the vectors bring is sifted."""
ROUNDS = 8
"""A question is asked again while Postgres refuses candidates of further documents."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a leg brought."""

    point_id: UUID
    version_id: str


@dataclass(frozen=True)
class Candidate:
    """A passage that the legs brought and Postgres confirmed."""

    fused: Fused[UUID]
    row: Any
    rerank_score: float | None = None


@dataclass(frozen=True)
class Legs:
    """What both legs brought, best first, and the rows that Postgres confirmed, by point."""

    dense: list[Found]
    keyword: list[Found]
    rows: dict[UUID, Any]

    @property
    def refused(self) -> list[str]:
        """Versions with a passage that is not valid, or not there."""
        every = {f.point_id: f.version_id for f in (*self.dense, *self.keyword)}
        return sorted({version for point, version in every.items() if point not in self.rows})

    def crowded(self, depth: int) -> bool:
        """Did what is not valid take most of the places in the dense leg?"""
        confirmed = sum(f.point_id in self.rows for f in self.dense)
        return len(self.dense) == depth and confirmed < depth // 2

    def candidates(self) -> list[Candidate]:
        """Fused; a rank is one among those that are valid."""
        dense = [f.point_id for f in self.dense if f.point_id in self.rows]
        keyword = [f.point_id for f in self.keyword if f.point_id in self.rows]
        return [Candidate(f, self.rows[f.key]) for f in rrf(dense, keyword)]


class Question:
    """A question and what is made of it once, whichever leg or round asks for it first."""

    def __init__(self, request: QueryRequest) -> None:
        self.request = request
        self.terms: KeywordQuery = query_terms(request.query)
        self.depth = max(CANDIDATES, request.top_k)
        self._vectors: dict[str, NDArray[np.float32]] = {}

    async def vector(self, embedder: Embedder) -> NDArray[np.float32]:
        """The embedded question."""
        if embedder.model_id not in self._vectors:
            with QUERY_SECONDS.labels("embed").time():
                embedded = await embedder.embed_query(self.request.query)
            self._vectors[embedder.model_id] = embedded
        return self._vectors[embedder.model_id]


class Engine:
    """Answers `QueryRequest`s."""

    def __init__(
        self,
        event_log: Log,
        projection: Projection,
        embedders: Embedder | Embedders,
        vectors: VectorIndex,
        *,
        mode: Mode = "or",
        wait_s: float = 5.0,
        reranker: Reranker | None = None,
        rerank_top: int = 10,
    ) -> None:
        self._pool = event_log.pool
        self.positions = Positions(event_log, projection, wait_s=wait_s)
        self._embedders = embedders if isinstance(embedders, Embedders) else Embedders(embedders)
        self._vectors = vectors
        self._sql, self._scopes = queries("services.search", "queries"), Scopes()
        self._keywords = KeywordIndex(event_log.pool)
        self._mode: Mode = mode
        self._reranker, self._rerank_top = reranker, rerank_top

    async def query(self, request: QueryRequest) -> QueryReply:
        """Passages for a question, best first. An unknown project has none.

        Raises:
            Refusal: `embedders-differ`, `embedder-missing`.
            Behind: `position-ahead`, `not-reached`: the log, or what is folded of it, does not go
                as far as `min_position`.
        """
        await self.positions.reach(request.min_position)
        scope, candidates = await self._search(Question(request))
        candidates, skipped = await self._reranked(request, candidates)
        reranked = self._reranker is not None and skipped is None and bool(candidates)
        shown = candidates[: request.top_k]
        name = fence_name(c.row["text"] for c in shown)
        return QueryReply(
            results=[_hit(c, name) for c in shown],
            reranked=reranked,
            score_kind="rerank" if reranked else "rrf",
            position=scope.position,
            rerank_skipped=skipped,
            fence=name,
        )

    async def _search(self, question: Question) -> tuple[Scope, list[Candidate]]:
        """One look at the newest state. Further ones, each at one snapshot, while it may be that a
        version took the place of one that was found in the middle of the look."""
        scope = await self._scopes.open(self._pool, question.request)
        legs = await self._legs(question, scope)
        documents: set[str] = set()
        for _ in range(ROUNDS):
            again = await self._doubtful(legs, question.depth) - documents
            if not again:
                break
            documents |= again
            async with self._snapshot() as connection:
                scope = await self._scopes.open(connection, question.request, documents)
                legs = await self._legs(question, scope, connection)
        return scope, legs.candidates()

    async def _doubtful(self, legs: Legs, depth: int) -> set[str]:
        """Documents of refused candidates, where the refusal may have cost a valid passage."""
        if not legs.refused:
            return set()
        rows = self._sql.refused_documents(self._pool, version_ids=legs.refused)
        documents = {r["document_id"]: r["lined"] async for r in rows}
        crowded = legs.crowded(depth)
        return {document for document, lined in documents.items() if lined or crowded}

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[Any]:
        async with (
            self._pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            yield connection

    async def _legs(self, question: Question, scope: Scope, connection: Any = None) -> Legs:
        if not scope.bases:
            return Legs([], [], {})
        if connection is None:
            dense, keyword = await asyncio.gather(
                self._dense(question, scope, self._pool), self._keyword(question, scope, None)
            )
        else:  # one after the other: a second connection might never be free
            dense = await self._dense(question, scope, connection)
            keyword = await self._keyword(question, scope, connection)
        points = list(dict.fromkeys(f.point_id for f in (*dense, *keyword)))
        with QUERY_SECONDS.labels("passages").time():
            rows = self._sql.passages(
                connection or self._pool, points=points, bases=scope.named, **scope.times
            )
            return Legs(dense, keyword, {r["point_id"]: r async for r in rows})

    async def _dense(self, question: Question, scope: Scope, connection: Any) -> list[Found]:
        vector = await question.vector(await self._embedder(scope))
        with QUERY_SECONDS.labels("dense").time():
            looks = [
                self._nearest(vector, scope, base, question.depth, connection)
                for base in scope.bases
            ]
            if scope.sifted:  # on one connection
                found = [await look for look in looks]
            else:
                found = await asyncio.gather(*looks)
        hits = [hit for hits in found for hit in hits]
        if len(found) > 1:  # one model: cosines of different projects compare
            hits.sort(key=lambda h: (-h.score, h.point_id))
        return [Found(h.point_id, h.version_id) for h in hits[: question.depth]]

    async def _nearest(
        self, vector: NDArray[np.float32], scope: Scope, base: Base, depth: int, connection: Any
    ) -> list[VectorHit]:
        """The nearest in one project, best first. Where the filter lets too much pass, more and
        more of them are looked at, until enough are valid or there are no others."""
        flt, collection = scope.filters[base[0]], collection_name(*base)
        if base[0] not in scope.sifted:
            return await self._vectors.search(collection, vector, flt, depth)
        limit = depth * MORE
        while True:
            hits = await self._vectors.search(collection, vector, flt, limit)
            valid = await self._scopes.sift(connection, scope, {h.version_id for h in hits})
            kept = [h for h in hits if h.version_id in valid]
            if len(kept) >= depth or len(hits) < limit:
                return kept[:depth]
            limit *= MORE

    async def _embedder(self, scope: Scope) -> Embedder:
        try:
            return await self._embedders.of(scope.embedder)
        except UnknownEmbedder as error:
            raise Refusal("embedder-missing", str(error), status=503) from error

    async def _keyword(self, question: Question, scope: Scope, connection: Any) -> list[Found]:
        with QUERY_SECONDS.labels("keyword").time():
            hits = await self._keywords.search(
                scope.bases,
                question.terms,
                scope.filter,
                limit=question.depth,
                mode=self._mode,
                known_at=scope.known,
                connection=connection,
            )
        return [Found(h.point_id, h.version_id) for h in hits]

    async def _reranked(
        self, request: QueryRequest, candidates: Sequence[Candidate]
    ) -> tuple[list[Candidate], str | None]:
        """The first candidates by the cross-encoder; or as they were, with the reason."""
        if self._reranker is None or not candidates:
            return list(candidates), None
        texts = [c.row["text"] for c in candidates[: self._rerank_top]]
        with QUERY_SECONDS.labels("rerank").time():
            reading = await self._reranker.read(request.query, texts)
        if reading.skipped is not None:
            return list(candidates), reading.skipped
        # What was not read has no comparable score, so it is not among the answers.
        read = [
            replace(c, rerank_score=score)
            for c, score in by_reading(candidates, reading.scores)
            if score is not None and score >= (request.min_score or 0)
        ]
        return read, None


def _hit(candidate: Candidate, name: str) -> Hit:
    fused, row, rerank_score = candidate.fused, candidate.row, candidate.rerank_score
    return Hit(
        chunk_id=row["chunk_id"],
        source_id=row["source_id"],
        heading_path=[visible(h) for h in row["heading_path"]],
        byte_start=row["byte_start"],
        byte_end=row["byte_end"],
        valid_until=row["valid_until"],
        text=fence(row["text"], name),
        score=fused.score if rerank_score is None else rerank_score,
        rrf_score=fused.score,
        rerank_score=rerank_score,
        document_id=row["document_id"],
        version_id=row["version_id"],
        project=row["project"],
        title=visible(row["title"]),
        language=row["language"],
        valid_from=row["valid_from"],
        dense_rank=fused.dense_rank,
        keyword_rank=fused.keyword_rank,
    )
