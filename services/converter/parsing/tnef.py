"""TNEF, the `winmail.dat` in which Outlook packs text and files of a mail (MS-OXTNEF).

The library for it is under the LGPL and gives up at the first damage.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from enum import IntEnum
from typing import NamedTuple

from services.converter.parsing.letter import MOST_DEPTH, Mail, Text, as_eml, told_text
from services.converter.parsing.literal import plain_line
from services.converter.parsing.outlook import unpacked

SIGNATURE = b"\x78\x9f\x3e\x22"
_P_SUBJECT, _P_BODY, _P_RICH, _P_PAGE = 0x0037, 0x1000, 0x1009, 0x1013
_P_NAME, _P_SHORT_NAME, _P_DATA, _P_SENDER = 0x3707, 0x3704, 0x3701, 0x0C1A
_STRING8, _STRING, _OBJECT, _BINARY, _MANY = 0x1E, 0x1F, 0x0D, 0x102, 0x1000
_VARIABLE = frozenset({_STRING8, _STRING, _OBJECT, _BINARY})
_SIZES = {0: 0, 1: 0, 5: 8, 6: 8, 7: 8, 0x14: 8, 0x40: 8, 0x48: 16}
"""Bytes of a value by its type; of all others four."""

_NAMED = 0x8000
_MOST_VALUES = 100_000


class _At(IntEnum):
    """Numbers of attributes."""

    SUBJECT = 0x8004
    BODY = 0x800C
    PROPERTIES = 0x9003
    CODEPAGE = 0x9007
    NEW_FILE = 0x9002
    TITLE = 0x8010
    DATA = 0x800F
    FILE_PROPERTIES = 0x9005


class _Packed(NamedTuple):
    """Value of a property: its type and bytes."""

    kind: int
    data: bytes


def read_tnef(data: bytes, depth: int = 0) -> Mail | None:
    """Text and files of a packed mail; None if these bytes are none, or it holds nothing.

    What comes before a damage is kept. A message within it becomes a file `.eml`.
    """
    if not data.startswith(SIGNATURE) or depth > MOST_DEPTH:
        return None
    reader = _Reader(depth)
    for attribute, value in _attributes(data):
        reader.take(attribute, value)
    return reader.finished()


class _Reader:
    """Takes the attributes of a stream."""

    def __init__(self, depth: int) -> None:
        self._mail, self._text, self._depth = Mail(), Text(), depth
        self._codepage: str | None = None
        self._name, self._content = "", b""

    def take(self, attribute: int, value: bytes) -> None:
        """What one attribute says."""
        match attribute:
            case _At.CODEPAGE if len(value) >= 4:
                self._codepage = f"cp{struct.unpack_from('<I', value)[0]}"
            case _At.SUBJECT:
                self._mail.subject = self._mail.subject or _line(value, self._codepage)
            case _At.BODY:
                told = told_text(value, self._codepage)
                self._text.plain = self._text.plain or [told]
            case _At.PROPERTIES:
                _take_text(self._mail, self._text, dict(_properties(value)), self._codepage)
            case _:
                self._take_file(attribute, value)

    def _take_file(self, attribute: int, value: bytes) -> None:
        match attribute:
            case _At.NEW_FILE:
                self._end_file()
            case _At.TITLE:
                self._name = self._name or _line(value, self._codepage)
            case _At.DATA:
                self._content = self._content or value
            case _At.FILE_PROPERTIES:
                found = dict(_properties(value))
                name = _told(found, (_P_NAME, _P_SHORT_NAME), self._codepage) or self._name
                self._name, self._content = _content(found, name, self._content, self._depth)

    def _end_file(self) -> None:
        if self._name or self._content:
            self._mail.attach(self._name, self._content)
        self._name, self._content = "", b""

    def finished(self) -> Mail | None:
        """The mail, if it holds anything."""
        self._end_file()
        self._mail.texts = [self._text] if self._text.holds else []
        return self._mail if self._mail.texts or self._mail.files else None


def _take_text(mail: Mail, text: Text, found: dict[int, _Packed], codepage: str | None) -> None:
    mail.subject = _told(found, (_P_SUBJECT,), codepage) or mail.subject
    mail.sender = _told(found, (_P_SENDER,), codepage) or mail.sender
    if _P_BODY in found:
        text.plain = [_string(found[_P_BODY], codepage)]
    page = found.get(_P_PAGE)
    if page is not None:
        told = page.kind in {_STRING, _STRING8}
        text.pages = [_string(page, codepage).encode() if told else page.data]
    if _P_RICH in found:
        rich = unpacked(found[_P_RICH].data)
        text.rich = [rich] if rich else []


def _content(found: dict[int, _Packed], name: str, content: bytes, depth: int) -> tuple[str, bytes]:
    """Name and bytes of a file; of a message within the message the bytes of a mail."""
    packed = found.get(_P_DATA)
    if packed is None:
        return name, content
    if packed.kind != _OBJECT:
        return name, content or packed.data
    # An object starts with the number of its kind.
    inner = read_tnef(packed.data[16:], depth + 1)
    if inner is None:
        return name, content or packed.data[16:]
    return f"{inner.subject or name or 'message'}.eml", as_eml(inner)


def _told(found: dict[int, _Packed], wanted: tuple[int, ...], codepage: str | None) -> str:
    texts = (_string(found[one], codepage) for one in wanted if one in found)
    return next((plain_line(text) for text in texts if text.strip()), "")


def _string(value: _Packed, codepage: str | None) -> str:
    if value.kind == _STRING:
        return value.data.decode("utf-16-le", "replace").rstrip("\0")
    return told_text(value.data, codepage)


def _line(data: bytes, codepage: str | None) -> str:
    return plain_line(told_text(data.rstrip(b"\0"), codepage))


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each attribute, up to the end or a damage."""
    at = 6
    while at + 11 <= len(data):
        number, size = struct.unpack_from("<H2xI", data, at + 1)
        start = at + 9
        if start + size > len(data):
            return
        yield number, data[start : start + size]
        at = start + size + 2


def _properties(data: bytes) -> Iterator[tuple[int, _Packed]]:
    """Number and first value of each property, up to the end or a damage."""
    with suppress(struct.error):
        count, at = min(struct.unpack_from("<I", data)[0], _MOST_VALUES), 4
        for _ in range(count):
            kind, number = struct.unpack_from("<HH", data, at)
            at += 4
            if number >= _NAMED:
                at = _behind_name(data, at)
            value, at = _value(data, at, kind)
            yield number, _Packed(kind & ~_MANY, value)


def _behind_name(data: bytes, at: int) -> int:
    """Where the value of a property starts that has a name, or a number in a space of its own."""
    named = struct.unpack_from("<I", data, at + 16)[0]
    size = struct.unpack_from("<I", data, at + 20)[0]
    return at + 24 + (_padded(size) if named else 0)


def _value(data: bytes, at: int, kind: int) -> tuple[bytes, int]:
    """The first value, and where the next property starts."""
    plain = kind & ~_MANY
    count = 1
    if kind & _MANY or plain in _VARIABLE:
        count = struct.unpack_from("<I", data, at)[0]
        at += 4
    first = b""
    for number in range(min(count, _MOST_VALUES)):
        size = _SIZES.get(plain, 4)
        if plain in _VARIABLE:
            size = struct.unpack_from("<I", data, at)[0]
            at += 4
        if at + size > len(data):
            raise struct.error("a value leads out of the property")
        first = data[at : at + size] if number == 0 else first
        at += _padded(size)
    return first, at


def _padded(size: int) -> int:
    return -(-size // 4) * 4
