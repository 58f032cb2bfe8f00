"""The read projection in batches: tables are equal at every end of a batch, whatever its size."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import Phase, given, settings

from contracts.artifacts import BodyMeta
from contracts.envelope import Envelope
from contracts.events import Converted, Indexed
from kernel.db import pool
from kernel.log import Log
from kernel.testing import first, received, to_envelope
from kernel.testing_wait import eventually
from services.search import fold
from services.search.projection import AT_ONCE, Projection, digest
from tests.made_logs import TEXTS, Step, log_of, logs
from tests.model.world import empty
from tests.recorded import BEFORE, COLUMNS, PLACES

SIZES = (3, 7, 500)


class Titles:
    """Blobs of titles; one text was erased."""

    def __init__(self) -> None:
        self.reading = self.most = 0

    async def get(self, name: str) -> bytes:
        self.reading += 1
        self.most = max(self.most, self.reading)
        await asyncio.sleep(0)
        self.reading -= 1
        if name == TEXTS[1]:
            raise FileNotFoundError(name)
        return BodyMeta(title=name[-9:], language="sr", media_type="text/markdown").to_bytes()


def of_size(size: int, db: Any, blobs: Any = None) -> Projection:
    return Projection(Log(db), cast(Any, blobs or Titles()), batch=size)


async def state(db: Any) -> dict[str, Any]:
    """All that is folded."""
    lines = await db.fetch("SELECT document_id, project, position FROM read.line ORDER BY 1")
    return await digest(db) | {"line": [tuple(r) for r in lines]}


async def states(size: int, db: Any, blobs: Any = None) -> dict[int, dict[str, Any]]:
    """The state at the end of each batch, by its position."""
    projection, found = of_size(size, db, blobs), {}
    await projection._sql.start(db)
    await projection._sql.clear_versions(db)
    await db.execute("DELETE FROM read.line")
    await projection._sql.set_position(db, position=0)
    while await projection.step():
        found[await projection.position()] = await state(db)
    return found


async def put(db: Any, log: list[Envelope]) -> None:
    """The log as it is, with its own times; nothing here looks at its chain."""
    rows = [(*(getattr(e, name) for name in COLUMNS), e.data) for e in log]
    async with db.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.executemany(
            f"INSERT INTO log.event ({', '.join(COLUMNS)}, data, salt, digest, chain)"
            f" VALUES ({PLACES}, substr(sha256(''), 1, 16), sha256(''), sha256(''))",
            rows,
        )
        await connection.execute("UPDATE log.head SET position = $1", len(log))


async def same(db: Any, log: list[Envelope], blobs: Any = None) -> None:
    """Is it the same in batches as one by one, and as a replay?"""
    await put(db, log)
    single = await states(1, db, blobs)
    assert list(single) == [e.position for e in log]
    for size in SIZES:
        batched = await states(size, db, blobs)
        assert len(batched) == -(-len(log) // size)
        assert batched == {position: single[position] for position in batched}
        await of_size(size, db, blobs).replay()
        assert await state(db) == single[len(log)]


@pytest.fixture
async def db(database: str) -> AsyncIterator[Any]:
    opened = await pool(database, size=10)
    yield opened
    opened.terminate()


def test_made_up_logs_fold_to_the_same_one_by_one_and_in_batches(database: str) -> None:
    with asyncio.Runner() as runner:
        db = runner.run(pool(database))

        @settings(max_examples=20, deadline=None, phases=(Phase.generate,))
        @given(log=logs())
        def each(log: list[Envelope]) -> None:
            runner.run(empty(db))
            runner.run(same(db, log))

        each()
        db.terminate()


LINE, OTHER = [(0, 0), (1, 1)], [(0, 1), (1, 0), (2, 1)]
LIVE = [Step("received"), Step("converted"), Step("indexed")]
BOTH = [*LIVE, *(step._replace(version=1) for step in LIVE), Step("superseded", line=LINE)]
HISTORIES = {
    "windows that are held are those of the newest line": [
        *BOTH, Step("quarantine"), Step("superseded", 1, line=OTHER), Step("released"),
        Step("indexed"),
    ],
    "windows that were said before an erasure": [*BOTH, Step("erased")],
    "windows of a line that has fewer": [*BOTH, Step("reinstated", line=[(2, 0)])],
    "all attempts at a version lose its name": [
        Step("received"), Step("failed"), Step("received", job=1), Step("received", job=2),
        Step("erased", job=2),
    ],
    "another job goes on where the newest was cancelled": [
        *LIVE, Step("received", job=1), Step("cancelled", job=1), Step("quarantine"),
        Step("released"), Step("indexed"),
    ],
    "an attempt at what is in the index is refused": [
        *LIVE, Step("received", job=1, text=1), Step("parsed", job=1, text=1),
        Step("quarantine", job=1, text=1), Step("rejected", job=1, text=1),
    ],
    "a cancelled job is erased": [
        *LIVE[:2], Step("cancelled"), Step("indexed"), Step("erased"), Step("received", job=1),
    ],
    "a line is written anew several times at one instant": [
        *BOTH, Step("superseded", line=OTHER), Step("superseded", line=LINE, later=False),
        Step("superseded", line=[(0, 0)], later=False), Step("superseded", line=OTHER),
    ],
    "the only window of a document goes and another version is shown": [
        *LIVE, *(step._replace(version=1) for step in LIVE[:2]), Step("erased"),
        Step("indexed", 1), Step("quarantine", 1), Step("released", 1), Step("indexed", 1),
    ],
    "one of two windows goes and a third version is in the index, in one batch": [
        *BOTH, Step("received", 2), Step("converted", 2),
        Step("erased"), Step("indexed", 2), Step("configured"),
    ],
    "what is not folded": [Step("configured"), Step("attachments"), Step("failed")],
}  # fmt: skip


@pytest.mark.parametrize("steps", HISTORIES.values(), ids=HISTORIES)
async def test_a_history_folds_to_the_same_one_by_one_and_in_batches(
    db: Any, steps: list[Step]
) -> None:
    await same(db, log_of(steps))


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        datetime(2020, 1, 1, 12, 30, 15, 120000, tzinfo=timezone(timedelta(hours=2))),
    ],
    ids=str,
)
async def test_held_windows_are_told_as_postgres_tells_them(db: Any, moment: datetime) -> None:
    """They are compared as text, with those that an earlier release told by a query."""
    said = await db.fetchval("SELECT jsonb_build_array($1::timestamptz)", moment)
    assert [fold._told(moment)] == said
    assert datetime.fromisoformat(said[0]) == moment


async def test_a_recorded_log_folds_to_the_same_one_by_one_and_in_batches(db: Any) -> None:
    await same(db, BEFORE.events(), await BEFORE.blobs())


def lives(documents: int, *, indexed: bool = False) -> list[Envelope]:
    """Versions that were received, converted and perhaps indexed, one after the other."""
    log: list[Envelope] = []
    for n in range(documents):
        receipt, job = received(f"{n}.md"), UUID(int=n)
        text: Any = {"body_sha256": TEXTS[0], "meta_sha256": f"{n:064x}", "body_bytes": 1}
        converted = Converted(**receipt.ids, **text, converter="c", language="en")
        done = Indexed(
            **receipt.ids, body_sha256=TEXTS[0], chunks_sha256=TEXTS[0], chunk_count=1,
            embedder="e", embedded=1, reused=0,
        )  # fmt: skip
        for event in (receipt, converted, *([done] if indexed else [])):
            at = len(log) + 1
            envelope = to_envelope(first(event), position=at, version=at)
            log.append(envelope.model_copy(update={"correlation_id": job}))
    return log


async def test_replicas_that_take_turns_fold_every_event_once(db: Any) -> None:
    log = lives(30)
    await put(db, log)
    single = (await states(1, db))[len(log)]
    await of_size(1, db)._sql.clear_versions(db)
    await of_size(1, db)._sql.set_position(db, position=0)

    async def run(projection: Projection) -> int:
        folded = 0
        while batch := await projection.step():
            folded += batch
        return folded

    assert sum(await asyncio.gather(*(run(of_size(n, db)) for n in (1, 2, 3, 5)))) == len(log)
    assert await state(db) == single


async def test_a_replica_sees_what_the_one_before_it_wrote(db: Any) -> None:
    """Its rows are read when it has the lock, not before."""
    log = lives(1)
    await put(db, log)
    one, other = of_size(1, db), of_size(1, db)
    await one._sql.start(db)
    async with db.acquire() as connection, connection.transaction():
        await one._sql.lock_position(connection)
        waiting = asyncio.ensure_future(other.step())
        await eventually(lambda: _waits(db))
        await one._fold(connection, log[:1])
        await one._sql.set_position(connection, position=1)
    assert await waiting == 1
    status = await db.fetchval("SELECT status FROM read.version")
    assert (status, await one.position()) == ("scanning", 2)


async def _waits(db: Any) -> bool:
    """Does a session wait for a lock?"""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    return bool(await db.fetchval(waiting + " AND datname = current_database()"))


async def test_readers_see_the_old_tables_until_a_replay_is_done(db: Any) -> None:
    log, seen = lives(10), []

    class Watched(Log):
        async def read(self, after: int, limit: int = 1000) -> list[Envelope]:
            seen.append(await state(db))
            return await super().read(after, limit)

    await put(db, log)
    projection = of_size(500, db)
    await projection._sql.start(db)
    await projection.step()
    await db.execute("UPDATE read.version SET title = 'of an earlier release'")
    before = await state(db)
    await Projection(Watched(db), Titles(), batch=4).replay()  # type: ignore[arg-type]
    assert len(seen) == len(log) // 4 + 1
    assert all(looked == before for looked in seen)
    assert await state(db) != before


@pytest.mark.parametrize("documents", [1, 100])
async def test_a_batch_costs_as_many_statements_as_an_event(db: Any, documents: int) -> None:
    log, said = lives(documents), []
    await put(db, log)
    projection = of_size(500, db)
    async with db.acquire() as connection, connection.transaction():
        connection.add_query_logger(lambda record: said.append(record.query))
        await projection._fold(connection, log)
    assert sum("read.version" in query for query in said) == 2
    assert await db.fetchval("SELECT count(*) FROM read.job") == documents


async def test_titles_are_read_together_but_not_all_at_once(db: Any) -> None:
    blobs, log = Titles(), lives(100)
    await put(db, log)
    projection = of_size(500, db, blobs)
    await projection._sql.start(db)
    await projection.step()
    assert 1 < blobs.most <= AT_ONCE
    right = "SELECT count(*) FROM read.version WHERE title = right(meta_sha256, 9)"
    assert await db.fetchval(right) == 100


async def test_a_line_that_does_not_move_is_not_written(db: Any) -> None:
    """An indexer may be at it while a replay takes its time."""
    log = log_of([Step("received"), Step("superseded", line=LINE)])
    await put(db, log)
    projection = of_size(500, db)
    await projection._sql.start(db)
    await projection.step()
    async with db.acquire() as connection, connection.transaction():
        await connection.execute("UPDATE read.line SET settled = 1")
        await projection.replay()  # does not wait
    after = await db.fetchrow("SELECT settled, position FROM read.line")
    assert tuple(after) == (1, 2)


async def test_no_batch_reads_a_table_from_end_to_end(db: Any) -> None:
    """Statistics are none yet, and a plan that was made for the first batch is the plan of all."""
    log = lives(400, indexed=True)
    await put(db, log)
    projection = of_size(60, db)
    async with db.acquire() as connection, connection.transaction():
        for at in range(0, len(log), 60):
            await projection._fold(connection, log[at : at + 60])
        scans = await connection.fetch(
            "SELECT relname, seq_scan FROM pg_stat_xact_user_tables"
            " WHERE schemaname = 'read' AND idx_scan > 0"
        )
    assert {r["relname"] for r in scans} >= {"version", "job", "validity"}
    assert {r["relname"]: r["seq_scan"] for r in scans if r["seq_scan"]} == {}
