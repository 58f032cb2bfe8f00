"""A database of the release before is migrated while its services work: nobody notices but by a
short wait, and nothing is lost."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest

from contracts.envelope import Envelope
from contracts.events import Event, Failed, Parsed
from kernel.chain import verify
from kernel.db import UNAVAILABLE, pool
from kernel.log import Log, Pending
from kernel.migrations import CONCURRENTLY, files, migrate
from kernel.testing import received
from kernel.testing_wait import eventually
from tests.conftest import on_database
from tests.recorded import FIRST_NEW, migrate_to, write

EVENTS = 20_000
READS = {
    "SELECT count(*) FROM read.version WHERE status = $1": "indexed",
    "SELECT count(*) FROM read.validity WHERE project = $1": "default",
    "SELECT count(*) FROM read.chunk WHERE project = $1": "default",
    "SELECT max(position) FROM log.event WHERE stream_id = $1": "document-x",
}
"""Reads of the release before, of the tables that are changed."""
WIDE = ("SELECT * FROM read.version", "SELECT * FROM read.validity", "SELECT * FROM log.head")
"""Such statements are prepared with the columns of then."""


def history(events: int) -> list[Envelope]:
    """A log of documents that were received, read, or failed."""
    made: list[Envelope] = []
    now = datetime.now(UTC)
    while len(made) < events:
        receipt = received(document_id=uuid4().hex, version_id=uuid4().hex)
        parsed = Parsed(**receipt.ids, parsed_sha256="a" * 64, parser="p", language="en")
        failed = Failed(**receipt.ids, stage="converter", code="corrupt", reason="no")
        story: list[tuple[Event, int]] = [(receipt, 1), (parsed, 1), (failed, 2)]
        job = uuid4()
        made += [
            Envelope(
                position=len(made) + n, stream_id=event.stream_id, version=version,
                event_id=uuid4(), type=type(event).__name__, schema_version=1, lane="live",
                project=event.project, causation_id=None, correlation_id=job, actor="svc:test",
                traceparent=None, occurred_at=now, recorded_at=now,
                data=event.model_dump(mode="json"),
            )
            for n, (event, version) in enumerate(story, 1)
        ]  # fmt: skip
    return made[:events]


def as_role(dsn: str, role: str) -> str:
    """The same database as a service."""
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=f"{role}@{parts.netloc.rpartition('@')[2]}"))


@dataclass
class Traffic:
    """What services do meanwhile. Busy is met by another try, as everywhere; all else is a bug."""

    dsn: str
    acknowledged: dict[Any, int] = field(default_factory=dict)
    reads: int = 0
    busy: int = 0
    slowest: float = 0.0
    _tasks: list["asyncio.Task[None]"] = field(default_factory=list)
    _pools: list[Any] = field(default_factory=list)
    _over: bool = False

    async def start(self) -> None:
        """Services append, follow the log, and read tables."""
        for role, work in (
            ("kb_ingest", self._append), ("kb_ingest", self._append), ("kb_search", self._read),
            ("kb_search", self._tables), ("kb_search", self._in_transactions),
        ):  # fmt: skip
            db = await pool(as_role(self.dsn, role))
            self._pools.append(db)
            self._tasks.append(asyncio.ensure_future(work(db)))

    async def stop(self) -> None:
        """Everybody finishes what they do.

        Raises:
            Exception: what one of them met.
        """
        self._over = True
        await asyncio.gather(*self._tasks)
        for db in self._pools:
            db.terminate()

    async def _patient(self, work: Callable[[], Awaitable[Any]]) -> Any:
        began = time.monotonic()
        while True:
            try:
                found = await work()
            except UNAVAILABLE:
                self.busy += 1
                await asyncio.sleep(0.05)
            else:
                self.slowest = max(self.slowest, time.monotonic() - began)
                return found

    async def _append(self, db: Any) -> None:
        log = Log(db)
        while not self._over:
            event = received(document_id=uuid4().hex, version_id=uuid4().hex)
            pending = [Pending(event, uuid4(), uuid4(), "svc:ingest")]
            done = await self._patient(lambda p=pending: log.append(p, expected=0))  # type: ignore[misc]
            self.acknowledged[pending[0].event_id] = done.position

    async def _read(self, db: Any) -> None:
        log, after = Log(db), 0
        while not self._over:
            batch = await self._patient(lambda a=after: log.read(a, 500))  # type: ignore[misc]
            assert [e.position for e in batch] == list(range(after + 1, after + 1 + len(batch)))
            after += len(batch)
            self.reads += 1
            await asyncio.sleep(0.001)

    async def _tables(self, db: Any) -> None:
        while not self._over:
            for statement, value in READS.items():
                await self._patient(lambda s=statement, v=value: db.fetchval(s, v))  # type: ignore[misc]
                self.reads += 1

    async def _in_transactions(self, db: Any) -> None:
        async def look() -> None:
            async with db.acquire() as connection, connection.transaction():
                for statement in WIDE:
                    await connection.fetch(statement)

        while not self._over:
            await self._patient(look)
            self.reads += 1


@pytest.fixture
async def old(postgres_dsn: str) -> AsyncIterator[str]:
    """The DSN of a database of the release before, with a log."""
    name = f"test_{secrets.token_hex(6)}"
    owner = await asyncpg.connect(postgres_dsn)
    await owner.execute(f"CREATE DATABASE {name}")
    dsn = on_database(postgres_dsn, name)
    await migrate_to(dsn, FIRST_NEW)
    connection = await asyncpg.connect(dsn)
    await write(connection, history(EVENTS))
    await connection.close()
    yield dsn
    await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await owner.close()


async def test_services_work_while_the_database_is_migrated(old: str) -> None:
    traffic = Traffic(old)
    await traffic.start()
    await eventually(lambda: len(traffic.acknowledged) > 20 and traffic.reads > 20)
    began = time.monotonic()
    applied = await migrate(old)
    seconds = time.monotonic() - began
    before = len(traffic.acknowledged)
    await eventually(lambda: len(traffic.acknowledged) > before + 20)
    await traffic.stop()
    print(
        f"{len(applied)} migrations in {seconds:.2f} s; {len(traffic.acknowledged)} appends, "
        f"{traffic.reads} reads, {traffic.busy} tried again, slowest {traffic.slowest:.2f} s"
    )
    assert applied == [name for name, _ in files() if name >= FIRST_NEW]
    db = await pool(old)
    try:
        rows = await db.fetch("SELECT position, event_id FROM log.event ORDER BY position")
        found = {r["event_id"]: r["position"] for r in rows}
        assert [r["position"] for r in rows] == list(range(1, len(rows) + 1))
        assert len(rows) == EVENTS + len(traffic.acknowledged) == await Log(db).head()
        assert traffic.acknowledged.items() <= found.items()
        assert (await verify(db)).faults == ()
    finally:
        db.terminate()


async def test_a_migration_waits_for_who_holds_a_table_and_lets_others_pass(old: str) -> None:
    """A backup reads a table for long: the migration steps back, again and again, until it ends."""
    backup = await asyncpg.connect(old)
    reading = backup.transaction()
    await reading.start()
    await backup.execute("LOCK TABLE log.event, read.validity IN ACCESS SHARE MODE")
    migrating = asyncio.ensure_future(migrate(old))
    traffic = Traffic(old)
    await traffic.start()
    await eventually(lambda: len(traffic.acknowledged) > 300, deadline=60)
    assert not migrating.done()
    await reading.rollback()
    await backup.close()
    assert await migrating
    await traffic.stop()


async def test_indexes_of_a_migration_that_broke_off_are_made_again(old: str) -> None:
    """They are made outside a transaction: a half-made index is no obstacle to the next try."""
    names = [n for n, sql in files() if sql.startswith(CONCURRENTLY)]
    assert names == ["0013_lookup.sql", "0015_replay.sql", "0019_instant.sql"]
    connection = await asyncpg.connect(old)
    await connection.execute("CREATE INDEX event_type ON log.event (type)")
    await connection.execute("CREATE INDEX validity_instant ON read.validity (version_id)")
    await connection.close()
    assert set(names) <= set(await migrate(old))
    assert await migrate(old) == []
    connection = await asyncpg.connect(old)
    found = await connection.fetch(
        "SELECT indexdef FROM pg_indexes WHERE indexname IN ('event_type', 'event_project')"
    )
    valid = await connection.fetchval(
        """SELECT bool_and(indisvalid) FROM pg_index
            WHERE indrelid IN ('log.event'::regclass, 'read.validity'::regclass)"""
    )
    span = await connection.fetchval(
        "SELECT indexdef FROM pg_indexes WHERE indexname = 'validity_instant'"
    )
    await connection.close()
    assert valid
    assert "USING gist (read.span(" in span
    assert sorted("(" + r["indexdef"].partition(" (")[2] for r in found) == [
        "(project, \"position\")", "(type, \"position\") INCLUDE (project)",
    ]  # fmt: skip


async def test_a_migration_that_never_gets_its_locks_ends_with_an_error(
    old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel.migrations.PATIENCE_SECONDS", 0.1)
    holder = await asyncpg.connect(old)
    reading = holder.transaction()
    await reading.start()
    await holder.execute("LOCK TABLE log.event IN ACCESS SHARE MODE")
    with pytest.raises(asyncpg.LockNotAvailableError):
        await migrate(old)
    with suppress(asyncpg.PostgresError):
        await reading.rollback()
    await holder.close()
    assert FIRST_NEW in (await migrate(old))[0]
