"""Questions with filters against the same without, in one project of many versions: those that pass
are named to the vectors while they are few; of more, what the vectors find is sifted.

    python -m eval.bench.filters [--versions 20000]
"""

import argparse
import asyncio
import random
import time
from typing import Any

from contracts.query import QueryRequest
from eval.bench import asof
from eval.bench.asof import Answers, project
from kernel.db import queries

QUESTIONS, WARM = 60, 5
SHARES = (0.001, 0.05, 0.25, 0.9)
"""Parts of the versions that a filter lets pass; each has a tag."""


async def measure(versions: int) -> list[str]:
    """p50 of each filter, and its ratio to no filter."""
    asof.SOURCES = versions
    async with asof._ready() as (db, base):
        await asof._fill(db, base, 1)
        await queries("eval.bench", "filters").label(db, shares=list(SHARES))
        await db.execute("VACUUM ANALYZE")
        filters: dict[str, dict[str, Any]] = {"none": {}}
        filters |= {f"{share:.1%}": {"tags": [f"share{share:g}"]} for share in SHARES}
        seconds = await _asked(base, filters)
    first = _p50(seconds["none"])
    return [
        f"filters, {name} of {versions} versions: p50 {_p50(s) * 1000:.1f} ms, "
        f"{_p50(s) / first:.2f} of no filter"
        for name, s in seconds.items()
    ]


async def _asked(base: Answers, filters: dict[str, dict[str, Any]]) -> dict[str, list[float]]:
    """Every question with each filter in turn."""
    chance = random.Random(7)
    seconds: dict[str, list[float]] = {name: [] for name in filters}
    for number in range(WARM + QUESTIONS):
        question = " ".join(asof._text(chance).split()[:4])
        for name in chance.sample(sorted(filters), len(filters)):
            request = QueryRequest.model_validate(
                {"query": question, "project": project(1), "top_k": 10, **filters[name]}
            )
            began = time.perf_counter()
            await base.engine.query(request)
            if number >= WARM:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def _p50(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 2]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=20_000)
    for line in asyncio.run(measure(parser.parse_args().versions)):
        print(line)
