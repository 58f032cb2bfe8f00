"""Questions while passages are embedded, against the same questions on an idle stack.

`python -m eval.bench.ingesting [TOKENS…]`: a stack of its own for each value of
`KB_EMBED_BATCH_TOKENS`, with the bundled embedder; none: the default. One client, which waits for
each answer and asks again after a pause. The bar is that of the first seed's weakness: there p95
was eight times the idle one.
"""

import asyncio
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
import httpx

from eval.bench.line import QUESTIONS
from eval.bench.report import HEAD, Row
from eval.bench.seeded import Material
from eval.retrieval.pipeline import STUCK_SECONDS, finished
from kernel.db import queries
from kernel.testing_wait import eventually
from tests.stack import Stack

KNOWN = 10
"""Documents in the base before; as many again are warmed up with."""
LOAD = 40
"""Documents that are embedded meanwhile."""
PASSAGES = 60
"""Of a document, each a section of some 90 words."""
ASKED = 150
PAUSE = 0.05
BAR = 2.0


async def measure(tokens: tuple[str, ...] = ("",)) -> list[Row]:
    """p95 during a heavy ingest against idle p95, and what is embedded meanwhile."""
    material = await asyncio.to_thread(Material.read)
    rows = []
    for value in tokens:
        rows.append(await _one(material, value))
        print(rows[-1].line(), file=sys.stderr, flush=True)
    return rows


async def _one(material: Material, tokens: str) -> Row:
    settings = {"KB_EMBED_BATCH_TOKENS": tokens} if tokens else {}
    with TemporaryDirectory(prefix="kb-bench-") as folder:
        stack = Stack(Path(folder), "bundled", **settings)
        stack.kb("up", "--detach")
        try:
            async with stack.client() as client:
                await _settled(client, [await _upload(client, material, n) for n in range(KNOWN)])
                await _ask(client, 20)
                idle = await _ask(client, ASKED)
                async with _embedding(client, material):
                    await _begun(stack)
                    before, began = await _embedded(stack), time.monotonic()
                    during = await _ask(client, ASKED)
                    rate = (await _embedded(stack) - before) / (time.monotonic() - began)
        finally:
            stack.kb("down")
    ratio = _p95(during) / _p95(idle)
    figures = (
        f"idle {_shown(idle)}; during {_shown(during)}; {rate:.1f} passages/s embedded meanwhile"
    )
    what = f"question during an ingest, p95, {tokens or 'default'} tokens a batch"
    return Row(what, figures, ratio, f"at most {BAR:g}", ratio <= BAR)


@asynccontextmanager
async def _embedding(client: httpx.AsyncClient, material: Material) -> AsyncIterator[None]:
    """Documents are sent for as long as the block runs."""

    async def send() -> None:
        for number in range(KNOWN, KNOWN + LOAD):
            await _upload(client, material, number)

    sending = asyncio.create_task(send())
    try:
        yield
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


async def _upload(client: httpx.AsyncClient, material: Material, number: int) -> str:
    """A Markdown document of many passages of different lengths; its job."""
    chance = random.Random(number)
    parts = [f"# Act {number}\n"]
    for section in range(PASSAGES if number >= KNOWN else 10):
        pieces = chance.choices(material.pieces, k=chance.randint(4, 20))
        parts.append(f"## Article {section + 1}\n\n{' '.join(p.text for p in pieces)}.\n")
    files = {"file": (f"act-{number}.md", "\n".join(parts).encode())}
    reply = await client.post("/documents", files=files)
    reply.raise_for_status()
    return str(reply.json()["job_id"])


async def _settled(client: httpx.AsyncClient, jobs: list[str]) -> None:
    async for _ in finished(client, jobs):
        pass


async def _ask(client: httpx.AsyncClient, count: int) -> list[float]:
    seconds = []
    for number in range(count):
        began = time.perf_counter()
        reply = await client.post("/query", json={"query": QUESTIONS[number % len(QUESTIONS)]})
        reply.raise_for_status()
        seconds.append(time.perf_counter() - began)
        await asyncio.sleep(PAUSE)
    return seconds


async def _begun(stack: Stack) -> None:
    """Return once passages of the load are embedded: converting them comes first."""
    before = await _embedded(stack)

    async def more() -> bool:
        return await _embedded(stack) > before

    await eventually(more, deadline=STUCK_SECONDS, every=0.2)


async def _embedded(stack: Stack) -> int:
    """Vectors in the cache."""
    connection = await asyncpg.connect(stack.owner)
    try:
        return int(await queries("eval.bench", "seeded").count_vectors(connection))
    finally:
        await connection.close()


def _p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20)[18]


def _shown(seconds: list[float]) -> str:
    return (
        f"p50 {1000 * statistics.median(seconds):.0f} / p95 {1000 * _p95(seconds):.0f} / max "
        f"{1000 * max(seconds):.0f} ms"
    )


if __name__ == "__main__":
    print(HEAD)
    for row in asyncio.run(measure(tuple(sys.argv[1:]) or ("",))):
        print(row.line(), flush=True)
