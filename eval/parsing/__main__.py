"""Run from the command line: `python -m eval.parsing [--format pdf,docx] [--peers] [--json FILE]`.

Reads `../shared/evaldata/parsing`; without it only what is made here is measured. `--peers` adds
markitdown, pypdf and pdfplumber from a venv of their own, so that they are no dependencies.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from eval.parsing import engine, measure, report, sets
from eval.parsing.made import cases as made
from eval.parsing.measure import Row
from eval.parsing.sets import Case

_MADE = frozenset({"made", "hostile", "big"})
PDF_PEERS = ("pypdf", "pdfplumber")


class Bench:
    """One run: what is asked for, and the rows so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.formats: frozenset[str] = frozenset(filter(None, options.format.split(",")))
        self.sets: frozenset[str] = frozenset(filter(None, options.sets.split(",")))
        self.peers = options.peers and _peers_there()
        self.files: frozenset[str] = frozenset(filter(None, options.files.split(",")))
        self.alone = options.alone
        self.json: Path | None = options.json
        self.texts: Path | None = options.texts
        self.machine = _machine()
        self.rows: list[Row] = []

    def wanted(self, name: str, cases: Callable[[], list[Case]], kind: str = "") -> list[Case]:
        """Cases of a set in the formats asked for; `kind` is that of all its files."""
        if (self.sets and name not in self.sets) or not (sets.EVALDATA.is_dir() or name in _MADE):
            return []
        return [
            c for c in cases() if not self.formats or (kind or c.format).split()[0] in self.formats
        ]

    def show(self, title: str, rows: Iterable[Row], *views: Callable[[Sequence[Row]], str]) -> None:
        """Measure, print, and write, so that a run that is broken off has left something."""
        started, found = time.monotonic(), list(rows)
        if not found:
            return
        self.rows += found
        print(f"\n## {title} ({time.monotonic() - started:.0f} s)\n")
        for view in views:
            print(view(found), flush=True)
        if self.texts:
            _write_texts(self.texts, found)
        if self.json:
            data = {"machine": self.machine, "rows": [row.record() for row in self.rows]}
            self.json.write_text(json.dumps(data, ensure_ascii=False, indent=1), "utf-8")


def run(bench: Bench) -> None:
    """All sets, in the order of the issue."""
    with tempfile.TemporaryDirectory() as folder:
        _made(bench, Path(folder))
    cases = bench.wanted("docling", sets.docling)
    rows = (r for part, e in _engines(bench, cases) for r in measure.structure("docling", part, e))
    bench.show("docling's ground truth", rows, report.structure, report.speed)
    peer = ["ours", "markitdown"] if bench.peers else ["ours"]
    cases = bench.wanted("tika", sets.tika)
    rows = (r for name in peer for r in measure.strings("tika", cases, name, children=2))
    bench.show("Tika's strings", rows, report.strings)
    pages = bench.wanted("web", sets.web)
    peer = ["ours"] if bench.alone else ["ours", "trafilatura"]
    rows = (r for name in peer for r in measure.strings("web", pages, name))
    bench.show("Main content of web pages", rows, report.segments)
    cases = bench.wanted("encodings", sets.encodings, "txt")
    bench.show("Character sets", measure.decoding(cases, "ours"), report.decoding)
    cases = bench.wanted("pages", sets.page_counts)
    bench.show("Page counts", measure.outcomes("pages", cases, "ours"), report.page_counts)
    cases = bench.wanted("malformed", sets.malformed)
    bench.show("Broken files", measure.outcomes("malformed", cases, "ours"), report.outcomes)
    scans = bench.wanted("ocr", sets.ocr)
    bench.show("Scans", measure.structure("ocr", scans, "ours"), report.structure)


def _made(bench: Bench, folder: Path) -> None:
    cases = bench.wanted("made", lambda: made.made(folder))
    rows = (
        row
        for part, name in _engines(bench, cases)
        for row in measure.structure("made", part, name, fresh=False)
    )
    bench.show("Made here", rows, report.structure)
    cases = bench.wanted("hostile", lambda: made.broken(folder))
    bench.show("Hostile, made here", measure.outcomes("hostile", cases, "ours"), report.outcomes)
    # Minutes long: only when asked for.
    cases = (
        bench.wanted("big", lambda: made.big(folder, bench.files)) if "big" in bench.sets else []
    )
    found = measure.costs("big", cases, "ours", timeout=7200)
    bench.show("Big files, made here", found, report.costs)


def _engines(bench: Bench, cases: Sequence[Case]) -> list[tuple[Sequence[Case], str]]:
    """Which converter gets which cases."""
    found: list[tuple[Sequence[Case], str]] = [(cases, "ours")]
    if not bench.alone:
        found.append((cases, "docling"))
    if bench.peers:
        pdf = [c for c in cases if c.format.startswith("pdf")]
        found += [(cases, "markitdown"), *((pdf, name) for name in PDF_PEERS)]
    return found


def _peers_there() -> bool:
    if (engine.PEERS / "bin" / "python").exists():
        return True
    print(
        f"No peers: {engine.PEERS} is not there. To make it:\n"
        f"  python3 -m venv {engine.PEERS}\n"
        f"  {engine.PEERS}/bin/pip install {engine.PACKAGES}\n"
    )
    return False


def _machine() -> dict[str, object]:
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", default="", help="only these, separated by commas")
    parser.add_argument(
        "--sets",
        default="",
        help="docling, ocr, tika, web, encodings, pages, malformed, made, hostile, big",
    )
    parser.add_argument("--files", default="", help="of the big ones only those with these names")
    parser.add_argument("--alone", action="store_true", help="ours only, without plain docling")
    parser.add_argument("--peers", action="store_true", help="also other converters")
    parser.add_argument("--json", type=Path, help="write every figure there")
    parser.add_argument("--texts", type=Path, help="write every text into this folder")
    options = parser.parse_args()
    bench = Bench(options)
    print(" · ".join(f"{k} {v}" for k, v in bench.machine.items()))
    if not sets.EVALDATA.is_dir():
        print(f"\n!!! {sets.EVALDATA} IS NOT THERE: only documents made here are measured !!!\n")
    run(bench)
    print("\n## Furthest from the reference\n")
    print(report.worst(bench.rows))


def _write_texts(folder: Path, rows: Sequence[Row]) -> None:
    for row in rows:
        path = folder / row.kind / row.engine / f"{row.name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = row.text or f"{row.error}: {row.reason}\n"
        path.write_bytes(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
