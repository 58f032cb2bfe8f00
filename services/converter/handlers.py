"""TEMPORARY stand-in by the lead so that the stack starts; the owner replaces this file."""

from pathlib import PurePath
from typing import Any

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
from services.converter.domain import canonical
from services.converter.parsers import parser_for


def ids(e: Event) -> dict[str, str]:
    return e.model_dump(include={"project", "document_id", "version_id", "source_id"})


async def on_document_received(
    event: DocumentReceived, *, blobs: Any, cell: Any, cache: Any, settings: Any
) -> list[Event]:
    """Parsed."""
    try:
        async with blobs.local_path(event.source_id) as path:
            outcome = await cell.parse(path, event.media_type)
    except Refusal as r:
        return [Failed(**ids(event), stage="converter", code=r.code, reason=r.reason)]
    sha = await blobs.put(outcome.document.to_bytes())
    return [
        Parsed(
            **ids(event),
            parsed_sha256=sha,
            parser=outcome.parser,
            language=outcome.document.meta.language,
        )
    ]


async def on_scan_verdict(event: ScanVerdict, *, blobs: Any, received: Any) -> list[Event]:
    """Converted."""
    if event.subject != "parsed" or event.verdict != "clean":
        return []
    return await _convert(event, blobs, received)


async def on_released(event: Released, *, blobs: Any, received: Any) -> list[Event]:
    """Converted."""
    return await _convert(event, blobs, received) if event.subject == "parsed" else []


async def _convert(event: Any, blobs: Any, received: Any) -> list[Event]:
    parsed = ParsedDocument.model_validate_json(await blobs.get(event.text_sha256))
    name = PurePath((await received(event)).name).stem
    body, meta = canonical(parsed, name)
    data = body.encode()
    return [
        Converted(
            **ids(event),
            body_sha256=await blobs.put(data),
            meta_sha256=await blobs.put(meta.to_bytes()),
            body_bytes=len(data),
            converter="canonical-1",
            language=meta.language,
        )
    ]
