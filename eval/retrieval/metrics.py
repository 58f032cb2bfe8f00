"""Figures of rankings: each query by trec_eval, their mean with a bootstrap interval.

trec_eval is what the field's published figures are computed with (`pytrec_eval`). R@k is its
success_k, 1 if one of the first k documents answers; MRR@10 its recip_rank on the first ten;
nDCG@10 its ndcg_cut_10, with gain 1 for what answers and discount log2(rank + 1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DEPTH = 50
"""Passages that are asked for; a query whose document is not among them cannot be mended later."""
FIGURES = {
    "R@1": "success_1",
    "R@5": "success_5",
    "R@10": "success_10",
    "MRR@10": "recip_rank",
    "nDCG@10": "ndcg_cut_10",
    "candidate recall": f"success_{DEPTH}",
}
"""Our name → trec_eval's."""
SEED = 6
RESAMPLES = 9999

Rankings = Mapping[str, Sequence[str]]
"""By query, document ids, best first, each once."""
Relevant = Mapping[str, frozenset[str]]
Values = NDArray[np.float64]
"""One for each query, in the order of `Relevant`."""


@dataclass(frozen=True)
class Figure:
    """A mean, and where it lies in 95 % of resamples; a single query has no interval."""

    mean: float
    low: float | None
    high: float | None


def values(relevant: Relevant, rankings: Rankings) -> dict[str, Values]:
    """Every figure for every query that counts; one without an answer has 0."""
    judged = {query: dict.fromkeys(ids, 1) for query, ids in relevant.items()}
    whole = _evaluated(judged, rankings, {f"success.1,5,10,{DEPTH}", "ndcg_cut.10"})
    ten = _evaluated(judged, {q: ids[:10] for q, ids in rankings.items()}, {"recip_rank"})
    found = {query: {**whole.get(query, {}), **ten.get(query, {})} for query in relevant}
    return {
        name: np.array([found[query].get(measure, 0.0) for query in relevant])
        for name, measure in FIGURES.items()
    }


def _evaluated(
    judged: Mapping[str, Mapping[str, int]], rankings: Rankings, measures: set[str]
) -> dict[str, dict[str, float]]:
    from pytrec_eval import RelevanceEvaluator

    # trec_eval orders by score, and equal ones by name: the place in our order is the score.
    run = {
        query: {id_: float(-place) for place, id_ in enumerate(ids)}
        for query, ids in rankings.items()
        if ids and query in judged
    }
    found: dict[str, dict[str, float]] = RelevanceEvaluator(judged, measures).evaluate(run)
    return found


def figure(per_query: Values, *, seed: int = SEED) -> Figure:
    """Mean and 95 % percentile bootstrap over queries. Of differences of two configurations on the
    same queries it is the paired comparison.

    Percentiles, not BCa, which is not defined where all resamples agree, as with a recall of 1:
    there the interval has no width, and says nothing about other queries.
    """
    from scipy.stats import bootstrap

    mean = float(per_query.mean())
    if len(per_query) < 2:
        return Figure(mean, None, None)
    interval = bootstrap(
        (per_query,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=500,
        confidence_level=0.95,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Figure(mean, float(interval.low), float(interval.high))


def first_ranks(relevant: Relevant, rankings: Rankings) -> dict[str, int | None]:
    """The place of the first document that answers, from 1; None: it did not come."""
    return {
        query: next((n for n, id_ in enumerate(rankings.get(query, ()), 1) if id_ in ids), None)
        for query, ids in relevant.items()
    }
