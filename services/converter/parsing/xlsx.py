"""XLSX: every visible sheet a section of tables, streamed; what is hidden, for the scanner.

Not by docling: it builds every cell of a sheet as an object (a million rows do not fit), gives no
place of a row, shows hidden sheets, and cuts a date to its number format's name.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument, Place
from contracts.events import HiddenKind
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import XLSX
from services.converter.parsing.archive import Archive
from services.converter.parsing.charts import chart_blocks
from services.converter.parsing.embedded import embedded_files, list_files
from services.converter.parsing.hidden import Unseen, is_sentence
from services.converter.parsing.literal import paragraph
from services.converter.parsing.looks import Links
from services.converter.parsing.office import addresses, part, properties, relations, side_part
from services.converter.parsing.properties import line, told_title
from services.converter.parsing.result import Parse
from services.converter.parsing.sheetml import (
    Cell,
    StoredRow,
    Styles,
    Tail,
    area,
    is_in,
    rows,
    strings,
    tail,
    value_of,
)
from services.converter.parsing.sheets import Area, Row, column_name, sheet_heading, write_sheet
from services.converter.parsing.table_text import is_value
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_XDR = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"
_STRICT = "http://purl.oclc.org/ooxml/"
_BINARY = "a binary workbook (XLSB) is not read: save it as XLSX"
_DATA = re.compile(r"customXml/item\d+\.xml")
_HEAD_CODES = re.compile(r'&(?:[LCRPNDTAFZGBIUESXY]|"[^"]*"|K[0-9A-F]{6}|\d{1,3})')


def parse_xlsx(path: Path, options: ParseOptions) -> Parse:
    """A workbook.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`, `decompression-bomb`, `too-deep`,
            `too-large`, `empty-document`, `unsupported-media-type`.
    """
    with Archive(path, options) as archive:
        book = _Book(archive, Writer(options.max_output_bytes))
        book.write()
        facts = properties(archive)
        files = embedded_files(archive)
        warnings = archive.warnings
    list_files(book.writer, files)
    if book.writer.empty:
        raise Refusal("empty-document", "the workbook has no visible text")
    markdown, spans = book.writer.finish()
    hidden = book.hidden.taken() + [HiddenText(kind="metadata", text=t) for t in facts.values()]
    meta = BodyMeta(
        title=told_title(line(facts.get("title"))),
        language=UNKNOWN,
        media_type=XLSX,
        author=line(facts.get("creator")) or None,
        date=facts.get("created"),
    )
    document = ParsedDocument(
        markdown=markdown, hidden=tuple(dict.fromkeys(hidden)), meta=meta, spans=spans
    )
    return Parse(document, warnings, files=tuple(files))


class _Linked:
    """Texts of cells with the signs of their links."""

    def __init__(self, facts: Tail, addresses_: dict[str, str]) -> None:
        self.links = Links()
        self._keys, self._addresses = facts.links, addresses_

    def text(self, row: int, column: int, text: str) -> str:
        """The text of a cell; numbers stay bare, for by them the head of a table is told."""
        key = self._keys.get((row, column)) if self._keys else None
        address = self._addresses.get(key, "") if key else ""
        if not address or is_value(text):
            return text
        return f"{Links.opened[0]}{text}{self.links.closed(address)[0]}"


class _Book:
    def __init__(self, archive: Archive, writer: Writer) -> None:
        self.writer = writer
        self.hidden = Unseen()
        self._archive = archive
        name = next((r.target for r in relations(archive, "") if r.kind == "officeDocument"), "")
        name = name if name in archive.names else "xl/workbook.xml"
        if name.endswith(".bin") or "xl/workbook.bin" in archive.names:
            raise Refusal("unsupported-media-type", _BINARY, status=415)
        root = part(archive, name)
        if root is None:
            raise archive.lack("the workbook itself")
        self._root: Any = root
        self._relations = {relation.id: relation for relation in relations(archive, name)}
        by_kind = {relation.kind: relation.target for relation in self._relations.values()}
        properties_ = self._root.find(f"{_space(self._root)}workbookPr")
        from_1904 = properties_ is not None and properties_.get("date1904") in {"1", "true"}
        for kind in ("sharedStrings", *(["styles"] if archive.is_cut else [])):
            if by_kind.get(kind, name) not in archive.names:
                # Cells would be blank, and dates numbers.
                raise archive.lack("what its cells say")
        self._styles = Styles(
            part(archive, by_kind.get("styles", "xl/styles.xml")), from_1904=from_1904
        )
        shared = by_kind.get("sharedStrings", "xl/sharedStrings.xml")
        pieces = archive.pieces(shared) if shared in archive.names else iter((b"<sst/>",))
        self._shared = strings(pieces, self.hidden.add)

    def write(self) -> None:
        """Every sheet in the order of its tabs."""
        for name in _of(self._root, "definedName"):
            told = (name.get("name") or "", name.get("comment") or "", name.text or "")
            for text in filter(is_sentence, told):
                self.hidden.add("metadata", text)
        for part_name in sorted(self._archive.names):
            data = _DATA.fullmatch(part_name)
            root = side_part(self._archive, part_name) if data else None
            for element in () if root is None else root.iter():
                if is_sentence(element.text or ""):
                    self.hidden.add("metadata", element.text or "")
        for sheet in self._root.iter(f"{_space(self._root)}sheet"):
            ids = (
                sheet.get(f"{_R}id"),
                sheet.get("{" + _STRICT + "officeDocument/relationships}id"),
            )
            relation = next((self._relations[i] for i in ids if i in self._relations), None)
            visible = (sheet.get("state") or "visible") == "visible"
            if relation is not None and relation.kind == "worksheet":
                self._sheet(sheet.get("name") or "", relation.target, visible=visible)
            elif relation is not None and relation.kind == "chartsheet":
                self._beside(sheet.get("name") or "", relation.target, visible=visible)

    def _sheet(self, name: str, target: str, *, visible: bool) -> None:
        if target not in self._archive.names:
            raise self._archive.lack("a sheet")
        facts = tail(self._archive.pieces(target))
        for head in facts.heads:
            self.hidden.add("notes", _HEAD_CODES.sub(" ", head))
        for tip in filter(is_sentence, facts.tips):
            self.hidden.add("attribute", tip)
        facts.painted += self._tables(target)
        stored = rows(self._archive.pieces(target), self.hidden.add)
        if not visible:
            for row in stored:
                self.hidden.add("invisible-style", _joined(row.cells, self._shared, self._styles))
        before = self.writer.size
        if visible:
            links = _Linked(facts, addresses(self._archive, target) if facts.links else {})
            seen = self._visible(stored, facts, links)
            signs = links.links if facts.links else None
            write_sheet(self.writer, name, seen, facts.merged, signs)
        self._beside(name, target, visible=visible, headed=self.writer.size > before)

    def _tables(self, target: str) -> Iterator[Area]:
        """Areas whose cells have the colours of a design."""
        for relation in relations(self._archive, target):
            table = side_part(self._archive, relation.target) if relation.kind == "table" else None
            covered = None if table is None else area(table.get("ref") or "")
            if covered:
                yield covered

    def _beside(self, name: str, target: str, *, visible: bool, headed: bool = False) -> None:
        """What lies on a sheet and in none of its cells."""
        for block, place in self._side_parts(name, target):
            if not visible:
                self.hidden.add("invisible-style", block)
                continue
            if not headed:
                sheet_heading(self.writer, name)
            headed = True
            self.writer.block(block, place)

    def _visible(self, stored: Iterator[StoredRow], facts: Tail, links: "_Linked") -> Iterator[Row]:
        told = ((one, self._styles.perhaps_hides(number)) for one, number in facts.conditional)
        hiding = [(one, kind) for one, kind in told if kind]
        for row in stored:
            if row.hidden:
                self.hidden.add("invisible-style", _joined(row.cells, self._shared, self._styles))
                continue
            cells: dict[int, str] = {}
            for cell in row.cells:
                text = value_of(cell, self._shared, self._styles).strip()
                kind = self._kind(cell, text, facts)
                if kind == "background-colour" and is_in(facts.painted, row.number, cell.column):
                    self.hidden.add(kind, text)
                    kind = None
                if kind:
                    self.hidden.add(kind, text or cell.text)
                elif text:
                    perhaps = self._perhaps(row.number, cell.column, hiding)
                    if perhaps:
                        self.hidden.add(perhaps, text)
                    cells[cell.column] = links.text(row.number, cell.column, text)
            if cells:
                yield Row(row.number, cells)

    def _kind(self, cell: Cell, text: str, facts: Tail) -> HiddenKind | None:
        """Why a cell is not seen, if it is not."""
        if any(first <= cell.column <= last for first, last in facts.hidden_columns):
            return "invisible-style"
        if not text:
            return "invisible-style" if cell.kind == "n" and cell.text else None
        if cell.kind not in {"n", "b", "e"} and self._styles.hides_text(cell.style):
            return "invisible-style"
        return self._styles.hides(cell.style)

    @staticmethod
    def _perhaps(row: int, column: int, hiding: list[tuple[Area, HiddenKind]]) -> HiddenKind | None:
        """Why a cell may not be seen, on a condition."""
        return next((kind for one, kind in hiding if is_in((one,), row, column)), None)

    def _side_parts(self, name: str, target: str) -> list[tuple[str, Place]]:
        """Markdown of the shapes and charts on a sheet; its comments are hidden."""
        found: list[tuple[str, Place]] = []
        for relation in relations(self._archive, target):
            if relation.kind in {"comments", "threadedComment"}:
                comments = side_part(self._archive, relation.target)
                for comment in _of(comments, "comment|threadedComment"):
                    self.hidden.add("comment", "".join(_texts(comment)))
            elif relation.kind == "drawing":
                drawing = side_part(self._archive, relation.target)
                texts = _shape_texts(drawing)
                found += [(paragraph(text), Place(sheet=name)) for text in texts]
                found += self._charts(drawing, relation.target, name)
                for properties_ in _of(drawing, "cNvPr"):
                    self.hidden.add("alt-text", properties_.get("descr") or "")
        return found

    def _charts(self, drawing: Any | None, target: str, name: str) -> list[tuple[str, Place]]:
        """Titles and values of charts: what a reader sees drawn stands in no cell as it is told."""
        parts = {r.id: r.target for r in relations(self._archive, target) if r.kind == "chart"}
        found: list[tuple[str, Place]] = []
        for anchor in () if drawing is None else sorted(drawing, key=_corner):
            place = Place(sheet=name, cells=_cells_under(anchor))
            for chart in _of(anchor, "chart"):
                root = side_part(self._archive, parts.get(chart.get(f"{_R}id") or "", ""))
                found += (
                    [(block, place) for block in chart_blocks(root)] if root is not None else []
                )
        return found


def _corner(anchor: Any) -> tuple[int, ...]:
    """Row and column of the first cell that a drawing covers; drawings are read as they lie."""
    told = {str(e.tag).rpartition("}")[2]: e.text or "" for e in next(_of(anchor, "from"), ())}
    return tuple(
        int(number) if (number := told.get(key, "")).isdecimal() and len(number) < 9 else 0
        for key in ("row", "col")
    )


def _cells_under(anchor: Any) -> str | None:
    """`B2:D9`: the cells that a drawing covers."""
    corners: list[str] = []
    for corner in _of(anchor, "from|to"):
        told = {str(child.tag).rpartition("}")[2]: child.text or "" for child in corner}
        column, row = told.get("col", ""), told.get("row", "")
        if column.isdecimal() and row.isdecimal() and len(column + row) < 12:
            corners.append(f"{column_name(int(column) + 1)}{int(row) + 1}")
    return ":".join(dict.fromkeys(corners[:2])) or None


def _space(root: Any) -> str:
    """The namespace of the part: strict workbooks have another one."""
    return str(root.tag).rpartition("}")[0] + "}"


def _of(root: Any | None, names: str) -> Iterator[Any]:
    pattern = re.compile(rf"\{{[^}}]*\}}(?:{names})")
    return iter(()) if root is None else (e for e in root.iter() if pattern.fullmatch(str(e.tag)))


def _texts(element: Any) -> Iterator[str]:
    for node in _of(element, "t|text"):
        yield node.text or ""


def _shape_texts(drawing: Any | None) -> list[str]:
    if drawing is None:
        return []
    return [
        text
        for body in drawing.iter(f"{_XDR}txBody")
        if (text := "\n".join("".join(t.text or "" for t in p.iter(f"{_A}t")) for p in body))
        and text.strip()
    ]


def _joined(cells: list[Cell], shared: list[str], styles: Styles) -> str:
    return " ".join(value_of(cell, shared, styles) for cell in cells)
