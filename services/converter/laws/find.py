"""Which lines of a document head the parts of a law. Pure."""

import re
from collections import Counter
from itertools import groupby

from services.converter.headings import (
    ANNEX,
    LONGEST_TITLE,
    Mark,
    annex_to,
    legal_mark,
    number_mark,
    reads_as_title,
    roman_mark,
)
from services.converter.laws.chapters import numbered_chapters
from services.converter.laws.items import (
    LEAST,
    LEAVES,
    MARKUP,
    MOST_LINES,
    SHORT,
    Form,
    Item,
    form_of,
    known_and_bare,
    number_of,
    runs_in,
)
from services.converter.laws.page import Page
from services.converter.laws.short import short_law
from services.converter.sequence import chain

_LOOK_AHEAD = 50
_NO_LETTERS = re.compile(r"[\W_]+")
_PAGE_AT_END = re.compile(r"[\s.…]+\d{1,4}$")
_TITLE_SENTENCE = re.compile(
    r"[^\W\d_a-zа-я][^.;:\n]{2,80}\.(?=\s+(?:\(\d|[\"“„«(]?[^\W\d_a-zа-я]))"
)


def find_items(page: Page) -> list[Item]:
    """The headings of a law in order, without lists of contents; none if this is no law."""
    found = [item for n in range(len(page.lines)) if (item := _item(page, n)) is not None]
    _title_sentences(page, found)
    kinds = Counter(item.unit for item in found if item.form != "sentence" or item.run_in)
    if max(kinds.values(), default=0) < LEAST:
        items = short_law(page, found)
        _set_ends(items)
        return items
    _find_leaves(found)
    items = _in_sequence(page, _without_contents(page, found))
    _set_ends(items)
    if not _is_law(page, items):
        return []
    chapters = numbered_chapters(page, items, roman_mark)
    chapters = chapters or numbered_chapters(page, items, number_mark)
    return sorted([*items, *chapters], key=_place)


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
    if mark is None or (number in page.quoted and not known):
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
    goes_on = below[:1].islower() and not legal_mark(below)
    if form == "bare" and goes_on and not (mark.unit == ANNEX and annex_to(below)):
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


def _title_sentences(page: Page, found: list[Item]) -> None:
    """`Section 2. Scope.`, alone on its line: titles where all parts of the kind end like that."""
    kinds: dict[str, list[Item]] = {}
    for item in found:
        if not item.known and page.opens(item.line):
            kinds.setdefault(item.unit, []).append(item)
    starts = {item.line for item in found}
    for items in kinds.values():
        ended = [i for i in items if _is_title_sentence(page, i, starts)]
        if len(ended) >= LEAST and len(ended) * 5 >= len(items) * 4:
            for item in ended:
                item.form, item.run_in = "titled", False


def _is_title_sentence(page: Page, item: Item, starts: set[int]) -> bool:
    text = item.bare.text
    title = text[item.mark.title : -1]
    alone = not page.text(item.line + 1) and page.next_text(item.line, 1) not in starts
    short = text[-1] == "." and len(title) <= SHORT and ". " not in title
    return item.form == "sentence" and alone and short and reads_as_title(title, text[:1])


def _in_sequence(page: Page, found: list[Item]) -> list[Item]:
    """Items whose numbers follow each other; every annex starts anew."""
    kept: list[Item] = []
    region: list[Item] = []
    for item in found:
        if item.unit == ANNEX and item.form != "sentence":
            kept += _of_region(page, region)
            kept.append(item)
            region = []
        else:
            region.append(item)
    return [*kept, *_of_region(page, region)]


def _of_region(page: Page, found: list[Item]) -> list[Item]:
    kept: list[Item] = []
    for unit in dict.fromkeys(item.unit for item in found):
        same = [item for item in found if item.unit == unit]
        heads = _of_unit(same)
        kept += [*heads, *_in_gaps(page, same, heads)]
    return sorted(kept, key=_place)


def _in_gaps(page: Page, found: list[Item], heads: list[Item]) -> list[Item]:
    """Lines that are too long for a title, or end like a sentence, where a number is missing.

    Where the parts have titles on the line of their number, `Статья 5. Утратила силу.` between
    4 and 6 heads a part as well.
    """
    titled = [item for item in heads if item.form == "titled"]
    if len(titled) < LEAST or len(titled) * 5 < len(heads) * 3:
        return []
    dotted = sum(item.bare.text[item.mark.end - 1] == "." for item in titled) * 2 > len(titled)
    taken = {item.line for item in heads}
    gaps: list[Item] = []
    above = 0
    for item in found:
        while above < len(heads) and heads[above].line < item.line:
            above += 1
        if item.line in taken or above == 0 or not page.opens(item.line):
            continue
        same_form = not dotted or item.bare.text[item.mark.end - 1] == "."
        if (
            same_form
            and _begins_title(item)
            and _fits(item, heads[above - 1], heads[above : above + 1])
        ):
            gaps.append(item)
            text = item.bare.text
            long = len(text) > (LONGEST_TITLE if text[-1] == "." else 2 * LONGEST_TITLE)
            item.form, item.run_in = ("sentence", True) if long else ("titled", False)
    return gaps


def _begins_title(item: Item) -> bool:
    """Whether what follows the number starts with a capital, and is no item of a list."""
    rest = item.bare.text[item.mark.title :]
    return not rest[:1].islower() and rest[-1:] not in {"", ",", ";", ":"}


def _fits(item: Item, before: Item, after: list[Item]) -> bool:
    """Whether the number of an item stands between those of its neighbours."""
    number = number_of(item)
    if not after:
        return item.mark.value - before.mark.value in (0, 1) and number > number_of(before)
    starts_anew = number_of(after[0]) <= number_of(before)
    return number_of(before) < number and (starts_anew or number < number_of(after[0]))


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
