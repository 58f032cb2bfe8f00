"""The read projection: documents, versions, validity and jobs, folded from the log in order."""

import asyncio
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import structlog
from pydantic import ValidationError

from contracts.artifacts import BodyMeta
from contracts.envelope import Envelope
from contracts.events import (
    AttachmentsReceived,
    Chunked,
    Converted,
    DocumentReceived,
    Erased,
    Event,
    Failed,
    Indexed,
    Parsed,
    Reinstated,
    Rejected,
    Released,
    ScanVerdict,
    Superseded,
)
from contracts.http import Status
from contracts.states import STATES, WORKING, moves, status_after
from kernel.blobs import Blobs
from kernel.db import UNAVAILABLE, queries
from kernel.log import Log
from kernel.telemetry import LOG_HEAD, PROJECTION_POSITION

log = structlog.get_logger()
AWAY: tuple[type[BaseException], ...] = (*UNAVAILABLE, OSError)
BATCH = 500
REVISION = 2
"""Of the fold: tables that an earlier one made are made anew. 2: recorded time is kept."""
Row = dict[str, Any]

_NOTHING: Row = dict.fromkeys(
    ("verdict", "language", "title", "parser", "converter", "embedder", "parsed_sha256",
     "body_sha256", "meta_sha256", "chunks_sha256", "body_bytes", "chunk_count", "error")
)  # fmt: skip


def change(event: Event) -> Row:
    """What an event says about its version: `status`, `stage`, and columns with new values."""
    status = status_after(event)
    if status is None:
        raise TypeError(type(event).__name__)
    return {"status": status, "stage": _stage(status, event), **_columns(event)}


def _stage(status: Status, event: Event) -> str | None:
    if isinstance(event, Failed):
        return event.stage
    return STATES[status].owner if status in WORKING else None


_SAYS: dict[type[Event], set[str]] = {
    Parsed: {"parser", "language", "parsed_sha256"},
    Converted: {"body_sha256", "meta_sha256", "body_bytes", "converter", "language"},
    Chunked: {"chunks_sha256", "chunk_count"},
    Indexed: {"chunk_count", "embedder"},
}


def _columns(event: Event) -> Row:
    match event:
        case Failed():
            return {"error": event.model_dump(include={"stage", "code", "reason"})}
        case Erased(cause=str()):
            reason = f"the document that it was attached to was {_GONE[event.reason]}"
            code = f"parent-{_GONE[event.reason]}"
            return {"error": {"stage": "ingest", "code": code, "reason": reason}}
        case ScanVerdict() | Released():
            return _judged(event)
        case _:
            return event.model_dump(include=_SAYS.get(type(event), set()))


def _withdraws(event: Event, version: Any) -> bool:
    """Is this a verdict against the very text that is searchable, or against its parse?"""
    if not isinstance(event, ScanVerdict) or event.verdict != "quarantine":
        return False
    if event.subject == "parsed":
        return bool(event.text_sha256 == version["parsed_sha256"])
    body = (version["body_sha256"], version["meta_sha256"])
    return (event.text_sha256, event.meta_sha256) == body


_REFUSED = {"stage": "scanner", "code": "rejected", "reason": "a person refused the new parse"}
_GONE = {"blocked": "blocked", "request": "deleted"}


def _judged(event: ScanVerdict | Released) -> Row:
    verdict = event.verdict if isinstance(event, ScanVerdict) else "clean"
    if verdict != "block":
        return {"verdict": verdict}
    rules = sorted({f.rule for f in getattr(event, "findings", ())})
    error = {
        "stage": "scanner",
        "code": "blocked",
        "reason": f"prompt injection: {', '.join(rules)}",
    }
    return {"verdict": verdict, "error": error}


class Projection:
    """Folds the log into `read.version`, `read.validity`, `read.validity_past` and `read.job`.

    Recorded time is that of the event. The checkpoint moves in the transaction of the writes, and
    its row lock makes replicas take turns, so every event is folded in exactly once.
    """

    def __init__(self, event_log: Log, blobs: Blobs) -> None:
        self._log, self._blobs = event_log, blobs
        self._sql = queries("services.search", "projection")
        self.folded = asyncio.Event()
        """Set when this process folds something in after it was taken."""

    async def run(self) -> None:
        """Follow the log until cancelled; Postgres may go away and come back."""
        while True:
            try:
                await self._sql.start(self._log.pool)
                await self.renew()
                async for _ in self._log.follow(await self.position(), limit=BATCH):
                    while await self.step():
                        pass
            except AWAY as error:
                log.warning("projection.away", error=str(error)[:300])
                await asyncio.sleep(0.5)

    async def position(self) -> int:
        """The log position that the projection reflects."""
        return int(await self._sql.position(self._log.pool))

    async def renew(self) -> None:
        """Fold the log anew if an earlier release made the tables; readers see theirs meanwhile."""
        if await self._sql.revision(self._log.pool) == REVISION:
            return
        if await self.position():
            log.info("projection.renewed", position=await self.replay())
        await self._sql.set_revision(self._log.pool, revision=REVISION)

    async def step(self) -> int:
        """Fold in the next batch; returns the number of events."""
        async with self._log.pool.acquire() as connection, connection.transaction():
            after = await self._sql.lock_position(connection)
            batch = await self._log.read(after or 0, BATCH)
            for envelope in batch:
                await self._fold(connection, envelope)
            if batch:
                await self._sql.set_position(connection, position=batch[-1].position)
        if batch:
            self.folded, folded = asyncio.Event(), self.folded
            folded.set()
            PROJECTION_POSITION.labels("read").set(batch[-1].position)
            LOG_HEAD.set(max(batch[-1].position, await self._log.head()))
        return len(batch)

    async def replay(self) -> int:
        """Fold the whole log anew, in one transaction: readers see the old or the new state."""
        await self._sql.start(self._log.pool)
        async with self._log.pool.acquire() as connection, connection.transaction():
            await self._sql.lock_position(connection)
            await self._sql.clear_versions(connection)
            position = 0
            while batch := await self._log.read(position, BATCH):
                for envelope in batch:
                    await self._fold(connection, envelope)
                position = batch[-1].position
            await self._sql.set_position(connection, position=position)
        return position

    async def _fold(self, connection: Any, envelope: Envelope) -> None:
        event = envelope.fact()
        if not isinstance(event, Event):
            return  # settings of a project: read from its stream
        if isinstance(event, DocumentReceived):
            await self._receive(connection, envelope, event)
        elif isinstance(event, Superseded | Reinstated):
            await self._line(connection, envelope, event)
        else:
            await self._change(connection, envelope, event)

    async def _receive(self, connection: Any, envelope: Envelope, event: DocumentReceived) -> None:
        row = event.model_dump(
            include={"version_id", "document_id", "source_id", "project", "source_key", "name",
                     "media_type", "size_bytes", "supersedes", "trusted", "valid_from", "parent"}
        )  # fmt: skip
        at = {"job_id": envelope.correlation_id, "position": envelope.position}
        ids = {"version_id": event.version_id, "parent": event.parent}
        if not await self._sql.receive_again(connection, **ids, **at):
            await self._sql.receive(connection, **row, **at, at=envelope.recorded_at)
        await self._sql.start_job(
            connection,
            job_id=envelope.correlation_id,
            at=envelope.recorded_at,
            attempt=event.attempt,
            **{k: row[k] for k in ("project", "document_id", "version_id", "name")},
        )

    async def _line(
        self, connection: Any, envelope: Envelope, event: Superseded | Reinstated
    ) -> None:
        """The document's windows are these now; what stays as it was keeps its recorded time."""
        line: Row = {
            "document_id": event.document_id,
            "version_ids": [w.version_id for w in event.windows],
            "froms": [w.valid_from for w in event.windows],
            "untils": [w.valid_until for w in event.windows],
        }
        place = {"project": event.project, "position": envelope.position}
        await self._sql.rewrite_held(connection, **line)
        await self._sql.end_windows(connection, **line, at=envelope.recorded_at)
        await self._sql.add_windows(
            connection, **line, project=event.project, at=envelope.recorded_at
        )
        await self._sql.move_line(connection, document_id=event.document_id, **place)

    async def _change(self, connection: Any, envelope: Envelope, event: Event) -> None:
        ids = {"version_id": event.version_id, "position": envelope.position}
        if isinstance(event, AttachmentsReceived):
            said = event.model_dump(mode="json", include={"left_out", "left_out_by_code"})
            await self._sql.note_attachments(connection, **ids, attachments=said)
            return
        job = envelope.correlation_id
        met = await self._sql.standing(connection, version_id=event.version_id, job_id=job)
        if met is None or (met["cancelled"] and not isinstance(event, Erased)):
            return  # what is cancelled stays so
        withdrawn = met["live"] and _withdraws(event, met)
        if not withdrawn and not moves(met["job_status"], event):
            return
        row = _NOTHING | change(event)
        if isinstance(event, Failed) and met["job_status"] == "indexed":
            await self._sql.note_error(connection, **ids, error=row["error"])
            return
        if isinstance(event, Converted):
            row["title"] = await self._title(event)
        if isinstance(event, Erased):
            job = met["job_id"]
            await self._bury(connection, event, envelope.recorded_at)
        if withdrawn:
            await self._withdraw(connection, ids, row, event, met, job)
            await self._hold(connection, event.version_id, envelope.recorded_at)
        elif job == met["job_id"]:
            await self._move(connection, ids, row, event, met)
        await self._sql.update_job(
            connection,
            job_id=job,
            at=envelope.recorded_at,
            **{k: row[k] for k in ("status", "stage", "chunk_count", "error")},
        )
        if isinstance(event, Indexed):
            returns = met["held"] and job == met["job_id"]
            await self._show(connection, event, envelope.recorded_at, returns=returns)

    async def _bury(self, connection: Any, event: Erased, at: datetime) -> None:
        """Nobody sees an erased version; where a person asked, nobody learns its names."""
        await self._sql.end_version_windows(connection, version_id=event.version_id, at=at)
        await self._sql.drop_held(connection, version_id=event.version_id)
        if event.reason == "request":
            await self._sql.forget_names(connection, version_id=event.version_id)

    async def _show(self, connection: Any, event: Indexed, at: datetime, *, returns: bool) -> None:
        """Give a version in the index its windows back, or the first one of its document."""
        version = {"version_id": event.version_id, "at": at}
        if returns:
            await self._sql.return_windows(connection, **version)
        await self._sql.first_window(connection, **version, document_id=event.document_id)

    async def _hold(self, connection: Any, version_id: str, at: datetime) -> None:
        """Nobody sees the version at any time until a person decides."""
        await self._sql.hold_windows(connection, version_id=version_id)
        await self._sql.end_version_windows(connection, version_id=version_id, at=at)

    async def _move(self, connection: Any, ids: Row, row: Row, event: Event, met: Any) -> None:
        """Bring the version on. One that is in the index stays as it is until the attempt is."""
        status = row["status"]
        if not met["live"] or status in ("indexed", "blocked", "erased"):
            whole = row | (met["pending"] or {}) if met["live"] else row
            whole |= {k: v for k, v in row.items() if v is not None} | {"stage": row["stage"]}
            erased = isinstance(event, Erased)
            live = status == "indexed" or (met["live"] and not erased)
            await self._sql.update_version(connection, **ids, **whole, live=live, erased=erased)
            return
        over = isinstance(event, Failed | Rejected)
        found = {k: v for k, v in row.items() if v is not None and k not in ("status", "stage")}
        error = row["error"] or (_REFUSED if isinstance(event, Rejected) else None)
        await self._sql.update_pending(
            connection,
            **ids,
            status="review" if status == "review" else "indexed",
            pending=None if over else (met["pending"] or {}) | found,
            error=error,
        )

    async def _withdraw(
        self, connection: Any, ids: Row, row: Row, event: Event, met: Any, job: UUID
    ) -> None:
        """What is searchable was found to be bad: it waits for a person."""
        own = job == met["job_id"]
        whole = row | (met["pending"] or {} if own else {})
        whole |= {k: v for k, v in row.items() if v is not None} | {"stage": None}
        await self._sql.update_version(connection, **ids, **whole, live=False, erased=False)
        if not own and met["own_cancelled"]:
            await self._sql.hand_over(connection, version_id=event.version_id, job_id=job)

    async def _title(self, event: Converted) -> str | None:
        """Titles are text, so they are in a blob and not in the log; an erased one is gone."""
        try:
            return BodyMeta.model_validate_json(await self._blobs.get(event.meta_sha256)).title
        except (FileNotFoundError, ValidationError):
            return None


async def digest(pool: "asyncpg.Pool[Any]") -> dict[str, str]:
    """One hash a table of the projection: equal states have equal digests."""
    q = queries("services.search", "digest")
    return {r["name"]: r["digest"] async for r in q.digests(pool)}
