"""Ingests real documents while processes are killed, then compares what is there with the log.

    python -m tests.chaos.drive --documents 60 --runs 1

Prints documents, kills, redeliveries, duplicates and lost; exits 1 unless the last two are 0, every
document is indexed exactly once, and the projections equal a replay from zero.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import nats

from contracts.envelope import Envelope
from contracts.events import EVENTS
from eval.corpus import documents
from kernel.log import to_envelope
from kernel.provision import STREAM, consumers
from services.search.projection import digest
from tests.stack import Stack

TARGETS = ("relay", "ingest", "scanner", "converter", "indexer", "search", "nats")
"""Who is killed; embedded, indexer and search are one process."""


@dataclass
class Report:
    """The outcome of one run."""

    documents: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    redeliveries: int = 0
    duplicates: int = 0
    lost: int = 0
    seconds: float = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Nothing lost, nothing twice, nothing else wrong."""
        return not (self.duplicates or self.lost or self.wrong)

    def line(self) -> str:
        """One line for a person."""
        return (
            f"documents {self.documents}  kills {self.kills.total()}  redeliveries "
            f"{self.redeliveries}  duplicates {self.duplicates}  lost {self.lost}  "
            f"{self.seconds:.0f} s  {'ok' if self.good else 'WRONG: ' + '; '.join(self.wrong)}"
        )


async def run(count: int, embedder: str, seed: int, settle: float = 240) -> Report:
    """One run: start, kill while ingesting, settle, compare, stop."""
    report, chance = Report(), random.Random(seed)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kb-chaos-") as folder:
        stack = Stack(Path(folder), embedder)
        stack.kb("up", "--detach")
        try:
            files = documents(count)
            report.documents = len(files)
            stop = asyncio.Event()
            killing = asyncio.create_task(kill(stack, chance, report, stop))
            jobs = await upload(stack, files)
            stop.set()
            await killing
            await settled(stack, jobs, report, settle)
            await compare(stack, report)
        finally:
            with suppress(RuntimeError):
                stack.kb("down")
    report.seconds = time.monotonic() - begun
    return report


async def kill(stack: Stack, chance: random.Random, report: Report, stop: asyncio.Event) -> None:
    """One kill -9 a second, at least as many as there are targets, until the uploads are in."""
    while not stop.is_set() or report.kills.total() < 3 * len(TARGETS):
        await asyncio.sleep(1)
        target = chance.choice(TARGETS)
        names = {"indexer": "indexer+search", "search": "indexer+search"}
        for process in stack.state.processes:
            if process.name == names.get(target, target) and process.process():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
                    report.kills[target] += 1


async def upload(stack: Stack, files: list[tuple[str, bytes]]) -> dict[str, str]:
    """Upload every file, again and again until it is accepted; name → job id."""
    jobs: dict[str, str] = {}
    async with stack.client() as client:
        for name, data in files:
            jobs[name] = await _upload(client, name, data)
            await asyncio.sleep(0.3)
    return jobs


async def _upload(client: httpx.AsyncClient, name: str, data: bytes) -> str:
    for _ in range(600):
        try:
            reply = await client.post("/documents", files={"file": (name, data)})
        except httpx.TransportError:
            reply = None
        if reply is not None and reply.status_code in (200, 202):
            return str(reply.json()["job_id"])
        if reply is not None and reply.status_code < 500:
            raise RuntimeError(f"{name}: {reply.status_code} {reply.text[:300]}")
        await asyncio.sleep(0.2)
    raise RuntimeError(f"{name} was never accepted")


async def settled(stack: Stack, jobs: dict[str, str], report: Report, deadline: float) -> None:
    """Wait until every job is done and no consumer has work left."""
    until = time.monotonic() + deadline
    open_jobs = dict(jobs)
    async with stack.client() as client:
        while open_jobs and time.monotonic() < until:
            for name, job in list(open_jobs.items()):
                with suppress(httpx.TransportError, KeyError, json.JSONDecodeError):
                    state = (await client.get(f"/jobs/{job}")).json()
                    if state["done"]:
                        del open_jobs[name]
                        if state["status"] != "indexed":
                            report.wrong.append(f"{name}: {state['status']} {state['error']}")
            await asyncio.sleep(0.5)
        report.lost = len(open_jobs)
        while await _lag(stack) and time.monotonic() < until:
            await asyncio.sleep(0.5)


async def _admin(stack: Stack) -> Any:
    password = stack.config["KB_BUS_PASSWORD_ADMIN"]
    return await nats.connect(stack.address("nats"), user="admin", password=password)


async def _lag(stack: Stack) -> int:
    connection = await _admin(stack)
    js, total = connection.jetstream(), 0
    for info in await js.consumers_info(STREAM):
        total += (info.num_pending or 0) + (info.num_ack_pending or 0)
    await connection.close()
    return total


async def compare(stack: Stack, report: Report) -> None:
    """Log, stream, projections and both indexes against each other."""
    password = stack.config["KB_OWNER_PASSWORD"]
    port = next(p.port for p in stack.state.processes if p.name == "postgres")
    pool = await asyncpg.create_pool(f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres")
    try:
        rows = await pool.fetch("SELECT * FROM log.event ORDER BY position")
        events = [to_envelope(r) for r in rows]
        _check_log(events, report)
        await _check_stream(stack, events, report)
        await _check_projections(stack, pool, report)
    finally:
        await pool.close()


def _check_log(events: list[Envelope], report: Report) -> None:
    if [e.position for e in events] != list(range(1, len(events) + 1)):
        report.wrong.append("positions have gaps")
    effects = Counter((e.causation_id, e.actor, e.type) for e in events if e.causation_id)
    received = Counter(e.data["version_id"] for e in events if e.type == "DocumentReceived")
    indexed = Counter(e.data["version_id"] for e in events if e.type == "Indexed")
    report.duplicates += sum(n - 1 for n in effects.values())
    report.duplicates += sum(n - 1 for n in (*received.values(), *indexed.values()))
    report.lost += len(received.keys() - indexed.keys())
    if len(received) != report.documents:
        report.wrong.append(f"{len(received)} documents were received")
    strangers = {e.type for e in events} - EVENTS.keys()
    if strangers:
        report.wrong.append(f"unknown types {strangers}")


async def _check_stream(stack: Stack, events: list[Envelope], report: Report) -> None:
    connection = await _admin(stack)
    js = connection.jetstream()
    info = await js.stream_info(STREAM)
    if info.state.last_seq != len(events):
        report.wrong.append(f"the stream is at {info.state.last_seq}, the log at {len(events)}")
    for envelope in events:
        message = await js.get_msg(STREAM, envelope.position)
        if (message.headers or {}).get("ce-id") != str(envelope.event_id):
            report.wrong.append(f"sequence {envelope.position} is another event")
    known = Counter((e.type, e.lane) for e in events)
    delivered = sum(
        c.delivered.consumer_seq for c in await js.consumers_info(STREAM) if c.delivered
    )
    expected = sum(known[event.__name__, lane] for _, event, lane in consumers())
    report.redeliveries = delivered - expected
    await connection.close()


async def _check_projections(stack: Stack, pool: Any, report: Report) -> None:
    before, chunks = await digest(pool), await _chunks(pool)
    async with stack.client() as client:
        client.timeout = httpx.Timeout(300)
        for path in ("/projections/read/rebuild", "/rebuild"):
            reply = await client.post(path, json={})
            if reply.status_code != 200:
                report.wrong.append(f"{path}: {reply.status_code} {reply.text[:300]}")
    if await digest(pool) != before:
        report.wrong.append("the read projection is not what a replay gives")
    if await _chunks(pool) != chunks:
        report.wrong.append("the passages are not what a rebuild gives")


async def _chunks(pool: Any) -> Any:
    """Everything about the passages that answer, but the number of their generation."""
    return await pool.fetchval(
        "SELECT md5(string_agg((to_jsonb(c) - 'generation')::text, '' "
        "ORDER BY version_id, chunk_id)) FROM read.chunk c "
        "JOIN read.active USING (project, generation)"
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--embedder", default="hashed", help="hashed, or bundled")
    options = parser.parse_args()
    bad = 0
    for n in range(options.runs):
        report = asyncio.run(run(options.documents, options.embedder, options.seed + n))
        print(f"run {n + 1}: {report.line()}  {dict(report.kills)}", flush=True)
        bad += not report.good
    print(f"{options.runs - bad} of {options.runs} runs without loss or duplicate")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
