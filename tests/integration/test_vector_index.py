"""One suite for every vector engine; then what only the embedded one or a server can do."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray
from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

from kernel.errors import Retry
from kernel.vectors import (
    Held,
    IndexInUse,
    Point,
    UnknownCollection,
    VectorFilter,
    VectorIndex,
    Window,
    WrongDimension,
    collection_name,
    open_index,
    point_id,
)
from kernel.vectors.edge import EdgeIndex
from kernel.vectors.memory import MemoryIndex
from kernel.vectors.payload import INTEGERS, KEYWORDS, SPANS, slots
from kernel.vectors.server import QdrantIndex
from kernel.vectors.stub import QdrantStub

DIM = 8
BASE = "law__g1"
NAMES: dict[UUID, str] = {}
"""What a test calls the points that it made: a point itself holds no text."""
START = datetime(2020, 1, 1, tzinfo=UTC)
ALL = VectorFilter(include_historical=True)


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def at(number: int) -> VectorFilter:
    return VectorFilter(as_of=day(number))


def vector(*values: float) -> NDArray[np.float32]:
    return np.array([*values, *[0.0] * (DIM - len(values))], dtype=np.float32)


def point(
    name: str,
    *values: float,
    version: str = "v1",
    windows: tuple[Window, ...] = ((START, None),),
    language: str = "en",
    headings: tuple[str, ...] = (),
) -> Point:
    id_ = point_id(version, name)
    NAMES[id_] = name
    return Point(
        point_id=id_,
        vector=vector(*values or (1.0,)),
        version_id=version,
        document_id=f"doc-{version}",
        project="law",
        language=language,
        heading_path=headings,
        valid_from=windows[0][0],
        valid_until=windows[0][1],
        windows=windows if len(windows) > 1 else (),
    )


@pytest.fixture(params=["memory", "edge", "server"])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    if request.param == "server":
        with QdrantStub() as stub:
            opened: VectorIndex = open_index(root=tmp_path, url=stub.url)
            yield opened
            await opened.close()
        return
    opened = MemoryIndex() if request.param == "memory" else open_index(root=tmp_path / "vectors")
    yield opened
    await opened.close()


@pytest.fixture
async def law(index: VectorIndex) -> VectorIndex:
    await index.create(BASE, DIM)
    return index


async def found(index: VectorIndex, flt: VectorFilter, limit: int = 100) -> list[str]:
    hits = await index.search(BASE, vector(1.0), flt, limit)
    return [NAMES[hit.point_id] for hit in hits]


async def test_the_most_similar_passage_comes_first(law: VectorIndex) -> None:
    await law.upsert(
        BASE, [point("far", 0.0, 1.0), point("near", 1.0, 0.1), point("mid", 1.0, 1.0)]
    )
    hits = await law.search(BASE, vector(1.0), at(1), 2)
    assert [NAMES[hit.point_id] for hit in hits] == ["near", "mid"]
    assert hits[0].point_id == point_id("v1", "near")
    assert hits[0].version_id == "v1"
    assert hits[1].score == pytest.approx(2**-0.5, abs=1e-5)


async def test_length_of_a_vector_does_not_matter(law: VectorIndex) -> None:
    await law.upsert(BASE, [point("long", 100.0, 1.0), point("short", 0.01)])
    assert await found(law, at(1)) == ["short", "long"]


async def test_a_second_upsert_replaces_the_first(law: VectorIndex) -> None:
    await law.upsert(BASE, [point("a", 1.0)])
    await law.upsert(BASE, [point("a", -1.0)])
    hits = await law.search(BASE, vector(1.0), at(1), 5)
    assert [round(hit.score, 3) for hit in hits] == [-1.0]
    assert await law.count(BASE) == 1


async def test_an_empty_upsert_changes_nothing(law: VectorIndex) -> None:
    await law.upsert(BASE, [])
    assert await law.count(BASE) == 0
    assert await found(law, at(1)) == []


async def test_a_window_includes_its_start_and_not_its_end(law: VectorIndex) -> None:
    await law.upsert(BASE, [point("a", windows=((day(10), day(20)),))])
    moment = timedelta(microseconds=1)
    answers = [
        await found(law, VectorFilter(as_of=instant))
        for instant in (day(10) - moment, day(10), day(20) - moment, day(20))
    ]
    assert answers == [[], ["a"], ["a"], []]


async def test_history_holds_all_versions(law: VectorIndex) -> None:
    old = point("old", version="v1", windows=((day(0), day(5)),))
    coming = point("coming", version="v2", windows=((day(500), None),))
    await law.upsert(BASE, [old, coming, point("now", version="v3", windows=((day(5), None),))])
    assert await found(law, at(6)) == ["now"]
    assert sorted(await found(law, ALL)) == ["coming", "now", "old"]
    both = VectorFilter(as_of=day(6), include_historical=True)
    assert sorted(await found(law, both)) == ["coming", "now", "old"]


async def test_a_hundred_superseded_passages_cannot_crowd_out_the_valid_one(
    law: VectorIndex,
) -> None:
    old = [point(f"old-{i}", version="v1", windows=((day(0), day(5)),)) for i in range(100)]
    await law.upsert(BASE, [*old, point("valid", 0.0, 1.0, version="v2")])
    assert await found(law, at(6), limit=1) == ["valid"]


async def test_a_reinstated_version_is_invisible_in_the_gap(law: VectorIndex) -> None:
    await law.upsert(BASE, [point("a", windows=((day(0), day(10)), (day(20), None)))])
    assert [await found(law, at(d)) for d in (5, 15, 25)] == [["a"], [], ["a"]]


async def test_validity_can_be_replaced_in_every_direction(law: VectorIndex) -> None:
    await law.upsert(BASE, [point("a"), point("b", version="v2")])
    await law.set_validity(BASE, "v1", [(day(0), day(10)), (day(20), day(30))])
    assert sorted(await found(law, at(25))) == ["a", "b"]
    await law.set_validity(BASE, "v1", [(day(0), None)])
    assert sorted(await found(law, at(15))) == ["a", "b"]
    await law.set_validity(BASE, "v1", [])
    assert await found(law, at(25)) == ["b"]
    assert sorted(await found(law, ALL)) == ["a", "b"]


async def test_no_number_of_windows_hides_a_valid_passage(law: VectorIndex) -> None:
    windows = [(day(i * 10), day(i * 10 + 5)) for i in range(SPANS * 3)]
    await law.upsert(BASE, [point("a")])
    await law.set_validity(BASE, "v1", windows)
    assert [await found(law, at(i * 10 + 2)) for i in range(SPANS * 3)] == [["a"]] * SPANS * 3
    assert await found(law, at(SPANS * 30)) == []


@pytest.mark.parametrize("year", [1, 1600, 2254, 2255, 2300, 9999])
async def test_far_years_are_valid_when_they_should_be(law: VectorIndex, year: int) -> None:
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, tzinfo=UTC)
    await law.upsert(BASE, [point("a", windows=((start, end),))])
    assert await found(law, VectorFilter(as_of=datetime(year, 6, 1, tzinfo=UTC))) == ["a"]
    assert await found(law, VectorFilter(as_of=datetime(1, 1, 1, tzinfo=UTC))) == ["a"][: year == 1]


async def test_filters_work_inside_the_search(law: VectorIndex) -> None:
    await law.upsert(
        BASE,
        [
            point("de", language="de", headings=("Kapitel 1", "§ 5")),
            point("en", language="en", headings=("Kapitel 1", "§ 5", "deep")),
            point("sr", language="sr", headings=("Kapitel 11",), version="v2"),
        ],
    )
    as_of = day(1)
    two = frozenset({"de", "sr"})
    assert sorted(await found(law, VectorFilter(as_of, languages=two))) == ["de", "sr"]
    under = VectorFilter(as_of, heading_prefix=("Kapitel 1",))
    assert sorted(await found(law, under)) == ["de", "en"]
    deep = VectorFilter(as_of, heading_prefix=("Kapitel 1", "§ 5", "deep"))
    assert await found(law, deep) == ["en"]
    assert await found(law, VectorFilter(as_of, documents=frozenset({"doc-v2"}))) == ["sr"]
    assert await found(law, VectorFilter(as_of, languages=frozenset({"bg"}))) == []


async def test_only_named_versions_are_found_whatever_their_number(law: VectorIndex) -> None:
    await law.upsert(BASE, [point(f"c{n}", version=f"v{n}") for n in range(300)])
    for count in (0, 1, 299):
        only = frozenset(f"v{n}" for n in range(count))
        assert len(await found(law, VectorFilter(day(1), versions=only), 400)) == count
    unknown = VectorFilter(day(1), versions=frozenset({"v7", "none"}))
    assert await found(law, unknown) == ["c7"]
    early = VectorFilter(START - timedelta(days=1), versions=frozenset({"v7"}))
    assert await found(law, early) == []  # as_of holds as well
    every = VectorFilter(include_historical=True, versions=frozenset({"v7"}))
    assert await found(law, every) == ["c7"]


async def test_a_version_can_pass_or_not_whatever_its_windows_say(law: VectorIndex) -> None:
    over = point("over", version="v1", windows=((day(0), day(5)),))
    now = point("now", version="v2", windows=((day(5), None),), language="de")
    await law.upsert(BASE, [over, now, point("never", version="v3", windows=((day(90), None),))])
    one, two = frozenset({"v1"}), frozenset({"v2"})
    assert sorted(await found(law, VectorFilter(day(6), also=one))) == ["now", "over"]
    assert await found(law, VectorFilter(day(6), also=one, without=two)) == ["over"]
    assert await found(law, VectorFilter(day(6), also=one, without=one | two)) == []
    german = frozenset({"de"})
    assert await found(law, VectorFilter(day(6), also=one, languages=german)) == ["now"]
    history = VectorFilter(include_historical=True, also=one, without=two)
    assert sorted(await found(law, history)) == ["never", "over"]


async def test_a_deleted_version_is_gone_and_the_rest_stays(law: VectorIndex) -> None:
    await law.upsert(BASE, [point("a"), point("b"), point("c", version="v2")])
    await law.delete_version(BASE, "v1")
    await law.delete_version(BASE, "v1")
    assert await found(law, ALL) == ["c"]
    assert await law.ids(BASE) == [point_id("v2", "c")]


async def test_deleted_points_are_gone_and_the_rest_of_the_version_stays(law: VectorIndex) -> None:
    await law.upsert(BASE, [point("a"), point("b"), point("a", version="v2")])
    await law.delete_points(BASE, [])
    for _ in range(2):
        await law.delete_points(BASE, [point_id("v1", "a"), point_id("v9", "unknown")])
    assert await law.ids(BASE) == sorted([point_id("v1", "b"), point_id("v2", "a")])
    assert sorted(await found(law, at(1))) == ["a", "b"]


async def test_ids_and_count_are_exact(law: VectorIndex) -> None:
    points = [point(f"c{i}", random.random(), random.random()) for i in range(700)]
    await law.upsert(BASE, points)
    assert await law.count(BASE) == 700
    assert await law.ids(BASE) == sorted(p.point_id for p in points)


async def held(index: VectorIndex, version: str | None = None) -> list[Held]:
    return [h async for page in index.held(BASE, version) for h in page]


async def test_what_is_held_of_points_can_be_read_for_one_version_or_all(law: VectorIndex) -> None:
    points = [point(f"c{i}", version=f"v{i % 2}") for i in range(700)]
    await law.upsert(BASE, points)
    assert sorted(h.point_id for h in await held(law)) == sorted(p.point_id for p in points)
    ones = [p for p in points if p.version_id == "v1"]
    mine = await held(law, "v1")
    assert sorted(h.point_id for h in mine) == sorted(p.point_id for p in ones)
    assert {h.version_id for h in mine} == {"v1"}
    assert await held(law, "v9") == []


async def test_what_is_held_are_the_spans_that_were_set_last(law: VectorIndex) -> None:
    await law.upsert(BASE, [point("a"), point("b")])
    windows = [(day(1), day(2)), (day(3), None)]
    await law.set_validity(BASE, "v1", windows)
    assert [h.slots for h in await held(law)] == [slots(windows), slots(windows)]


async def test_an_unknown_collection_is_empty_to_readers(index: VectorIndex) -> None:
    assert [h async for page in index.held("none__g1") for h in page] == []
    assert await index.search("none__g1", vector(1.0), ALL, 5) == []
    assert (await index.count("none__g1"), await index.ids("none__g1")) == (0, [])
    await index.set_validity("none__g1", "v1", [])
    await index.delete_version("none__g1", "v1")
    await index.delete_points("none__g1", [point_id("v1", "a")])
    await index.drop("none__g1")
    assert await index.collections() == []


async def test_an_unknown_collection_refuses_writers(index: VectorIndex) -> None:
    with pytest.raises(UnknownCollection):
        await index.upsert("none__g1", [point("a")])


async def test_creating_twice_keeps_what_is_stored(law: VectorIndex) -> None:
    await law.upsert(BASE, [point("a")])
    await asyncio.gather(*(law.create(BASE, DIM) for _ in range(3)))
    assert await found(law, at(1)) == ["a"]


async def test_another_dimension_is_refused(law: VectorIndex) -> None:
    with pytest.raises(WrongDimension):
        await law.create(BASE, DIM + 1)
    with pytest.raises(WrongDimension):
        await law.search(BASE, np.ones(DIM - 1, dtype=np.float32), ALL, 1)


@pytest.mark.parametrize("bad", [np.ones(3), np.full(DIM, np.nan), np.ones((1, DIM))])
async def test_one_bad_vector_refuses_the_whole_batch(
    law: VectorIndex, bad: NDArray[np.float32]
) -> None:
    good = [point(f"c{i}") for i in range(600)]
    hurt = Point(**{**{f: getattr(good[0], f) for f in Point.__slots__}, "vector": bad})
    with pytest.raises(WrongDimension):
        await law.upsert(BASE, [*good, hurt])
    assert await law.count(BASE) == 0


async def test_collections_are_apart(law: VectorIndex) -> None:
    other = collection_name("other", 2)
    await law.create(other, 3)
    await law.upsert(BASE, [point("a")])
    assert await law.count(other) == 0
    assert await law.collections() == [BASE, "other__g2"]
    await law.drop(BASE)
    assert await law.collections() == ["other__g2"]
    assert await found(law, ALL) == []


async def test_a_dropped_name_can_be_used_again(law: VectorIndex) -> None:
    await law.upsert(BASE, [point("a")])
    await law.drop(BASE)
    await law.create(BASE, 3)
    assert await law.count(BASE) == 0


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a" * 129, "a\x00", "ä"])
async def test_a_name_that_is_a_path_is_refused(index: VectorIndex, name: str) -> None:
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: index.create(name, DIM),
        lambda: index.upsert(name, [point("a")]),
        lambda: index.search(name, vector(1.0), ALL, 1),
        lambda: index.drop(name),
        lambda: index.count(name),
    ]
    for call in calls:
        with pytest.raises(ValueError):
            await call()


async def test_no_limit_finds_nothing(law: VectorIndex) -> None:
    await law.upsert(BASE, [point("a")])
    assert await found(law, ALL, limit=0) == []


async def test_searches_and_writes_at_once_disturb_nothing(law: VectorIndex) -> None:
    points = [point(f"c{i}", random.random(), random.random()) for i in range(600)]
    writes = [law.upsert(BASE, points[i : i + 100]) for i in range(0, 600, 100)]
    await asyncio.gather(*writes, *(found(law, at(1)) for _ in range(20)))
    assert await law.count(BASE) == 600


async def test_all_engines_rank_alike(law: VectorIndex) -> None:
    dice = np.random.default_rng(7)
    reference = MemoryIndex()
    await reference.create(BASE, DIM)
    points = [
        point(
            f"c{i}",
            *dice.standard_normal(DIM).tolist(),
            version=f"v{i % 40}",
            windows=((day(i % 30), day(i % 30 + 10)), (day(60), None)),
        )
        for i in range(300)
    ]
    for engine in (law, reference):
        await engine.upsert(BASE, points)
        await engine.set_validity(BASE, "v3", [(day(0), day(1)), (day(70), None)])
        await engine.delete_version(BASE, "v4")
    for moment in (0, 5, 35, 65, 75):
        question = dice.standard_normal(DIM).astype(np.float32)
        got = await law.search(BASE, question, at(moment), 20)
        expected = await reference.search(BASE, question, at(moment), 20)
        some = frozenset(f"v{n}" for n in range(moment % 40))
        lists = VectorFilter(day(moment), also=some, without=frozenset({"v1", "v9"}))
        assert {h.point_id for h in await law.search(BASE, question, lists, 999)} == {
            h.point_id for h in await reference.search(BASE, question, lists, 999)
        }
        assert [h.point_id for h in got] == [h.point_id for h in expected]
        assert np.allclose([h.score for h in got], [h.score for h in expected], atol=1e-5)


def test_a_filter_says_what_time_it_is() -> None:
    with pytest.raises(ValueError, match="as_of"):
        VectorFilter()
    with pytest.raises(ValueError, match="time zone"):
        VectorFilter(as_of=datetime(2020, 1, 1))  # noqa: DTZ001


def test_a_passage_keeps_its_id() -> None:
    assert point_id("v1", "c1") == UUID("91d0b3a5-7569-578f-b268-ecb1699719b8")
    assert point_id("v1", "2c") != point_id("v12", "c")


# -- the embedded engine


async def test_stored_points_survive_close_and_reopen(tmp_path: Path) -> None:
    first = EdgeIndex(tmp_path)
    await first.create(BASE, DIM)
    await first.upsert(BASE, [point("a"), point("b", version="v2")])
    await first.set_validity(BASE, "v1", [(day(0), day(5))])
    await first.close()
    await first.close()
    second = EdgeIndex(tmp_path)
    assert await second.collections() == [BASE]
    assert await found(second, at(6)) == ["b"]
    with pytest.raises(WrongDimension):
        await second.create(BASE, 3)
    await second.close()


async def test_a_second_opener_is_told_who_has_it(tmp_path: Path) -> None:
    first = EdgeIndex(tmp_path)
    with pytest.raises(IndexInUse, match=str(os.getpid())):
        EdgeIndex(tmp_path)
    await first.close()
    await EdgeIndex(tmp_path).close()


async def test_a_second_process_is_told_who_has_it(tmp_path: Path) -> None:
    first = EdgeIndex(tmp_path)
    code = "import sys, pathlib, kernel.vectors.edge as e; e.EdgeIndex(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    second = subprocess.run(command, check=False, capture_output=True, text=True)
    assert second.returncode != 0
    assert f"open in process {os.getpid()}" in second.stderr
    await first.close()


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.integration.test_vector_index import BASE, DIM, EdgeIndex, point

async def main():
    index = EdgeIndex(Path(sys.argv[1]))
    await index.create(BASE, DIM)
    for number in range(1_000_000):
        await index.upsert(BASE, [point(f"c{number}-{i}") for i in range(7)])
        print(number, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("acknowledged", [1, 40, 700])
async def test_a_killed_writer_loses_nothing_it_acknowledged(
    tmp_path: Path, acknowledged: int
) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    last = -1
    for line in writer.stdout:
        last = int(line)
        if last >= acknowledged:
            break
    writer.send_signal(signal.SIGKILL)
    last = max([last, *(int(line) for line in writer.stdout.read().split())])
    writer.wait()
    writer.stdout.close()
    index = EdgeIndex(tmp_path)
    stored = set(await index.ids(BASE))
    expected = {point_id("v1", f"c{n}-{i}") for n in range(last + 1) for i in range(7)}
    assert expected <= stored
    await index.upsert(BASE, [point("after")])
    assert await index.count(BASE) == len(stored) + 1
    await index.close()


async def test_half_made_collections_are_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".law__g1.abc" / "shard").mkdir(parents=True)
    index = EdgeIndex(tmp_path)
    assert await index.collections() == []
    await index.create(BASE, DIM)
    assert sorted(p.name for p in tmp_path.iterdir()) == [BASE, "lock"]
    await index.close()


async def test_all_engine_calls_run_in_one_thread(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    before = threading.active_count()
    await index.create(BASE, DIM)
    await index.upsert(BASE, [point(f"c{i}") for i in range(600)])
    await asyncio.gather(*(found(index, at(1)) for _ in range(50)))
    assert [t.name for t in threading.enumerate()].count("vectors_0") == 1
    assert threading.active_count() <= before + 1
    await index.close()


async def test_text_of_headings_is_not_in_the_files(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.create(BASE, DIM)
    await index.upsert(BASE, [point("a:sonderbares-kapitel", headings=("Sonderbares Kapitel",))])
    await index.close()
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"Sonderbares" in content for content in files)
    assert not any(b"sonderbares" in content for content in files)


# -- the server


async def test_payload_indexes_are_made_before_the_first_point(tmp_path: Path) -> None:
    with QdrantStub() as stub:
        index = QdrantIndex(stub.url)
        await index.create(BASE, DIM)
        await index.upsert(BASE, [point("a")])
        await index.close()
        assert stub.indexed == {f"kb_{BASE}": {*KEYWORDS, *INTEGERS}}
        puts = [path.rsplit("/", 1)[1] for verb, path in stub.calls if verb == "PUT"]
        assert puts == [f"kb_{BASE}", *["index"] * len((*KEYWORDS, *INTEGERS)), "points"]


async def test_the_server_looks_at_enough_candidates_to_find_what_an_exact_search_does() -> None:
    with QdrantStub() as stub:
        index = QdrantIndex(stub.url)
        await index.create(BASE, DIM)
        await index.upsert(BASE, [point("a")])
        for limit in (50, 500):
            await index.search(BASE, vector(1.0), ALL, limit)
        await index.close()
        assert stub.looked_at == [800, 8000]


async def test_a_create_that_died_half_way_is_finished_by_the_next() -> None:
    with QdrantStub() as stub:
        index = QdrantIndex(stub.url)
        await index.create(BASE, DIM)
        stub.indexed.clear()
        await index.create(BASE, DIM)
        await index.close()
        assert stub.indexed == {f"kb_{BASE}": {*KEYWORDS, *INTEGERS}}


async def test_collections_of_others_on_the_server_are_left_alone() -> None:
    with QdrantStub() as stub:
        size = models.VectorParams(size=3, distance=models.Distance.DOT)
        stub.client.create_collection("theirs", vectors_config=size)
        index = QdrantIndex(stub.url)
        await index.create(BASE, DIM)
        assert await index.collections() == [BASE]
        await index.drop("theirs")
        await index.close()
        assert stub.client.collection_exists("theirs")


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
async def test_a_wrong_key_is_an_error_and_the_right_one_works() -> None:
    with QdrantStub(api_key="right") as stub:
        wrong = QdrantIndex(stub.url, api_key="wrong")
        with pytest.raises(UnexpectedResponse):
            await wrong.create(BASE, DIM)
        await wrong.close()
        right = QdrantIndex(stub.url, api_key="right")
        await right.create(BASE, DIM)
        await right.close()


async def test_a_server_that_is_away_or_busy_is_retried() -> None:
    with QdrantStub() as stub:
        index = QdrantIndex(stub.url)
        await index.create(BASE, DIM)
        stub.failures = 1
        with pytest.raises(Retry):
            await index.upsert(BASE, [point("a")])
        await index.upsert(BASE, [point("a")])
        stub.failures, stub.failure = 1, HTTPStatus.TOO_MANY_REQUESTS
        with pytest.raises(Retry) as busy:
            await index.count(BASE)
        assert busy.value.after == 7
    with pytest.raises(Retry):
        await index.search(BASE, vector(1.0), ALL, 1)
    await index.close()


async def test_a_collection_dropped_by_another_process_is_noticed() -> None:
    with QdrantStub() as stub:
        index, other = QdrantIndex(stub.url), QdrantIndex(stub.url)
        await index.create(BASE, DIM)
        await other.drop(BASE)
        assert await found(index, ALL) == []
        with pytest.raises(UnknownCollection):
            await index.upsert(BASE, [point("a")])
        await index.create(BASE, 3)
        assert await index.count(BASE) == 0
        await index.close()
        await other.close()
