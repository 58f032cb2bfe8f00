"""What of a web page a reader does not see."""

import pytest
from bs4 import BeautifulSoup

from services.converter.parsing.visibility import take_hidden

SECRET = "obey this secret"


def look(html: str) -> tuple[str, list[tuple[str, str]]]:
    soup = BeautifulSoup(html, "lxml")
    hidden = take_hidden(soup)
    return soup.get_text(" ", strip=True), [(h.kind, h.text) for h in hidden]


@pytest.mark.parametrize(
    ("style", "kind"),
    [
        ("display:none", "invisible-style"),
        ("DISPLAY : NONE !important", "invisible-style"),
        ("visibility:hidden", "invisible-style"),
        ("opacity: 0", "invisible-style"),
        ("font-size:0", "zero-size"),
        ("font-size: 1px", "zero-size"),
        ("transform: scale(0)", "zero-size"),
        ("position:absolute; left:-9999px", "off-page"),
        ("text-indent:-5000px", "off-page"),
        ("clip: rect(0, 0, 0, 0)", "invisible-style"),
        ("width:1px;height:1px;overflow:hidden", "invisible-style"),
        ("color:#fff", "background-colour"),
        ("color: rgb(250, 250, 250)", "background-colour"),
        ("color:red;background:red", "background-colour"),
    ],
)
def test_text_hidden_by_style_is_taken_out(style: str, kind: str) -> None:
    text, hidden = look(f'<p>seen</p><div style="{style}"><b>{SECRET}</b></div>')
    assert text == "seen"
    assert hidden == [(kind, SECRET)]


@pytest.mark.parametrize(
    "style",
    [
        "font-size:0.9em", "color:#333", "color:#fff;background:#000", "opacity:1", "left:-20px",
        "color:white;background:url(dark.png)", "height:1px", "font:12px serif",
    ],
)  # fmt: skip
def test_text_that_can_be_read_stays(style: str) -> None:
    text, hidden = look(f'<div style="{style}">{SECRET}</div>')
    assert (text, hidden) == (SECRET, [])


def test_a_style_sheet_of_the_page_hides_by_selector() -> None:
    css = (
        "<style>/* x */ .a, #b {display:none} .c{color:red} @media print{.c{display:none}}</style>"
    )
    text, hidden = look(f"{css}<p class=a>one</p><p id=b>two</p><p class=c>three</p>")
    assert text == "three"
    assert [value for _, value in hidden] == ["one", "two"]


def test_a_later_rule_shows_what_an_earlier_hid() -> None:
    css = "<style>.menu{display:none} .open{display:block}</style>"
    assert look(f'{css}<p class="menu open">one</p>')[0] == "one"


def test_dark_text_on_a_dark_page_is_hidden() -> None:
    text, hidden = look(f'<body bgcolor="#000000"><p style="color:#ff0">seen</p>{SECRET}</body>')
    assert text == "seen"
    assert ("background-colour", SECRET) in hidden


def test_colours_prove_nothing_when_a_style_sheet_is_missing() -> None:
    page = f'<link rel="stylesheet" href="x.css"><p style="color:#fff">{SECRET}</p>'
    assert look(page)[0] == SECRET


def test_comments_templates_and_attributes_are_kept_for_the_scanner() -> None:
    text, hidden = look(
        "<!-- one --><p title='two'>seen</p><template>three</template><noscript>four</noscript>"
        "<img alt='five'><script>var six</script><p hidden>seven</p><p aria-hidden=true>eight</p>"
        "<meta name=description content=nine>"
    )
    assert text == "seen"
    assert {value for _, value in hidden} == {
        "one", "two", "three", "four", "five", "seven", "eight", "nine",
    }  # fmt: skip


def test_a_forgotten_end_tag_does_not_hide_the_page() -> None:
    assert "all of the page" in look("<noscript><p>all of the page " + "x " * 50)[0]


def test_deep_nesting_needs_no_recursion() -> None:
    assert look("<i>" * 200 + SECRET)[0] == SECRET
