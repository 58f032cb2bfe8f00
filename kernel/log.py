"""The append-only log in Postgres: the only truth, and the outbox of the bus."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID, uuid5

import asyncpg
from pydantic import ValidationError

from contracts.envelope import Envelope
from contracts.events import DocumentReceived, Event, Fact, Lane
from kernel.db import UNAVAILABLE, queries
from kernel.errors import WrongVersion

ANY_VERSION = -1
NEW_STREAM = 0
REACTIONS = UUID("6f1d6c1e-6f3a-5c56-9d0e-5f7a0c1b9e11")
"""Namespace of the ids of reactions."""


def reaction_id(cause: UUID, handler: str, ordinal: int | str = 0) -> UUID:
    """Id of the n-th event that `handler` emits because of `cause`: the same on every delivery."""
    return uuid5(REACTIONS, f"{cause}|{handler}|{ordinal}")


@dataclass(frozen=True)
class Pending:
    """An event on its way into the log."""

    event: Fact
    event_id: UUID
    correlation_id: UUID
    actor: str
    causation_id: UUID | None = None
    lane: Lane = "live"
    traceparent: str | None = None
    occurred_at: datetime | None = None

    def to_row(self) -> dict[str, Any]:
        """The JSON that `log.append` takes."""
        return {
            "event_id": str(self.event_id),
            "type": type(self.event).__name__,
            "schema_version": self.event.schema_version,
            "lane": self.lane,
            "project": self.event.project,
            "causation_id": str(self.causation_id) if self.causation_id else None,
            "correlation_id": str(self.correlation_id),
            "actor": self.actor,
            "traceparent": self.traceparent,
            "occurred_at": (self.occurred_at or datetime.now(UTC)).isoformat(),
            "data": self.event.model_dump(mode="json"),
        }


@dataclass(frozen=True)
class Beginning:
    """The first event of another job, decided on its stream at version `expected`.

    `event_id` says what it is about, so that whoever records it records it once.
    """

    event: Event
    event_id: UUID
    expected: int


class Spawning(list[Event]):
    """Events of one stream, and beginnings on other streams that are recorded before them.

    The events come last: once they are in the log, a further delivery of the cause does nothing.
    """

    def __init__(self, events: Sequence[Event], beginnings: Sequence[Beginning]) -> None:
        super().__init__(events)
        self.beginnings = tuple(beginnings)


class Decided(list[Event]):
    """Events that a handler decided on a stream at version `expected`: if the stream moved on
    meanwhile, the handler is asked again."""

    def __init__(self, events: Sequence[Event], expected: int) -> None:
        super().__init__(events)
        self.expected = expected


def reactions(
    cause: Envelope, handler: str, events: Sequence[Fact], *, traceparent: str | None = None
) -> list[Pending]:
    """What `handler` emits because of `cause`, with deterministic ids."""
    return [
        Pending(
            event=event,
            event_id=reaction_id(cause.event_id, handler, n),
            correlation_id=cause.correlation_id,
            causation_id=cause.event_id,
            actor=f"svc:{handler.partition('.')[0]}",
            lane=cause.lane,
            traceparent=traceparent,
        )
        for n, event in enumerate(events)
    ]


def beginning(cause: Envelope, handler: str, begun: Beginning) -> Pending:
    """A beginning as an event of a job of its own; the id of the job follows from the event's."""
    return Pending(
        event=begun.event,
        event_id=begun.event_id,
        correlation_id=uuid5(REACTIONS, f"{begun.event_id}|job"),
        causation_id=cause.event_id,
        actor=f"svc:{handler.partition('.')[0]}",
        lane=cause.lane,
    )


class Standing(NamedTuple):
    """Where a delivery stands: is the reaction to it in the log, is its job cancelled?"""

    known: bool
    over: bool


@dataclass(frozen=True)
class Appended:
    """`duplicate`: every event was in the log already, `over`: the job was cancelled; in both cases
    nothing was written."""

    status: Literal["appended", "duplicate", "over"]
    version: int
    position: int


def to_envelope(row: asyncpg.Record) -> Envelope:
    """A row of `log.event` as an envelope; `data` is text from a pool without the codec."""
    fields = dict(row)
    if isinstance(fields["data"], str):
        fields["data"] = json.loads(fields["data"])
    return Envelope.model_validate(fields)


def told(error: BaseException) -> str:
    """What an exception says, without the values that validation and Postgres quote: they may be
    words of a document."""
    if isinstance(error, ValidationError):
        found = error.errors(include_url=False, include_input=False, include_context=False)
        return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['type']}" for e in found)
    if isinstance(error, asyncpg.PostgresError):
        return str(error.args[0]) if error.args else ""
    return str(error)


class Log:
    """Appends and reads. Every method is one short statement; none holds a transaction open."""

    def __init__(self, pool: "asyncpg.Pool[Any]") -> None:
        self.pool = pool
        self._sql = queries("kernel.sql", "log")
        self._waker = Waker(pool)

    async def close(self) -> None:
        """Stop listening; the pool stays the caller's."""
        await self._waker.close()

    async def append(
        self,
        pending: Sequence[Pending],
        *,
        expected: int = ANY_VERSION,
        unless_over: UUID | None = None,
        connection: Any = None,
    ) -> Appended:
        """Append events of one stream, in one transaction.

        Args:
            pending: one or more events, all of one stream.
            expected: `ANY_VERSION`, `NEW_STREAM`, or the version that the stream must have.
            unless_over: a job; nothing is appended when it was cancelled.
            connection: one with an open transaction that the append is to be part of. Until it
                ends nobody else can append, so this is the last thing it does.

        Raises:
            WrongVersion: the stream moved on.
            ValueError: no events, or events of several streams.
            asyncpg.PostgresError: KB002 ids partly known, KB005 the role does not own the type.
        """
        streams = {p.event.stream_id for p in pending}
        if len(streams) != 1:
            raise ValueError(f"one stream at a time, not {len(streams)}")
        stream_id = streams.pop()
        try:
            row = await self._sql.append(
                connection or self.pool,
                stream_id=stream_id,
                expected=expected,
                events=[p.to_row() for p in pending],
                job=unless_over,
            )
        except asyncpg.PostgresError as error:
            if error.sqlstate == "KB001":
                raise WrongVersion(stream_id, expected) from error
            raise
        return Appended(row["status"], row["last_version"], row["last_position"])

    async def head(self) -> int:
        """Position of the newest event; 0 in an empty log."""
        return int(await self._sql.head(self.pool))

    async def read(self, after: int, limit: int = 1000) -> list[Envelope]:
        """Up to `limit` events after position `after`, in order, without gaps."""
        return [to_envelope(r) async for r in self._sql.read(self.pool, after=after, limit=limit)]

    async def stream(self, stream_id: str) -> list[Envelope]:
        """All events of a stream, oldest first; empty if it does not exist."""
        return [to_envelope(r) async for r in self._sql.stream(self.pool, stream_id=stream_id)]

    async def streams(self, stream_ids: Sequence[str]) -> list[Envelope]:
        """All events of several streams in log order."""
        rows = self._sql.streams(self.pool, stream_ids=list(stream_ids))
        return [to_envelope(r) async for r in rows]

    async def known(self, event_id: UUID) -> bool:
        """Is this event in the log?"""
        return bool(await self._sql.known(self.pool, event_id=event_id))

    async def standing(self, reaction: UUID, job: UUID) -> Standing:
        """Is `reaction` in the log, and was `job` cancelled? One query."""
        row = await self._sql.standing(self.pool, event_id=reaction, job=job)
        return Standing(row["known"], row["over"])

    async def received(self, event: Event) -> DocumentReceived:
        """The newest receipt of the version that `event` is about.

        Raises:
            LookupError: there is none (a bug: every version begins with its receipt).
        """
        row = await self._sql.received(
            self.pool, stream_id=f"document-{event.document_id}", version_id=event.version_id
        )
        if row is None:
            raise LookupError(f"no receipt of version {event.version_id}")
        received = to_envelope(row).event()
        assert isinstance(received, DocumentReceived)  # noqa: S101 - the query asks for this type
        return received

    async def job(self, correlation_id: UUID) -> Envelope | None:
        """The receipt that began a job; None if there is no such job."""
        row = await self._sql.job(self.pool, correlation_id=correlation_id)
        return None if row is None else to_envelope(row)

    async def event(self, event_id: UUID) -> Envelope | None:
        """One event by its id."""
        row = await self._sql.event(self.pool, event_id=event_id)
        return None if row is None else to_envelope(row)

    async def document_of(self, project: str, source_key: str) -> str | None:
        """Id of the document that a source key names in a project; None if there is none yet."""
        found = await self._sql.document_of(self.pool, project=project, source_key=source_key)
        return None if found is None else str(found)

    async def receipts(self, source_id: str) -> list[DocumentReceived]:
        """All receipts of the bytes `source_id`, in any project or document, oldest first."""
        rows = self._sql.receipts(self.pool, source_id=source_id)
        events = [to_envelope(r).event() async for r in rows]
        return [e for e in events if isinstance(e, DocumentReceived)]

    async def documents(self, project: str) -> list[str]:
        """Ids of the documents of a project that have a version that is not erased."""
        return [r["document_id"] async for r in self._sql.documents(self.pool, project=project)]

    async def attached(self, version_ids: Sequence[str]) -> list[DocumentReceived]:
        """All receipts of what is attached to these versions, oldest first."""
        rows = self._sql.attached(self.pool, version_ids=list(version_ids))
        events = [to_envelope(r).event() async for r in rows]
        return [e for e in events if isinstance(e, DocumentReceived)]

    async def users(self, name: str) -> list[tuple[str, str]]:
        """`(document id, version id)` of every version whose bytes, parse, body or meta is the
        blob `name`, as far as it was received or scanned."""
        rows = self._sql.users(self.pool, name=name)
        return [(r["document_id"], r["version_id"]) async for r in rows]

    async def identity_key(self) -> bytes:
        """Key of the HMAC behind document and version ids."""
        return bytes(await self._sql.identity_key(self.pool))

    async def count_failure(self, consumer: str, cause: Envelope, error: BaseException) -> int:
        """Record a failed attempt; returns how many there were."""
        return int(
            await self._sql.count_failure(
                self.pool,
                consumer=consumer,
                event_id=str(cause.event_id),
                position=cause.position,
                stream_id=cause.stream_id,
                error_type=type(error).__name__,
                error=told(error)[:500],
            )
        )

    async def settle_failure(
        self, consumer: str, event_id: UUID | str, state: Literal["dead", "resolved"]
    ) -> None:
        """An event that failed before is done, or given up."""
        await self._sql.settle_failure(
            self.pool, consumer=consumer, event_id=str(event_id), state=state
        )

    async def redact(self, document_id: str, version_id: str) -> int:
        """Take names, source keys and reasons of a version that a person had erased out of the log;
        returns how many events lost something.

        Raises:
            asyncpg.PostgresError: KB006 nobody had it erased, or the role has no right to it.
        """
        return int(
            await self._sql.redact(self.pool, document_id=document_id, version_id=version_id)
        )

    async def tombstones(self, correlation_ids: Sequence[UUID]) -> list[Envelope]:
        """Every `Erased` of these requests, in log order."""
        rows = self._sql.tombstones(self.pool, correlation_ids=list(correlation_ids))
        return [to_envelope(r) async for r in rows]

    async def redacted(self, streams: Sequence[str]) -> list[int]:
        """Positions of the events of these streams that lost something to an erasure."""
        rows = self._sql.redacted(self.pool, streams=list(streams))
        return [r["position"] async for r in rows]

    async def scrubbed(self) -> tuple[int, datetime | None]:
        """Up to which position the database's files hold nothing that was erased, and since when
        that is so."""
        row = await self._sql.scrubbed(self.pool)
        return row["position"], row["at"]

    async def follow(
        self, after: int, *, limit: int = 1000, poll: float = 0.5
    ) -> AsyncIterator[list[Envelope]]:
        """Batches of events after `after`, for ever; an empty batch when `poll` seconds passed.

        NOTIFY wakes it early. A dead LISTEN session is not noticed by asyncpg, so the poll is the
        truth.
        """
        while True:
            grew = await self._waker.listen()
            batch = await self.read(after, limit)
            if batch:
                after = batch[-1].position
            yield batch
            if len(batch) < limit:
                # Not wait_for: in Python 3.11 it swallows a cancellation that meets the wake-up,
                # and the reader would go on for ever.
                with suppress(TimeoutError):
                    async with asyncio.timeout(poll):
                        await grew.wait()


class Waker:
    """Wakes all readers of this process when the log grew, over one session. Losing the session
    costs latency, never an event."""

    def __init__(self, pool: "asyncpg.Pool[Any]") -> None:
        self._pool = pool
        self._grew = asyncio.Event()
        self._lock = asyncio.Lock()
        self._connection: Any = None

    async def listen(self) -> asyncio.Event:
        """An event that is set when the log grows after this call."""
        async with self._lock:
            if self._connection is None or self._connection.is_closed():
                await self._open()
        return self._grew

    async def close(self) -> None:
        """Give the session back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*UNAVAILABLE, asyncpg.PostgresError):
                await connection.remove_listener("log_head", self._wake)
            with suppress(*UNAVAILABLE, asyncpg.PostgresError):
                await self._pool.release(connection)

    async def _open(self) -> None:
        await self.close()
        with suppress(*UNAVAILABLE):
            self._connection = await self._pool.acquire()
            await self._connection.add_listener("log_head", self._wake)

    def _wake(self, *_: object) -> None:
        grew, self._grew = self._grew, asyncio.Event()
        grew.set()
