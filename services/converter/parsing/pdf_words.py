"""Words and rules of a page, out of docling's reading of it, on a page turned upright."""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from services.converter.parsing.fitting import FormField
from services.converter.parsing.marks import unmarked
from services.converter.parsing.pdf_broken import common_share
from services.converter.parsing.pdf_direction import goes_against, runs_leftwards
from services.converter.parsing.pdf_fields import Field
from services.converter.parsing.pdf_glyphs import (
    BOLD,
    MONO,
    SLANTED,
    Box,
    Font,
    Type,
    turned,
)
from services.converter.parsing.pdf_shapes import Rule, Word

_TEX_BOLD, _TEX_ITALIC = re.compile(r"(?:cm|sf|ec|lm)\w?bx"), re.compile(r"(?:cm|sf|ec|lm)\w?ti")
_SYMBOLS = ("symbol", "dingbat", "wingding", "webding", "zapf", "sorts")
_STRAIGHT = 0.2
_MOST_WORDS = 20_000
_LEAST_MISREAD, _FEW_COMMON, _SAMPLE = 40, 0.03, 200
_LEAST_EVEN, _UNEVEN = 8, 0.08
_NARROW, _BROAD = frozenset("iljt1.,"), frozenset("mwшмщж@")
_COMBINING = {"¨": "\u0308", "ˇ": "\u030c", "˚": "\u030a", "˝": "\u030b", "´": "\u0301"}
_ACCENTED = re.compile(r"[¨ˇ˚˝][^\W\d_]|´[cnzyCNZY]")
_GLYPH_NAME = re.compile(r"/?[A-Z]{2}\d{6}|GLYPH<\w+>|/[a-z]\d{1,4}")


class Turn:
    """How a page must be turned for its text to stand upright: quarter turns clockwise.

    A page that is read from right to left is then seen in a mirror, so that all that is told from
    left and right (columns, indents, marks of lists) holds for it too.
    """

    def __init__(
        self, quarters: int, width: float, height: float, *, mirrored: bool = False
    ) -> None:
        self.quarters, self.shown, self.mirrored = quarters, (width, height), mirrored
        self.size = (height, width) if quarters % 2 else (width, height)

    @classmethod
    def of(cls, page: Any) -> "Turn":
        """By the direction in which most of the page's text runs."""
        weights = [0, 0, 0, 0]
        for cell in page.cells:
            weights[round(cell.rect.angle / (math.pi / 2)) % 4] += len(cell.text)
        quarters = weights.index(max(weights)) if 2 * max(weights) > sum(weights) else 0
        width, height = (page.size.width, page.size.height) if page.size else (0.0, 0.0)
        mirrored = runs_leftwards(cell.text for cell in page.cells)
        return cls(quarters, width, height, mirrored=mirrored)

    def box(self, left: float, top: float, right: float, bottom: float) -> Box:
        """The box on the turned page."""
        return self._mirror(turned(self.quarters, *self.shown, Box(left, top, right, bottom)))

    def back(self, box: Box) -> Box:
        """Where a box of the turned page lies on the page as it is shown."""
        return turned(-self.quarters % 4, *self.size, self._mirror(box))

    def _mirror(self, box: Box) -> Box:
        if not self.mirrored:
            return box
        return Box(self.size[0] - box.right, box.top, self.size[0] - box.left, box.bottom)


def words_of(parsed: Any, turn: Turn, kind: Type) -> list[Word]:
    """Words of a page. `kind` knows how they are set, and how pdfium reads them."""
    cells = parsed.word_cells[:_MOST_WORDS]
    if _is_misread(cells, kind):
        return list(_words_of_type(kind, turn))
    boxes = [Box(b.l, b.t, b.r, b.b) for b in (cell.rect.to_bounding_box() for cell in cells)]
    even = _even_fonts(cells, boxes)
    known = kind.at(zip((cell.text for cell in cells), boxes, strict=True))
    words: list[Word] = []
    for cell, box, (font, pieces) in zip(cells, boxes, known, strict=True):
        angle = (cell.rect.angle - turn.quarters * math.pi / 2) % math.pi
        upright = min(angle, math.pi - angle) < _STRAIGHT
        whole = [(cell.text, box)]
        for read, of_letters in pieces if pieces and abs(cell.rect.angle) < _STRAIGHT else whole:
            text = _text(cell, read)
            # What pdfium reads has the height of its letters, all others that of their line.
            place = Box(of_letters.left, box.top, of_letters.right, box.bottom)
            if not text or place.right <= place.left or box.bottom <= box.top:
                continue
            word = _word(text, str(getattr(cell, "font_name", "")).lower(), turn.box(*place), font)
            word.against = goes_against(text, mirrored=turn.mirrored)
            word.mono = word.mono or getattr(cell, "font_name", "") in even
            word.upright = upright
            if font is None:
                word.size = word.bottom - word.top if upright else word.right - word.left
            words.append(word)
    return words


def _is_misread(cells: Sequence[Any], kind: Type) -> bool:
    """Whether pdfium reads words of a language where docling's parser reads none."""
    if any(cell.from_ocr for cell in cells[:1]):
        return False
    own = common_share(unmarked(cell.text) for cell in cells[:_SAMPLE])
    if own >= _FEW_COMMON:
        return False
    theirs = [piece.text for piece, _ in kind.words()]
    return len(theirs) >= _LEAST_MISREAD and common_share(theirs) > 3 * _FEW_COMMON


def _words_of_type(kind: Type, turn: Turn) -> Iterator[Word]:
    """The words of a page as pdfium reads them; it gives the boxes of their letters."""
    for (text, box), font in kind.words():
        clean = composed(unmarked(text).strip())
        if clean and box.right > box.left and box.bottom > box.top:
            word = _word(clean, "", turn.box(*box), font)
            word.against = goes_against(clean, mirrored=turn.mirrored)
            yield word


def _even_fonts(cells: Sequence[Any], boxes: Sequence[Box]) -> set[str]:
    """Fonts whose letters are all of one width, by the words set in them."""
    widths: defaultdict[str, list[float]] = defaultdict(list)
    letters: defaultdict[str, set[str]] = defaultdict(set)
    for cell, box in zip(cells, boxes, strict=True):
        if len(cell.text) > 2 and abs(cell.rect.angle) < _STRAIGHT:
            height = max(box.bottom - box.top, 1.0)
            widths[cell.font_name].append((box.right - box.left) / len(cell.text) / height)
            letters[cell.font_name].update(cell.text.lower())
    return {
        font
        for font, found in widths.items()
        if len(found) >= _LEAST_EVEN
        and letters[font] & _NARROW and letters[font] & _BROAD
        and max(found) - min(found) < _UNEVEN * max(found)
    }  # fmt: skip


def _text(cell: Any, text: str) -> str:
    """Empty for what cannot be read: glyphs without a character, and slanted text."""
    text = composed(unmarked(text).strip())
    font = str(getattr(cell, "font_name", "")).lower()
    if _GLYPH_NAME.fullmatch(text) or (len(text) == 1 and any(m in font for m in _SYMBOLS)):
        return "•"
    slant = cell.rect.angle % (math.pi / 2)
    if text.count("\ufffd") * 3 > len(text) or min(slant, math.pi / 2 - slant) > _STRAIGHT:
        return ""
    return text


def composed(text: str) -> str:
    """`M¨unster` as `Münster`: TeX's old fonts print an accent as a sign before its letter.

    An acute accent is often a poor apostrophe, so it joins the letters only that have it in names
    and words of Slavic languages (`´c`).
    """
    return _ACCENTED.sub(_with_accent, text)


def _with_accent(match: re.Match[str]) -> str:
    sign, letter = match[0][0], match[0][-1]
    letter = {"ı": "i", "ȷ": "j"}.get(letter, letter)
    whole = unicodedata.normalize("NFC", letter + _COMBINING[sign])
    return whole if len(whole) == 1 else match[0]


def _word(text: str, name: str, box: Box, font: Font | None) -> Word:
    """By what pdfium says of the type; the name that docling gives may be the resource's."""
    known = font or Font(0.0, False, False, False)
    return Word(
        text, *box,
        size=round(known.size, 1),
        bold=known.bold or any(mark in name for mark in BOLD) or bool(_TEX_BOLD.search(name)),
        italic=known.italic or any(m in name for m in SLANTED) or bool(_TEX_ITALIC.search(name)),
        mono=known.mono or any(mark in name for mark in MONO),
    )  # fmt: skip


def rules_of(boxes: Iterable[Box], turn: Turn) -> list[Rule]:
    """Thin lines on the turned page."""
    return [Rule(*turn.box(*box)) for box in boxes]


def fields_of(fields: Sequence[Field], turn: Turn) -> list[FormField]:
    """Fields of a form on the turned page."""
    return [FormField(*turn.box(*one.box), one.kind, one.value, one.name) for one in fields]
