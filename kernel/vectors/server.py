"""A Qdrant server (or cluster) by its REST API."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from kernel.errors import Retry
from kernel.vectors import (
    Held,
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
    looked_at,
    payload,
    plain,
    ranked,
    slots,
)

T = TypeVar("T")

_BATCH = 256
_PAGE = 10_000
_HELD = 1_000


class QdrantIndex:
    """A `VectorIndex` on a server; its collections are named `kb_…`, others are left alone.

    A server that is away, too busy or answers 5xx is a `Retry`; every other refusal is a bug.
    """

    def __init__(
        self, url: str, *, api_key: str = "", prefix: str = "kb_", timeout_s: int = 30
    ) -> None:
        self._prefix = prefix
        self._dims: dict[str, int] = {}
        self._client = AsyncQdrantClient(
            url=url,
            api_key=api_key or None,
            timeout=timeout_s,
            check_compatibility=False,  # it would call the server before the first await
        )

    async def create(self, collection: str, dim: int) -> None:
        """Idempotent, also after a crash half-way and beside another process."""
        name = self._name(collection)
        vectors = models.VectorParams(size=dim, distance=models.Distance.COSINE)
        if await self._dim(collection) is None:
            await _call(self._client.create_collection(name, vectors_config=vectors), 409)
        if (held := await self._dim(collection)) != dim:
            raise WrongDimension(f"{collection} has dimension {held}, not {dim}")
        for field in (*KEYWORDS, *INTEGERS):
            kind = "keyword" if field in KEYWORDS else "integer"
            schema = models.PayloadSchemaType(kind)
            await _call(self._client.create_payload_index(name, field, field_schema=schema))

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        dim = await self._dim(collection)
        if dim is None:
            raise UnknownCollection(collection)
        for point in points:
            check_vector(point.vector, dim)
        rows = [
            models.PointStruct(id=str(p.point_id), vector=plain(p.vector, dim), payload=payload(p))
            for p in points
        ]
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            stored = self._client.upsert(self._name(collection), points=batch, wait=True)
            if await _call(stored, 404) is None:
                self._dims.pop(collection, None)
                raise UnknownCollection(collection)

    async def search(
        self, collection: str, vector: NDArray[np.float32], flt: VectorFilter, limit: int
    ) -> list[VectorHit]:
        dim = await self._dim(collection)
        if dim is None or limit < 1 or flt.empty:
            return []
        request = self._client.query_points(
            self._name(collection),
            query=plain(vector, dim),
            query_filter=_filter(conditions(flt)),
            limit=limit,
            with_payload=["version"],
            search_params=models.SearchParams(hnsw_ef=looked_at(limit)),
        )
        reply = await _call(request, 404)
        return [] if reply is None else ranked(hit(p.id, p.payload, p.score) for p in reply.points)

    async def set_validity(
        self, collection: str, version_id: str, windows: Sequence[Window]
    ) -> None:
        name, wanted = self._name(collection), _version(version_id)
        change = self._client.set_payload(name, payload=slots(windows), points=wanted, wait=True)
        await _call(change, 404)

    async def delete_version(self, collection: str, version_id: str) -> None:
        selector = models.FilterSelector(filter=_version(version_id))
        removal = self._client.delete(self._name(collection), points_selector=selector, wait=True)
        await _call(removal, 404)

    async def delete_points(self, collection: str, ids: Sequence[UUID]) -> None:
        name = self._name(collection)
        for start in range(0, len(ids), _PAGE):
            selector = models.PointIdsList(points=[str(i) for i in ids[start : start + _PAGE]])
            await _call(self._client.delete(name, points_selector=selector, wait=True), 404)

    async def count(self, collection: str) -> int:
        reply = await _call(self._client.count(self._name(collection), exact=True), 404)
        return 0 if reply is None else reply.count

    async def ids(self, collection: str) -> list[UUID]:
        found: list[UUID] = []
        offset: Any = None
        while True:
            page = self._client.scroll(
                self._name(collection),
                limit=_PAGE,
                offset=offset,
                with_payload=False,
                with_vectors=False,
            )
            records, offset = await _call(page, 404) or ([], None)
            found += [UUID(str(record.id)) for record in records]
            if offset is None:
                return sorted(found)

    async def held(
        self, collection: str, version_id: str | None = None
    ) -> AsyncIterator[list[Held]]:
        offset: Any = None
        while True:
            page = self._client.scroll(
                self._name(collection),
                scroll_filter=None if version_id is None else _version(version_id),
                limit=_HELD,
                offset=offset,
                with_payload=["version", *INTEGERS],
                with_vectors=False,
            )
            records, offset = await _call(page, 404) or ([], None)
            yield [held(record.id, record.payload) for record in records]
            if offset is None:
                return

    async def drop(self, collection: str) -> None:
        self._dims.pop(collection, None)
        await _call(self._client.delete_collection(self._name(collection)), 404)

    async def collections(self) -> list[str]:
        reply = await _call(self._client.get_collections())
        names = [held.name for held in reply.collections] if reply else []
        return sorted(
            name.removeprefix(self._prefix) for name in names if name.startswith(self._prefix)
        )

    async def close(self) -> None:
        await self._client.close()

    def _name(self, collection: str) -> str:
        return self._prefix + checked_name(collection)

    async def _dim(self, collection: str) -> int | None:
        """The dimension of a collection, asked once; None: there is no such collection."""
        name = self._name(collection)
        if collection not in self._dims:
            info = await _call(self._client.get_collection(name), 404)
            if info is None:
                return None
            self._dims[collection] = _size(info.config.params.vectors)
        return self._dims[collection]


def _size(vectors: object) -> int:
    if not isinstance(vectors, models.VectorParams):
        raise WrongDimension("the collection was not made by this program: no plain vectors")
    return vectors.size


async def _call(request: Awaitable[T], *expected: int) -> T | None:
    """The reply; None for an `expected` status; Retry when the server is away or too busy."""
    try:
        return await request
    except UnexpectedResponse as error:
        if error.status_code in expected:
            return None
        if (error.status_code or 500) >= 500:
            raise Retry(f"the vector server answered {error.status_code}") from error
        raise
    except ResourceExhaustedResponse as error:
        raise Retry("the vector server is too busy", after=error.retry_after_s) from error
    except ResponseHandlingException as error:
        raise Retry(f"the vector server is away: {error.source!r}") from error


def _version(version_id: str) -> models.Filter:
    return models.Filter(
        must=[models.FieldCondition(key="version", match=models.MatchValue(value=version_id))]
    )


def _filter(wanted: Conditions) -> models.Filter:
    must: list[models.Condition] = [_any(c) for c in wanted.equal]
    if wanted.moment is not None:
        started, ends = models.Range(lte=wanted.moment), models.Range(gt=wanted.moment)
        spans: list[models.Condition] = [
            models.Filter(
                must=[
                    models.FieldCondition(key=f"from_{slot}", range=started),
                    models.FieldCondition(key=f"until_{slot}", range=ends),
                ]
            )
            for slot in range(SPANS)
        ]
        must.append(models.Filter(should=[*spans, _any(wanted.also)] if wanted.also else spans))
    return models.Filter(must=must, must_not=[_any(wanted.without)] if wanted.without else None)


def _any(condition: Condition) -> models.FieldCondition:
    return models.FieldCondition(
        key=condition.field, match=models.MatchAny(any=list(condition.values))
    )
