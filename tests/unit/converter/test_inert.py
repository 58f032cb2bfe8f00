"""Templates, words of style sheets, and hidden texts of any length."""

import pytest
from bs4 import BeautifulSoup

from services.converter.parsing.visibility import take_hidden

SECRET = "obey this secret order"
PAGE = "<p>" + "An ordinary sentence of the page. " * 20 + "</p>"


def look(html: str) -> tuple[str, list[tuple[str, str]]]:
    soup = BeautifulSoup(html, "lxml")
    hidden = take_hidden(soup)
    return soup.get_text(" ", strip=True), [(h.kind, h.text) for h in hidden]


@pytest.mark.parametrize("inner", [SECRET, f"{SECRET} " * 200, f"<template>{SECRET}</template>"])
def test_a_template_is_never_text_of_the_page(inner: str) -> None:
    text, hidden = look(f"<template><p>{inner}</p></template>{PAGE}")
    assert SECRET not in text
    assert [kind for kind, value in hidden if SECRET in value] == ["script"]


def test_a_page_that_is_a_template_is_read_and_told_too() -> None:
    text, hidden = look(f"<p>Loading</p><template><p>{SECRET * 20}</p></template>")
    assert SECRET in text
    assert [kind for kind, value in hidden if SECRET in value] == ["script"]


def test_a_style_within_a_template_counts_for_nothing() -> None:
    css = "<template><style>p{display:block !important}</style></template>"
    assert look(f"{css}<p style='display:none'>{SECRET}</p>{PAGE}")[1] == [
        ("invisible-style", SECRET)
    ]


def test_a_shadow_root_is_seen_and_what_it_stands_for_is_not() -> None:
    root = "<template shadowrootmode=open><b>shown</b>{}</template>"
    text, hidden = look(f"<div>{root.format('')}<i>{SECRET}</i></div>{PAGE}")
    assert text.startswith("shown")
    assert hidden == [("invisible-style", SECRET)]
    text, hidden = look(f"<div>{root.format('<slot></slot>')}<i>{SECRET}</i></div>{PAGE}")
    assert SECRET in text
    assert hidden == []


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("<object data=x><p>{}</p></object>", "script"), ("<iframe>{}</iframe>", "script"),
        ("<select><option>a<option>{}</select>", "attribute"),
        ("<ruby>a<rp>{}</rp><rt>b</rt></ruby>", "attribute"),
        ("<math><semantics><mi>x</mi><annotation>{}</annotation></semantics></math>", "attribute"),
    ],
)  # fmt: skip
def test_what_is_left_out_of_the_text_is_told(form: str, kind: str) -> None:
    assert look(form.format(SECRET) + PAGE)[1] == [(kind, SECRET)]


@pytest.mark.parametrize("form", ["<noscript>{}</noscript>", "<template>{}</template>", "{}"])
@pytest.mark.parametrize(
    "inner",
    [f"<img alt='{SECRET}'>", f"<p title='{SECRET}'>a</p>", f"<iframe title='{SECRET}'></iframe>"],
)
def test_attributes_of_what_is_left_out_are_told(form: str, inner: str) -> None:
    assert SECRET in {text for _, text in look(form.format(inner) + PAGE)[1]}


def test_of_several_shadow_roots_the_first_is_seen() -> None:
    roots = "".join(f"<template shadowrootmode=open>{n}</template>" for n in ("one", SECRET))
    text, hidden = look(f"<div>{roots}</div>{PAGE}")
    assert text.startswith("one An ordinary")
    assert hidden == [("invisible-style", SECRET)]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "html",
    [
        "<template><p>x" * 3000, "<noscript><p>x</p></noscript>" * 10_000,
        f"<div>{'<template shadowrootmode=open>x</template>' * 3000}</div>",
        f"<div>{'<b>words</b>' * 5000}"
        f"{'<i style=position:fixed;inset:0;background:red></i>' * 500}",
        f"<style>*{{{';'.join(f'--k{n}:1' for n in range(999))}}} i{{"
        f"{';'.join(f'--k{n}:2' for n in range(999))}}}"
        f"p{{color:{' '.join(f'var(--k{n})' for n in range(999))}}}</style>{'<p>x</p>' * 3000}",
        f"<style>:root{{{';'.join(f'--a{n}:' + f'var(--a{n + 1})' * 20 for n in range(30))}}}"
        f"p{{color:var(--a0)}} i{{--a0:red}}</style>{'<p>x</p>' * 2000}",
        f"<div style=display:none>{'<i>x</i>' * 60_000}",
    ],
    ids=["templates", "stand-ins", "roots", "covers", "variables", "nested variables", "a block"],
)  # fmt: skip
def test_hostile_pages_cost_little(html: str) -> None:
    assert "ordinary" in "".join(map(str, look(html + PAGE)))


def test_what_stands_in_for_the_page_is_told_even_where_it_is_read() -> None:
    text, hidden = look("<noscript><p>" + SECRET * 20)
    assert SECRET in text
    assert hidden == [("script", SECRET * 20)]


@pytest.mark.parametrize(
    "css",
    [
        f"p::before{{content:'{SECRET}'}}", f'p:after {{ content : "{SECRET}" }}',
        "p::before{content:'obey this '} i::after{content:\"secret order\"}",
        f"@media print{{p::before{{content:'{SECRET}'}}}}",
        f":root{{--t:'{SECRET}'}} p::before{{content:var(--t)}}",
        "p::before{content:'\\6f bey this secret' ' order'}",
        f"ul{{list-style-type:'{SECRET}'}}", f"p{{color:red;content:url(x.png) / '{SECRET}'}}",
        "p::before{content:'obey this \\\nsecret order'}",
    ],
)  # fmt: skip
def test_words_that_a_style_sheet_puts_on_the_page_are_told(css: str) -> None:
    told = [(kind, " ".join(text.split())) for kind, text in look(f"<style>{css}</style>{PAGE}")[1]]
    assert told == [("attribute", SECRET)]


def test_words_may_come_by_a_variable_of_an_element() -> None:
    hidden = look(f"<p style=\"--t:'{SECRET}'\">a</p>{PAGE}")[1]
    assert hidden == [("attribute", SECRET)]


@pytest.mark.parametrize(
    "css",
    [
        "i::before{content:'\\f101'} b::before{content:'\\f0c9' '\uf101'} u::after{content:'»'}",
        "a::after{content:'New'} q{quotes:'«' '»'} li::before{content:'\\2022'}",
        "@font-face{font-family:'Four Words Of It';src:url('all these words here.woff')}",
        "p{background:url('obey this secret order.png');font-family:'Some Very Long Name'}",
        "i{content:url('data:image/svg+xml;utf8,<svg>obey this secret order</svg>')}",
        "p::before{content:counter(item) '. ' attr(data-a)}",
    ],
)  # fmt: skip
def test_signs_addresses_and_names_of_style_sheets_are_no_words(css: str) -> None:
    assert look(f"<style>{css}</style>{PAGE}")[1] == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "css", ["content:'" * 50_000, "--a:" * 100_000, 'content:"\\' * 50_000, "content:url(" * 40_000]
)
def test_odd_strings_cost_little(css: str) -> None:
    assert "ordinary" in look(f"<style>{css}</style>{PAGE}")[0]


def test_a_long_hidden_text_is_told_to_its_end() -> None:
    words = "word " * 30_000
    hidden = look(f"<p style='display:none'>{words}{SECRET} {words}</p>{PAGE}")[1]
    assert any(SECRET in text for _, text in hidden)
    assert max(len(text) for _, text in hidden) <= 20_000
    for cut in range(19_990, 20_010):
        hidden = look(f"<!--{'x' * cut} {SECRET}-->{PAGE}")[1]
        assert any(SECRET in text for _, text in hidden)
