"""Bold and italic of a page, written into its text as Markdown."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PreformattedString, Tag

from services.converter.headings import LONGEST
from services.converter.parsing.article import Run as TextRun
from services.converter.parsing.article import runs_of
from services.converter.parsing.emphasis import Run, emphasised_runs

_BOLD = frozenset({"b", "strong"})
_ITALIC = frozenset({"i", "em"})
# Docling writes these on their own, with blanks around them.
_APART = frozenset({"a", "code", "s"})
_NEVER = ["h1", "h2", "h3", "h4", "h5", "h6", "pre", "th", "dt"]
_CELLS = frozenset({"td", "th"})
_WEIGHT = re.compile(r"font-weight\s*:\s*(?:(bold|bolder|[6-9]00)|normal|lighter|[1-5]00)", re.I)
_SLANT = re.compile(r"font-style\s*:\s*(?:(italic|oblique)|normal)", re.I)
_BLANKS = re.compile(r"[ \t\r\n\f]+")


class _Look(NamedTuple):
    apart: int
    """Identity of the link or code around it; 0 for none."""
    code: bool
    bold: bool
    italic: bool


def write_emphasis(soup: BeautifulSoup) -> None:
    """Put stars around what is bold or italic in running text, list items and parts of cells.

    Not in headings, nor around a whole line of a block or a cell that heads something by its look.
    Links must be resolved, and the elements that it reads still be there.
    """
    body = soup.body or soup
    if not any(_says(tag) for tag in body.find_all(True)):
        return
    runs = [list(group) for _, group in groupby(runs_of(body), key=lambda run: id(run.block))]
    for group in runs:
        block = group[0].block
        if block.name in _NEVER or block.find_parent(_NEVER):
            continue
        for run in group:
            _write(run, alone=len(group) == 1)


def _says(tag: Tag) -> bool:
    return tag.name in _BOLD or tag.name in _ITALIC or "style" in tag.attrs


def _write(run: TextRun, *, alone: bool) -> None:
    nodes = list(_nodes(run))
    looks = [_look(node, run.block) for node in nodes]
    if not any(look.bold or look.italic for look in looks):
        return
    if alone and _heads(run, nodes, looks):
        return
    paired = zip(nodes, looks, strict=True)
    for _, pairs in groupby(paired, key=lambda pair: pair[1].apart):
        members = list(pairs)
        if members[0][1].code or not any(look.bold or look.italic for _, look in members):
            continue
        text = emphasised_runs(
            Run(_BLANKS.sub(" ", node), look.bold, look.italic) for node, look in members
        )
        members[0][0].replace_with(NavigableString(text))
        for node, _ in members[1:]:
            node.extract()


def _nodes(run: TextRun) -> Iterator[NavigableString]:
    """The texts of a run, with the blanks between them."""
    last = run.nodes[-1]
    node = run.nodes[0]
    while True:
        if isinstance(node, NavigableString) and not isinstance(node, PreformattedString):
            yield node
        if node is last or node.next_element is None:
            return
        node = node.next_element  # type: ignore[assignment]


def _heads(run: TextRun, nodes: list[NavigableString], looks: list[_Look]) -> bool:
    """Whether all of it looks alike and it is a cell, or short and no item of a list."""
    plain = [
        node
        for node, look in zip(nodes, looks, strict=True)
        if node.strip() and not (look.bold or look.italic)
    ]
    if plain or run.block.name == "li":
        return False
    return run.block.name in _CELLS or sum(map(len, nodes)) <= LONGEST


def _look(node: NavigableString, block: Tag) -> _Look:
    bold: bool | None = None
    italic: bool | None = None
    apart, code = 0, False
    tag = node.parent
    while tag is not None and tag is not block:
        if tag.name in _APART:
            apart, code = id(tag), code or tag.name == "code"
        style = str(tag.attrs.get("style") or "")
        bold = _told(_WEIGHT, style, named=tag.name in _BOLD) if bold is None else bold
        italic = _told(_SLANT, style, named=tag.name in _ITALIC) if italic is None else italic
        tag = tag.parent
    return _Look(apart, code, bool(bold), bool(italic))


def _told(pattern: re.Pattern[str], style: str, *, named: bool) -> bool | None:
    """What an element says of its look; None for nothing."""
    match = pattern.search(style)
    if match:
        return match[1] is not None
    return True if named else None
