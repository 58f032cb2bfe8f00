"""The auditor of the index: do the live generation's rows and vectors hold what the log says?

A document is looked at under the lock of its writers, so no write is half-way. What the log says
and no service has done yet is told from what is lost by its age (`kernel.audit.SETTLES`), except
that what was written and recorded must be there at once.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from contracts.artifacts import ChunkManifest
from contracts.audit import Check, Finding
from contracts.envelope import Envelope
from contracts.events import Chunked, DocumentReceived, Drifted, IndexDrifted
from kernel.audit import Looked, Subject, by_version, history, settled
from kernel.clearance import Texts
from kernel.db import queries
from kernel.errors import KbError
from kernel.vectors import Held
from kernel.vectors.payload import slots
from services.indexer.index import Generation, Index, Line, Passages, Written, WrongBytes

DAMAGED = "its text or its manifest is damaged: see the check of bytes"


@dataclass
class Seen:
    """What was found of one version, kind by kind."""

    kinds: dict[str, list[str]] = field(default_factory=dict)
    checked: int = 0
    windows_at: int = -1
    """Position of the event that set the windows that its vectors have; negative: unknown."""

    def add(self, what: str, ids: Iterable[object]) -> None:
        """These are not as they must be."""
        if found := [str(i) for i in ids]:
            self.kinds.setdefault(what, []).extend(found)


class IndexExaminer:
    """Compares passages, vectors and their windows of validity with cuts and lines of the log."""

    check: Check = "index"
    drifted: type[Drifted] = IndexDrifted

    def __init__(self, index: Index) -> None:
        self._index = index
        self._sql = queries("services.indexer", "audit")

    async def look(self, subject: Subject) -> Looked:
        """Differences between the live generation and the log."""
        looked = Looked()
        async with self._index.writing(subject.project, subject.document_id) as connection:
            events = await history(self._index.log, subject.document_id)
            generation = await self._live(connection, subject.project)
            line = await self._index.line(subject.document_id)
            for version_id, mine in by_version(events).items():
                texts = Texts(mine)
                if texts.under_way:
                    looked.moving = True
                    continue
                seen = await self._version(connection, generation, version_id, texts, line, mine)
                looked.checked += seen.checked
                late = _late(seen, texts, line, events)
                looked.moving |= late
                if not late:
                    looked.findings += self._findings(subject, version_id, seen, events)
            looked.findings += await self._unsettled(connection, subject, events)
        return looked

    async def repair(self, subject: Subject, findings: Sequence[Finding]) -> None:
        """Write what is missing, from the blobs and the vector cache; remove what is too much."""
        events = by_version(await history(self._index.log, subject.document_id))
        wrong: list[Exception] = []
        if any(f.what == "line-unsettled" for f in findings):
            await self._index.revalidate(subject.project, subject.document_id)
        for version_id in dict.fromkeys(f.version_id for f in findings if f.version_id):
            kinds = {f.what for f in findings if f.version_id == version_id}
            try:
                await self._mend(subject, version_id, kinds, Texts(events.get(version_id, [])))
            except (KbError, FileNotFoundError) as error:
                wrong.append(error)
        if wrong:
            raise wrong[0]

    async def strays(self, project: str | None) -> list[Finding]:
        """Passages and vectors of versions that the log does not know."""
        found: list[Finding] = []
        for name in [project] if project else await self._index.projects():
            generation = await self._live(self._index.log.pool, name)
            if generation is not None:
                found += await self._strays(generation)
        return found

    async def remove(self, strays: Sequence[Finding]) -> None:
        """Forget these versions."""
        for version_id, project in dict.fromkeys((f.version_id, f.project) for f in strays):
            document_id = next(
                (f.document_id for f in strays if f.version_id == version_id and f.document_id), ""
            )
            await self._index.erase(project, document_id, version_id or "")

    async def _live(self, connection: Any, project: str) -> Generation | None:
        """The generation that queries read; none is made."""
        return next(iter(await self._index.generations(connection, project, ["live"])), None)

    async def _strays(self, generation: Generation) -> list[Finding]:
        points: Counter[str] = Counter()
        async for page in self._index.vectors.held(generation.collection):
            points.update(h.version_id for h in page)
        pool, project = self._index.log.pool, generation.project
        unknown = self._sql.unknown(pool, version_ids=list(points), project=project)
        about = {"check": self.check, "project": project}
        vectors = [
            Finding(**about, what="vector-extra", id=v, version_id=v, count=points[v])
            for v in [r["v"] async for r in unknown]
        ]
        rows = self._sql.stray_rows(pool, **generation.key)
        return vectors + [
            Finding(
                **about,
                what="passage-extra",
                id=r["version_id"],
                version_id=r["version_id"],
                document_id=r["document_id"],
                count=r["count"],
            )
            async for r in rows
        ]

    async def _version(
        self,
        connection: Any,
        generation: Generation | None,
        version_id: str,
        texts: Texts,
        line: Line,
        events: Sequence[Envelope],
    ) -> Seen:
        """One version in the live generation."""
        seen, cut = Seen(), texts.searchable
        if generation is None:
            seen.add("generation-missing", [version_id] if cut else [])
            return seen
        about = generation.key | {"version_id": version_id}
        held = [
            h
            async for page in self._index.vectors.held(generation.collection, version_id)
            for h in page
        ]
        if cut is None:
            rows = [r async for r in self._sql.others(connection, **about, chunk_ids=[])]
            seen.add("passage-extra", (r["point_id"] for r in rows))
            seen.add("vector-extra", (h.point_id for h in held))
            return seen
        try:
            passages = await self._passages(cut)
        except (FileNotFoundError, WrongBytes):
            seen.add("manifest-damaged", [cut.chunks_sha256])
            return seen
        await self._rows(connection, about, generation, passages, seen)
        _points(passages, held, seen)
        _windows(held, version_id, line, events, seen)
        await self._placed(connection, generation, cut, seen)
        seen.checked = len(passages.manifest.chunks)
        return seen

    async def _unsettled(
        self, connection: Any, subject: Subject, events: Sequence[Envelope]
    ) -> list[Finding]:
        """A line that nobody told the vectors of: a search looks it up every time."""
        behind = await self._sql.unsettled(connection, document_id=subject.document_id)
        if not behind or not settled(events, datetime.now(UTC)):
            return []
        seen = Seen({"line-unsettled": [subject.document_id]})
        return self._findings(subject, None, seen, events)

    async def _passages(self, cut: Chunked) -> Passages:
        """What the log says is in the index, without its vectors."""
        made = ChunkManifest.model_validate_json(await self._index.blob(cut.chunks_sha256))
        body = await self._index.blob(cut.body_sha256)
        nothing = np.empty((0, 0), np.float32)
        return Passages(cut, made, body, nothing, datetime.now(UTC), Written("", 0, 0))

    async def _rows(
        self,
        connection: Any,
        about: dict[str, Any],
        generation: Generation,
        passages: Passages,
        seen: Seen,
    ) -> None:
        for part in passages.parts():
            rows = await asyncio.to_thread(part.rows, generation.number)
            told = [row | {"point_id": str(row["point_id"])} for row in rows]
            differing = [r async for r in self._sql.differing(connection, **about, rows=told)]
            seen.add("passage-missing", (r["point_id"] for r in differing if r["missing"]))
            seen.add("passage-changed", (r["point_id"] for r in differing if not r["missing"]))
        ids = [c.chunk_id for c in passages.manifest.chunks]
        others = [r async for r in self._sql.others(connection, **about, chunk_ids=ids)]
        seen.add("passage-extra", (r["point_id"] for r in others))

    async def _placed(
        self, connection: Any, generation: Generation, cut: Chunked, seen: Seen
    ) -> None:
        """What the generation says of itself; an empty hash says that it does not know."""
        about = generation.key | {"document_id": cut.document_id}
        placed = {r["version_id"]: r async for r in self._sql.placed_of(connection, **about)}
        row = placed.get(cut.version_id)
        if row is None:
            seen.add("placed-missing", [cut.version_id])
            return
        seen.windows_at = row["windows_at"]
        if row["chunks_sha256"] and (row["chunks_sha256"], row["passages"]) != (
            cut.chunks_sha256,
            cut.chunk_count,
        ):
            seen.add("placed-changed", [cut.version_id])

    def _findings(
        self, subject: Subject, version_id: str | None, seen: Seen, events: Sequence[Envelope]
    ) -> list[Finding]:
        return [
            Finding(
                check=self.check,
                what=what,
                id=ids[0],
                count=len(ids),
                project=subject.project,
                document_id=subject.document_id,
                version_id=version_id,
                at=events[-1].position,
                left=DAMAGED if what == "manifest-damaged" else None,
            )
            for what, ids in seen.kinds.items()
        ]

    async def _mend(self, subject: Subject, version_id: str, kinds: set[str], texts: Texts) -> None:
        index, cut = self._index, texts.searchable
        if cut is None:
            await index.erase(subject.project, subject.document_id, version_id)
            return
        if kinds == {"windows-changed"} and (await index.line(subject.document_id)).at:
            await index.revalidate(subject.project, subject.document_id)
            return
        generation = await index.live(subject.project)
        await index.vectors.create(generation.collection, generation.dim)
        if "vector-extra" in kinds:
            async with index.writing(subject.project, subject.document_id) as connection:
                await index.forget(connection, generation, version_id)
        received = await index.log.received(cut)
        await index.write(cut, received.valid_from, anew=True)


def _points(passages: Passages, held: Sequence[Held], seen: Seen) -> None:
    wanted, there = passages.ids(), {h.point_id for h in held}
    seen.add("vector-missing", sorted(wanted - there))
    seen.add("vector-extra", sorted(there - wanted))


def _windows(
    held: Sequence[Held], version_id: str, line: Line, events: Iterable[Envelope], seen: Seen
) -> None:
    """Do the vectors know when the version is valid? One that its line does not have, or that has
    no line yet, may be found from its own date on: Postgres has the last word."""
    spans = line.spans(version_id)
    if line.at and not spans:
        return
    right = [slots(spans)] if line.at else [slots([(d, None)]) for d in _dates(events)]
    wrong = [h.point_id for h in held if h.slots not in right]
    seen.add("windows-changed", wrong)


def _dates(events: Iterable[Envelope]) -> list[datetime]:
    receipts = (e.event() for e in events if e.type == "DocumentReceived")
    return [r.valid_from for r in receipts if isinstance(r, DocumentReceived)]


def _late(seen: Seen, texts: Texts, line: Line, events: Sequence[Envelope]) -> bool:
    """Is what differs something that the indexer may still be about to do: to take a version out,
    or to tell the vectors of a new line?"""
    if not seen.kinds or settled(events, datetime.now(UTC)):
        return False
    behind = seen.windows_at != line.at and set(seen.kinds) == {"windows-changed"}
    return behind or texts.searchable is None
