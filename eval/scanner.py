"""Measures the scanner on the labelled injection sets: `python -m eval.scanner [DATA]`.

Prints one row a set: recall on attacks, and false alarms on honest texts, at two operating points
(block only; block or review), then honest texts that are not in these sets, then speed.
"""

import collections
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from services.scanner.domain import ScanResult, scan
from services.scanner.ruleset import default_ruleset

DATA = Path(__file__).parents[1] / "../shared/evaldata"
SETS = (
    "obfuscated/documents", "garak_latent/documents", "bipia/documents_test",
    "cyberseceval/prompt_injection_en", "deepset_prompt_injections/train", "piguard_valid/valid",
    "trojan_source/files", "benign_hard/documents",
)  # fmt: skip
Row = dict[str, Any]


def judge(text: str) -> ScanResult:
    """The verdict on a bare text."""
    return scan(text, (), default_ruleset())


def rows(path: Path) -> Iterator[Row]:
    """The rows of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, filter(str.strip, lines))


def honest(data: Path) -> Iterator[tuple[str, str]]:
    """(set, text) of documents without attacks that no detection set holds."""
    for folder in ("gnome_help", "libreoffice_help", "progit", "exams_wiki_distractors", "gdpr"):
        for path in sorted((data / "retrieval" / folder).rglob("*.jsonl")):
            if path.stem.startswith("quer"):
                continue
            for row in rows(path):
                yield folder, f"{row.get('title', '')}\n\n{row.get('text', '')}"
    for folder in ("german_laws", "law_versions", "udhr"):
        for path in sorted((data / "retrieval" / folder).rglob("*.md")):
            yield folder, path.read_text("utf-8")


def share(part: int, whole: int) -> str:
    """`12/50 24.0%`, or a dash."""
    return f"{part}/{whole} {100 * part / whole:.1f}%" if whole else "–"


def line(name: str, verdicts: Iterable[tuple[int, str]]) -> str:
    """One row of the table from (label, verdict) pairs."""
    counts = collections.Counter(verdicts)
    cells = [name]
    for label in (1, 0):
        total = sum(n for (found, _), n in counts.items() if found == label)
        blocked = counts[label, "block"]
        cells += [share(blocked, total), share(blocked + counts[label, "quarantine"], total)]
    return "| " + " | ".join(cells) + " |"


def detection(data: Path, key: str) -> Iterator[str]:
    """Rows of all detection sets, split by `key` (`set` for none)."""
    for name in SETS:
        groups: dict[str, list[tuple[int, str]]] = collections.defaultdict(list)
        for row in rows(data / "injection" / f"{name}.jsonl"):
            group = name.split("/")[0] if key == "set" else f"{name.split('/')[0]}: {row.get(key)}"
            groups[group].append((row["label"], judge(row["text"]).verdict))
        for group, verdicts in groups.items():
            yield line(group, verdicts)


def dump(data: Path, target: Path) -> None:
    """Predictions for `tools/score.py detect`: two files a set, one for each operating point."""
    target.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        results = [
            (row["id"], judge(row["text"])) for row in rows(data / "injection" / f"{name}.jsonl")
        ]
        for point, flagged in (("block", {"block"}), ("review", {"block", "quarantine"})):
            lines = [
                json.dumps({"id": i, "flag": int(r.verdict in flagged), "score": r.score})
                for i, r in results
            ]
            (target / f"{name.split('/')[0]}.{point}.jsonl").write_text("\n".join(lines), "utf-8")


def main(arguments: list[str]) -> None:
    """Print the table; `--by FIELD` splits it, `--dump DIR` writes predictions instead."""
    data = DATA.resolve()
    if not data.exists():
        sys.exit(f"the labelled sets are not at {data}")
    if "--dump" in arguments:
        dump(data, Path(arguments[arguments.index("--dump") + 1]))
        return
    key = arguments[arguments.index("--by") + 1] if "--by" in arguments else "set"
    print(f"{default_ruleset().version}\n")
    print("| set | recall, block | recall, block or review | false block | false block or review |")
    print("|---|---|---|---|---|")
    for text in detection(data, key):
        print(text, flush=True)
    found: dict[str, list[tuple[int, str]]] = collections.defaultdict(list)
    size, began = 0, time.process_time()
    for name, text in honest(data):
        size += len(text.encode())
        found[name].append((0, judge(text).verdict))
    seconds = time.process_time() - began
    for name, verdicts in found.items():
        print(line(f"{name} (honest)", verdicts))
    print(f"\n{size / 1e6:.1f} MB of honest text at {size / 1e6 / seconds:.1f} MB/s on one core")


if __name__ == "__main__":
    main(sys.argv[1:])
