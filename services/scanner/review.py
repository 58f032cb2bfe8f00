"""A person's decision about a quarantined version: which verdict is open, and how it ends."""

from typing import Any, Protocol
from uuid import UUID, uuid4

from contracts.envelope import Envelope
from contracts.events import (
    DocumentReceived,
    Erased,
    Event,
    Failed,
    Rejected,
    Released,
    ScanVerdict,
)
from contracts.http import Reviewed, ReviewRequest, Status
from contracts.states import moves, status_after
from kernel.errors import Refusal, WrongVersion
from kernel.log import Appended, Pending

ATTEMPTS = 5
"""A late step of a service may come between a look at the log and the decision."""


class Reads(Protocol):
    """What is read of the log."""

    async def stream(self, stream_id: str) -> list[Envelope]: ...


class Records(Reads, Protocol):
    """And where the decision goes."""

    async def append(self, pending: list[Pending], *, expected: int) -> Appended: ...


async def review(version_id: str, request: ReviewRequest, reviewer: str, log: Records) -> Reviewed:
    """Record a release or a rejection of what waits in quarantine. It is about one text only.

    Raises:
        Refusal: `not-in-review` (409): there is no such version, nothing of it is in quarantine, or
            somebody decided already; `text-differs` (409): another text waits than the one that
            the person looked at.
    """
    for _ in range(ATTEMPTS):
        verdict, cause, version = await waiting(version_id, log)
        if request.text_sha256 not in (None, verdict.text_sha256):
            raise Refusal(
                "text-differs", "another text of this version waits now: look again", status=409
            )
        pending = _decision(verdict, cause, request, reviewer)
        try:
            appended = await log.append([pending], expected=version)
        except WrongVersion:
            continue
        return Reviewed(
            version_id=version_id,
            decision=request.decision,
            position=appended.position,
            text_sha256=verdict.text_sha256,
        )
    raise _refusal()


def _decision(
    verdict: ScanVerdict, cause: Envelope, request: ReviewRequest, reviewer: str
) -> Pending:
    fields: dict[str, Any] = verdict.model_dump(
        include={"project", "document_id", "version_id", "source_id", "subject", "text_sha256"}
    ) | {"reviewer": reviewer, "reason": request.reason}
    event: Event = (
        Released(**fields, meta_sha256=verdict.meta_sha256)
        if request.decision == "release"
        else Rejected(**fields)
    )
    return Pending(
        event, uuid4(), cause.correlation_id, reviewer, causation_id=cause.event_id, lane=cause.lane
    )


async def waiting(version_id: str, log: Reads) -> tuple[ScanVerdict, Envelope, int]:
    """The verdict that waits for a person: itself, its envelope, the stream's present version.

    Raises:
        Refusal: `not-in-review` (409).
    """
    events = await log.stream(f"version-{version_id}")
    envelope = _open(events)
    verdict = envelope.event() if envelope else None
    if envelope is None or not isinstance(verdict, ScanVerdict):
        raise _refusal()
    for other in reversed(await log.stream(f"document-{verdict.document_id}")):
        fact = other.event()
        if fact.version_id == version_id and isinstance(fact, Erased | DocumentReceived):
            # A verdict may be recorded right after the erasure: then it is about nothing, too.
            if isinstance(fact, Erased):
                raise _refusal()
            break
    return verdict, envelope, events[-1].version


def _open(events: list[Envelope]) -> Envelope | None:
    """The newest quarantine that nothing ended, each job on its own as in the read projection."""
    states: dict[UUID, Status] = {}
    cancelled: set[UUID] = set()
    found: dict[UUID, Envelope] = {}
    for envelope in events:
        event, job = envelope.event(), envelope.correlation_id
        status = status_after(event)
        if status is None or job in cancelled or not moves(states.get(job), event):
            continue
        if isinstance(event, Failed) and event.code == "cancelled":
            cancelled.add(job)
        states[job] = status
        found.pop(job, None)
        if status == "review":
            found[job] = envelope
    return max(found.values(), key=lambda e: e.position, default=None)


def _refusal() -> Refusal:
    return Refusal("not-in-review", "no decision is open on this version", status=409)
