"""Pools and named queries. SQL lives in `.sql` files only."""

import json
from functools import cache
from importlib import resources
from typing import Any

import aiosql
import asyncpg

UNAVAILABLE: tuple[type[BaseException], ...] = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.InvalidCachedStatementError,  # a table was migrated; the next try reads it anew
    asyncpg.InterfaceError,
    ConnectionError,
    TimeoutError,
)
"""What Postgres raises when it is away or busy: worth another try, and nobody's bug."""


@cache
def queries(package: str, name: str) -> Any:
    """Named queries of `<package>/<name>.sql`, as coroutines `q.name(connection, **parameters)`."""
    with resources.as_file(resources.files(package) / f"{name}.sql") as path:
        return aiosql.from_path(path, "asyncpg", mandatory_parameters=False)


async def _prepare(connection: "asyncpg.Connection[Any]") -> None:
    await connection.set_type_codec(
        "jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
    )


async def connect(dsn: str, *, service: str = "kb") -> "asyncpg.Connection[Any]":
    """One session that speaks UTC and JSON, and may take its time: a backup, an import."""
    settings = {"application_name": service, "timezone": "UTC"}
    connection: asyncpg.Connection[Any] = await asyncpg.connect(dsn, server_settings=settings)
    await _prepare(connection)
    return connection


async def pool(dsn: str, *, service: str = "kb", size: int = 4) -> "asyncpg.Pool[Any]":
    """A pool whose sessions speak UTC and JSON, and never wait for a lock for ever."""
    return await asyncpg.create_pool(
        dsn,
        min_size=1,
        max_size=size,
        init=_prepare,
        command_timeout=60,
        server_settings={
            "application_name": service,
            "timezone": "UTC",
            "lock_timeout": "10s",
            "idle_in_transaction_session_timeout": "60s",
        },
    )
