"""The main content of a web page."""

from bs4 import BeautifulSoup

from services.converter.parsing.article import main_text, page_tree
from services.converter.parsing.content import reduce_to_content

SENTENCES = [
    f"Paragraph {n} of the article tells in plain words what happened on day {n} of the journey "
    "along the river, and why nobody had expected the weather to change so quickly."
    for n in range(8)
]  # fmt: skip
ARTICLE = "".join(f"<p>{s}</p>" for s in SENTENCES)


def reduced(html: str) -> str:
    soup = BeautifulSoup(html, "lxml")
    reduce_to_content(soup, html, main_text(page_tree(html)))
    return soup.body.get_text(" ", strip=True) if soup.body else ""


def test_navigation_forms_and_notices_go() -> None:
    page = (
        "<body><nav><a href=/>Home</a></nav><header role=banner>Site name</header>"
        "<div class='cookie-banner'>We use cookies. Accept?</div>"
        f"<main><h1>The journey</h1>{ARTICLE}</main>"
        "<div class=related><a href=1>Another story</a></div><footer>Imprint</footer></body>"
    )
    text = reduced(page)
    assert "The journey" in text
    assert all(sentence in text for sentence in SENTENCES)
    for noise in ("Home", "Site name", "cookies", "Another story", "Imprint"):
        assert noise not in text


def test_the_first_heading_is_kept_when_it_stands_outside() -> None:
    page = f"<body><header><h1>The journey</h1></header><article>{ARTICLE}</article></body>"
    assert reduced(page).startswith("The journey")


def test_tables_and_code_of_an_article_are_kept() -> None:
    extra = "<table><tr><td>cell</td></tr></table><pre>code()</pre>"
    text = reduced(f"<body><article><h1>T</h1>{ARTICLE}{extra}</article></body>")
    assert "cell" in text
    assert "code()" in text


def test_a_plain_document_loses_nothing() -> None:
    page = "<body><h1>Act</h1>" + "".join(f"<h2>§ {n}</h2><p>Text {n}.</p>" for n in range(30))
    text = reduced(page)
    assert all(f"Text {n}." in text for n in range(30))


def test_a_page_inside_a_wrongly_named_element_survives() -> None:
    page = f"<body><div class='sidebar widget menu'><h1>T</h1>{ARTICLE}</div></body>"
    assert SENTENCES[-1] in reduced(page)


def test_an_empty_page_is_no_error() -> None:
    assert reduced("<html></html>") == ""


SITE = "<div><a href=/{n}>Link to page {n} of the site</a></div>"
FURNITURE = "<div>" + "".join(SITE.replace("{n}", str(n)) for n in range(20)) + "</div>"
ASIDE = "<div><span>Written by somebody</span></div>"


def test_what_the_extractor_left_out_of_a_site_page_goes() -> None:
    page = f"<body>{FURNITURE}{ASIDE}<div>{ARTICLE}</div>{FURNITURE}</body>"
    text = reduced(page)
    assert SENTENCES[-1] in text
    assert "Written by somebody" not in text
    assert "Link to page" not in text


def test_a_caption_without_its_picture_goes_on_a_site_page() -> None:
    figure = "<figure><img src=x><figcaption>A boat on the river.</figcaption></figure>"
    assert "A boat" not in reduced(f"<body>{FURNITURE}<div>{ARTICLE}{figure}</div></body>")
    assert "A boat" in reduced(f"<body><div>{ARTICLE}{figure}</div></body>")


def test_a_plain_document_keeps_what_the_extractor_left_out() -> None:
    page = f"<body>{ASIDE}<div>{ARTICLE}</div></body>"
    assert "Written by somebody" in reduced(page)


NEXT = SENTENCES[4:]


def of_site(*inner: str) -> str:
    paragraphs = "".join(f"<p>{s}</p>" for s in SENTENCES[:4])
    after = "".join(f"<p>{s}</p>" for s in NEXT)
    return reduced(f"<body>{FURNITURE}<div>{paragraphs}{''.join(inner)}{after}</div></body>")


def test_a_list_of_links_in_paragraphs_stays() -> None:
    links = [f"<p><a href=/{n}>Episode {n} of our travels by boat</a></p>" for n in range(5)]
    text = of_article("", "".join([*links, END]))
    assert all(f"Episode {n} of" in text for n in range(5))


def test_an_address_is_no_pointer() -> None:
    address = "<p><a href=x>https://example.org/report/2020</a></p>"
    assert "example.org/report" in of_article("", address + END)


def test_a_sentence_about_registering_is_no_call_to_it() -> None:
    said = "The <a href=/b>brand</a> was not formally registered and can be seen on YouTube."
    assert "formally registered" in of_site(f"<p>{said}</p>")
    assert "our newsletter" not in of_site("<p>Subscribe to <a href=/n>our newsletter</a> now.</p>")


END = f"<p>{SENTENCES[0]} That was all.</p>"
LEAD = "A village on the river had three days to leave before its bridge was carried away."
HEAD = (
    f"<head><meta property='og:type' content='article'><meta name='description' content='{LEAD}'>"
)


def of_article(above: str, inner: str = "", below: str = "") -> str:
    return reduced(
        f"<html>{HEAD}</head><body>{FURNITURE}{above}<div>{ARTICLE}{inner}</div>{below}</body></html>"
    )


def test_the_lead_that_describes_an_article_is_part_of_it() -> None:
    text = of_article(f"<header class=banner><h1>The flood</h1><div>{LEAD}</div></header>")
    assert text.index("The flood") < text.index(LEAD) < text.index(SENTENCES[0])
    assert text.count(LEAD) == 1


def test_a_description_below_the_article_is_no_lead() -> None:
    assert LEAD not in of_article("", below=f"<div class=x><div>{LEAD}</div></div>")


def test_what_stands_in_the_header_beside_the_lead_goes() -> None:
    header = f"<header><div><span>Our motto</span></div><h1>Flood</h1><div>{LEAD}</div></header>"
    text = of_article(header)
    assert LEAD in text
    assert "Our motto" not in text


def test_a_heading_that_leads_to_another_page_goes() -> None:
    heading = "<h3>MIRA: <a href=/x>Mayor opens the second bridge in ten years</a></h3>"
    assert "second bridge" not in of_site(heading)
    assert "second bridge" in of_site("<h3>Mayor opens the second bridge in ten years</h3>")


def test_the_credit_of_a_picture_goes() -> None:
    for credit in ("Foto: Jane Doe / Agency", "Photo by Jane Doe", "© Jane Doe", "Bild: Agentur"):
        assert credit not in of_site(f"<p>{credit}</p>")
    assert "Photography was" in of_site("<p>Photography was his life, and by 1910 his work.</p>")


def test_a_notice_of_cookies_goes_from_a_page_that_is_no_article() -> None:
    notice = "<div><div><span>This page uses cookies for your comfort.</span></div></div>"
    page = f"<body>{FURNITURE}<div>{ARTICLE}{{}}</div></body>"
    assert "for your comfort" not in reduced(page.format(notice))


def test_a_paragraph_that_is_one_link_to_another_page_goes_from_an_article() -> None:
    link = "<p><a href=/other>Mayor tells of the second flood in ten years</a></p>"
    inner = link + END
    assert "second flood" not in of_article("", inner)
    assert "That was all." in of_article("", inner)
    assert "second flood" in of_site(link)


def test_a_paragraph_that_links_lead_to_or_that_leads_to_one_of_its_page_stays() -> None:
    for attributes in ("name=flood", "id=flood", "href=#flood", "href=#flood name=top"):
        inner = f"<p><a {attributes}>Mayor tells of the second flood in ten years</a></p>" + END
        assert "second flood" in of_article("", inner), attributes
    for attributes in ("href=#", "onclick=go()", "href=/other#flood", "href=/other name=flood"):
        inner = f"<p><a {attributes}>Mayor tells of the second flood in ten years</a></p>" + END
        assert "second flood" not in of_article("", inner), attributes


def test_a_page_within_a_place_that_was_left_open_is_no_link() -> None:
    page = f"<body><nav><a href=/>Home</a></nav><div><a name=top>{ARTICLE}</div></body>"
    assert all(sentence in reduced(page) for sentence in SENTENCES)


BYLINE = "<div><span>Jane Doe</span></div>"


def titled(title: str, above: str) -> str:
    head = HEAD + f"<title>{title}</title></head>"
    return reduced(f"<html>{head}<body>{FURNITURE}{above}<div>{ARTICLE}</div></body></html>")


def test_the_heading_that_is_the_title_stays_though_a_byline_stands_between() -> None:
    for level in ("h1", "h2"):
        heading = f"<{level}>The flood</{level}>"
        assert titled("The flood - Daily News", heading + BYLINE).startswith("The flood")
        text = titled("The flood - Daily News", f"<header>{heading}{BYLINE}</header>")
        assert text.startswith("The flood")
        assert "Jane Doe" not in text


def test_the_heading_that_is_the_title_stays_beside_the_one_of_the_site() -> None:
    above = f"<header><h1>Daily News</h1></header><h1>The flood of the year</h1>{BYLINE}"
    text = titled("The flood of the year | Daily News", above)
    assert text.startswith("The flood of the year")
    assert "Daily News" not in text


def test_the_title_stands_there_once() -> None:
    copy = f"<h1>{SENTENCES[0]}</h1>"
    assert titled(SENTENCES[0], copy + BYLINE).count(SENTENCES[0]) == 1


def test_a_text_that_stands_twice_in_an_article_stays_twice() -> None:
    refrain = "<p>And the river runs and runs, down to the sea it runs.</p>"
    inner = f"{refrain}<p>{SENTENCES[0]} Then came May.</p>{refrain}{END}"
    assert of_article("", inner).count("down to the sea") == 2


def test_what_another_place_of_the_page_quotes_of_an_article_stays_once() -> None:
    below = f"<ul><li>{SENTENCES[0]}</li></ul><div><div>{SENTENCES[0]}</div></div>"
    assert of_article("", below=below).count(SENTENCES[0]) == 1


def test_a_heading_that_goes_on_in_the_middle_of_the_title_is_not_it() -> None:
    above = f"<div><h2>In the valley of the river</h2></div>{BYLINE}"
    assert "In the valley" not in titled("Flood in the valley of the river - Daily", above)
    assert "In the valley" in titled("News | In the valley of the river", above)
