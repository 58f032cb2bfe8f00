"""Lines that head, or may head, a part of a law. Pure."""

import re
from dataclasses import dataclass, field
from typing import Literal

from services.converter.form import is_heading
from services.converter.headings import (
    ANNEX,
    ARTICLE,
    LONGEST_TITLE,
    PARAGRAPH,
    Mark,
    annex_to,
    legal_mark,
    reads_as_title,
)
from services.converter.lines import Line

NAMED, TOPIC, CAPITALS = "named", "topic", "capitals"
"""Kinds without a number: a preamble, a title that stands above its articles, a chapter that is
told by its capitals alone."""
LEAVES = (ARTICLE, PARAGRAPH)
LEAST = 3
"""Articles that make a law."""
MOST_LINES = 3
"""Lines of a title."""
SHORT = 160
"""Characters that are no text yet: of an entry in a list of contents, of a title."""
MARKUP = "#*_\\ \t"
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3}|_{1,3})(?=\S)(.+?)(?<=\S)\1(?![\w*])")
_ESCAPE = re.compile(r"\\(?=[.)(\-–#>+\[\]])")
_NO_TITLE = re.compile(r"[-*+|>#\d`~$]|\(?[\d\w]{1,3}\)|[IVX]+\. |<")
Form = Literal["bare", "titled", "sentence"]


@dataclass(slots=True)
class Item:
    """A line that heads, or may head, a part of a law.

    `bare` is the line without `#` and emphasis; `known`: its level, 0 for a line of text;
    `run_in`: text follows on the same line, from `end`; `titles`: lines of text or headings that
    are its title; `level`: what it gets; `is_leaf`: of the kind that holds the text.
    """

    line: int
    mark: Mark
    bare: Line
    form: Form
    known: int = 0
    run_in: bool = False
    titles: list[int] = field(default_factory=list)
    level: int = 0
    is_leaf: bool = False
    end: int = 0

    @property
    def unit(self) -> str:
        return self.mark.unit


def level_of(line: Line) -> int:
    """Of a heading; 0 for other lines."""
    return len(line.text) - len(line.text.lstrip("#")) if is_heading(line) else 0


def known_and_bare(line: Line) -> tuple[int, Line]:
    """The level of a heading, 0 for other lines; and its text as `_bare`."""
    known = level_of(line)
    return known, bare_line(line.cut(known, len(line.text)))


def bare_line(line: Line) -> Line:
    """Without blanks around, emphasis, and escapes that a heading does not need."""
    line = line.stripped()
    if "*" not in line.text and "_" not in line.text and "\\" not in line.text:
        return line
    marks: list[tuple[int, int]] = []
    for match in _EMPHASIS.finditer(line.text, 0, LONGEST_TITLE):
        size = len(match[1])
        marks += [(match.start(), match.start() + size), (match.end() - size, match.end())]
    marks += [match.span() for match in _ESCAPE.finditer(line.text, 0, LONGEST_TITLE)]
    return line.without(sorted(marks)).stripped()


def number_of(item: "Item") -> tuple[tuple[int, int, str], ...]:
    """The number of a part, to be compared: 5.6 stands before 5.16, and 12 before 12a."""
    text = f"{item.mark.value}{item.mark.suffix}"
    found = re.finditer(r"(\d+)|([a-zа-я]{1,2})(?![^\W\d_])", text)
    return tuple((0, int(m[1]), "") if m[1] else (1, 0, m[2]) for m in found)


def form_of(text: str, mark: Mark, known: int) -> Form:
    if mark.title >= len(text):
        return "bare"
    if known or reads_as_title(text[mark.title :], text[: mark.end]):
        return "titled"
    if mark.unit == ANNEX and annex_to(text[mark.title :]):
        return "titled"
    return "sentence"


def runs_in(text: str, mark: Mark) -> bool:
    """`Чл. 5. (1) Text` and `§ 1. Text`: the article starts on the line of its number."""
    rest = text[mark.title :]
    if mark.value == 0 or not (text[mark.end - 1] in ".:" or rest.startswith("(1)")):
        return False
    first = rest.lstrip("(\"'„»«“‘[")[:1]
    return rest.startswith("(1)") or first.isupper() or rest[:1] in "(["


def is_title(text: str) -> bool:
    """Whether a line, or a paragraph of few lines, reads as the title of a part."""
    if text.startswith("(") and text.endswith(")") and len(text) <= LONGEST_TITLE:
        return not re.match(r"\(\w{1,3}\)", text) and text.count("(") == text.count(")")
    plain = text.strip("*_ ")
    return (
        0 < len(plain) <= LONGEST_TITLE
        and (plain[0].isupper() or plain[0] in "„«»“\"'")
        and plain[-1] not in ".,;:?!…-–"
        and not _NO_TITLE.match(plain)
        and legal_mark(plain) is None
        and re.search(r"[^\W\d_]{2}", plain) is not None
    )
