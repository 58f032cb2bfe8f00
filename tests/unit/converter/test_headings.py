"""Headings of laws in the accepted languages, and their recovery."""

import re

import pytest

from services.converter.form import formed, marked
from services.converter.headings import (
    is_legal_heading,
    legal_mark,
    legal_rank,
    number_depth,
    roman_value,
)
from services.converter.laws import recover_law
from services.converter.lines import body_of, split
from services.converter.papers import recover_paper
from services.converter.sequence import chain


def recovered(markdown: str) -> str:
    lines = formed(marked(split(markdown)))
    return body_of(recover_law(lines, indented=False) or recover_paper(lines))


SENTENCE = "The text of this article is long enough to count as text and ends with a full stop."


@pytest.mark.parametrize(
    "line",
    [
        "Article 5", "ARTICLE 12a", "Artikel 3", "§ 7", "§ 12 Begriffsbestimmungen", "Статья 10",
        "Статья 10. Общие положения", "Член 4", "Член 4.", "Члан 15.",
        "Članak 8.", "Član 8", "5. člen", "12. člen (splošno)", "Chapter IV", "Глава II",
        "Поглавље 1", "Poglavlje III.", "I. POGLAVJE", "Kapitel 2", "Teil 1 Allgemeines",
        "Раздел 3",
        "Дел I", "Section 2", "Abschnitt 1", "Article 33 Notification of a breach",
    ],
)  # fmt: skip
def test_headings_of_laws_are_told(line: str) -> None:
    assert is_legal_heading(line)


@pytest.mark.parametrize(
    "line",
    [
        "Article 5 of the Regulation applies to all.", "Artikel 3 der Verordnung gilt nicht",
        "Статья 10 и 11 применяются одинаково", "Particle 5", "Section", "член на комисията",
        "In Article 5 the word", "Article 5, paragraph 2, shall apply to", "", "Članak",
        "Article 5 " + "Very " * 40,
    ],
)  # fmt: skip
def test_sentences_about_articles_are_not(line: str) -> None:
    assert not is_legal_heading(line)


def test_ranks_go_from_part_to_article() -> None:
    ranks = [
        legal_rank(t) for t in ("Part 1", "Title I", "Chapter 2", "Section 3", "Article 4", "§ 5")
    ]
    assert None not in ranks
    assert ranks == sorted(ranks, key=lambda rank: rank or 0)
    assert len(set(ranks)) == 6


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("1 Introduction", 1),
        ("2.1.4 Data", 3),
        ("IV. Method", 1),
        ("2. Методика", 1),
        ("1990s", None),
        ("12 apples", None),
    ],
)
def test_numbers_tell_the_depth(text: str, depth: int | None) -> None:
    assert number_depth(text) == depth


@pytest.mark.parametrize(
    ("chapter", "article"),
    [("Chapter", "Article"), ("Kapitel", "Artikel"), ("Глава", "Статья"), ("Глава", "Член"),
     ("Поглавље", "Члан"), ("Поглавје", "Член"), ("Poglavlje", "Članak"), ("Poglavje", "Člen")],
)  # fmt: skip
def test_headings_are_recovered_in_eight_languages(chapter: str, article: str) -> None:
    law = "".join(
        f"{f'{chapter} {n // 2 + 1}' if n % 2 == 0 else ''}\n\n{article} {n + 1}\n\n{SENTENCE}\n\n"
        for n in range(4)
    )
    headings = re.findall(r"^#+ .*", recovered(law), re.M)
    assert headings == [
        f"# {chapter} 1", f"## {article} 1", f"## {article} 2",
        f"# {chapter} 2", f"## {article} 3", f"## {article} 4",
    ]  # fmt: skip


def test_recovered_headings_stand_below_the_title() -> None:
    law = "# The Act\n\n" + "\n\n".join(f"§ {n}\n\n{SENTENCE}" for n in range(1, 5))
    assert "\n## § 3\n" in recovered(law)


def test_a_manual_that_quotes_a_law_keeps_its_own_headings_only() -> None:
    manual = "\n\n".join(f"## Step {name}\n\n{SENTENCE}" for name in "abcdefgh")
    quoted = "\n\n".join(f"§ {n}\n\n{SENTENCE}" for n in range(1, 5))
    text = f"# Manual\n\n{manual}\n\n{quoted}"
    assert recovered(text) == f"{text}\n"


def test_two_mentions_make_no_law() -> None:
    text = f"Article 1\n\n{SENTENCE}\n\nArticle 2\n\n{SENTENCE}"
    assert recovered(text) == f"{text}\n"


def test_a_numbered_paper_gets_its_headings() -> None:
    paper = "\n\n".join(
        f"{t}\n\n{SENTENCE}" for t in ("1 Introduction", "2 Method", "2.1 Data", "3 Results")
    )
    found = recovered(paper)
    assert "# 1 Introduction\n" in found
    assert "## 2.1 Data\n" in found


def test_a_numbered_list_is_no_paper() -> None:
    shopping = "\n\n".join(f"{n}. Apples" for n in range(1, 6))
    assert recovered(shopping) == f"{shopping}\n"


def heads(*parts: str) -> list[str]:
    return re.findall(r"^#+ .*", recovered("\n\n".join(parts)), re.M)


def test_roman_numbers_and_letters_head_a_paper() -> None:
    assert heads(
        "Abstract", SENTENCE, "I. INTRODUCTION", SENTENCE, "II. METHOD", SENTENCE, "A. Data",
        SENTENCE, "B. Model", SENTENCE, "III. RESULTS", SENTENCE, "References", "[1] A. Author.",
    ) == [
        "# Abstract", "# I. INTRODUCTION", "# II. METHOD", "## A. Data", "## B. Model",
        "# III. RESULTS", "# References",
    ]  # fmt: skip


def test_clauses_of_an_agreement_stay_text_below_their_headings() -> None:
    clause = f"1.1 {SENTENCE}"
    assert heads(
        "1. DEFINITIONS", clause, "2. TERM", clause, "3. END", clause, "Schedule 1", SENTENCE
    ) == ["# 1. DEFINITIONS", "# 2. TERM", "# 3. END", "# Schedule 1"]


def test_headings_of_wiki_text_become_headings() -> None:
    assert heads("== History ==", SENTENCE, "=== Early ===", SENTENCE, "a == b") == [
        "## History", "### Early",
    ]  # fmt: skip


def test_numbers_give_levels_where_all_headings_have_one() -> None:
    assert heads("# T", "## 1 A", SENTENCE, "## 1.1 B", SENTENCE, "## 2 C", SENTENCE, "## X") == [
        "# T", "## 1 A", "### 1.1 B", "## 2 C", "## X",
    ]  # fmt: skip


def test_roman_numbers_are_read_in_both_scripts() -> None:
    assert [roman_value(text) for text in ("XIV", "ХІ", "IIII", "MIX", "", "ABC")] == [
        14, 11, 0, 1009, 0, 0,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "unit", "value", "suffix"),
    [
        ("Глава двадесет и трета", "глава", 23, ""),
        ("Erster Abschnitt", "abschnitt", 1, ""),
        ("DIO PRVI", "dio", 1, ""),
        ("ПРВ ДЕЛ", "дел", 1, ""),
        ("5.a člen", "article", 5, ".a"),
        ("Статья 12.1. Учёт", "article", 12, ".1"),
        ("Article 12 bis", "article", 12, "bis"),
        ("§§ 5 bis 7 (weggefallen)", "§", 5, ""),
        ("Прилог број 3", "annex", 3, ""),
        ("Приложение № 2", "annex", 2, ""),
        ("ANNEX", "annex", 0, ""),
        ("Единствен член", "article", 1, ""),
        ("Teil A", "teil", 1, ""),
    ],
)
def test_marks_have_a_kind_a_value_and_a_suffix(
    line: str, unit: str, value: int, suffix: str
) -> None:
    mark = legal_mark(line)
    assert mark is not None
    assert (mark.unit, mark.value, mark.suffix) == (unit, value, suffix)


@pytest.mark.parametrize(
    ("numbers", "row"),
    [
        ([1, 2, 3, 89, 4, 5], [0, 1, 2, 4, 5]),
        ([1, 2, 2, 3], [0, 2, 3]),
        ([1, 2, 5, 6, 7], [0, 1, 2, 3, 4]),
        ([1, 2, 3, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]),
        ([], []),
    ],
)
def test_strays_fall_out_of_a_row_of_numbers(numbers: list[int], row: list[int]) -> None:
    found = chain([(number, "") for number in numbers], restart=1.6)
    assert [numbers[n] for n in found] == [numbers[n] for n in row]
