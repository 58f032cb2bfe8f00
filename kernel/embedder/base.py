"""The seam between the product and whatever turns text into vectors."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kernel.errors import KbError

Vector = NDArray[np.float32]
"""Shape (dim,), length 1."""

Matrix = NDArray[np.float32]
"""Shape (n, dim), every row of length 1."""


class EmbedderError(KbError):
    """The embedder cannot work as it is configured; the message says what to do."""


class Embedder(Protocol):
    """Text to unit vectors. Safe to call from several tasks at once."""

    @property
    def model_id(self) -> str:
        """Names model, weights and options: equal ids give interchangeable vectors."""

    @property
    def dim(self) -> int:
        """Length of a vector."""

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that are read, in the unit of `count_tokens`; the rest is cut off."""

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` alone, without the model's prompt and special tokens."""

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Vectors of passages, in the order of `texts`; shape (0, dim) for none.

        Raises:
            kernel.errors.Retry: the model is away for the moment.
            EmbedderError: it will not work without a change of configuration.
        """

    async def embed_query(self, text: str) -> Vector:
        """Vector of a question. Raises as `embed_documents` does."""

    async def aclose(self) -> None:
        """Free threads and connections; the embedder is not used again."""


def unit_rows(vectors: NDArray[np.floating], dim: int) -> Matrix:
    """`vectors` as float32 with rows of length 1.

    Raises:
        EmbedderError: not of shape (n, dim), or with a row that has no direction.
    """
    matrix = np.asarray(vectors, dtype=np.float32)
    if matrix.ndim != 2 or matrix.shape[1] != dim:
        raise EmbedderError(f"expected vectors of {dim} numbers, got shape {matrix.shape}")
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or (norms == 0).any():
        raise EmbedderError("the model returned a vector without a direction (zeros or NaN)")
    return np.asarray(matrix / norms, dtype=np.float32)
