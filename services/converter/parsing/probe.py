"""What pdfium knows of a PDF before it is parsed: pages, outline, and text that nobody sees."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pypdfium2 as pdfium
from pypdfium2 import raw

from contracts.artifacts import HiddenText
from contracts.events import HiddenKind
from kernel.errors import Refusal
from services.converter.parsing.pdf_broken import broken, reads_as_words
from services.converter.parsing.pdf_drawings import Drawings, drawings
from services.converter.parsing.pdf_fields import Beside, beside
from services.converter.parsing.pdf_glyphs import Box, Glyphs, Ink, Type, words_of_page
from services.converter.parsing.pdf_heights import Heights
from services.converter.parsing.pdf_opened import opened
from services.converter.settings import ParseOptions

_LEAST_SIDE = 1
_TINY_POINTS, _SPECK_POINTS = 1.6, 3.5
_MOST_DOUBTED = 0.3
"""Share of the letters of a page."""
_MOST_FALSE = 0.3
_MOST_WORDS = 30_000
_LEAST_RUNNING = 40
_MOST_OUTLINE = 5000


class HiddenWord(NamedTuple):
    """A word that a reader of the page does not see."""

    box: Box
    text: str
    kind: HiddenKind


@dataclass
class PageProbe:
    """One page; `letters` counts the visible ones, `pictures` is the share of it under bitmaps.

    `covered` is the share under visible words.

    `doubtful` are visible ones that people may not read: specks, pale, turned unlike the others.

    `type` knows the fonts of the visible ones; `broken` says why they cannot be what the page
    shows; `drawn` tells that it shows something besides text.
    """

    width: float
    height: float
    letters: int = 0
    covered: float = 0.0
    pictures: float = 0.0
    drawn: bool = False
    broken: str = ""
    hidden: list[HiddenWord] = field(default_factory=list)
    doubtful: list[HiddenText] = field(default_factory=list)
    beside: Beside = field(default_factory=Beside)
    drawings: Drawings = field(default_factory=Drawings)
    type: Type = field(default_factory=lambda: Type(()))

    def settle(self) -> None:
        """Let go of what only the reading of the page needs."""
        self.type, self.drawings = Type(()), Drawings()


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
        document = opened(path)
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
        document.init_forms()
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
        found.beside = beside(page)
        found.drawings = drawings(page)
        heights = Heights()
        words = list(words_of_page(page, heights))
        _judge(page, found, words, heights.odd_words())
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


def _judge(page: Any, found: PageProbe, words: list[Glyphs], odd: set[int]) -> None:
    """Sort the words of a page into seen and unseen; `odd` are drawn with other letters."""
    if min(found.width, found.height) < _LEAST_SIDE:
        # Nothing can be drawn on such a page.
        found.hidden += [HiddenWord(word.box, word.text, "off-page") for word in words]
        return
    invisible = sum(len(word.text) for word in words if word.invisible)
    # A scan with a text layer: the words are unseen, but what they say is seen.
    layer = found.pictures > 0.5 and invisible * 2 > sum(len(word.text) for word in words)
    ink = Ink(page)
    seen: list[Glyphs] = []
    words = words[:_MOST_WORDS]
    covered = set() if layer else ink.covered(words)
    for index, word in enumerate(words):
        kind = _unseen(word, found, ink, layer=layer)
        if index in covered and kind in {None, "background-colour"}:
            kind = "invisible-style"
        if kind:
            found.hidden.append(HiddenWord(word.box, word.text, kind))
        else:
            seen.append(word)
    shown = set(map(id, seen))
    # What is drawn at once is of one kind.
    drawn = {word.key for index, word in enumerate(words) if index in odd} - {0}
    said = " ".join(word.text for word in words if word.key in drawn and id(word) in shown)
    found.doubtful = _doubtful(seen, ink)
    if said:
        found.doubtful.append(HiddenText(kind="invisible-style", text=said))
    found.letters = sum(sum(map(str.isalnum, word.text)) for word in seen)
    area = sum((w.right - w.left) * (w.bottom - w.top) for w in seen)
    found.covered = area / max(1.0, found.width * found.height)
    found.type = Type(seen)
    found.drawn = ink.drawn_besides
    found.broken = _broken(seen)
    if sum(map(str.isalnum, said)) > _MOST_FALSE * found.letters:
        found.broken = "its fonts draw other letters than they name"


def _doubtful(words: list[Glyphs], ink: Ink) -> list[HiddenText]:
    """Texts that show, but that people may not read; none where they are much of the page: a table
    on its side, a page in small print."""
    turns: Counter[int] = Counter()
    for word in words:
        turns[word.turn] += len(word.text)
    usual = turns.most_common(1)[0][0] if turns else 0
    found: list[HiddenText] = []
    before = -2
    for index, word in enumerate(words):
        kind = _doubt(word, usual, ink)
        if kind and found and before == index - 1 and found[-1].kind == kind:
            joint = "" if word.glued else " "
            found[-1] = HiddenText(kind=kind, text=f"{found[-1].text}{joint}{word.text}")
        elif kind:
            found.append(HiddenText(kind=kind, text=word.text))
        before = index if kind else before
    much = sum(len(one.text) for one in found) > _MOST_DOUBTED * turns.total()
    return [] if much else found


def _doubt(word: Glyphs, usual: int, ink: Ink) -> HiddenKind | None:
    if word.font.size < _SPECK_POINTS:
        return "zero-size"
    if word.turn != usual:
        return "invisible-style"
    readable = not any(map(str.isalnum, word.text)) or ink.shows_plainly(word.box)
    return None if readable else "background-colour"


def _broken(words: list[Glyphs]) -> str:
    """Program code has few words that others have: it is judged by the text around it."""
    unmapped = sum(word.unmapped for word in words)
    if unmapped and reads_as_words(word.text for word in words if word.unmapped):
        unmapped = 0
    running = [word.text for word in words if not word.font.mono]
    if sum(map(len, running)) < _LEAST_RUNNING:
        running = [word.text for word in words]
    if len(running) == len(words):
        return broken(running, unmapped)
    return broken(running, unmapped) if broken((w.text for w in words), unmapped) else ""


def _unseen(word: Glyphs, page: PageProbe, ink: Ink, *, layer: bool) -> HiddenKind | None:
    middle_x, middle_y = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    if not (0 <= middle_x <= page.width and 0 <= middle_y <= page.height):
        return "off-page"
    if word.invisible:
        return None if layer else "invisible-style"
    if word.font.size < _TINY_POINTS:
        return "zero-size"
    if not any(map(str.isalnum, word.text)) or ink.shows(word.box):
        return None
    return "background-colour"
