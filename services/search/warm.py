"""The models of all indexes in use are loaded before a question needs them."""

import asyncio
from typing import Any

import asyncpg
import structlog

from kernel.db import UNAVAILABLE, queries
from kernel.embedder import Embedders
from kernel.embedder.base import EmbedderError
from kernel.embedder.registry import UnknownEmbedder
from kernel.errors import Retry

log = structlog.get_logger()
LOOK_S = 60.0
"""Seconds between two looks: a project may get another model at any time."""


class Warmer:
    """Loads what questions will need; a question that comes first loads it itself."""

    def __init__(self, pool: "asyncpg.Pool[Any]", embedders: Embedders) -> None:
        self._pool, self._embedders = pool, embedders
        self._sql = queries("services.search", "queries")
        self._told: set[str] = set()

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            try:
                await self.look()
            except UNAVAILABLE as error:
                log.warning("warm.away", error=str(error)[:300])
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Load the models of the indexes that are in use now. What cannot be loaded is told once;
        questions are told every time."""
        models = [row["embedder"] async for row in self._sql.models_in_use(self._pool)]
        for model in models:
            try:
                await self._embedders.of(model)
            except (UnknownEmbedder, EmbedderError, Retry) as error:
                if model not in self._told:
                    log.warning("warm.unusable", model=model, error=str(error)[:300])
                self._told.add(model)
            else:
                self._told.discard(model)
