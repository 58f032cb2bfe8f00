"""Fits `services/search/answerable.json`; `python -m eval.train_answerable [--write]`.

On the tuning half of our labelled questions: those with an answer, those without, and those with an
answer once more with all right passages taken out of both legs, for there are few without. Means
and deviations of the numbers are those of the questions as they are, and so is the share of
questions with an answer that the bias is set to. The held-out half is only measured: AUROC, Brier
score, and the mean gap between what is said and what is (five bins), each beside what saying the
same of every question gives; then what a threshold would drop.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from eval.ablation.base import Asked, Bench, own
from eval.ablation.legs import Legs, legs
from eval.ablation.report import auroc
from eval.ablation.vectors import Vectors
from eval.corpus import ROOT
from eval.keywords import postgres
from kernel.db import pool
from kernel.embedder import EmbedderSettings, load_embedder
from services.search.answerable import evidence, probability

TARGET = ROOT / "services" / "search" / "answerable.json"
NUMBERS = ("lead", "share")
STRENGTH = 0.3
THRESHOLDS = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)


def numbers(asked: Asked, found: Legs, without: frozenset[int] = frozenset()) -> dict[str, float]:
    """The evidence of a question, as if its base lacked some passages."""
    cosines = [score for n, score in found.dense[asked.id] if n not in without]
    shares = [share for n, share in found.shares[asked.id].items() if n not in without]
    made = evidence(cosines, shares)
    assert made is not None
    return made


def fit(bench: Bench, found: Legs) -> dict[str, Any]:
    """The model of a half."""
    from sklearn.linear_model import LogisticRegression

    real = [numbers(a, found) for a in bench.asked]
    answered = np.array([bool(a.right) for a in bench.asked])
    emptied = [numbers(a, found, a.right) for a in bench.answerable]
    rows = np.array([[row[n] for n in NUMBERS] for row in (*real, *emptied)])
    labels = np.concatenate([answered, np.zeros(len(emptied), bool)])
    means, deviations = rows[: len(real)].mean(0), rows[: len(real)].std(0)
    scaled = (rows - means) / deviations
    weights = LogisticRegression(C=STRENGTH, class_weight="balanced").fit(scaled, labels).coef_[0]
    bias = _bias(scaled[: len(real)] @ weights, float(answered.mean()))
    return {
        "numbers": {
            name: [round(float(x), 6) for x in (mean, deviation, weight)]
            for name, mean, deviation, weight in zip(
                NUMBERS, means, deviations, weights, strict=True
            )
        },
        "bias": round(bias, 6),
        "fitted": f"{len(real)} questions of the tuning half, {int(answered.sum())} with an answer",
    }


def _bias(totals: "np.ndarray[Any, Any]", share: float) -> float:
    """With which the mean of what is said is the share of questions with an answer."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (low, middle)
            if (1 / (1 + np.exp(-(totals + middle)))).mean() > share
            else (middle, high)
        )
    return middle


def measured(bench: Bench, found: Legs, model: dict[str, Any]) -> list[str]:
    """Lines about a half."""
    said = np.array([probability(numbers(a, found), model) for a in bench.asked])
    true = np.array([float(bool(a.right)) for a in bench.asked])
    always = true.mean()
    lines = [
        f"{bench.name}: {len(true)} questions, {int(true.sum())} with an answer; "
        f"AUROC {auroc(said[true == 1].tolist(), said[true == 0].tolist()):.3f}, "
        f"Brier {((said - true) ** 2).mean():.3f} ({((always - true) ** 2).mean():.3f}), "
        f"gap {_gap(said, true):.3f}"
    ]
    for least in THRESHOLDS:
        kept, dropped = (said[true == 1] >= least).mean(), (said[true == 0] < least).mean()
        lines.append(f"| {least} | {kept:.2f} | {dropped:.2f} |")
    return lines


def _gap(said: "np.ndarray[Any, Any]", true: "np.ndarray[Any, Any]", bins: int = 5) -> float:
    parts: Sequence[Any] = np.array_split(np.argsort(said), bins)
    return float(sum(len(p) * abs(said[p].mean() - true[p].mean()) for p in parts) / len(said))


async def run(dsn: str, *, write: bool) -> None:
    """Fit, measure, and write if it is wanted."""
    embedder = await asyncio.to_thread(load_embedder, EmbedderSettings(embedder_neutral=False))
    database = await pool(dsn)
    bench = own(embedder)
    found = await legs(bench, Vectors(embedder), database, ("or",))
    model = fit(bench.half("tuning"), found)
    print(json.dumps(model, indent=1))
    for half in ("tuning", "held-out"):
        print("\n".join(measured(bench.half(half), found, model)))
    if write:
        TARGET.write_text(json.dumps(model, indent=1) + "\n", "utf-8")
    await database.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    with postgres("") as dsn:
        asyncio.run(run(dsn, write=parser.parse_args().write))
