"""A base of finished documents, made without a model: events, blobs and vectors that fit."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from contracts.artifacts import BodyMeta, Chunk, ChunkManifest, ParsedDocument, Place, Span, SpanMap
from contracts.envelope import Envelope
from contracts.events import (
    Chunked,
    Converted,
    DocumentReceived,
    Erased,
    Event,
    Fact,
    Indexed,
    Parsed,
    ScanVerdict,
)
from contracts.http import Accepted
from kernel.blobs import Blobs
from kernel.cache import EmbeddingCache
from kernel.db import pool
from kernel.erasure import Traces
from kernel.log import Log, Pending, reaction_id
from kernel.packed import texts_of
from services.indexer.summaries import EXTRACTIVE, summarise
from services.ingest.accept import Offer, accept
from services.ingest.domain import Identity
from services.ingest.handlers import on_indexed

MODEL = "test-model/8"


class SmallBase:
    """Documents as the services would leave them, ids of reactions included."""

    def __init__(self, log: Log, blobs: Blobs, identity: Identity) -> None:
        self.log, self.blobs, self.identity = log, blobs, identity
        self.cache = EmbeddingCache(log.pool)

    async def add(self, text: str, **offer: Any) -> Accepted:
        """A document of one passage, up to `Indexed` and `Superseded`."""
        accepted = await self.receive(text, **offer)
        cause = await self._last()
        await self._finish(cause, text)
        return accepted

    async def receive(self, text: str, **offer: Any) -> Accepted:
        """Only the receipt."""
        data = f"# Title\n\n{text}\n".encode()
        source_id = await self.blobs.put(data)
        given: dict[str, Any] = {"project": "default", "name": "право.md"} | offer
        made = Offer(source_id=source_id, media_type="text/markdown", size_bytes=len(data), **given)
        return await accept(made, self.log, self.identity)

    async def erase(self, accepted: Accepted) -> None:
        """A tombstone, and the bytes are gone: what the eraser does."""
        ids = accepted.model_dump(include={"project", "document_id", "version_id", "source_id"})
        streams = [f"document-{accepted.document_id}", f"version-{accepted.version_id}"]
        events = [e.event() for e in await self.log.streams(streams)]
        events = [e for e in events if e.version_id == accepted.version_id]
        erased = Erased(**ids, reason="request", scope="version", blobs=1)
        await self.log.append([Pending(erased, uuid4(), uuid4(), "test")])
        traces = Traces(self.log, self.blobs)
        names = await traces.names(events)
        await traces.delete(await traces.unused(names))

    async def _finish(self, cause: Envelope, text: str) -> None:
        received = cause.event()
        assert isinstance(received, DocumentReceived)
        ids, log = received.ids, self.log
        markdown = f"# Title\n\n{text}\n"
        meta = BodyMeta(title="Title", language="ru", media_type="text/markdown")
        length = len(markdown.encode())
        span = Span(byte_start=0, byte_end=length, place=Place(lines=(1, 3)))
        parsed = await self.blobs.put(
            ParsedDocument(markdown=markdown, meta=meta, spans=(span,)).to_bytes()
        )
        body = await self.blobs.put(f"{markdown}\n".encode())
        meta_sha = await self.blobs.put(meta.to_bytes())
        spans = await self.blobs.put(SpanMap(body_sha256=body, spans=(span,)).to_bytes())
        chunk = Chunk(
            chunk_id=f"{received.document_id}:title:0", heading_path=("Title",),
            byte_start=9, byte_end=length - 1, tokens=5, language="ru",
        )  # fmt: skip
        manifest = ChunkManifest(body_sha256=body, chunker="c", title="Title", chunks=(chunk,))
        cut = await self.blobs.put(manifest.to_bytes())
        made = summarise(f"{markdown}\n", body, title="Title", language="ru")
        summary = await self.blobs.put(made.to_bytes())
        texts = texts_of(manifest, f"{markdown}\n".encode())
        vector = np.frombuffer(body.encode()[:8], "u1").astype("<f4")[None]
        await self.cache.put(MODEL, texts, vector, received.version_id)

        def verdict(subject: Any, name: str, meta_name: str | None = None) -> ScanVerdict:
            return ScanVerdict(
                **ids, subject=subject, text_sha256=name, meta_sha256=meta_name, verdict="clean",
                score=0, ruleset="r",
            )  # fmt: skip

        steps: list[tuple[str, Event]] = [
            (
                "converter.on_document_received",
                Parsed(**ids, parsed_sha256=parsed, parser="p", language="ru"),
            ),
            ("scanner.on_parsed", verdict("parsed", parsed)),
            (
                "converter.on_scan_verdict",
                Converted(
                    **ids, body_sha256=body, meta_sha256=meta_sha, body_bytes=length + 1,
                    converter="c", language="ru", spans_sha256=spans,
                ),
            ),
            ("scanner.on_converted", verdict("converted", body, meta_sha)),
            (
                "indexer.on_scan_verdict",
                Chunked(
                    **ids, body_sha256=body, meta_sha256=meta_sha, chunks_sha256=cut,
                    chunk_count=1, chunker="c", summary_sha256=summary, summariser=EXTRACTIVE,
                ),
            ),
            (
                "indexer.on_chunked",
                Indexed(
                    **ids, body_sha256=body, chunks_sha256=cut, chunk_count=1, embedder=MODEL,
                    embedded=1, reused=0,
                ),
            ),
        ]  # fmt: skip
        for handler, event in steps:
            cause = await self._react(cause, handler, event)
        assert isinstance(event, Indexed)
        for settled in await on_indexed(event, log=log):
            await self._react(cause, "ingest.on_indexed", settled)

    async def _react(self, cause: Envelope, handler: str, event: Fact) -> Envelope:
        await self.log.append([
            Pending(
                event, reaction_id(cause.event_id, handler), cause.correlation_id,
                f"svc:{handler.partition('.')[0]}", causation_id=cause.event_id,
            )
        ])  # fmt: skip
        return await self._last()

    async def _last(self) -> Envelope:
        return (await self.log.read(await self.log.head() - 1))[0]


class Installation:
    """An installation: a database and a folder of blobs."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.dsn, self.folder = dsn, folder
        self.blobs = Blobs(str(folder))

    async def open(self) -> SmallBase:
        self.pool = await pool(self.dsn)
        log = Log(self.pool)
        return SmallBase(log, self.blobs, Identity(await log.identity_key()))

    async def close(self) -> None:
        self.pool.terminate()

    def contents(self) -> dict[str, bytes]:
        """Blobs by name."""
        files = sorted(p for p in self.folder.rglob("*") if p.is_file())
        return {p.name: p.read_bytes() for p in files}

    def holding(self, text: str) -> list[str]:
        """Names of the blobs that hold a text."""
        return [name for name, data in self.contents().items() if text.encode() in data]


def day(n: int) -> datetime:
    """A day of January."""
    return datetime(2025, 1, n, tzinfo=UTC)
