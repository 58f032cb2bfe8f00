"""Near-twins in replies, on a real Postgres."""

from collections.abc import AsyncIterator

import pytest

from contracts.query import QueryReply, QueryRequest
from kernel.db import pool
from kernel.log import Log
from services.search import engine
from services.search import question as asked
from services.search.rerank import Reading
from tests.integration.lines_world import Lines
from tests.integration.test_engine import Fixed
from tests.integration.test_filters import day

QUESTION = "who pays the fine"
FINE = "# Act\n\n## Fines\n\nThe owner of the car pays the fine to the town.\n"


@pytest.fixture
async def world(database: str) -> AsyncIterator[Lines]:
    db = await pool(database)
    made = Lines(Log(db))
    await made.start()
    yield made
    db.terminate()


def shown(reply: QueryReply) -> list[tuple[str, list[str]]]:
    """Documents of hits, and of their twins."""
    return [(h.document_id, [t.document_id for t in h.twins]) for h in reply.results]


async def test_twins_stand_under_the_first_of_them(world: Lines) -> None:
    one = await world.load("one", FINE, day(0))
    await world.load("bread", "# Act\n\nThe baker pays for the bread.\n", day(0))
    two = await world.load("two", FINE.replace("Fines", "Who pays"), day(0))
    reply = await world.ask(QUESTION, top_k=2, explain=True)
    [first, second] = reply.results
    [twin] = first.twins
    assert {first.document_id, twin.document_id} == {one.document_id, two.document_id}
    assert second.heading_path == ["Act"] and not second.twins
    assert (twin.heading_path[0], twin.valid_from, twin.valid_until) == ("Act", day(0), None)
    assert reply.explain is not None and reply.explain.twins == 1


async def test_each_is_a_hit_where_that_is_asked_for(world: Lines) -> None:
    for name in ("one", "two"):
        await world.load(name, FINE, day(0))
    assert [twins for _, twins in shown(await world.ask(QUESTION, fold=False))] == [[], []]


async def test_a_passage_that_is_not_valid_is_no_twin(world: Lines) -> None:
    one = await world.load("one", FINE, day(0))
    await world.load("two", FINE, day(10))
    then = await world.ask(QUESTION, as_of=day(5).isoformat())
    assert shown(then) == [(one.document_id, [])]


async def test_versions_with_the_same_words_are_one_in_all_of_history(world: Lines) -> None:
    old = await world.load("one", FINE, day(0))
    await world.load("one", FINE + "\n## More\n\nOther words are here.\n", day(10))
    await world.load("one", FINE.replace("owner", "driver"), day(20))
    reply = await world.ask(QUESTION, include_historical=True)
    hits = {h.text.splitlines()[-2]: h for h in reply.results if h.heading_path[-1] == "Fines"}
    assert len(hits) == 2
    [twin] = hits["The owner of the car pays the fine to the town."].twins
    same = hits["The owner of the car pays the fine to the town."]
    versions = {same.version_id: same.valid_from, twin.version_id: twin.valid_from}
    assert (len(versions), versions[old.version_id]) == (2, day(0))
    assert (await world.ask(QUESTION, top_k=1)).results[0].twins == []


async def test_twins_do_not_take_the_places_of_others(
    world: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More copies than a leg brings at first."""
    monkeypatch.setattr(asked, "CANDIDATES", 3)
    monkeypatch.setattr(engine, "DEEPEST", 50)
    for number in range(6):
        await world.load(f"copy{number}", FINE, day(0))
    other = await world.load("other", "# Act\n\nThe baker pays for bread.\n", day(0))
    reply = await world.ask(QUESTION, top_k=2, explain=True)
    assert [len(twins) for _, twins in shown(reply)] == [5, 0]
    assert reply.results[1].document_id == other.document_id
    assert reply.explain is not None and reply.explain.rounds > 1


async def test_a_reranker_reads_each_text_once(world: Lines) -> None:
    for name in ("one", "two"):
        await world.load(name, FINE, day(0))
    await world.load("bread", "# Act\n\nThe baker pays for the bread.\n", day(0))
    reranker = Fixed(Reading((0.2, 0.7)))
    world_engine = engine.Engine(
        world.log, world.projection, world.embedder, world.vectors, reranker=reranker, wait_s=0
    )
    reply = await world_engine.query(QueryRequest(query=QUESTION))
    assert len(reranker.seen) == 2
    assert [len(h.twins) for h in reply.results] == [0, 1]
