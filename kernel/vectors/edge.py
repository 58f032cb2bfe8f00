"""The embedded vector engine: one folder a collection, one thread, one process."""

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import numpy as np
import structlog
from numpy.typing import NDArray
from qdrant_edge import (
    CountRequest,
    EdgeShard,
    FieldCondition,
    Filter,
    MatchAny,
    MatchValue,
    Query,
    QueryRequest,
    RangeFloat,
    ScrollRequest,
    SearchParams,
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
from kernel.vectors.graph import (
    SHARD,
    Child,
    Journal,
    NoGraph,
    Rows,
    edge_points,
    exchange,
    make_shard,
    settle,
)
from kernel.vectors.payload import (
    INTEGERS,
    SPANS,
    Condition,
    Conditions,
    check_vector,
    conditions,
    held,
    hit,
    looked_at,
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
_DIM = "dim"
_UNFINISHED = "."  # a folder with this prefix is being made or removed
_FEW = 256  # written meanwhile: brought over in one go with the exchange

log = structlog.get_logger()

GRAPH_FROM = 1 << 40
"""Points without a graph from which on one is built: never, for now. The graph of 100,000 passages
in eight languages found 89 % of the true 50 where 98 % are wanted, and of some questions nothing
(eval/RESULTS.md, Speed of questions): exact search stays until one does."""


@dataclass
class _Shard:
    """An open collection; `written`: points since the last flush. `linked`, `unlinked`:
    points with and without a graph, about. `journal`: what is written, while one is built."""

    engine: EdgeShard
    dim: int
    written: int = 0
    linked: int = 0
    unlinked: int = 0
    journal: Journal | None = None

    def note(self, *, version: str | None = None, points: Sequence[str] = ()) -> None:
        """So much is written now."""
        if self.journal is not None:
            self.journal.points.update(points)
            self.journal.versions.update(() if version is None else (version,))

    @property
    def due(self) -> bool:
        """So many are without a graph that one pays, and they are not few beside the others."""
        return self.journal is None and self.unlinked >= max(GRAPH_FROM, self.linked // 2)


class EdgeIndex:
    """A `VectorIndex` on qdrant-edge, whose calls block and hold the GIL for milliseconds.

    All calls run in one thread, writes in slices, so that a search waits for one slice at most.
    Segments are never optimised here: that would stop the whole process for minutes. A collection
    of over `GRAPH_FROM` points gets its graph from another process (`graph`), one at a time; until
    then, and where few pass the filter, search is exact. Raises IndexInUse if `root` is open
    already.
    """

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._lock = _lock(root / "lock")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vectors")
        self._open: dict[str, _Shard] = {}
        self._building: asyncio.Task[None] | None = None
        for left in root.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left)

    async def create(self, collection: str, dim: int) -> None:
        await self._run(self._create, checked_name(collection), dim)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        name = checked_name(collection)
        await self._run(self._check, name, points)
        for start in range(0, len(points), _SLICE):
            await self._run(self._upsert, name, points[start : start + _SLICE])
        self._grow(name)

    async def search(
        self, collection: str, vector: NDArray[np.float32], flt: VectorFilter, limit: int
    ) -> list[VectorHit]:
        name = checked_name(collection)
        hits = await self._run(self._search, name, vector, flt, limit)
        self._grow(name)
        return hits

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
        if self._building is not None:
            self._building.cancel()
            with suppress(asyncio.CancelledError):
                await self._building
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
            settle(folder)
            engine = EdgeShard.load(str(folder / SHARD))
            info = engine.info()
            linked = min(info.indexed_vectors_count, info.points_count)
            unlinked = info.points_count - linked
            self._open[name] = _Shard(engine, dim, linked=linked, unlinked=unlinked)
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
        shard = make_shard(aside / SHARD, dim)
        (aside / _DIM).write_text(str(dim))
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
        shard.note(points=[str(p.point_id) for p in points])
        shard.engine.update(UpdateOperation.upsert_points(rows))
        shard.written += len(rows)
        shard.unlinked += len(rows)
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
            params=SearchParams(hnsw_ef=looked_at(limit)),
        )
        return ranked(hit(p.id, p.payload, p.score) for p in shard.engine.query(request))

    def _set_validity(self, name: str, version_id: str, windows: Sequence[Window]) -> None:
        shard = self._shard(name)
        if shard is not None:
            shard.note(version=version_id)
            operation = UpdateOperation.set_payload_by_filter(_version(version_id), slots(windows))
            shard.engine.update(operation)

    def _delete_version(self, name: str, version_id: str) -> None:
        shard = self._shard(name)
        if shard is not None:
            shard.note(version=version_id)
            shard.engine.update(UpdateOperation.delete_points_by_filter(_version(version_id)))

    def _delete_points(self, name: str, ids: Sequence[UUID]) -> None:
        shard = self._shard(name)
        if shard is not None:
            shard.note(points=[str(i) for i in ids])
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

    def _grow(self, name: str) -> None:
        """Begin to build a graph if it is time; one at a time."""
        shard = self._open.get(name)
        busy = self._building is not None and not self._building.done()
        if shard is not None and not busy and not self._lock.closed and shard.due:
            shard.journal = Journal()
            self._building = asyncio.create_task(self._build(name, shard))

    async def _build(self, name: str, shard: _Shard) -> None:
        """A copy of the collection with a graph takes its place; else all is as it was."""
        aside, engines = self._root / f"{_UNFINISHED}{name}.{uuid4().hex}", list[EdgeShard]()
        log.info("vectors.graph_begun", collection=name, points=shard.unlinked)
        try:
            offset: Any = None
            async with Child(aside, shard.dim) as child:
                while True:
                    rows, offset = await self._run(self._rows, name, shard, offset)
                    await child.send(rows)
                    if offset is None:
                        break
                await child.finish()
            engines.append(await self._run(EdgeShard.load, str(aside)))
            while await self._run(self._brought_over, name, shard, engines[0]):
                pass
            left = await self._run(self._exchange, name, shard, engines, aside)
            await asyncio.to_thread(shutil.rmtree, left)
            log.info("vectors.graph_built", collection=name)
        except (NoGraph, OSError) as error:
            log.warning("vectors.no_graph", collection=name, error=str(error)[:300])
        finally:
            shard.journal, shard.unlinked = None, 0  # not again before as many more are written
            for engine in engines:
                await self._run(engine.close)
            await asyncio.to_thread(shutil.rmtree, aside, ignore_errors=True)

    def _same(self, name: str, shard: _Shard) -> Journal:
        if self._open.get(name) is not shard or shard.journal is None:
            raise NoGraph("the collection was dropped meanwhile")
        return shard.journal

    def _rows(self, name: str, shard: _Shard, offset: Any) -> tuple[Rows, Any]:
        """Some points, with all that the engine has of them."""
        self._same(name, shard)
        request = ScrollRequest(offset=offset, limit=_SLICE, with_payload=True, with_vector=True)
        records, following = shard.engine.scroll(request)
        return _all_of(records), following

    def _brought_over(self, name: str, shard: _Shard, new: EdgeShard) -> bool:
        """Bring over a slice of what was written meanwhile. Is there more than a few?"""
        journal = self._same(name, shard)
        points = [journal.points.pop() for _ in range(min(_SLICE, len(journal.points)))]
        for version in [journal.versions.pop() for _ in range(min(1, len(journal.versions)))]:
            new.update(UpdateOperation.delete_points_by_filter(_version(version)))
            # by their ids: a version may have many passages
            points += _ids_of(shard.engine, version)
        for first in range(0, len(points), _SLICE):
            part: list[Any] = points[first : first + _SLICE]
            found = _all_of(shard.engine.retrieve(part, with_payload=True, with_vector=True))
            if gone := sorted(set(part) - {id_ for id_, _, _ in found}):
                new.update(UpdateOperation.delete_points(gone))
            if found:
                new.update(UpdateOperation.upsert_points(edge_points(found)))
        return len(journal) > _FEW

    def _exchange(self, name: str, shard: _Shard, engines: list[EdgeShard], aside: Path) -> Path:
        """The last of what was written, then the new shard instead of the old one; nobody writes
        in between, since all writes run in this thread. Returns what is left of the old one."""
        (new,) = engines
        while len(self._same(name, shard)):
            self._brought_over(name, shard, new)
        counted = [e.count(CountRequest(exact=True)) for e in (shard.engine, new)]
        if counted[0] != counted[1]:
            raise NoGraph(f"{counted[1]} points instead of {counted[0]}")
        new.flush()
        new.close()
        engines.clear()
        shard.engine.flush()
        shard.engine.close()
        del self._open[name]
        left = exchange(self._root / name, aside)
        # out of the collection: whoever opens it next would remove it too, at the same time
        return left.rename(self._root / f"{_UNFINISHED}{name}.{uuid4().hex}")

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


def _all_of(records: Sequence[Any]) -> Rows:
    return [(str(r.id), dict(r.payload or {}), list(r.vector)) for r in records]


def _ids_of(engine: EdgeShard, version_id: str) -> list[str]:
    """Of all points of a version."""
    found, offset = list[str](), None
    while True:
        request = ScrollRequest(
            offset=offset,
            limit=_IDS,
            filter=_version(version_id),
            with_payload=False,
            with_vector=False,
        )
        records, offset = engine.scroll(request)
        found += [str(record.id) for record in records]
        if offset is None:
            return found


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
