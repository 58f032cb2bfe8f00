"""OpenDocument texts, sheets and slides."""

import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from lxml import etree

from contracts.artifacts import ParsedDocument, Place
from kernel.errors import Refusal
from kernel.media import ODT, sniff
from services.converter.parsing.odf import points
from services.converter.parsing.odf_sheets import parse_ods
from services.converter.parsing.odf_slides import parse_odp
from services.converter.parsing.odf_text import parse_odt
from services.converter.settings import ParseOptions

_BASE = "urn:oasis:names:tc:opendocument:xmlns:"
SPACES = {
    "office": f"{_BASE}office:1.0",
    "text": f"{_BASE}text:1.0",
    "table": f"{_BASE}table:1.0",
    "draw": f"{_BASE}drawing:1.0",
    "style": f"{_BASE}style:1.0",
    "fo": f"{_BASE}xsl-fo-compatible:1.0",
    "svg": f"{_BASE}svg-compatible:1.0",
    "presentation": f"{_BASE}presentation:1.0",
    "meta": f"{_BASE}meta:1.0",
    "dc": "http://purl.org/dc/elements/1.1/",
}
NAMES = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in SPACES.items())
PARSERS = {"text": parse_odt, "spreadsheet": parse_ods, "presentation": parse_odp}


def content(kind: str, body: str, styles: str = "") -> str:
    return (
        f"<office:document-content {NAMES}><office:automatic-styles>{styles}"
        f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>"
    )


def parsed(
    tmp_path: Path,
    kind: str,
    body: str,
    styles: str = "",
    design: str = "",
    more: str = "",
    **objects: str,
) -> ParsedDocument:
    path = tmp_path / "a"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in objects.items():
            archive.writestr(f"{name.replace('_', ' ')}/content.xml", data)
        archive.writestr("content.xml", content(kind, body, styles))
        archive.writestr("styles.xml", f"<office:document-styles {NAMES}>{design}"
                         "</office:document-styles>")  # fmt: skip
        archive.writestr("meta.xml", f"<office:document-meta {NAMES}><office:meta>"
                         f"<dc:title>The title</dc:title>{more}</office:meta>"
                         "</office:document-meta>")  # fmt: skip
    return PARSERS[kind](path, ParseOptions()).document


def hidden(document: ParsedDocument, kind: str) -> list[str]:
    return [text for h in document.hidden if h.kind == kind for text in h.text.split("\n")]


# --- text ---------------------------------------------------------------------------------------


def test_headings_paragraphs_and_places(tmp_path: Path) -> None:
    body = (
        '<text:h text:outline-level="2">Глава # 1</text:h>'
        "<text:p>one<text:s/>two<text:line-break/># three <text:span>fo</text:span>ur</text:p>"
    )
    document = parsed(tmp_path, "text", body)
    assert document.markdown == "## Глава # 1\n\none two\n\\# three four\n"
    assert document.meta.title == "The title"
    root = etree.fromstring(content("text", body))
    for span in document.spans:
        assert span.place.part == "content.xml"
        assert len(root.xpath(span.place.path or "", namespaces=SPACES)) == 1


def test_the_title_has_the_first_level_and_headings_the_next_ones(tmp_path: Path) -> None:
    styles = (
        '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
        '<style:style style:name="P2" style:family="paragraph" style:parent-style-name="Own"/>'
    )
    design = (
        '<office:styles><style:style style:name="Title" style:family="paragraph"/>'
        '<style:style style:name="Own" style:display-name="Titel" style:family="paragraph"/>'
        '<style:style style:name="Subtitle" style:family="paragraph"'
        ' style:parent-style-name="Title"/></office:styles>'
    )
    body = (
        '<text:p text:style-name="{}">The <text:span># Law</text:span></text:p>'
        '<text:p text:style-name="Subtitle">of 1999</text:p>'
        '<text:h text:outline-level="1">One</text:h><text:h text:outline-level="2">Two</text:h>'
        '<text:p text:style-name="Title"/>'
    )
    shown = "# The # Law\n\nof 1999\n\n## One\n\n### Two\n"
    for name in ("Title", "P1", "P2"):
        assert parsed(tmp_path, "text", body.format(name), styles, design).markdown == shown
    # In a cell, or without text, it is no title, and nothing stands under it.
    cell = "<table:table><table:table-row><table:table-cell>{}</table:table-cell></table:table-row>"
    inner = cell.format('<text:p text:style-name="Title">x</text:p>') + "</table:table>"
    document = parsed(tmp_path, "text", inner + body.format("None"), styles, design)
    assert document.markdown.startswith("| x |") and "\n# One\n\n## Two\n" in document.markdown


def test_emphasis_quotations_and_what_is_crossed_out(tmp_path: Path) -> None:
    def style(name: str, family: str, text: str = "", parent: str = "") -> str:
        return (
            f'<style:style style:name="{name}" style:family="{family}"'
            f' style:parent-style-name="{parent}"><style:text-properties {text}/></style:style>'
        )

    styles = (
        style("T1", "text", 'fo:font-weight="bold"')
        + style("T2", "text", 'fo:font-style="italic"')
        + style("T3", "text", 'fo:font-weight="normal"')
        + style("T4", "text", 'style:text-line-through-style="solid"')
        + style("P1", "paragraph", 'fo:font-weight="bold"', "Standard")
        + style("P2", "paragraph", "", "Loud")
        + style("P3", "paragraph", "", "Quotations")
    )
    loud = style("Loud", "paragraph", 'fo:font-weight="bold"')
    design = f"<office:styles>{loud}{style('Quotations', 'paragraph')}</office:styles>"

    def span(name: str, text: str) -> str:
        return f'<text:span text:style-name="{name}">{text}</text:span>'

    def cell(text: str) -> str:
        return f"<table:table-cell><text:p>{text}</text:p></table:table-cell>"

    bold = span("T1", "b")
    body = (
        f"<text:h>{span('T1', 'Head')}</text:h>"
        f"<text:p>a {span('T1', 'bold ' + span('T2', 'both'))} {span('T4', 'gone')}</text:p>"
        f'<text:p text:style-name="P1">by hand {span("T3", "not")} this</text:p>'
        f'<text:p text:style-name="P2">by style {span("T2", "slanted")}</text:p>'
        '<text:p text:style-name="P3">wise<text:line-break/>words</text:p>'
        f"<text:list><text:list-item><text:p>{bold} item</text:p></text:list-item></text:list>"
        f"<table:table><table:table-row>{cell(bold)}{cell('c')}</table:table-row>"
        f"<table:table-row>{cell(bold)}{cell('x')}</table:table-row></table:table>"
    )
    assert parsed(tmp_path, "text", body, styles, design).markdown.split("\n\n") == [
        "# Head", "a **bold *both*** ~~gone~~", "**by hand** not **this**", "by style *slanted*",
        "> wise\n> words", "- **b** item", "| b | c |\n| - | - |\n| **b** | x |\n",
    ]  # fmt: skip


XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
CHART_NAMES = f'xmlns:chart="{_BASE}chart:1.0"'
CHART = (
    f"<office:document-content {NAMES} {CHART_NAMES}><office:body><office:chart><chart:chart>"
    "<chart:title><text:p>Sales | year</text:p></chart:title><table:table><table:table-rows>"
    + "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{c}</text:p></table:table-cell>" for c in row)
        + "</table:table-row>"
        for row in (("", "East"), ("Q1", "1.5"), ("Q2", "2"))
    )
    + "</table:table-rows></table:table></chart:chart></office:chart></office:body>"
    "</office:document-content>"
)
CHART_TEXT = "Sales | year\n\n|  | East |\n| - | - |\n| Q1 | 1.5 |\n| Q2 | 2 |\n"
FORMULA = (
    '<!DOCTYPE math:math><math:math xmlns:math="http://www.w3.org/1998/Math/MathML">'
    "<math:mfrac><math:mi>a</math:mi><math:mi>b</math:mi></math:mfrac>"
    '<math:annotation math:encoding="StarMath 5.0">a over b</math:annotation></math:math>'
)


def shown(name: str) -> str:
    return f'<draw:frame><draw:object {XLINK} xlink:href="./{name}"/></draw:frame>'


def test_charts_and_formulas_of_a_text(tmp_path: Path) -> None:
    body = f"<text:p>half {shown('Object 2')} of</text:p><text:p>{shown('Object 1')}</text:p>"
    document = parsed(tmp_path, "text", body, Object_1=CHART, Object_2=FORMULA)
    assert document.markdown == f"half a/b of\n\n{CHART_TEXT}"
    assert all(span.place.path for span in document.spans)


def test_charts_of_a_sheet(tmp_path: Path) -> None:
    row = "<table:table-row><table:table-cell><text:p>{}</text:p>{}</table:table-cell>"
    rows = (
        f"{row.format('a', shown('Object 1'))}<table:table-cell><text:p>b</text:p>"
        "</table:table-cell></table:table-row>"
    )
    body = f'<table:table table:name="One">{rows}</table:table>'
    body += '<table:table table:name="Two"/>'
    document = parsed(tmp_path, "spreadsheet", body, Object_1=CHART)
    assert document.markdown == f"## One\n\n| a | b |\n| - | - |\n\n{CHART_TEXT}"


def test_a_damaged_object_is_left_out(tmp_path: Path) -> None:
    body = f"<text:p>text</text:p><text:p>{shown('Object 1')}</text:p>"
    assert parsed(tmp_path, "text", body, Object_1=CHART[:200]).markdown == "text\n"


def test_links_lead_outside(tmp_path: Path) -> None:
    names = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
    link = f'<text:a {names} xlink:href="https://a.b/c">the <text:span>page</text:span></text:a>'
    body = (
        f"<text:h>{link}</text:h><text:p>see {link}, not "
        f'<text:a {names} xlink:href="#inside">here</text:a></text:p>'
    )
    assert parsed(tmp_path, "text", body).markdown == (
        "# the page\n\nsee [the page](https://a.b/c), not here\n"
    )


def test_headings_have_the_numbers_of_the_outline(tmp_path: Path) -> None:
    levels = "".join(
        f'<text:outline-level-style text:level="{n}" style:num-format="1" style:num-suffix="."'
        f' text:display-levels="{n}"/>'
        for n in (1, 2)
    )
    design = f"<office:styles><text:outline-style>{levels}</text:outline-style></office:styles>"
    styles = (
        '<style:style style:name="H" style:family="paragraph" style:default-outline-level="1"/>'
    )
    body = "".join(
        f'<text:h text:style-name="H" text:outline-level="{level}">{text}</text:h>'
        for level, text in ((1, "a"), (2, "b"), (2, "c"), (1, "d"), (2, "e"))
    )
    body += '<text:h text:outline-level="1">plain</text:h>'
    document = parsed(tmp_path, "text", body, styles, design)
    assert document.markdown == (
        "# 1. a\n\n## 1.1. b\n\n## 1.2. c\n\n# 2. d\n\n## 2.1. e\n\n# plain\n"
    )


def test_lists_nest_and_count(tmp_path: Path) -> None:
    styles = (
        '<text:list-style style:name="L"><text:list-level-style-number text:level="1"'
        ' style:num-format="1" text:start-value="3"/>'
        '<text:list-level-style-bullet text:level="2"/></text:list-style>'
    )
    body = (
        '<text:list text:style-name="L"><text:list-item><text:p>a</text:p><text:list>'
        "<text:list-item><text:p>b</text:p></text:list-item></text:list></text:list-item>"
        "<text:list-item><text:p>c</text:p></text:list-item></text:list>"
    )
    assert parsed(tmp_path, "text", body, styles).markdown == "3. a\n    - b\n4. c\n"


def test_tables_repeat_merged_cells(tmp_path: Path) -> None:
    def cell(text: str, more: str = "") -> str:
        return f"<table:table-cell {more}><text:p>{text}</text:p></table:table-cell>"

    covered = "<table:covered-table-cell/>"
    two = 'table:number-columns-spanned="2" table:number-rows-spanned="2"'
    rows = (cell("h|1") + cell("h2") + cell("h3"), cell("m", two) + covered + cell("x"),
            covered + covered + cell("y"))  # fmt: skip
    body = "<table:table>" + "".join(f"<table:table-row>{r}</table:table-row>" for r in rows)
    document = parsed(tmp_path, "text", body + "</table:table>")
    assert document.markdown == (
        "| h\\|1 | h2 | h3 |\n| - | - | - |\n| m | m | x |\n| m | m | y |\n"
    )
    assert len(document.spans) == 3


def test_footnotes_stand_at_the_end(tmp_path: Path) -> None:
    note = (
        '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation>'
        '<text:note-body><text:p>the <text:span text:style-name="B">note</text:span></text:p>'
        "<text:p>goes on</text:p></text:note-body></text:note>"
    )
    bold = (
        '<style:style style:name="B" style:family="text">'
        '<style:text-properties fo:font-weight="bold"/></style:style>'
    )
    document = parsed(tmp_path, "text", f"<text:p>word{note} more</text:p>", bold)
    assert document.markdown == "word[^1] more\n\n[^1]: the **note** goes on\n"


def test_the_unseen_of_a_text_is_for_the_scanner(tmp_path: Path) -> None:
    def style(name: str, properties: str) -> str:
        return (
            f'<style:style style:name="{name}" style:family="text">'
            f"<style:text-properties {properties}/></style:style>"
        )

    styles = (
        style("off", 'text:display="none"') + style("white", 'fo:color="#ffffff"')
        + style("dark", 'fo:color="#ffffff" fo:background-color="#000000"')
        + style("tiny", 'fo:font-size="1pt"')
    )  # fmt: skip
    body = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>deleted</text:p>"
        "</text:deletion></text:changed-region></text:tracked-changes>"
        "<text:table-of-content><text:index-body><text:p>Contents 1</text:p></text:index-body>"
        '</text:table-of-content><text:section text:display="none"><text:p>section</text:p>'
        "</text:section><text:p>seen"
        "<office:annotation><text:p>remark</text:p></office:annotation>"
        + "".join(f'<text:span text:style-name="{n}"> {n}</text:span>'
                  for n in ("off", "white", "dark", "tiny"))
        + "<draw:frame><svg:desc>picture</svg:desc><draw:text-box><text:p>box</text:p>"
        "</draw:text-box></draw:frame></text:p>"
    )  # fmt: skip
    design = "<style:master-page><style:header><text:p>head</text:p></style:header>" \
             "</style:master-page>"  # fmt: skip
    document = parsed(tmp_path, "text", body, styles, design)
    assert document.markdown == "seen dark\n\nbox\n"
    assert hidden(document, "tracked-change") == ["deleted"]
    assert hidden(document, "invisible-style") == ["section", "off"]
    assert hidden(document, "background-colour") == ["white"]
    assert hidden(document, "zero-size") == ["tiny"]
    assert hidden(document, "comment") == ["remark"]
    assert hidden(document, "alt-text") == ["picture"]
    assert hidden(document, "notes") == ["head"]


# --- sheets -------------------------------------------------------------------------------------


def value(text: str, more: str = "") -> str:
    return f"<table:table-cell {more}><text:p>{text}</text:p></table:table-cell>"


def row(cells: str, more: str = "") -> str:
    return f"<table:table-row {more}>{cells}</table:table-row>"


def sheet(rows: str, more: str = 'table:name="S"') -> str:
    return f"<table:table {more}>{rows}</table:table>"


def test_a_sheet_with_dates_numbers_and_merged_cells(tmp_path: Path) -> None:
    rows = (
        row(value("name") + value("day") + value("share"))
        + row(value("a", 'table:number-rows-spanned="2"')
              + value("1.3.24", 'office:value-type="date" office:date-value="2024-03-01"')
              + value("50 %", 'office:value-type="percentage" office:value="0.5"'))
        + row("<table:covered-table-cell/>"
              + value("7:30", 'office:value-type="time" office:time-value="PT07H30M00S"')
              + value("1,5", 'office:value-type="float" office:value="1.5"'))
        + row('<table:table-cell table:number-columns-repeated="16384"/>',
              'table:number-rows-repeated="1048572"')
    )  # fmt: skip
    document = parsed(tmp_path, "spreadsheet", sheet(rows))
    assert document.markdown == (
        "## S\n\n| name | day | share |\n| - | - | - |\n| a | 2024-03-01 | 50 % |\n"
        "| a | 07:30:00 | 1.5 |\n"
    )
    assert document.spans[2].place == Place(sheet="S", cells="A2:C2")


def test_repeated_cells_are_bounded(tmp_path: Path) -> None:
    many = value("x", 'table:number-columns-repeated="16384"')
    rows = row(many, 'table:number-rows-repeated="1048576"') + row(value("end"))
    document = parsed(tmp_path, "spreadsheet", sheet(rows))
    assert document.markdown.count("x") == 256_000
    assert document.spans[-1].place.cells == "A1048577"


def test_the_unseen_of_a_sheet_is_for_the_scanner(tmp_path: Path) -> None:
    styles = (
        '<style:style style:name="off" style:family="table">'
        '<style:table-properties table:display="false"/></style:style>'
    )
    remark = "<office:annotation><text:p>remark</text:p></office:annotation>"
    seen = sheet(
        '<table:table-column/><table:table-column table:visibility="collapse"/>'
        + row(value("a") + value("column")) + row(value("row"), 'table:visibility="filter"')
        + row(f"<table:table-cell>{remark}<text:p>b</text:p></table:table-cell>")
    )  # fmt: skip
    unseen = sheet(row(value("secret")), 'table:name="H" table:style-name="off"')
    document = parsed(tmp_path, "spreadsheet", seen + unseen, styles)
    assert document.markdown == "## S\n\na\n\nb\n"
    assert set(hidden(document, "invisible-style")) == {"column", "row", "secret"}
    assert hidden(document, "comment") == ["remark"]


# --- slides -------------------------------------------------------------------------------------


def frame(text: str, more: str = "", x: str = "1in") -> str:
    return (
        f'<draw:frame svg:x="{x}" svg:y="1in" svg:width="2in" svg:height="1in" {more}>'
        f"<draw:text-box>{text}</draw:text-box></draw:frame>"
    )


def test_slides_are_sections(tmp_path: Path) -> None:
    design = (
        "<style:page-layout><style:page-layout-properties fo:page-width='10in'"
        " fo:page-height='7in'/></style:page-layout>"
    )
    styles = (
        '<style:style style:name="off" style:family="drawing-page">'
        '<style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    )
    first = (
        "<draw:page>" + frame("<text:p>body</text:p>") + frame("<text:p>far</text:p>", x="20in")
        + frame("<text:p>Title</text:p>", 'presentation:class="title"')
        + "<presentation:notes>" + frame("<text:p>note</text:p>") + "</presentation:notes>"
        "</draw:page>"
    )  # fmt: skip
    second = '<draw:page draw:style-name="off">' + frame("<text:p>secret</text:p>") + "</draw:page>"
    document = parsed(tmp_path, "presentation", first + second, styles, design)
    assert document.markdown == "# Title\n\nbody\n"
    assert document.meta.pages == 2
    assert document.spans[0].place == Place(page=1, box=(72, 72, 216, 144))
    assert hidden(document, "notes") == ["note"]
    assert hidden(document, "off-page") == ["far"]
    assert hidden(document, "invisible-style") == ["secret"]


def test_lengths_are_points() -> None:
    assert points("2in") == 144
    assert points("10mm") == pytest.approx(28.35, abs=0.01)
    assert points("50%") is points(None) is None


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"content.xml": "<x"}, "corrupt-document"),
        ({"content.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'}, "corrupt-document"),
        ({"other.xml": "<x/>"}, "corrupt-document"),
        (
            {"content.xml": "?", "META-INF/manifest.xml": "<m><encryption-data/></m>"},
            "encrypted-document",
        ),
    ],
)
def test_bad_containers_are_refused(
    tmp_path: Path, kind: str, files: dict[str, str], code: str
) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(Refusal) as refused:
        PARSERS[kind](tmp_path / "a", ParseOptions())
    assert refused.value.code == code


@pytest.mark.parametrize("kind", PARSERS)
def test_a_document_without_text_is_empty(tmp_path: Path, kind: str) -> None:
    with pytest.raises(Refusal) as refused:
        parsed(tmp_path, kind, "")
    assert refused.value.code == "empty-document"


def test_a_text_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        parsed(tmp_path, "text", "<text:section>" * 220 + "</text:section>" * 220)
    assert refused.value.code == "too-deep"


def test_raised_numbers_stay_apart_from_those_before(tmp_path: Path) -> None:
    styles = "".join(
        f'<style:style style:name="{name}" style:family="text">'
        f'<style:text-properties style:text-position="{told} 58%"/></style:style>'
        for name, told in (("U", "super"), ("V", "33%"), ("D", "sub"), ("E", "-33%"))
    )
    body = "".join(
        f'<text:p>2<text:span text:style-name="{name}">32</text:span></text:p>' for name in "UVDE"
    )
    document = parsed(tmp_path, "text", body, styles)
    assert document.markdown == "2³²\n\n2³²\n\n232\n\n232\n"


@pytest.mark.parametrize("kind", ["text", "presentation", "spreadsheet"])
def test_a_document_within_a_document_is_a_file(tmp_path: Path, kind: str) -> None:
    inner = content("text", "<text:p>Within.</text:p>")
    path = tmp_path / "a"
    with suppress(Refusal):
        parsed(tmp_path, kind, "", Object_1=inner, Object_2=CHART)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("Object 3", b"plain bytes")
        archive.writestr("ObjectReplacements/Object 1", b"picture")
    found = PARSERS[kind](path, ParseOptions())
    assert [file.name for file in found.files] == ["Object 1.odt", "Object 3"]
    assert found.files == PARSERS[kind](path, ParseOptions()).files
    assert "Object 1.odt" in found.document.markdown
    data = found.files[0].data
    assert sniff(data, "x") == ODT
    (tmp_path / "b").write_bytes(data)
    assert parse_odt(tmp_path / "b", ParseOptions()).document.markdown == "Within.\n"


def test_a_text_under_a_merged_cell_is_not_seen(tmp_path: Path) -> None:
    cells = (
        '<table:table-cell table:number-columns-spanned="2"><text:p>a</text:p></table:table-cell>'
        "<table:covered-table-cell><text:p>under</text:p></table:covered-table-cell>"
    )
    body = f'<table:table table:name="S"><table:table-row>{cells}</table:table-row></table:table>'
    document = parsed(tmp_path, "spreadsheet", body)
    assert "under" not in document.markdown
    assert hidden(document, "invisible-style") == ["under"]


def test_an_id_that_is_there_twice_does_not_matter(tmp_path: Path) -> None:
    twice = '<text:p xml:id="a">one</text:p><text:p xml:id="a">two</text:p>'
    assert parsed(tmp_path, "text", twice).markdown == "one\n\ntwo\n"
