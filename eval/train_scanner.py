"""Trains the scanner's learned layer.

`python -m eval.train_scanner [--try] [--only orders|attacks] [--cache FILE] [DATA]` prints figures
on held-out halves (the attacks' categories, the own orders' groups and the host documents of a half
are all unseen), then trains on everything and writes `model.npz` and `model.json` of
`services/scanner/learned`. `--try` prints only; `--only` leaves the other model as it is. The same
vectors give the same bytes on the same machine; they are kept in `--cache`.
"""

import hashlib
import json
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval.train_scanner_data import (
    ATTACKS,
    DATA,
    LANGUAGES,
    SOURCES,
    Doc,
    Order,
    bipia,
    document,
    fold_of,
    honest,
    labelled,
    orders,
    own,
)
from services.scanner.learned.encoder import Encoder
from services.scanner.learned.model import (
    MANIFEST,
    WEIGHTS,
    Document,
    Model,
    packed,
    shipped,
    width,
)

Floats = NDArray[np.float32]

LAYERS = (2, 4)
TOPIC = 384
"""The last layer's part of a vector says what a window is about."""

INNER = 5
"""Folds by which the second step sees scores of windows that the first was not trained on."""

FIRST_C, SECOND_C, GATE_C = 0.02, 0.01, 0.1
"""Inverse strengths of regularisation."""

PLANTS = 4
"""Orders put into each honest document in turn."""

ASPECTS = {"orders": ("answer", "request"), "attacks": ("answer", "request", "attack")}
"""The two models, and what their scores of a window are about."""

ALONE = 0.5
"""Weight of an order that is a whole document."""

MOST = 512
"""Windows of a document that are used; as the scanner's default."""

FALSE_REVIEW = {"orders": 0.008, "attacks": 0.004}
"""Share of honest held-out documents that each model may send to review; some send the same."""


class Vectors:
    """Vectors by text, computed once."""

    def __init__(self, encoder: Encoder, cache: Path | None) -> None:
        self._encoder, self._cache = encoder, cache
        self._rows: dict[str, int] = {}
        self.all: NDArray[np.float16] = np.empty((0, encoder.dim), np.float16)
        if cache and cache.exists():
            with np.load(cache, allow_pickle=False) as kept:
                if str(kept["model"]) == encoder.model_id:
                    self.all = kept["vectors"]
                    self._rows = {t: i for i, t in enumerate(json.loads(str(kept["texts"])))}

    def add(self, texts: Sequence[str]) -> None:
        """Make sure of the vectors of these texts."""
        new = list(dict.fromkeys(t for t in texts if t not in self._rows))
        for start in range(0, len(new), 4_096):
            part = new[start : start + 4_096]
            found = self._encoder.vectors(self._encoder.tokens(part)).astype(np.float16)
            self._rows |= {t: len(self.all) + i for i, t in enumerate(part)}
            self.all = np.concatenate([self.all, found])
            print(f"  {start + len(part)} of {len(new)} windows read", file=sys.stderr, flush=True)
        if new and self._cache:
            np.savez(
                self._cache, model=self._encoder.model_id, vectors=self.all,
                texts=json.dumps(list(self._rows)),
            )  # fmt: skip

    def of(self, texts: Sequence[str]) -> Floats:
        """Shape (len(texts), dim)."""
        return self.all[[self._rows[t] for t in texts]].astype(np.float32)


@dataclass(frozen=True)
class Material:
    """What a model is trained on."""

    docs: Sequence[Doc]
    orders: Sequence[Order]
    negatives: Sequence[dict[str, Any]]
    questions: Sequence[Doc]
    """Harmless single requests, which are no orders where they are the whole document."""
    attacks: Sequence[Doc]
    """Documents with an attack in one of their windows, which is not known."""
    aspects: Sequence[str]
    """What the scores are about."""


def places(vectors: Vectors, docs: Sequence[Doc], rows: Sequence[dict[str, Any]]) -> Floats:
    """Mean topic vector of honest text in each language."""
    found = []
    for language in LANGUAGES:
        means = [
            vectors.of(d.texts[:60])[:, -TOPIC:].mean(0)
            for d in docs
            if d.language == language and d.set not in ("web", "docling")
        ]
        means.append(
            vectors.of([t for r in rows if r["language"] == language for t in r["texts"]])[
                :, -TOPIC:
            ].mean(0)
        )
        found.append(np.mean(means, axis=0))
    return np.asarray(found, dtype=np.float32)


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


def first_step(vectors: Vectors, material: Material) -> tuple[Floats, Floats]:
    """Directions and biases, one for each of the aspects."""
    texts = {t for d in material.docs for t in _some(d, 80)}
    plain = vectors.of(sorted(texts))
    near = vectors.of([t for r in material.negatives for t in r["texts"]])
    honest_vectors = np.concatenate([plain, near])
    weight = np.concatenate([np.ones(len(plain)), np.full(len(near), 5.0)])

    def direction(wanted: Sequence[str], rounds: int = 400) -> tuple[Floats, float]:
        x = np.concatenate([vectors.of(wanted), honest_vectors])
        y = np.concatenate([np.ones(len(wanted)), np.zeros(len(honest_vectors))])
        ours = np.full(len(wanted), weight.sum() / len(wanted) / 3)
        return logistic(x, y, np.concatenate([ours, weight]), FIRST_C, rounds)

    found = []
    for aspect in material.aspects:
        orders = [o.texts for o in material.orders if aspect in o.aspects]
        if aspect == "attack":
            # Of several windows only one may be the attack: which one, a rough model says.
            rough, _ = direction([t[0] for t in orders if len(t) == 1], 40)
            orders += [tuple(d.texts) for d in material.attacks]
            orders = [(t[int(np.argmax(vectors.of(t) @ rough))],) for t in orders]
        found.append(direction([t for texts in orders for t in texts]))
    return np.stack([w for w, _ in found]), np.array([b for _, b in found], dtype=np.float32)


def shifts(vectors: Vectors, parts: Sequence[tuple[Model, Material]], material: Material) -> Floats:
    """What is added to a score in each language, shape (languages,).

    With it the same own orders, unseen by the first step, in the same own documents have the same
    mean score in all languages.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for model, unseen in parts:
        for order, score in _orders_tried(vectors, model, replace(unseen, docs=material.docs)):
            scores[order.language].append(score)
    means = np.array([np.mean(scores[language]) for language in LANGUAGES])
    found: Floats = (means.mean() - means).astype(np.float32)
    return found


def _some(doc: Doc, most: int) -> list[str]:
    """Windows of a document at even distances."""
    if len(doc.texts) <= most:
        return doc.texts
    return [doc.texts[i] for i in np.linspace(0, len(doc.texts) - 1, most).astype(int)]


def as_document(vectors: Vectors, texts: Sequence[str], alone: Sequence[bool]) -> Document:
    """Windows as the second step sees them: of a long document some stand for all."""
    sample = np.ones(len(texts), dtype=np.bool_)
    if len(texts) > MOST:
        sample[:] = False
        sample[np.linspace(0, len(texts) - 1, MOST // 2).round().astype(int)] = True
    return Document(
        vectors=vectors.of(texts),
        numbers=np.arange(len(texts)),
        total=len(texts),
        alone=np.asarray(alone),
        lengths=np.array([len(t) for t in texts]),
        sample=sample,
    )


def whole(vectors: Vectors, doc: Doc) -> Document:
    """A document as it is."""
    return as_document(vectors, doc.texts, doc.alone)


def planted(
    vectors: Vectors, doc: Doc, order: Order, rng: np.random.Generator
) -> tuple[Document, list[int]]:
    """An order in a document or an excerpt of it, and its rows."""
    texts, alone = doc.texts, doc.alone
    if len(texts) > 2 and (len(texts) > 60 or rng.random() < 0.3):
        size = int(np.exp(rng.uniform(np.log(2), np.log(len(texts)))))
        start = int(rng.integers(0, len(texts) - size + 1))
        texts, alone = texts[start : start + size], alone[start : start + size]
    n = len(texts)
    at = {0: 0, 1: n}.get(int(rng.integers(0, 4)), int(rng.integers(0, n + 1)))
    own_line = [bool(rng.random() < 0.75)] * len(order.texts)
    made = as_document(
        vectors, [*texts[:at], *order.texts, *texts[at:]], [*alone[:at], *own_line, *alone[at:]]
    )
    return made, list(range(at, at + len(order.texts)))


class Lessons:
    """What the second step learns from: features, labels and weights of candidates."""

    def __init__(self, vectors: Vectors, parts: Sequence[tuple[Model, Material]]) -> None:
        self.parts = parts
        self._vectors = vectors
        self._features: list[Floats] = []
        self._labels: list[int] = []
        self._weights: list[float] = []

    def harmless(self, model: Model, document: Document) -> None:
        """No candidate of the document is an order."""
        self._add(model.features(document)[1], 0, 1.0)

    def order(
        self, model: Model, document: Document, rows: Sequence[int], weight: float = 1.0
    ) -> None:
        """Of these rows the best one is."""
        found = model.features(document, rows)[1]
        scores = found[:, : len(model.scores)].max(1)
        self._add(found[[int(np.argmax(scores))]], 1, weight)

    def _add(self, found: Floats, label: int, weight: float) -> None:
        self._features.append(found)
        self._labels.extend([label] * len(found))
        self._weights.extend([weight] * len(found))

    def from_hosts(self, model: Model, unseen: Material, rng: np.random.Generator) -> None:
        """Honest documents, as they are and with orders in them."""
        pools: dict[str, list[Order]] = defaultdict(list)
        for order in unseen.orders:
            pools[order.language].append(order)
        for doc in unseen.docs:
            self.harmless(model, whole(self._vectors, doc))
            for _ in range(PLANTS):
                native = pools.get(doc.language) if rng.random() < 0.8 else None
                pool = native or pools["en"]
                order = pool[int(rng.integers(len(pool)))]
                self.order(model, *planted(self._vectors, doc, order, rng))

    def from_others(self, model: Model, unseen: Material) -> None:
        """Texts that are an order or a harmless request and nothing else; found attacks."""
        for order in unseen.orders:
            if "request" not in order.aspects:
                alone = all_alone(self._vectors, order.texts)
                self.order(model, alone, range(len(order.texts)), ALONE)
        for doc in unseen.attacks:
            self.order(model, whole(self._vectors, doc), range(len(doc.texts)))
        for doc in unseen.questions:
            self.harmless(model, whole(self._vectors, doc))
        for row in unseen.negatives:
            self.harmless(model, all_alone(self._vectors, row["texts"]))

    def all(self) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Features, labels and weights; orders weigh half as much as harmless candidates."""
        y, weight = np.array(self._labels), np.array(self._weights, dtype=np.float32)
        weight[y == 1] *= weight[y == 0].sum() / weight[y == 1].sum() / 2
        return np.concatenate(self._features), y, weight


def all_alone(vectors: Vectors, texts: Sequence[str]) -> Document:
    """A document of nothing but these lines."""
    return as_document(vectors, texts, [True] * len(texts))


def second_step(vectors: Vectors, material: Material, around: Floats) -> Lessons:
    """Candidates, scored by first steps that never saw them."""
    parts = []
    for fold in range(INNER):
        seen = part_of(material, fold, INNER, keep=False)
        model = first_only(*first_step(vectors, seen), around)
        parts.append((model, part_of(material, fold, INNER, keep=True)))
    lessons, rng = Lessons(vectors, parts), np.random.default_rng(0)
    for model, unseen in parts:
        lessons.from_hosts(model, unseen, rng)
        lessons.from_others(model, unseen)
    return lessons


def part_of(material: Material, fold: int, folds: int, *, keep: bool) -> Material:
    """The fold, or all but the fold: by host document, by group of parallel sentences."""

    def inside(name: str) -> bool:
        return (fold_of(f"{folds}{name}", folds) == fold) is keep

    return Material(
        [d for d in material.docs if inside(d.host)],
        [o for o in material.orders if inside(o.group)],
        [r for r in material.negatives if inside(r["id"].split(".")[0])],
        [d for d in material.questions if inside(d.host)],
        [d for d in material.attacks if inside(d.host)],
        material.aspects,
    )


def first_only(scores: Floats, bias: Floats, around: Floats) -> Model:
    """A model whose second step is still to come."""
    size = width(len(scores))
    products = size * (size + 1) // 2
    return Model(
        scores=scores, scores_bias=bias, places=around,
        shifts=np.zeros(len(around), np.float32),
        mean=np.zeros(size, np.float32), scale=np.ones(size, np.float32),
        weights=np.zeros(size + products, np.float32),
        bias=0.0,
        gate=np.zeros(TOPIC, np.float32), threshold=0.0,
    )  # fmt: skip


def fit(vectors: Vectors, material: Material) -> Model:
    """Both steps, without gate and threshold."""
    around = places(vectors, material.docs, material.negatives)
    lessons = second_step(vectors, material, around)
    x, y, weight = lessons.all()
    mean, scale = x.mean(0), x.std(0) + 1e-6
    z = (x - mean) / scale
    left, right = np.triu_indices(z.shape[1])
    weights, bias = logistic(
        np.concatenate([z, z[:, left] * z[:, right]], axis=1), y, weight, SECOND_C
    )
    second = {"mean": mean, "scale": scale, "weights": weights, "bias": bias}
    parts = [(replace(bare, **second), unseen) for bare, unseen in lessons.parts]
    model = first_only(*first_step(vectors, material), around)
    return replace(model, **second, shifts=shifts(vectors, parts, material))


def gate(encoder: Encoder, material: Material) -> Floats:
    """A direction for the mean of a window's word vectors, for a first look at long texts."""
    wanted = [t for o in material.orders for t in o.texts]
    other = sorted(
        {t for d in material.docs for t in _some(d, 30)}
        | {t for r in material.negatives for t in r["texts"]}
    )
    x = np.concatenate([encoder.word_means(wanted), encoder.word_means(other)])
    y = np.concatenate([np.ones(len(wanted)), np.zeros(len(other))])
    weight = np.where(y == 1, len(other) / len(wanted), 1.0)
    return logistic(x, y, weight, GATE_C)[0]


def best(vectors: Vectors, model: Model, document: Document) -> float:
    """The score of a document: that of its worst window."""
    return max((score for _, score in model.judge(document)), default=-99.0)


@dataclass
class Tried:
    """Scores of held-out documents and of held-out orders in held-out hosts."""

    docs: list[tuple[Doc, float]]
    orders: list[tuple[Order, float]]

    def threshold(self, share: float) -> float:
        """The score that so many of the honest documents reach."""
        scores = sorted((s for d, s in self.docs if is_honest(d)), reverse=True)
        return scores[int(len(scores) * share)] + 0.01


def is_honest(doc: Doc) -> bool:
    """Counts for the threshold: `news` are loose sentences, which no document is."""
    return doc.label == 0 and doc.set != "news" and "quotes" not in doc.category


def trial(
    vectors: Vectors,
    material: Material,
    tests: Sequence[Doc],
    all_material: Material,
    folds: int = 2,
) -> Tried:
    """Train on one half, try on the other; BIPIA's test categories are never trained on."""
    tried = Tried([], [])
    for fold in range(folds):
        seen = part_of(material, fold, folds, keep=False)
        seen = replace(seen, orders=[o for o in seen.orders if o.source != "bipia-test"])
        unseen = part_of(all_material, fold, folds, keep=True)
        model = fit(vectors, seen)
        hosts = {d.host for d in unseen.docs}
        fresh = [d for d in tests if d.host in hosts or (d.set != "bipia" and fold == 0)]
        for doc in [*unseen.docs, *unseen.questions, *unseen.attacks, *fresh]:
            tried.docs.append((doc, best(vectors, model, whole(vectors, doc))))
        tried.orders += _orders_tried(vectors, model, unseen)
    return tried


def _orders_tried(vectors: Vectors, model: Model, unseen: Material) -> list[tuple[Order, float]]:
    """Parallel orders in parallel hosts: the same of both in every language."""
    hosts: dict[str, list[Doc]] = defaultdict(list)
    for doc in sorted(unseen.docs, key=lambda d: d.host):
        if doc.set == "own":
            hosts[doc.language].append(doc)
    found = []
    for order in unseen.orders:
        if order.source == "own":
            rng = np.random.default_rng(fold_of(order.group, 1 << 30))
            for doc in hosts[order.language]:
                document, _ = planted(vectors, doc, order, rng)
                found.append((order, best(vectors, model, document)))
    return found


def figures(tried: Tried, threshold: float) -> dict[str, Any]:
    """Shares at or above the threshold."""
    sets: dict[str, list[bool]] = defaultdict(list)
    for doc, score in tried.docs:
        name = doc.set + (" quoting attacks" if "quotes" in doc.category and not doc.label else "")
        sets[f"{name}, {'attacks' if doc.label else 'honest'}"].append(score >= threshold)
    languages: dict[str, list[bool]] = defaultdict(list)
    kinds: dict[str, list[bool]] = defaultdict(list)
    attacks: dict[str, list[bool]] = defaultdict(list)
    for order, score in tried.orders:
        group = attacks if order.kind in ATTACKS else languages
        group[order.language].append(score >= threshold)
        kinds[order.kind].append(score >= threshold)
    categories: dict[str, list[bool]] = defaultdict(list)
    for doc, score in tried.docs:
        if doc.label and doc.set == "bipia":
            categories[doc.category].append(score >= threshold)
    return {
        "sets": {k: f"{sum(v)}/{len(v)}" for k, v in sorted(sets.items())},
        "own orders by language": {k: _share(languages[k]) for k in LANGUAGES},
        "own attacks by language": {k: _share(attacks[k]) for k in LANGUAGES},
        "own orders by kind": {k: _share(v) for k, v in sorted(kinds.items())},
        "bipia by category": {k: _share(v) for k, v in sorted(categories.items())},
    }


def _share(hits: Sequence[bool]) -> float:
    return round(sum(hits) / len(hits), 3) if hits else 0.0


def gather(vectors: Vectors, data: Path) -> tuple[Material, list[Doc]]:
    """Everything to train on, and the documents that are only tried."""
    clean = [d for d in bipia(data) if not d.label]
    prompts = labelled(data, "deepset_prompt_injections/train")
    indirect = labelled(data, "cyberseceval/prompt_injection_en", "document")
    mixed = labelled(data, "piguard_valid/valid")
    # Its other attacks are BIPIA's, some of them from the half that must stay unseen.
    pint = [d for d in mixed if d.label and d.category.startswith("PINT")]
    material = Material(
        docs=[*honest(data), *clean],
        orders=orders(data),
        negatives=[
            r | {"texts": document(r["text"], set="", language="", host="", label=0).texts}
            for r in own()
            if not r["label"]
        ],
        questions=[d for d in prompts if not d.label and d.texts],
        attacks=[d for d in [*prompts, *indirect, *pint] if d.label and d.texts],
        aspects=ASPECTS["attacks"],
    )
    tests = [
        *(d for d in bipia(data) if d.label),
        *labelled(data, "garak_latent/documents"),
        *labelled(data, "benign_hard/documents"),
        *(d for d in prompts if d.label),
        *indirect,
        *mixed,
    ]
    tests = [d for d in tests if d.texts]
    vectors.add([t for d in (*material.docs, *material.questions, *tests) for t in d.texts])
    known = {d.id for d in material.attacks}
    tests = [d for d in tests if d.id not in known]
    vectors.add([t for o in material.orders for t in o.texts])
    vectors.add([t for r in material.negatives for t in r["texts"]])
    return material, tests


def part_for(name: str, material: Material) -> Material:
    """What one of the two models is trained on: that for orders sees no attacks on orders."""
    if name == "attacks":
        return material
    plain = [o for o in material.orders if o.aspects != {"attack"}]
    return replace(material, orders=plain, attacks=[], aspects=ASPECTS[name])


def together(tried: Mapping[str, Tried], thresholds: Mapping[str, float]) -> Tried:
    """The better of both scores, each from its threshold on; equal trials are in equal places."""

    def best_of(scores: Sequence[float]) -> float:
        return max(s - t for s, t in zip(scores, thresholds.values(), strict=True))

    docs: dict[int, tuple[Doc, list[float]]] = {}
    orders: dict[tuple[str, str, int], tuple[Order, list[float]]] = {}
    for name in thresholds:
        for doc, score in tried[name].docs:
            docs.setdefault(id(doc), (doc, []))[1].append(score)
        place: Counter[tuple[str, str]] = Counter()
        for order, score in tried[name].orders:
            key = order.language, order.group
            orders.setdefault((*key, place[key]), (order, []))[1].append(score)
            place[key] += 1
    return Tried(
        [(doc, best_of(scores)) for doc, scores in docs.values()],
        [(order, best_of(scores)) for order, scores in orders.values()],
    )


def main(arguments: list[str]) -> None:
    """See the module."""
    cache = Path(arguments.pop(arguments.index("--cache") + 1)) if "--cache" in arguments else None
    only = arguments.pop(arguments.index("--only") + 1) if "--only" in arguments else None
    data = Path(next((a for a in arguments if not a.startswith("--")), DATA)).resolve()
    if not data.exists():
        sys.exit(f"the labelled sets are not at {data}")
    began = time.monotonic()
    encoder = Encoder(LAYERS)
    vectors = Vectors(encoder, cache)
    material, tests = gather(vectors, data)
    tried = {name: trial(vectors, part_for(name, material), tests, material) for name in ASPECTS}
    thresholds = {name: round(tried[name].threshold(FALSE_REVIEW[name]), 2) for name in ASPECTS}
    known = figures(together(tried, thresholds), 0.0)
    print(json.dumps(known, ensure_ascii=False, indent=1))
    if "--try" not in arguments:
        look = gate(encoder, material)
        fitted = {
            n: replace(fit(vectors, part_for(n, material)), gate=look, threshold=thresholds[n])
            for n in ([only] if only else ASPECTS)
        }
        write(encoder, fitted, material, known)
    print(f"{len(vectors.all)} windows, {time.monotonic() - began:.0f} s", file=sys.stderr)


def write(
    encoder: Encoder, fitted: Mapping[str, Model], material: Material, known: dict[str, Any]
) -> None:
    """The two files that are shipped; a model that was not fitted stays as it is."""
    models = dict(zip(ASPECTS, shipped(), strict=True)) | dict(fitted)
    data = packed(models)
    about = {
        "embedder": encoder.model_id,
        "layers": list(LAYERS),
        "windowing": "services/scanner/learned/windows.py: sentences, short lines, table cells",
        "thresholds": {name: round(model.threshold, 2) for name, model in models.items()},
        "sha256": hashlib.sha256(data).hexdigest(),
        "trained_on": {
            "eval/data/scanner_train.jsonl, scanner_phrases.jsonl": "own text, Apache-2.0",
            "BIPIA attacks, clean documents": "MIT; tables CC BY-SA 4.0",
            "deepset prompt-injections": "Apache-2.0",
            "CyberSecEval, indirect": "MIT",
            "PIGuard's sample of PINT": "MIT",
            **{s.name: s.licence for s in SOURCES},
        },
        "documents": len(material.docs),
        "orders": len(material.orders),
        "held_out": known,
    }
    WEIGHTS.write_bytes(data)
    MANIFEST.write_text(json.dumps(about, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
