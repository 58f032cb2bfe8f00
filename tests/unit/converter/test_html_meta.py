"""Title, author, date and publication of web pages."""

import pytest

from contracts.artifacts import BodyMeta
from services.converter.parsing.html import parse_html
from services.converter.settings import ParseOptions

TEXT = "<p>" + "The council met on Monday and talked about the new bridge over the river. " * 6
LD = (
    '<script type="application/ld+json">{"@context":"https://schema.org","@type":"NewsArticle",'
    '"headline":"A bridge for the town","datePublished":"2021-03-04T08:00:00Z","author":{"@type":'
    '"Person","name":"Ana Novak"},"publisher":{"@type":"Organization","name":"The Daily River"}}'
    "</script>"
)


def meta(head: str, body: str = TEXT) -> BodyMeta:
    page = f"<html><head>{head}</head><body>{body}</body></html>"
    return parse_html(page.encode(), ParseOptions()).document.meta


def test_json_ld_tells_all() -> None:
    found = meta(LD)
    assert (found.title, found.author) == ("A bridge for the town", "Ana Novak")
    assert (found.date, found.publication) == ("2021-03-04", "The Daily River")


def test_meta_elements_tell_all() -> None:
    found = meta(
        "<meta property='og:title' content='A bridge'><meta name=author content='By Ana Novak'>"
        "<meta property='article:published_time' content='2021-03-04T08:00:00+01:00'>"
        "<meta property='og:site_name' content='The Daily River'>"
    )
    assert (found.title, found.author) == ("A bridge", "Ana Novak")
    assert (found.date, found.publication) == ("2021-03-04", "The Daily River")


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        ("A bridge for us - The Daily River", "A bridge for us", "A bridge for us"),
        ("Мост за града | Вестник", "Мост за града", "Мост за града"),
        ("A bridge for us", "The Daily River", "A bridge for us"),
        ("Home", "A bridge for us", "A bridge for us"),
    ],
)
def test_the_name_of_the_site_is_no_part_of_the_title(
    title: str, heading: str, expected: str
) -> None:
    assert meta(f"<title>{title}</title>", f"<h1>{heading}</h1>{TEXT}").title == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Von Jürgen Maier", "Jürgen Maier"), ("Автор: Иван Петров", "Иван Петров"),
        ("View all posts by Ana Novak", "Ana Novak"), ("Vonnegut Kurt", "Vonnegut Kurt"),
        ("Byron Lord", "Byron Lord"),
    ],
)  # fmt: skip
def test_an_author_is_a_name(written: str, expected: str) -> None:
    head = f'<meta name="author" content="{written}">'
    assert meta(head).author == expected


@pytest.mark.parametrize(
    "script", ["{", "[]", '{"@type": 5}', '{"@type":"Article","author":[[[]]],"datePublished":{}}']
)
def test_broken_json_ld_loses_no_page(script: str) -> None:
    head = f'<title>Bridge</title><script type="application/ld+json">{script}</script>'
    assert meta(head).title == "Bridge"


def test_a_page_that_is_no_page_for_the_library_is_read() -> None:
    parse = parse_html(b"<svg><p>Some text<p>and more", ParseOptions())
    assert "Some text" in parse.document.markdown
