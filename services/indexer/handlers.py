"""A cleared body becomes passages, passages become searchable, validity follows the versions."""

import asyncio

import structlog

from contracts.artifacts import BodyMeta
from contracts.events import (
    Chunked,
    Erased,
    Event,
    Failed,
    Indexed,
    IndexPurged,
    Reinstated,
    Released,
    ScanVerdict,
    Superseded,
)
from kernel.blobs import Blobs, sha256
from kernel.clearance import Texts, texts_of_version
from kernel.errors import KbError, Refusal, Retry
from kernel.log import Decided, Log
from kernel.projects import project_settings
from services.indexer.chunker import CHUNKERS, Cut, cut, manifest
from services.indexer.erase import purge
from services.indexer.index import Index
from services.indexer.taxonomy import classify, is_of, last_class, taxonomy_of

logger = structlog.get_logger()
SETTLES = 5.0
"""Seconds until it is looked again whether an attempt under way has settled."""


class NotCleared(KbError):
    """A text without a clean verdict was to be indexed: a bug or an attack, never an outcome."""


async def on_scan_verdict(
    event: ScanVerdict, *, blobs: Blobs, log: Log, cut_options: Cut, index: Index
) -> list[Event]:
    """`Chunked` for a body that the second scan found clean.

    A verdict against a text takes it out of both indexes, if it is there: rules that came later
    found something in it.
    """
    if event.verdict != "clean":
        await _withdraw(event, log, index)
        return []
    if event.subject != "converted":
        return []
    return await _chunk(event, blobs, log, cut_options, index)


async def on_released(
    event: Released, *, blobs: Blobs, log: Log, cut_options: Cut, index: Index
) -> list[Event]:
    """`Chunked` for a body that a person released."""
    if event.subject != "converted":
        return []
    return await _chunk(event, blobs, log, cut_options, index)


async def _withdraw(event: ScanVerdict, event_log: Log, index: Index) -> None:
    """Take what is no longer cleared out of the index.

    Raises:
        Retry: another text of the version is being written at this moment; it may have lost
            passages, so this is done again when it is in the log.
    """
    if (await texts_of_version(event_log, event)).cut is None:
        return  # nothing of it was ever cut
    texts = await index.restore(event)
    if texts.searchable is None and texts.under_way:
        raise Retry("another text of the version is being indexed", after=SETTLES)


async def _chunk(
    event: ScanVerdict | Released, blobs: Blobs, log: Log, options: Cut, index: Index
) -> list[Event]:
    body_sha256, meta_sha256 = event.text_sha256, event.meta_sha256 or ""
    texts = await texts_of_version(log, event)
    if _refused(texts, body_sha256, meta_sha256):
        return []
    try:
        body, meta = await _stored(body_sha256, meta_sha256, blobs)
    except Refusal as refusal:
        return [_failed(event, refusal.code, refusal.reason)]
    chunking = (await project_settings(log, event.project)).chunking
    options = options.fitted(await index.embedder(await index.live(event.project)), chunking)
    chunks = await asyncio.to_thread(
        cut, body, meta.title, event.document_id, meta.language, options
    )
    if not chunks:
        return [_failed(event, "empty-text", "no text is left to index")]
    made = manifest(body_sha256, meta.title, chunks, options.chunking)
    summary = await index.summariser(body, body_sha256, title=meta.title, language=meta.language)
    chunks_sha256 = await blobs.put(made.to_bytes())
    chunked = Chunked(
        **event.ids,
        body_sha256=body_sha256,
        meta_sha256=meta_sha256,
        chunks_sha256=chunks_sha256,
        chunk_count=len(chunks),
        chunker=CHUNKERS[options.chunking],
        summary_sha256=await blobs.put(summary.to_bytes()),
        summariser=summary.summariser,
    )
    return Decided([chunked], texts.at)


async def on_chunked(event: Chunked, *, blobs: Blobs, log: Log, index: Index) -> list[Event]:
    """`Indexed`: every passage is in both indexes, bytes checked, vectors from the cache or new.

    Nothing, if the text was taken back meanwhile: it is looked again after the write, and the
    event is recorded only while no other fact about the version came.
    """
    if _refused(await texts_of_version(log, event), event.body_sha256, event.meta_sha256):
        return []
    try:
        await _stored(event.body_sha256, event.meta_sha256, blobs)
    except Refusal as refusal:
        return [_failed(event, refusal.code, refusal.reason)]
    received = await log.received(event)
    written = await index.write(event, received.valid_from)
    texts = await texts_of_version(log, event)
    if _refused(texts, event.body_sha256, event.meta_sha256):
        await index.restore(event)
        return []
    indexed = Indexed(
        **event.ids,
        body_sha256=event.body_sha256,
        chunks_sha256=event.chunks_sha256,
        chunk_count=event.chunk_count,
        embedder=written.embedder,
        embedded=written.embedded,
        reused=written.reused,
    )
    return Decided([indexed], texts.at)


async def on_indexed(event: Indexed, *, log: Log, index: Index) -> list[Event]:
    """`Classified`, where the project has a taxonomy and the text is still the one in the index."""
    taxonomy = await taxonomy_of(log, event.project)
    if taxonomy is None:
        return []
    texts = await index.texts(event)
    cut = texts.searchable
    if cut is None or cut.chunks_sha256 != event.chunks_sha256:
        return []
    embedder = (await index.live(event.project)).embedder
    if is_of(await last_class(log, cut), cut, taxonomy.said, embedder):
        return []  # the passages are others, and the text is not
    classified = await classify(index, cut, taxonomy.said)
    return Decided([classified], texts.at) if classified else []


async def on_superseded(event: Superseded, *, index: Index) -> list[Event]:
    """The vector payload of all versions of the document says what the log says now."""
    await index.revalidate(event.project, event.document_id)
    return []


async def on_reinstated(event: Reinstated, *, index: Index) -> list[Event]:
    """As for `Superseded`."""
    await index.revalidate(event.project, event.document_id)
    return []


async def on_erased(event: Erased, *, index: Index) -> list[IndexPurged]:
    """`IndexPurged`: the version left both indexes, in every generation, and the vector cache."""
    return [await purge(event, index)]


async def take_back(event: Event, index: Index) -> None:
    """An attempt was cancelled: passages that it may have written are not left in the index, and of
    one that was erased not even vectors in the cache."""
    if isinstance(event, Chunked):
        texts = await index.restore(event)
        if not texts.live:
            await purge(event, index)


def _refused(texts: Texts, body_sha256: str, meta_sha256: str) -> bool:
    """Was exactly this text cleared, and then taken back by a newer verdict?

    Raises:
        NotCleared: it was never cleared: no clean verdict and no release names this text and meta.
    """
    clearance = texts.clearance(body_sha256, meta_sha256)
    if clearance == "unknown":
        raise NotCleared(f"no clean verdict for {body_sha256[:12]} with meta {meta_sha256[:12]}")
    if clearance == "withdrawn":
        logger.warning("indexer.withdrawn", body=body_sha256[:12])
    return clearance == "withdrawn"


async def _stored(body_sha256: str, meta_sha256: str, blobs: Blobs) -> tuple[str, BodyMeta]:
    """The exact text that a scan cleared, and its meta.

    Raises:
        Refusal: `text-changed`: the bytes in the store are not those that were scanned. The job
            fails at once, for a person to see: no further attempt would find other bytes.
    """
    body, meta = await blobs.get(body_sha256), await blobs.get(meta_sha256)
    if sha256(body) != body_sha256 or sha256(meta) != meta_sha256:
        logger.error("indexer.text_changed", body=body_sha256[:12], meta=meta_sha256[:12])
        raise Refusal("text-changed", "the stored text is not the one that was scanned")
    return body.decode(), BodyMeta.model_validate_json(meta)


def _failed(event: Event, code: str, reason: str) -> Failed:
    return Failed(**event.ids, stage="indexer", code=code, reason=reason)
