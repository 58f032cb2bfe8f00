"""Large pages are written without docling: the same Markdown and places, at a part of the price."""

import pytest

from contracts.artifacts import ParsedDocument
from services.converter.parsing import html
from services.converter.parsing.article import page_tree
from services.converter.parsing.html import parse_html
from services.converter.settings import ParseOptions


def read(page: str) -> ParsedDocument:
    return parse_html(page.encode(), ParseOptions(), article=False).document


SAME = [
    "<h1>T</h1><p>One <b>two</b> <a href='http://x.org/y'>three</a>, four.<p>a<br>b<h3>c</h3>",
    "<ul><li><p>a<p>b<ul><li>c</ul>tail<li>d<br>e</ul>",
    "<ol start=3><li>x<ol><li>y</ol><li>z</ol>",
    "<ol><li>a<pre>c</pre>b<li>d</ol>",
    "<ul><ul><li>deep</ul><li>x</ul>",
    "<ul><li>a</ul><ul><li>b</ul>",
    "<dl><dt>T<dd>D1<dd>D2<dt>U<dd>E</dl>",
    "<table><tr><td colspan=2>a<td rowspan=2>b<tr><td>c<td>d</table>",
    "<table><tr><th>a<th>b<tr><th>c<td>d|e<br>f</table>",
    "<table><thead><tr><th>a<tr><th>b</thead><tr><td>1</table>",
    "<table><caption>C</caption><tr><td>x<td><table><tr><td>n</table></table>",
    "<pre>  a\n```\n\n  b</pre><p>x <code>a`b</code> y <s>q</s>, z",
    "<p># z<p>a<br># b<p>```<p>&lt;b&gt; &amp;amp; [x](y)<ul><li># x<li>1. y</ul>",
    "text <div>d1<div>d2</div>d3</div> tail<hr><details><summary>S</summary>body</details>",
    "<p>soft\u00adhy\u200bphen\u00a0\u00a0x<br>\u00a0\u00a0y \u201cz\u201d",
    "<blockquote><p>q<ul><li>r</ul><blockquote>s</blockquote></blockquote>",
]


@pytest.mark.parametrize("page", SAME)
def test_a_large_page_reads_as_a_small_one(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small = read(page)
    monkeypatch.setattr(html, "_LARGE", 0)
    monkeypatch.setattr(html, "_convert", None)
    large = read(page)
    assert large.markdown == small.markdown
    assert [span.place for span in large.spans] == [span.place for span in small.spans]


def test_no_blank_stands_where_the_page_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_LARGE", 0)
    assert read("<p>f(<code>x</code>)y <s><s>z</s></s>").markdown == "f(`x`)y ~~z~~"


def test_a_page_of_many_elements_never_reaches_docling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_convert", None)
    found = read("".join(f"<p>Paragraph {n}." for n in range(html._LARGE)))
    assert found.markdown.endswith(f"\n\nParagraph {html._LARGE - 1}.")
    assert found.spans[-1].place.path == f"/html[1]/body[1]/p[{html._LARGE}]"


def test_a_text_over_many_cells_is_not_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_LARGE", 0)
    cell = f"<td rowspan=100 colspan=100>{'x' * 500}"
    page = f"<table><tr>{cell}{'<tr><td>y' * 100}</table>"
    assert read(page).markdown.count("x" * 500) == 1


def test_an_element_of_many_attributes_costs_little() -> None:
    page = f"<p {' '.join(f'a{n}=v{n}' for n in range(50_000))}>seen</p>"
    assert page_tree(page).xpath("//p")[0].attrib == {}
    assert read(page).markdown == "seen"


@pytest.mark.parametrize("large", [0, 30_000])
def test_a_long_text_over_some_cells_is_there_once(
    monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(html, "_LARGE", large)
    page = (
        f"<table><tr><td>a<td>b<td>c<tr><td colspan=2 rowspan=2>{'x' * 300}<td>d<tr><td>e"
        "<tr><td colspan=2>y<td>f</table>"
    )
    assert read(page).markdown == (
        f"| a | b | c |\n| - | - | - |\n| {'x' * 300} |  | d |\n|  |  | e |\n| y | y | f |"
    )
