"""A question through both legs on a real Postgres: order, validity, reranking."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.events import Superseded, Window
from contracts.query import QueryRequest
from kernel.db import pool
from kernel.log import Log
from kernel.testing import first, received
from services.search.domain import Fusion
from services.search.engine import Engine
from services.search.projection import Projection
from services.search.rerank import Reading
from tests.integration.test_index import World

FINES = "# Act\n\n## Fines\n\nThe maximum fine for a breach is twenty million euro.\n"
CATS = "# Cats\n\n## Food\n\nCats eat fish and drink water in the morning.\n"


class Fixed:
    """A reranker that gives fixed scores."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.seen: list[str] = []

    async def read(self, question: str, passages: Sequence[str]) -> Reading:
        self.seen = list(passages)
        return Reading(self.reading.scores[: len(passages)], self.reading.skipped)

    async def aclose(self) -> None:
        """Nothing to let go of."""


class Searching(World):
    """An index with a projection beside it."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.projection = Projection(log, self.blobs)  # type: ignore[arg-type]

    def engine(self, reranker: Any = None, fusion: Fusion = "rrf") -> Engine:
        made = (self.log, self.projection, self.embedder, self.vectors)
        return Engine(*made, reranker=reranker, fusion=fusion)

    async def fold(self) -> None:
        await self.projection._sql.start(self.log.pool)
        while await self.projection.step():
            pass

    async def ask(self, query: str, reranker: Any = None, **more: Any) -> Any:
        request = QueryRequest.model_validate({"query": query, **more})
        return await self.engine(reranker).query(request)


def facts(reply: Any) -> list[dict[str, Any]]:
    """The hits without their texts: the fence differs from reply to reply."""
    return [hit.model_dump(exclude={"text"}) for hit in reply.results]


@pytest.fixture
async def world(database: str) -> AsyncIterator[Searching]:
    db = await pool(database)
    made = Searching(Log(db))
    await made.indexed("fines.md", FINES)
    await made.indexed("cats.md", CATS)
    await made.fold()
    yield made
    db.terminate()


async def test_the_passage_that_both_legs_find_is_first(world: Searching) -> None:
    reply = await world.ask("maximum fine for a breach")
    hit = reply.results[0]
    assert hit.heading_path == ["Act", "Fines"]
    assert (hit.dense_rank, hit.keyword_rank) == (1, 1)
    assert hit.score == hit.rrf_score == pytest.approx(2 / 61)
    assert (reply.score_kind, reply.reranked, reply.rerank_skipped) == ("rrf", False, None)
    assert reply.answerable is None  # of a base of two passages nothing can be said
    assert reply.position == await world.log.head()


async def test_fusion_by_scores_is_said_and_orders_the_hits(world: Searching) -> None:
    request = QueryRequest(query="maximum fine for a breach")
    reply = await world.engine(fusion="scores").query(request)
    first, second = reply.results[:2]
    assert reply.score_kind == "scores"
    assert first.heading_path == ["Act", "Fines"]
    assert 1 >= first.score > second.score
    assert first.rrf_score == pytest.approx(2 / 61)


async def test_a_reply_says_how_likely_the_base_has_an_answer(world: Searching) -> None:
    for number in range(8):
        await world.indexed(f"{number}.md", f"# Notes\n\nFish number {number} swims in water.\n")
    await world.fold()
    found = (await world.ask("maximum fine for a breach")).answerable
    nothing = (await world.ask("xylophone concerto")).answerable
    assert found is not None and nothing is not None and 0 < nothing < found < 1


async def test_passages_of_a_reply_are_in_one_fence_and_of_another_in_another(
    world: Searching,
) -> None:
    one, two = [await world.ask("fish fine breach water") for _ in range(2)]
    assert len(one.results) == 2
    for reply in (one, two):
        for hit in reply.results:
            lines = hit.text.splitlines()
            assert lines[0].startswith(f"<{reply.fence} note=")
            assert lines[-1] == f"</{reply.fence}>"
    assert one.fence != two.fence


async def test_what_a_reader_does_not_see_is_shown_in_the_text_and_its_headings(
    world: Searching,
) -> None:
    text = "# Sp\u202eoons\n\n## Sil\u200bver\n\nEvery spoon is kept\U000e0041 in the drawer.\n"
    await world.indexed("spoons.md", text)
    await world.fold()
    hit = (await world.ask("spoon drawer")).results[0]
    assert hit.heading_path == ["Sp⟦U+202E⟧oons", "Sil⟦U+200B⟧ver"]
    assert "kept⟦U+E0041⟧ in" in hit.text
    assert not set(hit.model_dump_json()) & {"\u202e", "\u200b", "\U000e0041"}
    assert "kept\U000e0041 in" in text.encode()[hit.byte_start : hit.byte_end].decode()


async def test_an_unknown_project_has_no_passages(world: Searching) -> None:
    assert (await world.ask("fine", project="nobody")).results == []


async def test_a_version_that_is_not_projected_as_valid_is_not_shown(world: Searching) -> None:
    await world.indexed("late.md", FINES.replace("twenty", "thirty"))
    texts = [h.text for h in (await world.ask("maximum fine")).results]
    assert not any("thirty" in t for t in texts)
    await world.fold()
    texts = [h.text for h in (await world.ask("maximum fine")).results]
    assert any("thirty" in t for t in texts)


async def test_postgres_has_the_last_word_over_a_lagging_vector_payload(world: Searching) -> None:
    receipt = received("fines.md")
    then = datetime(2026, 6, 1, tzinfo=UTC)
    windows = (
        Window(version_id=receipt.version_id, valid_from=receipt.valid_from, valid_until=then),
        Window(version_id="9" * 32, valid_from=then),
    )
    event = Superseded(**receipt.ids, by_version_id="9" * 32, valid_until=then, windows=windows)
    await world.log.append([first(event)])
    await world.fold()  # the indexer has not told the vectors yet

    async def found(**when: Any) -> bool:
        hits = (await world.ask("maximum fine", **when)).results
        return any("twenty million" in h.text for h in hits)

    assert not await found()
    assert await found(as_of="2026-05-31")
    assert not await found(as_of="2026-06-01")
    assert await found(include_historical=True)


async def test_a_reranker_orders_and_scores_the_hits(world: Searching) -> None:
    reranker = Fixed(Reading((0.1, 0.9)))
    reply = await world.ask("maximum fine for a breach", reranker)
    assert (reply.score_kind, reply.reranked) == ("rerank", True)
    assert [h.rerank_score for h in reply.results] == [0.9, 0.1]
    assert [h.score for h in reply.results] == [0.9, 0.1]
    assert reply.results[0].heading_path == ["Cats", "Food"]
    assert "untrusted" not in reranker.seen[0]  # it reads the passage, not the fence


async def test_min_score_drops_what_does_not_answer(world: Searching) -> None:
    reply = await world.ask("maximum fine", Fixed(Reading((0.1, 0.9))), min_score=0.5)
    assert [h.rerank_score for h in reply.results] == [0.9]


@pytest.mark.parametrize("why", ["loading", "late", "failed"])
async def test_a_reranker_that_is_skipped_is_named_and_changes_nothing(
    world: Searching, why: Any
) -> None:
    plain = await world.ask("maximum fine")
    reply = await world.ask("maximum fine", Fixed(Reading(skipped=why)), min_score=0.5)
    assert facts(reply) == facts(plain)
    assert (reply.score_kind, reply.rerank_skipped) == ("rrf", why)
