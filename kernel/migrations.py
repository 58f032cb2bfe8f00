"""Migrations forward in order, then rights from the flow table and passwords from the caller."""

import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

import asyncpg

from contracts.flow import SERVICES, emitted_by
from kernel.db import queries

LOCK = 4203
"""Advisory lock: two migrators wait for each other."""


def files() -> list[tuple[str, str]]:
    """`(name, sql)` of every migration, in order."""
    folder = resources.files("kernel.sql") / "migrations"
    return sorted((f.name, f.read_text("utf-8")) for f in folder.iterdir() if f.name[0].isdigit())


async def migrate(dsn: str, role_passwords: Mapping[str, str] | None = None) -> list[str]:
    """Bring the database of `dsn` (its owner) up to date; returns the names that were applied.

    Args:
        dsn: connection of the owner; the owner may also append every event type.
        role_passwords: new passwords of `kb_*` roles.

    Raises:
        RuntimeError: an applied migration was edited afterwards, or the code is older than the
            database.
    """
    connection = await asyncpg.connect(dsn)
    try:
        return await _migrate(connection, role_passwords or {})
    finally:
        await connection.close()


async def _migrate(connection: Any, role_passwords: Mapping[str, str]) -> list[str]:
    q = queries("kernel.sql", "migrate")
    await q.lock(connection, key=LOCK)
    try:
        await q.create_table(connection)
        done = {r["name"]: r["sha256"] async for r in q.applied(connection)}
        known = {name: (sql, hashlib.sha256(sql.encode()).hexdigest()) for name, sql in files()}
        if strange := [n for n, sha in done.items() if n not in known or known[n][1] != sha]:
            raise RuntimeError(f"this code does not know the applied migrations {strange}")
        new = [name for name in known if name not in done]
        for name in new:
            async with connection.transaction():
                await connection.execute(known[name][0])
                await q.record(connection, name=name, sha256=known[name][1])
        async with connection.transaction():
            await _rights(connection, q)
            for role, password in role_passwords.items():
                await connection.execute(
                    await q.password_statement(connection, role=role, password=password)
                )
    finally:
        await q.unlock(connection, key=LOCK)
    return new


async def _rights(connection: Any, q: Any) -> None:
    """`log.writer` says what the flow table says, and only services get into the database."""
    owner = await q.session_role(connection)
    rows = [(f"kb_{s}", t) for s in SERVICES for t in emitted_by(s)]
    rows += [(owner, t) for s in SERVICES for t in emitted_by(s)]
    await q.replace_writers(connection, roles=[r for r, _ in rows], types=[t for _, t in rows])
    services = [f"kb_{s}" for s in (*SERVICES, "relay")]
    await connection.execute(await q.closing_statement(connection, roles=services))
