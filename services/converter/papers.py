"""Headings of numbered papers and of wiki text. Pure."""

from collections.abc import Sequence

from services.converter.form import is_heading, spaced
from services.converter.headings import number_parts
from services.converter.lines import Line, joined

_LEAST = 3
_ENOUGH_TEXT = 80


def recover_paper(lines: Sequence[Line]) -> list[Line]:
    """Headings for `1 Introduction`, `2 Method`, … in a text that has no more than a title."""
    known = [line for line in lines if is_heading(line)]
    if len(known) > 2 or any(line.code for line in lines):
        return list(lines)
    depths = _numbered([line.text for line in lines])
    top = max((len(line.text.split(" ")[0]) for line in known), default=0)
    out: list[Line] = []
    for number, line in enumerate(lines):
        if number in depths:
            level = min(top + depths[number], 6)
            out += [Line(""), joined(["#" * level + " ", line.stripped()]), Line("")]
        else:
            out.append(line)
    return spaced(out)


def _numbered(lines: Sequence[str]) -> dict[int, int]:
    """Line numbers and depths of headings with text between them."""
    found: list[tuple[int, tuple[int, ...]]] = []
    text = _ENOUGH_TEXT
    for number, line in enumerate(lines):
        parts = number_parts(line)
        alone = not _line_at(lines, number - 1) and not _line_at(lines, number + 1)
        if parts and alone and len(line) < _ENOUGH_TEXT and line[-1:] not in ".,;:?!":
            found.append((number, parts))
            if text < _ENOUGH_TEXT and len(parts) == 1:
                return {}
            text = 0
        text += len(line)
    chapters = [parts[0] for _, parts in found if len(parts) == 1]
    if len(chapters) < _LEAST or chapters != list(range(1, len(chapters) + 1)):
        return {}
    return {number: len(parts) for number, parts in found}


def _line_at(lines: Sequence[str], number: int) -> str:
    return lines[number].strip() if 0 <= number < len(lines) else ""
