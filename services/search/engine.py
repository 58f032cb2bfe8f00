"""A question through both legs, fused, checked against validity, fenced."""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from contracts.http import Hit, QueryReply, QueryRequest
from kernel.db import queries
from kernel.embedder import Embedder
from kernel.fence import fence, fence_name, visible
from kernel.keyword_index import KeywordIndex
from kernel.keywords import Mode, query_terms
from kernel.log import Log
from kernel.telemetry import QUERY_SECONDS
from kernel.vectors import VectorFilter, VectorIndex, collection_name
from services.search.domain import Fused, moment_of, rrf
from services.search.projection import Projection
from services.search.rerank import Reranker, by_reading

CANDIDATES = 50
"""Passages that each leg brings to the fusion."""
Key = tuple[str, str]
"""(version_id, chunk_id)"""


@dataclass(frozen=True)
class Scope:
    """What a question may see: one generation of one project, at one moment (None: any)."""

    project: str
    generation: int
    moment: datetime | None

    @property
    def filter(self) -> VectorFilter:
        """For both legs."""
        return VectorFilter(as_of=self.moment, include_historical=self.moment is None)


@dataclass(frozen=True)
class Candidate:
    """A passage that both legs brought and Postgres confirmed."""

    fused: Fused[Key]
    row: Any
    rerank_score: float | None = None


class Engine:
    """Answers `QueryRequest`s."""

    def __init__(
        self,
        event_log: Log,
        projection: Projection,
        embedder: Embedder,
        vectors: VectorIndex,
        *,
        mode: Mode = "or",
        reranker: Reranker | None = None,
        rerank_top: int = 10,
    ) -> None:
        self._pool = event_log.pool
        self._projection = projection
        self._embedder, self._vectors = embedder, vectors
        self._sql = queries("services.search", "queries")
        self._keywords = KeywordIndex(event_log.pool)
        self._mode: Mode = mode
        self._reranker, self._rerank_top = reranker, rerank_top

    async def query(self, request: QueryRequest) -> QueryReply:
        """Passages for a question, best first. An unknown project has none."""
        position = await self._projection.position()
        generation = await self._sql.active(self._pool, project=request.project)
        candidates: list[Candidate] = []
        if generation is not None:
            moment = moment_of(
                request.as_of,
                include_historical=request.include_historical,
                now=datetime.now(UTC),
            )
            candidates = await self._search(request, Scope(request.project, generation, moment))
        candidates, skipped = await self._reranked(request, candidates)
        reranked = self._reranker is not None and skipped is None and bool(candidates)
        shown = candidates[: request.top_k]
        name = fence_name(c.row["text"] for c in shown)
        return QueryReply(
            results=[_hit(c, request.project, name) for c in shown],
            reranked=reranked,
            score_kind="rerank" if reranked else "rrf",
            position=position,
            rerank_skipped=skipped,
            fence=name,
        )

    async def _search(self, request: QueryRequest, scope: Scope) -> "list[Candidate]":
        depth = max(CANDIDATES, request.top_k)
        dense, keyword = await asyncio.gather(
            self._dense(request.query, scope, depth), self._keyword(request.query, scope, depth)
        )
        fused = rrf(dense, keyword)
        with QUERY_SECONDS.labels("passages").time():
            rows = await self._passages([f.key for f in fused], scope)
        return [Candidate(f, rows[f.key]) for f in fused if f.key in rows]

    async def _reranked(
        self, request: QueryRequest, candidates: "list[Candidate]"
    ) -> "tuple[list[Candidate], str | None]":
        """The first candidates by the cross-encoder; or as they were, with the reason."""
        if self._reranker is None or not candidates:
            return candidates, None
        texts = [c.row["text"] for c in candidates[: self._rerank_top]]
        with QUERY_SECONDS.labels("rerank").time():
            reading = await self._reranker.read(request.query, texts)
        if reading.skipped is not None:
            return candidates, reading.skipped
        # What was not read has no comparable score, so it is not among the answers.
        read = [
            replace(c, rerank_score=score)
            for c, score in by_reading(candidates, reading.scores)
            if score is not None and score >= (request.min_score or 0)
        ]
        return read, None

    async def _dense(self, query: str, scope: Scope, depth: int) -> list[Key]:
        with QUERY_SECONDS.labels("embed").time():
            vector = await self._embedder.embed_query(query)
        with QUERY_SECONDS.labels("dense").time():
            hits = await self._vectors.search(
                collection_name(scope.project, scope.generation), vector, scope.filter, depth
            )
        return [(h.version_id, h.chunk_id) for h in hits]

    async def _keyword(self, query: str, scope: Scope, depth: int) -> list[Key]:
        with QUERY_SECONDS.labels("keyword").time():
            hits = await self._keywords.search(
                scope.project,
                scope.generation,
                query_terms(query),
                scope.filter,
                limit=depth,
                mode=self._mode,
            )
        return [(h.version_id, h.chunk_id) for h in hits]

    async def _passages(self, keys: list[Key], scope: Scope) -> dict[Key, Any]:
        rows = self._sql.passages(
            self._pool,
            version_ids=[k[0] for k in keys],
            chunk_ids=[k[1] for k in keys],
            moment=scope.moment,
            project=scope.project,
            generation=scope.generation,
        )
        return {(r["version_id"], r["chunk_id"]): r async for r in rows}


def _hit(candidate: Candidate, project: str, name: str) -> Hit:
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
        project=project,
        title=visible(row["title"]),
        language=row["language"],
        valid_from=row["valid_from"],
        dense_rank=fused.dense_rank,
        keyword_rank=fused.keyword_rank,
    )
