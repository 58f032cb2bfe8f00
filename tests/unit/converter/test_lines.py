"""Places survive every change of a text."""

import re
import sys
import tracemalloc
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.artifacts import BodyMeta, ParsedDocument, Place, Span
from kernel.media import CSV, HTML, PLAIN
from services.converter import lines as lines_module
from services.converter.domain import Canonical, canonical, settled
from services.converter.form import marked
from services.converter.lines import body_of, body_pieces, carried, cleaned, joined, split


def spans_of(text: str, cuts: list[int]) -> tuple[Span, ...]:
    """Neighbouring spans between the characters `cuts`, each with a page of its own."""
    places = sorted({len(text[:cut].encode()) for cut in cuts})
    return tuple(
        Span(byte_start=a, byte_end=b, place=Place(page=n))
        for n, (a, b) in enumerate(pairwise(places), start=1)
    )


def body_with(text: str, spans: tuple[Span, ...], media_type: str = PLAIN) -> Canonical:
    meta = BodyMeta(title="T", language="en", media_type=media_type)
    return canonical(ParsedDocument(markdown=text, meta=meta, spans=spans), "x")


def under(text: str, spans: tuple[Span, ...]) -> dict[int | None, str]:
    data = text.encode()
    return {s.place.page: data[s.byte_start : s.byte_end].decode() for s in spans}


def letters(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFC", text) if c.isalnum())


def test_a_place_follows_its_text_through_cleaning() -> None:
    text = "Title\r\n=====\r\nЧлан\x00 1 \r\n\r\n\r\ncafe\u0301 tail\n"
    spans = spans_of(text, [0, text.index("Ч"), text.index("c"), text.index("tail"), len(text)])
    body, _, found = body_with(text, spans)
    assert body == "# Title\n\nЧлан 1\n\ncaf\u00e9 tail\n"
    assert under(body, found) == {1: "Title", 2: "Члан 1", 3: "café ", 4: "tail"}


def test_a_letter_and_its_accent_are_one_place() -> None:
    text = "e\u0301x"
    body, _, found = body_with(text, spans_of(text, [0, 1, 3]))
    assert under(body, found) == {1: "\u00e9", 2: "x"}


def test_a_heap_of_accents_is_cut_and_places_behind_it_stay_right() -> None:
    text = "a" + "\u0301\u0323" * 30_000 + " behind"
    made = body_with(text, spans_of(text, [60_002, 60_008]))
    assert under(made.body, made.spans) == {1: "behind"}
    assert len(made.body) < 50


def test_a_place_of_which_nothing_is_left_goes() -> None:
    text = "text\n\nPage 3 of 9\n\nmore\n"
    body, _, found = body_with(text, spans_of(text, [0, 5, 18, 23]))
    assert under(body, found) == {1: "text", 3: "more"}


def test_a_merged_heading_keeps_both_places() -> None:
    text = "".join(f"Article {n}\n\nSubject {n}\n\n(1) Text {n}.\n\n" for n in range(1, 5))
    cut = text.index("Subject 2")
    body, _, found = body_with(text, spans_of(text, [0, cut, len(text)]))
    data = body.encode()
    assert "# Article 2 Subject 2\n" in body
    assert data[found[0].byte_end :].decode().startswith(" Subject 2")
    assert data[found[1].byte_start :].decode().startswith("Subject 2")


def test_text_without_spans_gets_none() -> None:
    assert body_with("text", ()).spans == ()


def test_pieces_are_cut_and_joined() -> None:
    (line,) = split("  Article 5.  ")
    heading = joined(["# ", line.stripped().cut(0, 9), "!"])
    assert heading.text == "# Article 5!"
    assert heading.pieces == ((2, 2, 9),)
    assert line.without([(0, 2), (9, 11)]).text == "Article.  "


@pytest.mark.parametrize("text", ["\u212b\u0301x", "\u1100\u1161\u11a8", "a\u0323\u0307", "\u0344"])
def test_cleaned_text_is_composed(text: str) -> None:
    assert cleaned(text)[0] == unicodedata.normalize("NFC", text)


@given(st.text(), st.lists(st.integers(0, 40), max_size=6))
def test_cleaning_alone_keeps_every_letter_in_its_place(text: str, cuts: list[int]) -> None:
    spans = spans_of(text, [0, *cuts, len(text)])
    plain, edits = cleaned(text)
    found = carried(spans, text, edits, split(plain))
    flat = body_of(split(plain)).encode()
    covered = "".join(flat[s.byte_start : s.byte_end].decode() for s in found)
    assert letters(covered) == letters(plain)


PIECES = [
    "", "", "", "# {}", "## {} ##", "{}  ", "    {}", "```", "~~~py", "    ```", "---", "===",
    "- {}", "1. {}", "| {} | b |", "|---|---|", "Page 3 of 9", "3", "\f", "Article 1", "Article 2",
    "Article 3 {}", "**Article 4**", "§ 5 {}", "Члан 6.", "Глава {}", "Chapter I", "7. člen",
    "({})", "Contents", "{} ..... 1", "Preamble", "Annex I", "1 {}", "2 {}", "Head", "cookies {}",
    "(1) {} text.", "§ 1. {} text", "§ 2. {} text", "§ 3. {} text", "Section 1. {}. Text", "I. {}",
    "II. {}", "III. KRAJ", "Whereas:", "## Chapter I", "## Article 1", "## Article 2", "## {}",
    "### {}", "Subject of {}", "Subject", "Text of it.", "Anhang 1", "Članak 1.", "Članak 2.",
    "Članak 3.", "A. {}", "3 {}", "2.1 {}", "References", "4 / 9", "page 1", "page 2", "page 3",
    "Final provisions", "Статья 1. {}", "Статья 2. {}", "Глава {}", "ГЛАВА II", "Section 1 {}",
    "[{}](x) | [b](c) | [d](e) | [f](g)", "Skip to content", "## {} [edit]", "> {}", "12", "***",
    "Cafe\u0301 {}", "й{}\u0301", "x\x07{}", "{}\r", "{}\u2028{}", "Закон {}, који", "== {} ==",
    "{} is a long line of text that goes on for a while so that it counts as running text.",
]  # fmt: skip


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, tuple[Span, ...], str]:
    """Markdown full of noise, in which every `{}` is a word that stands there only once."""
    shapes = draw(st.lists(st.sampled_from(PIECES), max_size=40))
    lines = [shape.replace("{}", f"W{n}w", 1) for n, shape in enumerate(shapes)]
    text = draw(st.sampled_from(["\n", "\n\n", "\r\n"])).join(lines)
    cuts = draw(st.lists(st.integers(0, max(len(text), 1)), max_size=12))
    cuts = [cut for cut in (0, *cuts, len(text)) if not re.match("[\u0301]", text[cut : cut + 1])]
    spans = spans_of(text, cuts)
    kept = draw(st.lists(st.booleans(), min_size=len(spans), max_size=len(spans)))
    media = draw(st.sampled_from([PLAIN, HTML]))
    return text, tuple(s for s, keep in zip(spans, kept, strict=True) if keep), media


@settings(max_examples=600, deadline=None)
@given(documents())
def test_every_place_holds_its_own_text_and_no_other(
    document: tuple[str, tuple[Span, ...], str],
) -> None:
    text, spans, media_type = document
    body, _, found = body_with(text, spans, media_type)
    edges = [edge for span in found for edge in (span.byte_start, span.byte_end)]
    assert edges == sorted(edges)
    assert all(span.byte_start < span.byte_end <= len(body.encode()) for span in found)
    before, after = under(text, spans), under(body, found)  # decoding fails within a character
    for page, part in after.items():
        rest = iter(letters(before[page]))
        assert all(letter in rest for letter in letters(part))
    words = re.findall(r"W\d+w", body)
    for page, part in before.items():
        for word in set(re.findall(r"W\d+w", part)) & set(words):
            assert word in after[page]


@settings(max_examples=600, deadline=None)
@given(documents())
def test_what_is_canonical_stays_so(document: tuple[str, tuple[Span, ...], str]) -> None:
    text, spans, media_type = document
    once, meta, places = body_with(text, spans, media_type)
    twice, _, again = canonical(ParsedDocument(markdown=once, meta=meta, spans=places), "y")
    assert twice == once
    assert again == places
    assert not once.startswith("---")
    assert len([line for line in marked(split(once)) if line.code]) == len(
        [line for line in marked(split(f"{once}more\n")) if line.code]
    )


@settings(max_examples=300, deadline=None)
@given(documents())
def test_text_wholly_in_places_stays_wholly_in_places(
    document: tuple[str, tuple[Span, ...], str],
) -> None:
    text, _, media_type = document
    body, _, found = body_with(text, spans_of(text, [0, len(text) // 2, len(text)]), media_type)
    data, at = body.encode(), 0
    for span in found:
        assert letters(data[at : span.byte_start].decode()) == ""
        at = span.byte_end
    assert letters(data[at:].decode()) == ""


ROWS = st.lists(
    st.sampled_from(["| a | b |", "| Члан 5 | |", "|---|---|", "| # x | ```|", "| 12 |", "|x|"]),
    min_size=1,
    max_size=9,
).map("\n".join)
AROUND = st.sampled_from([
    "", "Text of a line.", "# Head", "```", "~~~", "Article 5", "12", "| no row", "a | b |", "\f",
    "e\u0301 |", "  indented |", "- item", "Seite 3", "| row with blanks |  ",
])  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(AROUND, ROWS), max_size=9))
def test_the_middle_of_a_long_table_as_one_line_changes_nothing(blocks: list[str]) -> None:
    text = "\n".join(blocks)
    cuts = sorted({0, len(text) // 3, len(text) // 2, len(text)})

    def made(long: int, line: int) -> tuple[str, BodyMeta, list[tuple[Place, str]]]:
        patch.setattr(lines_module, "LONG_TABLE", long)
        patch.setattr(lines_module, "LONG_LINE", line)
        body, meta, spans = body_with(text, spans_of(text, cuts), PLAIN)
        data = body.encode()
        texts = ((s.place, data[s.byte_start : s.byte_end].decode().strip("\n")) for s in spans)
        return body, meta, [(place, under) for place, under in texts if under]

    with pytest.MonkeyPatch.context() as patch:
        assert made(2, 10**6) == made(10**6, 10**6)
        assert made(2, 8) == made(10**6, 10**6)


def test_the_rows_of_a_long_table_are_few_lines() -> None:
    rows = "".join(f"| {n} | x |\n" for n in range(5000))
    assert len(split(f"# T\n\n| a | b |\n|---|---|\n{rows}\nend\n")) < 12


TABLE = "| a | b |\n|---|---|\n" + "".join(f"| {n} | Члан |\n" for n in range(200_000))


def test_the_middle_of_a_long_table_is_held_once() -> None:
    meta = BodyMeta(title="", language="sr", media_type=CSV)
    spans = spans_of(TABLE, [0, len(TABLE) // 2, len(TABLE) - 1])
    parsed = ParsedDocument(markdown=TABLE, meta=meta, spans=spans)
    settled(parsed, "x")
    tracemalloc.start()
    try:
        lines, _, found = settled(parsed, "x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < sys.getsizeof(TABLE)
    assert "".join(body_pieces(lines)) == TABLE
    assert found == spans


def test_a_line_with_a_tail_loses_nothing_of_it() -> None:
    (line,) = [one for one in split(TABLE) if one.tail]
    middle = TABLE.split("\n", 2)[2].removesuffix("| 199999 | Члан |\n").strip("\n")
    assert line.size == len(middle)
    assert joined(["# ", line]).text == f"# {middle}"
    assert line.stripped().text == middle
    assert line.cut(0, 3).text == middle[:3]
    assert line.cut(0, 3).tail is None


LOG = "".join(f"2024-01-15 10:00:00 INFO request {n} took 7 ms\n" for n in range(100_000))


def test_a_log_costs_little_more_than_its_lines() -> None:
    meta = BodyMeta(title="", language="en", media_type=PLAIN)
    parsed = ParsedDocument(markdown=LOG, meta=meta, spans=spans_of(LOG, [0, 99, len(LOG) - 1]))
    settled(parsed, "x")
    tracemalloc.start()
    try:
        lines, _, _ = settled(parsed, "x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    texts = sum(sys.getsizeof(line.text) for line in lines)
    assert peak < 2 * len(LOG) + texts + 220 * len(lines)
