"""Converters over cases: what came out, how near to the reference, at what cost."""

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from eval.parsing import places
from eval.parsing.engine import Engine, Run
from eval.parsing.scores import SCORES, contained
from eval.parsing.sets import Case

CHEAP_SECONDS = 6.0
"""A format whose documents take less in all is measured three times."""


@dataclass(frozen=True)
class Row:
    """One document through one converter; `scores` are from 0 to 1.

    Seconds are medians over the passes; `load_seconds` (wall, processor) is what the first document
    of a fresh process took longer than the same document again.
    """

    kind: str
    engine: str
    name: str
    format: str
    error: str
    reason: str
    bytes: int
    pages: int | None
    seconds: float
    cpu_seconds: float
    peak_mib: float
    beside_mib: float = 0.0
    together_mib: float = 0.0
    load_seconds: tuple[float, float] = (0.0, 0.0)
    scores: dict[str, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    text: str = ""

    def record(self) -> dict[str, Any]:
        """For JSON: everything but the text, which may be under another licence."""
        return {k: v for k, v in asdict(self).items() if k != "text"}


def structure(
    kind: str, cases: Sequence[Case], engine: str, *, fresh: bool = True
) -> Iterator[Row]:
    """Scores against references; a process is warmed by the smallest file.

    `fresh`: a process for each format, so that its memory can be told.
    """
    for _, group in sorted(by_format(cases).items()) if fresh else [("", cases)]:
        if not group:
            continue
        with Engine(engine) as converter:
            smallest = min(group, key=lambda c: c.path.stat().st_size)
            first, again = converter.ask(smallest.path), converter.ask(smallest.path)
            load = (first.seconds - again.seconds, first.cpu_seconds - again.cpu_seconds)
            for case, runs in zip(group, _passes(converter, group, often=fresh), strict=True):
                scores = _scores(case, runs[0]) | places.score(case.path, runs[0].answer)
                yield _row(kind, engine, case, runs, load, scores)


def strings(kind: str, cases: Sequence[Case], engine: str, *, children: int = 0) -> Iterator[Row]:
    """Share of wanted strings found and of unwanted ones left out; one warm process for all.

    `children`: how deep files inside a document count as its text.
    """
    with Engine(engine) as converter:
        for case in cases:
            run = converter.ask(case.path, children=children)
            found = {
                "present": contained(case.present, run.text),
                "absent": _left_out(case.absent, run.text),
            }
            scores = {name: score for name, score in found.items() if score is not None}
            counts = {"wanted": len(case.present), "unwanted": len(case.absent)}
            yield _row(kind, engine, case, [run], (0.0, 0.0), scores, **counts)


def decoding(cases: Sequence[Case], engine: str) -> Iterator[Row]:
    """Whether a text was read in its own character set: 1 or 0.

    A format that is refused is tried once more as plain text in the same character set, without
    its tags. Right: of the words with letters beyond ASCII in the result, 95 % are in the source.
    """
    with tempfile.TemporaryDirectory() as folder, Engine(engine) as converter:
        for n, case in enumerate(cases):
            source = case.path.read_bytes().decode(case.encoding)
            run, mode = converter.ask(case.path), "as it is"
            if run.error == "unsupported-media-type":
                path = Path(folder) / f"{n}.txt"
                prose = re.sub(r"(?s)<!--.*?-->|<[^<>]*>", " ", source)
                path.write_bytes(prose.encode(case.encoding, "replace"))
                run, mode = converter.ask(path), "as text"
            scores = {"right": float(_agrees(source, run.text))}
            yield _row("encodings", engine, case, [run], (0.0, 0.0), scores, mode=mode)


def outcomes(kind: str, cases: Sequence[Case], engine: str) -> Iterator[Row]:
    """What becomes of broken files, in one process that must live on."""
    with Engine(engine) as converter:
        for case in cases:
            yield _row(kind, engine, case, [converter.ask(case.path)], (0.0, 0.0), {})


def costs(kind: str, cases: Sequence[Case], engine: str, *, timeout: float) -> Iterator[Row]:
    """What large files cost, each in a fresh process; their texts stay where they are."""
    for case in cases:
        with Engine(engine, timeout=timeout) as converter:
            run = converter.ask(case.path, long=True)
            yield _row(kind, engine, case, [run], (0.0, 0.0), {})


def by_format(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """The cases of each format, in their order."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.format].append(case)
    return groups


def _passes(converter: Engine, cases: Sequence[Case], *, often: bool) -> list[list[Run]]:
    """Runs of each case: three when that is wanted and cheap."""
    runs = [[converter.ask(case.path)] for case in cases]
    if often and sum(r[0].seconds for r in runs) < CHEAP_SECONDS:
        for _ in range(2):
            for case, of_case in zip(cases, runs, strict=True):
                of_case.append(converter.ask(case.path))
    return runs


def _scores(case: Case, run: Run) -> dict[str, float]:
    """All measures; a document that did not come through has 0 wherever it could have had one."""
    found: dict[str, float | None] = {"absent": _left_out(case.absent, run.text)}
    if case.present:
        found["present"] = contained(case.present, run.text)
    if case.reference is not None:
        for name, score in SCORES.items():
            if name in case.skip:
                continue
            found[name] = score(case.reference, run.text)
            if run.error and score(case.reference, case.reference) is not None:
                found[name] = 0.0
    return {name: score for name, score in found.items() if score is not None}


def _left_out(unwanted: Sequence[str], text: str) -> float | None:
    there = contained(unwanted, text)
    return None if there is None else 1 - there


def _agrees(source: str, result: str) -> bool:
    known = set(_foreign(source))
    found = _foreign(result)
    return bool(found or not known) and sum(w in known for w in found) >= 0.95 * len(found)


def _foreign(text: str) -> list[str]:
    """Words with a letter beyond ASCII, without their ends, which markup may touch."""
    return [w for w in re.findall(r"[^\W\d_]{3,}", text.casefold()) if not w.isascii()]


def _row(
    kind: str,
    engine: str,
    case: Case,
    runs: Sequence[Run],
    load: tuple[float, float],
    scores: dict[str, float],
    **notes: Any,
) -> Row:
    answer = runs[0].answer
    said = {k: v for k, v in answer.items() if k not in {"text", "error", "reason", "spans"} and v}
    return Row(
        kind=kind,
        engine=engine,
        name=case.name,
        format=case.format,
        error=runs[0].error,
        reason=str(answer.get("reason", "")),
        bytes=case.path.stat().st_size,
        pages=case.pages,
        seconds=median(run.seconds for run in runs),
        cpu_seconds=median(run.cpu_seconds for run in runs),
        peak_mib=max(run.peak_mib for run in runs),
        beside_mib=max(run.beside_mib for run in runs),
        together_mib=max(run.together_mib for run in runs),
        load_seconds=load,
        scores=scores,
        notes=said | notes,
        text=runs[0].text,
    )
