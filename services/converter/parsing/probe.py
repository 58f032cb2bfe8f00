"""What pdfium knows of a PDF before it is parsed: pages, outline, and text that nobody sees."""

import ctypes
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pypdfium2 as pdfium
from pypdfium2 import raw

from contracts.artifacts import HiddenKind
from kernel.errors import Refusal
from services.converter.settings import ParseOptions

_SCALE = 2.0
_MOST_PIXELS = 4000 * 4000
_SAME_COLOUR = 14
_TINY_POINTS = 1.6
_MOST_WORDS = 30_000
_MOST_OUTLINE = 5000
_NO_LETTER = frozenset("\0\ufffe\uffff\ufffd")


class Box(NamedTuple):
    """In points, origin at the top left of the page."""

    left: float
    top: float
    right: float
    bottom: float


class HiddenWord(NamedTuple):
    """A word that a reader of the page does not see."""

    box: Box
    text: str
    kind: HiddenKind


@dataclass
class PageProbe:
    """One page; `letters` counts the visible ones, `pictures` is the share of it under bitmaps."""

    width: float
    height: float
    letters: int = 0
    pictures: float = 0.0
    hidden: list[HiddenWord] = field(default_factory=list)


@dataclass
class Probe:
    """A whole document; `outline` holds depth (from 0), title and page number (from 1)."""

    pages: list[PageProbe]
    outline: list[tuple[int, str, int | None]]
    info: dict[str, str]


def probe(path: Path, options: ParseOptions) -> Probe:
    """Look at every page once.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`, `too-many-pages`.
    """
    try:
        document = pdfium.PdfDocument(path)
    except pdfium.PdfiumError as error:
        if raw.FPDF_GetLastError() == raw.FPDF_ERR_PASSWORD or "password" in str(error).lower():
            raise Refusal(
                "encrypted-document", "the document is protected by a password"
            ) from error
        raise Refusal("corrupt-document", "not a readable PDF") from error
    try:
        count = len(document)
        if count == 0:
            raise Refusal("corrupt-document", "the PDF has no pages")
        if count > options.max_pages:
            raise Refusal("too-many-pages", f"{count} pages, at most {options.max_pages}")
        pages = [_probe_page(document, number) for number in range(count)]
        return Probe(pages, list(_outline(document)), document.get_metadata_dict(skip_empty=True))
    finally:
        document.close()


def _outline(document: Any) -> Iterator[tuple[int, str, int | None]]:
    for bookmark in islice(document.get_toc(max_depth=8), _MOST_OUTLINE):
        destination = bookmark.get_dest()
        index = destination.get_index() if destination else None
        title = re.sub(r"\s+", " ", bookmark.get_title() or "").strip()
        if title:
            yield bookmark.level, title, None if index is None else index + 1


def _probe_page(document: Any, number: int) -> PageProbe:
    try:
        page = document[number]
    except pdfium.PdfiumError:
        # A damaged page: docling will say so too, and the others can still be read.
        return PageProbe(0, 0)
    try:
        width, height = page.get_size()
        found = PageProbe(width, height, pictures=_picture_share(page, width * height))
        words = list(_words(page, height))
        if words:
            _judge(page, found, words)
        return found
    finally:
        page.close()


def _picture_share(page: Any, area: float) -> float:
    covered = 0.0
    for item in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        try:
            left, bottom, right, top = item.get_bounds()
        except pdfium.PdfiumError:
            continue
        covered += max(0.0, right - left) * max(0.0, top - bottom)
    return min(1.0, covered / area) if area else 0.0


@dataclass
class _Word:
    left: float
    top: float
    right: float
    bottom: float
    text: str
    size: float
    invisible: bool

    def add(self, other: "_Word") -> None:
        """Take in a letter."""
        self.left, self.right = min(self.left, other.left), max(self.right, other.right)
        self.top, self.bottom = min(self.top, other.top), max(self.bottom, other.bottom)
        self.text += other.text


def _words(page: Any, height: float) -> Iterator[_Word]:
    """Words with the box of their glyphs, in the page's own order."""
    text_page = page.get_textpage()
    rotated = page.get_rotation()
    paint = _Paint(text_page)
    try:
        word: _Word | None = None
        for index in range(min(text_page.count_chars(), _MOST_WORDS * 8)):
            letter = chr(raw.FPDFText_GetUnicode(text_page, index))
            box = (
                None if letter.isspace() or letter in _NO_LETTER else _letter_box(text_page, index)
            )
            if box is None:
                if word and letter.isspace():
                    yield word
                    word = None
                continue
            if rotated:
                box = _turned(page, box, rotated)
            size, invisible = paint.of(index)
            one = _Word(box[0], height - box[3], box[2], height - box[1], letter, size, invisible)
            if word is None:
                word = one
            elif invisible != word.invisible or abs(one.bottom - word.bottom) > word.size + 1:
                yield word
                word = one
            else:
                word.add(one)
        if word:
            yield word
    finally:
        text_page.close()


class _Paint:
    """Size and visibility of letters; those of one text object share them."""

    def __init__(self, text_page: Any) -> None:
        self._text_page = text_page
        self._known: dict[int, tuple[float, bool]] = {}

    def of(self, index: int) -> tuple[float, bool]:
        text_object = raw.FPDFText_GetTextObject(self._text_page, index)
        key = ctypes.cast(text_object, ctypes.c_void_p).value if text_object else None
        if key is None:
            return _font_size(self._text_page, index), False
        if key not in self._known:
            self._known[key] = (
                _font_size(self._text_page, index),
                _is_invisible(self._text_page, index, text_object),
            )
        return self._known[key]


def _letter_box(text_page: Any, index: int) -> tuple[float, float, float, float] | None:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    if not raw.FPDFText_GetCharBox(text_page, index, left, right, bottom, top):
        return None
    return left.value, bottom.value, right.value, top.value


def _turned(
    page: Any, box: tuple[float, float, float, float], rotated: int
) -> tuple[float, float, float, float]:
    """The box as it lies on a page that is shown turned by 90, 180 or 270 degrees."""
    left, bottom, right, top = box
    width, height = page.get_size()
    if rotated == 90:
        return bottom, height - right, top, height - left
    if rotated == 180:
        return width - right, height - top, width - left, height - bottom
    return width - top, left, width - bottom, right


def _font_size(text_page: Any, index: int) -> float:
    """Height of the font as drawn, the text matrix included."""
    size = float(raw.FPDFText_GetFontSize(text_page, index))
    matrix = raw.FS_MATRIX()
    if raw.FPDFText_GetMatrix(text_page, index, matrix):
        size *= math.hypot(matrix.c, matrix.d) or 1.0
    return size


def _is_invisible(text_page: Any, index: int, text_object: Any) -> bool:
    """Text that paints nothing: render mode 3 or 7, or a transparent colour."""
    if raw.FPDFTextObj_GetTextRenderMode(text_object) in {3, 7}:
        return True
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    known = raw.FPDFText_GetFillColor(text_page, index, red, green, blue, alpha)
    return bool(known) and alpha.value < 12


def _judge(page: Any, found: PageProbe, words: list[_Word]) -> None:
    """Sort the words of a page into seen and unseen."""
    area = found.width * found.height
    invisible = sum(len(word.text) for word in words if word.invisible)
    # A scan with a text layer: the words are unseen, but what they say is seen.
    layer = found.pictures > 0.5 and invisible * 2 > sum(len(word.text) for word in words)
    pixels = None
    if area * _SCALE * _SCALE <= _MOST_PIXELS:
        image = page.render(scale=_SCALE, may_draw_forms=False, draw_annots=False)
        pixels = image.to_numpy().astype(np.int16)
    for word in words[:_MOST_WORDS]:
        kind = _unseen(word, found, pixels, layer=layer)
        if kind:
            box = Box(word.left, word.top, word.right, word.bottom)
            found.hidden.append(HiddenWord(box, word.text, kind))
        else:
            found.letters += sum(map(str.isalnum, word.text))


def _unseen(word: _Word, page: PageProbe, pixels: Any, *, layer: bool) -> HiddenKind | None:
    middle_x, middle_y = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    if not (0 <= middle_x <= page.width and 0 <= middle_y <= page.height):
        return "off-page"
    if word.invisible:
        return None if layer else "invisible-style"
    if word.size < _TINY_POINTS:
        return "zero-size"
    if pixels is None or not any(map(str.isalnum, word.text)):
        return None
    top, bottom = int(word.top * _SCALE), math.ceil(word.bottom * _SCALE)
    left, right = int(word.left * _SCALE), math.ceil(word.right * _SCALE)
    region = pixels[max(0, top) : bottom, max(0, left) : right]
    if region.size == 0:
        return None
    spread = int((region.max(axis=(0, 1)) - region.min(axis=(0, 1))).max())
    return "background-colour" if spread < _SAME_COLOUR else None
