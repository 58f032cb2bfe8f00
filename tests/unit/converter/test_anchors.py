"""Sections stay whatever their ids are called; boxes of a site go."""

import pytest

from services.converter.parsing.html import parse_html
from services.converter.settings import ParseOptions

TEXT = (
    "The origin server has the right to answer for its host, and a client that gets an answer "
    "from elsewhere must not take it for one of that server, as was said above."
)
TOPICS = ("introduction", "routing", "caching", "security", "references")
PLAIN = [f'<section id="{topic}"><h2>On {topic}</h2><p>{TEXT} See {topic}.</p>' for topic in TOPICS]
MENU = '<div id="menu"><a href="/">Home</a> <a href="/all">All documents</a></div>'


def page(*sections: str, linked: bool = True) -> str:
    ids = [s.split('id="')[1].split('"')[0] for s in sections]
    contents = "".join(f'<li><a href="#{i}">{i}</a></li>' for i in ids) if linked else ""
    body = "".join(f"{section}</section>" for section in sections)
    return f"<body>{MENU}<ul>{contents}</ul><article><h1>A protocol</h1>{body}</article></body>"


def markdown(source: str) -> str:
    return parse_html(source.encode(), ParseOptions()).document.markdown


@pytest.mark.parametrize(
    "name", ["establishing.authority", "set-cookie", "share-state", "menu-bar", "meta-tags"]
)
def test_a_section_that_the_contents_lead_to_stays(name: str) -> None:
    section = f'<section id="{name}"><h2>The special part</h2><p>{TEXT} So it is, and so on.</p>'
    found = markdown(page(*PLAIN, section))
    assert "## The special part" in found
    assert "So it is, and so on." in found
    assert "All documents" not in found


def test_the_comments_of_a_document_go() -> None:
    comments = f'<section id="comments"><h2>Comments</h2><p>{TEXT} I do not think so.</p>'
    assert "I do not think so" not in markdown(page(*PLAIN, comments))


def test_a_box_that_no_link_leads_to_goes() -> None:
    box = f'<section id="author-box"><h2>Jane Doe</h2><p>{TEXT} She lives in Graz.</p>'
    found = markdown(page(*PLAIN).replace("</article>", f"{box}</section></article>"))
    assert "She lives in Graz" not in found
    assert "## On security" in found


def test_an_address_below_its_heading_stays() -> None:
    section = (
        '<section id="rfc.authors"><h2>Authors\' Addresses</h2>'
        "<address><b>Jane Doe</b><br>Example Ltd<br>Graz</address>"
    )
    found = markdown(page(*PLAIN, section))
    assert "## Authors' Addresses" in found
    assert "Example Ltd" in found
