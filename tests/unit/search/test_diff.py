"""What changed between two bodies: by section, by line, by word."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.diff import Hunk, Piece, Range, SectionDiff
from services.search import diff
from services.search.diff import Compared, compare, counted, match
from services.search.sections import longest_rise, sections

WORDS = st.sampled_from(
    ["der", "die", "Bund", "Артикул", "член", "fine", "x", "5", "2018", ",", ".", "-", "(", "*a*"]
)
LINE = st.lists(WORDS, min_size=1, max_size=9).map(" ".join)
BLOCK = st.one_of(
    st.sampled_from(["# A", "## B", "## § 7", "## § 8 Beginn", "### C", "# D", "###### E"]),
    LINE,
    st.lists(LINE, min_size=1, max_size=3).map("\n".join),
    st.lists(LINE, min_size=1, max_size=3).map(lambda x: "\n".join(f"- {line}" for line in x)),
    LINE.map(lambda x: f"| a | {x} |\n|---|---|\n| b | {x} |"),
    LINE.map(lambda x: f"```\n# {x}\n\n  {x}\n```"),
)


def body_of(blocks: list[str]) -> bytes:
    return ("\n\n".join(blocks) + "\n" if blocks else "").encode()


@st.composite
def two_bodies(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Two bodies that have most of their blocks in common, some elsewhere, some worded anew."""
    old = draw(st.lists(BLOCK, max_size=12))
    new = list(old)
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(new)))
        act = draw(st.sampled_from(["put", "take", "move", "reword"]))
        if act == "put" or not new:
            new.insert(at, draw(BLOCK))
            continue
        block = new.pop(min(at, len(new) - 1))
        if act == "move":
            new.insert(draw(st.integers(0, len(new))), block)
        elif act == "reword":
            new.insert(at, block.replace("der", "des", 1) + " " + draw(WORDS))
    return body_of(old), body_of(new)


def squeezed(text: str) -> str:
    """Without blanks: how a paragraph is cut into lines is no change."""
    return "".join(text.split())


def side(pieces: tuple[Piece, ...], kind: str) -> str:
    return "".join(p.text for p in pieces if p.kind in {"same", kind})


def cut(body: bytes, place: Range | None) -> str:
    return body[place.byte_start : place.byte_end].decode() if place else ""


def assert_covers(places: list[Range], start: int, end: int) -> None:
    """No gap, no overlap."""
    marks = [(p.byte_start, p.byte_end) for p in places]
    assert [start, *(m[1] for m in marks)] == [*(m[0] for m in marks), end]


@settings(max_examples=300, deadline=None)
@given(two_bodies())
def test_the_sections_cover_both_bodies(bodies: tuple[bytes, bytes]) -> None:
    told = compare(*bodies, unchanged=True)
    assert told.left_out == 0 and sum(told.counts.values()) == len(told.sections)
    news = [s.new for s in told.sections if s.new]
    olds = sorted((s.old for s in told.sections if s.old), key=lambda p: p.byte_start)
    assert_covers([*olds], 0, len(bodies[0]))
    assert_covers([*news], 0, len(bodies[1]))


@settings(max_examples=300, deadline=None)
@given(two_bodies())
def test_the_diff_applied_to_the_old_body_gives_the_new_one(bodies: tuple[bytes, bytes]) -> None:
    old, new = bodies
    made = "".join(applied(old, s) for s in compare(old, new, unchanged=True).sections if s.new)
    want = "".join(
        squeezed(s.heading) + squeezed(new[s.text_start : s.text_end].decode())
        for s in sections(new).all
    )
    assert made == want


def applied(old: bytes, section: SectionDiff) -> str:
    """A section of the new side, of the old body and of what came."""
    assert section.new is not None
    if section.kind in {"same", "moved", "renamed"}:
        assert section.old is not None
        raw = cut(old, section.old)
        text = raw.partition("\n")[2] if section.old.heading_path else raw
    else:
        text = "".join(applied_lines(old, h) for h in section.hunks)
    heading = section.new.heading_path[-1] if section.new.heading_path else ""
    if section.renamed:
        assert side(section.heading, "added") == heading
    return squeezed(heading) + squeezed(text)


def applied_lines(old: bytes, hunk: Hunk) -> str:
    if hunk.kind == "same":
        return cut(old, hunk.old)
    assert hunk.left_out == 0
    return side(hunk.pieces, "added")


@settings(max_examples=300, deadline=None)
@given(two_bodies())
def test_lines_are_told_with_their_words_and_bytes(bodies: tuple[bytes, bytes]) -> None:
    for section in compare(*bodies).sections:
        for hunk in section.hunks:
            shown = hunk.left_out == 0
            old, new = cut(bodies[0], hunk.old), cut(bodies[1], hunk.new)
            assert not shown or squeezed(side(hunk.pieces, "removed")) == squeezed(old)
            assert not shown or squeezed(side(hunk.pieces, "added")) == squeezed(new)
            assert hunk.kind != "same" or squeezed(old) == squeezed(new)
        for a, b in pairwise([h.new for h in section.hunks if h.new]):
            assert a.byte_end == b.byte_start


@settings(max_examples=100, deadline=None)
@given(two_bodies())
def test_counts_need_no_look_at_lines(bodies: tuple[bytes, bytes]) -> None:
    assert counted(*bodies) == compare(*bodies).counts


@given(st.lists(st.integers(0, 4), max_size=30), st.lists(st.integers(0, 4), max_size=30))
def test_ops_cover_both_sequences(a: list[int], b: list[int]) -> None:
    ops, coarse = match(a, b, diff._Work())
    assert not coarse
    assert [x for op in ops for x in a[op.a_start : op.a_end]] == a
    assert [x for op in ops for x in b[op.b_start : op.b_end]] == b
    assert all(a[o.a_start : o.a_end] == b[o.b_start : o.b_end] for o in ops if o.same)


@given(st.lists(st.integers(0, 9), max_size=20))
def test_the_longest_rise_rises(numbers: list[int]) -> None:
    kept = [numbers[n] for n in sorted(longest_rise(numbers))]
    assert all(a < b for a, b in pairwise(kept))
    assert bool(kept) == bool(numbers)


# --- what sections are called -----------------------------------------------------------------

LONG = "The controller keeps a record of the processing activities under its responsibility."
OTHER = "Fines are effective and dissuasive in each individual case, and paid within a month."
THIRD = "Every member of the association pays a fee that the assembly sets for each year."


def body(*parts: str) -> bytes:
    return ("\n\n".join(parts) + "\n").encode()


def told(old: bytes, new: bytes) -> list[tuple[str, bool, str]]:
    return [(s.kind, s.moved, name(s)) for s in compare(old, new).sections]


def name(section: SectionDiff) -> str:
    place = section.new or section.old
    assert place is not None
    return place.heading_path[-1] if place.heading_path else ""


def test_the_same_body_has_no_change() -> None:
    text = body("# A", LONG, "## B", OTHER)
    assert compare(text, text) == Compared({"same": 2}, (), 0, merged=False)


def test_a_section_that_was_put_in_is_added_and_its_neighbours_are_the_same() -> None:
    assert told(body("# A", LONG, "# C", OTHER), body("# A", LONG, "# B", THIRD, "# C", OTHER)) == [
        ("added", False, "B")
    ]


def test_sections_that_were_counted_anew_are_renamed_and_not_rewritten() -> None:
    old = body("# Law", "## § 1", LONG, "## § 2", OTHER)
    new = body("# Law", "## § 1", THIRD, "## § 2", LONG, "## § 3", OTHER)
    assert told(old, new) == [("added", False, "§ 1"), ("renamed", False, "§ 2"),
                              ("renamed", False, "§ 3")]  # fmt: skip


def test_the_same_text_is_found_when_there_is_too_much_to_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.search.sections.MOST_READ", 0)
    assert told(body("# A", LONG), body("# B", LONG)) == [("renamed", False, "B")]


def test_a_renamed_heading_has_its_words_marked() -> None:
    [found] = compare(
        body("## § 17 Durchführende Stellen", LONG), body("## § 17 Durchführende Stelle", LONG)
    ).sections
    assert (found.kind, found.renamed) == ("renamed", True)
    assert [(p.kind, p.text) for p in found.heading] == [
        ("same", "§ 17 Durchführende "), ("removed", "Stellen"), ("added", "Stelle"),
    ]  # fmt: skip


def test_a_section_that_went_elsewhere_is_moved_and_the_others_are_not() -> None:
    old = body("# A", LONG, "# B", OTHER, "# C", THIRD, "# D", "last")
    new = body("# B", OTHER, "# C", THIRD, "# A", LONG, "# D", "last")
    assert told(old, new) == [("moved", True, "A")]


def test_a_section_below_another_heading_is_moved() -> None:
    old = body("# A", "## x", LONG, "## y", OTHER, "# B", "## z", THIRD)
    new = body("# A", "## y", OTHER, "# B", "## x", LONG, "## z", THIRD)
    assert told(old, new) == [("moved", True, "x")]


def test_a_chapter_that_moved_is_one_move() -> None:
    old = body("# A", "## x", LONG, "## y", OTHER, "# B", "## z", THIRD, "# C", "end")
    new = body("# B", "## z", THIRD, "# A", "## x", LONG, "## y", OTHER, "# C", "end")
    assert len(told(old, new)) == 1 and told(old, new)[0][0] == "moved"


def test_a_heading_put_above_sections_moves_nothing() -> None:
    old = body("# Law", "## § 1", LONG, "## § 2", OTHER)
    new = body("# Law", "## Part I", "### § 1", LONG, "### § 2", OTHER)
    assert told(old, new) == [("added", False, "Part I")]


def test_a_renamed_chapter_is_found_by_its_sections() -> None:
    old = body("# Erster Teil", "## § 1", LONG, "## § 2", OTHER)
    new = body("# Allgemeines", "## § 1", LONG, "## § 2", OTHER)
    assert told(old, new) == [("renamed", False, "Allgemeines")]


def test_moved_and_reworded_is_changed_and_says_that_it_moved() -> None:
    old = body("# A", LONG, "# B", OTHER, "# C", THIRD)
    new = body("# B", OTHER, "# C", THIRD, "# A", LONG.replace("record", "register"))
    assert told(old, new) == [("changed", True, "A")]


def test_what_went_is_told_where_it_was() -> None:
    old = body("# A", LONG, "# B", OTHER, "# C", THIRD)
    new = body("# A", LONG + " More.", "# C", THIRD + " More.")
    assert [n for _, _, n in told(old, new)] == ["A", "B", "C"]


def test_a_text_before_the_first_heading_is_a_section_without_a_name() -> None:
    assert told(body("Intro", "# A", LONG), body("Introduction", "# A", LONG)) == [
        ("changed", False, "")
    ]


@pytest.mark.parametrize("other", [b"", b"x\n", "Члан 1.\n".encode()])
def test_nothing_against_something(other: bytes) -> None:
    kinds = {s.kind for s in compare(b"", other).sections}
    assert kinds <= {"changed", "added"}


# --- words ------------------------------------------------------------------------------------


def pieces(old: str, new: str) -> list[tuple[str, str]]:
    [section] = compare(body(old), body(new)).sections
    [hunk] = section.hunks
    return [(p.kind, p.text) for p in hunk.pieces]


def test_words_are_marked_and_not_letters() -> None:
    assert pieces("Der Bund trägt die Kosten.", "Der Staat trägt die Kosten.") == [
        ("same", "Der "), ("removed", "Bund"), ("added", "Staat"), ("same", " trägt die Kosten."),
    ]  # fmt: skip


def test_cyrillic_words_are_words() -> None:
    assert pieces("Глобата е до 20 лева за физически лица.", "Глобата е до 50 лева за лица.") == [
        ("same", "Глобата е до "), ("removed", "20"), ("added", "50"), ("same", " лева за "),
        ("removed", "физически "), ("same", "лица."),
    ]  # fmt: skip


def test_a_paragraph_that_is_cut_into_lines_elsewhere_is_the_same() -> None:
    words = LONG.split()
    cuts = ["\n".join([" ".join(words[:n]), " ".join(words[n:])]) for n in (3, 7)]
    [section] = compare(body("# A", cuts[0], "x"), body("# A", cuts[1], "y")).sections
    assert section.hunks[0].kind == "same"
    assert pieces(cuts[0], cuts[1].replace("record", "register"))[1:3] == [
        ("removed", "record"), ("added", "register"),
    ]  # fmt: skip


def test_words_that_are_equal_by_chance_are_not_kept() -> None:
    old = "It is paid by the chamber of agriculture of the state without delay and in full."
    new = "It is paid by every member company within thirty days of receipt and in full."
    kinds = [k for k, _ in pieces(old, new)]
    assert kinds == ["same", "removed", "added", "same"]


def test_another_paragraph_is_not_the_old_one_with_other_words() -> None:
    [section] = compare(body("# A", LONG), body("# A", OTHER)).sections
    assert [h.kind for h in section.hunks] == ["removed", "added"]


def test_rows_of_a_table_are_compared_one_by_one() -> None:
    rows = [f"| Article {n} | {n} 000 EUR |" for n in range(9)]
    old = "\n".join(["| what | fine |", "|---|---|", *rows])
    [section] = compare(body("# T", old), body("# T", old.replace("7 000", "9 500"))).sections
    changed = [h for h in section.hunks if h.kind == "changed"]
    assert [side(h.pieces, "removed") for h in changed] == ["| Article 7 | 7 000 EUR |"]


def test_what_is_the_same_is_shown_next_to_a_change_only() -> None:
    many = [f"Sentence number {n} of the text." for n in range(20)]
    [section] = compare(body("# A", *many, "old"), body("# A", *many, "new")).sections
    assert [(h.kind, h.left_out > 0) for h in section.hunks] == [
        ("same", True), ("same", False), ("removed", False), ("added", False),
    ]  # fmt: skip


# --- limits -----------------------------------------------------------------------------------


def rows(cell: bytes) -> bytes:
    return b"".join(b"| %d | %s |\n" % (n, cell) for n in range(90_000))


def alike(word: bytes) -> bytes:
    return b"".join(b"# h\n\n%d %s %d\n\n" % (n, word, n * 7) for n in range(9_000))


HOSTILE: dict[str, Callable[[], tuple[bytes, bytes]]] = {
    "short lines": lambda: (b"a\n\n" * 400_000, b"b\n\n" * 400_000),
    "headings": lambda: (b"# a\n\n" * 200_000, b"# b\n\n" * 200_000),
    "one line": lambda: (b"ab " * 400_000, b"ba " * 400_000),
    "two lines in turn": lambda: (b"a\n\nb\n\n" * 40_000, b"b\n\na\n\na\n\n" * 40_000),
    "rows": lambda: (rows(b"a"), rows(b"b")),
    "code": lambda: (b"```\n" * 300_000, b"~~~\n" * 300_000),
    "same headings": lambda: (alike(b"a"), alike(b"b")),
    "blanks": lambda: (b" " * 1_000_000, b"\n" * 1_000_000),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_told_coarsely_or_in_part(name: str) -> None:
    old, new = HOSTILE[name]()
    found = compare(old, new)
    text = sum(len(p.text) for s in found.sections for h in s.hunks for p in h.pieces)
    assert text <= diff.MOST_TEXT
    assert len(found.sections) <= diff.MOST_LISTED


def test_too_many_lines_are_one_change_and_it_says_so() -> None:
    [section] = compare(b"# A\n\n" + b"a\n" * 200_002, b"# A\n\n" + b"b\n" * 9).sections
    assert section.coarse and {h.kind for h in section.hunks} == {"removed", "added"}


def test_too_many_headings_are_text_and_it_says_so() -> None:
    old = b"# A\n\n" + b"## b\n\nx\n\n" * 10_000
    found = compare(old, old.replace(b"x", b"y", 1))
    assert found.merged and found.counts == {"changed": 1}


def test_what_is_held_together_by_unique_lines_is_compared_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diff, "MOST_CELLS", 30)
    a, b = [1, 2, 3, 0, 0, 9, 4, 5, 6], [1, 2, 7, 0, 0, 9, 8, 5, 6]
    ops, coarse = match(a, b, diff._Work())
    assert not coarse
    assert [(o.a_start, o.a_end) for o in ops if not o.same] == [(2, 3), (6, 7)]


def test_texts_beyond_an_answer_are_left_out_with_their_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diff, "MOST_TEXT", 120)
    found = compare(body("# A", LONG, "# B", OTHER), body("# A", "1", "# B", "2"))
    left = [h for s in found.sections for h in s.hunks if h.left_out]
    assert left and all(h.pieces == () and (h.old or h.new) for h in left)
