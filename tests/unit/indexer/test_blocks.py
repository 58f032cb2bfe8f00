"""Long tables are found without the Markdown parser, and are what it would have found."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.indexer.blocks import _parsed, blocks

ROWS = "".join(f"| {n} | текст \\| {n} |\n" for n in range(130))
TABLE = f"| a | b |\n|---|:-:|\n{ROWS}"

BEFORE = st.sampled_from([
    "", "\n", "text\n\n", "text\n", "# H\n\n", "# H\n", "```\n", "```\nx\n```\n\n", "~~~ a`b\n\n",
    "``` a`b\n\n", "- item\n\n", "- item\n\n  ", "> quote\n\n", "    code\n\n", "   ```\n\n",
    "````\n```\n\n", "[a]: http://x\n\n",
])  # fmt: skip
AFTER = st.sampled_from(["", "\n", "\nmore\n", "more\n", "```\n", "\n```\nx\n", "# H\n"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(BEFORE, AFTER), min_size=1, max_size=3))
def test_a_long_table_is_what_the_parser_finds(around: list[tuple[str, str]]) -> None:
    body = "\n".join(before + TABLE + after for before, after in around)
    assert list(blocks(body)) == list(_parsed(body, 0, len(body)))


@pytest.mark.parametrize(
    "body",
    [
        ROWS,  # no rule
        f"| a |\n|---|---|\n{ROWS}",  # a head of another width
        f"| a | b |\n|---|---|\nno row\n{ROWS}",
        f"<div>\n{TABLE}</div>\n",
    ],
)
def test_what_is_no_table_is_left_to_the_parser(body: str) -> None:
    assert list(blocks(body)) == list(_parsed(body, 0, len(body)))


def test_a_row_is_a_part() -> None:
    (table,) = blocks(TABLE)
    assert (table.kind, len(table.parts)) == ("table", 130)
    assert TABLE[table.parts[-1].start : table.parts[-1].end] == "| 129 | текст \\| 129 |"
