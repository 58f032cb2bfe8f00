"""A rebuild of 100,000 passages: how long questions take meanwhile, and how fast it is.

One process, as `kb up` has it: indexer, search and the embedded vector engine. The texts are made
of made-up words; the embedder hashes them, so that nothing waits for a model: a first ingest with
one takes hours, which a line with the bundled embedder's own rate says. Questions come one after
the other, with a pause between.
"""

import asyncio
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import NAMESPACE_OID, UUID, uuid5

from contracts.artifacts import BodyMeta
from contracts.events import Chunked, DocumentReceived, Event, ScanVerdict
from contracts.query import QueryRequest
from eval.bench.report import Row
from kernel.blobs import Blobs
from kernel.db import pool
from kernel.embedded import EmbeddedPostgres
from kernel.embedder import EmbedderSettings, HashedEmbedder, load_embedder
from kernel.log import Log, Pending
from kernel.migrations import migrate
from kernel.vectors import VectorIndex, open_index
from services.indexer.chunker import Cut
from services.indexer.handlers import on_chunked, on_scan_verdict
from services.indexer.index import Index
from services.indexer.rebuild import rebuild, rollback
from services.search.engine import Engine
from services.search.projection import Projection

PASSAGES = 100_000
SECTIONS = 20
"""Sections of a document; each is one passage."""
WORDS = 8000
PAUSE = 0.1
"""Seconds between questions."""
IDLE = 30.0
PARALLEL = 2
"""Documents in work at once, as the indexer has it."""
PROJECT = "default"


@dataclass
class Questions:
    """Seconds of each question of a stretch of time, and how many were not answered."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0

    def at(self, percent: int) -> float:
        """A percentile in ms."""
        if len(self.seconds) < 2:
            return 1000 * max(self.seconds, default=0.0)
        return 1000 * statistics.quantiles(self.seconds, n=100, method="inclusive")[percent - 1]

    def __str__(self) -> str:
        longest = 1000 * max(self.seconds, default=0.0)
        return f"p50 {self.at(50):.0f} / p95 {self.at(95):.0f} / max {longest:.0f} ms"


@dataclass
class Base:
    """A base of generated documents in one process."""

    log: Log
    blobs: Blobs
    index: Index
    engine: Engine
    projection: Projection
    options: Cut
    words: list[str]

    def body(self, number: int) -> str:
        """Markdown of a document: sections of 60 to 90 words, common ones more often."""
        chance = random.Random(number)
        parts = []
        for section in range(SECTIONS):
            count = chance.randint(60, 90)
            text = " ".join(self.words[int(WORDS * chance.random() ** 3)] for _ in range(count))
            parts.append(f"## Article {section + 1} of {number}\n\n{text}.\n\n")
        return "".join(parts)

    async def ingest(self, number: int) -> None:
        """A document from its verdict on: cut, embedded, written, said."""
        name = f"{number}.md"
        body = self.body(number).encode()
        ids = {k: uuid5(NAMESPACE_OID, f"{k}/{name}").hex for k in ("document_id", "version_id")}
        body_sha256 = await self.blobs.put(body)
        meta = BodyMeta(title=f"Law {number}", language="en", media_type="text/markdown")
        meta_sha256 = await self.blobs.put(meta.to_bytes())
        receipt = DocumentReceived(
            project=PROJECT, **ids, source_id=body_sha256, source_key=name, name=name,
            media_type="text/markdown", size_bytes=len(body),
            valid_from=datetime(2026, 1, 1, tzinfo=UTC),
        )  # fmt: skip
        verdict = ScanVerdict(
            **receipt.ids, subject="converted", text_sha256=body_sha256, meta_sha256=meta_sha256,
            verdict="clean", score=0, ruleset="bench",
        )  # fmt: skip
        await self._say(receipt)
        await self._say(verdict)
        (chunked,) = await on_scan_verdict(
            verdict, blobs=self.blobs, log=self.log, cut_options=self.options, index=self.index
        )
        await self._say(chunked)
        if not isinstance(chunked, Chunked):
            raise TypeError(f"not cut: {chunked}")
        (indexed,) = await on_chunked(chunked, blobs=self.blobs, log=self.log, index=self.index)
        await self._say(indexed)

    async def _say(self, event: Event) -> None:
        job = UUID(event.document_id)
        event_id = uuid5(job, type(event).__name__)
        await self.log.append([Pending(event, event_id, job, "bench", lane="bulk")])

    async def fill(self, documents: int) -> float:
        """Ingest so many documents; returns the seconds, the read projection not counted."""
        numbers = iter(range(documents))

        async def worker() -> None:
            for number in numbers:
                await self.ingest(number)

        started = time.monotonic()
        await asyncio.gather(*(worker() for _ in range(PARALLEL)))
        return time.monotonic() - started

    async def ask(self, asked: Questions, chance: random.Random) -> None:
        """One question of four words, of them a rare one."""
        few = [self.words[int(WORDS * chance.random() ** 2)] for _ in range(3)]
        request = QueryRequest(query=" ".join([*few, chance.choice(self.words)]), project=PROJECT)
        started = time.perf_counter()
        reply = await self.engine.query(request)
        asked.seconds.append(time.perf_counter() - started)
        asked.wrong += not reply.results

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[Questions]:
        """Questions, one after the other, as long as the block runs."""
        asked, chance = Questions(), random.Random(7)

        async def ask() -> None:
            while True:
                await self.ask(asked, chance)
                await asyncio.sleep(PAUSE)

        task = asyncio.create_task(ask())
        try:
            yield asked
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def vocabulary() -> list[str]:
    """Made-up words, all different."""
    chance = random.Random(1)
    found: dict[str, None] = {}
    while len(found) < WORDS:
        syllables = chance.randint(2, 4)
        found[
            "".join(
                chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(syllables)
            )
        ] = None
    return list(found)


@asynccontextmanager
async def base(folder: Path) -> AsyncIterator[Base]:
    """Postgres, vectors and services in this process."""
    async with AsyncExitStack() as stack:
        server = EmbeddedPostgres(folder / "postgres")
        dsn = await asyncio.to_thread(server.start)
        stack.push_async_callback(asyncio.to_thread, server.stop)
        await migrate(dsn)
        own, searching = await pool(dsn, size=8), await pool(dsn, size=8)
        stack.callback(own.terminate)
        stack.callback(searching.terminate)
        (folder / "blobs").mkdir()
        vectors: VectorIndex = open_index(root=folder / "vectors")
        stack.push_async_callback(vectors.close)
        blobs, embedder = Blobs((folder / "blobs").as_uri()), HashedEmbedder(384)
        log, reading = Log(own), Log(searching)
        projection = Projection(reading, blobs)
        yield Base(
            log,
            blobs,
            Index(log, blobs, embedder, vectors),
            Engine(reading, projection, embedder, vectors),
            projection,
            Cut(embedder.count_tokens),
            vocabulary(),
        )


async def measure(passages: int = PASSAGES) -> list[Row]:
    """Questions during a rebuild against idle; the rates of rebuild and ingest."""
    documents = passages // SECTIONS
    with TemporaryDirectory(prefix="kb-bench-") as folder:
        async with base(Path(folder)) as made:
            ingest = await made.fill(documents)
            _tell(f"ingest {ingest:.0f} s")
            await made.projection.replay()
            running = asyncio.create_task(made.projection.run())
            _tell("projection done")
            async with made.asking():
                await asyncio.sleep(3)  # warm
            async with made.asking() as idle:
                await asyncio.sleep(IDLE)
            _tell(f"idle {idle}")
            async with made.asking() as during:
                done = await rebuild(made.index, PROJECT, options=made.options)
            _tell(f"rebuild {done.seconds:.0f} s: {during}")
            async with made.asking() as back:
                returned = await rollback(made.index, PROJECT, options=made.options)
            _tell(f"rollback {returned.seconds:.1f} s: {back}")
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
    model = await _model_rate()
    rate = done.passages / done.seconds
    return [
        _row(f"question during a rebuild of {done.passages:,} passages", idle, during, 5.0),
        _row("question during a rollback", idle, back, 5.0),
        Row(
            "rebuild against first ingest without a model",
            f"rebuild {rate:.0f} passages/s ({done.seconds:.0f} s), ingest "
            f"{done.passages / ingest:.0f} passages/s",
            ingest / done.seconds,
            "at least 1",
            ingest >= done.seconds,
        ),
        Row(
            "rebuild against a first ingest that only embeds",
            f"the bundled embedder makes {model:.0f} vectors/s of such texts",
            rate / model,
            "at least 30",
            rate >= 30 * model,
        ),
    ]


def _row(what: str, idle: Questions, during: Questions, bar: float) -> Row:
    ratio = during.at(95) / idle.at(95)
    wrong = idle.wrong + during.wrong
    figures = f"idle {idle}; during {during}; {len(during.seconds)} questions, {wrong} unanswered"
    return Row(f"{what}, p95", figures, ratio, f"at most {bar:g}", ratio <= bar and not wrong)


async def _model_rate() -> float:
    """Passages that the bundled embedder embeds in a second."""
    embedder = await asyncio.to_thread(load_embedder, EmbedderSettings(embedder="bundled"))
    words, chance = vocabulary(), random.Random(3)
    texts = [" ".join(chance.choices(words, k=75)) for _ in range(64)]
    await embedder.embed_documents(texts[:8])
    started = time.monotonic()
    await embedder.embed_documents(texts)
    seconds = time.monotonic() - started
    await embedder.aclose()
    return len(texts) / seconds


def _tell(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    for row in asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else PASSAGES)):
        print(row.line())
