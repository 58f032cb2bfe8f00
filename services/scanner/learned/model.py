"""The trained numbers, and what they make of the windows of one document. Pure numpy.

It works in two steps. First each window gets scores from its vector alone: how much it reads like
an order to a model, and how much like any request or question. Then the best few windows are judged
in their document, twice: as an attack, which is one nearly everywhere, and as a request, which is
one only where it stands out by its subject and by its mood. The questions of a list of questions do
not.
"""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.scanner.learned.encoder import Adapter
from services.scanner.learned.windows import LONGEST

Floats = NDArray[np.float32]

FOLDER = Path(__file__).parent
WEIGHTS, MANIFEST = FOLDER / "model.npz", FOLDER / "model.json"

CANDIDATES = 3
"""Windows that are judged in their document, by each of the scores."""

NEAR = 1.5
"""Windows whose score is less than this below the best one's are like it."""

NOTHING = -6.0
"""A score where there is no window."""

LIKE_ONE = -1.0
"""What a window's better score must be: being off the subject is no order."""

FEW = 6
"""Windows; in a document of no more every sentence is off the subject, so that an attack must read
like an order by itself."""

CLEARLY_TUNED, CLEARLY_UNTUNED = 5.5, 1.0
"""What one of its scores must then be, by the tuned layers or by the others."""

BY_ITSELF = ("attacks",)
"""The second steps for which it must."""

LONG = 512
"""Windows; a document of more has thresholds of its own."""

MARKS = (
    "off-topic", "next best", "alike", "neighbour", "windows", "alone", "length", "first", "last",
    "tiny",
)  # fmt: skip
"""What the second step knows of a window besides its scores and the means of all the others."""


@dataclass(frozen=True)
class Document:
    """The windows of a document that were encoded, in order.

    vectors: shape (m, dim); numbers: their places among all `total` windows, from 0; alone: fills
    its line or cell; lengths: characters; sample: belongs to those that stand for the document.
    """

    vectors: Floats
    numbers: NDArray[np.int64]
    total: int
    alone: NDArray[np.bool_]
    lengths: NDArray[np.int64]
    sample: NDArray[np.bool_]


@dataclass(frozen=True)
class SecondStep:
    """Judges candidates by their features.

    mean, scale: (features,); weights: (features + their products); thresholds: (2, languages), the
    log-odds from which a candidate is an order, in documents up to `LONG` and in longer ones, by
    the row of `Model.places` that the document is nearest to.
    """

    mean: Floats
    scale: Floats
    weights: Floats
    bias: float
    thresholds: Floats

    def judged(self, features: Floats) -> Floats:
        """Log-odds, rounded so that the last bits of a float decide nothing."""
        x = with_products((features - self.mean) / self.scale)
        found: Floats = np.round(x @ self.weights + np.float32(self.bias), 2)
        return found


@dataclass(frozen=True)
class Model:
    """Weights of both steps.

    adapter: what is added to the embedder's weights; scores: (k, dim) and bias (k,); places:
    (languages, topic), mean vectors of honest text; topic: where in a vector their part begins;
    untuned: length of the first part of a vector, which the adapter does not change; steps: by
    what they look for; gate: (words,) direction for the mean of word vectors.
    """

    adapter: Adapter
    scores: Floats
    scores_bias: Floats
    places: Floats
    gate: Floats
    topic: int
    untuned: int
    steps: Mapping[str, SecondStep]

    def window_scores(self, vectors: Floats) -> Floats:
        """Shape (m, k): log-odds."""
        found: Floats = vectors @ self.scores.T + self.scores_bias
        return found

    def looks(self, vectors: Floats) -> Floats:
        """The better of the scores that the untuned parts of vectors give, shape (m,)."""
        rows = ~self.scores[:, self.untuned :].any(axis=1)
        found = (
            vectors[:, : self.untuned] @ self.scores[rows, : self.untuned].T
            + self.scores_bias[rows]
        )
        best: Floats = np.round(found.max(axis=1), 2)
        return best

    def judge(self, document: Document) -> list[tuple[int, float]]:
        """(row, margin) of the candidates of a document, by row; an order from 0 on."""
        rows, scored = self.scored(document)
        place = self.place(document)
        margins = [scored[name] - step.thresholds[place] for name, step in self.steps.items()]
        return list(zip(rows.tolist(), np.max(margins, axis=0).tolist(), strict=True))

    def scored(self, document: Document) -> tuple[NDArray[np.int64], dict[str, Floats]]:
        """Rows of the candidates, and their scores by each second step."""
        rows, features = self.features(document)
        own = features[:, : len(self.scores)]
        like = (own >= LIKE_ONE).any(axis=1)
        tuned = self.scores[:, self.untuned :].any(axis=1)
        clear = (own >= np.where(tuned, CLEARLY_TUNED, CLEARLY_UNTUNED)).any(axis=1)
        few = document.total <= FEW
        return rows, {
            name: np.where(
                clear if few and name in BY_ITSELF else like,
                step.judged(features),
                np.float32(NOTHING),
            )
            for name, step in self.steps.items()
        }

    def place(self, document: Document) -> tuple[int, int]:
        """Where among the thresholds those of the document are."""
        return int(document.total > LONG), self.language(document)

    def language(self, document: Document) -> int:
        """The row of `places` that the document as a whole is nearest to."""
        return int(self.languages(document.vectors[document.sample].mean(0, keepdims=True))[0])

    def features(
        self, document: Document, rows: Sequence[int] | None = None
    ) -> tuple[NDArray[np.int64], Floats]:
        """What the second step knows of the candidates (or of `rows`): (rows, (n, features))."""
        scores = self.window_scores(document.vectors)
        chosen = candidates(scores) if rows is None else np.asarray(rows, dtype=np.int64)
        return chosen, _features(document, scores, self.topics(document.vectors), chosen)

    def topics(self, vectors: Floats) -> Floats:
        """What the windows are about, their language taken away: unit vectors."""
        own = self._topic(vectors) - self.places[self.languages(vectors)]
        unit: Floats = own / (np.linalg.norm(own, axis=1, keepdims=True) + np.float32(1e-9))
        return unit

    def _topic(self, vectors: Floats) -> Floats:
        return vectors[:, self.topic : self.topic + self.places.shape[1]]

    def languages(self, vectors: Floats) -> NDArray[np.int64]:
        """The row of `places` that each window is nearest to."""
        topic = self._topic(vectors)
        distance = (self.places**2).sum(1) - 2 * (topic @ self.places.T)
        found: NDArray[np.int64] = np.argmin(distance, axis=1)
        return found


def with_products(x: Floats) -> Floats:
    """Shape (n, features) to (n, features + their products): what a second step weighs."""
    left, right = np.triu_indices(x.shape[1])
    found: Floats = np.concatenate([x, x[:, left] * x[:, right]], axis=1)
    return found


def candidates(scores: Floats) -> NDArray[np.int64]:
    """The rows that are worth the second step, in order."""
    order = np.argsort(-scores, axis=0, kind="stable")[:CANDIDATES]
    return np.unique(order)


def _features(
    document: Document, scores: Floats, topics: Floats, rows: NDArray[np.int64]
) -> Floats:
    best = scores.max(axis=1)
    ranked = np.sort(best)[::-1]
    counted = document.sample[rows]
    rest = document.sample.sum() - counted
    sums = scores[document.sample].sum(0) - scores[rows] * counted[:, None]
    means = np.where(rest[:, None] > 0, sums / np.maximum(rest, 1)[:, None], -4.0)
    others = topics[document.sample].sum(0) - topics[rows] * counted[:, None]
    length = np.linalg.norm(others, axis=1)
    off = np.where(rest > 0, 1 - (topics[rows] * others).sum(1) / np.maximum(length, 1e-9), 1.0)
    second = ranked[1] if len(ranked) > 1 else NOTHING
    found = [
        *scores[rows].T,
        off,
        *means.T,
        np.where(best[rows] >= ranked[0], second, ranked[0]),
        np.log1p([(best > best[row] - NEAR).sum() - 1 for row in rows]),
        [_neighbour(document.numbers, best, row) for row in rows],
        np.full(len(rows), np.log(document.total)),
        document.alone[rows],
        np.log(np.minimum(document.lengths[rows], LONGEST) + 5),
        document.numbers[rows] == 0,
        document.numbers[rows] == document.total - 1,
        np.full(len(rows), document.total <= 2),
    ]
    return np.stack([np.asarray(column, dtype=np.float32) for column in found], axis=1)


def _neighbour(numbers: NDArray[np.int64], best: Floats, row: int) -> float:
    """The better score of the windows right before and after."""
    beside = [
        float(best[other])
        for other in (row - 1, row + 1)
        if 0 <= other < len(numbers) and abs(int(numbers[other] - numbers[row])) == 1
    ]
    return max(beside, default=NOTHING)


class DamagedModelError(Exception):
    """The weights are not those that the manifest names."""


@cache
def manifest() -> dict[str, Any]:
    """What is known of the weights: embedder, threshold, training sets, figures."""
    found: dict[str, Any] = json.loads(MANIFEST.read_text("utf-8"))
    return found


@cache
def shipped() -> Model:
    """The weights beside this file.

    Raises:
        DamagedModelError: they are not those of the manifest.
    """
    data = WEIGHTS.read_bytes()
    if hashlib.sha256(data).hexdigest() != manifest()["sha256"]:
        raise DamagedModelError(f"{WEIGHTS.name} is not the file that {MANIFEST.name} names")
    return unpacked(data)


def width(scores: int) -> int:
    """How many features a model with so many scores has."""
    return 2 * scores + len(MARKS)


_HALVES = ("scores", "places", "gate")
_SINGLES = ("scores_bias",)
_NUMBERS = ("topic", "untuned")
_OF_STEP = ("mean", "scale", "weights", "bias", "thresholds")


def unpacked(data: bytes) -> Model:
    """The model from the bytes of `packed`."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        found = {name: arrays[name].astype(np.float32) for name in (*_HALVES, *_SINGLES)}
        topic, untuned = (int(arrays[name]) for name in _NUMBERS)
        adapter = {
            part: (arrays[f"{part}.down"].astype("f4"), arrays[f"{part}.up"].astype("f4"))
            for part in (n.removesuffix(".down") for n in arrays.files if n.endswith(".down"))
        }
        steps = {}
        for name in arrays["steps"].tolist():
            parts = {part: arrays[f"{name}.{part}"] for part in _OF_STEP}
            steps[name] = SecondStep(**parts | {"bias": float(parts["bias"])})
    return Model(adapter=adapter, steps=steps, **found, topic=topic, untuned=untuned)


def packed(model: Model) -> bytes:
    """The weights, mostly in half precision; equal models give equal bytes."""
    arrays = {
        name: np.asarray(getattr(model, name), np.float16 if name in _HALVES else np.float32)
        for name in (*_HALVES, *_SINGLES)
    }
    arrays |= {name: np.asarray(getattr(model, name)) for name in _NUMBERS}
    arrays["steps"] = np.array(list(model.steps), dtype=np.str_)
    for name, step in model.steps.items():
        arrays |= {
            f"{name}.{part}": np.asarray(getattr(step, part), np.float32) for part in _OF_STEP
        }
    for part, (down, up) in model.adapter.items():
        arrays |= {f"{part}.down": down.astype(np.float16), f"{part}.up": up.astype(np.float16)}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()
