"""`POST /query` of the real search service over HTTP, in bases of 10³ to 10⁶ passages.

`python -m eval.bench.search [SIZE…]`; as a part of `eval.bench` the sizes up to 10⁴. The service is
a process of its own, as `kb up` starts it, with the embedded vector engine and the embedder without
a model (`hashed`, 384 numbers): what a model takes does not grow with the base. Clients wait for
each answer before they ask again. The parts of a question are those of its own metrics.
"""

import asyncio
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from eval.bench.report import HEAD, Row
from eval.bench.seeded import Material, fill
from kernel.embedded import EmbeddedPostgres, free_port
from kernel.embedder import HashedEmbedder
from kernel.migrations import migrate
from kernel.spawn import guarded
from kernel.vectors import open_index

SIZES = (1_000, 10_000)
CLIENTS = (1, 8, 32)
DIM = 384
QUESTIONS = 300
WARM = 40
KEY = "bench"
PARTS = ("embed", "dense", "keyword", "passages")
BAR = 3.0
"""The dense leg grows by so much at most when the base grows by ten; log 10⁴ to log 10⁵ is 1.25."""


@dataclass
class Answers:
    """Of one base with one number of clients: seconds of each question, mean ms of each part."""

    seconds: list[float] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)
    statuses: dict[int, int] = field(default_factory=dict)

    def at(self, percent: int) -> float:
        """A percentile in ms."""
        return 1000 * statistics.quantiles(self.seconds, n=100, method="inclusive")[percent - 1]

    @property
    def rest(self) -> float:
        """Mean ms outside the parts: HTTP, scope, fusion, the reply. The legs run side by side."""
        legs = max(self.parts["embed"] + self.parts["dense"], self.parts["keyword"])
        return 1000 * statistics.mean(self.seconds) - legs - self.parts["passages"]

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {self.parts[name]:.1f}" for name in PARTS)
        wrong = {s: n for s, n in self.statuses.items() if s != httpx.codes.OK}
        said = f"; not answered: {wrong}" if wrong else ""
        return (
            f"p50 {self.at(50):.1f} / p95 {self.at(95):.1f} ms; mean {parts}, rest "
            f"{self.rest:.1f}{said}"
        )


async def measure(sizes: Sequence[int] = SIZES) -> list[Row]:
    """Each base and number of clients against the smallest base, and the dense leg by itself."""
    material = await asyncio.to_thread(Material.read)
    rows: list[Row] = []
    first: dict[int, Answers] = {}
    dense: dict[int, float] = {}
    for size in sizes:
        async with served(material, size) as client:
            for clients in CLIENTS:
                found = await asked(client, material, size, clients)
                base = first.setdefault(clients, found)
                ratio = found.at(50) / base.at(50)
                what = f"question, {size:,} passages, {clients} at once"
                rows.append(_row(what, str(found), ratio, f"to {sizes[0]:,}, p50"))
                dense.setdefault(size, found.parts["dense"])
                _tell(rows[-1].line())
    for before, size in pairwise(sizes):
        ratio = dense[size] / dense[before]
        figures = f"{dense[before]:.2f} ms, {dense[size]:.2f} ms"
        bar = f"at most {BAR:g}"
        what = f"dense leg, {size:,} against {before:,} passages"
        rows.append(Row(what, figures, ratio, bar, ratio <= BAR))
    return rows


def _row(what: str, figures: str, ratio: float, bar: str) -> Row:
    return Row(what, figures, ratio, bar, holds=True)


@asynccontextmanager
async def served(
    material: Material, size: int, **settings: str
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a search service over a base of `size` passages."""
    with TemporaryDirectory(prefix="kb-bench-", dir=os.environ.get("TMPDIR")) as folder:
        data = Path(folder)
        server = EmbeddedPostgres(data / "postgres")
        dsn = server.start()
        try:
            await migrate(dsn)
            vectors, embedder = open_index(root=data / "vectors"), HashedEmbedder(DIM)
            began = time.monotonic()
            await fill(dsn, vectors, material, embedder, size)
            await vectors.close()
            _tell(f"{size:,} passages in {time.monotonic() - began:.0f} s")
            async with _service(data, dsn, settings) as client:
                yield client
        finally:
            server.stop()


@asynccontextmanager
async def _service(
    data: Path, dsn: str, settings: dict[str, str]
) -> AsyncIterator[httpx.AsyncClient]:
    port = free_port()
    (data / "blobs").mkdir()
    env = dict(os.environ) | {
        "KB_POSTGRES_URL": dsn, "KB_API_KEY": KEY, "KB_PORT": str(port),
        "KB_EMBEDDER": "hashed", "KB_EMBEDDINGS_DIM": str(DIM), "KB_AUDIT_PER_MINUTE": "0",
        "KB_LOG_LEVEL": "WARNING", **settings,
    }  # fmt: skip
    command = guarded([sys.executable, "-m", "cli.main", "run", "search", "--data", str(data)])
    process = subprocess.Popen(command, env=env)  # noqa: ASYNC220 - from the main thread, see spawn
    headers = {"Authorization": f"Bearer {KEY}"}
    limits = httpx.Limits(max_connections=max(CLIENTS))
    try:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120, limits=limits
        ) as client:
            await _up(client, process)
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


async def _up(client: httpx.AsyncClient, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        try:
            (await client.get("/health")).raise_for_status()
        except httpx.HTTPError:
            await asyncio.sleep(0.1)
        else:
            return
    raise RuntimeError("the search service ended")


async def asked(client: httpx.AsyncClient, material: Material, size: int, clients: int) -> Answers:
    """Some questions that are not counted, then the others."""
    await _ask(client, material.asked(WARM, size, seed=1), clients)
    before = await _parts(client)
    found = await _ask(client, material.asked(QUESTIONS, size, seed=2 + clients), clients)
    after = await _parts(client)
    for name in PARTS:
        seconds, count = (after[name][n] - before[name][n] for n in (0, 1))
        found.parts[name] = 1000 * seconds / max(count, 1)
    return found


async def _ask(client: httpx.AsyncClient, questions: list[str], clients: int) -> Answers:
    found, waiting = Answers(), iter(questions)

    async def one() -> None:
        for question in waiting:
            began = time.perf_counter()
            reply = await client.post("/query", json={"query": question, "top_k": 10})
            found.seconds.append(time.perf_counter() - began)
            status = reply.status_code
            found.statuses[status] = found.statuses.get(status, 0) + 1

    await asyncio.gather(*(one() for _ in range(clients)))
    return found


async def _parts(client: httpx.AsyncClient) -> dict[str, tuple[float, float]]:
    """Seconds and number of each part so far."""
    text = (await client.get("/metrics")).text
    found = {}
    for name in PARTS:
        numbers = [
            re.search(rf'kb_query_seconds_{what}{{part="{name}"}} (\S+)', text)
            for what in ("sum", "count")
        ]
        seconds, count = (float(n[1]) if n else 0.0 for n in numbers)
        found[name] = seconds, count
    return found


def _tell(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    print(HEAD)
    for row in asyncio.run(measure(tuple(map(int, sys.argv[1:])) or SIZES)):
        print(row.line(), flush=True)
