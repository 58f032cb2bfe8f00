"""Cuts a text into what the learned layer reads at once: sentences, short lines, table cells."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

LONGEST = 400
"""Characters of a window; a longer sentence is cut at a space, or anywhere without one."""

SHORTEST = 12
"""Letters; a shorter piece joins what follows it on its line."""

WRAPPED = 45
"""Characters; a shorter line is not the first part of a wrapped paragraph."""

LOOK = 64
"""Characters of a piece in which its letters are counted."""

Span = tuple[int, int]

_CAPITALS = "A-ZÄÖÜČĆĐŠŽЀ-Я"
_END = re.compile(
    r"[.!?…]+[\"'»“”’)\]*_]*(?=\s|$)"  # a sentence
    rf"|[;:](?=\s+[\"'»„“‚«]?[{_CAPITALS}])"  # a part that goes on like one
    r"|\|"  # a cell
)
_LETTERS = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Window:
    """Characters `start` to `end` of a text.

    `alone`: it fills its line or cell.
    """

    start: int
    end: int
    alone: bool


def windows(text: str) -> Iterator[Window]:
    """Windows in order, without gaps: every character is in exactly one. Linear in time."""
    start = 0
    for window in _cut(text):
        if not _is_blank(text, window):
            yield Window(start, window.end, window.alone)
            start = window.end
    if start < len(text):
        yield Window(start, len(text), True)


def _is_blank(text: str, window: Window) -> bool:
    return window.end - window.start <= LONGEST and not text[window.start : window.end].strip()


def _cut(text: str) -> Iterator[Window]:
    for start, end in _paragraphs(text):
        yield from _sentences(text, start, end)


def _paragraphs(text: str) -> Iterator[Span]:
    """Lines; wrapped ones (the next goes on in small letters) are taken together."""
    start = at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        if not _goes_on(text, at, end):
            yield start, end
            start = end
        at = end
    if start < at:
        yield start, at


def _goes_on(text: str, start: int, end: int) -> bool:
    if end - start < WRAPPED or not text[end : end + LOOK].lstrip(" (")[:1].islower():
        return False
    return text[max(start, end - LOOK) : end].rstrip()[-1:] not in (".", "!", "?", ":", "|", "")


def _sentences(text: str, start: int, end: int) -> Iterator[Window]:
    cuts = [start]
    for match in _END.finditer(text, start, end):
        if _is_long(text, cuts[-1], match.end()):
            cuts.append(match.end())
    if len(cuts) > 1 and text[cuts[-1] - 1] != "|" and not _is_long(text, cuts[-1], end):
        cuts.pop()
    if cuts[-1] < end or len(cuts) == 1:
        cuts.append(end)
    alone = len(cuts) == 2
    for low, high in pairwise(cuts):
        is_cell = text[high - 1] == "|"
        for piece in _pieces(text, low, high):
            yield Window(*piece, alone or is_cell)


def _is_long(text: str, start: int, end: int) -> bool:
    return len(_LETTERS.findall(text, start, min(end, start + LOOK))) >= SHORTEST


def _pieces(text: str, start: int, end: int) -> Iterator[Span]:
    while end - start > LONGEST:
        space = text.rfind(" ", start + LONGEST // 2, start + LONGEST)
        cut = space + 1 if space >= 0 else start + LONGEST
        yield start, cut
        start = cut
    yield start, end
