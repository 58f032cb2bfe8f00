"""The whole line against one loop; rebuild against ingest; a query against its parts.

All in one run on the same 60 documents, with the bundled embedder. The loop has no bus, no database
and no HTTP; it has the parse cell, the scanner, the chunker, the analyser, the embedder and the
vector engine, one document after the other.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np

from contracts.artifacts import embedded_text
from eval.bench.report import Row
from eval.corpus import documents
from kernel.db import pool, queries
from kernel.embedded import EmbeddedPostgres
from kernel.embedder import EmbedderSettings, load_embedder
from kernel.keyword_index import KeywordIndex
from kernel.keywords import analyse, query_terms, tsvector
from kernel.language import detect
from kernel.media import sniff
from kernel.vectors import Point, VectorFilter, open_index, point_id
from services.converter.cell import ParseCell
from services.converter.domain import canonical
from services.converter.settings import ConverterSettings
from services.indexer.chunker import Cut, cut
from services.indexer.index import slices
from services.scanner.domain import scan
from services.scanner.ruleset import default_ruleset
from services.scanner.texts import hidden_of, hidden_of_meta
from tests.stack import Stack

COUNT = 60
QUERIES = 200
PARALLEL = 4
QUESTIONS = (
    "how do I change the keyboard layout",
    "Bildschirm sperren",
    "как подключить принтер",
    "promjena pozadine radne površine",
    "ugasni računar",
    "Frist für die Auskunft",
    "where are screenshots saved",
    "настройка сети",
    "Lautstärke ändern",
    "battery does not charge",
)


async def measure() -> list[Row]:
    """Four ratios."""
    files = documents(COUNT)
    with TemporaryDirectory(prefix="kb-bench-") as folder:
        loop_seconds, passages = await _loop(files, Path(folder) / "loop")
        stack = Stack(Path(folder), "bundled")
        stack.kb("up", "--detach")
        try:
            line_seconds = await _line(stack, files)
            rebuild_seconds = await _rebuild(stack)
            over_http = await _over_http(stack)
        finally:
            stack.kb("down")
        parts = await _parts(stack)
    alone = sum(parts.values())
    named = ", ".join(f"{k} {v * 1000:.1f} ms" for k, v in parts.items())
    return [
        Row(
            f"whole line against one loop, {COUNT} documents",
            f"line {line_seconds:.1f} s, loop {loop_seconds:.1f} s, {passages} passages",
            line_seconds / loop_seconds,
            "at most 1.15",
            line_seconds <= 1.15 * loop_seconds,
        ),
        Row(
            "rebuild against first ingest",
            f"rebuild {rebuild_seconds:.2f} s, ingest {line_seconds:.1f} s",
            line_seconds / rebuild_seconds,
            "at least 30",
            line_seconds >= 30 * rebuild_seconds,
        ),
        Row(
            "query p50 over HTTP against its parts alone",
            f"HTTP {over_http * 1000:.1f} ms; {named}",
            over_http / alone,
            "at most 3",
            over_http <= 3 * alone,
        ),
    ]


async def _loop(files: list[tuple[str, bytes]], folder: Path) -> tuple[float, int]:
    """Seconds for all documents, models warm; and the number of passages."""
    folder.mkdir()  # noqa: ASYNC240
    embedder = await asyncio.to_thread(load_embedder, EmbedderSettings())
    vectors = open_index(root=folder / "vectors")
    await vectors.create("loop__g1", embedder.dim)
    options = Cut(embedder.count_tokens, lambda t: detect(t).code)
    paths = []
    for name, data in files:
        (folder / name).write_bytes(data)
        paths.append((folder / name, sniff(data[:65536], name)))
    passages = 0
    async with ParseCell(ConverterSettings()) as cell:
        await _one(paths[0], cell, embedder, vectors, options)
        started = time.perf_counter()
        for path in paths:
            passages += await _one(path, cell, embedder, vectors, options)
        seconds = time.perf_counter() - started
    await vectors.close()
    await embedder.aclose()
    return seconds, passages


async def _one(
    path: tuple[Path, str], cell: ParseCell, embedder: Any, vectors: Any, options: Cut
) -> int:
    """One document through the functions of the line."""
    with await cell.parse(*path) as outcome:
        parsed = outcome.document
    scan(parsed.markdown, hidden_of(parsed), default_ruleset())
    body, meta, _ = canonical(parsed, path[0].stem)
    scan(body, hidden_of_meta(meta), default_ruleset())
    source_id = f"{abs(hash(path[0].name)):064x}"
    chunks = cut(body, meta.title, source_id, meta.language, options)
    texts = [
        embedded_text(meta.title, c.heading_path, c.context, p)
        for c, p in zip(chunks, slices(body.encode(), chunks), strict=True)
    ]
    for text, chunk in zip(texts, chunks, strict=True):
        tsvector(analyse(text, chunk.language))
    matrix = await embedder.embed_documents(texts)
    now = datetime.now(UTC)
    await vectors.upsert(
        "loop__g1",
        [
            Point(
                point_id(source_id, c.chunk_id),
                v,
                source_id,
                source_id,
                "loop",
                c.language,
                c.heading_path,
                now,
                None,
            )
            for c, v in zip(chunks, matrix, strict=True)
        ],
    )
    return len(chunks)


async def _line(stack: Stack, files: list[tuple[str, bytes]]) -> float:
    """Seconds from the first upload until every job is done."""
    async with stack.client() as client:
        await _warm(client)
        started = time.perf_counter()
        gate = asyncio.Semaphore(PARALLEL)

        async def upload(name: str, data: bytes) -> str:
            async with gate:
                reply = await client.post("/documents", files={"file": (name, data)})
                reply.raise_for_status()
                return str(reply.json()["job_id"])

        jobs = set(await asyncio.gather(*(upload(n, d) for n, d in files)))
        while jobs:
            for job in list(jobs):
                state = (await client.get(f"/jobs/{job}")).json()
                if state["done"]:
                    if state["status"] != "indexed":
                        raise RuntimeError(f"{state['name']}: {state['status']} {state['error']}")
                    jobs.discard(job)
                else:
                    break
            await asyncio.sleep(0.05)
        return time.perf_counter() - started


async def _warm(client: httpx.AsyncClient) -> None:
    """One document of its own project: docling and the models are loaded, as in the loop."""
    text = (
        "# Warm\n\n"
        + "This page is here so that every model is loaded before the clock starts. " * 8
    )
    for name, data in (
        ("warm.md", text.encode()),
        ("warm.html", f"<h1>Warm</h1><p>{text}</p>".encode()),
    ):
        reply = await client.post(
            "/documents", files={"file": (name, data)}, data={"project": "warm"}
        )
        job = reply.json()["job_id"]
        while not (await client.get(f"/jobs/{job}")).json()["done"]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def _rebuild(stack: Stack) -> float:
    """Best of three: the seconds that the rebuild of the 60 documents takes over HTTP."""
    best = float("inf")
    async with stack.client() as client:
        client.timeout = httpx.Timeout(300)
        for _ in range(3):
            started = time.perf_counter()
            reply = await client.post("/rebuild", json={"project": "default"})
            reply.raise_for_status()
            if reply.json()["rebuilt"][0]["embedded"]:
                raise RuntimeError("the rebuild ran a model")
            best = min(best, time.perf_counter() - started)
    return best


async def _over_http(stack: Stack) -> float:
    """p50 of `POST /query` at the front door, one after the other."""
    async with stack.client() as client:

        async def ask(question: str) -> None:
            reply = await client.post("/query", json={"query": question})
            reply.raise_for_status()

        return await _p50(ask)


async def _parts(stack: Stack) -> dict[str, float]:
    """p50 of embedder, vector search and keyword search alone, on what the stack left."""
    embedder = await asyncio.to_thread(load_embedder, EmbedderSettings())
    vectors = open_index(root=stack.data.root / "vectors")
    password = stack.config["KB_OWNER_PASSWORD"]
    postgres = EmbeddedPostgres(stack.data.root / "postgres", password=password)
    db = await pool(postgres.start())
    try:
        generation = await queries("services.search", "queries").active(db, project="default")
        collection, now = f"default__g{generation}", datetime.now(UTC)
        known: dict[str, np.ndarray[Any, Any]] = {
            q: await embedder.embed_query(q) for q in QUESTIONS
        }
        keywords, flt = KeywordIndex(db), VectorFilter(as_of=now)

        async def embed(question: str) -> None:
            await embedder.embed_query(question)

        async def dense(question: str) -> None:
            await vectors.search(collection, known[question], flt, 50)

        async def words(question: str) -> None:
            base = [("default", generation)]
            await keywords.search(base, query_terms(question), flt, limit=50)

        return {
            "embed": await _p50(embed),
            "vectors": await _p50(dense),
            "keywords": await _p50(words),
        }
    finally:
        await vectors.close()
        await embedder.aclose()
        await db.close()
        postgres.stop()


async def _p50(call: Callable[[str], Awaitable[None]]) -> float:
    for question in QUESTIONS:
        await call(question)
    seconds = []
    for n in range(QUERIES):
        started = time.perf_counter()
        await call(QUESTIONS[n % len(QUESTIONS)])
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)
