"""Signs of a page's text that Markdown would take for its own, and blanks beside links."""

import pytest

from eval.web import shown
from services.converter.parsing.html import parse_html
from services.converter.settings import ParseOptions


def markdown(page: str) -> str:
    return parse_html(page.encode(), ParseOptions()).document.markdown


@pytest.mark.parametrize(
    "text",
    [
        "Alle Schüler*innen und Kund*innen sind da.",
        "2*3*4 is 24, and *this* is no emphasis, nor is **this**.",
        "The name is _private_ and the other __init__ one.",
        "Use `a` or `b`, and ``c``.",
        "\\*x\\* and * y * z",
        "***",
    ],
)
def test_signs_of_the_text_are_shown_as_they_are(text: str) -> None:
    assert shown(markdown(f"<p>{text}</p>")) == text
    assert shown(markdown(f"<h2>{text}</h2>")) == text
    assert text in shown(markdown(f"<ul><li>{text}</li><li>x</li></ul>"))


@pytest.mark.parametrize(
    "text", ["Preis* ohne Gewähr", "snake_case_name and other_name", "3 * 4 * 5", "it`s"]
)
def test_signs_that_mean_nothing_are_not_escaped(text: str) -> None:
    assert markdown(f"<p>{text}</p>") == text


def test_emphasis_of_the_page_stays_beside_signs_of_its_text() -> None:
    found = markdown("<p>All <b>pupils</b>, Schüler*innen, and <i>others</i>, Kund*innen.</p>")
    assert "**pupils**" in found
    assert "*others*" in found
    assert shown(found) == "All pupils, Schüler*innen, and others, Kund*innen."


def test_signs_in_code_are_not_escaped() -> None:
    found = markdown("<p>x <code>a*b*c</code> y</p><pre>a*b*c `d` `e`</pre>")
    assert "`a*b*c`" in found
    assert "a*b*c `d` `e`" in found


def test_nothing_is_put_between_a_link_or_code_and_the_text_beside_it() -> None:
    page = (
        '<p>The <a href="http://x.org/1">Radon</a>-Situation in "<a href="http://x.org/2">Q</a>"'
        ' and <code>map</code>s are <s>go</s>ne: <a href="http://x.org/3">y</a> z.</p>'
    )
    text = 'The Radon-Situation in "Q" and maps are gone: y z.'
    assert shown(markdown(page)) == text
    assert shown(markdown(f"<ul><li>{page[3:-4]}</li></ul>")) == text


def test_blanks_within_a_link_stay_beside_it() -> None:
    assert shown(markdown('<p>see<a href="http://x.org/1"> this </a>page</p>')) == "see this page"


def test_a_page_cannot_forge_an_escape() -> None:
    found = markdown("<p>a\ufde8*b* \ufde9 c &#xFDE8;d</p>")
    assert shown(found) == "a*b* c d"


def test_a_large_page_has_the_same_text() -> None:
    piece = '<p>Kund*innen und Schüler*innen, <a href="http://x.org/1">Radon</a>-Karte.</p>'
    lines = shown(markdown(piece * 8000)).splitlines()
    assert set(lines) == {"Kund*innen und Schüler*innen, Radon-Karte."}
    assert len(lines) == 8000


def test_the_reader_of_the_evaluation_sees_numbers_of_lists_and_no_marks() -> None:
    assert shown("7. **seven** [x](y)\n8. ~~eight~~\n\n- dot\n\n`a*b`") == (
        "7. seven x\n8. eight\ndot\na*b"
    )
