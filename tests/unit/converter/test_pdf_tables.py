"""Tables of a page: drawn in full, in part, by level rules only, and not at all."""

from services.converter.parsing.layout import blocks_of_page
from services.converter.parsing.pdf_shapes import Rule, Word
from tests.unit.converter.test_layout import LONG, box, line, rows

_HEAD = ("Country", "Imported", "Total")
_BODY = (("Austria", "13.8", "3,375"), ("Malta", "3.5", "85"), ("Norway", "72.2", "1,649"))
_LEFTS = (55, 155, 255)


def _row(cells: tuple[str, ...], top: float) -> list[Word]:
    return [w for text, left in zip(cells, _LEFTS, strict=True) for w in line(text, left, top)]


def _grid_head(bottom: float) -> list[Rule]:
    """A box from 50 to 350 with upright rules in its first row only."""
    uprights = [Rule(x, 100, x, 115) for x in (150, 250)]
    return [*box(50, 100, 350, bottom), Rule(50, 115, 350, 115), *uprights]


def test_rows_without_upright_rules_have_the_columns_of_their_head() -> None:
    levels = [Rule(50, y, 350, y) for y in (130, 145)]
    words = _row(_HEAD, 103)
    for n, row in enumerate(_BODY):
        words += _row(row, 118 + 15 * n)
    (table,) = blocks_of_page(words, [*_grid_head(160), *levels])
    assert rows(table) == [list(_HEAD), *map(list, _BODY)]


def test_a_row_of_text_under_a_ruled_head_stays_whole() -> None:
    words = _row(_HEAD, 103) + _row(_BODY[0], 118) + line(LONG[:50], 55, 133)
    (table,) = blocks_of_page(words, [*_grid_head(145), Rule(50, 130, 350, 130)])
    assert rows(table)[2] == [LONG[:50], "", ""]


def test_rows_with_no_rule_between_them_are_rows() -> None:
    uprights = [Rule(x, 100, x, 160) for x in (150, 250)]
    words = _row(_HEAD, 103)
    for n, row in enumerate((*_BODY[:2], ("Spain", "", "12"))):
        words += _row(row, 118 + 14 * n)
    (table,) = blocks_of_page(words, [*box(50, 100, 350, 160), Rule(50, 115, 350, 115), *uprights])
    assert rows(table)[1:] == [*map(list, _BODY[:2]), ["Spain", "", "12"]]


def test_wrapped_text_in_a_ruled_row_stays_in_its_cells() -> None:
    uprights = [Rule(150, 100, 150, 160)]
    words = line("Key", 55, 103) + line("Value", 155, 103)
    left = ("it starts here and", "then it goes on as", "far as it can go")
    right = ("another text which", "is wrapped too and", "ends on this line")
    for n, (a, b) in enumerate(zip(left, right, strict=True)):
        words += line(a, 55, 118 + 13 * n) + line(b, 155, 118 + 13 * n)
    (table,) = blocks_of_page(words, [*box(50, 100, 250, 160), Rule(50, 115, 250, 115), *uprights])
    assert rows(table)[1] == [" ".join(left), " ".join(right)]


def test_level_rules_drawn_in_pieces_are_rules() -> None:
    pieces = [Rule(x, y, x + 100, y) for y in (100, 115, 170) for x in (50, 150, 250)]
    words = _row(_HEAD, 103) + line("Members of the Union", 55, 118)
    for n, row in enumerate(_BODY):
        words += _row(row, 131 + 13 * n)
    (table,) = blocks_of_page(words, pieces)
    found = rows(table)
    assert found[0] == list(_HEAD)
    assert found[1][0] == "Members of the Union"
    assert found[2:] == [*map(list, _BODY)]


def test_what_stands_between_two_tables_of_one_width_is_in_neither() -> None:
    words: list[Word] = []
    rules: list[Rule] = []
    for top in (100, 260):
        rules += [Rule(50, top + y, 350, top + y) for y in (0, 15, 60)]
        words += _row(_HEAD, top + 3)
        for n, row in enumerate(_BODY):
            words += _row(row, top + 18 + 13 * n)
    words += line("Table 2: the same once more for all of the countries", 50, 230)
    found = blocks_of_page(words, rules)
    assert [block.kind for block in found] == ["table", "text", "table"]


def test_rows_in_groups_are_not_one_row_a_group() -> None:
    words = _row(_HEAD, 103)
    for group in range(3):
        for n, row in enumerate(_BODY):
            words += _row(row, 120 + 60 * group + 13 * n)
    (table,) = blocks_of_page(words, [Rule(50, y, 350, y) for y in (100, 115, 300)])
    assert rows(table) == [list(_HEAD), *map(list, _BODY * 3)]


def test_a_head_over_several_columns_does_not_join_them() -> None:
    words = line("Oxide", 190, 100) + line("Carbide", 330, 100)
    columns = (50, 180, 230, 320, 370)
    years = ("", "2009", "2010", "2009", "2010")
    body = (("Austria", "60", "61", "1", "2"), ("Brazil", "50", "51", "43", "44"))
    for n, row in enumerate((years, *body, ("China", "70", "71", "45", "46"))):
        for left, text in zip(columns, row, strict=True):
            words += line(text, left, 113 + 13 * n)
    words = [w for w in words if w.text != "Oxide"] + [Word("Oxide", 180, 100, 255, 110, 10)]
    words = [w for w in words if w.text != "Carbide"] + [Word("Carbide", 320, 100, 395, 110, 10)]
    (table,) = blocks_of_page(words, [])
    assert rows(table)[1:3] == [list(years), list(body[0])]


def test_a_line_over_further_rows_is_a_row() -> None:
    words = _row(_HEAD, 100)
    top = 113
    for name in ("", "Other members"):
        words += line(name, 55, top)
        for n, row in enumerate(_BODY):
            words += _row(row, top + 13 * (n + bool(name)))
        top += 39
    (table,) = blocks_of_page(words, [])
    assert rows(table) == [
        list(_HEAD), *map(list, _BODY), ["Other members", "", ""], *map(list, _BODY),
    ]  # fmt: skip


_NAMES = ("Salaries", "Office Rent", "Insurance", "Staff Travel", "Fundraising")


def _open_at_the_left(names: tuple[str, ...]) -> list[list[str]]:
    words = _row(_HEAD, 103)
    for n, name in enumerate(names):
        words += line(name, 55, 118 + 15 * n) + line(f"{n},000", 155, 118 + 15 * n)
        words += line(f"{n},500", 255, 118 + 15 * n)
    bottom = 115 + 15 * len(names)
    levels = [Rule(150, 115 + 15 * n, 350, 115 + 15 * n) for n in range(1, len(names))]
    uprights = [Rule(x, 100, x, bottom) for x in (150, 250, 350)]
    ends = [Rule(50, y, 350, y) for y in (100, 115, bottom)]
    (table,) = blocks_of_page(words, [*ends, *levels, *uprights])
    return rows(table)


def test_names_left_of_a_box_stand_in_its_rows() -> None:
    found = _open_at_the_left(_NAMES)
    assert found[1:] == [[name, f"{n},000", f"{n},500"] for n, name in enumerate(_NAMES)]


def test_one_text_beside_many_rows_is_one_cell() -> None:
    found = _open_at_the_left(
        ("Costs of the", "staff and of", "all who have", "travelled for", "it")
    )
    assert found[1][0] == "Costs of the staff and of all who have travelled for it"
