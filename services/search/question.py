"""A question and what is made of it once, whichever leg or round asks for it first."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from contracts.query import QueryRequest
from kernel.embedder import Embedder
from kernel.keywords import KeywordQuery, query_terms
from kernel.telemetry import QUERY_SECONDS
from kernel.vectors import VectorHit

CANDIDATES = 50
"""Passages that each leg brings to the fusion."""


class Question:
    """A request, its words, its vectors, and how long was spent on it."""

    def __init__(self, request: QueryRequest) -> None:
        self.request = request
        self.terms: KeywordQuery = query_terms(request.query)
        self.depth = max(CANDIDATES, request.top_k)
        self.rounds = 0
        self.seconds: dict[str, float] = {}
        """By step; what is done several times is added up."""
        self._vectors: dict[str, NDArray[np.float32]] = {}

    async def vector(self, embedder: Embedder) -> NDArray[np.float32]:
        """The embedded question."""
        if embedder.model_id not in self._vectors:
            with self.step("embed"):
                embedded = await embedder.embed_query(self.request.query)
            self._vectors[embedder.model_id] = embedded
        return self._vectors[embedder.model_id]

    def near(self, hits: list[VectorHit]) -> list[VectorHit]:
        """Those that are near enough to the question."""
        most = self.request.max_distance
        return hits if most is None else [h for h in hits if 1 - h.score <= most]

    @contextmanager
    def step(self, part: str) -> Iterator[None]:
        """Times a step, for the metrics and for `explain`."""
        began = time.perf_counter()
        try:
            with QUERY_SECONDS.labels(part).time():
                yield
        finally:
            self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - began
