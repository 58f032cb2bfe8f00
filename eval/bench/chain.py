"""What the hash chain costs an append, and how fast and in how much memory a log is checked.

python -m eval.bench chain; KB_BENCH_EVENTS says how large the log is (default 2,000,000).
"""

import os
import resource
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval.bench.log import SHAPES, rate
from eval.bench.report import Row
from kernel import migrations
from kernel.chain import verify
from kernel.db import pool, queries
from kernel.embedded import EmbeddedPostgres

BEFORE = "0009"
"""Migrations before this one know no chain."""
ROUNDS = 7
STEP = 20_000
SMALL = 20_000


async def measure() -> list[Row]:
    """Append rates before and with the chain, interleaved; then the check of a long log."""
    events = int(os.environ.get("KB_BENCH_EVENTS", "2000000")) // 8 * 8  # whole versions
    return [*await _appends(), *await _check(events)]


async def _appends() -> list[Row]:
    q = queries("eval.bench", "chain")
    async with _database(lambda name: name < BEFORE) as old, _database() as new:
        return [await _compared(q, old, new, *shape) for shape in SHAPES]


async def _compared(q: Any, old: Any, new: Any, writers: int, events: int) -> Row:
    rates: dict[str, list[float]] = {"old": [], "new": []}
    for _ in range(ROUNDS):
        for name, db in (("old", old), ("new", new)):
            rates[name].append(await rate(db, q.append, writers, events))
    before, after = (statistics.median(rates[k]) for k in ("old", "new"))
    what = f"log append with the chain, {writers} writer(s) × {events} event(s)"
    figures = f"{after:.0f} events/s against {before:.0f} without"
    return Row(what, figures, after / before, "at least 0.5", after >= before / 2)


@asynccontextmanager
async def _database(wanted: Callable[[str], bool] = lambda _: True) -> AsyncIterator[Any]:
    """A server of its own, with those migrations."""
    everything = migrations.files
    with TemporaryDirectory(prefix="kb-bench-") as folder:
        server = EmbeddedPostgres(Path(folder) / "data")
        dsn = server.start()
        try:
            migrations.files = lambda: [f for f in everything() if wanted(f[0])]
            await migrations.migrate(dsn)
            db = await pool(dsn, size=10)
            yield db
            await db.close()
        finally:
            migrations.files = everything
            server.stop()


async def _check(events: int) -> list[Row]:
    async with _database() as db:
        (small, _), (large, seconds) = [
            await _grown_and_checked(db, first, last)
            for first, last in ((1, SMALL), (SMALL + 1, events))
        ]
    return [
        Row(
            f"check of a log of {events:,} events, memory of the process against {SMALL:,} events",
            f"{large:.0f} MiB at most against {small:.0f}, {events / seconds:,.0f} events/s",
            large / small,
            "at most 1.2",
            large <= 1.2 * small,
        )
    ]


async def _grown_and_checked(db: Any, first: int, last: int) -> tuple[float, float]:
    """Append events up to number `last`; the process's peak of memory (MiB), seconds of a check."""
    q = queries("eval.bench", "chain")
    async with db.acquire() as connection:
        for start in range(first, last + 1, STEP):
            await q.grow(connection, first=start, last=min(start + STEP - 1, last))
        await q.seal(connection)
    started = time.perf_counter()
    page = await verify(db)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if page.found or page.events != last:
        raise RuntimeError(f"the log that was made is not whole: {page.faults[:3]}")
    return peak, seconds
