"""Words and rules: what the layout of a page is told from."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

BULLET = re.compile(
    r"^([•‣⁃●○◦∙·⋅■□▪▫◆◇►▶✓✔\u25a0-\u25ff\u2700-\u2775\u2794-\u27bf\uf0b7\uf0a7\uf0d8\uf02d]|[\ue000-\uf8ff](?=\s|$)|[-–—*](?=\s))\s*"
)

_COUNTS = re.compile(r"[\d%‰٪°$€£]")
_TOUCHES = 0.12
_FEW, _CLOSE, _NARROWEST = 5, 0.6, 0.06
_SMALLER = 0.75


@dataclass(slots=True)
class Word:
    """A word with its font. `size` is the font's height, not the glyphs'.

    `against`: it runs against the direction in which its page is read.
    """

    text: str
    left: float
    top: float
    right: float
    bottom: float
    size: float
    bold: bool = False
    italic: bool = False
    mono: bool = False
    upright: bool = True
    against: bool = False

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


@dataclass(slots=True)
class Rule:
    """A thin drawn line, horizontal or vertical."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def horizontal(self) -> bool:
        return self.right - self.left >= self.bottom - self.top


def join_words(words: Iterable[Word], touch: float = 0.12) -> str:
    """Words left to right; pieces nearer than `touch` of their size are one word.

    In a line that is set close, blanks are narrower.
    """
    text, before = "", None
    ordered = list(_in_reading_order(list(words)))
    touch = min(touch, _CLOSE * _usual_gap(ordered))
    for word in ordered:
        if before is not None and (
            _apart(before, word) > touch * min(word.size, before.size)
            or _printed_over(before, word)
        ):
            text += " "
        text += word.text
        before = word
    return text


def _usual_gap(words: Sequence[Word]) -> float:
    """In parts of the type's size; a line of few words tells nothing."""
    if len(words) <= _FEW:
        return 1.0
    gaps = [_apart(a, b) / max(1.0, min(a.size, b.size)) for a, b in pairwise(words)]
    return max(_NARROWEST, median(gaps))


def _apart(a: Word, b: Word) -> float:
    return max(b.left - a.right, a.left - b.right)


def _printed_over(a: Word, b: Word) -> bool:
    """Words that lie over one another are no pieces of one, as an accent and its letter are.

    Lower boxes are of small type, a piece of its word, too: the figures of `SO₄²⁻` and the second
    letter of `LATEX`.
    """
    common = min(a.right, b.right) - max(a.left, b.left)
    over = common > 0.5 * min(a.right - a.left, b.right - b.left)
    heights = sorted((a.bottom - a.top, b.bottom - b.top))
    alike = heights[0] > _SMALLER * heights[1]
    return over and alike and _is_of_word(a.text[-1:]) and _is_of_word(b.text[:1])


def _is_of_word(sign: str) -> bool:
    """A letter or a figure; `ˆ` and `ˇ` are accents, though Unicode has them among the letters."""
    return sign.isalnum() and unicodedata.category(sign) != "Lm"


def _in_reading_order(words: list[Word]) -> Iterable[Word]:
    """Runs of words against the direction of a line turned round, numbers between them too.

    The rules of UAX #9 the other way: what is known here is how the line looks.
    """
    if not any(word.against for word in words):
        return words
    ordered: list[list[Word]] = []
    run: list[list[Word]] = []
    last = 0
    for unit in [*_units(words), None]:
        turns = unit is not None and unit[0].against and _has_letters(unit)
        if turns and not run and len(ordered) > 1 and _is_number(ordered[-1]):
            # On a page read leftwards, what looks like `2 USB` from there is `USB 2`.
            run.append(ordered.pop())
        if unit is not None and (turns or (run and not _has_letters(unit))):
            run.append(unit)
            last = len(run) if turns else last
            continue
        # A number right before a name on a page read leftwards is behind it: `USB 2`.
        ordered += [*reversed(run[:last]), *run[last:]]
        ordered += [unit] if unit is not None else []
        run, last = [], 0
    return [word for unit in ordered for word in unit]


def _units(words: Iterable[Word]) -> list[list[Word]]:
    """Words one by one, but the pieces of a number (`12`, `/`, `05`) together, first things first.

    Signs at its ends are no part of it, but for `%` and the like.
    """
    units: list[list[Word]] = []
    for word in words:
        last = units[-1][-1] if units else None
        touches = last is not None and _apart(last, word) < _TOUCHES * word.size
        if touches and not _has_letters([*units[-1], word]):
            units[-1].append(word)
        else:
            units.append([word])
    return [part for unit in units for part in _number(unit)]


def _number(unit: list[Word]) -> list[list[Word]]:
    counts = [n for n, word in enumerate(unit) if _COUNTS.search(word.text)]
    if len(unit) < 2 or not counts:
        return [[word] for word in unit]
    number = unit[counts[0] : counts[-1] + 1]
    if any(word.against for word in number):
        number.reverse()
    before, behind = unit[: counts[0]], unit[counts[-1] + 1 :]
    return [*([w] for w in before), number, *([w] for w in behind)]


def _is_number(unit: Sequence[Word]) -> bool:
    return unit[0].against and not _has_letters(unit)


def _has_letters(words: Iterable[Word]) -> bool:
    return any(any(map(str.isalpha, word.text)) for word in words)
