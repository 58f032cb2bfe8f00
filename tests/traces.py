"""Looks for a word in everything that a stack keeps, in every form that it may have there."""

import base64
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import asyncpg

_ZLIB = re.compile(rb"x[\x01\x5e\x9c\xda]")
_GZIP = re.compile(rb"\x1f\x8b\x08")
_ASCII85 = re.compile(rb"stream\r?\n([!-uz\s]+)~>")
_MOST = 1 << 22
_DEPTH = 4
_OURS = frozenset({"postgres", "nats", "qdrant", "vectors", "logs", "run"})
"""Folders whose files servers write in a form of their own, none of it packed by deflate."""


@dataclass(frozen=True)
class Forms:
    """What a word may look like: `folded` in letters of any case, `exact` as it is."""

    folded: tuple[bytes, ...]
    exact: tuple[bytes, ...]

    def search(self, data: bytes) -> bool:
        """Is one of them there? (Ten times as fast as an expression would be.)"""
        low = data.lower()
        return any(f in low for f in self.folded) or any(e in data for e in self.exact)


def forms_of(word: str) -> Forms:
    """A word in lower case: plain, UTF-16, escaped as in JSON, hexadecimal, base64 at each of its
    places. Of letters that are not ASCII capitals are not found."""
    plain = word.encode()
    wide = (word.encode("utf-16-le"), word.encode("utf-16-be"))
    folded = (plain, *wide, json.dumps(word)[1:-1].encode(), plain.hex().encode())
    return Forms(folded, tuple(_base64(plain, shift) for shift in range(3)))


def _base64(data: bytes, shift: int) -> bytes:
    """What `data` becomes in base64 when `shift` bytes stand before it, without the mixed ends."""
    coded = base64.b64encode(bytes(shift) + data)
    return coded[(0, 2, 3)[shift] : len(coded) // 4 * 4 - 4]


def in_bytes(data: bytes, forms: Forms, depth: int = _DEPTH) -> bool:
    """Is it there, also inside base64 of letters, zip members, gzip and deflate streams?"""
    if forms.search(data):
        return True
    return depth > 0 and any(in_bytes(inner, forms, depth - 1) for inner in _inside(data))


def _inside(data: bytes) -> Iterator[bytes]:
    if data[:2] == b"PK" and zipfile.is_zipfile(BytesIO(data)):
        with zipfile.ZipFile(BytesIO(data)) as archive:
            for name in archive.namelist():
                yield name.encode() + archive.read(name)
        return
    for match in _ASCII85.finditer(data):
        try:
            yield base64.a85decode(b"<~" + match[1] + b"~>", adobe=True)
        except ValueError:
            continue
    for pattern, bits in ((_ZLIB, 15), (_GZIP, 31)):
        for match in pattern.finditer(data):
            try:
                made = zlib.decompressobj(bits).decompress(data[match.start() :], _MOST)
            except zlib.error:
                continue
            if len(made) > 8:
                yield made


def in_files(root: Path, forms: Forms) -> list[str]:
    """Files below `root` that hold it; packed bytes are opened where files of strangers may lie."""
    found = []
    for path in sorted(root.rglob("*")):
        try:
            data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        except FileNotFoundError:  # it went while we looked
            continue
        depth = 0 if path.relative_to(root).parts[0] in _OURS else _DEPTH
        if forms.search(str(path).encode()) or in_bytes(data, forms, depth):
            found.append(str(path.relative_to(root)))
    return found


async def in_tables(dsn: str, forms: Forms) -> list[str]:
    """Tables of the database that hold it in a row, large values unpacked."""
    connection: Any = await asyncpg.connect(dsn)
    try:
        tables = await connection.fetch(
            """SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
               WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"""
        )
        found = []
        for table in tables:
            rows = await connection.fetch(f"SELECT t::text AS line FROM {table['name']} t")
            if any(in_bytes(row["line"].encode(), forms) for row in rows):
                found.append(str(table["name"]))
        await connection.execute("CHECKPOINT")  # what is in memory goes to the files
    finally:
        await connection.close()
    return found
