"""A docling document as Markdown that means what the document says."""

import re
from collections.abc import Sequence
from typing import Any

# With the backslashes before it: an odd one would take the escape for itself.
_TAG_START = re.compile(r"(?<!\\)(\\*)<(?=[A-Za-z/!?])")
# Noncharacters are marks of `marks.py`: they take no room. A fence may begin within an item.
_LINE_MARKS = re.compile(
    r"^([\ufdd0-\ufdef]*\s{0,3}(?:(?:[-+*]|\d{1,9}[.)])[ \t]{1,4}){0,99}?)"
    r"(#{1,6}\s|>|`{3}|~{3}|(?:-\s*){3,}[\ufdd0-\ufdef]*$|=+\s*[\ufdd0-\ufdef]*$|\|"
    r"|\[(?!\^)[^\]\n]{1,999}\]:)",
    re.MULTILINE,
)
LONGEST_REPEATED = 200
"""Characters of a text that every cell of a merged one shows. A longer one is there once: it would
be found, and counted, as many times as it has cells."""

_RUNNING = frozenset({"text", "paragraph", "list_item"})
_GAP = re.compile(r"(?<=[`)*~]) (?=[.,;:!?)\]»“”](?:[\ufdd0-\ufdef]|\s|$))")
_OPEN_GAP = re.compile(r"(?<=[(\[«„]) (?=[`\[*])")


def to_markdown(document: Any) -> str:
    """Markdown of a `DoclingDocument`: no image marks, no padded tables, literal text escaped.

    What looks like a tag, a fence, a heading or a rule in running text is escaped, so that no
    text of a document can become structure or hide what follows.
    """
    from docling_core.types.doc.items.code import CodeItem
    from docling_core.types.doc.items.text import TextItem

    for item in document.texts:
        if isinstance(item, TextItem) and not isinstance(item, CodeItem):
            item.text = _escaped(item.text, running=item.label in _RUNNING)
    _number(document)
    for table in document.tables:
        _tame(table.data.table_cells)
    markdown: str = document.export_to_markdown(
        image_placeholder="", escape_html=False, escape_underscores=False, compact_tables=True
    )
    return _OPEN_GAP.sub("", _GAP.sub("", markdown))


def _number(document: Any) -> None:
    """Items of ordered lists get the number that docling would search all of their list for."""
    from docling_core.types.doc.items.group import ListGroup
    from docling_core.types.doc.items.text import ListItem

    for group in document.groups:
        if isinstance(group, ListGroup) and group.first_item_is_enumerated(document):
            for number, child in enumerate(group.children, 1):
                item = child.resolve(document)
                if isinstance(item, ListItem) and not item.marker:
                    item.marker = f"{number}."


def _tame(cells: Sequence[Any]) -> None:
    """Literal text; one row of heads, since docling joins several into `A - B`, which no reader of
    the document can quote; and spans that would repeat a long text, or any out of all proportion,
    are undone."""
    raw = sum(len(cell.text) for cell in cells)
    spread = sum(len(cell.text) * cell.row_span * cell.col_span for cell in cells)
    for cell in cells:
        cell.text = literal_tags(cell.text)
        cell.column_header = cell.column_header and cell.start_row_offset_idx == 0
        if spread > 4 * raw + 2000 or len(cell.text) > LONGEST_REPEATED:
            cell.row_span = cell.col_span = 1
            cell.end_row_offset_idx = cell.start_row_offset_idx + 1
            cell.end_col_offset_idx = cell.start_col_offset_idx + 1


def _escaped(text: str, *, running: bool) -> str:
    text = literal_tags(text)
    return literal_line_starts(text) if running else text


def literal_tags(text: str) -> str:
    """What looks like a tag is text."""
    return _TAG_START.sub(r"\1\1\\<", text)


def literal_line_starts(text: str) -> str:
    """What would start a block at the start of a line is text."""
    return _LINE_MARKS.sub(r"\1\\\2", text)
