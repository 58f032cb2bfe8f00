"""Laws of two or three articles, which are too few to be told by their number. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from services.converter.form import is_heading
from services.converter.headings import names_law
from services.converter.laws.items import LEAST, LEAVES, Item, bare_line, is_title
from services.converter.laws.page import Page
from services.converter.lines import joined

_LONGEST = 12_000
"""Characters of a law that is called short."""
_FEWEST = 2
_SECTION = "section"
"""What an Act has for articles in English."""
_MOST_ABOVE = 5
"""Paragraphs that may stand above the first article, the title among them."""


def short_law(page: Page, found: Sequence[Item]) -> list[Item]:
    """`Чл. 1.`, `Чл. 2.` and `§ 1.`, or two articles below the name of a law; else none.

    Articles and paragraphs begin with 1 and count up without a gap, each kind by itself or one
    going on where the other ended; each has text; they make up most of the document, which has no
    other headings between them.
    """
    items = [item for item in found if item.form != "sentence" or item.run_in]
    of = LEAVES if any(item.unit in LEAVES for item in items) else (_SECTION,)
    leaves = [item for item in items if item.unit in of]
    if len(leaves) < _FEWEST or not _count_up(leaves):
        return []
    parts = [item for item in items if item.unit not in of and not item.run_in]
    first = min(item.line for item in [leaves[0], *parts])
    sizes = [len(line.text) for line in page.lines]
    if sum(sizes) > _LONGEST or sum(sizes[:first]) * 2 > sum(sizes):
        return []
    starts = {item.line for item in items}
    if any(is_heading(page.lines[n]) and n not in starts for n in range(first, len(page.lines))):
        return []
    # Below `Artikel 1` there may be `§ 1`, but two of a kind without text are a list.
    held = all(
        above.unit != item.unit or above.run_in or page.next_text(above.line, 1) not in starts
        for above, item in pairwise(leaves)
    )
    ends = page.next_text(leaves[-1].line, 1) < len(page.lines) or leaves[-1].run_in
    if not (held and ends) or not (len(leaves) >= LEAST or _is_named(page, first)):
        return []
    for item in leaves:
        item.is_leaf = True
    return sorted([*parts, *leaves], key=lambda item: item.line)


def _count_up(leaves: Sequence[Item]) -> bool:
    """Whether the numbers go 1, 2, 2a, 3; another kind may begin anew, or go on."""
    if leaves[0].mark.value != 1:
        return False
    last = {leaves[0].unit: leaves[0].mark}
    for above, item in pairwise(leaves):
        mark = item.mark
        same = last.get(mark.unit, mark)
        lettered = mark.value == same.value and mark.suffix > same.suffix
        anew = mark.value == 1 and mark.unit not in last
        if not (mark.value - 1 in (above.mark.value, same.value) or lettered or anew):
            return False
        last[mark.unit] = mark
    return True


def _is_named(page: Page, first: int) -> bool:
    """Whether a title above the first article names a law: `Закон за парковете`."""
    blocks: list[list[str]] = [[]]
    for line in page.lines[:first]:
        text = bare_line(line).text.lstrip("# ")
        if text:
            blocks[-1].append(text)
        elif blocks[-1]:
            blocks.append([])
    blocks = [block for block in blocks if block]
    for n, block in enumerate(blocks[:_MOST_ABOVE]):
        # `ODLUKA` on one line, what it is about in the next paragraph.
        more = blocks[n + 1][:1] if len(block) == 1 and " " not in block[0] else []
        text = joined([" ".join([*block, *more])]).text
        if is_title(text) and names_law(text):
            return True
    return False
