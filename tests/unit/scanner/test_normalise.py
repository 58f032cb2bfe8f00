"""Normalised texts, and the map back."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scanner import normalise
from services.scanner.normalise import Mapped, fold, parts, readings, squeezed, stems

ODD = st.text(
    alphabet=st.one_of(
        st.characters(), st.sampled_from("ßﬁⅧ\u200b\u00ad\u0301й가İ\b1a@ а*_- \n\U000e0041\u202e")
    ),
    max_size=80,
)


@given(ODD, st.integers(0, 1000))
def test_every_folded_character_knows_where_it_came_from(text: str, offset: int) -> None:
    view = fold(text, offset)
    assert len(view.origin) == len(view.text)
    assert list(view.origin) == sorted(view.origin)
    assert all(offset <= at < offset + len(text) for at in view.origin)


@given(ODD)
def test_folding_twice_is_folding_once(text: str) -> None:
    once = fold(text).text
    assert fold(once).text == once


@given(ODD, ODD)
def test_a_folded_character_depends_on_nothing_else(left: str, right: str) -> None:
    assert fold(left + right).text == fold(left).text + fold(right).text


@given(ODD)
def test_every_reading_stays_inside_its_source(text: str) -> None:
    raw, view = Mapped(text, range(len(text))), fold(text)
    words = stems(view.text)
    for other in (*readings(raw, view, words), *squeezed(view, words)):
        assert len(other.text) == len(other.origin)
        assert all(0 <= at < len(text) for at in other.origin)


def test_case_accents_width_and_invisible_characters_go() -> None:
    assert fold("ÀÉ Ｗide ﬁn\u200bd ß Жё\u00ad\U000e0041\ufe0f").text == "ae wide find ss же"


@pytest.mark.parametrize(
    "link", ["[all](https://a.b/c_d)", "[all](<https://a.b/(c)>)", "[all][1]", "[all][]"]
)
def test_links_are_read_as_their_text_which_keeps_its_place(link: str) -> None:
    text = f"Ignore {link} previous words"
    raw, view = Mapped(text, range(len(text))), fold(text)
    found = next(
        r for r in readings(raw, view, stems(view.text)) if "ignore all previous" in r.text
    )
    start, end = found.span(found.text.index("all"), found.text.index("all") + 3)
    assert text[start:end] == "all"


def test_brackets_that_are_no_link_are_read_as_they_stand() -> None:
    text = "a [b] (c) x[1][2] `[](`"
    raw, view = Mapped(text, range(len(text))), fold(text)
    assert not [r for r in readings(raw, view, stems(view.text)) if "b (c)" in r.text]


def test_real_cyrillic_survives_folding() -> None:
    assert fold("Наташа ест каши").text == "наташа ест каши"


def test_the_words_of_a_large_text_are_found_part_by_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "ignore all_previous Änderungen, цифры\u0301 123abc\n" * 9
    whole = stems(text)
    for size in (1, 2, 7, 50):
        monkeypatch.setattr(normalise, "_PART", size)
        assert "".join(parts(text)) == text
        assert stems(text) == whole


def test_the_words_of_a_large_text_are_not_held_together() -> None:
    text = "words of a row 42 | " * 300_000
    stems(text[:99])
    tracemalloc.start()
    try:
        stems(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * len(text)
