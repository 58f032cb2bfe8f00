"""How long `kb scrub` locks the tables of a base of 100,000 passages."""

from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg

from eval.bench.report import Row
from kernel.db import queries
from kernel.embedded import EmbeddedPostgres
from kernel.migrations import migrate
from kernel.scrub import Scrubbed, scrub, weight

PASSAGES = 100_000
BATCH = 5000
BAR = 10.0
"""Seconds for 100 MB, at most: `kb erase` scrubs tables of up to 64 MB without being asked."""


async def measure() -> list[Row]:
    """The longest lock of one table, and the seconds for 100 MB of all of them."""
    with TemporaryDirectory(prefix="kb-bench-") as folder:
        server = EmbeddedPostgres(Path(folder) / "data")
        dsn = server.start()
        try:
            await _fill(dsn)
            megabytes = await weight(dsn) / 2**20
            return [_row(await scrub(dsn), megabytes)]
        finally:
            server.stop()


async def _fill(dsn: str) -> None:
    await migrate(dsn)
    connection = await asyncpg.connect(dsn)
    sql = queries("eval.bench", "scrub")
    await sql.make_pool(connection)
    for first in range(0, PASSAGES, BATCH):
        span = {"first": first, "last": first + BATCH - 1}
        await sql.fill_passages(connection, **span)
        await sql.fill_vectors(connection, **span)
    await sql.forget_some(connection)
    await connection.close()


def _row(done: Scrubbed, megabytes: float) -> Row:
    longest = max(done.tables, key=lambda name: done.tables[name])
    second = sorted(done.tables.values())[-2]
    figures = (
        f"{PASSAGES} passages, {megabytes:.0f} MB: {done.seconds:.1f} s; "
        f"{longest} locked for {done.tables[longest]:.1f} s, any other for at most {second:.1f} s"
    )
    ratio = done.seconds / megabytes * 100
    return Row("seconds of a scrub for 100 MB", figures, ratio, f"≤ {BAR:.0f}", ratio <= BAR)
