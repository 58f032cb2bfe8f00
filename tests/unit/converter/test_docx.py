"""Word documents by docling, with what it does not know prepared before."""

import io
import weakref
import zipfile
from pathlib import Path
from typing import Any

import docx
import pytest
from docx.enum.style import WD_STYLE_TYPE
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn
from lxml import etree
from PIL import Image

from contracts.artifacts import Place
from kernel.errors import Refusal
from services.converter.parsing import docx as docx_parser
from services.converter.parsing.docx import _parted, parse_docx
from services.converter.parsing.result import Parse
from services.converter.parsing.word_numbers import numeral
from services.converter.parsing.xml_paths import Paths
from services.converter.settings import ParseOptions


def parse(document: Any, tmp_path: Path) -> Parse:
    document.save(str(tmp_path / "a.docx"))
    return parse_docx(tmp_path / "a.docx", ParseOptions())


def element(tag: str, **attributes: str) -> Any:
    made = OxmlElement(tag)
    for name, value in attributes.items():
        made.set(qn(f"w:{name}"), value)
    return made


def numbered(document: Any, *levels: tuple[str, str]) -> None:
    """A list `77` whose levels have these forms and texts."""
    abstract = element("w:abstractNum", abstractNumId="77")
    for number, (form, text) in enumerate(levels):
        level = element("w:lvl", ilvl=str(number))
        level.append(element("w:start", val="1"))
        level.append(element("w:numFmt", val=form))
        level.append(element("w:lvlText", val=text))
        abstract.append(level)
    numbering = document.part.numbering_part.element
    numbering.insert(0, abstract)
    num = element("w:num", numId="77")
    num.append(element("w:abstractNumId", val="77"))
    numbering.append(num)


def item(document: Any, text: str, level: int, style: str | None = None) -> None:
    own = element("w:numPr")
    own.append(element("w:ilvl", val=str(level)))
    own.append(element("w:numId", val="77"))
    document.add_paragraph(text, style=style)._p.get_or_add_pPr().append(own)


def test_every_paragraph_and_row_has_its_path(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Глава", 1)
    document.add_paragraph("  two words  ")
    table = document.add_table(2, 2)
    for number, cell in enumerate(c for row in table.rows for c in row.cells):
        cell.text = f"cell {number}"
    parsed = parse(document, tmp_path).document
    assert parsed.markdown.startswith("## Глава\n\ntwo words\n\n| cell 0 | cell 1 |\n| - | - |\n")
    data = parsed.markdown.encode()
    with zipfile.ZipFile(tmp_path / "a.docx") as archive:
        root = etree.fromstring(archive.read("word/document.xml"))
    found = []
    for span in parsed.spans:
        assert span.place.part == "word/document.xml"
        (there,) = root.xpath(span.place.path or "", namespaces=root.nsmap)
        words = " ".join("".join(there.itertext()).split())
        text = data[span.byte_start : span.byte_end].decode()
        assert text.replace(" | ", "") == words
        found.append(text)
    assert found == ["Глава", "two words", "cell 0 | cell 1", "cell 2 | cell 3"]


def test_a_forged_mark_is_no_place(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("one")
    document.add_paragraph("t\ufde0\ufdd0\ufde1wo")
    parsed = parse(document, tmp_path).document
    assert parsed.markdown.rstrip() == "one\n\ntwo"
    assert len({span.place for span in parsed.spans}) == 2


def test_emphasis_stays_in_text_lists_links_and_cells(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("", 1).add_run("Bold head").bold = True
    paragraph = document.add_paragraph("see ")
    paragraph.add_run("this ").bold = True
    paragraph.add_run("and that").bold = True
    paragraph.add_run(", not 2*3*4")
    document.add_paragraph(style="List Bullet").add_run("item").italic = True
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ("Head", "Col", "plain", "strong"), strict=True):
        cell.paragraphs[0].add_run(text).bold = text != "plain"
    document.add_paragraph("Wise words.", style="Quote")
    document.add_paragraph("More | words.", style="Intense Quote")
    assert parse(document, tmp_path).document.markdown.split("\n\n") == [
        "## Bold head", "see **this and that**, not 2*3*4", "- *item*",
        "| Head | Col |\n| - | - |\n| plain | **strong** |",
        "> Wise words.\n>\n> More | words.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["Article 5 Scope", "§ 3", "2.1 Method", "IV. Results", "Abstract", "12"]
)
def test_a_bold_paragraph_that_may_be_a_heading_stays_plain(tmp_path: Path, text: str) -> None:
    document = docx.Document()
    document.add_paragraph().add_run(text).bold = True
    document.add_paragraph().add_run("Just loud").bold = True
    assert parse(document, tmp_path).document.markdown.split("\n\n") == [text, "**Just loud**"]


def test_notes_keep_their_emphasis_and_hide_what_is_hidden(tmp_path: Path) -> None:
    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    document = docx.Document()
    run = document.add_paragraph("text").add_run()
    run._r.append(element("w:footnoteReference", id="2"))
    document.save(str(tmp_path / "bare.docx"))
    note = (
        f'<w:footnotes {names}><w:footnote w:id="2"><w:p><w:r><w:t xml:space="preserve">see </w:t>'
        "</w:r><w:r><w:rPr><w:i/></w:rPr><w:t>Title</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr>"
        "<w:t>secret</w:t></w:r><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
        "</w:footnote></w:footnotes>"
    )
    with (
        zipfile.ZipFile(tmp_path / "bare.docx") as bare,
        zipfile.ZipFile(tmp_path / "a.docx", "w") as full,
    ):
        for name in bare.namelist():
            full.writestr(name, bare.read(name))
        full.writestr("word/footnotes.xml", note)
    found = parse_docx(tmp_path / "a.docx", ParseOptions()).document
    assert found.markdown.split("\n\n") == ["text[^2]", "[^2]: see *Title*"]
    shown = {(h.kind, h.text) for h in found.hidden}
    assert {("invisible-style", "secret"), ("tracked-change", "old")} <= shown


def test_tables_of_charts_have_no_padding() -> None:
    padded = "|      |   Ducks |\n|------|---------|\n| 2019 |     120 |\n| a \\| b |  |"
    assert _parted(padded) == "|  | Ducks |\n| - | - |\n| 2019 | 120 |\n| a \\| b |  |"


def test_places_hold_the_stars_of_their_text(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph().add_run("all bold").bold = True
    parsed = parse(document, tmp_path).document
    (span,) = parsed.spans
    assert parsed.markdown.encode()[span.byte_start : span.byte_end] == b"**all bold**"


def test_labels_that_are_words_stay_in_the_text(tmp_path: Path) -> None:
    document = docx.Document()
    numbered(document, ("decimal", "§ %1"), ("decimal", "%1.%2"), ("lowerLetter", "(%3)"))
    for text, level, style in (
        ("Scope", 0, "Heading 1"), ("First.", 1, None), ("letter", 2, None), ("letter", 2, None),
        ("Terms", 0, "Heading 1"), ("Second.", 1, None),
    ):  # fmt: skip
        item(document, text, level, style)
    assert parse(document, tmp_path).document.markdown.split("\n\n") == [
        "## § 1 Scope", "1.1 First.", "(a) letter", "(b) letter", "## § 2 Terms", "2.1 Second.",
    ]  # fmt: skip


def test_roman_headings_keep_their_numbers(tmp_path: Path) -> None:
    document = docx.Document()
    numbered(document, ("upperRoman", "%1."))
    for _ in range(4):
        item(document, "Part", 0, "Heading 1")
    assert "## IV. Part" in parse(document, tmp_path).document.markdown


def test_plain_lists_stay_lists(tmp_path: Path) -> None:
    document = docx.Document()
    numbered(document, ("decimal", "%1."), ("bullet", "•"))
    for text, level in (("a", 0), ("b", 1), ("c", 0)):
        item(document, text, level)
    assert parse(document, tmp_path).document.markdown.rstrip() == "1. a\n    - b\n2. c"


@pytest.mark.parametrize("name", ["Überschrift 2", "Заголовок 2", "Naslov 2", "Заглавие 2"])
def test_styles_of_headings_in_other_languages(tmp_path: Path, name: str) -> None:
    document = docx.Document()
    style = document.styles.add_style(name, WD_STYLE_TYPE.PARAGRAPH)
    document.add_paragraph("Topic", style=style)
    assert parse(document, tmp_path).document.markdown.rstrip() == "### Topic"


def test_a_table_after_a_list_stands_apart(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("item", style="List Bullet")
    document.add_table(1, 2).cell(0, 0).text = "cell"
    document.add_paragraph("item", style="List Bullet")
    markdown = parse(document, tmp_path).document.markdown
    assert "- item\n\n| cell |  |\n| - | - |\n\n- item" in markdown


def test_choices_and_ticks_of_forms_are_text(tmp_path: Path) -> None:
    document = docx.Document()
    run = document.add_paragraph("Choice: ").add_run()
    begin = element("w:fldChar", fldCharType="begin")
    data = element("w:ffData")
    choices = element("w:ddList")
    choices.append(element("w:result", val="1"))
    for text in ("red", "green"):
        choices.append(element("w:listEntry", val=text))
    data.append(choices)
    begin.append(data)
    run._r.append(begin)
    assert parse(document, tmp_path).document.markdown.rstrip() == "Choice: green"


def with_part(path: Path, body: bytes, parts: dict[str, bytes]) -> Path:
    """The container with `body` at the start of the document and more parts."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    main = entries["word/document.xml"]
    at = main.index(b"<w:body>") + len(b"<w:body>")
    entries["word/document.xml"] = main[:at] + body + main[at:]
    types = entries["[Content_Types].xml"]
    html = b'<Default Extension="html" ContentType="text/html"/></Types>'
    entries["[Content_Types].xml"] = types.replace(b"</Types>", html)
    relations = entries["word/_rels/document.xml.rels"]
    chunk = (
        b'<Relationship Id="chunk" Target="page.html" Type="http://schemas.openxmlformats.org/'
        b'officeDocument/2006/relationships/aFChunk"/></Relationships>'
    )
    if body:
        entries["word/_rels/document.xml.rels"] = relations.replace(b"</Relationships>", chunk)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in {**entries, **parts}.items():
            archive.writestr(name, data)
    path.write_bytes(buffer.getvalue())
    return path


def test_pages_put_into_a_document_are_part_of_it(tmp_path: Path) -> None:
    docx.Document().save(str(tmp_path / "a.docx"))
    body = (
        b'<w:altChunk xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/'
        b'relationships" r:id="chunk"/>'
    )
    page = (
        "<h1>Topic</h1><p>text<!-- c --></p><p hidden>unseen</p>"
        "<table><tr><td>a</td><td>b</td></tr></table>"
    )
    path = with_part(tmp_path / "a.docx", body, {"word/page.html": page.encode()})
    parsed = parse_docx(path, ParseOptions()).document
    assert parsed.markdown.rstrip() == "## Topic\n\ntext\n\n| a | b |\n| - | - |"
    assert {span.place for span in parsed.spans} == {Place(part="word/page.html")}


def test_texts_of_diagrams_are_paragraphs(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("after")
    document.save(str(tmp_path / "a.docx"))
    spaces = (
        b'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
        b'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
        b'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    )
    body = (
        b"<w:p><w:r><w:drawing><dgm:relIds " + spaces + b' r:dm="chunk"/></w:drawing></w:r></w:p>'
    )
    points = b"".join(b"<dgm:pt><a:t>%b</a:t></dgm:pt>" % text for text in (b"one", b"two"))
    data = b"<dgm:m " + spaces + b">" + points + b"</dgm:m>"
    path = with_part(tmp_path / "a.docx", body, {"word/page.html": data})
    parsed = parse_docx(path, ParseOptions()).document
    assert parsed.markdown.rstrip() == "one\n\ntwo\n\nafter"
    assert parsed.spans[0].place == Place(part="word/page.html")


def test_embedded_files_become_files_of_the_parse(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("text")
    document.save(str(tmp_path / "a.docx"))
    path = with_part(tmp_path / "a.docx", b"", {"word/embeddings/b.pdf": b"%PDF-1.4 x"})
    parsed = parse_docx(path, ParseOptions())
    assert [(file.name, file.data) for file in parsed.files] == [("b.pdf", b"%PDF-1.4 x")]


def test_a_document_of_files_only_names_them(tmp_path: Path) -> None:
    docx.Document().save(str(tmp_path / "a.docx"))
    path = with_part(tmp_path / "a.docx", b"", {"word/embeddings/b.pdf": b"%PDF-1.4 x"})
    assert parse_docx(path, ParseOptions()).document.markdown == "- b.pdf\n"


def test_a_document_type_behind_a_long_comment_is_refused(tmp_path: Path) -> None:
    document = docx.Document()
    document.save(str(tmp_path / "a.docx"))
    bomb = b"<!--" + b"x" * 70_000 + b'--><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
    path = with_part(tmp_path / "a.docx", b"", {"word/document.xml": bomb})
    with pytest.raises(Refusal) as refused:
        parse_docx(path, ParseOptions())
    assert refused.value.code == "corrupt-document"


@pytest.mark.parametrize(
    ("number", "form", "expected"),
    [
        (4, "lowerRoman", "iv"),
        (28, "upperLetter", "BB"),
        (3, "russianLower", "в"),
        (7, "decimalZero", "07"),
        (10**9, "upperRoman", "MMMMMMMMMCMXCIX"),
    ],
)
def test_numbers_of_word(number: int, form: str, expected: str) -> None:
    assert numeral(number, form) == expected


def test_no_picture_is_decoded_and_no_office_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from docling.backend import msword_backend

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("not to be called")

    document = docx.Document()
    picture = io.BytesIO()
    Image.new("RGB", (60, 40), "red").save(picture, "PNG")
    document.add_paragraph("before").add_run().add_picture(picture)
    drawing = (
        f"<w:drawing {nsdecls('w', 'wp', 'a')}><wp:inline><a:graphic/></wp:inline></w:drawing>"
    )
    document.add_paragraph("beside").add_run()._r.append(parse_xml(drawing))
    monkeypatch.setattr(msword_backend, "get_docx_to_pdf_converter", never)
    monkeypatch.setattr(msword_backend, "normalize_image_for_png", never)
    assert parse(document, tmp_path).document.markdown == "before\n\nbeside"


def test_heads_feet_and_comments_are_told_once_and_not_read_by_docling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from docling_core.types.doc.document import DoclingDocument

    added: list[str] = []
    add_text = DoclingDocument.add_text

    def counted(self: DoclingDocument, *args: Any, **more: Any) -> Any:
        added.append(more["text"])
        return add_text(self, *args, **more)

    monkeypatch.setattr(DoclingDocument, "add_text", counted)
    document = docx.Document()
    paragraph = document.add_paragraph("body")
    document.add_comment(paragraph.runs, text="a comment", author="A")
    document.sections[0].header.paragraphs[0].text = "a head"
    parsed = parse(document, tmp_path).document
    assert [word for word in added if "body" not in word] == []
    assert parsed.markdown == "body"
    assert {("comment", "a comment"), ("notes", "a head")} <= {
        (hidden.kind, hidden.text) for hidden in parsed.hidden
    }


W_NS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def inserted(kind: str, text: str) -> Any:
    """A run in a wrapper."""
    run = f"<w:r><w:t>{text}</w:t></w:r>"
    content = f"<w:sdtContent>{run}</w:sdtContent>" if kind == "sdt" else run
    return etree.fromstring(f"<w:{kind} {W_NS}>{content}</w:{kind}>")


@pytest.mark.parametrize("kind", ["ins", "smartTag", "customXml", "dir", "bdo", "moveTo", "sdt"])
def test_what_is_wrapped_around_words_is_open_in_text_and_in_cells(
    tmp_path: Path, kind: str
) -> None:
    document = docx.Document()
    document.add_paragraph("Der ")._p.append(inserted(kind, "Vertrag"))
    table = document.add_table(1, 2)
    table.cell(0, 1).text = "x"
    cell = table.cell(0, 0).paragraphs[0]
    cell.add_run("Die ")
    cell._p.append(inserted(kind, "Frist"))
    markdown = parse(document, tmp_path).document.markdown
    assert "Der Vertrag" in markdown
    assert "| Die Frist | x |" in markdown


_TICK = (
    f"<w:sdt {W_NS} xmlns:w14='http://schemas.microsoft.com/office/word/2010/wordml'>"
    "<w:sdtPr><w14:checkbox><w14:checked w14:val='{on}'/></w14:checkbox></w:sdtPr>"
    "<w:sdtContent><w:r><w:t>{sign}</w:t></w:r></w:sdtContent></w:sdt>"
)


def test_boxes_to_tick_in_cells_are_told_however_many_stand_there(tmp_path: Path) -> None:
    document = docx.Document()
    table = document.add_table(3, 1)
    tea, yes, no = ("1", "☒", "Tea"), ("1", "☒", "Yes"), ("0", "☐", "No")
    for row, lines in enumerate(([[tea], [no]], [[yes, no]], [[tea]])):
        cell = table.cell(row, 0)
        for number, answers in enumerate(lines):
            line = cell.add_paragraph() if number else cell.paragraphs[0]
            for on, sign, text in answers:
                line._p.append(etree.fromstring(_TICK.format(on=on, sign=sign)))
                line.add_run(f" {text} ")
    rows = parse(document, tmp_path).document.markdown.splitlines()
    assert rows[0].split() == ["|", "-", "[x]", "Tea", "-", "[", "]", "No", "|"]
    assert [row.split() for row in rows[2:]] == [
        ["|", "☒", "Yes", "☐", "No", "|"], ["|", "☒", "Tea", "|"],
    ]  # fmt: skip


def test_controls_around_rows_and_cells_and_tables_are_open(tmp_path: Path) -> None:
    document = docx.Document()
    table = document.add_table(2, 2)
    for number, cell in enumerate(table._cells):
        cell.text = f"c{number}"
    for around in (table.rows[1]._tr, table.cell(0, 1)._tc, table._tbl):
        control = etree.fromstring(f"<w:sdt {W_NS}><w:sdtContent/></w:sdt>")
        around.addprevious(control)
        control[0].append(around)
    assert "| c0 | c1 |\n| - | - |\n| c2 | c3 |" in parse(document, tmp_path).document.markdown


def test_a_deleted_row_is_no_row(tmp_path: Path) -> None:
    document = docx.Document()
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ("stays", "x", "goes", "y"), strict=True):
        cell.text = text
    properties = table.rows[1]._tr.get_or_add_trPr()
    properties.append(element("w:del", id="1", author="a"))
    found = parse(document, tmp_path).document
    assert found.markdown.strip() == "| stays | x |\n| - | - |"
    assert ("tracked-change", "goes y") in [(h.kind, h.text) for h in found.hidden]


def field(code: str, text: str) -> list[Any]:
    """The runs of a field."""
    parts = (
        '<w:fldChar w:fldCharType="begin"/>', f"<w:instrText>{code}</w:instrText>",
        '<w:fldChar w:fldCharType="separate"/>', f"<w:t>{text}</w:t>",
        '<w:fldChar w:fldCharType="end"/>',
    )  # fmt: skip
    return [etree.fromstring(f"<w:r {W_NS}>{part}</w:r>") for part in parts]


def test_a_field_that_leads_outside_is_a_link(tmp_path: Path) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("See ")._p
    for run in field('HYPERLINK "https://a.example/x" \\l "y"', "the law"):
        paragraph.append(run)
    for run in field('HYPERLINK \\l "bookmark"', "here"):
        paragraph.append(run)
    simple = document.add_paragraph("Or ")._p
    simple.append(
        etree.fromstring(
            f"<w:fldSimple {W_NS} w:instr=' HYPERLINK \"https://b.example\" '>"
            "<w:r><w:t>that</w:t></w:r></w:fldSimple>"
        )
    )
    markdown = parse(document, tmp_path).document.markdown
    assert "[the law](https://a.example/x#y)" in markdown
    assert "[that](https://b.example/)" in markdown
    assert "here" in markdown and "bookmark" not in markdown


def test_signs_of_symbol_fonts_are_characters(tmp_path: Path) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("A")
    for font, code in (("Symbol", "F061"), ("Wingdings", "F0E0"), ("Webdings", "F061")):
        sign = etree.fromstring(f'<w:r {W_NS}><w:sym w:font="{font}" w:char="{code}"/></w:r>')
        paragraph._p.append(sign)
    paragraph.add_run("\uf0b3x").font.name = "Symbol"
    assert parse(document, tmp_path).document.markdown == "Aα→≥x"


def test_a_style_based_on_that_of_headings_makes_headings(tmp_path: Path) -> None:
    document = docx.Document()
    red = document.styles.add_style("RedHeading2", WD_STYLE_TYPE.PARAGRAPH)
    red.base_style = document.styles["Heading 2"]
    redder = document.styles.add_style("Redder", WD_STYLE_TYPE.PARAGRAPH)
    redder.base_style = red
    document.add_heading("Teil", 1)
    document.add_paragraph("Frist", style="RedHeading2")
    document.add_paragraph("Form", style="Redder")
    markdown = parse(document, tmp_path).document.markdown
    levels = [line.split(" ") for line in markdown.split("\n") if line.startswith("#")]
    assert [text for _, text in levels] == ["Teil", "Frist", "Form"]
    assert len(levels[1][0]) == len(levels[2][0]) == len(levels[0][0]) + 1


@pytest.mark.parametrize(
    "address", ["http://", "https://[", "mailto:", "http://a b/|c", "https://%"]
)
def test_a_field_that_leads_nowhere_is_text(tmp_path: Path, address: str) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("See ")._p
    for run in field(f'HYPERLINK "{address}"', "the law"):
        paragraph.append(run)
    assert "the law" in parse(document, tmp_path).document.markdown


def test_a_link_that_leads_nowhere_is_text(tmp_path: Path) -> None:
    document = docx.Document()
    key = document.part.relate_to("https://[", RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    link = etree.fromstring(f"<w:hyperlink {W_NS}><w:r><w:t>the law</w:t></w:r></w:hyperlink>")
    link.set(qn("r:id"), key)
    document.add_paragraph("See ")._p.append(link)
    assert "the law" in parse(document, tmp_path).document.markdown


def test_a_table_without_a_grid_is_a_table(tmp_path: Path) -> None:
    document = docx.Document()
    table = document.add_table(2, 2)
    for number, cell in enumerate(table._cells):
        cell.text = f"c{number}"
    table._tbl.remove(table._tbl.tblGrid)
    table._tbl.remove(table._tbl.tblPr)
    assert "| c0 | c1 |\n| - | - |\n| c2 | c3 |" in parse(document, tmp_path).document.markdown


def test_a_link_into_a_page_leads_there(tmp_path: Path) -> None:
    document = docx.Document()
    target = "https://a.example/x"
    key = document.part.relate_to(target, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    link = etree.fromstring(f"<w:hyperlink {W_NS}><w:r><w:t>the law</w:t></w:r></w:hyperlink>")
    link.set(qn("r:id"), key)
    link.set(qn("w:anchor"), "art5")
    document.add_paragraph("See ")._p.append(link)
    assert "[the law](https://a.example/x#art5)" in parse(document, tmp_path).document.markdown


def test_links_in_cells_are_links(tmp_path: Path) -> None:
    document = docx.Document()
    table = document.add_table(2, 2)
    table.cell(0, 0).text, table.cell(0, 1).text, table.cell(1, 0).text = "a", "b", "c"
    target = "https://a.example/x_(y)|z"
    key = document.part.relate_to(target, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    link = etree.fromstring(
        f"<w:hyperlink {W_NS}><w:r><w:rPr><w:b/></w:rPr><w:t>the</w:t></w:r>"
        '<w:r><w:t xml:space="preserve"> law</w:t></w:r></w:hyperlink>'
    )
    link.set(qn("r:id"), key)
    table.cell(1, 1).paragraphs[0]._p.append(link)
    markdown = parse(document, tmp_path).document.markdown
    assert "| c | [**the** law](https://a.example/x_%28y%29%7Cz) |" in markdown


def test_readings_over_words_stand_in_brackets(tmp_path: Path) -> None:
    document = docx.Document()
    inner = "<w:{0}><w:r><w:t>{1}</w:t></w:r></w:{0}>"
    ruby = f"{inner.format('rt', 'kana')}{inner.format('rubyBase', 'kanji')}"
    run = etree.fromstring(f"<w:r {W_NS}><w:ruby>{ruby}</w:ruby></w:r>")
    document.add_paragraph("A ")._p.append(run)
    assert parse(document, tmp_path).document.markdown == "A kanji(kana)"


def test_the_tree_is_let_go_before_docling_makes_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[Paths]] = []
    convert = docx_parser._convert

    def noted(*args: Any) -> Paths:
        paths = Paths(*args)
        made.append(weakref.ref(paths))
        return paths

    def checked(content: io.BytesIO) -> str:
        assert [ref() for ref in made] == [None]
        return convert(content)

    monkeypatch.setattr(docx_parser, "Paths", noted)
    monkeypatch.setattr(docx_parser, "_convert", checked)
    document = docx.Document()
    document.add_paragraph("text")
    assert parse(document, tmp_path).document.markdown == "text"
