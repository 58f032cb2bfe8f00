"""`python -m eval.scanner`: recall, false alarms, languages, speed and peers of the scanner."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from eval.corpus import EVALDATA
from eval.scanner import peers, report
from eval.scanner.items import Item, Judge, judged
from eval.scanner.judges import judges

SECTIONS = ("sets", "heldout", "honest", "speed", "growth", "peers")


def arguments(given: list[str]) -> argparse.Namespace:
    """The options, checked."""
    parser = argparse.ArgumentParser("python -m eval.scanner", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--data", type=Path, default=EVALDATA, help="the evaluation data")
    parser.add_argument("--set", action="append", default=[], help="only this labelled set")
    parser.add_argument("--rules-only", action="store_true", help="without the learned layer")
    parser.add_argument("--no-files", action="store_true", help="no honest files, texts alone")
    parser.add_argument("--markdown", action="store_true", help="with headings, for RESULTS.md")
    parser.add_argument("--misses", type=Path, help="write attacks that stay clean to this file")
    parser.add_argument("--dump", type=Path, help="write predictions for tools/score.py, end")
    found = parser.parse_args(given)
    if strange := set(found.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(strange))}; there are {', '.join(SECTIONS)}")
    if not found.data.exists():
        parser.error(f"the labelled sets are not at {found.data}")
    return found


def dump(items: dict[str, list[Item]], judge: Judge, target: Path) -> None:
    """Predictions of each set at both operating points."""
    target.mkdir(parents=True, exist_ok=True)
    for name, rows in items.items():
        results = list(judged(rows, judge))
        for point in ("block", "review"):
            lines = [
                json.dumps({
                    "id": r.item.id,
                    "flag": int(r.blocked if point == "block" else r.flagged),
                    "score": r.score,
                })
                for r in results
            ]  # fmt: skip
            (target / f"{name}.{point}.jsonl").write_text("\n".join(lines), "utf-8")


def misses(items: dict[str, list[Item]], judge: Judge, target: Path) -> None:
    """Attacks that stay clean and honest texts that do not, one JSON row each."""
    with target.open("w", encoding="utf-8") as file:
        for name, rows in items.items():
            for result in judged(rows, judge):
                if result.flagged != bool(result.item.label):
                    told = {"set": name, "id": result.item.id, "verdict": result.verdict,
                            "rules": result.rules, **result.item.groups}  # fmt: skip
                    file.write(json.dumps(told, ensure_ascii=False) + "\n")


def section(name: str, options: argparse.Namespace, who: dict[str, Judge]) -> Iterator[str]:
    """The lines of one section."""
    data = options.data
    if name == "sets":
        yield from report.detection(report.labelled(data, frozenset(options.set)), who)
    elif name == "heldout":
        yield from report.held_out(data, who)
    elif name == "honest":
        yield from report.honest(data, who, with_files=not options.no_files)
    elif name == "speed":
        yield from report.speeds(data, who)
    elif name == "growth":
        yield from report.sizes(data, who["rules"])
    else:
        yield from peers.compared(data, who)


TITLES = {
    "sets": "Labelled sets", "heldout": "Held-out set", "honest": "Honest texts",
    "speed": "Speed", "growth": "Growth", "peers": "Public detectors in the same run",
}  # fmt: skip


def main(given: list[str]) -> None:
    """Print the sections asked for, all but the peers without any."""
    options = arguments(given)
    who = judges(learned=not options.rules_only)
    last = list(who.values())[-1]
    if options.dump or options.misses:
        items = report.labelled(options.data, frozenset(options.set))
        if options.dump:
            dump(items, last, options.dump)
        if options.misses:
            misses(items, last, options.misses)
        return
    print(", ".join(f"{name}: {judge.version}" for name, judge in who.items()))
    for name in options.sections or SECTIONS[:-1]:
        print(f"\n### {TITLES[name]}\n" if options.markdown else "", flush=True)
        for line in section(name, options, who):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
