"""What the converter does on events: parse what came in, make canonical what was found clean."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path, PurePosixPath
from typing import Protocol

from contracts.artifacts import ParsedDocument
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
from services.converter.domain import CONVERTER
from services.converter.language import Policy
from services.converter.outcome import BodyOutcome, ParseOutcome
from services.converter.settings import ConverterSettings

Received = Callable[[Event], Awaitable[DocumentReceived]]


class Blobs(Protocol):
    async def put(self, data: bytes) -> str: ...
    async def put_parts(self, parts: Iterable[bytes]) -> str: ...
    async def size(self, name: str) -> int: ...
    def local_path(self, name: str) -> AbstractAsyncContextManager[Path]: ...


class Cell(Protocol):
    def parser_for(self, media_type: str) -> str: ...
    def check(self, size: int) -> None: ...
    async def parse(
        self, path: Path, media_type: str, policy: Policy | None = None
    ) -> ParseOutcome: ...
    async def recall(self, path: Path) -> ParsedDocument: ...
    async def canonical(self, path: Path, fallback_title: str) -> BodyOutcome: ...


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
    try:
        if known is not None:
            head = await _stored(blobs, cell, known)
            if head is not None:
                return [_parsed(event, known, parser, head, reused=True)]
        cell.check(event.size_bytes)
        async with blobs.local_path(event.source_id) as path:
            outcome = await cell.parse(path, event.media_type, policy)
        with outcome:
            for file in outcome.files:
                await blobs.put_parts(file)
            parsed_sha256 = await blobs.put_parts(outcome.to_bytes())
    except Refusal as refusal:
        return [_failed(event, refusal)]
    await cache.put(event.source_id, parser, options, parsed_sha256)
    return [_parsed(event, parsed_sha256, parser, outcome.head)]


async def on_scan_verdict(
    event: ScanVerdict, *, blobs: Blobs, cell: Cell, received: Received
) -> list[Event]:
    """Converted, for a clean parse; a verdict on anything else is not the converter's matter."""
    if event.subject != "parsed" or event.verdict != "clean":
        return []
    return await _converted(event, event.text_sha256, blobs, cell, received)


async def on_released(
    event: Released, *, blobs: Blobs, cell: Cell, received: Received
) -> list[Event]:
    """Converted, for a parse that a person released."""
    if event.subject != "parsed":
        return []
    return await _converted(event, event.text_sha256, blobs, cell, received)


async def _converted(
    event: Event, text_sha256: str, blobs: Blobs, cell: Cell, received: Received
) -> list[Event]:
    fallback = PurePosixPath((await received(event)).name).stem
    try:
        cell.check(await blobs.size(text_sha256))
        async with blobs.local_path(text_sha256) as path:
            if not await asyncio.to_thread(_is_named, path, text_sha256):
                raise Refusal("text-changed", "the stored text is not the one that was scanned")
            outcome = await cell.canonical(path, fallback)
        with outcome:
            if not outcome.size_bytes:
                raise Refusal("empty-document", "the document has no text")
            body_sha256 = await blobs.put_parts(outcome.to_bytes())
            meta_sha256 = await blobs.put(outcome.meta.to_bytes())
            places = outcome.places(body_sha256) if outcome.has_places else None
            spans_sha256 = await blobs.put_parts(places) if places else None
    except Refusal as refusal:
        return [_failed(event, refusal)]
    return [
        Converted(
            **event.ids,
            body_sha256=body_sha256,
            meta_sha256=meta_sha256,
            body_bytes=outcome.size_bytes,
            converter=CONVERTER,
            language=outcome.meta.language,
            spans_sha256=spans_sha256,
        )
    ]


def _is_named(path: Path, name: str) -> bool:
    """Has the file the bytes that its name says?"""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == name


async def _stored(blobs: Blobs, cell: Cell, sha256: str) -> ParsedDocument | None:
    """A cached parse without its text; None if an erasure took it, or somebody changed it."""
    try:
        cell.check(await blobs.size(sha256))
        async with blobs.local_path(sha256) as path:
            if not await asyncio.to_thread(_is_named, path, sha256):
                return None
            return await cell.recall(path)
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
