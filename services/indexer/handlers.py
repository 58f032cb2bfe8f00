"""A cleared body becomes passages, passages become searchable, validity follows the versions."""

import asyncio
from dataclasses import replace

from contracts.artifacts import BodyMeta
from contracts.events import (
    Chunked,
    Erased,
    Event,
    Failed,
    Indexed,
    Reinstated,
    Released,
    ScanVerdict,
    Superseded,
)
from kernel.blobs import Blobs, sha256
from kernel.errors import KbError
from kernel.log import Log
from kernel.projects import project_settings
from services.indexer.chunker import CHUNKERS, Cut, cut, manifest
from services.indexer.index import Index


class NotCleared(KbError):
    """A text without a clean verdict was to be indexed: a bug or an attack, never an outcome."""


async def on_scan_verdict(
    event: ScanVerdict, *, blobs: Blobs, log: Log, cut_options: Cut
) -> list[Event]:
    """`Chunked` for a body that the second scan found clean."""
    if event.subject != "converted" or event.verdict != "clean":
        return []
    return await _chunk(event, blobs, log, cut_options)


async def on_released(event: Released, *, blobs: Blobs, log: Log, cut_options: Cut) -> list[Event]:
    """`Chunked` for a body that a person released."""
    if event.subject != "converted":
        return []
    return await _chunk(event, blobs, log, cut_options)


async def _chunk(
    event: ScanVerdict | Released, blobs: Blobs, log: Log, options: Cut
) -> list[Event]:
    body_sha256, meta_sha256 = event.text_sha256, event.meta_sha256 or ""
    body, meta = await cleared_body(event, body_sha256, meta_sha256, blobs, log)
    options = replace(options, chunking=(await project_settings(log, event.project)).chunking)
    chunks = await asyncio.to_thread(
        cut, body, meta.title, event.document_id, meta.language, options
    )
    if not chunks:
        return [_failed(event, "empty-text", "no text is left to index")]
    made = manifest(body_sha256, meta.title, chunks, options.chunking)
    chunks_sha256 = await blobs.put(made.to_bytes())
    return [
        Chunked(
            **event.ids,
            body_sha256=body_sha256,
            meta_sha256=meta_sha256,
            chunks_sha256=chunks_sha256,
            chunk_count=len(chunks),
            chunker=CHUNKERS[options.chunking],
        )
    ]


async def on_chunked(event: Chunked, *, blobs: Blobs, log: Log, index: Index) -> list[Event]:
    """`Indexed`: every passage is in both indexes, bytes checked, vectors from the cache or new."""
    await cleared_body(event, event.body_sha256, event.meta_sha256, blobs, log)
    received = await log.received(event)
    written = await index.write(event, received.valid_from)
    return [
        Indexed(
            **event.ids,
            body_sha256=event.body_sha256,
            chunks_sha256=event.chunks_sha256,
            chunk_count=event.chunk_count,
            embedder=index.embedder.model_id,
            embedded=written.embedded,
            reused=written.reused,
        )
    ]


async def on_superseded(event: Superseded, *, index: Index) -> list[Event]:
    """The vector payload of all versions of the document says what the log says now."""
    await index.revalidate(event.project, event.document_id)
    return []


async def on_reinstated(event: Reinstated, *, index: Index) -> list[Event]:
    """As for `Superseded`."""
    await index.revalidate(event.project, event.document_id)
    return []


async def on_erased(event: Erased, *, index: Index) -> list[Event]:
    """The version leaves both indexes, in every generation."""
    await index.erase(event.project, event.version_id)
    return []


async def take_back(event: Event, index: Index) -> None:
    """An attempt was cancelled: passages that it may have written are not left in the index."""
    if isinstance(event, Chunked):
        await index.restore(event)


async def cleared_body(
    event: Event, body_sha256: str, meta_sha256: str, blobs: Blobs, log: Log
) -> tuple[str, BodyMeta]:
    """The exact text that a scan cleared, and its meta.

    Raises:
        NotCleared: no clean verdict or release for exactly this text and meta, or the bytes in the
            store are not those that were scanned.
    """
    if not await log.cleared(event.project, body_sha256, meta_sha256):
        raise NotCleared(f"no clean verdict for {body_sha256[:12]} with meta {meta_sha256[:12]}")
    body, meta = await blobs.get(body_sha256), await blobs.get(meta_sha256)
    if sha256(body) != body_sha256 or sha256(meta) != meta_sha256:
        raise NotCleared(f"the bytes of {body_sha256[:12]} changed in the store")
    return body.decode(), BodyMeta.model_validate_json(meta)


def _failed(event: Event, code: str, reason: str) -> Failed:
    return Failed(**event.ids, stage="indexer", code=code, reason=reason)
