"""Rich text by its own rules."""

from pathlib import Path

import pytest

from contracts.artifacts import ParsedDocument, Place
from kernel.errors import Refusal
from services.converter.parsing.rtf import parse_rtf
from services.converter.settings import ParseOptions


class Reader:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, body: str, head: str = "") -> ParsedDocument:
        self.path.write_bytes(f"{{\\rtf1\\ansi\\ansicpg1252{head}\n{body}}}".encode("latin-1"))
        return parse_rtf(self.path, ParseOptions()).document


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "a.rtf")


def hidden(document: ParsedDocument, kind: str) -> list[str]:
    return [text for h in document.hidden if h.kind == kind for text in h.text.split("\n")]


def test_paragraphs_and_their_signs(read: Reader) -> None:
    document = read("one {\\b bo}ld\\emdash x\\~y\\par # two\\line three \\{\\}\\par")
    assert document.markdown == "one bold—x y\n\n\\# two\nthree {}\n"
    assert [s.place for s in document.spans] == [Place(path="p[1]"), Place(path="p[2]")]


def test_emphasis_and_what_is_crossed_out(read: Reader) -> None:
    body = (
        "a {\\b bold {\\i both}} and \\i slanted\\i0  word, {\\strike gone} \\b0 x\\par"
        "\\pard\\plain \\trowd\\cellx1\\cellx2\\intbl {\\b H}\\cell I\\cell\\row"
        "\\intbl {\\b x} | y\\cell {\\b 7}\\cell\\row\\pard after\\par"
    )
    assert read(body).markdown == (
        "a **bold *both*** and *slanted* word, ~~gone~~ x\n\n"
        "| H | I |\n| - | - |\n| **x** \\| y | 7 |\n\nafter\n"
    )


def test_emphasis_of_the_style_is_none_and_quotations_are_marked(read: Reader) -> None:
    head = (
        "{\\stylesheet{Normal;}{\\*\\cs9\\b Strong;}{\\s1\\b heading 1;}{\\s2\\b Loud;}"
        "{\\s3\\i Quote;}}"
    )
    body = (
        "\\pard\\plain\\s1\\b Head\\par\\pard\\plain\\s2\\b all {\\i this}\\par"
        "\\pard\\plain\\s3\\i Wise\\line words\\par\\pard\\plain {\\cs9\\b x} y\\par"
    )
    assert read(body, head).markdown == ("# Head\n\nall *this*\n\n> Wise\n> words\n\n**x** y\n")


def test_the_title_has_the_first_level_and_headings_the_next_ones(read: Reader) -> None:
    head = "{\\stylesheet{Normal;}{\\s1 heading 1;}{\\s2 heading 2;}{\\s15\\snext0 Title;}}"
    body = (
        "\\pard\\s15\\b The # Law\\par\\pard\\plain\\s1 One\\par\\pard\\plain\\s2 Two\\par"
        "\\pard\\plain\\outlinelevel0 Three\\par\\pard\\plain\\outlinelevel5 Six\\par"
    )
    assert read(body, head).markdown == (
        "# The # Law\n\n## One\n\n### Two\n\n## Three\n\n###### Six\n"
    )
    assert read(body.partition("\\par\\pard")[2], head).markdown.startswith(
        "# One\n\n## Two\n\n# Three"
    )


def test_links_lead_outside(read: Reader) -> None:
    def field(address: str, text: str) -> str:
        inner = f'{{\\*\\fldinst {{HYPERLINK "{address}"}}}}{{\\fldrslt {{\\ul {text}}}}}'
        return f"{{\\field{inner}}}"

    body = (
        "see " + field("https://a.b/c", "the {\\b page}") + " or " + field("#x", "here") + ", "
        "{\\field{\\*\\fldinst PAGE}{\\fldrslt 7}} and \\u-2?\\u-1?x\\par"
    )
    assert read(body).markdown == "see [the **page**](https://a.b/c) or here, 7 and x\n"


def test_a_text_without_its_end_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.rtf"
    for data, told in ((b"{\\rtf1 one {\\b two}\\par}", 0), (b"{\\rtf1 one {\\b two", 1)):
        path.write_bytes(data)
        parse = parse_rtf(path, ParseOptions())
        assert parse.document.markdown == "one **two**\n"
        assert len(parse.warnings) == told


def test_letters_of_every_kind(read: Reader) -> None:
    head = "{\\fonttbl{\\f0\\fcharset0 A;}{\\f1\\fcharset204 B;}{\\f2\\fcharset238 C;}}"
    body = (
        "\\f1 \\'cf\\'f0\\'e8\\'e2\\'e5\\'f2\\par\\f2 \\'9e\\'f3\\par"
        "\\u1046?\\u1091\\'3f\\par\\uc2\\u1090ab!\\par\\u-10179?\\u-8704?\\par"
    )
    # \uc2: two stand-ins are passed over.
    assert read(body, head).markdown == "Привет\n\nžó\n\nЖу\n\nт!\n\n😀\n".replace(
        "😀", "\U0001f600"
    )


def test_a_charset_that_nobody_knows_is_the_usual_one(read: Reader) -> None:
    assert read("\\'e4\\par", "\\ansicpg1").markdown == "ä\n"


def test_headings_by_style_and_outline(read: Reader) -> None:
    head = (
        "{\\stylesheet{\\s0 Normal;}{\\s1 heading 1;}{\\s2 \\'dcberschrift 2;}"
        "{\\s3\\outlinelevel2 Own;}}"
    )
    body = "".join(f"\\pard\\s{n} Level {n}\\par" for n in (1, 2, 3, 0))
    body += "\\outlinelevel3 Four\\par"
    assert read(body, head).markdown == (
        "# Level 1\n\n## Level 2\n\n### Level 3\n\nLevel 0\n\n#### Four\n"
    )


def test_lists_have_the_marks_that_were_shown(read: Reader) -> None:
    body = (
        "{\\listtext 1.\\tab}one\\par{\\listtext\\pard\\plain\\'b7\\tab}\\ilvl1 two\\par"
        "\\pard{\\listtext a)\\tab}three\\par"
    )
    assert read(body).markdown == "1. one\n    - two\n- a) three\n"


def test_tables_repeat_merged_cells(read: Reader) -> None:
    body = (
        "before\\par\\trowd\\cellx1\\clmrg\\cellx2\\intbl a|b\\cell\\cell\\row"
        "\\trowd\\cellx1\\cellx2\\cellx3\\intbl c\\par d\\cell e\\cell f\\cell\\row"
        "\\pard after\\par"
    )
    document = read(body)
    assert document.markdown == (
        "before\n\n| a\\|b | a\\|b |  |\n| - | - | - |\n| c d | e | f |\n\nafter\n"
    )
    assert document.spans[2].place == Place(path="tr[2]")


def _row(*cells: tuple[str, int]) -> str:
    """Cells with their right edges, defined before and after, as Word does."""
    form = "\\trowd" + "".join(f"\\cellx{edge}" for _, edge in cells)
    texts = "".join(f"{text}\\cell " for text, _ in cells)
    return f"{form}\\intbl {texts}{form}\\row"


def test_a_wider_cell_shows_its_text_in_every_column(read: Reader) -> None:
    rows = (
        _row(("Year", 1000), ("Sums", 5000))
        + _row(("", 1000), ("net", 3010), ("gross", 5000))
        + _row(("1999", 995), ("1", 2990), ("2", 5000))
        + _row(("none", 5000))
    )
    assert read(rows).markdown == (
        "| Year | Sums | Sums |\n| - | - | - |\n|  | net | gross |\n| 1999 | 1 | 2 |\n"
        "| none | none | none |\n"
    )


def test_a_long_text_of_a_wider_cell_is_there_once(read: Reader) -> None:
    long = "word " * 50
    markdown = read(_row(("a", 1000), ("b", 2000)) + _row((long, 2000))).markdown
    assert markdown.count("word") == 50
    assert markdown.endswith("word |  |\n")


def test_a_cell_under_a_merged_one_is_found_by_its_column(read: Reader) -> None:
    body = (
        _row(("a", 1000), ("b", 2000), ("c", 3000))
        + "\\trowd\\cellx2000\\clvmgf\\cellx3000\\intbl wide\\cell down\\cell\\row"
        + "\\trowd\\cellx1000\\cellx2000\\clvmrg\\cellx3000\\intbl x\\cell y\\cell\\cell\\row"
    )
    assert read(body).markdown.endswith("| wide | wide | down |\n| x | y | down |\n")


def test_rows_without_common_columns_stay_as_they_are(read: Reader) -> None:
    rows = "".join(_row(("x", 1000 + 300 * n), ("y", 9000)) for n in range(9))
    assert read(rows).markdown == "| x | y |\n| - | - |\n" + "| x | y |\n" * 8


def test_footnotes_stand_at_the_end(read: Reader) -> None:
    body = "word{\\footnote\\pard\\chftn  the {\\i note}} more\\par"
    assert read(body).markdown == "word[^1] more\n\n[^1]: the *note*\n"


def test_the_unseen_is_for_the_scanner(read: Reader) -> None:
    head = "{\\colortbl ;\\red255\\green255\\blue255;\\red0\\green0\\blue0;}"
    body = (
        "{\\header head\\par}seen{\\v  off}{\\deleted  gone}{\\cf1  white}{\\fs2  tiny}"
        "{\\cf1\\highlight2  painted}{\\*\\annotation remark}{\\*\\unknown nothing}"
        "{\\pict 0102}{\\field{\\*\\fldinst HYPERLINK x}{\\fldrslt  link}}\\bin3 {{{\\par"
    )
    document = read(body, head)
    assert document.markdown == "seen painted link\n"
    assert hidden(document, "notes") == ["head"]
    assert hidden(document, "invisible-style") == ["off"]
    assert hidden(document, "tracked-change") == ["gone"]
    assert hidden(document, "background-colour") == ["white"]
    assert hidden(document, "zero-size") == ["tiny"]
    assert hidden(document, "comment") == ["remark"]


def test_what_the_file_says_of_itself(read: Reader) -> None:
    info = "{\\info{\\title The title}{\\author Ana}{\\creatim\\yr2020\\mo5\\dy6\\hr1}}"
    meta = read("x\\par", info).meta
    assert (meta.title, meta.author, meta.date) == ("The title", "Ana", "2020-05-06")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{\\rtf1 }", "empty-document"),
        (b"no rich text", "corrupt-document"),
        (b"{\\rtf1 " + b"{" * 5000, "too-deep"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, data: bytes, code: str) -> None:
    (tmp_path / "a.rtf").write_bytes(data)
    with pytest.raises(Refusal) as refused:
        parse_rtf(tmp_path / "a.rtf", ParseOptions())
    assert refused.value.code == code


def test_raised_numbers_stay_apart_from_those_before(read: Reader) -> None:
    body = "2{\\super 32}, 10\\super -3\\nosupersub , m\\super 2\\plain  H{\\sub 2}O 1{\\super st}"
    assert read(body).markdown == "2³², 10⁻³, m² H2O 1st\n"


def test_notes_and_links_of_headings_and_boxes(read: Reader) -> None:
    note = "{\\footnote \\pard\\plain note}"
    body = (
        f"\\pard\\s1 Head{note} on\\par\\pard one\\par"
        f'{{\\shptxt box{note} {{\\field{{\\*\\fldinst HYPERLINK "https://a.b"}}{{\\fldrslt x}}}}}}'
    )
    assert read(body, "{\\stylesheet{\\s1 heading 1;}}").markdown == (
        "# Head[^1] on\n\none\n\nbox[^2] x\n\n[^1]: note\n\n[^2]: note\n"
    )


@pytest.mark.parametrize(
    ("head", "charset"),
    [
        (r"\mac\ansicpg10007{\fonttbl{\f0\fcharset77 A;}{\f1 B;}}\f1 ", "mac_cyrillic"),
        (r"\ansi{\fonttbl{\f0\fcharset89 A;}}\f0 ", "mac_cyrillic"),
        (r"\ansi{\fonttbl{\f0\fcharset128\cpg65001 A;}}\f0 ", "utf-8"),
    ],
)  # fmt: skip
def test_code_pages_of_macs_and_of_fonts_are_known(tmp_path: Path, head: str, charset: str) -> None:
    octets = "".join(f"\\'{value:02x}" for value in "Привет".encode(charset))
    path = tmp_path / "a.rtf"
    path.write_bytes(f"{{\\rtf1{head}{octets}\\par}}".encode("latin-1"))
    assert parse_rtf(path, ParseOptions()).document.markdown == "Привет\n"


def test_of_a_text_with_and_without_unicode_the_first_is_read(read: Reader) -> None:
    title = r"{\info{\upr{\title ?etrtletno}{\*\ud{\title \u268\'3fetrtletno}}}{\author B}}"
    document = read(r"a {\upr{\b ?b}{\*\ud{\b \u268\'3fb}}} c\par", title)
    assert document.meta.title == "Četrtletno"
    assert document.meta.author == "B"
    assert document.markdown == "a **Čb** c\n"
