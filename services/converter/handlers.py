"""What the converter does on events: parse what came in, make canonical what was found clean."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path, PurePosixPath
from typing import Protocol

from contracts.artifacts import ParsedDocument, ParseNotes, SpanMap
from contracts.events import (
    Converted,
    DocumentReceived,
    Event,
    Failed,
    Parsed,
    Released,
    ScanVerdict,
)
from kernel.errors import Refusal
from kernel.media import lie
from kernel.projects import Streams, project_settings
from services.converter.cell import ParseOutcome
from services.converter.domain import CONVERTER, canonical, labelled
from services.converter.language import Policy, judge
from services.converter.settings import ConverterSettings

Received = Callable[[Event], Awaitable[DocumentReceived]]


class Blobs(Protocol):
    async def put(self, data: bytes) -> str: ...
    async def get(self, name: str) -> bytes: ...
    def local_path(self, name: str) -> AbstractAsyncContextManager[Path]: ...


class Cell(Protocol):
    def parser_for(self, media_type: str) -> str: ...
    async def parse(self, path: Path, media_type: str) -> ParseOutcome: ...


class Cache(Protocol):
    async def get(self, source_id: str, parser: str, options: str) -> str | None: ...
    async def put(self, source_id: str, parser: str, options: str, parsed_sha256: str) -> None: ...


async def on_document_received(
    event: DocumentReceived,
    *,
    blobs: Blobs,
    cell: Cell,
    cache: Cache,
    settings: ConverterSettings,
    log: Streams,
) -> list[Event]:
    """Parsed, or Failed with the reason why the document cannot be taken in."""
    policy = Policy.of(settings.accepted, await project_settings(log, event.project))
    parser, options = cell.parser_for(event.media_type), policy.cache_key
    known = await cache.get(event.source_id, parser, options)
    if known is not None:
        document = await _stored(blobs, known)
        if document is not None:
            return [_parsed(event, known, parser, document, reused=True)]
    try:
        async with blobs.local_path(event.source_id) as path:
            outcome = await cell.parse(path, event.media_type)
        # Before anything is written: of a refused language no text may stay.
        judged = await asyncio.to_thread(
            judge, outcome.document.markdown, policy.accepted, check=policy.check
        )
    except Refusal as refusal:
        return [_failed(event, refusal)]
    notes = ParseNotes(
        warnings=(*outcome.warnings, *judged.warnings),
        shares=judged.shares,
        missing_pages=outcome.missing_pages,
        readings=outcome.readings,
    )
    document = labelled(
        outcome.document.model_copy(update={"notes": notes}),
        language=judged.language,
        parser=outcome.parser,
    )
    for data in outcome.files:
        await blobs.put(data)
    parsed_sha256 = await blobs.put(document.to_bytes())
    await cache.put(event.source_id, parser, options, parsed_sha256)
    return [_parsed(event, parsed_sha256, parser, document)]


async def on_scan_verdict(event: ScanVerdict, *, blobs: Blobs, received: Received) -> list[Event]:
    """Converted, for a clean parse; a verdict on anything else is not the converter's matter."""
    if event.subject != "parsed" or event.verdict != "clean":
        return []
    return await _converted(event, event.text_sha256, blobs, received)


async def on_released(event: Released, *, blobs: Blobs, received: Received) -> list[Event]:
    """Converted, for a parse that a person released."""
    if event.subject != "parsed":
        return []
    return await _converted(event, event.text_sha256, blobs, received)


async def _converted(
    event: Event, text_sha256: str, blobs: Blobs, received: Received
) -> list[Event]:
    parsed = ParsedDocument.model_validate_json(await blobs.get(text_sha256))
    fallback = PurePosixPath((await received(event)).name).stem
    body, meta, spans = await asyncio.to_thread(canonical, parsed, fallback)
    if not body:
        return [_failed(event, Refusal("empty-document", "the document has no text"))]
    data = body.encode()
    body_sha256 = await blobs.put(data)
    places = SpanMap(body_sha256=body_sha256, spans=spans)
    return [
        Converted(
            **event.ids,
            body_sha256=body_sha256,
            meta_sha256=await blobs.put(meta.to_bytes()),
            body_bytes=len(data),
            converter=CONVERTER,
            language=meta.language,
            spans_sha256=await blobs.put(places.to_bytes()) if spans else None,
        )
    ]


async def _stored(blobs: Blobs, sha256: str) -> ParsedDocument | None:
    """A cached parse; None if an erasure took it."""
    try:
        return ParsedDocument.model_validate_json(await blobs.get(sha256))
    except FileNotFoundError:
        return None


def _parsed(
    event: DocumentReceived,
    parsed_sha256: str,
    parser: str,
    document: ParsedDocument,
    *,
    reused: bool = False,
) -> Parsed:
    notes = document.notes.model_dump()
    # Of this upload, not of the bytes: another one may have had the right name.
    told = lie(event.name, event.media_type)
    notes["warnings"] = (*([told] if told else []), *document.notes.warnings)
    return Parsed(
        **event.ids,
        parsed_sha256=parsed_sha256,
        parser=parser,
        language=document.meta.language,
        pages=document.meta.pages,
        attachments=len(document.attachments),
        reused=reused,
        **notes,
    )


def _failed(event: Event, refusal: Refusal) -> Failed:
    return Failed(**event.ids, stage="converter", code=refusal.code, reason=refusal.reason[:500])
