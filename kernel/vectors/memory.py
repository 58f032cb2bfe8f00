"""Exact search over arrays in memory: the reference that the engines are held against."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

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
    SPANS,
    Condition,
    Conditions,
    conditions,
    held,
    hit,
    payload,
    plain,
    ranked,
    slots,
)


@dataclass
class _Collection:
    dim: int
    vectors: dict[UUID, list[float]] = field(default_factory=dict)
    payloads: dict[UUID, dict[str, Any]] = field(default_factory=dict)


class MemoryIndex:
    """A `VectorIndex` that forgets everything with the process."""

    def __init__(self) -> None:
        self._collections: dict[str, _Collection] = {}

    async def create(self, collection: str, dim: int) -> None:
        made = self._collections.setdefault(checked_name(collection), _Collection(dim))
        if made.dim != dim:
            raise WrongDimension(f"{collection} has dimension {made.dim}, not {dim}")

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        into = self._collections.get(checked_name(collection))
        if into is None:
            raise UnknownCollection(collection)
        vectors = {point.point_id: plain(point.vector, into.dim) for point in points}
        into.vectors |= vectors
        into.payloads |= {point.point_id: payload(point) for point in points}

    async def search(
        self, collection: str, vector: NDArray[np.float32], flt: VectorFilter, limit: int
    ) -> list[VectorHit]:
        found = self._collections.get(checked_name(collection))
        if found is None or flt.empty:
            return []
        question = plain(vector, found.dim)
        wanted = conditions(flt)
        ids = [key for key, stored in found.payloads.items() if _passes(stored, wanted)]
        scores = _cosine(question, [found.vectors[key] for key in ids])
        hits = (hit(key, found.payloads[key], s) for key, s in zip(ids, scores, strict=True))
        return ranked(hits)[:limit]

    async def set_validity(
        self, collection: str, version_id: str, windows: Sequence[Window]
    ) -> None:
        replaced = slots(windows)
        for stored in self._of(collection).payloads.values():
            if stored["version"] == version_id:
                stored.update(replaced)

    async def delete_version(self, collection: str, version_id: str) -> None:
        held = self._of(collection)
        gone = [key for key, stored in held.payloads.items() if stored["version"] == version_id]
        for key in gone:
            del held.vectors[key], held.payloads[key]

    async def delete_points(self, collection: str, ids: Sequence[UUID]) -> None:
        held = self._of(collection)
        for key in ids:
            held.vectors.pop(key, None)
            held.payloads.pop(key, None)

    async def count(self, collection: str) -> int:
        return len(self._of(collection).vectors)

    async def ids(self, collection: str) -> list[UUID]:
        return sorted(self._of(collection).vectors)

    async def held(
        self, collection: str, version_id: str | None = None
    ) -> AsyncIterator[list[Held]]:
        found = [held(key, stored) for key, stored in self._of(collection).payloads.items()]
        yield [h for h in found if version_id in (None, h.version_id)]

    async def drop(self, collection: str) -> None:
        self._collections.pop(checked_name(collection), None)

    async def collections(self) -> list[str]:
        return sorted(self._collections)

    async def close(self) -> None:
        return None

    def _of(self, collection: str) -> _Collection:
        return self._collections.get(checked_name(collection), _Collection(0))


def _passes(stored: dict[str, Any], wanted: Conditions) -> bool:
    if not all(_holds(stored, condition) for condition in wanted.equal):
        return False
    if wanted.without and _holds(stored, wanted.without):
        return False
    if wanted.also and _holds(stored, wanted.also):
        return True
    moment = wanted.moment
    return moment is None or any(
        stored[f"from_{slot}"] is not None
        and stored[f"from_{slot}"] <= moment < stored[f"until_{slot}"]
        for slot in range(SPANS)
    )


def _holds(stored: dict[str, Any], condition: Condition) -> bool:
    value = stored[condition.field]
    held = value if isinstance(value, list) else [value]
    return any(v in condition.values for v in held)


def _cosine(question: list[float], vectors: list[list[float]]) -> list[float]:
    if not vectors:
        return []
    rows = np.asarray(vectors, dtype=np.float32)
    one = np.asarray(question, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(one)
    dots = rows @ one
    return [float(s) for s in np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)]
