"""Hidden text in Word's markup."""

from typing import Any

import pytest
from lxml import etree

from kernel.errors import Refusal
from services.converter.parsing import wordml
from services.converter.parsing.looks import resolved
from services.converter.parsing.wordml import Styles, W, clean, notes, parse_xml, text_of, value

NS = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)


def document(body: str) -> Any:
    return parse_xml(f"<w:document {NS}><w:body>{body}</w:body></w:document>".encode())


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def cleaned(body: str, styles: str = "", footnotes: dict[str, str] | None = None) -> Any:
    root = document(body)
    sheet = parse_xml(f"<w:styles {NS}>{styles}</w:styles>".encode())
    hidden = clean(root, Styles(sheet), footnotes or {})
    return text_of(root), [(h.kind, h.text) for h in hidden]


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ("<w:vanish/>", "invisible-style"),
        ('<w:color w:val="FFFFFF"/>', "background-colour"),
        ('<w:color w:val="FAFAFA"/>', "background-colour"),
        ('<w:sz w:val="2"/>', "zero-size"),
        ('<w:rStyle w:val="Ghost"/>', "invisible-style"),
    ],
)
def test_hidden_runs_are_taken_out(properties: str, kind: str) -> None:
    styles = (
        '<w:style w:styleId="Base"><w:rPr><w:vanish/></w:rPr></w:style>'
        '<w:style w:styleId="Ghost"><w:basedOn w:val="Base"/></w:style>'
    )
    text, hidden = cleaned(f"<w:p>{run('seen')}{run('secret', properties)}</w:p>", styles)
    assert text == "seen"
    assert hidden == [(kind, "secret")]


@pytest.mark.parametrize(
    "properties",
    [
        '<w:vanish w:val="false"/>',
        '<w:color w:val="FFFFFF"/><w:shd w:fill="000000"/>',
        '<w:sz w:val="20"/>',
    ],
)
def test_visible_runs_stay(properties: str) -> None:
    assert cleaned(f"<w:p>{run('seen', properties)}</w:p>") == ("seen", [])


def test_styles_that_are_based_on_each_other_do_not_loop() -> None:
    styles = (
        '<w:style w:styleId="A"><w:basedOn w:val="B"/></w:style>'
        '<w:style w:styleId="B"><w:basedOn w:val="A"/></w:style>'
    )
    looped = run("x", '<w:rStyle w:val="A"/>')
    assert cleaned(f"<w:p>{looped}</w:p>", styles)[0] == "x"


def test_deletions_are_hidden_and_insertions_are_text() -> None:
    deleted = "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
    body = f"<w:p><w:ins>{run('new ')}</w:ins>{deleted}</w:p>"
    assert cleaned(body) == ("new", [("tracked-change", "old")])


def test_a_text_box_off_the_page_is_hidden() -> None:
    box = (
        '<w:r><w:pict><v:shape style="position:absolute;margin-left:-940pt"><w:txbxContent>'
        f"<w:p>{run('secret')}</w:p></w:txbxContent></v:shape></w:pict></w:r>"
    )
    assert cleaned(f"<w:p>{run('seen')}{box}</w:p>") == ("seen", [("off-page", "secret")])


def test_footnotes_become_text_with_a_mark() -> None:
    body = f'<w:p>{run("word")}<w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    text, _ = cleaned(body, footnotes={"2": "the note"})
    assert text == "word[^2] [^2]: the note"


def test_notes_are_read_by_their_number() -> None:
    root = parse_xml(
        f'<w:footnotes {NS}><w:footnote w:id="0"/><w:footnote w:id="2"><w:p>{run("n")}</w:p>'
        "</w:footnote></w:footnotes>".encode()
    )
    assert notes(root, "footnote") == {"2": "n"}


def test_a_table_of_contents_goes() -> None:
    styles = '<w:style w:styleId="Verzeichnis1"><w:name w:val="toc 1"/></w:style>'
    style = '<w:pPr><w:pStyle w:val="Verzeichnis1"/></w:pPr>'
    body = f"<w:p>{style}{run('1 Intro 3')}</w:p><w:p>{run('x')}</w:p>"
    assert cleaned(body, styles)[0] == "x"


def starred(body: str, styles: str = "") -> str:
    """The paragraphs with stars."""
    root = document(body)
    sheet = parse_xml(f"<w:styles {NS}>{styles}</w:styles>".encode())
    clean(root, Styles(sheet), {})
    assert b"<w:b/>" not in etree.tostring(root)
    return resolved("\n\n".join(text_of(p) for p in root.iter(W + "p")))


def test_half_a_word_in_bold_stays_whole() -> None:
    assert starred(f"<w:p>{run('W', '<w:b/>')}{run('ord')}</w:p>") == "Word"


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("<w:b/>", "a **word** here"),
        ("<w:i/>", "a *word* here"),
        ('<w:b w:val="true"/><w:i w:val="1"/>', "a ***word*** here"),
        ('<w:b w:val="0"/>', "a word here"),
        ('<w:b w:val="off"/><w:i w:val="false"/>', "a word here"),
        ("<w:bCs/><w:iCs/>", "a word here"),
        ('<w:rStyle w:val="Strong"/>', "a **word** here"),
        ('<w:rStyle w:val="Strong"/><w:b w:val="0"/>', "a word here"),
        ("<w:b/><w:strike/>", "a ~~**word**~~ here"),
    ],
)
def test_emphasis_of_runs_and_character_styles(properties: str, expected: str) -> None:
    styles = '<w:style w:styleId="Strong"><w:rPr><w:b/></w:rPr></w:style>'
    body = f"<w:p>{run('a ')}{run('word', properties)}{run(' here')}</w:p>"
    assert starred(body, styles) == expected


def test_emphasis_that_a_paragraph_has_by_its_style_is_none() -> None:
    styles = '<w:style w:styleId="B"><w:rPr><w:b/></w:rPr></w:style>'
    body = '<w:p><w:pPr><w:pStyle w:val="B"/><w:rPr><w:b/></w:rPr></w:pPr>'
    assert starred(f"{body}{run('one ')}{run('two', '<w:b/>')}</w:p>", styles) == "one two"


def test_runs_of_one_look_are_one() -> None:
    body = f"<w:p>{run('one ', '<w:b/>')}{run('two', '<w:b/><w:u/>')}{run(' three')}</w:p>"
    assert starred(body) == "**one two** three"


@pytest.mark.parametrize("name", ["Quote", "Intense Quote", "Zitat", "Цитат"])
def test_paragraphs_of_a_quotation_are_marked(name: str) -> None:
    styles = (
        f'<w:style w:styleId="Q"><w:name w:val="{name}"/><w:rPr><w:i/></w:rPr></w:style>'
        '<w:style w:styleId="Q2"><w:name w:val="Own"/><w:basedOn w:val="Q"/></w:style>'
    )
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>{run(text)}</w:p>'
        for style, text in (("Q", "one"), ("Q2", "two"), ("None", "three"))
    )
    assert starred(body, styles) == "> one\n>\n> two\n\nthree"


def test_code_gets_no_stars() -> None:
    assert starred(f"<w:p>{run('def', '<w:b/>')}{run(' go(x):')}</w:p>") == "def go(x):"


@pytest.mark.parametrize(
    ("xml", "code"),
    [
        (b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "corrupt-document"),
        (b"<x><y></x>", "corrupt-document"),
        (b"", "corrupt-document"),
        (b"<a>" * 400 + b"</a>" * 400, "too-deep"),
    ],
)
def test_hostile_xml_is_refused(xml: bytes, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        parse_xml(xml)
    assert refused.value.code == code


def test_comments_of_the_markup_are_no_elements() -> None:
    assert cleaned(f"<!-- c --><w:p><?pi x?>{run('seen')}</w:p>")[0] == "seen"


def test_text_that_is_crossed_out_says_so() -> None:
    strike, double, off = "<w:strike/>", "<w:dstrike/>", '<w:strike w:val="0"/>'
    runs = [
        run("The fine is "), run("ten ", strike), run("euro ", strike), run("20 euro."),
        run(" ", strike), run("Old.", double), run("New", off),
    ]  # fmt: skip
    text, _ = cleaned(f"<w:p>{''.join(runs)}</w:p>")
    assert text == "The fine is ~~ten euro~~ 20 euro. ~~Old.~~New"


def test_raised_numbers_stay_apart_from_those_before() -> None:
    above = '<w:vertAlign w:val="superscript"/>'
    below = '<w:vertAlign w:val="subscript"/>'
    named = '<w:rStyle w:val="Up"/>'
    style = f'<w:style w:styleId="Up"><w:rPr>{above}</w:rPr></w:style>'
    body = (
        f"{run('2')}{run('32', above)}{run(' H')}{run('2', below)}{run('O 1')}"
        f"{run('st', above)}{run(' m')}{run('2', named)}"
    )
    assert starred(f"<w:p>{body}</w:p>", style) == "2³² H2O 1st m²"


# --- what each run costs ------------------------------------------------------------------------


def joined(body: str) -> list[str]:
    root = document(body)
    clean(root, Styles(None), {})
    return [text_of(one) for one in root.iter(W + "r")]


def test_neighbouring_runs_of_the_same_properties_become_one() -> None:
    words = "".join(run(f"word {n} ", '<w:rFonts w:ascii="A"/>') for n in range(500))
    assert joined(f"<w:p>{words}</w:p>") == [" ".join(f"word {n}" for n in range(500))]


def test_marks_of_spelling_and_bookmarks_do_not_part_a_run() -> None:
    between = '<w:proofErr w:type="spellStart"/><w:bookmarkStart w:id="1" w:name="a"/>'
    assert joined(f"<w:p>{run('in')}{between}{run('side')}</w:p>") == ["inside"]


def test_runs_stay_apart_by_fonts_links_and_what_is_no_text() -> None:
    tab = "<w:r><w:tab/><w:t>c</w:t></w:r>"
    link = f"<w:hyperlink>{run('d')}</w:hyperlink>"
    fonts = run("a", '<w:rFonts w:ascii="Courier"/>') + run("b")
    assert joined(f"<w:p>{fonts}{tab}{link}{run('e')}</w:p>") == ["a", "b", "c", "d", "e"]


def test_emphasis_stays_where_it_is_when_runs_are_joined() -> None:
    root = document(f"<w:p>{run('a ')}{run('bold', '<w:b/>')}{run(' c')}</w:p>")
    clean(root, Styles(None), {})
    (one,) = root.iter(W + "t")
    assert resolved(one.text) == "a **bold** c"


def test_every_paragraph_has_properties_at_its_start() -> None:
    # Docling looks for them once a run; where there are none it would go through all runs.
    root = document(f"<w:p>{run('a')}</w:p><w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>")
    clean(root, Styles(None), {})
    assert [paragraph[0].tag for paragraph in root.iter(W + "p")] == [W + "pPr"] * 2


def test_a_long_chain_of_styles_is_gone_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 300
    styles = "".join(
        f'<w:style w:styleId="S{n}"><w:basedOn w:val="S{n - 1}"/></w:style>' for n in range(count)
    )
    sheet = Styles(parse_xml(f"<w:styles {NS}>{styles}</w:styles>".encode()))
    steps = 0

    def counted(parent: Any, name: str) -> str | None:
        nonlocal steps
        steps += name == "basedOn"
        return value(parent, name)

    monkeypatch.setattr(wordml, "value", counted)
    for n in range(count):
        assert sheet.told(None, "vanish", f"S{n}") is None
    assert steps <= count


def test_a_ring_of_styles_ends() -> None:
    styles = (
        '<w:style w:styleId="A"><w:basedOn w:val="B"/></w:style>'
        '<w:style w:styleId="B"><w:basedOn w:val="A"/></w:style>'
    )
    sheet = Styles(parse_xml(f"<w:styles {NS}>{styles}</w:styles>".encode()))
    assert sheet.told(None, "vanish", "A") is None


def test_the_ground_under_white_text_is_looked_for_once_an_element() -> None:
    white = run("white", '<w:color w:val="FFFFFF"/>')
    row = f"<w:tr><w:tc><w:p>{white}</w:p></w:tc></w:tr>"
    root = document(f"<w:tbl>{row * 50}</w:tbl>")
    styles = Styles(None)
    assert len(clean(root, styles, {})) == 50
    # Rows, cells and paragraphs, and one table: it is not gone through for every row again.
    assert len(styles._shades) == 50 * 3 + 1
