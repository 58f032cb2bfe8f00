"""Vectors on disk, by model and text: a base is embedded once, however often it is measured."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernel.embedder import Embedder
from kernel.embedder.bundled import default_cache

SLICE = 64
"""Texts that are embedded before their vectors are put down."""
_KEY = 32


class Vectors:
    """Two files for each model that only grow: digests of texts, and vectors in the same order. One
    process at a time."""

    def __init__(self, embedder: Embedder, folder: Path | None = None) -> None:
        self._embedder = embedder
        where = folder or default_cache() / "eval"
        where.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(embedder.model_id.encode()).hexdigest()[:16]
        self._keys, self._rows = where / f"{name}.keys", where / f"{name}.f32"
        self._known = dict(self._read())

    def _read(self) -> Iterable[tuple[bytes, NDArray[np.float32]]]:
        if not self._rows.is_file():
            return
        keys, dim = self._keys.read_bytes(), self._embedder.dim
        data = np.fromfile(self._rows, np.float32)
        whole = min(len(keys) // _KEY, len(data) // dim)  # the last may be half written
        os.truncate(self._keys, whole * _KEY)
        os.truncate(self._rows, whole * dim * data.itemsize)
        for number, row in enumerate(data[: whole * dim].reshape(whole, dim)):
            yield keys[number * _KEY : (number + 1) * _KEY], row

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (texts, dim); new ones are embedded, texts of a length together."""
        keys = [_key("passage", text) for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        ordered = sorted(new.items(), key=lambda item: len(item[1]))
        for first in range(0, len(ordered), SLICE):
            part = ordered[first : first + SLICE]
            self._add(
                [k for k, _ in part], await self._embedder.embed_documents([t for _, t in part])
            )
        return np.stack([self._known[key] for key in keys])

    async def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (texts, dim)."""
        keys = [_key("query", text) for text in texts]
        for key, text in zip(keys, texts, strict=True):
            if key not in self._known:
                self._add([key], [await self._embedder.embed_query(text)])
        return np.stack([self._known[key] for key in keys])

    def _add(self, keys: Sequence[bytes], vectors: Iterable[NDArray[np.float32]]) -> None:
        rows = [np.asarray(v, np.float32) for v in vectors]
        with self._keys.open("ab") as known, self._rows.open("ab") as stored:
            stored.write(np.stack(rows).tobytes())
            stored.flush()
            known.write(b"".join(keys))
        self._known |= dict(zip(keys, rows, strict=True))


def _key(kind: str, text: str) -> bytes:
    return hashlib.sha256(f"{kind}\n{text}".encode()).digest()
