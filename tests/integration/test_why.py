"""Why a passage did not come, on a real Postgres: every reason."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from contracts.events import Erased, Indexed
from contracts.why import WhyReply, WhyRequest
from kernel.db import pool
from kernel.log import Log
from kernel.testing import first
from services.search import question as asked
from services.search.engine import Engine
from services.search.rerank import Reading
from services.search.why import Whys
from tests.integration.lines_world import Lines
from tests.integration.test_engine import Fixed
from tests.integration.test_filters import day

QUESTION = "who pays the fine"
FINE = "# Act\n\nThe owner of the car pays the fine to the town.\n"
BREAD = "# Act\n\nThe baker sells bread in the morning.\n"


class Asking(Lines):
    """Asks why."""

    async def why(self, done: Indexed, reranker: Any = None, **more: Any) -> WhyReply:
        """About the passage of a version of one passage."""
        chunk = await self.chunk(done)
        engine = Engine(
            self.log, self.projection, self.embedder, self.vectors, wait_s=0,
            reranker=reranker, rerank_top=1,
        )  # fmt: skip
        fields = {"query": QUESTION, "chunk": chunk, "version": done.version_id} | more
        return await Whys(self.log.pool, engine).why(WhyRequest.model_validate(fields))

    async def chunk(self, done: Indexed) -> str:
        sql = "SELECT chunk_id FROM read.chunk WHERE version_id = $1 LIMIT 1"
        return await self.log.pool.fetchval(sql, done.version_id) or "Act"


@pytest.fixture
async def world(database: str) -> AsyncIterator[Asking]:
    db = await pool(database)
    made = Asking(Log(db))
    await made.start()
    yield made
    db.terminate()


async def test_what_is_shown_says_so_and_where(world: Asking) -> None:
    done = await world.load("one", FINE, day(0))
    await world.load("two", BREAD, day(0))
    told = await world.why(done)
    assert (told.reason, told.place, told.fused_rank, told.filters) == ("shown", 1, 1, [])
    assert told.dense and told.keyword
    assert (told.dense.rank, told.keyword.rank) == (1, 1)
    assert told.dense.brought and told.keyword.brought
    assert told.keyword.words == ["pays", "fine"]
    assert (told.version_id, told.versions) == (done.version_id, [done.version_id])


async def test_what_nothing_is_called_is_unknown(world: Asking) -> None:
    done = await world.load("one", FINE, day(0))
    told = await world.why(done, chunk="nothing", version=None)
    assert (told.reason, told.versions) == ("unknown", [])
    assert (await world.why(done, version="f" * 32)).reason == "unknown"


async def test_a_version_without_that_passage_says_where_it_is(world: Asking) -> None:
    done = await world.load("one", FINE, day(0))
    told = await world.why(done, chunk="nothing")
    assert told.reason == "not-indexed" and "it is received" in told.why


async def test_what_was_erased_is_said_to_be(world: Asking) -> None:
    done = await world.load("one", FINE, day(0))
    erased = Erased(**done.ids, reason="request", scope="document", blobs=1)
    await world.log.append([first(erased)])
    await world.fold()
    told = await world.why(done)  # its rows are still there
    assert (told.reason, told.title, told.heading_path) == ("erased", None, [])
    await world.index.erase(done.project, done.document_id, done.version_id)
    assert (await world.why(done)).reason == "erased"


async def test_another_project_and_another_generation_are_named(world: Asking) -> None:
    done = await world.load("one", FINE, day(0), "law")
    assert (await world.why(done)).reason == "other-project"
    await world.log.pool.execute("UPDATE read.chunk SET generation = 7")
    told = await world.why(done, project="law")
    assert (told.reason, told.generation) == ("other-generation", 7)


async def test_what_is_not_valid_shows_its_windows(world: Asking) -> None:
    done = await world.load("one", FINE, day(0))
    await world.load("one", BREAD, day(10))
    told = await world.why(done)
    assert told.reason == "not-valid"
    assert [(w.valid_from, w.valid_until) for w in told.windows] == [(day(0), day(10))]
    assert (await world.why(done, as_of=day(5).isoformat())).reason == "shown"
    assert (await world.why(done, include_historical=True)).reason == "shown"


@pytest.mark.parametrize(
    ("asked_for", "failed"),
    [
        ({"heading_prefix": ["Law"]}, ["heading_prefix"]),
        ({"languages": ["de"]}, ["languages"]),
        ({"documents": ["0" * 32]}, ["documents"]),
        ({"types": ["pdf"]}, ["types"]),
        ({"tags": ["old"]}, ["tags"]),
        ({"classes": ["law"], "types": ["pdf", "md"]}, ["classes"]),
        ({"dated_from": day(1).isoformat()}, ["dated_from"]),
        ({"dated_until": "2025-12-31"}, ["dated_until"]),
        ({"received_from": "2096-01-01"}, ["received_from"]),
        ({"received_until": "2020-01-01", "tags": ["a"]}, ["tags", "received_until"]),
    ],
)
async def test_each_filter_that_it_does_not_pass_is_named(
    world: Asking, asked_for: dict[str, Any], failed: list[str]
) -> None:
    told = await world.why(await world.load("one", FINE, day(0)), **asked_for)
    assert (told.reason, told.filters) == ("filtered", failed)
    assert all(name in told.why for name in failed)


async def test_two_windows_that_each_pass_one_date_pass_none(world: Asking) -> None:
    done = await world.load("one", FINE, day(0))
    await world.load("one", BREAD, day(10))
    await world.all_of(await world.back(done, day(20)))
    dates = {"dated_from": day(5).isoformat(), "dated_until": day(15).isoformat()}
    told = await world.why(done, include_historical=True, **dates)
    assert told.filters == ["dated_from", "dated_until"]


async def test_what_the_legs_do_not_bring_has_its_rank_and_what_stands_before(
    world: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "CANDIDATES", 2)
    for number in range(4):
        await world.load(f"f{number}", FINE.replace("town", f"town {number}"), day(0))
    done = await world.load("bread", BREAD, day(0))
    told = await world.why(done, top_k=2)
    assert told.reason == "not-among-candidates" and "no word of the question" in told.why
    assert told.dense and told.keyword
    assert (told.dense.rank, told.dense.brought, len(told.dense.before)) == (5, False, 3)
    assert told.dense.before[-1].score > (told.dense.score or 0) > 0
    assert (told.keyword.rank, told.keyword.score, told.keyword.words) == (None, None, [])
    assert told.depth == 2


async def test_what_is_farther_than_asked_is_said_to_be(world: Asking) -> None:
    done = await world.load("bread", BREAD, day(0))
    told = await world.why(done, max_distance=0.1)
    assert told.reason == "too-far"
    assert told.dense is not None and 0 < (told.dense.score or 0) < 0.9


async def test_a_twin_names_the_one_it_stands_under(world: Asking) -> None:
    done = [await world.load(name, FINE, day(0)) for name in ("one", "two")]
    told = [await world.why(d) for d in done]
    assert sorted(t.reason for t in told) == ["shown", "twin"]
    [twin] = [t for t in told if t.twin_of is not None]
    assert twin.twin_of is not None and twin.place == 1
    assert twin.twin_of.version_id in {d.version_id for d in done} - {twin.version_id}
    assert [(await world.why(d, fold=False)).reason for d in done] == ["shown", "shown"]


async def test_below_top_k_has_its_place(world: Asking) -> None:
    await world.load("one", FINE, day(0))
    told = await world.why(await world.load("bread", BREAD, day(0)), top_k=1)
    assert (told.reason, told.place, told.fused_rank) == ("below-top-k", 2, 2)


async def test_what_the_reranker_did_is_told(world: Asking) -> None:
    fine = await world.load("one", FINE, day(0))
    bread = await world.load("bread", BREAD, day(0))
    reranker = Fixed(Reading((0.4,)))  # it reads one passage
    assert (await world.why(bread, reranker)).reason == "not-read"
    told = await world.why(fine, reranker)
    assert (told.reason, told.rerank_score) == ("shown", 0.4)
    assert (await world.why(fine, reranker, min_score=0.5)).reason == "below-min-score"
    assert (await world.why(fine, Fixed(Reading(skipped="late")))).rerank_skipped == "late"


async def test_what_the_reranker_put_behind_others_is_said_to_be(world: Asking) -> None:
    fine = await world.load("one", FINE, day(0))
    await world.load("bread", BREAD, day(0))
    engine = Engine(
        world.log, world.projection, world.embedder, world.vectors, wait_s=0,
        reranker=Fixed(Reading((0.1, 0.9))),
    )  # fmt: skip
    request = WhyRequest(query=QUESTION, top_k=1, chunk=await world.chunk(fine))
    told = await Whys(world.log.pool, engine).why(request)
    assert told.version_id == fine.version_id
    assert (told.reason, told.fused_rank, told.place) == ("reranked-down", 1, 2)


async def test_of_several_of_one_name_the_nearest_to_an_answer_is_told(world: Asking) -> None:
    old = await world.load("one", FINE, day(0))
    new = await world.load("one", f"{FINE}\n## More\n\nNothing else is said.\n", day(10))
    assert await world.chunk(old) in [r["chunk_id"] for r in await world.rows()]
    told = await world.why(old, version=None)
    assert (told.version_id, set(told.versions)) == (
        new.version_id, {old.version_id, new.version_id},
    )  # fmt: skip
    told = await world.why(old, version=None, as_of=day(5).isoformat())
    assert told.version_id == old.version_id
