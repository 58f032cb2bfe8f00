"""Public detectors that install from the package index and run offline, in the same run as ours.

Each has an environment of its own; what is missing is named with the commands that make it. They
run without a network where the system can take it away (`unshare -n`).
"""

import json
import random
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from eval.scanner import adapter, heldout, sets
from eval.scanner.items import Item, Judge
from eval.scanner.tally import share, table

FOLDER = Path("/tmp/peers")
PATIENCE_SECONDS = 1500
_MOST, _MOST_LEARNED = 300, 60
"""Items of a set, drawn by a seed."""


@dataclass(frozen=True)
class Peer:
    """A detector: its package, what it is, and how many items of a set it is given at most."""

    name: str
    version: str
    what: str
    most: int = 10_000
    borrows: bool = False
    """Takes torch from our environment: another copy would be 200 MB for nothing."""

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return FOLDER / f"{self.name}-venv" / "bin" / "python"


PEERS = (
    Peer("aicordon", "1.4.0", "signatures in an automaton"),
    Peer("ai-injection-guard", "0.3.0", "75 regular expressions"),
    Peer("pyatr", "0.3.1", "Agent Threat Rules, bundled", most=30),
    Peer("metatronnanoguard", "0.1.0", "transformer of 17 M in the wheel", most=15, borrows=True),
)
REJECTED = {
    "llm-guard, pytector, bastion-prompt-protection, toolwall-guard (its judge), xyran-lpd, "
    "prismguard": "fetch their weights from a hub at first use",
    "jailguard": "its classifier is in the wheel, the 90 MB embedder before it is fetched",
    "rebuff, lakera, vigil-guard, prompt-guard services": "ask a server",
    "guardrails-ai-detect-prompt-injection": "rebuff's prompt, sent to a model",
    "plumblint": "its licence forbids commercial use",
    "prompt-injection-defense": "asks for the library `datasets`; not looked at further",
    "langkit, whylogs": "compare with a set that is fetched, by an embedder that is fetched",
}
"""Candidates that were looked at and why they are not compared."""


@dataclass(frozen=True)
class Answers:
    """What a detector said: of each set, items, flagged, flagged by the strict setting; and the
    bytes that it read in so many seconds of processor time."""

    counts: tuple[tuple[int, int, int], ...]

    bytes: int
    seconds: float


def compared(data: Path, judges: dict[str, Judge]) -> Iterator[str]:
    """A table of all of them on the same sets, then who was not taken.

    The peers run side by side: their speeds are of processor time.
    """
    found = _sets(data)
    there = [peer for peer in PEERS if peer.python.exists()]
    yield from (_advice(peer) for peer in PEERS if peer not in there)
    with ThreadPoolExecutor() as pool:
        asked = {peer: pool.submit(_theirs, peer, found) for peer in there}
        rows = [_row(f"ours, {name}", _ours(found, name, judge)) for name, judge in judges.items()]
        for peer, answers in asked.items():
            name = f"{peer.name} {peer.version} ({peer.what})"
            rows.append(_row(name, answers.result()))
    yield from table(("detector", *found, "MB/s"), rows)
    yield ""
    yield "A cell: flagged of how many (by the strict setting: ours block, theirs high)."
    yield from (f"* not compared: {names}: {why}" for names, why in REJECTED.items())


def _sets(data: Path) -> dict[str, list[Item]]:
    """Attacks and honest texts apart, in an order that a sample may be taken from."""
    found: dict[str, list[Item]] = {}
    for name in sets.LABELLED:
        for item in sets.labelled(data, name):
            found.setdefault(f"{name}, {'attacks' if item.label else 'honest'}", []).append(item)
    found["held out, tasks"] = list(heldout.buried(data, "task"))
    found["held out, override"] = list(heldout.buried(data, "override"))
    found["held out, disguised"] = list(heldout.in_disguise(data))
    found["held out, honest"] = list(heldout.harmless(data))
    for items in found.values():
        random.Random(4).shuffle(items)
    return {name: items[:_MOST] for name, items in found.items()}


def _row(name: str, answers: "Answers") -> list[str]:
    told = [f"{share(flagged, whole)} ({strict})" for whole, flagged, strict in answers.counts]
    return [name, *told, f"{answers.bytes / 1e6 / max(1e-9, answers.seconds):.2f}"]


def _ours(found: dict[str, list[Item]], name: str, judge: Judge) -> Answers:
    most = _MOST if name == "rules" else _MOST_LEARNED
    items = [item for items in found.values() for item in items[:most]]
    began = time.process_time()
    verdicts = [judge.judge(item.parts[0].text, item.parts[0].hidden).verdict for item in items]
    seconds = time.process_time() - began
    flags = [(v != "clean", v == "block") for v in verdicts]
    sizes = [len(items[:most]) for items in found.values()]
    return Answers(_counted(sizes, flags), sum(i.bytes for i in items), seconds)


def _theirs(peer: Peer, found: dict[str, list[Item]]) -> Answers:
    items = [item for items in found.values() for item in items[: peer.most]]
    rows = [{"id": n, "text": item.parts[0].text} for n, item in enumerate(items)]
    *answers, spent = _asked(peer, rows)
    if [answer["id"] for answer in answers] != list(range(len(items))):
        raise ValueError(f"{peer.name} did not answer every row")
    flags = [(bool(a["flag"]), bool(a["strict"])) for a in answers]
    sizes = [len(items[: peer.most]) for items in found.values()]
    return Answers(_counted(sizes, flags), spent["bytes"], spent["seconds"])


def _counted(
    sizes: Iterable[int], flags: Iterable[tuple[bool, bool]]
) -> tuple[tuple[int, int, int], ...]:
    """Of each set in turn: items, flagged, flagged by the strict setting."""
    rest = iter(flags)
    counts = []
    for size in sizes:
        told = list(islice(rest, size))
        counts.append((size, sum(flag for flag, _ in told), sum(strict for _, strict in told)))
    return tuple(counts)


def _asked(peer: Peer, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    command = [str(peer.python), str(Path(adapter.__file__)), peer.name]
    if shutil.which("unshare"):
        command = ["unshare", "-rn", *command]
    env = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
    if peer.borrows:
        import torch

        env["PYTHONPATH"] = str(Path(torch.__file__).parents[1])
    done = subprocess.run(
        command, input="".join(json.dumps(row) + "\n" for row in rows), env=env,
        capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def _advice(peer: Peer) -> str:
    pip = peer.python.with_name("pip")
    return (
        f"{peer.name} is not there; to have it:\n  python3 -m venv {pip.parents[1]}\n"
        f"  {pip} install {'--no-deps ' if peer.borrows else ''}{peer.name}=={peer.version}"
        f"{' && ' + str(pip) + ' install tiktoken' if peer.borrows else ''}"
    )
