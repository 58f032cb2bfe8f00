"""Bold and italic as CommonMark, only where its rules hold: never a star that a reader would see.

A run of stars opens or closes by the characters beside it (CommonMark 0.31, "left-flanking" and
"right-flanking"). Where they forbid it, where the text has stars of its own or half a piece of
code, the emphasis is dropped and the words stay. Marks of places do
not count: they are gone when it is read.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from services.converter.parsing.marks import NONCHARACTERS, unmarked

_TICKS = re.compile("`+")
_LINK = re.compile(r"\]\([^()\s]*\)")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_BLANKS = " \t\r\n\u00a0"
_TAIL = 64
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
    if any("`" in _without_code(run.text) for run in merged):
        # An open backtick may make code of all up to the next one.
        return "".join(run.text for run in merged)
    written: list[str] = []
    at = 0
    for bold, group in groupby(merged, key=lambda run: run.bold):
        members = list(group)
        at += len(members)
        after = merged[at].text if at < len(merged) else ""
        before = _tail(written)
        if bold and all(run.italic for run in members):
            text = "".join(run.text for run in members)
            written.append(_wrapped(text, "***", before, after))
            continue
        inner = _with_italics(members, before, after)
        written.append(_wrapped(inner, "**", before, after) if bold else inner)
    return "".join(written)


def _tail(written: Sequence[str]) -> str:
    """The end of what was written, long enough to hold a letter behind marks."""
    pieces: list[str] = []
    for piece in reversed(written):
        pieces.append(piece[-_TAIL:])
        if sum(map(len, pieces)) >= _TAIL:
            break
    return "".join(reversed(pieces))


def _merged(runs: Iterable[Run]) -> list[Run]:
    given = [run for run in runs if run.text]
    looked: list[Run] = []
    for number, run in enumerate(given):
        if run.text.strip(NONCHARACTERS).strip():
            looked.append(run)
            continue
        left = looked[-1] if looked else Run("")
        right = given[number + 1] if number + 1 < len(given) else Run("")
        looked.append(Run(run.text, left.bold and right.bold, left.italic and right.italic))
    return [
        Run("".join(run.text for run in group), *look)
        for look, group in groupby(looked, key=lambda run: (run.bold, run.italic))
    ]


def _with_italics(runs: Sequence[Run], before: str, after: str) -> str:
    """Within bold only between blanks: elsewhere stars of both could pair the wrong way."""
    written: list[str] = []
    for number, run in enumerate(runs):
        follows = runs[number + 1].text if number + 1 < len(runs) else after
        tail = _tail(written)
        apart = not run.bold or (_ends_blank(tail, run) and _starts_blank(run, runs, number))
        alone = run.italic and apart
        written.append(_wrapped(run.text, "*", tail or before, follows) if alone else run.text)
    return "".join(written)


def _ends_blank(written: str, run: Run) -> bool:
    return not written or unmarked(written + _lead(run.text))[-1:].isspace()


def _starts_blank(run: Run, runs: Sequence[Run], number: int) -> bool:
    if number + 1 == len(runs):
        return True
    return unmarked(_lead(run.text[::-1])[::-1] + runs[number + 1].text)[:1].isspace()


def _lead(text: str) -> str:
    return text[: len(text) - len(text.lstrip(NONCHARACTERS + _BLANKS))]


def _is_whole(text: str) -> bool:
    """Whether no sign in it can pair with one outside."""
    bare = _without_code(text)
    if "`" in bare or _BLANK_LINE.search(text):
        return False
    bare = _LINK.sub("]", bare)
    return not ("*" in bare or "](" in bare or _loose_underscores(bare))


def _without_code(text: str) -> str:
    """Without code spans: from backticks to the next ones of the same number."""
    if "`" not in text:
        return text
    ticks = list(_TICKS.finditer(text))
    later: dict[int, list[int]] = {}
    for number in range(len(ticks) - 1, -1, -1):
        later.setdefault(len(ticks[number][0]), []).append(number)
    kept: list[str] = []
    at = number = 0
    while number < len(ticks):
        same = later[len(ticks[number][0])]
        while same and same[-1] <= number:
            same.pop()
        if same:
            kept.append(text[at : ticks[number].start()])
            number = same.pop()
            at = ticks[number].end()
        number += 1
    return "".join([*kept, text[at:]])


def _loose_underscores(text: str) -> bool:
    """Those within words are letters; others come in pairs, or may pair with one elsewhere."""
    return len(re.findall(r"(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)", text)) % 2 == 1


def _wrapped(text: str, stars: str, before: str, after: str) -> str:
    core = text.strip(NONCHARACTERS + _BLANKS)
    start = text.find(core)
    lead, trail = text[:start], text[start + len(core) :]
    before, after = unmarked(before + lead)[-1:], unmarked(trail + after)[:1]
    while core[-1:] and core[-1] in _MOVABLE and core[-2:-1] != "\\" and not _lets(after):
        after, trail, core = core[-1], core[-1] + trail, core[:-1]
    # Marks of places and stars within are of the same run to a reader.
    inner = core.strip(NONCHARACTERS + "*")
    # A backslash at the end would take the star for a literal one.
    if not inner or inner[-1] == "\\" or before in {"*", "\\"} or after == "*":
        return text
    opens = not _is_sign(inner[0]) or _lets(before)
    closes = not _is_sign(inner[-1]) or _lets(after)
    edges = inner[0].isspace() or inner[-1].isspace()
    return f"{lead}{stars}{core}{stars}{trail}" if opens and closes and not edges else text


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
