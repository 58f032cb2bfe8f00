"""Headings of numbered papers and of wiki text. Pure."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from services.converter.clauses import recover_clauses
from services.converter.form import is_heading, spaced
from services.converter.headings import (
    ANNEX,
    legal_mark,
    named_section,
    number_parts,
    part_of_decision,
    reads_as_title,
    roman_mark,
)
from services.converter.lines import Line, joined
from services.converter.sequence import chain

_LEAST = 3
_ENOUGH_TEXT = 80
_LONGEST = 100
_WIKI = re.compile(r"(={2,6})\s*([^=\s].*?[^=\s]|[^=\s])\s*\1")
_LETTER = re.compile(r"([A-Z])\.\s+(?=[^\W\d_a-zа-я])")


class _Found(NamedTuple):
    """A line that may be a heading: `parts` are its numbers, outermost first."""

    line: int
    parts: tuple[int, ...]


def recover_paper(lines: Sequence[Line]) -> list[Line]:
    """Headings for `1 Introduction`, `2 Method`, … where there are none; levels where all have one.

    Headings of a text that has more than a title are left as they are, unless their numbers say
    that they differ and they are all on one level.
    """
    wiki = _wiki(lines)
    if wiki:
        return _written(lines, wiki)
    known = [n for n, line in enumerate(lines) if is_heading(line)]
    if len(known) > 2:
        return recover_clauses(lines) or _leveled(lines, known)
    if any(line.code for line in lines):
        return list(lines)
    top = max((_level(lines[n]) for n in known), default=0)
    texts = [line.text.strip() for line in lines]
    depths = _by(number_parts, texts) or _by(_roman_or_letter, texts)
    if depths:
        depths |= {n: 1 for n in range(len(texts)) if _names_section(texts, n)}
    else:
        clauses = recover_clauses(lines)
        if clauses:
            return clauses
        depths = _decision(texts)
    return _written(lines, {n: min(top + depth, 6) for n, depth in depths.items()})


def _decision(texts: Sequence[str]) -> dict[int, int]:
    """The parts of a court's decision, if it has two at least."""
    found = {
        n: 1
        for n, text in enumerate(texts)
        if text and part_of_decision(text) and not any(texts[m] for m in _beside(texts, n))
    }
    return found if len(found) > 1 else {}


def _beside(texts: Sequence[str], number: int) -> list[int]:
    return [n for n in (number - 1, number + 1) if 0 <= n < len(texts)]


def _written(lines: Sequence[Line], levels: dict[int, int]) -> list[Line]:
    out: list[Line] = []
    for number, line in enumerate(lines):
        if number not in levels:
            out.append(line)
            continue
        text = line.stripped()
        mark = _WIKI.fullmatch(text.text)
        text = text.cut(*mark.span(2)) if mark else text.cut(_level(line), len(text.text))
        out += [Line(""), joined(["#" * levels[number] + " ", text.stripped()]), Line("")]
    return spaced(out)


def _level(line: Line) -> int:
    return len(line.text) - len(line.text.lstrip("#")) if is_heading(line) else 0


def _wiki(lines: Sequence[Line]) -> dict[int, int]:
    """`== History ==`, as wikis write headings, if there are some."""
    found = {
        n: len(match[1])
        for n, line in enumerate(lines)
        if "==" in line.text[:9] and not line.code and (match := _WIKI.fullmatch(line.text.strip()))
    }
    return found if len(found) > 1 else {}


def _leveled(lines: Sequence[Line], known: Sequence[int]) -> list[Line]:
    """Levels from the numbers, where `2.1` stands on the level of `2`."""
    numbered = {n: p for n in known if (p := number_parts(lines[n].text.lstrip("# ")))}
    levels = {_level(lines[n]) for n in numbered}
    depths = {len(parts) for parts in numbered.values()}
    tops = [parts[0] for parts in numbered.values() if len(parts) == 1]
    ascending = tops == sorted(set(tops)) and len(tops) >= 2
    if len(numbered) < _LEAST or len(levels) > 1 or len(depths) == 1 or not ascending:
        return list(lines)
    return _written(
        lines, {n: min(_level(lines[n]) + len(p) - 1, 6) for n, p in numbered.items() if len(p) > 1}
    )


def _by(parts_of: Callable[[str], tuple[int, ...] | None], texts: Sequence[str]) -> dict[int, int]:
    """Line numbers and depths of headings whose numbers count up, with text between them."""
    found = [
        _Found(n, parts)
        for n, text in enumerate(texts)
        if text and len(text) < _LONGEST and (parts := parts_of(text)) and _alone(texts, n)
    ]
    tops = [f for f in found if len(f.parts) == 1]
    tops = [tops[n] for n in chain([(f.parts[0], "") for f in tops], restart=3.0)]
    if len(tops) < _LEAST or [f.parts[0] for f in tops] != list(range(1, len(tops) + 1)):
        return {}
    ends = [*(f.line for f in tops[1:]), len(texts)]
    sizes = [sum(map(len, texts[f.line + 1 : e])) for f, e in zip(tops, ends, strict=True)]
    if sum(size >= _ENOUGH_TEXT for size in sizes) * 5 < len(sizes) * 3:
        return {}
    depths = {f.line: 1 for f in tops}
    above: tuple[int, ...] = (0,)
    for at in found:
        if at.line in depths or _follows(above, at.parts):
            depths[at.line] = len(at.parts)
            above = (at.parts[0] or above[0], *at.parts[1:])
    return depths


def _follows(above: tuple[int, ...], parts: tuple[int, ...]) -> bool:
    """Whether `2.1` may come after `2`, or `2.2` after `2.1.4`."""
    if len(parts) == 1 or above[0] == 0:
        return False
    outer = (*above, *[0] * len(parts))[: len(parts)]
    # Letters do not say which chapter they are in: their first part is 0.
    first = parts[0] in (0, above[0])
    return first and outer[1:-1] == parts[1:-1] and 0 < parts[-1] - outer[-1] <= 2


def _roman_or_letter(text: str) -> tuple[int, ...] | None:
    mark, letter = roman_mark(text), _LETTER.match(text)
    if mark and text[mark.end - 1] == "." and reads_as_title(text[mark.title :], text[: mark.end]):
        return (mark.value,)
    return (0, ord(letter[1]) - ord("A") + 1) if letter else None


def _alone(texts: Sequence[str], number: int) -> bool:
    """A short line with a blank one above and below that does not end like a sentence."""
    text = texts[number]
    blank = not any(texts[n] for n in (number - 1, number + 1) if 0 <= n < len(texts))
    return blank and len(text) < _LONGEST and text[-1] not in ".,;:?!"


def _names_section(texts: Sequence[str], number: int) -> bool:
    """A part without such a number: the references, an annex."""
    text = texts[number]
    mark = legal_mark(text) if text else None
    named = named_section(text) or (mark is not None and mark.unit == ANNEX and mark.value > 0)
    return bool(text) and named and _alone(texts, number)
