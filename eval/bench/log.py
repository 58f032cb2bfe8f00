"""Appends: our log against the reference DDL, on one server, in one run."""

import asyncio
import statistics
import time
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from contracts.events import Chunked, Converted, Event, Indexed, Parsed, ScanVerdict
from eval.bench.report import Row
from kernel.db import pool, queries
from kernel.embedded import EmbeddedPostgres
from kernel.migrations import migrate
from kernel.testing import first, received

SHAPES = ((1, 1), (8, 1), (8, 6))
"""(writers, events an append)"""
SECONDS = 1.5
ROUNDS = 9


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
                rates[name].append(await rate(db, append, writers, events))
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


async def rate(db: Any, append: Any, writers: int, events: int) -> float:
    """Events a second that so many writers append, so many at a time."""
    count, until = 0, time.perf_counter() + SECONDS

    async def write() -> None:
        nonlocal count
        lives = cycle(LIFE)
        async with db.acquire() as connection:
            while time.perf_counter() < until:
                stream_id = f"version-{uuid4().hex}"
                batch = [_row(first(event).to_row()) for event in islice(lives, events)]
                await append(connection, stream_id=stream_id, events=batch)
                count += events

    started = time.perf_counter()
    await asyncio.gather(*(write() for _ in range(writers)))
    return count / (time.perf_counter() - started)


def _life() -> list[Event]:
    """The events of one document, as the line writes them."""
    receipt = received("bench.md")
    sha: dict[str, Any] = {
        "parsed_sha256": "a" * 64,
        "text_sha256": "b" * 64,
        "body_sha256": "b" * 64,
        "meta_sha256": "c" * 64,
        "chunks_sha256": "d" * 64,
    }
    more: dict[str, Any] = {
        "parser": "p", "language": "en", "subject": "converted", "verdict": "clean", "score": 0,
        "ruleset": "r", "body_bytes": 1, "converter": "c", "chunk_count": 3, "chunker": "h",
        "embedder": "e", "embedded": 3, "reused": 0,
    }  # fmt: skip
    kinds = (Parsed, ScanVerdict, Converted, Chunked, Indexed)
    return [receipt, *(kind.model_validate(receipt.ids | sha | more) for kind in kinds)]


LIFE = tuple(_life())


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """One row serves both: the reference names the project otherwise."""
    return row | {"project_id": row["project"]}
