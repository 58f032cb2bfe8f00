"""Where a version is, folded from the log: its attempts, each of them a job."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from contracts.envelope import Envelope
from contracts.events import DocumentReceived, Erased, Event, Failed
from contracts.http import Accepted, Status
from contracts.states import WORKING, moves, status_after
from kernel.blobs import Blobs
from kernel.errors import Refusal, WrongVersion
from kernel.log import Log, Pending

STOPPABLE: frozenset[Status] = WORKING | {"review"}


@dataclass
class Attempt:
    """One try at a version: its job."""

    job: UUID
    receipt: DocumentReceived
    begun: Envelope
    status: Status = "received"


@dataclass
class Life:
    """A version's attempts in order, folded from the streams of its document and its own."""

    version_id: str
    attempts: list[Attempt] = field(default_factory=list)
    document_at: int = 0
    """Version of the document's stream."""
    version_at: int = 0
    """Version of the version's stream."""
    tombstone: Envelope | None = None
    """The newest one, if nobody sent the version again since."""

    @property
    def erased(self) -> bool:
        """Is nothing left of it?"""
        return self.tombstone is not None

    @property
    def last(self) -> Attempt:
        """The newest attempt."""
        return self.attempts[-1]

    def apply(self, envelope: Envelope) -> None:
        """Fold one event of either stream in, in log order."""
        if envelope.stream_id.startswith("version-"):
            self.version_at = envelope.version
        else:
            self.document_at = envelope.version
        if envelope.data.get("version_id") != self.version_id:
            return
        event = envelope.event()
        if isinstance(event, DocumentReceived):
            self.attempts.append(Attempt(envelope.correlation_id, event, envelope))
            self.tombstone = None
        elif self.attempts:
            self.tombstone = envelope if isinstance(event, Erased) else self.tombstone
            self._move(event, envelope.correlation_id)

    def _move(self, event: Event, job: UUID) -> None:
        status = status_after(event)
        if isinstance(event, Erased):
            self.last.status = status or self.last.status
            return
        of_job = next((a for a in self.attempts if a.job == job), None)
        # A side step that fails after the version was indexed leaves it indexed.
        side = isinstance(event, Failed) and of_job and of_job.status == "indexed"
        if of_job and status and not side and moves(of_job.status, event):
            of_job.status = status


def fold(version_id: str, events: Sequence[Envelope]) -> Life:
    """The life of a version after `events` (of its document's stream and its own)."""
    life = Life(version_id)
    for envelope in events:
        life.apply(envelope)
    return life


async def load_life(log: Log, document_id: str, version_id: str) -> Life:
    """The life of a version as the log has it now."""
    streams = [f"document-{document_id}", f"version-{version_id}"]
    return fold(version_id, await log.streams(streams))


async def stop(log: Log, life: Life, reason: str, actor: str) -> int:
    """Cancel the newest attempt; returns the position of the event.

    Raises:
        WrongVersion: something happened to the version since `life` was read.
    """
    attempt = life.last
    event = Failed(**attempt.receipt.ids, stage="ingest", code="cancelled", reason=reason)
    pending = Pending(event, uuid4(), attempt.job, actor, lane=attempt.begun.lane)
    return (await log.append([pending], expected=life.version_at)).position


async def lost(log: Log, blobs: Blobs, document_id: str, version_id: str) -> bool:
    """Were a version's bytes deleted, by an erasure, between their arrival and its receipt?

    Its job is cancelled then. Who sends looks after the receipt, who erases after the deletion:
    whichever comes second sees it.
    """
    life = await load_life(log, document_id, version_id)
    if life.erased or life.last.status not in STOPPABLE:
        return False
    if await blobs.exists(life.last.receipt.source_id):
        return False
    with suppress(WrongVersion):
        await stop(
            log, life, "its bytes were deleted while it was sent: send it again", "svc:ingest"
        )
    return True


async def check_bytes(accepted: Accepted, log: Log, blobs: Blobs) -> None:
    """What was just received is really there.

    Raises:
        Refusal: `conflict` (409): the same bytes were deleted at the same moment.
    """
    # An upload of known bytes wrote them anew; a job that is over may have lost them long ago.
    if await blobs.exists(accepted.source_id):
        return
    if await lost(log, blobs, accepted.document_id, accepted.version_id):
        raise Refusal("conflict", "it was deleted while it was sent: send it again", status=409)
