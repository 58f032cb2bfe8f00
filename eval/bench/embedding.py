"""The embedder against the bare model, sorted batches against unsorted, indexing without a model.

All in one process and one run, on real passages of very different lengths.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from eval.bench import rebuild
from eval.bench.report import Row
from eval.bench.seeded import Material
from kernel.embedder import EmbedderSettings, load_embedder
from kernel.embedder.base import Matrix, Vector
from kernel.embedder.bundled import ensure_bundled
from kernel.embedder.threads import prepare_torch
from kernel.language import detect
from services.indexer.index import Index

TEXTS = 64
BATCH = 8
ROUNDS = 3
DOCUMENTS = 40
BARE, FLAT = 0.9, 1.0


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
    ]


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
