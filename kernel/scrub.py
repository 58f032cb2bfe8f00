"""Makes the files of the database forget what was deleted from its tables. For its owner.

A deleted row stays in the table's file until its page is written anew, in the write-ahead log until
that is recycled, and samples of it in the planner's statistics. So: the tables that ever hold words
of documents or people are written anew, sampled anew, and the log begins a new file. While a table
is written anew nobody reads it; `kb scrub` says how long that took.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import asyncpg

from kernel.db import queries

LOCK = 4206
"""Advisory lock: one scrub at a time."""
PATIENCE = 60.0
"""Seconds to wait for transactions that still see what was deleted."""


@dataclass(frozen=True)
class Scrubbed:
    """What a scrub did. `tables`: seconds that each was locked; `wal`: did the write-ahead log
    begin anew (only a superuser may)?"""

    position: int
    tables: dict[str, float]
    wal: bool
    seconds: float


async def scrub(dsn: str, told: Callable[[str], None] = lambda _: None) -> Scrubbed:
    """Write the tables anew that erasures touch, and begin a new write-ahead log.

    Args:
        dsn: connection of the database's owner.
        told: hears the name of each table before it is locked.

    Raises:
        TimeoutError: a transaction has been open for too long; nothing was claimed.
        asyncpg.PostgresError: the role does not own the tables.
    """
    connection = await asyncpg.connect(dsn, server_settings={"application_name": "kb-scrub"})
    try:
        return await _scrub(connection, told)
    finally:
        await connection.close()


async def weight(dsn: str) -> int:
    """Bytes of the tables that a scrub writes anew, indexes included.

    Raises:
        asyncpg.PostgresError, OSError: no connection, or no right to see them.
    """
    connection = await asyncpg.connect(dsn)
    try:
        return int(await queries("kernel.sql", "scrub").weight(connection))
    finally:
        await connection.close()


async def _scrub(connection: Any, told: Callable[[str], None]) -> Scrubbed:
    sql, began = queries("kernel.sql", "scrub"), time.monotonic()
    await sql.lock(connection, key=LOCK)
    position = await sql.position(connection)
    await _nobody_looks_back(connection, sql)
    tables: dict[str, float] = {}
    for row in [r async for r in sql.tables(connection)]:
        told(row["name"])
        started = time.monotonic()
        await connection.execute(row["statement"])
        tables[row["name"]] = round(time.monotonic() - started, 3)
    wal = await _new_wal(connection, sql)
    await sql.done(connection, position=position)
    return Scrubbed(position, tables, wal, round(time.monotonic() - began, 3))


async def _nobody_looks_back(connection: Any, sql: Any) -> None:
    """Wait until no transaction is left that began before now: what one may still see is kept."""
    now = await sql.transaction(connection)
    async with asyncio.timeout(PATIENCE):
        # Postgres tells nobody when a snapshot is let go.
        while await sql.looking_back(connection, xid=now):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def _new_wal(connection: Any, sql: Any) -> bool:
    """Two checkpoints with a switch between: no file from before the switch is needed, and they are
    removed (`wal_recycle=off`; else they wait under a new name until they are written over)."""
    try:
        await sql.checkpoint(connection)
        await sql.switch_wal(connection)
        await sql.checkpoint(connection)
    except asyncpg.InsufficientPrivilegeError:
        return False
    return True
