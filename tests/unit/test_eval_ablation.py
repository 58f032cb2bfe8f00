"""Search taken apart: what is kept, what is right, and how two legs become one."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eval.ablation.base import Asked, Bench
from eval.ablation.legs import Legs, nearest
from eval.ablation.passages import Passage, Text, passages_of
from eval.ablation.report import auroc, figures, grouped
from eval.ablation.variants import VARIANTS
from eval.ablation.vectors import Vectors
from eval.train_neutral import directions
from kernel.embedder import HashedEmbedder, Matrix


class Counting(HashedEmbedder):
    embedded = 0

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self.embedded += len(texts)
        return await super().embed_documents(texts)


ASKED = (
    Asked("q1", "one", frozenset({1}), "exact", "en"),
    Asked("q2", "two", frozenset({2, 3}), "native", "de", held_out=True),
    Asked("q3", "none", frozenset()),
)


async def test_a_text_is_embedded_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    embedder = Counting(64)
    first = await Vectors(embedder, tmp_path).passages(["b", "a long one", "b"])
    again = await Vectors(embedder, tmp_path).passages(["a long one", "b"])
    assert embedder.embedded == 2
    assert np.array_equal(first[[1, 0]], again)
    assert np.array_equal(first, await embedder.embed_documents(["b", "a long one", "b"]))


async def test_what_a_crash_left_half_written_is_embedded_again(tmp_path: Path) -> None:
    embedder = Counting(64)
    await Vectors(embedder, tmp_path).passages(["a", "b"])
    (stored,) = tmp_path.glob("*.f32")
    stored.write_bytes(stored.read_bytes()[:-9])
    again = await Vectors(embedder, tmp_path).passages(["a", "b"])
    assert np.array_equal(again, await HashedEmbedder(64).embed_documents(["a", "b"]))
    once_more = await Vectors(embedder, tmp_path).passages(["a", "b"])
    assert np.array_equal(again, once_more)


def test_passages_are_those_of_the_line() -> None:
    text = Text(
        "law", "# Act\n\n## Fines\n\nA breach costs ten.\n\n## Courts\n\nThe court decides.\n"
    )
    found = list(passages_of([text], HashedEmbedder()))
    assert [p.heading_path for p in found] == [("Act", "Fines"), ("Act", "Courts")]
    assert found[0].text.startswith("[Act > Fines]\n")
    assert isinstance(found[0], Passage) and found[0].document == "law"


def test_halves_and_what_can_be_answered() -> None:
    bench = Bench("own", (), ASKED)
    assert [a.id for a in bench.half("tuning").asked] == ["q1", "q3"]
    assert [a.id for a in bench.half("held-out").asked] == ["q2"]
    assert [a.id for a in bench.half("all").answerable] == ["q1", "q2"]


def test_candidates_are_all_that_was_ranked() -> None:
    ranked = {"q1": [9, *range(100, 170), 1], "q2": [3]}
    found = figures(ASKED[:2], ranked)
    assert found["candidate recall"].tolist() == [1, 1]
    assert found["R@1"].tolist() == [0, 1]
    assert list(grouped(ASKED[:2], {"x": ranked}, "kind"))[-1] == "| x | 0.00 | 1.00 |"


def test_every_variant_ranks_what_the_legs_brought() -> None:
    dense = [(1, 0.9), (2, 0.5)]
    keyword = {mode: {"q1": [(3, 4.0), (1, 2.0)]} for mode in ("legacy", "or", "and_or")}
    legs = Legs({"q1": dense}, {"q1": dense[::-1]}, keyword, {"q1": {3: 0.4, 1: 0.2}})  # type: ignore[arg-type]
    for variant in VARIANTS.values():
        assert set(variant(legs, ASKED[0])) <= {1, 2, 3}
    assert VARIANTS["hybrid scores"](legs, ASKED[0]) == [1, 3, 2]


def test_nearest_first() -> None:
    (found,) = nearest(np.eye(1, 3, dtype=np.float32), np.eye(3, dtype=np.float32)[::-1])
    assert [n for n, _ in found] == [2, 0, 1]


def test_auroc_counts_ties_half() -> None:
    assert auroc([2, 3], [1]) == 1
    assert auroc([1], [1]) == 0.5
    assert auroc([0], [1]) == 0


def test_directions_span_the_means_and_are_orthonormal() -> None:
    means = np.asarray([[1, 1, 0, 0], [1, -1, 0, 0]], np.float32)
    basis = directions(means)
    assert np.allclose(basis @ basis.T, np.eye(2), atol=1e-6)
    assert np.allclose(means - means @ basis.T @ basis, 0, atol=1e-6)
