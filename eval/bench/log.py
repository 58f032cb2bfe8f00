"""Appends: our log against the reference DDL, on one server, in one run."""

import asyncio
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from contracts.events import DocumentReceived
from eval.bench.report import Row
from kernel.db import pool, queries
from kernel.embedded import EmbeddedPostgres
from kernel.migrations import migrate
from kernel.testing import first, received

SHAPES = ((1, 1), (8, 1), (8, 6))
"""(writers, events an append)"""
SECONDS = 3.0
ROUNDS = 3


async def measure() -> list[Row]:
    """Median events/s of both over interleaved rounds, and the ratio ours to reference."""
    with TemporaryDirectory(prefix="kb-bench-") as folder:
        server = EmbeddedPostgres(Path(folder) / "data")
        dsn = server.start()
        try:
            return await _measure(dsn)
        finally:
            server.stop()


async def _measure(dsn: str) -> list[Row]:
    await migrate(dsn)
    db = await pool(dsn, size=10)
    await db.execute((Path(__file__).parent / "reference.sql").read_text("utf-8"))
    q = queries("eval.bench", "log")
    rows = []
    for writers, events in SHAPES:
        rates: dict[str, list[float]] = {"reference": [], "ours": []}
        for _ in range(ROUNDS):
            for name, append in (("reference", q.append_reference), ("ours", q.append_ours)):
                rates[name].append(await _rate(db, append, writers, events))
        ours, reference = (statistics.median(rates[k]) for k in ("ours", "reference"))
        rows.append(
            Row(
                f"log append, {writers} writer(s) × {events} event(s)",
                f"{ours:.0f} events/s against {reference:.0f}",
                ours / reference,
                "at least 1.0",
                ours >= reference,
            )
        )
    await db.close()
    return rows


async def _rate(db: Any, append: Any, writers: int, events: int) -> float:
    count, until = 0, time.perf_counter() + SECONDS

    async def write() -> None:
        nonlocal count
        async with db.acquire() as connection:
            while time.perf_counter() < until:
                event: DocumentReceived = received(uuid4().hex)
                batch = [_row(first(event).to_row()) for _ in range(events)]
                await append(connection, stream_id=event.stream_id, events=batch)
                count += events

    started = time.perf_counter()
    await asyncio.gather(*(write() for _ in range(writers)))
    return count / (time.perf_counter() - started)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """One row serves both: the reference names the project otherwise."""
    return row | {"project_id": row["project"]}
