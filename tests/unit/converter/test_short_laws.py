"""Laws of two or three articles get headings; texts that speak of laws do not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.media import HTML, MARKDOWN, PLAIN
from services.converter.laws.short import _LONGEST
from tests.unit.converter.test_laws import body, heads, law

BULGARIAN = (
    "Чл. 1. Този закон урежда парковете в общините.",
    "Чл. 2. Парковете са отворени за всички граждани.",
    "§ 1. Законът влиза в сила от деня на обнародването му.",
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (law("ЗАКОН ЗА ПАРКОВЕТЕ", *BULGARIAN), ["# Чл. 1.", "# Чл. 2.", "# § 1."]),
        (
            law("ЗАКОН ЗА ПАРКОВЕТЕ", *BULGARIAN[:2], "Заключителна разпоредба", BULGARIAN[2]),
            ["# Чл. 1.", "# Чл. 2.", "# Заключителна разпоредба", "## § 1."],
        ),
        (
            law("ЗАКОН ЗА ПАРКОВЕТЕ", "Глава първа", "ОБЩИ ПОЛОЖЕНИЯ", BULGARIAN[0],
                "Глава втора", "ДРУГИ", BULGARIAN[1]),
            ["# Глава първа ОБЩИ ПОЛОЖЕНИЯ", "## Чл. 1.", "# Глава втора ДРУГИ", "## Чл. 2."],
        ),
        (
            law("ЗАКОН\nза изменение на Закона за парковете", "§ 1. Думата „кмет“ се заличава.",
                "§ 2. Член 5 се отменя."),
            ["# § 1.", "# § 2."],
        ),
        (
            law("Gesetz über Parks", "§ 1\nZweck", "Der Park ist grün.", "§ 2\nBegriffe",
                "Ein Park ist eine Grünfläche.", "Artikel 3\nInkrafttreten", "Es gilt morgen."),
            ["# § 1 Zweck", "# § 2 Begriffe", "# Artikel 3 Inkrafttreten"],
        ),
        (
            law("Gesetz über Parks", "Artikel 1 Parkgesetz", "§ 1 Zweck", "Der Park ist grün.",
                "§ 2 Ziel", "Er bleibt grün.", "Artikel 2 Inkrafttreten", "Es gilt morgen."),
            ["# Artikel 1 Parkgesetz", "## § 1 Zweck", "## § 2 Ziel",
             "# Artikel 2 Inkrafttreten"],
        ),
        (
            law("Parks Act", "Section 1. Scope", "This Act is about parks.",
                "Section 2. Entry into force", "This Act enters into force tomorrow."),
            ["# Section 1. Scope", "# Section 2. Entry into force"],
        ),
        (
            law("ODLUKA", "o parkovima", "Članak 1.", "Ovom se odlukom uređuju parkovi.",
                "Članak 2.", "Ova odluka stupa na snagu osmog dana."),
            ["# Članak 1.", "# Članak 2."],
        ),
    ],
)  # fmt: skip
def test_a_law_of_few_articles_has_headings(text: str, wanted: list[str]) -> None:
    assert heads(text) == wanted
    once = body(text)
    assert body(once, MARKDOWN) == once


@pytest.mark.parametrize(
    "text",
    [
        law("Бележки за парковете", *BULGARIAN[:2]),
        law("ЗАКОН ЗА ПАРКОВЕТЕ", BULGARIAN[0], "Чл. 5. Другото е отменено."),
        law("ЗАКОН ЗА ПАРКОВЕТЕ", BULGARIAN[1], "Чл. 3. Другото е отменено."),
        law("Parks Act", "Article 1 is about its scope.", "Article 2 tells what a park is."),
        law("Parks Act", "Article 1", "Article 2", "Both are repealed."),
        law("Parks Act", "Article 1", "Parks are green.", "Article 2"),
        law("Law in practice", "I have read two articles. " * 30, "Article 1",
            "Parks are green.", "Article 2", "Parks are open."),
        law("Parks Act", "Article 1", "Parks are green.", "Article 2", "Green. " * _LONGEST),
    ],
)  # fmt: skip
def test_a_text_that_speaks_of_articles_has_none(text: str) -> None:
    assert heads(text) == []


def test_two_articles_amid_the_sections_of_a_report_are_no_law() -> None:
    text = law("# The Parks Act", "Article 1", "Parks are green.", "Article 2", "They are open.",
               "## What we think", "We like it.")  # fmt: skip
    assert heads(text, MARKDOWN) == ["# The Parks Act", "## What we think"]


def test_paragraphs_after_the_last_article_stand_beside_it() -> None:
    articles = [f"Чл. {n}. Парковете са отворени." for n in range(1, 5)]
    paragraphs = [f"§ {n}. Законът влиза в сила." for n in range(1, 4)]
    found = heads(law("ЗАКОН ЗА ПАРКОВЕТЕ", *articles, *paragraphs))
    assert found == [*(f"# Чл. {n}." for n in range(1, 5)), *(f"# § {n}." for n in range(1, 4))]


_PARTS = st.sampled_from([
    "ЗАКОН ЗА ПАРКОВЕТЕ", "Parks Act", "Чл. 1. Текст.", "Чл. 2. (1) Текст.", "§ 1. Текст.", "§ 2",
    "§ 1", "Article 1", "Article 2 Scope", "Section 1. Scope", "Глава първа", "Текст.", "Title",
    "# Article 1", "## § 2 Title", "Приложение № 1", "Заключителна разпоредба",
])  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.lists(_PARTS, max_size=9), st.sampled_from(["\n", "\n\n"]), st.sampled_from([PLAIN, HTML])
)
def test_what_is_made_of_few_lines_stays(parts: list[str], between: str, media_type: str) -> None:
    once = body(between.join(parts), media_type)
    assert body(once, media_type) == once
    assert once.count("Текст") == between.join(parts).count("Текст")
