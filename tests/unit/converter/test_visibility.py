"""What of a web page a reader does not see."""

import pytest
from bs4 import BeautifulSoup

from contracts.artifacts import HiddenText
from services.converter.parsing.css_values import Colour
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
        ("opacity: 1%", "invisible-style"),
        ("filter: opacity(0)", "invisible-style"),
        ("content-visibility: hidden", "invisible-style"),
        ("font: 0/0 serif", "zero-size"),
        ("font: 1px serif", "zero-size"),
        ("font-size: 0.1em", "zero-size"),
        ("font-size: calc(0px)", "zero-size"),
        ("transform: scaleX(0)", "zero-size"),
        ("transform: scale(0.001)", "zero-size"),
        ("transform: matrix(0, 0, 0, 0, 0, 0)", "zero-size"),
        ("transform: rotateY(90deg)", "zero-size"),
        ("scale: 0", "zero-size"),
        ("zoom: 0", "zero-size"),
        ("transform: translate(-9999px, 0)", "off-page"),
        ("translate: -9999px", "off-page"),
        ("position:absolute; left:-100vw", "off-page"),
        ("position:absolute; right:-9999px", "off-page"),
        ("position:absolute; bottom:-9999px", "off-page"),
        ("position:absolute; left:99999px", "off-page"),
        ("position:absolute; inset:-9999px auto auto 0", "off-page"),
        ("margin: -9999px 0 0", "off-page"),
        ("text-indent: -999em", "off-page"),
        ("text-indent:100%; white-space:nowrap; overflow:hidden", "off-page"),
        ("clip-path: circle(0)", "invisible-style"),
        ("clip-path: inset(100%)", "invisible-style"),
        ("clip-path: polygon(0 0, 0 0, 0 0)", "invisible-style"),
        ("max-height:0; overflow-y:hidden", "invisible-style"),
        ("height:0; overflow:clip", "invisible-style"),
        ("color: transparent", "invisible-style"),
        ("color: rgba(0, 0, 0, 0)", "invisible-style"),
        ("color: rgb(0 0 0 / 0%)", "invisible-style"),
        ("color: #0000", "invisible-style"),
        ("-webkit-text-fill-color: transparent", "invisible-style"),
        ("color: rgb(100%, 100%, 100%)", "background-colour"),
        ("color: hsl(0, 0%, 100%)", "background-colour"),
        ("color: mintcream", "background-colour"),
        ("color: rgba(0, 0, 0, 0.06)", "background-colour"),
        ("background:#123; color:#113", "background-colour"),
        ("opacity: 0.08", "invisible-style"),
        ("clip-path: inset(0 100% 0 0)", "invisible-style"),
        ("clip-path: inset(50%)", "invisible-style"),
        ("position:absolute; left:calc(-1 * 9999px)", "off-page"),
        ("position:absolute; left:calc(1px - 9999px)", "off-page"),
        ("transform: translateX(-1000%)", "off-page"),
        ("transform: rotate3d(0, 1, 0, 90deg)", "zero-size"),
        ("font-size: min(1px, 2vw)", "zero-size"),
        ("font-size: clamp(0px, 1px, 1px)", "zero-size"),
        ("color: oklch(100% 0 0)", "background-colour"),
        ("color: color(srgb 1 1 1)", "background-colour"),
        ("color: hwb(0 100% 0%)", "background-colour"),
        ("color: lab(99 0 0)", "background-colour"),
        ("color: oklab(0.5 0 0 / 0)", "invisible-style"),
        ("color: Canvas", "background-colour"),
        ("color:#fff;background:linear-gradient(#fff, #fff)", "background-colour"),
        ("color:#fff;-webkit-text-stroke:0", "background-colour"),
        ("--k:#fff; color:var(--k)", "background-colour"),
        ("--a:var(--b); --b:none; display:var(--a)", "invisible-style"),
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
        "color:white;background:url(dark.png)", "height:1px", "font:12px serif", "font-size:6pt",
        "color:#fff;background:linear-gradient(#000, #333)", "color:#fff;text-shadow:0 0 3px #000",
        "background:linear-gradient(#f00,#00f);-webkit-background-clip:text;color:transparent",
        "color:rgba(0,0,0,0.6)", "opacity:60%", "transform:scale(0.9) rotate(90deg)",
        "transform:translate(-50%,-50%)", "line-height:1;overflow:hidden", "font-size:75%",
        "max-height:300px;overflow:hidden", "color:#fff;background:var(--accent)", "color:inherit",
        "margin-left:-15px", "clip-path:inset(10%)", "color:var(--unknown)", "font-size:0.7rem",
        "width:1.5em;overflow:hidden", "z-index:2;position:relative", "opacity:0.5",
        "transform:translateX(-100%)", "clip-path:inset(0 40% 0 40%)", "color:oklch(50% 0 0)",
        "clip-path:inset(0 60% 0 0 round 50%)", "font-size:calc(12px + 1vw)", "color:lab(1 0 0)",
        "font-size:clamp(12px, 2vw, 20px)", "left:calc(50% - 400px)", "rotate:90deg",
        "color:hwb(200 10% 10%)", "color:#fff;background:linear-gradient(#fff, #000)",
        "--k:#fff;color:var(--j, black)", "-webkit-text-stroke:1px black;color:#fff",
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


def test_inner_text_can_be_seen_again() -> None:
    page = "<div style='font-size:0'>a <b style='font-size:16px'>b</b></div>"
    assert look(page)[0] == "b"
    page = "<div style='visibility:hidden'>a <b style='visibility:visible'>b</b></div>"
    assert look(page)[0] == "b"
    page = "<div style='display:none'>a <b style='display:block'>b</b></div>"
    assert look(page)[0] == ""


def test_a_dark_page_keeps_its_light_text() -> None:
    css = "<style>body{background:#111;color:#eee} th{background:#036;color:#fff}</style>"
    page = f"{css}<body><p>light</p><table><tr><th>head</th></tr></table><i style='color:#111'>no"
    assert look(page) == ("light head", [("background-colour", "no")])


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


def doubted(html: str) -> tuple[str, list[tuple[str, str]]]:
    filling = "<p>" + "An ordinary sentence of the page. " * 9 + "</p>"
    soup = BeautifulSoup(html + filling, "lxml")
    found: list[HiddenText] = []
    assert take_hidden(soup, doubted=found) == []
    return soup.get_text(" ", strip=True), [(h.kind, h.text) for h in found]


@pytest.mark.parametrize(
    ("html", "kind"),
    [
        ("<link rel=stylesheet href=x><p style='color:#fff'>{}</p>", "background-colour"),
        ("<link rel=stylesheet href=x><style>p{{color:#fff}}p+p{{color:#000}}</style><p>{}</p>",
         "background-colour"),
        ("<p style='letter-spacing:-1em'>{}</p>", "invisible-style"),
        ("<p style='filter:blur(20px)'>{}</p>", "invisible-style"),
        ("<p style='position:absolute;z-index:-1'>{}</p>", "invisible-style"),
        ("<p style='mix-blend-mode:screen'>{}</p>", "invisible-style"),
        ("<p style='mask:linear-gradient(transparent,transparent)'>{}</p>", "invisible-style"),
        ("<p style='color:#ddd'>{}</p>", "background-colour"),
        ("<p class='d-none'>{}</p>", "invisible-style"),
        ("<b style='position:absolute;top:9px'>{}</b>"
         "<i style='position:absolute;top:9px'><img></i>", "invisible-style"),
        ("<b style='position:absolute;top:9px'>{}</b>"
         "<i style='position:absolute;top:9px;background:#fff'></i>", "invisible-style"),
        ("<div><b>{}</b><i style='position:absolute;inset:0;background:#fff'></i></div>",
         "invisible-style"),
        ("<div><i style='position:absolute;inset:0;background:#fff'></i><b>{}</b></div>",
         "invisible-style"),
        ("<style>.c{{position:absolute}} .i{{inset:0}} .w{{background:#fff}}</style>"
         "<div><b>{}</b><i class='c i w'></i></div>", "invisible-style"),
        ("<div><b>{}</b><img style='position:absolute;top:0;left:0;width:100%;height:100%'></div>",
         "invisible-style"),
        ("<b style='opacity:0.2'>{}</b>", "background-colour"),
        ("<div><div style='opacity:0.4'><b style='opacity:0.4'>{}</b></div></div>",
         "background-colour"),
    ],
)  # fmt: skip
def test_what_people_perhaps_do_not_see_stays_and_is_told(html: str, kind: str) -> None:
    text, found = doubted(html.format(SECRET))
    assert SECRET in text
    assert found == [(kind, SECRET)]


@pytest.mark.parametrize(
    "html",
    [
        "<p style='position:absolute;top:9px'>a</p><p style='position:absolute;top:90px'><img></p>",
        "<p style='position:absolute;top:9px;z-index:3'>a</p>"
        "<p style='position:absolute;top:9px;z-index:1'><img></p>",
        "<p style='filter:blur(1px)'>a</p>", "<p style='letter-spacing:-0.5px'>a</p>",
        "<p style='color:#999'>a</p>", "<p class='shown'>a</p>", "<p style='opacity:0.6'>a</p>",
        "<div><p>a</p><a style='position:absolute;inset:0'></a></div>",
        "<div><p>a</p><i style='position:absolute;inset:0;background:rgba(0,0,0,.4)'></i></div>",
        "<div><i style='position:absolute;inset:0;background:#ccc'></i>"
        "<p style='position:relative'>a</p></div>",
        "<div><p style='position:relative;z-index:2'>a</p>"
        "<img style='position:absolute;inset:0'></div>",
        "<div><p>a</p><i style='position:absolute;inset:auto 0 0;background:#fff'></i></div>",
    ],
)  # fmt: skip
def test_what_people_see_raises_no_doubt(html: str) -> None:
    assert doubted(html)[1] == []


def test_a_page_whose_look_is_not_known_raises_no_doubt() -> None:
    page = f"<link rel=stylesheet href=x><body style='color:#fff'><p>{SECRET}</p>"
    assert doubted(page)[1] == []


def test_words_for_machines_are_kept_for_the_scanner() -> None:
    said = "Mind this sentence number {}"
    page = "".join(
        form.format(said.format(number))
        for number, form in enumerate([
            "<title>t</title><title>{}</title>", "<meta property='og:title' content='{}'>",
            "<meta name='any-name' content='{}'>",
            "<script type='application/ld+json'>{{\"a\": [\"{}\", 1, \"short\"]}}</script>",
            "<svg><title>{}</title></svg>", "<svg><text fill='none'>{}</text></svg>",
            "<svg><defs><text>{}</text></defs></svg>", "<p data-note='{}'>x</p>",
            "<input type=hidden value='{}'>", "<datalist><option>{}</datalist>",
            "<dialog>{}</dialog>", "<p aria-description='{}'>x</p>",
        ])
    )  # fmt: skip
    _, hidden = look(page)
    values = " ".join(value for _, value in hidden)
    assert [n for n in range(12) if said.format(n) not in values] == []
    assert ("invisible-style", said.format(5)) in hidden
    assert ("invisible-style", said.format(6)) in hidden


def test_data_for_programs_are_no_text() -> None:
    page = (
        "<meta name=viewport content='width=device-width, initial-scale=1, a=b, c=d'>"
        "<meta http-equiv=x content='four words of it here'><p data-config='{\"a\": 1, \"b\": 2}'>x"
        "</p><script>var a = 'four words of code'</script><input value='123 456 789 000'>"
    )
    assert look(page) == ("x", [])


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
        "@media print { p {display:none} }", "@import 'x'; @font-face {a:b}", "/* p{display:none}",
        "}}}{{{", "@media a { @media b { p{display:none} } } }",
        "p{color:#fff;background:var(--x)}",
        "@media (max-width:600px) { p{display:none} }", "p:hover{display:none}",
        "@media (prefers-color-scheme: dark) { p{color:#fff} }",
        "@supports not (a:b) {p{opacity:0}}",
        "@keyframes k { from {opacity:0} }", "b{ p{display:none} }", "p{opacity:0} p{opacity:1}",
        "@media (width < 600px) { p{display:none} }",
        ":root{--w:#000} b{--w:#fff} p{color:var(--w)}",
        ":root{--n:block} [data-theme=x]{--n:none} p{display:var(--n)}",
        "p{display:none} body p{display:block}", "p{display:block !important} p{display:none}",
    ],
)  # fmt: skip
def test_odd_style_sheets_hide_nothing(css: str) -> None:
    assert look(f"<style>{css}</style><p>x</p>") == ("x", [])


@pytest.mark.parametrize(
    "css",
    [
        "p{display:none", "@media screen { p{display:none} }",
        "@media all and (min-width:1px){p{opacity:0}}",
        "@supports (display:grid) { p{display:none} }", "@layer a { p{display:none} }",
        "body{ & p{display:none} }", "body{ p{display:none} }", "h6 ~ p{display:none}",
        "h6 + p{display:none}", "p:nth-of-type(1){display:none}", "p:not(.z){display:none}",
        ":is(p, b){display:none}", "p:not(:focus){display:none}", r".\70 q{display:none}",
        r"p{d\69splay:none}", ":root{--n:none} p{display:var(--n)}", "p{display:var(--q, none)}",
        "p.pq{display:none!important} p.pq{display:block}", "p.pq{display:none} p{display:block}",
        "[class='pq r']{display:none}", "p{height:0} p{overflow:hidden}",
        ":root{--w:#fff} p{color:var(--w)}",
        "@charset 'utf-8'; @import url(x.css); p{display:none}",
        "body{ p, b{display:none} }", "body, b{ p{display:none} }",
        "@media (width >= 600px){ p{display:none} }", "@media (300px<width<1400px){p{opacity:0}}",
        ":root{--w:#000} .pq{--w:#fff} p{color:var(--w)}",
        ".r{--w:#fff} b{--w:red} p{color:var(--w)}",
        ".pq{--n:var(--m)} b{--n:block} :root{--m:none} p{display:var(--n)}",
    ],
)  # fmt: skip
def test_rules_that_count_on_a_usual_screen(css: str) -> None:
    text, hidden = look(f"<style>{css}</style><h6>t</h6><p class='pq r'>x</p>")
    assert (text, [value for _, value in hidden]) == ("t", ["x"])


def test_a_sheet_for_paper_hides_nothing() -> None:
    assert look("<style media=print>p{display:none}</style><p>x</p>") == ("x", [])


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
    outer = _Look("off-page", Colour(1, 2, 3), None)
    soup = BeautifulSoup('<p id="a" title="t">b</p><p class="c">d</p>', "lxml")
    plain, classy = soup.find_all("p")
    assert _look(plain, outer, {}) is outer
    assert _look(classy, outer, {}) == outer
    assert _look(plain, outer, {"color": "red"}).color == Colour(255, 0, 0)
