"""ODS: sheets of tables as of an XLSX, read as a stream."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from contracts.artifacts import ParsedDocument, Place
from contracts.events import HiddenKind
from kernel.errors import Refusal
from kernel.media import ODS
from services.converter.parsing.archive import Archive
from services.converter.parsing.cells import number_of, number_text
from services.converter.parsing.embedded import list_files
from services.converter.parsing.hidden import Unseen
from services.converter.parsing.odf import CONTENT, TABLE, Styles, check, metadata, whole
from services.converter.parsing.odf_grounds import WHITE, is_same
from services.converter.parsing.odf_objects import Objects
from services.converter.parsing.office import part
from services.converter.parsing.result import Parse
from services.converter.parsing.sheetml import feed, new_parser
from services.converter.parsing.sheets import Area, Row, sheet_heading, write_sheet
from services.converter.parsing.wordml import parse_xml
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

_SPACE = "urn:oasis:names:tc:opendocument:xmlns:"
_OFFICE, _TABLE, _TEXT, _DRAW = (
    f"{_SPACE}{name}:1.0}}" for name in ("office", "table", "text", "drawing")
)
_HREF = "http://www.w3.org/1999/xlink}href"
_MOST_ROWS_REPEATED = 1000
_MOST_COLUMNS_REPEATED = 256
"""Of rows and cells with a text; blank ones cost nothing."""
_LAST_COLUMN = 16_384
_BODY = re.compile(rb"<(?:[\w.-]{1,64}:)?body[\s>]")
_ROOT = re.compile(rb"<((?:[\w.-]{1,64}:)?document-content)[\s>]")
_MOST_STYLES = 64 * 1024 * 1024
_TIME = re.compile(r"PT(\d+)H(\d+)M(\d+)(?:[.,]\d+)?S")


def parse_ods(path: Path, options: ParseOptions) -> Parse:
    """A spreadsheet.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`, `decompression-bomb`, `too-large`,
            `empty-document`.
    """
    writer, hidden = Writer(options.max_output_bytes), Unseen()
    with Archive(path, options) as archive:
        check(archive)
        styles = Styles(_automatic_styles(archive), part(archive, "styles.xml"))
        objects = Objects(archive)
        _write(_events(archive, hidden, styles), writer, hidden, styles, objects)
        meta, facts = metadata(archive, ODS)
    list_files(writer, objects.files)
    if writer.empty:
        raise Refusal("empty-document", "the spreadsheet has no visible text")
    markdown, spans = writer.finish()
    texts = tuple(dict.fromkeys([*hidden.taken(), *facts]))
    document = ParsedDocument(markdown=markdown, hidden=texts, meta=meta, spans=spans)
    return Parse(document, archive.warnings, files=tuple(objects.files))


class _Sheet(NamedTuple):
    """A sheet starts; `objects` are the addresses of what lies on it, as far as it was read."""

    name: str
    style: str
    objects: list[str]


def _write(
    events: Iterator[_Sheet | Row],
    writer: Writer,
    hidden: Unseen,
    styles: Styles,
    objects: Objects,
) -> None:
    following: _Sheet | Row | None = next(events, None)

    def rows() -> Iterator[Row]:
        nonlocal following
        for event in events:
            if isinstance(event, _Sheet):
                following = event
                return
            yield event

    while isinstance(following, _Sheet):
        sheet, following = following, None
        shown = styles.get("table", sheet.style, "table-properties", TABLE + "display")
        if shown == "false":
            for row in rows():
                hidden.add("invisible-style", " ".join(row.cells.values()))
        else:
            before = writer.size
            write_sheet(writer, sheet.name, rows())
            blocks = [block for address in sheet.objects for block in objects.chart(address)]
            if blocks and writer.size == before:
                sheet_heading(writer, sheet.name)
            for block in blocks:
                writer.block(block, Place(sheet=sheet.name))


def _automatic_styles(archive: Archive) -> Any:
    """Root of the content up to its body: what stands before that is small."""
    head = b""
    for piece in archive.pieces(CONTENT):
        head += piece
        body, root = _BODY.search(head), _ROOT.search(head)
        if body and root:
            return parse_xml(head[: body.start()] + b"</" + root[1] + b">")
        if len(head) > _MOST_STYLES:
            break
    raise Refusal("corrupt-document", "the container holds no spreadsheet")


def _events(archive: Archive, hidden: Unseen, styles: Styles) -> Iterator[_Sheet | Row]:
    reader = _Reader(hidden, styles)
    parser = new_parser()
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.CharacterDataHandler = reader.characters
    for _ in feed(parser, archive.pieces(CONTENT)):
        yield from reader.ready
        reader.ready.clear()


class _Reader:
    """Handlers of the stream."""

    def __init__(self, hidden: Unseen, styles: Styles) -> None:
        self._styles = styles
        self._kinds: dict[str, HiddenKind | None] = {}
        self._silent: dict[str, bool] = {}
        self._parts_unseen: dict[tuple[str, str], bool] = {}
        self.ready: list[_Sheet | Row] = []
        self._hidden = hidden
        self._number = 0
        self._columns = 0
        self._unseen: list[tuple[int, int]] = []
        self._cells: dict[int, str] = {}
        self._areas: list[Area] = []
        self._row: dict[str, str] = {}
        self._cell: dict[str, str] | None = None
        self._column = 0
        self._paragraphs: list[str] = []
        self._parts: list[str] | None = None
        self._remark: list[str] | None = None
        self._spans: list[bool] = []
        self._doubted: list[str] = []
        self._objects: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case n if n == _TABLE + "table":
                self._number, self._columns, self._unseen = 0, 0, []
                name_, style = (attributes.get(_TABLE + key, "") for key in ("name", "style-name"))
                self._objects = []
                self.ready.append(_Sheet(name_, style, self._objects))
            case n if n == _DRAW + "object":
                self._objects.append(attributes.get(_HREF, ""))
            case n if n == _TABLE + "table-column":
                self._column_seen(attributes)
            case n if n == _TABLE + "table-row":
                self._row, self._cells, self._areas, self._column = attributes, {}, [], 0
            case n if n in {_TABLE + "table-cell", _TABLE + "covered-table-cell"}:
                self._cell, self._paragraphs = attributes, []
            case n if n == _OFFICE + "annotation":
                self._remark = []
            case n if n in {_TEXT + "p", _TEXT + "h"} and self._cell is not None:
                self._parts = []
            case n if n == _TEXT + "span" and self._parts is not None:
                self._spans.append(self._is_unseen(attributes.get(_TEXT + "style-name", "")))
            case n if n in {_TEXT + "s", _TEXT + "tab", _TEXT + "line-break"}:
                self.characters(" ")

    def characters(self, text: str) -> None:
        if self._parts is not None:
            self._parts.append(text)
            if any(self._spans):
                self._doubted.append(text)

    def _is_unseen(self, style: str) -> bool:
        """Whether a part of a cell is as good as invisible; it stays, and is told."""
        cell = self._cell.get(_TABLE + "style-name", "") if self._cell else ""
        if (style, cell) not in self._parts_unseen:
            front, behind = self._styles.colours("text", style)
            ground = behind or self._styles.colours("table-cell", cell)[1] or WHITE
            unseen = bool(self._styles.hides("text", style)) or is_same(front or "", ground)
            self._parts_unseen[style, cell] = unseen
        return self._parts_unseen[style, cell]

    def _is_silent(self, style: str) -> bool:
        if style not in self._silent:
            self._silent[style] = self._styles.is_silent(style)
        return self._silent[style]

    def end(self, name: str) -> None:
        match name:
            case n if n in {_TEXT + "p", _TEXT + "h"} and self._parts is not None:
                wanted = self._paragraphs if self._remark is None else self._remark
                wanted.append("".join(self._parts))
                self._parts = None
                self._hidden.add("background-colour", "".join(self._doubted))
                self._doubted.clear()
                self._spans.clear()
            case n if n == _TEXT + "span" and self._spans:
                self._spans.pop()
            case n if n == _OFFICE + "annotation" and self._remark is not None:
                self._hidden.add("comment", " ".join(self._remark))
                self._remark = None
            case n if n in {_TABLE + "table-cell", _TABLE + "covered-table-cell"}:
                self._end_cell(covered=name.endswith("covered-table-cell"))
            case n if n == _TABLE + "table-row":
                self._end_row()

    def _column_seen(self, attributes: dict[str, str]) -> None:
        times = whole(attributes.get(_TABLE + "number-columns-repeated"))
        if attributes.get(_TABLE + "visibility", "visible") != "visible":
            self._unseen.append((self._columns + 1, self._columns + times))
        self._columns += times

    def _end_cell(self, *, covered: bool) -> None:
        cell = self._cell or {}
        self._cell = None
        times = whole(cell.get(_TABLE + "number-columns-repeated"))
        text = _shown(cell, self._paragraphs).strip()
        first = self._column + 1
        style = cell.get(_TABLE + "style-name", "")
        spoken = cell.get(_OFFICE + "value-type", "string") == "string"
        silent = spoken and bool(text) and self._is_silent(style)
        kind = "invisible-style" if covered or silent else self._kind(style)
        if text and kind:
            self._hidden.add(kind, text)
        elif text:
            for column in range(first, first + min(times, _MOST_COLUMNS_REPEATED)):
                if column <= _LAST_COLUMN:
                    self._cells[column] = text
            down = whole(cell.get(_TABLE + "number-rows-spanned"))
            across = whole(cell.get(_TABLE + "number-columns-spanned"))
            if down > 1 or across > 1:
                top = self._number + 1
                self._areas.append(Area(top, first, top + down - 1, first + across - 1))
        self._column += times

    def _kind(self, style: str) -> HiddenKind | None:
        """Why a cell in this style cannot be read; looked up once."""
        if style not in self._kinds:
            front, behind = self._styles.colours("table-cell", style)
            same = bool(front) and is_same(front or "", behind or WHITE)
            kind = self._styles.hides("table-cell", style)
            self._kinds[style] = kind or ("background-colour" if same else None)
        return self._kinds[style]

    def _end_row(self) -> None:
        times = whole(self._row.get(_TABLE + "number-rows-repeated"))
        for column in [c for c in self._cells if any(a <= c <= b for a, b in self._unseen)]:
            self._hidden.add("invisible-style", self._cells.pop(column))
        if self._cells and self._row.get(_TABLE + "visibility", "visible") != "visible":
            self._hidden.add("invisible-style", " ".join(self._cells.values()))
        elif self._cells:
            for number in range(min(times, _MOST_ROWS_REPEATED)):
                row = Row(self._number + number + 1, dict(self._cells), areas=tuple(self._areas))
                self.ready.append(row)
        self._number += times


def _shown(cell: dict[str, str], paragraphs: list[str]) -> str:
    """What a cell shows: dates and times in one form, numbers with all their digits."""
    text = "\n".join(paragraphs)
    value = cell.get(_OFFICE + "value", "")
    match cell.get(_OFFICE + "value-type"):
        case "date":
            return cell.get(_OFFICE + "date-value", text).removesuffix("T00:00:00")
        case "time":
            found = _TIME.fullmatch(cell.get(_OFFICE + "time-value", ""))
            return f"{found[1]}:{found[2]}:{found[3]}" if found else text
        case "float" if value and text:
            try:
                return number_text(number_of(value))
            except (ValueError, OverflowError):
                return text
    return text
