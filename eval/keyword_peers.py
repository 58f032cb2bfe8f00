"""BM25 in Postgres against two others over the same terms: bm25s, and Qdrant's sparse vectors.

`python -m eval.keyword_peers [--only NAME]`; bm25s is measured where it is installed, which it is
not by `make setup`. Figures are R@1/R@5 and milliseconds a question, the analysis of the question
left out for all. Each document of a set is one passage, as in `eval.keywords`.

They differ in this: ours takes the best of a word's terms, the others add all of them up; ours
knows the mean length of the passages that match, bm25s that of all, and whoever makes sparse
vectors must have it before the first passage comes.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from typing import Any

from eval.keywords import DATA, EVERYTHING, SETS, Search, Set, load, measure, postgres, read
from kernel.db import pool
from kernel.keyword_index import KeywordIndex
from kernel.keywords import analyse, query_terms

K1, B = 1.2, 0.75


def counts(found: Set) -> list[Counter[str]]:
    """Terms of each passage."""
    return [
        Counter(term for word in analyse(text, language) for term in word.terms)
        for _, text, language in found.documents
    ]


def with_bm25s(found: Set, passages: Sequence[Counter[str]]) -> Search | None:
    """bm25s, its variant `lucene`; None where it is not installed."""
    try:
        import bm25s  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    index = bm25s.BM25(k1=K1, b=B, method="lucene")
    index.index([list(c.elements()) for c in passages], show_progress=False)
    known = {term for c in passages for term in c}

    async def search(text: str) -> list[str]:
        terms = [t for t in dict.fromkeys(query_terms(text).terms) if t in known]
        if not terms:
            return []
        best, scores = index.retrieve([terms], k=min(5, len(passages)), show_progress=False)
        return [
            found.documents[int(at)][0]
            for at, score in zip(best[0], scores[0], strict=True)
            if score > 0
        ]

    return search


def with_qdrant(found: Set, passages: Sequence[Counter[str]], folder: str) -> Search:
    """Sparse vectors of saturated frequencies; the engine multiplies by the rarity (`Idf`)."""
    import qdrant_edge as qd

    params = {"terms": qd.EdgeSparseVectorParams(modifier=qd.Modifier.Idf)}
    shard = qd.EdgeShard.create(folder, qd.EdgeConfig(vectors={}, sparse_vectors=params))
    number = {term: at for at, term in enumerate(dict.fromkeys(t for c in passages for t in c))}
    lengths = [c.total() for c in passages]
    mean = sum(lengths) / len(lengths)
    points = []
    for at, (terms, length) in enumerate(zip(passages, lengths, strict=True)):
        norm = K1 * (1 - B + B * length / mean)
        values = [often * (K1 + 1) / (often + norm) for often in terms.values()]
        vector = qd.SparseVector([number[t] for t in terms], values)
        points.append(qd.Point(at, {"terms": vector}, {}))
    shard.update(qd.UpdateOperation.upsert_points(points))

    async def search(text: str) -> list[str]:
        terms = [number[t] for t in dict.fromkeys(query_terms(text).terms) if t in number]
        if not terms:
            return []
        asked = qd.Query.Nearest(qd.SparseVector(terms, [1.0] * len(terms)), using="terms")
        hits = shard.query(qd.QueryRequest(limit=5, query=asked))
        return [found.documents[int(hit.id)][0] for hit in hits]

    return search


async def run(dsn: str, only: str) -> None:
    """Print one line for each set."""
    database = await pool(dsn)
    index = KeywordIndex(database)
    print(f"{'R@1/R@5 ms':26}{'Postgres':20}{'bm25s':20}{'Qdrant sparse':20}")
    for name, variant, title in SETS:
        if only not in f"{name}/{variant}":
            continue
        found = read(DATA / name / variant, title=title)
        project, passages = found.name.replace("/", "-").lower(), counts(found)
        await load(database, project, found)
        with tempfile.TemporaryDirectory() as folder:
            searches = (
                _postgres(index, project),
                with_bm25s(found, passages),
                with_qdrant(found, passages, folder),
            )
            columns = [await measure(found.questions, s) if s else "-" for s in searches]
        print(f"{found.name:26}" + "".join(f"{column:20}" for column in columns), flush=True)
    await database.close()


def _postgres(index: KeywordIndex, project: str) -> Search:
    async def search(text: str) -> list[str]:
        query: Any = query_terms(text)
        hits = await index.search([(project, 1)], query, EVERYTHING, limit=5)
        return [hit.version_id for hit in hits]

    return search


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no evaluation data in {DATA}")
    with postgres("") as dsn:
        asyncio.run(run(dsn, options.only))


if __name__ == "__main__":
    main()
