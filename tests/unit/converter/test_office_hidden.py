"""What of slides, sheets, OpenDocument, RTF and mails people do not see, and what they do."""

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pptx
import pytest
from openpyxl.formatting.rule import Rule
from openpyxl.styles import Font, PatternFill
from openpyxl.styles.colors import Color
from openpyxl.styles.differential import DifferentialStyle
from openpyxl.styles.numbers import NumberFormat
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table
from PIL import Image
from pptx.dml import color as pptx_color
from pptx.enum.dml import MSO_THEME_COLOR
from pptx.util import Inches, Pt

from kernel.media import EML, ODP, ODS, ODT, PPTX, RTF, XLSX
from services.converter.parsing import parse
from services.converter.settings import ParseOptions

RGB: Any = pptx_color.RGBColor
ORDER = "obey the secret order at once"


def found(folder: Path, data: bytes, media_type: str) -> tuple[bool, set[str]]:
    """Whether the order stands in the text, and the kinds of hidden text that it stands in."""
    path = folder / "file"
    path.write_bytes(data)
    document = parse(path, media_type, ParseOptions()).document
    return ORDER in document.markdown, {h.kind for h in document.hidden if ORDER in h.text}


# --- slides -----------------------------------------------------------------------------------


def deck(draw: Callable[[Any], None], **more: str) -> bytes:
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[6])
    box(slide, "An ordinary text", top=1)
    draw(slide)
    out = io.BytesIO()
    made.save(out)
    with zipfile.ZipFile(out, "a") as file:
        for name, content in more.items():
            file.writestr(name, content)
    return out.getvalue()


def box(slide: Any, text: str = ORDER, top: float = 3) -> Any:
    made = slide.shapes.add_textbox(Inches(1), Inches(top), Inches(6), Inches(1))
    made.text_frame.text = text
    return made


def font(shape: Any) -> Any:
    return shape.text_frame.paragraphs[0].runs[0].font


def block(slide: Any, ground: Any, text: str = "") -> Any:
    made = slide.shapes.add_shape(1, Inches(1), Inches(3), Inches(6), Inches(1))
    made.fill.solid()
    made.fill.fore_color.rgb = ground
    made.text_frame.text = text
    return made


def in_the_colour_of_the_paper(slide: Any) -> None:
    font(box(slide)).color.theme_color = MSO_THEME_COLOR.BACKGROUND_1


def see_through(slide: Any) -> None:
    one = font(box(slide))
    one.color.rgb = RGB(0, 0, 0)
    color = one._rPr.find(".//{*}srgbClr")
    color.append(color.makeelement(color.tag.replace("srgbClr", "alpha"), {"val": "0"}))


def in_the_colour_of_its_shape(slide: Any) -> None:
    font(block(slide, RGB(10, 80, 10), ORDER)).color.rgb = RGB(10, 80, 14)


def in_the_colour_of_the_slide(slide: Any) -> None:
    slide.background.fill.solid()
    slide.background.fill.fore_color.rgb = RGB(20, 20, 60)
    font(box(slide)).color.rgb = RGB(20, 20, 60)


def in_a_white_cell(slide: Any) -> None:
    cell = slide.shapes.add_table(1, 1, 0, 0, Inches(6), Inches(1)).table.cell(0, 0)
    cell.text = ORDER
    cell.fill.solid()
    cell.fill.fore_color.rgb = RGB(255, 255, 255)
    cell.text_frame.paragraphs[0].runs[0].font.color.rgb = RGB(255, 255, 255)


def as_a_name(slide: Any) -> None:
    box(slide, "a").name = ORDER


def as_a_tip(slide: Any) -> None:
    run = box(slide, "a").text_frame.paragraphs[0].runs[0]
    run.hyperlink.address = "https://a.example"
    run._r.rPr.find("{*}hlinkClick").set("tooltip", ORDER)


@pytest.mark.parametrize(
    ("hide", "kind"),
    [
        (in_the_colour_of_the_paper, "background-colour"), (see_through, "invisible-style"),
        (in_the_colour_of_its_shape, "background-colour"),
        (in_the_colour_of_the_slide, "background-colour"), (in_a_white_cell, "background-colour"),
        (as_a_name, "attribute"), (as_a_tip, "attribute"),
    ],
)  # fmt: skip
def test_what_a_slide_hides(tmp_path: Path, hide: Callable[[Any], None], kind: str) -> None:
    assert found(tmp_path, deck(hide), PPTX) == (False, {kind})


def under_a_block(slide: Any) -> None:
    box(slide)
    block(slide, RGB(255, 255, 255))


def under_a_picture(slide: Any) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (50, 50), (9, 9, 99)).save(picture, "PNG")
    box(slide)
    slide.shapes.add_picture(picture, Inches(1), Inches(3), Inches(6), Inches(1))


@pytest.mark.parametrize("hide", [under_a_block, under_a_picture])
def test_text_that_an_effect_may_uncover_stays_and_is_told(
    tmp_path: Path, hide: Callable[[Any], None]
) -> None:
    assert found(tmp_path, deck(hide), PPTX) == (True, {"invisible-style"})


def white_on_a_block(slide: Any) -> None:
    font(block(slide, RGB(10, 80, 10), ORDER)).color.rgb = RGB(255, 255, 255)


def on_a_block(slide: Any) -> None:
    block(slide, RGB(10, 80, 10))
    font(box(slide)).color.rgb = RGB(255, 255, 255)


def in_small_print(slide: Any) -> None:
    font(box(slide)).size = Pt(6)


@pytest.mark.parametrize("show", [white_on_a_block, on_a_block, in_small_print])
def test_what_people_read_on_a_slide(tmp_path: Path, show: Callable[[Any], None]) -> None:
    assert found(tmp_path, deck(show), PPTX) == (True, set())


def test_parts_of_a_presentation_for_programs(tmp_path: Path) -> None:
    tags = f'<tagLst><tag name="A" val="{ORDER}"/></tagLst>'
    for name, content in (("ppt/tags/tag1.xml", tags), ("customXml/item1.xml", f"<a>{ORDER}</a>")):
        data = deck(lambda _: None, **{name: content})
        assert found(tmp_path, data, PPTX) == (False, {"metadata"})


# --- sheets -----------------------------------------------------------------------------------


def book(fill: Callable[[Any, Any], None]) -> bytes:
    made = openpyxl.Workbook()
    sheet = made.active
    for row in (("Name", "Value"), ("garden", 3)):
        sheet.append(row)
    fill(made, sheet)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def styled(**look: Any) -> Callable[[Any, Any], None]:
    def fill(_: Any, sheet: Any) -> None:
        sheet["A3"] = ORDER
        for name, value in look.items():
            setattr(sheet["A3"], name, value)

    return fill


def solid(color: str) -> PatternFill:
    return PatternFill("solid", fgColor=color)


def in_a_flat_row(_: Any, sheet: Any) -> None:
    sheet["A3"] = ORDER
    sheet.row_dimensions[3].height = 0.5


def as_a_prompt(_: Any, sheet: Any) -> None:
    sheet.add_data_validation(DataValidation(type="whole", sqref="B2", prompt=ORDER))


def as_a_tip_of_a_link(_: Any, sheet: Any) -> None:
    sheet["A2"].hyperlink = "https://a.example"
    sheet["A2"].hyperlink.tooltip = ORDER


def as_a_defined_name(made: Any, _: Any) -> None:
    made.defined_names["note"] = DefinedName("note", attr_text=f'"{ORDER}"')


@pytest.mark.parametrize(
    ("fill", "kind"),
    [
        (styled(font=Font(color="00FEFEFE")), "background-colour"),
        (styled(font=Font(color=Color(indexed=9))), "background-colour"),
        (styled(font=Font(color="FF112233"), fill=solid("FF112233")), "background-colour"),
        (styled(font=Font(size=1)), "zero-size"),
        (styled(number_format='"";"";"";""'), "invisible-style"),
        (styled(number_format="General;General;General;[White]@"), "invisible-style"),
        (styled(number_format=";;;"), "invisible-style"),
        (styled(font=Font(color=Color(theme=4)), fill=PatternFill("solid", fgColor=Color(theme=4))),
         "background-colour"),
        (in_a_flat_row, "invisible-style"), (as_a_prompt, "attribute"),
        (as_a_tip_of_a_link, "attribute"), (as_a_defined_name, "metadata"),
    ],
)  # fmt: skip
def test_what_a_sheet_hides(tmp_path: Path, fill: Callable[[Any, Any], None], kind: str) -> None:
    assert found(tmp_path, book(fill), XLSX) == (False, {kind})


def on_condition(look: DifferentialStyle, cells: str = "A1:B9") -> Callable[[Any, Any], None]:
    def fill(_: Any, sheet: Any) -> None:
        sheet["A3"] = ORDER
        rule = Rule(type="expression", dxf=look, formula=["TRUE"])
        sheet.conditional_formatting.add(cells, rule)

    return fill


def white_within(*cells: str) -> Callable[[Any, Any], None]:
    """White text on a sheet that has a table in these cells."""

    def fill(_: Any, sheet: Any) -> None:
        sheet["D1"], sheet["D2"] = "Head", "a"
        sheet["D3"] = ORDER
        sheet["D3"].font = Font(color="FFFFFFFF")
        sheet.add_table(Table(displayName="T", ref=cells[0]))

    return fill


def with_part(color: str, *, shared: bool) -> bytes:
    """A workbook with a string whose second half has a colour of its own."""
    parts = (
        f"<r><t>An ordinary start. </t></r><r><rPr><color rgb='{color}'/></rPr><t>{ORDER}</t></r>"
    )
    cell = f'<c r="A3" t="inlineStr"><is>{parts}</is></c>'
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book(styled()))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "xl/worksheets/sheet1.xml":
                other = '<c r="A3" t="s"><v>0</v></c>' if shared else cell
                content = re.sub(rb'<c r="A3".*?</c>', other.encode(), content)
            new.writestr(name, content)
        new.writestr("xl/sharedStrings.xml", f'<sst xmlns="{space}"><si>{parts}</si></sst>')
    return out.getvalue()


_EMPTY_FORMAT = NumberFormat(numFmtId=190, formatCode=";;;")


@pytest.mark.parametrize(
    ("fill", "kind"),
    [
        (on_condition(DifferentialStyle(numFmt=_EMPTY_FORMAT)), "invisible-style"),
        (on_condition(DifferentialStyle(font=Font(color="FFFFFFFF"))), "background-colour"),
        (white_within("D1:D3"), "background-colour"),
    ],
)  # fmt: skip
def test_cells_that_a_condition_or_a_design_may_hide_stay_and_are_told(
    tmp_path: Path, fill: Callable[[Any, Any], None], kind: str
) -> None:
    assert found(tmp_path, book(fill), XLSX) == (True, {kind})


def test_white_cells_beside_a_table_are_hidden(tmp_path: Path) -> None:
    assert found(tmp_path, book(white_within("A1:B2")), XLSX) == (False, {"background-colour"})


@pytest.mark.parametrize("shared", [True, False])
def test_white_parts_of_a_string_are_told(tmp_path: Path, *, shared: bool) -> None:
    white, dark = (with_part(color, shared=shared) for color in ("FFFFFFFF", "FF112233"))
    assert found(tmp_path, white, XLSX) == (True, {"background-colour"})
    assert found(tmp_path, dark, XLSX) == (True, set())


@pytest.mark.parametrize(
    "fill",
    [
        on_condition(DifferentialStyle(font=Font(color="FFFFFFFF")), "C1:D9"),
        on_condition(DifferentialStyle(font=Font(color="FFFF0000"))),
        on_condition(DifferentialStyle(numFmt=NumberFormat(numFmtId=190, formatCode="0.0"))),
        on_condition(DifferentialStyle(
            font=Font(color="FFFFFFFF"), fill=PatternFill(bgColor="FF112233"))),
        styled(font=Font(color="FFFFFFFF"), fill=solid("FF112233")), styled(font=Font(size=6)),
        styled(number_format='0;-0;0;@" a"'), styled(number_format="[Red]0;[Blue]0;0;@"),
        styled(font=Font(color="FF112233"), fill=solid("FFAABBCC")),
    ],
)  # fmt: skip
def test_what_people_read_in_a_sheet(tmp_path: Path, fill: Callable[[Any, Any], None]) -> None:
    assert found(tmp_path, book(fill), XLSX) == (True, set())


# --- OpenDocument -----------------------------------------------------------------------------

_SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in {
        "office": "office", "text": "text", "style": "style", "table": "table", "draw": "drawing",
        "svg": "svg-compatible", "fo": "xsl-fo-compatible", "number": "datastyle",
    }.items()
)  # fmt: skip
_LOEXT = 'xmlns:loext="urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0"'


def odf(kind: str, body: str, style: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        file.writestr(
            "content.xml",
            f'<office:document-content {_SPACES} {_LOEXT} xmlns:xlink="http://www.w3.org/1999/xlink">'
            f"<office:automatic-styles>{style}</office:automatic-styles><office:body><office:{kind}>"
            f"{body}</office:{kind}></office:body></office:document-content>",
        )
    return out.getvalue()


def looks(family: str, properties: str, kind: str = "text") -> str:
    return (
        f'<style:style style:name="X" style:family="{family}">'
        f"<style:{kind}-properties {properties}/></style:style>"
    )


PLAIN = "<text:p>An ordinary paragraph.</text:p>"
SPAN = f'{PLAIN}<text:p><text:span text:style-name="X">{ORDER}</text:span></text:p>'
STYLED = f'{PLAIN}<text:p text:style-name="X">{ORDER}</text:p>'


STYLED_SPAN = f'<text:span text:style-name="X">{ORDER}</text:span>'
WHITE_SPAN = looks("text", 'fo:color="#ffffff"')


def named(name: str, family: str, properties: str, *, whole: bool = False) -> str:
    """A style with these properties; `whole`: they are a whole element."""
    inner = f"<style:{properties}>" if whole else f"<style:{properties}/>"
    return f'<style:style style:name="{name}" style:family="{family}">{inner}</style:style>'


def in_cell(text: str, style: str = "") -> str:
    cell = (
        f"<table:table-cell table:style-name='{style}'><text:p>{text}</text:p></table:table-cell>"
    )
    other = "<table:table-cell><text:p>a</text:p></table:table-cell>"
    rows = f"<table:table-row>{other}</table:table-row><table:table-row>{cell}</table:table-row>"
    return f"{PLAIN}<table:table>{rows}</table:table>"


@pytest.mark.parametrize(
    ("body", "style", "kind"),
    [
        (SPAN, looks("text", 'fo:font-size="1%"'), "zero-size"),
        (SPAN, looks("text", 'style:text-scale="1%"'), "zero-size"),
        (SPAN, looks("text", 'loext:opacity="0%"'), "invisible-style"),
        (SPAN, looks("text", 'fo:color="#112233" fo:background-color="#112233"'),
         "background-colour"),
        (STYLED, looks("paragraph", 'fo:margin-left="-50cm"', "paragraph"), "off-page"),
        (in_cell(STYLED_SPAN), WHITE_SPAN, "background-colour"),
        (in_cell(STYLED_SPAN, "C"), looks("text", 'fo:color="#123456"')
         + named("C", "table-cell", 'table-cell-properties fo:background-color="#123456"'),
         "background-colour"),
        (f'{PLAIN}<text:p text:style-name="C">{STYLED_SPAN}</text:p>',
         looks("text", 'fo:color="#123456"')
         + named("C", "paragraph", 'paragraph-properties fo:background-color="#123456"'),
         "background-colour"),
        (f'{PLAIN}<text:section text:style-name="C"><text:p>{STYLED_SPAN}</text:p></text:section>',
         looks("text", 'fo:color="#123456"')
         + named("C", "section", 'section-properties fo:background-color="#123456"'),
         "background-colour"),
        (f'{PLAIN}<text:p><draw:custom-shape draw:style-name="C"><text:p>{STYLED_SPAN}</text:p>'
         "</draw:custom-shape></text:p>", looks("text", 'fo:color="#123456"')
         + named("C", "graphic", 'graphic-properties draw:fill="solid" draw:fill-color="#123456"'),
         "background-colour"),
        (f'{PLAIN}<text:p text:style-name="C"><text:span text:style-name="X">{ORDER}</text:span>'
         "</text:p>", looks("text", 'fo:background-color="#123456"')
         + named("C", "paragraph", 'text-properties fo:color="#123456"'), "background-colour"),
        (f'{PLAIN}<text:section text:display="condition"><text:p>{ORDER}</text:p></text:section>',
         "", "invisible-style"),
        (f'{PLAIN}<text:p><text:hidden-paragraph text:is-hidden="true"/>{ORDER}</text:p>', "",
         "invisible-style"),
        (f'{PLAIN}<text:p><draw:frame svg:x="-60cm" svg:y="1cm"><draw:text-box><text:p>{ORDER}'
         "</text:p></draw:text-box></draw:frame></text:p>", "", "off-page"),
        (f'{PLAIN}<table:table><table:table-row table:visibility="collapse"><table:table-cell>'
         f"<text:p>{ORDER}</text:p></table:table-cell></table:table-row></table:table>", "",
         "invisible-style"),
        (f'{PLAIN}<text:p><text:bookmark text:name="{ORDER}"/>a</text:p>', "", "attribute"),
        (f'{PLAIN}<text:p><text:a xlink:href="https://a.example" office:title="{ORDER}">a</text:a>'
         "</text:p>", "", "attribute"),
        (f'<text:user-field-decls><text:user-field-decl office:string-value="{ORDER}"/>'
         f"</text:user-field-decls>{PLAIN}", "", "metadata"),
    ],
)  # fmt: skip
def test_what_an_opendocument_text_hides(tmp_path: Path, body: str, style: str, kind: str) -> None:
    assert found(tmp_path, odf("text", body, style), ODT) == (False, {kind})


@pytest.mark.parametrize(
    ("body", "style"),
    [
        (SPAN, looks("text", 'fo:color="#ffffff" fo:background-color="#112233"')),
        (SPAN, looks("text", 'fo:font-size="6pt"')), (SPAN, looks("text", 'fo:font-size="80%"')),
        (STYLED, looks("paragraph", 'fo:margin-left="-1cm"', "paragraph")),
        (in_cell(STYLED_SPAN, "C"), WHITE_SPAN
         + named("C", "table-cell", 'table-cell-properties fo:background-color="#123456"')),
        (in_cell(STYLED_SPAN, "C"), WHITE_SPAN
         + named("C", "table-cell", 'table-cell-properties><style:background-image '
                 'xlink:href="a.png"/></style:table-cell-properties', whole=True)),
        (f'{PLAIN}<text:p><draw:custom-shape draw:style-name="C"><text:p>{STYLED_SPAN}</text:p>'
         "</draw:custom-shape></text:p>", WHITE_SPAN),
        (f'{PLAIN}<text:p text:style-name="C"><text:span text:style-name="X">{ORDER}</text:span>'
         "</text:p>", looks("text", 'fo:color="#000000"')
         + named("C", "paragraph", 'text-properties fo:color="#ffffff"')),
        (SPAN, looks("text", 'fo:color="#ffffff" style:use-window-font-color="true"')),
        (f'{PLAIN}<text:p><text:hidden-paragraph text:is-hidden="false"/>{ORDER}</text:p>', ""),
        (f'{PLAIN}<text:section text:display="condition" text:is-hidden="false"><text:p>{ORDER}'
         "</text:p></text:section>", ""),
    ],
)  # fmt: skip
def test_what_people_read_in_an_opendocument_text(tmp_path: Path, body: str, style: str) -> None:
    assert found(tmp_path, odf("text", body, style), ODT) == (True, set())


def slide(*shapes: str, style: str = "P") -> str:
    frame = (
        '<draw:frame draw:style-name="N" svg:x="1cm" svg:y="1cm" svg:width="8cm" svg:height="2cm">'
        "<draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    )
    other = frame.replace('svg:y="1cm"', 'svg:y="9cm"').format("An ordinary line.")
    order = frame.format(STYLED_SPAN)
    return f'<draw:page draw:style-name="{style}">{"".join(shapes)}{order}{other}</draw:page>'


_NONE = named("N", "graphic", 'graphic-properties draw:fill="none"')
_DARK = named("D", "graphic", 'graphic-properties draw:fill="solid" draw:fill-color="#112233"')
_DARK_PAGE = named(
    "P", "drawing-page", 'drawing-page-properties draw:fill="solid" draw:fill-color="#112233"'
)
_RECTANGLE = (
    '<draw:rect draw:style-name="D" svg:x="0cm" svg:y="{}cm" svg:width="9cm" svg:height="4cm"/>'
)


@pytest.mark.parametrize(
    ("body", "style", "seen"),
    [
        (slide(), "", False), (slide(), _DARK_PAGE, True),
        (slide(_RECTANGLE.format(0)), _DARK, True), (slide(_RECTANGLE.format(5)), _DARK, False),
        (slide('<draw:frame svg:x="0cm" svg:y="0cm" svg:width="9cm" svg:height="9cm"><draw:image/>'
               "</draw:frame>"), "", True),
    ],
)  # fmt: skip
def test_white_text_of_an_opendocument_slide(
    tmp_path: Path, body: str, style: str, *, seen: bool
) -> None:
    kinds = set() if seen else {"background-colour"}
    styles = WHITE_SPAN + _NONE + style
    assert found(tmp_path, odf("presentation", body, styles), ODP) == (seen, kinds)


def test_cells_of_an_opendocument_sheet_in_the_colour_of_their_ground(tmp_path: Path) -> None:
    cell = '<table:table-cell office:value-type="string"{}><text:p>{}</text:p></table:table-cell>'
    rows = (cell.format("", "Name"), cell.format(' table:style-name="X"', ORDER))
    body = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    sheet = f'<table:table table:name="t">{body}</table:table>'
    white = looks("table-cell", 'fo:color="#ffffff"')
    assert found(tmp_path, odf("spreadsheet", sheet, white), ODS) == (False, {"background-colour"})
    dark = white.replace(
        "</style:style>",
        '<style:table-cell-properties fo:background-color="#112233"/></style:style>',
    )
    assert found(tmp_path, odf("spreadsheet", sheet, dark), ODS) == (True, set())


@pytest.mark.parametrize(
    ("content", "shown"), [("", False), ("<number:text-content/>", True)], ids=[";;;", "@"]
)
def test_a_format_without_a_part_for_text_shows_no_text(
    tmp_path: Path, content: str, *, shown: bool
) -> None:
    cell = '<table:table-cell office:value-type="string"{}><text:p>{}</text:p></table:table-cell>'
    rows = (cell.format("", "Name"), cell.format(' table:style-name="X"', ORDER))
    body = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    styles = (
        f'<number:text-style style:name="N9"><number:text/>{content}</number:text-style>'
        '<style:style style:name="X" style:family="table-cell" style:data-style-name="N9"/>'
    )
    data = odf("spreadsheet", f'<table:table table:name="t">{body}</table:table>', styles)
    assert found(tmp_path, data, ODS) == (shown, set() if shown else {"invisible-style"})


@pytest.mark.parametrize(("color", "told"), [("#ffffff", True), ("#112233", False)])
def test_white_parts_of_a_cell_of_an_opendocument_sheet_are_told(
    tmp_path: Path, color: str, *, told: bool
) -> None:
    cell = f'<table:table-cell office:value-type="string"><text:p>a {STYLED_SPAN}</text:p>'
    body = f"<table:table-row>{cell}</table:table-cell></table:table-row>"
    data = odf(
        "spreadsheet", f'<table:table table:name="t">{body}</table:table>',
        looks("text", f'fo:color="{color}"'),
    )  # fmt: skip
    assert found(tmp_path, data, ODS) == (True, {"background-colour"} if told else set())


# --- RTF and mail -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (rf"{{\cf2\chcbpat2 {ORDER}}}", "background-colour"),
        (rf"{{\cf2\highlight2 {ORDER}}}", "background-colour"),
        (rf"{{\charscalex1 {ORDER}}}", "zero-size"),
        (rf"{{\up3000 {ORDER}}}", "off-page"),
        (rf"{{\webhidden {ORDER}}}", "invisible-style"),
        (rf"{{\shp{{\*\shpinst\shpleft-30000{{\shptxt {ORDER}}}}}}}", "invisible-style"),
        (rf'{{\field{{\*\fldinst QUOTE "{ORDER}"}}{{\fldrslt a}}}}', "attribute"),
    ],
)
def test_what_a_rich_text_hides(tmp_path: Path, text: str, kind: str) -> None:
    assert found(tmp_path, rich(text), RTF) == (False, {kind})


@pytest.mark.parametrize(
    "text",
    [
        rf"{{\cf1\chcbpat2 {ORDER}}}", rf"{{\fs12 {ORDER}}}", rf"{{\charscalex80 {ORDER}}}",
        rf"{{\cf2 {ORDER}}}", rf"{{\up6 {ORDER}}}",
        rf"{{\shp{{\*\shpinst\shpleft300{{\shptxt {ORDER}}}}}}}",
    ],
)  # fmt: skip
def test_what_people_read_in_a_rich_text(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, rich(text), RTF) == (True, set())


def test_the_first_colour_of_a_rich_text_may_be_black(tmp_path: Path) -> None:
    data = rich(rf"{{\cf0 {ORDER}}}").replace(b"colortbl;", rb"colortbl\red0\green0\blue0;")
    assert found(tmp_path, data, RTF) == (True, set())


def rich(text: str) -> bytes:
    colours = r"{\colortbl;\red255\green255\blue255;\red17\green34\blue51;}"
    return rf"{{\rtf1\ansi{colours}An ordinary paragraph.\par {text}\par}}".encode()


PARTS = (
    "--B\r\nContent-Type: text/plain\r\n\r\nAn ordinary text\r\n--B\r\nContent-Type: text/plain\r\n"
    'Content-Disposition: attachment; filename="a.txt"\r\n{}\r\nx\r\n--B--\r\n'
)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (f"X-Any: {ORDER}\r\n", PARTS.format("")),
        (f"Comments: {ORDER}\r\n", PARTS.format("")),
        ("", PARTS.format(f"Content-Description: {ORDER}\r\n")),
        ("", f"{ORDER}\r\n{PARTS.format('')}"),
        ("", f"{PARTS.format('')}\r\n{ORDER}\r\n"),
    ],
)
def test_what_a_mail_says_in_its_heads_and_around_its_parts(
    tmp_path: Path, head: str, body: str
) -> None:
    mail = (
        f"From: a@b.example\r\nSubject: Hello\r\n{head}MIME-Version: 1.0\r\n"
        f'Content-Type: multipart/mixed; boundary="B"\r\n\r\n{body}'
    )
    assert found(tmp_path, mail.encode(), EML) == (False, {"metadata"})
