"""Headings of a law that came without them, with some, or with all on one level. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Literal

from services.converter.form import is_heading, spaced
from services.converter.headings import (
    ANNEX,
    ARTICLE,
    LONGEST_TITLE,
    PARAGRAPH,
    Mark,
    legal_mark,
    named_part,
    names_law,
    reads_as_title,
    roman_mark,
)
from services.converter.lines import Line, joined
from services.converter.sequence import chain

_LEAST = 3
"""Articles that make a law."""
_NAMED, _TOPIC = "named", "topic"
_FIRST_BLOCKS = 5
_LEAVES = (ARTICLE, PARAGRAPH)
_LOOK_AHEAD = 50
_WIDEST = 120
"""Characters of a line in text that is cut into lines."""
_MOST_LINES = 3
_SHORT = 160
"""Characters of text that an entry of a list of contents may have."""
_RANK_OF_TOPICS = 5.5
_MARKUP = "#*_\\ \t"
_ROMAN_LETTERS = "IVXLCDMІХМС"
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3}|_{1,3})(?=\S)(.+?)(?<=\S)\1(?![\w*])")
_ESCAPE = re.compile(r"\\(?=[.)(\-–#>+\[\]])")
_NO_PROSE = re.compile(r"[|>`~]|[-*+] |\d{1,9}[.)] ")
_NO_TITLE = re.compile(r"[-*+|>#\d`~$]|\(?[\d\w]{1,3}\)|[IVX]+\. |<")
_OPENS_TEXT = re.compile(r"\(?\d{1,3}[.)]|\(?[a-zа-я]\)|[-–—•*] ")
_GOES_ON = re.compile(
    r"(?:^|\s)(?:of|in|with|to|under|and|or|by|from|the|see|gemäß|nach|des|der|dem|den|in|im|und|oder|"
    r"vgl\.|von|mit|zu|aus|в|във|на|от|по|с|и|или|у|од|из|са|со|според|съгласно|согласно|у|u|iz|s|sa|"
    r"po|na|od|i|ili|iz|z|v|za|ter|ali|in|prema|сходно|к|со)$",
    re.IGNORECASE,
)
_NO_LETTERS = re.compile(r"[\W_]+")
_PAGE_AT_END = re.compile(r"[\s.…]+\d{1,4}$")
_TITLE_SENTENCE = re.compile(r"[^\W\d_a-zа-я][^.;:\n]{2,80}\.(?=\s+[\"“„«(]?[^\W_a-zа-я])")
Form = Literal["bare", "titled", "sentence"]


@dataclass(slots=True)
class Item:
    """A line that heads, or may head, a part of a law.

    `bare` is the line without `#` and emphasis; `known`: its level, 0 for a line of text;
    `run_in`: text follows on the same line, from `end`; `titles`: lines of text or headings that
    are its title; `level`: what it gets; `is_leaf`: of the kind that holds the text.
    """

    line: int
    mark: Mark
    bare: Line
    form: Form
    known: int = 0
    run_in: bool = False
    titles: list[int] = field(default_factory=list)
    level: int = 0
    is_leaf: bool = False
    end: int = 0

    @property
    def unit(self) -> str:
        return self.mark.unit


def recover_law(lines: Sequence[Line], *, indented: bool) -> list[Line] | None:
    """The lines with the headings of a law, its titles beside their numbers; None if it is none.

    Headings that are there keep their levels, unless all parts of the law are on one.

    Args:
        lines: a text in canonical form.
        indented: an indent means nothing, as in plain text.
    """
    return _Law(lines, indented=indented).recovered()


def name_of_law(lines: Sequence[Line]) -> str:
    """The name of a law whose first heading is one of its parts; else empty."""
    first = next((n for n, line in enumerate(lines) if is_heading(line)), 0)
    head = lines[first].text.lstrip("# ") if lines else ""
    if not (legal_mark(head) or roman_mark(head) or named_part(head)):
        return ""
    blocks: list[list[str]] = [[]]
    for line in lines[:first]:
        if line.text.strip() and not line.code:
            blocks[-1].append(line.text.strip())
        elif blocks[-1]:
            blocks.append([])
    for at, block in enumerate(blocks[:_FIRST_BLOCKS]):
        # `ZAKON` on one line, what it is about on the next.
        more = blocks[at + 1] if len(block) == 1 and " " not in block[0] else []
        text = _bare(joined([" ".join([*block, *more])])).text
        if len(block) + len(more) <= _MOST_LINES and _titles(text) and names_law(text):
            return text
    return ""


class _Law:
    def __init__(self, lines: Sequence[Line], *, indented: bool) -> None:
        self._lines = lines
        self._indented = indented
        self._items: list[Item] = []
        self._taken: set[int] = set()
        self._wide = self._width()

    def recovered(self) -> list[Line] | None:
        found = [item for n in range(len(self._lines)) if (item := self._item(n)) is not None]
        if sum(item.form != "sentence" or item.run_in for item in found) < _LEAST:
            return None
        _find_leaves(found)
        self._items = _in_sequence(self._without_contents(found))
        _set_ends(self._items)
        self._taken = {n for item in self._items for n in item.titles}
        if not self._is_law():
            return None
        self._add_roman()
        self._take_titles()
        self._add_topics()
        self._add_named()
        self._drop_strangers()
        _Levels(self._items, self._others()).set()
        return self._written()

    # --- finding ------------------------------------------------------------------------------

    def _width(self) -> int:
        """Where lines are cut, if this text is cut into lines; 0 if it is not."""
        sizes = sorted(len(line.text) for line in self._lines if line.text and not line.code)
        wide = sizes[len(sizes) * 19 // 20] if sizes else 0
        pairs = [(above.text, below.text) for above, below in pairwise(self._lines)]
        pairs = [(above, below) for above, below in pairs if above and below]
        cut = sum(len(a) > 0.7 * wide and b.lstrip()[:1].islower() for a, b in pairs)
        return wide if wide <= _WIDEST and cut * 8 >= len(pairs) else 0

    def _wraps(self, number: int) -> bool:
        """Whether a line was cut since the next word did not fit."""
        word = self._text(number + 1).split(" ", 1)[0]
        return bool(word) and len(self._lines[number].text) + 1 + len(word) > self._wide > 0

    def _text(self, number: int) -> str:
        """A line's text; empty for what does not exist."""
        return self._lines[number].text.strip() if 0 <= number < len(self._lines) else ""

    def _item(self, number: int) -> Item | None:
        line = self._lines[number]
        if line.code or not line.text:
            return None
        if line.text.startswith(("    ", "\t")) and not self._indented:
            return None
        first = line.text.lstrip(_MARKUP)[:1]
        if not (first.isupper() or first.isdigit() or first == "§"):
            return None
        known, bare = _known_and_bare(line)
        mark = legal_mark(bare.text)
        if mark is None:
            return None
        more = [] if known or mark.title >= len(bare.text) else self._continuation(number)
        whole = " ".join([bare.text, *(self._text(n) for n in more)])
        form = _form(whole, mark, known)
        if not known and form != "sentence" and not self._starts(number, mark, form):
            form = "sentence"
        run_in = form == "sentence" and _runs_in(bare.text, mark) and self._opens(number)
        return Item(number, mark, bare, form, known, run_in, more if form == "titled" else [])

    def _continuation(self, number: int) -> list[int]:
        """The further lines of a title that did not fit on its line."""
        end = number
        while end - number < _MOST_LINES and self._wraps(end) and not self._lines[end + 1].code:
            end += 1
        return [] if self._text(end + 1) else list(range(number + 1, end + 1))

    def _starts(self, number: int, mark: Mark, form: Form) -> bool:
        """Whether a line can head something where it stands: it is not amid a sentence."""
        below = self._text(number + 1)
        if form == "bare" and below[:1].islower() and not legal_mark(below):
            return False
        return self._opens(number)

    def _opens(self, number: int) -> bool:
        """Whether the line before ends something."""
        above = self._text(number - 1)
        if not above or is_heading(self._lines[number - 1]):
            return True
        if above[-1] in ".;:!?)]»”“\"'…*_" or legal_mark(above):
            return not _GOES_ON.search(above)
        short = len(above) < min(60, 0.8 * (self._wide or 80)) or above.isupper()
        return short and above[0].isupper() and above[-1] != "," and not _GOES_ON.search(above)

    def _without_contents(self, found: list[Item]) -> list[Item]:
        """Entries of a list of contents go: the same headings come again, with more text."""
        places: dict[tuple[str, int, str], list[int]] = {}
        for number, item in enumerate(found):
            places.setdefault((item.unit, item.mark.value, item.mark.suffix), []).append(number)
        ends = [*(item.line for item in found[1:]), len(self._lines)]
        words = [self._words(item, end) for item, end in zip(found, ends, strict=True)]
        entries = [
            not item.known
            and len(words[n]) < _SHORT
            and any(
                later > n and words[later].startswith(words[n])
                for later in places[item.unit, item.mark.value, item.mark.suffix][-_LOOK_AHEAD:]
            )
            for n, item in enumerate(found)
        ]
        dropped: set[int] = set()
        for is_entry, group in groupby(range(len(found)), key=entries.__getitem__):
            run = list(group)
            if is_entry and len(run) > _LEAST:
                dropped.update(run)
        return [item for n, item in enumerate(found) if n not in dropped]

    def _words(self, item: Item, end: int) -> str:
        """The letters of an item's line and of what follows it up to the next, as far as needed."""
        texts = [item.bare.text]
        for number in range(item.line + 1, end):
            texts.append(self._text(number))
            if len(texts) > _MOST_LINES and sum(map(len, texts)) > 2 * _SHORT:
                break
        return _NO_LETTERS.sub("", "".join(_PAGE_AT_END.sub("", text) for text in texts)).lower()

    def _is_law(self) -> bool:
        """Whether there are enough parts of one kind, most of them with text."""
        starts = {item.line for item in self._items}
        holding = Counter(
            item.unit
            for item in self._items
            if item.run_in or item.known or self._next_text(item.line, 1) not in starts
        )
        counts = Counter(item.unit for item in self._items)
        return any(n >= _LEAST and holding[unit] * 2 >= n for unit, n in counts.items())

    # --- titles -------------------------------------------------------------------------------

    def _take_titles(self) -> None:
        """Titles on the line below, for kinds of parts that have them."""
        starts = {item.line for item in self._items}
        blocks = {item.line: self._title_below(item, starts) for item in self._items}
        for unit in {item.unit for item in self._items}:
            open_items = [i for i in self._items if i.unit == unit and i.form == "bare"]
            titled = [i for i in open_items if blocks[i.line]]
            elsewhere = sum(i.unit == unit and i.form == "titled" for i in self._items)
            common = len(titled) * 5 >= len(open_items) * 3 and len(titled) > elsewhere
            for item in titled:
                block = blocks[item.line]
                if item.is_leaf:
                    wanted = common and len(titled) >= _LEAST
                else:
                    wanted = common or self._next_text(block[-1], 1) in starts
                if wanted and not self._taken.intersection(block):
                    item.titles = block
                    self._taken.update(block)

    def _next_text(self, number: int, step: int) -> int:
        """The next line in that direction that is not blank; beyond an end if there is none."""
        number += step
        while 0 <= number < len(self._lines) and not self._text(number):
            number += step
        return number

    def _title_below(self, item: Item, starts: set[int]) -> list[int]:
        """The lines of what reads as a title right below; none if there is no such."""
        first = self._next_text(item.line, 1)
        if first >= len(self._lines) or first in starts or first - item.line > 3:
            return []
        if is_heading(self._lines[first]):
            return self._heading_below(item, first, starts)
        block = self._block(first, starts)
        whole = self._joined(block)
        dense = first == item.line + 1
        if len(block) <= _MOST_LINES and _titles(whole) and not (dense and self._text(first - 2)):
            return block
        below = self._text(first + 1)
        alone = len(block) == 1 or bool(_OPENS_TEXT.match(below))
        alone = alone or (below[:1].isupper() and not self._wraps(first))
        return [first] if alone and _titles(self._text(first)) else []

    def _heading_below(self, item: Item, first: int, starts: set[int]) -> list[int]:
        """A heading that says no more than the title of the part, and has no brothers in it."""
        level = _level(self._lines[first])
        if item.known and level < item.known:
            return []
        after = next((n for n in range(first + 1, len(self._lines)) if n in starts), 0)
        rest = range(first + 1, after or len(self._lines))
        brothers = any(is_heading(self._lines[n]) for n in rest if after)
        return [] if brothers or named_part(self._text(first).lstrip("# ")) else [first]

    def _block(self, first: int, starts: set[int]) -> list[int]:
        """The lines of text from `first` up to a blank one."""
        block = []
        for number in range(first, len(self._lines)):
            line = self._lines[number]
            if not line.text.strip() or line.code or number in starts or is_heading(line):
                break
            block.append(number)
        return block

    # --- titles above -------------------------------------------------------------------------

    def _add_topics(self) -> None:
        """Titles that stand above the number of their article, and may hold for several."""
        leaves = [i for i in self._items if i.is_leaf]
        if any(item.titles for item in leaves):
            return
        starts = {item.line for item in self._items}
        above = {i.line: self._title_above(i, starts) for i in leaves if i.form != "titled"}
        found = [block for block in above.values() if block]
        if len(found) < _LEAST or len(found) * 5 < len(above) * 2:
            return
        for block in found:
            known, bare = _known_and_bare(self._lines[block[0]])
            mark = Mark(_TOPIC, 5, 0, "", len(bare.text), len(bare.text))
            self._items.append(Item(block[0], mark, bare, "titled", known, titles=block[1:]))
            self._taken.update(block[1:])
        self._items.sort(key=lambda item: item.line)

    def _title_above(self, item: Item, starts: set[int]) -> list[int]:
        last = self._next_text(item.line, -1)
        if last < 0 or last in starts or last in self._taken or item.line - last > 3:
            return []
        if is_heading(self._lines[last]):
            return [] if named_part(self._text(last).lstrip("# ")) else [last]
        first = last
        while self._text(first - 1) and last - first < 2 and not self._ends_text(first - 1, starts):
            first -= 1
        block = list(range(first, last + 1))
        whole = self._joined(block)
        fits = len(whole) <= _SHORT and _titles(whole) and not named_part(whole)
        return block if fits and self._opens(first) and not self._taken.intersection(block) else []

    def _ends_text(self, number: int, starts: set[int]) -> bool:
        above = self._text(number)
        return number in starts or number in self._taken or above[-1] in ".;:!?" or len(above) > 80

    # --- headings without a word or a number --------------------------------------------------

    def _add_roman(self) -> None:
        """`II. GENERAL PROVISIONS`, where articles follow at once."""
        starts = {item.line for item in self._items}
        found: list[Item] = []
        for number, line in enumerate(self._lines):
            first = line.text.lstrip(_MARKUP)[:1]
            if line.code or first not in _ROMAN_LETTERS or not first or number in starts:
                continue
            known, bare = _known_and_bare(line)
            mark = roman_mark(bare.text)
            if mark is None or not reads_as_title(bare.text[mark.title :], bare.text[: mark.end]):
                continue
            if known or self._opens(number):
                found.append(Item(number, mark, bare, "titled", known))
        chained = [
            found[n] for n in chain([(i.mark.value, i.mark.suffix) for i in found], restart=1.6)
        ]
        leading = sum(self._leads(item, starts) for item in chained)
        if len(chained) >= 2 and leading * 2 >= len(chained):
            self._items = sorted([*self._items, *chained], key=lambda item: item.line)

    def _leads(self, item: Item, starts: set[int]) -> bool:
        """Whether an article follows, after no more than the title of it."""
        after = next((n for n in range(item.line + 1, item.line + 9) if n in starts), None)
        between = range(item.line + 1, after or 0)
        return after is not None and sum(len(self._text(n)) for n in between) < _SHORT

    def _add_named(self) -> None:
        leaves = [item.line for item in self._items if item.is_leaf] or [0]
        taken = {item.line for item in self._items} | self._taken
        for number, line in enumerate(self._lines):
            if line.code or not 3 < len(line.text) < 100 or number in taken:
                continue
            known, bare = _known_and_bare(line)
            if not named_part(bare.text) or not bare.text[0].isalpha():
                continue
            # Within an article the same words are text: `Budući da:`.
            outside = number < leaves[0] or bare.text[-1] != ":"
            if known or (outside and self._opens(number)):
                mark = Mark(_NAMED, 0, 0, "", len(bare.text), len(bare.text))
                self._items.append(Item(number, mark, bare, "titled", known))
        self._items.sort(key=lambda item: item.line)

    def _joined(self, block: list[int]) -> str:
        return " ".join(self._text(number) for number in block)

    # --- the rest of the document -------------------------------------------------------------

    def _others(self) -> dict[int, int]:
        """Lines and levels of headings that are not the law's."""
        own = {item.line for item in self._items} | self._taken
        return {
            n: _level(line)
            for n, line in enumerate(self._lines)
            if n not in own and is_heading(line)
        }

    def _drop_strangers(self) -> None:
        """A text that quotes a law, or a law that quotes another, keeps its own headings only."""
        others = sum(level > 1 for level in self._others().values())
        known = Counter(item.unit for item in self._items if item.known)
        fresh = Counter(item.unit for item in self._items if not item.known)
        alien = others > 3 and fresh.total() < 2 * others
        dropped = [
            item
            for item in self._items
            if not item.known and (alien or known[item.unit] > max(2, 2 * fresh[item.unit]))
        ]
        self._taken.difference_update(n for item in dropped for n in item.titles)
        gone = {item.line for item in dropped}
        self._items = [item for item in self._items if item.line not in gone]

    def _written(self) -> list[Line]:
        items = {item.line: item for item in self._items}
        out: list[Line] = []
        before: Item | None = None
        for number, line in enumerate(self._lines):
            if number in items:
                before = items[number]
                out += self._heading(before)
            elif number not in self._taken:
                out.append(_shifted(line, before) if is_heading(line) else line)
        return spaced(out)

    def _heading(self, item: Item) -> list[Line]:
        if item.run_in:
            head = item.bare.cut(0, item.end)
            start = max(item.mark.title, item.end)
            rest = [Line(""), item.bare.cut(start, len(item.bare.text)).stripped()]
        else:
            head, rest = item.bare, []
        parts: list[Line | str] = ["#" * item.level + " ", head]
        for number in item.titles:
            parts += [" ", _known_and_bare(self._lines[number])[1]]
        return [Line(""), joined(parts), Line(""), *rest]


def _shifted(line: Line, before: Item | None) -> Line:
    """A heading below one of the law goes down with it."""
    level = _level(line)
    shift = before.level - before.known if before and before.known else 0
    if before is None or not shift or level < before.known:
        return line
    wanted = min(level + shift, 6)
    return joined(["#" * wanted, line.cut(level, len(line.text))])


def _level(line: Line) -> int:
    """Of a heading; 0 for other lines."""
    return len(line.text) - len(line.text.lstrip("#")) if is_heading(line) else 0


def _known_and_bare(line: Line) -> tuple[int, Line]:
    """The level of a heading, 0 for other lines; and its text as `_bare`."""
    known = _level(line)
    return known, _bare(line.cut(known, len(line.text)))


def _bare(line: Line) -> Line:
    """Without blanks around, emphasis, and escapes that a heading does not need."""
    line = line.stripped()
    if "*" not in line.text and "_" not in line.text and "\\" not in line.text:
        return line
    marks: list[tuple[int, int]] = []
    for match in _EMPHASIS.finditer(line.text, 0, LONGEST_TITLE):
        size = len(match[1])
        marks += [(match.start(), match.start() + size), (match.end() - size, match.end())]
    marks += [match.span() for match in _ESCAPE.finditer(line.text, 0, LONGEST_TITLE)]
    return line.without(sorted(marks)).stripped()


def _form(text: str, mark: Mark, known: int) -> Form:
    if mark.title >= len(text):
        return "bare"
    if known or reads_as_title(text[mark.title :], text[: mark.end]):
        return "titled"
    return "sentence"


def _runs_in(text: str, mark: Mark) -> bool:
    """`Чл. 5. (1) Text` and `§ 1. Text`: the article starts on the line of its number."""
    rest = text[mark.title :]
    if mark.value == 0 or not (text[mark.end - 1] in ".:" or rest.startswith("(1)")):
        return False
    first = rest.lstrip("(\"'„»«“‘[")[:1]
    return rest.startswith("(1)") or first.isupper() or rest[:1] in "(["


def _titles(text: str) -> bool:
    """Whether a line, or a paragraph of few lines, reads as the title of a part."""
    if text.startswith("(") and text.endswith(")") and len(text) <= LONGEST_TITLE:
        return not re.match(r"\(\d+\)", text) and text.count("(") == text.count(")")
    plain = text.strip("*_ ")
    return (
        0 < len(plain) <= LONGEST_TITLE
        and (plain[0].isupper() or plain[0] in "„«»“\"'")
        and plain[-1] not in ".,;:?!…-–"
        and not _NO_TITLE.match(plain)
        and legal_mark(plain) is None
        and re.search(r"[^\W\d_]{2}", plain) is not None
    )


def _find_leaves(found: list[Item]) -> None:
    """Articles hold the text; where there are none, what there is most of."""
    units = Counter(item.unit for item in found if item.form != "sentence" or item.run_in)
    leaves = [unit for unit in _LEAVES if units[unit] >= _LEAST]
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
    if len(run_in) < _LEAST or len(run_in) * 2 < len(both):
        for item in found:
            item.run_in = False
        return heads
    return both


def _chained(items: list[Item], restart: float) -> list[Item]:
    numbers = [(item.mark.value, item.mark.suffix) for item in items]
    fixed = {n for n, item in enumerate(items) if item.known}
    return [items[n] for n in sorted({*chain(numbers, restart=restart), *fixed})]


class _Levels:
    """Levels for the items of a law, from its own headings or from the ranks of its parts."""

    def __init__(self, items: list[Item], others: dict[int, int]) -> None:
        self._items = items
        self._others = others
        self._flat = self._is_flat()

    def set(self) -> None:
        """Give every item its level: one below the part that it is in, if it had none."""
        regions: list[list[Item]] = [[]]
        for item in self._items:
            if item.unit == ANNEX:
                regions.append([])
            regions[-1].append(item)
        base = self._base(regions[0] or self._items)
        self._set_region(regions[0], base)
        for region in regions[1:]:
            region[0].level = self._wanted(region[0]) or base
            self._set_region(region[1:], region[0].level + 1)

    def _wanted(self, item: Item) -> int:
        """The level that it had and may keep; else 0."""
        return 0 if self._flat else item.known

    def _is_flat(self) -> bool:
        known = [i for i in self._items if i.known and i.unit not in (_NAMED, ANNEX)]
        units, levels = {i.unit for i in known}, {i.known for i in known}
        return len(known) >= _LEAST and len(units) > 1 and len(levels) == 1

    def _base(self, items: list[Item]) -> int:
        """The level of the highest part: below the title."""
        if not items:
            return 1
        before = [level for n, level in self._others.items() if n < items[0].line]
        known = [item.known for item in items if item.known]
        if self._flat:
            level = min(known)
            return level + 1 if before and min(before) == level else level
        below = before[-1] + 1 if before else 1
        return min([below, *known])

    def _set_region(self, items: list[Item], base: int) -> None:
        seen: dict[str, Counter[int]] = {}
        for item in items:
            seen.setdefault(item.unit, Counter())[self._wanted(item)] += 1
        levels = {u: c.most_common(1)[0][0] for u, c in seen.items() if set(c) != {0}}
        order = {unit: at for at, unit in enumerate(_order(items, levels))}
        above: list[Item] = []
        begun = False
        for item in items:
            while above and not _contains(above[-1], item, order):
                above.pop()
            least = above[-1].level + 1 if above else base
            item.level = min(max(least, self._wanted(item)), 6)
            if item.unit == _NAMED:
                item.level = self._wanted(item) or base
            begun = begun or item.is_leaf
            # A preamble holds nothing; final provisions may hold articles.
            if item.unit != _NAMED or begun:
                above.append(item)


def _contains(part: Item, item: Item, order: dict[str, int]) -> bool:
    if part.unit == _NAMED:
        return item.is_leaf
    return item.unit != _NAMED and order[part.unit] < order[item.unit]


def _order(items: list[Item], levels: dict[str, int]) -> list[str]:
    """Kinds of parts, highest first: by level, by what stands right below what, by rank."""
    below: Counter[tuple[str, str]] = Counter()
    for above, under in pairwise(items):
        gap = under.line - max([above.line, *above.titles])
        if above.unit != under.unit and gap <= 2 and not above.run_in:
            below[above.unit, under.unit] += 1
    ranks = {i.unit: _RANK_OF_TOPICS if i.unit == _TOPIC else i.mark.rank for i in items}
    ranks |= {_NAMED: -1.0} if _NAMED in ranks else {}
    order = sorted(ranks, key=lambda unit: (ranks[unit], list(ranks).index(unit)))

    def precedes(a: str, b: str) -> bool:
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
