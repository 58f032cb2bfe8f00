"""Zipped formats, read with a limit on what comes out, and as far as they are whole.

A damaged entry is a `Damaged` refusal where its text is needed, and a note where it is not. Of a
file that was cut off, the entries before the cut are read.
"""

import io
import itertools
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from kernel.errors import Refusal
from kernel.media import OLE_MAGIC
from services.converter.settings import ParseOptions

_MOST_ENTRIES = 20_000
_SMALL = 4 * 1024 * 1024
_CHUNK = 1024 * 1024
_PIECE = 64 * 1024
_DOCUMENT_TYPE = re.compile(rb"<\0?!\0?(?:D\0?O\0?C\0?T|E\0?N\0?T\0?I)")
_FOLDER = re.compile(r"(docProps|customXml|META-INF|(?:word|xl|ppt)/[A-Za-z]{1,20})/")
_BAD = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)


class Damaged(Refusal):
    """A part that cannot be read; a caller that can do without it goes on."""

    def __init__(self, reason: str) -> None:
        super().__init__("corrupt-document", reason)


class Archive:
    """A zip whose contents table was found harmless; reading keeps the promise of the table."""

    def __init__(self, path: Path, options: ParseOptions) -> None:
        """Open and check.

        Raises:
            Refusal: `encrypted-document`, `corrupt-document`, `decompression-bomb`.
        """
        with path.open("rb") as file:
            if file.read(len(OLE_MAGIC)) == OLE_MAGIC:
                raise Refusal("encrypted-document", "the document is protected by a password")
        self.is_cut = False
        """Whether the end of the file is missing, and with it perhaps some entries."""
        self._missed: set[str] = set()
        self._zip = self._opened(path, options)
        try:
            self._check(options)
        except Refusal:
            self._zip.close()
            raise
        # Some programs write the separators of Windows.
        self._entries = {info.filename.replace("\\", "/"): info for info in self._zip.infolist()}
        self.names = list(self._entries)
        self._by_lower = {name.lower(): name for name in reversed(self.names)}

    def _opened(self, path: Path, options: ParseOptions) -> zipfile.ZipFile:
        try:
            found = zipfile.ZipFile(path)
            if not _is_inner(found, path):
                return found
            found.close()
        except _BAD:
            pass
        whole = recovered(
            path, most=options.max_unpacked_bytes, most_ratio=options.max_unpacked_ratio
        )
        if whole is None:
            raise Refusal("corrupt-document", "not a readable zip container")
        self.is_cut = True
        return zipfile.ZipFile(whole)

    def actual(self, name: str) -> str:
        """The entry that another one means by `name`: upper and lower case are the same to the
        programs that write such files. `name` itself if there is none."""
        return name if name in self._entries else self._by_lower.get(name.lower(), name)

    def miss(self, name: str) -> None:
        """Note that an entry was left out since it cannot be read."""
        self._missed.add(name)

    @property
    def warnings(self) -> list[str]:
        """What the journal should say of the state of the file; no name from inside it."""
        told = ["the end of the file is missing: read as far as it goes"] if self.is_cut else []
        folders = (_FOLDER.match(name) for name in self._missed)
        counts = Counter(folder[1] if folder else "the container" for folder in folders)
        kinds = ", ".join(f"{count} in {kind}" for kind, count in sorted(counts.items()))
        return [*told, f"damaged parts were left out: {kinds}"] if kinds else told

    def lack(self, what: str) -> Refusal:
        """The refusal of a document that lacks a part."""
        reason = f"the end of the file is missing, and with it {what}"
        return Damaged(reason if self.is_cut else f"the container lacks {what}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def _check(self, options: ParseOptions) -> None:
        entries = self._zip.infolist()
        if any(info.flag_bits & 1 for info in entries):
            raise Refusal("encrypted-document", "the document is protected by a password")
        total = sum(info.file_size for info in entries)
        if total > options.max_unpacked_bytes or len(entries) > _MOST_ENTRIES:
            raise Refusal("decompression-bomb", f"{len(entries)} entries of {total} bytes")
        for info in entries:
            ratio = info.file_size / max(1, info.compress_size)
            if info.file_size > _SMALL and ratio > options.max_unpacked_ratio:
                raise Refusal(
                    "decompression-bomb", f"an entry unpacks to {ratio:.0f} times its size"
                )
        spans = sorted((info.header_offset, info.compress_size) for info in entries)
        for (start, size), (following, _) in itertools.pairwise(spans):
            if start + size > following:
                raise Refusal("decompression-bomb", "entries share their bytes")

    def read(self, name: str) -> bytes:
        """The content of an entry; empty if there is none.

        Raises:
            Refusal: `corrupt-document`, `decompression-bomb`.
        """
        return b"".join(self.pieces(name))

    def pieces(self, name: str) -> Iterator[bytes]:
        """The content of an entry in pieces of at most a megabyte; none if there is none.

        Raises:
            Refusal: `corrupt-document`, `decompression-bomb`.
        """
        info = self._entries.get(name)
        if info is None:
            return
        size = 0
        try:
            with self._zip.open(info) as entry:
                while part := entry.read(_CHUNK):
                    size += len(part)
                    if size > info.file_size:
                        raise Refusal("decompression-bomb", "an entry is larger than it says")
                    yield part
        except _BAD as error:
            raise Damaged("a part of the document is damaged") from error

    def refuse_document_types(self) -> None:
        """For a library that parses the parts itself: none may declare entities.

        Raises:
            Refusal: `corrupt-document`, `decompression-bomb`.
        """
        for name in self.names:
            if name.endswith((".xml", ".rels", ".vml")):
                # Whether a damaged part can be done without is for its reader to say.
                with suppress(Damaged):
                    self._refuse_document_type(name)

    def _refuse_document_type(self, name: str) -> None:
        before = b""
        for piece in self.pieces(name):
            if _DOCUMENT_TYPE.search(before + piece):
                raise Refusal("corrupt-document", "a part declares a document type")
            before = piece[-32:]


# --- without a table of contents ------------------------------------------------------------------


def _is_inner(archive: zipfile.ZipFile, path: Path) -> bool:
    """Whether a table of contents is that of a zip inside this one, whose own end is missing: its
    entries start behind the first one, and more follows it."""
    if not any(info.header_offset == 0 for info in archive.infolist()):
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(max(0, path.stat().st_size - _END_BYTES))
            tail = file.read()
        at = tail.rfind(b"PK\x05\x06")
        comment = int.from_bytes(tail[at + 20 : at + 22], "little")
        return head == b"PK\x03\x04" and at + 22 + comment != len(tail)
    return False


def recovered(path: Path, *, most: int, most_ratio: float) -> io.BytesIO | None:
    """The whole entries from the start of a zip as a new one; None if there are none.

    Each has a header of its own before its bytes (APPNOTE.TXT 4.3.7), so that the table at the end
    of the file is not needed.

    Raises:
        Refusal: `decompression-bomb`, `encrypted-document`.
    """
    data = memoryview(path.read_bytes())
    out = io.BytesIO()
    seen: set[str] = set()
    at = total = 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as copy:
        while len(seen) < _MOST_ENTRIES:
            entry = _entry(data, at, _Limits(most - total, most_ratio))
            if entry is None:
                break
            name, content, at = entry
            if content and name not in seen:
                copy.writestr(name, content)
            seen.add(name)
            total += len(content)
    out.seek(0)
    return out if total else None


class _Limits(NamedTuple):
    """Bytes that may still come out, and how many times the bytes that go in."""

    most: int
    ratio: float

    def check(self, size: int, packed: int) -> None:
        if size > self.most or (size > _SMALL and size > self.ratio * packed):
            raise Refusal("decompression-bomb", "the entries unpack to too much")


_END_BYTES = 65_536 + 22
_HEADER = struct.Struct("<4s5H3L2H")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _SIZES_BEHIND, _UTF8 = 0x1, 0x8, 0x800


def _entry(data: memoryview, at: int, limits: _Limits) -> tuple[str, bytes, int] | None:
    """Name of the entry at `at`, its content, empty if that is damaged, and where the next starts;
    None where no entry is, or where its end cannot be told."""
    if bytes(data[at : at + 4]) != b"PK\x03\x04" or at + _HEADER.size > len(data):
        return None
    _, _, flags, method, _, _, crc, size, _, named, extra = _HEADER.unpack_from(data, at)
    if flags & _ENCRYPTED:
        raise Refusal("encrypted-document", "the document is protected by a password")
    start = at + _HEADER.size + named + extra
    raw = bytes(data[at + _HEADER.size : at + _HEADER.size + named])
    name = raw.decode("utf-8" if flags & _UTF8 else "cp437", "replace")
    if method == _DEFLATED:
        unpacked = _inflated(data, start, limits)
        if unpacked is None:
            return None
        content, end = unpacked
    elif method == _STORED and not flags & _SIZES_BEHIND and start + size <= len(data):
        limits.check(size, size)
        content, end = bytes(data[start : start + size]), start + size
    else:
        return None
    if flags & _SIZES_BEHIND:
        crc, end = _behind(data, end)
    return name, content if zlib.crc32(content) == crc else b"", end


def _inflated(data: memoryview, start: int, limits: _Limits) -> tuple[bytes, int] | None:
    """What is packed at `start`, and where it ends; None if it is damaged or does not end."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    parts: list[bytes] = []
    size, at = 0, start
    try:
        while not unpacker.eof and at < len(data):
            piece = data[at : at + _PIECE]
            parts.append(unpacker.decompress(piece))
            size += len(parts[-1])
            at += len(piece)
            limits.check(size, at - start)
    except zlib.error:
        return None
    return (b"".join(parts), at - len(unpacker.unused_data)) if unpacker.eof else None


def _behind(data: memoryview, end: int) -> tuple[int, int]:
    """The checksum that follows an entry, and where that record ends: its sizes have 4 or 8 bytes
    each, and it may have a sign before it."""
    at = end + 4 if bytes(data[end : end + 4]) == b"PK\x07\x08" else end
    crc = int.from_bytes(data[at : at + 4], "little")
    for size in (12, 20):
        if bytes(data[at + size : at + size + 4]) in {b"PK\x03\x04", b"PK\x01\x02"}:
            return crc, at + size
    return crc, len(data)
