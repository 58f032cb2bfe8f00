"""Where the runs of a page stand in the text that an extractor took from it."""

from services.converter.parsing.alignment import aligned

LEAD = "The river rose by two metres in one night and took the old bridge with it."
SECOND = "Nobody in the village had seen anything like it since the spring of 1954."
THIRD = "The mayor said on Monday that a new bridge would stand within two years."


def test_a_text_that_the_article_has_once_is_known_once_where_its_neighbours_are() -> None:
    runs = [LEAD, "Sport", THIRD, "Weather", LEAD, SECOND, THIRD, LEAD]
    known = aligned(runs, f"{LEAD}\n{SECOND}\n{THIRD}")
    assert known == [False, False, False, False, True, True, True, False]


def test_a_quotation_of_a_later_paragraph_does_not_take_its_place() -> None:
    known = aligned([THIRD, LEAD, SECOND, THIRD], f"{LEAD}\n{SECOND}\n{THIRD}")
    assert known == [False, True, True, True]


def test_a_short_run_is_known_beside_a_known_one_only() -> None:
    runs = ["Read more", LEAD, "Flood", SECOND, "Flood", "Imprint"]
    known = aligned(runs, f"{LEAD}\nFlood\n{SECOND}")
    assert known == [False, True, True, True, False, False]
    assert aligned(["Flood", LEAD, "End"], f"Flood\n{LEAD}") == [True, True, False]


def test_signs_alone_go_with_the_run_before_them() -> None:
    assert aligned(["* * *", LEAD, "* * *", "Menu", "|"], LEAD) == [
        False, True, True, False, False,
    ]  # fmt: skip


def test_a_run_that_the_extractor_changed_is_known_by_most_of_its_words() -> None:
    changed = LEAD.replace("two metres", "2 m")
    assert aligned(["Menu of the site and its parts", LEAD], changed) == [False, True]


def test_words_that_another_run_has_prove_nothing() -> None:
    twice = f"More: {LEAD}"
    assert aligned([twice, LEAD, SECOND], f"{LEAD}\n{SECOND}") == [False, True, True]


def test_other_alphabets_are_found() -> None:
    runs = ["Меню", "Реката се покачи с два метра за една нощ и отнесе моста.", "Контакти"]
    assert aligned(runs, runs[1]) == [False, True, False]


def test_nothing_is_known_without_text() -> None:
    assert aligned([], "") == []
    assert aligned([LEAD, "", "x"], "") == [False, False, False]
    assert aligned([], LEAD) == []


def test_rows_that_repeat_are_all_known() -> None:
    row = "Delivered to the warehouse in Sofia on Monday"
    assert all(aligned([row] * 3000, "\n".join([row] * 3000)))


def test_many_strangers_and_a_long_article_take_no_search_each() -> None:
    article = [f"Paragraph {n} of an article that is longer than most others." for n in range(9000)]
    strangers = [f"Stranger {n} that stands in no article at all, ever." for n in range(30_000)]
    # Searches of each through all would take minutes.
    known = aligned([*strangers, *article], "\n".join(article))
    assert sum(known) == len(article)


def test_what_repeats_an_article_is_known_where_that_is_asked_for() -> None:
    known = aligned(
        [THIRD, "Menu", LEAD, SECOND, THIRD], f"{LEAD}\n{SECOND}\n{THIRD}", repeats=True
    )
    assert known == [True, False, True, True, True]
