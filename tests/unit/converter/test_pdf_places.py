"""Spans of a PDF: the text under a span lies in its box on its page."""

import re
from pathlib import Path

import pypdfium2 as pdfium
import pytest
from docling_core.types.doc.base import BoundingBox, CoordOrigin, Size
from docling_core.types.doc.common.reference import ProvenanceItem
from docling_core.types.doc.document import DoclingDocument
from docling_core.types.doc.labels import DocItemLabel
from reportlab.pdfgen.canvas import Canvas

from contracts.artifacts import Place, Span
from services.converter.parsing.markdown import to_markdown
from services.converter.parsing.marks import Marks
from services.converter.parsing.pdf_places import mark_places
from services.converter.parsing.result import Parse
from tests.unit.converter.pdf_drawing import LINE, SIDE, drawn, lines, parsed, text

LEAST = 0.9


def words(body: str) -> list[str]:
    return re.findall(r"\w+", body)


def text_in(path: Path, place: Place) -> str:
    """What pdfium reads within a box of the page as it is shown."""
    assert place.page is not None
    assert place.box is not None
    document = pdfium.PdfDocument(path)
    try:
        page = document[place.page - 1]
        left, top, right, bottom = place.box
        width, height = page.get_size()
        assert -1 <= left < right <= width + 1
        assert -1 <= top < bottom <= height + 1
        corners = [
            pdfium_point(page, left - 1, top - 1), pdfium_point(page, right + 1, bottom + 1)
        ]  # fmt: skip
        xs, ys = zip(*corners, strict=True)
        text_page = page.get_textpage()
        found: str = text_page.get_text_bounded(min(xs), min(ys), max(xs), max(ys))
        return found
    finally:
        document.close()


def pdfium_point(page: pdfium.PdfPage, x: float, y: float) -> tuple[float, float]:
    """A point of the page as it is shown, in the coordinates of its content."""
    import ctypes

    width, height = page.get_size()
    px, py = ctypes.c_double(), ctypes.c_double()
    scale = 100
    pdfium.raw.FPDF_DeviceToPage(
        page, 0, 0, round(width * scale), round(height * scale), 0,
        round(x * scale), round(y * scale), px, py,
    )  # fmt: skip
    return px.value, py.value


def check(folder: Path, parse: Parse) -> list[tuple[str, Span]]:
    """Every span's words lie in its box, and every word of the Markdown in a span."""
    body = parse.document.markdown.encode()
    spans = [(body[s.byte_start : s.byte_end].decode(), s) for s in parse.document.spans]
    for piece, span in spans:
        there = words(text_in(folder / "a.pdf", span.place))
        missing = [word for word in words(piece) if word not in there]
        assert len(missing) <= (1 - LEAST) * len(words(piece)), (piece, there)
    assert sum(len(words(t)) for t, _ in spans) == len(words(parse.document.markdown))
    return spans


def pages_of(spans: list[tuple[str, Span]]) -> list[int | None]:
    return [span.place.page for _, span in spans]


def column(name: str) -> list[str]:
    return [f"{name} column, line {n} of the text" for n in range(12)]


def test_each_of_two_columns_has_its_box(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, 60, 100, [*column("left"), "and it goes on here"])
        lines(canvas, 320, 100, ["in the other column", *column("right")])

    spans = check(tmp_path, parsed(tmp_path, drawn(draw)))
    boxes = [span.place.box for _, span in spans if span.place.box]
    assert min(box[2] for box in boxes) < 320 <= max(box[0] for box in boxes) + 1


def test_a_paragraph_over_two_pages_has_a_place_on_each(tmp_path: Path) -> None:
    first = [*text(50), "and the sentence goes"]
    second = ["on to its end on the next page, where", *(LINE.format(n=n) for n in range(60, 70))]
    parse = parsed(
        tmp_path, drawn(lambda c: lines(c, 60, 100, first), lambda c: lines(c, 60, 100, second))
    )
    spans = check(tmp_path, parse)
    assert "goes on to its end" in parse.document.markdown
    assert pages_of(spans) == [1, 2]
    assert spans[1][0].startswith("on to its end")


def test_each_row_of_a_table_has_its_box(tmp_path: Path) -> None:
    rows = [("Name", "Price"), ("Plum pie", "5 euros"), ("Soup", "3 euros")]

    def draw(canvas: Canvas) -> None:
        lines(canvas, 60, 80, ["The bill of fare of the week:"])
        for n, row in enumerate(rows):
            lines(canvas, 65, 114 + 20 * n, [row[0]])
            lines(canvas, 205, 114 + 20 * n, [row[1]])
        canvas.grid([60, 200, 340], [SIDE - y for y in (100, 120, 140, 160)])

    spans = check(tmp_path, parsed(tmp_path, drawn(draw)))
    assert [piece for piece, _ in spans[1:]] == [
        "Name | Price", "Plum pie | 5 euros", "Soup | 3 euros",
    ]  # fmt: skip
    tops = [span.place.box[1] for _, span in spans if span.place.box]
    assert tops == sorted(tops)
    assert len(set(tops)) == len(tops)


def test_headings_list_items_and_code_have_their_own(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica-Bold", 18)
        canvas.drawString(60, 760, "Report of the year")
        lines(canvas, 60, 120, text(4))
        lines(canvas, 60, 200, ["• the first item", "• the second item"])
        canvas.setFont("Courier", 10)
        canvas.drawString(60, 560, "x = compute(1, 2)")
        canvas.drawString(60, 548, "print(x)")
        lines(canvas, 60, 330, text(3))

    texts = [piece for piece, _ in check(tmp_path, parsed(tmp_path, drawn(draw)))]
    assert texts[0] == "Report of the year"
    assert texts[2:5] == ["the first item", "the second item", "x = compute(1, 2)\nprint(x)"]


def turned(canvas: Canvas, degrees: int) -> None:
    """Text that runs in another direction than the page's edges tell."""
    canvas.translate(SIDE / 2, SIDE / 2)
    canvas.rotate(degrees)
    canvas.translate(-SIDE / 2, -SIDE / 2)


@pytest.mark.parametrize("rotate", [90, 180, 270])
def test_a_rotated_page_is_given_as_it_is_shown(tmp_path: Path, rotate: int) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(rotate)
        turned(canvas, rotate)
        lines(canvas, 180, 200, text(5))
        lines(canvas, 180, 330, text(9))

    ((_, above), (_, below)) = check(tmp_path, parsed(tmp_path, drawn(draw)))
    assert above.place.box is not None
    assert below.place.box is not None
    assert above.place.box[3] < below.place.box[1]


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
@pytest.mark.parametrize("rotate", [0, 90])
def test_text_that_runs_any_way_has_its_box(tmp_path: Path, degrees: int, rotate: int) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(rotate)
        turned(canvas, degrees)
        lines(canvas, 180, 200, text(5))
        lines(canvas, 180, 330, text(9))

    assert len(check(tmp_path, parsed(tmp_path, drawn(draw)))) == 2


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_boxes_are_within_the_crop_box(tmp_path: Path, rotate: int) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(rotate)
        lines(canvas, 180, 200, text(5))

    parse = parsed(tmp_path, drawn(draw, crop=(100, 200, 560, 800)))
    ((_, span),) = check(tmp_path, parse)
    if not rotate:
        assert span.place.box is not None
        assert span.place.box[0] == pytest.approx(80, abs=2)
        assert span.place.box[1] == pytest.approx(200 - (SIDE - 800) - 8, abs=4)


def test_text_that_looks_like_a_mark_opens_no_place(tmp_path: Path) -> None:
    parse = parsed(tmp_path, drawn(lambda c: lines(c, 60, 100, text(5))))
    assert not re.search("[\ufdd0-\ufdef]", parse.document.markdown)


def test_a_table_over_two_pages_is_one_with_its_rows_on_both(tmp_path: Path) -> None:
    def draw(canvas: Canvas, first: int, count: int, top: float) -> None:
        rows = [
            ("Region", "Count"),
            *((f"Area {n}", f"about {n * 7}") for n in range(first, count)),
        ]
        for n, (name, value) in enumerate(rows):
            lines(canvas, 65, top + 14 + 20 * n, [name])
            lines(canvas, 205, top + 14 + 20 * n, [value])
        edges = [SIDE - top - 20 * n for n in range(len(rows) + 1)]
        canvas.grid([60, 200, 340], edges)

    parse = parsed(tmp_path, drawn(lambda c: draw(c, 1, 30, 100), lambda c: draw(c, 30, 40, 60)))
    spans = check(tmp_path, parse)
    assert parse.document.markdown.count("Region") == 1
    assert [
        span.place.page
        for piece, span in spans
        if piece in {"Area 29 | about 203", "Area 30 | about 210"}
    ] == [1, 2]


def test_places_of_doclings_own_items_are_from_the_top(tmp_path: Path) -> None:
    document = DoclingDocument(name="x")
    document.add_page(page_no=3, size=Size(width=600, height=800))
    low = BoundingBox(l=10, t=700, r=90, b=650, coord_origin=CoordOrigin.BOTTOMLEFT)
    item = document.add_text(label=DocItemLabel.TEXT, text="begins here and goes on")
    item.prov = [
        ProvenanceItem(page_no=3, bbox=low, charspan=(0, 11)),
        ProvenanceItem(page_no=3, bbox=BoundingBox(l=300, t=5, r=390, b=60), charspan=(12, 23)),
    ]
    marks = Marks()
    mark_places(document, marks)
    _, spans = marks.resolve(to_markdown(document))
    assert [(s.byte_start, s.place.box) for s in spans] == [
        (0, (10.0, 100.0, 90.0, 150.0)), (12, (300.0, 5.0, 390.0, 60.0)),
    ]  # fmt: skip


def test_a_long_text_beside_many_rows_is_there_once(tmp_path: Path) -> None:
    said = [f"part {n} of what it costs in all" for n in "abcdefghij"]

    def draw(canvas: Canvas) -> None:
        lines(canvas, 65, 110, ["Costs"])
        lines(canvas, 65, 126, said, step=9)
        for n in range(6):
            lines(canvas, 325, 110 + 20 * n, [f"{n}000"])
        canvas.grid([320, 400], [SIDE - y for y in range(95, 216, 20)])
        for y in (95, 115, 215):
            canvas.line(60, SIDE - y, 320, SIDE - y)
        canvas.line(60, SIDE - 95, 60, SIDE - 215)

    markdown = parsed(tmp_path, drawn(draw)).document.markdown
    assert "5000 |" in markdown
    assert markdown.count(said[0]) == 1
