"""A graph over the vectors of a large collection (HNSW), made by another process.

Building one holds the GIL for minutes, so the serving process must not. It hands all points, page
by page, to a child (`python -m kernel.vectors.graph`), which puts them into a shard of its own and
builds the graph there; what is written meanwhile is noted (`Journal`) and brought over afterwards,
then the new shard takes the place of the old one. Nothing that was deleted is in the new one.
"""

import asyncio
import json
import os
import shutil
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeVectorParams,
    HnswIndexConfig,
    PayloadSchemaType,
    UpdateOperation,
)
from qdrant_edge import Point as EdgePoint

from kernel.errors import KbError
from kernel.spawn import guarded
from kernel.vectors.payload import INTEGERS, KEYWORDS

SHARD, NEXT, LAST = "shard", "next", "last"
"""Folders of a collection: the one in use; while they are changed, the new and the old one."""
LINKS, CARE = 16, 200
"""HNSW: links of a point, candidates while they are made (m, ef_construct)."""
PLAIN = 50_000
"""So many points that pass a filter are compared one by one: that finds all and costs no more."""
NICENESS = 15
_HEAD = struct.Struct("<II")
_FLUSH_EVERY, _BYTES = 4096, 4

Rows = list[tuple[str, dict[str, Any], list[float]]]
"""Points as the engine gives them: id, payload, vector."""


class NoGraph(KbError):
    """The child did not make it; the collection stays as it was."""


@dataclass
class Journal:
    """What was written since; it says what to look at again, not what it was."""

    versions: set[str] = field(default_factory=set)
    points: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.versions) + len(self.points)


def make_shard(folder: Path, dim: int, *, plain: int | None = None) -> EdgeShard:
    """An empty shard; `plain`: one that can get a graph, not used where so few pass. Payload
    indexes come before the first point: afterwards each costs a pass over all points."""
    folder.mkdir(parents=True)
    config = EdgeConfig(vectors=EdgeVectorParams(size=dim, distance=Distance.Cosine))
    if plain is not None:
        config = EdgeConfig(
            vectors=EdgeVectorParams(size=dim, distance=Distance.Cosine),
            hnsw_config=HnswIndexConfig(
                LINKS, CARE, plain * dim * _BYTES // 1024, max_indexing_threads=1
            ),
            optimizers=EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1),
        )
    shard = EdgeShard.create(str(folder), config)
    for name in KEYWORDS:
        shard.update(UpdateOperation.create_field_index(name, PayloadSchemaType.Keyword))
    for name in INTEGERS:
        shard.update(UpdateOperation.create_field_index(name, PayloadSchemaType.Integer))
    return shard


def settle(collection: Path) -> None:
    """Put right what a crash left between two renames: exactly one shard is there afterwards."""
    shard = collection / SHARD
    if not shard.is_dir() and (collection / NEXT).is_dir():
        (collection / NEXT).rename(shard)
    for left in (NEXT, LAST):
        if (collection / left).is_dir():
            shutil.rmtree(collection / left)


def exchange(collection: Path, made: Path) -> Path:
    """`made` becomes the shard of the collection; returns the old one, to be removed.

    The new one is complete and flushed before the first rename, so `settle` may take it.
    """
    made.rename(collection / NEXT)
    (collection / SHARD).rename(collection / LAST)
    (collection / NEXT).rename(collection / SHARD)
    _sync(collection)
    return collection / LAST


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Child:
    """The process that builds; it dies with this one."""

    def __init__(self, folder: Path, dim: int) -> None:
        self._folder, self._dim = folder, dim
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> "Child":
        given = [str(self._folder), str(self._dim), str(PLAIN), str(NICENESS)]
        module = [sys.executable, "-m", __name__, *given]
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(*guarded(module), stdin=pipe)
        return self

    async def __aexit__(self, *_: object) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    @property
    def pid(self) -> int | None:
        """Of the process."""
        return None if self._process is None else self._process.pid

    async def send(self, rows: Rows) -> None:
        """Hand points over.

        Raises:
            NoGraph: the child is gone.
        """
        if self._process is None or self._process.stdin is None or not rows:
            return
        head = json.dumps([row[:2] for row in rows]).encode()
        body = np.asarray([row[2] for row in rows], dtype="<f4").tobytes()
        try:
            self._process.stdin.write(_HEAD.pack(len(head), len(body)) + head + body)
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise NoGraph("the process that builds the graph ended") from error

    async def finish(self) -> None:
        """Wait until the graph is there.

        Raises:
            NoGraph: it is not.
        """
        if self._process is None or self._process.stdin is None:
            return
        with suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.write(_HEAD.pack(0, 0))
            await self._process.stdin.drain()
            self._process.stdin.close()
        if code := await self._process.wait():
            raise NoGraph(f"the process that builds the graph ended with {code}")


def edge_points(rows: Sequence[tuple[str, dict[str, Any], list[float]]]) -> list[EdgePoint]:
    """As the engine takes them."""
    return [EdgePoint(id_, vector, payload) for id_, payload, vector in rows]


def build(folder: Path, dim: int, plain: int, stream: BinaryIO) -> None:
    """In the child: points from the stream into a new shard, then the graph.

    Raises:
        EOFError: whoever sends them ended before the last one.
    """
    shard, written = make_shard(folder, dim, plain=plain), 0
    while True:
        head, body = _HEAD.unpack(_exactly(stream, _HEAD.size))
        if not head:
            break
        known = json.loads(_exactly(stream, head))
        vectors = np.frombuffer(_exactly(stream, body), dtype="<f4").reshape(len(known), dim)
        rows = [(i, p, v) for (i, p), v in zip(known, vectors.tolist(), strict=True)]
        shard.update(UpdateOperation.upsert_points(edge_points(rows)))
        written += len(rows)
        if written >= _FLUSH_EVERY:
            shard.flush()
            written = 0
    shard.flush()
    shard.optimize()
    shard.flush()
    shard.close()


def _exactly(stream: BinaryIO, size: int) -> bytes:
    found = stream.read(size)
    if len(found) != size:
        raise EOFError
    return found


if __name__ == "__main__":
    os.nice(int(sys.argv[4]))
    build(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.stdin.buffer)
