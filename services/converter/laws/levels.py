"""Levels of the headings of a law. Pure."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise

from services.converter.headings import ANNEX, ARTICLE, PARAGRAPH
from services.converter.laws.items import CAPITALS, LEAST, NAMED, TOPIC, Item
from services.converter.laws.page import Page

_DEEPEST = 6
_FEWEST = 2
_RANKS = {TOPIC: 5.5, CAPITALS: 5.3}


class Levels:
    """Levels for the items of a law, from its own headings or from the ranks of its parts."""

    def __init__(
        self, items: list[Item], others: dict[int, int], beside: Collection[int] = ()
    ) -> None:
        """`others`: levels of headings that are not the law's; `beside`: lines of paragraphs that
        stand beside articles, not in them."""
        self._items = items
        self._others = others
        self._beside = beside
        self._flat = self._only_level()

    def set(self) -> None:
        """Give every item its level: one below the part that it is in, if it had none."""
        regions: list[list[Item]] = [[]]
        for item in self._items:
            if item.unit == ANNEX:
                regions.append([])
            regions[-1].append(item)
        base = self._base(regions[0] or self._items)
        self._set_region(regions[0], base, highest=1 + (1 in self._others.values()))
        for region in regions[1:]:
            region[0].level = self._wanted(region[0]) or base
            below = region[0].level + 1
            self._set_region(region[1:], below, highest=below)

    def _wanted(self, item: Item) -> int:
        """The level that it had and may keep; else 0."""
        return 0 if self._flat else item.known

    def _only_level(self) -> int:
        """The level that all parts of several kinds are on; 0 if they are not."""
        known = [i for i in self._items if i.known and i.unit not in (NAMED, ANNEX)]
        units, levels = {i.unit for i in known}, {i.known for i in known}
        flat = len(known) >= LEAST and len(units) > 1 and len(levels) == 1
        return levels.pop() if flat else 0

    def _base(self, items: list[Item]) -> int:
        """The level of the highest part: below the title."""
        if not items:
            return 1
        before = [level for n, level in self._others.items() if n < items[0].line]
        known = [item.known for item in items if item.known]
        if self._flat:
            return self._flat + (bool(before) and min(before) == self._flat)
        below = before[-1] + 1 if before else 1
        return min([below, *known])

    def _set_region(self, items: list[Item], base: int, *, highest: int) -> None:
        """Levels from `base` on; from `highest` on, where there are more kinds than levels."""
        seen: dict[str, Counter[int]] = {}
        for item in items:
            seen.setdefault(item.unit, Counter())[self._wanted(item)] += 1
        levels = {u: c.most_common(1)[0][0] for u, c in seen.items() if set(c) != {0}}
        below = _below(items)
        trusted = not any(
            levels.get(a, 0) > levels.get(b, 9) and n > 1 and not below[b, a]
            for (a, b), n in below.items()
        )
        order = {u: at for at, u in enumerate(_order(items, levels if trusted else {}, below))}
        kinds = len(order) - (NAMED in order)
        base = min(base, max(highest, _DEEPEST + 1 - kinds))
        above: list[Item] = []
        begun = False
        for item in items:
            while above and not self._contains(above[-1], item, order):
                above.pop()
            least = above[-1].level + 1 if above else base
            wanted = self._wanted(item) if trusted else 0
            item.level = min(max(least, wanted), _DEEPEST)
            if item.unit == NAMED:
                item.level = self._wanted(item) or base
            begun = begun or item.is_leaf
            # A preamble holds nothing; final provisions may hold articles.
            if item.unit != NAMED or begun:
                above.append(item)

    def _contains(self, part: Item, item: Item, order: dict[str, int]) -> bool:
        if part.unit == NAMED:
            return item.is_leaf
        if item.line in self._beside and part.unit == ARTICLE:
            return False
        return item.unit != NAMED and order[part.unit] < order[item.unit]


def closing_paragraphs(page: Page, items: Sequence[Item]) -> set[int]:
    """Lines of the paragraphs that follow the last article's text: Bulgarian laws end so.

    Where an article is made of paragraphs, they follow its title.
    """
    articles = [item.line for item in items if item.unit == ARTICLE]
    paragraphs = [item.line for item in items if item.unit == PARAGRAPH]
    if len(articles) < _FEWEST or not paragraphs or paragraphs[0] < articles[-1]:
        return set()
    above = page.next_text(paragraphs[0], -1)
    part = next((item for item in items if above in (item.line, *item.titles)), None)
    follows = (part is None or part.run_in) and page.text(above)[-1:] == "."
    return set(paragraphs) if follows else set()


def _below(items: list[Item]) -> Counter[tuple[str, str]]:
    """How often a part of one kind stands right below one of another, without text between."""
    below: Counter[tuple[str, str]] = Counter()
    for above, under in pairwise(items):
        gap = under.line - max([above.line, *above.titles])
        # A long title may have left a line of its own behind; below an article it is text.
        near = 2 if above.is_leaf else 4
        if above.unit != under.unit and gap <= near and not above.run_in:
            below[above.unit, under.unit] += 1
    return below


def _order(items: list[Item], levels: dict[str, int], below: Counter[tuple[str, str]]) -> list[str]:
    """Kinds of parts, highest first: by what stands right below what, by level, by rank.

    Where `levels` say that an empty part ends before a higher one begins, again and again, they
    come from the size of type and are given as none.
    """
    counts = Counter(item.unit for item in items)
    ranks = {i.unit: _RANKS.get(i.unit, i.mark.rank) for i in items}
    ranks |= {NAMED: -1.0} if NAMED in ranks else {}
    order = sorted(ranks, key=lambda unit: (ranks[unit], list(ranks).index(unit)))

    def heads(a: str, b: str) -> bool:
        often = below[a, b] >= LEAST and below[a, b] * 2 >= min(counts[a], counts[b])
        return often and below[a, b] > 4 * below[b, a]

    def precedes(a: str, b: str) -> bool:
        # A part without text above each article is no part of the article before it.
        if heads(a, b) or heads(b, a):
            return heads(a, b)
        if a in levels and b in levels and levels[a] != levels[b]:
            return levels[a] < levels[b]
        return below[a, b] > below[b, a]

    return _sorted_by(order, precedes)


def _sorted_by(order: Iterable[str], precedes: Callable[[str, str], bool]) -> list[str]:
    """By insertion: each goes up past those that it precedes."""
    out: list[str] = []
    for unit in order:
        at = len(out)
        while at > 0 and precedes(unit, out[at - 1]):
            at -= 1
        out.insert(at, unit)
    return out
