"""Who judges for `kb scan`, and what a finding looks like to a person."""

import unicodedata
from collections.abc import Sequence
from typing import Any, Protocol

from cli.output import clean
from contracts.artifacts import HiddenText
from contracts.events import Finding
from services.scanner.domain import ScanResult, scan
from services.scanner.ruleset import default_ruleset

LONGEST_WORDS = 160
"""Characters of a passage that are shown."""

_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u180b\u180c\u180d\u180f")
"""Letters and marks that show nothing, though their categories say otherwise."""


class Judge(Protocol):
    """The scanner's judgement of a text and what is hidden with it."""

    @property
    def version(self) -> str: ...
    @property
    def forks(self) -> bool: ...
    def judge(self, text: str, hidden: Sequence[HiddenText] = ()) -> ScanResult: ...


class RulesOnly:
    """The rules, without the learned layer."""

    def __init__(self) -> None:
        self._ruleset = default_ruleset()

    @property
    def version(self) -> str:
        """Of the rule set."""
        return self._ruleset.version

    @property
    def forks(self) -> bool:
        """Whether a process that holds it may be doubled: one with a model's threads may not."""
        return True

    def judge(self, text: str, hidden: Sequence[HiddenText] = ()) -> ScanResult:
        """Findings and verdict."""
        return scan(text, hidden, self._ruleset)


def open_judge(*, rules_only: bool) -> Judge:
    """The judge that an ingest would have, or its rules alone."""
    return RulesOnly()


def told(finding: Finding, source: bytes) -> dict[str, Any]:
    """A finding with its words and its rule's reason.

    Args:
        finding: bytes within `source`.
        source: UTF-8 of the text that it is in.
    """
    rule = default_ruleset().rules.get(finding.rule)
    return {
        **finding.model_dump(mode="json"),
        "kind": rule.kind if rule else None,
        "why": rule.why if rule else "",
        "words": visible(source[finding.byte_start : finding.byte_end]),
    }


def visible(words: bytes) -> str:
    """Words of a document on one line, harmless, not too long, each invisible character named.

    `ig⟨U+200B⟩nore`; of a row of the same or of neighbours in one alphabet only the first is named,
    with their number: `⟨U+E0069 ×12⟩`.
    """
    text = words[: LONGEST_WORDS * 16].decode("utf-8", "ignore")
    parts: list[str] = []
    shown, run, first = 0, 0, ""
    for char in text:
        if _is_unseen(char):
            first, run = first or char, run + 1
            continue
        if run:
            parts.append(_named(first, run))
            shown, run, first = shown + 8, 0, ""
        if shown >= LONGEST_WORDS:
            break
        parts.append(char)
        shown += 1
    else:
        if run:
            parts.append(_named(first, run))
        if len(words) <= LONGEST_WORDS * 16:
            return clean("".join(parts), one_line=True)
    return clean("".join(parts), one_line=True) + " …"


def _named(first: str, count: int) -> str:
    return f"⟨U+{ord(first):04X}⟩" if count == 1 else f"⟨U+{ord(first):04X} ×{count}⟩"


def _is_unseen(char: str) -> bool:
    if char in "\n\t\r":
        return False
    return (
        unicodedata.category(char) in ("Cf", "Cc", "Cs", "Co", "Cn", "Zl", "Zp")
        or char in _BLANK
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
    )
