"""Backup, restore, export and import of 1,000 documents, against a plain copy of the same bytes.

A document is a source of 100 KB that nothing compresses, a text of 10 KB, 20 passages with vectors
of 384 numbers, and seven events. Everything is on one disk, Postgres as `kb up` has it.
"""

import asyncio
import random
import shutil
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from contracts.artifacts import BodyMeta, Chunk, ChunkManifest, ParsedDocument
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
from kernel.backup import backup
from kernel.blobs import Blobs
from kernel.bundle import export
from kernel.bundle_check import Bundle
from kernel.cache import EmbeddingCache
from kernel.db import pool
from kernel.embedded import EmbeddedPostgres
from kernel.importing import bring_in
from kernel.log import Log, Pending
from kernel.migrations import migrate
from kernel.packed import texts_of
from kernel.repository import Repository
from kernel.restore import restore
from kernel.signing import Keys

DOCUMENTS = 1000
SOURCE_BYTES = 100_000
PASSAGES = 20
DIM = 384
MODEL = "bench/1"
BAR = 6.0
"""Times a plain copy, at most: every byte is hashed, every blob flushed to disk."""


class Place(NamedTuple):
    """A database and a store."""

    server: EmbeddedPostgres
    dsn: str
    blobs: Blobs
    folder: Path


async def measure() -> list[Row]:
    """Each way once, and the second backup, which copies nothing."""
    with TemporaryDirectory(prefix="kb-bench-") as name:
        root = Path(name)
        places = [_place(root / n) for n in ("one", "two", "three")]
        try:
            return await _measure(root, *places)
        finally:
            for place in places:
                place.server.stop()


async def _measure(root: Path, one: Place, two: Place, three: Place) -> list[Row]:
    await migrate(one.dsn)
    await migrate(three.dsn)
    await _fill(one)
    megabytes = sum(p.stat().st_size for p in one.folder.rglob("*") if p.is_file()) / 1e6
    plain = await _timed(lambda: asyncio.to_thread(shutil.copytree, one.folder, root / "plain"))
    repository, keys = Repository(root / "backups"), Keys(root / "keys")
    file = root / "bundle.kb"

    async def first() -> None:
        await backup(one.dsn, one.blobs, repository, with_vectors=True)

    async def back() -> None:
        await restore(two.dsn, two.blobs, repository, repository.choose(None))

    async def out() -> None:
        await export(one.dsn, one.blobs, "default", file, keys, with_vectors=True)

    async def into() -> None:
        with Bundle(file) as bundle:
            bundle.signed_by()
            await bundle.check()
            await bring_in(three.dsn, three.blobs, bundle, "bench")

    rows = []
    steps: dict[str, Callable[[], Awaitable[None]]] = {
        "backup": first, "second backup": first, "restore": back, "export": out, "import": into,
    }  # fmt: skip
    for what, work in steps.items():
        seconds = await _timed(work)
        figures = (
            f"{DOCUMENTS} documents, {megabytes:.0f} MB of blobs: {seconds:.1f} s, "
            f"{megabytes / seconds:.0f} MB/s, {DOCUMENTS / seconds:.0f} documents/s; "
            f"a plain copy {plain:.1f} s"
        )
        ratio = seconds / plain
        rows.append(Row(f"{what} to a plain copy", figures, ratio, f"≤ {BAR:.0f}", ratio <= BAR))
    return rows


def _place(folder: Path) -> Place:
    server = EmbeddedPostgres(folder / "postgres")
    return Place(server, server.start(), Blobs(str(folder / "blobs")), folder / "blobs")


async def _timed(work: Callable[[], Awaitable[Any]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


async def _fill(place: Place) -> None:
    database = await pool(place.dsn, size=8)
    log, cache, rng = Log(database), EmbeddingCache(database), random.Random(5)
    left = iter(range(DOCUMENTS))

    async def work() -> None:
        for n in left:
            await _document(place.blobs, log, cache, rng, n)

    await asyncio.gather(*(work() for _ in range(4)))
    await database.close()


async def _document(
    blobs: Blobs, log: Log, cache: EmbeddingCache, rng: random.Random, number: int
) -> None:
    passages = [
        f"{' '.join(_word(rng) for _ in range(70))} {number}.{p}\n" for p in range(PASSAGES)
    ]
    text = "".join(passages)
    meta = BodyMeta(title=f"Document {number}", language="en", media_type="application/pdf")
    source, parsed, body, meta_name = [
        await blobs.put(data)
        for data in (
            rng.randbytes(SOURCE_BYTES),
            ParsedDocument(markdown=text, meta=meta).to_bytes(),
            text.encode(),
            meta.to_bytes(),
        )
    ]
    document_id, version_id = f"{rng.getrandbits(128):032x}", f"{rng.getrandbits(128):032x}"
    chunks, at = [], 0
    for p, passage in enumerate(passages):
        end = at + len(passage.encode())
        chunks.append(
            Chunk(chunk_id=f"{document_id[:16]}:{p}", heading_path=(), byte_start=at, byte_end=end,
                  tokens=70, language="en")
        )  # fmt: skip
        at = end
    manifest = ChunkManifest(body_sha256=body, chunker="b", title=meta.title, chunks=tuple(chunks))
    cut = await blobs.put(manifest.to_bytes())
    vectors = np.random.default_rng(number).random((PASSAGES, DIM), np.float32)
    await cache.put(MODEL, texts_of(manifest, text.encode()), vectors, version_id)
    ids = {"project": "default", "document_id": document_id, "version_id": version_id,
           "source_id": source}  # fmt: skip
    verdict: dict[str, Any] = {"verdict": "clean", "score": 0, "ruleset": "r"} | ids
    events: list[Event] = [
        DocumentReceived(**ids, source_key=f"k{number}", name=f"{number}.pdf",
                         media_type="application/pdf", size_bytes=SOURCE_BYTES,
                         valid_from=datetime(2025, 1, 1, tzinfo=UTC)),
        Parsed(**ids, parsed_sha256=parsed, parser="p", language="en"),
        ScanVerdict(subject="parsed", text_sha256=parsed, **verdict),
        Converted(**ids, body_sha256=body, meta_sha256=meta_name, body_bytes=at, converter="c",
                  language="en"),
        ScanVerdict(subject="converted", text_sha256=body, meta_sha256=meta_name, **verdict),
        Chunked(**ids, body_sha256=body, meta_sha256=meta_name, chunks_sha256=cut,
                chunk_count=PASSAGES, chunker="b"),
        Indexed(**ids, body_sha256=body, chunks_sha256=cut, chunk_count=PASSAGES, embedder=MODEL,
                embedded=PASSAGES, reused=0),
    ]  # fmt: skip
    job = uuid4()
    for event in events:
        await log.append([Pending(event, uuid4(), job, "bench")])


def _word(rng: random.Random) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9)))
