"""Measured rows as tables for a person."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import mean
from typing import TypeVar

from eval.parsing.measure import Row

BROKEN = frozenset({"parse-crash", "parse-timeout", "parse-memory"})
K = TypeVar("K")

MEASURES = (
    "tokens", "edit", "headings", "tree", "cells", "grid", "items", "order", "exact",
    "present", "absent", "placed", "on page",
)  # fmt: skip


def structure(rows: Sequence[Row]) -> str:
    """Means by format and converter; `-` where no document of the format asks the question."""
    columns = [m for m in MEASURES if any(m in row.scores for row in rows)]
    lines = [["format", "converter", "docs", "failed", *columns]]
    for (form, engine), group in _grouped(rows, lambda r: (r.format, r.engine)).items():
        failed = sum(bool(row.error) for row in group)
        means = [_mean(row.scores.get(m) for row in group) for m in columns]
        lines.append([form, engine, str(len(group)), str(failed or ""), *means])
    return table(lines)


def speed(rows: Sequence[Row]) -> str:
    """Cost by format: wall and processor seconds, over documents that `ours` and docling did."""
    lines = [[
        "format", "converter", "docs", "load s", "load cpu", "docs/s", "pages/s", "MB/s",
        "docs/cpu s", "pages/cpu s", "peak MiB", "cpu ÷ docling", "peak ÷ docling",
    ]]  # fmt: skip
    for form, group in _grouped(rows, lambda r: r.format).items():
        failed = {r.name for r in group if r.error and r.engine in {"ours", "docling"}}
        sides = _grouped([r for r in group if r.name not in failed], lambda r: r.engine)
        plain = sides.get("docling", [])
        for engine, mine in sides.items():
            done = [r for r in mine if not r.error]
            if done:
                lines.append([form, engine, *_costs(done), *_ratios(done, plain)])
    return table(lines)


def _costs(rows: Sequence[Row]) -> list[str]:
    wall, cpu = sum(r.seconds for r in rows), sum(r.cpu_seconds for r in rows)
    pages = sum(r.pages or 0 for r in rows)
    return [
        str(len(rows)),
        *(f"{s:.1f}" for s in rows[0].load_seconds),
        _rate(len(rows), wall),
        _rate(pages, wall),
        _rate(sum(r.bytes for r in rows) / 1e6, wall),
        _rate(len(rows), cpu),
        _rate(pages, cpu),
        f"{max(r.peak_mib for r in rows):.0f}",
    ]


def _ratios(rows: Sequence[Row], plain: Sequence[Row]) -> list[str]:
    """Ours divided by docling's, of the same documents."""
    names = {r.name for r in rows} & {r.name for r in plain}
    mine = [r for r in rows if r.name in names]
    theirs = [r for r in plain if r.name in names]
    if not names:
        return ["-", "-"]
    work, plainly = (sum(r.cpu_seconds for r in side) for side in (mine, theirs))
    peak = max(r.peak_mib for r in mine) / max(1, *(r.peak_mib for r in theirs))
    # The kernel counts in steps of 10 ms: below ten of them a ratio says nothing.
    return [f"{work / plainly:.2f}" if min(work, plainly) >= 0.1 else "-", f"{peak:.2f}"]


def strings(rows: Sequence[Row]) -> str:
    """Strings found of those wanted, and unwanted ones that are there, by format and converter."""
    lines = [["format", "converter", "files", "refused", "found", "share", "unwanted there"]]
    for (form, engine), group in _grouped(rows, lambda r: (r.format, r.engine)).items():
        wanted = sum(r.notes["wanted"] for r in group)
        found = sum(round(r.scores.get("present", 0) * r.notes["wanted"]) for r in group)
        unwanted = sum(r.notes["unwanted"] for r in group)
        there = sum(round((1 - r.scores.get("absent", 1)) * r.notes["unwanted"]) for r in group)
        lines.append([
            form, engine, str(len(group)), str(sum(bool(r.error) for r in group) or ""),
            f"{found}/{wanted}", f"{found / wanted:.3f}" if wanted else "-",
            f"{there}/{unwanted}" if unwanted else "-",
        ])  # fmt: skip
    return table(lines)


def segments(rows: Sequence[Row]) -> str:
    """Main content of web pages: precision, recall and F1 over segments, and accuracy.

    A wanted segment found is a true positive, an unwanted one found a false positive: the protocol
    of trafilatura's evaluation.
    """
    lines = [["converter", "pages", "refused", "precision", "recall", "F1", "accuracy"]]
    for engine, group in _grouped(rows, lambda r: r.engine).items():
        wanted = sum(r.notes["wanted"] for r in group)
        unwanted = sum(r.notes["unwanted"] for r in group)
        right = sum(round(r.scores.get("present", 0) * r.notes["wanted"]) for r in group)
        wrong = sum(round((1 - r.scores.get("absent", 1)) * r.notes["unwanted"]) for r in group)
        precision, recall = right / max(1, right + wrong), right / max(1, wanted)
        both = 2 * precision * recall / max(1e-9, precision + recall)
        accuracy = (right + unwanted - wrong) / max(1, wanted + unwanted)
        refused = sum(bool(r.error) for r in group)
        figures = [f"{x:.4f}" for x in (precision, recall, both, accuracy)]
        lines.append([engine, str(len(group)), str(refused), *figures])
    return table(lines)


def decoding(rows: Sequence[Row]) -> str:
    """Files read in their own character set."""
    lines = [["character set", "converter", "files", "right", "share", "wrong files"]]
    every = [*_grouped(rows, lambda r: (r.format, r.engine)).items()]
    total = [*_grouped(rows, lambda r: ("all", r.engine)).items()]
    for (form, engine), group in [*every, *total]:
        right = sum(int(r.scores["right"]) for r in group)
        wrong = [r.name.rpartition("/")[2] for r in group if not r.scores["right"]]
        shown = ", ".join(wrong[:4]) + (" …" if len(wrong) > 4 else "") if form != "all" else ""
        share = f"{right / len(group):.3f}"
        lines.append([form, engine, str(len(group)), str(right), share, shown])
    modes = Counter(r.notes["mode"] for r in rows if r.engine == "ours")
    return table(lines) + f"\nours, files: {dict(modes)}\n"


def outcomes(rows: Sequence[Row]) -> str:
    """One line a file."""
    lines = [["file", "outcome", "seconds", "cpu s", "peak MiB", "characters", "reason"]]
    for row in rows:
        lines.append([
            row.name, row.error or "parsed", f"{row.seconds:.2f}", f"{row.cpu_seconds:.2f}",
            f"{row.peak_mib:.0f}", str(len(row.text)), row.reason[:60],
        ])  # fmt: skip
    unclean = [r for r in rows if r.error and not clean(r.error)]
    return table(lines) + f"\nneither parsed nor cleanly refused: {len(unclean)} of {len(rows)}\n"


def costs(rows: Sequence[Row]) -> str:
    """What large files cost: memory of the child, of the process beside it, and of both."""
    lines = [
        ["file", "MB", "outcome", "seconds", "cpu s", "child MiB", "beside MiB", "together MiB"]
    ]
    for row in rows:
        lines.append([
            row.name, f"{row.bytes / 1e6:.0f}", row.error or "parsed", f"{row.seconds:.0f}",
            f"{row.cpu_seconds:.0f}", f"{row.peak_mib:.0f}", f"{row.beside_mib:.0f}",
            f"{row.together_mib:.0f}",
        ])  # fmt: skip
    return table(lines)


def clean(error: str) -> bool:
    """Whether a refusal was meant: the code of one, and not of a parser that broke."""
    return "-" in error and error.islower() and error not in BROKEN


def page_counts(rows: Sequence[Row]) -> str:
    """Pages said against pages there."""
    lines = [["file", "pages", "said", "outcome"]]
    lines += [[r.name, str(r.pages), str(r.notes.get("pages")), r.error or "parsed"] for r in rows]
    known = [r for r in rows if r.pages is not None]
    right = sum(r.notes.get("pages") == r.pages for r in known)
    return table(lines) + f"\npage counts right: {right} of {len(known)} that open\n"


def worst(rows: Sequence[Row], count: int = 10) -> str:
    """Documents of `ours` furthest from their reference, by the mean of all measures."""
    kinds = ("docling", "ocr", "made")
    scored = [r for r in rows if r.engine == "ours" and r.scores and r.kind in kinds]
    found = [(mean(kept.values()), row, kept) for row in scored if (kept := _structural(row))]
    found.sort(key=lambda entry: (entry[0], entry[1].name))
    lines = [["mean", "set", "file", "outcome", "scores"]]
    for average, row, kept in found[:count]:
        parts = " ".join(f"{name} {score:.2f}" for name, score in kept.items())
        lines.append([f"{average:.3f}", row.kind, row.name, row.error or "parsed", parts])
    return table(lines)


def _structural(row: Row) -> dict[str, float]:
    """Scores against the reference; places and exact heading lines are told elsewhere."""
    return {k: v for k, v in row.scores.items() if k not in {"exact", "placed", "on page"}}


def table(lines: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell; the first line is the head."""
    widths = [max(len(line[x]) for line in lines) for x in range(len(lines[0]))]
    padded = [[c.ljust(w) for c, w in zip(line, widths, strict=True)] for line in lines]
    padded.insert(1, ["-" * w for w in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in padded) + "\n"


def _grouped(rows: Iterable[Row], key: Callable[[Row], K]) -> dict[K, list[Row]]:
    groups: dict[K, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def _mean(values: Iterable[float | None]) -> str:
    known = [v for v in values if v is not None]
    return f"{mean(known):.3f}" if known else "-"


def _rate(amount: float, seconds: float) -> str:
    return f"{amount / max(seconds, 0.001):.2f}" if amount else "-"
