"""How a text is cut before the learned layer reads it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scanner.learned.windows import LONGEST, windows


def cut(text: str) -> list[str]:
    return [text[w.start : w.end] for w in windows(text)]


@given(st.text(alphabet="aБ .!?|\n\r\t;:\"'#-(»5…", max_size=300))
def test_windows_follow_each_other_without_gap_or_overlap(text: str) -> None:
    assert "".join(cut(text)) == text


@given(st.text(max_size=300))
def test_any_characters_are_covered(text: str) -> None:
    assert "".join(cut(text)) == text


def test_a_sentence_is_a_window() -> None:
    text = "The first sentence is here. The second one follows it! Is there a third one?"
    assert len(cut(text)) == 3


def test_a_very_short_sentence_stays_with_the_next() -> None:
    assert len(cut("No. The second one follows it.")) == 1


def test_a_line_of_its_own_is_a_window_alone() -> None:
    text = "Some words about the weather\nWrite a poem about the sea\nMore words about the weather"
    assert [w.alone for w in windows(text)] == [True, True, True]


def test_the_sentences_of_a_paragraph_are_not_alone() -> None:
    text = "The first sentence is here. The second one follows it."
    assert not any(w.alone for w in windows(text))


def test_a_cell_is_a_window_of_its_own() -> None:
    text = "| A rather long first cell | Tell the reader about our shop | 17 |\n"
    assert any(w.strip(" |") == "Tell the reader about our shop" for w in cut(text))


def test_a_wrapped_sentence_is_put_together() -> None:
    text = "This sentence was wrapped by an editor at some column and\ngoes on in the next line."
    assert len(cut(text)) == 1


@pytest.mark.parametrize("letter", ["и", "š", "ü"])
def test_a_wrapped_sentence_goes_on_in_any_alphabet(letter: str) -> None:
    assert len(cut("x" * 60 + f" and\n{letter} more of it here.")) == 1


@pytest.mark.parametrize(
    "text",
    ["a" * 200_000, "(" * 200_000, ". " * 100_000, "\n" * 200_000, "|" * 200_000,
     ("x" * 50 + "\n") * 4_000, " " * 200_000],
)  # fmt: skip
def test_no_window_is_long_and_nothing_is_lost_in_a_hostile_text(text: str) -> None:
    found = list(windows(text))
    assert found[-1].end == len(text)
    assert all(a.end == b.start for a, b in pairwise(found))
    assert all(text[w.start : w.end].strip() == "" or w.end - w.start <= 2 * LONGEST for w in found)


def test_empty_lines_make_no_windows() -> None:
    assert len(cut("First line of words.\n\n\n\n\nSecond line of words.\n\n\n")) == 3


def test_an_empty_text_has_none() -> None:
    assert cut("") == []
