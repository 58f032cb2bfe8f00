"""Caches that make work not happen twice. Losing them costs time, never truth."""

import hashlib
from collections.abc import Sequence
from typing import Any

import asyncpg
import numpy as np
from numpy.typing import NDArray

from kernel.db import queries

Vectors = NDArray[np.float32]


class ParseCache:
    """`(source bytes, parser, options) → parsed blob`: the same bytes are never parsed twice."""

    def __init__(self, pool: "asyncpg.Pool[Any]") -> None:
        self._pool, self._sql = pool, queries("kernel.sql", "cache")

    async def get(self, source_id: str, parser: str, options: str) -> str | None:
        """Name of the `ParsedDocument` blob, or None."""
        found = await self._sql.get_parse(
            self._pool, source_id=source_id, parser=parser, options=options
        )
        return None if found is None else str(found)

    async def put(self, source_id: str, parser: str, options: str, parsed_sha256: str) -> None:
        """Remember a parse."""
        await self._sql.put_parse(
            self._pool,
            source_id=source_id,
            parser=parser,
            options=options,
            parsed_sha256=parsed_sha256,
        )

    async def drop(self, source_id: str) -> list[str]:
        """Forget all parses of these bytes; returns the names of their blobs."""
        rows = self._sql.drop_parse(self._pool, source_id=source_id)
        return [r["parsed_sha256"] async for r in rows]


class EmbeddingCache:
    """`(embedder, text) → vector`: a text is embedded once by a model, wherever it stands."""

    def __init__(self, pool: "asyncpg.Pool[Any]") -> None:
        self._pool, self._sql = pool, queries("kernel.sql", "cache")

    async def get(self, embedder: str, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors that are known, by text; each of shape (dim,)."""
        by_hash = {hashlib.sha256(t.encode()).digest(): t for t in texts}
        rows = self._sql.get_embeddings(self._pool, embedder=embedder, text_sha256s=list(by_hash))
        return {
            by_hash[bytes(r["text_sha256"])]: np.frombuffer(r["vector"], "<f4") async for r in rows
        }

    async def put(
        self,
        embedder: str,
        texts: Sequence[str],
        vectors: Vectors,
        version_id: str | None = None,
    ) -> None:
        """Remember vectors of shape (len(texts), dim).

        `version_id`: whose texts they are, so that an erasure finds those of a version that was
        never indexed too.
        """
        await self._sql.put_embeddings(
            self._pool,
            embedder=embedder,
            version_id=version_id,
            text_sha256s=[hashlib.sha256(t.encode()).digest() for t in texts],
            vectors=[v.astype("<f4").tobytes() for v in vectors],
        )
