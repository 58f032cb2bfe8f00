"""A small fixed set that every change is measured on: 8 subjects, each said and asked for in five
languages, all in one base. `python -m eval.gate` prints what `tests/integration/test_quality.py`
holds against its floors.

*own*: the first passage is about the subject of the question. *other*: the same where the base
lacks the subject in the question's language. The texts are ours. It is no measure of how good
search is (`python -m eval.ablation` is), it only falls when something breaks.
"""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval.ablation.base import Asked, Bench
from eval.ablation.legs import Legs, legs
from eval.ablation.passages import Text, passages_of
from eval.ablation.variants import Variant, dense, hybrid, keyword, scores
from eval.ablation.vectors import Vectors
from eval.keywords import postgres
from kernel.db import pool
from kernel.embedder import EmbedderSettings, load_embedder

ROWS = Path(__file__).with_name("data") / "gate.jsonl"
MEASURED: Mapping[str, Variant] = {
    "dense": dense,
    "keyword": keyword("or"),
    "ranks": hybrid(),
    "scores": scores,
}


async def counts(database: Any, cache: Path) -> dict[str, dict[str, int]]:
    """For each way of search, how many of the questions it answers first: `own` and `other`."""
    rows = [json.loads(line) for line in ROWS.read_text("utf-8").splitlines()]
    embedder = await asyncio.to_thread(load_embedder, EmbedderSettings(embedder_neutral=False))
    try:
        bench = _bench(rows, embedder)
        found = await legs(bench, Vectors(embedder, cache), database, ("or",))
    finally:
        await embedder.aclose()
    return {name: _counted(variant, bench, found) for name, variant in MEASURED.items()}


def _bench(rows: list[dict[str, str]], embedder: Any) -> Bench:
    texts = [Text(str(n), f"{row['passage']}\n") for n, row in enumerate(rows)]
    passages = tuple(passages_of(texts, embedder))
    assert [p.document for p in passages] == [text.name for text in texts]
    topics = [row["topic"] for row in rows]
    asked = (
        Asked(str(n), row["question"], frozenset(i for i, t in enumerate(topics) if t == topics[n]))
        for n, row in enumerate(rows)
    )
    return Bench("gate", passages, tuple(asked))


def _counted(variant: Variant, bench: Bench, found: Legs) -> dict[str, int]:
    """A question and the passage in its language have the same number."""
    own = other = 0
    for asked in bench.asked:
        ranked = variant(found, asked)
        without = [number for number in ranked if number != int(asked.id)]
        own += bool(ranked) and ranked[0] in asked.right
        other += bool(without) and without[0] in asked.right
    return {"own": own, "other": other}


async def _printed(dsn: str) -> None:
    database = await pool(dsn)
    with TemporaryDirectory() as cache:
        for name, found in (await counts(database, Path(cache))).items():
            print(f"{name:8} own {found['own']:2} of 40, other {found['other']:2} of 40")
    await database.close()


if __name__ == "__main__":
    with postgres("") as dsn:
        asyncio.run(_printed(dsn))
