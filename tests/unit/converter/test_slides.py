"""Presentations: a slide is a section, every shape has its box, the unseen is for the scanner."""

import io
import re
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pptx
import pytest
from lxml import etree
from pptx.chart.data import CategoryChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Pt

from contracts.artifacts import ParsedDocument, Place
from kernel.errors import Refusal
from services.converter.parsing.result import Parse
from services.converter.parsing.slides import parse_pptx
from services.converter.settings import ParseOptions

BULLETS, TITLE_ONLY, BLANK = 1, 5, 6
# Both are untyped in a typed package.
chart_data: Any = CategoryChartData
colour: Any = RGBColor


@pytest.fixture
def deck() -> Any:
    made = pptx.Presentation()
    made.core_properties.title = ""
    return made


def slide(deck: Any, layout: int = TITLE_ONLY, title: str = "") -> Any:
    made = deck.slides.add_slide(deck.slide_layouts[layout])
    if title:
        made.shapes.title.text = title
    return made


def box(on: Any, text: str, left: float = 10, top: float = 10) -> Any:
    made = on.shapes.add_textbox(Pt(left), Pt(top), Pt(100), Pt(20))
    made.text_frame.text = text
    return made


def parse(deck: Any, tmp_path: Path) -> Parse:
    deck.save(tmp_path / "a.pptx")
    return parse_pptx(tmp_path / "a.pptx", ParseOptions())


def hidden(document: ParsedDocument, kind: str) -> list[str]:
    return [text for h in document.hidden if h.kind == kind for text in h.text.split("\n")]


def test_a_slide_is_a_section_with_lists(deck: Any, tmp_path: Path) -> None:
    frame = slide(deck, BULLETS, "Заглавие").placeholders[1].text_frame
    frame.text = "one # <b>"
    for text, level in (("two", 1), ("three", 0), ("1. four", 0)):
        added = frame.add_paragraph()
        added.text, added.level = text, level
    slide(deck, title="Second")
    document = parse(deck, tmp_path).document
    assert document.markdown == (
        "# Заглавие\n\n- one # \\<b>\n    - two\n- three\n- 1\\. four\n\n# Second\n"
    )
    assert document.meta.pages == 2
    assert document.spans[0].place.page == 1 and document.spans[0].place.box is not None


def test_emphasis_and_typed_numbers(deck: Any, tmp_path: Path) -> None:
    frame = slide(deck, BULLETS, "Head").placeholders[1].text_frame
    for number, text in enumerate(("1. one", "2) two", "2016. Then", "loud")):
        paragraph = frame.paragraphs[0] if number == 0 else frame.add_paragraph()
        paragraph.add_run().text = text
    frame.paragraphs[3].runs[0].font.bold = True
    frame.paragraphs[1].add_run().text = " steps"
    frame.paragraphs[1].runs[1].font.italic = True
    page = slide(deck, BLANK)
    table = page.shapes.add_table(2, 1, Pt(0), Pt(0), Pt(100), Pt(40)).table
    for row, text in enumerate(("Head", "cell")):
        run = table.cell(row, 0).text_frame.paragraphs[0].add_run()
        run.text, run.font.bold = text, True
    tiny = table.cell(1, 0).text_frame.paragraphs[0].add_run()
    tiny.text, tiny.font.size = " secret", Pt(1)
    document = parse(deck, tmp_path).document
    assert document.markdown == (
        "# Head\n\n1. one\n2. two *steps*\n- 2016\\. Then\n- **loud**\n\n"
        "| Head |\n| - |\n| **cell** |\n"
    )
    assert hidden(document, "zero-size") == ["secret"]


def test_links_lead_outside(deck: Any, tmp_path: Path) -> None:
    page = slide(deck, title="One")
    paragraph = box(page, "see ").text_frame.paragraphs[0]
    run = paragraph.add_run()
    run.text, run.hyperlink.address, run.font.bold = "this", "https://a.b/c", True
    assert parse(deck, tmp_path).document.markdown == "# One\n\nsee [**this**](https://a.b/c)\n"


def test_boxes_are_points_of_the_slide_also_in_groups(deck: Any, tmp_path: Path) -> None:
    page = slide(deck, BLANK)
    box(page, "alone", 20, 30)
    group = page.shapes.add_group_shape()
    inner = group.shapes.add_textbox(Pt(100), Pt(100), Pt(50), Pt(10))
    inner.text_frame.text = "grouped"
    group.left, group.top = Pt(200), Pt(200)
    places = [span.place for span in parse(deck, tmp_path).document.spans]
    assert places == [
        Place(page=1, box=(20, 30, 120, 50)),
        Place(page=1, box=(200, 200, 250, 210)),
    ]


def test_a_table_has_a_place_per_row_and_repeats_merged_cells(deck: Any, tmp_path: Path) -> None:
    table = slide(deck, BLANK).shapes.add_table(2, 2, Pt(0), Pt(0), Pt(200), Pt(40)).table
    for row in range(2):
        for column in range(2):
            table.cell(row, column).text = f"{row}|{column}"
    table.cell(0, 0).merge(table.cell(0, 1))
    document = parse(deck, tmp_path).document
    lines = document.markdown.split("\n")
    assert lines[0].count("0\\|0") == 2
    assert lines[2] == "| 1\\|0 | 1\\|1 |"
    assert document.spans[1].place == Place(page=1, box=(0, 20, 200, 40))


def test_a_chart_is_a_table(deck: Any, tmp_path: Path) -> None:
    data = chart_data()
    data.categories = ["Q1", "Q2"]
    data.add_series("East", (1.5, 2))
    slide(deck, BLANK).shapes.add_chart(
        XL_CHART_TYPE.COLUMN_CLUSTERED, Pt(0), Pt(0), Pt(100), Pt(100), data
    )
    parsed = parse(deck, tmp_path)
    assert "|  | East |\n| - | - |\n| Q1 | 1.5 |\n| Q2 | 2 |" in parsed.document.markdown
    assert [file.name for file in parsed.files] == ["Microsoft_Excel_Sheet1.xlsx"]


def test_what_is_not_seen_is_for_the_scanner(deck: Any, tmp_path: Path) -> None:
    page = slide(deck, title="Seen")
    page.notes_slide.notes_text_frame.text = "a note"
    box(page, "beside", -500)
    box(page, "below", 10, 5000)
    white = box(page, "white")
    white.text_frame.paragraphs[0].runs[0].font.color.rgb = colour(255, 255, 255)
    tiny = box(page, "tiny")
    tiny.text_frame.paragraphs[0].runs[0].font.size = Pt(1)
    unseen = box(page, "unseen")
    unseen._element.nvSpPr.cNvPr.set("hidden", "1")
    unseen._element.nvSpPr.cNvPr.set("descr", "alternative")
    secret = slide(deck, title="Secret slide")
    secret.element.set("show", "0")
    document = parse(deck, tmp_path).document
    assert document.markdown == "# Seen\n"
    assert hidden(document, "notes") == ["a note"]
    assert hidden(document, "off-page") == ["beside", "below"]
    assert hidden(document, "background-colour") == ["white"]
    assert hidden(document, "zero-size") == ["tiny"]
    assert hidden(document, "invisible-style") == ["unseen", "Secret slide"]
    assert "alternative" in hidden(document, "alt-text")


def test_what_stands_on_every_slide_is_told_once(deck: Any, tmp_path: Path) -> None:
    deck.slide_master.shapes._spTree.append(box(slide(deck, title="One"), "motto")._element)
    slide(deck, title="Two")
    document = parse(deck, tmp_path).document
    assert document.markdown == "# One\n\n# Two\n"
    assert hidden(document, "notes") == ["motto"]


def test_white_text_on_something_dark_is_seen(deck: Any, tmp_path: Path) -> None:
    page = slide(deck, BLANK)
    rectangle = page.shapes.add_shape(1, Pt(0), Pt(0), Pt(300), Pt(300))
    rectangle.fill.solid()
    on_top = box(page, "white on blue", 20, 20)
    on_top.text_frame.paragraphs[0].runs[0].font.color.rgb = colour(255, 255, 255)
    assert parse(deck, tmp_path).document.markdown == "white on blue\n"


def test_numbered_items_count(deck: Any, tmp_path: Path) -> None:
    frame = box(slide(deck, BLANK), "a").text_frame
    frame.add_paragraph().text = "b"
    for paragraph in frame.paragraphs:
        paragraph._p.get_or_add_pPr().insert(0, paragraph._p.makeelement(
            "{http://schemas.openxmlformats.org/drawingml/2006/main}buAutoNum",
            {"type": "arabicPeriod", "startAt": "3"},
        ))  # fmt: skip
    assert parse(deck, tmp_path).document.markdown == "3. a\n4. b\n"


@pytest.mark.parametrize("keep", [0.2, 0.7])
def test_a_truncated_presentation_is_corrupt(deck: Any, tmp_path: Path, keep: float) -> None:
    buffer = io.BytesIO()
    slide(deck, title="x")
    deck.save(buffer)
    data = buffer.getvalue()
    (tmp_path / "a.pptx").write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(Refusal) as refused:
        parse_pptx(tmp_path / "a.pptx", ParseOptions())
    assert refused.value.code == "corrupt-document"


def test_no_text_and_too_many_slides_are_refused(deck: Any, tmp_path: Path) -> None:
    slide(deck, BLANK)
    with pytest.raises(Refusal) as refused:
        parse(deck, tmp_path)
    assert refused.value.code == "empty-document"
    slide(deck, BLANK)
    with pytest.raises(Refusal) as refused:
        parse_pptx(tmp_path / "a.pptx", ParseOptions(max_pages=0))
    assert refused.value.code == "too-many-pages"


def test_raised_numbers_stay_apart_from_those_before(deck: Any, tmp_path: Path) -> None:
    paragraph = box(slide(deck), "").text_frame.paragraphs[0]
    for text, baseline in (("2", "0"), ("32", "30000"), (" H", ""), ("2", "-25000"), ("O", "")):
        run = paragraph.add_run()
        run.text = text
        if baseline:
            run.font._element.set("baseline", baseline)
    assert "2³² H2O" in parse(deck, tmp_path).document.markdown


@pytest.mark.parametrize(
    "kind",
    [
        "vnd.openxmlformats-officedocument.presentationml.slideshow.main",
        "vnd.openxmlformats-officedocument.presentationml.template.main",
        "vnd.ms-powerpoint.slideshow.macroEnabled.main",
        "vnd.ms-powerpoint.template.macroEnabled.main",
    ],
)
def test_shows_and_templates_are_presentations(deck: Any, tmp_path: Path, kind: str) -> None:
    slide(deck, title="Frist")
    parse(deck, tmp_path)
    with zipfile.ZipFile(tmp_path / "a.pptx") as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    plain = b"vnd.openxmlformats-officedocument.presentationml.presentation.main"
    assert plain in parts["[Content_Types].xml"]
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(plain, kind.encode())
    with zipfile.ZipFile(tmp_path / "b.pptx", "w") as changed:
        for name, data in parts.items():
            changed.writestr(name, data)
    found = parse_pptx(tmp_path / "b.pptx", ParseOptions())
    assert found.document.markdown == "# Frist\n"
    assert found.warnings == []


def test_a_title_without_the_number_of_one_is_a_heading(deck: Any, tmp_path: Path) -> None:
    shape = slide(deck, title="Frist").shapes.title
    shape._element.ph.set("idx", "4294967295")
    assert parse(deck, tmp_path).document.markdown == "# Frist\n"


def test_a_long_text_over_some_cells_is_there_once(deck: Any, tmp_path: Path) -> None:
    table = slide(deck).shapes.add_table(2, 2, Pt(1), Pt(1), Pt(100), Pt(40)).table
    table.cell(0, 0).text = "x" * 300
    table.cell(0, 0).merge(table.cell(1, 0))
    markdown = parse(deck, tmp_path).document.markdown
    assert markdown.count("x" * 300) == 1


def test_a_drawing_with_a_picture_for_older_readers_is_read(deck: Any, tmp_path: Path) -> None:
    on = slide(deck, title="T")
    data: Any = CategoryChartData()  # type: ignore[no-untyped-call]
    data.categories = ["East"]
    data.add_series("Sales", (3,))
    where = (Pt(1), Pt(1), Pt(200), Pt(100))
    frame = on.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *where, data)._element
    ns = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    choice = etree.fromstring(
        f'<mc:AlternateContent {ns}><mc:Choice Requires="x"/><mc:Fallback/></mc:AlternateContent>'
    )
    frame.addprevious(choice)
    choice[0].append(frame)
    choice[1].append(box(on, "old")._element)
    markdown = parse(deck, tmp_path).document.markdown
    assert "| East | 3 |" in markdown and "old" not in markdown


def test_the_strict_form_is_read(deck: Any, tmp_path: Path) -> None:
    box(slide(deck, title="Frist"), "Text")
    usual = parse(deck, tmp_path).document
    with (
        zipfile.ZipFile(tmp_path / "a.pptx") as whole,
        zipfile.ZipFile(tmp_path / "b.pptx", "w") as changed,
    ):
        for name in whole.namelist():
            pattern = rb"http://schemas\.openxmlformats\.org/(?!package)(\w+)/2006/"
            data = re.sub(pattern, rb"http://purl.oclc.org/ooxml/\1/", whole.read(name))
            changed.writestr(name, data)
    found = parse_pptx(tmp_path / "b.pptx", ParseOptions()).document
    assert found.markdown == usual.markdown == "# Frist\n\nText\n"


def test_days_of_a_chart_are_dates(deck: Any, tmp_path: Path) -> None:
    data: Any = CategoryChartData()  # type: ignore[no-untyped-call]
    data.categories = [date(2024, 3, 1), date(2024, 4, 1)]
    data.add_series("East", (45352, 2))
    where = (Pt(0), Pt(0), Pt(100), Pt(100))
    slide(deck, BLANK).shapes.add_chart(XL_CHART_TYPE.LINE, *where, data)
    markdown = parse(deck, tmp_path).document.markdown
    assert "| 2024-03-01 | 45352 |\n| 2024-04-01 | 2 |" in markdown
