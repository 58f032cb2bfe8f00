"""Migrations forward in order, then rights from the flow table and passwords from the caller.

They run while services work. A migration that cannot have its locks at once gives up and tries
again, for who waits for a lock makes everybody wait who comes later.
"""

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from importlib import resources
from typing import Any

import asyncpg

from contracts.flow import SERVICES, emitted_by
from kernel.db import queries

LOCK = 4203
"""Advisory lock: two migrators wait for each other."""
PATIENCE_SECONDS = 300.0
"""For so long a migration tries to get its locks: a backup or a long query may hold them."""
CONCURRENTLY = "-- concurrently\n"
"""First line of a migration whose statements run each by itself, outside a transaction, as indexes
on a table in use must. Such statements are written so that they may be run again."""


def files() -> list[tuple[str, str]]:
    """`(name, sql)` of every migration, in order."""
    folder = resources.files("kernel.sql") / "migrations"
    return sorted((f.name, f.read_text("utf-8")) for f in folder.iterdir() if f.name[0].isdigit())


async def migrate(
    dsn: str,
    role_passwords: Mapping[str, str] | None = None,
    *,
    only: Collection[str] | None = None,
) -> list[str]:
    """Bring the database of `dsn` (its owner) up to date; returns the names that were applied.

    Args:
        dsn: connection of the owner; the owner may also append every event type.
        role_passwords: new passwords of `kb_*` roles.
        only: names of migrations, for the schema of an earlier version, without rights: a restore
            fills it and goes on from there.

    Raises:
        RuntimeError: an applied migration was edited afterwards, or the code is older than the
            database.
    """
    connection = await asyncpg.connect(dsn)
    try:
        return await _migrate(connection, role_passwords or {}, only)
    finally:
        await connection.close()


async def _migrate(
    connection: Any, role_passwords: Mapping[str, str], only: Collection[str] | None
) -> list[str]:
    q = queries("kernel.sql", "migrate")
    await q.lock(connection, key=LOCK)
    try:
        await q.create_table(connection)
        done = {r["name"]: r["sha256"] async for r in q.applied(connection)}
        known = {name: (sql, hashlib.sha256(sql.encode()).hexdigest()) for name, sql in files()}
        if strange := [n for n, sha in done.items() if n not in known or known[n][1] != sha]:
            raise RuntimeError(f"this code does not know the applied migrations {strange}")
        new = [n for n in known if n not in done and (only is None or n in only)]
        for name in new:
            await _patiently(connection, partial(_apply, q, name, *known[name]))
        if only is None:
            await _patiently(connection, partial(_rights, q, role_passwords))
    finally:
        await q.unlock(connection, key=LOCK)
    return new


async def _patiently(connection: Any, work: Callable[[Any], Awaitable[None]]) -> None:
    """Work that needs locks, tried until it gets them.

    Raises:
        asyncpg.LockNotAvailableError: not within `PATIENCE_SECONDS`.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE_SECONDS
    while True:
        try:
            await work(connection)
        except asyncpg.LockNotAvailableError:
            if loop.time() > end:
                raise
            await asyncio.sleep(random.uniform(0.1, 0.5))  # noqa: S311 - not a secret
        else:
            return


async def _apply(q: Any, name: str, sql: str, sha256: str, connection: Any) -> None:
    if sql.startswith(CONCURRENTLY):
        for statement in sql.removesuffix("\n").removesuffix(";").split(";\n"):
            await connection.execute(statement)
        await q.record(connection, name=name, sha256=sha256)
        return
    async with connection.transaction():
        await q.give_way(connection)
        await connection.execute(sql)
        await q.record(connection, name=name, sha256=sha256)


async def _rights(q: Any, role_passwords: Mapping[str, str], connection: Any) -> None:
    """`log.writer` says what the flow table says, and only services get into the database."""
    async with connection.transaction():
        await q.give_way(connection)
        await _write_rights(connection, q)
        for role, password in role_passwords.items():
            await connection.execute(
                await q.password_statement(connection, role=role, password=password)
            )


async def _write_rights(connection: Any, q: Any) -> None:
    owner = await q.session_role(connection)
    rows = [(f"kb_{s}", t) for s in SERVICES for t in emitted_by(s)]
    rows += [(owner, t) for s in SERVICES for t in emitted_by(s)]
    await q.replace_writers(connection, roles=[r for r, _ in rows], types=[t for _, t in rows])
    services = [f"kb_{s}" for s in (*SERVICES, "relay")]
    await connection.execute(await q.closing_statement(connection, roles=services))
