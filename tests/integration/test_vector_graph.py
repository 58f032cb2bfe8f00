"""A large collection gets a graph from another process: nothing is lost, nothing comes back."""

import asyncio
import os
import random
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel.vectors import Point, VectorFilter, VectorIndex, edge, graph, open_index, point_id
from kernel.vectors.edge import EdgeIndex
from kernel.vectors.memory import MemoryIndex

DIM, BASE, COUNT, OF_ONE = 16, "law__g1", 600, 10
START = datetime(2020, 1, 1, tzinfo=UTC)
ALL = VectorFilter(include_historical=True)


def made(number: int, turn: int = 0) -> Point:
    vector = np.random.default_rng([number, turn]).normal(size=DIM).astype(np.float32)
    version = f"v{number // OF_ONE}"
    begins = START + timedelta(days=number // OF_ONE)
    id_ = point_id(version, str(number))
    language = "de" if number % 2 else "en"
    return Point(id_, vector, version, f"doc-{version}", "law", language, ("A",), begins, None)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph from 400 points on, and used; whatever else runs, its child works."""
    monkeypatch.setattr(edge, "GRAPH_FROM", 400)
    monkeypatch.setattr(graph, "PLAIN", 0)
    monkeypatch.setattr(graph, "NICENESS", 0)


@pytest.fixture
async def law(tmp_path: Path) -> AsyncIterator[EdgeIndex]:
    index = EdgeIndex(tmp_path / "vectors")
    await index.create(BASE, DIM)
    yield index
    await index.close()


@pytest.fixture
async def plain() -> MemoryIndex:
    index = MemoryIndex()
    await index.create(BASE, DIM)
    return index


async def built(index: EdgeIndex) -> None:
    """Until nothing is being built."""
    while index._building is not None and not index._building.done():
        await asyncio.wait([index._building])


def linked(index: EdgeIndex) -> int:
    """Points with a graph."""
    shard = index._open.get(BASE)
    return 0 if shard is None else shard.linked


async def same(index: VectorIndex, plain: MemoryIndex) -> None:
    """Every question has the answers of an exact engine; ids and spans are the same."""
    for number in range(8):
        question = np.random.default_rng([7, number]).normal(size=DIM).astype(np.float32)
        for flt in (
            ALL,
            VectorFilter(as_of=START + timedelta(days=30)),
            VectorFilter(as_of=START + timedelta(days=50), languages=frozenset({"de"})),
        ):
            found, right = [await i.search(BASE, question, flt, 20) for i in (index, plain)]
            assert [h.point_id for h in found] == [h.point_id for h in right]
    assert await index.ids(BASE) == await plain.ids(BASE)
    held = [
        {h.point_id: h.slots async for page in i.held(BASE) for h in page} for i in (index, plain)
    ]
    assert held[0] == held[1]


async def both(law: EdgeIndex, plain: MemoryIndex, work: Callable[[VectorIndex], Any]) -> None:
    for index in (plain, law):
        await work(index)


async def test_a_large_collection_gets_a_graph_and_finds_the_same(
    law: EdgeIndex, plain: MemoryIndex
) -> None:
    await both(law, plain, lambda i: i.upsert(BASE, [made(n) for n in range(COUNT)]))
    await built(law)
    await same(law, plain)
    assert linked(law) == COUNT
    assert sorted(p.name for p in (law._root / BASE).iterdir()) == ["dim", "shard"]
    await both(law, plain, lambda i: i.upsert(BASE, [made(n) for n in range(COUNT, COUNT + 50)]))
    await same(law, plain)


async def test_a_question_right_after_the_exchange_and_the_clearing_away_do_not_meet(
    law: EdgeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed, rmtree = list[Path](), shutil.rmtree

    def noted(path: Path, **how: Any) -> None:
        removed.append(path)
        rmtree(path, **how)

    monkeypatch.setattr(shutil, "rmtree", noted)
    await law.upsert(BASE, [made(n) for n in range(COUNT)])
    await built(law)
    await law.search(BASE, made(1).vector, ALL, 1)
    assert removed
    assert {path.parent for path in removed} == {law._root}


async def test_a_small_one_has_none(law: EdgeIndex) -> None:
    await law.upsert(BASE, [made(n) for n in range(399)])
    assert law._building is None


async def test_it_is_there_after_a_restart(tmp_path: Path, plain: MemoryIndex) -> None:
    index = EdgeIndex(tmp_path / "own")
    await index.create(BASE, DIM)
    await both(index, plain, lambda i: i.upsert(BASE, [made(n) for n in range(COUNT)]))
    await built(index)
    await index.close()
    again = EdgeIndex(tmp_path / "own")
    await same(again, plain)
    assert linked(again) == COUNT
    await again.close()


async def test_a_collection_that_grew_before_is_seen_to_at_the_first_question(
    tmp_path: Path, plain: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "GRAPH_FROM", 10**9)
    index = open_index(root=tmp_path / "own")
    await index.create(BASE, DIM)
    await both(index, plain, lambda i: i.upsert(BASE, [made(n) for n in range(COUNT)]))  # type: ignore[arg-type]
    await index.close()
    monkeypatch.setattr(edge, "GRAPH_FROM", 400)
    again = EdgeIndex(tmp_path / "own")
    await again.search(BASE, made(1).vector, ALL, 1)
    await built(again)
    await same(again, plain)
    assert linked(again) == COUNT
    await again.close()


class Gate:
    """Holds the building up just before the child is waited for, and again before the exchange."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        finish = graph.Child.finish
        self.child: graph.Child | None = None

        async def waiting(child: graph.Child) -> None:
            self.child = child
            self.reached.set()
            await self.go.wait()
            await finish(child)

        monkeypatch.setattr(graph.Child, "finish", waiting)


async def change(number: int, which: int, index: VectorIndex) -> None:
    """One of the five kinds of writing."""
    version, day = f"v{which // OF_ONE}", START + timedelta(days=which % 70)
    match number % 5:
        case 0:
            await index.delete_version(BASE, version)
        case 1:
            await index.delete_points(BASE, [made(which).point_id, made(which + 1).point_id])
        case 2:
            await index.set_validity(BASE, version, [(day, None)])
        case 3:
            await index.upsert(BASE, [made(which, 1)])
        case _:
            await index.upsert(BASE, [made(COUNT + number * 3 + n) for n in range(3)])


@pytest.mark.parametrize("many", [False, True])
async def test_what_is_written_meanwhile_is_not_lost_and_what_is_deleted_does_not_come_back(
    law: EdgeIndex, plain: MemoryIndex, monkeypatch: pytest.MonkeyPatch, *, many: bool
) -> None:
    monkeypatch.setattr(edge, "_FEW", 3 if many else 10**6)
    gate = Gate(monkeypatch)
    await both(law, plain, lambda i: i.upsert(BASE, [made(n) for n in range(COUNT)]))
    await gate.reached.wait()
    chance = random.Random(3)
    for number in range(60):
        which = chance.randrange(COUNT)
        await both(law, plain, partial(change, number, which))
    await same(law, plain)
    gate.go.set()
    await built(law)
    await same(law, plain)
    assert linked(law) >= COUNT / 2


async def test_a_child_that_is_killed_leaves_all_as_it_was(
    law: EdgeIndex, plain: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    await both(law, plain, lambda i: i.upsert(BASE, [made(n) for n in range(COUNT)]))
    await gate.reached.wait()
    assert gate.child is not None
    assert gate.child.pid is not None
    os.kill(gate.child.pid, signal.SIGKILL)
    gate.go.set()
    await built(law)
    await same(law, plain)
    assert linked(law) == 0
    assert [p.name for p in law._root.iterdir() if p.name.startswith(".")] == []


async def test_a_collection_that_is_dropped_meanwhile_stays_dropped(
    law: EdgeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    await law.upsert(BASE, [made(n) for n in range(COUNT)])
    await gate.reached.wait()
    await law.drop(BASE)
    await law.create(BASE, DIM)
    gate.go.set()
    await built(law)
    assert await law.count(BASE) == 0
    assert [p.name for p in law._root.iterdir() if p.name.startswith(".")] == []


async def test_close_does_not_wait_for_a_graph(
    tmp_path: Path, plain: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    index = EdgeIndex(tmp_path / "own")
    await index.create(BASE, DIM)
    await both(index, plain, lambda i: i.upsert(BASE, [made(n) for n in range(COUNT)]))
    await gate.reached.wait()
    await index.close()
    monkeypatch.setattr(edge, "GRAPH_FROM", 10**9)
    again = EdgeIndex(tmp_path / "own")
    await same(again, plain)
    await again.close()


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
async def test_a_crash_between_two_renames_loses_nothing(
    tmp_path: Path, plain: MemoryIndex, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """After any of the three renames of an exchange."""
    monkeypatch.setattr(edge, "GRAPH_FROM", 10**9)
    index = EdgeIndex(tmp_path / "own")
    await index.create(BASE, DIM)
    await both(index, plain, lambda i: i.upsert(BASE, [made(n) for n in range(COUNT)]))
    await index.close()
    folder, aside = tmp_path / "own" / BASE, tmp_path / "own" / ".new"
    shutil.copytree(folder / "shard", aside)
    renames = [(aside, folder / "next"), (folder / "shard", folder / "last")]
    renames += [(folder / "next", folder / "shard")]
    for before, after in renames[:steps]:
        before.rename(after)
    again = EdgeIndex(tmp_path / "own")
    await same(again, plain)
    await again.close()
    assert sorted(p.name for p in folder.iterdir()) == ["dim", "shard"]
