"""Writes a project's two indexes together: Postgres rows for keywords, points for vectors."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from contracts.artifacts import Chunk, ChunkManifest, embedded_text
from contracts.events import Chunked, Erased, Event, Reinstated, Superseded, Window
from kernel.blobs import Blobs, sha256
from kernel.cache import EmbeddingCache
from kernel.clearance import Texts
from kernel.db import queries
from kernel.embedder import Embedder, Embedders, UnknownEmbedder
from kernel.errors import KbError, Retry
from kernel.keywords import analyse, tsvector
from kernel.log import Log
from kernel.projects import project_settings
from kernel.vectors import Point, VectorFilter, VectorIndex, collection_name, point_id
from services.indexer.chunker import CHUNKERS
from services.indexer.summaries import Extractive, Summariser

Vectors = NDArray[np.float32]
Span = tuple[datetime, datetime | None]
SLICE = 64
"""Passages that are embedded before their vectors are put into the cache."""
WRITTEN = 1024
"""Passages that are written together."""
SAME = 0.99
"""Cosine above which two vectors are of one text, rounding of the engine allowed for."""
WRITERS = 3
"""Writers at once: each holds a connection and needs another to read, and a rebuild wants three."""
_LINES = (Superseded.__name__, Reinstated.__name__, Erased.__name__)


class WrongBytes(KbError):
    """Stored bytes are not those that were announced, or a chunk is not in its body: the write is
    refused."""


@dataclass(frozen=True)
class Generation:
    """One state of a project's index; `embedder`: the model of its vectors, `chunker`: how it was
    cut, None: nobody knows."""

    project: str
    number: int
    embedder: str
    dim: int
    chunker: str | None = None
    state: str = field(default="live", compare=False)

    @property
    def collection(self) -> str:
        """Name in the vector engine."""
        return collection_name(self.project, self.number)

    @property
    def key(self) -> dict[str, Any]:
        """What names it in SQL."""
        return {"project": self.project, "generation": self.number}


@dataclass(frozen=True)
class Written:
    """By which model, how many passages a write embedded, and how many vectors were known."""

    embedder: str
    embedded: int
    reused: int


@dataclass(frozen=True)
class Line:
    """The windows of a document's versions, and the log position of the event that set them.

    `returned`: versions that the content returned to, the newest such return first.
    """

    windows: tuple[Window, ...] = ()
    at: int = 0
    returned: tuple[str, ...] = ()

    @property
    def versions(self) -> list[str]:
        """All of them; one that may have gained time comes before those that lost it."""
        mine = [w.version_id for w in self.windows]
        return list(dict.fromkeys([v for v in self.returned if v in mine] + mine))

    def moved(self, event: Superseded | Reinstated, position: int) -> "Line":
        """The line after an event that set it."""
        returned = self.returned
        if isinstance(event, Reinstated):
            returned = (event.version_id, *(v for v in returned if v != event.version_id))
        return Line(event.windows, position, returned)

    def without(self, version_id: str) -> "Line":
        """The line after a version was erased."""
        windows = tuple(w for w in self.windows if w.version_id != version_id)
        return replace(self, windows=windows)

    def spans(self, version_id: str) -> tuple[Span, ...]:
        """Those of one version."""
        mine = (w for w in self.windows if w.version_id == version_id)
        return tuple((w.valid_from, w.valid_until) for w in mine)


@dataclass(frozen=True)
class Passages:
    """A version's passages, ready to be written: chunks and vectors in one order."""

    event: Chunked
    manifest: ChunkManifest
    body: bytes
    vectors: Vectors
    valid_from: datetime
    written: Written

    @property
    def embedder(self) -> str:
        """The model of the vectors."""
        return self.written.embedder

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

    def points(self, spans: tuple[Span, ...]) -> list[Point]:
        """What the vector engine stores of a version with these windows."""
        event, valid_from = self.passages.event, self.passages.valid_from
        return [
            Point(
                point_id=point_id(event.version_id, chunk.chunk_id),
                vector=self.passages.vectors[number],
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
        embedders: Embedder | Embedders,
        vectors: VectorIndex,
    ) -> None:
        self.embedders = embedders if isinstance(embedders, Embedders) else Embedders(embedders)
        self.vectors = vectors
        self.log = event_log
        self.patience = 2.0
        """Seconds in which the read projection is waited for."""
        self.blobs = blobs
        self.summariser: Summariser = Extractive()
        self._cache = EmbeddingCache(event_log.pool)
        self._writers = asyncio.Semaphore(WRITERS)
        self.rebuilding: set[str] = set()
        """Projects whose rebuild runs in this process, or waits for another one."""
        self.one_rebuild = asyncio.Lock()
        self.sql = queries("services.indexer", "store")

    async def write(self, event: Chunked, valid_from: datetime, *, anew: bool = False) -> Written:
        """Put a version's passages into the live generation of its project, vectors first.

        Nothing is embedded or written if they are there already, unless `anew`.

        Raises:
            WrongBytes: a chunk does not match its body.
            EmbedderChanged: the generation holds vectors of a model that is not at hand.
        """
        await self.live(event.project)
        ready: Passages | None = None
        while True:
            async with self.writing(event.project, event.document_id) as connection:
                now = await self._live(connection, event.project)
                if now is None:
                    raise Retry("the index of the project was closed meanwhile")
                if not anew and await self.holds(connection, now, event):
                    return Written(now.embedder, 0, event.chunk_count)
                fit = ready if ready is not None and ready.embedder == now.embedder else None
                left = fit is not None and await self.put(connection, now, fit)
            if fit is not None:
                if left:
                    async with self.writing(event.project, event.document_id) as connection:
                        await self.tidy(connection, now, fit)
                return fit.written
            ready = await self.passages(event, valid_from, await self.embedder(now))

    async def embedder(self, generation: Generation) -> Embedder:
        """The model of its vectors.

        Raises:
            EmbedderChanged: this process has no such model.
        """
        try:
            return await self.embedders.of(generation.embedder)
        except UnknownEmbedder as error:
            raise EmbedderChanged(f"{generation.project}: {error}", after=30) from error

    async def passages(self, event: Chunked, valid_from: datetime, embedder: Embedder) -> Passages:
        """Read a version's passages from the blobs, and embed what no cache has.

        Raises:
            WrongBytes: the store has other bytes than those that the event names, or a manifest of
                another body.
        """
        made = ChunkManifest.model_validate_json(await self.blob(event.chunks_sha256))
        body = await self.blob(event.body_sha256)
        if made.body_sha256 != event.body_sha256:
            raise WrongBytes(f"{event.chunks_sha256[:12]} is about another body")
        vectors, written = await self._embed(event.version_id, made, body, embedder)
        return Passages(event, made, body, vectors, valid_from, written)

    async def holds(self, connection: Any, generation: Generation, event: Chunked) -> bool:
        """Does a generation hold exactly this cut of the version?"""
        held = await self.sql.placed(connection, **generation.key, version_id=event.version_id)
        return bool(held == event.chunks_sha256)

    async def put(
        self, connection: Any, generation: Generation, passages: Passages, *, first: bool = False
    ) -> bool:
        """Write passages into a generation, under the lock of `writing` on their document; the
        version's earlier rows there are replaced.

        Points of an earlier cut stay until the new rows are committed, so that a search finds the
        one or the other.

        Args:
            connection: with the lock.
            generation: which.
            passages: what.
            first: the version was never in this generation.

        Returns:
            Are there such points? Then `tidy` must follow, in another transaction.
        """
        event = passages.event
        version = generation.key | {"version_id": event.version_id}
        line = await self.line(event.document_id)
        if not first and await self.sql.placed(connection, **version):
            await self.sql.unsettle(self.log.pool, **version)  # vectors change before the rows do
        left = not first and bool(await self._points(generation, event) - passages.ids())
        await self.sql.drop_version_in(connection, **version)
        for part in passages.parts():
            rows = await asyncio.to_thread(part.rows, generation.number)
            points = part.points(line.spans(event.version_id))
            await self.vectors.upsert(generation.collection, points)
            await self.sql.put_chunks(connection, rows)
        await self.sql.place(
            connection,
            **version,
            document_id=event.document_id,
            chunks_sha256="" if left else event.chunks_sha256,
            passages=len(passages.manifest.chunks),
            windows_at=line.at,
        )
        return left

    async def tidy(self, connection: Any, generation: Generation, passages: Passages) -> None:
        """Delete the points of a version that have no row; under the lock of `writing`."""
        event = passages.event
        version = generation.key | {"version_id": event.version_id}
        rows = {r["point_id"] async for r in self.sql.points_of(connection, **version)}
        left = await self._points(generation, event) - rows
        await self.vectors.delete_points(generation.collection, sorted(left))
        if rows == passages.ids():  # nobody wrote another cut since
            await self.sql.settle(connection, **version, chunks_sha256=event.chunks_sha256)

    async def _points(self, generation: Generation, event: Chunked) -> set[UUID]:
        """What the vector engine holds of a version."""
        pages = self.vectors.held(generation.collection, event.version_id)
        return {held.point_id async for page in pages for held in page}

    async def restore(self, event: Event) -> Texts:
        """Make the index say of a version what the log says: an attempt at it wrote passages and
        was then cancelled, or its text was taken back. Returns what the log says."""
        texts = await self.texts(event)
        if cut := texts.searchable:
            received = await self.log.received(event)
            await self.write(cut, received.valid_from)
            await self._leave_standby(event)
        else:
            await self.erase(event.project, event.document_id, event.version_id)
        return texts

    async def texts(self, event: Event) -> Texts:
        """The texts of a version, receipts and erasures of its document included."""
        streams = [f"document-{event.document_id}", f"version-{event.version_id}"]
        envelopes = await self.log.streams(streams)
        return Texts(e for e in envelopes if e.data["version_id"] == event.version_id)

    async def revalidate(self, project: str, document_id: str) -> None:
        """Give the points of all versions of a document the windows that the log says.

        Not before the read projection has them: where it has newer ones than the vectors, a search
        knows (`read.line`); where it had older ones, a version that is valid there would be missed.

        Raises:
            Retry: the projection is behind for longer than `patience`.
        """
        while True:
            async with self.writing(project, document_id) as connection:
                line = await self.line(document_id)
                if await self.sql.projected(connection) >= line.at:
                    kept = await self.kept(connection, project)
                    await self.respan(connection, kept, document_id, line)
                    await self.sql.settle_line(
                        connection, document_id=document_id, position=line.at
                    )
                    return
            await self.projected(line.at)

    async def projected(self, position: int) -> None:
        """Wait until the read projection has folded `position` in.

        Raises:
            Retry: not within `patience` seconds.
        """
        clock = asyncio.get_running_loop().time
        end = clock() + self.patience
        while (reached := await self.sql.projected(self.log.pool)) < position:
            if clock() >= end:
                raise Retry(
                    f"the read projection is at {reached}, not yet at {position}", after=0.5
                )
            await asyncio.sleep(0.02)

    async def settle_project(self, connection: Any, project: str, position: int) -> None:
        """The vectors of the project say what the log said at `position`, or newer."""
        await self.sql.settle_project(connection, project=project, position=position)

    async def respan(
        self,
        connection: Any,
        generations: Iterable[Generation],
        document_id: str,
        line: Line | None = None,
    ) -> Line:
        """As `revalidate`, in given generations, under a lock that the caller holds.

        `line`: what to write; None: what the log says now.
        """
        line = line or await self.line(document_id)
        for generation in generations:
            for version_id in line.versions:
                spans = line.spans(version_id)
                await self.vectors.set_validity(generation.collection, version_id, spans)
            await self.sql.span(
                connection, **generation.key, document_id=document_id, windows_at=line.at
            )
        return line

    async def forget(self, connection: Any, generation: Generation, version_id: str) -> int:
        """Remove a version from one generation; returns how many passages it had there."""
        await self.vectors.delete_version(generation.collection, version_id)
        version = generation.key | {"version_id": version_id}
        await self.sql.displace(connection, **version)
        gone = await self.sql.drop_version_in(connection, **version)
        return int(gone.rpartition(" ")[2])

    async def finds(self, generation: Generation, text: str) -> bool:
        """Is a passage with the vector of `text` the first hit for it?"""
        known, _ = await self.known([text], await self.embedder(generation))
        flt = VectorFilter(include_historical=True)
        hits = await self.vectors.search(generation.collection, known[text], flt, 1)
        return bool(hits) and hits[0].score > SAME

    async def erase(self, project: str, document_id: str, version_id: str) -> None:
        """Remove a version from every generation that is there."""
        async with self.writing(project, document_id) as connection:
            for generation in await self.kept(connection, project, standby=True):
                await self.forget(connection, generation, version_id)

    async def live(self, project: str) -> Generation:
        """The generation that queries read; the first is made when it is asked for."""
        return await self._live(self.log.pool, project) or await self._first(project)

    async def new_generation(
        self, connection: Any, project: str, state: str, embedder: Embedder, chunker: str
    ) -> Generation:
        """The next generation, its collection made."""
        model, dim = embedder.model_id, embedder.dim
        number = await self.sql.add_generation(
            connection, project=project, embedder=model, dim=dim, state=state, chunker=chunker
        )
        generation = Generation(project, number, model, dim, chunker, state)
        await self.vectors.drop(generation.collection)  # left by a crash before its row was there
        await self.vectors.create(generation.collection, generation.dim)
        return generation

    async def kept(
        self, connection: Any, project: str, *, standby: bool = False
    ) -> list[Generation]:
        """Generations that are live or being built, and with `standby` the one before: it gets no
        writes, but what must not be found any more leaves it as well."""
        states = ["building", "live", *(["standby"] if standby else [])]
        return await self.generations(connection, project, states)

    async def generations(
        self, connection: Any, project: str, states: Sequence[str]
    ) -> list[Generation]:
        """Those in one of the states, oldest first."""
        rows = self.sql.generations(connection, project=project, states=list(states))
        return [_generation(r) async for r in rows]

    async def projects(self) -> list[str]:
        """Projects that ever received something and are not closed; they may have no index."""
        known = [r["project"] async for r in self.sql.projects(self.log.pool)]
        return [p for p in known if not (await project_settings(self.log, p)).deleted]

    @asynccontextmanager
    async def writing(self, project: str, document_id: str) -> AsyncIterator[Any]:
        """A transaction among other writers of the project, alone at the document; no switch of
        generations meanwhile."""
        async with self._writers, self.log.pool.acquire() as connection, connection.transaction():
            await self.sql.share_project(connection, project=project)
            await self.sql.own_document(connection, document_id=document_id)
            yield connection

    async def line(self, document_id: str) -> Line:
        """The line of a document's versions, as the log last said it. What was erased since has no
        windows: sent again, a version begins anew."""
        line = Line()
        for envelope in await self.log.stream(f"document-{document_id}"):
            if envelope.type not in _LINES:
                continue
            event = envelope.event()
            if isinstance(event, Erased):
                line = line.without(event.version_id)
            elif isinstance(event, Superseded | Reinstated):
                line = line.moved(event, envelope.position)
        return line

    async def blob(self, name: str) -> bytes:
        """The bytes of a blob.

        Raises:
            WrongBytes: they changed in the store.
        """
        data = await self.blobs.get(name)
        if sha256(data) != name:
            raise WrongBytes(f"the bytes of {name[:12]} changed in the store")
        return data

    async def _leave_standby(self, event: Event) -> None:
        """A text of a version was taken back, and another stays: which one a standby holds is not
        looked at, a rollback writes the right one again."""
        async with self.writing(event.project, event.document_id) as connection:
            for generation in await self.generations(connection, event.project, ["standby"]):
                await self.forget(connection, generation, event.version_id)

    async def _first(self, project: str) -> Generation:
        settings = await project_settings(self.log, project)
        try:
            embedder = await self.embedders.named(settings.embedder)
        except UnknownEmbedder as error:
            raise EmbedderChanged(f"{project}: {error}", after=30) from error
        async with self.log.pool.acquire() as connection, connection.transaction():
            await self.sql.own_project(connection, project=project)
            found = await self._live(connection, project)
            if found is None:
                chunker = CHUNKERS[settings.chunking]
                found = await self.new_generation(connection, project, "live", embedder, chunker)
                await self.sql.activate(connection, project=project, generation=found.number)
            return found

    async def _live(self, connection: Any, project: str) -> Generation | None:
        row = await self.sql.live(connection, project=project)
        return None if row is None else _generation(row)

    async def _embed(
        self, version_id: str, made: ChunkManifest, body: bytes, embedder: Embedder
    ) -> tuple[Vectors, Written]:
        """Vectors of all passages, of shape (passages, dim)."""
        chunks, embedded = made.chunks, 0
        vectors = np.empty((len(chunks), embedder.dim), np.float32)
        for first in range(0, len(chunks), WRITTEN):
            part = chunks[first : first + WRITTEN]
            texts = texts_of(made.title, body, part)
            known, new = await self.known(texts, embedder, version_id)
            vectors[first : first + len(part)] = np.stack([known[text] for text in texts])
            embedded += new
        return vectors, Written(embedder.model_id, embedded, len(chunks) - embedded)

    async def known(
        self, texts: Sequence[str], embedder: Embedder, version_id: str | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], int]:
        """Vectors by text, and how many are new; `version_id`: whose texts they are."""
        model = embedder.model_id
        known = await self._cache.get(model, texts)
        new = list(dict.fromkeys(t for t in texts if t not in known))
        for start in range(0, len(new), SLICE):  # what is embedded is kept, whatever happens next
            texts_now = new[start : start + SLICE]
            vectors = await embedder.embed_documents(texts_now)
            await self._cache.put(model, texts_now, vectors, version_id)
            known |= dict(zip(texts_now, vectors, strict=True))
        return known, len(new)


def _generation(row: Any) -> Generation:
    return Generation(
        row["project"], row["generation"], row["embedder"], row["dim"], row["chunker"], row["state"]
    )


class EmbedderChanged(Retry):
    """A project's index is of a model that this process does not have; documents wait."""


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
    for number, chunk in enumerate(chunks, 1):
        passage = body[chunk.byte_start : chunk.byte_end]
        if len(passage) != chunk.byte_end - chunk.byte_start:
            raise WrongBytes(f"passage {number} ends after its body")
        try:
            passages.append(passage.decode())
        except UnicodeDecodeError as error:
            raise WrongBytes(f"passage {number} cuts a character") from error
    return passages
