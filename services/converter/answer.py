"""What a parsing child answers: parts of a file, written, checked and passed on piece by piece.

A document may be hundreds of megabytes: nobody but the child ever holds one whole.
"""

import codecs
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, BinaryIO, Self, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from contracts.artifacts import Artifact
from kernel.errors import Refusal

_PIECE = 1 << 20
_BATCH = 500

Of = TypeVar("Of", bound=Artifact)
Parts = Iterable[Iterable[bytes]]
"""Each part in pieces."""


def senseless() -> Refusal:
    """The child said what no child says: a document took it over, or broke it."""
    return Refusal("parse-crash", "the parser's answer makes no sense")


# --- written by the child -------------------------------------------------------------------------


def write(file: BinaryIO, parts: Parts) -> list[int]:
    """Write the parts one after the other; returns their sizes."""
    return [sum(file.write(piece) for piece in part) for part in parts]


def encoded(text: str) -> Iterator[bytes]:
    """`text` in UTF-8."""
    return (text[at : at + _PIECE].encode() for at in range(0, len(text), _PIECE))


def listed(items: Sequence[Artifact]) -> Iterator[bytes]:
    """Items as JSON lists, each on a line."""
    starts = range(0, len(items), _BATCH)
    return (to_json(items[at : at + _BATCH]) + b"\n" for at in starts)


# --- read by its parent ---------------------------------------------------------------------------


class Answer:
    """The parts of a file; nothing in it is believed. To be closed.

    Whatever reads a part raises a `Refusal` (`parse-crash`) if it is not what it should be.
    """

    def __init__(self, file: BinaryIO, sizes: Sequence[int]) -> None:
        self._file = file
        self.sizes = tuple(sizes)
        if min(self.sizes, default=0) < 0 or os.fstat(file.fileno()).st_size != sum(self.sizes):
            raise senseless()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def pieces(self, part: int) -> Iterator[bytes]:
        """The bytes of a part."""
        if part >= len(self.sizes):
            raise senseless()
        at = sum(self.sizes[:part])
        end = at + self.sizes[part]
        while at < end:
            piece = os.pread(self._file.fileno(), min(_PIECE, end - at), at)
            if not piece:
                raise senseless()
            yield piece
            at += len(piece)

    def text(self, part: int) -> Iterator[str]:
        """A part that is UTF-8."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for piece in self.pieces(part):
                yield decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise senseless() from error

    def items(self, part: int, kind: type[Of]) -> Iterator[tuple[Of, ...]]:
        """A part that was `listed`."""
        try:
            for line in self._lines(part):
                yield _list_of(kind).validate_json(line)
        except ValidationError as error:
            raise senseless() from error

    def _lines(self, part: int) -> Iterator[bytes]:
        rest: list[bytes] = []
        for piece in self.pieces(part):
            *ended, last = piece.split(b"\n")
            for line in ended:
                yield b"".join([*rest, line])
                rest = []
            rest.append(last)
        if any(rest):
            raise senseless()


@cache
def _list_of(kind: type[Artifact]) -> TypeAdapter[Any]:
    return TypeAdapter(tuple[kind, ...])  # type: ignore[valid-type]


# --- JSON, as `Artifact.to_bytes` writes it -----------------------------------------------------


def json_object(fields: Iterable[tuple[str, Iterable[bytes]]]) -> Iterator[bytes]:
    """An object of members whose values come in pieces."""
    before = b"{"
    for name, value in fields:
        yield before + to_json(name) + b":"
        yield from value
        before = b","
    yield b"}"


def json_string(pieces: Iterable[str]) -> Iterator[bytes]:
    """A string."""
    yield b'"'
    for piece in pieces:
        yield to_json(piece)[1:-1]
    yield b'"'


def json_list(batches: Iterable[Sequence[Artifact]]) -> Iterator[bytes]:
    """A list."""
    before = b"["
    for batch in batches:
        yield before + to_json(batch)[1:-1]
        before = b","
    yield b"]" if before == b"," else b"[]"
