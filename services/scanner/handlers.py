"""Parsed text and converted bodies are judged before anything else may touch them."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
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
from kernel.large import OneLarge
from kernel.parsed import load
from services.scanner.domain import ScanResult, scan
from services.scanner.ruleset import Ruleset, default_ruleset
from services.scanner.texts import hidden_of, hidden_of_meta


class Reads(Protocol):
    """What the scanner needs of the blob store; FileNotFoundError if there is no such blob."""

    async def get(self, name: str) -> bytes: ...
    async def size(self, name: str) -> int: ...
    def local_path(self, name: str) -> AbstractAsyncContextManager[Path]: ...


Received = Callable[[Event], Awaitable[DocumentReceived]]


async def on_parsed(
    event: Parsed, *, blobs: Reads, received: Received, large: OneLarge
) -> list[Event]:
    """Judge the deterministic parse, hidden text and meta included."""
    try:
        async with large.turn(await _size(blobs, event.parsed_sha256)):
            parsed = await _parse(blobs, event.parsed_sha256)
            result = await _judged(parsed.markdown, hidden_of(parsed))
    except Refusal as refusal:
        return [_failed(event, refusal)]
    trusted = (await received(event)).trusted
    return [_verdict(event, result, trusted, subject="parsed", text_sha256=event.parsed_sha256)]


async def on_converted(
    event: Converted, *, blobs: Reads, received: Received, large: OneLarge
) -> list[Event]:
    """Judge the exact body that would be indexed, and its meta."""
    try:
        async with large.turn(event.body_bytes):
            body = (await _read(blobs, event.body_sha256)).decode()
            meta = BodyMeta.model_validate_json(await _read(blobs, event.meta_sha256))
            result = await _judged(body, hidden_of_meta(meta))
    except Refusal as refusal:
        return [_failed(event, refusal)]
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


async def _size(blobs: Reads, name: Sha256) -> int:
    try:
        return await blobs.size(name)
    except FileNotFoundError:
        raise _missing() from None


async def _parse(blobs: Reads, name: Sha256) -> ParsedDocument:
    """A parse, checked like `_read`, and never there twice."""
    try:
        async with blobs.local_path(name) as path:
            return await asyncio.to_thread(_loaded, path, name)
    except FileNotFoundError:
        raise _missing() from None


def _loaded(path: Path, name: Sha256) -> ParsedDocument:
    try:
        document, digest = load(path)
    except ValueError:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest == name:
            raise
    if digest != name:
        raise _changed()
    return document


async def _read(blobs: Reads, name: Sha256) -> bytes:
    """The bytes of a blob, checked against its name: what is judged is what is named.

    Raises:
        Refusal: it is gone, or somebody changed it.
    """
    try:
        data = await blobs.get(name)
    except FileNotFoundError:
        raise _missing() from None
    if hashlib.sha256(data).hexdigest() != name:
        raise _changed()
    return data


def _missing() -> Refusal:
    return Refusal("text-missing", "the text to scan is no longer stored")


def _changed() -> Refusal:
    return Refusal("text-changed", "the stored text is not the one that was announced")


async def _judged(text: str, hidden: Sequence[HiddenText]) -> ScanResult:
    """Scanned in a thread, so that the heartbeat of the delivery goes on."""
    ruleset: Ruleset = await asyncio.to_thread(default_ruleset)
    return await asyncio.to_thread(scan, text, hidden, ruleset)


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
