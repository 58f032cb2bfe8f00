"""Who judges for `kb scan`, and what a finding looks like to a person."""

import logging
import unicodedata
from typing import TYPE_CHECKING, Any

from cli.output import CliError, clean, note
from contracts.events import Finding
from services.scanner.ruleset import default_ruleset

if TYPE_CHECKING:
    from services.scanner.judge import Judge
    from services.scanner.settings import ScannerSettings

LONGEST_WORDS = 160
"""Characters of a passage that are shown."""

_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u180b\u180c\u180d\u180f")
"""Letters and marks that show nothing, though their categories say otherwise."""


def open_judge(*, rules_only: bool) -> "Judge":
    """The judge that an ingest would have, or its rules alone. Says so if it cannot have the rest.

    Raises:
        CliError: a setting of the scanner cannot be used.
    """
    import structlog

    from services.scanner.judge import open_judge as opened

    # Its logger writes to standard output, where the answers are.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    judge = opened(_settings(rules_only=rules_only))
    if (missing := judge.load()) and not rules_only:
        note(clean(f"warning: the rules judge alone: {missing}", one_line=True))
    return judge


def _settings(*, rules_only: bool) -> "ScannerSettings":
    from pydantic import ValidationError

    from services.scanner.settings import ScannerSettings

    try:
        settings = ScannerSettings()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "_".join(map(str, first["loc"])).upper()
        raise CliError(f"KB_SCANNER_{name} cannot be used", first["msg"]) from None
    return settings.model_copy(update={"learned": "off"}) if rules_only else settings


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
