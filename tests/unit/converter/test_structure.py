"""What only all pages together tell."""

from collections import Counter

import pytest

from services.converter.parsing.layout import Page, blocks_of_page
from services.converter.parsing.pdf_elements import Element
from services.converter.parsing.pdf_hyphens import join_lines
from services.converter.parsing.pdf_shapes import Word
from services.converter.parsing.structure import structure
from tests.unit.converter.test_layout import LONG, line, lines

A4 = (595.0, 842.0)


def page(number: int, words: list[Word]) -> Page:
    return Page(number, *A4, blocks_of_page(words, []))


def seen(
    pages: list[Page], outline: list[tuple[int, str, int | None]] | None = None
) -> list[Element]:
    return structure(pages, outline or [])


def shown(elements: list[Element]) -> list[tuple[str, str]]:
    return [(e.kind, e.text) for e in elements]


def body(top: float, count: int = 12) -> list[Word]:
    return lines([f"{LONG} {n}" for n in range(count - 1)] + ["the end."], 50, top)


def test_running_heads_and_page_numbers_go() -> None:
    pages = [
        page(n, [*line("Annual Report of 2024", 50, 30, 8), *body(100), *line(str(n), 500, 810, 8)])
        for n in (1, 2, 3)
    ]
    text = " ".join(e.text for e in seen(pages))
    assert "Annual" not in text
    assert [e.kind for e in seen(pages)] == ["text"] * 3


def test_running_heads_that_name_the_section_go_by_their_page_numbers() -> None:
    names = ("USAGE AND FEATURES", "USAGE AND FEATURES", "THE IMPLEMENTATION", "REFERENCES")
    pages = [
        page(n, [*line(f"{n // 2} {name} {n + 6}", 50, 110), *body(150)])
        for n, name in enumerate(names, 1)
    ]
    assert {e.kind for e in seen(pages)} == {"text"}
    assert "USAGE" not in " ".join(e.text for e in seen(pages))


def test_articles_at_the_head_of_pages_are_headings() -> None:
    pages = [page(n, [*line(f"Artikel {n * 4}", 50, 60, bold=True), *body(80)]) for n in (1, 2, 3)]
    assert [e.text for e in seen(pages) if e.kind == "heading"] == [
        "Artikel 4",
        "Artikel 8",
        "Artikel 12",
    ]


def test_an_article_at_the_very_edge_of_a_page_is_a_heading() -> None:
    pages = [page(n, [*line(f"Artikel {n * 4}", 50, 30, bold=True), *body(60)]) for n in (1, 2, 3)]
    assert [e.text for e in seen(pages) if e.kind == "heading"] == [
        "Artikel 4", "Artikel 8", "Artikel 12",
    ]  # fmt: skip


def test_the_title_below_an_article_belongs_to_it_in_whatever_style() -> None:
    words = [*line("A regulation on boxes", 50, 40, 18)]
    for n, title in enumerate(("Scope", "Terms")):
        top = 80 + 200 * n
        words += [*line(f"Article {n + 1}", 250, top), *line(title, 260, top + 22, bold=True)]
        words += body(top + 45, 6)
    heads = [(e.kind, e.text) for e in seen([page(1, words)]) if e.kind != "text"]
    assert heads == [
        ("title", "A regulation on boxes"),
        ("heading", "Article 1 Scope"),
        ("heading", "Article 2 Terms"),
    ]


def test_a_title_above_its_article_is_not_that_of_the_article_before() -> None:
    words = [*body(40, 6), *line("Article 3", 250, 140), *line("Terms", 260, 162, bold=True)]
    words += [*line("Article 4", 250, 184), *body(210, 6)]
    heads = [e.text for e in seen([page(1, words)]) if e.kind == "heading"]
    assert heads == ["Article 3", "Terms", "Article 4"]


@pytest.mark.parametrize("heading", ["8. člen", "4. Zamuda in odškodnina"])
def test_a_heading_keeps_its_number(heading: str) -> None:
    elements = seen([page(1, [*line(heading, 50, 60, 14, bold=True), *body(100)])])
    assert elements[0].kind in {"heading", "title"}
    assert elements[0].text == heading


def test_the_title_and_the_levels_come_from_size_and_law() -> None:
    words = [
        *line("The Great Act", 50, 60, 20), *line("Chapter I", 50, 100, 14),
        *line("Article 1", 50, 130, bold=True), *body(150, 4),
        *line("Article 2", 50, 230, bold=True), *body(250, 4),
        *line("Chapter II", 50, 330, 14), *line("Article 3", 50, 360, bold=True), *body(380),
    ]  # fmt: skip
    heads = [
        (e.kind, e.level, e.text) for e in seen([page(1, words)]) if e.kind in {"title", "heading"}
    ]
    assert heads == [
        ("title", 0, "The Great Act"), ("heading", 1, "Chapter I"), ("heading", 2, "Article 1"),
        ("heading", 2, "Article 2"), ("heading", 1, "Chapter II"), ("heading", 2, "Article 3"),
    ]  # fmt: skip


def test_numbers_tell_the_level_in_one_style() -> None:
    words: list[Word] = []
    for n, text in enumerate(["1 Scope", "1.1 Terms", "1.1.1 Words", "2 Method", "2.1 Data"]):
        words += line(text, 50, 60 + 100 * n, bold=True) + body(80 + 100 * n, 4)
    assert [e.level for e in seen([page(1, words)]) if e.kind == "heading"] == [1, 2, 3, 1, 2]


def test_the_outline_may_name_a_heading_of_two_letters() -> None:
    words = [*body(60), *line("3 ls", 50, 240, bold=True), *body(270)]
    assert ("title", "3 ls") in shown(seen([page(1, words)], [(0, "3 ls", 1)]))
    assert ("text", "3 ls") in shown(seen([page(1, words)]))


def test_the_outline_tells_what_is_a_heading_and_its_level() -> None:
    words = [*line("Scope of it", 50, 60), *body(100, 4), *line("Terms", 50, 200), *body(240, 4)]
    outline: list[tuple[int, str, int | None]] = [(0, "Scope of it", 1), (1, "Terms", 1)]
    heads = [(e.text, e.level) for e in seen([page(1, words)], outline) if e.kind == "heading"]
    assert heads == [("Scope of it", 1), ("Terms", 2)]


@pytest.mark.parametrize(
    "text",
    [
        "ends with a full stop.",
        "goes on, in the next",
        "Figure 3 A picture",
        "12 34 56",
        "☐ LEGAL REPRESENTATIVE",
        "and so on",
    ],
)
def test_bold_lines_that_are_no_headings(text: str) -> None:
    words = [*body(100, 4), *line(text, 50, 180, bold=True), *body(220, 4)]
    kinds = {e.kind for e in seen([page(1, words)]) if e.text == text}
    assert kinds == {"text"} or text.startswith("goes")


def test_contents_lines_are_no_headings() -> None:
    entries = [f"{n} Chapter of things ............... {n * 3}" for n in range(1, 6)]
    words = [w for n, e in enumerate(entries) for w in line(e, 50, 100 + 14 * n, bold=True)]
    elements = seen([page(1, words + body(300))])
    assert {e.kind for e in elements} == {"list", "text"}
    assert elements[0].text == "1 Chapter of things … 3"


def entry(text: str, number: str, top: float, *, leader: bool = True) -> list[Word]:
    """A line of a contents list whose page number ends at 445."""
    gap = 78 - len(text) - len(number)
    return line(text + ("." if leader else " ") * gap + number, 55, top)


def test_a_wrapped_entry_of_a_contents_list_is_one_item() -> None:
    words = [
        *line("Contents", 55, 60, 16, bold=True),
        *entry("1 The first of all", "3", 100),
        *line("1.1 What has to be said of the council before anything else may be", 55, 114),
        *entry("done about it", "4", 128),
        *entry("2 The second of all", "7", 142, leader=False),
        *entry("2.1 Measures", "8", 156),
    ]
    elements = seen([page(1, words + body(300))])
    assert [e.text for e in elements if e.kind == "list"] == [
        "1 The first of all … 3",
        "1.1 What has to be said of the council before anything else may be done about it … 4",
        "2 The second of all … 7",
        "2.1 Measures … 8",
    ]


def test_nothing_between_leaders_is_lost() -> None:
    words = [*line("Name: ............ Date: ............", 55, 100), *body(200)]
    assert seen([page(1, words)])[0].text.replace("…", "").split() == ["Name:", "Date:"]


def test_numbers_of_an_index_go_on_in_the_next_line() -> None:
    words = lines(["apples ........ 3, 7, 12,", "14, 18, 20", "pears ......... 5"], 55, 100)
    found = [e.text for e in seen([page(1, words + body(300))]) if e.kind == "list"]
    assert found == ["apples … 3, 7, 12, 14, 18, 20", "pears … 5"]


def test_a_word_that_ends_in_and_is_mended_where_it_is_known() -> None:
    known = Counter({"unter": 3})
    assert (
        join_lines(["Sie finden ihn un-", "ter der Adresse"], known)
        == "Sie finden ihn unter der Adresse"
    )
    assert join_lines(["Haupt-", "und Nebensatz"], known) == "Haupt- und Nebensatz"


def test_a_paragraph_goes_on_on_the_next_page() -> None:
    first = page(1, lines([LONG] * 4 + ["and this sentence goes"], 50, 100))
    second = page(2, lines(["on to its end.", LONG], 50, 100))
    elements = seen([first, second])
    assert len(elements) == 1 or "sentence goes on to its end." in elements[0].text


def room_table(top: float, *names: str) -> list[Word]:
    head = [*line("Room", 50, top, bold=True), *line("Area", 200, top, bold=True)]
    return head + [
        word
        for n, name in enumerate(names, 1)
        for word in [*line(name, 50, top + 13 * n), *line(f"{n}0.5", 200, top + 13 * n)]
    ]


def test_a_table_goes_on_behind_a_note_if_its_head_is_repeated() -> None:
    first = page(1, [*body(100), *room_table(640, "Cellar"), *line("Counted in May.", 50, 760, 8)])
    second = page(2, [*room_table(60, "Attic", "Annex", "Tower"), *body(300)])
    elements = seen([first, second])
    (table,) = [e.table for e in elements if e.table is not None]
    assert [c.text for c in table.cells if c.column == 0] == [
        "Room", "Cellar", "Attic", "Annex", "Tower",
    ]  # fmt: skip
    assert "Counted in May." in [e.text for e in elements]


def test_a_footnote_does_not_break_the_paragraph() -> None:
    first = page(
        1,
        lines([LONG] * 4 + ["and this sentence goes"], 50, 100)
        + line("1 A note below.", 50, 760, 8),
    )
    second = page(2, lines(["on to its end."], 50, 100) + body(200))
    texts = [e.text for e in seen([first, second])]
    assert "sentence goes on to its end." in texts[0]
    assert texts[1] == "1 A note below."


def test_lists_keep_their_marks() -> None:
    words = [*line("• one item", 50, 100), *line("2. second", 50, 114)]
    assert [(e.kind, e.marker, e.text) for e in seen([page(1, words)])] == [
        ("list", "-", "one item"), ("list", "2.", "second"),
    ]  # fmt: skip


def test_marks_of_laws_stay_in_the_text() -> None:
    texts = ["(1) Paragraph one.", "(2) paragraph two:", "a) point one;", "2) point two."]
    words = [word for n, text in enumerate(texts) for word in line(text, 50, 100 + 14 * n)]
    assert shown(seen([page(1, words)])) == [("text", text) for text in texts]


def test_a_point_of_a_law_does_not_go_on_with_the_page_before() -> None:
    first = page(1, [*body(100), *line("(1) What is asked for,", 50, 400)])
    second = page(2, [*line("a) the first point;", 50, 60), *body(200)])
    assert ("text", "a) the first point;") in shown(seen([first, second]))


@pytest.mark.parametrize(
    ("text", "size", "kept"),
    [
        ("Left box, line 1", 10, True),  # of the body's size
        ("Annual report of the council 12", 8, False),  # in small type
    ],
)
def test_a_single_page_keeps_a_first_line_of_the_size_of_its_text(
    text: str, size: float, kept: bool
) -> None:
    elements = seen([page(1, [*line(text, 50, 30, size), *body(100)])])
    assert any(text in e.text for e in elements) is kept


def test_a_head_with_the_name_of_a_chapter_and_a_number_goes() -> None:
    pages = [
        page(n, [*line(f"{name} {9 + 2 * n}", 50, 30), *body(100)])
        for n, name in enumerate(("The first chapter", "Chapter 2. Another matter"), 1)
    ]
    assert not any("matter" in e.text or "first" in e.text for e in seen(pages))


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        (["The algo-", "rithm"], "The algorithm"),
        (["state-of-the-", "art"], "state-of-the-art"),
        (["Baden-", "Württemberg"], "Baden-Württemberg"),
        (["Haupt-", "und Nebensatz"], "Haupt- und Nebensatz"),
        (["pages 3-", "5"], "pages 3-5"),
        (["soft\u00ad", "ware"], "software"),
        (["раз-", "мещение"], "размещение"),
        (["кто-", "то"], "кто-то"),
        (["well-", "known"], "well-known"),
        (["a dash -", "here"], "a dash - here"),
    ],
)
def test_words_divided_at_the_end_of_a_line_are_mended(parts: list[str], joined: str) -> None:
    assert join_lines(parts, Counter()) == joined


def test_the_document_itself_tells_whether_a_hyphen_belongs() -> None:
    assert join_lines(["data-", "driven"], Counter({"data-driven": 2})) == "data-driven"
    assert join_lines(["data-", "driven"], Counter({"datadriven": 2})) == "datadriven"


def test_nothing_at_all_is_no_error() -> None:
    assert seen([]) == []
    assert seen([Page(1, *A4, [])]) == []


def test_a_word_divided_twice_is_mended_and_so_is_a_very_long_one() -> None:
    parts = ["so un-", "glaub-", "lich war"]
    assert join_lines(parts, Counter()) == "so unglaublich war"
    assert join_lines(["a" * 5000 + "-", "b"], Counter()) == "a" * 5000 + "b"


def test_a_paragraph_of_many_lines_is_joined_line_by_line() -> None:
    # Each search from the paragraph's first letter on takes hours.
    text = join_lines(["a few words and a divi-", "ded one"] * 40_000, Counter())
    assert text == " ".join(["a few words and a divided one"] * 40_000)
    assert len(join_lines(["a" * 1_000_000 + "-", "b"], Counter())) == 1_000_001
