"""Bold and italic through escapes and libraries, to Markdown that keeps the words whole.

A text and the look of each of its characters become literal Markdown with stars. Where a library
stands between, the look travels as a sign in the text (noncharacters, as in `marks.py`).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from services.converter.headings import (
    legal_mark,
    named_part,
    named_section,
    number_parts,
    roman_mark,
)
from services.converter.parsing.emphasis import Run, emphasised_runs
from services.converter.parsing.literal import linked
from services.converter.parsing.marks import NONCHARACTERS, unmarked

BOLD, ITALIC, STRUCK = 1, 2, 4
"""Bits of a look; 0 is a plain one."""

Runs = list[tuple[str, int]]
"""Texts from outside, and their looks."""

QUOTED = "\ufde7"
"""At the start of a paragraph: it is a quotation."""

_SIGNS = {BOLD: "\ufde3", ITALIC: "\ufde4", BOLD | ITALIC: "\ufde5"}
_PLAIN = "\ufde6"
_LOOKS = {sign: look for look, sign in _SIGNS.items()} | {_PLAIN: 0}
_ANY = re.compile("[\ufde3-\ufde7]")
_WORD = re.compile(r"\w+(?:['’\-‑]\w+)*")
_HEADING = re.compile(rf"[{NONCHARACTERS}]*#{{1,6}} ")
_CELL_EDGE = re.compile(r"(?<!\\)((?:\\\\)*)\|")
_CONTENTS = re.compile(r"(?:[.·…_]\s?){3,}\s*[\divxlc]{1,5}$")
"""A line of a list of contents."""
_WIKI = re.compile(r"==+.*==+")
_LONGEST_HEADING = 250
_OPENED = "\ufffe[\uffff"
_LINK_SIGN = re.compile("\ufffe(?:\\[|\\]\\d+)\uffff")
_LINKED = re.compile("(!?)\ufffe\\[\uffff([^\ufffe\n]*)\ufffe\\](\\d+)\uffff")
_JOINT = re.compile(
    "([*]{0,3})\ufffe\\](\\d+)\uffff([ \t]*)\ufffe\\[\uffff([*]{0,3})"
    "(?=[^\ufffe\n]*\ufffe\\](\\d+)\uffff)"
)
_OUTSIDE = re.compile(r"(?:https?|ftp|mailto):", re.IGNORECASE)
# Word keeps the English name of its own styles in every language; other programs translate it.
_QUOTE = re.compile(
    r"(?:(?:intense|block) )?quot(?:e|ation)s?|block text|(?:intensives )?zitat|blockzitat"
    r"|(?:(?:выделенная|интензивен|интензивни|истакнути) )?цитат|выделенная цитата|цитата"
    r"|(?:(?:jak|intenzivan|intenziven|istaknuti|intenzivni) )?citat",
    re.IGNORECASE,
)
_TITLE = re.compile(r"title|titel|название|заглавие", re.IGNORECASE)


def signed(text: str, look: int) -> str:
    """`text` with the signs of its look, blanks at its ends left out; for `resolved`."""
    core = text.strip()
    if not look or not core:
        return text
    start = text.index(core)
    return f"{text[:start]}{_SIGNS[look]}{core}{_PLAIN}{text[start + len(core) :]}"


def names_quotation(style: str) -> bool:
    """Whether a style of paragraphs with this name is one of quotations."""
    return _QUOTE.fullmatch(style.strip()) is not None


def names_title(style: str) -> bool:
    """Whether a style of paragraphs with this name is that of the title of a document."""
    return _TITLE.fullmatch(style.strip()) is not None


def look_of(*, bold: bool = False, italic: bool = False, struck: bool = False) -> int:
    """All of them as one number."""
    return BOLD * bold | ITALIC * italic | STRUCK * struck


def literal(runs: Runs, escape: Callable[[str], str]) -> str:
    """Text of runs as `escape` writes it, with `*`, `**` and `~~` around what looks so.

    Args:
        runs: texts from outside and their looks.
        escape: a function of `literal.py`: it may put in backslashes, and leave out or change
            blanks and controls, but nothing else.
    """
    text = "".join(text for text, _ in runs)
    written = escape(text)
    if not any(look and part.strip() for part, look in runs):
        return written
    looks = [look for part, look in runs for _ in part]
    carried = list(_carried(text, looks, written))
    lines: list[str] = []
    at = 0
    for line in written.split("\n"):
        lines.append(_starred(*_struck(line, carried[at : at + len(line)])))
        at += len(line) + 1
    return "\n".join(lines)


def plain_text(runs: Runs) -> str:
    """The text alone, without signs of links."""
    return _LINK_SIGN.sub("", "".join(text for text, _ in runs))


class Links:
    """Addresses behind the texts of a document, which signs in its runs lead to.

    XML cannot hold the characters of these signs, so that no document can forge one.
    """

    opened = (_OPENED, 0)
    """The run before the text of a link."""

    def __init__(self) -> None:
        self._addresses: list[str] = []

    def closed(self, address: str) -> tuple[str, int]:
        """The run behind the text of a link."""
        self._addresses.append(address.strip())
        return f"\ufffe]{len(self._addresses) - 1}\uffff", 0

    def written(self, markdown: str) -> str:
        """Literal Markdown with links in the place of signs.

        A text that is its address stays plain, and so does one that leads nowhere outside.
        """
        return _LINK_SIGN.sub("", _LINKED.sub(self._link, _JOINT.sub(self._joined, markdown)))

    def _joined(self, match: re.Match[str]) -> str:
        """Two links side by side that lead to one place are one."""
        first, second = (self._address(number) for number in match.group(2, 5))
        if first != second:
            return match[0]
        # Emphasis goes on: four stars would be no end and start to a reader.
        goes_on = match[1] == match[4] and not match[3]
        return "" if goes_on else f"{match[1]}{match[3]}{match[4]}"

    def _address(self, number: str) -> str:
        return self._addresses[int(number)] if int(number) < len(self._addresses) else ""

    def _link(self, match: re.Match[str]) -> str:
        text, address = match[2], self._address(match[3])
        bare = re.sub(r"[\\*]", "", text).strip()
        shown = bare.rstrip("/") in {address.rstrip("/"), address.removeprefix("mailto:")}
        link = linked(text, address) if not shown and _OUTSIDE.match(address) else text
        # Behind a bare `!` it would be a picture.
        escape = "\\" if match[1] and link != text else ""
        return f"{escape}{match[1]}{link}"


def _struck(line: str, looks: Sequence[int]) -> tuple[str, Sequence[int]]:
    """The line with `~~` around what is crossed out: it must not read as valid. It is not
    emphasised besides."""
    if not any(look & STRUCK for look in looks):
        return line, looks
    parts: list[tuple[str, list[int]]] = []
    at = 0
    for struck, group in groupby(looks, key=lambda look: look & STRUCK):
        # Emphasis that reaches over an edge of it would take the edge for text.
        own = [0 if struck else look for look in group]
        text = line[at : at + len(own)]
        # A backslash would make the edge a literal one.
        core = text.strip().rstrip("\\")
        lead = text.index(core)
        if struck and core and "~" not in (core[0], core[-1], *line[at + lead - 1 : at + lead]):
            behind = lead + len(core)
            parts += [(text[:lead], own[:lead]), ("~~", [0, 0]), (core, own[lead:behind]),
                      ("~~", [0, 0]), (text[behind:], own[behind:])]  # fmt: skip
        else:
            parts.append((text, own))
        at += len(own)
    return "".join(text for text, _ in parts), [look for _, own in parts for look in own]


def _carried(text: str, looks: Sequence[int], written: str) -> Iterable[int]:
    """The look of each character of `written`, which was made of `text`."""
    at, end = 0, len(text)
    for char in written:
        if char.isspace():
            # One blank may stand for many; as blanks take the look around them, any will do.
            yield looks[at] if at < end and text[at].isspace() else 0
            at += at < end and text[at].isspace()
            continue
        there = at
        while there < end and text[there] != char and _may_go(text[there]):
            there += 1
        if there < end and text[there] == char:
            yield looks[there]
            at = there + 1
        else:
            # A backslash that was put in belongs to what it escapes.
            yield looks[there] if there < end else 0


def _may_go(char: str) -> bool:
    return char.isspace() or not char.isprintable()


def _starred(line: str, looks: Sequence[int]) -> str:
    """A line of literal Markdown with stars."""
    if not any(looks) or _heads(line, looks):
        return line
    whole = list(looks)
    for word in _WORD.finditer(line):
        # Half a word would be found by nobody who looks for the word.
        start, stop = word.span()
        common = BOLD | ITALIC
        for look in looks[start:stop]:
            common &= look
        whole[start:stop] = [common] * (stop - start)
    runs = _runs(line, whole)
    written = emphasised_runs(runs)
    if not ("***" in written or "~~" in written):
        return written
    # Stars that meet, or reach over the edge of what is crossed out, may not pair as they were
    # meant.
    shown = _stars_shown(line)
    if _stars_shown(written) > shown:
        written = emphasised_runs(run._replace(italic=False) for run in runs)
        written = line if _stars_shown(written) > shown else written
    return written


@cache
def _reader() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("strikethrough")


def _stars_shown(line: str) -> int:
    """Stars that a reader of the rendered line sees."""
    if "*" not in line:
        return 0
    tokens = _reader().parseInline(unmarked(line))
    texts = (child.content for token in tokens for child in token.children or ())
    return sum(text.count("*") for text in texts)


def _runs(line: str, looks: Sequence[int]) -> list[Run]:
    """Signs alone take the look that both of their neighbours have; those of links have none, so
    that no emphasis reaches over the edge of one."""
    spoken = [look for look, char in zip(looks, line, strict=True) if char.isalnum()]
    runs: list[Run] = []
    at = heard = 0
    for own, group in groupby(looks):
        size = len(list(group))
        text = line[at : at + size]
        letters = sum(map(str.isalnum, text))
        around = (spoken[heard - 1], spoken[heard]) if 0 < heard < len(spoken) else (0, 0)
        look = own if letters or _OPENED[0] in text else around[0] & around[1]
        runs.append(Run(text, bool(look & BOLD), bool(look & ITALIC)))
        at += size
        heard += letters
    return runs


def _heads(line: str, looks: Sequence[int]) -> bool:
    """Whether the line, all of one look, reads as the heading of a part, or is but a number.

    Headings are found by their words later, and stand without stars.
    """
    bare = unmarked(_LINK_SIGN.sub("", line)).replace("\\", "").strip()
    letters = {look for look, char in zip(looks, line, strict=True) if char.isalnum()}
    if len(letters) != 1 or len(bare) > _LONGEST_HEADING:
        return False
    return (
        not any(char.isalpha() for char in bare)
        or legal_mark(bare) is not None
        or number_parts(bare) is not None
        or roman_mark(bare) is not None
        or named_section(bare)
        or named_part(bare)
        or _WIKI.fullmatch(bare) is not None
        or _CONTENTS.search(bare) is not None
    )


# --- behind a library -----------------------------------------------------------------------------


def resolved(markdown: str) -> str:
    """Markdown with stars and quotation marks in the place of signs.

    In headings, heads of tables and code the signs go. The marks of places stay.
    """
    if not _ANY.search(markdown):
        return markdown
    reader = _Resolver()
    for line in markdown.split("\n"):
        reader.read(line)
    return "\n".join(reader.lines)


class _Resolver:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._look = 0
        self._fence = self._row = self._quoted = False
        self._last_quoted = -1

    def read(self, line: str) -> None:
        """The next line."""
        bare = unmarked(line).strip()
        fence = bare.startswith("```")
        self._fence ^= fence
        if not bare:
            self._look = 0
            self._row = self._quoted = False
            self.lines.append(line)
        elif self._fence or fence or _HEADING.match(line):
            self.lines.append(_ANY.sub("", line))
        elif bare.startswith("|"):
            head, self._row = not self._row, True
            self.lines.append(_ANY.sub("", line) if head else self._cells(line))
        else:
            self._text(line)

    def _text(self, line: str) -> None:
        starts = line[: len(line) - len(line.lstrip(NONCHARACTERS))]
        if QUOTED in starts:
            if self._last_quoted == len(self.lines) - 2:
                # Paragraphs of one quotation.
                self.lines[-1] = ">"
            self._quoted = True
        if self._quoted:
            self._last_quoted = len(self.lines)
        self.lines.append(("> " if self._quoted else "") + self._stars(line))

    def _cells(self, line: str) -> str:
        parts: list[str] = []
        at = 0
        for edge in _CELL_EDGE.finditer(line):
            self._look = 0
            parts += [self._stars(line[at : edge.end(1)]), "|"]
            at = edge.end()
        self._look = 0
        return "".join([*parts, self._stars(line[at:])])

    def _stars(self, text: str) -> str:
        chars: list[str] = []
        looks: list[int] = []
        for char in text:
            if char in _LOOKS:
                self._look = _LOOKS[char]
            elif char != QUOTED:
                chars.append(char)
                looks.append(0 if char.isspace() or char in NONCHARACTERS else self._look)
        return _starred("".join(chars), looks)
