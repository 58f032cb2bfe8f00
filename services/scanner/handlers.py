"""Parsed text and converted bodies are judged before anything else may touch them."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument
from contracts.events import (
    Converted,
    DocumentReceived,
    Event,
    Failed,
    Parsed,
    ScanVerdict,
    Sha256,
)
from kernel.errors import Refusal
from services.scanner.domain import ScanResult, scan
from services.scanner.ruleset import Ruleset, default_ruleset


class Reads(Protocol):
    """What the scanner needs of the blob store."""

    async def get(self, name: str) -> bytes:
        """The bytes of a blob; FileNotFoundError if there is none."""


Received = Callable[[Event], Awaitable[DocumentReceived]]


async def on_parsed(event: Parsed, *, blobs: Reads, received: Received) -> list[Event]:
    """Judge the deterministic parse, hidden text and meta included."""
    try:
        data = await _read(blobs, event.parsed_sha256)
    except Refusal as refusal:
        return [_failed(event, refusal)]
    parsed = ParsedDocument.model_validate_json(data)
    hidden = (*parsed.hidden, *_fields(parsed.meta))
    result = await _judged(parsed.markdown, hidden, parsed.meta.title)
    trusted = (await received(event)).trusted
    return [_verdict(event, result, trusted, subject="parsed", text_sha256=event.parsed_sha256)]


async def on_converted(event: Converted, *, blobs: Reads, received: Received) -> list[Event]:
    """Judge the exact body that would be indexed, and its meta."""
    try:
        body = await _read(blobs, event.body_sha256)
        meta = BodyMeta.model_validate_json(await _read(blobs, event.meta_sha256))
    except Refusal as refusal:
        return [_failed(event, refusal)]
    result = await _judged(body.decode(), _fields(meta), meta.title)
    trusted = (await received(event)).trusted
    return [
        _verdict(
            event,
            result,
            trusted,
            subject="converted",
            text_sha256=event.body_sha256,
            meta_sha256=event.meta_sha256,
        )
    ]


async def _read(blobs: Reads, name: Sha256) -> bytes:
    """The bytes of a blob, checked against its name: what is judged is what is named.

    Raises:
        Refusal: it is gone, or somebody changed it.
    """
    try:
        data = await blobs.get(name)
    except FileNotFoundError:
        raise Refusal("text-missing", "the text to scan is no longer stored") from None
    if hashlib.sha256(data).hexdigest() != name:
        raise Refusal("text-changed", "the stored text is not the one that was announced")
    return data


def _fields(meta: BodyMeta) -> tuple[HiddenText, ...]:
    values = (meta.author, meta.publication, meta.date)
    return tuple(HiddenText(kind="metadata", text=v) for v in values if v)


async def _judged(text: str, hidden: Sequence[HiddenText], title: str) -> ScanResult:
    """Scanned in a thread, so that the heartbeat of the delivery goes on."""
    ruleset: Ruleset = await asyncio.to_thread(default_ruleset)
    return await asyncio.to_thread(scan, text, hidden, title, ruleset)


def _verdict(event: Event, result: ScanResult, trusted: bool, **about: object) -> ScanVerdict:
    return ScanVerdict.model_validate(
        {
            **event.ids,
            **about,
            "verdict": "clean" if trusted else result.verdict,
            "score": result.score,
            "findings": result.findings,
            "ruleset": default_ruleset().version,
            "bypassed": trusted,
        }
    )


def _failed(event: Event, refusal: Refusal) -> Failed:
    fields = {"stage": "scanner", "code": refusal.code, "reason": refusal.reason}
    return Failed.model_validate(event.ids | fields)
