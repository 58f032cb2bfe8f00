"""Several projects at once, each with the embedder that its index was made by."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from contracts.query import QueryReply, QueryRequest
from kernel.db import pool
from kernel.embedder import Embedders, HashedEmbedder
from kernel.embedder.base import Vector
from kernel.log import Log
from services.indexer.index import Index
from services.search.engine import Engine
from tests.integration.lines_world import Lines
from tests.integration.test_filters import day

QUESTION = "the fine of the law"
BY = {"a": 0, "b": 0, "small": 1, "tiny": 2}
"""Which model a project has."""


class Asked(HashedEmbedder):
    """Counts the questions."""

    questions = 0

    async def embed_query(self, text: str) -> Vector:
        self.questions += 1
        return await super().embed_query(text)


class Models(Lines):
    """Projects of three models."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.models = [Asked(), Asked(64), Asked(16)]
        others = {f"m{n}": (lambda m=model: m) for n, model in enumerate(self.models[1:])}
        self.embedders = Embedders(self.models[0], others)
        self.mixed = Engine(log, self.projection, self.embedders, self.vectors, wait_s=0)

    async def fill(self, project: str, *texts: str) -> None:
        """Documents of one passage each."""
        model = Embedders(self.models[BY[project]])
        self.index = Index(self.log, self.blobs, model, self.vectors)  # type: ignore[arg-type]
        for number, text in enumerate(texts):
            await self.load(f"d{number}", f"# A\n\n{text}\n", day(0), project)

    async def mix(self, *projects: str, **more: Any) -> QueryReply:
        body = {"query": QUESTION, "projects": projects, "top_k": 50, **more}
        return await self.mixed.query(QueryRequest.model_validate(body))


@pytest.fixture
async def world(database: str) -> AsyncIterator[Models]:
    db = await pool(database)
    made = Models(Log(db))
    await made.start()
    await made.fill("a", "The fine of the law is ten.", "Bread and butter.", "A fine day.")
    await made.fill("b", "The fine is in the law.", "Nothing of that kind.")
    await made.fill("small", "What the law says of the fine.", "Water and wine.")
    yield made
    db.terminate()


def dense(reply: QueryReply, *projects: str) -> list[tuple[str, int | None]]:
    """Chunks of projects by their dense rank."""
    hits = [(h.version_id, h.dense_rank) for h in reply.results if h.project in projects]
    return sorted(hits, key=lambda hit: hit[1] or 0)


async def test_each_model_has_ranks_of_its_own(world: Models) -> None:
    reply = await world.mix("a", "b", "small")
    assert len(reply.results) == 7
    assert [rank for _, rank in dense(reply, "small")] == [1, 2]
    assert [rank for _, rank in dense(reply, "a", "b")] == [1, 2, 3, 4, 5]


async def test_a_project_keeps_the_order_that_it_has_alone(world: Models) -> None:
    reply = await world.mix("a", "b", "small")
    assert dense(reply, "small") == dense(await world.mix("small"), "small")
    assert dense(reply, "a", "b") == dense(await world.mix("a", "b"), "a", "b")


async def test_the_order_of_the_projects_does_not_matter_to_a_rank(world: Models) -> None:
    one, other = [await world.mix(*names) for names in (("a", "small"), ("small", "a"))]
    assert dense(one, "a") == dense(other, "a")
    assert {h.version_id: h.score for h in one.results} == {
        h.version_id: h.score for h in other.results
    }


async def test_a_question_is_embedded_once_by_each_model(world: Models) -> None:
    await world.mix("a", "b", "small")
    assert [model.questions for model in world.models] == [1, 1, 0]


async def test_an_explanation_names_the_model_of_each_project(world: Models) -> None:
    reply = await world.mix("a", "small", explain=True)
    assert reply.explain is not None
    assert [asked.embedder for asked in reply.explain.asked] == [
        world.models[0].model_id, world.models[1].model_id,
    ]  # fmt: skip
    assert (reply.explain.dense.found, reply.explain.candidates) == (5, 5)
    first = [h for h in reply.results if h.explain and h.explain.dense and h.dense_rank == 1]
    assert [h.explain.dense.raw_rank for h in first if h.explain and h.explain.dense] == [1, 1]


async def test_what_is_not_valid_takes_no_place_of_another_model(world: Models) -> None:
    """A passage of one model is refused; the ranks of the other do not move."""
    await world.fill("tiny", "The fine of the law, at last.")
    await world.log.pool.execute("DELETE FROM read.validity WHERE project = 'tiny'")
    reply = await world.mix("tiny", "small")
    assert dense(reply, "small") == dense(await world.mix("small"), "small")
    assert dense(reply, "tiny") == []
