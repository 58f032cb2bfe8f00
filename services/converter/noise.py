"""What is on every page but says nothing: page numbers, running heads, notices, contents lists."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from kernel.media import HTML

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


def without_noise(markdown: str, media_type: str) -> str:
    """`markdown` without repeated furniture; blocks are told by blank lines, code is kept."""
    blocks = _blocks(_without_page_edges(markdown))
    dropped = _page_furniture(blocks) | _contents(blocks)
    if media_type == HTML:
        dropped |= _notices(blocks) | _link_lists(blocks)
    return "\n\n".join(block for n, block in enumerate(blocks) if n not in dropped)


def _blocks(markdown: str) -> list[str]:
    """Paragraphs, lists and tables; a fenced block is one, blank lines and all."""
    blocks: list[str] = []
    lines: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        if line or fence:
            lines.append(line)
        elif lines:
            blocks.append("\n".join(lines))
            lines = []
    return [*blocks, "\n".join(lines)] if lines else blocks


def _without_page_edges(markdown: str) -> str:
    """Form feeds divide pages of plain text: heads and feet that return are taken off them."""
    if "\f" not in markdown:
        return markdown
    pages = [page.strip("\n").split("\n") for page in markdown.split("\f")]
    shapes = Counter(_shape(line) for page in pages for line in _edge(page))
    least = max(2, len(pages) // 3)
    kept: list[str] = []
    for page in pages:
        for end in (0, -1):
            while page and _is_edge_noise(page[end], shapes, least):
                page.pop(end)
        kept.append("\n".join(page))
    return "\n\n".join(kept)


def _edge(page: Sequence[str]) -> list[str]:
    return list({*page[:1], *page[-1:]} - {""})


def _shape(line: str) -> str:
    return re.sub(r"\d+", "#", line.strip())


def _is_edge_noise(line: str, shapes: Counter[str], least: int) -> bool:
    return not line.strip() or _is_page_number(line) or shapes[_shape(line)] >= least


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
