"""Windows to vectors, with the real weights."""

from collections.abc import Iterator

import numpy as np
import pytest

from kernel.embedder.base import EmbedderError
from services.scanner.learned import encoder as encoding
from services.scanner.learned.encoder import Encoder, Ids

TEXTS = [
    "The library lends books.",
    "Књига је на столу.",
    "Das Haus ist alt.",
    "x",
    "x",
    "Добар дан!",
]


@pytest.fixture(scope="module")
def loaded() -> Encoder:
    try:
        return Encoder((1, 2))
    except EmbedderError as error:
        pytest.skip(f"THE ENCODER IS NOT TESTED: {error}")


@pytest.fixture
def fresh(loaded: Encoder) -> Iterator[Encoder]:
    loaded._kept.clear()
    loaded._count = 0
    yield loaded


@pytest.fixture
def batches(fresh: Encoder, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Windows of each batch that is computed."""
    seen: list[int] = []
    compute = fresh._batch

    def counted(ids: Ids) -> encoding.Floats:
        seen.append(len(ids))
        return compute(ids)

    monkeypatch.setattr(fresh, "_batch", counted)
    return seen


def test_a_vector_stands_at_the_place_of_its_window(fresh: Encoder) -> None:
    found = fresh.vectors(fresh.tokens(TEXTS))
    assert found.shape == (len(TEXTS), fresh.dim)
    assert np.array_equal(found[3], found[4])
    for text, vector in zip(TEXTS, found, strict=True):
        alone = fresh.vectors(fresh.tokens([text]))[0]
        assert np.allclose(alone, vector, atol=2e-2)


def test_vectors_do_not_depend_on_what_was_read_before(fresh: Encoder) -> None:
    tokens = fresh.tokens(TEXTS)
    first = fresh.vectors(tokens)
    fresh._kept.clear()
    fresh.vectors(fresh.tokens([t + " Again." for t in TEXTS] + TEXTS[:2]))
    assert np.array_equal(fresh.vectors(tokens), first)
    assert np.array_equal(fresh.vectors(tokens[::-1]), first[::-1])


def test_what_was_just_read_is_not_read_again(fresh: Encoder, batches: list[int]) -> None:
    tokens = fresh.tokens(TEXTS)
    fresh.vectors(tokens)
    assert sum(batches) == len(set(TEXTS))
    fresh.vectors(tokens)
    assert sum(batches) == len(set(TEXTS))


def test_what_is_kept_has_an_end(
    fresh: Encoder, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "KEPT_WINDOWS", 3)
    for number in range(12):
        fresh.vectors(fresh.tokens([f"Line {number} of the list"]))
    assert sum(map(len, fresh._kept.values())) == fresh._count == 3
    read = len(batches)
    fresh.vectors(fresh.tokens(["Line 11 of the list"]))
    assert len(batches) == read
    fresh.vectors(fresh.tokens(["Line 1 of the list"]))
    assert len(batches) == read + 1
