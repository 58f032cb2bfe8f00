"""Settles valid time when a version is indexed, and deletes what a blocked version left."""

from contracts.events import Erased, Event, Indexed, ScanVerdict
from kernel.blobs import Blobs
from kernel.cache import ParseCache
from kernel.log import Decided, Log
from services.ingest.domain import supersede
from services.ingest.lines import load_line


async def on_indexed(event: Indexed, *, log: Log) -> list[Event]:
    """`Superseded` with the new line of versions, or nothing for a document's first one."""
    line = await load_line(log, event.document_id)
    superseded = supersede(line, event)
    return Decided([superseded], line.version) if superseded else []


async def on_scan_verdict(
    event: ScanVerdict, *, log: Log, blobs: Blobs, cache: ParseCache
) -> list[Event]:
    """`Erased` for a blocked version: neither its bytes nor its text are kept.

    Bytes and parse stay while another version with the same bytes is not blocked.
    """
    if event.verdict != "block":
        return []
    names = {event.text_sha256, event.meta_sha256 or event.text_sha256}
    if await _shared(event, log):
        names -= {event.text_sha256} if event.subject == "parsed" else set()
    else:
        names |= {event.source_id, *await cache.drop(event.source_id)}
    deleted = [await blobs.delete(name) for name in sorted(names)]
    return [
        Erased(
            project=event.project,
            document_id=event.document_id,
            version_id=event.version_id,
            source_id=event.source_id,
            reason="blocked",
            blobs=sum(deleted),
        )
    ]


async def _shared(event: ScanVerdict, log: Log) -> bool:
    """Is there another version with these bytes that no scan has blocked?"""
    others = {r.version_id for r in await log.receipts(event.source_id)} - {event.version_id}
    streams = await log.streams([f"version-{v}" for v in sorted(others)])
    blocked = {
        e.data["version_id"]
        for e in streams
        if e.type == "ScanVerdict" and e.data["verdict"] == "block"
    }
    return bool(others - blocked)
