"""What can be told only from all pages: running heads, headings and levels, broken paragraphs."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest

from services.converter.headings import (
    LONGEST,
    is_article,
    is_legal_heading,
    legal_rank,
    number_depth,
)
from services.converter.parsing.layout import ENUMERATOR, Block, Line, Page
from services.converter.parsing.pdf_contents import Entry, depths, with_contents
from services.converter.parsing.pdf_elements import Element, Part
from services.converter.parsing.pdf_furniture import running_lines, without
from services.converter.parsing.pdf_hyphens import join, join_lines, vocabulary
from services.converter.parsing.pdf_levels import Heading, levels
from services.converter.parsing.pdf_numbers import numbered_headings
from services.converter.parsing.pdf_shapes import BULLET

_CAPTION = re.compile(
    r"^(?:figure|fig\.|table|abbildung|abb\.|tabelle|tab\.|рис\.|рисунок|таблица|фигура|фиг\.|слика|"
    r"табела|slika|tablica|tabela|tabel|preglednica|exhibit|chart|diagramm?|grafik(?:on)?|"
    r"график|диаграмма|дијаграм|схема|рисунка)\s*\d",
    re.IGNORECASE,
)
_MOST_BETWEEN = 6
_WORD = re.compile(r"[^\W\d_]{3}|[^\W\d_a-zа-я]{2}|[\u3040-\u9fff\uac00-\ud7a3]")
_COUNTED = re.compile(r"\d+ [a-z]+(?: [a-z{}]+)*$")
_SHORT = 3
_TICKS = "☐☑☒"
_DATE = re.compile(r"\d{1,2}\.?\s+[^\W\d_]{3,12}\s+(?:19|20)\d\d\W?(?:\s?[гr]\.?)?$")
_LEADING_NUMBER = re.compile(
    r"^(?:(?:chapter|part|kapitel|teil|глава|часть|част|поглавље|poglavlje|poglavje|dio|del)\s+)?"
    r"(?:\d+(?:\.\d+)*|[IVXLC]+|[A-Z])[.:)]?\s+",
    re.IGNORECASE,
)
_AUTHOR_MARKS = ("*", "∗", "†", "‡", "¶")
_TERMINAL = re.compile(r"[.!?:;…]['\"»”“)\]\d]*$")
_NOTE = re.compile(r"^(?:\d{1,3}\)?|[*∗†‡§¶]{1,3})\s*\S")


def structure(
    pages: Sequence[Page], outline: Sequence[tuple[int, str, int | None]]
) -> list[Element]:
    """The document as a list of elements in reading order."""
    furniture = running_lines(pages, _body_style(pages)[0])
    pages = [Page(p.number, p.width, p.height, list(without(p, furniture))) for p in pages]
    words = vocabulary(pages)
    body_size, body_bold = _body_style(pages)
    elements, entries = with_contents(
        [_element(block, page.number, words) for page in pages for block in page.blocks], words
    )
    titles = _titles(outline, entries)
    crowded = {page.number for page in pages if _crowded(page, body_size, body_bold)}
    largest = {id(block) for block in _largest_of(pages[:2])}
    for element in elements:
        look = element.kind in {"text", "list"} and element.block.kind not in {"contents", "figure"}
        if look and _is_heading(
            element.block,
            body_size,
            body_bold,
            titles,
            crowded=element.page in crowded,
            opens=id(element.block) in largest,
        ):
            _make_heading(element)
    may = [bool(e.block.lines) and _could_head(e.block) and _is_worded(e.text) for e in elements]
    for index in numbered_headings(elements, may):
        _make_heading(elements[index])
    for head, more in pairwise(elements):
        if head.kind == "heading" and _goes_on_in_capitals(head, more):
            _make_heading(more)
    elements = list(_tables_joined(_notes_last(elements, pages, body_size)))
    elements = list(_joined(elements, words))
    elements = list(_merged_headings(_numbers_joined(elements, body_size)))
    _set_levels(elements, titles)
    _set_depths(elements)
    return elements


def _make_heading(element: Element) -> None:
    """`8. člen` may have looked like a list item; its number is part of the heading."""
    element.kind = "heading"
    element.text = _one_line(f"{element.marker} {element.text}")
    element.marker = ""


def _goes_on_in_capitals(head: Element, more: Element) -> bool:
    """Whether `more` is one more line of a heading that is set in capitals, centred."""
    return (
        more.kind == "text"
        and head.text.isupper()
        and more.text.isupper()
        and len(more.block.lines) == 1
        and _looks_like(head, more)
    )


def _titles(
    outline: Sequence[tuple[int, str, int | None]], entries: Sequence[Entry]
) -> dict[str, int]:
    """Depths of headings by their letters: of the outline, else of the contents list.

    What is named a chapter is known by its number alone too, an entry also without it.
    """
    titles: dict[str, int] = {}
    listed = [(title, depth) for depth, title, _ in outline] or list(depths(entries))
    for title, depth in listed:
        bare = _LEADING_NUMBER.sub("", title)
        number = re.search(r"\d+(?:\.\d+)*", title[: len(title) - len(bare)])
        known = [title, f"{number[0]} {bare}" if number else "", "" if outline else bare]
        for text in known:
            if len(_key(text)) > (0 if outline else 2):
                titles.setdefault(_key(text), depth)
    return titles


def _set_depths(elements: Iterable[Element]) -> None:
    """Levels of list items by their indents; another column or page may stand elsewhere."""
    lefts: list[float] = []
    before: Element | None = None
    for element in elements:
        if element.kind != "list" or element.block.kind == "contents":
            element.level, lefts, before = element.level or int(element.kind == "list"), [], None
            continue
        left, near = element.block.left, 0.6 * element.block.size
        moved = before is not None and (
            element.page != before.last.page or element.block.column != before.last.block.column
        )
        if moved and not any(abs(left - known) < near for known in lefts):
            lefts = []
        while lefts and left < lefts[-1] - near:
            lefts.pop()
        if not lefts or left > lefts[-1] + near:
            lefts.append(left)
        element.level, before = len(lefts), element


# --- text -------------------------------------------------------------------------------------


def _element(block: Block, page: int, words: Counter[str]) -> Element:
    if block.table is not None:
        return Element("table", "", page, block, table=block.table)
    lines = [line.text for line in block.lines]
    if block.kind == "code":
        return Element("code", "\n".join(_indented(block.lines)), page, block)
    text = join_lines(lines, words)
    if block.kind == "list":
        mark = BULLET.match(text) or ENUMERATOR.match(text)
        # Markdown has no marks such as `(1)` and `a)`: they stay in the text, which laws quote.
        if mark and (BULLET.match(text) or re.fullmatch(r"\d+\.", mark[1])):
            marker = mark[1] if ENUMERATOR.match(text) else "-"
            return Element("list", text[mark.end() :], page, block, marker=marker)
    return Element("text", text, page, block)


def _indented(lines: Sequence[Line]) -> Iterator[str]:
    """Code lines with their indentation, as far as the position tells."""
    left = min(line.left for line in lines)
    for line in lines:
        width = max(1.0, (line.right - line.left) / max(1, len(line.text)))
        yield " " * round((line.left - left) / width) + line.text


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


# --- headings ---------------------------------------------------------------------------------


def _body_style(pages: Iterable[Page]) -> tuple[float, bool]:
    """Size of the running text, and whether even that is bold."""
    sizes: Counter[float] = Counter()
    bold = plain = 0
    for page in pages:
        for block in page.blocks:
            letters = len(block.text)
            sizes[block.size] += letters
            bold, plain = bold + letters * block.bold, plain + letters * (not block.bold)
    return (max(sizes.items(), key=lambda i: (i[1], -i[0]))[0] if sizes else 10.0), bold > plain


def _key(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _could_head(block: Block) -> bool:
    text = _one_line(block.text)
    letters = sum(map(str.isalpha, text))
    return (
        block.kind in {"text", "list"}
        and len(block.lines) <= 4
        and letters >= 2
        and len(text) <= 1.5 * LONGEST
        and letters * 2 >= len(text.replace(" ", ""))
        and not _CAPTION.match(text)
        and not BULLET.match(text)
        and block.upright
    )


def _is_worded(text: str) -> bool:
    """No piece of a formula as `D c`, no count and no box to tick.

    The outline may name a heading so: `3 ls`.
    """
    worded = _WORD.search(text) is not None or len(text) < _SHORT
    return worded and not _COUNTED.match(text) and text[:1] not in {*_TICKS}


def _stands_out(block: Block, body_size: float, body_bold: bool) -> bool:
    larger = block.size >= body_size * 1.12 and block.size >= body_size + 0.8
    return larger or (block.bold and not body_bold and block.size >= body_size - 0.6)


def _crowded(page: Page, body_size: float, body_bold: bool) -> bool:
    """Half of the page's blocks stand out: then it is a form or a slide, and none of them heads."""
    blocks = [b for b in page.blocks if b.lines]
    marked = sum(_could_head(b) and _stands_out(b, body_size, body_bold) for b in blocks)
    return len(blocks) >= 8 and marked * 2 > len(blocks)


def _is_heading(
    block: Block,
    body_size: float,
    body_bold: bool,
    titles: dict[str, int],
    *,
    crowded: bool,
    opens: bool,
) -> bool:
    if not _could_head(block):
        return False
    text = _one_line(block.text)
    if _key(text) in titles or (is_legal_heading(text) and len(block.lines) <= 3):
        return True
    if not _is_worded(text):
        return False
    if not _may_be_title(block, text, body_size, opens=opens) and _reads_on(
        text, large=block.size >= body_size * 1.12
    ):
        return False
    if not _stands_out(block, body_size, body_bold):
        return _is_italic_heading(block, text, body_size) or _is_capitals(block, text, body_size)
    least = 1.3 if crowded else (0.0 if len(block.lines) <= 3 else 1.4)
    return block.size >= body_size * least


def _largest_of(pages: Iterable[Page]) -> Iterator[Block]:
    """The block in the largest type of its page, if there is but one."""
    for page in pages:
        blocks = [block for block in page.blocks if block.lines]
        most = max((block.size for block in blocks), default=0.0)
        alike = [block for block in blocks if block.size > most - 0.6]
        if len(alike) == 1:
            yield alike[0]


def _may_be_title(block: Block, text: str, body_size: float, *, opens: bool) -> bool:
    """Very large type at the start: titles have marks of notes, and some no capital."""
    return opens and block.size >= 1.4 * body_size and not text.endswith((",", ";", ".", ":"))


def _reads_on(text: str, *, large: bool) -> bool:
    """A piece of a sentence, or one that is complete: not a heading, however it looks."""
    if text[:1].islower() or text.endswith(_AUTHOR_MARKS) or (text.endswith(":") and not large):
        return True
    return text.endswith((",", ";", ".")) and not _numbered_or_legal(text)


def _is_italic_heading(block: Block, text: str, body_size: float) -> bool:
    """A short line in italics on its own, with space above and no full stop."""
    return (
        block.italic
        and len(block.lines) == 1
        and len(text) < 80
        and block.size >= 0.95 * body_size
        and block.space_above > 0.6 * block.size
        and (text[:1].isupper() or number_depth(text) is not None)
        and not re.search(r"[.,;:!?)\d]$", text)
    )


def _is_capitals(block: Block, text: str, body_size: float) -> bool:
    """A line or two in capitals on their own, with space above."""
    words = [word for word in re.findall(r"[^\W\d_]+", text) if len(word) > 3]
    return (
        text.isupper()
        and len(words) > 0
        and len(block.lines) <= 2
        and len(text) < 100
        and block.size >= 0.95 * body_size
        and block.space_above > 0.5 * block.size
        and not re.search(r"[.,;:]$|[=<>{}|_\\]", text)
    )


def _numbered_or_legal(text: str) -> bool:
    return len(text) < 80 and (number_depth(text) is not None or legal_rank(text) is not None)


def _numbers_joined(elements: Iterable[Element], body_size: float) -> Iterator[Element]:
    """A large number that stands alone over a heading belongs to it: it counts the chapter."""
    number: Element | None = None
    for element in elements:
        if number is not None:
            near = element.page == number.page and element.kind == "heading"
            if near and number_depth(element.text) is None:
                element.parts.insert(0, Part(0, number.page, number.block))
                element.parts[1:] = [
                    Part(p.start + len(number.text) + 1, p.page, p.block) for p in element.parts[1:]
                ]
                element.text = f"{number.text} {element.text}"
            else:
                yield number
            number = None
        alone = element.kind in {"text", "heading"} and re.fullmatch(r"\d{1,2}", element.text)
        if alone and element.block.size > 1.3 * body_size:
            number = element
        else:
            yield element
    if number is not None:
        yield number


def _merged_headings(elements: Iterable[Element]) -> Iterator[Element]:
    """A long heading that was cut into blocks of one style; and `Article 1` over its name.

    The name may be set in another style.
    """
    before: Element | None = None
    listed = list(elements)
    for element, after in zip_longest(listed, listed[1:]):
        if (
            before is not None
            and before.kind == element.kind == "heading"
            and _continues(before, element)
            # What stands right above `Article 4` is its own title, not that of `Article 3`.
            and not (is_article(before.text) and after is not None and is_article(after.text))
        ):
            before.extend(f"{before.text} {element.text}", element)
            continue
        if before is not None:
            yield before
        before = element
    if before is not None:
        yield before


def _continues(above: Element, below: Element) -> bool:
    a, b = above.last.block, below.block
    labelled = is_article(above.text)
    same = labelled or (abs(a.size - b.size) < 0.6 and a.bold == b.bold)
    near = 0 <= b.top - a.bottom < (1.6 if labelled else 0.9) * b.size
    fresh = number_depth(below.text) is None and legal_rank(below.text) is None
    whole = len(above.text) + len(below.text) < LONGEST
    return above.last.page == below.page and same and near and fresh and whole


def _set_levels(elements: Sequence[Element], titles: dict[str, int]) -> None:
    headings = [e for e in elements if e.kind == "heading"]
    if not headings:
        return
    title = _title(elements, headings)
    if title is not None:
        title.kind = "title"
        _plain_below(elements, title)
    rest = [e for e in headings if e.kind == "heading"]
    known = [titles.get(_key(e.text)) for e in rest]
    found = levels([Heading(e.text, e.block) for e in rest], known)
    for element, level in zip(rest, found, strict=True):
        element.level = level


def _title(elements: Sequence[Element], headings: Sequence[Element]) -> Element | None:
    """The heading that opens the document, if none is larger and none has its style."""
    first = headings[0]
    largest = max(e.block.size for e in headings)
    alike = [e for e in headings[1:] if _looks_like(e, first)]
    opens = first.page <= 2 and elements.index(first) <= 6
    large = first.block.size >= 0.85 * largest
    if large and not alike and opens and legal_rank(first.text) is None:
        return first
    return None


def _plain_below(elements: Sequence[Element], title: Element) -> None:
    """Names and dates under a title are set larger than the text, but head nothing."""
    for element in elements[elements.index(title) + 1 :]:
        if element.kind != "heading":
            return
        lighter = element.block.size < 0.95 * title.block.size and not element.block.bold
        dated = _DATE.match(element.text) is not None
        if not lighter or (_numbered_or_legal(element.text) and not dated):
            return
        element.kind = "text"


def _looks_like(a: Element, b: Element) -> bool:
    return abs(a.block.size - b.block.size) < 0.6 and a.block.bold == b.block.bold


# --- broken paragraphs ------------------------------------------------------------------------


def _notes_last(
    elements: Sequence[Element], pages: Sequence[Page], body_size: float
) -> Iterator[Element]:
    """Footnotes behind the paragraph that goes on on the next page."""
    heights = {page.number: page.height for page in pages}
    waiting: list[Element] = []
    for index, element in enumerate(elements):
        block = element.block
        small = 0 < block.size <= 0.92 * body_size and block.top > 0.6 * heights[element.page]
        if small and element.kind in {"text", "list"} and _NOTE.match(block.text):
            if element.kind == "list":
                mark = "*" if block.text.startswith("*") else element.marker
                element.kind, element.text = "text", f"{mark} {element.text}"
            waiting.append(element)
            continue
        turned = waiting and element.page > waiting[0].page
        if turned and not _open_end(elements, index, waiting):
            yield from waiting
            waiting = []
        yield element
        if turned:
            yield from waiting
            waiting = []
    yield from waiting


def _open_end(elements: Sequence[Element], index: int, notes: Sequence[Element]) -> bool:
    before = next((e for e in reversed(elements[:index]) if e not in notes), None)
    return before is not None and _goes_on(before, elements[index])


def _goes_on(before: Element, after: Element, *, floats: bool = False) -> bool:
    """A paragraph broken by the end of a column or page, or by what `floats` between."""
    if before.kind not in {"text", "list"} or after.kind != "text" or after.block.kind == "list":
        return False
    end = before.last
    moved = floats or end.page != after.page or end.block.column != after.block.column
    same = abs(end.block.size - after.block.size) < 0.6 and end.block.bold == after.block.bold
    apart = {end.block.kind, after.block.kind} & {"contents", "figure"}
    if not moved or not same or apart or _CAPTION.match(before.text):
        return False
    if re.search(r"\w[-\u00ad‐]$", before.text):
        return after.text[:1].islower()
    return not _TERMINAL.search(before.text) and (
        after.text[:1].islower() or before.text.endswith(",")
    )


def _joined(elements: Iterable[Element], words: Counter[str]) -> Iterator[Element]:
    """Paragraphs that go on elsewhere in one piece; what stood between comes after them.

    That may be the end of a column or page, or a figure, a table or a caption in the way.
    """
    before: Element | None = None
    between: list[Element] = []
    for element in elements:
        if before is not None and _goes_on(before, element, floats=bool(between)):
            before.extend(join(before.text, element.text, words), element)
            continue
        if before is not None and len(between) < _MOST_BETWEEN and _floats(element):
            between.append(element)
            continue
        if before is not None:
            yield before
        yield from between
        before, between = element, []
    if before is not None:
        yield before
    yield from between


def _tables_joined(elements: Iterable[Element]) -> Iterator[Element]:
    """A table that goes on at the head of the next page as one, with one header.

    A note may stand between at the foot of the page, if the header is repeated.
    """
    before: Element | None = None
    between: list[Element] = []
    for element in elements:
        if before is not None and _table_goes_on(before, element, noted=bool(between)):
            _add_table(before, element)
            continue
        note = element.kind == "text" and len(between) < _MOST_BETWEEN
        if before is not None and note and element.page == before.last.page:
            between.append(element)
            continue
        if before is not None:
            yield before
        yield from between
        before, between = (element, []) if element.table is not None else (None, [])
        if before is None:
            yield element
    if before is not None:
        yield before
    yield from between


def _table_goes_on(before: Element, element: Element, *, noted: bool) -> bool:
    if before.table is None or element.table is None or element.page != before.last.page + 1:
        return False
    if noted:
        return before.table.repeats_in(element.table)
    return before.table.goes_on_in(element.table)


def _add_table(before: Element, element: Element) -> None:
    if before.table is not None and element.table is not None:
        before.parts.append(Part(before.table.rows, element.page, element.block))
        before.table.add(element.table)


def _floats(element: Element) -> bool:
    """What is set where there is room for it, and not where it is spoken of."""
    return (
        element.kind == "table"
        or element.block.kind == "figure"
        or _CAPTION.match(element.text) is not None
    )
