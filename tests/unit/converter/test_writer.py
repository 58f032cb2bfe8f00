"""Markdown written piece by piece keeps the place of every piece."""

import pytest

from contracts.artifacts import Place
from kernel.errors import Refusal
from services.converter.parsing.writer import Writer


def test_spans_lie_on_their_text() -> None:
    writer = Writer(1000)
    writer.heading("Title", 1, Place(lines=(1, 1)))
    writer.block("žuto", Place(lines=(3, 3)))
    writer.block("| a |", Place(lines=(5, 5)))
    markdown, spans = writer.finish()
    assert markdown == "# Title\n\nžuto\n\n| a |\n"
    data = markdown.encode()
    assert [data[s.byte_start : s.byte_end].decode() for s in spans] == ["# Title", "žuto", "a"]
    assert spans[1].place == Place(lines=(3, 3))


def test_neighbours_of_one_place_are_one_span() -> None:
    writer = Writer(1000)
    for text in ("one", "two"):
        writer.block(text, Place(page=1))
    assert [(s.byte_start, s.byte_end) for s in writer.finish()[1]] == [(0, 8)]


def test_too_much_text_is_refused() -> None:
    writer = Writer(20)
    writer.add("0123456789")
    with pytest.raises(Refusal) as refused:
        writer.add("01234567890")
    assert refused.value.code == "too-large"


def test_what_json_makes_of_a_text_counts() -> None:
    writer = Writer(30)
    writer.add('"' * 20)
    with pytest.raises(Refusal) as refused:
        writer.finish()
    assert refused.value.code == "too-large"


def test_a_deep_or_long_heading_is_bold() -> None:
    writer = Writer(10_000)
    writer.heading("deep", 7)
    writer.heading("long " * 100, 1)
    writer.heading(" \n ", 1)
    markdown, _ = writer.finish()
    assert markdown.startswith("**deep**\n\n**long long")


def test_very_many_lines_share_spans() -> None:
    writer = Writer(10_000_000)
    for number in range(1, 30_001):
        writer.block(f"line {number}", Place(lines=(number, number)))
    markdown, spans = writer.finish()
    assert 20_000 < len(spans) < 20_200
    last = markdown.encode()[spans[-1].byte_start : spans[-1].byte_end].decode()
    assert spans[-1].place.lines is not None
    assert last.startswith(f"line {spans[-1].place.lines[0]}\n")
    assert last.endswith("line 30000")
