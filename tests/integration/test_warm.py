"""The models of all indexes in use are loaded before a question needs them."""

from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import Mock

import pytest

from kernel.db import pool
from kernel.embedder import Embedders
from kernel.embedder.base import Embedder, EmbedderError
from kernel.embedder.hashed import HashedEmbedder
from services.search.warm import Warmer

MADE = """
INSERT INTO read.generation (project, generation, state, embedder, dim)
SELECT 'p' || n, n, 'live', model, 64
  FROM unnest($1::text[]) WITH ORDINALITY AS m (model, n)
"""
ACTIVE = (
    "INSERT INTO read.active (project, generation) SELECT project, generation FROM read.generation"
)


class World:
    """Projects whose indexes are of certain models, and a process that has some of them."""

    def __init__(self, db: Any) -> None:
        self.pool = db
        self.loads: list[str] = []
        others = {"small": lambda: self.load("small"), "broken": lambda: self.load("broken")}
        self.embedders = Embedders(HashedEmbedder(64, 512), others)
        self.warmer = Warmer(db, self.embedders)

    def load(self, name: str) -> Embedder:
        self.loads.append(name)
        if name == "broken":
            raise EmbedderError("there is no such file")
        return HashedEmbedder(32, 512)

    async def have(self, *models: str) -> None:
        await self.pool.execute(MADE, list(models))
        await self.pool.execute(ACTIVE)


@pytest.fixture
async def world(database: str) -> AsyncIterator[World]:
    made = World(await pool(database))
    yield made
    await made.pool.close()


async def test_the_model_of_an_index_in_use_is_loaded_once(world: World) -> None:
    small = HashedEmbedder(32, 512).model_id
    await world.have(world.embedders.default.model_id, small)
    await world.warmer.look()
    await world.warmer.look()
    assert world.loads.count("small") == 1
    assert (await world.embedders.of(small)).model_id == small


async def test_nothing_is_loaded_that_no_index_needs(world: World) -> None:
    await world.have(world.embedders.default.model_id)
    await world.warmer.look()
    assert world.loads == []


async def test_a_model_that_is_missing_is_told_once_and_the_others_are_loaded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = HashedEmbedder(32, 512).model_id
    await world.have("a-model-that-nobody-has", small)
    log = Mock()  # what structlog does depends on the tests before
    monkeypatch.setattr("services.search.warm.log", log)
    await world.warmer.look()
    await world.warmer.look()
    told = [(c.args, c.kwargs["model"]) for c in log.warning.call_args_list]
    assert told == [(("warm.unusable",), "a-model-that-nobody-has")]
    assert "small" in world.loads
