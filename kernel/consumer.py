"""From a JetStream delivery to a handler and back to the log: all delivery policy is in this file.

| what happened | what is done | an attempt? |
|---|---|---|
| the reaction is in the log already | acknowledge | – |
| the job was cancelled, before or meanwhile | take back what was written, acknowledge | – |
| handler returns events | check against the flow table, append, acknowledge | – |
| `Retry`, Postgres or a store away | NAK with delay | no |
| newer event version than this code | NAK 60 s | no |
| any other exception | count, NAK with the next delay; after the last `Failed`, terminate | yes |
| payload is no event | dead letter, terminate | – |
| worker dies | JetStream delivers again after `ACK_WAIT` | no |
"""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, cast
from uuid import UUID

import structlog
from pydantic import ValidationError

from contracts.envelope import Envelope, UnknownEvent
from contracts.events import (
    Erased,
    Event,
    Fact,
    Failed,
    Lane,
    Reinstated,
    Stage,
    Superseded,
    subject,
)
from contracts.flow import Step, consumed_by, durable, emitted_by, handler_name
from kernel.db import UNAVAILABLE
from kernel.errors import KbError, Retry, WrongVersion
from kernel.log import (
    ANY_VERSION,
    Appended,
    Pending,
    Spawning,
    Standing,
    beginning,
    reaction_id,
    reactions,
)
from kernel.provision import ACK_WAIT, LANES, STREAM
from kernel.telemetry import HANDLED, HANDLER_SECONDS, span

log = structlog.get_logger()

DELAYS = (1.0, 5.0, 30.0, 120.0, 600.0)
"""Seconds before the second and later attempts at an event whose handler raised."""

DECISIONS = 5
"""How often a handler may decide anew on a stream that moves on under it."""

ALWAYS: tuple[type[Event], ...] = (Erased, Superseded, Reinstated)
"""What takes away or settles is acted upon also when its job is over."""

Handler = Callable[[Event], Awaitable[Sequence[Fact]]]
TakeBack = Callable[[Event, Sequence[Fact]], Awaitable[None]]
"""Given a cause whose job is over, and what its handler would have emitted: leave no trace."""


async def nothing_to_take_back(_: Event, __: Sequence[Fact]) -> None:
    """For handlers that write nothing but events."""


class NotInFlow(KbError):
    """A handler returned an event that the flow table does not let it emit."""


class Delivery(Protocol):
    """A message and its acknowledgements (FastStream's `NatsMessage` is one)."""

    body: Any

    async def ack_sync(self) -> None:
        """Done, and confirmed by the server."""

    async def nack(self, delay: float | None = None) -> None:
        """Again, after `delay` seconds."""

    async def reject(self) -> None:
        """Never again."""

    async def in_progress(self) -> None:
        """Still at work."""


class EventLog(Protocol):
    """What a consumer needs of the log; `kernel.log.Log` and `kernel.testing.MemoryLog` are one."""

    async def append(
        self, pending: Sequence[Pending], *, expected: int = -1, unless_over: UUID | None = None
    ) -> Appended: ...

    async def standing(self, reaction: Any, job: Any) -> Standing: ...

    async def count_failure(self, consumer: str, cause: Envelope, error: BaseException) -> int: ...

    async def settle_failure(self, consumer: str, event_id: Any, state: Any) -> None: ...


@dataclass(frozen=True)
class Consumer:
    """One step of the flow in one lane."""

    service: str
    step: Step
    lane: Lane
    handler: Handler
    log: EventLog
    take_back: TakeBack = nothing_to_take_back
    delays: Sequence[float] = DELAYS
    ack_wait: float = ACK_WAIT

    @property
    def name(self) -> str:
        """The durable's name."""
        return durable(self.service, self._consumes, self.lane)

    @property
    def subject(self) -> str:
        """What it filters on."""
        return subject(self.lane, self._consumes.__name__, "*")

    @property
    def handler_key(self) -> str:
        """Part of the ids of its reactions; the lane is not, since a redrive may change it."""
        return f"{self.service}.{handler_name(self._consumes)}"

    @property
    def _consumes(self) -> type[Event]:
        return cast(type[Event], self.step.consumes)

    async def deliver(self, message: Delivery) -> str:
        """Work on one delivery; returns the outcome. Raises nothing but cancellation."""
        outcome = await self._guarded(message)
        HANDLED.labels(self.service, self._consumes.__name__, outcome).inc()
        return outcome

    async def _guarded(self, message: Delivery) -> str:
        try:
            cause = Envelope.from_cloudevent(_payload(message))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.error("consumer.poison", consumer=self.name, error=str(error)[:300])
            await message.reject()
            return "poison"
        with structlog.contextvars.bound_contextvars(
            consumer=self.name,
            position=cause.position,
            event_id=str(cause.event_id),
            stream_id=cause.stream_id,
        ):
            try:
                async with heartbeat(message, self.ack_wait / 4):
                    outcome = await self._work(cause)
                await message.ack_sync()
                if _again(message):
                    await self.log.settle_failure(self.name, cause.event_id, "resolved")
            except Exception as error:  # noqa: BLE001 - the one place where every error has its fate
                return await self._failed(message, cause, error)
        return outcome

    async def _work(self, cause: Envelope) -> str:
        event = cause.event()
        standing = await self.log.standing(
            reaction_id(cause.event_id, self.handler_key), cause.correlation_id
        )
        if standing.known:
            return "duplicate"
        if standing.over and not isinstance(event, ALWAYS):
            return await self._over(event, ())
        with span(self.handler_key, cause.traceparent) as traceparent:
            for left in reversed(range(DECISIONS)):
                with HANDLER_SECONDS.labels(self.service, self._consumes.__name__).time():
                    emitted = await self.handler(event)
                self._allowed(emitted)
                try:
                    status = await self._record(cause, event, emitted, traceparent)
                    break
                except WrongVersion as conflict:
                    if not left:
                        raise Retry(str(conflict)) from conflict
        if status == "over":
            return await self._over(event, emitted)
        if emitted:
            log.info("handled", emitted=[type(e).__name__ for e in emitted], status=status)
        return status

    async def _record(
        self, cause: Envelope, event: Event, emitted: Sequence[Fact], traceparent: str | None
    ) -> str:
        """Append what a handler emitted, beginnings of other jobs first."""
        job = None if isinstance(event, ALWAYS) else cause.correlation_id
        for begun in emitted.beginnings if isinstance(emitted, Spawning) else ():
            pending = beginning(cause, self.handler_key, begun)
            done = await self.log.append([pending], expected=begun.expected, unless_over=job)
            if done.status == "over":
                return done.status
        if not emitted:
            return "nothing"
        appended = await self.log.append(
            reactions(cause, self.handler_key, emitted, traceparent=traceparent),
            expected=getattr(emitted, "expected", ANY_VERSION),
            unless_over=job,
        )
        return appended.status

    async def _over(self, event: Event, emitted: Sequence[Fact]) -> str:
        await self.take_back(event, emitted)
        log.info("consumer.job_over", left=[type(e).__name__ for e in emitted])
        return "over"

    def _allowed(self, emitted: Sequence[Fact]) -> None:
        begun = [b.event for b in emitted.beginnings] if isinstance(emitted, Spawning) else []
        wrong = [type(e).__name__ for e in (*emitted, *begun) if type(e) not in self.step.emits]
        if wrong:
            raise NotInFlow(f"{self.handler_key} may not emit {wrong}")

    async def _failed(self, message: Delivery, cause: Envelope, error: Exception) -> str:
        """Give an exception its fate; if that fails too, JetStream delivers again."""
        try:
            return await self._fate(message, cause, error)
        except (*UNAVAILABLE, *_bus_errors()) as away:
            log.warning("consumer.away", error=str(away)[:300])
            with suppress(*_bus_errors()):
                await message.nack(delay=2)
            return "retry"

    async def _fate(self, message: Delivery, cause: Envelope, error: Exception) -> str:
        if isinstance(error, UnknownEvent):
            log.error("consumer.newer_event", error=str(error))
            await message.nack(delay=60)
            return "retry"
        if isinstance(error, (Retry, *UNAVAILABLE, *_bus_errors())):
            log.warning("consumer.retry", error=f"{type(error).__name__}: {error}"[:300])
            await message.nack(delay=getattr(error, "after", 2.0))
            return "retry"
        attempts = await self.log.count_failure(self.name, cause, error)
        log.error("consumer.failed", attempts=attempts, exc_info=error)
        if attempts <= len(self.delays) and not isinstance(error, ValidationError):
            await message.nack(delay=self.delays[attempts - 1])
            return "failed"
        await self._bury(cause, error, attempts)
        await message.reject()
        return "dead"

    async def _bury(self, cause: Envelope, error: Exception, attempts: int) -> None:
        about = {k: cause.data.get(k) for k in ("document_id", "version_id", "source_id")}
        try:
            failed = Failed.model_validate(
                about
                | {
                    "project": cause.project,
                    "stage": cast(Stage, self.service),
                    "code": "internal-error",
                    "reason": f"{self.service} gave up: {type(error).__name__}",
                    "attempts": attempts,
                }
            )
        except ValidationError:
            log.exception("consumer.no_document", data_keys=sorted(cause.data))
        else:
            # The id is that of the handler's first reaction: whatever came first, it happens once.
            await self.log.append(
                reactions(cause, self.handler_key, [failed]), unless_over=cause.correlation_id
            )
        await self.log.settle_failure(self.name, cause.event_id, "dead")


def _again(message: Delivery) -> bool:
    raw = getattr(message, "raw_message", None)
    return raw is not None and raw.metadata.num_delivered > 1


def _payload(message: Delivery) -> dict[str, Any]:
    decoded: Any = json.loads(message.body)
    return cast(dict[str, Any], decoded)


def _bus_errors() -> tuple[type[BaseException], ...]:
    import nats.errors

    return (nats.errors.Error, ConnectionError)


@asynccontextmanager
async def heartbeat(message: Delivery, every: float) -> AsyncIterator[None]:
    """Tell the server every `every` seconds that the message is being worked on."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(every)
            with suppress(*_bus_errors()):
                await message.in_progress()

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def bind_handler(
    function: Callable[..., Awaitable[Sequence[Fact]]], deps: Mapping[str, Any]
) -> Handler:
    """Close a handler's keyword arguments over the dependencies that it names."""
    wanted = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    if missing := [n for n in wanted if n not in deps]:
        raise TypeError(f"{function.__name__} needs {missing}")
    chosen = {n: deps[n] for n in wanted}

    async def handler(event: Event) -> Sequence[Fact]:
        return await function(event, **chosen)

    return handler


def consumers_of(
    service: str,
    handlers: ModuleType,
    event_log: EventLog,
    deps: Mapping[str, Any],
    take_back: TakeBack = nothing_to_take_back,
) -> list[Consumer]:
    """The consumers of a service: one for each step and lane, handlers found by their names."""
    assert emitted_by(service) or not consumed_by(service)  # noqa: S101 - the table itself
    return [
        Consumer(
            service,
            step,
            lane,
            bind_handler(getattr(handlers, handler_name(cast(type[Event], step.consumes))), deps),
            event_log,
            take_back,
        )
        for step in consumed_by(service)
        for lane in LANES
    ]


def subscribe(broker: Any, consumer: Consumer, *, concurrency: int = 1) -> None:
    """Register a consumer on a FastStream broker, `concurrency` times.

    FastStream is the shell only: the durable exists already (declaring rewrites it), one message a
    pull (more is over-fetched), and this file acknowledges (its own policies lose or spin).
    """
    from faststream import AckPolicy
    from faststream.nats import JStream, NatsMessage, PullSub

    for n in range(concurrency):

        async def on_message(message: NatsMessage) -> None:
            await consumer.deliver(message)

        broker.subscriber(
            consumer.subject,
            durable=consumer.name,
            stream=JStream(STREAM, declare=False),
            pull_sub=PullSub(batch_size=1, timeout=5),
            ack_policy=AckPolicy.MANUAL,
            title=f"{consumer.name}-{n}",
            description=consumer.step.why,
        )(on_message)
