"""The trained numbers, and what they make of the windows of one document. Pure numpy.

Two models look at every document, each in two steps. First each window gets scores from its vector
alone: how much it reads like words about the reader's own answer or action, how much like any
request or question, and in the second model also how much like an attack on the reader's own
orders. Then the best few windows are judged in their document: an order that was put there stands
out by its subject and by its mood, the questions of a list of questions do not.
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

LIKE_ONE, CLEARLY_ONE = -1.0, 4.0
"""What a window's own best score must be, and what in a document of two windows; between them in
one of three to six. Being off the subject is no order; beside little else every sentence is."""

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
class Model:
    """Weights of both steps.

    scores: (k, dim) and bias (k,); places: (languages, topic), mean vectors of honest text;
    mean, scale: (features,) of the second step; weights: (features + their products), bias;
    shifts: (languages,), what is added to its result;
    gate: (topic,) direction for the mean of word vectors.
    """

    scores: Floats
    scores_bias: Floats
    places: Floats
    shifts: Floats
    mean: Floats
    scale: Floats
    weights: Floats
    bias: float
    gate: Floats
    threshold: float

    def window_scores(self, vectors: Floats) -> Floats:
        """Shape (m, k): about the answer, a request, in the second model an attack on orders."""
        found: Floats = vectors @ self.scores.T + self.scores_bias
        return found

    def judge(self, document: Document) -> list[tuple[int, float]]:
        """(row, score) of the candidates of a document, by row; an order from `threshold` on."""
        rows, features = self.features(document)
        own = features[:, : len(self.scores)].max(axis=1)
        enough = own >= np.clip(6.0 - document.total, LIKE_ONE, CLEARLY_ONE)
        found = np.round(self.judged(features) + self.shifts[self.language(document)], 2)
        found = np.where(enough, found, np.float32(NOTHING))
        return list(zip(rows.tolist(), found.tolist(), strict=True))

    def language(self, document: Document) -> int:
        """The row of `places` that the document as a whole is nearest to."""
        return int(self.languages(document.vectors[document.sample].mean(0, keepdims=True))[0])

    def judged(self, features: Floats) -> Floats:
        """Log-odds, rounded so that the last bits of a float decide nothing."""
        x = (features - self.mean) / self.scale
        left, right = np.triu_indices(x.shape[1])
        expanded = np.concatenate([x, x[:, left] * x[:, right]], axis=1)
        found: Floats = np.round(expanded @ self.weights + np.float32(self.bias), 2)
        return found

    def features(
        self, document: Document, rows: Sequence[int] | None = None
    ) -> tuple[NDArray[np.int64], Floats]:
        """What the second step knows of the candidates (or of `rows`): (rows, (n, features))."""
        scores = self.window_scores(document.vectors)
        chosen = candidates(scores) if rows is None else np.asarray(rows, dtype=np.int64)
        return chosen, _features(document, scores, self.topics(document.vectors), chosen)

    def topics(self, vectors: Floats) -> Floats:
        """What the windows are about, their language taken away: unit vectors."""
        own = vectors[:, -self.places.shape[1] :] - self.places[self.languages(vectors)]
        unit: Floats = own / (np.linalg.norm(own, axis=1, keepdims=True) + np.float32(1e-9))
        return unit

    def languages(self, vectors: Floats) -> NDArray[np.int64]:
        """The row of `places` that each window is nearest to."""
        topic = vectors[:, -self.places.shape[1] :]
        distance = (self.places**2).sum(1) - 2 * (topic @ self.places.T)
        found: NDArray[np.int64] = np.argmin(distance, axis=1)
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
def shipped() -> tuple[Model, ...]:
    """The weights beside this file.

    Raises:
        DamagedModelError: they are not those of the manifest.
    """
    data = WEIGHTS.read_bytes()
    if hashlib.sha256(data).hexdigest() != manifest()["sha256"]:
        raise DamagedModelError(f"{WEIGHTS.name} is not the file that {MANIFEST.name} names")
    return tuple(unpacked(data, manifest()["thresholds"]).values())


def width(scores: int) -> int:
    """How many features a model with so many scores has."""
    return 2 * scores + len(MARKS)


_HALVES = ("scores", "places", "gate")
_SINGLES = ("scores_bias", "shifts", "mean", "scale", "weights", "bias")


def unpacked(data: bytes, thresholds: Mapping[str, float]) -> dict[str, Model]:
    """Models from the bytes of `packed`, in the order of the thresholds."""
    models = {}
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        for name, threshold in thresholds.items():
            found = {k: arrays[f"{name}.{k}"].astype(np.float32) for k in (*_HALVES, *_SINGLES)}
            bias = float(found.pop("bias"))
            models[name] = Model(**found, bias=bias, threshold=float(threshold))
    return models


def packed(models: Mapping[str, Model]) -> bytes:
    """The weights, mostly in half precision; equal models give equal bytes."""
    arrays = {
        f"{name}.{key}": np.asarray(getattr(model, key), np.float16 if key in _HALVES else "f4")
        for name, model in models.items()
        for key in (*_HALVES, *_SINGLES)
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()
