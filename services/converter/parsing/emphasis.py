"""Bold and italic as CommonMark, only where its rules hold: never a star that a reader would see.

A run of stars opens or closes by the characters beside it (CommonMark 0.31, "left-flanking" and
"right-flanking"). Where they forbid it, where the text has stars of its own or half a piece of
code, the emphasis is dropped and the words stay.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

# Noncharacters are marks of `marks.py`: they will be gone when the text is read.
_MARKS = "".join(map(chr, range(0xFDD0, 0xFDF0)))
_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:[^`]|(?!\1(?!`))`+)*?(?<!`)\1(?!`)")
_LINK = re.compile(r"\]\([^()\s]*\)")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_BLANKS = " \t\r\n\u00a0"
_MOVABLE = ".,:;!?"


class Run(NamedTuple):
    """Literal Markdown of one look, as it stands beside others in a paragraph."""

    text: str
    bold: bool = False
    italic: bool = False


def emphasised(text: str, *, bold: bool, italic: bool, before: str = "", after: str = "") -> str:
    """`text` as `**text**`, `*text*` or `***text***`; as it is where that would not be emphasis.

    Blanks at the ends stay outside, and so does a stop before a letter.

    Args:
        text: literal (escaped) Markdown of one paragraph; code and links must be whole.
        bold: whether it gets two stars.
        italic: whether it gets one; three with both.
        before: what stands before it on its line as it will be written, or at least the last
            character of that; empty at the start of a line.
        after: what follows it; empty at the end of a line.
    """
    stars = "*" * (2 * bold + italic)
    return _wrapped(text, stars, before, after) if stars and _is_whole(text) else text


def emphasised_runs(runs: Iterable[Run]) -> str:
    """A paragraph of runs: neighbours that look alike become one, italic lies within bold.

    Blanks between two runs take part in what both have.
    """
    merged = _merged(runs)
    if not all(_is_whole(run.text) for run in merged if run.bold or run.italic):
        merged = [run if _is_whole(run.text) else Run(run.text) for run in merged]
    if any("`" in _CODE.sub("", run.text) for run in merged):
        # An open backtick may make code of all up to the next one.
        return "".join(run.text for run in merged)
    written = ""
    at = 0
    for bold, group in groupby(merged, key=lambda run: run.bold):
        members = list(group)
        at += len(members)
        after = merged[at].text if at < len(merged) else ""
        if bold and all(run.italic for run in members):
            text = "".join(run.text for run in members)
            written += _wrapped(text, "***", written, after)
            continue
        inner = _with_italics(members, written, after)
        written += _wrapped(inner, "**", written, after) if bold else inner
    return written


def _merged(runs: Iterable[Run]) -> list[Run]:
    given = [run for run in runs if run.text]
    merged: list[Run] = []
    for number, one in enumerate(given):
        run = one
        if not run.text.strip(_MARKS).strip():
            left = merged[-1] if merged else Run("")
            right = given[number + 1] if number + 1 < len(given) else Run("")
            run = Run(run.text, left.bold and right.bold, left.italic and right.italic)
        if merged and merged[-1][1:] == run[1:]:
            merged[-1] = run._replace(text=merged[-1].text + run.text)
        else:
            merged.append(run)
    return merged


def _with_italics(runs: Sequence[Run], before: str, after: str) -> str:
    """Within bold only between blanks: elsewhere stars of both could pair the wrong way."""
    written = ""
    for number, run in enumerate(runs):
        follows = runs[number + 1].text if number + 1 < len(runs) else after
        apart = not run.bold or (_ends_blank(written, run) and _starts_blank(run, runs, number))
        text = run.text
        alone = run.italic and apart
        written += _wrapped(text, "*", written or before, follows) if alone else text
    return written


def _ends_blank(written: str, run: Run) -> bool:
    return not written or _visible(written + _lead(run.text))[-1:].isspace()


def _starts_blank(run: Run, runs: Sequence[Run], number: int) -> bool:
    if number + 1 == len(runs):
        return True
    return _visible(_lead(run.text[::-1])[::-1] + runs[number + 1].text)[:1].isspace()


def _lead(text: str) -> str:
    return text[: len(text) - len(text.lstrip(_MARKS + _BLANKS))]


def _is_whole(text: str) -> bool:
    """Whether no sign in it can pair with one outside."""
    bare = _CODE.sub("", text)
    if "`" in bare or _BLANK_LINE.search(text):
        return False
    bare = _LINK.sub("]", bare)
    return not ("*" in bare or "](" in bare or _loose_underscores(bare))


def _loose_underscores(text: str) -> bool:
    """Those within words are letters; others come in pairs, or may pair with one elsewhere."""
    return len(re.findall(r"(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)", text)) % 2 == 1


def _wrapped(text: str, stars: str, before: str, after: str) -> str:
    core = text.strip(_MARKS + _BLANKS)
    start = text.find(core)
    lead, trail = text[:start], text[start + len(core) :]
    before, after = _visible(before + lead)[-1:], _visible(trail + after)[:1]
    while core[-1:] and core[-1] in _MOVABLE and core[-2:-1] != "\\" and not _lets(after):
        after, trail, core = core[-1], core[-1] + trail, core[:-1]
    # Marks of places and stars within are of the same run to a reader.
    inner = core.strip(_MARKS + "*")
    # A backslash at the end would take the star for a literal one.
    if not inner or inner[-1] == "\\" or before in {"*", "\\"} or after == "*":
        return text
    opens = not _is_sign(inner[0]) or _lets(before)
    closes = not _is_sign(inner[-1]) or _lets(after)
    edges = inner[0].isspace() or inner[-1].isspace()
    return f"{lead}{stars}{core}{stars}{trail}" if opens and closes and not edges else text


def _visible(text: str) -> str:
    return text.translate(_unmarking()) if not text.isascii() else text


@cache
def _unmarking() -> dict[int, None]:
    return dict.fromkeys(map(ord, _MARKS))


def _lets(neighbour: str) -> bool:
    """Whether a sign at the edge of emphasis may stand beside this: line end, blank or sign.

    Readers differ on symbols outside ASCII, so those do not count here.
    """
    if not neighbour or neighbour.isspace():
        return True
    return unicodedata.category(neighbour)[0] == "P" or (
        neighbour.isascii() and not neighbour.isalnum()
    )


def _is_sign(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"
