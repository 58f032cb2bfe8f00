"""Titles of plain text with a row of signs below, as manuals have them. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from services.converter.form import LONGEST_HEADING
from services.converter.lines import Line, joined

_ROW = re.compile(r"([*=~^+#-])\1{3,}")
_OF_MARKDOWN = frozenset("=-")
_FEWEST = 2
_DEEPEST = 6


class _Title(NamedTuple):
    """`row` is the sign below, and above if `over`; `line` is the title's."""

    line: int
    row: str
    over: bool


def underlined(lines: Sequence[Line]) -> list[Line]:
    """Headings for `Title` with `*****` of its length below; signs get levels as they first appear.

    A text that uses no other signs than Markdown does is left to Markdown's rules.
    """
    found = list(_titles(lines))
    if len(found) < _FEWEST or not {title.row for title in found} - _OF_MARKDOWN:
        return list(lines)
    kinds = list(dict.fromkeys((title.row, title.over) for title in found))
    heads = {title.line: kinds.index((title.row, title.over)) + 1 for title in found}
    rows = {t.line + 1 for t in found} | {t.line - 1 for t in found if t.over}
    out: list[Line] = []
    for number, line in enumerate(lines):
        if number in heads:
            mark = "#" * min(heads[number], _DEEPEST)
            out += [Line(""), joined([f"{mark} ", line.stripped()]), Line("")]
        elif number not in rows:
            out.append(line)
    return out


def _titles(lines: Sequence[Line]) -> Iterator[_Title]:
    for number in range(1, len(lines)):
        row = _ROW.fullmatch(_row(lines[number]))
        title = lines[number - 1].text.strip()
        if row is None or lines[number].code or not 1 < len(title) <= LONGEST_HEADING:
            continue
        above = _row(lines[number - 2]) if number > 1 else ""
        over = above == row[0]
        fits = abs(len(row[0]) - len(title)) <= 2 and title[0].isalnum()
        if fits and (over or not above):
            yield _Title(number - 1, row[1], over)


def _row(line: Line) -> str:
    """Rows of tildes or number signs, which would be blocks of Markdown, have been escaped."""
    return line.text.strip().replace("\\", "")
