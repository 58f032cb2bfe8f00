"""`POST /context`: a question's passages, composed for a model."""

import asyncio

from fastapi import FastAPI, Request, Response

from contracts.passages import ContextReply, ContextRequest, ContextSource
from contracts.query import Hit
from kernel.errors import Refusal
from kernel.fence import fence_name
from services.search.bodies import parsed
from services.search.context import Count, Passage, Source, Text, compose
from services.search.documents import Documents
from services.search.engine import Engine
from services.search.passages import Bytes, Passages, place, section_of, source_of
from services.search.position import HEADER as POSITION


class Contexts:
    """Answers `ContextRequest`s."""

    def __init__(
        self, engine: Engine, documents: Documents, passages: Passages, count: Count
    ) -> None:
        self._engine, self._documents, self._passages = engine, documents, passages
        self._count = count

    async def context(self, request: ContextRequest) -> ContextReply:
        """Sources for a question. An unknown project has none.

        Raises:
            Refusal, Behind: those of `Engine.query`.
        """
        reply = await self._engine.query(request)
        texts: dict[str, Text | None] = {}
        found: list[Passage] = []
        gone = 0
        for hit in reply.results:
            if hit.version_id not in texts:
                texts[hit.version_id] = await self._text(hit)
            text = texts[hit.version_id]
            if text is None:
                gone += 1
            else:
                found.append(await self._passage(len(found), hit, text, request))
        name = fence_name(p.hit.text for p in found)
        composed = await asyncio.to_thread(
            compose, found, request.budget, self._count, name, reading=request.order == "reading"
        )
        return ContextReply(
            context=composed.context,
            sources=[_told(n, s) for n, s in enumerate(composed.sources, 1)],
            tokens=composed.tokens,
            budget=request.budget,
            left_out=composed.left_out,
            gone=gone,
            fence=name,
            reranked=reply.reranked,
            score_kind=reply.score_kind,
            rerank_skipped=reply.rerank_skipped,
            answerable=reply.answerable,
            position=reply.position,
        )

    async def _text(self, hit: Hit) -> Text | None:
        """None: it was erased, or held back, since it was found."""
        try:
            version, body = await self._documents.body(hit.version_id)
        except Refusal as refusal:
            if refusal.code in ("no-body", "unknown-document"):
                return None
            raise
        return Text(version, body, {})

    async def _passage(self, rank: int, hit: Hit, text: Text, request: ContextRequest) -> Passage:
        own = Bytes(hit.byte_start, hit.byte_end)
        wanted = [own]
        rows = await self._passages.near(
            text.version, text.body, own, request.neighbours, hit.chunk_id
        )
        text.leads.update((row.where.start, row.lead) for row in rows if row.lead)
        if request.neighbours and rows:
            start = min(row.where.start for row in rows)
            wanted.append(Bytes(start, max(row.where.end for row in rows)))
        if request.section:
            found = await asyncio.to_thread(lambda: text.sections)
            whole = place(found, section_of(found, own))
            last = wanted[-1]
            wanted.append(Bytes(min(whole.byte_start, last.start), max(whole.byte_end, last.end)))
        return Passage(rank, hit, text, tuple(dict.fromkeys(reversed(wanted))))


def _told(number: int, source: Source) -> ContextSource:
    hit, version = source.passages[0].hit, source.text.version
    return ContextSource(
        number=number,
        document_id=version.document_id,
        version_id=version.version_id,
        source_id=version.source_id,
        project=version.project,
        source=source_of(version),
        title=hit.title,
        heading_path=hit.heading_path,
        byte_start=source.where.start,
        byte_end=source.where.end,
        valid_from=hit.valid_from,
        valid_until=hit.valid_until,
        chunk_ids=list(dict.fromkeys(p.hit.chunk_id for p in source.passages)),
        score=hit.score,
        cut=source.cut,
    )


def add_context_route(app: FastAPI, contexts: Contexts) -> None:
    """`POST /context`."""

    @app.post("/context", response_model=ContextReply)
    async def post_context(request: Request, response: Response) -> ContextReply:
        reply = await contexts.context(await parsed(ContextRequest, request))
        response.headers[POSITION] = str(reply.position)
        return reply
