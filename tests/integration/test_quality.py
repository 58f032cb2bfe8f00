"""Search with the bundled model is as good as it was, on the small fixed set of `eval.gate`."""

from pathlib import Path

import pytest

from eval.gate import counts
from kernel.db import pool

FLOORS = {
    "dense": {"own": 37, "other": 36},
    "keyword": {"own": 31, "other": 11},
    "ranks": {"own": 32, "other": 21},
    "scores": {"own": 35, "other": 33},
}
"""Of 40 questions. Raise them when search gets better; what falls below has lost quality."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vectors")


async def test_no_way_of_search_falls_below_its_floor(database: str, cache: Path) -> None:
    opened = await pool(database)
    try:
        found = await counts(opened, cache)
    finally:
        opened.terminate()
    fallen = {
        f"{way} {where}": (found[way][where], least)
        for way, floors in FLOORS.items()
        for where, least in floors.items()
        if found[way][where] < least
    }
    assert not fallen
