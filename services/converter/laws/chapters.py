"""Chapters of a law that no word tells: by a number, by capitals, by a name. Pure."""

import re
from collections.abc import Callable, Collection, Sequence

from services.converter.form import is_heading
from services.converter.headings import (
    Mark,
    in_capitals,
    legal_mark,
    named_part,
    names_law,
    reads_as_title,
)
from services.converter.laws.items import (
    CAPITALS,
    MARKUP,
    MOST_LINES,
    NAMED,
    SHORT,
    Item,
    is_title,
    known_and_bare,
)
from services.converter.laws.page import Page, goes_on
from services.converter.sequence import chain

_SUB_NUMBER = re.compile(
    r"(?:(\d{1,2}\.|\d{1,2}(?:\.\d{1,2}){1,3}\.?)|([A-ZА-Я])\.)\s+(?:[-–—]\s+)?(?=[^\W\d_])"
)
_OF_NUMBERS = "IVXLCDMІХМС0123456789"
_FEWEST = 2
_WIDEST_GAP = 5
"""Numbers that may have been repealed between two."""


def numbered_chapters(
    page: Page, items: Sequence[Item], mark_of: Callable[[str], Mark | None]
) -> list[Item]:
    """`II. GENERAL PROVISIONS` or `2. GENERAL PROVISIONS`, where articles follow at once."""
    starts = {item.line for item in items}
    found: list[Item] = []
    for number, line in enumerate(page.lines):
        first = line.text.lstrip(MARKUP)[:1]
        if line.code or not first or first not in _OF_NUMBERS or number in starts:
            continue
        known, bare = known_and_bare(line)
        mark = mark_of(bare.text)
        if mark is None or not reads_as_title(bare.text[mark.title :], bare.text[: mark.end]):
            continue
        if known or (page.opens(number) and number not in page.quoted):
            found.append(Item(number, mark, bare, "titled", known))
    chained = [found[n] for n in chain([(i.mark.value, i.mark.suffix) for i in found], restart=1.6)]
    leading = sum(_leads(page, item.line, starts) for item in chained)
    return chained if len(chained) >= _FEWEST and leading * 2 >= len(chained) else []


def _leads(page: Page, line: int, starts: Collection[int]) -> bool:
    """Whether an article follows, after no more than the title of it; figures are of a table."""
    after = next((n for n in range(line + 1, line + 9) if n in starts), None)
    between = [text for n in range(line + 1, after or 0) if (text := page.text(n))]
    titles = all(re.search(r"[^\W\d_]", text) for text in between)
    return after is not None and titles and sum(map(len, between)) < SHORT


def sub_chapters(page: Page, items: Sequence[Item], taken: Collection[int]) -> list[Item]:
    """`2.1. Towns`, `A. Buses`: numbered titles that stand right above an article each."""
    starts = {item.line for item in items}
    found: list[tuple[Item, tuple[int, ...]]] = []
    # From the end, so that what stands above another such title is found as well.
    for number in range(len(page.lines) - 1, min(starts, default=0), -1):
        parts = _numbers(page.text(number).lstrip(MARKUP))
        free = number not in starts and number not in taken and number not in page.quoted
        if not parts or not free or page.lines[number].code or not page.opens(number):
            continue
        known, bare = known_and_bare(page.lines[number])
        ends = not page.text(number + 1) or number + 1 in starts or page.dense
        fits = ends and _is_short_title(bare.text) and not _in_list(page, number)
        if fits and _leads(page, number, starts):
            kind = "letter" if bare.text[0].isalpha() else f"number-{len(parts)}"
            rank = 5 if kind == "letter" else 4
            mark = Mark(kind, rank, parts[-1], "", len(bare.text), len(bare.text))
            found.append((Item(number, mark, bare, "titled", known), parts))
            starts.add(number)
    return _counting(found[::-1])


def _in_list(page: Page, number: int) -> bool:
    """Whether the line right above or below has a number of the same kind."""
    kind = len(_numbers(page.text(number).lstrip(MARKUP)))
    beside = (page.text(page.next_text(number, step)).lstrip(MARKUP) for step in (-1, 1))
    return any(len(_numbers(text)) == kind for text in beside)


def _is_short_title(text: str) -> bool:
    match = _SUB_NUMBER.match(text)
    title = text[match.end() if match else 0 :]
    ends = text[-1] not in ".,;:" and not goes_on(text)
    return len(text) <= SHORT and title[0].isupper() and ends and legal_mark(text) is None


def _numbers(text: str) -> tuple[int, ...]:
    """`(2, 1)` for `2.1. Towns`, and the place in the alphabet for `B. Trains`; else empty."""
    match = _SUB_NUMBER.match(text)
    if match is None:
        return ()
    return (ord(match[2]),) if match[2] else tuple(map(int, match[1].rstrip(".").split(".")))


def _counting(found: Sequence[tuple[Item, tuple[int, ...]]]) -> list[Item]:
    """Those that begin a row, or follow the one before; a row has two at least."""
    kept: list[Item] = []
    rows: dict[tuple[str, tuple[int, ...]], int] = {}
    firsts = {1, ord("A"), ord("А")}
    for item, parts in found:
        row = item.unit, parts[:-1]
        if parts[-1] in firsts or 0 < parts[-1] - rows.get(row, -99) <= _WIDEST_GAP:
            rows[row] = parts[-1]
            kept.append(item)
    return kept if len(kept) >= _FEWEST and len(kept) * 2 >= len(found) else []


def capital_chapters(page: Page, items: Sequence[Item], taken: Collection[int]) -> list[Item]:
    """`PENALTIES`, in capitals and without a number, above an article or its title."""
    starts = {item.line for item in items}
    found: list[Item] = []
    number = min(starts, default=0)
    while number < len(page.lines):
        block = _capitals(page, number, starts, taken)
        whole = page.joined(block)
        if whole and is_title(whole) and page.opens(number) and _leads(page, block[-1], starts):
            known, bare = known_and_bare(page.lines[number])
            if not (known or named_part(whole) or names_law(whole)):
                mark = Mark(CAPITALS, 5, 0, "", len(bare.text), len(bare.text))
                found.append(Item(number, mark, bare, "titled", titles=block[1:]))
        number = block[-1] + 1 if block else number + 1
    return found if len(found) >= _FEWEST else []


def _capitals(page: Page, first: int, starts: Collection[int], taken: Collection[int]) -> list[int]:
    """The lines in capitals from `first` on; none if there are too many of them."""
    block: list[int] = []
    for number in range(first, min(first + MOST_LINES + 1, len(page.lines))):
        line = page.lines[number]
        free = number not in starts and number not in taken and number not in page.quoted
        text = page.text(number)
        fits = text.isupper() if block else in_capitals(text)
        if not free or line.code or is_heading(line) or not fits:
            break
        block.append(number)
    return block if len(block) <= MOST_LINES else []


def named_items(page: Page, items: Sequence[Item], taken: Collection[int]) -> list[Item]:
    """A preamble, recitals, final provisions: headings without a number, outside articles."""
    leaves = [item.line for item in items if item.is_leaf] or [0]
    found: list[Item] = []
    for number, line in enumerate(page.lines):
        if line.code or not 3 < len(line.text) < 100 or number in taken or number in page.quoted:
            continue
        known, bare = known_and_bare(line)
        more = _rest_of_name(page, number, bare.text) if not known else []
        if not (more or named_part(bare.text)) or not bare.text[0].isalpha():
            continue
        # Within an article the same words are text: `Budući da:`.
        outside = number < leaves[0] or bare.text[-1] != ":"
        if known or (outside and page.opens(number)):
            mark = Mark(NAMED, 0, 0, "", len(bare.text), len(bare.text))
            found.append(Item(number, mark, bare, "titled", known, titles=more))
    return found


def _rest_of_name(page: Page, number: int, text: str) -> list[int]:
    """The next line, where `TRANSITIONAL AND FINAL` goes on with `PROVISIONS`."""
    below = page.text(number + 1)
    whole = in_capitals(text) and in_capitals(below) and named_part(f"{text} {below}")
    return [number + 1] if whole else []
