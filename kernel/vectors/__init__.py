"""The seam to the vector engine: what a point is, how it is filtered, what every engine must do.

A collection holds one project's passages of one generation (`collection_name`). Which generation
is the live one is said by a row in Postgres, never by the engine. Engines: `EdgeIndex` (embedded),
`QdrantIndex` (a server), `MemoryIndex` (exact, for tests and small bases): one suite for all.
"""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol
from uuid import UUID, uuid5

import numpy as np
from numpy.typing import NDArray

from kernel.errors import KbError

Window = tuple[datetime, datetime | None]
"""A span of valid time [from, until); no `until`: open."""

_POINTS = UUID("6f1d0c0e-5f0b-5f57-9d39-4c1f0a7b2e11")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


class UnknownCollection(KbError):
    """A write went to a collection that was never created, or is gone."""


class WrongDimension(KbError):
    """The vectors do not have the dimension of the collection, or are not finite numbers."""


class IndexInUse(KbError):
    """Another process has the embedded vectors open: only one may."""


@dataclass(frozen=True, slots=True)
class Point:
    """A passage as the vector engine stores it. It holds no text: an engine's files keep what was
    deleted, and `chunk_id` would say the headings.

    `vector`: float32, shape (dim,), any length (cosine). `windows` is for a version with several
    spans of validity, empty: the one span [`valid_from`, `valid_until`). All times are aware.
    """

    point_id: UUID
    vector: NDArray[np.float32]
    version_id: str
    document_id: str
    project: str
    language: str
    heading_path: tuple[str, ...]
    valid_from: datetime
    valid_until: datetime | None
    windows: tuple[Window, ...] = ()

    @property
    def spans(self) -> tuple[Window, ...]:
        """All spans of validity."""
        return self.windows or ((self.valid_from, self.valid_until),)


@dataclass(frozen=True, slots=True)
class VectorFilter:
    """What may be found. Conditions are joined by AND; an empty one says nothing.

    `as_of` is needed unless `include_historical`: the caller's now, for the current passages. With
    `include_historical`, `as_of` is not looked at: every version that is stored may be found.
    `heading_prefix`: the passage stands under these headings, from the outermost. `versions`: only
    these; None: any. `also`: versions for which `as_of` does not matter; `without`: none of these.
    """

    as_of: datetime | None = None
    include_historical: bool = False
    languages: frozenset[str] = frozenset()
    documents: frozenset[str] = frozenset()
    heading_prefix: tuple[str, ...] = ()
    versions: frozenset[str] | None = None
    also: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.as_of is None and not self.include_historical:
            raise ValueError("say as_of (now, for what is current) or include_historical")
        if self.as_of is not None and self.as_of.tzinfo is None:
            raise ValueError("as_of needs a time zone")

    @property
    def moment(self) -> datetime | None:
        """The instant that a passage must be valid at; None: any."""
        return None if self.include_historical else self.as_of

    @property
    def empty(self) -> bool:
        """Nothing passes."""
        return self.versions is not None and not self.versions


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A found passage; `score` is the cosine similarity, -1 to 1."""

    point_id: UUID
    version_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Held:
    """What an engine stores of a passage beside its vector; `slots` as `payload.slots` makes them
    of the spans of validity."""

    point_id: UUID
    version_id: str
    slots: dict[str, int | None]


class VectorIndex(Protocol):
    """A vector engine. Every method may raise `kernel.errors.Retry` when the engine is away."""

    async def create(self, collection: str, dim: int) -> None:
        """Make the collection if it is missing; raises WrongDimension if it has another `dim`."""
        ...

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """Store or replace; durable on return. Raises UnknownCollection, WrongDimension."""
        ...

    async def search(
        self, collection: str, vector: NDArray[np.float32], flt: VectorFilter, limit: int
    ) -> list[VectorHit]:
        """The `limit` most similar that pass `flt`, best first; [] for an unknown collection.

        May hold a passage that is not valid (a version with more than `SPANS` spans), never miss
        a valid one: Postgres has the last word.
        """
        ...

    async def set_validity(
        self, collection: str, version_id: str, windows: Sequence[Window]
    ) -> None:
        """Replace all spans of all points of a version; none: found only with all history."""
        ...

    async def delete_version(self, collection: str, version_id: str) -> None:
        """Forget all points of a version."""
        ...

    async def delete_points(self, collection: str, ids: Sequence[UUID]) -> None:
        """Forget these points; no harm if there are none."""
        ...

    async def count(self, collection: str) -> int:
        """Exact number of points; 0 for an unknown collection."""
        ...

    async def ids(self, collection: str) -> list[UUID]:
        """All point ids, in ascending order; [] for an unknown collection."""
        ...

    def held(self, collection: str, version_id: str | None = None) -> AsyncIterator[list[Held]]:
        """All points, or those of a version, some at a time; none for an unknown collection."""
        ...

    async def drop(self, collection: str) -> None:
        """Remove a collection and all its points; no harm if there is none."""
        ...

    async def collections(self) -> list[str]:
        """Names of all collections, sorted."""
        ...

    async def close(self) -> None:
        """Let go of files and connections. What was stored stays."""
        ...


def point_id(version_id: str, chunk_id: str) -> UUID:
    """The id of a passage in every collection: the same at every re-indexing."""
    return uuid5(_POINTS, f"{version_id}\x1f{chunk_id}")


def collection_name(project: str, generation: int) -> str:
    """The name of a project's collection of one generation."""
    return checked_name(f"{project}__g{generation}")


def checked_name(collection: str) -> str:
    """The same name; ValueError if it could be more than a name (it becomes a folder)."""
    if not _NAME.fullmatch(collection):
        raise ValueError("a collection is named by 1 to 128 of A-Z a-z 0-9 _ -")
    return collection


def open_index(*, root: Path, url: str = "", api_key: str = "") -> VectorIndex:
    """The server at `url` if there is one, else the embedded engine with its files under `root`.

    Raises IndexInUse if another process has `root` open.
    """
    if url:
        from kernel.vectors.server import QdrantIndex

        return QdrantIndex(url, api_key=api_key)
    from kernel.vectors.edge import EdgeIndex

    return EdgeIndex(root)
