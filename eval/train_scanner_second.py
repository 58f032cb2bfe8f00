"""The second steps of the scanner's learned layer: windows judged in their document."""

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.train_scanner_data import LANGUAGES, Doc, Material
from services.scanner.learned.layer import chosen
from services.scanner.learned.model import LONG, Document, Model, SecondStep, with_products

Floats = NDArray[np.float32]

STEPS = ("attacks", "requests")
"""What the second steps look for: orders that only a model could be given, and all others."""

PLANTS, NEAR_PLANTS = 8, 4
"""Orders, and harmless sentences that look like some, put into each honest document in turn."""

NEAR = 0.25
"""Weight in the second step of a sentence that looks like an order and is none: by itself, or where
it does not belong, it is rarer in life than here."""

ALONE = 0.5
"""Weight of an order that is a whole document."""

MOST = 512
"""Windows of a document that are used; as the scanner's default."""

LONGER = range(LONG, 4_096)
"""Windows of the long documents that are put together from others."""

LONG_ONES = 4
"""Long documents of each language."""

LONG_SET = "long"
"""The name of documents that are put together."""

SECOND_C = 0.001
"""Inverse strength of regularisation."""


class Vectors:
    """Vectors of texts by one tuned network."""

    def __init__(self, texts: Sequence[str], found: NDArray[np.float16]) -> None:
        self.texts, self.found = texts, found
        self._rows = {text: row for row, text in enumerate(texts)}

    def of(self, texts: Sequence[str]) -> Floats:
        """Shape (len(texts), dim)."""
        return self.found[[self._rows[t] for t in texts]].astype(np.float32)


def logistic(
    x: Floats, y: Any, weight: Any, strength: float, rounds: int = 400
) -> tuple[Floats, float]:
    """Weights and bias of a logistic regression on standardised columns."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    negative = x[np.asarray(y) == 0]
    mean, scale = negative.mean(0), negative.std(0) + 1e-6
    fitted = LogisticRegression(C=strength, max_iter=rounds)
    with warnings.catch_warnings():
        # A rough one is meant to stop early.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit((x - mean) / scale, y, sample_weight=np.asarray(weight) / np.mean(weight))
    coefficients = fitted.coef_[0] / scale
    return coefficients.astype(np.float32), float(fitted.intercept_[0] - coefficients @ mean)


def as_document(
    model: Model, vectors: Vectors, texts: Sequence[str], alone: Sequence[bool]
) -> tuple[Document, NDArray[np.int64]]:
    """What the scanner reads of these windows, and their numbers."""
    found = vectors.of(texts)
    rows, sample = chosen(model.looks(found), MOST)
    made = Document(
        vectors=found[rows],
        numbers=rows,
        total=len(texts),
        alone=np.asarray(alone)[rows],
        lengths=np.array([len(t) for t in texts])[rows],
        sample=sample,
    )
    return made, rows


def whole(model: Model, vectors: Vectors, doc: Doc) -> Document:
    """A document as it is."""
    return as_document(model, vectors, doc.texts, doc.alone)[0]


def planted(
    model: Model, vectors: Vectors, doc: Doc, planting: Sequence[str], rng: np.random.Generator
) -> tuple[Document, list[int]]:
    """Windows put into a document or an excerpt of it, and their rows, if they are read."""
    texts, alone = doc.texts, doc.alone
    if doc.set != LONG_SET and len(texts) > 2 and (len(texts) > 60 or rng.random() < 0.3):
        size = int(np.exp(rng.uniform(np.log(2), np.log(len(texts)))))
        start = int(rng.integers(0, len(texts) - size + 1))
        texts, alone = texts[start : start + size], alone[start : start + size]
    n = len(texts)
    at = {0: 0, 1: n}.get(int(rng.integers(0, 4)), int(rng.integers(0, n + 1)))
    own_line = [bool(rng.random() < 0.75)] * len(planting)
    made, rows = as_document(
        model, vectors, [*texts[:at], *planting, *texts[at:]], [*alone[:at], *own_line, *alone[at:]]
    )
    return made, np.flatnonzero((rows >= at) & (rows < at + len(planting))).tolist()


def long_ones(docs: Sequence[Doc], rng: np.random.Generator) -> list[Doc]:
    """Long documents of each language, put together from those that are in order."""
    found = []
    for language in LANGUAGES:
        parts = [d for d in docs if d.language == language]
        for number in range(LONG_ONES):
            size = np.exp(rng.uniform(np.log(LONGER.start), np.log(LONGER.stop)))
            made = Doc(LONG_SET, language, f"long-{language}-{number}", 0)
            # A book is of one kind; where there is too little of it, it is several books.
            kinds = rng.permutation(sorted({d.set for d in parts})).tolist()
            for doc in sorted(parts, key=lambda d: kinds.index(d.set)):
                if len(made.texts) < size:
                    made.texts.extend(doc.texts)
                    made.alone.extend(doc.alone)
            found.append(made)
    return found


class Lessons:
    """What a second step learns from: features, labels and weights of candidates."""

    def __init__(self, model: Model, vectors: Vectors, unseen: Material, *, plain: bool) -> None:
        """Documents, orders and sentences that the first step never saw.

        Args:
            model: gives the features.
            vectors: of all windows.
            unseen: what is learned from.
            plain: the orders are requests that any reader could be given, or all others.
        """
        self._model, self._vectors, self._plain = model, vectors, plain
        self.features: list[Floats] = []
        self.labels: list[int] = []
        self.weights: list[float] = []
        self._from_hosts(unseen, np.random.default_rng(0))
        self._from_others(unseen)

    def _harmless(self, document: Document, weight: float = 1.0) -> None:
        """No candidate of the document is an order."""
        self._add(self._model.features(document)[1], 0, weight)

    def _order(self, document: Document, rows: Sequence[int], weight: float = 1.0) -> None:
        """Of these rows the best one is."""
        if rows:
            found = self._model.features(document, rows)[1]
            scores = found[:, : len(self._model.scores)].max(1)
            self._add(found[[int(np.argmax(scores))]], 1, weight)

    def _add(self, found: Floats, label: int, weight: float) -> None:
        self.features.append(found)
        self.labels.extend([label] * len(found))
        self.weights.extend([weight] * len(found))

    def _from_hosts(self, unseen: Material, rng: np.random.Generator) -> None:
        """Honest documents, as they are, with orders and with harmless sentences in them."""
        pools: dict[str, list[Sequence[str]]] = defaultdict(list)
        harmless: dict[str, list[Sequence[str]]] = defaultdict(list)
        for order in unseen.orders:
            if order.source != "bipia-test" and order.plain is self._plain:
                pools[order.language].append(order.texts)
        for doc in unseen.negatives:
            harmless[doc.language].append(doc.texts)

        def some(of: Mapping[str, list[Sequence[str]]], language: str) -> Sequence[str]:
            native = of.get(language) if rng.random() < 0.8 else None
            pool = native or of["en"]
            return pool[int(rng.integers(len(pool)))]

        for doc in (*unseen.docs, *long_ones(unseen.docs, rng)):
            self._harmless(whole(self._model, self._vectors, doc))
            for _ in range(PLANTS):
                wanted = some(pools, doc.language)
                self._order(*planted(self._model, self._vectors, doc, wanted, rng))
            for _ in range(NEAR_PLANTS):
                near = some(harmless, doc.language)
                made = planted(self._model, self._vectors, doc, near, rng)[0]
                self._harmless(made, NEAR)

    def _from_others(self, unseen: Material) -> None:
        """Texts that are an attack or a harmless request and nothing else; found attacks."""
        for doc in unseen.questions:
            self._harmless(whole(self._model, self._vectors, doc))
        for doc in unseen.negatives:
            self._harmless(whole(self._model, self._vectors, doc), NEAR)
        if self._plain:
            return
        for order in unseen.orders:
            if not order.plain and order.source != "bipia-test":
                lone = as_document(
                    self._model, self._vectors, order.texts, [True] * len(order.texts)
                )
                self._order(lone[0], range(len(order.texts)), ALONE)
        for doc in unseen.attacks:
            made = whole(self._model, self._vectors, doc)
            self._order(made, range(len(made.numbers)))


def second_step(lessons: Sequence[Lessons]) -> SecondStep:
    """Learned from these; orders weigh half as much as harmless candidates."""
    x = np.concatenate([f for lesson in lessons for f in lesson.features])
    y = np.array([label for lesson in lessons for label in lesson.labels])
    weight = np.array([w for lesson in lessons for w in lesson.weights], dtype=np.float32)
    weight[y == 1] *= weight[y == 0].sum() / weight[y == 1].sum() / 2
    mean, scale = x.mean(0), x.std(0) + 1e-6
    weights, bias = logistic(with_products((x - mean) / scale), y, weight, SECOND_C)
    return SecondStep(mean, scale, weights, bias, np.zeros((2, len(LANGUAGES)), np.float32))


@dataclass(frozen=True)
class Half:
    """A half of what the first step did not see, and what is learned from it."""

    unseen: Material
    lessons: Mapping[str, Lessons]


def half(model: Model, vectors: Vectors, unseen: Material) -> Half:
    """The lessons of a half."""
    return Half(
        unseen,
        {name: Lessons(model, vectors, unseen, plain=name == "requests") for name in STEPS},
    )


def learned(model: Model, halves: Sequence[Half]) -> Model:
    """The model with its second steps."""
    return replace(
        model,
        steps={name: second_step([h.lessons[name] for h in halves]) for name in STEPS},
    )
