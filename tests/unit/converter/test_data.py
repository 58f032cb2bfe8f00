"""JSON as a document: names are headings, records tables, and nothing is structure by accident."""

import json
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from contracts.artifacts import ParsedDocument
from kernel.errors import Refusal
from services.converter.parsing.data import parse_json
from services.converter.settings import ParseOptions


class Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []

    def __call__(self, data: Any) -> ParsedDocument:
        raw = data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode()
        self.path.write_bytes(raw)
        parse = parse_json(self.path, ParseOptions())
        self.warnings = parse.warnings
        return parse.document


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "a.json")


def test_names_become_headings_by_depth(read: Reader) -> None:
    document = read({"server": {"port": 8080, "tls": {"on": True}}, "note": "two\n\nparagraphs"})
    assert document.markdown == (
        "## server\n\n### port\n\n8080\n\n### tls\n\n- on: true\n\n## note\n\ntwo\n\nparagraphs\n"
    )


def test_below_the_sixth_level_names_are_bold(read: Reader) -> None:
    value: Any = "deep " * 60
    for name in "gfedcba":
        value = {name: value}
    markdown = read(value).markdown
    assert "###### e\n\n**f**\n\n**g**" in markdown


def test_plain_lists_are_lists(read: Reader) -> None:
    assert read({"tags": ["a", 1.50, None]}).markdown == "## tags\n\n- a\n- 1.5\n- null\n"


def test_uniform_records_are_a_table(read: Reader) -> None:
    markdown = read({"users": [{"id": 1, "name": "A|b"}, {"id": 2, "age": 3}]}).markdown
    assert markdown == (
        "## users\n\n| id | name | age |\n| - | - | - |\n| 1 | A\\|b |  |\n| 2 |  | 3 |\n"
    )


def test_rows_without_names_are_a_table(read: Reader) -> None:
    assert read([["a", "b"], [1, 2]]).markdown == "| a | b |\n| - | - |\n| 1 | 2 |\n"


def test_other_records_have_a_heading_each(read: Reader) -> None:
    items = [{"title": "One", "body": "b" * 300}, {"title": "Two", "meta": {"x": 1}}]
    markdown = read({"articles": items}).markdown
    assert "### articles 1: One\n\n- title: One\n\n#### body\n\nbbb" in markdown
    assert "### articles 2: Two\n\n- title: Two\n\n#### meta\n\n- x: 1" in markdown


def test_numbers_stay_as_written(read: Reader) -> None:
    digits = "9" * 5000
    markdown = read(f'{{"a": 1.10, "b": 1e400, "c": NaN, "d": {digits}}}'.encode()).markdown
    assert all(text in markdown for text in ("\n1.10\n", "\n1e400\n", "\nNaN\n", digits))


def test_a_name_may_come_twice(read: Reader) -> None:
    document = read(b'{"a": 1, "a": 2}')
    assert document.markdown == "## a\n\n1\n\n## a\n\n2\n"
    assert read.warnings == ["1 names stand twice in one object"]


def test_json_lines(read: Reader) -> None:
    document = read(b'{"a": 1, "b": "x"}\n\n{"a": 2, "b": "y"}\n')
    assert document.markdown == "| a | b |\n| - | - |\n| 1 | x |\n| 2 | y |\n"
    assert document.spans[-1].place.lines == (1, 3)


def test_every_member_has_its_lines(read: Reader) -> None:
    document = read(b'{\n "a": "x",\n "b": {\n  "c": "y"\n }\n}')
    data = document.markdown.encode()
    places = {data[s.byte_start : s.byte_end]: s.place.lines for s in document.spans}
    assert places[b"## a\n\nx"] == (2, 2)
    assert places[b"## b\n\n### c\n\ny"] == (3, 5)


@pytest.mark.parametrize(
    "data", [b'{"a": 1} {', b'{"a" 1}', b"[1,, 2]", b'{"a": tru}', b'["open', b"[1] x", b"[01]"]
)
def test_what_is_no_json_is_text(read: Reader, data: bytes) -> None:
    document = read(data)
    assert document.markdown == data.decode()
    assert document.meta.media_type == "text/plain"
    assert read.warnings == ["not valid JSON: kept as text"]


@pytest.mark.parametrize("data", [b"[" * 50_000, b'{"a":' * 5000, b"[" * 300 + b"1" + b"]" * 300])
def test_too_deep_is_refused(read: Reader, data: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        read(data)
    assert refused.value.code == "too-deep"


@pytest.mark.parametrize("data", [b"{}", b"[]", b'""', b'[""]'])
def test_no_text_is_empty(read: Reader, data: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        read(data)
    assert refused.value.code == "empty-document"


def test_half_a_letter_is_left_out(read: Reader) -> None:
    assert read(b'{"a": "x\\ud800y"}').markdown == "## a\n\nxy\n"


@pytest.mark.parametrize("text", ["# x\n\n```\ncode", "---\na: b\n---", "- [x](http://a.b)", "<b>"])
def test_nothing_becomes_structure(read: Reader, text: str) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(read({text: text * 9}).markdown)
    kinds = [token.type for token in tokens if not token.type.endswith("close")]
    assert kinds[:2] == ["heading_open", "inline"]
    assert set(kinds[2:]) <= {"paragraph_open", "inline"}
    inner = {child.type for token in tokens for child in token.children or ()}
    assert inner <= {"text", "softbreak", "text_special"}


def test_the_title_member_is_the_title(read: Reader) -> None:
    assert read({"id": 1, "title": "The name"}).meta.title == "The name"
    assert read({"a": {"title": "No"}}).meta.title == ""


def test_large_members_are_read_piece_by_piece(read: Reader) -> None:
    rows = [{"id": n, "text": "word " * 20} for n in range(2000)]
    document = read({"rows": rows, "after": "end"})
    assert document.markdown.count("\n| ") == 2002
    assert document.markdown.endswith("## after\n\nend\n")


def test_no_item_of_a_list_starts_a_block_inside_it(read: Reader) -> None:
    starts = ["```", "~~~ x", "# a", "> b", "- c", "1. d", "---", "| e |"]
    markdown = read({"list": starts, "deep": {"x": {"y": {s: s for s in starts}}}}).markdown
    allowed = {"bullet_list", "list_item", "paragraph", "heading", "inline"}
    tokens = MarkdownIt("commonmark").parse(markdown)
    assert {t.type.removesuffix("_open").removesuffix("_close") for t in tokens} == allowed
    assert sum(t.type == "heading_open" for t in tokens) == 4
    assert sum(t.type == "list_item_open" for t in tokens) == 2 * len(starts)
