"""Erasure: tombstones in the log first, then the bytes, then what was attached."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal
from uuid import uuid4

from contracts.envelope import Envelope
from contracts.events import DocumentReceived, Erased, EraseScope, Event, ScanVerdict
from contracts.http import Deleted
from kernel.blobs import Blobs
from kernel.cache import ParseCache
from kernel.erasure import Traces
from kernel.errors import Refusal, WrongVersion
from kernel.log import Log, Pending
from services.ingest.accept import TRIES, receipt_id
from services.ingest.life import STOPPABLE, Life, fold, lost, stop

Reason = Literal["blocked", "request"]


@dataclass
class Tally:
    """What an erasure did."""

    documents: list[str] = field(default_factory=list)
    versions: int = 0
    blobs: int = 0
    jobs: int = 0


@dataclass(frozen=True)
class Why:
    """Why and for whom something is erased; `cause`: the version that it was attached to."""

    reason: Reason
    actor: str
    cause: str | None = None
    scope: EraseScope = "document"


class Eraser:
    """Erases versions. Whatever step it is killed at, doing it again finishes it.

    A tombstone ends a version's jobs and takes it out of the index and the projection; the bytes
    go in the same call, and once more when the tombstone comes around as an event, for the case
    that the call did not live to do it.
    """

    def __init__(self, log: Log, blobs: Blobs, cache: ParseCache) -> None:
        self._log, self._blobs, self._cache = log, blobs, cache
        self._traces = Traces(log, blobs)

    async def delete(self, document_id: str, actor: str) -> Deleted:
        """All versions of a document, and what was attached to them.

        Raises:
            Refusal: `conflict`.
        """
        tally = Tally()
        await self._erase(document_id, None, Why("request", actor), tally)
        own = await self._log.stream(f"document-{document_id}")
        return Deleted(
            project=own[0].project,
            document_id=document_id,
            documents=tally.documents,
            versions=tally.versions,
            blobs=tally.blobs,
            jobs_cancelled=tally.jobs,
            position=await self._log.head(),
        )

    async def blocked(self, event: ScanVerdict) -> Erased:
        """Delete what a blocked version left; its tombstone, to be appended."""
        streams = [f"document-{event.document_id}", f"version-{event.version_id}"]
        events = _about(event.version_id, await self._log.streams(streams))
        deleted = await self._forget([*events, event], event.version_id)
        return Erased(**event.ids, reason="blocked", scope="version", blobs=deleted)

    async def clean(self, document_id: str, version_id: str, tally: Tally | None = None) -> None:
        """Delete the bytes and texts of an erased version, and erase what was attached to it.

        Nothing is done for a version that was sent again after its erasure.
        """
        tally = Tally() if tally is None else tally
        streams = [f"document-{document_id}", f"version-{version_id}"]
        envelopes = await self._log.streams(streams)
        if not fold(version_id, envelopes).erased:
            return
        events = _about(version_id, envelopes)
        tally.blobs += await self._forget(events, version_id)
        tombstone = next(e for e in reversed(events) if isinstance(e, Erased))
        for child in await self._attached(version_id):
            why = Why(tombstone.reason, "svc:ingest", cause=version_id, scope=tombstone.scope)
            await self._erase(child.document_id, {child.version_id}, why, tally)

    async def _attached(self, version_id: str) -> list[DocumentReceived]:
        """Versions whose newest receipt says that they were attached to this one."""
        found = {r.version_id: r for r in await self._log.attached([version_id])}
        newest = [await self._log.received(r) for r in found.values()]
        return [r for r in newest if r.parent == version_id]

    async def _erase(self, document_id: str, only: set[str] | None, why: Why, tally: Tally) -> None:
        for _ in range(TRIES):
            lives, events = await self._lives(document_id, only)
            try:
                tally.jobs += await self._stop(lives, why)
                tally.versions += await self._bury(lives, events, why)
                break
            except WrongVersion:
                continue
        else:
            raise Refusal("conflict", "others write this document at the same time", status=409)
        tally.documents.append(document_id)
        for life in lives:
            await self.clean(document_id, life.version_id, tally)

    async def _lives(
        self, document_id: str, only: set[str] | None
    ) -> tuple[list[Life], dict[str, list[Event]]]:
        own = await self._log.stream(f"document-{document_id}")
        ids = dict.fromkeys(e.data["version_id"] for e in own if e.type == "DocumentReceived")
        ids = {v: None for v in ids if only is None or v in only}
        streams = [f"document-{document_id}", *(f"version-{v}" for v in ids)]
        envelopes = await self._log.streams(streams)
        lives = [fold(v, _streams_of(document_id, v, envelopes)) for v in ids]
        return lives, {v: _about(v, envelopes) for v in ids}

    async def _stop(self, lives: Iterable[Life], why: Why) -> int:
        running = [x for x in lives if not x.erased and x.last.status in STOPPABLE]
        for life in running:
            await stop(self._log, life, "the document was deleted", why.actor)
        return len(running)

    async def _bury(self, lives: Sequence[Life], events: dict[str, list[Event]], why: Why) -> int:
        """One tombstone for each version that has none, all in one append."""
        there = [x for x in lives if not x.erased]
        if not there:
            return 0
        gone = {x.version_id for x in there}
        request = uuid4()
        pending = []
        for life in there:
            names = await self._traces.names(events[life.version_id])
            tombstone = Erased(
                **life.last.receipt.ids,
                reason=why.reason,
                scope=why.scope,
                blobs=len(await self._traces.unused(names, but=gone)),
                cause=why.cause,
            )
            lane = life.last.begun.lane
            pending.append(Pending(tombstone, uuid4(), request, why.actor, lane=lane))
        await self._log.append(pending, expected=lives[0].document_at)
        return len(there)

    async def _forget(self, events: Sequence[Event], version_id: str) -> int:
        """Delete what `events` name and nobody else needs; returns how many blobs there were."""
        names = dict(await self._traces.names(events))
        source_id = events[0].source_id
        unused = await self._traces.unused(names, but=[version_id])
        if source_id in unused:
            cached = await self._cache.drop(source_id)
            unused += [name for name in cached if name not in names]
            await self._forget_parse_of_parent(events)
        deleted = await self._traces.delete(unused)
        for document, version in await self._log.users(source_id):
            await lost(self._log, self._blobs, document, version)
        return deleted

    async def _forget_parse_of_parent(self, events: Sequence[Event]) -> None:
        """The cached parse of a parent names a file that is gone: it is parsed anew when sent."""
        parents = {e.parent for e in events if isinstance(e, DocumentReceived) and e.parent}
        for parent in parents:
            receipt = await self._log.event(receipt_id(parent, 1))
            if receipt is not None:
                await self._cache.drop(receipt.data["source_id"])


def _about(version_id: str, envelopes: Iterable[Envelope]) -> list[Event]:
    """The events of one version, oldest first."""
    return [e.event() for e in envelopes if e.data.get("version_id") == version_id]


def _streams_of(document_id: str, version_id: str, envelopes: Iterable[Envelope]) -> list[Envelope]:
    streams = {f"document-{document_id}", f"version-{version_id}"}
    return [e for e in envelopes if e.stream_id in streams]
