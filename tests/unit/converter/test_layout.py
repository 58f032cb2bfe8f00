"""Blocks of a page from words and rules."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from services.converter.parsing.layout import Block, blocks_of_page
from services.converter.parsing.pdf_shapes import Rule, Word, join_words
from services.converter.parsing.tables import table_in

SIZE = 10.0
WIDTH = 5.0
LONG = "every line of this paragraph fills the column from its left edge to the right one"


def line(text: str, left: float, top: float, size: float = SIZE, **style: bool) -> list[Word]:
    """Words of `text`, five points a letter."""
    words: list[Word] = []
    for word in text.split(" "):
        right = left + WIDTH * len(word)
        if word:
            words.append(Word(word, left, top, right, top + size, size, **style))
        left = right + WIDTH
    return words


def lines(texts: Iterable[str], left: float, top: float, step: float = 13) -> list[Word]:
    return [w for n, text in enumerate(texts) for w in line(text, left, top + n * step)]


def box(left: float, top: float, right: float, bottom: float) -> list[Rule]:
    return [
        Rule(left, top, right, top), Rule(left, bottom, right, bottom),
        Rule(left, top, left, bottom), Rule(right, top, right, bottom),
    ]  # fmt: skip


def texts(blocks: Iterable[Block]) -> list[str]:
    return [block.text for block in blocks]


def rows(block: Block) -> list[list[str]]:
    assert block.table is not None
    grid = [["" for _ in range(block.table.columns)] for _ in range(block.table.rows)]
    for cell in block.table.cells:
        grid[cell.row][cell.column] = cell.text
    return grid


def test_lines_of_one_distance_are_a_paragraph_and_a_gap_ends_it() -> None:
    words = lines([LONG] * 3, 50, 100) + lines([LONG] * 2, 50, 160)
    assert [len(b.lines) for b in blocks_of_page(words, [])] == [3, 2]


def test_an_indented_line_after_a_full_stop_starts_a_paragraph() -> None:
    words = lines([LONG, "ends here.", "   " + LONG[:60], LONG], 50, 100)
    assert [len(b.lines) for b in blocks_of_page(words, [])] == [2, 2]


def test_larger_and_bolder_lines_stand_alone() -> None:
    words = [
        *line("Heading", 50, 80, 16),
        *line("Bold", 50, 100, bold=True),
        *lines([LONG] * 2, 50, 113),
    ]
    assert [b.text for b in blocks_of_page(words, [])][:2] == ["Heading", "Bold"]


def test_two_columns_are_read_one_after_the_other() -> None:
    left = [f"left column line number {n:02d}" for n in range(10)]
    right = [f"right column line number {n:02d}" for n in range(10)]
    words = line("A title across both of the columns of the page", 60, 50, 14)
    words += lines(left, 50, 100) + lines(right, 230, 100)
    joined = "\n".join(texts(blocks_of_page(words, [])))
    assert joined.index("title") < joined.index("left column line number 00")
    assert joined.index("number 09") < joined.index("right column line number 00")


def test_columns_need_not_share_their_baselines() -> None:
    words = lines(["left column line number"] * 12, 50, 100)
    words += lines(["right column line number"] * 12, 230, 106.5)
    blocks = blocks_of_page(words, [])
    assert all(("left" in b.text) != ("right" in b.text) for b in blocks)


def test_a_table_beside_another_stays_with_the_heading_over_it() -> None:
    words, rules = [], []
    for left, name in ((50, "Errors"), (300, "Programs")):
        words += line(name, left + 60, 80, bold=True)
        for row, cells in enumerate((("one", "two"), ("three", "four"))):
            words += line(f"{name[0]}{cells[0]}", left + 5, 103 + 20 * row)
            words += line(cells[1], left + 105, 103 + 20 * row)
        rules += [*box(left, 100, left + 200, 140), Rule(left, 120, left + 200, 120)]
        rules += [Rule(left + 100, 100, left + 100, 140)]
    blocks = blocks_of_page(words, rules)
    assert [block.text or rows(block)[0][0] for block in blocks] == [
        "Errors", "Eone", "Programs", "Pone",
    ]  # fmt: skip


def test_a_ruled_table_is_a_grid() -> None:
    words = [
        *line("Name", 55, 103),
        *line("Price", 155, 103),
        *line("Plum pie", 55, 123),
        *line("5", 155, 123),
    ]
    rules = [*box(50, 100, 250, 140), Rule(50, 120, 250, 120), Rule(150, 100, 150, 140)]
    (table,) = blocks_of_page(words, rules)
    assert rows(table) == [["Name", "Price"], ["Plum pie", "5"]]


def test_one_upright_rule_divides_a_table_that_is_open_at_its_sides() -> None:
    words = [
        *lines(["cat file", "ls"], 55, 103, 40),
        *lines(["Writes what", "is in it"], 155, 103), *line("Lists", 155, 143),
    ]  # fmt: skip
    rules = [Rule(50, y, 250, y) for y in (100, 138, 176)] + [Rule(150, 100, 150, 176)]
    (table,) = blocks_of_page(words, rules)
    assert rows(table) == [["cat file", "Writes what is in it"], ["ls", "Lists"]]


def test_cells_without_a_rule_between_them_are_joined() -> None:
    words = [*line("Both columns", 55, 103), *line("a", 55, 123), *line("b", 155, 123)]
    rules = [*box(50, 100, 250, 140), Rule(50, 120, 250, 120), Rule(150, 120, 150, 140)]
    (table,) = blocks_of_page(words, rules)
    assert table.table is not None
    assert table.table.cells[0].column_span == 2


def test_a_table_stands_between_the_text_around_it() -> None:
    words = [*lines([LONG], 50, 80), *line("a", 55, 103), *line("b", 155, 103), *line("c", 55, 123),
             *line("d", 155, 123), *lines([LONG], 50, 160)]  # fmt: skip
    rules = [*box(50, 100, 250, 140), Rule(50, 120, 250, 120), Rule(150, 100, 150, 140)]
    assert [b.kind for b in blocks_of_page(words, rules)] == ["text", "table", "text"]


def test_an_unruled_table_is_told_by_its_columns() -> None:
    words = [w for n, (a, b) in enumerate([("Name", "Price"), ("Apples", "10"), ("Pears", "7")])
             for w in (*line(a, 50, 100 + 14 * n), *line(b, 200, 100 + 14 * n))]  # fmt: skip
    (table,) = blocks_of_page(words, [])
    assert rows(table) == [["Name", "Price"], ["Apples", "10"], ["Pears", "7"]]


def test_a_wrapped_cell_stays_in_its_row() -> None:
    words = []
    for n in range(3):
        words += line(f"name{n}", 50, 100 + 40 * n) + line("a text that goes", 200, 100 + 40 * n)
        words += line("on below", 200, 112 + 40 * n)
    (table,) = blocks_of_page(words, [])
    assert rows(table)[1] == ["name1", "a text that goes on below"]


def test_cells_that_wrap_in_the_same_line_stay_in_their_row() -> None:
    words = [
        *line("Cellar", 50, 100), *line("papers of the old", 120, 100),
        *line("dry and dark", 230, 100),
        *line("council", 120, 113), *line("all year", 230, 113),
        *line("Attic", 50, 126), *line("maps", 120, 126), *line("warm", 230, 126),
        *line("Annex", 50, 139), *line("books", 120, 139), *line("cold", 230, 139),
    ]  # fmt: skip
    (table,) = blocks_of_page(words, [])
    assert rows(table) == [
        ["Cellar", "papers of the old council", "dry and dark all year"],
        ["Attic", "maps", "warm"],
        ["Annex", "books", "cold"],
    ]


def test_a_row_that_leaves_its_first_cell_blank_is_a_row() -> None:
    words = [
        *line("Fruit", 50, 100), *line("Pomegranate", 120, 100), *line("1.20", 230, 100),
        *line("Plum", 120, 113), *line("1.30", 230, 113),
        *line("Roots", 50, 126), *line("Carrot", 120, 126), *line("0.40", 230, 126),
    ]  # fmt: skip
    (table,) = blocks_of_page(words, [])
    assert rows(table)[1] == ["", "Plum", "1.30"]


def test_a_head_and_one_row_are_a_table_if_the_head_is_bold() -> None:
    head = [*line("Room", 50, 100, bold=True), *line("Area", 150, 100, bold=True)]
    words = [*head, *line("Cellar", 50, 113), *line("85.5", 150, 113)]
    (table,) = blocks_of_page(words, [])
    assert rows(table) == [["Room", "Area"], ["Cellar", "85.5"]]
    plain = [*line("Name: Ann", 50, 100), *line("Town: Ohrid", 150, 100), *words[2:]]
    assert all(block.kind != "table" for block in blocks_of_page(plain, []))


def test_a_heading_over_two_columns_spans_them() -> None:
    words = [
        *line("Item", 80, 103),
        *line("Animal", 55, 118), *line("Kind", 110, 118), *line("Price", 165, 118),
        *line("Gnat", 55, 143), *line("each", 110, 143), *line("0.01", 165, 143),
        *line("Gnu", 55, 156), *line("stuffed", 110, 156), *line("92.50", 165, 156),
    ]  # fmt: skip
    rules = [Rule(50, y, 200, y) for y in (100, 140, 170)]
    (table,) = blocks_of_page(words, rules)
    assert table.table is not None
    (span,) = [cell for cell in table.table.cells if cell.text == "Item"]
    assert (span.row, span.column_span) == (0, 2)
    assert rows(table)[1:] == [
        ["Animal", "Kind", "Price"], ["Gnat", "each", "0.01"], ["Gnu", "stuffed", "92.50"],
    ]  # fmt: skip


def test_numbered_formulas_are_no_table() -> None:
    words = [w for n in range(4) for w in [*line("a = b", 90, 100 + 15 * n),
                                           *line(f"(2.{n})", 300, 100 + 15 * n)]]  # fmt: skip
    assert all(block.kind != "table" for block in blocks_of_page(words, []))


def test_a_listing_with_numbered_lines_is_code() -> None:
    code = ("if x:", "    y = 2", "else:", "    y = 3")
    words = [w for n, text in enumerate(code) for w in [
        *line(str(n + 1), 50, 100 + 12 * n), *line(text, 80, 100 + 12 * n, mono=True)
    ]]  # fmt: skip
    (block,) = blocks_of_page(words, [])
    assert block.kind == "code"
    assert block.text.splitlines()[0].split() == ["1", "if", "x:"]


def test_a_bulleted_list_is_no_table() -> None:
    words = []
    for n in range(4):
        words += line("•", 50, 100 + 14 * n) + line(
            "an item with several words in it", 75, 100 + 14 * n
        )
    assert {b.kind for b in blocks_of_page(words, [])} == {"list"}


def test_letters_of_a_symbol_font_that_return_are_bullets() -> None:
    texts_of = ["r Database speed", "r Advanced skills", "r Business reports"]
    blocks = blocks_of_page(lines(texts_of, 50, 100), [])
    assert [block.kind for block in blocks] == ["list"] * 3
    assert texts(blocks)[0] == "• Database speed"
    (alone,) = blocks_of_page(lines(["r is the radius", "of the circle"], 50, 100), [])
    assert alone.text.startswith("r is")


def test_marks_of_all_shapes_are_bullets() -> None:
    for mark in "•▸◾❖➔\uf0a8":
        (block, *_) = blocks_of_page(lines([f"{mark} one thing", f"{mark} another"], 50, 100), [])
        assert block.kind == "list"


def test_a_nested_list_of_few_words_is_no_table() -> None:
    words = []
    for n, left in enumerate((50, 68, 68, 50)):
        words += line("•", left, 100 + 14 * n) + line("short item", left + 18, 100 + 14 * n)
    assert [(b.kind, b.text) for b in blocks_of_page(words, [])] == [("list", "• short item")] * 4


def test_a_table_of_ticks_is_a_table() -> None:
    words = []
    for n, row in enumerate(["• yes 12", "• no 15", "• both 27", "• none 31"]):
        for column, cell in enumerate(row.split()):
            words += line(cell, 50 + 120 * column, 100 + 14 * n)
    assert [b.kind for b in blocks_of_page(words, [])] == ["table"]


def test_a_form_is_read_box_by_box() -> None:
    rules, words = [], []
    for row in range(4):
        rules += box(50, 100 + 20 * row, 450, 120 + 20 * row)
        edges = [50 + 40 * n + 10 * row for n in range(2, 9, 2)]
        rules += [Rule(x, 100 + 20 * row, x, 120 + 20 * row) for x in edges]
        words += [w for n, x in enumerate(edges) for w in line(f"f{row}{n}", x + 2, 104 + 20 * row)]
    blocks = blocks_of_page(words, rules)
    assert {b.kind for b in blocks} == {"text"}
    assert texts(blocks)[:4] == ["f00", "f01", "f02", "f03"]


def test_code_is_told_by_its_font() -> None:
    words = [*line("x = 1", 50, 100, mono=True), *line("y = 2", 50, 113, mono=True)]
    assert blocks_of_page(words, [])[0].kind == "code"


def test_a_line_of_code_in_capitals_does_not_end_the_code() -> None:
    code = ("INPUT=''", "OUTPUT='file.csv'", "INDEX=0", "while read line; do")
    words = [w for n, text in enumerate(code) for w in line(text, 50, 100 + 13 * n, mono=True)]
    (block,) = blocks_of_page([*words, *line(LONG, 50, 300)], [])[:-1]
    assert block.kind == "code"


def test_words_printed_over_one_another_are_two_but_small_type_belongs_to_its_word() -> None:
    over = [*line("first", 50, 100), *line("second", 52, 100)]
    assert join_words(over) == "first second"
    acid = [Word("SO4", 50, 100, 68, 110, 10.0), Word("2-", 62, 98, 68, 104, 7.0)]
    assert join_words(acid) == "SO42-"
    logo = [Word("LuaL", 50, 100, 75, 110, 11.5), Word("ATEX", 71, 100, 76, 106.8, 11.5)]
    assert join_words(logo) == "LuaLATEX"
    hat = [Word("t", 50, 100, 55, 110, 10.0), Word("\u02c6", 50, 98, 55, 108, 10.0)]
    assert join_words(hat) == "t\u02c6"


def test_text_that_is_printed_twice_counts_once() -> None:
    words = [*line("shadow", 50, 100), *line("shadow", 50.4, 100.3)]
    assert texts(blocks_of_page(words, [])) == ["shadow"]


def test_an_empty_page_has_no_blocks() -> None:
    assert blocks_of_page([], box(0, 0, 9, 9)) == []


def test_a_table_between_horizontal_rules_needs_no_wide_gaps() -> None:
    pairs = [("Parameter", "Value"), ("Snail species", "Helix"), ("Medium of entanglement", "Foam")]
    words = [
        w
        for n, (a, b) in enumerate(pairs)
        for w in (*line(a, 55, 103 + 14 * n), *line(b, 177, 103 + 14 * n))
    ]
    rules = [Rule(50, y, 250, y) for y in (100, 115, 145)]
    (table,) = blocks_of_page(words, rules)
    assert rows(table) == [list(pair) for pair in pairs]


def test_a_title_over_two_columns_is_not_cut_where_the_gutter_is() -> None:
    words = line("A title whose gap falls", 102, 50, 14) + line("into the gutter here", 222, 50, 14)
    words += lines(["left column line number"] * 12, 50, 100)
    words += lines(["right column line number"] * 12, 230, 100)
    assert blocks_of_page(words, [])[0].text == "A title whose gap falls into the gutter here"


def test_a_table_that_another_engine_found_gets_its_cells() -> None:
    words = (
        line("Name", 50, 100) + line("of it", 100, 100) + line("x", 50, 114) + line("y", 100, 114)
    )
    table = table_in(words, [])
    assert table is not None
    assert [(c.row, c.column, c.text) for c in table.cells] == [
        (0, 0, "Name"), (0, 1, "of it"), (1, 0, "x"), (1, 1, "y"),
    ]  # fmt: skip
    assert table_in(line("no columns", 50, 100), []) is None


COORDINATE = st.floats(0, 600, allow_nan=False)
WORDS = st.builds(
    lambda text, left, top, size: Word(text, left, top, left + 5 * len(text), top + size, size),
    st.text("abc.•1", min_size=1, max_size=6), COORDINATE, COORDINATE, st.floats(0.5, 40),
)  # fmt: skip
RULES = st.builds(
    lambda x, y, length, flat: Rule(x, y, x + length * flat, y + length * (not flat)),
    COORDINATE, COORDINATE, st.floats(0, 300), st.booleans(),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, max_size=60), st.lists(RULES, max_size=12))
def test_no_word_of_a_page_is_lost_or_doubled(words: list[Word], rules: list[Rule]) -> None:
    placed = {(w.text, round(w.left), round(w.top)) for w in words}
    found: list[str] = []
    for block in blocks_of_page(words, rules):
        if block.table is not None:
            for cell in block.table.cells:
                found += [w.text for w in cell.words]
                letters = "".join(w.text for w in cell.words)
                assert sorted(cell.text.replace(" ", "")) == sorted(letters)
        found += [w.text for one in block.lines for w in one.words]
    assert len(found) <= len(words)
    assert set(found) == {text for text, _, _ in placed}
