"""Words of a page with their type, by pdfium, and which of them paint nothing that can be seen."""

import ctypes
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from pypdfium2 import raw

from services.converter.parsing.pdf_heights import SHORT, Heights

_SCALE = 1.5
_MOST_PIXELS = 4000 * 4000
_SAME_COLOUR, _HARDLY_SEEN = 14, 40
_DRAWN, _SPARSE = 0.003, 3
_MOST_LETTERS = 240_000
_MOST_ALONE = 48
_MOST_COMPARED, _COMPARED_AT_ONCE = 6000, 256
_OVERLAP = 0.3
_MOST_PINNED = 2000
_COVERS = frozenset({
    raw.FPDF_ANNOT_SQUARE, raw.FPDF_ANNOT_CIRCLE, raw.FPDF_ANNOT_POLYGON, raw.FPDF_ANNOT_STAMP,
    raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_REDACT, raw.FPDF_ANNOT_INK,
})  # fmt: skip
"""What is pinned to a page and may be drawn over its text."""
_LEAST_BLANK, _LEAST_MEAN = 0.05, 2.5
"""Of a gap between words, in sizes of type; of the letters that words have in the mean."""
_CLOSING = re.compile(r"[\W_]*[.,;:!?)\]}»”]")
_UNKNOWN = re.compile("\ufffd")
_ROW = 16.0
_NO_LETTER = frozenset("\0\ufffe\uffff")
# Where TeX's fonts (T1, the Cork encoding) have letters that their files do not name.
_TEX_LETTERS = dict(
    zip(
        (*range(0x10, 0x17), *range(0x1B, 0x20)),
        ("“", "”", "„", "«", "»", "–", "—", "ff", "fi", "fl", "ffi", "ffl"),
        strict=True,
    )
)
# Elsewhere such a code is the number of a glyph, and no letter. Drawn fonts (Type 3) have no name.
_TEX_FONT = re.compile(r"(?:[a-z]{6}\+)?(?:$|f\d+$|(?:sf|ec|cm|lm|la|tc|t1|dc)[a-z]{1,4}\d)")
_FIXED_PITCH, _ITALIC, _FORCE_BOLD = 1, 1 << 6, 1 << 18
_BOLD_WEIGHT = 600
BOLD = ("bold", "black", "heavy", "semibold", "demi", "-bd", "ptmb", "phvb", "cmbx", "sfbx")
SLANTED = ("italic", "oblique", "-it", "ptmri", "slanted", "cmti", "sfti")
MONO = (
    "mono", "courier", "consol", "cmtt", "sftt", "typewriter", "menlo", "nimbusmonl", "inconsolata",
    "txtt", "lmtt", "ectt", "monaco", "sourcecode", "firacode", "lettergothic",
)  # fmt: skip


class Box(NamedTuple):
    """In points, origin at the top left of the page as it is shown."""

    left: float
    top: float
    right: float
    bottom: float


def turned(quarters: int, width: float, height: float, box: Box) -> Box:
    """`box` on a page of that size, after the page was turned clockwise by quarters."""
    left, top, right, bottom = box
    match quarters:
        case 1:
            return Box(height - bottom, left, height - top, right)
        case 2:
            return Box(width - right, height - bottom, width - left, height - top)
        case 3:
            return Box(top, width - right, bottom, width - left)
    return box


class Font(NamedTuple):
    """How letters are set. `size` is the font's height as drawn, in points."""

    size: float
    bold: bool
    italic: bool
    mono: bool


@dataclass(slots=True)
class Glyphs:
    """Letters that belong together, with the box of what they paint.

    `unmapped` counts those for which the file does not tell the character; `source` is pdfium's
    object that draws the first of them. `turn` is how they are turned, in twelfths of a half turn,
    and 100 more for those in a mirror; `glued`: no blank stands before them.
    """

    left: float
    top: float
    right: float
    bottom: float
    text: str
    font: Font
    invisible: bool
    unmapped: int = 0
    source: Any = None
    turn: int = 0
    glued: bool = False

    @property
    def key(self) -> int:
        """The same for all words of one object; 0 for those of none."""
        return (ctypes.cast(self.source, ctypes.c_void_p).value or 0) if self.source else 0

    @property
    def box(self) -> Box:
        return Box(self.left, self.top, self.right, self.bottom)


class Shown:
    """From a page's own coordinates to those in which it is shown."""

    def __init__(self, page: Any) -> None:
        left, bottom, right, top = page.get_bbox()
        self._left, self._top = left, top
        self._size = right - left, top - bottom
        self._quarters = page.get_rotation() // 90

    def box(self, left: float, bottom: float, right: float, top: float) -> Box:
        flipped = Box(left - self._left, self._top - top, right - self._left, self._top - bottom)
        return turned(self._quarters, *self._size, flipped)


def words_of_page(page: Any, heights: Heights | None = None) -> Iterator[Glyphs]:
    """Words in the page's own order; `heights` gets those of their letters."""
    for word in _words(page, heights or Heights()):
        # pdfium gives the halves of what UTF-16 writes in two.
        halves = word.text.encode("utf-16-le", "surrogatepass")
        word.text = halves.decode("utf-16-le", "replace")
        yield word


def _words(page: Any, heights: Heights) -> Iterator[Glyphs]:
    text_page = page.get_textpage()
    shown = Shown(page)
    paint = _Paint(text_page)
    lines = _Lines(text_page, heights)
    edges = [ctypes.c_double() for _ in range(4)]
    left, right, bottom, top = edges
    word: Glyphs | None = None
    glued = False
    try:
        for index in range(min(text_page.count_chars(), _MOST_LETTERS)):
            code = raw.FPDFText_GetUnicode(text_page, index)
            letter = chr(code)
            if code in _TEX_LETTERS and _TEX_FONT.match(_font_name(text_page, index)[0]):
                letter = _TEX_LETTERS[code]
            if letter.isspace() or letter in _NO_LETTER:
                if word and letter.isspace():
                    yield word
                    word = None
                    lines.word += 1
                glued = glued and not letter.isspace()
                continue
            if not raw.FPDFText_GetCharBox(text_page, index, left, right, bottom, top):
                continue
            font, invisible, source, turn = paint.of(index)
            box = shown.box(left.value, bottom.value, right.value, top.value)
            unmapped = int(raw.FPDFText_HasUnicodeMapError(text_page, index) == 1)
            if word is None or invisible != word.invisible or _far(word, box):
                if word:
                    yield word
                    lines.word += 1
                word = Glyphs(*box, letter, font, invisible, unmapped, source, turn, glued)
                glued = True
            else:
                _add(word, box, letter)
                word.unmapped += unmapped
            if letter in SHORT and turn == 0:
                lines.note(index, source, font.size, top.value, bottom.value)
        if word:
            yield word
    finally:
        text_page.close()


def _far(word: Glyphs, box: Box) -> bool:
    reach = word.font.size + 1
    down, across = abs(box.bottom - word.bottom), abs(box.left - word.left)
    # pdfium joins a word that is divided at the end of a line.
    next_line = down > 0.6 * word.font.size and box.right < word.left
    return next_line or (down > reach and across > reach)


def _add(word: Glyphs, box: Box, letter: str) -> None:
    word.left, word.right = min(word.left, box.left), max(word.right, box.right)
    word.top, word.bottom = min(word.top, box.top), max(word.bottom, box.bottom)
    word.text += letter


class _Lines:
    """Letters above the lines on which they stand."""

    def __init__(self, text_page: Any, heights: Heights) -> None:
        self._text_page, self._heights = text_page, heights
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self.word = 0

    def note(self, index: int, source: Any, size: float, top: float, bottom: float) -> None:
        """The letter of this number, with its edges on the page."""
        if not source or not size:
            return
        if raw.FPDFText_GetCharOrigin(self._text_page, index, self._x, self._y):
            line = self._y.value
            font = ctypes.cast(raw.FPDFTextObj_GetFont(source), ctypes.c_void_p).value
            self._heights.note(font, self.word, (top - line) / size, (bottom - line) / size)


class _Paint:
    """Type and visibility of letters; those of one text object share them."""

    def __init__(self, text_page: Any) -> None:
        self._text_page = text_page
        self._known: dict[int, tuple[Font, bool, Any, int]] = {}

    def of(self, index: int) -> tuple[Font, bool, Any, int]:
        source = raw.FPDFText_GetTextObject(self._text_page, index)
        key = ctypes.cast(source, ctypes.c_void_p).value if source else None
        if key is None:
            return Font(_font_size(self._text_page, index), False, False, False), False, None, 0
        known = self._known.get(key)
        if known is None:
            invisible = _is_invisible(self._text_page, index, source)
            font, turn = _font(self._text_page, index), _turn(self._text_page, index)
            known = self._known[key] = font, invisible, source, turn
        return known


def _font(text_page: Any, index: int) -> Font:
    name, flags = _font_name(text_page, index)
    weight = raw.FPDFText_GetFontWeight(text_page, index)
    return Font(
        _font_size(text_page, index),
        bold=any(mark in name for mark in BOLD) or weight >= _BOLD_WEIGHT
        or bool(flags & _FORCE_BOLD),
        italic=any(mark in name for mark in SLANTED) or bool(flags & _ITALIC),
        mono=any(mark in name for mark in MONO) or bool(flags & _FIXED_PITCH),
    )  # fmt: skip


def _font_name(text_page: Any, index: int) -> tuple[str, int]:
    """Name in small letters, and flags."""
    buffer, flags = ctypes.create_string_buffer(256), ctypes.c_int()
    raw.FPDFText_GetFontInfo(text_page, index, buffer, 256, flags)
    return buffer.value.decode("utf-8", "replace").lower(), flags.value


def _font_size(text_page: Any, index: int) -> float:
    """Height of the font as drawn, the text matrix included."""
    size = float(raw.FPDFText_GetFontSize(text_page, index))
    matrix = raw.FS_MATRIX()
    if raw.FPDFText_GetMatrix(text_page, index, matrix):
        size *= math.hypot(matrix.c, matrix.d) or 1.0
    return size


def _turn(text_page: Any, index: int) -> int:
    """As `Glyphs.turn`."""
    matrix = raw.FS_MATRIX()
    if not raw.FPDFText_GetMatrix(text_page, index, matrix):
        return 0
    mirrored = bool(matrix.a * matrix.d - matrix.b * matrix.c < 0)
    angle = float(math.atan2(matrix.b, matrix.a))
    return round(angle * 12 / math.pi) % 24 + 100 * mirrored


def _is_invisible(text_page: Any, index: int, text_object: Any) -> bool:
    """Text that paints nothing: render mode 3 or 7, or a transparent colour."""
    if raw.FPDFTextObj_GetTextRenderMode(text_object) in {3, 7}:
        return True
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    known = raw.FPDFText_GetFillColor(text_page, index, red, green, blue, alpha)
    return bool(known) and alpha.value < 12


# --- what can be seen -------------------------------------------------------------------------


class Ink:
    """Where the text of a page changes its picture: the page drawn with and without its text.

    So text is found that has the colour of what lies under it, that something else covers, that
    a path clips away, or whose layer is switched off. The page cannot be used afterwards.
    `drawn_besides` tells whether there is more on the page than its text.
    """

    def __init__(self, page: Any) -> None:
        self._page = page
        self._pinned = _has_covers(page)
        width, height = page.get_size()
        self._scale = min(_SCALE, math.sqrt(_MOST_PIXELS / max(width * height, 1.0)))
        before = self._drawn(page)
        for item in page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], max_depth=15):
            raw.FPDFPageObj_SetIsActive(item, False)
        after = self._drawn(page)
        plain = after[::_SPARSE, ::_SPARSE].reshape(-1, 4)[:, :3].astype(np.int16)
        self.drawn_besides = bool(
            (np.abs(plain - plain[0]).max(axis=1) >= _SAME_COLOUR).mean() > _DRAWN
        )
        # Pixels as one number each: most are the same, and telling so must be quick.
        self._changed = before.view(np.uint32)[:, :, 0] != after.view(np.uint32)[:, :, 0]
        places = self._changed.nonzero()
        difference = np.abs(before[places].astype(np.int16) - after[places])
        most = difference.max(axis=1)
        self._changed[places] = most >= _SAME_COLOUR
        self._plain = np.zeros_like(self._changed)
        self._plain[places] = most >= _HARDLY_SEEN

    def _drawn(self, page: Any, crop: tuple[float, ...] = (0, 0, 0, 0)) -> Any:
        image = page.render(
            scale=self._scale, crop=crop, may_draw_forms=False,
            draw_annots=self._pinned, prefer_bgrx=True,
        )  # fmt: skip
        return image.to_numpy()

    def covered(self, words: Sequence[Glyphs]) -> set[int]:
        """Indexes of the words whose object paints nothing, though other text lies under it."""
        drawn: dict[int, bool] = {}
        for index in _overlapping(words):
            word = words[index]
            if word.key not in drawn and len(drawn) < _MOST_ALONE:
                drawn[word.key] = self._draws(word)
        return {n for n, word in enumerate(words) if not drawn.get(word.key, True)}

    def _draws(self, word: Glyphs) -> bool:
        """Whether a pixel changes when the word's object alone is switched on."""
        left, top, right, bottom = word.box
        width, height = self._page.get_size()
        crop = (max(0, left - 2), max(0, height - bottom - 2),
                max(0, width - right - 2), max(0, top - 2))  # fmt: skip
        if crop[0] + crop[2] > width - 3 or crop[1] + crop[3] > height - 3:
            return True
        without = self._drawn(self._page, crop).astype(np.int16)
        raw.FPDFPageObj_SetIsActive(word.source, True)
        alone = self._drawn(self._page, crop)
        raw.FPDFPageObj_SetIsActive(word.source, False)
        return bool((np.abs(alone - without) >= _SAME_COLOUR).any())

    def shows(self, box: Box) -> bool:
        """Whether the text of the page changes a pixel in the box."""
        return self._any(self._changed, box)

    def shows_plainly(self, box: Box) -> bool:
        """Whether it does so in a colour that people can tell from what lies around."""
        return self._any(self._plain, box)

    def _any(self, pixels: Any, box: Box) -> bool:
        left, top, right, bottom = (edge * self._scale for edge in box)
        return bool(
            pixels[
                max(0, int(top)) : max(0, math.ceil(bottom)),
                max(0, int(left)) : max(0, math.ceil(right)),
            ].any()
        )


def _has_covers(page: Any) -> bool:
    """Whether something is pinned to the page that may lie over its text."""
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_PINNED)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if annotation:
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            raw.FPDFPage_CloseAnnot(annotation)
            if kind in _COVERS:
                return True
    return False


def _overlapping(words: Sequence[Glyphs]) -> list[int]:
    """Words that lie in good part over words of another object."""
    if not 1 < len(words) <= _MOST_COMPARED:
        return []
    left, top, right, bottom = np.array([word.box for word in words], dtype=np.float32).T
    keys = np.array([word.key for word in words], dtype=np.uint64)
    areas = (right - left) * (bottom - top)
    found: list[int] = []
    for start in range(0, len(words), _COMPARED_AT_ONCE):
        own = slice(start, start + _COMPARED_AT_ONCE)
        across = np.minimum.outer(right[own], right) - np.maximum.outer(left[own], left)
        down = np.minimum.outer(bottom[own], bottom) - np.maximum.outer(top[own], top)
        common = np.maximum(across, 0) * np.maximum(down, 0)
        over = (common > _OVERLAP * areas[own, None]) & np.not_equal.outer(keys[own], keys)
        found += (np.flatnonzero(over.any(axis=1) & (keys[own] > 0)) + start).tolist()
    return found


# --- type, found by place ---------------------------------------------------------------------


class Piece(NamedTuple):
    """A word as pdfium reads it."""

    text: str
    box: Box


class Type:
    """Words by place on a page, with their fonts; kept small: long documents have millions."""

    def __init__(self, words: Iterable[Glyphs]) -> None:
        kept = list(words)
        numbers: dict[Font, int] = {}
        self._numbers = np.array(
            [numbers.setdefault(word.font, len(numbers)) for word in kept], dtype=np.uint16
        )
        self._fonts = list(numbers)
        self._boxes = np.array([word.box for word in kept], dtype=np.float32).reshape(-1, 4)
        self._texts = "\n".join(word.text for word in kept)

    def words(self) -> Iterator[tuple[Piece, Font]]:
        """All words with their fonts."""
        boxes = self._boxes.tolist()
        texts = self._texts.split("\n") if boxes else []
        for text, box, number in zip(texts, boxes, self._numbers, strict=True):
            yield Piece(text, Box(*box)), self._fonts[int(number)]

    def at(self, words: Iterable[tuple[str, Box]]) -> Iterator[tuple[Font | None, list[Piece]]]:
        """The font of what stands in the middle of each word, and how pdfium reads the word.

        None where nothing does; no pieces where it reads the same.
        """
        rows: dict[int, list[int]] = {}
        known = self._boxes.tolist()
        texts = self._texts.split("\n")
        for index, (_, top, _, bottom) in enumerate(known):
            for row in range(int(top // _ROW), int(bottom // _ROW) + 1):
                rows.setdefault(row, []).append(index)
        for text, box in words:
            near = rows.get(int((box.top + box.bottom) / 2 // _ROW), [])
            found = _middle(box, near, known)
            if found is None:
                yield None, []
                continue
            font = self._fonts[int(self._numbers[found])]
            if texts[found] == text:
                yield font, []
                continue
            inside = [n for n in near if _lies_in(known[n], box)]
            inside.sort(key=lambda n: float(known[n][0]))
            pieces = [Piece(texts[n], Box(*known[n])) for n in inside]
            yield font, pieces if _reads_better(pieces, text, font.size) else []


def _middle(box: Box, near: Iterable[int], known: Sequence[Sequence[float]]) -> int | None:
    x, y = (box.left + box.right) / 2, (box.top + box.bottom) / 2
    found: int | None = None
    for index in near:
        left, top, right, bottom = known[index]
        # Glyphs are lower than their line: `-` stands over or under the middle.
        if left - 1 <= x <= right + 1 and top - _ROW / 2 <= y <= bottom + _ROW / 2:
            if top <= y <= bottom:
                return index
            found = index if found is None else found
    return found


def _lies_in(inner: Sequence[float], box: Box) -> bool:
    left, top, right, bottom = inner
    return (
        box.left - 1 <= left
        and right <= box.right + 1
        and box.top - 1 <= (top + bottom) / 2 <= box.bottom + 1
    )


def _reads_better(pieces: Sequence[Piece], text: str, size: float) -> bool:
    """Whether the pieces say what `text` says, with blanks or letters that it lacks."""
    joined = _plain("".join(piece.text for piece in pieces))
    if not joined or _UNKNOWN.search(joined):
        return False
    lost = len(_UNKNOWN.findall(text))
    if lost:
        # A ligature is one letter in the file and up to three here.
        parts = map(re.escape, map(_plain, _UNKNOWN.split(text)))
        return re.fullmatch(".{1,3}".join(parts), joined) is not None
    # Letters or parts of a word set wide are one word all the same; signs of a formula are none.
    long = len(pieces) > 1 and len(joined) >= _LEAST_MEAN * len(pieces)
    if not long or any(_CLOSING.match(piece.text) for piece in pieces[1:]):
        return False
    gaps = (b.box.left - a.box.right for a, b in pairwise(pieces))
    return joined == _plain(text) and all(gap > _LEAST_BLANK * size for gap in gaps)


def _plain(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text) if c.isprintable())
