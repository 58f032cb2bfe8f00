"""End to end over all hops at 20 documents/s, with handlers that do nothing: the bus alone."""

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from contracts.events import (
    Chunked,
    Converted,
    DocumentReceived,
    Event,
    Indexed,
    Parsed,
    ScanVerdict,
)
from eval.bench.report import Row
from kernel import telemetry
from kernel.consumer import consumers_of, subscribe
from kernel.db import pool
from kernel.embedded import EmbeddedNats, EmbeddedPostgres
from kernel.log import Log
from kernel.migrations import migrate
from kernel.provision import provision
from kernel.relay import Relay
from kernel.testing import first, received

RATE = 20
SECONDS = 30
WARM_UP = 40
A, B, C, D = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)


async def on_document_received(event: DocumentReceived) -> list[Event]:
    """A parse that costs nothing."""
    return [Parsed(**event.ids, parsed_sha256=A, parser="none", language="en")]


async def on_parsed(event: Parsed) -> list[Event]:
    """A scan that costs nothing."""
    return [
        ScanVerdict(
            **event.ids,
            subject="parsed",
            text_sha256=A,
            verdict="clean",
            score=0,
            ruleset="none",
        )
    ]


async def on_converted(event: Converted) -> list[Event]:
    """A second scan that costs nothing."""
    return [
        ScanVerdict(
            **event.ids,
            subject="converted",
            text_sha256=B,
            meta_sha256=C,
            verdict="clean",
            score=0,
            ruleset="none",
        )
    ]


async def on_chunked(event: Chunked) -> list[Event]:
    """An index write that costs nothing."""
    return [
        Indexed(
            **event.ids,
            body_sha256=B,
            chunks_sha256=D,
            chunk_count=1,
            embedder="none",
            embedded=0,
            reused=1,
        )
    ]


def converts(subject: str) -> Any:
    """The converter's and the indexer's reaction to a verdict."""

    async def on_scan_verdict(event: ScanVerdict) -> Sequence[Event]:
        if event.subject != subject:
            return []
        if subject == "parsed":
            return [
                Converted(
                    **event.ids,
                    body_sha256=B,
                    meta_sha256=C,
                    body_bytes=1,
                    converter="none",
                    language="en",
                )
            ]
        return [
            Chunked(
                **event.ids,
                body_sha256=B,
                meta_sha256=C,
                chunks_sha256=D,
                chunk_count=1,
                chunker="none",
            )
        ]

    return on_scan_verdict


async def nothing(event: Event) -> list[Event]:
    """A step that this bench does not take."""
    return []


def handlers(service: str) -> ModuleType:
    """A handler module of a service, as `kernel.consumer` wants it."""
    module = ModuleType(service)
    names = (
        "on_released",
        "on_superseded",
        "on_reinstated",
        "on_erased",
        "on_indexed",
        "on_scan_verdict",
    )
    for name in names:
        setattr(module, name, nothing)
    for function in (on_document_received, on_parsed, on_converted, on_chunked):
        setattr(module, function.__name__, function)
    if service in ("converter", "indexer"):
        module.on_scan_verdict = converts("parsed" if service == "converter" else "converted")  # type: ignore[attr-defined]
    return module


async def measure() -> list[Row]:
    """p50 and p99 from receipt to `Indexed`, both by the clock of the database."""
    with TemporaryDirectory(prefix="kb-bench-") as folder:
        postgres = EmbeddedPostgres(Path(folder) / "pg")
        nats = EmbeddedNats(Path(folder) / "nats")
        dsn, url = postgres.start(), nats.start()
        workers: list[Any] = []
        try:
            await migrate(dsn)
            await provision(url)
            for name in ("relay", "converter", "scanner", "indexer", "ingest"):
                command = (sys.executable, "-m", "eval.bench.hops", name, dsn, url)
                workers.append(await asyncio.create_subprocess_exec(*command))
            return [await _drive(dsn)]
        finally:
            for worker in workers:
                worker.kill()
                await worker.wait()
            nats.stop()
            postgres.stop()


async def _drive(dsn: str) -> Row:
    db = await pool(dsn)
    log, total = Log(db), RATE * SECONDS + WARM_UP
    started = time.perf_counter()
    for n in range(total):
        await asyncio.sleep(max(0.0, started + n / RATE - time.perf_counter()))
        await log.append([first(received(f"{n}.md"))])
    events = await _all_indexed(log, total)
    begun = {
        e.data["version_id"]: (e.position, e.recorded_at)
        for e in events
        if e.type == "DocumentReceived"
    }
    ended = {e.data["version_id"]: e.recorded_at for e in events if e.type == "Indexed"}
    order = sorted(begun, key=lambda v: begun[v][0])[WARM_UP:]
    latencies = sorted((ended[v] - begun[v][1]).total_seconds() * 1000 for v in order)
    p50, p99 = statistics.median(latencies), latencies[int(len(latencies) * 0.99)]
    await log.close()
    await db.close()
    return Row(
        f"six events a document over all hops at {RATE} documents/s",
        f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, max {latencies[-1]:.0f} ms, {len(order)} documents",
        p99 / p50,
        "p99 under 5 × p50",
        p99 < 5 * p50,
    )


async def _all_indexed(log: Log, total: int) -> list[Any]:
    deadline = time.perf_counter() + 60
    while time.perf_counter() < deadline:
        events, after = [], 0
        while batch := await log.read(after, 5000):
            events += batch
            after = batch[-1].position
        if sum(e.type == "Indexed" for e in events) == total:
            return events
        await asyncio.sleep(0.5)
    raise TimeoutError("the line did not keep up")


async def _work(name: str, dsn: str, url: str) -> None:
    """One process of the line."""
    from faststream.nats import NatsBroker

    telemetry.setup(name, level="WARNING")
    log = Log(await pool(dsn))
    if name == "relay":
        await Relay(log, url).run()
    broker = NatsBroker(url, max_reconnect_attempts=-1, logger=None)
    for consumer in consumers_of(name, handlers(name), log, {}):
        subscribe(broker, consumer)
    await broker.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(*sys.argv[1:4]))
