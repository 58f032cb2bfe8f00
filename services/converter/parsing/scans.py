"""Pages of a PDF as pictures, read by OCR."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pypdfium2 as pdfium
from PIL import Image

from services.converter.parsing.layout import Page, blocks_of_page
from services.converter.parsing.ocr import PageReader, Scan
from services.converter.parsing.ocr_engines import TooSlow
from services.converter.parsing.pdf_opened import opened
from services.converter.progress import finished_part
from services.converter.settings import ParseOptions

_SCALE = 3.5
_MOST_PIXELS = 8_000_000


class ReadPages(NamedTuple):
    """Pages by number on which something was read, and those that were given up: too slow."""

    scans: dict[int, Scan]
    slow: frozenset[int]


Drawn = tuple[Image.Image, tuple[float, float]]
"""A page as it is shown, and its size in points."""


def read_drawn(reader: PageReader, pages: Iterable[tuple[int, Drawn | None]]) -> ReadPages:
    """Pages by number, None for one that shows nothing; each is drawn, read and let go."""
    scans: dict[int, Scan] = {}
    slow: set[int] = set()
    for number, drawn in pages:
        try:
            scan = reader.read(drawn[0], number, drawn[1]) if drawn else None
            if scan is not None:
                scans[number] = scan
        except TooSlow:
            slow.add(number)
        finally:
            del drawn
            finished_part()
    return ReadPages(scans, frozenset(slow))


def read_pages(path: Path, numbers: Iterable[int], options: ParseOptions) -> ReadPages:
    """The pages of `numbers` (from 1), read one after the other.

    One page is in memory at a time: 252 dpi, or less on a page larger than A4.
    """
    document = opened(path)
    try:
        pages = ((number, _drawn(document, number)) for number in numbers)
        return read_drawn(PageReader(options), pages)
    finally:
        document.close()


def _drawn(document: pdfium.PdfDocument, number: int) -> Drawn | None:
    try:
        page = document[number - 1]
    except pdfium.PdfiumError:
        return None
    try:
        width, height = page.get_size()
        scale = min(_SCALE, math.sqrt(_MOST_PIXELS / max(1.0, width * height)))
        bitmap = page.render(scale=scale, grayscale=True, may_draw_forms=False)
        return bitmap.to_pil().copy(), (width, height)
    finally:
        page.close()


def page_of(scan: Scan) -> Page:
    """The blocks of a page that was read, on the page set straight."""
    blocks = blocks_of_page(scan.words, scan.rules)
    for block in blocks:
        block.settle()
    return Page(scan.reading.page, *scan.frame.size, blocks)
