"""Tables: configurations against kinds and languages, with bootstrap intervals."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from eval.ablation.base import Asked
from eval.retrieval.metrics import Values, figure, values
from eval.scanner.tally import table

Rankings = Mapping[str, Sequence[int]]
"""By question, numbers of passages, best first."""
SHOWN = ("R@1", "R@5", "MRR@10", "nDCG@10", "candidate recall")


def figures(asked: Sequence[Asked], rankings: Rankings) -> dict[str, Values]:
    """Each figure of each question that has an answer. Candidates are all that was ranked."""
    relevant = {a.id: frozenset(map(str, a.right)) for a in asked}
    found = values(relevant, {a.id: [str(n) for n in rankings[a.id]] for a in asked})
    there = [float(not a.right.isdisjoint(rankings[a.id])) for a in asked]
    return found | {"candidate recall": np.array(there)}


def overall(asked: Sequence[Asked], ranked: Mapping[str, Rankings]) -> Iterator[str]:
    """A row for each configuration: means, intervals of the first two."""
    rows = []
    for name, rankings in ranked.items():
        found = figures(asked, rankings)
        cells = [f"{figure(found[f]).mean:.3f}" for f in SHOWN]
        for at, shown in enumerate(SHOWN[:2]):
            interval = figure(found[shown])
            cells[at] += f" [{interval.low:.2f}, {interval.high:.2f}]"
        rows.append([name, *cells])
    yield from table((f"{len(asked)} questions", *SHOWN), rows)


def grouped(
    asked: Sequence[Asked], ranked: Mapping[str, Rankings], by: str, shown: str = "R@1"
) -> Iterator[str]:
    """One figure for each configuration and each group of questions (`kind` or `lang`)."""
    groups = list(dict.fromkeys(getattr(a, by) for a in asked))
    where = {g: [n for n, a in enumerate(asked) if getattr(a, by) == g] for g in groups}
    rows = []
    for name, rankings in ranked.items():
        found = figures(asked, rankings)[shown]
        rows.append([name, *(f"{np.mean(found[where[g]]):.2f}" for g in groups)])
    heads = [f"{g} ({len(where[g])})" for g in groups]
    yield from table((shown, *heads), rows)


def auroc(known: Sequence[float], unknown: Sequence[float]) -> float:
    """The chance that an answerable question scores above an unanswerable one; ties count half."""
    high, low = np.asarray(known)[:, None], np.asarray(unknown)[None, :]
    return float((high > low).mean() + 0.5 * (high == low).mean())
