"""How a reply came about, on a real Postgres: each leg's rank and score, what let a hit pass."""

import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from contracts.events import Superseded, Window
from kernel.testing import first, received
from kernel.vectors import VectorFilter, collection_name
from services.search import scope
from services.search.rerank import Reading
from tests.integration.test_engine import FINES, Fixed, Searching, world  # noqa: F401 - a fixture

ASKED = "maximum fine for a breach"


async def test_nothing_is_explained_unasked(world: Searching) -> None:  # noqa: F811
    reply = await world.ask(ASKED)
    assert reply.explain is None
    assert {hit.explain for hit in reply.results} == {None}


async def test_a_hit_has_its_place_and_score_in_both_legs(world: Searching) -> None:  # noqa: F811
    plain, reply = await world.ask(ASKED), await world.ask(ASKED, explain=True)
    hit = reply.results[0]
    assert [h.chunk_id for h in reply.results] == [h.chunk_id for h in plain.results]
    assert (hit.explain.fused_rank, hit.explain.rerank_score) == (1, None)
    assert (hit.explain.dense.rank, hit.explain.keyword.rank) == (1, 1)
    question = await world.embedder.embed_query(ASKED)
    [passage] = await world.embedder.embed_documents([_text(hit)])
    cosine = float(question @ passage / np.linalg.norm(question) / np.linalg.norm(passage))
    assert hit.explain.dense.score == pytest.approx(cosine, abs=1e-3)
    assert hit.explain.keyword.score > 0
    assert hit.explain.keyword.words == ["maximum", "fine", "breach"]


def _text(hit: Any) -> str:
    return str(re.sub(r"(?m)\A.*\n|\n.*\Z", "", hit.text))


async def test_a_hit_of_one_leg_alone_says_so(world: Searching) -> None:  # noqa: F811
    reply = await world.ask(ASKED, explain=True)
    cats = next(h for h in reply.results if h.heading_path[0] == "Cats")
    assert cats.explain.keyword is None
    assert cats.explain.dense.rank == 2


async def test_a_reply_says_what_the_question_became(world: Searching) -> None:  # noqa: F811
    before = datetime.now(UTC)
    note = (await world.ask("fine of § 5", explain=True)).explain
    assert before <= note.moment <= datetime.now(UTC)
    assert (note.known, note.rounds, note.keyword_mode) == (None, 1, "or")
    assert list(note.words) == ["fine", "§5", "5"]
    assert "en:fine" in note.words["fine"]
    assert (note.dense.found, note.dense.valid) == (2, 2)
    assert (note.keyword.found, note.candidates, note.depth) == (1, 2, 50)
    assert {"scope", "embed", "dense", "keyword", "passages", "all"} <= set(note.took_ms)
    [asked] = note.asked
    assert (asked.project, asked.generation, asked.embedder) == (
        "default", 1, world.embedder.model_id,
    )  # fmt: skip


async def test_the_window_that_lets_a_hit_pass_is_told(world: Searching) -> None:  # noqa: F811
    hit = (await world.ask(ASKED, explain=True)).results[0]
    assert hit.explain.recorded_from <= datetime.now(UTC)
    assert (hit.explain.recorded_until, hit.explain.generation) == (None, 1)
    assert hit.explain.passed == "payload"


async def test_raw_ranks_count_what_is_not_valid(world: Searching) -> None:  # noqa: F811
    """A version that is stored and not yet projected takes a place, and no rank."""
    await world.indexed("late.md", FINES.replace("twenty", "thirty"))
    found = await world.vectors.search(
        collection_name("default", 1),
        await world.embedder.embed_query(ASKED),
        VectorFilter(include_historical=True),
        1,
    )
    reply = await world.ask(ASKED, explain=True)
    refused = reply.explain.dense.found - reply.explain.dense.valid
    cats = next(h for h in reply.results if h.heading_path[0] == "Cats").explain.dense
    assert (refused, cats.raw_rank - cats.rank, len(found)) == (1, 1, 1)


async def test_named_versions_are_said_to_be(
    world: Searching,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scope, "LEAST", 1)
    monkeypatch.setattr(scope, "DEEP", 1)
    reply = await world.ask(ASKED, explain=True)
    assert {hit.explain.passed for hit in reply.results} == {"named"}
    assert reply.explain.asked[0].named == 2


async def test_what_is_sifted_is_said_to_be(
    world: Searching,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receipt = received("fines.md")
    then = datetime(2026, 6, 1, tzinfo=UTC)
    windows = (
        Window(version_id=receipt.version_id, valid_from=receipt.valid_from, valid_until=then),
        Window(version_id="9" * 32, valid_from=then),
    )
    event = Superseded(**receipt.ids, by_version_id="9" * 32, valid_until=then, windows=windows)
    known = datetime.now(UTC)
    await world.log.append([first(event)])
    await world.fold()
    monkeypatch.setattr(scope, "FEW", 0)
    reply = await world.ask(ASKED, explain=True, recorded_as_of=known.isoformat())
    hit = reply.results[0]
    assert (hit.heading_path[0], hit.explain.passed) == ("Act", "sifted")
    assert hit.explain.recorded_from <= known < hit.explain.recorded_until
    assert reply.explain.known == known


async def test_a_reranking_is_told(world: Searching) -> None:  # noqa: F811
    reply = await world.ask(ASKED, Fixed(Reading((0.1, 0.9))), explain=True)
    assert reply.explain.reranked == 2
    assert [(h.explain.rerank_score, h.explain.fused_rank) for h in reply.results] == [
        (0.9, 2), (0.1, 1),
    ]  # fmt: skip


async def test_an_unknown_project_is_explained_too(world: Searching) -> None:  # noqa: F811
    note = (await world.ask(ASKED, project="nobody", explain=True)).explain
    assert (note.asked, note.candidates, note.dense.found) == ([], 0, 0)
