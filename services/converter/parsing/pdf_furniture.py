"""What returns from page to page and is no part of the text: running heads, page numbers."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from services.converter.headings import is_label
from services.converter.parsing.layout import Block, Line, Page

_OUTER, _OUTER_NUMBER = 0.12, 0.2
_SMALL = 0.95
_OFTEN, _SHARE = 3, 0.4
_FOLIO = re.compile(r"^\d{1,4}(?=\s)|(?<=\s)\d{1,4}$")
_PAGE_NUMBER = re.compile(
    r"^[\s\-–—|•·]*(?:(?:page|seite|strana|stranica|stran|страница|страна|стр|str|s|p)\.?\s*)?"
    r"(?:\d{1,4}|\d{1,3}-\d{1,3}|[ivxlc]{1,6})(?:\s*(?:/|of|von|из|од|od|от)\s*\d{1,4})?[\s\-–—|•·]*$",
    re.IGNORECASE,
)
_NUMBERED_FOOT = re.compile(r"^\d{1,4}\s+(?!.*(?:https?:|www\.))\D.*[^.:;,]$|\D\s\d{1,4}$")


def _shapes(line: Line, page: int, body_size: float) -> list[str]:
    """What a running head keeps from page to page: all of it, or all but the page's number.

    A number counts as the page's if it grows with the pages, and only in small type: `Article 5` at
    the head of one page and `Article 9` at the head of the next are headings.
    """
    text = line.text.strip().lower()
    shapes = [text]
    if line.size > 1.1 * body_size:
        return shapes
    for match in re.finditer(r"\d{1,4}", text):
        rest = f"{text[: match.start()]}#{text[match.end() :]}"
        shapes.append(f"{rest} {int(match[0]) - page}")
    return shapes


def _outer_lines(page: Page) -> Iterator[Line]:
    for block in page.blocks:
        lone = len(block.lines) == 1 and _PAGE_NUMBER.match(block.text) is not None
        outer = _OUTER_NUMBER if lone else _OUTER
        if block.bottom < outer * page.height or block.top > (1 - outer) * page.height:
            yield from block.lines


def running_lines(pages: Sequence[Page], body_size: float) -> set[tuple[int, int]]:
    """Lines in the outer parts of pages that return, or that are a page number."""
    seen: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for page in pages:
        for line in _outer_lines(page):
            for shape in _shapes(line, page.number, body_size):
                seen[shape, round(line.top / 6)].add(page.number)
    least = max(2, min(4, len(pages) // 5))
    named = sum(
        any(_is_named_folio(line, page, body_size) for line in _outer_lines(page)) for page in pages
    )
    running = set(_with_folios(pages, body_size))
    for page in pages:
        for line in _outer_lines(page):
            places = [round(line.top / 6) + d for d in (-1, 0, 1)]
            returns = max(
                len(set().union(*(seen.get((shape, place), ()) for place in places)))
                for shape in _shapes(line, page.number, body_size)
            )
            folio = _is_folio(line, page, body_size) or (
                # On one page only, text of the body's size may as well end with a number.
                _is_named_folio(line, page, body_size)
                and (named > 1 or line.size < _SMALL * body_size)
            )
            if returns >= least or folio:
                running.add((page.number, id(line)))
    return running


def _with_folios(pages: Sequence[Page], body_size: float) -> Iterator[tuple[int, int]]:
    """Outermost lines with a number that grows with the pages: `1 USAGE 3`, then `2 OPTIONS 4`."""
    found: list[tuple[int, int, int]] = []
    for page in pages:
        for line in _outermost(page):
            small = line.size <= 1.1 * body_size and not is_label(line.text)
            numbers = {match[0] for match in _FOLIO.finditer(line.text.strip())} if small else set()
            found += [(page.number, id(line), int(n) - page.number) for n in numbers]
    shared = Counter(offset for _, _, offset in found)
    least = max(_OFTEN, _SHARE * len(pages))
    yield from ((page, line) for page, line, offset in found if shared[offset] >= least)


def _outermost(page: Page) -> Iterator[Line]:
    """The first and the last line of a page, if they stand alone near its edge."""
    lines = [line for block in page.blocks for line in block.lines]
    if len(lines) < _OFTEN:
        return
    for line in (min(lines, key=lambda x: x.top), max(lines, key=lambda x: x.bottom)):
        outside = line.bottom < _OUTER_NUMBER * page.height
        outside = outside or line.top > (1 - _OUTER_NUMBER) * page.height
        if outside and _apart(line, page) == (True, True):
            yield line


def _is_folio(line: Line, page: Page, body_size: float) -> bool:
    """A page number alone."""
    if not _PAGE_NUMBER.match(line.text) or not _outer(line, page, body_size, _OUTER_NUMBER):
        return False
    alone, outermost = _apart(line, page)
    return _at_edge(line, page) or (alone and outermost)


def _is_named_folio(line: Line, page: Page, body_size: float) -> bool:
    """A page number with the name of the chapter.

    A footnote may stand as low, but it is a sentence or an address. `Article 5` is a heading.
    """
    if not _NUMBERED_FOOT.search(line.text) or _PAGE_NUMBER.match(line.text):
        return False
    outer = _outer(line, page, body_size, _OUTER) and _at_edge(line, page)
    return outer and _apart(line, page)[0] and not is_label(line.text)


def _outer(line: Line, page: Page, body_size: float, share: float) -> bool:
    outside = line.bottom < share * page.height or line.top > (1 - share) * page.height
    return outside and line.size <= 1.25 * body_size


def _at_edge(line: Line, page: Page) -> bool:
    return line.bottom < 0.09 * page.height or line.top > 0.9 * page.height


def _apart(line: Line, page: Page) -> tuple[bool, bool]:
    """Whether nothing stands near it, and whether nothing stands farther out."""
    top = line.bottom < page.height / 2
    others = [b for b in page.blocks if any(o is not line for o in b.lines) or not b.lines]
    gaps = [b.top - line.bottom if top else line.top - b.bottom for b in others]
    alone = min((g for g in gaps if g > -1), default=99.0) > 1.2 * line.size
    return alone, all(g > -1 for g in gaps)


def without(page: Page, furniture: set[tuple[int, int]]) -> Iterator[Block]:
    """The blocks of a page without such lines."""
    for block in page.blocks:
        kept = [line for line in block.lines if (page.number, id(line)) not in furniture]
        if kept or not block.lines:
            block.lines = kept
            yield block
