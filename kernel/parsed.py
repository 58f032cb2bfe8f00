"""A parse is read from its blob without ever being there three times: as a file, as JSON, as text.

Other readers of JSON hold the file and the text at once, and the text once more while it is read.
"""

import codecs
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from contracts.artifacts import ParsedDocument

_OPENING = b'{"markdown":"'
_PIECE = 1 << 22
# Possessive: nothing is remembered for a way back. What is cut off by the end is not matched.
_INSIDE = re.compile(rb'[^"\\]*+(?:\\(?:u[0-9A-Fa-f]{4}|[^u])[^"\\]*+)*+', re.DOTALL)


class Loaded(NamedTuple):
    """A document, and the SHA-256 of the bytes that it was read from."""

    document: ParsedDocument
    sha256: str


def load(path: Path) -> Loaded:
    """The `ParsedDocument` whose bytes are in the file at `path`.

    Raises:
        ValueError: it holds none.
    """
    with path.open("rb") as opened:
        file = _Hashed(opened)
        opening = file.read(len(_OPENING))
        if opening != _OPENING:
            document = ParsedDocument.model_validate_json(opening + file.read())
            return Loaded(document, file.sha256)
        text = _Text(file)
        markdown = "".join(text.pieces())
        rest = ParsedDocument.model_validate_json(_OPENING + b'"' + text.rest + file.read())
        return Loaded(rest.model_copy(update={"markdown": markdown}), file.sha256)


class _Hashed:
    """A file whose bytes are hashed as they are read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._digest.update(data)
        return data

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


class _Text:
    """The JSON string at whose first character the file stands."""

    def __init__(self, file: _Hashed) -> None:
        self._file = file
        self.rest = b""
        """What was read behind the string."""

    def pieces(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")()
        held = b""
        while chunk := self._file.read(_PIECE):
            data = held + chunk
            match = _INSIDE.match(data)
            end = match.end() if match else 0
            # A character may be cut: the decoder keeps its first bytes, no escape is among them.
            piece = decoder.decode(data[:end])
            yield json.loads(f'"{piece}"') if "\\" in piece else piece
            if data[end : end + 1] == b'"':
                self.rest = data[end + 1 :]
                return
            held = data[end:]
        raise ValueError("the text has no end")
