"""What each leg brings for each question: cosines of all passages, and the real keyword index."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.ablation.base import Bench
from eval.ablation.vectors import Vectors
from kernel.embedder.neutral import bundled_basis, without_directions
from kernel.keyword_index import KeywordIndex
from kernel.keywords import Mode, analyse, query_terms, tsvector
from kernel.vectors import VectorFilter, point_id

DEPTH = 50
"""Passages that a leg brings: `services.search.engine.CANDIDATES`."""
EVERYTHING = VectorFilter(include_historical=True)
LOAD = Path(__file__).parents[1] / "keywords.sql"
Leg = dict[str, list[tuple[int, float]]]
"""By question: passages with their scores, best first."""


@dataclass(frozen=True)
class Legs:
    """The legs of one bench. `plain`: the dense one with the language in its vectors; `keyword` by
    mode; `shares`: of its passages, by question."""

    dense: Leg
    plain: Leg
    keyword: dict[Mode, Leg]
    shares: dict[str, dict[int, float]]


async def legs(bench: Bench, vectors: Vectors, database: Any, modes: Sequence[Mode]) -> Legs:
    """Ask both legs every question. `vectors` are those of the plain model."""
    rows = await vectors.passages([p.text for p in bench.passages])
    asked = await vectors.queries([a.text for a in bench.asked])
    ids = [a.id for a in bench.asked]
    plain = dict(zip(ids, nearest(asked, rows), strict=True))
    without = without_directions(asked, bundled_basis()), without_directions(rows, bundled_basis())
    dense = dict(zip(ids, nearest(*without), strict=True))
    keyword, shares = await _keyword(bench, database, modes)
    return Legs(dense, plain, keyword, shares)


def nearest(
    questions: NDArray[np.float32], passages: NDArray[np.float32]
) -> list[list[tuple[int, float]]]:
    """The exact nearest of each question, as every engine of `kernel.vectors` finds them here."""
    found = []
    for scores in questions @ passages.T:
        best = np.argsort(-scores, kind="stable")[:DEPTH]
        found.append([(int(at), float(scores[at])) for at in best])
    return found


async def _keyword(
    bench: Bench, database: Any, modes: Sequence[Mode]
) -> tuple[dict[Mode, Leg], dict[str, dict[int, float]]]:
    """In a project of its own, which is loaded anew; and the shares of the mode `or`."""
    number = await _load(bench, database)
    index, project = KeywordIndex(database), _project(bench)
    found: dict[Mode, Leg] = {mode: {} for mode in modes}
    shares: dict[str, dict[int, float]] = {}
    for asked in bench.asked:
        terms = query_terms(asked.text)
        for mode in modes:
            hits = await index.search(
                [(project, 1)], terms, EVERYTHING, limit=DEPTH, mode=mode
            )  # fmt: skip
            found[mode][asked.id] = [(number[h.point_id], h.score) for h in hits]
            if mode == "or":
                shares[asked.id] = {number[h.point_id]: h.share for h in hits}
    return found, shares


async def _load(bench: Bench, database: Any) -> dict[Any, int]:
    names = [f"{bench.name}/{at}" for at in range(len(bench.passages))]
    words = [analyse(p.text, p.language) for p in bench.passages]
    points = [point_id(name, "c") for name in names]
    await database.execute(
        LOAD.read_text("utf-8"),
        _project(bench),
        names,
        [p.language for p in bench.passages],
        [tsvector(w) for w in words],
        [len(w) for w in words],
        points,
    )
    return {point: at for at, point in enumerate(points)}


def _project(bench: Bench) -> str:
    return bench.name.partition(",")[0].replace("/", "-").replace(" ", "-").lower()
