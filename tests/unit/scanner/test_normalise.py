"""Normalised texts, and the map back."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.scanner.normalise import Mapped, fold, refold, unescaped
from services.scanner.readings import Reading, Shape, readings, squeezed
from services.scanner.ruleset import default_ruleset

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


def read(text: str) -> list[Reading]:
    """All other readings of a text."""
    lexicon = default_ruleset().phrases
    view = unescaped(fold(text))
    places = lexicon.look(view.text).signals
    return list(readings(Mapped.of(text), view, Shape(view.text), places, lexicon.knows))


@settings(deadline=None)  # the first example waits until the tables are compiled
@given(ODD)
def test_every_reading_stays_inside_its_source(text: str) -> None:
    view = unescaped(fold(text))
    squeezes = squeezed(view, Shape(view.text))
    for other in (*(reading.view for reading in read(text)), *squeezes):
        assert len(other.text) == len(other.origin)
        assert all(0 <= at < len(text) for at in other.origin)


@given(ODD, st.sampled_from(["", "-", "<>"]))
def test_what_is_put_in_comes_from_the_beginning_of_what_it_replaces(text: str, new: str) -> None:
    view = Mapped.of(text, 7).replace(re.compile(r"[a-z]|\d+"), new)
    wanted: list[tuple[str, int]] = []
    at = 0
    for match in re.finditer(r"[a-z]|\d+", text):
        wanted += [(text[i], 7 + i) for i in range(at, match.start())]
        wanted += [(character, 7 + match.start()) for character in new]
        at = match.end()
    wanted += [(text[i], 7 + i) for i in range(at, len(text))]
    assert [*zip(view.text, view.origin.tolist(), strict=True)] == wanted


@given(ODD)
def test_replacing_keeps_each_character_at_its_place(text: str) -> None:
    view = Mapped.of(text).replace(re.compile(r"[a-z]+"), "<>")
    assert view.text == re.sub(r"[a-z]+", "<>", text)
    for character, at in zip(view.text, view.origin, strict=True):
        assert text[at] == character or "a" <= text[at] <= "z"


@given(ODD)
def test_turning_keeps_each_character_at_its_place(text: str) -> None:
    view = Mapped.of(text).turned(re.compile(r"[^\n]+"))
    assert view.text == "\n".join(line[::-1] for line in text.split("\n"))
    assert all(text[at] == c for c, at in zip(view.text, view.origin, strict=True))


@given(ODD, ODD)
def test_a_reading_is_folded_like_any_text(left: str, right: str) -> None:
    text = left + right
    view = refold(Mapped.of(text).cut(len(left), len(text)))
    assert view.text == fold(right).text
    assert list(view.origin) == list(fold(right, len(left)).origin)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"\<\<SYS>> \### a\_b \~\~", "<<sys>> ### a_b ~~"),
        (r"C:\dir \n \x41", r"c:\dir \n \x41"),
        ("a\\\\b", "a\\b"),
    ],
)
def test_escapes_of_markdown_go_and_other_backslashes_stay(text: str, plain: str) -> None:
    view = unescaped(fold(text))
    assert view.text == plain
    assert all(fold(text[at]).text == c for c, at in zip(view.text, view.origin, strict=True))


def test_case_accents_width_and_invisible_characters_go() -> None:
    assert fold("ÀÉ Ｗide ﬁn\u200bd ß Жё\u00ad\U000e0041\ufe0f").text == "ae wide find ss же"


@pytest.mark.parametrize(
    "link", ["[all](https://a.b/c_d)", "[all](<https://a.b/(c)>)", "[all][1]", "[all][]"]
)
def test_links_are_read_as_their_text_which_keeps_its_place(link: str) -> None:
    text = f"Ignore {link} previous words"
    found = next(r.view for r in read(text) if "ignore all previous" in r.view.text)
    start, end = found.span(found.text.index("all"), found.text.index("all") + 3)
    assert text[start:end] == "all"


def test_brackets_that_are_no_link_are_read_as_they_stand() -> None:
    text = "a [b] (c) x[1][2] `[](`"
    assert not [r for r in read(text) if "b (c)" in r.view.text]


def test_real_cyrillic_survives_folding() -> None:
    assert fold("Наташа ест каши").text == "наташа ест каши"
