"""Documents with several versions: the real handlers settle their lines, step by step."""

import hashlib
from datetime import datetime
from typing import Any

from contracts.events import (
    Chunked,
    DocumentReceived,
    Event,
    Indexed,
    Reinstated,
    ScanVerdict,
    Superseded,
)
from contracts.query import QueryReply, QueryRequest
from kernel.keyword_index import KeywordIndex
from kernel.log import Log
from kernel.testing import first, received
from kernel.vectors import VectorIndex
from services.indexer.handlers import on_chunked, on_scan_verdict
from services.indexer.index import Index
from services.ingest.domain import reinstate
from services.ingest.handlers import on_indexed
from services.ingest.lines import load_line
from services.search.engine import Engine
from services.search.projection import Projection
from tests.integration.test_index import META, World


def id_of(*parts: str) -> str:
    """An id that follows from its parts."""
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:32]


class Lines(World):
    """Nothing happens by itself: a test says when the projection folds and the vectors learn."""

    def __init__(self, log: Log, vectors: VectorIndex | None = None) -> None:
        super().__init__(log)
        if vectors is not None:
            self.vectors = vectors  # type: ignore[assignment]
            self.index = Index(log, self.blobs, self.embedder, vectors)  # type: ignore[arg-type]
        self.index.patience = 0
        self.projection = Projection(log, self.blobs)  # type: ignore[arg-type]

    async def start(self) -> None:
        await self.projection._sql.start(self.log.pool)

    async def fold(self) -> None:
        """The projection is where the log is."""
        while await self.projection.step():
            pass

    async def receive(
        self, document: str, text: str, valid_from: datetime, project: str = "default"
    ) -> DocumentReceived:
        """The receipt of a version."""
        receipt = received(
            document,
            project=project,
            document_id=id_of(project, document),
            version_id=id_of(project, document, text),
            source_id=hashlib.sha256(text.encode()).hexdigest(),
            source_key=document,
            valid_from=valid_from,
        )
        await self.log.append([first(receipt)])
        return receipt

    async def cut_of(self, receipt: DocumentReceived, text: str) -> Chunked:
        """Its text is cleared and cut."""
        fields: Any = {
            "subject": "converted", "text_sha256": await self.blobs.put(text.encode()),
            "meta_sha256": await self.blobs.put(META.to_bytes()), "verdict": "clean", "score": 0,
            "ruleset": "r",
        }  # fmt: skip
        verdict = ScanVerdict(**receipt.ids, **fields)
        await self.log.append([first(verdict)])
        (chunked,) = await on_scan_verdict(
            verdict, cut_options=self.cut, index=self.index, **self.deps
        )
        assert isinstance(chunked, Chunked)
        await self.log.append([first(chunked)])
        return chunked

    async def put(
        self, document: str, text: str, valid_from: datetime, project: str = "default"
    ) -> Indexed:
        """A version whose passages are in both legs; its document's line is not settled yet."""
        receipt = await self.receive(document, text, valid_from, project)
        chunked = await self.cut_of(receipt, text)
        (done,) = await on_chunked(chunked, index=self.index, **self.deps)
        assert isinstance(done, Indexed)
        await self.log.append([first(done)])
        return done

    async def settle(self, indexed: Indexed) -> Superseded | None:
        """What ingest makes of it: the new line in the log, if there is one."""
        for event in await on_indexed(indexed, log=self.log):
            await self.log.append([first(event)])
            assert isinstance(event, Superseded)
            return event
        return None

    async def back(self, event: Event, valid_from: datetime) -> Reinstated:
        """Content returns to the version of `event`."""
        line = await load_line(self.log, event.document_id)
        returned = reinstate(line, line.received[event.version_id], valid_from)
        await self.log.append([first(returned)])
        return returned

    async def all_of(self, *steps: Event | None) -> None:
        """Everybody has worked on what was said."""
        await self.fold()
        for event in steps:
            if event is not None:
                await self.index.revalidate(event.project, event.document_id)

    async def load(
        self, document: str, text: str, valid_from: datetime, project: str = "default"
    ) -> Indexed:
        """A version, and everything that follows from it."""
        done = await self.put(document, text, valid_from, project)
        await self.all_of(await self.settle(done))
        return done

    async def ask(self, query: str, leg: str = "fused", **more: Any) -> QueryReply:
        """The answer by one leg alone, or by both."""
        request = QueryRequest.model_validate({"query": query, "top_k": 50, **more})
        return await one_leg(self, leg).query(request)

    async def texts(self, query: str, leg: str = "fused", **more: Any) -> list[str]:
        """The last line of each passage that is found, sorted."""
        reply = await self.ask(query, leg, **more)
        return sorted(hit.text.splitlines()[-2] for hit in reply.results)


class _NoVectors:
    async def search(self, *_: Any) -> list[Any]:
        return []


class _NoWords(KeywordIndex):
    async def search(self, *_: Any, **__: Any) -> list[Any]:
        return []


LEGS = ("dense", "keyword", "fused")


def one_leg(world: Lines, leg: str) -> Engine:
    """An engine of which only one leg finds anything."""
    vectors: Any = _NoVectors() if leg == "keyword" else world.vectors
    engine = Engine(world.log, world.projection, world.embedder, vectors, wait_s=0)
    if leg == "dense":
        engine._keywords = _NoWords(world.log.pool)
    return engine
