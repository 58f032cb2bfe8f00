"""A question through both legs, fused, checked against validity, fenced."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from contracts.query import Hit, QueryReply, QueryRequest, Twin
from kernel.db import queries
from kernel.embedder import Embedder, Embedders
from kernel.embedder.registry import UnknownEmbedder
from kernel.errors import Refusal
from kernel.fence import fence, fence_name, visible
from kernel.keyword_index import Base, KeywordIndex
from kernel.keywords import Mode
from kernel.log import Log
from kernel.vectors import VectorFilter, VectorHit, VectorIndex, collection_name
from services.search.domain import Fusion
from services.search.explain import explained, explained_hit, words_held
from services.search.legs import Candidate, Found, Legs, nearest
from services.search.position import Positions
from services.search.projection import Projection
from services.search.question import Question
from services.search.rerank import Reranker, by_reading
from services.search.scope import Scope, Scopes
from services.search.twins import fold_twins

PASSAGES = 100_000
"""More than a version has."""
MORE = 10
"""So many times more passages are looked at where what the vectors bring is sifted."""
DEEPER, DEEPEST = 4, 800
"""So many times more passages are looked at where twins leave too few; and a bound to that."""
ROUNDS = 8
"""A question is asked again while Postgres refuses candidates of further documents."""


@dataclass(frozen=True)
class Look:
    """The last look at a question. `shown`: candidates without the twins of others."""

    scope: Scope
    legs: Legs
    candidates: list[Candidate]
    shown: list[Candidate]


@dataclass(frozen=True)
class Answer:
    """What a question comes to, best first. `skipped`: why nothing was read again; `read`: how many
    of `look.shown` were."""

    look: Look
    candidates: list[Candidate]
    skipped: str | None
    read: int

    @property
    def reranked(self) -> bool:
        """Is the order that of the reranker?"""
        return self.read > 0 and bool(self.candidates)


class Engine:
    """Answers `QueryRequest`s."""

    def __init__(  # noqa: PLR0913 - its parts and its settings, each by name
        self,
        event_log: Log,
        projection: Projection,
        embedders: Embedder | Embedders,
        vectors: VectorIndex,
        *,
        mode: Mode = "or",
        fusion: Fusion = "rrf",
        wait_s: float = 5.0,
        within_s: float = 30.0,
        reranker: Reranker | None = None,
        rerank_top: int = 10,
    ) -> None:
        """`wait_s`: longest wait for a position; `within_s`: longest work at a question."""
        self._pool, self._within_s = event_log.pool, within_s
        self.positions = Positions(event_log, projection, wait_s=wait_s)
        self._embedders = embedders if isinstance(embedders, Embedders) else Embedders(embedders)
        self._vectors = vectors
        self._sql, self._scopes = queries("services.search", "queries"), Scopes()
        self._keywords = KeywordIndex(event_log.pool)
        self._mode: Mode = mode
        self._fusion: Fusion = fusion
        self._reranker, self._rerank_top = reranker, rerank_top

    async def query(self, request: QueryRequest) -> QueryReply:
        """Passages for a question, best first. An unknown project has none.

        Raises:
            Refusal: `embedder-missing`, `invalid-request`; `too-slow`: no answer in time.
            Behind: `position-ahead`, `not-reached`: the log, or what is folded of it, does not go
                as far as `min_position`.
        """
        await self.positions.reach(request.min_position)
        async with self.in_time():
            return await self._answer(request)

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """Work at a question, as long as it may take.

        Raises:
            Refusal: `too-slow`.
        """
        try:
            async with asyncio.timeout(self._within_s) as clock:
                yield
        except TimeoutError:
            if not clock.expired():  # a store's own
                raise
            reason = f"no answer within {self._within_s:g} s: ask again later, or for fewer words"
            raise Refusal("too-slow", reason, status=504) from None

    async def _answer(self, request: QueryRequest) -> QueryReply:
        question = Question(request)
        answer = await self.answer(question)
        shown = answer.candidates[: request.top_k]
        name = fence_name(c.row["text"] for c in shown)
        reply = QueryReply(
            results=[_hit(c, name) for c in shown],
            reranked=answer.reranked,
            score_kind="rerank" if answer.reranked else self._fusion,
            position=answer.look.scope.position,
            rerank_skipped=answer.skipped,
            fence=name,
            answerable=answer.look.legs.answerable,
        )
        if not request.explain:
            return reply
        return await self._explained(reply, question, answer, shown)

    async def answer(self, question: Question) -> Answer:
        """All that may be shown, best first."""
        with question.step("all"):
            look = await self._deep_enough(question)
            candidates, skipped = await self._reranked(question, look.shown)
        read = self._reranker is not None and skipped is None and bool(look.shown)
        return Answer(look, candidates, skipped, min(self._rerank_top, len(look.shown)) * read)

    async def deep(self, question: Question, scope: Scope, depth: int) -> Legs:
        """What both legs bring if they may bring so many."""
        deep = Question(question.request)
        deep.depth = depth
        return await self._legs(deep, scope)

    async def nearness(self, question: Question, scope: Scope, row: Any) -> float | None:
        """The cosine of a passage, wherever it stands; None: the vectors do not have it."""
        vector = await question.vector(await self._embedder(scope.embedders[row["project"]]))
        collection = collection_name(row["project"], row["generation"])
        flt = VectorFilter(include_historical=True, versions=frozenset([row["version_id"]]))
        hits = await self._vectors.search(collection, vector, flt, PASSAGES)
        return next((h.score for h in hits if h.point_id == row["point_id"]), None)

    async def words_of(
        self, question: Question, scope: Scope, points: Sequence[UUID]
    ) -> dict[UUID, list[str]]:
        """Which words of a question passages hold."""
        which = {"points": list(points), "bases": scope.named}
        rows = self._sql.held_terms(self._pool, terms=question.terms.terms, **which)
        return {r["point_id"]: words_held(question.terms, r["terms"]) async for r in rows}

    async def _explained(
        self, reply: QueryReply, question: Question, answer: Answer, shown: Sequence[Candidate]
    ) -> QueryReply:
        look = answer.look
        places = {c.fused.key: place for place, c in enumerate(look.candidates, 1)}
        held = await self.words_of(question, look.scope, [c.fused.key for c in shown])
        notes = [explained_hit(c, look.scope, look.legs, places, held) for c in shown]
        whole = explained(
            question,
            look.scope,
            look.legs,
            self._mode,
            candidates=len(look.candidates),
            twins=len(look.candidates) - len(look.shown),
            reranked=answer.read if answer.reranked else 0,
        )
        noted = zip(reply.results, notes, strict=True)
        hits = [hit.model_copy(update={"explain": note}) for hit, note in noted]
        return reply.model_copy(update={"results": hits, "explain": whole})

    async def _deep_enough(self, question: Question) -> Look:
        """A look at enough passages, where twins took the places of others."""
        while True:
            look = await self._search(question)
            folded = len(look.shown) < min(question.request.top_k, len(look.candidates))
            if not (folded and look.legs.full(question.depth) and question.depth < DEEPEST):
                return look
            question.depth *= DEEPER

    async def _search(self, question: Question) -> Look:
        """One look at the newest state. Further ones, each at one snapshot, while it may be that a
        version took the place of one that was found in the middle of the look."""
        question.rounds += 1
        with question.step("scope"):
            scope = await self._scopes.open(self._pool, question.request)
        legs = await self._legs(question, scope)
        documents: set[str] = set()
        for _ in range(ROUNDS):
            again = await self._doubtful(legs, question.depth) - documents
            if not again:
                break
            documents |= again
            question.rounds += 1
            async with self._snapshot() as connection:
                scope = await self._scopes.open(connection, question.request, documents)
                legs = await self._legs(question, scope, connection)
        candidates = shown = legs.candidates(self._fusion)
        if question.request.fold:
            with question.step("fold"):
                shown = fold_twins(candidates, max(question.request.top_k, self._rerank_top))
        return Look(scope, legs, candidates, shown)

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
            return Legs({}, [], {})
        if connection is None:
            dense, keyword = await asyncio.gather(
                self._dense(question, scope, self._pool), self._keyword(question, scope, None)
            )
        else:  # one after the other: a second connection might never be free
            dense = await self._dense(question, scope, connection)
            keyword = await self._keyword(question, scope, connection)
        brought = chain(*dense.values(), keyword)
        points = list(dict.fromkeys(f.point_id for f in brought))
        with question.step("passages"):
            rows = self._sql.passages(
                connection or self._pool,
                points=points,
                bases=scope.named,
                **scope.times,
                **scope.dates,
            )
            return Legs(dense, keyword, {r["point_id"]: r async for r in rows})

    async def _dense(
        self, question: Question, scope: Scope, connection: Any
    ) -> dict[str, list[Found]]:
        """Of each model. Of one model the cosines compare, whatever project they are from."""
        vectors = {m: await question.vector(await self._embedder(m)) for m in scope.models}
        with question.step("dense"):
            looks = [
                self._nearest(vectors[model], question, scope, base, connection)
                for model, bases in scope.models.items()
                for base in bases
            ]
            if scope.sifted:  # on one connection
                found = [await look for look in looks]
            else:
                found = await asyncio.gather(*looks)
        every = iter(found)
        return {
            model: nearest(chain(*islice(every, len(bases))), question.depth)
            for model, bases in scope.models.items()
        }

    async def _nearest(
        self,
        vector: NDArray[np.float32],
        question: Question,
        scope: Scope,
        base: Base,
        connection: Any,
    ) -> list[VectorHit]:
        """The nearest in one project, best first. Where the filter lets too much pass, more and
        more of them are looked at, until enough are valid or there are no others near enough."""
        flt, collection, depth = scope.filters[base[0]], collection_name(*base), question.depth
        if base[0] not in scope.sifted:
            return question.near(await self._vectors.search(collection, vector, flt, depth))
        limit, exact = depth * MORE, connection is not self._pool
        while True:
            hits = await self._vectors.search(collection, vector, flt, limit)
            near = question.near(hits)
            ids = {h.version_id for h in near}
            valid = await self._scopes.sift(connection, scope, ids, exact=exact)
            kept = [h for h in near if h.version_id in valid]
            if len(kept) >= depth or len(near) < limit:
                return kept[:depth]
            limit *= MORE

    async def _embedder(self, model_id: str) -> Embedder:
        try:
            return await self._embedders.of(model_id)
        except UnknownEmbedder as error:
            raise Refusal("embedder-missing", str(error), status=503) from error

    async def _keyword(self, question: Question, scope: Scope, connection: Any) -> list[Found]:
        with question.step("keyword"):
            hits = await self._keywords.search(
                scope.bases,
                question.terms,
                scope.filter,
                limit=question.depth,
                mode=self._mode,
                known_at=scope.known,
                fit=scope.fit,
                connection=connection,
            )
        return [Found.of(hit) for hit in hits]

    async def _reranked(
        self, question: Question, candidates: Sequence[Candidate]
    ) -> tuple[list[Candidate], str | None]:
        """The first candidates by the cross-encoder; or as they were, with the reason."""
        if self._reranker is None or not candidates:
            return list(candidates), None
        texts = [c.row["text"] for c in candidates[: self._rerank_top]]
        with question.step("rerank"):
            reading = await self._reranker.read(question.request.query, texts)
        if reading.skipped is not None:
            return list(candidates), reading.skipped
        # What was not read has no comparable score, so it is not among the answers.
        read = [
            replace(c, rerank_score=score)
            for c, score in by_reading(candidates, reading.scores)
            if score is not None and score >= (question.request.min_score or 0)
        ]
        return read, None


def _hit(candidate: Candidate, name: str) -> Hit:
    fused, row, rerank_score = candidate.fused, candidate.row, candidate.rerank_score
    by_legs = fused.score if fused.blend is None else fused.blend
    return Hit(
        chunk_id=row["chunk_id"],
        source_id=row["source_id"],
        heading_path=[visible(h) for h in row["heading_path"]],
        byte_start=row["byte_start"],
        byte_end=row["byte_end"],
        valid_until=row["valid_until"],
        text=fence(row["text"], name),
        score=by_legs if rerank_score is None else rerank_score,
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
        twins=[_twin(twin.row) for twin in candidate.twins],
    )


def _twin(row: Any) -> Twin:
    same = ("chunk_id", "source_id", "document_id", "version_id", "project", "byte_start",
            "byte_end", "valid_from", "valid_until")  # fmt: skip
    return Twin(
        **{name: row[name] for name in same},
        title=visible(row["title"]),
        heading_path=[visible(h) for h in row["heading_path"]],
    )
