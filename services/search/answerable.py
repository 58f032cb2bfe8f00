"""How likely it is that a base answers a question at all, from what both legs brought: no model
reads question and passage together.

A logistic model over a few numbers, fitted on the tuning half of our labelled questions
(`eval/train_answerable.py`, which also says how good it is). The numbers have no unit of a certain
embedder in them.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

LEAST = 6
"""Passages of the dense leg below which there is nothing to compare with."""
FIFTH = 4


def answerable(by_model: Iterable[Sequence[float]], shares: Sequence[float]) -> float | None:
    """How likely there is an answer; None: there is too little to say. `by_model`: the cosines of
    each model of the dense leg, best first; any of them may have found it."""
    found = [evidence(cosines, shares) for cosines in by_model]
    said = [probability(made, fitted()) for made in found if made is not None]
    return round(max(said), 3) if said else None


def evidence(cosines: Sequence[float], shares: Iterable[float]) -> dict[str, float] | None:
    """What speaks for an answer; None: too little was found to say.

    `lead`: how far the nearest passage is before the fifth, in the span of the leg. `share`: how
    much of the question's words one passage holds. Many more numbers were tried, and told no more.

    Args:
        cosines: of the dense leg, best first.
        shares: of the keyword leg's passages (`kernel.keyword_index.KeywordHit.share`).
    """
    if len(cosines) < LEAST or cosines[0] <= cosines[-1]:
        return None
    lead = (cosines[0] - cosines[FIFTH]) / (cosines[0] - cosines[-1])
    return {"lead": lead, "share": max(shares, default=0.0)}


def probability(found: Mapping[str, float], model: Mapping[str, Any]) -> float:
    """0 to 1, of the model's numbers among those that were found."""
    total = model["bias"]
    for name, (mean, deviation, weight) in model["numbers"].items():
        total += weight * (found[name] - mean) / deviation
    return 1 / (1 + math.exp(-total))


@cache
def fitted() -> Mapping[str, Any]:
    """The weights, and what they were fitted on."""
    text = resources.files("services.search").joinpath("answerable.json").read_text("utf-8")
    model: Mapping[str, Any] = json.loads(text)
    return model
