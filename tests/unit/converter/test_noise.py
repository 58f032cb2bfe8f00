"""Furniture goes, text stays."""

import pytest

from kernel.media import HTML, PLAIN
from services.converter.form import formed, marked
from services.converter.lines import body_of, split
from services.converter.noise import without_noise
from services.converter.pages import without_page_edges

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


@pytest.mark.parametrize(
    "blocks",
    [
        ("Rating", "4 / 5", TEXT),
        ("Founded", "1999", TEXT, "2000", TEXT, "2001", TEXT, "2002", TEXT),
        ("1", "2", "3", "4"),
        (TEXT, "Page 3", TEXT),
        (TEXT, "- 4 -", TEXT),
        ("| 1 | 2 |\n|---|---|\n| 3 | 4 |", TEXT, "| 2 |\n|---|\n| 3 |"),
        ("Apples ........ 3", "Pears ........ 4", "Plums ........ 9", TEXT),
        ("Apples 3\nPears 4\nPlums 9", TEXT),
        ("## Contents", "One 9\nTwo 4\nThree 7", TEXT),
        ("Chapter 1", TEXT, "Page 1 of 3", "Chapter 2", TEXT, "Page 2 of 3", "Chapter 3", TEXT),
    ],
)
def test_numbers_that_mean_something_stay(blocks: tuple[str, ...]) -> None:
    assert kept(*blocks) == [block for block in blocks if not block.startswith("Page 1 of 3")
                             and not block.startswith("Page 2 of 3")]  # fmt: skip


def test_a_heading_at_the_top_of_each_page_is_no_running_head() -> None:
    pages = [f"Article {n}\n\n{TEXT} {n}\n\nGazette\n\n{n}" for n in range(1, 6)]
    text = text_of("\f".join(pages), PLAIN)
    assert [f"Article {n}" in text for n in range(1, 6)] == [True] * 5
    assert "Gazette" not in text


def _form(number: int) -> str:
    return (
        f"ACME Ltd\nInvoice\nNo {1000 + 7 * number}\n\nCustomer: Person {chr(65 + number)}\n"
        f"Article    Price\nWidget {number}    {number}.50\nPlease pay within 30 days.\n"
        f"Delivery: Street {number}\n\nTotal: {number}.50\nThank you\nACME Ltd, Some Street\n\n"
        f"Page {number + 1} of 6"
    )


def test_what_returns_in_forms_is_their_text() -> None:
    text = text_of("\f".join(map(_form, range(6))), PLAIN)
    for edge in ("ACME Ltd\nInvoice\nNo ", "Thank you\nACME Ltd, Some Street"):
        assert text.count(edge) == 6
    assert "Page " not in text
    # Among pages of another kind as well.
    words = [chr(97 + n) * 6 for n in range(9)]
    pages = ["Gazette\n" + "\n".join(f"{n} {word} goes on" for n in range(9)) for word in words]
    text = text_of("\f".join([*map(_form, range(6)), *pages]), PLAIN)
    assert text.count("Thank you\nACME Ltd, Some Street") == 6
    assert "Gazette" not in text


def test_pages_that_say_little_but_what_returns_keep_it() -> None:
    pages = [f"REMINDER\nPlease pay your bill.\nYour library\n{n}.50 euro" for n in range(4)]
    assert text_of("\f".join(pages), PLAIN).count("Please pay your bill.\nYour library") == 4
    assert text_of("\f".join(["REMINDER\nPlease pay."] * 3), PLAIN).count("Please") == 3


def test_a_report_of_rows_loses_its_running_head_and_so_does_a_short_last_page() -> None:
    rows = "\n".join(f"{n}00{n}    Name{n}    {n}.00" for n in range(9))
    pages = [
        f"LIST OF STOCK\nNumber  Name  Price\n{rows.replace('Name', f'Name{page}')}"
        for page in range(5)
    ]
    text = text_of("\f".join([*pages, "LIST OF STOCK\nEnd."]), PLAIN)
    assert "LIST OF STOCK" not in text and text.endswith("End.")


def test_a_year_at_the_foot_of_a_page_stays() -> None:
    assert text_of(f"{TEXT}\n\n1999\f{TEXT}", PLAIN).count("1999") == 1


def test_a_sentence_over_the_end_of_a_page_is_one_again() -> None:
    pages = ["Gazette\nThe park is open from", "Gazette\ndawn to dusk.", "Gazette\nIt is free."]
    assert text_of("\f".join(pages), PLAIN) == (
        "The park is open from\ndawn to dusk.\n\nIt is free."
    )


def test_code_at_the_ends_of_pages_stays() -> None:
    page = "```\nPage 1 of 2\n}\n```"
    assert text_of(f"{page}\f{page}\f{page}", PLAIN).count("}") == 3


def test_a_list_of_contents_goes_with_its_heading() -> None:
    contents = "1 Scope ........ 3\n2 Terms . . . . . 4\n3 Method …… 5"
    assert kept("## Inhaltsverzeichnis", contents, TEXT) == [TEXT]
    assert kept("Contents", "Scope 3\nTerms 4\nMethod 5", TEXT) == [TEXT]
    assert kept(contents, "1 Scope", TEXT, "2 Terms", TEXT) == ["1 Scope", TEXT, "2 Terms", TEXT]
    assert kept("Wait ...... 3", TEXT) == ["Wait ...... 3", TEXT]


@pytest.mark.parametrize(
    "notice",
    [
        "We use cookies to improve our site. By continuing you agree to their use.",
        "Wir verwenden Cookies. Mit dem Klick auf „Akzeptieren“ stimmen Sie zu.",
        "Този сайт използва бисквитки. Приемам.",
        "Мы используем файлы cookie. Принять все.",
        "Овај сајт користи колачиће. Прихватам.",
        "Ovaj sajt koristi kolačiće. Prihvatam.",
        "Оваа страница користи колачиња. Прифаќам.",
        "Ova stranica koristi kolačiće. Prihvaćam.",
        "Spletna stran uporablja piškotke. Strinjam se.",
    ],
)
def test_cookie_notices_go_in_every_language(notice: str) -> None:
    assert kept(TEXT * 5, notice, media_type=HTML) == [TEXT * 5]


@pytest.mark.parametrize(
    "link",
    [
        "Skip to content", "[Skip to main content](#main)", "Zum Inhalt springen",
        "Перейти к содержимому", "Към съдържанието", "Прескочи на садржај",
        "Preskoči na glavni sadržaj", "Прескокни на содржина", "Skoči na vsebino",
    ],
)  # fmt: skip
def test_links_past_the_navigation_go(link: str) -> None:
    assert kept(link, "# Title", TEXT, media_type=HTML) == ["# Title", TEXT]


def test_a_row_of_links_is_a_menu_and_a_sentence_with_links_is_none() -> None:
    row = " | ".join(f"[Item {n}](/x/{n})" for n in range(4))
    assert kept(row, "# Title", TEXT, row, media_type=HTML) == ["# Title", TEXT]
    text = f"See {row} for more."
    assert kept(text, "# Title", TEXT, media_type=HTML) == [text, "# Title", TEXT]


def test_a_heading_of_a_wiki_loses_its_edit_link() -> None:
    heads = ["## History [edit]", "## Geschichte [Bearbeiten | Quelltext bearbeiten]",
             "## История [править | править код]", "## Povijest [uredi | uredi kôd]"]  # fmt: skip
    found = kept(*(part for head in heads for part in (head, TEXT)), media_type=HTML)
    assert found[::2] == ["## History", "## Geschichte", "## История", "## Povijest"]


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
