"""Elements of a PDF as a docling document, each with its place on the page as it is shown."""

from collections.abc import Iterable, Sequence
from typing import Any

from docling_core.types.doc.base import BoundingBox, Size
from docling_core.types.doc.common.reference import ProvenanceItem
from docling_core.types.doc.document import DoclingDocument
from docling_core.types.doc.items.table.table_data import TableCell, TableData
from docling_core.types.doc.labels import DocItemLabel, GroupLabel

from services.converter.parsing.pdf_glyphs import Box
from services.converter.parsing.pdf_words import Turn
from services.converter.parsing.structure import Element, Page
from services.converter.parsing.tables import Table
from services.converter.parsing.upright import Straight

UPRIGHT = Turn(0, 0, 0)


def document_of(
    elements: Sequence[Element], pages: Sequence[Page], turns: dict[int, Straight]
) -> DoclingDocument:
    """`elements` as a document; `turns` are those by which the pages were set upright."""
    document = DoclingDocument(name="document")
    for page in pages:
        document.add_page(page_no=page.number, size=Size(width=page.width, height=page.height))
    _fill(document, elements, turns)
    return document


def _fill(
    document: DoclingDocument, elements: Sequence[Element], turns: dict[int, Straight]
) -> None:
    group: Any = None
    for element in elements:
        places = list(_provenance(element, turns))
        if element.kind != "list":
            group = None
        match element.kind:
            case "title":
                item: Any = document.add_title(text=element.text)
            case "heading":
                item = document.add_heading(text=element.text, level=element.level)
            case "list":
                if group is None:
                    group = document.add_group(label=GroupLabel.LIST, name="list")
                item = document.add_list_item(
                    text=element.text, marker=element.marker, parent=group,
                    enumerated=element.marker != "-",
                )  # fmt: skip
            case "table" if element.table is not None:
                turn = turns.get(element.page, UPRIGHT)
                item = document.add_table(data=table_data(element.table, turn))
            case "code":
                item = document.add_code(text=element.text)
            case _:
                item = document.add_text(label=DocItemLabel.TEXT, text=element.text)
        item.prov = places


def _provenance(element: Element, turns: dict[int, Straight]) -> Iterable[ProvenanceItem]:
    ends = [*(part.start for part in element.parts[1:]), len(element.text)]
    for part, end in zip(element.parts, ends, strict=True):
        turn, block = turns.get(part.page, UPRIGHT), part.block
        shown = turn.back(Box(block.left, block.top, block.right, block.bottom))
        yield ProvenanceItem(page_no=part.page, bbox=box_of(shown), charspan=(part.start, end))


def table_data(table: Table, turn: Straight) -> TableData:
    """A table with the boxes of its cells as they are shown."""
    head = table.head_rows
    cells = [
        TableCell(
            bbox=box_of(turn.back(Box(*cell.box))) if cell.box else None,
            text=cell.text, row_span=cell.row_span, col_span=cell.column_span,
            start_row_offset_idx=cell.row, end_row_offset_idx=cell.row + cell.row_span,
            start_col_offset_idx=cell.column, end_col_offset_idx=cell.column + cell.column_span,
            column_header=cell.row < head,
        )
        for cell in table.cells
    ]  # fmt: skip
    return TableData(table_cells=cells, num_rows=table.rows, num_cols=table.columns)


def box_of(thing: Any) -> BoundingBox:
    """The box of a thing with `left`, `top`, `right` and `bottom`."""
    return BoundingBox(l=thing.left, t=thing.top, r=thing.right, b=thing.bottom)
