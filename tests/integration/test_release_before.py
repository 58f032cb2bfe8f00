"""What the release before this one wrote is read, replayed and brought up to date by this one."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import asyncpg
import pytest

from contracts.events import EVENTS, Erased
from contracts.history.upcasters import UPCASTERS
from kernel.db import pool
from kernel.embedder import HashedEmbedder
from kernel.log import Log
from kernel.migrations import migrate
from kernel.testing import MemoryBlobs
from kernel.testing_wait import eventually
from kernel.vectors.memory import MemoryIndex
from services.indexer.index import Index
from services.indexer.rebuild import rebuild
from services.search.projection import REVISION, Projection, digest
from tests.conftest import on_database
from tests.recorded import BEFORE, installation

KEYS = {
    "version": ("version_id",),
    "validity": ("version_id", "valid_from"),
    "job": ("job_id",),
    "chunk": ("project", "version_id", "ordinal"),
}

TEXTS = {"name", "source_key", "title", "error", "attachments"}
"""Columns that may hold a name, or words of a person."""

ERASED = {
    e.data["version_id"]
    for e in BEFORE.events()
    if e.type == "Erased" and e.data["reason"] == "request"
}
"""Versions that a person had erased."""


def without_names(rows: list[Any]) -> list[Any]:
    """Rows without what may be words of a person, where these are gone."""
    return [
        {k: v for k, v in row.items() if row["version_id"] not in ERASED or k not in TEXTS}
        for row in rows
    ]


class Updated:
    """An installation of the release before, brought up to date."""

    def __init__(self, db: "asyncpg.Pool[Any]", blobs: MemoryBlobs) -> None:
        self.db, self.log, self.blobs = db, Log(db), blobs
        self.projection = Projection(self.log, blobs)  # type: ignore[arg-type]

    async def rows(self, table: str, statement: str = "SELECT * FROM read.{}") -> list[Any]:
        """Rows of a table, in the columns that the release before had."""
        columns = BEFORE.state()[table][0].keys()
        found = await self.db.fetch(
            f"SELECT to_jsonb(t) AS row FROM ({statement.format(table)}) AS t"
        )
        rows = [{k: r["row"][k] for k in columns} for r in found]
        return in_order(table, rows)


def in_order(table: str, rows: list[Any]) -> list[Any]:
    """Sorted by key, times read as times."""
    return sorted(
        ({k: _time(v) for k, v in row.items()} for row in rows),
        key=lambda row: tuple(str(row[k]) for k in KEYS[table]),
    )


def _time(value: Any) -> Any:
    with suppress(ValueError):
        if isinstance(value, str) and len(value) > 18:
            return datetime.fromisoformat(value)
    return value


@pytest.fixture
async def updated(postgres_dsn: str) -> AsyncIterator[Updated]:
    name = f"test_{secrets.token_hex(6)}"
    owner = await asyncpg.connect(postgres_dsn)
    await owner.execute(f"CREATE DATABASE {name}")
    dsn = on_database(postgres_dsn, name)
    await installation(dsn)
    await migrate(dsn)
    db = await pool(dsn)
    yield Updated(db, await BEFORE.blobs())
    db.terminate()
    await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await owner.close()


def test_the_recorded_log_has_every_event_of_its_time_and_old_versions() -> None:
    events = BEFORE.events()
    types = {e.type for e in events}
    assert types == {
        "DocumentReceived", "Parsed", "ScanVerdict", "Converted", "Chunked", "Indexed",
        "Superseded", "Reinstated", "Released", "Rejected", "Erased", "AttachmentsReceived",
        "Failed", "ProjectConfigured", "RescanStarted", "RescanAdvanced", "RescanFinished",
    }  # fmt: skip
    old = {e.type for e in events if e.schema_version < EVENTS[e.type].schema_version}
    assert old == {"Erased"} <= {type_ for type_, _ in UPCASTERS}
    assert [e.position for e in events] == list(range(1, len(events) + 1))


def test_every_event_of_it_reads_in_the_current_shape() -> None:
    erased = []
    for envelope in BEFORE.events():
        fact = envelope.fact()
        assert type(fact) is EVENTS[envelope.type]
        assert fact.stream_id == envelope.stream_id
        if isinstance(fact, Erased):
            erased.append((fact.reason, fact.scope, fact.cause is not None))
    assert set(erased) == {
        ("blocked", "version", False), ("request", "document", False), ("request", "document", True)
    }  # fmt: skip


async def test_the_log_of_an_installation_stays_as_it_was(updated: Updated) -> None:
    assert await updated.log.read(0) == BEFORE.events()


@pytest.mark.parametrize("table", ["version", "validity", "job"])
async def test_a_replay_from_zero_makes_what_the_release_made(updated: Updated, table: str) -> None:
    assert await updated.projection.replay() == len(BEFORE.events())
    made, before = await updated.rows(table), in_order(table, BEFORE.state()[table])
    assert without_names(made) == without_names(before)
    # This release forgets the names of what a person had erased; that one did not.
    assert {r["name"] for r in made if r["version_id"] in ERASED and "name" in r} <= {"(erased)"}


async def test_what_the_release_left_is_brought_to_what_a_replay_makes(updated: Updated) -> None:
    running = asyncio.ensure_future(updated.projection.run())
    try:
        statement = "SELECT revision FROM log.projection WHERE name = 'read'"

        async def folded() -> bool:
            return bool(await updated.db.fetchval(statement) == REVISION)

        await eventually(folded)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    by_itself = await digest(updated.db)
    await updated.projection.replay()
    assert by_itself == await digest(updated.db)


async def test_a_rebuild_makes_the_passages_that_the_release_made(updated: Updated) -> None:
    index = Index(updated.log, updated.blobs, HashedEmbedder(), MemoryIndex())  # type: ignore[arg-type]
    await updated.projection.replay()
    for project in ("default", "letters"):
        made = await rebuild(index, project)
        assert made.passages == sum(r["project"] == project for r in BEFORE.state()["chunk"])
    statement = """SELECT project, version_id, chunk_id, ordinal, heading_path, byte_start,
                   byte_end, text FROM read.{} JOIN read.active USING (project, generation)"""
    assert await updated.rows("chunk", statement) == in_order("chunk", BEFORE.state()["chunk"])


async def test_what_an_erasure_left_of_events_replays(updated: Updated) -> None:
    """Names leave the log with an erasure; everything else that is folded from it stays."""
    await updated.projection.replay()
    before = {t: await updated.rows(t) for t in ("version", "validity", "job")}
    gone = [
        e.event() for e in BEFORE.events()
        if e.type == "Erased" and e.data["reason"] == "request"
    ]  # fmt: skip
    redacted = 0
    for event in gone:
        statement = "SELECT log.redact($1, $2)"
        redacted += await updated.db.fetchval(statement, event.document_id, event.version_id)
    assert redacted >= len(gone) > 2
    await updated.projection.replay()
    for table, rows in before.items():
        assert without_names(await updated.rows(table)) == without_names(rows)
    names = {r["name"] for r in await updated.rows("version") if r["version_id"] in ERASED}
    assert names == {"(erased)"}
