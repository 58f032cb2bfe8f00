"""Paragraphs on one line, everything else on its own."""

import pytest

from kernel.reflow import reflow


@pytest.mark.parametrize(
    "text, shown",
    [
        ("one\ntwo\nthree", "one two three"),
        ("one\ntwo\n\nthree\nfour", "one two\n\nthree four"),
        ("- a\n- b\n  more\n* c", "- a\n- b more\n* c"),
        ("1. a\n2) b", "1. a\n2) b"),
        ("| a | b |\n|---|---|\n| c | d |", "| a | b |\n|---|---|\n| c | d |"),
        ("> a\n> b", "> a\n> b"),
        ("```\na\nb\n```", "```\na\nb\n```"),
        ("Члан\n5 се мења", "Члан 5 се мења"),
        ("am\n31.12. war", "am 31.12. war"),
        ("a\n-b", "a -b"),
        ("", ""),
    ],
)
def test_only_cuts_within_a_paragraph_go(text: str, shown: str) -> None:
    assert reflow(text) == shown
