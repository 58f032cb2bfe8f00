"""A second look at the best candidates by a model that reads question and passage together.

Off unless it is configured. It is never waited for: while the model loads, when it failed, when it
is busy or late, the fused order stands and the reply says why.
"""

import asyncio
import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import httpx
from pydantic import Field, SecretStr

from kernel.embedder.threads import prepare_torch
from kernel.errors import KbError
from kernel.settings import Environment

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

T = TypeVar("T")

Skipped = Literal["loading", "failed", "busy", "late", "away"]
"""Why there are no scores: the model is not ready, broken, taken, too slow, or not reachable."""


class RerankerSettings(Environment):
    """Read once, where search is put together."""

    reranker: str = Field(
        "", description="folder or hub name such as BAAI/bge-reranker-v2-m3; empty: none"
    )
    reranker_url: str = Field(
        "", description="endpoint of text-embeddings-inference; instead of a local model"
    )
    reranker_key: SecretStr = Field(SecretStr(""), description="key of the endpoint")
    reranker_top: int = Field(10, ge=1, le=100, description="candidates that are read again")
    reranker_deadline: float = Field(
        5.0, gt=0, description="seconds after which a question goes on without it"
    )
    reranker_threads: int = Field(0, ge=0, description="threads of a local model; 0: all cores")


@dataclass(frozen=True, slots=True)
class Reading:
    """A score of each passage, 0 to 1, comparable between questions; or why there is none."""

    scores: tuple[float, ...] = ()
    skipped: Skipped | None = None


class Reranker(Protocol):
    """Never raises for a model or an endpoint that does not work: the search goes on."""

    async def read(self, question: str, passages: Sequence[str]) -> Reading:
        """A score for each passage, within the deadline."""
        ...

    async def aclose(self) -> None:
        """Let go of the model or the connections."""
        ...


class CrossEncoderReranker:
    """A sentence-transformers cross-encoder in a thread of its own, loaded there from the start.

    A question that comes while another is read is skipped, not queued: on a CPU ten passages take
    seconds. One that is late is given up after the passage that the model reads just then.
    """

    def __init__(self, name: str, *, deadline: float = 5.0, threads: int = 0) -> None:
        self._deadline = deadline
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="reranker")
        self._loaded: Future[CrossEncoder] = self._worker.submit(_load, name, threads)
        self._free = threading.Semaphore(1)

    @property
    def state(self) -> Literal["loading", "ready", "failed"]:
        """For health and for the curious."""
        if not self._loaded.done():
            return "loading"
        failed = self._loaded.cancelled() or self._loaded.exception() is not None
        return "failed" if failed else "ready"

    async def loaded(self) -> None:
        """Wait for the model; raises what its loading raised. Nothing that answers calls this."""
        await asyncio.shield(asyncio.wrap_future(self._loaded))

    async def read(self, question: str, passages: Sequence[str]) -> Reading:
        if self.state != "ready":
            return Reading(skipped="loading" if self.state == "loading" else "failed")
        if not passages:
            return Reading()
        if not self._free.acquire(blocking=False):
            return Reading(skipped="busy")
        until = time.monotonic() + self._deadline
        work = self._worker.submit(self._score, question, list(passages), until)
        work.add_done_callback(lambda _: self._free.release())
        try:
            async with asyncio.timeout(self._deadline):
                return await asyncio.shield(asyncio.wrap_future(work))
        except TimeoutError:
            return Reading(skipped="late")

    async def aclose(self) -> None:
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)

    def _score(self, question: str, passages: list[str], until: float) -> Reading:
        """One passage at a time: a batch could not be given up half-way."""
        scores: list[float] = []
        for passage in passages:
            if time.monotonic() >= until:
                return Reading(skipped="late")
            scores.append(_probability(self._loaded.result(), question, passage))
        sound = all(math.isfinite(score) for score in scores)
        return Reading(tuple(scores)) if sound else Reading(skipped="failed")


class RemoteReranker:
    """`POST /rerank` of text-embeddings-inference, at `url` with or without that path."""

    def __init__(self, url: str, *, api_key: str = "", deadline: float = 5.0) -> None:
        base = url.rstrip("/")
        self._url = base if base.endswith("/rerank") else f"{base}/rerank"
        self._deadline = deadline
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.AsyncClient(headers=headers, timeout=deadline)

    async def read(self, question: str, passages: Sequence[str]) -> Reading:
        if not passages:
            return Reading()
        body = {"query": question, "texts": list(passages), "raw_scores": False, "truncate": True}
        try:
            async with asyncio.timeout(self._deadline):
                reply = await self._client.post(self._url, json=body)
            reply.raise_for_status()
            return Reading(_scores(reply.json(), len(passages)))
        except (TimeoutError, httpx.TimeoutException):
            return Reading(skipped="late")
        except httpx.HTTPError:
            return Reading(skipped="away")
        except ValueError:
            return Reading(skipped="failed")

    async def aclose(self) -> None:
        await self._client.aclose()


def open_reranker(settings: RerankerSettings) -> Reranker | None:
    """The endpoint, else the model, else none. Returns at once; a model loads behind."""
    if settings.reranker_url:
        return RemoteReranker(
            settings.reranker_url,
            api_key=settings.reranker_key.get_secret_value(),
            deadline=settings.reranker_deadline,
        )
    if settings.reranker:
        return CrossEncoderReranker(
            settings.reranker,
            deadline=settings.reranker_deadline,
            threads=settings.reranker_threads,
        )
    return None


def by_reading(candidates: Sequence[T], scores: Sequence[float]) -> list[tuple[T, float | None]]:
    """The first candidates by their scores, the rest behind in their order and without a score.

    Equal scores keep the order that the candidates had.
    """
    read = list(zip(candidates, scores, strict=False))
    order = sorted(range(len(read)), key=lambda at: -read[at][1])
    return [read[at] for at in order] + [(c, None) for c in candidates[len(read) :]]


class RerankerError(KbError):
    """The model cannot be used."""


def _load(name: str, threads: int) -> "CrossEncoder":
    prepare_torch(threads)
    from sentence_transformers import CrossEncoder

    folder = Path(name).expanduser()
    model: CrossEncoder = CrossEncoder(str(folder) if folder.is_dir() else name, device="cpu")
    if model.num_labels != 1:
        raise RerankerError(f"{name} gives {model.num_labels} scores a pair, not one")
    model.float().eval()
    return model


def _probability(model: "CrossEncoder", question: str, passage: str) -> float:
    from torch.nn import Sigmoid

    scores = model.predict([(question, passage)], activation_fn=Sigmoid(), show_progress_bar=False)
    return float(scores[0])


def _scores(reply: Any, count: int) -> tuple[float, ...]:
    """Scores in the order of the passages; ValueError unless there is a sound one for each."""
    try:
        found = {int(row["index"]): float(row["score"]) for row in reply}
    except (TypeError, KeyError) as error:
        raise ValueError("not a list of index and score") from error
    if sorted(found) != list(range(count)) or not all(0 <= s <= 1 for s in found.values()):
        raise ValueError("not one score from 0 to 1 for each passage")
    return tuple(found[at] for at in range(count))
