"""A large page as Markdown without docling, whose document takes twenty times the room of the text.

It writes what `simplify` leaves of a page, in the form that docling's Markdown has: the same
blocks, lists, tables and code. Marks of places stand in the texts and travel along.
"""

import re
from collections.abc import Iterator
from itertools import count

from bs4.element import NavigableString, PageElement, PreformattedString, Tag

from services.converter.parsing.emphasis import emphasised
from services.converter.parsing.markdown import (
    LONGEST_REPEATED,
    literal_line_starts,
    literal_tags,
)
from services.converter.parsing.marks import NONCHARACTERS

_INLINE = frozenset({"a", "code", "s", "br"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset({"ul", "ol", "menu", "dir"})
_SECTIONS = frozenset({"thead", "tbody", "tfoot"})
_BLANKS = re.compile(r"[ \t\r\n\f]+")
_GAPS = re.compile(" {2,}")
_BREAK = re.compile(r" *\n *")
_TICKS = re.compile("`+")
_INDENT = "    "
# As docling reads a page: what is no sign and no blank is left out.
_CLEAN = str.maketrans({
    "\u00a0": " ", "\u202f": " ", "\u200b": "", "\u00ad": "", "\ufeff": "", "\u2060": "",
})  # fmt: skip


def rendered(body: Tag) -> Iterator[str]:
    """The blocks of a page as Markdown, to be parted by blank lines.

    Args:
        body: brought into simple forms by `simplify`; not changed.

    Raises:
        RecursionError: elements are nested deeper than Python can follow.
    """
    line: list[PageElement] = []
    for child in body.contents:
        if _is_inline(child):
            line.append(child)
            continue
        yield from _paragraph(line)
        line = []
        if isinstance(child, Tag):
            yield from _block(child)
    yield from _paragraph(line)


def _is_inline(node: PageElement) -> bool:
    return isinstance(node, NavigableString) or (isinstance(node, Tag) and node.name in _INLINE)


def _paragraph(nodes: list[PageElement]) -> Iterator[str]:
    text = literal_line_starts(_inline(nodes))
    if text.strip(NONCHARACTERS).strip():
        yield text


def _block(tag: Tag) -> Iterator[str]:
    if tag.name in _HEADINGS:
        yield f"{'#' * _HEADINGS[tag.name]} {_one_line(tag)}"
    elif tag.name == "pre":
        yield from _code_block(tag)
    elif tag.name in _LISTS:
        yield from _list(tag)
    elif tag.name == "dl":
        yield "\n".join(_definitions(tag))
    elif tag.name == "table":
        yield from _table(tag)
    elif tag.name != "hr":
        yield from rendered(tag)


# --- inline -------------------------------------------------------------------------------------


def _inline(nodes: list[PageElement]) -> str:
    text = "".join(_written(node) for node in nodes)
    # Not `str.strip`: what a line begins with may be a blank of the text itself.
    return _BREAK.sub("  \n", _GAPS.sub(" ", text).strip(" \n"))


def _written(node: PageElement) -> str:
    if isinstance(node, NavigableString):
        plain = "" if isinstance(node, PreformattedString) else node.translate(_CLEAN)
        return literal_tags(_BLANKS.sub(" ", plain))
    if not isinstance(node, Tag):
        return ""
    if node.name == "br":
        return "\n"
    if node.name == "code":
        inner = _BLANKS.sub(" ", node.get_text().translate(_CLEAN))
    else:
        inner = "".join(_written(child) for child in node.contents)
    words = inner.strip()
    start = inner.find(words)
    return inner[:start] + _wrapped(node, words) + inner[start + len(words) :]


def _wrapped(tag: Tag, words: str) -> str:
    """The text of an inline element with its marks; blanks around it stay outside."""
    if not words.strip(NONCHARACTERS):
        return words
    if tag.name == "code":
        return _code(words)
    words = words.replace("\n", " ")
    if tag.name == "a" and tag.get("href"):
        return f"[{words}]({tag['href']})"
    bare = words.strip(NONCHARACTERS)
    struck = tag.name == "s" and not (bare.startswith("~") or bare.endswith("~"))
    return f"~~{words}~~" if struck else words


def _code(text: str) -> str:
    ticks = "`" * (max((len(run) for run in _TICKS.findall(text)), default=0) + 1)
    bare = text.strip(NONCHARACTERS)
    edge = " " if bare.startswith("`") or bare.endswith("`") else ""
    return f"{ticks}{edge}{text}{edge}{ticks}"


def _code_block(tag: Tag) -> Iterator[str]:
    text = tag.get_text()
    if text.strip(NONCHARACTERS).strip():
        longest = max((len(run) for run in _TICKS.findall(text)), default=0)
        fence = "`" * max(3, longest + 1)
        yield f"{fence}\n{text}\n{fence}"


def _one_line(tag: Tag) -> str:
    """All texts below an element, blocks or not, with a blank between blocks."""
    return " ".join(" ".join(_texts(tag)).split())


def _texts(tag: Tag) -> Iterator[str]:
    line: list[PageElement] = []
    for child in tag.contents:
        if _is_inline(child):
            line.append(child)
            continue
        yield _inline(line)
        line = []
        if isinstance(child, Tag):
            mark = "- " if child.name == "li" else ""
            yield mark + " ".join(_texts(child))
    yield _inline(line)


# --- lists --------------------------------------------------------------------------------------


def _list(tag: Tag) -> Iterator[str]:
    """Items that follow each other are one block; what is no item stands between them."""
    numbers = _numbers(tag)
    lines: list[str] = []
    for child in tag.contents:
        if isinstance(child, Tag) and child.name == "li":
            lines += _item(child, f"{next(numbers)}. " if numbers else "- ")
            continue
        between = list(_paragraph([child]) if _is_inline(child) else _block_of(child))
        if between and lines:
            yield "\n".join(lines)
            lines = []
        yield from between
    if lines:
        yield "\n".join(lines)


def _block_of(node: PageElement) -> Iterator[str]:
    return _block(node) if isinstance(node, Tag) else iter(())


def _numbers(tag: Tag) -> Iterator[int] | None:
    if tag.name != "ol":
        return None
    start = str(tag.get("start") or "1")
    return count(int(start) if start.isdecimal() and len(start) < 10 else 1)


def _item(tag: Tag, mark: str) -> Iterator[str]:
    """The item's own text in its first line, then the items of the lists in it."""
    own: list[str] = []
    inner: list[Tag] = []
    _sort(tag, own, inner)
    text = literal_line_starts(" ".join(filter(None, own)))
    seen = bool(text.strip(NONCHARACTERS).strip())
    if seen:
        yield mark + text
    for one in inner:
        lines = _definitions(one) if one.name == "dl" else "\n".join(_list(one)).split("\n")
        # A list without items has one empty line.
        yield from (f"{_INDENT if seen else ''}{line}" for line in lines if line)


def _sort(tag: Tag, own: list[str], inner: list[Tag]) -> None:
    line: list[PageElement] = []
    for child in tag.contents:
        if _is_inline(child):
            line.append(child)
            continue
        own.append(_inline(line))
        line = []
        if not isinstance(child, Tag):
            continue
        if child.name in _LISTS or child.name == "dl":
            inner.append(child)
        else:
            _sort(child, own, inner)
    own.append(_inline(line))


def _definitions(tag: Tag) -> Iterator[str]:
    for child in tag.contents:
        if not isinstance(child, Tag):
            continue
        if child.name == "dt":
            term = _one_line(child)
            if term.strip(NONCHARACTERS):
                yield f"- {emphasised(term, bold=True, italic=False)}"
        elif child.name == "dd":
            yield from (f"{_INDENT}{line}" for line in _item(child, "- "))
        else:
            yield from _definitions(child)


# --- tables -------------------------------------------------------------------------------------


def _table(tag: Tag) -> Iterator[str]:
    rows = [
        [(_cell(cell), _span(cell, "colspan"), _span(cell, "rowspan")) for cell in _cells(row)]
        for row in _rows(tag)
    ]
    raw = sum(len(text) for row in rows for text, _, _ in row)
    spread = sum(len(text) * wide * high for row in rows for text, wide, high in row)
    if spread > 4 * raw + 2000:
        rows = [[(text, 1, 1) for text, _, _ in row] for row in rows]
    grid = list(_grid(rows))
    width = max(map(len, grid), default=0)
    if not width:
        return
    lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in grid]
    lines.insert(1, f"| {' | '.join(['-'] * width)} |")
    yield "\n".join(lines)


def _rows(tag: Tag) -> Iterator[Tag]:
    for child in tag.contents:
        if isinstance(child, Tag) and child.name in _SECTIONS:
            yield from _rows(child)
        elif isinstance(child, Tag) and child.name == "tr":
            yield child


def _cells(row: Tag) -> Iterator[Tag]:
    return (c for c in row.contents if isinstance(c, Tag) and c.name in {"td", "th"})


def _cell(tag: Tag) -> str:
    return _one_line(tag).replace("|", "&#124;")


def _span(cell: Tag, name: str) -> int:
    text = str(cell.get(name) or "1")
    return max(1, int(text)) if text.isdecimal() and len(text) < 6 else 1


def _grid(rows: list[list[tuple[str, int, int]]]) -> Iterator[list[str]]:
    """A cell over several columns or rows says its text in each of them, unless it is long."""
    above: dict[int, tuple[str, int]] = {}
    for row in rows:
        line: list[str] = []
        below: dict[int, tuple[str, int]] = {}
        for text, wide, high in row:
            _carry(above, below, line)
            again = text if len(text) <= LONGEST_REPEATED else ""
            for number in range(wide):
                if high > 1:
                    below[len(line)] = (again, high - 1)
                line.append(again if number else text)
        _carry(above, below, line)
        above = below
        if line:
            yield line


def _carry(
    above: dict[int, tuple[str, int]], below: dict[int, tuple[str, int]], line: list[str]
) -> None:
    """Append the cells that reach down from the rows above."""
    while len(line) in above:
        text, left = above.pop(len(line))
        if left > 1:
            below[len(line)] = (text, left - 1)
        line.append(text)
