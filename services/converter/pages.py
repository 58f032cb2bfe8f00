"""What stands on every page but says nothing: page numbers, running heads and feet. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from services.converter.headings import legal_mark, roman_value
from services.converter.lines import Line
from services.converter.sequence import chain

_WORDS = (
    r"(?:page|pag\.|p\.|pp\.|seite|s\.|страница|страници|стр\.?|с\.|страна|strana|stranica|str\.|"
    r"stran)"
)
_OF = r"(?:/|of|von|из|от|од|од|od|iz)"
_NUMBER = re.compile(
    rf"[-–—|·\s]*(?P<word>{_WORDS})\s*(?P<worded>\d{{1,4}})(?:\s*{_OF}\s*(?P<total>\d{{1,4}}))?"
    rf"[-–—|·\s]*|[-–—]\s*(?P<dashed>\d{{1,4}})\s*[-–—]|(?P<ratio>\d{{1,4}})\s*{_OF}\s*\d{{1,4}}"
    r"|(?P<bare>\d{1,4})|(?P<roman>[ivxlc]{1,7})",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]")
_DIGITS = re.compile(r"\d{1,4}")
_LONGEST = 120
_LONGEST_WITH_NUMBER = 70
_LEAST = 3
_APART = 80
"""Characters of text that a page has at least."""
_DEPTH = 3
"""Lines at each end of a page that may be its head or foot."""
_FOLIO = "folio "
_VALUE = re.compile(r"(?<=:)|\t|\s{2,}|[_.]{3,}")
"""Where in a line of a form the label ends."""
_NUMBERS = re.compile(r"\d+")
_YEARS = range(1500, 2101)


class _Folio(NamedTuple):
    """A page number: its place, value, and whether it is nothing but a number."""

    at: int
    value: int
    bare: bool
    certain: bool


def _folio(at: int, text: str) -> _Folio | None:
    match = _NUMBER.fullmatch(text.strip()) if len(text) < _LONGEST else None
    if match is None:
        return None
    if match["roman"]:
        value = roman_value(match["roman"].upper())
        return _Folio(at, value, bare=True, certain=False) if value else None
    digits = match["worded"] or match["dashed"] or match["ratio"] or match["bare"]
    bare, certain = match["bare"] is not None, match["total"] is not None
    return _Folio(at, int(digits), bare, certain)


# --- pages divided by form feeds --------------------------------------------------------------


def without_page_edges(lines: Sequence[Line]) -> list[Line]:
    """Heads and feet that return go, where form feeds divide pages of plain text.

    A paragraph that goes on over a page's end is one again.
    """
    pages = _pages(lines)
    if len(pages) == 1:
        return list(lines)
    seen = Counter(shape for n, page in enumerate(pages) for shape in _edge_shapes(page, n))
    least = 2 if len(pages) < 4 else max(_LEAST, len(pages) // 3)
    numbers = Counter({shape: times for shape, times in seen.items() if shape.startswith(_FOLIO)})
    forms = _forms(pages, seen, least)
    kept: list[Line] = []
    for number, page in enumerate(pages):
        start, end = _inside(page, number, numbers if number in forms else seen, least)
        part = page[start:end]
        if kept and part and not _goes_on(kept[-1], part[0]):
            kept.append(Line(""))
        kept += part
    return kept


def _inside(page: Sequence[Line], number: int, seen: Counter[str], least: int) -> tuple[int, int]:
    """Where the text of a page starts and ends between its head and foot."""
    start = _edge_size(page, number, seen, least)
    return start, len(page) - _edge_size(page[start:][::-1], number, seen, least)


def _forms(pages: Sequence[Sequence[Line]], seen: Counter[str], least: int) -> set[int]:
    """Pages of which only numbers may go: what returns at their ends returns between them, too,
    as in forms and bills, or is most of what they say.
    """
    labels = [[_label(line) for line in _text(page)[_DEPTH:-_DEPTH]] for page in pages]
    common = Counter(label for page in labels for label in {*page} if label)
    alike = {
        number
        for number, page in enumerate(labels)
        if page and sum(common[label] >= least for label in page) * 2 >= len(page)
    }
    bare = {
        number
        for number, page in enumerate(pages)
        if _mostly_taken(page, *_inside(page, number, seen, least))
    }
    return alike | (bare if len(bare) >= least else set())


def _label(line: Line) -> str:
    """What a line of a form keeps from page to page; empty for one without letters."""
    label = _VALUE.split(_NUMBERS.sub("0", line.text.strip()), maxsplit=1)[0]
    return label if _LETTERS.search(label) else ""


def _mostly_taken(page: Sequence[Line], start: int, end: int) -> bool:
    whole, left = (
        sum(len(line.text.strip()) for line in part if _folio(0, line.text) is None)
        for part in (page, page[start:end])
    )
    return whole > 2 * left


def _pages(lines: Sequence[Line]) -> list[list[Line]]:
    pages: list[list[Line]] = [[]]
    for line in lines:
        if line.page:
            pages.append([])
        pages[-1].append(line._replace(page=False) if line.page else line)
    return pages


def _text(page: Sequence[Line]) -> list[Line]:
    return [line for line in page if line.code or line.text.strip()]


def _edge_shapes(page: Sequence[Line], number: int) -> set[str]:
    text = _text(page)
    edges = text[:_DEPTH] + text[_DEPTH:][-_DEPTH:]
    return {shape for line in edges for shape in _shapes(line, number)}


def _shapes(line: Line, number: int) -> Iterator[str]:
    """What an edge keeps from page to page: all of it, or all but a number that grows with them."""
    text = line.text.strip()
    if line.code or not text or len(text) > _LONGEST or text.startswith("|"):
        return
    folio = _folio(0, text)
    if folio is not None:
        yield f"{_FOLIO}{folio.value - number}"
        return
    if _LETTERS.search(text) and text[-1] not in ";,":
        yield text
        if legal_mark(text) is None and len(text) < _LONGEST_WITH_NUMBER:
            for match in _DIGITS.finditer(text):
                rest = f"{text[: match.start()]}#{text[match.end() :]}"
                yield f"{int(match[0]) - number} {rest}"


def _edge_size(page: Sequence[Line], number: int, seen: Counter[str], least: int) -> int:
    """How many lines at the start are blank or furniture."""
    taken = 0
    for at, line in enumerate(page):
        if not _is_edge(line, number, seen, least) or taken == _DEPTH:
            return at
        taken += bool(line.text.strip())
    return len(page)


def _is_edge(line: Line, number: int, seen: Counter[str], least: int) -> bool:
    if line.code:
        return False
    if not line.text.strip():
        return True
    folio = _folio(0, line.text)
    if folio is not None:
        return folio.certain or seen[f"{_FOLIO}{folio.value - number}"] >= 2
    return any(seen[shape] >= least for shape in _shapes(line, number))


def _goes_on(above: Line, below: Line) -> bool:
    """Whether a sentence runs over the end of a page."""
    if above.code or below.code or not above.text:
        return False
    return below.text.lstrip()[:1].islower() and above.text.rstrip()[-1:] not in ".!?:;|"


# --- pages in running text --------------------------------------------------------------------


def page_furniture(blocks: Sequence[str]) -> set[int]:
    """Blocks that are page numbers, and short ones that keep returning beside them."""
    folios = [f for n, block in enumerate(blocks) if (f := _folio(n, block))]
    numbers = {f.at for f in folios if f.certain}
    numbers |= _row([f for f in folios if not f.bare], blocks, least=2)
    bare = [f for f in folios if f.bare]
    if not all(f.value in _YEARS for f in bare):
        numbers |= _row(bare, blocks, least=_LEAST)
    beside = {n + d for n in numbers for d in (-1, 1)} - numbers
    heads = _running_heads(blocks, beside)
    return numbers | {n for n in beside if 0 <= n < len(blocks) and blocks[n] in heads}


def _row(folios: Sequence[_Folio], blocks: Sequence[str], least: int) -> set[int]:
    """The places of numbers that count up with text between them: a lone one may mean something."""
    row = [folios[n] for n in chain([(f.value, "") for f in folios], restart=2.0)]
    if len(row) < least:
        return set()
    steps = list(pairwise(row))
    apart = sum(sum(map(len, blocks[a.at + 1 : b.at])) >= _APART for a, b in steps)
    close = sum(0 < b.value - a.value <= 2 for a, b in steps)
    if row[0].bare and (apart * 5 < len(steps) * 4 or close * 5 < len(steps) * 4):
        return set()
    return {f.at for f in row}


def _running_heads(blocks: Sequence[str], beside: set[int]) -> set[str]:
    short = [b for b in blocks if len(b) < 100 and "\n" not in b and b[-1:] not in ".!?:;,"]
    everywhere = Counter(short)
    at_numbers = Counter(blocks[n] for n in beside if 0 <= n < len(blocks))
    return {
        text
        for text, count in at_numbers.items()
        if count >= _LEAST and text in everywhere and count * 5 >= everywhere[text] * 3
    }
