"""JSON and JSON Lines: names become headings, lists lists, uniform records tables."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed leaves it out
from pathlib import Path
from typing import Any, NamedTuple

from contracts.artifacts import BodyMeta, ParsedDocument, Place
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import JSON, PLAIN
from services.converter.parsing.encoding import encoding_of
from services.converter.parsing.literal import item as literal_item
from services.converter.parsing.literal import paragraph, plain_line
from services.converter.parsing.properties import line
from services.converter.parsing.result import Parse
from services.converter.parsing.table_text import has_head, table_row, table_rule
from services.converter.parsing.text import parse_text
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

_SMALL = 1024
_TOP_LEVEL = 2
_HEADED_LEVELS = 3
_MANY_NAMES = 20
_LONG = 200
_LONG_CELL = 300
_MOST_COLUMNS = 50
_GROUP = 100
_BLANK = re.compile(r"[ \t\n\r]*")
_BARE = re.compile(
    r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])|(?:true|false|null|NaN|-?Infinity)\b"
)
_TITLES = ("title", "name", "label", "id")


class _Bare(str):
    """A number or constant as the file writes it: `1.10` stays `1.10`, however long."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """Members in order; a name may come twice."""


class _Big(NamedTuple):
    """An object or list that is read piece by piece: it opens at `start`."""

    start: int
    is_object: bool


class _Lines(NamedTuple):
    """The whole of a JSON Lines file."""


class _NotJsonError(Exception):
    """The text breaks the grammar."""


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Object, parse_float=_Bare, parse_int=_Bare, parse_constant=_Bare
)
_SKIMMER = json.JSONDecoder(object_pairs_hook=len, parse_float=len, parse_int=len)
"""Finds where a value ends, and keeps next to nothing of it."""


def parse_json(path: Path, options: ParseOptions) -> Parse:
    """A JSON file as a document.

    Names of the two highest levels, and of whatever holds more than a short value, are headings
    (from the second level, so that no name is taken for the document's title; bold below the
    sixth); other members and plain lists are list items, records with the same few names table
    rows. What is no JSON is kept as plain text.

    Raises:
        Refusal: `invalid-encoding`, `empty-document`, `too-deep`, `too-large`.
    """
    encoding = encoding_of(path)
    try:
        text = path.read_text(encoding, errors="strict")
    except UnicodeDecodeError as error:
        raise Refusal("invalid-encoding", f"not valid {encoding}") from error
    writer = Writer(options.max_output_bytes)
    reader = _Reader(text.removeprefix("\ufeff"), writer, options.max_depth)
    try:
        reader.read()
    except _NotJsonError:
        del text, reader, writer
        plain = parse_text(path.read_bytes(), PLAIN, options)
        return Parse(plain.document, [*plain.warnings, "not valid JSON: kept as text"])
    if writer.empty:
        raise Refusal("empty-document", "the file has no text")
    markdown, spans = writer.finish()
    meta = BodyMeta(title=line(reader.title), language=UNKNOWN, media_type=JSON)
    warnings = [] if encoding.startswith("utf-8") else [f"decoded as {encoding}"]
    if reader.doubled:
        warnings.append(f"{reader.doubled} names stand twice in one object")
    return Parse(ParsedDocument(markdown=markdown, meta=meta, spans=spans), warnings)


class _Reader:
    """Reads and writes in one go; large parts are never objects in memory as a whole."""

    def __init__(self, text: str, writer: Writer, most_depth: int) -> None:
        self._text, self._writer, self._most = text, writer, most_depth
        self._at = 0
        self._counted, self._line = 0, 1
        self.title = ""
        self.doubled = 0

    def read(self) -> None:
        """The whole text.

        Raises:
            _NotJsonError: it is not JSON.
        """
        self._blank()
        if self._is_lines():
            self._list(_Lines(), "", _TOP_LEVEL, 1)
            return
        start = self._at
        opening = self._text[start : start + 1]
        # Piece by piece, however small it is: then every member has its own lines.
        value = _Big(start, opening == "{") if opening in {"{", "["} else self._value()
        self._content(value, "", _TOP_LEVEL, 1, self._lines_of(start))
        self._blank()
        if self._at < len(self._text):
            raise _NotJsonError

    def _is_lines(self) -> bool:
        """Whether the first line is a document, and another follows."""
        end = self._text.find("\n", self._at)
        first = self._text[self._at : max(end, self._at)].strip()
        if end < 0 or not first.startswith(("{", "[")) or not self._text[end:].strip():
            return False
        try:
            return bool(_SKIMMER.raw_decode(first)[1] == len(first))
        except (ValueError, RecursionError):
            return False

    # --- values ---------------------------------------------------------------------------------

    def _blank(self) -> None:
        match = _BLANK.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _value(self) -> Any:
        """The value here; of a large one only where it starts, and the place stays there."""
        opening = self._text[self._at : self._at + 1]
        if opening == '"':
            return self._string()
        if opening in {"{", "["}:
            return self._container(opening)
        match = _BARE.match(self._text, self._at)
        if not match:
            raise _NotJsonError
        self._at = match.end()
        return _Bare(match[0])

    def _string(self) -> str:
        try:
            value, self._at = scanstring(self._text, self._at + 1, False)
        except ValueError as error:
            raise _NotJsonError from error
        return str(value)

    def _container(self, opening: str) -> Any:
        try:
            value, end = _DECODER.raw_decode(self._text[self._at : self._at + _SMALL])
        except RecursionError as error:
            raise Refusal("too-deep", f"nested more than {self._most} deep") from error
        except ValueError:
            # Cut off in the middle, most likely; if it is a mistake, it is met again.
            return _Big(self._at, opening == "{")
        self._at += end
        return value

    def _members(self, parent: Any, lines: Place | None) -> Iterator[tuple[str, Any, Place]]:
        """Name (empty in lists), value and place of each member.

        A large member has to be walked through before the next one is asked for.
        """
        if isinstance(parent, _Big):
            yield from self._large_members(parent)
        elif isinstance(parent, _Lines):
            yield from self._documents()
        else:
            place = lines or Place()
            pairs = parent if isinstance(parent, _Object) else (("", item) for item in parent)
            for name, value in pairs:
                yield name, value, place

    def _documents(self) -> Iterator[tuple[str, Any, Place]]:
        self._at = 0
        self._blank()
        while self._at < len(self._text):
            start = self._at
            value = self._value()
            yield "", value, self._lines_of(start)
            self._blank()

    def _large_members(self, parent: _Big) -> Iterator[tuple[str, Any, Place]]:
        self._at = parent.start + 1
        close = "}" if parent.is_object else "]"
        self._blank()
        if self._take(close):
            return
        while True:
            self._blank()
            start = self._at
            name = self._name() if parent.is_object else ""
            value = self._value()
            yield name, value, self._lines_of(start)
            self._blank()
            if self._take(close):
                return
            if not self._take(","):
                raise _NotJsonError

    def _name(self) -> str:
        if self._text[self._at : self._at + 1] != '"':
            raise _NotJsonError
        name = self._string()
        self._blank()
        if not self._take(":"):
            raise _NotJsonError
        self._blank()
        return name

    def _take(self, sign: str) -> bool:
        found = self._text.startswith(sign, self._at)
        self._at += found
        return found

    def _lines_of(self, start: int) -> Place:
        first = self._line_of(start)
        return Place(lines=(first, self._line_of(max(start, self._at - 1))))

    def _line_of(self, at: int) -> int:
        """Line number of a place; cheap as long as places come in order."""
        if at < self._counted:
            self._line -= self._text.count("\n", at, self._counted)
        else:
            self._line += self._text.count("\n", self._counted, at)
        self._counted = at
        return self._line

    # --- writing --------------------------------------------------------------------------------

    def _deeper(self, depth: int) -> int:
        if depth >= self._most:
            raise Refusal("too-deep", f"nested more than {self._most} deep")
        return depth + 1

    def _object(
        self, value: Any, level: int, depth: int, *, record: bool, place: Place | None = None
    ) -> None:
        """Members one after another; `record`: short ones are items of a list."""
        depth = self._deeper(depth)
        listed = record or level - _TOP_LEVEL >= _HEADED_LEVELS - 1 or _is_wide(value)
        seen: set[int] = set()
        for name, member, where in self._members(value, place):
            self.doubled += hash(name) in seen
            seen.add(hash(name))
            if depth == 2 and name.lower() in {"title", "name"} and isinstance(member, str):
                self.title = self.title or member
            if listed and _is_short(member):
                text = f"- {literal_item(f'{name}: {_shown(member)}')}".rstrip()
                self._writer.item(text, where)
                continue
            self._writer.heading(name or "(no name)", level, where)
            self._content(member, name, level + 1, depth, where)

    def _content(self, value: Any, name: str, level: int, depth: int, place: Place) -> None:
        if _is_object(value):
            self._object(value, level, depth, record=level > 6, place=place)
        elif _is_list(value):
            self._list(value, name, level, depth, place)
        else:
            self._paragraph(value, place)

    def _paragraph(self, value: Any, place: Place) -> None:
        self._writer.block(paragraph(_shown(value)), place)

    def _list(
        self, value: Any, name: str, level: int, depth: int, place: Place | None = None
    ) -> None:
        depth = self._deeper(depth)
        columns = self._columns(value, place)
        if columns is not None:
            self._table(value, columns, place)
            return
        for number, (_, item, where) in enumerate(self._members(value, place), 1):
            if _is_short(item):
                if item == "":
                    continue
                self._writer.item(f"- {literal_item(_shown(item))}".rstrip(), where)
                continue
            self._item(item, name, level, depth, (number, where))

    def _item(self, item: Any, name: str, level: int, depth: int, which: tuple[int, Place]) -> None:
        """A member of a list that is more than a short value."""
        number, place = which
        if not _is_object(item) and not _is_list(item):
            self._paragraph(item, place)
            return
        told = _told(item)
        label = f"{name} {number}".strip()
        self._writer.heading(f"{label}: {told}" if told else label, level, place)
        if _is_object(item):
            self._object(item, level + 1, depth, record=True, place=place)
        else:
            self._list(item, label, level + 1, depth, place)

    # --- tables ---------------------------------------------------------------------------------

    def _columns(self, value: Any, place: Place | None) -> list[str] | None:
        """Names of the columns when all members are flat records of mostly the same names.

        Rows without names, all of one length, are a table too: its names are empty.
        """
        names: dict[str, None] = {}
        count = filled = 0
        widths: set[int] = set()
        for _, item, _ in self._members(value, place):
            keys = _flat(item)
            if keys is None:
                return None
            count += 1
            filled += len(keys)
            names.update(dict.fromkeys(keys) if _is_object(item) else {})
            widths.add(0 if _is_object(item) else len(keys))
            if len(names) > _MOST_COLUMNS or len(widths) > 1:
                return None
        if count < 2:
            return None
        if not names:
            width = widths.pop()
            return [""] * width if width > 1 else None
        return list(names) if 2 * filled >= count * len(names) else None

    def _table(self, value: Any, columns: Sequence[str], place: Place | None) -> None:
        named = any(columns)
        rows = (
            ([_shown(cell) for cell in _cells(item, columns)], where)
            for _, item, where in self._members(value, place)
        )
        head = list(columns)
        first = [next(rows), next(rows)]
        if not named and has_head([cells for cells, _ in first]):
            head = first.pop(0)[0]
        self._writer.block(f"{table_row(head)}\n{table_rule(len(head))}")
        group: list[str] = []
        places: list[Place] = []
        for cells, where in chain(first, rows):
            group.append(table_row(cells))
            places.append(where)
            if len(group) == _GROUP:
                self._rows(group, places)
        self._rows(group, places)

    def _rows(self, group: list[str], places: list[Place]) -> None:
        if group:
            lines = [place.lines or (1, 1) for place in places]
            self._writer.add("\n")
            self._writer.add("\n".join(group), Place(lines=(lines[0][0], lines[-1][1])))
            group.clear()
            places.clear()


def _is_object(value: Any) -> bool:
    return isinstance(value, _Object) or (isinstance(value, _Big) and value.is_object)


def _is_list(value: Any) -> bool:
    if isinstance(value, _Big):
        return not value.is_object
    return isinstance(value, _Lines) or (isinstance(value, list) and not isinstance(value, _Object))


def _is_wide(value: Any) -> bool:
    """Many names with a short value each: headings would hide the forest."""
    if not isinstance(value, _Object) or len(value) <= _MANY_NAMES:
        return False
    return sum(_is_short(member) for _, member in value) > _MANY_NAMES


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONG and "\n" not in value.strip()
    return value is None or isinstance(value, bool)


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _flat(item: Any) -> list[str] | None:
    """Names of a flat record, or as many blanks as a flat row has; None for anything else."""
    if isinstance(item, _Object):
        names = [name for name, _ in item]
        flat = all(map(_is_cell, (value for _, value in item))) and len(set(names)) == len(names)
        return names if flat and names else None
    if isinstance(item, list) and 1 < len(item) <= _MOST_COLUMNS and all(map(_is_cell, item)):
        return [""] * len(item)
    return None


def _is_cell(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONG_CELL
    return value is None or isinstance(value, bool)


def _cells(item: Any, columns: Sequence[str]) -> list[Any]:
    if not isinstance(item, _Object):
        return list(item)
    known = dict(item)
    return [known.get(name, "") for name in columns]


def _told(item: Any) -> str:
    """What a record calls itself."""
    if not isinstance(item, _Object):
        return ""
    known = {name.lower(): value for name, value in item if isinstance(value, str)}
    return next((plain_line(known[t])[:100] for t in _TITLES if known.get(t, "").strip()), "")
