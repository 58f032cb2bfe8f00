"""A document over time: its history, and what changed between two of its versions."""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query
from pydantic import TypeAdapter, ValidationError

from contracts.diff import Cause, DiffReply, DiffSide, History, HistoryEntry, SectionKind
from contracts.envelope import Envelope
from contracts.http import AsOf, VersionView
from kernel.errors import Refusal
from kernel.log import Log
from services.search.diff import compare, counted
from services.search.documents import NOW, Documents, When, valid_at

MOST_COMPARED = 32 << 20
"""Bytes of one body that is compared."""
MOST_COUNTED = 2 << 20
"""Bytes of all bodies of a history in which changed sections are counted."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_AS_OF: TypeAdapter[datetime] = TypeAdapter(AsOf)


class Histories:
    """Reads. Diffs are made one at a time: they take a processor from the questions."""

    def __init__(self, event_log: Log, documents: Documents) -> None:
        self._log, self._documents = event_log, documents
        self._turn = asyncio.Semaphore(1)

    async def diff(
        self,
        id_: str,
        older: str | None,
        newer: str | None,
        when: When = NOW,
        *,
        unchanged: bool = False,
    ) -> DiffReply:
        """What changed from one version to another.

        Args:
            id_: a document, a version, or bytes.
            older: a version, bytes, a document (its current version), or a day or instant (what was
                valid then in the document of `id_`); None: the version before `newer`.
            newer: likewise; None: the version that `id_` means.
            when: by what was recorded then.
            unchanged: list the sections that are the same, too.

        Raises:
            Refusal: `unknown-document`, `no-earlier-version`, `not-valid-then`, `no-body`,
                `invalid-request`, `too-large-to-compare`.
        """
        line, meant = await self._documents.line(id_, when)
        new = await self._side(line, meant.document_id, newer, when) if newer else meant
        if older:
            old = await self._side(line, meant.document_id, older, when)
        else:
            if new.document_id != meant.document_id:
                line, _ = await self._documents.line(new.version_id, When(None, when.known))
            old = version_before(line, new)
        bodies = [await self._text(old), await self._text(new)]
        async with self._turn:
            found = await asyncio.to_thread(compare, *bodies, unchanged=unchanged)
        return DiffReply(
            old=_side(old, bodies[0]),
            new=_side(new, bodies[1]),
            counts=found.counts,
            sections=found.sections,
            left_out=found.left_out,
            merged=found.merged,
        )

    async def _side(
        self, line: list[VersionView], document_id: str, name: str, when: When
    ) -> VersionView:
        """A version by what names it, in this document if it is there."""
        if _DAY.match(name):
            return valid_at(
                line,
                document_id,
                _moment(name),
            )
        known = [v for v in line if name in (v.version_id, v.source_id)]
        if known:
            return known[-1]
        return (await self._documents.line(name, When(None, when.known)))[1]

    async def _text(self, version: VersionView) -> bytes:
        if (version.body_bytes or 0) > MOST_COMPARED:
            raise Refusal(
                "too-large-to-compare",
                f"a text of more than {MOST_COMPARED >> 20} MB is not compared",
                status=413,
            )
        return await self._documents.text(version)

    async def history(self, id_: str) -> History:
        """The line of a document: when each version was valid, since when that is known, who sent
        it, and how many sections changed.

        Raises:
            Refusal: `unknown-document`.
        """
        line, meant = await self._documents.line(id_)
        streams = [f"document-{meant.document_id}", *(f"version-{v.version_id}" for v in line)]
        told = Told()
        for envelope in await self._log.streams(streams):
            told.fold(envelope)
        entries = told.entries(line)
        changes = await self._changes(entries, {v.version_id: v for v in line})
        return History(
            document_id=meant.document_id,
            project=meant.project,
            source_key=meant.source_key,
            title=meant.title,
            entries=[
                e.model_copy(update={"changes": changes.get(n)}) for n, e in enumerate(entries)
            ],
        )

    async def _changes(
        self, entries: list[HistoryEntry], versions: dict[str, VersionView]
    ) -> dict[int, dict[SectionKind, int]]:
        """Sections by kind, for entries that follow another one; the newest while it is cheap."""
        room = MOST_COUNTED
        bodies: dict[str, bytes] = {}
        found: dict[int, dict[SectionKind, int]] = {}
        valid = [e for e in entries if e.valid_from is not None]
        for number, (new, old) in enumerate(pairwise(valid)):
            room -= (new.body_bytes or 0) + (old.body_bytes or 0)
            if room < 0:
                break
            try:
                for entry in (old, new):
                    if entry.version_id not in bodies:
                        version = versions[entry.version_id]
                        bodies[entry.version_id] = await self._documents.text(version)
            except Refusal:
                continue  # that text is gone, or waits for a person
            async with self._turn:
                found[number] = await asyncio.to_thread(
                    counted, bodies[old.version_id], bodies[new.version_id]
                )
        return found


def version_before(line: list[VersionView], new: VersionView) -> VersionView:
    """The version that was valid before another one, or, if that never was, came before it.

    Raises:
        Refusal: `no-earlier-version`.
    """
    windows = sorted((w.valid_from, v.version_id) for v in line for w in v.windows)
    here = (new.valid_from, new.version_id)
    earlier = [id_ for at, id_ in windows if (at, id_) < here and id_ != new.version_id]
    if not new.windows or not earlier:
        earlier = [
            v.version_id
            for v in line
            if (v.received_at, v.version_id) < (new.received_at, new.version_id)
            and v.body_sha256 is not None and not new.windows
        ]  # fmt: skip
    if not earlier:
        raise Refusal(
            "no-earlier-version", "there is no earlier version to compare with", status=404
        )
    return next(v for v in line if v.version_id == earlier[-1])


def _moment(text: str) -> datetime:
    try:
        return _AS_OF.validate_python(text)
    except ValidationError as error:
        reason = error.errors(include_input=False, include_url=False)[0]["msg"]
        raise Refusal("invalid-request", f"no day and no instant with zone: {reason}") from error


def _side(version: VersionView, body: bytes) -> DiffSide:
    fields = version.model_dump(include=set(DiffSide.model_fields) - {"body_bytes"})
    return DiffSide(**fields, body_bytes=len(body))


Key = tuple[str, datetime]
"""A window: its version, and when it begins."""


@dataclass
class Told:
    """What the log tells of a document's windows: when each was said first, and why.

    Only what stays in the log for ever is read, so that a history can be told after an erasure.
    """

    begun: dict[Key, tuple[datetime, Cause, str]] = field(default_factory=dict)
    ended: dict[Key, tuple[datetime, datetime, str]] = field(default_factory=dict)
    sent: dict[str, tuple[str, str, datetime]] = field(default_factory=dict)

    def fold(self, envelope: Envelope) -> None:
        """Take in the next event."""
        data, at = envelope.data, envelope.recorded_at
        if envelope.type == "DocumentReceived":
            since = datetime.fromisoformat(str(data["valid_from"]))
            self.sent[data["version_id"]] = (envelope.actor, str(data.get("via", "upload")), since)
        elif envelope.type == "Indexed" and not self.begun:
            version_id = str(data["version_id"])
            if version_id in self.sent:
                self.begun[version_id, self.sent[version_id][2]] = (at, "received", "")
        elif envelope.type in {"Superseded", "Reinstated"}:
            self._windows(envelope)

    def _windows(self, envelope: Envelope) -> None:
        data, at = envelope.data, envelope.recorded_at
        returned = envelope.type == "Reinstated"
        by = str(data["version_id"] if returned else data["by_version_id"])
        actor = envelope.actor if returned else ""
        for window in data["windows"]:
            key = (str(window["version_id"]), datetime.fromisoformat(window["valid_from"]))
            cause: Cause = "reinstated" if returned and key[0] == by else "superseded"
            self.begun.setdefault(key, (at, cause, actor))
            if window.get("valid_until") is None:
                self.ended.pop(key, None)
                continue
            until = datetime.fromisoformat(window["valid_until"])
            if key not in self.ended or self.ended[key][0] != until:
                self.ended[key] = (until, at, by)

    def entries(self, line: Iterable[VersionView]) -> list[HistoryEntry]:
        """One for each window, newest first; then those of versions without one."""
        found = [entry for version in line for entry in self._of(version)]
        old = datetime.min.replace(tzinfo=UTC)
        return sorted(
            found,
            key=lambda e: (e.valid_from is not None, e.valid_from or old, e.received_at),
            reverse=True,
        )

    def _of(self, version: VersionView) -> list[HistoryEntry]:
        actor, via, _ = self.sent.get(version.version_id, ("", "", version.received_at))
        names = {"version_id", "source_id", "name", "title", "status", "received_at",
                 "size_bytes", "body_bytes"}  # fmt: skip
        common = {**version.model_dump(include=names), "via": via}
        if not version.windows:
            return [
                HistoryEntry(
                    **common, actor=actor, current=False, cause="received",
                    valid_from=None, valid_until=None, recorded_at=None,
                )
            ]  # fmt: skip
        now = datetime.now(UTC)
        return [self._entry(common, actor, version.version_id, w, now) for w in version.windows]

    def _entry(
        self, common: dict[str, Any], actor: str, version_id: str, window: Any, now: datetime
    ) -> HistoryEntry:
        start, until = window.valid_from, window.valid_until
        at, cause, by = self.begun.get((version_id, start), (None, "received", ""))
        _, ended_at, ended_by = self.ended.get((version_id, start), (None, None, None))
        return HistoryEntry(
            **common,
            actor=by or actor,
            current=start <= now and (until is None or until > now),
            cause=cause,
            valid_from=start,
            valid_until=until,
            recorded_at=at,
            ended_at=ended_at if until else None,
            ended_by=ended_by if until else None,
        )


def asked(as_of: AsOf | None = None, recorded_as_of: AsOf | None = None) -> When:
    """`?as_of=…&recorded_as_of=…`; who asks for what was recorded then asks for what was valid."""
    return When(as_of or recorded_as_of, recorded_as_of)


InTime = Annotated[When, Depends(asked)]
Side = Annotated[str | None, Query(max_length=128)]


def add_history_routes(app: FastAPI, histories: Histories) -> None:
    """`GET /documents/{id}/diff` and `/history`."""

    @app.get("/documents/{id}/diff", response_model=DiffReply)
    async def get_diff(
        id: str,  # noqa: A002 - the name in the path
        older: Annotated[Side, Query(alias="from")] = None,
        newer: Annotated[Side, Query(alias="to")] = None,
        recorded_as_of: AsOf | None = None,
        unchanged: bool = False,
    ) -> DiffReply:
        when = When(None, recorded_as_of)
        return await histories.diff(id, older, newer, when, unchanged=unchanged)

    @app.get("/documents/{id}/history", response_model=History)
    async def get_history(id: str) -> History:  # noqa: A002
        return await histories.history(id)
