"""Which lines of a document head the parts of a law. Pure."""

import re
from collections import Counter
from itertools import groupby

from services.converter.headings import (
    ANNEX,
    Mark,
    legal_mark,
    named_part,
    reads_as_title,
    roman_mark,
)
from services.converter.laws.items import (
    LEAST,
    LEAVES,
    MARKUP,
    MOST_LINES,
    NAMED,
    SHORT,
    Form,
    Item,
    form_of,
    known_and_bare,
    runs_in,
)
from services.converter.laws.page import Page
from services.converter.sequence import chain

_LOOK_AHEAD = 50
_ROMAN_LETTERS = "IVXLCDMІХМС"
_NO_LETTERS = re.compile(r"[\W_]+")
_PAGE_AT_END = re.compile(r"[\s.…]+\d{1,4}$")
_TITLE_SENTENCE = re.compile(r"[^\W\d_a-zа-я][^.;:\n]{2,80}\.(?=\s+[\"“„«(]?[^\W_a-zа-я])")


def find_items(page: Page) -> list[Item]:
    """The headings of a law in order, without lists of contents; none if this is no law."""
    found = [item for n in range(len(page.lines)) if (item := _item(page, n)) is not None]
    if sum(item.form != "sentence" or item.run_in for item in found) < LEAST:
        return []
    _find_leaves(found)
    items = _in_sequence(_without_contents(page, found))
    _set_ends(items)
    return sorted([*items, *_romans(page, items)], key=_place) if _is_law(page, items) else []


def _place(item: Item) -> int:
    return item.line


def _item(page: Page, number: int) -> Item | None:
    line = page.lines[number]
    if line.code or not line.text:
        return None
    if line.text.startswith(("    ", "\t")) and not page.indented:
        return None
    first = line.text.lstrip(MARKUP)[:1]
    if not (first.isupper() or first.isdigit() or first == "§"):
        return None
    known, bare = known_and_bare(line)
    mark = legal_mark(bare.text)
    if mark is None:
        return None
    more = [] if known or mark.title >= len(bare.text) else page.continuation(number)
    whole = " ".join([bare.text, *(page.text(n) for n in more)])
    form = form_of(whole, mark, known)
    if not known and form != "sentence" and not _starts(page, number, mark, form):
        form = "sentence"
    run_in = form == "sentence" and runs_in(bare.text, mark) and page.opens(number)
    return Item(number, mark, bare, form, known, run_in, more if form == "titled" else [])


def _starts(page: Page, number: int, mark: Mark, form: Form) -> bool:
    """Whether a line can head something where it stands: it is not amid a sentence."""
    below = page.text(number + 1)
    if form == "bare" and below[:1].islower() and not legal_mark(below):
        return False
    return page.opens(number)


def _without_contents(page: Page, found: list[Item]) -> list[Item]:
    """Entries of a list of contents go: the same headings come again, with more text."""
    places: dict[tuple[str, int, str], list[int]] = {}
    for number, item in enumerate(found):
        places.setdefault((item.unit, item.mark.value, item.mark.suffix), []).append(number)
    ends = [*(item.line for item in found[1:]), len(page.lines)]
    words = [_words(page, item, end) for item, end in zip(found, ends, strict=True)]
    entries = [
        not item.known
        and len(words[n]) < SHORT
        and any(
            later > n and words[later].startswith(words[n])
            for later in places[item.unit, item.mark.value, item.mark.suffix][-_LOOK_AHEAD:]
        )
        for n, item in enumerate(found)
    ]
    dropped: set[int] = set()
    for is_entry, group in groupby(range(len(found)), key=entries.__getitem__):
        run = list(group)
        if is_entry and len(run) > LEAST:
            dropped.update(run)
    return [item for n, item in enumerate(found) if n not in dropped]


def _words(page: Page, item: Item, end: int) -> str:
    """The letters of an item's line and of what follows it up to the next, as far as needed."""
    texts = [item.bare.text]
    for number in range(item.line + 1, end):
        texts.append(page.text(number))
        if len(texts) > MOST_LINES and sum(map(len, texts)) > 2 * SHORT:
            break
    return _NO_LETTERS.sub("", "".join(_PAGE_AT_END.sub("", text) for text in texts)).lower()


def _is_law(page: Page, items: list[Item]) -> bool:
    """Whether there are enough parts of one kind, most of them with text."""
    starts = {item.line for item in items}
    holding = Counter(
        item.unit
        for item in items
        if item.run_in or item.known or page.next_text(item.line, 1) not in starts
    )
    counts = Counter(item.unit for item in items)
    return any(n >= LEAST and holding[unit] * 2 >= n for unit, n in counts.items())


def _romans(page: Page, items: list[Item]) -> list[Item]:
    """`II. GENERAL PROVISIONS`, where articles follow at once."""
    starts = {item.line for item in items}
    found: list[Item] = []
    for number, line in enumerate(page.lines):
        first = line.text.lstrip(MARKUP)[:1]
        if line.code or first not in _ROMAN_LETTERS or not first or number in starts:
            continue
        known, bare = known_and_bare(line)
        mark = roman_mark(bare.text)
        if mark is None or not reads_as_title(bare.text[mark.title :], bare.text[: mark.end]):
            continue
        if known or page.opens(number):
            found.append(Item(number, mark, bare, "titled", known))
    chained = [found[n] for n in chain([(i.mark.value, i.mark.suffix) for i in found], restart=1.6)]
    leading = sum(_leads(page, item, starts) for item in chained)
    return chained if len(chained) >= 2 and leading * 2 >= len(chained) else []


def _leads(page: Page, item: Item, starts: set[int]) -> bool:
    """Whether an article follows, after no more than the title of it."""
    after = next((n for n in range(item.line + 1, item.line + 9) if n in starts), None)
    between = range(item.line + 1, after or 0)
    return after is not None and sum(len(page.text(n)) for n in between) < SHORT


def named_items(page: Page, items: list[Item], taken: set[int]) -> list[Item]:
    """A preamble, recitals, final provisions: headings without a number, outside articles."""
    leaves = [item.line for item in items if item.is_leaf] or [0]
    found: list[Item] = []
    for number, line in enumerate(page.lines):
        if line.code or not 3 < len(line.text) < 100 or number in taken:
            continue
        known, bare = known_and_bare(line)
        if not named_part(bare.text) or not bare.text[0].isalpha():
            continue
        # Within an article the same words are text: `Budući da:`.
        outside = number < leaves[0] or bare.text[-1] != ":"
        if known or (outside and page.opens(number)):
            mark = Mark(NAMED, 0, 0, "", len(bare.text), len(bare.text))
            found.append(Item(number, mark, bare, "titled", known))
    return found


def _find_leaves(found: list[Item]) -> None:
    """Articles hold the text; where there are none, what there is most of."""
    units = Counter(item.unit for item in found if item.form != "sentence" or item.run_in)
    leaves = [unit for unit in LEAVES if units[unit] >= LEAST]
    leaves = leaves or [unit for unit, _ in units.most_common(1)]
    for item in found:
        item.is_leaf = item.unit in leaves


def _set_ends(items: list[Item]) -> None:
    """`Section 1. Short title. This Act …`: where all start so, that sentence is the title."""
    run_in = [item for item in items if item.run_in]
    titles = [_TITLE_SENTENCE.match(i.bare.text, i.mark.title) for i in run_in]
    titled = sum(title is not None for title in titles)
    for item, title in zip(run_in, titles, strict=True):
        item.end = title.end() if title and titled * 5 >= len(run_in) * 4 else item.mark.end


def _in_sequence(found: list[Item]) -> list[Item]:
    """Items whose numbers follow each other; every annex starts anew."""
    kept: list[Item] = []
    region: list[Item] = []
    for item in found:
        if item.unit == ANNEX and item.form != "sentence":
            kept += _of_region(region)
            kept.append(item)
            region = []
        else:
            region.append(item)
    return [*kept, *_of_region(region)]


def _of_region(found: list[Item]) -> list[Item]:
    kept: list[Item] = []
    for unit in dict.fromkeys(item.unit for item in found):
        kept += _of_unit([item for item in found if item.unit == unit])
    return sorted(kept, key=lambda item: item.line)


def _of_unit(found: list[Item]) -> list[Item]:
    """Those in sequence. Sentences only where most of the articles start on their number's line."""
    restart = 1.6 if found[0].is_leaf else 0.4
    heads = _chained([i for i in found if i.form != "sentence"], restart)
    both = _chained([i for i in found if i.form != "sentence" or i.run_in], restart)
    run_in = [item for item in both if item.run_in]
    if len(run_in) < LEAST or len(run_in) * 2 < len(both):
        for item in found:
            item.run_in = False
        return heads
    return both


def _chained(items: list[Item], restart: float) -> list[Item]:
    numbers = [(item.mark.value, item.mark.suffix) for item in items]
    fixed = {n for n, item in enumerate(items) if item.known}
    return [items[n] for n in sorted({*chain(numbers, restart=restart), *fixed})]
