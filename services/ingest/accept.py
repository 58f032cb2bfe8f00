"""From bytes in the blob store to a decision in the log: new, duplicate, again, or reinstated."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID, uuid4, uuid5

from contracts.events import DocumentReceived, Event, Lane, Reinstated, Via
from contracts.http import Accepted
from kernel.errors import Refusal, WrongVersion
from kernel.log import Log, Pending
from kernel.projects import project_settings
from services.ingest.domain import Identity, Line, reinstate
from services.ingest.lines import document_id_of, load_line, version_id_of

RECEIPTS = UUID("0f7a3a52-64c0-5b55-8a0b-9b5be1f5d9c1")
"""Namespace of the ids of receipts."""
TRIES = 20
"""Writers of one document that may get ahead of each other before the request gives up."""


@dataclass(frozen=True)
class Offer:
    """An upload whose bytes are in the blob store."""

    project: str
    source_id: str
    name: str
    media_type: str
    size_bytes: int
    valid_from: datetime | None = None
    source: str | None = None
    supersedes: str | None = None
    trusted: bool = False
    lane: Lane = "live"
    via: Via = "upload"
    actor: str = "api"
    returns: bool = False
    """The uploader named the document, so known bytes are its return to an earlier state."""
    parent: str | None = None
    job: UUID | None = None
    """Id of the job that a new version begins; None: any."""
    document_id: str | None = None
    """The document that it belongs to, where that is known; None: its source key says it."""


async def accept(offer: Offer, log: Log, identity: Identity) -> Accepted:
    """Decide what an upload is, and record it.

    Raises:
        Refusal: `unknown-version` (nothing to supersede), `conflict` (too many writers at once),
            `project-deleted`, `not-indexed-yet`.
    """
    if (await project_settings(log, offer.project)).deleted:
        raise Refusal("project-deleted", f"{offer.project} was deleted: make it anew", status=409)
    for _ in range(TRIES):
        try:
            return await _decide(await _placed(offer, log), log, identity)
        except WrongVersion:
            continue
    raise Refusal("conflict", "others write this document at the same time; try again", status=409)


async def _placed(offer: Offer, log: Log) -> Offer:
    """Say which source key the upload belongs to.

    `supersedes` may be a version id, a document id, or a `source_id` of the project. Bytes that
    come without a source key, and are known in the project, belong where they are.
    """
    if offer.supersedes:
        target = await superseded(offer.project, offer.supersedes, log)
        key, document_id = target.source_key, target.document_id
        return replace(offer, source=key, document_id=document_id, returns=True)
    if offer.source:
        return replace(offer, returns=True)
    known = [r for r in await log.receipts(offer.source_id) if r.project == offer.project]
    if not known:
        return replace(offer, source=offer.source_id)
    return replace(offer, source=known[0].source_key, document_id=known[0].document_id)


def receipt_id(version_id: str, attempt: int) -> UUID:
    """Id of the event that records an attempt: the same for whoever records it."""
    return uuid5(RECEIPTS, f"{version_id}|{attempt}")


def repeat_id(version_id: str, at: int) -> UUID:
    """Id of the event that reinstates a version on version `at` of its document's stream."""
    return uuid5(RECEIPTS, f"{version_id}|reinstated|{at}")


async def superseded(project: str, id_: str, log: Log) -> DocumentReceived:
    """The version that `id_` names: a version id, a document id, or a `source_id` of the project.

    Raises:
        Refusal: `unknown-version`.
    """
    events: list[Event] = [*await log.receipts(id_)]
    events += [e.event() for e in await log.stream(f"document-{id_}")]
    if first := await log.event(receipt_id(id_, 1)):
        events.append(first.event())
    found = [e for e in events if isinstance(e, DocumentReceived) and e.project == project]
    if not found:
        raise Refusal("unknown-version", "there is no such version to supersede", status=404)
    return found[-1]


async def _decide(offer: Offer, log: Log, identity: Identity) -> Accepted:
    key = offer.source or offer.source_id
    document_id = offer.document_id or await document_id_of(log, identity, offer.project, key)
    line = await load_line(log, document_id)
    if not offer.source:  # known by its bytes or its id, and its own receipt lost the key
        offer = replace(offer, source=line.source_key or offer.source_id)
    version_id = version_id_of(line, identity, offer.source_id)
    match decide(offer, line, version_id, datetime.now(UTC)):
        case DocumentReceived() as received:
            event_id = receipt_id(version_id, received.attempt)
            return await _append(offer, received, event_id, line, log)
        case Reinstated() as reinstated:
            accepted = await _append(offer, reinstated, uuid4(), line, log)
            job = await _job(line.received[version_id], log)
            return accepted.model_copy(update={"reinstated": True, "job_id": job})
        case None:
            return await _duplicate(offer, line.received[version_id], log)


def decide(
    offer: Offer, line: Line, version_id: str, now: datetime
) -> DocumentReceived | Reinstated | None:
    """What an offer is to its document: a version to take in, a return to one, or nothing new.

    A stated `valid_from` is kept also of bytes that are valid then anyway, so that a history may be
    loaded in any order.

    Raises:
        Refusal: `not-indexed-yet`: another `valid_from` of bytes on their way.
    """
    before = line.received.get(version_id)
    if before is None or version_id in line.over:
        return _received(offer, line, version_id, before.attempt + 1 if before else 1, now)
    if not offer.returns:
        return None
    if offer.valid_from is None or offer.parent:  # what is attached again goes on being attached
        past = line.is_past(version_id, now)
        return reinstate(line, before, offer.valid_from or now) if past else None
    if all(w.version_id != version_id for w in line.settled):
        if offer.valid_from != before.valid_from:
            reason = "these bytes are not in the index yet, and came with another valid_from before"
            raise Refusal("not-indexed-yet", reason, status=409)
        return None
    if line.says(version_id, offer.valid_from):
        return None
    return reinstate(line, before, offer.valid_from)


def _received(
    offer: Offer, line: Line, version_id: str, attempt: int, now: datetime
) -> DocumentReceived:
    return DocumentReceived(
        project=offer.project,
        document_id=line.document_id,
        version_id=version_id,
        source_id=offer.source_id,
        source_key=offer.source or offer.source_id,
        name=offer.name,
        media_type=offer.media_type,
        size_bytes=offer.size_bytes,
        valid_from=offer.valid_from or now,
        supersedes=line.current,
        trusted=offer.trusted,
        attempt=attempt,
        via=offer.via,
        parent=offer.parent,
    )


async def _append(offer: Offer, event: Event, event_id: UUID, line: Line, log: Log) -> Accepted:
    job = offer.job or uuid4()
    pending = Pending(event, event_id, job, offer.actor, lane=offer.lane)
    appended = await log.append([pending], expected=line.version)
    if appended.status == "duplicate":  # another request recorded this very receipt meanwhile
        raise WrongVersion(event.stream_id, line.version)
    return Accepted(
        job_id=str(job),
        project=event.project,
        document_id=event.document_id,
        version_id=event.version_id,
        source_id=event.source_id,
        position=appended.position,
    )


async def _duplicate(offer: Offer, receipt: DocumentReceived, log: Log) -> Accepted:
    return Accepted(
        job_id=await _job(receipt, log),
        project=receipt.project,
        document_id=receipt.document_id,
        version_id=receipt.version_id,
        source_id=receipt.source_id,
        position=await log.head(),
        duplicate_of=receipt.version_id,
    )


async def _job(receipt: DocumentReceived, log: Log) -> str:
    """The job that took the version in: the correlation of its newest receipt."""
    own = await log.stream(receipt.stream_id)
    return next(
        str(e.correlation_id)
        for e in reversed(own)
        if e.type == "DocumentReceived" and e.data["version_id"] == receipt.version_id
    )
