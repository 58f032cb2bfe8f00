"""`python -m eval.ablation`: each leg alone, together, and variants, on one base.

Our labelled queries on all their documents (all languages together), then sets of others. Passages
are those of the real chunker, keywords the real index in a Postgres of its own, cosines exact;
vectors are kept in the cache folder by model and text, so only the first run takes long
(some 20 minutes on two cores). Ranks are of passages. What the scanner holds back is in this base:
`python -m eval.retrieval` is the whole line.

--half: `tuning` while something is tried, `held-out` for a decision already made. `all`: both.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, get_args

from eval.ablation import report
from eval.ablation.base import Asked, Bench, others, own
from eval.ablation.legs import Legs, legs
from eval.ablation.variants import VARIANTS
from eval.ablation.vectors import Vectors
from eval.keywords import postgres
from eval.labelled import RETRIEVAL
from kernel.db import pool
from kernel.embedder import Embedder, EmbedderSettings, load_embedder
from kernel.keywords import Mode

MODES: tuple[Mode, ...] = get_args(Mode)


async def run(dsn: str, options: argparse.Namespace) -> None:
    """Print the tables of each base."""
    embedder = await asyncio.to_thread(load_embedder, EmbedderSettings(embedder_neutral=False))
    database = await pool(dsn)
    try:
        for bench in _benches(embedder, options):
            found = await legs(bench, Vectors(embedder), database, MODES)
            for half in options.half if bench.name.startswith("own") else ["all"]:
                for line in tables(bench.half(half), found):
                    print(line, flush=True)
    finally:
        await database.close()


def _benches(embedder: Embedder, options: argparse.Namespace) -> Iterator[Bench]:
    if options.only in "own queries":
        yield own(embedder)
    if options.only != "own":
        yield from others(embedder, options.only)


def tables(bench: Bench, found: Legs) -> Iterator[str]:
    """All configurations; kinds, languages and the unanswerable where the questions have them."""
    asked = bench.answerable
    ranked = {
        name: {a.id: variant(found, a) for a in bench.asked} for name, variant in VARIANTS.items()
    }
    yield f"\n{bench.name}: {len(bench.passages)} passages\n"
    yield from report.overall(asked, ranked)
    if not asked[0].kind:
        return
    for by in ("kind", "lang"):
        for shown in ("R@1", "candidate recall"):
            yield ""
            yield from report.grouped(asked, ranked, by, shown)
    yield ""
    yield from _unanswerable(bench.asked, found)


def _unanswerable(asked: Iterable[Asked], found: Legs) -> Iterator[str]:
    """How well the best score of a leg alone tells that there is an answer."""
    for name, leg in (("dense", found.dense), ("keyword", found.keyword["or"])):
        best = {a: leg[a.id][0][1] if leg[a.id] else 0.0 for a in asked}
        known = [score for a, score in best.items() if a.right]
        unknown = [score for a, score in best.items() if not a.right]
        yield f"unanswerable by the best {name} score: AUROC {report.auroc(known, unknown):.3f}"


def main(given: list[str]) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        "python -m eval.ablation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="`own`, or a part of a set's name")
    parser.add_argument("--half", action="append", choices=["tuning", "held-out", "all"])
    options: Any = parser.parse_args(given)
    options.half = options.half or ["tuning", "held-out"]
    if not RETRIEVAL.is_dir():
        raise SystemExit(f"no evaluation data in {RETRIEVAL}")
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load {os.getloadavg()[0]:.1f}")
    with postgres("") as dsn:
        asyncio.run(run(dsn, options))


if __name__ == "__main__":
    main(sys.argv[1:])
