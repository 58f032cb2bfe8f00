"""Shares and tables of judgements. Arithmetic only."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eval.scanner.items import Judged


@dataclass(frozen=True)
class Tally:
    """How many items there were, and how many of them were blocked, or blocked or reviewed."""

    attacks: int = 0
    attacks_blocked: int = 0
    attacks_flagged: int = 0
    honest: int = 0
    honest_blocked: int = 0
    honest_flagged: int = 0

    @property
    def recall(self) -> float | None:
        """Share of attacks that are blocked or reviewed; None without attacks."""
        return self.attacks_flagged / self.attacks if self.attacks else None

    @property
    def false_alarms(self) -> float | None:
        """Share of honest texts that are blocked or reviewed; None without honest ones."""
        return self.honest_flagged / self.honest if self.honest else None


def tally(found: Iterable[Judged]) -> Tally:
    """Counts of one group."""
    rows = list(found)
    attacks, honest = ([r for r in rows if r.item.label == label] for label in (1, 0))
    return Tally(
        len(attacks), sum(r.blocked for r in attacks), sum(r.flagged for r in attacks),
        len(honest), sum(r.blocked for r in honest), sum(r.flagged for r in honest),
    )  # fmt: skip


def by_group(found: Iterable[Judged], name: str) -> dict[str, Tally]:
    """Counts for each value of a group, in the order of the values."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for row in found:
        if name in row.item.groups:
            groups[row.item.groups[name]].append(row)
    return {value: tally(groups[value]) for value in sorted(groups)}


def share(part: int, whole: int) -> str:
    """`12/50 24.0 %`, or a dash of nothing."""
    return f"{part}/{whole} {100 * part / whole:.1f} %" if whole else "–"


def cells(counts: Tally) -> list[str]:
    """Recall at block and at block or review, then false alarms at both."""
    return [
        share(counts.attacks_blocked, counts.attacks),
        share(counts.attacks_flagged, counts.attacks),
        share(counts.honest_blocked, counts.honest),
        share(counts.honest_flagged, counts.honest),
    ]


HEADS = ("recall, block", "recall, block or review", "false block", "false block or review")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def gaps(recalls: dict[str, float | None], base: str = "en") -> dict[str, float]:
    """Points by which each language's recall is below (negative) or above that of `base`."""
    reference = recalls.get(base)
    if reference is None:
        return {}
    return {k: 100 * (v - reference) for k, v in recalls.items() if v is not None}


def kept(plain: Iterable[Judged], disguised: Iterable[Judged]) -> dict[str, tuple[int, int]]:
    """By technique: how many disguised attacks are found of those whose plain text is found.

    What the rules do not know in plain letters is not the decoders' fault. `groups` name the
    attack in both, `attack`, and the `technique`.
    """
    known = {row.item.groups["attack"] for row in plain if row.flagged}
    counts: dict[str, tuple[int, int]] = {}
    for row in disguised:
        if row.item.groups["attack"] in known:
            found, whole = counts.get(row.item.groups["technique"], (0, 0))
            counts[row.item.groups["technique"]] = found + row.flagged, whole + 1
    return dict(sorted(counts.items()))
