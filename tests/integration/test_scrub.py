"""What was deleted is in no file of the database after a scrub."""

import asyncio
from pathlib import Path

import asyncpg
import pytest

from kernel.embedded import EmbeddedPostgres
from kernel.migrations import migrate
from kernel.scrub import scrub, weight

CANARY = "Kanarienvogel-zwitschert"


def holding(folder: Path, word: str) -> list[str]:
    """Files below a folder in which a word stands."""
    raw = word.encode()
    return sorted(
        str(p.relative_to(folder))
        for p in folder.rglob("*")
        if p.is_file() and not p.name.startswith("pgsql_tmp") and raw in p.read_bytes()
    )


async def _fill(dsn: str) -> None:
    """Rows with the word in tables, and in the planner's samples of them."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        """
        INSERT INTO log.failure (consumer, event_id, error_type, error, state)
        SELECT 'x', n::text, 'E', $1 || n, 'dead' FROM generate_series(1, 300) n
        """,
        CANARY,
    )
    await connection.execute("ANALYZE log.failure")
    await connection.execute("DELETE FROM log.failure")
    await connection.close()


def test_after_a_scrub_no_file_holds_what_was_deleted(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "postgres", fsync=False)
    dsn = server.start()
    try:
        asyncio.run(migrate(dsn))
        asyncio.run(_fill(dsn))
        before = holding(tmp_path, CANARY)
        assert any("pg_wal" in name for name in before)
        done = asyncio.run(scrub(dsn))
        assert holding(tmp_path, CANARY) == []
        assert (done.position, done.wal) == (0, True)
        assert set(done.tables) >= {"log.failure", "read.chunk", "log.event"}
        assert asyncio.run(weight(dsn)) > 0
    finally:
        server.stop()
    assert holding(tmp_path, CANARY) == []


async def test_a_scrub_waits_for_whoever_still_sees_what_was_deleted(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel.scrub.PATIENCE", 0.5)
    looking = await asyncpg.connect(database)
    transaction = looking.transaction(isolation="repeatable_read")
    await transaction.start()
    await looking.fetchval("SELECT count(*) FROM log.event")
    other = await asyncpg.connect(database)
    await other.execute("UPDATE log.head SET position = position")
    with pytest.raises(TimeoutError):
        await scrub(database)
    assert await other.fetchval("SELECT at FROM log.scrub") is None
    await transaction.rollback()
    await scrub(database)
    assert await other.fetchval("SELECT at FROM log.scrub") is not None
    await looking.close()
    await other.close()
