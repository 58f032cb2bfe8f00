"""Titles of articles and chapters that stand on lines of their own. Pure."""

import re
from collections import Counter

from services.converter.form import is_heading
from services.converter.headings import Mark, in_capitals, named_part, names_law
from services.converter.laws.items import (
    LEAST,
    MOST_LINES,
    SHORT,
    TOPIC,
    Item,
    is_title,
    known_and_bare,
    level_of,
)
from services.converter.laws.page import Page

_OPENS_TEXT = re.compile(r"\(?\d{1,3}[.)]|\(?[a-zа-я]\)|[-–—•*] ")


class Titles:
    """Finds them. `taken`: the lines that belong to a heading on another line."""

    def __init__(self, page: Page, items: list[Item]) -> None:
        self._page = page
        self._items = items
        self.taken = {n for item in items for n in item.titles}

    def take(self) -> None:
        """Titles on the line below, for kinds of parts that have them."""
        starts = {item.line for item in self._items}
        blocks = {item.line: self._title_below(item, starts) for item in self._items}
        leaves = [i for i in self._items if i.is_leaf and i.form == "bare"]
        all_titled = len(leaves) >= LEAST and all(blocks[i.line] for i in leaves)
        for unit in {item.unit for item in self._items}:
            open_items = [i for i in self._items if i.unit == unit and i.form == "bare"]
            titled = [i for i in open_items if blocks[i.line]]
            elsewhere = sum(i.unit == unit and i.form == "titled" for i in self._items)
            common = len(titled) * 5 >= len(open_items) * 3 and len(titled) > elsewhere
            common = common or self._alone_often(titled, blocks, starts, len(open_items))
            for item in titled:
                block = blocks[item.line]
                if item.is_leaf:
                    wanted = common and (all_titled or len(titled) >= LEAST)
                    wanted = wanted or self._in_brackets(block, starts)
                else:
                    wanted = common or self._page.next_text(block[-1], 1) in starts
                if wanted and not self.taken.intersection(block):
                    item.titles = block
                    self.taken.update(block)

    def _alone_often(
        self, titled: list[Item], blocks: dict[int, list[int]], starts: set[int], of: int
    ) -> bool:
        """Whether titles with blank lines around and text below are no chance: many have one."""
        page = self._page
        alone = [
            item
            for item in titled
            if not page.text(blocks[item.line][-1] + 1)
            and page.next_text(blocks[item.line][-1], 1) not in starts
        ]
        return len(alone) > 2 * LEAST and len(alone) * 4 >= of

    def _in_brackets(self, block: list[int], starts: set[int]) -> bool:
        """`(scope of this law)` above the text; where nothing follows, `(repealed)` is the text."""
        whole = self._page.joined(block)
        alone = whole[0] == "(" and whole[-1] == ")" and whole.count("(") == 1
        below = self._page.next_text(block[-1], 1)
        if not alone or below >= len(self._page.lines) or below in starts:
            return False
        text = self._page.text(below)
        bracketed = text[0] == "(" and text[-1] == ")"
        return not (is_heading(self._page.lines[below]) or named_part(text) or bracketed)

    def _title_below(self, item: Item, starts: set[int]) -> list[int]:
        """The lines of what reads as a title right below; none if there is no such."""
        first = self._page.next_text(item.line, 1)
        if first >= len(self._page.lines) or first in starts or first - item.line > 3:
            return []
        if is_heading(self._page.lines[first]):
            return self._heading_below(item, first, starts)
        block = self._page.block(first, starts)
        whole = self._page.joined(block)
        dense = first == item.line + 1 and self._page.text(first - 2) != ""
        if len(block) <= MOST_LINES and is_title(whole) and not dense:
            return block
        below = self._page.text(first + 1)
        alone = len(block) == 1 or bool(_OPENS_TEXT.match(below))
        alone = alone or (below[:1].isupper() and not self._page.wraps(first))
        return [first] if alone and is_title(self._page.text(first)) else []

    def _heading_below(self, item: Item, first: int, starts: set[int]) -> list[int]:
        """A heading that says no more than the title of the part, and has no brothers in it."""
        level = level_of(self._page.lines[first])
        # Bold type below a plain `Article 1` may have been taken for the heavier heading.
        if item.is_leaf and level == 1 < item.known:
            return []
        after = next((n for n in range(first + 1, len(self._page.lines)) if n in starts), 0)
        rest = range(first + 1, after or len(self._page.lines))
        brothers = any(level_of(self._page.lines[n]) == level for n in rest if after)
        return [] if brothers or named_part(self._page.text(first).lstrip("# ")) else [first]

    def topics(self) -> list[Item]:
        """Titles that stand above the number of their article, and may hold for several."""
        leaves = [i for i in self._items if i.is_leaf]
        if sum(bool(item.titles) for item in leaves) * 10 > len(leaves):
            return []
        starts = {item.line for item in self._items}
        above = {i.line: self._title_above(i, starts) for i in leaves if i.form != "titled"}
        found = self._without_refrain([block for block in above.values() if block])
        if len(found) < LEAST or len(found) * 5 < len(above) * 2:
            return []
        topics: list[Item] = []
        for block in found:
            known, bare = known_and_bare(self._page.lines[block[0]])
            mark = Mark(TOPIC, 5, 0, "", len(bare.text), len(bare.text))
            topics.append(Item(block[0], mark, bare, "titled", known, titles=block[1:]))
            self.taken.update(block[1:])
        return topics

    def _without_refrain(self, blocks: list[list[int]]) -> list[list[int]]:
        """Without what a site puts above every article."""
        words = [self._page.joined(block) for block in blocks]
        times = Counter(words)
        most = max(LEAST, len(blocks) // 4)
        return [b for b, text in zip(blocks, words, strict=True) if times[text] <= most]

    def _title_above(self, item: Item, starts: set[int]) -> list[int]:
        last = self._page.next_text(item.line, -1)
        if last < 0 or last in starts or last in self.taken or item.line - last > 3:
            return []
        if is_heading(self._page.lines[last]):
            return [] if named_part(self._page.text(last).lstrip("# ")) else [last]
        first = last
        while last - first < MOST_LINES - 1 and not self._ends_text(first - 1, starts):
            first -= 1
        block = list(range(first, last + 1))
        whole = self._page.joined(block)
        fits = len(whole) <= SHORT and is_title(whole) and not named_part(whole)
        if item is self._items[0] and in_capitals(whole) and names_law(whole):
            return []
        free = not self.taken.intersection(block)
        return block if fits and free and self._page.opens(first) else []

    def _ends_text(self, number: int, starts: set[int]) -> bool:
        above = self._page.text(number)
        full = not above or above[-1] in ".;:!?" or len(above) > 80
        return full or number in starts or number in self.taken
