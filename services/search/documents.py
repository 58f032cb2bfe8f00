"""Documents, bodies, journals and jobs as the read projection and the log have them."""

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from contracts.artifacts import BodyMeta
from contracts.events import Window
from contracts.http import (
    FINAL,
    DocumentPage,
    DocumentView,
    JobPage,
    JobView,
    Journal,
    JournalEntry,
    Relative,
    Status,
    VersionView,
)
from contracts.states import STATES
from kernel.blobs import Blobs
from kernel.db import queries
from kernel.errors import Refusal
from kernel.front_matter import front_matter
from kernel.log import Log, to_envelope
from services.search.domain import holds
from services.search.notes import notes

MOST_COUNTED = 1000


@dataclass(frozen=True)
class When:
    """What a reader asks for: what was valid at `moment`, by what was recorded at `known`.

    `moment` None: whatever is asked for by its id; of a document the version that is valid now, or
    was when it was `known`. `known` None: by what is recorded now.
    """

    moment: datetime | None = None
    known: datetime | None = None


NOW = When()


class Documents:
    """Reads. An id may be a version id, a document id, or a `source_id` (SHA-256 of the bytes)."""

    def __init__(self, event_log: Log, blobs: Blobs) -> None:
        self._log, self._blobs = event_log, blobs
        self._sql = queries("services.search", "queries")
        self._in_time = queries("services.search", "documents")

    async def document(self, id_: str, when: When = NOW) -> DocumentView:
        """The version that `id_` names (of a document: the current one), and its line; with a
        moment the version of that line that was valid then.

        Raises:
            Refusal: `unknown-document`, `not-valid-then`.
        """
        line, chosen = await self.line(id_, when)
        [noted] = await self._noted([chosen])
        return DocumentView(
            **noted.model_dump(exclude={"versions"}),
            versions=line,
            **await self._family(chosen, line),
        )

    async def _family(self, chosen: VersionView, line: list[VersionView]) -> dict[str, Any]:
        """What the document is attached to, what is attached to it, and what was left out."""
        pool = self._log.pool
        above = None
        if chosen.parent is not None:
            above = await self._sql.relative(pool, version_id=chosen.parent)
        below = self._sql.attachments_of(pool, version_ids=[v.version_id for v in line])
        said = await self._sql.left_out(pool, version_id=chosen.version_id) or {}
        return {
            "attached_to": above and Relative(**dict(above)),
            "attachments": [_relative(r) async for r in below],
            "left_out": said.get("left_out", []),
            "left_out_by_code": said.get("left_out_by_code", {}),
        }

    async def line(self, id_: str, when: When = NOW) -> tuple[list[VersionView], VersionView]:
        """All versions of a document, oldest first, and the one that is meant (see `document`)."""
        versions, chosen = await self._find(id_, when)
        return [v for v in versions if v.document_id == chosen.document_id], chosen

    async def body(self, id_: str, when: When = NOW) -> tuple[VersionView, bytes]:
        """The canonical Markdown of a version, without front matter: what offsets point into.

        Raises:
            Refusal: `unknown-document`, `not-valid-then`, or those of `text`.
        """
        _, chosen = await self._find(id_, when)
        return chosen, await self.text(chosen)

    async def text(self, chosen: VersionView) -> bytes:
        """The body of a version that was found.

        Raises:
            Refusal: `no-body` (not converted yet, in review, or erased).
        """
        # In review with a window: a new parse waits for a person, the text before is searchable.
        hidden = chosen.status in ("blocked", "rejected", "erased")
        judged = chosen.status == "review" or chosen.verdict in ("quarantine", "block")
        hidden |= judged and not chosen.windows
        if chosen.body_sha256 is None or hidden:
            raise Refusal(
                "no-body", f"the version is {chosen.status}: it has no body to read", status=404
            )
        try:
            return await self._blobs.get(chosen.body_sha256)
        except FileNotFoundError as error:
            raise Refusal("no-body", "the body was erased", status=410) from error

    async def front_matter(self, version: VersionView) -> bytes:
        """YAML to stand before a version's body: what it is, and when it is valid.

        Offsets into the body count behind it.

        Raises:
            Refusal: `no-body` (erased).
        """
        name = await self._in_time.meta_of(self._log.pool, version_id=version.version_id)
        try:
            meta = BodyMeta.model_validate_json(await self._blobs.get(str(name)))
        except FileNotFoundError as error:
            raise Refusal("no-body", "the body was erased", status=410) from error
        until = version.valid_until
        fields = {
            "source": version.source_key,
            "name": version.name,
            "project": version.project,
            "document_id": version.document_id,
            "version_id": version.version_id,
            "source_id": version.source_id,
            "valid_from": version.valid_from.isoformat(),
            "valid_until": until and until.isoformat(),
        }
        return front_matter(meta, fields).encode()

    async def journal(self, id_: str) -> Journal:
        """Every event of the document and its versions, oldest first.

        Raises:
            Refusal: `unknown-document`.
        """
        versions, chosen = await self._find(id_)
        ids = [v.version_id for v in versions if v.document_id == chosen.document_id]
        streams = [f"document-{chosen.document_id}", *(f"version-{v}" for v in ids)]
        entries = [
            JournalEntry(
                position=e.position,
                type=e.type,
                at=e.recorded_at,
                actor=e.actor,
                version_id=e.data.get("version_id"),
                data=e.data,
            )
            for e in await self._log.streams(streams)
        ]
        return Journal(document_id=chosen.document_id, entries=entries)

    async def listing(
        self,
        project: str | None,
        cursor: str | None,
        limit: int,
        *,
        status: Status | None = None,
        trusted: bool | None = None,
        source: str | None = None,
        when: When = NOW,
    ) -> DocumentPage:
        """A page of versions, newest first; a list by status or trust tells also why and by whom.

        `source`: only those of that source key or file name. With a moment: only those that were
        valid then, as they were: the whole base on that day.

        Raises:
            Refusal: `invalid-cursor`.
        """
        before, before_id = _cursor(cursor)
        which = {
            "project": project, "status": status, "trusted": trusted, "source": source,
            "moment": when.moment, "known": when.known,
        }  # fmt: skip
        pool, sql = self._log.pool, self._in_time
        rows = sql.listing(pool, **which, before=before, before_id=before_id, limit=limit + 1)
        views = [_version(r, when) async for r in rows]
        more = views[limit - 1] if len(views) > limit else None
        page, total = views[:limit], None
        judged = status is not None or trusted is not None
        if judged:
            page = await self._noted(page)
        if judged or source is not None or when.moment is not None:
            total = await sql.count_listing(pool, **which, limit=MOST_COUNTED)
        return DocumentPage(
            documents=page,
            next=_encode(more.received_at, more.version_id) if more else None,
            total=total,
        )

    async def _noted(self, versions: list[VersionView]) -> list[VersionView]:
        """The versions with their newest verdict, and with who trusted them."""
        streams = [f"version-{v.version_id}" for v in versions]
        streams += {f"document-{v.document_id}" for v in versions if v.trusted}
        rows = self._sql.judgements(self._log.pool, streams=streams)
        envelopes = [to_envelope(r) async for r in rows]
        return [v.model_copy(update=notes(v, envelopes)) for v in versions]

    async def job(self, id_: str) -> JobView:
        """One ingest.

        Raises:
            Refusal: `unknown-job`.
        """
        try:
            row = await self._sql.job(self._log.pool, job_id=UUID(id_))
        except ValueError:
            row = None
        if row is None:
            row = await self._log_job(id_)
        if row is None:
            raise Refusal("unknown-job", "there is no such job", status=404)
        return _job(row)

    async def jobs(self, project: str | None, cursor: str | None, limit: int) -> JobPage:
        """A page of jobs, newest first."""
        before, before_id = _cursor(cursor)
        rows = self._sql.jobs(
            self._log.pool, project=project, before=before, before_id=before_id, limit=limit + 1
        )
        views = [_job(r) async for r in rows]
        more = views[limit - 1] if len(views) > limit else None
        return JobPage(
            jobs=views[:limit], next=_encode(more.started_at, more.job_id) if more else None
        )

    async def _log_job(self, id_: str) -> Any:
        """A job that the log has and the projection has not reached yet: accepted is visible."""
        try:
            envelope = await self._log.job(UUID(id_))
        except ValueError:
            return None
        if envelope is None:
            return None
        keep = ("project", "document_id", "version_id", "name")
        at = envelope.recorded_at
        return {k: envelope.data[k] for k in keep} | {
            "job_id": id_, "status": "received", "stage": "converter", "chunk_count": None,
            "error": None, "started_at": at, "updated_at": at, "attempt": envelope.data["attempt"],
        }  # fmt: skip

    async def _find(self, id_: str, when: When = NOW) -> tuple[list[VersionView], VersionView]:
        rows = self._in_time.version(self._log.pool, id=id_, known=when.known)
        versions = [_version(r, when) async for r in rows]
        if not versions:
            raise Refusal("unknown-document", "there is no such document or version", status=404)
        if when.moment is None:
            return versions, _choose(versions, id_)
        return versions, valid_at(versions, _choose(versions, id_).document_id, when.moment)


def _choose(versions: list[VersionView], id_: str) -> VersionView:
    """The version that the id names; of a document the current, else the newest; of bytes the
    newest that is in the index, else the newest."""
    exact = [v for v in versions if id_ in (v.version_id, v.source_id)]
    pool = exact or [v for v in versions if v.document_id == id_]
    order = {True: 2, False: 0}
    return max(
        reversed(pool), key=lambda v: (order[v.current], v.status == "indexed", v.received_at)
    )


def valid_at(versions: list[VersionView], document_id: str, moment: datetime) -> VersionView:
    """The version of a document that was valid at a moment.

    Raises:
        Refusal: `not-valid-then`.
    """
    for version in versions:
        window = window_at(version.windows, moment)
        if version.document_id == document_id and window is not None:
            times = {"valid_from": window.valid_from, "valid_until": window.valid_until}
            return version.model_copy(update=times)
    raise Refusal("not-valid-then", "no version of the document was valid then", status=404)


def window_at(windows: list[Window], moment: datetime) -> Window | None:
    """The window that holds a moment."""
    return next((w for w in windows if holds(w.valid_from, w.valid_until, moment)), None)


def _version(row: Any, when: When = NOW) -> VersionView:
    """A version as it is, or was: `current` by what is, or was, known."""
    windows = [Window.model_validate(w) for w in row["windows"]]
    current = window_at(windows, when.known or datetime.now(UTC)) is not None
    meant = window_at(windows, when.moment) if when.moment else None
    last = meant or (windows[-1] if windows else None)
    # Not what a newer release added to the table, and what is made below.
    shown = VersionView.model_fields.keys() - {"windows", "valid_from", "job_id", "labels"}
    fields = {name: value for name, value in dict(row).items() if name in shown}
    return VersionView(
        **fields,
        job_id=str(row["job_id"]),
        valid_from=last.valid_from if last else row["valid_from"],
        valid_until=last.valid_until if last else None,
        current=current,
        windows=windows,
        labels=row["labels"] or [],
    )


def _job(row: Any) -> JobView:
    fields = dict(row) | {"job_id": str(row["job_id"])}
    state = STATES[row["status"]]
    deadline = None if state.within is None else row["updated_at"] + state.within
    return JobView(
        **fields,
        done=row["status"] in FINAL,
        owner=state.owner,
        deadline=deadline,
        next_action=state.next_action,
        overdue=deadline is not None and deadline < datetime.now(UTC),
        progress=state.progress,
    )


def _relative(row: Any) -> Relative:
    return Relative(**{k: v for k, v in dict(row).items() if k != "received_at"})


def _encode(at: datetime, id_: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([at.isoformat(), id_]).encode()).decode()


def _cursor(cursor: str | None) -> tuple[datetime | None, str | None]:
    if not cursor:
        return None, None
    try:
        at, id_ = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        return datetime.fromisoformat(at), str(id_)
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise Refusal("invalid-cursor", "take `next` of the page before") from error
