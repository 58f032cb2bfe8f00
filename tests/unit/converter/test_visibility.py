"""What of a web page a reader does not see."""

import pytest
from bs4 import BeautifulSoup

from services.converter.parsing.visibility import _Look, _look, take_hidden

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
    assert "all of the page" in look("<video src=a><p>all of the page " + "x " * 200)[0]


def test_what_stands_in_for_sound_and_moving_pictures_is_not_seen() -> None:
    page = "<canvas>one</canvas><p>seen, long enough</p><video><p>two</p></video><audio>3</audio>"
    text, hidden = look(page)
    assert text == "seen, long enough"
    assert hidden == [("script", "one"), ("script", "two"), ("script", "3")]
    assert look(f"<canvas>{SECRET}</canvas>Trees") == ("Trees", [("script", SECRET)])


def test_deep_nesting_needs_no_recursion() -> None:
    assert look("<i>" * 200 + SECRET)[0] == SECRET


@pytest.mark.parametrize(
    "selector",
    [
        "p", "*", ".a", "p.a.b", "#i", "p#i.a", "[data-x]", "[data-x=y]", "p[data-x='y']",
        "[data-x^=y]", "[data-x*='y']", "div p", "div > p", ".o .a", ".o>div>p", "body div.o p",
        ".none, .a", "div div > p", "html .o p",
    ],
)  # fmt: skip
def test_selectors_that_match(selector: str) -> None:
    page = "<div class=o><div><p class='a b' id=i data-x=y>x</p></div></div>"
    assert look(f"<style>{selector} {{display:none}}</style>{page}") == (
        "", [("invisible-style", "x")],
    )  # fmt: skip


@pytest.mark.parametrize(
    "selector",
    [
        "b", ".c", "p.a.c", "#j", "[data-y]", "[data-x=z]", ".o > p", "p div", "div.o > .o p",
        "p:hover", "p::before", ".a + p", "div ~ p", "p >", "> p", "..a", "p[", "@media x",
    ],
)  # fmt: skip
def test_selectors_that_do_not_match(selector: str) -> None:
    page = "<div class=o><div><p class='a b' id=i data-x=y>x</p></div></div>"
    assert look(f"<style>{selector} {{display:none}}</style>{page}") == ("x", [])


@pytest.mark.parametrize(
    "css",
    [
        "@media screen { p {display:none} }", "@import 'x'; @font-face {a:b}", "/* p{display:none}",
        "p{display:none", "}}}{{{", "@media a { @media b { p{display:none} } } }",
    ],
)  # fmt: skip
def test_odd_style_sheets_hide_nothing(css: str) -> None:
    assert look(f"<style>{css}</style><p>x</p>") == ("x", [])


def test_a_rule_after_odd_ones_counts() -> None:
    css = "<!-- @import 'x'; @media a { b {c:d} } /* { */ p {display:none} -->"
    assert look(f"<style>{css}</style><p>x</p>")[0] == ""


def test_a_page_that_its_script_will_show_is_seen() -> None:
    assert look("<style>body{display:none}</style><p>x</p>")[0] == "x"


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "css",
    [
        "* * * * * * * * .zz {display:none}" * 5000, "/*" * 200_000, "@" * 400_000,
        "{" * 400_000, ".a" * 200_000 + "{display:none}", "p," * 200_000 + "p{display:none}",
        "".join(f".x .c{n} {{display:none}}" for n in range(5000)), "[a" * 100_000,
    ],
    ids=["stars", "comments", "ats", "braces", "classes", "commas", "rules", "brackets"],
)  # fmt: skip
def test_hostile_style_sheets_cost_little(css: str) -> None:
    page = "<div>" * 100 + "".join(f"<p class='x c{n}'>t</p>" for n in range(1000))
    assert look(f"<style>{css}</style>{page}<h6>end</h6>")[0].endswith("end")


def test_an_element_without_a_look_of_its_own_passes_on_the_one_around_it() -> None:
    outer = _Look("off-page", (1, 2, 3), None)
    soup = BeautifulSoup('<p id="a" title="t">b</p><p class="c">d</p>', "lxml")
    plain, classy = soup.find_all("p")
    assert _look(plain, outer, {}) is outer
    assert _look(classy, outer, {}) == outer
    assert _look(plain, outer, {"color": "red"}).color == (255, 0, 0)
