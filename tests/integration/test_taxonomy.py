"""Classes of documents on a real Postgres: set, given, given anew, projected, erased."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contracts.events import UNCATEGORIZED, Classified, Erased, Indexed, TaxonomySet
from contracts.taxonomy import TaxonomyChange
from kernel.db import pool
from kernel.errors import Refusal
from kernel.log import Log
from kernel.testing import first
from services.indexer.handlers import on_erased, on_indexed
from services.indexer.rebuild import rebuild
from services.indexer.taxonomy import reclassify, set_taxonomy, taxonomy_of
from services.search.projection import digest
from tests.integration.test_generations import TwoWorld
from tests.integration.test_summaries import Desk

LAW = (
    "# Закон\n\n## Члан 1\n\nКазна за кривично дело износи двадесет милиона динара.\n\n"
    "## Члан 2\n\nСуд одлучује.\n"
)
COFFEE = (
    "# Kafa\n\n## Espreso\n\nSipajte vodu i pritisnite taster.\n\n## Mleko\n\nZagrejte mleko.\n"
)
CLASSES: dict[str, Any] = {
    "classes": [
        {"name": "право/кривично", "keywords": ["казна", "суд", "закон"]},
        {"name": "кухиња", "keywords": ["kafa", "mleko", "espreso"]},
    ]
}


@pytest.fixture
async def desk(database: str, tmp_path: Path) -> AsyncIterator[Desk]:
    db = await pool(database)
    made = Desk(Log(db), tmp_path)
    yield made
    await made.client.aclose()
    db.terminate()


@pytest.fixture
async def world(database: str) -> AsyncIterator[TwoWorld]:
    db = await pool(database, size=8)
    yield TwoWorld(Log(db))
    db.terminate()


async def given(world: TwoWorld, said: dict[str, Any] = CLASSES) -> TaxonomySet:
    change = TaxonomyChange.model_validate(said)
    return (await set_taxonomy(world.log, "default", change, "actor:1")).said


async def classified(world: TwoWorld, done: Indexed) -> list[Any]:
    """What the handler says, recorded."""
    events = await on_indexed(done, log=world.log, index=world.index)
    for event in events:
        await world.log.append([first(event)])
    return events


async def test_without_a_taxonomy_nothing_is_classified(world: TwoWorld) -> None:
    assert await classified(world, await world.indexed("a.md", LAW)) == []


async def test_a_version_is_put_into_a_class_by_its_summary(world: TwoWorld) -> None:
    said = await given(world)
    (law,) = await classified(world, await world.indexed("a.md", LAW))
    (coffee,) = await classified(world, await world.indexed("b.md", COFFEE))
    assert (law.main, coffee.main) == ("право/кривично", "кухиња")
    assert law.taxonomy == said.taxonomy
    assert law.embedder == world.embedder.model_id
    assert law.confidence > 0.5


async def test_what_is_of_no_class_is_uncategorized(world: TwoWorld) -> None:
    await given(world, CLASSES | {"threshold": 1.0})
    (event,) = await classified(world, await world.indexed("a.md", LAW))
    assert event.main == UNCATEGORIZED
    assert "право/кривично" in event.tags


async def test_a_text_that_was_taken_back_meanwhile_gets_no_class(world: TwoWorld) -> None:
    await given(world)
    done = await world.indexed("a.md", LAW)
    await world.log.append([first(Erased(**done.ids, reason="request", scope="version", blobs=1))])
    assert await classified(world, done) == []


async def test_the_same_taxonomy_twice_is_one(world: TwoWorld) -> None:
    one, two = await given(world), await given(world)
    assert one == two
    assert len(await world.facts(TaxonomySet)) == 1
    other = await given(world, CLASSES | {"threshold": 0.4})
    assert other.taxonomy != one.taxonomy
    found = await taxonomy_of(world.log, "default")
    assert found is not None and found.said == other


async def test_another_taxonomy_is_applied_to_what_is_there_and_nothing_is_embedded(
    world: TwoWorld,
) -> None:
    await given(world)
    for name, body in {"a.md": LAW, "b.md": COFFEE}.items():
        await classified(world, await world.indexed(name, body))
    said = {"classes": [{"name": "све", "keywords": ["закон", "kafa"]}], "threshold": 0.0}
    now = await given(world, said)
    before = world.embedder.embedded
    done = await reclassify(world.index, "default", "actor:1")
    assert (done.classified, done.known, done.classes) == (2, 0, {"све": 2})
    assert world.embedder.embedded == before + 1  # the class
    assert (await world.facts(Classified))[-1].taxonomy == now.taxonomy
    again = await reclassify(world.index, "default", "actor:1")
    assert (again.classified, again.known) == (0, 2)


async def test_what_is_cut_anew_is_not_classified_again(world: TwoWorld) -> None:
    await given(world)
    await classified(world, await world.indexed_by_job("a.md", LAW))
    await world.configured(chunking="paragraph")
    await rebuild(world.index, "default")
    newest = (await world.facts(Indexed))[-1]
    assert len(await world.facts(Indexed)) == 2
    assert await classified(world, newest) == []


async def test_by_another_model_it_is_classified_again(world: TwoWorld) -> None:
    await given(world)
    (before,) = await classified(world, await world.indexed_by_job("a.md", LAW))
    await world.configured(embedder="small")
    await rebuild(world.index, "default")
    done = await reclassify(world.index, "default", "actor:1")
    assert (done.classified, done.known) == (1, 0)
    now = (await world.facts(Classified))[-1]
    assert (before.embedder, now.embedder) == (world.embedder.model_id, world.small.model_id)


async def test_what_takes_too_long_goes_on_with_the_next_request(world: TwoWorld) -> None:
    for name, body in {"a.md": LAW, "b.md": COFFEE}.items():
        await world.indexed(name, body)
    await given(world)
    first_, second, third = [
        await reclassify(world.index, "default", "actor:1", seconds=0) for _ in range(3)
    ]
    assert (first_.classified, first_.left) == (1, 1)
    assert (second.classified, second.known, second.left) == (1, 1, 0)
    assert (third.classified, third.known, third.left) == (0, 2, 0)


async def test_without_a_taxonomy_nothing_can_be_applied(world: TwoWorld) -> None:
    await world.indexed("a.md", LAW)
    with pytest.raises(Refusal, match="no taxonomy"):
        await reclassify(world.index, "default", "actor:1")


async def test_what_has_no_summary_yet_is_counted(world: TwoWorld) -> None:
    event = await world.chunked("a.md", LAW)
    old = event.model_copy(update={"summary_sha256": None, "summariser": None})
    await world.log.append([first(old)])
    done = Indexed(
        **old.ids, body_sha256=old.body_sha256, chunks_sha256=old.chunks_sha256,
        chunk_count=old.chunk_count, embedder="e", embedded=1, reused=0,
    )  # fmt: skip
    await world.log.append([first(done)])
    await given(world)
    assert await classified(world, done) == []
    assert (await reclassify(world.index, "default", "actor:1")).without_summary == 1


async def test_the_vector_of_a_summary_goes_with_the_version(world: TwoWorld) -> None:
    await given(world)
    done = await world.indexed("a.md", LAW)
    await classified(world, done)
    erased = Erased(**done.ids, reason="request", scope="version", blobs=1)
    await world.log.append([first(erased)])
    await on_erased(erased, index=world.index)
    left = "SELECT count(*) FROM cache.embedding WHERE version_id = $1"
    assert await world.log.pool.fetchval(left, done.version_id) == 0
    mine = "SELECT count(*) FROM cache.embedding"
    assert await world.log.pool.fetchval(mine) == 2 + 24  # classes and background


async def test_what_an_erased_version_was_leaves_the_log(world: TwoWorld) -> None:
    await given(world)
    done = await world.indexed("a.md", LAW)
    await classified(world, done)
    erased = Erased(**done.ids, reason="request", scope="version", blobs=1)
    await world.log.append([first(erased)])
    await world.log.redact(done.document_id, done.version_id)
    (event,) = await world.facts(Classified)
    assert (event.main, event.tags) == ("(erased)", ())


# -- read ------------------------------------------------------------------------------------------


async def labelled(desk: Desk, main: str, *tags: str, body: str | None = None) -> list[str]:
    """Labels of a document that was classified so."""
    await desk.add("Казна.")
    (done,) = [e.fact() for e in await desk.log.read(0, 100) if e.type == "Indexed"]
    assert isinstance(done, Indexed)
    event = Classified(
        **done.ids, body_sha256=body or done.body_sha256, taxonomy="0" * 64, main=main, tags=tags,
        confidence=0.9, classifier="c", embedder="e",
    )  # fmt: skip
    await desk.log.append([first(event)])
    await desk.fold()
    return (await desk.documents.document(done.version_id)).labels


async def test_a_class_is_a_label_of_the_version_for_filters(desk: Desk) -> None:
    assert await labelled(desk, "право/кривично", "кухиња") == [
        "class:право", "class:право/кривично", "tag:кухиња",
    ]  # fmt: skip
    before = await digest(desk.log.pool)
    await desk.projection.replay()
    assert await digest(desk.log.pool) == before


async def test_what_was_said_of_another_text_is_no_label(desk: Desk) -> None:
    assert await labelled(desk, "право", body="9" * 64) == []


async def test_an_erased_version_has_no_labels(desk: Desk) -> None:
    await labelled(desk, "право")
    (done,) = [e.fact() for e in await desk.log.read(0, 100) if e.type == "Indexed"]
    assert isinstance(done, Indexed)
    erased = Erased(**done.ids, reason="request", scope="version", blobs=1)
    await desk.log.append([first(erased)])
    await desk.fold()
    assert await desk.log.pool.fetchval("SELECT labels FROM read.version") is None
