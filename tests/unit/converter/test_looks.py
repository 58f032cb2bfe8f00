"""Bold and italic from runs of text to Markdown."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from services.converter.parsing.literal import cell, heading, paragraph, span
from services.converter.parsing.looks import BOLD, ITALIC, STRUCK, Links, literal, resolved, signed

BOTH = BOLD | ITALIC


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([("plain", 0)], "plain"),
        ([("a ", 0), ("b", BOLD), (" c", 0)], "a **b** c"),
        ([("a ", 0), ("b ", BOLD), ("c", BOLD)], "a **b c**"),
        ([("a ", BOLD), ("b", BOTH)], "**a *b***"),
        ([("W", BOLD), ("orld", 0), (" peace", BOLD)], "World **peace**"),
        ([("das <b>", BOLD), (" ist", 0)], "**das \\<b>** ist"),
        ([("# x", BOLD), (" y", 0)], "**\\# x** y"),
        ([("- x", BOLD), (" y", 0)], "**\\- x** y"),
        ([("  a\x01", BOLD), ("  b", 0)], "**a**  b"),
        ([("one", BOLD), ("\ntwo", BOLD)], "**one**\n**two**"),
        ([("слово", ITALIC), (" и дело", 0)], "*слово* и дело"),
        ([("***", BOLD)], "\\***"),
        ([("", BOLD)], ""),
    ],
)
def test_runs_become_literal_markdown_with_stars(
    runs: list[tuple[str, int]], expected: str
) -> None:
    assert literal(runs, paragraph) == expected


@pytest.mark.parametrize(
    "text", ["Article 5", "1.2 Method", "IV. Results", "12", "Preface ........ 7", "== Wiki =="]
)
def test_what_is_found_by_its_words_stays_plain(text: str) -> None:
    assert literal([(text, BOLD)], paragraph) == text
    assert literal([(text, BOLD), (" and more", 0)], paragraph).startswith("**")


def test_signs_of_notes_pass() -> None:
    assert literal([("a", BOLD), ("\ufffe1\uffff", 0), (" b", 0)], span) == ("**a**\ufffe1\uffff b")


def linked(*runs: tuple[str, int] | str, address: str = "https://a.b/c_(d)") -> str:
    links = Links()
    signs = {"[": Links.opened, "]": links.closed(address)}
    return links.written(
        literal([signs[run] if isinstance(run, str) else run for run in runs], paragraph)
    )


def test_links_hold_their_emphasis_inside() -> None:
    assert linked(("see ", BOLD), "[", ("here", BOLD), "]", (" now", BOLD)) == (
        "**see** [**here**](<https://a.b/c_(d)>) **now**"
    )


def test_a_link_is_one_whatever_its_text_ends_in_or_follows() -> None:
    def short(*runs: tuple[str, int] | str) -> str:
        return linked(*runs, address="https://a.b")

    assert short("[", ("x] y", 0), "]", (".", 0)) == "[x\\] y](https://a.b)."
    assert short("[", ("[x", 0), "]") == "[\\[x](https://a.b)"
    assert short("[", ("see [1]", 0), "]") == "[see [1]](https://a.b)"
    assert short("[", ("C:\\", 0), "]") == "[C:\\\\](https://a.b)"
    assert short(("C:\\", 0), "[", ("x", 0), "]") == "C:\\\\[x](https://a.b)"
    # Behind a bare `!` it would be a picture, whose text nobody sees.
    assert short(("Neu!", 0), "[", ("Mehr", 0), "]") == "Neu\\![Mehr](https://a.b)"
    assert short(("!", 0), "[", ("https://a.b", 0), "]") == "!https://a.b"


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([("a ", 0), ("b ", BOTH | STRUCK), ("c", BOTH)], "a ~~b~~ ***c***"),
        ([("a", BOLD | STRUCK), ("b", BOLD)], "~~a~~**b**"),
        ([("a\\", STRUCK), (" b", 0)], "~~a~~\\ b"),
        # A line that starts with three tildes would be code, and all after it.
        ([("~", STRUCK), (" b", 0)], "~ b"),
        ([("~", 0), ("a", STRUCK)], "~a"),
    ],
)
def test_what_is_crossed_out_keeps_its_edges(runs: list[tuple[str, int]], expected: str) -> None:
    assert literal(runs, paragraph) == expected


def test_stars_that_reach_over_the_edge_of_what_is_crossed_out_go() -> None:
    marked = f"a ~~{signed('b~~ c', BOLD)}"
    assert resolved(marked) == "a ~~b~~ c"


@pytest.mark.parametrize("address", ["#there", "file:///x", "javascript:x()", "", "a b"])
def test_links_that_lead_nowhere_outside_are_text(address: str) -> None:
    assert linked("[", ("here", 0), "]", address=address) == "here"


def test_a_link_that_shows_its_address_is_text() -> None:
    assert linked("[", ("https://a.b/", 0), "]", address="https://a.b") == "https://a.b/"
    assert linked("[", ("x@y.z", 0), "]", address="mailto:x@y.z") == "x@y.z"


def test_two_links_to_one_place_are_one() -> None:
    links = Links()
    runs = [
        Links.opened, ("a", BOLD), links.closed("https://a.b"),
        Links.opened, (" b", 0), links.closed("https://a.b"),
        Links.opened, ("c", 0), links.closed("https://c.d"),
    ]  # fmt: skip
    assert links.written(literal(runs, paragraph)) == "[**a** b](https://a.b)[c](https://c.d)"


def test_emphasis_goes_on_over_two_links_that_are_one() -> None:
    links = Links()
    runs = [
        Links.opened, ("Wor", BOLD), links.closed("https://a.b"),
        Links.opened, ("ld", BOLD), links.closed("https://a.b"),
    ]  # fmt: skip
    assert links.written(literal(runs, paragraph)) == "[**World**](https://a.b)"


def test_signs_of_links_that_do_not_match_go() -> None:
    assert linked("]", ("a", 0), "[", ("b", 0)) == "ab"
    assert linked("[", ("a\n", 0), ("b", 0), "]") == "a\nb"


RUNS = st.lists(
    st.tuples(
        st.text(alphabet="aбZ19 .,()<>[]\\#*_`|&;-\n\t\x01~!'\u00a0\ufde4", max_size=8),
        st.integers(0, 3),
    ),
    max_size=6,
)


@pytest.mark.parametrize("escape", [paragraph, span, heading, cell])
@settings(max_examples=150, deadline=None)
@given(runs=RUNS)
def test_a_look_adds_only_stars(escape: Callable[[str], str], runs: list[tuple[str, int]]) -> None:
    plain = escape("".join(text for text, _ in runs))
    assert literal(runs, escape).replace("*", "") == plain.replace("*", "")


@settings(max_examples=200, deadline=None)
@given(runs=st.lists(st.tuples(st.text(alphabet="abи1 .,()-", max_size=6), st.integers(0, 3))))
def test_no_reader_sees_a_star(runs: list[tuple[str, int]]) -> None:
    tokens = MarkdownIt().parse(literal(runs, span))
    shown = "".join(c.content for t in tokens for c in t.children or () if c.type == "text")
    assert "*" not in shown


def test_signs_go_in_headings_code_and_heads_of_tables() -> None:
    bold = signed("word", BOLD)
    marked = f"# {bold}\n\n```\n{bold}\n```\n\n| {bold} |\n| - |\n| {bold} |\n\nsee {bold}."
    assert resolved(marked) == (
        "# word\n\n```\nword\n```\n\n| word |\n| - |\n| **word** |\n\nsee **word**."
    )


def test_a_sign_that_is_never_ended_ends_with_its_paragraph() -> None:
    assert resolved("\ufde3one\n\ntwo") == "**one**\n\ntwo"
