"""Markdown in one form: fences closed, ATX headings, one blank line between blocks. Pure."""

import re
from collections.abc import Sequence

from services.converter.lines import Line, joined

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`\n]*)$")
_DEEP_FENCE = re.compile(r"^((?: {4}|\t)\s*)(`{3,}|~{3,})[^`\n]*$")
_ATX = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_PARAGRAPH_START = re.compile(r"^ {0,3}(?![#>|`~]|[-*+] |\d{1,9}[.)] )\S")
_RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_DEFINED = re.compile(r"\[[^\]]*\]:")
_HEADING = re.compile(r"#{1,6} ")


LONGEST_HEADING = 200
"""Characters; a longer paragraph over a rule is not taken for a heading."""


def is_heading(line: Line) -> bool:
    """Whether a line of the canonical form is an ATX heading."""
    return line.text.startswith("#") and not line.code and _HEADING.match(line.text) is not None


def formed(lines: Sequence[Line]) -> list[Line]:
    """Headings and blank lines in one form; code keeps all but trailing blanks of its lines."""
    return spaced(_with_atx([_without_blanks(line) for line in lines]))


def _without_blanks(line: Line) -> Line:
    if line.text[-1:] not in (" ", "\t"):
        return line
    return line.cut(0, len(line.text.rstrip(" \t")))


def marked(lines: Sequence[Line], *, literal: bool = False) -> list[Line]:
    """The lines with `code` set.

    A fence that is open at the end is closed, as Markdown reads it; with `literal` (the text is
    not Markdown, but may look like it) its opening is escaped and what follows is text.
    """
    out: list[Line] = []
    fence = ""
    inner = _InnerFences(lines)
    closings = _Closings(lines) if literal else None
    for number, line in enumerate(lines):
        deep = not fence and inner.holds(number)
        match = None if deep else _FENCE.match(line.text)
        if match and not fence and closings and not closings.follow(number, match[1]):
            out.append(_escaped(line))
            continue
        code = deep or bool(fence) or match is not None
        out.append(line._replace(code=code) if line.code != code else line)
        if match and not fence:
            fence = match[1]
        elif match and match[1].startswith(fence) and not match[2].strip():
            fence = ""
    return [*out, Line(fence, code=True)] if fence else out


class _Closings:
    """Where lines that can close a fence stand last, by their sign and length."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._last: dict[str, int] = {}
        for number, line in enumerate(lines):
            match = _FENCE.match(line.text)
            if match and not match[2].strip():
                self._last[match[1]] = number

    def follow(self, number: int, fence: str) -> bool:
        """Whether a fence that opens at this line is closed by a later one."""
        return any(last > number and mark.startswith(fence) for mark, last in self._last.items())


def _escaped(line: Line) -> Line:
    """A line that opens a fence, as text."""
    text = line.text.lstrip()
    start = len(line.text) - len(text)
    size = len(text) - len(text.lstrip(text[0]))
    parts: list[Line | str] = [line.cut(0, start)]
    for at in range(start, start + size):
        parts += ["\\", line.cut(at, at + 1)]
    return joined([*parts, line.cut(start + size, len(line.text))])


def as_text(line: Line) -> Line:
    """What is left of a line whose start went to a heading: it may not start a block itself."""
    if _FENCE.match(line.text):
        return _escaped(line)
    return joined(["\\", line]) if _ATX.match(line.text) or _DEFINED.match(line.text) else line


class _InnerFences:
    """Fenced blocks that are indented with a list's item; what is never closed is left as text."""

    _LONGEST = 400

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._end = 0
        self._open_until: dict[tuple[str, str], int] = {}

    def holds(self, number: int) -> bool:
        """Whether this line belongs to one; to be asked in ascending order."""
        if number >= self._end:
            opening = _DEEP_FENCE.match(self._lines[number].text)
            if opening and self._open_until.get((opening[1], opening[2]), 0) <= number:
                self._end = self._closed(number, opening[1], opening[2])
        return number < self._end

    def _closed(self, number: int, indent: str, fence: str) -> int:
        """The line after the block; 0 if there is no end."""
        last = min(number + self._LONGEST, len(self._lines))
        for at in range(number + 1, last):
            text = self._lines[at].text
            if text.strip() == fence and text.startswith(indent):
                return at + 1
            if text.strip() and not text.startswith(indent):
                last = at
                break
        self._open_until[indent, fence] = last
        return 0


def _with_atx(lines: Sequence[Line]) -> list[Line]:
    """Headings as `## Text`, whichever way they were written; empty ones are left out."""
    out: list[Line] = []
    for line in lines:
        if line.code or not line.text:
            out.append(line)
            continue
        underline = _SETEXT.match(line.text)
        if underline and _heads(out):
            out[-1] = joined(["# " if underline[1][0] == "=" else "## ", out[-1].stripped()])
            continue
        if underline and out and out[-1].text and not out[-1].code:
            # To Markdown a paragraph of several lines would be a heading as well.
            out.append(Line(""))
        heading = _ATX.match(line.text)
        if heading is None:
            out.append(line)
        elif heading[2] and heading[2].strip("#").strip():
            out.append(_atx(line, heading))
    return out


def _atx(line: Line, heading: re.Match[str]) -> Line:
    if line.text == f"{heading[1]} {heading[2]}":
        return line
    return joined([line.cut(*heading.span(1)), " ", line.cut(*heading.span(2)).stripped()])


def _heads(lines: Sequence[Line]) -> bool:
    """Whether the last line is a paragraph of one line, which an underline makes a heading."""
    if not lines or lines[-1].code or not _PARAGRAPH_START.match(lines[-1].text):
        return False
    if _RULE.match(lines[-1].text) or len(lines[-1].text) > LONGEST_HEADING:
        return False
    if len(lines) == 1:
        return True
    above = lines[-2]
    return above.code or not above.text.strip() or is_heading(above)


def spaced(lines: Sequence[Line]) -> list[Line]:
    """Blank lines: one around headings and fenced blocks, never two, none at the ends.

    A rule at the very start goes, so that no text can be taken for front matter.
    """
    out: list[Line] = []
    for line in lines:
        if out and out[-1].text and line.text and _apart(out[-1], line):
            out.append(Line(""))
        if line.text or line.code or (out and out[-1].text):
            out.append(line)
    while out and not out[-1].text:
        out.pop()
    start = next((n for n, line in enumerate(out) if line.text and not _is_rule(line)), len(out))
    return out[start:]


def _is_rule(line: Line) -> bool:
    return not line.code and _RULE.match(line.text) is not None


def _apart(above: Line, below: Line) -> bool:
    """Whether a blank line must stand between; fences inside a list stay in their item."""
    if above.code != below.code:
        fence = above if above.code else below
        return _DEEP_FENCE.match(fence.text) is None
    return is_heading(above) or is_heading(below)
