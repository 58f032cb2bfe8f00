"""The log on a real Postgres, and the fake of it: one suite for both."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from contracts.events import Parsed
from contracts.flow import SERVICES, emitted_by
from kernel.db import pool
from kernel.errors import WrongVersion
from kernel.log import NEW_STREAM, Log, Pending, reactions
from kernel.migrations import migrate
from kernel.testing import MemoryLog, first, received
from kernel.testing_wait import eventually


@pytest.fixture(params=["postgres", "memory"])
async def log(request: pytest.FixtureRequest, database: str) -> AsyncIterator[Any]:
    if request.param == "memory":
        yield MemoryLog()
        return
    db = await pool(database)
    yield Log(db)
    db.terminate()


@pytest.fixture
async def real(database: str) -> AsyncIterator[Log]:
    db = await pool(database, size=10)
    yield Log(db)
    db.terminate()


async def test_appended_events_are_read_back_as_written(log: Any) -> None:
    pending = first(received("Закон.md"))
    appended = await log.append([pending], expected=NEW_STREAM)
    assert (appended.status, appended.version, appended.position) == ("appended", 1, 1)
    (envelope,) = await log.read(0)
    assert envelope.event() == pending.event
    assert (envelope.position, envelope.version) == (1, 1)
    assert envelope.event_id == pending.event_id


async def test_the_same_event_twice_is_a_duplicate(log: Any) -> None:
    pending = first(received())
    await log.append([pending])
    again = await log.append([pending])
    assert (again.status, again.version, again.position) == ("duplicate", 1, 1)
    assert await log.head() == 1


async def test_a_stream_that_moved_on_refuses_the_append(log: Any) -> None:
    await log.append([first(received())])
    with pytest.raises(WrongVersion):
        await log.append([first(received())], expected=NEW_STREAM)
    assert (await log.append([first(received())], expected=1)).version == 2


async def test_several_events_of_one_stream_are_appended_together(log: Any) -> None:
    appended = await log.append([first(received()), first(received())])
    assert (appended.version, appended.position) == (2, 2)


async def test_ids_that_are_known_in_part_are_refused(log: Any) -> None:
    known = first(received())
    await log.append([known])
    with pytest.raises((RuntimeError, asyncpg.PostgresError), match="partly known"):
        await log.append([known, first(received())])
    assert await log.head() == 1


async def test_an_id_of_another_stream_is_refused(log: Any) -> None:
    known = first(received("a.md"))
    await log.append([known])
    other = Pending(received("b.md"), known.event_id, known.correlation_id, "test")
    with pytest.raises((RuntimeError, asyncpg.PostgresError), match="partly known"):
        await log.append([other])


async def test_an_append_is_of_one_stream(log: Any) -> None:
    with pytest.raises(ValueError, match="one stream"):
        await log.append([first(received("a.md")), first(received("b.md"))])
    with pytest.raises(ValueError, match="one stream"):
        await log.append([])


async def test_reading_goes_on_after_a_position_and_respects_the_limit(log: Any) -> None:
    for n in range(5):
        await log.append([first(received(f"{n}.md"))])
    assert [e.position for e in await log.read(2, 2)] == [3, 4]
    assert await log.read(5) == []


async def test_the_newest_receipt_of_a_version_is_found(log: Any) -> None:
    await log.append([first(received())])
    await log.append([first(received(attempt=2))])
    event = Parsed(**received().ids, parsed_sha256="0" * 64, parser="p", language="en")
    assert (await log.received(event)).attempt == 2
    with pytest.raises(LookupError):
        await log.received(received("other.md"))


async def test_receipts_are_found_by_bytes_and_events_by_id(log: Any) -> None:
    await log.append([first(received("a.md"))])
    await log.append(
        [first(received("a.md", project="other", document_id="9" * 32, version_id="8" * 32))]
    )
    source_id = received("a.md").source_id
    assert {r.project for r in await log.receipts(source_id)} == {"default", "other"}
    (envelope, _) = await log.read(0)
    assert await log.event(envelope.event_id) == envelope
    assert await log.event(UUID(int=0)) is None
    assert await log.receipts("f" * 64) == []


async def test_failures_are_counted_for_each_consumer(log: Any) -> None:
    await log.append([first(received())])
    (cause,) = await log.read(0)
    counts = [await log.count_failure("c", cause, ValueError("x")) for _ in range(3)]
    assert counts == [1, 2, 3]
    assert await log.count_failure("d", cause, ValueError("x")) == 1


async def test_a_reaction_has_the_same_id_on_every_delivery(log: Any) -> None:
    await log.append([first(received())])
    (cause,) = await log.read(0)
    event = Parsed(**received().ids, parsed_sha256="0" * 64, parser="p", language="en")
    (a,) = reactions(cause, "converter.on_x", [event])
    assert (await log.append([a])).status == "appended"
    (b,) = reactions(cause, "converter.on_x", [event])
    assert (await log.append([b])).status == "duplicate"
    (c,) = reactions(cause, "converter.on_y", [event])
    assert c.event_id != a.event_id


async def test_a_reader_that_polls_misses_no_event_of_eight_writers(real: Log) -> None:
    total = 400
    seen: list[int] = []

    async def write(writer: int) -> None:
        for n in range(total // 8):
            await real.append([first(received(f"{writer}-{n}.md"))])

    async def follow() -> None:
        async for batch in real.follow(0, limit=7, poll=0.05):
            seen.extend(e.position for e in batch)
            if len(seen) == total:
                return

    await asyncio.wait_for(asyncio.gather(follow(), *(write(w) for w in range(8))), 60)
    assert seen == list(range(1, total + 1))


async def test_a_reader_that_is_cancelled_as_the_log_grows_ends(real: Log) -> None:
    """The two meet in one turn of the loop: `asyncio.wait_for` of Python 3.11 would go on."""

    async def follow() -> None:
        async for _ in real.follow(0, poll=60):
            pass

    for _ in range(50):
        reader = asyncio.create_task(follow())
        await eventually(lambda: real._waker._connection is not None)
        await asyncio.sleep(0.005)  # it waits now
        real._waker._wake()
        reader.cancel()
        done, _ = await asyncio.wait([reader], timeout=5)
        assert done
        assert reader.cancelled()


async def test_a_sequence_without_the_lock_would_let_a_reader_skip(real: Log) -> None:
    """The control: positions taken before commit become visible out of order."""
    async with real.pool.acquire() as a, real.pool.acquire() as b:
        await a.execute("CREATE TABLE naive (position bigserial)")
        slow = a.transaction()
        await slow.start()
        await a.execute("INSERT INTO naive DEFAULT VALUES")
        await b.execute("INSERT INTO naive DEFAULT VALUES")
        assert [r["position"] for r in await b.fetch("SELECT position FROM naive")] == [2]
        await slow.commit()


async def test_racing_appends_at_one_version_let_one_through(real: Log) -> None:
    results = await asyncio.gather(
        *(real.append([first(received())], expected=NEW_STREAM) for _ in range(8)),
        return_exceptions=True,
    )
    assert sum(isinstance(r, WrongVersion) for r in results) == 7


@pytest.mark.parametrize(
    "statement", ["UPDATE log.event SET type = 'x'", "DELETE FROM log.event", "TRUNCATE log.event"]
)
async def test_not_even_the_owner_changes_the_log(real: Log, statement: str) -> None:
    await real.append([first(received())])
    with pytest.raises(asyncpg.PostgresError, match="append-only"):
        await real.pool.execute(statement)


async def connect_as(database: str, service: str) -> Any:
    await migrate(database, {f"kb_{service}": "pw"})
    return await pool(
        database.replace("postgres@", f"kb_{service}:pw@").replace("postgres:", f"kb_{service}:"),
        size=2,
    )


@pytest.mark.parametrize("service", [*SERVICES, "relay"])
async def test_a_role_appends_its_own_events_and_no_others(database: str, service: str) -> None:
    db = await connect_as(database, service)
    try:
        log = Log(db)
        assert (await db.fetchval("SELECT session_user")) == f"kb_{service}"
        if "DocumentReceived" in emitted_by(service):
            assert (await log.append([first(received())])).status == "appended"
        else:
            with pytest.raises(asyncpg.PostgresError) as refused:
                await log.append([first(received())])
            assert refused.value.sqlstate in ("KB005", "42501")
        for statement in (
            "INSERT INTO log.event VALUES (1)",
            "DELETE FROM log.event",
            "UPDATE log.head SET position = 0",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await db.execute(statement)
    finally:
        db.terminate()


async def test_migrating_twice_changes_nothing(database: str) -> None:
    assert await migrate(database) == []


async def test_a_migration_edited_after_it_ran_is_refused(database: str) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute("UPDATE public.migration SET sha256 = 'x' WHERE name LIKE '0001%'")
    await connection.close()
    with pytest.raises(RuntimeError, match="0001"):
        await migrate(database)
