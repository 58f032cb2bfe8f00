"""Trains the scanner's learned layer.

`python -m eval.train_scanner [--try] [--cache FOLDER] [DATA]` tunes the first step on three
quarters of everything (own texts by group, honest documents by host; BIPIA's test half is never
among them). The second steps and their thresholds come from the last quarter, each half of it
judged by what was learned from the other; those that are written are learned from both. It writes
`model.npz` and `model.json` of `services/scanner/learned`. `--try` prints the figures only; in
`--cache` the tuned network is kept. About an hour on two cores.
"""

import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from eval.train_scanner_data import DATA, LANGUAGES, SOURCES, Doc, Material, gather, part_of
from eval.train_scanner_second import Floats, Vectors, half, learned, logistic
from eval.train_scanner_trial import figures, trial
from eval.train_scanner_tuning import MEANS, Example, Tuned
from services.scanner.learned.encoder import Adapter, Encoder
from services.scanner.learned.model import (
    LONG,
    MANIFEST,
    WEIGHTS,
    Model,
    packed,
    unpacked,
)

LAYER = 384
"""Length of a layer's part of a vector."""

UNCHANGED = slice(0, 2 * LAYER)
"""The parts of the layers that are not tuned; a direction in them learns little by heart."""

TOPIC = slice(LAYER, 2 * LAYER)
"""The part that says what a window is about."""

ROUNDS = 5
"""Times that everything is read in the first step."""

FIRST_C, GATE_C = 0.02, 0.1
"""Inverse strengths of regularisation."""

UNTUNED_NEAR = 2.0
"""Weight of a sentence that looks like an order, where nothing is tuned."""

WINDOWS = 80
"""Windows of a document that the first step sees."""

HELD = 4
"""One part of so many is not seen by the first step."""


def first_step(seen: Material, texts: Sequence[str], cache: Path | None) -> tuple[Model, Vectors]:
    """Tune the network on what is seen; the vectors of `texts` by it."""
    kept = cache / "first.npz" if cache else None
    if kept and kept.exists():
        with np.load(kept, allow_pickle=False) as found:
            vectors = Vectors(json.loads(str(found["texts"])), found["vectors"])
            return unpacked(found["model"].tobytes()), vectors
    tuned = tune(seen)
    distinct = list(dict.fromkeys(texts))
    vectors = Vectors(distinct, tuned.read(distinct)[1])
    scores, bias = (
        np.concatenate(parts) for parts in zip(tuned.head, directions(vectors, seen), strict=True)
    )
    model = first_only(tuned.adapter, scores, bias, places(vectors, seen))
    data = packed(model)
    if kept:
        np.savez(
            kept, texts=json.dumps(distinct), vectors=vectors.found,
            model=np.frombuffer(data, np.uint8),
        )  # fmt: skip
    # What is learned from here on is learned of the weights as they are shipped, in half precision.
    return unpacked(data), vectors


def directions(vectors: Vectors, seen: Material) -> tuple[Floats, Floats]:
    """Scores by the layers that are not tuned: an order that is more than a request, a request."""
    plain, near = harmless(seen)
    none = vectors.of([*plain, *near])[:, UNCHANGED]
    weight = np.concatenate([np.ones(len(plain)), np.full(len(near), UNTUNED_NEAR)])
    found = []
    for is_plain in (False, True):
        wanted = vectors.of([t for o in seen.orders if o.plain is is_plain for t in o.texts])
        wanted = wanted[:, UNCHANGED]
        ours = np.full(len(wanted), weight.sum() / len(wanted) / 3)
        labels = np.concatenate([np.ones(len(wanted)), np.zeros(len(none))])
        found.append(
            logistic(
                np.concatenate([wanted, none]), labels, np.concatenate([ours, weight]), FIRST_C
            )
        )
    rows = np.zeros((len(found), vectors.found.shape[1]), np.float32)
    rows[:, UNCHANGED] = [weights for weights, _ in found]
    return rows, np.array([bias for _, bias in found], np.float32)


def harmless(seen: Material) -> tuple[list[str], list[str]]:
    """Windows of honest documents, and those that look like orders."""
    ours = [d for d in seen.docs if d.set in ("own", "written")]
    near = {t for d in (*seen.negatives, *ours) for t in d.texts}
    plain = {t for d in (*seen.docs, *seen.questions) for t in _some(d, WINDOWS)}
    return sorted(plain - near), sorted(near)


def tune(seen: Material) -> Tuned:
    """The network, tuned."""
    examples = [Example(o.texts, (np.nan if o.plain else 1.0, 1.0)) for o in seen.orders]
    examples += [Example(tuple(d.texts), (1.0, 1.0)) for d in seen.attacks]
    plain, near = harmless(seen)
    tuned = Tuned(2)
    tuned.fit(examples, near, plain, ROUNDS)
    return tuned


def places(vectors: Vectors, material: Material) -> Floats:
    """Mean topic vector of honest text in each language."""
    found = []
    for language in LANGUAGES:
        means = [
            vectors.of(d.texts[:60])[:, TOPIC].mean(0)
            for d in material.docs
            if d.language == language and d.set not in ("web", "docling")
        ]
        near = [t for d in material.negatives if d.language == language for t in d.texts]
        found.append(np.mean([*means, vectors.of(near)[:, TOPIC].mean(0)], axis=0))
    return np.asarray(found, dtype=np.float32)


def _some(doc: Doc, most: int) -> list[str]:
    """Windows of a document at even distances."""
    if len(doc.texts) <= most:
        return doc.texts
    return [doc.texts[i] for i in np.linspace(0, len(doc.texts) - 1, most).astype(int)]


def first_only(adapter: Adapter, scores: Floats, bias: Floats, around: Floats) -> Model:
    """A model whose second steps are still to come."""
    return Model(
        adapter=adapter, scores=scores, scores_bias=bias, places=around,
        gate=np.zeros(LAYER, np.float32), topic=TOPIC.start, untuned=UNCHANGED.stop, steps={},
    )  # fmt: skip


def gate(encoder: Encoder, material: Material) -> Floats:
    """A direction for the mean of a window's word vectors, for a first look at long texts."""
    wanted = [t for o in material.orders if o.source != "bipia-test" for t in o.texts]
    other = sorted(
        {t for d in material.docs for t in _some(d, 30)}
        | {t for d in material.negatives for t in d.texts}
    )
    x = np.concatenate([encoder.word_means(wanted), encoder.word_means(other)])
    y = np.concatenate([np.ones(len(wanted)), np.zeros(len(other))])
    weight = np.where(y == 1, len(other) / len(wanted), 1.0)
    return logistic(x, y, weight, GATE_C)[0]


def main(arguments: list[str]) -> None:
    """See the module."""
    cache = Path(arguments.pop(arguments.index("--cache") + 1)) if "--cache" in arguments else None
    data = Path(next((a for a in arguments if not a.startswith("--")), DATA)).resolve()
    if not data.exists():
        sys.exit(f"the labelled sets are not at {data}")
    began = time.monotonic()
    material, tests = gather(data)
    seen = part_of(material, 0, HELD, keep=False)
    seen = replace(seen, orders=[o for o in seen.orders if o.source != "bipia-test"])
    hosts = {d.host for d in seen.docs}
    # The attack in a document whose clean twin was seen would be found by its difference.
    tests = [d for d in tests if d.host not in hosts]
    unseen = part_of(material, 0, HELD)
    texts = [*material.texts(), *(t for d in tests for t in d.texts)]
    model, vectors = first_step(seen, texts, cache)
    halves = [half(model, vectors, part_of(unseen, number, 2)) for number in (0, 1)]
    tried = trial(model, vectors, halves, tests)
    thresholds = tried.thresholds()
    known = figures(tried, thresholds)
    print(json.dumps(known, ensure_ascii=False, indent=1))
    if "--try" not in arguments:
        whole_model = learned(model, halves)
        steps = {
            name: replace(step, thresholds=thresholds[name])
            for name, step in whole_model.steps.items()
        }
        looking = gate(Encoder(MEANS), material)
        write(replace(whole_model, steps=steps, gate=looking), material, known)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)


def write(model: Model, material: Material, known: dict[str, Any]) -> None:
    """The two files that are shipped."""
    data = packed(model)
    about = {
        "embedder": Encoder(MEANS).model_id,
        "layers": list(MEANS),
        "windowing": "services/scanner/learned/windows.py: sentences, short lines, table cells",
        "thresholds": {
            f"{name}, {size}": dict(zip(LANGUAGES, np.round(row.astype(float), 2), strict=True))
            for name, step in model.steps.items()
            for size, row in zip((f"up to {LONG} windows", "more"), step.thresholds, strict=True)
        },
        "sha256": hashlib.sha256(data).hexdigest(),
        "trained_on": {
            "eval/data/scanner_train.jsonl, scanner_phrases.jsonl, scanner_own_*.jsonl":
                "own text, Apache-2.0",
            "BIPIA attacks, clean documents": "MIT; tables CC BY-SA 4.0",
            "deepset prompt-injections": "Apache-2.0",
            "CyberSecEval, indirect": "MIT",
            "PIGuard's sample of PINT": "MIT",
            **{s.name: s.licence for s in SOURCES},
        },
        "documents": len(material.docs),
        "orders": len(material.orders),
        "held_out": known,
    }  # fmt: skip
    WEIGHTS.write_bytes(data)
    MANIFEST.write_text(json.dumps(about, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
