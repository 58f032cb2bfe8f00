"""The embedder against the bare model, sorted batches against unsorted, indexing without a model,
and what a question waits for its vector while passages are embedded, by the size of a batch.

All in one process and one run, on real passages of very different lengths.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from eval.bench import rebuild
from eval.bench.report import Row
from eval.bench.seeded import Material
from kernel.embedder import EmbedderSettings, load_embedder
from kernel.embedder.base import Embedder, Matrix, Vector
from kernel.embedder.bundled import ensure_bundled
from kernel.embedder.threads import prepare_torch
from kernel.language import detect
from services.indexer.index import Index

TEXTS = 64
BATCH = 8
ROUNDS = 3
DOCUMENTS = 40
BARE, FLAT = 0.9, 1.0
TOKENS = (128, 256, 512, 1024)
ASKED, PAUSE = 40, 0.1


async def measure() -> list[Row]:
    """Three ratios, and passages a second of the indexer when vectors cost nothing."""
    texts = _texts()
    settings = EmbedderSettings(embedder="bundled")
    bare = await asyncio.to_thread(_bare, settings)
    embedder = await asyncio.to_thread(load_embedder, settings)
    seconds: dict[str, list[float]] = {"bare": [], "sorted": [], "unsorted": []}
    await embedder.embed_documents(texts[:BATCH])
    for _ in range(ROUNDS):  # in turns: other load slows all of them
        seconds["bare"].append(await _timed(partial(bare, texts)))
        began = time.perf_counter()
        await embedder.embed_documents(texts)
        seconds["sorted"].append(time.perf_counter() - began)
        seconds["unsorted"].append(await _timed(partial(_unsorted, bare, texts)))
    waits = [await _waiting(settings, tokens, texts) for tokens in TOKENS]
    await embedder.aclose()
    best = {name: min(some) for name, some in seconds.items()}
    rates = {name: len(texts) / some for name, some in best.items()}
    indexed = await _indexed()
    return [
        Row(
            f"embedder with its queue against the bare model, {TEXTS} passages",
            f"{rates['sorted']:.1f} against {rates['bare']:.1f} passages/s",
            rates["sorted"] / rates["bare"],
            f"at least {BARE}",
            rates["sorted"] >= BARE * rates["bare"],
        ),
        Row(
            "batches by length against batches as they come",
            f"{rates['sorted']:.1f} against {rates['unsorted']:.1f} passages/s",
            rates["sorted"] / rates["unsorted"],
            f"at least {FLAT:g}",
            rates["sorted"] >= FLAT * rates["unsorted"],
        ),
        Row(
            "indexing without embedding against the embedder",
            f"{indexed:.0f} passages/s from the verdict to both indexes, one process",
            indexed / rates["sorted"],
            "at least 5",
            indexed >= 5 * rates["sorted"],
        ),
        *(_wait_row(wait, waits[-1]) for wait in waits),
    ]


class Wait(NamedTuple):
    """Seconds for a question's vector alone and beside passages, which go at `rate`."""

    tokens: int
    idle: list[float]
    during: list[float]
    rate: float


def _wait_row(wait: Wait, largest: Wait) -> Row:
    idle, during = (statistics.quantiles(some, n=20)[18] for some in (wait.idle, wait.during))
    figures = (
        f"idle p50 {1000 * statistics.median(wait.idle):.0f} / p95 {1000 * idle:.0f}, during p50 "
        f"{1000 * statistics.median(wait.during):.0f} / p95 {1000 * during:.0f} ms; "
        f"{wait.rate:.1f} passages/s, {wait.rate / largest.rate:.2f} of those with {largest.tokens}"
    )
    what = f"a question's vector beside passages, {wait.tokens} tokens a batch, p95"
    return Row(what, figures, during / idle, "said", holds=True)


async def _waiting(settings: EmbedderSettings, tokens: int, texts: Sequence[str]) -> Wait:
    chosen = settings.model_copy(update={"embed_batch_tokens": tokens})
    embedder = await asyncio.to_thread(load_embedder, chosen)
    await embedder.embed_documents(texts[:BATCH])
    idle, during = list[float](), list[float]()
    for _ in range(ASKED):
        await _ask(embedder, idle)
    began = time.perf_counter()
    writing = asyncio.create_task(embedder.embed_documents(texts))
    while not writing.done():
        await _ask(embedder, during)
    await writing
    rate = len(texts) / (time.perf_counter() - began)
    await embedder.aclose()
    return Wait(tokens, idle, during, rate)


async def _ask(embedder: Embedder, seconds: list[float]) -> None:
    began = time.perf_counter()
    await embedder.embed_query("how do I change the keyboard layout")
    seconds.append(time.perf_counter() - began)
    await asyncio.sleep(PAUSE)


def _texts() -> list[str]:
    """From one line to many, in several languages, as they come."""
    material, chance = Material.read(), random.Random(5)
    return [
        " ".join(p.text for p in chance.choices(material.pieces, k=chance.randint(1, 24)))
        for _ in range(TEXTS)
    ]


def _bare(settings: EmbedderSettings) -> Callable[[Sequence[str]], Any]:
    """`encode` of the model itself, which sorts what it is given at once."""
    prepare_torch(settings.torch_threads)
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(ensure_bundled(settings.model_cache)), device="cpu").float()

    def encode(texts: Sequence[str]) -> Any:
        return model.encode(list(texts), batch_size=BATCH, prompt_name="document")

    encode(["warm"] * BATCH)
    return encode


def _unsorted(encode: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> None:
    for first in range(0, len(texts), BATCH):
        encode(texts[first : first + BATCH])


async def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    await asyncio.to_thread(work)
    return time.perf_counter() - began


class Given:
    """Vectors that cost nothing."""

    model_id, dim, max_tokens = "given", 384, 512

    def __init__(self) -> None:
        self._some = np.random.default_rng(1).normal(size=(256, self.dim)).astype(np.float32)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return np.stack([self._some[hash(text) % 256] for text in texts])

    async def embed_query(self, text: str) -> Vector:
        return np.asarray(self._some[0])

    async def aclose(self) -> None:
        """Nothing to free."""


async def _indexed() -> float:
    """Passages a second: cut, words, both indexes, events."""
    with TemporaryDirectory(prefix="kb-bench-") as folder:
        async with rebuild.base(Path(folder)) as made:
            detect("warm")
            given = Index(made.log, made.blobs, Given(), made.index.vectors)
            base = replace(made, index=given)
            await base.ingest(DOCUMENTS)
            return DOCUMENTS * rebuild.SECTIONS / await base.fill(DOCUMENTS)
