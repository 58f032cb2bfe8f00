"""What is judged: labelled texts, and the judgement of each with and without the learned layer."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from contracts.artifacts import HiddenText
from contracts.events import Verdict
from services.scanner.domain import ScanResult

RANK: dict[Verdict, int] = {"clean": 0, "quarantine": 1, "block": 2}


@dataclass(frozen=True)
class Part:
    """One text that the scanner reads; a file gives two, its parse and its body."""

    text: str
    hidden: tuple[HiddenText, ...] = ()


@dataclass(frozen=True)
class Item:
    """A labelled document. `label`: 1 attack, 0 honest; `groups`: by what its set is split."""

    id: str
    label: int
    parts: tuple[Part, ...]
    groups: dict[str, str] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Size of its largest part in UTF-8."""
        return max(len(part.text.encode("utf-8", "surrogatepass")) for part in self.parts)


def bare(id_: str, label: int, text: str, **groups: str) -> Item:
    """An item that is a text and nothing else."""
    return Item(id_, label, (Part(text),), groups)


class Judge(Protocol):
    """The scanner."""

    @property
    def version(self) -> str: ...
    def judge(self, text: str, hidden: Sequence[HiddenText] = ()) -> ScanResult: ...


@dataclass(frozen=True)
class Judged:
    """An item with its verdict and score, the worst of its parts, and the rules that spoke."""

    item: Item
    verdict: Verdict
    score: float
    rules: tuple[str, ...]

    @property
    def blocked(self) -> bool:
        """Is it refused?"""
        return self.verdict == "block"

    @property
    def flagged(self) -> bool:
        """Is it refused, or kept for a person?"""
        return self.verdict != "clean"


def judged(items: Iterable[Item], judge: Judge) -> Iterator[Judged]:
    """Each item's judgement, in order."""
    for item in items:
        results = [judge.judge(part.text, part.hidden) for part in item.parts]
        worst = max(results, key=lambda r: RANK[r.verdict])
        rules = tuple(dict.fromkeys(f.rule for r in results for f in r.findings))
        yield Judged(item, worst.verdict, max(r.score for r in results), rules)
