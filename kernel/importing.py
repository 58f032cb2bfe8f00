"""A checked bundle becomes a project here, with its ids and its history, without any work."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import asyncpg

from contracts.events import ProjectImported
from kernel.backup import AT_ONCE, together
from kernel.blobs import Blobs
from kernel.bundle import Progress, no_progress
from kernel.bundle_check import Bundle, Line
from kernel.cache import EmbeddingCache
from kernel.db import connect, queries
from kernel.errors import Refusal
from kernel.log import ANY_VERSION, Pending, to_envelope
from kernel.needs import Needs
from kernel.packed import unpack
from kernel.projects import ProjectSettings, fold

IMPORTS = UUID("8c8a3f0e-5a57-5d0b-9a52-0d2f4f6f1c77")
"""Namespace of the ids of imports."""
LOCAL = ("index", "audit", "rescans")
"""Streams about the other installation itself: generations, what its auditor found, re-scans. They
stay there."""
FREE = ("project-", "erasure-", "taxonomy-")
"""Streams to which both sides may add, in any order: what happens to a project, its
taxonomies, and receipts."""
BATCH = 2000
"""Events that are appended in one transaction, about."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Imported:
    """What an import did. `known` events were here before, `local` ones stayed where they are.
    `erased`: versions whose bytes were not brought, for they were erased here."""

    project: str
    events: int
    known: int
    local: int
    blobs: int
    blob_bytes: int
    vectors: int
    erased: int
    position: int


async def bring_in(
    dsn: str, blobs: Blobs, bundle: Bundle, actor: str, *, progress: Progress = no_progress
) -> Imported:
    """Bring a bundle in that was checked and whose signer is believed. Twice is once, and what was
    killed half-way is finished by doing it again.

    Blobs come first, then vectors, then the events, whole documents at once: whoever gets an event
    finds in the log what was made of it, and does nothing.

    Raises:
        Refusal: `project-exists` (another one has this id), `project-deleted`, `diverged` (both
            went on since).
        OSError: the disk is full, or away.
    """
    connection = await connect(dsn, service="kb-import")
    try:
        return await _Import(connection, blobs, bundle, progress).run(actor)
    finally:
        await connection.close()


class _Import:
    """One import."""

    def __init__(self, connection: Any, blobs: Blobs, bundle: Bundle, progress: Progress) -> None:
        self._connection, self._blobs, self._bundle = connection, blobs, bundle
        self._progress = progress
        self._sql = queries("kernel.sql", "bundle")
        self._log = queries("kernel.sql", "log")
        self._bytes = 0

    async def run(self, actor: str) -> Imported:
        project = self._bundle.manifest.project
        lines = list(self._bundle.lines())
        ours = [x for x in lines if x.stream_id.partition("-")[0] not in LOCAL]
        known = await self._lineage(project, ours)
        here = await self._state_here([x for x in ours if x.event_id in known])
        dead = {v for v, live in here.live.items() if not live}
        needed = self._bundle.needs.of(set(self._bundle.needs.versions) - dead)
        blobs = await self._copy(sorted(needed))
        vectors = await self._vectors(needed)
        appended = 0
        for batch in _batches([x for x in ours if x.event_id not in known]):
            appended += await self._append(batch)
        position = await self._mark(actor, len(ours))
        return Imported(
            project=project,
            events=appended,
            known=len(known),
            local=len(lines) - len(ours),
            blobs=blobs,
            blob_bytes=self._bytes,
            vectors=vectors,
            erased=len(dead & set(self._bundle.needs.versions)),
            position=position,
        )

    async def _lineage(self, project: str, lines: Sequence[Line]) -> set[UUID]:
        """Events of the bundle that are here already, each in its place.

        Raises:
            Refusal: `project-exists`, `project-deleted`, `diverged`.
        """
        if (await self._settings(project)).deleted:
            raise Refusal("project-deleted", f"{project} was deleted here", status=409)
        known: set[UUID] = set()
        wrong = False
        for first in range(0, len(lines), BATCH):
            part = {str(x.event_id): x for x in lines[first : first + BATCH]}
            rows = self._sql.known(self._connection, event_ids=list(part))
            async for r in rows:
                line = part[r["event_id"]]
                known.add(line.event_id)
                # Other things happen to a project here; a document's line is one line.
                moved = r["version"] != line.version and not line.stream_id.startswith(FREE)
                wrong |= r["stream_id"] != line.stream_id or moved
        if not known and await self._sql.is_used(self._connection, project=project):
            raise Refusal("project-exists", f"there is another project {project} here", status=409)
        if wrong or await self._both_went_on(lines, known) or await self._keys_taken(lines, known):
            raise Refusal(
                "diverged", f"{project} went on here and there since; nothing was brought in",
                status=409,
            )  # fmt: skip
        return known

    async def _settings(self, project: str) -> ProjectSettings:
        rows = self._log.stream(self._connection, stream_id=f"project-{project}")
        return fold([to_envelope(r) async for r in rows])

    async def _both_went_on(self, lines: Sequence[Line], known: set[UUID]) -> bool:
        """Is there a stream that got other events here than there?"""
        fresh: dict[str, int] = {}
        for line in lines:
            if line.event_id not in known and not line.stream_id.startswith(FREE):
                fresh[line.stream_id] = min(line.version, fresh.get(line.stream_id, line.version))
        ids = list(fresh)
        for first in range(0, len(ids), BATCH):
            rows = self._sql.ends(self._connection, stream_ids=ids[first : first + BATCH])
            if any([r["version"] >= fresh[r["stream_id"]] async for r in rows]):
                return True
        return False

    async def _keys_taken(self, lines: Sequence[Line], known: set[UUID]) -> bool:
        """Did a document of the same source begin here by itself?"""
        if not known:
            return False
        for line in lines:
            if line.event_id in known or line.type != "DocumentReceived":
                continue
            data = line.content()
            found = await self._log.document_of(
                self._connection, project=line.project, source_key=data["source_key"]
            )
            if found not in (None, data["document_id"]):
                return True
        return False

    async def _state_here(self, known: Sequence[Line]) -> Needs:
        """What happened here to versions that are here: some were erased since."""
        needs = Needs()
        streams = sorted({x.stream_id for x in known})
        for first in range(0, len(streams), BATCH):
            part = streams[first : first + BATCH]
            async for r in self._log.streams(self._connection, stream_ids=part):
                needs.apply(r["type"], r["schema_version"], r["data"])
        return needs

    async def _copy(self, names: Sequence[str]) -> int:
        """Bring blobs that are not here; returns how many."""
        left, done, copied = iter(names), 0, 0

        async def work() -> None:
            nonlocal done, copied
            for name in left:
                copied += await self._copy_one(name)
                done += 1
                self._progress(done, len(names), self._bytes)

        await together(work() for _ in range(AT_ONCE))
        return copied

    async def _copy_one(self, name: str) -> bool:
        member = self._bundle.manifest.members.get(f"blobs/{name}")
        if member is None or await self._blobs.exists(name):
            return False
        stored = await self._blobs.put_parts(self._bundle.pieces(f"blobs/{name}"))
        if stored != name:
            await self._blobs.delete(stored)
            raise Refusal("changed-bundle", "the bundle changed while it was read")
        self._bytes += member.bytes
        return True

    async def _vectors(self, needed: set[str]) -> int:
        """Fill the embedding cache, so that the index is made without a model."""
        cache, done = EmbeddingCache(self._connection), 0
        async for model, cut, texts, data in self._bundle.packed_vectors():
            if cut.manifest in needed:
                await unpack(cache, model, texts, data, cut.version_id)
                done += 1
        return done

    async def _append(self, batch: Sequence[Line]) -> int:
        """Append events in one transaction, or none of them."""
        stream_ids, expected, events = [], [], []
        for run in _runs(batch):
            stream_ids.append(run[0].stream_id)
            free = run[0].stream_id.startswith(FREE)
            expected.append(ANY_VERSION if free else run[0].version - 1)
            events.append(f"[{','.join(map(_row, run))}]")
        try:
            rows = self._sql.append_in_order(
                self._connection, stream_ids=stream_ids, expected=expected, events=events
            )
            done = Counter([r["status"] async for r in rows])
        except asyncpg.PostgresError as error:
            if error.sqlstate in ("KB001", "KB002"):
                raise Refusal(
                    "diverged", "the project went on here while it was brought in", status=409
                ) from error
            raise
        return len(batch) if done["appended"] == len(stream_ids) else 0

    async def _mark(self, actor: str, events: int) -> int:
        """Say in the log that it was brought in, once."""
        bundle = self._bundle
        imported = ProjectImported(
            project=bundle.manifest.project,
            bundle_sha256=bundle.sha256,
            events=events,
            origin_position=bundle.manifest.position,
            actor=actor,
        )
        id_ = uuid5(IMPORTS, bundle.sha256)
        row = Pending(imported, id_, id_, actor).to_row()
        done = await self._log.append(
            self._connection,
            stream_id=imported.stream_id,
            expected=ANY_VERSION,
            events=[row],
            job=None,
        )
        return int(done["last_position"])


def _batches(lines: Sequence[Line]) -> Iterable[list[Line]]:
    """Events in parts of about `BATCH`: all of a document and its versions in one, in log order,
    documents in the order in which they came. What is about no document comes first."""
    groups: dict[str, list[Line]] = {"": []}
    for line in lines:
        groups.setdefault(line.content().get("document_id", ""), []).append(line)
    batch: list[Line] = []
    for group in groups.values():
        batch += group
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _runs(lines: Iterable[Line]) -> list[list[Line]]:
    """Neighbours of one stream: each run is one append."""
    runs: list[list[Line]] = []
    for line in lines:
        if runs and runs[-1][-1].stream_id == line.stream_id:
            runs[-1].append(line)
        else:
            runs.append([line])
    return runs


def _row(line: Line) -> str:
    """The JSON that `log.append` takes; the data as the text that they were."""
    row = {
        "event_id": str(line.event_id),
        "type": line.type,
        "schema_version": line.schema_version,
        "lane": "bulk",  # uploads go ahead
        "project": line.project,
        "causation_id": line.causation_id and str(line.causation_id),
        "correlation_id": str(line.correlation_id),
        "actor": line.actor,
        "traceparent": line.traceparent,
        "occurred_at": (_EPOCH + timedelta(microseconds=line.occurred)).isoformat(),
    }
    return f'{json.dumps(row, ensure_ascii=False)[:-1]}, "data": {line.data}}}'
