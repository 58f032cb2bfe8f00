"""Tables, JSON and run files."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eval.retrieval.metrics import DEPTH, Figure, Values, figure, first_ranks, values
from eval.retrieval.pipeline import Answers, HeldBack, Loaded
from eval.retrieval.sets import RetrievalSet
from eval.retrieval.stacks import Config
from eval.scanner.tally import table

NAMED = 5
"""So many ids of each kind are printed; `--json` has all."""


@dataclass(frozen=True)
class Result:
    """One configuration, measured."""

    config: Config
    loaded: Loaded
    answers: Answers
    values: dict[str, Values]

    @classmethod
    def of(cls, config: Config, found: RetrievalSet, loaded: Loaded, answers: Answers) -> "Result":
        """With its figures for each query."""
        return cls(config, loaded, answers, values(found.relevant, answers.order))

    @property
    def percentiles(self) -> tuple[float, float]:
        """p50 and p95 of a query in milliseconds."""
        low, high = np.percentile(self.answers.milliseconds, (50, 95))
        return float(low), float(high)


def lines(found: RetrievalSet, results: list[Result]) -> Iterator[str]:
    """A table with a column for each configuration, and its difference to the first one."""
    first, others = results[0], results[1:]
    heads = [r.config.name for r in others]
    yield f"{found.name}: {len(found.documents)} documents, {len(found.relevant)} queries"
    yield from (f"* {count} {what}" for what, count in found.notes.items())
    for result in results:
        yield from _losses(found, result, again=result is not first and _same(result, first))
    yield ""
    yield from table(
        ("", first.config.name, *(h for head in heads for h in (head, "difference"))),
        _rows(first, others),
    )


def _rows(first: Result, others: list[Result]) -> Iterator[list[str]]:
    for name in first.values:
        row = [name, shown(figure(first.values[name]))]
        for other in others:
            difference = figure(other.values[name] - first.values[name])
            row += [shown(figure(other.values[name])), shown(difference, "+")]
        yield row
    times = [_times(other) for other in others]
    yield ["query p50 / p95", _times(first), *(cell for t in times for cell in (t, ""))]
    seconds = [
        "the same index" if _same(other, first) else f"{other.loaded.seconds:.1f} s"
        for other in others
    ]
    began = f"{first.loaded.seconds:.1f} s"
    yield ["upload to index, all documents", began, *(c for s in seconds for c in (s, ""))]


def _same(result: Result, first: Result) -> bool:
    return result.loaded is first.loaded


def _times(result: Result) -> str:
    p50, p95 = result.percentiles
    return f"{p50:.1f} / {p95:.1f} ms"


def shown(found: Figure, sign: str = "") -> str:
    """The mean, with its interval where it has one."""
    if found.low is None or found.high is None:
        return f"{found.mean:{sign}.4f}"
    return f"{found.mean:{sign}.4f} [{found.low:{sign}.3f}, {found.high:{sign}.3f}]"


def _losses(found: RetrievalSet, result: Result, *, again: bool) -> Iterator[str]:
    """What is not in the index, unless it was said, and what was not asked."""
    by_status: dict[str, list[HeldBack]] = defaultdict(list)
    for held in () if again else result.loaded.held_back:
        by_status[held.status].append(held)
    name, documents, queries = result.config.name, len(found.documents), len(found.relevant)
    for status, them in by_status.items():
        named = "; ".join(f"{h.id}: {h.why}" if h.why else h.id for h in them[:NAMED])
        more = "; …" if len(them) > NAMED else ""
        many = f"{len(them)} of {documents}"
        yield f"* {name}: {many} documents not indexed: {status} ({named}{more})"
    if not again and (lost := unanswerable(found, result.loaded)):
        yield f"* {name}: {len(lost)} of {queries} queries have their answers only in those"
    if refused := result.answers.refused:
        why = ", ".join(sorted(set(refused.values())))
        yield f"* {name}: {len(refused)} of {queries} queries refused ({why})"


def unanswerable(found: RetrievalSet, loaded: Loaded) -> list[str]:
    """Queries all of whose relevant documents are held back. They count as missed."""
    held = {h.id for h in loaded.held_back}
    return [query for query, ids in found.relevant.items() if ids <= held]


def document(found: RetrievalSet, results: list[Result], **about: Any) -> dict[str, Any]:
    """All of it as JSON; `ranks`: the place of each query's first right document."""
    return {
        **about,
        "set": found.name,
        "documents": len(found.documents),
        "queries": len(found.relevant),
        "notes": dict(found.notes),
        "passages_asked_for": DEPTH,
        "configurations": [_configuration(found, r, results[0]) for r in results],
    }


def _configuration(found: RetrievalSet, result: Result, first: Result) -> dict[str, Any]:
    p50, p95 = result.percentiles
    figures = {name: asdict(figure(v)) for name, v in result.values.items()}
    differences = {
        name: asdict(figure(v - first.values[name])) for name, v in result.values.items()
    }
    return {
        "settings": dict(result.config.settings),
        "figures": figures,
        "differences": {} if result is first else differences,
        "query_ms": {"p50": p50, "p95": p95},
        "indexing_seconds": result.loaded.seconds,
        "not_indexed": [asdict(h) for h in result.loaded.held_back],
        "refused_queries": result.answers.refused,
        "ranks": first_ranks(found.relevant, result.answers.order),
    }


def write_runs(target: Path, results: list[Result]) -> None:
    """`query<TAB>id<TAB>score` for tools/score.py: the first configuration into `target`, the
    second into `NAME-2.EXT`, and so on."""
    for number, result in enumerate(results, 1):
        name = target.name if number == 1 else f"{target.stem}-{number}{target.suffix}"
        rows = (
            f"{query}\t{id_}\t{score!r}\n"
            for query, found in result.answers.rankings.items()
            for id_, score in found
        )
        target.with_name(name).write_text("".join(rows), "utf-8")


def write_qrels(folder: Path, found: RetrievalSet) -> None:
    """The qrels that the figures are about: a part of the set's with a limit, or across."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f"{query}\t{id_}\t1\n" for query, ids in found.relevant.items() for id_ in sorted(ids)]
    head = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels.tsv").write_text("".join((head, *rows)), "utf-8")


def write_json(target: Path, content: dict[str, Any]) -> None:
    """A file that a person can read as well."""
    target.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
