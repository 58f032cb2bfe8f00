"""Scanned pages within PDFs: which are read, what of them is kept, what becomes of slow ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from kernel.errors import Refusal
from services.converter.parsing import ocr
from services.converter.parsing.ocr_engines import Clock, Orientation, Seen
from services.converter.parsing.pdf import parse_pdf
from services.converter.parsing.result import Parse
from services.converter.progress import listen
from services.converter.settings import ParseOptions
from tests.unit.converter import drawn as pages
from tests.unit.converter.pdf_drawing import SIDE, drawn, lines, text

SCANNED = pages.TEXTS["en"]


class _Engine:
    """Reads these words on every page; hangs on the pages of those numbers (from 1)."""

    name = "tesseract"

    def __init__(self, said: str = SCANNED, hangs: tuple[int, ...] = ()) -> None:
        self.said, self.hangs, self.page = said, hangs, 0
        self.last: Any = None

    def orientation(self, image: Any, clock: Clock) -> Orientation:
        return Orientation(0, 20.0, "Latin")

    def read(self, image: Any, languages: Any, clock: Clock) -> list[Seen]:
        if clock is not self.last:
            self.last = clock
            self.page += 1
        while self.page in self.hangs:
            clock.left()
        # Each page begins with another word: what stands on all of them is no content.
        words = self.said.split()[self.page :] + self.said.split()[: self.page]
        return [
            Seen(word, 60.0 + 70 * (n % 12), 200.0 + 40 * (n // 12), 125.0 + 70 * (n % 12),
                 222.0 + 40 * (n // 12), 22, 0.95)
            for n, word in enumerate(words)
        ]  # fmt: skip


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[[_Engine], _Engine]:
    def use(one: _Engine) -> _Engine:
        monkeypatch.setattr(ocr, "engines", lambda: (one, None))
        return one

    return use


def parsed(folder: Path, data: bytes, **options: float) -> Parse:
    path = folder / "a.pdf"
    path.write_bytes(data)
    return parse_pdf(path, ParseOptions(**options))


def picture(side: int = 600) -> Image.Image:
    return pages.drawn(SCANNED).resize((side, side))


def scan(*more: str, size: float = SIDE) -> Callable[[Canvas], None]:
    """A page that is a picture, and lines of text over its upper edge."""

    def draw(canvas: Canvas) -> None:
        canvas.drawImage(ImageReader(picture()), 0, 0, size, size)
        lines(canvas, 40, 30, more)

    return draw


# --- which pages are read -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "stamp",
    [
        ("ABC-00012345",),
        ("Case 1:20-cv-01234 Document 45 Filed 03/04/21 Page 3 of 60",),
        ("Official Journal of the Union", "12.3.2019", "Page 17", "CONFIDENTIAL"),
    ],
)
def test_a_scan_with_a_stamp_as_its_text_layer_is_read(
    stamp: tuple[str, ...], tmp_path: Path, engine: Callable[[_Engine], _Engine]
) -> None:
    engine(_Engine(f"{' '.join(stamp)} {SCANNED}"))
    found = parsed(tmp_path, drawn(scan(*stamp)))
    assert [reading.page for reading in found.readings] == [1]
    assert "yearly report" in found.document.markdown
    assert any("1: read by tesseract" in note for note in found.warnings)


def test_a_cover_over_a_photograph_keeps_its_text_layer(
    tmp_path: Path, engine: Callable[[_Engine], _Engine]
) -> None:
    one = engine(_Engine("of the counci1 Yearly repcrt"))
    found = parsed(tmp_path, drawn(scan("Yearly report of the council")))
    assert one.page == 1
    assert found.document.markdown.endswith("Yearly report of the council")
    assert found.readings == ()


def test_nonsense_over_a_photograph_does_not_take_the_place_of_the_text_layer(
    tmp_path: Path, engine: Callable[[_Engine], _Engine]
) -> None:
    engine(_Engine("eeoi wlk aan vvnm qqz zzu iio plk rrwt " * 8))
    found = parsed(tmp_path, drawn(scan("Yearly report of the council")))
    assert found.document.markdown.endswith("Yearly report of the council")


@pytest.mark.parametrize(
    "draw",
    [scan(*text(40)), scan("a short line that stands beside a small picture", size=300)],
    ids=["full-text", "small-picture"],
)
def test_a_page_with_its_own_text_is_not_read(
    draw: Callable[[Canvas], None], tmp_path: Path, engine: Callable[[_Engine], _Engine]
) -> None:
    one = engine(_Engine())
    parsed(tmp_path, drawn(draw))
    assert one.page == 0


# --- pages that take too long -------------------------------------------------------------------


def test_a_page_that_hangs_is_missing_and_its_neighbours_are_read(
    tmp_path: Path, engine: Callable[[_Engine], _Engine]
) -> None:
    engine(_Engine(hangs=(2,)))
    found = parsed(tmp_path, drawn(scan(), scan(), scan()), page_seconds=0.5)
    assert found.missing_pages == (2,)
    assert [reading.page for reading in found.readings] == [1, 3]
    assert found.document.markdown.count("March") == 2
    assert "pages that could not be read: 2" in found.warnings
    assert "pages that took OCR too long: 2" in found.warnings


def test_a_page_that_hangs_does_not_cost_the_text_of_other_pages(
    tmp_path: Path, engine: Callable[[_Engine], _Engine]
) -> None:
    engine(_Engine(hangs=(1, 2)))
    data = drawn(scan(), lambda canvas: lines(canvas, 40, 60, text(30)), scan())
    found = parsed(tmp_path, data, page_seconds=0.3)
    assert found.missing_pages == (1, 3)
    assert "measure 29" in found.document.markdown


def test_when_the_time_of_the_document_is_up_its_other_pages_are_missing(
    tmp_path: Path, engine: Callable[[_Engine], _Engine]
) -> None:
    engine(_Engine(hangs=(3,)))
    data = drawn(*[scan()] * 6)
    found = parsed(tmp_path, data, page_seconds=600, total_seconds=8)
    assert found.missing_pages == (3, 4, 5, 6)
    assert found.document.markdown.count("March") == 2


def test_a_document_of_which_no_page_could_be_read_in_time_says_so(
    tmp_path: Path, engine: Callable[[_Engine], _Engine]
) -> None:
    engine(_Engine(hangs=(1, 2)))
    with pytest.raises(Refusal) as refusal:
        parsed(tmp_path, drawn(scan(), scan()), page_seconds=0.2)
    assert refusal.value.code == "parse-timeout"


def test_every_page_is_a_sign_of_life(tmp_path: Path, engine: Callable[[_Engine], _Engine]) -> None:
    engine(_Engine(hangs=(2,)))
    told: list[int] = []
    listen(lambda: told.append(1))
    try:
        parsed(tmp_path, drawn(scan(), scan(), scan()), page_seconds=0.2)
    finally:
        listen(lambda: None)
    assert len(told) >= 4
