"""Contents lists of a PDF: kept as lists of their entries, and what they say of headings."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from services.converter.headings import number_depth
from services.converter.parsing.layout import Line
from services.converter.parsing.pdf_elements import Element
from services.converter.parsing.pdf_hyphens import join_lines
from services.converter.parsing.pdf_table import Table

_NAMES = re.compile(
    r"^(?:table of )?contents?$|^inhalt(?:sverzeichnis|sübersicht)?$|^содержание$|^оглавление$|"
    r"^съдържание$|^содржина$|^садржај$|^sadržaj$|^kazalo(?: vsebine)?$|^vsebina$|"
    r"^list of (?:figures|tables)$|^(?:abbildungs|tabellen)verzeichnis$",
    re.IGNORECASE,
)
_LEADER = re.compile(
    r"\s*(?:(?:[.…_·‧⋅]\s?){4,}|(?:[.…_·‧⋅]\s?){3}(?=\s*(?:\d{1,4}|[ivxlc]{1,7})$))\s*"
)
_PAGE = re.compile(r"^(?:\d{1,4}|[ivxlc]{1,7}|[A-Z]-\d{1,3}|\d{1,3}-\d{1,3})$", re.IGNORECASE)
_ENDING = re.compile(
    r"^(?P<title>.*?[^\s.…])[\s.…]+(?P<page>\d{1,4}|[ivxlc]{1,7})$", re.DOTALL | re.IGNORECASE
)
_NUMBERS = re.compile(r"^[\d\s,;–-]+$")
_SAME_INDENT = 5.0
_SAME_EDGE = 3.0
_LEAST = 3
_MOST_LINES = 3
_MOST_BETWEEN = 2
_WRAPPED = 0.6


class Entry(NamedTuple):
    """A line of a contents list, and its box on the page of the list."""

    title: str
    page: str
    box: tuple[float, float, float, float]

    @property
    def left(self) -> float:
        return self.box[0]

    @property
    def text(self) -> str:
        return f"{self.title} … {self.page}" if self.page else self.title


def is_contents_name(text: str) -> bool:
    """`Contents`, `Inhaltsverzeichnis`, `Съдържание`, …"""
    return _NAMES.match(re.sub(r"\s+", " ", text).strip(" :.")) is not None


def with_contents(
    elements: Sequence[Element], words: Counter[str]
) -> tuple[list[Element], list[Entry]]:
    """Contents lists as items, one an entry; and the entries that name pages.

    `words` are those of the document. Without leaders, a list must stand behind its name, and ends
    with what is no entry. A running head that repeats its name is left out.
    """
    kept: list[Element] = []
    entries: list[Entry] = []
    index = 0
    while index < len(elements):
        element = elements[index]
        end = _end_of_list(elements, index, named=bool(kept) and is_contents_name(kept[-1].text))
        if end == index:
            kept.append(_with_short_leaders(element))
            index += 1
            continue
        for entry, owner in _entries(elements[index:end], words):
            if _PAGE.match(entry.page):
                entries.append(entry)
            kept.append(_item(entry, owner))
        index = end
    return kept, entries


def _end_of_list(elements: Sequence[Element], start: int, *, named: bool) -> int:
    """The index behind the list that starts there; `start` if none does."""
    edge = _right_edge(elements, start)
    if edge is None and not named:
        return start
    end, between = start, 0
    for index in range(start, len(elements)):
        element = elements[index]
        if element.page - elements[max(start, end - 1)].page > 1:
            break
        if _is_list(element, edge):
            end, between = index + 1, 0
        elif between < _MOST_BETWEEN and _may_wrap(element) and (edge is not None or end > start):
            between += not is_contents_name(element.text)
        else:
            break
    return end


def _right_edge(elements: Sequence[Element], start: int) -> float | None:
    """Where the page numbers of the list end that starts there, or right behind a wrapped line."""
    for element in elements[start : start + 1 + _MOST_BETWEEN]:
        if element.page != elements[start].page or element.kind not in {"text", "list"}:
            return None
        if _has_leaders(element):
            return max(line.right for line in element.block.lines)
        if is_contents_name(element.text) or not _may_wrap(element):
            return None
        first = elements[start].block
        if element.block.bottom - first.top > 6 * first.size:
            return None
    return None


def _has_leaders(element: Element) -> bool:
    """Lines with leaders, most of them to something that they lead to."""
    if element.block.kind != "contents":
        return False
    parts = [part for part in (_parted(line.text) for line in element.block.lines) if part[1]]
    return sum(bool(before and after) for before, _, after in parts) * 2 > len(parts)


def _is_list(element: Element, edge: float | None) -> bool:
    if element.table is not None:
        return bool(entries_of_table(element.table))
    if _has_leaders(element):
        return True
    lines = element.block.lines
    return (
        element.kind in {"text", "list"}
        and bool(lines)
        and all(_ENDING.match(line.text) for line in lines)
        and (edge is None or all(abs(line.right - edge) < _SAME_EDGE for line in lines))
    )


def _may_wrap(element: Element) -> bool:
    return element.kind in {"text", "list"} and 0 < len(element.block.lines) <= _MOST_LINES


def _entries(elements: Sequence[Element], words: Counter[str]) -> list[tuple[Entry, Element]]:
    """Entries with the element each ends in; a line without a page goes on in the next."""
    found: list[tuple[Entry, Element]] = []
    waiting: list[Line] = []
    lines = [line for element in elements for line in element.block.lines]
    left, right = (min(x.left for x in lines), max(x.right for x in lines)) if lines else (0, 0)
    for element in elements:
        if element.table is not None:
            found += [(entry, element) for entry in entries_of_table(element.table)]
            continue
        if is_contents_name(element.text):
            continue
        for line in element.block.lines:
            title, page, ends = _told(line)
            if found and not waiting and _NUMBERS.match(line.text):
                found[-1] = (_longer(found[-1][0], line), found[-1][1])
            elif ends or line.right < left + _WRAPPED * (right - left):
                found.append(
                    (
                        _entry(
                            waiting,
                            line,
                            join_lines([*(w.text for w in waiting), title], words),
                            page,
                        ),
                        element,
                    )
                )
                waiting = []
            else:
                waiting.append(line)
    if waiting:
        title = join_lines([line.text for line in waiting], words)
        found.append((_entry(waiting[:-1], waiting[-1], title, ""), elements[-1]))
    return [(entry, element) for entry, element in found if entry.text.strip()]


def _told(line: Line) -> tuple[str, str, bool]:
    """Title and page of a line, and whether its entry ends with it."""
    title, leader, page = _parted(line.text)
    if leader:
        return title, page, True
    match = _ENDING.match(line.text)
    return (match["title"], match["page"], True) if match else (title, "", False)


def _longer(entry: Entry, line: Line) -> Entry:
    """An entry of an index whose page numbers go on in the next line."""
    left, top, right, bottom = entry.box
    box = (min(left, line.left), top, max(right, line.right), max(bottom, line.bottom))
    return entry._replace(page=f"{entry.page} {line.text.strip()}".strip(), box=box)


def _entry(above: Sequence[Line], line: Line, title: str, page: str) -> Entry:
    # What stands above on another page, or in another column, is not in the box.
    near = [other for other in above if other.top < line.top] + [line]
    box = (
        near[0].left, min(o.top for o in near),
        max(o.right for o in near), max(o.bottom for o in near),
    )  # fmt: skip
    return Entry(title, page, box)


def _parted(text: str) -> tuple[str, bool, str]:
    """What stands before the last leader and behind it; leaders before that one are cut short."""
    found = list(_LEADER.finditer(text))
    if not found:
        return text.strip(), False, ""
    before = _LEADER.sub(" … ", text[: found[-1].start()])
    return before.strip(), True, text[found[-1].end() :].strip()


def _with_short_leaders(element: Element) -> Element:
    """Lines to fill in, or to follow with the eye, cut short."""
    if element.block.kind == "contents" and element.table is None:
        element.text = _LEADER.sub(" … ", element.text).strip()
    return element


def entries_of_table(table: Table) -> list[Entry]:
    """Entries of a table whose last column holds page numbers; empty if it is none such."""
    entries: list[Entry] = []
    for row in range(table.rows):
        cells = sorted((c for c in table.cells if c.row == row), key=lambda c: c.column)
        texts = [_LEADER.sub(" ", cell.text).strip() for cell in cells if cell.text.strip()]
        if not texts:
            continue
        page = texts.pop() if len(texts) > 1 and _PAGE.match(texts[-1]) else ""
        boxes = [cell.box for cell in cells if cell.box] or [
            (table.left, table.top, table.right, table.bottom)
        ]
        box = (boxes[0][0], min(b[1] for b in boxes), boxes[-1][2], max(b[3] for b in boxes))
        entries.append(Entry(" ".join(texts), page, box))
    numbered = sum(bool(entry.page) for entry in entries)
    return entries if numbered >= _LEAST and numbered * 3 >= len(entries) * 2 else []


def _item(entry: Entry, element: Element) -> Element:
    left, top, right, bottom = entry.box
    block = replace(
        element.block, kind="contents", left=left, top=top, right=right, bottom=bottom,
        lines=[], table=None,
    )  # fmt: skip
    return Element("list", entry.text, element.page, block, marker="-")


def depths(entries: Iterable[Entry]) -> Iterator[tuple[str, int]]:
    """Titles with their depth from 0: by the indents if there are several, else by numbers."""
    listed = list(entries)
    found: list[list[float]] = []
    for left in sorted(entry.left for entry in listed):
        if found and left - found[-1][0] <= _SAME_INDENT:
            found[-1].append(left)
        else:
            found.append([left])
    # A single line may stand anywhere.
    indents = [lefts[0] for lefts in found if len(lefts) > 1]
    nested = 1 < len(indents) <= 6
    for entry in listed:
        by_number = (number_depth(entry.title) or 1) - 1
        by_indent = sum(entry.left > left - _SAME_INDENT / 2 for left in indents[1:])
        yield entry.title, by_indent if nested else by_number
