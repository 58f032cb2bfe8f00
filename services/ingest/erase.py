"""Erasure: tombstones in the log, then the bytes, then what was attached, then the names."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from contracts.envelope import Envelope
from contracts.erasure import ErasePlan, EraseTarget, Reason
from contracts.events import (
    BytesPurged,
    DocumentReceived,
    Erased,
    EraseScope,
    Event,
    Parsed,
    ScanVerdict,
)
from contracts.http import Deleted
from kernel.blobs import Blobs
from kernel.cache import ParseCache
from kernel.erasure import STORES, Keepers, Traces, is_live, stores
from kernel.errors import Refusal, WrongVersion
from kernel.log import Log, Pending, reactions
from services.ingest.accept import TRIES, receipt_id
from services.ingest.elsewhere import Elsewhere
from services.ingest.life import STOPPABLE, Life, fold, lost, stop

HANDLER = "ingest.on_erased"
"""Whose reaction `BytesPurged` is, also where the request that erased says it."""


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
    request: UUID = field(default_factory=uuid4)
    """One for all tombstones of a request, those of attached documents too."""


Targets = dict[str, set[str] | None]
"""Document → which of its versions; None: all of them."""


class Eraser:
    """Erases versions. Whatever step it is killed at, doing it again finishes it.

    A tombstone ends a version's jobs and takes it out of the index and the projection; the bytes
    go in the same call, and once more when the tombstone comes around as an event, for the case
    that the call did not live to do it. Whoever comes to the end says what was removed, once.
    """

    def __init__(
        self, log: Log, blobs: Blobs, cache: ParseCache, elsewhere: Elsewhere | None = None
    ) -> None:
        self._log, self._blobs, self._cache = log, blobs, cache
        self._elsewhere = elsewhere or Elsewhere()
        self._traces = Traces(log, blobs)
        self._busy: dict[str, asyncio.Lock] = {}

    async def delete(self, document_id: str, actor: str) -> Deleted:
        """All versions of a document, and what was attached to them.

        Raises:
            Refusal: `conflict`.
        """
        why = Why("request", actor)
        tally = await self.erase({document_id: None}, why)
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

    async def erase(self, targets: Targets, why: Why) -> Tally:
        """Versions of documents, and what was attached to them: tombstones of all, then the rest.

        Raises:
            Refusal: `conflict`.
        """
        tally, buried = Tally(), []
        for document_id, only in targets.items():
            buried += [(document_id, v) for v in await self._close(document_id, only, why, tally)]
        for document_id, version_id in buried:
            await self.clean(document_id, version_id, tally)
        return tally

    async def bytes_in(self, source_id: str, project: str) -> Targets:
        """The versions of a project that have these bytes."""
        found: Targets = {}
        for receipt in await self._log.receipts(source_id):
            if receipt.project == project:
                found[receipt.document_id] = {
                    *(found.get(receipt.document_id) or ()),
                    receipt.version_id,
                }
        return found

    async def plan(self, targets: Targets, scope: EraseScope) -> ErasePlan:
        """What an erasure of these would do. Nothing is changed."""
        documents: list[EraseTarget] = []
        events: list[Event] = []
        gone: set[str] = set()
        jobs, project, waiting = 0, "", [(d, o, False) for d, o in targets.items()]
        while waiting:
            document_id, only, attached = waiting.pop(0)
            lives, about = await self._lives(document_id, only)
            there = [x for x in lives if _is_owed(x, "request")]
            there = [x for x in there if x.version_id not in gone]
            if not there:
                continue
            every, _ = await self._lives(document_id, None)
            documents.append(_target(document_id, there, every, attached=attached))
            jobs += sum(not x.erased and x.last.status in STOPPABLE for x in there)
            project = there[0].last.receipt.project
            for life in there:
                gone.add(life.version_id)
                events += about[life.version_id]
                for child in await self._attached(life.version_id):
                    waiting.append((child.document_id, {child.version_id}, True))
        names = await self._traces.names(events)
        unused = await self._traces.unused(names, but=gone)
        return ErasePlan(
            project=project,
            scope=scope,
            documents=documents,
            versions=len(gone),
            blobs=sum([await self._blobs.exists(name) for name in unused]),
            kept=len(names) - len(unused),
            jobs=jobs,
        )

    async def blocked(self, event: ScanVerdict) -> Erased:
        """Delete what a blocked version left; its tombstone, to be appended."""
        streams = [f"document-{event.document_id}", f"version-{event.version_id}"]
        events = _about(event.version_id, await self._log.streams(streams))
        others = await self._left(event.source_id, event.version_id)
        _, deleted, _ = await self._forget([*events, event], others)
        return Erased(**event.ids, reason="blocked", scope="version", blobs=deleted)

    async def clean(self, document_id: str, version_id: str, tally: Tally | None = None) -> None:
        """Delete the bytes and texts of an erased version, erase what was attached to it, take its
        names out of the log; then say so.

        Nothing is done for a version that was sent again after its erasure, but to its names.
        """
        tally = Tally() if tally is None else tally
        async with self._alone(version_id):
            streams = [f"document-{document_id}", f"version-{version_id}"]
            envelopes = await self._log.streams(streams)
            tombstone = _tombstone(version_id, envelopes)
            if tombstone is None:
                return
            purged = await self._purge(version_id, envelopes, tombstone, tally)
            await self._log.append(reactions(tombstone, HANDLER, [purged]))

    async def purged(self, event: Erased) -> list[BytesPurged]:
        """As `clean`, for the handler that records it."""
        async with self._alone(event.version_id):
            streams = [f"document-{event.document_id}", f"version-{event.version_id}"]
            envelopes = await self._log.streams(streams)
            tombstone = _tombstone(event.version_id, envelopes)
            if tombstone is None:
                raise LookupError(f"no tombstone of version {event.version_id}")
            return [await self._purge(event.version_id, envelopes, tombstone, Tally())]

    async def _purge(
        self, version_id: str, envelopes: list[Envelope], tombstone: Envelope, tally: Tally
    ) -> BytesPurged:
        erased = tombstone.event()
        assert isinstance(erased, Erased)  # noqa: S101 - by its type
        removed: Counter[str] = Counter(dict.fromkeys((*STORES, "cached-parses"), 0))
        kept: Counter[str] = Counter()
        if fold(version_id, envelopes).erased:
            events = _about(version_id, envelopes)
            others = await self._left(events[0].source_id, version_id)
            mine = await self._traces.names([*_last_life(events), *others])
            blobs, deleted, removed["cached-parses"] = await self._forget(events, others)
            tally.blobs += deleted
            kinds, at = stores([*events, *others]), tombstone.position
            await self._count(mine, kinds, erased, at, (removed, kept))
            await self._erase_attached(erased, tombstone.correlation_id, tally)
            shared = bool(kept["originals"])
            removed.update(await self._elsewhere.forget(tombstone, events, blobs, shared))
        if erased.reason == "request":
            removed["names"] += await self._log.redact(erased.document_id, version_id)
        return BytesPurged(
            project=erased.project,
            document_id=erased.document_id,
            version_id=version_id,
            removed=dict(removed),
            kept={k: n for k, n in kept.items() if n},
        )

    async def _count(
        self,
        names: Keepers,
        kinds: dict[str, str],
        erased: Erased,
        at: int,
        counts: tuple[Counter[str], Counter[str]],
    ) -> None:
        """How many blobs of each kind went with this version, and how many others still need.

        By what the log names, so that it is the same however often the deletion was begun.
        """
        removed, kept = counts
        unused = set(await self._traces.unused(names, but=[erased.version_id]))
        for name, keepers in names.items():
            kind = kinds.get(name, STORES[-1])
            if name not in unused:
                kept[kind] += 1
            elif not await self._traces.counted_elsewhere(keepers, erased.version_id, at):
                removed[kind] += 1

    async def _erase_attached(self, erased: Erased, request: UUID, tally: Tally) -> None:
        for child in await self._attached(erased.version_id):
            cause = erased.version_id
            why = Why(erased.reason, "svc:ingest", cause, erased.scope, request)
            only = {child.version_id}
            for version_id in await self._close(child.document_id, only, why, tally):
                await self.clean(child.document_id, version_id, tally)

    async def _attached(self, version_id: str) -> list[DocumentReceived]:
        """Versions whose newest receipt says that they were attached to this one."""
        found = {r.version_id: r for r in await self._log.attached([version_id])}
        newest = [await self._log.received(r) for r in found.values()]
        return [r for r in newest if r.parent == version_id]

    async def _close(
        self, document_id: str, only: set[str] | None, why: Why, tally: Tally
    ) -> list[str]:
        """Jobs end, tombstones stand; returns the versions that have one."""
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
        return [life.version_id for life in lives]

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
        there = [x for x in lives if _is_owed(x, why.reason)]
        if not there:
            return 0
        gone = {x.version_id for x in there}
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
            pending.append(Pending(tombstone, uuid4(), why.request, why.actor, lane=lane))
        await self._log.append(pending, expected=lives[0].document_at)
        return len(there)

    async def _forget(
        self, events: Sequence[Event], others: Sequence[Event]
    ) -> tuple[set[str], int, int]:
        """Delete what a version's events name and nobody else needs, and what `others` left.

        Returns the names of the blobs, how many there were, and how many parses the cache knew.
        """
        source_id, version_id = events[0].source_id, events[0].version_id
        names = dict(await self._traces.names([*events, *others]))
        unused, cached = await self._traces.unused(names, but=[version_id]), []
        if source_id in unused:
            cached = await self._cache.drop(source_id)
            unused += [name for name in cached if name not in names]
            await self._forget_parse_of_parent([*events, *others])
        # A parse alone names the files that were inside: it goes last, so that a kill loses none.
        parses = {e.parsed_sha256 for e in (*events, *others) if isinstance(e, Parsed)}
        deleted = await self._traces.delete(sorted(unused, key=lambda name: name in parses))
        for document, version in await self._log.users(source_id):
            await lost(self._log, self._blobs, document, version)
        return set(unused), deleted, len(cached)

    async def _left(self, source_id: str, version_id: str) -> list[Event]:
        """Events of the other versions of these bytes, if all were erased: their texts were kept as
        long as somebody had the bytes, and go with the last of them. Else nothing."""
        found: list[Event] = []
        for document, version in await self._log.users(source_id):
            if version != version_id:
                streams = [f"document-{document}", f"version-{version}"]
                envelopes = await self._log.streams(streams)
                if is_live(version, envelopes):
                    return []
                found += _about(version, envelopes)
        return found

    async def _forget_parse_of_parent(self, events: Sequence[Event]) -> None:
        """The cached parse of a parent names a file that is gone: it is parsed anew when sent."""
        parents = {e.parent for e in events if isinstance(e, DocumentReceived) and e.parent}
        for parent in parents:
            receipt = await self._log.event(receipt_id(parent, 1))
            if receipt is not None:
                await self._cache.drop(receipt.data["source_id"])

    @asynccontextmanager
    async def _alone(self, version_id: str) -> AsyncIterator[None]:
        """One at a time in this process: the request and the event come at the same moment, and
        what one deletes the other would not count."""
        lock = self._busy.setdefault(version_id, asyncio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._busy.pop(version_id, None)


def _target(
    document_id: str, there: Sequence[Life], every: Sequence[Life], *, attached: bool
) -> EraseTarget:
    versions = [x.version_id for x in there]
    stay = [x for x in every if not x.erased and x.version_id not in versions]
    return EraseTarget(
        document_id=document_id,
        name=there[-1].last.receipt.name,
        versions=versions,
        stay=len(stay),
        attached=attached,
    )


def _is_owed(life: Life, reason: Reason) -> bool:
    """Has a version no tombstone yet? That of the scanner is none where a person asks, and one from
    before there were receipts is none either."""
    tombstone = life.tombstone
    if tombstone is None:
        return True
    old = tombstone.schema_version < Erased.schema_version
    return reason == "request" and (tombstone.data["reason"] == "blocked" or old)


def _tombstone(version_id: str, envelopes: Iterable[Envelope]) -> Envelope | None:
    """The newest one of a version."""
    graves = [e for e in envelopes if e.type == "Erased" and e.data["version_id"] == version_id]
    return graves[-1] if graves else None


def _last_life(events: Sequence[Event]) -> list[Event]:
    """What happened to an erased version after an earlier erasure of it."""
    graves = [n for n, e in enumerate(events) if isinstance(e, Erased)]
    return list(events[graves[-2] + 1 :] if len(graves) > 1 else events)


def _about(version_id: str, envelopes: Iterable[Envelope]) -> list[Event]:
    """The events of one version, oldest first."""
    return [e.event() for e in envelopes if e.data.get("version_id") == version_id]


def _streams_of(document_id: str, version_id: str, envelopes: Iterable[Envelope]) -> list[Envelope]:
    streams = {f"document-{document_id}", f"version-{version_id}"}
    return [e for e in envelopes if e.stream_id in streams]
