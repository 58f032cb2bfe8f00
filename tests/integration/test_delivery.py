"""Relay and consumer on a real Postgres and a real nats-server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import resources
from typing import Any
from uuid import uuid4

import nats
import pytest

from contracts.envelope import Envelope
from contracts.events import DocumentReceived, Erased, Event, Failed, Parsed
from contracts.flow import consumed_by
from kernel.consumer import Consumer, subscribe
from kernel.db import pool
from kernel.embedded import EmbeddedNats
from kernel.errors import Retry
from kernel.log import Log, Pending
from kernel.provision import STREAM, provision
from kernel.relay import Relay, StreamAhead
from kernel.testing import first, received
from kernel.testing_wait import eventually
from kernel.watchdog import Stalled, Watchdog

Work = Callable[[Event], Awaitable[Sequence[Event]]]


@pytest.fixture
async def log(database: str) -> AsyncIterator[Log]:
    db = await pool(database)
    yield Log(db)
    db.terminate()


@asynccontextmanager
async def running(log: Log, url: str, work: Work, **options: Any) -> AsyncIterator[Consumer]:
    """A relay and the converter's first consumer with `work` as its handler."""
    from faststream.nats import NatsBroker

    concurrency = options.pop("concurrency", 1)
    consumer = Consumer("converter", consumed_by("converter")[0], "live", work, log, **options)
    broker = NatsBroker(url, max_reconnect_attempts=-1, reconnect_time_wait=1, logger=None)
    subscribe(broker, consumer, concurrency=concurrency)
    await broker.start()
    relay = asyncio.create_task(Relay(log, url).run())
    try:
        yield consumer
    finally:
        relay.cancel()
        with suppress(asyncio.CancelledError):
            await relay
        await broker.stop()


def parsed(event: Event) -> Parsed:
    return Parsed(**event.ids, parsed_sha256=event.source_id, parser="t", language="en")


async def parse(event: Event) -> list[Event]:
    return [parsed(event)]


async def types(log: Log) -> list[str]:
    return [e.type for e in await log.read(0)]


async def lag(url: str, consumer: Consumer) -> int:
    nc = await nats.connect(url)
    info = await nc.jetstream().consumer_info(STREAM, consumer.name)
    await nc.close()
    return (info.num_pending or 0) + (info.num_ack_pending or 0)


async def test_an_event_reaches_its_handler_and_the_reaction_the_log(
    log: Log, nats_server: EmbeddedNats
) -> None:
    url = nats_server.url
    await provision(url)
    cause = first(received())
    async with running(log, url, parse) as consumer:
        await log.append([cause])
        await eventually(lambda: _equal(types(log), ["DocumentReceived", "Parsed"]))
        reaction = (await log.read(1))[0]
        assert reaction.causation_id == cause.event_id
        assert reaction.correlation_id == cause.correlation_id
        await eventually(lambda: _equal(lag(url, consumer), 0))


async def test_a_delivery_whose_reaction_is_known_does_no_work(
    log: Log, nats_server: EmbeddedNats
) -> None:
    url, calls = nats_server.url, 0

    async def work(event: Event) -> list[Event]:
        nonlocal calls
        calls += 1
        return [parsed(event)]

    await provision(url)
    async with running(log, url, work):
        await log.append([first(received())])
        await eventually(lambda: _equal(types(log), ["DocumentReceived", "Parsed"]))
    nc = await nats.connect(url)
    await nc.jetstream().delete_consumer(STREAM, "converter-document-received-live")
    await nc.close()
    await provision(url)  # a new durable gets the whole stream again
    async with running(log, url, work) as consumer:
        await eventually(lambda: _equal(lag(url, consumer), 0))
    assert calls == 1
    assert await types(log) == ["DocumentReceived", "Parsed"]


async def test_a_transient_fault_is_repeated_and_never_counted(
    log: Log, nats_server: EmbeddedNats
) -> None:
    calls = 0

    async def work(event: Event) -> list[Event]:
        nonlocal calls
        calls += 1
        if calls < 5:
            raise Retry("away", after=0.05)
        return [parsed(event)]

    await provision(nats_server.url)
    async with running(log, nats_server.url, work, delays=(0.05,)):
        await log.append([first(received())])
        await eventually(lambda: _equal(types(log), ["DocumentReceived", "Parsed"]))
    assert calls == 5


async def test_a_bug_is_retried_then_fails_the_document(
    log: Log, nats_server: EmbeddedNats
) -> None:
    calls = 0

    async def work(event: Event) -> list[Event]:
        nonlocal calls
        calls += 1
        raise ZeroDivisionError("a bug")

    await provision(nats_server.url)
    async with running(log, nats_server.url, work, delays=(0.05, 0.05)) as consumer:
        await log.append([first(received())])
        await eventually(lambda: _equal(types(log), ["DocumentReceived", "Failed"]))
        await eventually(lambda: _equal(lag(nats_server.url, consumer), 0))
    failed = (await log.read(1))[0].event()
    assert isinstance(failed, Failed)
    assert (failed.stage, failed.code, failed.attempts) == ("converter", "internal-error", 3)
    assert calls == 3


async def test_an_event_outside_the_flow_table_is_refused(
    log: Log, nats_server: EmbeddedNats
) -> None:
    async def work(event: Event) -> list[Event]:
        return [event]

    await provision(nats_server.url)
    async with running(log, nats_server.url, work, delays=()):
        await log.append([first(received())])
        await eventually(lambda: _equal(types(log), ["DocumentReceived", "Failed"]))


async def test_a_handler_longer_than_the_ack_wait_runs_once(
    log: Log, nats_server: EmbeddedNats
) -> None:
    calls, release = 0, asyncio.Event()

    async def work(event: Event) -> list[Event]:
        nonlocal calls
        calls += 1
        await release.wait()
        return [parsed(event)]

    await provision(nats_server.url)
    await _shorten_ack_wait(nats_server.url, 0.5)
    async with running(log, nats_server.url, work, ack_wait=0.4, concurrency=2):
        await log.append([first(received())])
        await eventually(lambda: calls == 1)
        await asyncio.sleep(1.5)  # three times the ack wait: without heartbeats it comes again
        assert calls == 1
        release.set()
        await eventually(lambda: _equal(types(log), ["DocumentReceived", "Parsed"]))


async def test_a_payload_that_is_no_event_does_not_stop_the_next_one(
    log: Log, nats_server: EmbeddedNats
) -> None:
    await provision(nats_server.url)
    await log.append([first(received("first.md"))])
    nc = await nats.connect(nats_server.url)
    # Takes sequence 1, so the relay finds the stream level with the log and goes on with 2.
    await nc.jetstream().publish("kb.evt.live.DocumentReceived.v1", b"\xff not json")
    await nc.close()
    async with running(log, nats_server.url, parse) as consumer:
        await log.append([first(received("second.md"))])
        await eventually(lambda: _equal(types(log), ["DocumentReceived"] * 2 + ["Parsed"]))
        await eventually(lambda: _equal(lag(nats_server.url, consumer), 0))


async def test_events_survive_a_killed_nats_server(log: Log, nats_server: EmbeddedNats) -> None:
    await provision(nats_server.url)
    async with running(log, nats_server.url, parse):
        for n in range(5):
            await log.append([first(received(f"{n}.md"))])
        nats_server.kill()
        for n in range(5, 10):
            await log.append([first(received(f"{n}.md"))])
        nats_server.start()
        await eventually(lambda: _counts(log, Parsed=10), deadline=30)
    assert len(await log.read(0)) == 20


async def test_a_lost_stream_is_filled_again_without_effect(
    log: Log, nats_server: EmbeddedNats
) -> None:
    await provision(nats_server.url)
    async with running(log, nats_server.url, parse):
        for n in range(5):
            await log.append([first(received(f"{n}.md"))])
        await eventually(lambda: _counts(log, Parsed=5))
    nc = await nats.connect(nats_server.url)
    await nc.jetstream().delete_stream(STREAM)
    await provision(nats_server.url)
    async with running(log, nats_server.url, parse) as consumer:
        await eventually(lambda: _equal(_last_seq(nc), 10))
        await eventually(lambda: _equal(lag(nats_server.url, consumer), 0))
    await nc.close()
    assert len(await log.read(0)) == 10


async def test_two_relays_publish_every_event_once_in_order(
    log: Log, nats_server: EmbeddedNats
) -> None:
    await provision(nats_server.url)
    relays = [asyncio.create_task(Relay(log, nats_server.url).run()) for _ in range(2)]
    await asyncio.gather(*(log.append([first(received(f"{n}.md"))]) for n in range(60)))
    nc = await nats.connect(nats_server.url)
    await eventually(lambda: _equal(_last_seq(nc), 60))
    for relay in relays:
        relay.cancel()
    js = nc.jetstream()
    for envelope in await log.read(0):
        stored = await js.get_msg(STREAM, envelope.position)
        assert stored.headers and stored.headers["ce-id"] == str(envelope.event_id)
    await nc.close()


async def test_a_stream_ahead_of_the_log_stops_the_relay(
    log: Log, nats_server: EmbeddedNats
) -> None:
    await provision(nats_server.url)
    nc = await nats.connect(nats_server.url)
    await nc.jetstream().publish("kb.evt.live.DocumentReceived.v1", b"{}")
    await nc.close()
    with pytest.raises(StreamAhead):
        await asyncio.wait_for(Relay(log, nats_server.url).run(), 10)


async def test_a_process_whose_consumer_is_deleted_ends(
    log: Log, nats_server: EmbeddedNats
) -> None:
    await provision(nats_server.url)
    name = "converter-document-received-live"
    dog = asyncio.create_task(Watchdog(nats_server.url, [name], every=0.05).run())
    nc = await nats.connect(nats_server.url)
    await asyncio.sleep(0.3)
    assert not dog.done()
    await nc.jetstream().delete_consumer(STREAM, name)
    with pytest.raises(Stalled, match="gone"):
        async with asyncio.timeout(10):
            await dog
    await nc.close()


async def test_a_process_whose_consumer_stands_still_ends(
    log: Log, nats_server: EmbeddedNats
) -> None:
    await provision(nats_server.url)
    await log.append([first(received())])
    relay = asyncio.create_task(Relay(log, nats_server.url).run())
    with pytest.raises(Stalled, match="1 events wait"):
        async with asyncio.timeout(10):
            await Watchdog(nats_server.url, ["converter-document-received-live"], every=0.05).run()
    relay.cancel()


async def test_a_bus_that_is_away_is_no_stall(log: Log, nats_server: EmbeddedNats) -> None:
    await provision(nats_server.url)
    await log.append([first(received())])
    async with running(log, nats_server.url, parse) as consumer:
        dog = asyncio.create_task(Watchdog(nats_server.url, [consumer.name], every=0.05).run())
        await eventually(lambda: _counts(log, Parsed=1))
        nats_server.kill()
        await asyncio.sleep(0.5)
        nats_server.start()
        await log.append([first(received("b.md"))])
        await eventually(lambda: _counts(log, Parsed=2), deadline=30)
        assert not dog.done()
        dog.cancel()


# -- jobs that are over ----------------------------------------------------------------------------


async def cancel(log: Log, cause: Pending) -> None:
    """The job that `cause` began is cancelled."""
    assert isinstance(cause.event, DocumentReceived)
    event = Failed(**cause.event.ids, stage="ingest", code="cancelled", reason="no longer wanted")
    await log.append([Pending(event, uuid4(), cause.correlation_id, "somebody")])


async def test_a_job_that_was_cancelled_is_not_begun(log: Log, nats_server: EmbeddedNats) -> None:
    worked: list[Event] = []
    taken_back: list[Any] = []

    async def work(event: Event) -> list[Event]:
        worked.append(event)
        return [parsed(event)]

    async def take_back(event: Event, emitted: Sequence[Event]) -> None:
        taken_back.append((event, list(emitted)))

    await provision(nats_server.url)
    cause = first(received())
    await log.append([cause])
    await cancel(log, cause)
    async with running(log, nats_server.url, work, take_back=take_back) as consumer:
        await log.append([first(received("b.md"))])
        await eventually(lambda: _counts(log, Parsed=1))
        await eventually(lambda: _equal(lag(nats_server.url, consumer), 0))
    assert [e.ids for e in worked] == [received("b.md").ids]
    assert taken_back == [(cause.event, [])]


async def test_work_that_is_cancelled_meanwhile_is_not_recorded(
    log: Log, nats_server: EmbeddedNats
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    taken_back: list[Any] = []

    async def work(event: Event) -> list[Event]:
        begun.set()
        await go.wait()
        return [parsed(event)]

    async def take_back(event: Event, emitted: Sequence[Event]) -> None:
        taken_back.append((event, list(emitted)))

    await provision(nats_server.url)
    cause = first(received())
    async with running(log, nats_server.url, work, take_back=take_back) as consumer:
        await log.append([cause])
        await begun.wait()
        await cancel(log, cause)
        go.set()
        await eventually(lambda: _equal(lag(nats_server.url, consumer), 0))
    assert await types(log) == ["DocumentReceived", "Failed"]
    assert taken_back == [(cause.event, [parsed(received())])]


async def test_a_bug_in_a_cancelled_job_is_not_reported_after_its_end(
    log: Log, nats_server: EmbeddedNats
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def work(event: Event) -> list[Event]:
        begun.set()
        await go.wait()
        raise FileNotFoundError("its bytes were deleted")

    await provision(nats_server.url)
    cause = first(received())
    async with running(log, nats_server.url, work, delays=()) as consumer:
        await log.append([cause])
        await begun.wait()
        await cancel(log, cause)
        go.set()
        await eventually(lambda: _equal(lag(nats_server.url, consumer), 0))
    assert await types(log) == ["DocumentReceived", "Failed"]


async def test_another_attempt_at_the_same_version_goes_on(
    log: Log, nats_server: EmbeddedNats
) -> None:
    await provision(nats_server.url)
    cause = first(received())
    await log.append([cause])
    await cancel(log, cause)
    again = first(received(attempt=2))
    await log.append([again])
    async with running(log, nats_server.url, parse):
        await eventually(lambda: _counts(log, Parsed=1))
    (reaction,) = [e for e in await log.read(0) if e.type == "Parsed"]
    assert reaction.correlation_id == again.correlation_id


async def test_an_erasure_is_acted_upon_also_when_its_job_is_over(log: Log) -> None:
    done: list[Event] = []

    async def work(event: Event) -> list[Event]:
        done.append(event)
        return []

    cause = first(received())
    await log.append([cause])
    await cancel(log, cause)
    erased = Erased(**received().ids, reason="request", scope="document", blobs=1)
    await log.append([Pending(erased, uuid4(), cause.correlation_id, "somebody")])
    step = next(s for s in consumed_by("indexer") if s.consumes is Erased)
    outcome = await Consumer("indexer", step, "live", work, log).deliver(
        _Message(await log.read(2))
    )
    assert (outcome, done) == ("nothing", [erased])


class _Message:
    def __init__(self, envelopes: list[Envelope]) -> None:
        self.body = json.dumps(envelopes[0].to_cloudevent())

    async def ack_sync(self) -> None: ...
    async def nack(self, delay: float | None = None) -> None: ...
    async def reject(self) -> None: ...
    async def in_progress(self) -> None: ...


async def test_the_guard_is_one_query_by_indexes(log: Log) -> None:
    await log.pool.execute(
        """
        INSERT INTO log.event (position, stream_id, version, event_id, type, schema_version, lane,
                               project, correlation_id, actor, occurred_at, recorded_at, data,
                               salt, digest, chain)
        SELECT n, 's-' || n, 1, gen_random_uuid(),
               CASE n % 5 WHEN 0 THEN 'Failed' WHEN 1 THEN 'DocumentReceived' ELSE 'Parsed' END,
               1, 'live', 'p', gen_random_uuid(), 'a', now(), now(),
               jsonb_build_object('code', CASE n % 10 WHEN 0 THEN 'cancelled' ELSE 'x' END),
               'salt', sha256('digest'), sha256('chain')
          FROM generate_series(1, 20000) n
        """
    )
    await log.pool.execute("ANALYZE log.event")
    query = (resources.files("kernel.sql") / "log.sql").read_text("utf-8")
    standing = query.split("-- name: standing^")[1].split("-- name:")[0]
    numbered = standing.replace(":event_id", "$1").replace(":job", "$2").split("\n", 2)[2]
    plan = "\n".join(r[0] for r in await log.pool.fetch(f"EXPLAIN {numbered}", uuid4(), uuid4()))
    assert "event_cancelled" in plan and "event_event_id_key" in plan, plan
    assert "Seq Scan" not in plan, plan


async def _equal(actual: Awaitable[Any], expected: Any) -> bool:
    value = await actual
    assert value == expected
    return True


async def _counts(log: Log, **expected: int) -> bool:
    got = await types(log)
    assert {k: got.count(k) for k in expected} == expected
    return True


async def _last_seq(nc: Any) -> int:
    info = await nc.jetstream().stream_info(STREAM)
    return int(info.state.last_seq)


async def _shorten_ack_wait(url: str, seconds: float) -> None:
    from kernel.provision import consumer_config

    nc = await nats.connect(url)
    config = consumer_config("converter", DocumentReceived, "live")
    config.ack_wait = seconds
    await nc.jetstream().add_consumer(STREAM, config)
    await nc.close()
