"""Contents lists of a PDF: kept as lists of their entries, and what they say of headings."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from services.converter.headings import number_depth
from services.converter.parsing.layout import Block, Line
from services.converter.parsing.tables import Table

_NAMES = re.compile(
    r"^(?:table of )?contents?$|^inhalt(?:sverzeichnis|sübersicht)?$|^содержание$|^оглавление$|"
    r"^съдържание$|^содржина$|^садржај$|^sadržaj$|^kazalo(?: vsebine)?$|^vsebina$|"
    r"^list of (?:figures|tables)$|^(?:abbildungs|tabellen)verzeichnis$",
    re.IGNORECASE,
)
_LEADER = re.compile(r"\s*(?:(?:[.…_·‧⋅]\s?){3,})\s*")
_PAGE = re.compile(r"^(?:\d{1,4}|[ivxlc]{1,7}|[A-Z]-\d{1,3}|\d{1,3}-\d{1,3})$", re.IGNORECASE)
_ENDING = re.compile(r"^(?P<title>.*\S)\s+(?P<page>\d{1,4}|[ivxlc]{1,7})$", re.DOTALL)
_SAME_INDENT = 5.0
_LEAST = 3


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


def entries_of_lines(lines: Sequence[Line]) -> list[Entry]:
    """Entries with leaders; a line without one goes on in the next."""
    entries: list[Entry] = []
    waiting: list[tuple[str, Line]] = []
    for line in lines:
        before, leader, after = _parted(line.text)
        waiting.append((before, line))
        if leader:
            entries.append(_entry(waiting, after))
            waiting = []
    if waiting:
        entries.append(_entry(waiting, ""))
    return [entry for entry in entries if entry.title]


def _entry(pieces: Sequence[tuple[str, Line]], page: str) -> Entry:
    lines = [line for _, line in pieces]
    box = (lines[0].left, lines[0].top, max(line.right for line in lines), lines[-1].bottom)
    return Entry(" ".join(text for text, _ in pieces), page, box)


def _parted(text: str) -> tuple[str, bool, str]:
    found = list(_LEADER.finditer(text))
    if not found:
        return text.strip(), False, ""
    after = text[found[-1].end() :].strip()
    return text[: found[0].start()].strip(), True, after if _PAGE.match(after) else ""


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


def entries_of_block(block: Block) -> list[Entry]:
    """Entries of a block of text whose lines end with page numbers; empty if they do not."""
    found = [(line, _ENDING.match(line.text)) for line in block.lines]
    if not found or not all(match for _, match in found):
        return []
    return [
        Entry(match["title"], match["page"], (line.left, line.top, line.right, line.bottom))
        for line, match in found
        if match
    ]


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
