"""Which words of a passage are highlighted for a question."""

import pytest

from services.ui.words import matcher


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("maximum fine", "fines"),
        ("MAXIMUM", "maximum"),
        ("штрафы за нарушение", "штрафа"),
        ("заштита података", "zaštita"),
        ("Datenschutz", "Datenschutzes"),
        ("Article 83", "83"),
    ],
)
def test_a_form_of_a_word_matches(question: str, word: str) -> None:
    assert matcher(question)(word)


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("maximum fine for a breach", "for"),
        ("data", "date"),
        ("art", "article"),
        ("какой штраф за это", "за"),
        ("procedure", "process"),
    ],
)
def test_another_word_does_not(question: str, word: str) -> None:
    assert not matcher(question)(word)


def test_a_question_of_stop_words_only_still_marks_them() -> None:
    assert matcher("to be")("be")


def test_an_empty_question_marks_nothing() -> None:
    assert not matcher(" ?! ")("word")
