"""Words and rules of a page, out of docling's reading of it, on a page turned upright."""

import math
import re
from collections.abc import Sequence
from typing import Any

from services.converter.parsing.layout import Rule, Word
from services.converter.parsing.probe import Box

_BOLD = ("bold", "black", "heavy", "semibold", "demi", "-bd", "ptmb", "phvb")
_TEX_BOLD, _TEX_ITALIC = re.compile(r"(?:cm|sf|ec|lm)\w?bx"), re.compile(r"(?:cm|sf|ec|lm)\w?ti")
_ITALIC = ("italic", "oblique", "-it", "ptmri", "slanted")
_SYMBOLS = ("symbol", "dingbat", "wingding", "webding", "zapf", "bookmaster", "sorts")
_MONO = ("mono", "courier", "consol", "cmtt", "typewriter", "menlo", "nimbusmonl")


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
        return _turned(self.quarters, self._width, self._height, Box(left, top, right, bottom))

    def back(self, box: Box) -> Box:
        """Where a box of the turned page lies on the page as it is shown."""
        return _turned(-self.quarters % 4, *self.size, box)


def _turned(quarters: int, width: float, height: float, box: Box) -> Box:
    """`box` on a page of that size, after the page was turned counterclockwise."""
    left, top, right, bottom = box
    match quarters:
        case 1:
            return Box(height - bottom, left, height - top, right)
        case 2:
            return Box(width - right, height - bottom, width - left, height - top)
        case 3:
            return Box(top, width - right, bottom, width - left)
    return box


def words_of(parsed: Any, turn: Turn) -> list[Word]:
    """Words of a page; on a scan those that OCR read."""
    scanned = any(cell.from_ocr for cell in parsed.textline_cells)
    cells = parsed.textline_cells if scanned else parsed.word_cells
    words: list[Word] = []
    for cell in cells[:_MOST_WORDS]:
        word = _word(cell)
        if word is not None:
            word.left, word.top, word.right, word.bottom = turn.box(
                word.left, word.top, word.right, word.bottom
            )
            angle = (cell.rect.angle - turn.quarters * math.pi / 2) % math.pi
            word.upright = min(angle, math.pi - angle) < _STRAIGHT
            word.size = word.bottom - word.top if word.upright else word.right - word.left
            words.append(word)
    if scanned:
        _even_sizes(words)
    return words


def _word(cell: Any) -> Word | None:
    """None for what cannot be read: glyphs without a character, and slanted text."""
    box = cell.rect.to_bounding_box()
    text = cell.text.strip()
    font = str(getattr(cell, "font_name", "")).lower()
    if any(mark in font for mark in _SYMBOLS) and (len(text) == 1 or _GLYPH_NAME.fullmatch(text)):
        text = "•"
    unreadable = text.count("\ufffd") * 3 > len(text)
    slant = cell.rect.angle % (math.pi / 2)
    if not text or unreadable or min(slant, math.pi / 2 - slant) > _STRAIGHT:
        return None
    if box.r <= box.l or box.b <= box.t:
        return None
    return Word(
        text, box.l, box.t, box.r, box.b,
        size=box.b - box.t,
        bold=any(mark in font for mark in _BOLD) or _TEX_BOLD.search(font) is not None,
        italic=any(mark in font for mark in _ITALIC) or _TEX_ITALIC.search(font) is not None,
        mono=any(mark in font for mark in _MONO),
    )  # fmt: skip


def _even_sizes(words: Sequence[Word]) -> None:
    """Boxes that OCR draws are as high as their letters: a line's tallest speak for the line."""
    line: list[Word] = []
    for word in [*sorted(words, key=lambda w: w.top + w.bottom), None]:
        if line and (word is None or word.middle > line[0].bottom):
            heights = sorted(w.bottom - w.top for w in line)
            size = float(round(heights[int(0.8 * (len(heights) - 1))] * 1.15))
            for one in line:
                one.size = size
            line = []
        if word is not None:
            line.append(word)


def rules_of(page: Any, turn: Turn) -> list[Rule]:
    """The thin lines that are drawn on a page."""
    backend = page._backend
    lines = backend.get_shape_lines() if backend is not None else None
    return [Rule(*turn.box(b.l, b.t, b.r, b.b)) for b in lines or ()]
