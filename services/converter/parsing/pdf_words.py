"""Words and rules of a page, out of docling's reading of it, on a page turned upright."""

import math
import re
from collections.abc import Sequence
from typing import Any

from services.converter.parsing.fitting import FormField
from services.converter.parsing.marks import unmarked
from services.converter.parsing.pdf_fields import Field
from services.converter.parsing.pdf_glyphs import BOLD, MONO, SLANTED, Box, Font, Type, turned
from services.converter.parsing.pdf_shapes import Rule, Word

_TEX_BOLD, _TEX_ITALIC = re.compile(r"(?:cm|sf|ec|lm)\w?bx"), re.compile(r"(?:cm|sf|ec|lm)\w?ti")
_SYMBOLS = ("symbol", "dingbat", "wingding", "webding", "zapf", "bookmaster", "sorts")
_STRAIGHT = 0.2
_MOST_WORDS = 20_000
_GLYPH_NAME = re.compile(r"[A-Z]{2}\d{4,}|GLYPH<\w+>|/?[a-z]\d{2,4}")


class Turn:
    """How a page must be turned for its text to stand upright: quarter turns clockwise."""

    def __init__(self, quarters: int, width: float, height: float) -> None:
        self.quarters, self._width, self._height = quarters, width, height
        self.size = (height, width) if quarters % 2 else (width, height)

    @classmethod
    def of(cls, page: Any) -> "Turn":
        """By the direction in which most of the page's text runs."""
        weights = [0, 0, 0, 0]
        for cell in page.cells:
            weights[round(cell.rect.angle / (math.pi / 2)) % 4] += len(cell.text)
        quarters = weights.index(max(weights)) if 2 * max(weights) > sum(weights) else 0
        size = page.size
        return cls(quarters, size.width if size else 0.0, size.height if size else 0.0)

    def box(self, left: float, top: float, right: float, bottom: float) -> Box:
        """The box on the turned page."""
        return turned(self.quarters, self._width, self._height, Box(left, top, right, bottom))

    def back(self, box: Box) -> Box:
        """Where a box of the turned page lies on the page as it is shown."""
        return turned(-self.quarters % 4, *self.size, box)


def words_of(parsed: Any, turn: Turn, kind: Type) -> list[Word]:
    """Words of a page. `kind` knows how they are set."""
    cells = parsed.word_cells[:_MOST_WORDS]
    boxes = [Box(b.l, b.t, b.r, b.b) for b in (cell.rect.to_bounding_box() for cell in cells)]
    words: list[Word] = []
    for cell, box, font in zip(cells, boxes, kind.at(boxes), strict=True):
        text = _text(cell)
        if not text or box.right <= box.left or box.bottom <= box.top:
            continue
        word = _word(text, str(getattr(cell, "font_name", "")).lower(), turn.box(*box), font)
        angle = (cell.rect.angle - turn.quarters * math.pi / 2) % math.pi
        word.upright = min(angle, math.pi - angle) < _STRAIGHT
        if font is None:
            word.size = word.bottom - word.top if word.upright else word.right - word.left
        words.append(word)
    return words


def _text(cell: Any) -> str:
    """Empty for what cannot be read: glyphs without a character, and slanted text."""
    text = unmarked(cell.text).strip()
    font = str(getattr(cell, "font_name", "")).lower()
    if any(mark in font for mark in _SYMBOLS) and (len(text) == 1 or _GLYPH_NAME.fullmatch(text)):
        return "•"
    slant = cell.rect.angle % (math.pi / 2)
    if text.count("\ufffd") * 3 > len(text) or min(slant, math.pi / 2 - slant) > _STRAIGHT:
        return ""
    return text


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


def rules_of(page: Any, turn: Turn) -> list[Rule]:
    """The thin lines that are drawn on a page."""
    backend = page._backend
    lines = backend.get_shape_lines() if backend is not None else None
    return [Rule(*turn.box(b.l, b.t, b.r, b.b)) for b in lines or ()]


def fields_of(fields: Sequence[Field], turn: Turn) -> list[FormField]:
    """Fields of a form on the turned page."""
    return [FormField(*turn.box(*one.box), one.kind, one.value, one.name) for one in fields]
