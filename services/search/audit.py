"""The auditor of the read projection: are its rows the fold of the log?

A document is folded anew by the projection itself, in a transaction that is rolled back, or kept
where something differed and is to be repaired. The projection stands still meanwhile, so both sides
say what the log says up to one position: no document is ever in motion here.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from contracts.audit import Check, Finding
from contracts.envelope import Envelope
from contracts.events import Converted, Drifted, ProjectionDrifted
from kernel.audit import Looked, Subject, history
from kernel.blobs import Blobs
from kernel.db import queries
from kernel.log import Log
from services.search.projection import Projection

Rows = dict[tuple[str, str], Mapping[str, Any]]
"""`(kind, key)` → the row."""


class Folding(Projection):
    """The projection's own fold, of one document, inside a transaction of the caller's.

    A title is text, so it is in a blob: where that is missing (the auditor of bytes says so), the
    title that is there is the right one.
    """

    def __init__(self, event_log: Log, blobs: Blobs, titles: Mapping[str, str]) -> None:
        super().__init__(event_log, blobs)
        self._titles = titles

    async def fold(self, connection: Any, envelopes: Sequence[Envelope]) -> None:
        """Fold these events in."""
        for at in range(0, len(envelopes), self._size):
            await self._fold(connection, envelopes[at : at + self._size])

    async def _title(self, event: Converted) -> str | None:
        return await super()._title(event) or self._titles.get(event.version_id)


class ProjectionExaminer:
    """Compares all tables of the projection: versions, validity now and before, lines, jobs."""

    check: Check = "projection"
    drifted: type[Drifted] = ProjectionDrifted

    def __init__(self, event_log: Log, blobs: Blobs) -> None:
        self._log, self._blobs = event_log, blobs
        self._sql = queries("services.search", "audit")

    async def look(self, subject: Subject) -> Looked:
        """Differences between the rows and the fold."""
        return await self._folded(subject, keep=False)

    async def repair(self, subject: Subject, findings: Sequence[Finding]) -> None:
        """Keep the rows that the fold made."""
        await self._folded(subject, keep=True)

    async def strays(self, project: str | None) -> list[Finding]:
        """Rows about what the log does not know."""
        rows = [r async for r in self._sql.strays(self._log.pool, project=project)]
        return [
            Finding(
                check=self.check,
                what=f"{r['kind']}-extra",
                id=r["id"],
                project=r["project"],
                document_id=r["document_id"],
                version_id=r["version_id"],
            )
            for r in rows
        ]

    async def remove(self, strays: Sequence[Finding]) -> None:
        """Delete them."""
        jobs = [UUID(f.id) for f in strays if f.what == "job-extra"]
        documents = {f.document_id for f in strays if f.what != "job-extra"}
        await self._sql.remove(self._log.pool, documents=list(documents), jobs=jobs)

    async def _folded(self, subject: Subject, *, keep: bool) -> Looked:
        async with self._log.pool.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            try:
                looked = await self._compared(connection, subject)
            except BaseException:
                await transaction.rollback()
                raise
            await (transaction.commit() if keep else transaction.rollback())
            return looked

    async def _compared(self, connection: Any, subject: Subject) -> Looked:
        """Rows as they are against rows as the fold makes them; the latter are in place then."""
        position = await self._sql.position(connection) or 0
        events = [
            e for e in await history(self._log, subject.document_id) if e.position <= position
        ]
        about = {
            "document_id": subject.document_id,
            "jobs": list({e.correlation_id for e in events}),
        }
        before = await self._rows(connection, about)
        settled = await self._sql.settled(connection, document_id=subject.document_id)
        await self._sql.clear(connection, **about)
        folding = Folding(self._log, self._blobs, _titles(before))
        await folding.fold(connection, events)
        await self._sql.settle(connection, document_id=subject.document_id, settled=settled or 0)
        after = await self._rows(connection, about)
        at = events[-1].position if events else 0
        found = [
            self._finding(subject, key, before, after, at) for key in _differing(before, after)
        ]
        return Looked(len(before.keys() | after.keys()), found)

    async def _rows(self, connection: Any, about: Mapping[str, Any]) -> Rows:
        return {(r["kind"], r["id"]): r["row"] async for r in self._sql.rows(connection, **about)}

    def _finding(
        self, subject: Subject, key: tuple[str, str], before: Rows, after: Rows, at: int
    ) -> Finding:
        kind, id_ = key
        missing, extra = key not in before, key not in after
        row = after[key] if missing else before[key]
        changed = "" if missing or extra else ",".join(_columns(before[key], after[key]))
        return Finding(
            check=self.check,
            what=f"{kind}-missing" if missing else f"{kind}-extra" if extra else f"{kind}-changed",
            id=f"{id_} {changed}".rstrip(),
            project=subject.project,
            document_id=subject.document_id,
            version_id=row.get("version_id"),
            at=at,
        )


def _titles(rows: Rows) -> dict[str, str]:
    return {id_: row["title"] for (kind, id_), row in rows.items() if kind == "version"}


def _differing(before: Rows, after: Rows) -> list[tuple[str, str]]:
    return sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))


def _columns(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return sorted(c for c in before.keys() | after.keys() if before.get(c) != after.get(c))
