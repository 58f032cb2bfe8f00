"""Headings of contracts: `2. Term. This agreement …`, where a title begins its text. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from services.converter.form import as_text, is_heading, spaced
from services.converter.headings import reads_as_title
from services.converter.lines import Line, joined

_LEAST = 4
_LONGEST = 100
_MOST_STARTS = 50
_ENOUGH_TEXT = 80
_NUMBER = re.compile(r"(\*\*)?(\d{1,2})\.\s+(?=[^\W\d_a-zа-я])")
_RUN_IN = re.compile(r"[^.;:*\n]{3,90}\.(?=\s+[\"“„«(]?[^\W\d_a-zа-я])")
_BOLD = re.compile(r"([^*\n]{2,100})\*\*(?=\s|$)")


class _Clause(NamedTuple):
    """`line` holds a title at `start:end`, and text from `rest` on, unless that is its end.

    `sure`: type or place tells it from the first sentence of an item of a list.
    """

    line: int
    number: int
    start: int
    end: int
    rest: int
    sure: bool


def recover_clauses(lines: Sequence[Line]) -> list[Line] | None:
    """The lines with headings for numbered clauses; None if there are none.

    The clauses count up from 1 without a gap, have text, make up most of the document, and no
    other heading stands between them.
    """
    found = _row([c for n in range(len(lines)) if (c := _clause(lines, n)) is not None])
    if len(found) < _LEAST or sum(c.sure for c in found) < min(3, len(found) / 2):
        return None
    first, last = found[0].line, found[-1].line
    end = next((n for n in range(last + 1, len(lines)) if is_heading(lines[n])), len(lines))
    if any(is_heading(line) or line.code for line in lines[first:end]):
        return None
    ends = [*(c.line for c in found[1:]), end]
    sizes = [
        sum(len(line.text) for line in lines[c.line : e]) for c, e in zip(found, ends, strict=True)
    ]
    holding = sum(size >= _ENOUGH_TEXT for size in sizes)
    if holding * 5 < len(found) * 4 or sum(sizes) * 2 < sum(len(line.text) for line in lines):
        return None
    above = [line for line in lines[:first] if is_heading(line)]
    level = len(above[-1].text.split(" ", 1)[0]) + 1 if above else 1
    return _written(lines, {c.line: c for c in found}, min(level, 6))


def _clause(lines: Sequence[Line], number: int) -> _Clause | None:
    line = lines[number]
    match = None if line.code else _NUMBER.match(line.text)
    if match is None:
        return None
    text = line.text
    start = len(match[1] or "")
    bold = _BOLD.match(text, match.end()) if match[1] else None
    if bold:
        # What is bold to the end is a title, too.
        return _Clause(number, int(match[2]), start, bold.end(1), bold.end(), sure=True)
    alone = not any(lines[n].text for n in (number - 1, number + 1) if 0 <= n < len(lines))
    title = text[match.end() :]
    title = title.removesuffix(".")
    if alone and len(text) <= _LONGEST and ". " not in title and reads_as_title(title):
        sure = text[-1] != "."
        return _Clause(number, int(match[2]), start, len(text), len(text), sure=sure)
    run_in = _RUN_IN.match(text, match.end())
    if run_in is None or len(run_in[0].split()) > 9:
        return None
    return _Clause(number, int(match[2]), start, run_in.end(), run_in.end(), sure=False)


def _row(found: Sequence[_Clause]) -> list[_Clause]:
    """Those that count up from 1; of several with a number the sure one, else the first."""
    best: list[_Clause] = []
    # Lists may begin anew a thousand times: those that do are no clauses.
    starts = [at for at, clause in enumerate(found) if clause.number == 1][:_MOST_STARTS]
    for at in starts:
        row = [found[at]]
        for later in found[at + 1 :]:
            if later.number == row[-1].number + 1:
                row.append(later)
            elif later.number == row[-1].number and later.sure and not row[-1].sure:
                row[-1] = later
        best = max(best, row, key=len)
    return best


def _written(lines: Sequence[Line], clauses: dict[int, _Clause], level: int) -> list[Line]:
    out: list[Line] = []
    for number, line in enumerate(lines):
        clause = clauses.get(number)
        if clause is None:
            out.append(line)
            continue
        head = line.cut(clause.start, clause.end).stripped()
        out += [Line(""), joined(["#" * level + " ", head]), Line("")]
        if clause.rest < len(line.text):
            out.append(as_text(line.cut(clause.rest, len(line.text)).stripped()))
    return spaced(out)
