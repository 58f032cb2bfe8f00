"""Questions as of an instant, with 1, 10 and 100 versions of each source.

At every instant the same number of passages is live: only what is past grows. The three bases are
projects of one installation, as `kb up` has it (embedded vector engine), and take turns, so that
whatever else runs slows all of them. Texts are made of made-up words; the embedder hashes them.
"""

import asyncio
import hashlib
import random
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from contracts.query import QueryRequest
from eval.bench.report import Row
from kernel.blobs import Blobs
from kernel.db import pool, queries
from kernel.embedded import EmbeddedPostgres
from kernel.embedder import HashedEmbedder
from kernel.keyword_index import KeywordIndex
from kernel.keywords import analyse, query_terms, tsvector
from kernel.log import Log
from kernel.migrations import migrate
from kernel.vectors import Point, VectorIndex, collection_name, open_index
from services.search.engine import Engine
from services.search.projection import Projection
from services.search.scope import Scope, Scopes

VERSIONS = (1, 10, 100)
SOURCES = 500
WORDS = 4000
LENGTH = 80
"""Words of a passage."""
QUESTIONS = 300
WARM = 20
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=2000)
BAR = 1.5
DEPTH = 50


class Passage(NamedTuple):
    """One version of a source, of one passage."""

    source: int
    number: int
    text: str
    valid_from: datetime
    valid_until: datetime | None


class Answers(NamedTuple):
    """Who answers questions."""

    embedder: HashedEmbedder
    vectors: VectorIndex
    keywords: KeywordIndex
    engine: Engine
    scopes: Scopes
    db: Any


def project(versions: int) -> str:
    return f"versions-{versions}"


def _text(rng: random.Random) -> str:
    """Few words are frequent, as in a language."""
    return " ".join(f"word{int(WORDS * rng.random() ** 3)}" for _ in range(LENGTH))


def _passages(versions: int, rng: random.Random) -> list[Passage]:
    step = SPAN / versions
    found = []
    for source in range(SOURCES):
        for n in range(versions):
            begins = BEGIN + n * step
            ends = begins + step if n < versions - 1 else None
            found.append(Passage(source, n, _text(rng), begins, ends))
    return found


def _ids(versions: int, passage: Passage) -> dict[str, Any]:
    key = f"{versions}|{passage.source}"
    document = hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()
    state = f"{key}|{passage.number}"
    version = hashlib.md5(state.encode(), usedforsecurity=False).hexdigest()
    return {
        "document_id": document,
        "version_id": version,
        "source_id": hashlib.sha256(state.encode()).hexdigest(),
        "chunk_id": f"{version}-0",
        "point_id": uuid5(NAMESPACE_OID, version),
    }


async def _fill(db: Any, base: Answers, versions: int) -> None:
    sql, rng = queries("eval.bench", "asof"), random.Random(versions)
    passages = _passages(versions, rng)
    name = collection_name(project(versions), 1)
    await base.vectors.create(name, base.embedder.dim)
    await sql.open_project(
        db, project=project(versions), embedder=base.embedder.model_id, dim=base.embedder.dim
    )
    for first in range(0, len(passages), 500):
        part = passages[first : first + 500]
        rows = [_row(versions, p) for p in part]
        await sql.put_versions(db, rows)
        await sql.put_windows(db, rows)
        await sql.put_passages(db, rows)
        vectors = await base.embedder.embed_documents([p.text for p in part])
        points = [
            Point(
                vector=vector, project=project(versions), language="en", heading_path=(),
                valid_from=p.valid_from, valid_until=p.valid_until,
                windows=((p.valid_from, p.valid_until),),
                **{k: _ids(versions, p)[k] for k in ("point_id", "document_id", "version_id")},
            )
            for p, vector in zip(part, vectors, strict=True)
        ]  # fmt: skip
        await base.vectors.upsert(name, points)


def _row(versions: int, passage: Passage) -> dict[str, Any]:
    words = analyse(passage.text, "en")
    return {
        **_ids(versions, passage),
        "project": project(versions),
        "name": f"{passage.source}.md",
        "text": passage.text,
        "bytes": len(passage.text.encode()),
        "terms": tsvector(words),
        "term_count": len(words),
        "valid_from": passage.valid_from,
        "valid_until": passage.valid_until,
        "job_id": _ids(versions, passage)["point_id"],
    }


@asynccontextmanager
async def _ready() -> AsyncIterator[tuple[Any, Answers]]:
    with TemporaryDirectory(prefix="kb-bench-") as folder:
        server = EmbeddedPostgres(Path(folder) / "postgres")
        dsn = server.start()
        try:
            await migrate(dsn)
            db = await pool(dsn, size=6)
            log, blobs = Log(db), Blobs(str(Path(folder) / "blobs"))
            vectors, embedder = open_index(root=Path(folder) / "vectors"), HashedEmbedder()
            engine = Engine(log, Projection(log, blobs), embedder, vectors)
            yield db, Answers(embedder, vectors, KeywordIndex(db), engine, Scopes(), db)
            await vectors.close()
            await db.close()
        finally:
            server.stop()


async def measure() -> list[Row]:
    """p50 and p95 of each leg and of whole questions, and the ratios to one version."""
    async with _ready() as (db, base):
        for versions in VERSIONS:
            await _fill(db, base, versions)
        await db.execute("VACUUM ANALYZE")
        return [
            row
            for what, ask in (
                ("scope and keyword leg", _keyword),
                ("scope and dense leg", _dense),
                ("whole", _whole),
            )
            for row in await _compared(what, ask, base)
        ]


Ask = Callable[[Answers, int, str, datetime], Awaitable[int]]


async def _compared(what: str, ask: Ask, base: Answers) -> list[Row]:
    """Every question goes to each base in turn."""
    rng = random.Random(7)
    seconds: dict[int, list[float]] = {v: [] for v in VERSIONS}
    found: dict[int, int] = dict.fromkeys(VERSIONS, 0)
    for number in range(WARM + QUESTIONS):
        question = " ".join(_text(rng).split()[:4])
        moment = BEGIN + rng.random() * SPAN
        for versions in rng.sample(VERSIONS, len(VERSIONS)):
            began = time.perf_counter()
            hits = await ask(base, versions, question, moment)
            if number >= WARM:
                seconds[versions].append(time.perf_counter() - began)
                found[versions] += hits
    return [_line(what, v, seconds, found[v] / QUESTIONS) for v in VERSIONS]


def _line(what: str, versions: int, seconds: dict[int, list[float]], hits: float) -> Row:
    p50, p95 = _percentiles(seconds[versions])
    one, _ = _percentiles(seconds[VERSIONS[0]])
    figures = f"p50 {p50:.1f} ms, p95 {p95:.1f} ms, {hits:.1f} hits"
    bar = f"at most {BAR} of one version (p50)"
    ratio = p50 / one
    return Row(f"as of, {what}, {versions} version(s) a source", figures, ratio, bar, ratio <= BAR)


def _percentiles(seconds: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(seconds, n=20)
    return statistics.median(seconds) * 1000, cuts[18] * 1000


async def _scope(base: Answers, versions: int, question: str, moment: datetime) -> Scope:
    """What the engine hands to the legs."""
    request = QueryRequest(query=question, project=project(versions), as_of=moment)
    return await base.scopes.open(base.db, request)


async def _keyword(base: Answers, versions: int, question: str, moment: datetime) -> int:
    scope = await _scope(base, versions, question, moment)
    terms = query_terms(question)
    return len(await base.keywords.search(scope.bases, terms, scope.filter, limit=DEPTH))


async def _dense(base: Answers, versions: int, question: str, moment: datetime) -> int:
    scope = await _scope(base, versions, question, moment)
    vector = await base.embedder.embed_query(question)
    name = project(versions)
    collection = collection_name(name, 1)
    return len(await base.vectors.search(collection, vector, scope.filters[name], DEPTH))


async def _whole(base: Answers, versions: int, question: str, moment: datetime) -> int:
    request = QueryRequest(query=question, top_k=10, project=project(versions), as_of=moment)
    return len((await base.engine.query(request)).results)


if __name__ == "__main__":
    for line in asyncio.run(measure()):
        print(line.line())
