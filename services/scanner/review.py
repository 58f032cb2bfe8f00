"""A person's decision about a quarantined version."""

from typing import Any
from uuid import uuid4

from contracts.envelope import Envelope
from contracts.events import Event, Rejected, Released, ScanVerdict
from contracts.http import Reviewed, ReviewRequest
from kernel.errors import Refusal, WrongVersion
from kernel.log import Log, Pending


async def review(version_id: str, request: ReviewRequest, reviewer: str, log: Log) -> Reviewed:
    """Record a release or a rejection of what waits in quarantine.

    Raises:
        Refusal: `not-in-review`: there is no such version, it is not in quarantine, or somebody
            decided already.
    """
    events = await log.stream(f"version-{version_id}")
    verdict, cause = _waiting(events)
    fields: dict[str, Any] = verdict.model_dump(
        include={"project", "document_id", "version_id", "source_id", "subject", "text_sha256"}
    ) | {"reviewer": reviewer, "reason": request.reason}
    event: Event = (
        Released(**fields, meta_sha256=verdict.meta_sha256)
        if request.decision == "release"
        else Rejected(**fields)
    )
    pending = Pending(
        event, uuid4(), cause.correlation_id, reviewer, causation_id=cause.event_id, lane=cause.lane
    )
    try:
        appended = await log.append([pending], expected=events[-1].version)
    except WrongVersion as error:
        raise _refusal() from error
    return Reviewed(version_id=version_id, decision=request.decision, position=appended.position)


def _waiting(events: list[Envelope]) -> tuple[ScanVerdict, Envelope]:
    """The quarantine verdict that is still open: the newest event of the version."""
    event = events[-1].event() if events else None
    if isinstance(event, ScanVerdict) and event.verdict == "quarantine":
        return event, events[-1]
    raise _refusal()


def _refusal() -> Refusal:
    return Refusal("not-in-review", "no decision is open on this version", status=409)
