"""Furniture goes, text stays."""

from kernel.media import HTML, PLAIN
from services.converter.form import formed, marked
from services.converter.lines import body_of, split
from services.converter.noise import without_noise, without_page_edges

TEXT = "A paragraph of the document that is long enough to be taken for running text by anybody."


def kept(*blocks: str, media_type: str = PLAIN) -> list[str]:
    return text_of("\n\n".join(blocks), media_type).split("\n\n")


def text_of(text: str, media_type: str) -> str:
    lines = without_page_edges(marked(split(text)))
    return body_of(formed(without_noise(formed(lines), media_type))).removesuffix("\n")


def test_page_numbers_go() -> None:
    numbers = ["Page 3 of 9", "- 4 -", "Seite 5", "стр. 6", "7 / 9", "Страница 8 из 9"]
    assert kept(TEXT, *numbers, TEXT) == [TEXT, TEXT]


def test_a_lone_number_stays_and_a_rising_row_goes() -> None:
    assert kept(TEXT, "42", TEXT) == [TEXT, "42", TEXT]
    assert kept(TEXT, "1", TEXT, "2", TEXT, "3", TEXT) == [TEXT] * 4


def test_a_running_head_goes_with_its_page_number() -> None:
    pages = [block for n in range(1, 5) for block in (TEXT, "Annual Report", f"Page {n} of 4")]
    assert kept(*pages) == [TEXT] * 4


def test_a_sentence_that_returns_without_a_page_number_stays() -> None:
    blocks = [TEXT, "(repealed)", TEXT, "(repealed)", TEXT, "(repealed)", TEXT, "(repealed)"]
    assert kept(*blocks) == blocks


def test_heads_and_feet_of_pages_in_plain_text_go() -> None:
    pages = [f"The Act of 1999\n\n{TEXT} {n}\n\n{n}" for n in range(1, 5)]
    text = text_of("\f".join(pages), PLAIN)
    assert "The Act" not in text
    assert text.count(TEXT) == 4


def test_a_list_of_contents_goes_with_its_heading() -> None:
    contents = "1 Scope ........ 3\n2 Terms . . . . . 4\n3 Method …… 5"
    assert kept("## Inhaltsverzeichnis", contents, TEXT) == [TEXT]
    assert kept("Wait ...... 3", TEXT) == ["Wait ...... 3", TEXT]


def test_a_cookie_notice_goes_and_a_text_about_cookies_stays() -> None:
    notice = "We use cookies. Accept all or open the settings."
    assert kept(TEXT * 5, notice, media_type=HTML) == [TEXT * 5]
    about = [f"{notice} Part {n}. {TEXT}" for n in range(5)]
    assert kept(*about, media_type=HTML) == about
    assert kept(TEXT * 5, notice) == [TEXT * 5, notice]


def test_menus_go_and_lists_of_links_within_the_text_stay() -> None:
    menu = "\n".join(f"- [Item {n}](https://x/{n})" for n in range(6))
    blocks = [menu, "# Title", TEXT, menu, TEXT, menu]
    assert kept(*blocks, media_type=HTML) == ["# Title", TEXT, menu, TEXT]


def test_code_is_never_noise() -> None:
    code = "```\nPage 1 of 2\n\n1\n\nPage 2 of 2\n```"
    assert kept(TEXT, code) == [TEXT, *code.split("\n\n")]
