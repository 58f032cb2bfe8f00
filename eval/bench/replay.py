"""Replay of a made-up log: to standard output, to a file, with filters, to the read projection.

`python -m eval.bench.replay [EVENTS]` takes another size of log than the 200,000 events of
`python -m eval.bench replay`. The command reads through the front door and the service search, as
`kb up` runs them: three processes besides Postgres. Memory is the resident set of a process when a
tenth of the events is done, and at the end.
"""

import asyncio
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import httpx
import psutil

from contracts.events import Event, Superseded, Window
from eval.bench.log import LIFE
from eval.bench.report import HEAD, Row
from kernel.blobs import Blobs
from kernel.db import pool, queries
from kernel.embedded import EmbeddedPostgres, free_ports
from kernel.log import Log
from kernel.migrations import migrate
from services.search.projection import BATCH, Projection

EVENTS = 200_000
PROJECTS = ("default", "letters", "statutes", "notes")
COLUMNS = (
    "position", "stream_id", "version", "event_id", "type", "schema_version", "lane", "project",
    "causation_id", "correlation_id", "actor", "traceparent", "occurred_at", "recorded_at", "data",
    "salt", "digest", "chain",
)  # fmt: skip
COPY = 20_000
MIB = 1 << 20
FLAT = 1.25
"""So much more memory at the end than at a tenth counts as flat: caches of the allocator."""
FOLDED = 0.2
"""The rate of the fold to that of reading the log: batches are folded, not events."""


@dataclass
class Done:
    """One run: events, seconds, and the resident set at a tenth and at the end, in bytes."""

    events: int
    seconds: float
    tenth: int
    end: int

    def row(self, what: str) -> Row:
        """As a line of the table: the ratio is memory at the end to memory at a tenth."""
        rate = (
            f"{self.events / self.seconds:,.0f} events/s ({self.events:,} in {self.seconds:.1f} s)"
        )
        memory = f"RSS {self.tenth / MIB:.0f} MiB at 10 %, {self.end / MIB:.0f} MiB at the end"
        ratio = self.end / self.tenth
        return Row(f"replay {what}", f"{rate}; {memory}", ratio, f"flat: ≤ {FLAT}", ratio <= FLAT)


async def measure(events: int = EVENTS) -> list[Row]:
    """Every figure over one log."""
    with TemporaryDirectory(prefix="kb-bench-", dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        server = EmbeddedPostgres(folder / "postgres")
        dsn = server.start()
        try:
            await migrate(dsn)
            await generate(dsn, events)
            read = await _read(dsn, events)
            projected = await _projected(dsn, folder, events)
            rows = [projected.row("to the read projection"), _against(read, projected)]
            with ExitStack() as stack:
                door = stack.enter_context(_door(dsn, folder))
                rows += _commands(door, folder, events)
        finally:
            server.stop()
    return rows


# -- a log -----------------------------------------------------------------------------------------


async def generate(dsn: str, events: int) -> None:
    """Documents as the line writes them, every fourth one with two versions; links are made up."""
    db = await pool(dsn)
    rows, now = _rows(events), datetime.now(UTC) - timedelta(days=30)
    batch: list[tuple[Any, ...]] = []
    async with db.acquire() as connection:
        await connection.reset_type_codec("jsonb", schema="pg_catalog")
        for position, row in enumerate(rows, 1):
            batch.append((position, *row[:-1], now + timedelta(seconds=position), *row[-1]))
            if len(batch) == COPY or position == events:
                await connection.copy_records_to_table(
                    "event", schema_name="log", columns=COLUMNS, records=batch
                )
                batch = []
        await queries("eval.bench", "replay").set_head(
            connection, position=events, recorded_at=now + timedelta(seconds=events)
        )
        await connection.execute("VACUUM ANALYZE log.event")
    await db.close()


def _rows(events: int) -> Iterator[tuple[Any, ...]]:
    """The columns between position and recorded_at, and those behind it."""
    made, now = 0, datetime.now(UTC)
    for n in range(events):
        job = uuid4()
        for event, version in _story(n):
            if made == events:
                return
            made += 1
            data = event.model_dump_json()
            links = (
                data,
                secrets.token_bytes(16),
                secrets.token_bytes(32),
                secrets.token_bytes(32),
            )
            yield (
                event.stream_id, version, uuid4(), type(event).__name__, event.schema_version,
                "live", event.project, None, job, "svc:bench", None, now, links,
            )  # fmt: skip


_EARLIER: dict[int, str] = {}


def _story(n: int) -> Iterator[tuple[Event, int]]:
    """The events of one version, and their places in their streams; every fourth is a next one."""
    follows = n % 4 == 3
    ids = {
        "project": PROJECTS[n // 4 % len(PROJECTS)],
        "version_id": uuid4().hex,
        "document_id": _EARLIER.get(0, "") if follows else uuid4().hex,
        "source_id": secrets.token_hex(32),
    }
    before, _EARLIER[1] = _EARLIER.get(1, ""), ids["version_id"]
    _EARLIER[0] = ids["document_id"]
    receipt, *rest = (event.model_copy(update=ids) for event in LIFE)
    yield receipt, 2 if follows else 1
    for version, event in enumerate(rest, 1):
        yield event, version
    if follows:
        day = datetime(2026, 1, 1, tzinfo=UTC)
        windows = (
            Window(version_id=before, valid_from=day, valid_until=day + timedelta(days=1)),
            Window(version_id=ids["version_id"], valid_from=day + timedelta(days=1)),
        )
        old = Superseded(
            **(ids | {"version_id": before}), by_version_id=ids["version_id"],
            valid_until=day + timedelta(days=1), windows=windows,
        )  # fmt: skip
        yield old, 3


# -- replays ---------------------------------------------------------------------------------------


async def _read(dsn: str, events: int) -> Done:
    """Every event read in its current shape, and nothing done with it."""
    db = await pool(dsn)
    event_log, me, position = Log(db), psutil.Process(), 0
    started = time.perf_counter()
    while batch := await event_log.read(position, BATCH):
        for envelope in batch:
            envelope.fact()
        position = batch[-1].position
    seconds = time.perf_counter() - started
    await db.close()
    assert position == events
    memory = me.memory_info().rss
    return Done(events, seconds, memory, memory)


def _against(read: Done, projected: Done) -> Row:
    """What a fold costs. With three statements an event it was a twentieth of the rate."""
    ratio = read.seconds / projected.seconds
    rates = [f"{done.events / done.seconds:,.0f}" for done in (projected, read)]
    figures = f"{rates[0]} events/s folded against {rates[1]} read"
    return Row("the projection against reading", figures, ratio, f"≥ {FOLDED}", ratio >= FOLDED)


async def _projected(dsn: str, folder: Path, events: int) -> Done:
    """Folded from zero, as `kb replay --projection read` has it, in this process."""
    db = await pool(dsn)
    projection = Projection(Log(db), Blobs(str(folder / "blobs")))
    me, tenth = psutil.Process(), 0

    async def watch() -> None:
        nonlocal tenth
        await asyncio.sleep(0)
        while tenth == 0:
            if _FOLDED.events >= events / 10:
                tenth = me.memory_info().rss
            await asyncio.sleep(0.05)

    counted = _FOLDED.on(projection)
    watching = asyncio.ensure_future(watch())
    started = time.perf_counter()
    await projection.replay()
    seconds = time.perf_counter() - started
    await watching
    await db.close()
    assert counted.events == events
    return Done(events, seconds, tenth, me.memory_info().rss)


class _Folded:
    """Counts what a projection folds."""

    events = 0

    def on(self, projection: Any) -> "_Folded":
        real = projection._log.read

        async def read(*asked: Any, **more: Any) -> Any:
            batch = await real(*asked, **more)
            self.events += len(batch)
            return batch

        projection._log.read = read
        return self


_FOLDED = _Folded()


@dataclass(frozen=True)
class Door:
    """The front door, and the process behind it."""

    env: dict[str, str]
    search: psutil.Process


@contextmanager
def _door(dsn: str, folder: Path) -> Iterator[Door]:
    """`kb run search` and `kb run ui`."""
    ports = dict(zip(("search", "ui"), free_ports(2), strict=True))
    data = {"KB_DATA": str(folder), "KB_POSTGRES_URL": dsn, "KB_API_KEY": "bench"}
    env = dict(os.environ) | data | {"KB_EMBEDDER": "hashed", "KB_LOG_LEVEL": "WARNING"}
    env["KB_SEARCH_URL"] = f"http://127.0.0.1:{ports['search']}"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "cli.main", "run", service],
            env=env | {"KB_PORT": str(port)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for service, port in ports.items()
    ]
    url = f"http://127.0.0.1:{ports['ui']}"
    try:
        _await(f"{url}/events/summary")
        yield Door(env | {"KB_URL": url}, psutil.Process(processes[0].pid))
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _await(url: str) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            reply = httpx.get(url, headers={"Authorization": "Bearer bench"}, timeout=60)
        except httpx.TransportError:
            pass
        else:
            if reply.is_success:
                return
        time.sleep(0.2)
    raise TimeoutError(url)


def _commands(door: Door, folder: Path, events: int) -> list[Row]:
    file = folder / "log.jsonl"
    rows = [
        _command(door, file, "--out", str(file)).row("to a file"),
        _command(door, folder / "out.jsonl").row("to standard output"),
    ]
    search = door.search.memory_info().rss
    for name, words in (
        ("of a rare type", ("--type", "Superseded")),
        ("of one of four projects", ("--project", "letters")),
        ("of a rare type in a project", ("--type", "Superseded", "--project", "letters")),
        ("of the last 1,000 positions", ("--from", str(events - 999))),
    ):
        done = _command(door, folder / "some.jsonl", *words)
        more = (
            done.row(name).what,
            f"{done.events:,} events in {done.seconds:.2f} s",
            1.0,
            "–",
            True,
        )
        rows.append(Row(*more))
    again = door.search.memory_info().rss
    ratio = again / search
    figures = f"RSS {search / MIB:.0f} MiB after one, {again / MIB:.0f} MiB after six"
    rows.append(Row("the service search, replays", figures, ratio, f"≤ {FLAT}", ratio <= FLAT))
    return rows


def _command(door: Door, file: Path, *words: str) -> Done:
    """`kb replay`; memory is looked at while it writes `file`."""
    total = json.loads(_kb(door, "--dry-run", "--json", *_without_target(words)).stdout)["events"]
    command = [sys.executable, "-m", "cli.main", "replay", *words]
    started = time.perf_counter()
    tenth = end = 0
    out = file.with_suffix(".stdout") if "--out" in words else file
    with out.open("wb") as stdout:
        process = subprocess.Popen(command, env=door.env, stdout=stdout)
        me = psutil.Process(process.pid)
        size = 0
        while process.poll() is None:
            try:
                end = me.memory_info().rss or end
                size = file.stat().st_size if file.exists() else 0
            except psutil.Error:
                break
            if not tenth and size > total * 100:  # a tenth of about 1,000 bytes an event
                tenth = end
            time.sleep(0.01)
    if process.wait():
        raise RuntimeError(f"kb replay {words}: exit {process.returncode}")
    seconds = time.perf_counter() - started
    with file.open("rb") as written:
        events = sum(1 for _ in written)
    assert events == total
    return Done(events, seconds, tenth or end, end)


def _without_target(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[: words.index("--out")] if "--out" in words else words


def _kb(door: Door, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "cli.main", "replay", *words]
    return subprocess.run(command, env=door.env, capture_output=True, text=True, check=True)


def main() -> None:
    """Print the table; the first argument is how many events."""
    print(HEAD)
    for row in asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)):
        print(row.line(), flush=True)


if __name__ == "__main__":
    main()
