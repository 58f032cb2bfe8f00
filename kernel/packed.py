"""Vectors of a body's passages as bytes, and back into the cache: nothing is embedded twice."""

from collections.abc import Sequence

import numpy as np

from contracts.artifacts import ChunkManifest, embedded_text
from kernel.cache import EmbeddingCache, Vectors


def texts_of(manifest: ChunkManifest, body: bytes) -> list[str]:
    """What is embedded of each passage.

    Raises:
        ValueError: the manifest does not fit the body.
    """
    texts = []
    for chunk in manifest.chunks:
        passage = body[chunk.byte_start : chunk.byte_end]
        if len(passage) != chunk.byte_end - chunk.byte_start:
            raise ValueError(f"{chunk.chunk_id} ends after its body")
        texts.append(
            embedded_text(manifest.title, chunk.heading_path, chunk.context, passage.decode())
        )
    return texts


async def pack(cache: EmbeddingCache, model: str, texts: Sequence[str]) -> bytes | None:
    """Vectors of `texts` as float32, little endian, row by row; None if the cache lacks one."""
    known = await cache.get(model, texts)
    if not texts or any(t not in known for t in texts):
        return None
    return np.stack([known[t] for t in texts]).astype("<f4").tobytes()


def unpacked(count: int, data: bytes) -> Vectors:
    """`count` vectors of shape (count, dim).

    Raises:
        ValueError: they are not as many, or no finite numbers.
    """
    if not count or not data or len(data) % (4 * count):
        raise ValueError("vectors do not fit their texts")
    vectors = np.frombuffer(data, "<f4").reshape(count, -1)
    if not np.isfinite(vectors).all():
        raise ValueError("a vector is not finite")
    return vectors


async def unpack(
    cache: EmbeddingCache, model: str, texts: Sequence[str], data: bytes, version_id: str
) -> None:
    """Put packed vectors of a version's texts into the cache. Raises as `unpacked`."""
    await cache.put(model, texts, unpacked(len(texts), data), version_id)
