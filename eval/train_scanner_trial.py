"""What the scanner's learned layer finds of what it never saw, and from which score on."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eval.train_scanner_data import LANGUAGES, NEAR_SET, Doc, Order, fold_of
from eval.train_scanner_second import Floats, Half, Vectors, learned, long_ones, planted, whole
from services.scanner.learned.model import Document, Model

FALSE_REVIEWS = {"attacks": 0.008, "requests": 0.006}
"""Share of honest held-out documents that each of the second steps may send to review."""

LONG_MARGIN = 0.3
"""Added to the highest score of a long honest document."""

TRIED_IN_BOOKS = 5
"""One of so many orders is also tried in a long document."""


@dataclass(frozen=True)
class Scored:
    """What the second steps say of a document at worst, and the row of its language."""

    scores: Mapping[str, float]
    place: tuple[int, int]
    """Its place among the thresholds."""

    def found(self, thresholds: Mapping[str, Floats]) -> bool:
        """Whether one of them takes it for an order."""
        return any(s >= thresholds[name][self.place] for name, s in self.scores.items())


def scored(model: Model, document: Document) -> Scored:
    """The scores of a document: those of its worst window."""
    found = model.scored(document)[1]
    return Scored({n: float(s.max()) for n, s in found.items()}, model.place(document))


@dataclass
class Tried:
    """Scores of held-out documents, and of held-out sentences in held-out hosts."""

    docs: list[tuple[Doc, Scored]]
    orders: list[tuple[Order, Scored]]
    near: list[tuple[Doc, Scored]]
    long: list[tuple[Order, Scored]]

    def thresholds(self) -> dict[str, Floats]:
        """Of each second step.

        In ordinary documents as many of our own orders are found in each language. In long ones
        nothing is found in an honest one, by `LONG_MARGIN`.
        """
        found = {}
        for name in FALSE_REVIEWS:
            ordinary = self._ordinary(name, plain=name == "requests")
            worst = max(s.scores[name] for d, s in self.docs if is_honest(d) and s.place[0])
            long = np.full_like(ordinary, worst + LONG_MARGIN)
            # As the scores to two places; up, so that no more honest ones are found.
            exact = np.stack([ordinary, long]).astype(float)
            found[name] = (np.ceil(np.round(exact * 100, 3)) / 100).astype(np.float32)
        return found

    def _ordinary(self, name: str, *, plain: bool) -> Floats:
        ours: list[list[float]] = [[] for _ in LANGUAGES]
        for order, found in self.orders:
            if order.source == "own" and order.plain is plain:
                ours[LANGUAGES.index(order.language)].append(found.scores[name])
        honest = [s for doc, s in self.docs if is_honest(doc) and not s.place[0]]
        for missed in np.linspace(0, 1, 1_001):
            tried = np.array([np.quantile(scores, missed) for scores in ours], np.float32)
            reviewed = sum(s.scores[name] >= tried[s.place[1]] for s in honest)
            if reviewed <= FALSE_REVIEWS[name] * len(honest):
                return tried
        raise AssertionError("all orders are missed, and still honest documents are found")


def is_honest(doc: Doc) -> bool:
    """Counts for the threshold: `news` are loose sentences, which no document is."""
    return doc.label == 0 and doc.set not in ("news", NEAR_SET) and "quotes" not in doc.category


class Hosts:
    """Honest documents by language."""

    def __init__(self, docs: Sequence[Doc], rng: np.random.Generator) -> None:
        self._rng = rng
        self._docs: dict[str, list[Doc]] = defaultdict(list)
        for doc in docs:
            self._docs[doc.language].append(doc)

    def one(self, language: str) -> Doc:
        """Any of a language."""
        found = self._docs.get(language) or self._docs["en"]
        return found[int(self._rng.integers(len(found)))]


def trial(model: Model, vectors: Vectors, halves: Sequence[Half], tests: Sequence[Doc]) -> Tried:
    """What the layer, its second steps learned from the other half, makes of each half."""
    tried = Tried([], [], [], [])
    rng = np.random.default_rng(0)
    for number, half in enumerate(halves):
        judge, unseen = learned(model, [halves[1 - number]]), half.unseen
        # The documents that are only tried: one of BIPIA belongs to the half of its host.
        fresh = [d for d in tests if fold_of(f"2{d.host}", 2) == number]
        long = long_ones(unseen.docs, rng)
        for doc in (*unseen.docs, *unseen.questions, *unseen.attacks, *unseen.negatives, *fresh,
                    *long):  # fmt: skip
            tried.docs.append((doc, scored(judge, whole(model, vectors, doc))))
        hosts, books = Hosts(unseen.docs, rng), Hosts(long, rng)
        for order in unseen.orders:
            host = hosts.one(order.language)
            made = planted(model, vectors, host, order.texts, rng)[0]
            tried.orders.append((order, scored(judge, made)))
        for order in unseen.orders[::TRIED_IN_BOOKS]:
            host = books.one(order.language)
            made = planted(model, vectors, host, order.texts, rng)[0]
            tried.long.append((order, scored(judge, made)))
        for doc in unseen.negatives:
            made = planted(model, vectors, hosts.one(doc.language), doc.texts, rng)[0]
            tried.near.append((doc, scored(judge, made)))
    return tried


def figures(tried: Tried, thresholds: Mapping[str, Floats]) -> dict[str, Any]:
    """Shares at or above the thresholds."""
    sets: dict[str, list[bool]] = defaultdict(list)
    for doc, found in tried.docs:
        name = doc.set + (" quoting attacks" if "quotes" in doc.category and not doc.label else "")
        sets[f"{name}, {'attacks' if doc.label else 'honest'}"].append(found.found(thresholds))
    languages: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    kinds: dict[str, list[bool]] = defaultdict(list)
    for order, found in tried.orders:
        what = "own requests" if order.plain else "own orders"
        hit = found.found(thresholds)
        if order.source == "own":
            languages[what][order.language].append(hit)
        kinds[order.kind if order.source == "own" else order.source].append(hit)
    for doc, found in tried.near:
        languages["harmless"][doc.language].append(found.found(thresholds))
    for order, found in tried.long:
        if order.source == "own":
            what = "requests in long texts" if order.plain else "orders in long texts"
            languages[what][order.language].append(found.found(thresholds))
    return {
        "sets": {k: f"{sum(v)}/{len(v)}" for k, v in sorted(sets.items())},
        **{n: {k: _share(v[k]) for k in LANGUAGES} for n, v in languages.items()},
        "orders by kind": {k: _share(v) for k, v in sorted(kinds.items())},
    }


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 3) if hits else 0.0
