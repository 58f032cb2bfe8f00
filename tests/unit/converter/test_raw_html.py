"""HTML inside Markdown."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.artifacts import ParsedDocument
from kernel.errors import Refusal
from kernel.media import MARKDOWN
from services.converter.parsing.text import parse_text


def parsed(text: str) -> ParsedDocument:
    return parse_text(text.encode(), MARKDOWN).document


def markdown(text: str) -> str:
    """The parse without blank lines at its end and more than one between blocks."""
    return re.sub(r"\n{3,}", "\n\n", parsed(text).markdown).strip("\n")


def test_a_table_becomes_a_table_with_a_place_for_each_row() -> None:
    rows = "".join(f"<tr>\n<td>{n}</td>\n<td>x | <b>y</b><br>z</td>\n</tr>\n" for n in range(12))
    text = f"before\n<table>\n<tr><th><b>No</b></th><th>Text</th></tr>\n\n{rows}</table>\nafter\n"
    document = parsed(text)
    lines = document.markdown.split("\n")
    assert lines[:5] == ["before", "", "| No | Text |", "| - | - |", "| 0 | x \\| **y** z |"]
    assert lines[-3:] == ["", "after", ""]
    data = document.markdown.encode()
    source = text.split("\n")
    for span in document.spans:
        first, last = span.place.lines or (0, 0)
        shown = data[span.byte_start : span.byte_end].decode()
        told = "".join(source[first - 1 : last])
        if "y" in shown and "\n" not in shown:
            assert f"<td>{shown.split()[0]}</td>" in told
    assert document.spans[-1].place.lines == (len(source) - 1, len(source) - 1)


def test_merged_cells_show_their_text_everywhere() -> None:
    text = (
        "<table><tr><td rowspan=2>a</td><td colspan=2>b</td></tr>"
        "<tr><td>1</td><td>2</td></tr></table>"
    )
    assert markdown(text) == "| a | b | b |\n| - | - | - |\n| a | 1 | 2 |"


def test_nothing_beside_cells_and_items_is_lost() -> None:
    text = "<table><caption>Cap</caption>loose<tr><td>a</td><td>b</td></tr></table>"
    assert markdown(text) == "Cap loose\n\n| a | b |\n| - | - |"
    assert markdown("<ul>first<li>a</li><p>between</p><li>b</li>last</ul>") == (
        "first\n- a\n\nbetween\n- b\n\nlast"
    )


def test_repeats_of_merged_cells_are_bounded() -> None:
    row = "<tr>" + "<td colspan=400 rowspan=900>x</td>" * 20 + "</tr>"
    assert len(parsed(f"<table>{row * 20}</table>").markdown) < 500_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <b>bold</b> and <em>slanted</em> word", "a **bold** and *slanted* word"),
        ("<strong>a <i>b</i></strong> c", "a *b* c"),
        (
            'see <a href="https://a.b/c">this <b>link</b></a>.',
            "see [this **link**](https://a.b/c).",
        ),
        ('<a href="javascript:x()">no</a> link', "no link"),
        ("one<br>two<br/>\nthree", "one\\\ntwo\\\nthree"),
        ("- one<br>two", "- one two"),
        ("# a<br>b", "# a b"),
        ("| a<br>b | c |\n| - | - |\n| <i>d</i> | e |", "| a b | c |\n| - | - |\n| *d* | e |"),
        ("H<sub>2</sub>O <kbd>x</kbd> <s>old</s>", "H2O x ~~old~~"),
        ("`<b>code</b>` stays", "`<b>code</b>` stays"),
        ("    <b>code</b>", "    <b>code</b>"),
        ("```\n<b>code</b>\n```", "```\n<b>code</b>\n```"),
        ("Vec<T> and <https://a.b> and 1 < 2", "Vec<T> and <https://a.b> and 1 < 2"),
        ("<MyTag>\nx\n</MyTag>", "<MyTag>\nx\n</MyTag>"),
        ("<style>\nrest of it\n", "<style>\nrest of it"),
        (
            "<details>\n<summary>More <b>here</b></summary>\n\n*inner*\n\n</details>\n",
            "More **here**\n\n*inner*",
        ),
        ("<small>* note</small> x", "\\* note x"),
        ("<p>one<br>\n<a href=x><img src=y></a><br>\n</p>", "one"),
        ("<p>one<br>two</p>", "one\\\ntwo"),
        ("<h3 align=center>\n<p>In <i>it</i></p>\n</h3>", "### In it"),
        ("<div># no heading</div>", "\\# no heading"),
        ("<h2 align=center>Head</h2>", "## Head"),
        ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "- a\n    - b\n- c"),
        ('<ol start="3"><li>a<li>b</ol>', "3. a\n4. b"),
        ("<blockquote>wise <b>words</b></blockquote>", "> wise **words**"),
        ("<pre>a\n  ``` b\n</pre>", "````\na\n  ``` b\n````"),
        ("<ul><li>" * 200 + "deep", "- " + "deep"),
    ],
)
def test_raw_html_as_markdown(text: str, expected: str) -> None:
    found = markdown(text)
    assert found == expected or (expected == "- deep" and found.endswith("deep"))


def test_what_is_not_seen_is_for_the_scanner() -> None:
    text = (
        '<p><img src="a.png" alt="a logo"> text <span title="tip">x</span></p>\n\n'
        "in <img alt=\"small\"> line <i title='more'>y</i>\n\n"
        '<p align=center>\n<img src="b" alt="only this">\n</p>\n\n'
        '<div>a<!-- note --><span style="display:none">gone</span></div>\n'
    )
    document = parsed(text)
    assert document.markdown.split() == ["text", "x", "in", "line", "*y*", "a"]
    assert {(h.kind, h.text) for h in document.hidden} == {
        ("alt-text", "a logo"), ("attribute", "tip"), ("alt-text", "small"), ("attribute", "more"),
        ("alt-text", "only this"), ("comment", "note"), ("invisible-style", "gone"),
    }  # fmt: skip


PIECES = st.sampled_from(
    ["<table>", "</table>", "<tr>", "<td>", "</td>", "<b>", "</b>", "<br>", "<ul>", "<li>", "</ul>",
     "<p>", "</p>", "<div>", "</div>", "<pre>", "</pre>", "<a href=x>", "</a>", "<code>", "</code>",
     "word", "| a |", "- ", "# ", "\n", "\n\n", " ", "`", "**", "\\", "> ", "<x>", "<!--", "-->"]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(pieces=st.lists(PIECES, max_size=25))
def test_no_piece_of_html_breaks_the_reader(pieces: list[str]) -> None:
    text = "".join(pieces)
    try:
        document = parsed(text)
    except Refusal as refusal:
        assert refusal.code == "empty-document"
        return
    for span in document.spans:
        first, last = span.place.lines or (0, 0)
        assert 1 <= first <= last <= text.count("\n") + 1


def test_many_halves_of_tables_take_no_time_by_the_square() -> None:
    text = "x\n\n" + "<table>\n\n" * 20_000
    assert parsed(text).markdown.strip() == "x"
