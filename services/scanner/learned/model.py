"""The trained numbers, and what they make of the windows of one document. Pure numpy.

Two steps. First each window gets two scores from its vector alone: how much it reads like words
about the reader's own answer or action, and how much like any request or question. Then the best
few windows are judged in their document: an order that was put there stands out by its subject and
by its mood, the questions of a list of questions do not.
"""

import hashlib
import io
import json
from collections.abc import Sequence
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
"""Windows that are judged in their document, by each of the two scores."""

NEAR = 1.5
"""Windows whose score is less than this below the best one's are like it."""

NOTHING = -6.0
"""A score where there is no window."""

FEATURES = (
    "answer", "request", "off-topic", "mean answer", "mean request", "next best", "alike",
    "neighbour", "windows", "alone", "length", "first", "last", "tiny",
)  # fmt: skip


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

    scores: (2, dim) and bias (2,); places: (languages, topic), mean vectors of honest text;
    mean, scale: (features,) of the second step; weights: (features + their products), bias;
    gate: (topic,) direction for the mean of word vectors.
    """

    scores: Floats
    scores_bias: Floats
    places: Floats
    mean: Floats
    scale: Floats
    weights: Floats
    bias: float
    gate: Floats
    threshold: float

    def window_scores(self, vectors: Floats) -> Floats:
        """Shape (m, 2): about the answer, a request."""
        found: Floats = vectors @ self.scores.T + self.scores_bias
        return found

    def judge(self, document: Document) -> list[tuple[int, float]]:
        """(row, score) of the candidates of a document, by row; an order from `threshold` on."""
        rows, features = self.features(document)
        return list(zip(rows.tolist(), self.judged(features).tolist(), strict=True))

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
        topic = vectors[:, -self.places.shape[1] :]
        distance = (self.places**2).sum(1) - 2 * (topic @ self.places.T)
        own = topic - self.places[np.argmin(distance, axis=1)]
        unit: Floats = own / (np.linalg.norm(own, axis=1, keepdims=True) + np.float32(1e-9))
        return unit


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
        scores[rows, 0],
        scores[rows, 1],
        off,
        means[:, 0],
        means[:, 1],
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
    return unpacked(data, float(manifest()["threshold"]))


def unpacked(data: bytes, threshold: float) -> Model:
    """A model from the bytes of `packed`."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        found = {name: arrays[name].astype(np.float32) for name in arrays.files}
    return Model(**(found | {"bias": float(found["bias"])}), threshold=threshold)


def packed(model: Model) -> bytes:
    """The weights in half precision, as they are shipped; equal models give equal bytes."""
    buffer = io.BytesIO()
    names = ("scores", "scores_bias", "places", "mean", "scale", "weights", "bias", "gate")
    arrays = {name: np.asarray(getattr(model, name), dtype=np.float32) for name in names}
    arrays |= {name: arrays[name].astype(np.float16) for name in ("scores", "places", "gate")}
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()
