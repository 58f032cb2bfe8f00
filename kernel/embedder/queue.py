"""Turns at a model: questions go ahead of documents, and documents go in small batches."""

import asyncio
import heapq
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from itertools import count

import numpy as np

from kernel.embedder.base import Embedder, EmbedderError, Matrix, Vector

QUERY, DOCUMENT = 0, 1


class Turnstile:
    """Lets one caller through at a time, the lowest rank first, then in order of arrival.

    Callers may live in different event loops. A caller that is cancelled while it waits is passed
    over; one that is cancelled inside leaves as if it had finished.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = False
        self._waiting: list[tuple[int, int, Future[None]]] = []
        self._arrival = count()

    @property
    def waiting(self) -> int:
        """Callers in the queue; some of them may have given up."""
        return len(self._waiting)

    @asynccontextmanager
    async def turn(self, rank: int) -> AsyncIterator[None]:
        """Wait for a turn, hold it, pass it on."""
        ticket = self._enter(rank)
        try:
            if ticket is not None:
                await asyncio.shield(asyncio.wrap_future(ticket))
        except asyncio.CancelledError:
            if ticket is not None and not ticket.cancel():
                self._leave()  # it was our turn already
            raise
        try:
            yield
        finally:
            self._leave()

    def _enter(self, rank: int) -> Future[None] | None:
        with self._lock:
            if not self._busy:
                self._busy = True
                return None
            ticket: Future[None] = Future()
            heapq.heappush(self._waiting, (rank, next(self._arrival), ticket))
            return ticket

    def _leave(self) -> None:
        with self._lock:
            while self._waiting:
                ticket = heapq.heappop(self._waiting)[2]
                if ticket.set_running_or_notify_cancel():
                    break
            else:
                self._busy = False
                return
        ticket.set_result(None)


class QueuedEmbedder:
    """`embedder` for many callers: a question waits for at most one batch of documents.

    `batch_tokens` bounds a batch: texts in it times the tokens of the longest, which is what the
    model computes. A text longer than that goes alone. `turns`: of several models on one processor.
    """

    def __init__(
        self, embedder: Embedder, batch_tokens: int = 256, turns: Turnstile | None = None
    ) -> None:
        self._embedder, self._batch_tokens = embedder, batch_tokens
        self._turnstile = turns or Turnstile()
        self._closed = False

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dim(self) -> int:
        return self._embedder.dim

    @property
    def max_tokens(self) -> int:
        return self._embedder.max_tokens

    @property
    def waiting(self) -> int:
        """How many batches and questions stand in the queue."""
        return self._turnstile.waiting

    def count_tokens(self, text: str) -> int:
        return self._embedder.count_tokens(text)

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder`; the first batch that fails ends the call with its error."""
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        sizes = await asyncio.to_thread(self._sizes, texts)
        for batch in batches(sizes, self._batch_tokens):
            async with self._turnstile.turn(DOCUMENT):
                self._refuse_if_closed()
                vectors[batch] = await self._embedder.embed_documents([texts[i] for i in batch])
        return vectors

    async def embed_query(self, text: str) -> Vector:
        async with self._turnstile.turn(QUERY):
            self._refuse_if_closed()
            return await self._embedder.embed_query(text)

    async def aclose(self) -> None:
        """Whoever waits gets an `EmbedderError`; the batch that runs is finished."""
        self._closed = True
        async with self._turnstile.turn(QUERY):
            await self._embedder.aclose()

    def _sizes(self, texts: Sequence[str]) -> list[int]:
        limit = self.max_tokens
        return [min(self.count_tokens(text), limit) for text in texts]

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise EmbedderError("the embedder was closed")


def batches(sizes: Sequence[int], budget: int) -> Iterable[list[int]]:
    """Indices, shortest texts first, in batches of at most `budget` padded tokens (or one text)."""
    batch: list[int] = []
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        if batch and (len(batch) + 1) * sizes[index] > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
