"""The embedded vector engine: one folder a collection, one thread, one process."""

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import numpy as np
from numpy.typing import NDArray
from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    MatchAny,
    MatchValue,
    PayloadSchemaType,
    Query,
    QueryRequest,
    RangeFloat,
    ScrollRequest,
    UpdateOperation,
)
from qdrant_edge import Point as EdgePoint

from kernel.vectors import (
    Held,
    IndexInUse,
    Point,
    UnknownCollection,
    VectorFilter,
    VectorHit,
    Window,
    WrongDimension,
    checked_name,
)
from kernel.vectors.payload import (
    INTEGERS,
    KEYWORDS,
    SPANS,
    Condition,
    Conditions,
    check_vector,
    conditions,
    held,
    hit,
    payload,
    plain,
    ranked,
    slots,
)

T = TypeVar("T")

_SLICE = 64
_DELETED = 1024
_FLUSH_EVERY = 4096
_PAGE = 256
_IDS = 2000
_SHARD, _DIM = "shard", "dim"
_UNFINISHED = "."  # a folder with this prefix is being made or removed


@dataclass
class _Shard:
    """An open collection; `written`: points since the last flush."""

    engine: EdgeShard
    dim: int
    written: int = 0


class EdgeIndex:
    """A `VectorIndex` on qdrant-edge, whose calls block and hold the GIL for milliseconds.

    All calls run in one thread, writes in slices, so that a search waits for one slice at most.
    Segments are never optimised here: that would stop the whole process for seconds, and exact
    search is fast enough up to about 100,000 points. Raises IndexInUse if `root` is open already.
    """

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._lock = _lock(root / "lock")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vectors")
        self._open: dict[str, _Shard] = {}
        for left in root.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left)

    async def create(self, collection: str, dim: int) -> None:
        await self._run(self._create, checked_name(collection), dim)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        name = checked_name(collection)
        await self._run(self._check, name, points)
        for start in range(0, len(points), _SLICE):
            await self._run(self._upsert, name, points[start : start + _SLICE])

    async def search(
        self, collection: str, vector: NDArray[np.float32], flt: VectorFilter, limit: int
    ) -> list[VectorHit]:
        return await self._run(self._search, checked_name(collection), vector, flt, limit)

    async def set_validity(
        self, collection: str, version_id: str, windows: Sequence[Window]
    ) -> None:
        await self._run(self._set_validity, checked_name(collection), version_id, windows)

    async def delete_version(self, collection: str, version_id: str) -> None:
        await self._run(self._delete_version, checked_name(collection), version_id)

    async def delete_points(self, collection: str, ids: Sequence[UUID]) -> None:
        name = checked_name(collection)
        for start in range(0, len(ids), _DELETED):
            await self._run(self._delete_points, name, ids[start : start + _DELETED])

    async def count(self, collection: str) -> int:
        return await self._run(self._count, checked_name(collection))

    async def ids(self, collection: str) -> list[UUID]:
        name, found, offset = checked_name(collection), list[UUID](), None
        while True:
            page, offset = await self._run(self._ids, name, offset)
            found += page
            if offset is None:
                return sorted(found)

    async def held(
        self, collection: str, version_id: str | None = None
    ) -> AsyncIterator[list[Held]]:
        name, offset = checked_name(collection), None
        while True:
            page, offset = await self._run(self._held, name, version_id, offset)
            yield page
            if offset is None:
                return

    async def drop(self, collection: str) -> None:
        left = await self._run(self._drop, checked_name(collection))
        if left is not None:
            await asyncio.to_thread(shutil.rmtree, left)

    async def collections(self) -> list[str]:
        return await self._run(self._names)

    async def close(self) -> None:
        """Flush and let go; a second time does nothing."""
        if self._lock.closed:
            return
        await self._run(self._close)
        self._thread.shutdown()
        self._lock.close()

    async def _run(self, work: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    def _shard(self, name: str) -> _Shard | None:
        """The open shard; opened when first used."""
        folder = self._root / name
        if name not in self._open and folder.is_dir():
            dim = int((folder / _DIM).read_text())
            self._open[name] = _Shard(EdgeShard.load(str(folder / _SHARD)), dim)
        return self._open.get(name)

    def _known(self, name: str) -> _Shard:
        shard = self._shard(name)
        if shard is None:
            raise UnknownCollection(name)
        return shard

    def _create(self, name: str, dim: int) -> None:
        shard = self._shard(name)
        if shard is None:
            self._make(name, dim)
        elif shard.dim != dim:
            raise WrongDimension(f"{name} has dimension {shard.dim}, not {dim}")

    def _make(self, name: str, dim: int) -> None:
        """Build aside and rename: a crash leaves no collection without its payload indexes."""
        aside = self._root / f"{_UNFINISHED}{name}.{uuid4().hex}"
        config = EdgeConfig(vectors=EdgeVectorParams(size=dim, distance=Distance.Cosine))
        (aside / _SHARD).mkdir(parents=True)
        (aside / _DIM).write_text(str(dim))
        shard = EdgeShard.create(str(aside / _SHARD), config)
        _index_payload(shard)
        shard.flush()
        shard.close()
        aside.rename(self._root / name)

    def _check(self, name: str, points: Sequence[Point]) -> None:
        """Refuse a batch as a whole: no slice of a bad one is written."""
        dim = self._known(name).dim
        for point in points:
            check_vector(point.vector, dim)

    def _upsert(self, name: str, points: Sequence[Point]) -> None:
        shard = self._known(name)
        rows = [EdgePoint(str(p.point_id), plain(p.vector, shard.dim), payload(p)) for p in points]
        shard.engine.update(UpdateOperation.upsert_points(rows))
        shard.written += len(rows)
        if shard.written >= _FLUSH_EVERY:  # each write is in its log already: keep that log short
            shard.engine.flush()
            shard.written = 0

    def _search(
        self, name: str, vector: NDArray[np.float32], flt: VectorFilter, limit: int
    ) -> list[VectorHit]:
        shard = self._shard(name)
        if shard is None or limit < 1 or flt.empty:
            return []
        request = QueryRequest(
            limit=limit,
            query=Query.Nearest(plain(vector, shard.dim)),
            filter=_filter(conditions(flt)),
            with_payload=["version"],
        )
        return ranked(hit(p.id, p.payload, p.score) for p in shard.engine.query(request))

    def _set_validity(self, name: str, version_id: str, windows: Sequence[Window]) -> None:
        shard = self._shard(name)
        if shard is not None:
            operation = UpdateOperation.set_payload_by_filter(_version(version_id), slots(windows))
            shard.engine.update(operation)

    def _delete_version(self, name: str, version_id: str) -> None:
        shard = self._shard(name)
        if shard is not None:
            shard.engine.update(UpdateOperation.delete_points_by_filter(_version(version_id)))

    def _delete_points(self, name: str, ids: Sequence[UUID]) -> None:
        shard = self._shard(name)
        if shard is not None:
            shard.engine.update(UpdateOperation.delete_points([str(i) for i in ids]))

    def _count(self, name: str) -> int:
        shard = self._shard(name)
        return 0 if shard is None else shard.engine.count(CountRequest(exact=True))

    def _ids(self, name: str, offset: Any) -> tuple[list[UUID], Any]:
        shard = self._shard(name)
        if shard is None:
            return [], None
        request = ScrollRequest(offset=offset, limit=_IDS, with_payload=False, with_vector=False)
        records, following = shard.engine.scroll(request)
        return [UUID(str(record.id)) for record in records], following

    def _held(self, name: str, version_id: str | None, offset: Any) -> tuple[list[Held], Any]:
        shard = self._shard(name)
        if shard is None:
            return [], None
        request = ScrollRequest(
            offset=offset,
            limit=_PAGE,
            filter=None if version_id is None else _version(version_id),
            with_payload=["version", *INTEGERS],
            with_vector=False,
        )
        records, following = shard.engine.scroll(request)
        return [held(record.id, record.payload) for record in records], following

    def _drop(self, name: str) -> Path | None:
        """Rename, to be removed: a crash between leaves a name that the next start clears away."""
        shard = self._open.pop(name, None)
        if shard is not None:
            shard.engine.close()
        if (self._root / name).is_dir():
            aside = self._root / f"{_UNFINISHED}{name}.{uuid4().hex}"
            (self._root / name).rename(aside)
            return aside
        return None

    def _names(self) -> list[str]:
        return sorted(
            entry.name
            for entry in self._root.iterdir()
            if entry.is_dir() and not entry.name.startswith(_UNFINISHED)
        )

    def _close(self) -> None:
        while self._open:
            _, shard = self._open.popitem()
            shard.engine.flush()
            shard.engine.close()


def _lock(path: Path) -> Any:
    """Hold the file until close or death; the engine's own lock speaks only at the first search."""
    held = path.open("a+")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        held.seek(0)
        owner = held.read().strip()
        held.close()
        raise IndexInUse(f"the vectors in {path.parent} are open in process {owner}") from error
    held.truncate(0)
    held.write(str(os.getpid()))
    held.flush()
    return held


def _index_payload(shard: EdgeShard) -> None:
    """Indexes come before the first point: afterwards each costs a pass over all points."""
    for field in KEYWORDS:
        shard.update(UpdateOperation.create_field_index(field, PayloadSchemaType.Keyword))
    for field in INTEGERS:
        shard.update(UpdateOperation.create_field_index(field, PayloadSchemaType.Integer))


def _version(version_id: str) -> Filter:
    return Filter(must=[FieldCondition("version", match=MatchValue(version_id))])


def _filter(wanted: Conditions) -> Filter:
    must: list[Any] = [_any(c) for c in wanted.equal]
    if wanted.moment is not None:
        started, ends = RangeFloat(lte=wanted.moment), RangeFloat(gt=wanted.moment)
        spans: list[Any] = [
            Filter(
                must=[
                    FieldCondition(f"from_{slot}", range=started),
                    FieldCondition(f"until_{slot}", range=ends),
                ]
            )
            for slot in range(SPANS)
        ]
        must.append(Filter(should=[*spans, _any(wanted.also)] if wanted.also else spans))
    return Filter(must=must, must_not=[_any(wanted.without)] if wanted.without else None)


def _any(condition: Condition) -> FieldCondition:
    return FieldCondition(condition.field, match=MatchAny(list(condition.values)))
