"""Marks in a docling document made from a PDF: the page and the box of every text and table row.

Boxes are those of the page as a viewer shows it: after /Rotate, within the crop box, whichever way
the text on it runs; points from the top left corner, to a tenth.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from contracts.artifacts import Place, Span
from services.converter.parsing.markdown import LONGEST_REPEATED, to_markdown
from services.converter.parsing.marks import Marks, unmarked


def written(documents: Iterable[Any]) -> tuple[str, tuple[Span, ...]]:
    """Documents of docling, one after the other, as one Markdown with its places."""
    marks = Marks()
    parts: list[str] = []
    for document in documents:
        mark_places(document, marks)
        parts.append(to_markdown(document))
    return marks.resolve("\n\n".join(part for part in parts if part))


def mark_places(document: Any, marks: Marks) -> None:
    """Put the marks of their places into the texts and table cells of a `DoclingDocument`."""
    heights = {number: page.size.height for number, page in document.pages.items()}
    for item in document.texts:
        item.text = _marked_text(item.text, item.prov, heights, marks)
    for table in document.tables:
        table.data.table_cells = _by_rows(table.data.table_cells)
        if table.prov:
            _mark_rows(table, heights, marks)


def _marked_text(
    text: str, provenance: Sequence[Any], heights: dict[int, float], marks: Marks
) -> str:
    """A mark where each of its pieces starts: a paragraph may go on in the next column."""
    if not provenance or not text.strip():
        return unmarked(text)
    starts = [min(one.charspan[0], len(text)) if n else 0 for n, one in enumerate(provenance)]
    ends = [*starts[1:], len(text)]
    pieces = [
        marks.mark(_place(one.page_no, one.bbox, heights)) + unmarked(text[start:end])
        for one, start, end in zip(provenance, starts, ends, strict=True)
    ]
    return "".join(pieces) + Marks.END


def _by_rows(cells: Iterable[Any]) -> list[Any]:
    """Cells over several rows as one cell a row: Markdown repeats their text, unless it is long."""
    parted: list[Any] = []
    for cell in cells:
        first, last = cell.start_row_offset_idx, cell.end_row_offset_idx
        if last - first <= 1:
            parted.append(cell)
            continue
        again = cell.text if len(unmarked(cell.text)) <= LONGEST_REPEATED else ""
        parted += [
            cell.model_copy(
                update={
                    "text": again if row > first else cell.text,
                    "row_span": 1,
                    "start_row_offset_idx": row,
                    "end_row_offset_idx": row + 1,
                }
            )
            for row in range(first, last)
        ]
    return parted


def _mark_rows(table: Any, heights: dict[int, float], marks: Marks) -> None:
    """A row's mark in its first cell, and the end of it in its last one.

    Of a table over several pages, `charspan` says in which row each page starts.
    """
    rows: defaultdict[int, list[Any]] = defaultdict(list)
    for cell in table.data.table_cells:
        cell.text = unmarked(cell.text)
        rows[cell.start_row_offset_idx].append(cell)
    for row, cells in sorted(rows.items()):
        cells.sort(key=lambda cell: cell.start_col_offset_idx)
        whole = [one for one in table.prov if one is table.prov[0] or one.charspan[0] <= row][-1]
        boxes = [cell.bbox for cell in cells if cell.bbox is not None and cell.text]
        box = boxes[0].enclosing_bbox(boxes) if boxes else whole.bbox
        cells[0].text = marks.mark(_place(whole.page_no, box, heights)) + cells[0].text
        cells[-1].text += Marks.END


def _place(page: int, box: Any, heights: dict[int, float]) -> Place:
    shown = box.to_top_left_origin(heights.get(page, 0.0))
    left, top, right, bottom = (round(v, 1) + 0.0 for v in (shown.l, shown.t, shown.r, shown.b))
    return Place(page=page, box=(left, top, right, bottom))
