"""The language of a text taken out of its vector: what is left compares across languages.

Vectors of e5 hold what a text says and, in a few directions, which language it is in; the nearest
passages are therefore those of the question's language, right or not. Those directions are spanned
by the mean vectors of each language over general text (`eval/train_neutral.py`).
Nothing depends on the base, so passages that come later are treated as those before.
"""

from collections.abc import Sequence
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from kernel.embedder.base import Embedder, EmbedderError, Matrix, Vector, unit_rows

VERSION = "neutral-1"
"""Part of the model id: changes when other directions are taken out."""


class NeutralEmbedder:
    """`embedder` without the directions that are the rows of `basis`, which are orthonormal."""

    def __init__(self, embedder: Embedder, basis: NDArray[np.float32]) -> None:
        if basis.shape[1] != embedder.dim:
            raise EmbedderError(
                f"directions of {basis.shape[1]} numbers, vectors of {embedder.dim}"
            )
        self._embedder, self._basis = embedder, basis

    @property
    def model_id(self) -> str:
        return f"{self._embedder.model_id}+{VERSION}"

    @property
    def dim(self) -> int:
        return self._embedder.dim

    @property
    def max_tokens(self) -> int:
        return self._embedder.max_tokens

    def count_tokens(self, text: str) -> int:
        return self._embedder.count_tokens(text)

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._without(await self._embedder.embed_documents(texts))

    async def embed_query(self, text: str) -> Vector:
        vector: Vector = self._without((await self._embedder.embed_query(text))[None])[0]
        return vector

    async def aclose(self) -> None:
        await self._embedder.aclose()

    def _without(self, vectors: Matrix) -> Matrix:
        return without_directions(vectors, self._basis)


def without_directions(vectors: Matrix, basis: NDArray[np.float32]) -> Matrix:
    """Rows of length 1 in which nothing of the rows of `basis` is left."""
    return unit_rows(vectors - (vectors @ basis.T) @ basis, vectors.shape[1])


@cache
def bundled_basis() -> NDArray[np.float32]:
    """The directions of the bundled model's languages, shape (directions, dim)."""
    with resources.files("kernel.embedder").joinpath("languages.npz").open("rb") as file:
        basis: NDArray[np.float32] = np.load(file)["basis"]
    return basis
