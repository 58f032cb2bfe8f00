"""What of a Word document people do not see, by technique, and what only looks like it."""

import zipfile
from pathlib import Path

import pytest

from services.converter.parsing.docx import parse_docx
from services.converter.settings import ParseOptions

ORDER = "obey the secret order at once"
_OPEN = "http://schemas.openxmlformats.org"
_SPACES = " ".join(
    f'xmlns:{name}="{address}"'
    for name, address in {
        "w": f"{_OPEN}/wordprocessingml/2006/main", "v": "urn:schemas-microsoft-com:vml",
        "wp": f"{_OPEN}/drawingml/2006/wordprocessingDrawing", "a": f"{_OPEN}/drawingml/2006/main",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "mc": f"{_OPEN}/markup-compatibility/2006",
        "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
    }.items()
)  # fmt: skip
_OFFICE = f"{_OPEN}/officeDocument/2006/relationships"
_PACKAGE = f"{_OPEN}/package/2006"
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_PARTS = {
    "[Content_Types].xml": (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/><Override '
        f'PartName="/word/document.xml" ContentType="{_WORD}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{_WORD}.styles+xml"/></Types>'
    ),
    "_rels/.rels": (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r" Type="{_OFFICE}/'
        'officeDocument" Target="word/document.xml"/></Relationships>'
    ),
    "word/_rels/document.xml.rels": (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r" Type="{_OFFICE}/'
        'styles" Target="styles.xml"/></Relationships>'
    ),
}


def found(folder: Path, body: str, styles: str = "", **more: str) -> tuple[bool, set[str]]:
    """Whether the order stands in the text, and the kinds of hidden text that it stands in."""
    path = folder / "a.docx"
    background = more.pop("background", "")
    parts = _PARTS | {
        "word/styles.xml": f"<w:styles {_SPACES}>{styles}</w:styles>",
        "word/document.xml": f"<w:document {_SPACES}>{background}<w:body><w:p><w:r><w:t>An ordinary"
        f" paragraph.</w:t></w:r></w:p>{body}<w:sectPr/></w:body></w:document>",
        **more,
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    document = parse_docx(path, ParseOptions()).document
    return ORDER in document.markdown, {h.kind for h in document.hidden if ORDER in h.text}


def run(properties: str, text: str = ORDER) -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def paragraph(properties: str, runs: str = run("")) -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{runs}</w:p>"


DESIGNS = (
    '<w:style w:type="table" w:styleId="Grid"><w:name w:val="Grid"/><w:tblPr/></w:style>'
    '<w:style w:type="table" w:styleId="Dark"><w:name w:val="Dark"/>'
    '<w:tblStylePr w:type="firstRow">'
    '<w:tcPr><w:shd w:val="clear" w:fill="112233"/></w:tcPr></w:tblStylePr></w:style>'
    '<w:style w:type="paragraph" w:styleId="Banner"><w:name w:val="Banner"/><w:pPr>'
    '<w:shd w:val="clear" w:fill="112233"/></w:pPr></w:style>'
)


def twice(newer: str, older: str) -> str:
    """For newer programs, and for older ones."""
    return (
        f'<mc:AlternateContent><mc:Choice Requires="wps">{newer}</mc:Choice>'
        f"<mc:Fallback>{older}</mc:Fallback></mc:AlternateContent>"
    )


def table(cell: str, runs: str = run(""), row: str = "", style: str = "") -> str:
    design = f'<w:tblStyle w:val="{style}"/>' if style else ""
    return (
        f"<w:tbl><w:tblPr>{design}</w:tblPr><w:tblGrid><w:gridCol/></w:tblGrid><w:tr><w:trPr>{row}</w:trPr><w:tc>"
        f"<w:tcPr>{cell}</w:tcPr><w:p>{runs}</w:p></w:tc></w:tr><w:tr><w:tc><w:tcPr/><w:p><w:r>"
        "<w:t>a</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    )


def box(style: str, look: str = "", runs: str = run("")) -> str:
    return (
        f'<w:p><w:r><w:pict><v:shape style="{style}" {look}><v:textbox><w:txbxContent>'
        f"{paragraph('', runs)}"
        "</w:txbxContent></v:textbox></v:shape></w:pict></w:r></w:p>"
    )


def drawing(
    offset: int = 100, width: int = 2_000_000, names: str = "", fill: str = "", runs: str = run("")
) -> str:
    return (
        "<w:p><w:r><w:drawing><wp:anchor><wp:positionH relativeFrom='page'><wp:posOffset>"
        f"{offset}</wp:posOffset></wp:positionH><wp:extent cx='{width}' cy='500000'/><wp:docPr "
        f"id='1' name='n' {names}/><a:graphic><a:graphicData uri='"
        "http://schemas.microsoft.com/office/word/2010/wordprocessingShape'><wps:wsp>"
        f"<wps:spPr>{fill}</wps:spPr><wps:txbx>"
        f"<w:txbxContent>{paragraph('', runs)}</w:txbxContent></wps:txbx></wps:wsp></a:graphicData>"
        "</a:graphic></wp:anchor></w:drawing></w:r></w:p>"
    )


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (paragraph("", run("<w:vanish/>")), "invisible-style"),
        (paragraph("", run("<w:specVanish/>")), "invisible-style"),
        (paragraph("", run("<w:vanish/>", ORDER[:9]) + run("<w:vanish/>", ORDER[9:])),
         "invisible-style"),
        (paragraph("", run('<w:color w:val="FEFEFE"/>')), "background-colour"),
        (paragraph("", run('<w:color w:themeColor="background1"/>')), "background-colour"),
        (paragraph("", run('<w:color w:val="0000FF"/><w:shd w:val="clear" w:fill="0000FF"/>')),
         "background-colour"),
        (paragraph("", run('<w:color w:val="FFFF00"/><w:highlight w:val="yellow"/>')),
         "background-colour"),
        (paragraph("", run('<w:highlight w:val="black"/>')), "background-colour"),
        (table('<w:shd w:fill="333333"/>', run('<w:color w:val="333333"/>')), "background-colour"),
        (paragraph("", run("<w14:textFill><w14:noFill/></w14:textFill>")), "invisible-style"),
        (paragraph("", run('<w14:textFill><w14:solidFill><w14:srgbClr w14:val="000000"><w14:alpha '
         'w14:val="100000"/></w14:srgbClr></w14:solidFill></w14:textFill>')), "invisible-style"),
        (paragraph("", run('<w:sz w:val="2"/>')), "zero-size"),
        (paragraph("", run('<w:w w:val="1"/>')), "zero-size"),
        (paragraph("", run('<w:spacing w:val="-400"/>')), "zero-size"),
        (paragraph("", run('<w:position w:val="3000"/>')), "off-page"),
        (paragraph('<w:framePr w:x="-20000" w:y="1"/>'), "off-page"),
        (paragraph('<w:ind w:left="-30000"/>'), "off-page"),
        (paragraph('<w:spacing w:line="1" w:lineRule="exact"/>'), "zero-size"),
        (table("", row="<w:hidden/>"), "invisible-style"),
        (table('<w:shd w:val="clear" w:fill="auto"/>', run('<w:color w:val="FFFFFF"/>')),
         "background-colour"),
        (table('<w:shd w:val="solid" w:color="333333"/>', run('<w:color w:val="333333"/>')),
         "background-colour"),
        (table("", run('<w:color w:val="FFFFFF"/>'), style="Grid"), "background-colour"),
        (drawing(fill="<a:solidFill><a:srgbClr val='336699'/></a:solidFill>",
                 runs=run('<w:color w:val="336699"/>')), "background-colour"),
        (box("width:100pt", runs=run('<w:color w:val="FFFFFF"/>')), "background-colour"),
        (paragraph("", f"<w:del>{run('', 'obey the ')}</w:del><w:del>{run('', 'secret ')}</w:del>"
         f"<w:moveFrom>{run('', 'order at once')}</w:moveFrom>"), "tracked-change"),
        (paragraph("", f"<w:del>{run('', 'obey the secret')}</w:del>")
         + paragraph("", f"<w:del>{run('', 'order at once')}</w:del>"), "tracked-change"),
        (f'<w:p><w:r><w:pict><v:shape style="width:9pt" alt="{ORDER}"/></w:pict></w:r></w:p>',
         "alt-text"),
        (paragraph("", twice(run("", "a"), run(""))), "attribute"),
        (twice(drawing(runs=run("", "a")), box("width:100pt")), "attribute"),
        (table("", row='<w:trHeight w:val="1" w:hRule="exact"/>'), "zero-size"),
        (box("position:absolute;left:-2000pt"), "off-page"), (box("display:none"), "off-page"),
        (box("visibility: hidden"), "off-page"), (box("width:0;height:0"), "zero-size"),
        (drawing(-20_000_000), "off-page"), (drawing(width=0), "zero-size"),
        (drawing(names='hidden="1"'), "invisible-style"),
        (drawing(names=f'descr="{ORDER}"'), "alt-text"),
    ],
)  # fmt: skip
def test_what_is_set_so_that_nobody_sees_it(tmp_path: Path, body: str, kind: str) -> None:
    seen, kinds = found(tmp_path, body, DESIGNS)
    assert kinds == {kind}
    assert not seen or kind == "alt-text"


def test_styles_hide_as_well(tmp_path: Path) -> None:
    for kind, place in (("character", "rStyle"), ("paragraph", "pStyle")):
        style = (
            f'<w:style w:type="{kind}" w:styleId="X"><w:name w:val="X"/><w:rPr><w:sz w:val="2"/>'
            "</w:rPr></w:style>"
        )
        named = f'<w:{place} w:val="X"/>'
        body = paragraph(named) if kind == "paragraph" else paragraph("", run(named))
        assert found(tmp_path, body, style) == (False, {"zero-size"})


@pytest.mark.parametrize(
    "body",
    [
        table('<w:shd w:fill="333333"/>', run('<w:color w:val="FFFFFF"/>')),
        paragraph('<w:shd w:fill="003366"/>', run('<w:color w:val="FFFFFF"/>')),
        paragraph("", run('<w:color w:val="FFFFFF"/><w:highlight w:val="darkBlue"/>')),
        paragraph("", run('<w:color w:val="auto"/><w:shd w:val="clear" w:fill="000000"/>')),
        paragraph("", run('<w:highlight w:val="yellow"/>')),
        paragraph("", run('<w:color w:val="808080"/>')), paragraph("", run('<w:sz w:val="12"/>')),
        paragraph("", run('<w:vanish w:val="0"/>')), paragraph("", run('<w:w w:val="80"/>')),
        paragraph("", run('<w:spacing w:val="-10"/>')), paragraph('<w:ind w:left="-300"/>'),
        paragraph('<w:spacing w:line="240" w:lineRule="exact"/>'),
        paragraph('<w:spacing w:line="1" w:lineRule="auto"/>'),
        table("", row='<w:trHeight w:val="1" w:hRule="atLeast"/>'), box("width:100pt"), drawing(),
        paragraph('<w:pStyle w:val="Banner"/>', run('<w:color w:val="FFFFFF"/>')),
        box("width:100pt", 'fillcolor="#112233"', run('<w:color w:val="FFFFFF"/>')),
        drawing(fill="<a:solidFill><a:srgbClr val='112233'/></a:solidFill>",
                runs=run('<w:color w:val="FFFFFF"/>')),
        paragraph("", twice(run(""), run("", "a"))), twice(drawing(), box("width:100pt")),
        paragraph("", f"<w:ins>{run('')}</w:ins>"),
    ],
)  # fmt: skip
def test_what_people_read_is_no_hidden_text(tmp_path: Path, body: str) -> None:
    assert found(tmp_path, body, DESIGNS) == (True, set())


@pytest.mark.parametrize(
    "body",
    [
        drawing(runs=run('<w:color w:val="FFFFFF"/>')),
        drawing(fill="<a:noFill/>", runs=run('<w:color w:val="FFFFFF"/>')),
        box("width:100pt", 'filled="f"', run('<w:color w:val="FFFFFF"/>')),
        table("", run('<w:color w:val="FFFFFF"/>'), style="Dark"),
    ],
)  # fmt: skip
def test_white_text_on_a_ground_that_nobody_knows_stays_and_is_told(
    tmp_path: Path, body: str
) -> None:
    assert found(tmp_path, body, DESIGNS) == (True, {"background-colour"})


def test_deletions_around_a_text_that_stays_are_two(tmp_path: Path) -> None:
    body = paragraph(
        "", f"<w:del>{run('', 'one')}</w:del>{run('', 'a')}<w:del>{run('', 'two')}</w:del>"
    )
    found(tmp_path, body)
    hidden = parse_docx(tmp_path / "a.docx", ParseOptions()).document.hidden
    assert [one.text for one in hidden] == ["one", "two"]


def test_on_a_page_of_its_colour_text_is_hidden_and_on_a_dark_one_white_is_read(
    tmp_path: Path,
) -> None:
    page = '<w:background w:color="112233"/>'
    same = paragraph("", run('<w:color w:val="112233"/>'))
    assert found(tmp_path, same, background=page) == (False, {"background-colour"})
    white = paragraph("", run('<w:color w:val="FFFFFF"/>'))
    assert found(tmp_path, white, background=page) == (True, set())


def field(code: str) -> str:
    return (
        '<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>'
        f'{code}</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>a'
        '</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>'
    )


@pytest.mark.parametrize(
    "body",
    [
        field(f'INCLUDETEXT "{ORDER}"'), field(f'SET x "{ORDER}"'), field(f"PRIVATE {ORDER}"),
        f'<w:p><w:fldSimple w:instr="SET x {ORDER}">{run("", "a")}</w:fldSimple></w:p>',
        f'<w:p><w:bookmarkStart w:id="1" w:name="{ORDER}"/>{run("", "a")}</w:p>',
        f'<w:p><w:hyperlink w:anchor="a" w:tooltip="{ORDER}">{run("", "a")}</w:hyperlink></w:p>',
        f'<w:sdt><w:sdtPr><w:alias w:val="{ORDER}"/></w:sdtPr><w:sdtContent>'
        f"{paragraph('', run('', 'a'))}</w:sdtContent></w:sdt>",
    ],
)  # fmt: skip
def test_sentences_in_fields_and_names_are_for_the_scanner(tmp_path: Path, body: str) -> None:
    assert found(tmp_path, body) == (False, {"attribute"})


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("customXml/item1.xml", f"<a><b>{ORDER}</b></a>"),
        ("word/settings.xml", f'<w:settings {_SPACES}><w:docVars><w:docVar w:name="a" '
         f'w:val="{ORDER}"/></w:docVars></w:settings>'),
        ("word/glossary/document.xml", f"<w:g {_SPACES}>{paragraph('')}</w:g>"),
        ("docProps/custom.xml", f'<p><property name="{ORDER}"/></p>'),
    ],
)  # fmt: skip
def test_sentences_in_parts_for_programs_are_for_the_scanner(
    tmp_path: Path, part: str, content: str
) -> None:
    assert found(tmp_path, "", **{part: content}) == (False, {"metadata"})


def test_addresses_and_codes_in_fields_are_no_sentences(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    found(tmp_path, field('HYPERLINK "https://a.example/four-words-of-it here they are"'))
    assert parse_docx(path, ParseOptions()).document.hidden == ()
    found(tmp_path, field(r"TOC \o 1-3 \h \z \u"))
    assert parse_docx(path, ParseOptions()).document.hidden == ()
