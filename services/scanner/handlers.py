"""Parsed text and converted bodies are judged before anything else may touch them."""

from collections.abc import Awaitable, Callable

from contracts.events import Converted, DocumentReceived, Event, Failed, Parsed, ScanVerdict
from kernel.clearance import Streams, texts_of_version
from kernel.errors import Refusal
from kernel.log import Decided
from services.scanner.domain import ScanResult
from services.scanner.stored import LiveFirst, Stored

Received = Callable[[Event], Awaitable[DocumentReceived]]


async def on_parsed(
    event: Parsed, *, stored: Stored, received: Received, first: LiveFirst, log: Streams
) -> list[Event]:
    """Judge the deterministic parse, hidden text and meta included."""
    stored = await stored.of(log, event.project)
    try:
        async with first.live():
            trusted = (await received(event)).trusted
            result = await stored.parse(event.parsed_sha256, ask=not trusted)
    except Refusal as refusal:
        return [_failed(event, refusal)]
    about = {"subject": "parsed", "text_sha256": event.parsed_sha256}
    return [verdict(event, result, stored, trusted, **about)]


async def on_converted(
    event: Converted, *, stored: Stored, received: Received, first: LiveFirst, log: Streams
) -> list[Event]:
    """Judge the exact body that would be indexed, and its meta.

    Nothing, if the parse that it was made of was taken back meanwhile: a person decides about that
    first, and then it is converted anew.
    """
    texts = await texts_of_version(log, event)
    if texts.parse_withdrawn(event.body_sha256, event.meta_sha256):
        return []
    stored = await stored.of(log, event.project)
    try:
        async with first.live():
            trusted = (await received(event)).trusted
            result = await stored.body(event.body_sha256, event.meta_sha256, ask=not trusted)
    except Refusal as refusal:
        return [_failed(event, refusal)]
    about = {
        "subject": "converted",
        "text_sha256": event.body_sha256,
        "meta_sha256": event.meta_sha256,
    }
    judged = verdict(event, result, stored, trusted, **about)
    return Decided([judged], texts.at)


def verdict(
    event: Event, result: ScanResult, stored: Stored, trusted: bool, **about: object
) -> ScanVerdict:
    """The verdict on a version's text, `about` of the event's own fields."""
    return ScanVerdict.model_validate(
        {
            **event.ids,
            "verdict": "clean" if trusted else result.verdict,
            "score": result.score,
            "findings": result.findings,
            "ruleset": stored.judge.version,
            "bypassed": trusted,
            "ruled": result.verdict if trusted else None,
            **about,
        }
    )


def _failed(event: Event, refusal: Refusal) -> Failed:
    fields = {"stage": "scanner", "code": refusal.code, "reason": refusal.reason}
    return Failed.model_validate(event.ids | fields)
