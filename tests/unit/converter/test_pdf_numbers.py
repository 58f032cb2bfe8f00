"""Headings that only their numbers tell, and titles in very large type."""

from services.converter.parsing.pdf_shapes import Word
from tests.unit.converter.test_layout import line, lines
from tests.unit.converter.test_structure import body, page, seen, shown


def _chapters(names: list[str]) -> list[tuple[str, str, int]]:
    """Each name in the type of the text, over half a page of text."""
    pages = []
    for n in range(0, len(names), 2):
        words: list[Word] = []
        for place, name in enumerate(names[n : n + 2]):
            words += [*line(name, 50, 100 + 300 * place), *body(130 + 300 * place)]
        pages.append(page(n // 2 + 1, words))
    return [(e.kind, e.text, e.level) for e in seen(pages) if e.kind in {"heading", "title"}]


def test_numbers_in_sequence_over_text_are_headings() -> None:
    names = ["1. Methods", "1.1. Data used", "1.2. Model", "2. Results", "3. Outlook"]
    assert [text for _, text, _ in _chapters(names)] == names


def test_letters_are_under_roman_numbers() -> None:
    names = ["I. Methods", "A. Data used", "B. Model", "II. Results", "A. Errors"]
    assert [(text, level) for _, text, level in _chapters(names)] == [
        ("I. Methods", 1), ("A. Data used", 2), ("B. Model", 2), ("II. Results", 1),
        ("A. Errors", 2),
    ]  # fmt: skip


def test_items_of_a_list_are_no_headings() -> None:
    steps = ["1. Open the lid", "2. Take the paper out", "3. Close the lid", "4. Press the button"]
    found = seen([page(1, [*body(80), *lines(steps, 50, 280, 20), *body(400)])])
    assert [kind for kind, _ in shown(found)] == ["text", *["list"] * 4, "text"]


def test_numbers_out_of_sequence_are_no_headings() -> None:
    names = ["3 Apples are", "17 People who", "5 Reasons why", "4 Weeks later"]
    assert _chapters(names) == []


def test_a_heading_in_capitals_goes_on_in_the_next_line() -> None:
    names = ["I. METHODS", "II. RESULTS OF THE LAST", "III. OUTLOOK"]
    words = []
    for n, name in enumerate(names):
        words += [*line(name, 250, 60 + 240 * n), *body(100 + 240 * n, 10)]
    words += line("EXPERIMENT", 260, 60 + 240 + 14)
    texts = [e.text for e in seen([page(1, words)]) if e.kind == "heading"]
    assert texts == ["I. METHODS", "II. RESULTS OF THE LAST EXPERIMENT", "III. OUTLOOK"]


def test_a_title_with_the_mark_of_a_note_is_one_and_its_author_heads_nothing() -> None:
    words = [
        *line("The boxes package∗", 150, 60, 18), *line("Jane Doe", 220, 90, 12),
        *line("23 February 2017", 210, 112, 12),
        *line("1 Introduction", 50, 140, 14, bold=True), *body(170),
        *line("2 Usage", 50, 400, 14, bold=True), *body(430),
    ]  # fmt: skip
    found = seen([page(1, words)])
    assert [e.text for e in found if e.kind == "title"] == ["The boxes package∗"]
    assert [e.text for e in found if e.kind == "heading"] == ["1 Introduction", "2 Usage"]


def test_symbols_and_counted_words_in_bold_are_no_headings() -> None:
    words = body(80)
    for n, text in enumerate(("A ∩ B", "20 end", "A A A A")):
        words += [*line(text, 50, 260 + 60 * n, bold=True), *lines(["some text"], 50, 290 + 60 * n)]
    assert {kind for kind, _ in shown(seen([page(1, words)]))} == {"text"}


def test_a_caption_in_bold_is_no_heading() -> None:
    words = [*body(80), *line("Exhibit 2.1. Pupils by year", 50, 260, bold=True), *body(290)]
    assert {kind for kind, _ in shown(seen([page(1, words)]))} == {"text"}


def test_a_list_that_goes_on_where_the_chapters_end_is_a_list() -> None:
    words = []
    for n, name in enumerate(("1 Purpose", "2 Climate", "3 Outlook")):
        words += [*line(name, 50, 60 + 220 * n, 14, bold=True), *body(90 + 220 * n, 8)]
    steps = [f"{n}. Step of the work" for n in range(1, 6)]
    found = seen([page(1, words), page(2, [*body(80), *lines(steps, 50, 280), *body(400)])])
    assert [e.text for e in found if e.kind == "heading"] == ["1 Purpose", "2 Climate", "3 Outlook"]
    assert sum(e.kind == "list" for e in found) == 5
