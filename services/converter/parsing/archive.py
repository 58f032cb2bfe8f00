"""Zipped formats, read with a limit on what comes out."""

import itertools
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from kernel.errors import Refusal
from kernel.media import OLE_MAGIC
from services.converter.settings import ParseOptions

_MOST_ENTRIES = 20_000
_SMALL = 4 * 1024 * 1024
_CHUNK = 1024 * 1024
_DOCUMENT_TYPE = re.compile(rb"<\0?!\0?(?:D\0?O\0?C\0?T|E\0?N\0?T\0?I)")
_BAD = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError)


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
        try:
            self._zip = zipfile.ZipFile(path)
        except _BAD as error:
            raise Refusal("corrupt-document", "not a readable zip container") from error
        try:
            self._check(options)
        except Refusal:
            self._zip.close()
            raise
        self.names = [info.filename for info in self._zip.infolist()]

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
        if name not in self.names:
            return
        info = self._zip.getinfo(name)
        size = 0
        try:
            with self._zip.open(info) as entry:
                while part := entry.read(_CHUNK):
                    size += len(part)
                    if size > info.file_size:
                        raise Refusal("decompression-bomb", "an entry is larger than it says")
                    yield part
        except _BAD as error:
            raise Refusal("corrupt-document", "an entry of the container is damaged") from error

    def refuse_document_types(self) -> None:
        """For a library that parses the parts itself: none may declare entities.

        Raises:
            Refusal: `corrupt-document`, `decompression-bomb`.
        """
        for name in self.names:
            if name.endswith((".xml", ".rels", ".vml")):
                before = b""
                for piece in self.pieces(name):
                    if _DOCUMENT_TYPE.search(before + piece):
                        raise Refusal("corrupt-document", "a part declares a document type")
                    before = piece[-32:]
