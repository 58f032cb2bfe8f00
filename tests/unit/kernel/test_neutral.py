"""Vectors without the directions of their languages."""

import numpy as np
import pytest

from kernel.embedder import EmbedderError, HashedEmbedder
from kernel.embedder.neutral import NeutralEmbedder, bundled_basis

PLAIN = HashedEmbedder(64)


def _directions(count: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    rows = np.random.default_rng(6).normal(size=(64, count))
    return np.asarray(np.linalg.qr(rows)[0].T, np.float32)


async def test_nothing_of_the_directions_is_left_and_the_length_is_one() -> None:
    basis = _directions(3)
    made = NeutralEmbedder(PLAIN, basis)
    passages = await made.embed_documents(["one", "two words"])
    question = await made.embed_query("one")
    for vector in (*passages, question):
        assert np.abs(basis @ vector).max() < 1e-5
        assert np.linalg.norm(vector) == pytest.approx(1)
    assert passages.dtype == np.float32
    assert np.allclose(question, passages[0])


async def test_no_text_gives_no_vector() -> None:
    assert (await NeutralEmbedder(PLAIN, _directions(2)).embed_documents([])).shape == (0, 64)


def test_its_vectors_are_not_those_of_the_plain_model() -> None:
    made = NeutralEmbedder(PLAIN, _directions(2))
    assert made.model_id.startswith(PLAIN.model_id) and made.model_id != PLAIN.model_id
    assert (made.dim, made.max_tokens) == (PLAIN.dim, PLAIN.max_tokens)
    assert made.count_tokens("a b") == PLAIN.count_tokens("a b")


def test_directions_of_another_model_are_refused() -> None:
    with pytest.raises(EmbedderError, match="64"):
        NeutralEmbedder(PLAIN, np.eye(3, 32, dtype=np.float32))


def test_the_directions_that_are_kept_are_orthonormal() -> None:
    basis = bundled_basis()
    assert basis.shape == (9, 384)
    assert np.allclose(basis @ basis.T, np.eye(9), atol=1e-5)
