"""Headings found line by line are those that the parser finds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.artifacts import BodyMeta, ParsedDocument
from kernel.headings import _inline_parser, headings, inline_text, plain
from kernel.media import MARKDOWN
from services.converter.domain import canonical
from services.indexer.blocks import blocks

LINES = st.sampled_from([
    "# One", "## Two ##", "### *Three* `x#`", "   # Indented", "    # code", "#no", "# ", "Text",
    "Under", "====", "----", "```", "````py", "~~~", "``` a`b", "- item", "  # in an item", "> # q",
    "- ```\n  # x\n  ```", "1. # x", "", "", "| a | b |", "|---|---|", "Vec<T>", "<https://x.y>",
    "[a]: /b '", "Член 5 #", "\\# no", "a  ", "***", "###### Six #x",
])  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(LINES, max_size=14))
def test_they_are_those_of_the_parser(lines: list[str]) -> None:
    meta = BodyMeta(title="x", language="en", media_type=MARKDOWN)
    body = canonical(ParsedDocument(markdown="\n".join(lines), meta=meta), "x")[0]
    want = [
        (len(body[: b.start].encode()), b.depth, b.text)
        for b in blocks(body)
        if b.kind == "heading"
    ]
    found = headings(body.encode())
    assert [(h.start, h.depth, plain(h.source.decode())) for h in found] == want


def test_code_has_none() -> None:
    body = b"# A\n\n```\n# b\n~~~\n# c\n```\n\n~~~~ x\n# d\n~~~\n# e\n~~~~\n\n## F\n"
    assert [h.source for h in headings(body)] == [b"A", b"F"]


def test_the_place_is_the_line() -> None:
    body = "Увод\n\n## Член 1 ##\n\ntext".encode()
    [found] = headings(body)
    assert body[found.start : found.end] == "## Член 1 ##".encode()
    assert (found.depth, found.source.decode()) == (2, "Член 1")


def test_a_hostile_line_is_read_once() -> None:
    assert len(headings(b"# " + b"#" * 200_000 + b"x\n" + b"# a\n" * 90_000)) == 90_001


def test_of_very_many_the_first_are_found() -> None:
    assert len(headings(b"# a\n" * 500_000)) == 100_000
    assert headings(b"# a\n" * 5, 2) == headings(b"# a\n" * 2)


@given(st.text(alphabet="aб 1.,;:-#>|~()]{}=+'\"/\n\t\u00a0\u2028\U0001f600", max_size=60))
def test_words_without_markup_are_what_the_parser_makes_of_them(text: str) -> None:
    (inline,) = _inline_parser().parseInline(text)
    children = inline.children or []
    words = "".join(c.content if c.type == "text" else " " for c in children)
    assert inline_text(text) == " ".join(words.split())
