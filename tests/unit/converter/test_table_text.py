"""CSV of every kind becomes one Markdown table."""

from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from contracts.artifacts import ParsedDocument
from kernel.errors import Refusal
from services.converter.parsing.table_text import has_head, parse_csv
from services.converter.settings import ParseOptions


@pytest.fixture
def read(tmp_path: Path) -> "Reader":
    return Reader(tmp_path / "a.csv")


class Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []

    def __call__(self, data: bytes, options: ParseOptions | None = None) -> ParsedDocument:
        self.path.write_bytes(data)
        parse = parse_csv(self.path, options or ParseOptions())
        self.warnings = parse.warnings
        return parse.document

    def cells(self, data: bytes) -> list[list[str]]:
        """Cells of the table as a reader of the rendered page has them."""
        tokens = MarkdownIt("commonmark").enable("table").parse(self(data).markdown)
        rows: list[list[str]] = []
        for token, inner in pairwise(tokens):
            if token.type == "tr_open":
                rows.append([])
            elif token.type in {"td_open", "th_open"}:
                rows[-1].append("".join(c.content for c in inner.children or ()))
        return rows


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(read: Reader, delimiter: str) -> None:
    rows = [["name", "sum"], ["Ana, Ivan", "1;5"], ["Ö", "2"]]
    quoted = "\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    assert read.cells(quoted.encode()) == rows


def test_decimal_commas_do_not_hide_semicolons(read: Reader) -> None:
    assert read.cells(b"a;b\n1,5;2,5\n1,6;2,6\n") == [["a", "b"], ["1,5", "2,5"], ["1,6", "2,6"]]


def test_excel_may_name_the_delimiter(read: Reader) -> None:
    document = read(b"sep=;\r\na;b\r\n1;2\r\n")
    assert document.markdown == "| a | b |\n| - | - |\n| 1 | 2 |\n"
    assert document.spans[0].place.lines == (2, 2)


def test_line_ends_in_quotes_and_marks_of_markdown_are_text(read: Reader) -> None:
    data = b'name,note\nx,"two\nlines, a | b \\ c"\ny,"he said ""no"" <b>"\n'
    document = read(data)
    assert document.markdown.count("\n") == 4
    assert read.cells(data)[1:] == [["x", "two lines, a | b \\ c"], ["y", 'he said "no" <b>']]
    assert [s.place.lines for s in document.spans] == [(1, 1), (2, 3), (4, 4)]


def test_rows_may_be_ragged(read: Reader) -> None:
    assert read(b"a,b\n1\n1,2,3\n\n,,\n4,5\n").markdown == (
        "| a | b |  |\n| - | - | - |\n| 1 |\n| 1 | 2 | 3 |\n| 4 | 5 |\n"
    )


def test_a_table_without_head_gets_an_empty_one(read: Reader) -> None:
    assert read(b"1,2\n3,4\n").markdown == "|  |  |\n| - | - |\n| 1 | 2 |\n| 3 | 4 |\n"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["name", "age"], ["x", "3"]], True),
        ([["name", "city"], ["x", "y"]], True),
        ([["region", "2019", "2020"], ["x", "3", "4"]], True),
        ([["x", "3"], ["y", "4"]], False),
        ([["2024-01-01", "a"], ["2024-01-02", "b"]], False),
        ([["alone"]], False),
    ],
)
def test_a_head_is_told_from_a_row(rows: list[list[str]], expected: bool) -> None:
    assert has_head(rows) is expected


def test_one_column_is_a_table(read: Reader) -> None:
    assert read.cells("град\nСофия\nСкопје\n".encode()) == [["град"], ["София"], ["Скопје"]]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "windows-1251"]
)
def test_encodings(read: Reader, encoding: str) -> None:
    text = "имя;город\r\nАнна Иванова;Москва и область\r\nПётр Петров;Новгород великий\r\n"
    assert read.cells(text.encode(encoding))[1] == ["Анна Иванова", "Москва и область"]
    assert bool(read.warnings) == (not encoding.startswith("utf-8"))


def test_letters_far_behind_the_start_tell_the_charset(read: Reader) -> None:
    lines = "id,name\n" + "".join(f"{n},plain\n" for n in range(20_000))
    text = lines + "20001,договор о поставке товаров между компаниями\n"
    assert "договор о поставке товаров" in read(text.encode("windows-1251")).markdown


def test_nul_bytes_are_taken_out(read: Reader) -> None:
    assert read.cells(b"a,b\nx\x00y,2\n") == [["a", "b"], ["xy", "2"]]


def test_a_quotation_mark_that_nothing_closes_is_text(read: Reader) -> None:
    rows = b"".join(b"%d,plain text in a row\n" % n for n in range(60_000))
    document = read(b'a,b\n1,"open\n' + rows)
    assert '| 1 | "open |\n| 0 | plain' in document.markdown
    assert read.warnings == ["quotation marks do not match: taken as text"]


@pytest.mark.parametrize("data", [b"", b"\n\n", b",,,\n,,\n", b"\xef\xbb\xbf", b"\0\0\0"])
def test_a_table_without_text_is_empty(read: Reader, data: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        read(data)
    assert refused.value.code == "empty-document"


def test_long_tables_have_a_span_every_hundred_rows(read: Reader) -> None:
    data = b"a,b\n" + b"".join(b"%d,x\n" % n for n in range(10_000))
    document = read(data)
    assert len(document.spans) == 101
    span = document.spans[1]
    assert span.place.lines == (2, 101)
    text = document.markdown.encode()[span.byte_start : span.byte_end]
    assert text.startswith(b"0 | x |") and text.endswith(b"| 99 | x")


def test_too_long_a_table_is_refused(read: Reader) -> None:
    with pytest.raises(Refusal) as refused:
        read(b"a,b\n" + b"1,2\n" * 1000, ParseOptions(max_output_bytes=5000))
    assert refused.value.code == "too-large"


def test_a_row_of_endless_columns_is_folded(read: Reader) -> None:
    document = read(b"a,b\n" + b"x," * 100_000 + b"\n")
    assert document.markdown.split("\n")[0].count("|") == 16_385
