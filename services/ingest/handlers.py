"""Settles valid time, takes in what is attached to a clean document, deletes what is erased."""

from collections.abc import Sequence

from contracts.events import BytesPurged, Erased, Event, Indexed, Released, ScanVerdict
from kernel.log import Decided, Log
from services.ingest.attachments import Attachments
from services.ingest.domain import supersede
from services.ingest.erase import Eraser
from services.ingest.lines import load_line


async def on_indexed(event: Indexed, *, log: Log) -> list[Event]:
    """`Superseded` with the new line of versions, or nothing for a document's first one."""
    line = await load_line(log, event.document_id)
    superseded = supersede(line, event)
    return Decided([superseded], line.version) if superseded else []


async def on_scan_verdict(
    event: ScanVerdict, *, attachments: Attachments, eraser: Eraser
) -> Sequence[Event]:
    """`Erased` for a blocked version: neither its bytes nor its text are kept.

    For a clean parse the receipts of the files inside, and `AttachmentsReceived`. Bytes and parse
    stay while another version with the same bytes is not blocked.
    """
    if event.verdict == "block":
        return [await eraser.blocked(event)]
    if event.verdict == "clean" and event.subject == "parsed":
        return await attachments.take(event, event.text_sha256)
    return []


async def on_released(event: Released, *, attachments: Attachments) -> Sequence[Event]:
    """As for a clean verdict, for a parse that a person released."""
    return await attachments.take(event, event.text_sha256) if event.subject == "parsed" else []


async def on_erased(event: Erased, *, eraser: Eraser) -> list[BytesPurged]:
    """`BytesPurged`: bytes and texts of the version are deleted, its names are out of the log, and
    what was attached to it is erased too."""
    return await eraser.purged(event)
