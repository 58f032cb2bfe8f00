"""What is on every page but says nothing: page numbers, running heads, notices, contents lists."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from kernel.media import HTML
from services.converter.lines import Line, body_of

_PAGE_WORDS = r"page|p\.|seite|s\.|страница|страници|стр\.?|страна|strana|stranica|str\.|stran"
_PAGE_NUMBER = re.compile(
    rf"^[-–—|·\s]*(?:{_PAGE_WORDS})\s*\d{{1,4}}(?:\s*(?:/|of|von|из|от|од|od)\s*\d{{1,4}})?[-–—|·\s]*$"
    r"|^[-–—]\s*\d{1,4}\s*[-–—]$"
    r"|^\d{1,4}\s*(?:/|of|von|из|от|од|od)\s*\d{1,4}$",
    re.IGNORECASE,
)
_BARE_NUMBER = re.compile(r"^\d{1,4}$")
_RUNNING_HEAD = re.compile(r"[^\n]{1,99}(?<![.!?:;,])")
_LEADERS = re.compile(r"(?:(?:\.\s?|·\s?|_){4,}|(?:…\s?){2,})\s*(?:\d{1,4}|[ivxlc]{1,6})$")
_CONTENTS = re.compile(
    r"^(?:#{1,6} )?(?:table of contents|contents|inhalt|inhaltsverzeichnis|содержание|оглавление|"
    r"съдържание|садржај|sadržaj|содржина|kazalo|kazalo vsebine|vsebina)$",
    re.IGNORECASE,
)
_COOKIE = re.compile(r"cookie|куки|колачић|kolačić|бисквитк|piškot", re.IGNORECASE)
_CONSENT = re.compile(
    r"accept|agree|consent|settings|preferences|zustimm|akzeptier|einstellung|verwend|nutz|"
    r"принять|соглас|використ|использу|приемам|съглас|използва|прихват|користи|prihvat|korist|"
    r"slaž|sprejm|strinja|uporablja",
    re.IGNORECASE,
)
_LINK_ITEM = re.compile(r"^\s*[-*+] !?\[[^\]]{0,60}\]\([^)]*\)\s*$")


def without_noise(lines: Sequence[Line], media_type: str) -> list[Line]:
    """`lines` without repeated furniture; blocks are told by blank lines, code is kept."""
    blocks = _blocks(lines)
    texts = [body_of(block).removesuffix("\n") for block in blocks]
    code = {n for n, block in enumerate(blocks) if block[0].code}
    dropped = _page_furniture(texts) | _contents(texts)
    if media_type == HTML:
        dropped |= _notices(texts) | _link_lists(texts)
    kept = (block for n, block in enumerate(blocks) if n in code or n not in dropped)
    return [line for block in kept for line in (Line(""), *block)]


def _blocks(lines: Sequence[Line]) -> list[list[Line]]:
    """Paragraphs, lists and tables; a fenced block is one, blank lines and all."""
    blocks: list[list[Line]] = []
    for line in [Line(""), *lines]:
        if line.text or line.code:
            blocks[-1].append(line)
        elif not blocks or blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def without_page_edges(lines: Sequence[Line]) -> list[Line]:
    """Form feeds divide pages of plain text: heads and feet that return are taken off them."""
    pages = _pages(lines)
    if len(pages) == 1:
        return list(lines)
    shapes = Counter(_shape(text) for page in pages for text in _edge(page))
    least = max(2, len(pages) // 3)
    kept: list[Line] = []
    for page in pages:
        start, end = 0, len(page)
        while start < end and _is_edge_noise(page[start], shapes, least):
            start += 1
        while start < end and _is_edge_noise(page[end - 1], shapes, least):
            end -= 1
        kept += [Line(""), *page[start:end]]
    return kept


def _pages(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines of each page without the blank ones at its ends."""
    pages: list[list[Line]] = [[]]
    for line in lines:
        if line.page:
            pages.append([])
        pages[-1].append(line)
    for page in pages:
        while page and not page[-1].text.strip() and not page[-1].code:
            page.pop()
    return [_from_text(page) for page in pages]


def _from_text(page: list[Line]) -> list[Line]:
    first = next((n for n, line in enumerate(page) if line.code or line.text.strip()), len(page))
    return page[first:]


def _edge(page: Sequence[Line]) -> set[str]:
    return {line.text for line in (*page[:1], *page[-1:]) if not line.code} - {""}


def _shape(line: str) -> str:
    return re.sub(r"\d+", "#", line.strip())


def _is_edge_noise(line: Line, shapes: Counter[str], least: int) -> bool:
    if line.code:
        return False
    text = line.text
    return not text.strip() or _is_page_number(text) or shapes[_shape(text)] >= least


def _is_page_number(block: str) -> bool:
    text = block.strip()
    return bool(_PAGE_NUMBER.match(text) or _BARE_NUMBER.match(text))


def _page_furniture(blocks: Sequence[str]) -> set[int]:
    """Page numbers, and short lines that keep returning beside them."""
    numbers = {n for n, block in enumerate(blocks) if _PAGE_NUMBER.match(block.strip())}
    bare = [n for n, block in enumerate(blocks) if _BARE_NUMBER.match(block.strip())]
    values = [int(blocks[n]) for n in bare]
    # A lone number may mean something; a rising row of them is page numbers.
    if len(bare) >= 3 and all(0 < b - a <= 2 for a, b in pairwise(values)):
        numbers |= set(bare)
    beside = {n + d for n in numbers for d in (-1, 1)} - numbers
    short = [n for n, b in enumerate(blocks) if _RUNNING_HEAD.fullmatch(b)]
    everywhere = Counter(_shape(blocks[n]) for n in short)
    at_numbers = Counter(_shape(blocks[n]) for n in short if n in beside)
    heads = {s for s, c in at_numbers.items() if c >= 3 and c * 5 >= everywhere[s] * 3}
    return numbers | {n for n in short if n in beside and _shape(blocks[n]) in heads}


def _contents(blocks: Sequence[str]) -> set[int]:
    """Lists of contents with leaders, and the heading over them."""
    lists = {
        n
        for n, block in enumerate(blocks)
        if not block.startswith(("|", "`", "~"))
        and all(_LEADERS.search(line.rstrip("\\ ")) for line in block.split("\n"))
    }
    entries = sum(blocks[n].count("\n") + 1 for n in lists)
    if entries < 3:
        return set()
    heads = {n - 1 for n in lists if n and _CONTENTS.match(blocks[n - 1])}
    return lists | heads


def _notices(blocks: Sequence[str]) -> set[int]:
    """Cookie notices of a web page; a text about cookies has more of them, and keeps them."""
    found = {
        n
        for n, block in enumerate(blocks)
        if len(block) < 700 and _COOKIE.search(block) and _CONSENT.search(block)
    }
    size = sum(len(blocks[n]) for n in found)
    return found if len(found) <= 3 and size * 4 < sum(map(len, blocks)) else set()


def _link_lists(blocks: Sequence[str]) -> set[int]:
    """Menus: lists of nothing but links before the first heading or after the last paragraph."""
    prose = [n for n, b in enumerate(blocks) if len(b) > 80 and not _is_link_list(b)]
    heading = next((n for n, b in enumerate(blocks) if b.startswith("#")), len(blocks))
    last = prose[-1] if prose else len(blocks)
    return {n for n, b in enumerate(blocks) if _is_link_list(b) and (n < heading or n > last)}


def _is_link_list(block: str) -> bool:
    lines = block.split("\n")
    return len(lines) >= 5 and all(_LINK_ITEM.match(line) for line in lines)
