"""Headings of a law that came without them, with some, or with all on one level. Pure."""

import re
from collections import Counter
from collections.abc import Sequence

from services.converter.form import is_heading, spaced
from services.converter.headings import legal_mark, named_part, names_law, roman_mark
from services.converter.laws.chapters import capital_chapters, named_items, sub_chapters
from services.converter.laws.find import find_items
from services.converter.laws.items import (
    LEAST,
    MOST_LINES,
    Item,
    bare_line,
    is_title,
    known_and_bare,
    level_of,
)
from services.converter.laws.levels import Levels, closing_paragraphs
from services.converter.laws.page import Page, goes_on
from services.converter.laws.titles import Titles
from services.converter.lines import Line, joined

_FIRST_BLOCKS = 5
_LABEL_AT_END = re.compile(
    r"\s+((?:Article|Artikel|Статья|Член|Члан|Članak|Član|Чл\.|Čl\.)\s\d{1,4}[a-zа-я]?\.?|§\s?\d{1,4}\.?)$"
)


def recover_law(lines: Sequence[Line], *, indented: bool) -> list[Line] | None:
    """The lines with the headings of a law, its titles beside their numbers; None if it is none.

    Headings that are there keep their levels, unless all parts of the law are on one.

    Args:
        lines: a text in canonical form.
        indented: an indent means nothing, as in plain text.
    """
    lines = _labels_apart(lines)
    page = Page(lines, indented=indented)
    items = find_items(page)
    if not items:
        return None
    titles = Titles(page, items)
    titles.take()
    items = sorted([*items, *sub_chapters(page, items, titles.taken)], key=_place)
    items = sorted([*items, *capital_chapters(page, items, titles.taken)], key=_place)
    titles = Titles(page, items)
    items = sorted([*items, *titles.topics()], key=_place)
    taken = titles.taken | {item.line for item in items}
    items = sorted([*items, *named_items(page, items, taken)], key=_place)
    items = _own(items, _others(lines, items))
    others = _others(lines, items)
    Levels(items, others, closing_paragraphs(page, items)).set()
    return _written(lines, items)


def _labels_apart(lines: Sequence[Line]) -> list[Line]:
    """A heading that took the number of its article along, `Scope Article 5`, in two."""
    out: list[Line] = []
    for line in lines:
        match = _LABEL_AT_END.search(line.text) if is_heading(line) else None
        text = line.text[: match.start()].lstrip("# ") if match else ""
        if match is None or len(text) < LEAST or legal_mark(text) or goes_on(text):
            out.append(line)
            continue
        level = level_of(line)
        label = joined(["#" * level + " ", line.cut(match.start(1), len(line.text))])
        out += [line.cut(0, match.start()), Line(""), label]
    return out


def _place(item: Item) -> int:
    return item.line


def name_of_law(lines: Sequence[Line]) -> str:
    """The name of a law whose first heading is one of its parts; else empty."""
    first = next((n for n, line in enumerate(lines) if is_heading(line)), 0)
    head = lines[first].text.lstrip("# ") if lines else ""
    if not (legal_mark(head) or roman_mark(head) or named_part(head)):
        return ""
    blocks: list[list[str]] = [[]]
    for line in lines[:first]:
        if line.text.strip() and not line.code:
            blocks[-1].append(line.text.strip())
        elif blocks[-1]:
            blocks.append([])
    for at, block in enumerate(blocks[:_FIRST_BLOCKS]):
        # `ZAKON` on one line, what it is about on the next.
        more = blocks[at + 1] if len(block) == 1 and " " not in block[0] else []
        text = bare_line(joined([" ".join([*block, *more])])).text
        if len(block) + len(more) <= MOST_LINES and is_title(text) and names_law(text):
            return text
    return ""


def _others(lines: Sequence[Line], items: Sequence[Item]) -> dict[int, int]:
    """Lines and levels of headings that are not the law's."""
    own = {item.line for item in items} | {n for item in items for n in item.titles}
    return {n: level_of(x) for n, x in enumerate(lines) if n not in own and is_heading(x)}


def _own(items: Sequence[Item], others: dict[int, int]) -> list[Item]:
    """A text that quotes a law, or a law that quotes another, keeps its own headings only."""
    strange = sum(level > 1 for level in others.values())
    known = Counter(item.unit for item in items if item.known)
    fresh = Counter(item.unit for item in items if not item.known)
    alien = strange > 3 and fresh.total() < 2 * strange
    return [
        item
        for item in items
        if item.known or not (alien or known[item.unit] > max(2, 2 * fresh[item.unit]))
    ]


def _written(lines: Sequence[Line], items: Sequence[Item]) -> list[Line]:
    heads = {item.line: item for item in items}
    taken = {n for item in items for n in item.titles}
    out: list[Line] = []
    before: Item | None = None
    for number, line in enumerate(lines):
        if number in heads:
            before = heads[number]
            out += _heading(lines, before)
        elif number not in taken:
            out.append(_shifted(line, before) if is_heading(line) else line)
    return spaced(out)


def _heading(lines: Sequence[Line], item: Item) -> list[Line]:
    head, rest = item.bare, list[Line]()
    if item.run_in:
        head = item.bare.cut(0, item.end)
        start = max(item.mark.title, item.end)
        rest = [Line(""), item.bare.cut(start, len(item.bare.text)).stripped()]
    parts: list[Line | str] = ["#" * item.level + " ", head]
    for number in item.titles:
        parts += [" ", known_and_bare(lines[number])[1]]
    return [Line(""), joined(parts), Line(""), *rest]


def _shifted(line: Line, before: Item | None) -> Line:
    """A heading below one of the law goes down with it."""
    level = level_of(line)
    shift = before.level - before.known if before and before.known else 0
    if before is None or not shift or level < before.known:
        return line
    wanted = min(level + shift, 6)
    return joined(["#" * wanted, line.cut(level, len(line.text))])
