"""Writes a project's two indexes together: Postgres rows for keywords, points for vectors."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from contracts.artifacts import Chunk, ChunkManifest, embedded_text
from contracts.events import Chunked, Event, Reinstated, Superseded, Window
from kernel.blobs import Blobs, sha256
from kernel.cache import EmbeddingCache
from kernel.clearance import Texts
from kernel.db import queries
from kernel.embedder import Embedder
from kernel.errors import KbError
from kernel.keywords import analyse, tsvector
from kernel.log import Log
from kernel.vectors import Point, VectorFilter, VectorIndex, collection_name, point_id

Vectors = NDArray[np.float32]
SLICE = 64
"""Passages that are embedded before their vectors are put into the cache."""
WRITTEN = 1024
"""Passages that are written together."""
SAME = 0.99
"""Cosine above which two vectors are of one text, rounding of the engine allowed for."""


class WrongBytes(KbError):
    """Stored bytes are not those that were announced, or a chunk is not in its body: the write is
    refused."""


@dataclass(frozen=True)
class Generation:
    """One state of a project's index, and the model of its vectors."""

    project: str
    number: int
    embedder: str
    dim: int

    @property
    def collection(self) -> str:
        """Name in the vector engine."""
        return collection_name(self.project, self.number)


@dataclass(frozen=True)
class Written:
    """How many passages a write embedded, and how many vectors it found in the cache."""

    embedded: int
    reused: int


@dataclass(frozen=True)
class Passages:
    """A version's passages, ready to be written: chunks and vectors in one order."""

    event: Chunked
    manifest: ChunkManifest
    body: bytes
    vectors: Vectors
    windows: tuple[Window, ...]
    valid_from: datetime

    def ids(self) -> set[UUID]:
        """Of all points."""
        return {point_id(self.event.version_id, c.chunk_id) for c in self.manifest.chunks}

    def parts(self) -> Iterator["Part"]:
        """What is written at once: a version may have hundreds of thousands of passages."""
        for first in range(0, len(self.manifest.chunks), WRITTEN):
            yield Part(self, first, self.manifest.chunks[first : first + WRITTEN])


@dataclass(frozen=True)
class Part:
    """Some of a version's passages; `first`: their number before these."""

    passages: Passages
    first: int
    chunks: Sequence[Chunk]

    def points(self) -> list[Point]:
        """What the vector engine stores."""
        event, valid_from = self.passages.event, self.passages.valid_from
        spans = tuple((w.valid_from, w.valid_until) for w in self.passages.windows)
        return [
            Point(
                point_id=point_id(event.version_id, chunk.chunk_id),
                vector=self.passages.vectors[number],
                chunk_id=chunk.chunk_id,
                version_id=event.version_id,
                document_id=event.document_id,
                project=event.project,
                language=chunk.language,
                heading_path=chunk.heading_path,
                valid_from=valid_from,
                valid_until=None,
                windows=spans,
            )
            for number, chunk in enumerate(self.chunks, self.first)
        ]

    def rows(self, generation: int) -> list[dict[str, Any]]:
        """What `read.chunk` stores."""
        event, manifest = self.passages.event, self.passages.manifest
        version = {
            "project": event.project,
            "generation": generation,
            "version_id": event.version_id,
            "document_id": event.document_id,
            "source_id": event.source_id,
            "title": manifest.title,
        }
        texts = texts_of(manifest.title, self.passages.body, self.chunks)
        return [
            version | _row(n, chunk, text, point_id(event.version_id, chunk.chunk_id))
            for n, (chunk, text) in enumerate(zip(self.chunks, texts, strict=True), self.first)
        ]


def _row(ordinal: int, chunk: Chunk, text: str, id_: UUID) -> dict[str, Any]:
    words = analyse(text, chunk.language)
    return {
        "chunk_id": chunk.chunk_id,
        "ordinal": ordinal,
        "heading_path": list(chunk.heading_path),
        "byte_start": chunk.byte_start,
        "byte_end": chunk.byte_end,
        "text": text,
        "language": chunk.language,
        "terms": tsvector(words),
        "term_count": len(words),
        "point_id": id_,
    }


class Index:
    """The two indexes of all projects. Every write is idempotent."""

    def __init__(
        self,
        event_log: Log,
        blobs: Blobs,
        embedder: Embedder,
        vectors: VectorIndex,
    ) -> None:
        self.embedder = embedder
        self.vectors = vectors
        self.log = event_log
        self._blobs = blobs
        self._cache = EmbeddingCache(event_log.pool)
        self.sql = queries("services.indexer", "store")

    async def write(self, event: Chunked, valid_from: datetime) -> Written:
        """Put a version's passages into the live generation of its project, vectors first.

        Raises:
            WrongBytes: a chunk does not match its body.
        """
        generation = await self.live(event.project)
        passages, written = await self.passages(event, valid_from)
        while True:
            async with self.writing(event.project) as connection:
                now = await self._live(connection, event.project)
                if now == generation:
                    await self.put(connection, generation, passages)
                    return written
            generation = now or await self.live(event.project)

    async def passages(self, event: Chunked, valid_from: datetime) -> tuple[Passages, Written]:
        """Read a version's passages from the blobs, and embed what no cache has.

        Raises:
            WrongBytes: the store has other bytes than those that the event names, or a manifest of
                another body.
        """
        manifest = ChunkManifest.model_validate_json(await self._blob(event.chunks_sha256))
        body = await self._blob(event.body_sha256)
        if manifest.body_sha256 != event.body_sha256:
            raise WrongBytes(f"{event.chunks_sha256[:12]} is about another body")
        vectors, written = await self._embed(manifest, body)
        windows = await self._windows(event.document_id)
        mine = tuple(w for w in windows if w.version_id == event.version_id)
        return Passages(event, manifest, body, vectors, mine, valid_from), written

    async def put(self, connection: Any, generation: Generation, passages: Passages) -> None:
        """Write passages into a generation; the version's earlier rows there are replaced."""
        version = {
            "project": generation.project,
            "generation": generation.number,
            "version_id": passages.event.version_id,
        }
        old = {r["point_id"] async for r in self.sql.points_of(connection, **version)}
        if old - passages.ids():  # another cut: points of the last one would stay
            await self.vectors.delete_version(generation.collection, passages.event.version_id)
        await self.sql.drop_version_in(connection, **version)
        for part in passages.parts():
            rows = await asyncio.to_thread(part.rows, generation.number)
            await self.vectors.upsert(generation.collection, part.points())
            await self.sql.put_chunks(connection, rows)

    async def restore(self, event: Event) -> Texts:
        """Make the index say of a version what the log says: an attempt at it wrote passages and
        was then cancelled, or its text was taken back. Returns what the log says."""
        streams = [f"document-{event.document_id}", f"version-{event.version_id}"]
        envelopes = await self.log.streams(streams)
        texts = Texts(e for e in envelopes if e.data["version_id"] == event.version_id)
        if cut := texts.searchable:
            received = await self.log.received(event)
            await self.write(cut, received.valid_from)
        else:
            await self.erase(event.project, event.version_id)
        return texts

    async def revalidate(self, project: str, document_id: str) -> None:
        """Give the points of all versions of a document the windows that the log says."""
        async with self.writing(project) as connection:
            await self.respan(await self.kept(connection, project), document_id)

    async def respan(self, generations: Iterable[Generation], document_id: str) -> None:
        """As `revalidate`, in given generations, under a lock that the caller holds."""
        windows = await self._windows(document_id)
        spans: dict[str, list[tuple[datetime, datetime | None]]] = {}
        for w in windows:
            spans.setdefault(w.version_id, []).append((w.valid_from, w.valid_until))
        for generation in generations:
            for version_id, of_version in spans.items():
                await self.vectors.set_validity(generation.collection, version_id, of_version)

    async def forget(self, connection: Any, generation: Generation, version_id: str) -> None:
        """Remove a version from one generation."""
        await self.vectors.delete_version(generation.collection, version_id)
        await self.sql.drop_version_in(
            connection,
            project=generation.project,
            generation=generation.number,
            version_id=version_id,
        )

    async def finds(self, generation: Generation, text: str) -> bool:
        """Is a passage with the vector of `text` the first hit for it?"""
        known = await self._cache.get(self.embedder.model_id, [text])
        flt = VectorFilter(include_historical=True)
        hits = await self.vectors.search(generation.collection, known[text], flt, 1)
        return bool(hits) and hits[0].score > SAME

    async def left_over(self, connection: Any, project: str) -> AsyncIterator[Generation]:
        """Generations that are neither live nor of use: a crash left them."""
        async for r in self.sql.left_over(connection, project=project):
            yield Generation(project, r["generation"], r["embedder"], r["dim"])

    async def erase(self, project: str, version_id: str) -> None:
        """Remove a version from every generation that is kept."""
        async with self.writing(project) as connection:
            for generation in await self.kept(connection, project):
                await self.vectors.delete_version(generation.collection, version_id)
            await self.sql.drop_version(connection, project=project, version_id=version_id)

    async def live(self, project: str) -> Generation:
        """The generation that queries read; the first is made when it is asked for.

        Raises:
            EmbedderChanged: it holds another model's vectors; `kb rebuild` makes a new one.
        """
        found = await self._live(self.log.pool, project)
        if found is None:
            found = await self._first(project)
        if found.embedder != self.embedder.model_id:
            raise EmbedderChanged(
                f"{project} holds vectors of {found.embedder}, the embedder is now "
                f"{self.embedder.model_id}: run kb rebuild --project {project}"
            )
        return found

    async def new_generation(self, connection: Any, project: str, state: str) -> Generation:
        """The next generation, its collection made."""
        number = await self.sql.add_generation(
            connection, project=project, embedder=self.embedder.model_id, dim=self.embedder.dim,
            state=state,
        )  # fmt: skip
        generation = Generation(project, number, self.embedder.model_id, self.embedder.dim)
        await self.vectors.drop(generation.collection)  # left by a crash before its row was there
        await self.vectors.create(generation.collection, generation.dim)
        return generation

    async def kept(self, connection: Any, project: str) -> list[Generation]:
        """Generations that are live or being built."""
        rows = self.sql.generations(connection, project=project)
        return [Generation(project, r["generation"], r["embedder"], r["dim"]) async for r in rows]

    async def projects(self) -> list[str]:
        """Projects that have an index."""
        return [r["project"] async for r in self.sql.projects(self.log.pool)]

    @asynccontextmanager
    async def writing(self, project: str) -> AsyncIterator[Any]:
        """A transaction among other writers of the project; no switch of generations meanwhile."""
        async with self.log.pool.acquire() as connection, connection.transaction():
            await self.sql.share_project(connection, project=project)
            yield connection

    async def _first(self, project: str) -> Generation:
        async with self.log.pool.acquire() as connection, connection.transaction():
            await self.sql.own_project(connection, project=project)
            found = await self._live(connection, project)
            if found is None:
                found = await self.new_generation(connection, project, "live")
                await self.sql.activate(connection, project=project, generation=found.number)
            return found

    async def _live(self, connection: Any, project: str) -> Generation | None:
        row = await self.sql.live(connection, project=project)
        return row and Generation(project, row["generation"], row["embedder"], row["dim"])

    async def _windows(self, document_id: str) -> tuple[Window, ...]:
        """The line of a document's versions, as the log last said it."""
        for envelope in reversed(await self.log.stream(f"document-{document_id}")):
            event = envelope.event()
            if isinstance(event, Superseded | Reinstated):
                return event.windows
        return ()

    async def _blob(self, name: str) -> bytes:
        data = await self._blobs.get(name)
        if sha256(data) != name:
            raise WrongBytes(f"the bytes of {name[:12]} changed in the store")
        return data

    async def _embed(self, manifest: ChunkManifest, body: bytes) -> tuple[Vectors, Written]:
        """Vectors of all passages, of shape (passages, dim)."""
        chunks, embedded = manifest.chunks, 0
        vectors = np.empty((len(chunks), self.embedder.dim), np.float32)
        for first in range(0, len(chunks), WRITTEN):
            part = chunks[first : first + WRITTEN]
            texts = texts_of(manifest.title, body, part)
            known, new = await self._known(texts)
            vectors[first : first + len(part)] = np.stack([known[text] for text in texts])
            embedded += new
        return vectors, Written(embedded, len(chunks) - embedded)

    async def _known(self, texts: Sequence[str]) -> tuple[dict[str, NDArray[np.float32]], int]:
        """Vectors by text, and how many of them are new."""
        model = self.embedder.model_id
        known = await self._cache.get(model, texts)
        new = list(dict.fromkeys(t for t in texts if t not in known))
        for start in range(0, len(new), SLICE):  # what is embedded is kept, whatever happens next
            texts_now = new[start : start + SLICE]
            vectors = await self.embedder.embed_documents(texts_now)
            await self._cache.put(model, texts_now, vectors)
            known |= dict(zip(texts_now, vectors, strict=True))
        return known, len(new)


class EmbedderChanged(KbError):
    """The live generation was made by another model."""


def texts_of(title: str, body: bytes, chunks: Sequence[Chunk]) -> list[str]:
    """What is embedded of chunks. Raises as `slices`."""
    return [
        embedded_text(title, chunk.heading_path, chunk.context, passage)
        for chunk, passage in zip(chunks, slices(body, chunks), strict=True)
    ]


def slices(body: bytes, chunks: Iterable[Chunk]) -> list[str]:
    """The passages by their byte ranges.

    Raises:
        WrongBytes: a range is outside the body, or cuts a character.
    """
    passages = []
    for chunk in chunks:
        passage = body[chunk.byte_start : chunk.byte_end]
        if len(passage) != chunk.byte_end - chunk.byte_start:
            raise WrongBytes(f"{chunk.chunk_id} ends after its body")
        try:
            passages.append(passage.decode())
        except UnicodeDecodeError as error:
            raise WrongBytes(f"{chunk.chunk_id} cuts a character") from error
    return passages
