"""Appends into logs of 10⁴ to 10⁷ events, and the memory of what reads 2 million.

`python -m eval.bench.growth rates [MOST]`: sizes up to MOST, default 1,000,000; 10⁷ takes some
20 GB and an hour. `python -m eval.bench.growth memory [EVENTS]`: default 2,000,000.

The logs are made in SQL, lives of versions with true links, so that replay and the check of the
chain have nothing to object to. A small log in a database beside takes turns with the large one:
the ratio is of one time.
"""

import asyncio
import json
import os
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import asyncpg
import psutil

from contracts.events import Event
from eval.bench.log import LIFE, rate
from eval.bench.report import HEAD, Row
from kernel.chain import verify
from kernel.db import pool, queries
from kernel.embedded import EmbeddedPostgres
from kernel.log import Log
from kernel.migrations import migrate
from kernel.testing import MemoryBlobs
from services.search.projection import Projection

FIRST, MOST = 10_000, 1_000_000
ROUNDS = 7
SHAPES = ((1, 1), (8, 6))
"""(writers, events an append)"""
FILLED = 20_000
"""Lives that one statement makes."""
READ = 2_000_000
MIB = 1 << 20
SLOWEST, FLAT = 0.8, 1.25


async def rates(most: int = MOST) -> list[Row]:
    """Append rates at each size up to `most`, against those into the small log."""
    async with _server() as dsn:
        small, large = await pool(await _beside(dsn), size=10), await pool(dsn, size=10)
        await fill(small, FIRST)
        rows, size = [], FIRST
        while size <= most:
            await fill(large, size)
            rows += [await _compared(small, large, size, shape) for shape in SHAPES]
            size *= 10
        await small.close()
        await large.close()
        return rows


@asynccontextmanager
async def _server() -> AsyncIterator[str]:
    """A migrated Postgres of its own: its DSN."""
    with TemporaryDirectory(prefix="kb-bench-", dir=os.environ.get("TMPDIR")) as folder:
        server = EmbeddedPostgres(Path(folder) / "postgres")
        dsn = server.start()
        try:
            await migrate(dsn)
            yield dsn
        finally:
            server.stop()


async def _beside(dsn: str) -> str:
    """A second, migrated database on the server."""
    connection = await asyncpg.connect(dsn)
    await queries("eval.bench", "growth").create_beside(connection)
    await connection.close()
    other = re.sub(r"/[^/?]*(\?|$)", r"/beside\1", dsn)
    await migrate(other)
    return other


async def fill(db: Any, size: int) -> None:
    """Make the log `size` events long, or a little longer."""
    sql = queries("eval.bench", "growth")
    at = await Log(db).head()
    while at < size:
        stories = min(FILLED, -(-(size - at) // len(LIFE)))
        async with db.acquire() as connection, connection.transaction():
            await connection.execute("SET LOCAL jit = off; SET LOCAL work_mem = '256MB'")
            await sql.fill(connection, after=at, stories=stories, **_life())
            await sql.advance(connection)
        at = await Log(db).head()
    await db.execute("VACUUM ANALYZE log.event")


def _life() -> dict[str, Any]:
    places = {"document": 0, "version": 0}
    table: dict[str, list[Any]] = {
        k: [] for k in ("types", "categories", "places", "schemas", "said")
    }
    for event in LIFE:
        places[event.category] += 1
        for key, value in zip(
            table,
            (type(event).__name__, event.category, places[event.category],
             event.schema_version, _said(event)),
            strict=True,
        ):  # fmt: skip
            table[key].append(value)
    return {"length": len(LIFE), **table}


def _said(event: Event) -> str:
    ids = {"document_id": "<D>", "version_id": "<V>", "source_id": "<S>"}
    return json.dumps(event.model_dump(mode="json") | ids)


async def _compared(small: Any, large: Any, size: int, shape: tuple[int, int]) -> Row:
    append = queries("eval.bench", "log").append_ours
    rates: dict[str, list[float]] = {"small": [], "large": []}
    for _ in range(ROUNDS):
        for name, db in (("small", small), ("large", large)):
            rates[name].append(await rate(db, append, *shape))
    of, against = (statistics.median(rates[k]) for k in ("large", "small"))
    return Row(
        f"append into {size:,} events, {shape[0]} writer(s) × {shape[1]} event(s)",
        f"{of:,.0f} events/s against {against:,.0f} into {FIRST:,}",
        of / against,
        f"flat: at least {SLOWEST}",
        of / against >= SLOWEST,
    )


# -- memory ----------------------------------------------------------------------------------------


async def memory(events: int = READ) -> list[Row]:
    """Memory of what reads a log of so many events, at a tenth of it and at the end."""
    async with _server() as dsn:
        db = await pool(dsn)
        await fill(db, events)
        await queries("eval.bench", "growth").seal(db)
        total = await Log(db).head()
        rows = [
            await _walked("the log, read from end to end", db, total, _read),
            await _walked("the chain, checked", db, total, _verified),
            await _walked("the read projection, replayed", db, total, _folded),
        ]
        await db.close()
        return rows


Walk = Callable[[Any, int, Callable[[int], None]], Awaitable[None]]
"""Goes over a whole log, and tells how far it is."""


async def _walked(what: str, db: Any, total: int, walk: Walk) -> Row:
    me, tenth, end = psutil.Process(), 0, 0

    def at(position: int) -> None:
        nonlocal tenth, end
        if position >= total / 10:
            end = me.memory_info().rss
            tenth = tenth or end

    began = time.perf_counter()
    await walk(db, total, at)
    seconds = time.perf_counter() - began
    figures = (
        f"{total / seconds:,.0f} events/s, RSS {tenth / MIB:.0f} MiB at 10 %, "
        f"{end / MIB:.0f} MiB at the end"
    )
    ratio = end / tenth
    name = f"{what}, {total:,} events"
    return Row(name, figures, ratio, f"flat: at most {FLAT}", ratio <= FLAT)


async def _read(db: Any, total: int, at: Callable[[int], None]) -> None:
    log, position = Log(db), 0
    while position < total:
        position = (await log.read(position, 500))[-1].position
        at(position)


async def _verified(db: Any, total: int, at: Callable[[int], None]) -> None:
    position, fingerprint = 0, None
    while position < total:
        page = await verify(db, after=position, fingerprint=fingerprint, limit=10_000)
        if page.faults:
            raise RuntimeError(str(page.faults[0]))
        position, fingerprint = page.position, page.fingerprint
        at(position)


async def _folded(db: Any, total: int, at: Callable[[int], None]) -> None:
    log = _Telling(db, at)
    blobs: Any = MemoryBlobs()
    await Projection(log, blobs).replay()


class _Telling(Log):
    """A log that says how far it was read."""

    def __init__(self, db: Any, at: Callable[[int], None]) -> None:
        super().__init__(db)
        self._at = at

    async def read(self, after: int, limit: int = 1000) -> Any:
        self._at(after)
        return await super().read(after, limit)


def main() -> None:
    """Print the table of `rates` or `memory`; the second argument is a number of events."""
    what, *size = sys.argv[1:]
    measure = {"rates": rates, "memory": memory}[what]
    print(HEAD)
    for row in asyncio.run(measure(*map(int, size))):
        print(row.line(), flush=True)


if __name__ == "__main__":
    main()
