"""Lines joined to paragraphs, with words mended that were divided at a line's end."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from services.converter.parsing.layout import Page

_COMPOUND_FIRST = frozenset({
    "well", "self", "long", "short", "high", "low", "full", "half", "cross", "non", "ex", "по",
    "кое", "кой", "най", "во", "юго", "северо",
})  # fmt: skip
_COMPOUND_SECOND = frozenset({"то", "либо", "нибудь", "таки", "based", "like", "free", "term"})
_SUSPENDED = frozenset("und oder bzw and or и или i ili in ter ali та й".split())  # noqa: SIM905
_HYPHENS = ("-", "\u2010", "\u00ad", "\x02")
_DIVIDED = re.compile(r"([\w-]*\w)[-\u00ad\u2010\x02]$")
_LONGEST_WORD = 100


def vocabulary(pages: Iterable[Page]) -> Counter[str]:
    """Words that stand within lines: they say whether a hyphen at a line's end belongs."""
    words: Counter[str] = Counter()
    for page in pages:
        for block in page.blocks:
            for line in block.lines:
                words.update(re.findall(r"\w+(?:-\w+)*", line.text.lower())[:-1])
    return words


def join_lines(lines: Sequence[str], words: Counter[str]) -> str:
    """Lines of a paragraph as one, with words mended that were divided at a line's end."""
    done: list[str] = []
    text = ""
    for line in lines:
        text = join(text, line.strip(), words) if text else line.strip()
        # Only the last word meets the next line: a paragraph may have thousands of lines.
        ended, blank, text = text.rpartition(" ")
        done += [ended, blank]
    return re.sub(r"\s+", " ", "".join([*done, text]).replace("\u00ad", ""))


def join(before: str, after: str, words: Counter[str]) -> str:
    """Two lines as one; `words` are those of the document."""
    match = _DIVIDED.search(before[-_LONGEST_WORD:]) if before.endswith(_HYPHENS) else None
    if match is None or not after[:1].isalnum():
        return f"{before} {after}"
    rest = re.match(r"\w+(?:-\w+)*", after)
    if rest is None or (
        rest[0].lower() in _SUSPENDED and not words[f"{match[1]}{rest[0]}".lower()]
    ):
        return f"{before} {after}"
    if after[:1].isdigit():
        return before + after
    stem = before[:-1]
    if before.endswith("\u00ad"):
        return stem + after
    first, second = match[1].lower(), rest[0].lower()
    whole, compound = words[first + second], words[f"{first}-{second}"]
    keep = after[:1].isupper() or "-" in first or compound > whole
    keep = keep or first in _COMPOUND_FIRST or second in _COMPOUND_SECOND
    return f"{stem}-{after}" if keep and not whole > compound else stem + after
