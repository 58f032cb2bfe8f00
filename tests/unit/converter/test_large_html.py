"""Pages of many thousand elements: nothing is lost, and docling gets them in bounded parts."""

import pytest
from bs4 import BeautifulSoup

from contracts.artifacts import ParsedDocument
from services.converter.parsing import html
from services.converter.parsing.html import parse_html
from services.converter.parsing.trees import NearTag, in_parts, parsed, smooth
from services.converter.settings import ParseOptions


def read(page: str) -> ParsedDocument:
    return parse_html(page.encode(), ParseOptions(), article=False).document


def test_thousands_of_line_breaks_in_one_paragraph() -> None:
    page = "<p>" + "".join(f"line {n}<br>" for n in range(5000))
    assert read(page).markdown.split("  \n") == [f"line {n}" for n in range(5000)]


def test_thousands_of_inline_elements_in_one_paragraph() -> None:
    page = "<p>" + "".join(f"w<b>{n}</b> <i>x</i><span></span> " for n in range(5000))
    assert read(page).markdown == " ".join(f"w**{n}** *x*" for n in range(5000))


def test_thousands_of_links_in_one_paragraph() -> None:
    page = "<p>" + " ".join(f"<a href='http://x.org/{n}'>l{n}</a> and" for n in range(2000))
    wanted = " ".join(f"[l{n}](http://x.org/{n}) and" for n in range(2000))
    assert read(page).markdown == wanted


def test_thousands_of_rows() -> None:
    page = "<table><tr><th>A<th>B" + "".join(f"<tr><td>{n}<td>r{n}" for n in range(2000))
    rows = read(page).markdown.splitlines()
    assert rows[2:] == [f"| {n} | r{n} |" for n in range(2000)]


def test_items_of_long_ordered_lists_keep_their_numbers() -> None:
    page = "<ol>" + "".join(f"<li>item {n}" for n in range(1, 3001)) + "</ol>"
    assert read(page).markdown.splitlines() == [f"{n}. item {n}" for n in range(1, 3001)]


@pytest.mark.parametrize("filler", ["<div></div>", "<p></p>", "<span></span>", "< ", "<<"])
def test_tens_of_thousands_of_nothings(filler: str) -> None:
    assert "seen" in read(f"<p>seen</p>{filler * 30_000}").markdown


def test_one_wide_row_does_not_widen_thousands() -> None:
    page = "<table><tr>" + "<td>c" * 400 + "</tr>" + "<tr><td>seen" * 4000 + "</table>"
    markdown = read(page).markdown
    assert markdown.count("seen") == 4000
    assert markdown.count("c") == 400
    assert len(markdown) < 40_000


def law(articles: int) -> str:
    return "".join(
        f"<section class=a><h2>Article {n}</h2><div id=d{n}><p>Text {n}.</p>tail {n}"
        f"<ul><li>one<li>two</ul><table><tr><td>{n}<td>x</table>"
        f"<div>loose {n}</div></div></section>"
        for n in range(articles)
    )


def test_parts_give_what_the_whole_page_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    page = law(60)
    whole = read(page)
    sent: list[str] = []
    convert = html._convert

    def counted(part: str) -> str:
        sent.append(part)
        return convert(part)

    monkeypatch.setattr(html, "_convert", counted)
    monkeypatch.setattr(html, "_PART", 1)
    assert read(page) == whole
    assert len(sent) > 60
    assert {span.place.path for span in whole.spans} >= {"/html[1]/body[1]/section[60]/h2[1]"}


def test_a_part_is_bounded_and_a_list_is_never_cut() -> None:
    body = parsed(law(400)).body
    assert body is not None
    parts = list(in_parts(body, 100))
    assert all(len(BeautifulSoup(part, "lxml").find_all(True)) < 150 for part in parts)
    assert sum(part.count("<ul><li>one</li><li>two</li></ul>") for part in parts) == 400


def test_a_child_is_found_from_wherever_the_last_one_was() -> None:
    page = parsed("<p>" + "<b>same</b>" * 50 + "</p>")
    paragraph = page.p
    assert isinstance(paragraph, NearTag)
    for at in (0, 49, 25, 24, 26, 0, 1):
        assert paragraph.index(paragraph.contents[at]) == at
    with pytest.raises(ValueError, match="no child"):
        paragraph.index(page.new_tag("b"))


def test_smoothing_joins_texts_and_nothing_else() -> None:
    page = parsed("<p>a<b>x</b>b<!--c-->d</p>")
    assert page.b is not None
    page.b.unwrap()
    smooth(page)
    assert page.p is not None
    assert [str(node) for node in page.p.contents] == ["axb", "c", "d"]


def test_a_search_for_names_finds_what_beautiful_soup_finds() -> None:
    source = "<div><p>a<b>b</b><o:p>c</o:p></p><ul><li>d<li>e</ul></div><p hidden>f"
    near, own = parsed(source), BeautifulSoup(source, "lxml")
    for name in ("p", ["p", "li"], True, "o:p", ["o:p", "b"], []):
        for limit in (None, 1):
            found = [str(tag) for tag in near.find_all(name, limit=limit)]
            assert found == [str(tag) for tag in own.find_all(name, limit=limit)]
    inner = near.b
    assert inner is not None
    assert inner.find_parent(["ul", "div"]) is near.div
    assert inner.find_parent("table") is None
    assert near.find("p", hidden=True) is near.find_all("p")[1]
