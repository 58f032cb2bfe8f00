"""Kills what is at work at its n-th operation on a store: nothing that it does later has effect."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import asyncpg

from kernel.testing import MemoryBlobs
from kernel.vectors.memory import MemoryIndex


class Killed(BaseException):
    """The process is gone."""


class Fuse:
    """Lets `steps` operations through."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    @property
    def blown(self) -> bool:
        return self.left < 0

    def burn(self) -> None:
        """One operation.

        Raises:
            Killed: it was one too many; also at every later one.
        """
        self.left -= 1
        if self.blown:
            raise Killed


_FUSE: ContextVar[Fuse | None] = ContextVar("fuse", default=None)


@contextmanager
def fused(steps: int | None) -> Iterator[None]:
    """What is done inside dies after so many operations; None: never."""
    token = _FUSE.set(None if steps is None else Fuse(steps))
    try:
        yield
    finally:
        _FUSE.reset(token)


def burn() -> None:
    """Called by every operation on a store."""
    if fuse := _FUSE.get():
        fuse.burn()


class Connection(asyncpg.Connection):
    """Sessions end with their process: what was open is rolled back, locks are given up."""

    async def execute(self, query: str, *args: Any, **options: Any) -> Any:
        if not query.startswith("ROLLBACK"):
            burn()
        return await super().execute(query, *args, **options)

    async def executemany(self, *args: Any, **options: Any) -> Any:
        burn()
        return await super().executemany(*args, **options)

    async def fetch(self, *args: Any, **options: Any) -> Any:
        burn()
        return await super().fetch(*args, **options)

    async def fetchrow(self, *args: Any, **options: Any) -> Any:
        burn()
        return await super().fetchrow(*args, **options)

    async def fetchval(self, *args: Any, **options: Any) -> Any:
        burn()
        return await super().fetchval(*args, **options)

    async def reset(self, *, timeout: float | None = None) -> None:
        """Only what a dead process left: a living one gives up what it holds."""
        fuse = _FUSE.get()
        if self.is_in_transaction() or (fuse and fuse.blown):
            with fused(None):
                await super().reset(timeout=timeout)


async def pool(dsn: str) -> "asyncpg.Pool[Any]":
    """As `kernel.db.pool`, of connections with a fuse."""

    async def prepare(connection: Any) -> None:
        await connection.set_type_codec(
            "jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
        )

    return await asyncpg.create_pool(
        dsn, min_size=4, max_size=8, init=prepare, connection_class=Connection,
        server_settings={"timezone": "UTC", "lock_timeout": "10s"},
    )  # fmt: skip


def _burning(method: Any) -> Any:
    async def burning(*args: Any, **options: Any) -> Any:
        burn()
        return await method(*args, **options)

    return burning


def fused_class(base: type[Any], *names: str) -> Any:
    """`base` with a fuse before its methods `names`."""
    members = {name: _burning(getattr(base, name)) for name in names}
    return type(f"Fused{base.__name__}", (base,), members)


Blobs = fused_class(MemoryBlobs, "put", "get", "exists", "delete")
Vectors = fused_class(
    MemoryIndex, "create", "upsert", "search", "set_validity", "delete_version", "ids", "drop"
)
