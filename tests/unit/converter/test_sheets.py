"""Spreadsheets of every kind as sections of tables."""

import copy
import io
import re
import struct
import zipfile
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlwt
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.styles import Font, PatternFill

from contracts.artifacts import ParsedDocument, Place
from kernel.errors import Refusal
from services.converter.parsing.cells import moment_text, number_text, shower
from services.converter.parsing.sheetml import Cell, Styles, value_of
from services.converter.parsing.sheets import Area, Row, column_name, write_sheet
from services.converter.parsing.writer import Writer
from services.converter.parsing.xls import parse_xls
from services.converter.parsing.xlsx import parse_xlsx
from services.converter.settings import ParseOptions

OPTIONS = ParseOptions()


def sheet(grid: str, merged: tuple[Area, ...] = ()) -> str:
    """The Markdown of a grid of one-letter cells; a dot is a blank one."""
    rows = [
        Row(number, {c: t for c, t in enumerate(line.split(), 1) if t != "."})
        for number, line in enumerate(grid.strip().split("\n"), 1)
    ]
    writer = Writer(1_000_000)
    write_sheet(writer, "S", [row for row in rows if row.cells], merged)
    return writer.finish()[0].removeprefix("## S\n\n")


def test_one_table() -> None:
    assert sheet("a b\n1 2\n3 4") == "| a | b |\n| - | - |\n| 1 | 2 |\n| 3 | 4 |\n"


def test_blank_rows_part_tables() -> None:
    assert sheet("a b\n1 2\n.\nc d e\n5 6 7").count("\n| - ") == 2


def test_a_blank_row_within_a_table_is_left_out() -> None:
    assert sheet("a b\n1 2\n.\n3 4") == "| a | b |\n| - | - |\n| 1 | 2 |\n| 3 | 4 |\n"


def test_sums_under_a_table_are_rows_of_it() -> None:
    table = "| a | b | c |\n| - | - | - |\n| x | 1 | 2 |\n"
    assert sheet("a b c\nx 1 2\n.\nTotal . 2") == f"{table}| Total |  | 2 |\n"
    assert sheet("a b c\nx 1 2\n.\n. 1 2") == f"{table}|  | 1 | 2 |\n"
    assert sheet("a b c\nx 1 2\n.\nNet . 2\nTax . 1\n.\nTotal . 3\nNote") == (
        f"{table}| Net |  | 2 |\n| Tax |  | 1 |\n| Total |  | 3 |\n\nNote\n"
    )


def test_a_sum_has_its_own_cells_for_its_place() -> None:
    writer = Writer(1_000_000)
    rows = [Row(1, {1: "a", 4: "b"}), Row(2, {1: "x", 2: "y", 3: "z", 4: "1"})]
    write_sheet(writer, "S", [*rows, Row(4, {1: "Total", 4: "1"})])
    markdown, spans = writer.finish()
    place = next(s for s in spans if s.place.cells == "A4:D4")
    assert markdown.encode()[place.byte_start : place.byte_end] == b"Total |  |  | 1"


@pytest.mark.parametrize(
    "group",
    [
        "y Total",  # No value.
        "Total 1 2 3",  # Wider than the table.
        ". 2019 2020\ny 3 4",  # A head of years: another table.
        "\n".join(["Total . 2"] * 6),  # Too many for sums.
        ".\nTotal . 2",  # Two blank rows between.
        "Net . 2\n. ¥1 ¥2\n. ¥3 ¥4",  # The first row of another table.
    ],
)
def test_what_else_stands_under_a_table_is_none_of_it(group: str) -> None:
    markdown = sheet(f"a b c\nx 1 2\n.\n{group}")
    assert "| x | 1 | 2 |\n\n" in markdown


def test_a_head_with_a_blank_row_under_it_stays_its_head() -> None:
    assert sheet("a b\n.\n1 2\n3 4") == "| a | b |\n| - | - |\n| 1 | 2 |\n| 3 | 4 |\n"


def test_blank_columns_part_tables() -> None:
    assert sheet("a b . c d\n1 2 . 3 4\n5 6 . . .") == (
        "| a | b |\n| - | - |\n| 1 | 2 |\n| 5 | 6 |\n\n| c | d |\n| - | - |\n| 3 | 4 |\n"
    )


def test_one_text_over_a_table_is_a_paragraph() -> None:
    assert sheet("T .\na b\n1 2").startswith("T\n\n| a | b |")


def test_a_title_merged_over_the_table_is_a_paragraph() -> None:
    assert sheet("T . .\na b c\n1 2 3", (Area(1, 1, 1, 3),)).startswith("T\n\n| a | b | c |")


def test_merged_cells_show_their_text_in_every_cell() -> None:
    markdown = sheet("a b c\nx 1 2\n. 3 4\ny 5 .", (Area(2, 1, 3, 1), Area(4, 2, 4, 3)))
    assert markdown.endswith("| x | 1 | 2 |\n| x | 3 | 4 |\n| y | 5 | 5 |\n")


def test_a_column_of_words_is_text() -> None:
    assert sheet("hello\nworld") == "hello\n\nworld\n"


def test_a_late_column_opens_a_new_table() -> None:
    rows = [Row(n, {1: "a", 2: str(n)}) for n in range(1, 1500)]
    rows += [Row(n, {1: "a", 2: "1", 3: "late"}) for n in range(1500, 1600)]
    writer = Writer(1_000_000)
    write_sheet(writer, "S", rows)
    markdown, spans = writer.finish()
    assert "|  |  |  |\n| - | - | - |\n| a | 1 | late |" in markdown
    assert markdown.count("\n| a |") == 1599
    assert spans[-1].place == Place(sheet="S", cells="A1599:C1599")


def test_rows_after_the_first_two_thousand_share_spans() -> None:
    writer = Writer(1_000_000)
    write_sheet(writer, "S", [Row(n, {1: "x", 2: str(n)}) for n in range(1, 5001)])
    _, spans = writer.finish()
    assert len(spans) == 1 + 2000 + 30
    assert spans[-1].place.cells == "A4901:B5000"


def test_columns_have_names() -> None:
    assert [column_name(n) for n in (1, 26, 27, 16384)] == ["A", "Z", "AA", "XFD"]


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [
        ("General", 0.1 + 0.2, "0.3"),
        ("General", 3.0, "3"),
        ("General", 1e-7, "0.0000001"),
        ("0.00", 2.5, "2.5"),
        ("0%", 0.5, "50%"),
        ("0.0%", 0.1234, "12.34%"),
        ("0%", 0.025, "2.5%"),
        ("0.00%", 0.1, "10.00%"),
        ("0%", 1 / 3, "33.33%"),
        ("$#,##0.00;($#,##0.00)", -1599.99, "-$1599.99"),
        ("#,##0.00", 1234567.5, "1234567.5"),
        ("General", 12345678901234567890, "12345678901234567890"),
        ("dd.mm.yyyy", 45352, "2024-03-01"),
        ("yyyy-mm-dd hh:mm", 45352.5, "2024-03-01T12:00:00"),
        ("h:mm AM/PM", 0.25, "06:00:00"),
        ("[h]:mm:ss", 1.5, "36:00:00"),
        ("#,##0.00 [$€-407]", 1234.5, "1234.5 €"),
        ("$#,##0", 12, "$12"),
        (";;;", 5, ""),
        ("yyyy", 1e12, "1000000000000"),
        ('"day" 0', 3, "3"),
    ],
)
def test_numbers_as_they_are_shown(code: str, value: float, expected: str) -> None:
    assert shower(code)(value) == expected


def test_moments() -> None:
    assert moment_text(datetime(2024, 3, 1, 12, 30)) == "2024-03-01T12:30:00"  # noqa: DTZ001
    assert moment_text(time(7, 5)) == "07:05:00"
    assert moment_text(timedelta(hours=-30)) == "-30:00:00"
    assert number_text(float("1e300")) == "1e+300"


def test_dates_counted_from_1904() -> None:
    assert shower("dd.mm.yyyy", from_1904=True)(1) == "1904-01-02"


# --- XLSX ---------------------------------------------------------------------------------------


def parsed(book: Any, tmp_path: Path) -> ParsedDocument:
    book.save(tmp_path / "a.xlsx")
    return parse_xlsx(tmp_path / "a.xlsx", OPTIONS).document


def hidden(document: ParsedDocument, kind: str) -> str:
    return "\n".join(h.text for h in document.hidden if h.kind == kind)


def test_a_workbook(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.properties.title = "Prices"
    first: Any = book.active
    first.title = "Цены # 1"
    first.append(["Товар", "Дата", "Доля"])
    first.append(["чай|кофе", date(2024, 3, 1), 0.25])
    first["C2"].number_format = "0%"
    book.create_sheet("Empty")
    document = parsed(book, tmp_path)
    assert document.markdown == (
        "## Цены # 1\n\n| Товар | Дата | Доля |\n| - | - | - |\n| чай\\|кофе | 2024-03-01 | 25% |\n"
    )
    assert document.meta.title == "Prices"
    assert document.spans[2].place == Place(sheet="Цены # 1", cells="A2:C2")


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("98765432109876543210", "98765432109876543210"),
        ("-9007199254740993", "-9007199254740993"),
        ("1.5E+3", "1500"),
        ("0.30000000000000004", "0.3"),
        ("no number", "no number"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_whole_numbers_keep_every_digit(stored: str, shown: str) -> None:
    styles = Styles(None, from_1904=False)
    assert value_of(Cell(1, "n", 0, stored), [], styles) == shown


def test_links_of_cells_stay(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    first: Any = book.active
    first.append(["Source", "Year"])
    first.append(["a | page", 2020])
    first.append(["inside", 2021])
    first["A2"].hyperlink = "https://a.b/c|d"
    first["B2"].hyperlink = "https://a.b/year"
    first["A3"].hyperlink = "#Sheet!A1"
    assert parsed(book, tmp_path).markdown.endswith(
        "| Source | Year |\n| - | - |\n| [a \\| page](https://a.b/c%7Cd) | 2020 |\n"
        "| inside | 2021 |\n"
    )


def test_charts_are_tables_with_their_title(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    first: Any = book.active
    first.title = "Data"
    for row in (["Town", "People"], ["Aš", 12], ["Bled", 5.5]):
        first.append(row)
    chart = BarChart()
    chart.title = "People | town"
    chart.add_data(Reference(first, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    chart.set_categories(Reference(first, min_col=1, min_row=2, max_row=3))
    first.add_chart(chart, "D2")
    book.create_chartsheet("Poster").add_chart(copy.deepcopy(chart))
    drawn = with_caches(book, tmp_path, ["Aš", "Bled"], ["12", "5.5"])
    document = parse_xlsx(drawn, OPTIONS).document
    table = "People | town\n\n|  | People |\n| - | - |\n| Aš | 12 |\n| Bled | 5.5 |\n"
    assert document.markdown == (
        "## Data\n\n| Town | People |\n| - | - |\n| Aš | 12 |\n| Bled | 5.5 |\n\n"
        f"{table}\n## Poster\n\n{table}"
    )
    places = [span.place for span in document.spans]
    assert any(p.sheet == "Data" and (p.cells or "").startswith("D2") for p in places)


def with_caches(book: Any, tmp_path: Path, names: list[str], values: list[str]) -> Path:
    """The workbook with the values that a program for sheets stores in its charts."""
    book.save(tmp_path / "bare.xlsx")

    def cache(kind: str, texts: list[str]) -> str:
        points = "".join(f'<pt idx="{n}"><v>{t}</v></pt>' for n, t in enumerate(texts))
        return f"<{kind}>{points}</{kind}>"

    with (
        zipfile.ZipFile(tmp_path / "bare.xlsx") as bare,
        zipfile.ZipFile(tmp_path / "a.xlsx", "w") as full,
    ):
        for name in bare.namelist():
            text = bare.read(name)
            if name.startswith("xl/charts/chart"):
                for tag, texts in (("cat", names), ("val", values), ("tx", ["People"])):
                    kind = "numCache" if tag == "val" else "strCache"
                    text = re.sub(
                        rf"(<{tag}>.*?</f>)".encode(),
                        rb"\1" + cache(kind, texts).encode(),
                        text,
                        flags=re.DOTALL,
                    )
            full.writestr(name, text)
    return tmp_path / "a.xlsx"


def test_text_in_a_format_that_shows_none_is_hidden(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row, (text, code) in enumerate(
        [("secret", ";;;"), ("seen", ";;"), ("told", '0;0;0;"a;"@')], start=1
    ):
        sheet.cell(row, 1, text).number_format = code
    path = tmp_path / "a.xlsx"
    book.save(path)
    document = parse_xlsx(path, ParseOptions()).document
    assert "secret" not in document.markdown
    assert "seen" in document.markdown
    assert "told" in document.markdown
    assert hidden(document, "invisible-style") == "secret"


def test_what_is_hidden_is_for_the_scanner(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    seen: Any = book.active
    for row in (["a", "b", "c"], [1, 2, 3], [4, 5, 6], [7, 8, 9]):
        seen.append(row)
    seen.row_dimensions[3].hidden = True
    seen.column_dimensions["B"].hidden = True
    seen["A2"].comment = Comment("a remark", "me")
    seen["C4"].number_format = ";;;"
    seen["A5"], seen["A6"] = "white", "painted"
    seen["A5"].font = seen["A6"].font = Font(color="FFFFFFFF")
    seen["A6"].fill = PatternFill("solid", start_color="FF000000")
    unseen: Any = book.create_sheet("Secret")
    unseen.append(["obey me"])
    unseen.sheet_state = "veryHidden"
    seen.oddHeader.left.text = "on every page"
    document = parsed(book, tmp_path)
    assert "white" not in document.markdown and "painted" in document.markdown
    assert not {"4", "5", "6", "b", "9", "Secret"} & set(document.markdown.split())
    assert {"4 5 6", "b", "2", "9", "obey me"} <= set(
        hidden(document, "invisible-style").split("\n")
    )
    assert "a remark" in hidden(document, "comment")
    assert hidden(document, "background-colour") == "white"
    assert "on every page" in hidden(document, "notes")


def repacked(path: Path, changes: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()} | changes
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    path.write_bytes(buffer.getvalue())
    return path


def with_sheet(tmp_path: Path, xml: str) -> Path:
    openpyxl.Workbook().save(tmp_path / "a.xlsx")
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    data = f'<worksheet xmlns="{space}">{xml}</worksheet>'.encode()
    return repacked(tmp_path / "a.xlsx", {"xl/worksheets/sheet1.xml": data})


def test_stored_results_of_formulas_and_other_kinds(tmp_path: Path) -> None:
    xml = (
        '<sheetData><row><c><f>1+1</f><v>2</v></c><c t="str"><f>A1</f><v>x &lt;b&gt;</v></c>'
        '<c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c><c t="s"><v>99</v></c>'
        '<c t="inlineStr"><is><r><t>in</t></r><r><t>line</t></r><rPh><t>no</t></rPh></is></c>'
        "</row></sheetData>"
    )
    markdown = parse_xlsx(with_sheet(tmp_path, xml), OPTIONS).document.markdown
    assert "| 2 | x \\<b> | TRUE | #N/A |" in markdown
    assert "inline" in markdown and "no" not in markdown


def test_cells_at_the_far_corner_cost_nothing(tmp_path: Path) -> None:
    xml = (
        '<dimension ref="A1:XFD1048576"/><sheetData><row r="1"><c r="A1"><v>1</v></c>'
        '<c r="XFD1"><v>2</v></c></row><row r="1048576"><c r="XFD1048576"><v>3</v></c></row>'
        '</sheetData><mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'
    )
    document = parse_xlsx(with_sheet(tmp_path, xml), OPTIONS).document
    assert len(document.markdown) < 100
    assert document.spans[-1].place.cells == "XFD1048576"


@pytest.mark.parametrize(
    ("xml", "code"),
    [
        ("<sheetData><row><c>", "corrupt-document"),
        ("<sheetData/>", "empty-document"),
    ],
)
def test_a_bad_sheet_is_refused(tmp_path: Path, xml: str, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        parse_xlsx(with_sheet(tmp_path, xml), OPTIONS)
    assert refused.value.code == code


@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"])
def test_a_bomb_of_entities_is_refused(tmp_path: Path, part: str) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active["A1"] = "x"
    book.save(tmp_path / "a.xlsx")
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    late = b"<!--" + b" " * 100_000 + b"-->" + bomb
    with pytest.raises(Refusal) as refused:
        parse_xlsx(repacked(tmp_path / "a.xlsx", {part: late}), OPTIONS)
    assert refused.value.code == "corrupt-document"


def test_a_zip_without_a_workbook_is_corrupt(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("xl/other.xml", "<x/>")
    with pytest.raises(Refusal) as refused:
        parse_xlsx(tmp_path / "a.xlsx", OPTIONS)
    assert refused.value.code == "corrupt-document"


# --- XLS ----------------------------------------------------------------------------------------


def old_book(tmp_path: Path) -> Path:
    book = xlwt.Workbook()
    seen = book.add_sheet("Цены")
    day = xlwt.easyxf(num_format_str="DD.MM.YYYY")
    for column, text in enumerate(("Товар", "Дата", "Доля")):
        seen.write(0, column, text)
    seen.write(1, 0, "чай")
    seen.write(1, 1, date(2024, 3, 1), day)
    seen.write(1, 2, 0.5, xlwt.easyxf(num_format_str="0%"))
    seen.write_merge(2, 3, 0, 0, "кофе")
    seen.write(2, 2, True)
    seen.write(3, 2, 1.25)
    seen.write(4, 0, "secret row")
    seen.row(4).hidden = True
    seen.write(5, 0, "pale", xlwt.easyxf("font: colour white"))
    book.add_sheet("Hidden").write(0, 0, "obey me")
    book.get_sheet(1).visibility = 1
    book.save(str(tmp_path / "a.xls"))
    return tmp_path / "a.xls"


def test_an_old_workbook(tmp_path: Path) -> None:
    document = parse_xls(old_book(tmp_path), OPTIONS).document
    assert document.markdown == (
        "## Цены\n\n| Товар | Дата | Доля |\n| - | - | - |\n| чай | 2024-03-01 | 50% |\n"
        "| кофе |  | TRUE |\n| кофе |  | 1.25 |\n"
    )
    assert set(hidden(document, "invisible-style").split("\n")) == {"secret row", "obey me"}
    assert hidden(document, "background-colour") == "pale"
    assert document.spans[1].place == Place(sheet="Цены", cells="A1:C1")


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_truncated_old_workbook_is_corrupt(tmp_path: Path, keep: float) -> None:
    path = old_book(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(Refusal) as refused:
        parse_xls(path, OPTIONS)
    assert refused.value.code == "corrupt-document"


def test_an_old_workbook_whose_table_of_sectors_contradicts_itself_is_read(tmp_path: Path) -> None:
    path = old_book(tmp_path)
    whole = parse_xls(path, OPTIONS).document
    data = bytearray(path.read_bytes())
    table = (struct.unpack_from("<I", data, 76)[0] + 1) * 512
    folder = struct.unpack_from("<I", data, 48)[0]
    name = "Workbook".encode("utf-16-le")
    last = struct.unpack_from("<I", data, data.index(name, (folder + 1) * 512) + 116)[0]
    while (following := struct.unpack_from("<i", data, table + 4 * last)[0]) >= 0:
        last = following
    # The workbook goes on in the list of what the container holds.
    struct.pack_into("<I", data, table + 4 * last, folder)
    path.write_bytes(data)
    assert parse_xls(path, OPTIONS).document.markdown == whole.markdown


def test_a_number_whose_form_has_no_text_is_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old_book(tmp_path)
    monkeypatch.setattr("xlrd.formatting.Format.__init__", _formless)
    assert "| 1.25 |" in parse_xls(path, OPTIONS).document.markdown


def _formless(self: Any, key: int, kind: int, _: str) -> None:
    self.format_key, self.type, self.format_str = key, kind, None
