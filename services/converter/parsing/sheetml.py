"""SpreadsheetML read as a stream: cells, strings and styles, whatever the size of a sheet."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from contracts.events import HiddenKind
from kernel.errors import Refusal
from services.converter.parsing.cells import Show, number_of, shower
from services.converter.parsing.hidden import alike_in_hex
from services.converter.parsing.sheets import Area

X = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_MOST_TEXT = 1 << 20
_TINY_POINTS = 2
_WHITE = "FFFFFF"
_LEAST_HEIGHT, _LEAST_WIDTH = 2.0, 0.2
"""Points, and letters."""
_MOST_TIPS = 5000
_TIPS = ("tooltip", "prompt", "promptTitle", "error", "errorTitle")
_INDEXED = (
    "000000", "FFFFFF", "FF0000", "00FF00", "0000FF", "FFFF00", "FF00FF", "00FFFF",
)  # fmt: skip
"""The first colours by number; from 8 on they come again."""
_TEXT_PART = 3
_MOST_LINKS = 50_000
_MOST_AREAS = 500
_TAG_BYTES = 512
_CELLS_START = re.compile(rb"<(?:[\w.-]{1,64}:)?sheetData(?:\s[^<>]*)?(?<!/)>")
_CELLS_END = re.compile(rb"</(?:[\w.-]{1,64}:)?sheetData\s*>")
_QUOTED = re.compile(r'"([^"]*)"')
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")


@dataclass(slots=True)
class Cell:
    """A cell as it is stored: `kind` is the attribute `t`, `style` an index of cell formats."""

    column: int
    kind: str
    style: int
    text: str


@dataclass(slots=True)
class StoredRow:
    """A row with its cells; `hidden` by the row itself."""

    number: int
    hidden: bool
    cells: list[Cell] = field(default_factory=list)


@dataclass
class Tail:
    """What stands behind the cells of a sheet, or before them."""

    merged: list[Area] = field(default_factory=list)
    hidden_columns: list[tuple[int, int]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    painted: list[Area] = field(default_factory=list)
    """Cells whose colours depend on what they hold."""

    conditional: list[tuple[Area, int]] = field(default_factory=list)
    """Cells with the number of a format that they have on a condition."""
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    """Ids of relations by row and column."""

    tips: list[str] = field(default_factory=list)
    """What shows when the pointer rests on a cell, or when it is filled."""


def new_parser() -> Any:
    """A stream parser whose names are `namespace}local`; it refuses document types."""
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise Refusal("corrupt-document", "a part declares a document type")

    parser.StartDoctypeDeclHandler = refuse
    return parser


def feed(parser: Any, pieces: Iterable[bytes]) -> Iterator[None]:
    """Give the parser piece after piece, with a stop after each.

    Raises:
        Refusal: `corrupt-document`.
    """
    try:
        for piece in pieces:
            parser.Parse(piece, False)
            yield
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError) as error:
        raise Refusal("corrupt-document", "a part is not well-formed XML") from error
    yield


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def strings(pieces: Iterable[bytes], doubt: Callable[[HiddenKind, str], None]) -> list[str]:
    """The shared strings, without reading aids.

    `doubt` gets the parts of strings that are as white as the paper, or specks: whether they can be
    read depends on the cell.
    """
    found: list[str] = []
    state, runs = _TextState(), _Runs(doubt)
    parser = new_parser()

    def start(name: str, attributes: dict[str, str]) -> None:
        state.start(_local(name))
        runs.start(_local(name), attributes, len(state.parts))

    def end(name: str) -> None:
        runs.end(_local(name), state.parts)
        if _local(name) == "si":
            found.append(state.take())
        else:
            state.end(_local(name))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = state.characters
    for _ in feed(parser, pieces):
        pass
    return found


class _Runs:
    """Parts of strings that look otherwise than the cell; `doubt` as in `strings`."""

    def __init__(self, doubt: Callable[[HiddenKind, str], None]) -> None:
        self._doubt = doubt
        self._kind: HiddenKind | None = None
        self._first = 0

    def start(self, name: str, attributes: dict[str, str], size: int) -> None:
        """`size`: how many pieces of text there are so far."""
        match name:
            case "r":
                self._kind, self._first = None, size
            case "color" if _rgb(attributes) == _WHITE:
                self._kind = "background-colour"
            case "sz" if _number(attributes.get("val")) <= _TINY_POINTS:
                self._kind = "zero-size"

    def end(self, name: str, parts: list[str]) -> None:
        if name == "r" and self._kind:
            self._doubt(self._kind, "".join(parts[self._first :]))
            self._kind = None


class _TextState:
    """Text of `t` elements, without the phonetic ones."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._wanted = self._phonetic = False
        self._size = 0

    def start(self, name: str) -> None:
        self._phonetic = self._phonetic or name == "rPh"
        self._wanted = name == "t" and not self._phonetic

    def end(self, name: str) -> None:
        if name == "rPh":
            self._phonetic = False
        self._wanted = False

    def characters(self, text: str) -> None:
        if self._wanted and self._size < _MOST_TEXT:
            self.parts.append(text)
            self._size += len(text)

    def take(self) -> str:
        text = "".join(self.parts)
        self.parts.clear()
        self._size = 0
        return text


def rows(pieces: Iterable[bytes], doubt: Callable[[HiddenKind, str], None]) -> Iterator[StoredRow]:
    """The rows of a sheet in order, as far as they hold values; `doubt` as in `strings`."""
    reader = _RowReader(doubt)
    parser = new_parser()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    for _ in feed(parser, pieces):
        yield from reader.ready
        reader.ready.clear()


class _RowReader:
    """Handlers of the stream; called for every element, so they do little."""

    def __init__(self, doubt: Callable[[HiddenKind, str], None]) -> None:
        self._runs = _Runs(doubt)
        self.ready: list[StoredRow] = []
        self._row = StoredRow(0, hidden=False)
        self._cell: Cell | None = None
        self._parts: list[str] = []
        self._wanted = self._phonetic = False
        self._number = 0
        self._column = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        match _local(name):
            case "c":
                self._start_cell(attributes)
            case "v" | "t":
                self._wanted = self._cell is not None and not self._phonetic
            case "rPh":
                self._phonetic = True
            case "r" | "color" | "sz" as inner:
                self._runs.start(inner, attributes, len(self._parts))
            case "row":
                told = attributes.get("r", "")
                self._number = int(told) if told.isdecimal() else self._number + 1
                hidden = attributes.get("hidden") in {"1", "true"} or _is_flat(attributes)
                self._row = StoredRow(self._number, hidden)
                self._column = 0

    def _start_cell(self, attributes: dict[str, str]) -> None:
        match = _REFERENCE.fullmatch(attributes.get("r", ""))
        self._column = column_number(match[1]) if match else self._column + 1
        style = attributes.get("s", "")
        self._cell = Cell(
            self._column, attributes.get("t", "n"), int(style) if style.isdecimal() else 0, ""
        )

    def characters(self, text: str) -> None:
        if self._wanted:
            self._parts.append(text)

    def end(self, name: str) -> None:
        match _local(name):
            case "v" | "t":
                self._wanted = False
            case "r":
                self._runs.end("r", self._parts)
            case "c":
                if self._cell is not None and self._parts:
                    self._cell.text = "".join(self._parts)
                    self._row.cells.append(self._cell)
                self._parts.clear()
                self._cell = None
            case "rPh":
                self._phonetic = False
            case "row":
                if self._row.cells:
                    self.ready.append(self._row)


def column_number(name: str) -> int:
    """1 for `A`, 27 for `AA`."""
    number = 0
    for letter in name:
        number = number * 26 + ord(letter) - 64
    return number


def area(reference: str) -> Area | None:
    """`A1:C3` as numbers."""
    first, _, last = reference.replace("$", "").partition(":")
    one, two = _REFERENCE.fullmatch(first), _REFERENCE.fullmatch(last or first)
    if not one or not two:
        return None
    top, bottom = sorted((int(one[2]), int(two[2])))
    left, right = sorted((column_number(one[1]), column_number(two[1])))
    return Area(top, left, bottom, right)


def is_in(areas: Iterable[Area], row: int, column: int) -> bool:
    """Whether a cell lies in one of them."""
    return any(a.top <= row <= a.bottom and a.left <= column <= a.right for a in areas)


def tail(pieces: Iterable[bytes]) -> Tail:
    """What has to be known of a sheet before its rows are read, though it stands behind them."""
    found = Tail()
    heads = {"oddHeader", "oddFooter", "evenHeader", "evenFooter", "firstHeader", "firstFooter"}
    parts: list[str] = []
    of_rule: list[Area] = []
    parser = new_parser()

    def start(name: str, attributes: dict[str, str]) -> None:
        parser.CharacterDataHandler = parts.append if _local(name) in heads else None
        _note_tips(found, attributes)
        match _local(name):
            case "mergeCell":
                merged = area(attributes.get("ref", ""))
                if merged:
                    found.merged.append(merged)
            case "col" if attributes.get("hidden") in {"1", "true"} or _is_narrow(attributes):
                _note_columns(found, attributes)
            case "hyperlink":
                _note_link(found, attributes)
            case "conditionalFormatting" | "cfRule" as part:
                _note_condition(found, part, attributes, of_rule)

    def end(name: str) -> None:
        if _local(name) in heads and parts:
            found.heads.append("".join(parts))
            parts.clear()
        parser.CharacterDataHandler = None

    parser.StartElementHandler, parser.EndElementHandler = start, end
    for _ in feed(parser, _without_cells(pieces)):
        pass
    return found


def _note_condition(
    found: Tail, part: str, attributes: dict[str, str], of_rule: list[Area]
) -> None:
    """`of_rule`: the cells that are spoken of."""
    number = attributes.get("dxfId", "")
    if part == "conditionalFormatting":
        of_rule[:] = filter(None, map(area, attributes.get("sqref", "").split()[:20]))
        found.painted += of_rule if len(found.painted) < _MOST_AREAS else []
    elif number.isdecimal() and len(found.conditional) < _MOST_AREAS:
        found.conditional += [(one, int(number)) for one in of_rule]


def _note_columns(found: Tail, attributes: dict[str, str]) -> None:
    bounds = [attributes.get(key, "") for key in ("min", "max")]
    if all(map(str.isdecimal, bounds)):
        found.hidden_columns.append((int(bounds[0]), int(bounds[1])))


def _note_tips(found: Tail, attributes: dict[str, str]) -> None:
    if len(found.tips) < _MOST_TIPS:
        found.tips += [attributes[name] for name in _TIPS if name in attributes]


def _is_flat(row: dict[str, str]) -> bool:
    return "ht" in row and _number(row["ht"]) < _LEAST_HEIGHT


def _is_narrow(column: dict[str, str]) -> bool:
    return "width" in column and _number(column["width"]) < _LEAST_WIDTH


def _note_link(found: Tail, attributes: dict[str, str]) -> None:
    cells = area(attributes.get("ref", ""))
    key = next((value for name, value in attributes.items() if name.endswith("}id")), "")
    if cells and key and len(found.links) < _MOST_LINKS:
        found.links[cells.top, cells.left] = key


def _without_cells(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A sheet but for its cells, which are most of it: they are not worth parsing twice."""
    waiting = b""
    inside = False
    for piece in pieces:
        waiting += piece
        pattern = _CELLS_END if inside else _CELLS_START
        found = pattern.search(waiting)
        while found:
            if not inside:
                yield waiting[: found.end()]
            waiting = waiting[found.start() if inside else found.end() :]
            inside = not inside
            if not inside:
                yield waiting[: found.end() - found.start()]
                waiting = waiting[found.end() - found.start() :]
            found = (_CELLS_END if inside else _CELLS_START).search(waiting)
        cut = len(waiting) - _TAG_BYTES
        if cut > 0:
            if not inside:
                yield waiting[:cut]
            waiting = waiting[cut:]
    yield b"" if inside else waiting


# --- styles -------------------------------------------------------------------------------------


class Styles:
    """How the cell formats of a workbook show numbers, and which of them hide their text."""

    def __init__(self, root: Any | None, *, from_1904: bool) -> None:
        codes = _format_codes(root)
        formats = [] if root is None else root.findall(f"{X}cellXfs/{X}xf")
        self._from_1904 = from_1904
        self._codes = [codes.get(xf.get("numFmtId") or "0", "General") for xf in formats]
        self._shows: dict[int, Show] = {}
        fonts = [] if root is None else root.findall(f"{X}fonts/{X}font")
        fills = [] if root is None else root.findall(f"{X}fills/{X}fill")
        self._hides = [_hides(xf, fonts, fills) for xf in formats]
        conditional = [] if root is None else root.findall(f"{X}dxfs/{X}dxf")
        self._perhaps = [_hides_perhaps(dxf) for dxf in conditional]

    def show(self, style: int) -> Show:
        """The function that shows a number in this format."""
        if style not in self._shows:
            code = self._codes[style] if style < len(self._codes) else "General"
            self._shows[style] = shower(code, from_1904=self._from_1904)
        return self._shows[style]

    def hides(self, style: int) -> HiddenKind | None:
        """Why text in this format cannot be read, if it cannot."""
        return self._hides[style] if style < len(self._hides) else None

    def perhaps_hides(self, conditional: int) -> HiddenKind | None:
        """Why text cannot be read in a format that cells have on a condition."""
        return self._perhaps[conditional] if conditional < len(self._perhaps) else None

    def hides_text(self, style: int) -> bool:
        """Whether the format's part for text shows nothing (`;;;`), or in white."""
        return _shows_no_text(self._codes[style] if style < len(self._codes) else "")


def _shows_no_text(code: str) -> bool:
    parts = re.sub(r"\\.", "x", _QUOTED.sub(lambda m: m[1] and "x", code)).split(";")
    white = len(parts) > _TEXT_PART and "[white]" in parts[_TEXT_PART].lower()
    return len(parts) == _TEXT_PART + 1 and (white or not parts[_TEXT_PART].strip())


def _hides_perhaps(dxf: Any) -> HiddenKind | None:
    code, color = dxf.find(X + "numFmt"), dxf.find(f"{X}font/{X}color")
    if code is not None and _shows_no_text((code.get("formatCode") or "")[:200]):
        return "invisible-style"
    front = None if color is None else _rgb(color)
    ground = dxf.find(f"{X}fill/{X}patternFill/{X}bgColor")
    behind = _WHITE if ground is None else _rgb(ground)
    return "background-colour" if front and behind and alike_in_hex(front, behind) else None


def _format_codes(root: Any | None) -> dict[str, str]:
    from openpyxl.styles.numbers import BUILTIN_FORMATS

    codes = {str(number): code for number, code in BUILTIN_FORMATS.items()}
    for own in () if root is None else root.iter(X + "numFmt"):
        codes[own.get("numFmtId") or ""] = (own.get("formatCode") or "General")[:200]
    return codes


def _hides(xf: Any, fonts: list[Any], fills: list[Any]) -> HiddenKind | None:
    font = _at(fonts, xf.get("fontId"))
    fill = _at(fills, xf.get("fillId"))
    pattern = None if fill is None else fill.find(X + "patternFill")
    filled = pattern is not None and (pattern.get("patternType") or "none") != "none"
    if font is None:
        return None
    size = font.find(X + "sz")
    if size is not None and _number(size.get("val")) <= _TINY_POINTS:
        return "zero-size"
    color = font.find(X + "color")
    if color is None or fill is None:
        return None
    front, behind = _rgb(color), _WHITE
    if filled and pattern is not None:
        solid = pattern.get("patternType") == "solid"
        ground = pattern.find(X + "fgColor") if solid else None
        if ground is not None and "theme" in ground.attrib and ground.attrib == color.attrib:
            return "background-colour"
        behind = "" if ground is None else _rgb(ground) or ""
    return "background-colour" if front and behind and alike_in_hex(front, behind) else None


def _rgb(color: Any) -> str | None:
    """`FFFFFF`; of the colours of a theme only the first, that of the paper, is known."""
    if color.get("tint") not in {None, "", "0"}:
        return None
    if color.get("theme") == "0":
        return _WHITE
    index = color.get("indexed") or ""
    if index.isdecimal() and int(index) < 2 * len(_INDEXED):
        return _INDEXED[int(index) % len(_INDEXED)]
    told = color.get("rgb") or ""
    return told[2:] if re.fullmatch(r"[0-9A-Fa-f]{8}", told) else None


def _at(items: list[Any], index: str | None) -> Any | None:
    number = int(index) if index and index.isdecimal() else 0
    return items[number] if number < len(items) else None


def _number(text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        return float("inf")


def value_of(cell: Cell, shared: list[str], styles: Styles) -> str:
    """The text that the sheet shows for a cell: of a formula its stored result."""
    if cell.kind == "n":
        try:
            return styles.show(cell.style)(number_of(cell.text))
        except (ValueError, OverflowError):
            return cell.text
    kinds: dict[str, Callable[[], str]] = {
        "s": lambda: _shared(cell.text, shared),
        "b": lambda: "TRUE" if cell.text == "1" else "FALSE",
    }
    return kinds.get(cell.kind, lambda: cell.text)()


def _shared(text: str, shared: list[str]) -> str:
    index = int(text) if text.isdecimal() else -1
    return shared[index] if 0 <= index < len(shared) else ""
