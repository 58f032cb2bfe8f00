"""Text from outside never becomes Markdown structure, and reads the same when rendered."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from services.converter.parsing import literal
from services.converter.parsing.markdown import literal_line_starts

RENDERER = MarkdownIt("commonmark").enable("table")


def rendered(markdown: str) -> str:
    return str(RENDERER.render(markdown))


def shown(markdown: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", rendered(markdown))).split())


HOSTILE = [
    "# heading", "###", "> quote", "- item", "+ item", "* item", "1. item", "12) item", "---",
    "***", "___", "- - -", "===", "```", "~~~ python", "| a | b |", "--|--", ":-:", "<b>x</b>",
    "<!-- x -->", "<script>", "</div>", "[x]: http://a.b", "![x](http://a.b)", "[x](y)",
    "&nbsp;", "&#35; x", "\\# x", "\\", "a\\", "\\|", "    indented", "\tindented", "title #",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_a_paragraph_stays_a_paragraph(text: str) -> None:
    out = rendered(f"before\n\n{literal.paragraph(text)}\n\nafter")
    assert re.fullmatch(r"<p>before</p>\n<p>[^<]*</p>\n<p>after</p>\n", out)
    assert shown(literal.paragraph(text)) == " ".join(text.split())


@pytest.mark.parametrize("text", HOSTILE)
def test_a_second_line_stays_a_line(text: str) -> None:
    assert rendered(literal.paragraph(f"one\n{text}")).count("<") == 2


@pytest.mark.parametrize("text", HOSTILE)
def test_a_cell_stays_a_cell(text: str) -> None:
    out = rendered(f"| h |\n| - |\n| {literal.cell(text)} |\n")
    assert out.count("<td>") == out.count("<th>") == 1
    assert shown(f"| h |\n| - |\n| {literal.cell(text)} |") == " ".join(["h", *text.split()])


@pytest.mark.parametrize("text", HOSTILE)
def test_a_heading_stays_a_heading(text: str) -> None:
    assert shown(f"## {literal.heading(text)}") == " ".join(text.split())
    assert rendered(f"## {literal.heading(text)}").startswith("<h2>")


def test_a_cell_is_one_line() -> None:
    assert literal.cell(" a\nb\r\n\tc\u2028d\0 ") == "a b c d"


def test_marks_and_halves_of_letters_are_taken_out() -> None:
    assert literal.cell("a\ufdd0\ud800b") == literal.paragraph("a\ufde0\udfffb") == "ab"


def test_marks_of_items_can_be_left() -> None:
    assert literal.paragraph("1. one\n- two", lists=True) == "1. one\n- two"


@pytest.mark.parametrize("mark", ["- ", "+ ", "1. ", "2) ", "- - ", "1. - ", "- " * 6])
@pytest.mark.parametrize("text", ["```", "~~~ python", "# heading", "> quote", "| a | b |"])
def test_no_fence_begins_within_an_item(mark: str, text: str) -> None:
    for written in (literal.paragraph(mark + text, lists=True), literal_line_starts(mark + text)):
        tokens = RENDERER.parse(f"{written}\n\nafter")
        assert not {t.type for t in tokens} & {"fence", "heading_open", "blockquote_open"}
        assert text in shown(written)


def test_a_line_of_marks_takes_no_time_by_the_square() -> None:
    line = "- " * 20_000 + "x"
    assert literal.paragraph(line, lists=True) == literal_line_starts(line) == line


@given(st.text(alphabet=st.sampled_from("#>-+*=`~|<>/!&;[]():\\ \t\n1.)ab_"), max_size=40))
def test_no_text_of_marks_makes_structure(text: str) -> None:
    tokens = RENDERER.parse(literal.paragraph(text))
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}
    row = RENDERER.parse(f"| h | i |\n| - | - |\n| {literal.cell(text)} | x |")
    assert sum(token.type == "td_open" for token in row) == 2
