"""The keyword leg alone: modes against a plain BM25 of unstemmed words, on real question sets.

`python -m eval.keywords [--dsn DSN] [--only NAME] [--pool]` starts a Postgres of its own without a
DSN. Each document of a set is one passage. Figures are R@1/R@5; then milliseconds a question.
`--pool`: all sets, in all languages, lie in one project, each in the way of the others.
"""

import argparse
import asyncio
import math
import re
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import asyncpg

from eval.retrieval import sets
from kernel.db import pool
from kernel.keyword_index import KeywordIndex
from kernel.keywords import Mode, analyse, query_terms, tsvector
from kernel.vectors import VectorFilter, point_id

DATA = Path(__file__).parents[1] / "../shared/evaldata/retrieval"
SETS = (
    *(("xquad", language, True) for language in ("en", "de")),
    *(("gnome_help", x, True) for x in ("en", "de", "hr", "ru", "sl", "sr-Cyrl", "sr-Latn")),
    *(("libreoffice_help", language, False) for language in ("en", "de", "ru", "sl")),
    *(("progit", language, False) for language in ("en", "bg", "mk")),
    ("german_laws", "bdsg_2018", False),
    ("exams_parallel", "hr-sr", True),
)
"""Set, variant, and whether the title is searched: not where the questions are the titles."""

EVERYTHING = VectorFilter(include_historical=True)
LOAD = Path(__file__).with_name("keywords.sql")


@dataclass(frozen=True)
class Set:
    """`documents`: (id, text, language); `questions`: (text, ids that answer it)."""

    name: str
    documents: list[tuple[str, str, str]]
    questions: list[tuple[str, frozenset[str]]]


def read(folder: Path, *, title: bool) -> Set:
    """A set in the format of the data's README; ids are the same in all languages of a set."""
    found, prefix = sets.read(folder), f"{folder.parent.name}/{folder.name}:"
    documents = [
        (f"{prefix}{d.id}", f"{d.title}\n{d.text}" if title else d.text, d.lang[:2])
        for d in found.documents
    ]
    questions = [
        (text, frozenset(f"{prefix}{id_}" for id_ in found.relevant[query]))
        for query, text in found.queries.items()
    ]
    return Set(found.name, documents, questions)


Search = Callable[[str], Any]


async def measure(questions: list[tuple[str, frozenset[str]]], search: Search) -> str:
    """R@1/R@5 and milliseconds; `search` gives ids, best first."""
    first = five = 0
    started = time.perf_counter()
    for text, relevant in questions:
        ids = await search(text)
        first += bool(relevant & set(ids[:1]))
        five += bool(relevant & set(ids[:5]))
    each = (time.perf_counter() - started) / len(questions) * 1000
    return f"{first / len(questions):.3f}/{five / len(questions):.3f} {each:5.1f}"


def plain_bm25(documents: list[tuple[str, str, str]]) -> Search:
    """The floor: lower-cased words, no stemming, k1 1.2, b 0.75."""
    words = [Counter(re.findall(r"\w+", text.lower())) for _, text, _ in documents]
    lengths = [sum(counts.values()) for counts in words]
    mean = sum(lengths) / len(lengths)
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for at, counts in enumerate(words):
        for word, count in counts.items():
            postings[word].append((at, count))

    async def search(text: str) -> list[str]:
        scores: dict[int, float] = defaultdict(float)
        for word in set(re.findall(r"\w+", text.lower())):
            held = postings.get(word, [])
            rare = math.log(1 + (len(words) - len(held) + 0.5) / (len(held) + 0.5))
            for at, count in held:
                norm = count + 1.2 * (0.25 + 0.75 * lengths[at] / mean)
                scores[at] += rare * count * 2.2 / norm
        best = sorted(scores, key=lambda at: (-scores[at], at))[:5]
        return [documents[at][0] for at in best]

    return search


async def load(database: "asyncpg.Pool[Any]", project: str, found: Set) -> None:
    """Each document as one passage of generation 1."""
    words = [analyse(text, language) for _, text, language in found.documents]
    await database.execute(
        LOAD.read_text("utf-8"),
        project,
        [name for name, _, _ in found.documents],
        [language for _, _, language in found.documents],
        [tsvector(w) for w in words],
        [len(w) for w in words],
        [point_id(name, "c") for name, _, _ in found.documents],
    )


async def run(dsn: str, only: str, *, pooled: bool) -> None:
    """Print one line for each set."""
    database = await pool(dsn)
    index = KeywordIndex(database)
    print(f"{'R@1/R@5 ms':26}{'plain words':20}" + "".join(f"{m:20}" for m in get_args(Mode)))
    every = [read(DATA / name / variant, title=title) for name, variant, title in SETS]
    for found in every:
        await load(database, _project(found, pooled=pooled), found)
    for found in [found for found in every if only in found.name]:
        project = _project(found, pooled=pooled)
        columns = [await measure(found.questions, plain_bm25(found.documents))]
        for mode in get_args(Mode):
            columns.append(await measure(found.questions, _leg(index, project, mode)))
        print(f"{found.name:26}" + "".join(f"{column:20}" for column in columns), flush=True)
    await database.close()


def _project(found: Set, *, pooled: bool) -> str:
    return "pool" if pooled else found.name.replace("/", "-").lower()


def _leg(index: KeywordIndex, project: str, mode: Mode) -> Search:
    async def search(text: str) -> list[str]:
        hits = await index.search([(project, 1)], query_terms(text), EVERYTHING, limit=5, mode=mode)
        return [hit.version_id for hit in hits]

    return search


@contextmanager
def postgres(dsn: str) -> Iterator[str]:
    """The given server, or one of its own that ends with the measurement."""
    if dsn:
        yield dsn
        return
    from kernel.embedded import EmbeddedPostgres

    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedPostgres(Path(folder) / "data", fsync=False)
        started = server.start()
        try:
            from kernel.migrations import migrate

            asyncio.run(migrate(started))
            yield started
        finally:
            server.stop()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--pool", action="store_true")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no evaluation data in {DATA}")
    with postgres(options.dsn) as dsn:
        asyncio.run(run(dsn, options.only, pooled=options.pool))


if __name__ == "__main__":
    main()
