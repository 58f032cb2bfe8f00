import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from services.converter.parsing.emphasis import Run, emphasised, emphasised_runs

_TEXTS = st.text(alphabet="ab .,:(“я😀€\\-", max_size=5)
_RUNS = st.lists(st.builds(Run, _TEXTS, st.booleans(), st.booleans()), max_size=5)


def _shown(markdown: str) -> str:
    html = MarkdownIt("commonmark").renderInline(markdown.strip())
    return re.sub(r"</?(?:strong|em)>|\s", "", html)


@given(_RUNS)
def test_a_reader_never_sees_a_star(runs: list[Run]) -> None:
    plain = "".join(run.text for run in runs)
    assert _shown(emphasised_runs(runs)) == _shown(plain)


@pytest.mark.parametrize(
    ("text", "before", "after", "expected"),
    [
        ("word", "", "", "**word**"),
        (" word ", "a", "b", " **word** "),
        ("Note:", "", "text", "**Note**:"),
        ("Note:", "", " text", "**Note:**"),
        ("(a)", "x", "", "(a)"),
        ("mid", "a", "b", "**mid**"),
        ("2*3", "", "", "2*3"),
        ("a `b* c", "", "", "a `b* c"),
        ("`a*b`", "", "", "**`a*b`**"),
        ("[a](http://x/*)", "", "", "**[a](http://x/*)**"),
        ("b", "*", "", "b"),
        ("a\n\nb", "", "", "a\n\nb"),
        (" ", "", "", " "),
        ("\ufde0\ufdd1\ufde1word\ufde2", "", "", "\ufde0\ufdd1\ufde1**word**\ufde2"),
    ],
)
def test_bold_stands_only_where_markdown_reads_it(
    text: str, before: str, after: str, expected: str
) -> None:
    assert emphasised(text, bold=True, italic=False, before=before, after=after) == expected


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([Run("a ", bold=True), Run("b", bold=True)], "**a b**"),
        ([Run("a", bold=True), Run(" "), Run("b", bold=True)], "**a b**"),
        (
            [Run("a ", bold=True), Run("b", bold=True, italic=True), Run(" c", bold=True)],
            "**a *b* c**",
        ),
        ([Run("a", bold=True, italic=True)], "***a***"),
        ([Run("a", bold=True), Run("b", italic=True)], "**a**b"),
    ],
)
def test_runs_of_one_look_are_one(runs: list[Run], expected: str) -> None:
    assert emphasised_runs(runs) == expected
