"""Elements of a PDF as a docling document, each with its place on the page as it is shown."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from docling_core.types.doc.base import BoundingBox, Size
from docling_core.types.doc.common.reference import ProvenanceItem
from docling_core.types.doc.document import DoclingDocument
from docling_core.types.doc.items.table.table_data import TableCell, TableData
from docling_core.types.doc.labels import DocItemLabel, GroupLabel

from services.converter.parsing.layout import Page
from services.converter.parsing.pdf_elements import Element
from services.converter.parsing.pdf_glyphs import Box
from services.converter.parsing.pdf_table import Table
from services.converter.parsing.pdf_words import Turn
from services.converter.parsing.upright import Straight

UPRIGHT = Turn(0, 0, 0)
_ELEMENTS = 1000


def documents_of(
    elements: Iterable[Element], pages: Iterable[Page], turns: dict[int, Straight]
) -> Iterator[DoclingDocument]:
    """`elements` as documents, one after the other; `turns` set the pages upright.

    They are many small ones, to be written and let go: a docling document takes some kilobytes for
    every paragraph.
    """
    sizes = {page.number: _shown(page, turns.get(page.number)) for page in pages}
    # Not a generator itself: it would keep the pages.
    return _documents(deque(elements), sizes, turns)


def _documents(
    elements: deque[Element], sizes: dict[int, Size], turns: dict[int, Straight]
) -> Iterator[DoclingDocument]:
    for some in _in_slices(elements):
        document = DoclingDocument(name="document")
        for number in sorted({part.page for element in some for part in element.parts}):
            document.add_page(page_no=number, size=sizes[number])
        _fill(document, some, turns)
        yield document


def _shown(page: Page, turn: Straight | None) -> Size:
    width, height = turn.shown if turn is not None else (page.width, page.height)
    return Size(width=width, height=height)


def _in_slices(elements: deque[Element]) -> Iterator[list[Element]]:
    """About a thousand at a time, no list cut; they are taken away from `elements`."""
    while elements:
        some = [elements.popleft()]
        while elements and (len(some) < _ELEMENTS or some[-1].kind == "list" == elements[0].kind):
            some.append(elements.popleft())
        yield some


def _fill(
    document: DoclingDocument, elements: Sequence[Element], turns: dict[int, Straight]
) -> None:
    groups: list[Any] = []
    item: Any = None
    for element in elements:
        places = list(_provenance(element, turns))
        if element.kind != "list":
            groups = []
        match element.kind:
            case "title":
                item = document.add_title(text=element.text)
            case "heading":
                item = document.add_heading(text=element.text, level=element.level)
            case "list":
                del groups[element.level :]
                if len(groups) < element.level:
                    above = item if groups else None
                    groups.append(document.add_group(GroupLabel.LIST, name="list", parent=above))
                item = document.add_list_item(
                    text=element.text, marker=element.marker, parent=groups[-1],
                    enumerated=element.marker != "-",
                )  # fmt: skip
            case "table" if element.table is not None:
                item = document.add_table(data=_data(element, element.table, turns))
            case "code":
                item = document.add_code(text=element.text)
            case _:
                item = document.add_text(label=DocItemLabel.TEXT, text=element.text)
        item.prov = places


def _provenance(element: Element, turns: dict[int, Straight]) -> Iterable[ProvenanceItem]:
    last = element.table.rows if element.table is not None else len(element.text)
    ends = [*(part.start for part in element.parts[1:]), last]
    for part, end in zip(element.parts, ends, strict=True):
        turn, block = turns.get(part.page, UPRIGHT), part.block
        shown = turn.back(Box(block.left, block.top, block.right, block.bottom))
        yield ProvenanceItem(page_no=part.page, bbox=box_of(shown), charspan=(part.start, end))


def _data(element: Element, table: Table, turns: dict[int, Straight]) -> TableData:
    """The table of an element; its rows may stand on several pages."""
    starts = [part.start for part in element.parts]

    def turn_of(row: int) -> Straight:
        return turns.get(element.parts[bisect_right(starts, row) - 1].page, UPRIGHT)

    return table_data(table, turn_of)


def table_data(table: Table, turn_of: Callable[[int], Straight]) -> TableData:
    """A table with the boxes of its cells as they are shown; `turn_of` is asked by row.

    A cell over the whole width of the body is not repeated in each column.
    """
    head = table.head_rows
    cells = [
        TableCell(
            bbox=box_of(turn_of(cell.row).back(Box(*cell.box))) if cell.box else None,
            text=cell.text, row_span=cell.row_span, col_span=span,
            start_row_offset_idx=cell.row, end_row_offset_idx=cell.row + cell.row_span,
            start_col_offset_idx=cell.column, end_col_offset_idx=cell.column + span,
            column_header=cell.row < head,
        )
        for cell in table.cells
        for span in [1 if cell.column_span == table.columns else cell.column_span]
    ]  # fmt: skip
    return TableData(table_cells=cells, num_rows=table.rows, num_cols=table.columns)


def box_of(thing: Any) -> BoundingBox:
    """The box of a thing with `left`, `top`, `right` and `bottom`."""
    return BoundingBox(l=thing.left, t=thing.top, r=thing.right, b=thing.bottom)
