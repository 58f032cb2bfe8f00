"""The auditor: do the stores hold what the log says? One document after the other, for ever.

What a store must hold, and how it is put right, is each service's own knowledge (`Examiner`). Here
is the rest: which document comes next and how fast, that a difference is seen twice before it is
called one, that it is recorded, and that it is counted.
"""

import asyncio
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID, uuid4, uuid5

import structlog
from fastapi import FastAPI
from pydantic import Field

from contracts.audit import AuditPage, AuditRequest, Check, Finding
from contracts.envelope import Envelope
from contracts.events import Drifted
from kernel.chain import whole
from kernel.db import UNAVAILABLE, queries
from kernel.errors import KbError, Retry
from kernel.log import REACTIONS, Log, Pending
from kernel.settings import Environment
from kernel.telemetry import AUDITED, DRIFT

log = structlog.get_logger()

SETTLES = timedelta(minutes=15)
"""A little over all repetitions of a delivery: what a service has not done about an event by then,
it will not do any more."""
PAGE_SECONDS = 5.0
"""A page ends with the document that is being looked at by then."""
ROUND_SECONDS = 600.0
"""In the background a document is looked at once in this time at most, however few there are."""
SHARE = 0.1
"""Of the time that the background may be at work."""
AWAY_SECONDS = 5.0
SHOWN = 200
"""Findings that a page lists; all are counted."""
EXAMPLES = 20
TAMPERED = "the log about it is not as it was recorded"
AWAY: tuple[type[BaseException], ...] = (*UNAVAILABLE, OSError, Retry)


class AuditSettings(Environment):
    """How much the auditor does by itself."""

    audit_per_minute: float = Field(
        60, ge=0, description="documents that the auditor compares with the log; 0: none by itself"
    )


@dataclass(frozen=True)
class Subject:
    """A document to look at; `position`: of its first receipt."""

    position: int
    project: str
    document_id: str


@dataclass
class Looked:
    """What a look at a document found. `checked`: things that were compared. `moving`: something
    differs, and a service is still at work on it."""

    checked: int = 0
    findings: list[Finding] = field(default_factory=list)
    moving: bool = False


class Streams(Protocol):
    """The part of the log that is read here."""

    async def stream(self, stream_id: str) -> list[Envelope]: ...
    async def streams(self, stream_ids: Sequence[str]) -> list[Envelope]: ...


class Examiner(Protocol):
    """What a service knows of its own store."""

    check: Check
    drifted: type[Drifted]

    async def look(self, subject: Subject) -> Looked:
        """Compare what the store holds of a document with the log; changes nothing."""
        ...

    async def repair(self, subject: Subject, findings: Sequence[Finding]) -> None:
        """Put right what can be. Raises KbError or FileNotFoundError for what cannot."""
        ...

    async def strays(self, project: str | None) -> list[Finding]:
        """What is in the store and belongs to no document of the log."""
        ...

    async def remove(self, strays: Sequence[Finding]) -> None:
        """Take these out of the store."""
        ...


class Auditor:
    """Goes over all documents with an examiner: page by page when asked, slowly by itself."""

    def __init__(self, event_log: Log, service: str, examiner: Examiner, per_minute: float) -> None:
        self._log, self._service, self._examiner = event_log, service, examiner
        self._per_minute = per_minute
        self._pause = AWAY_SECONDS
        self._sql = queries("kernel.sql", "audit")

    async def page(self, request: AuditRequest) -> AuditPage:
        """Look at the next documents, for a few seconds at most."""
        subjects = await self._subjects(request.after, request.project, request.limit)
        position, until = request.after, time.monotonic() + PAGE_SECONDS
        looks: list[Looked] = []
        for subject in subjects:
            looks.append(await self.examine(subject, repair=request.repair))
            position = subject.position
            if time.monotonic() > until:
                break
        findings = [f for looked in looks for f in looked.findings]
        done = len(looks) == len(subjects) < request.limit
        if done:
            findings += await self.strays(request.project, repair=request.repair)
        await self.record(findings)
        return AuditPage(
            position=position,
            done=done,
            documents=len(looks),
            moving=sum(looked.moving for looked in looks),
            checked=sum(looked.checked for looked in looks),
            found=_count(findings),
            repaired=_count(f for f in findings if f.repaired),
            findings=tuple(findings[:SHOWN]),
        )

    async def run(self) -> None:
        """Look at one document after the other until cancelled, and repair what differs."""
        after: int | None = None
        while self._per_minute:
            started = time.monotonic()
            try:
                after = await self._turn(after)
                least = self._pause
            except AWAY as error:
                log.warning("audit.away", error=f"{type(error).__name__}: {error}"[:300])
                least = AWAY_SECONDS
            spent = time.monotonic() - started
            await asyncio.sleep(max(least, spent * (1 / SHARE - 1)))

    async def _turn(self, after: int | None) -> int:
        """The next document, or the strays when there is none; returns where to go on.

        It begins anywhere: a process that is started anew often would never come to the end.
        """
        if after is None:
            after = random.randrange((await self._breathe())["head"] + 1)  # noqa: S311 - no secret
        subjects = await self._subjects(after, None, 1)
        if not subjects:
            await self.record(await self.strays(None, repair=True))
            await self._breathe()
            return 0
        try:
            await self.record((await self.examine(subjects[0], repair=True)).findings)
        except AWAY:
            raise
        except Exception:  # a document that hurts the auditor costs that look only
            log.exception("audit.bug", document_id=subjects[0].document_id)
        return subjects[0].position

    async def _breathe(self) -> dict[str, int]:
        """How fast to go, now that there are so many documents."""
        size = dict(await self._sql.size(self._log.pool, project=None))
        self._pause = max(60 / self._per_minute, ROUND_SECONDS / (size["documents"] + 1))
        return size

    async def examine(self, subject: Subject, *, repair: bool) -> Looked:
        """Look at a document; what differs is looked at once more, and put right if that is asked
        for."""
        AUDITED.labels(self._examiner.check).inc()
        looked = await self._examiner.look(subject)
        if not looked.findings:
            return looked
        again = await self._examiner.look(subject)
        first = {_key(f) for f in looked.findings}
        findings = [f for f in again.findings if _key(f) in first]
        if repair and findings:
            findings = await self._repaired(subject, findings)
        return Looked(looked.checked, findings, again.moving)

    async def _repaired(self, subject: Subject, findings: list[Finding]) -> list[Finding]:
        """The findings, and which of them are no more after a repair."""
        why = None
        try:
            if not await self._whole(subject):
                return [f.model_copy(update={"left": TAMPERED}) for f in findings]
            await self._examiner.repair(subject, findings)
        except Retry as error:
            why = f"a store was busy: {error}"
        except (KbError, FileNotFoundError) as error:
            why = f"{type(error).__name__} while it was repaired"
        left = {_key(f) for f in (await self._examiner.look(subject)).findings}
        return [
            f.model_copy(update={"left": f.left or why} if _key(f) in left else {"repaired": True})
            for f in findings
        ]

    async def _whole(self, subject: Subject) -> bool:
        """Is the log about a document as it was recorded? From another nothing may be repaired."""
        events = await history(self._log, subject.document_id)
        return await whole(self._log.pool, list({e.stream_id for e in events}))

    async def strays(self, project: str | None, *, repair: bool) -> list[Finding]:
        """What belongs to no document."""
        found = await self._examiner.strays(project)
        if not repair or not found:
            return found
        await self._examiner.remove(found)
        left = {_key(f) for f in await self._examiner.strays(project)}
        return [f.model_copy(update={"repaired": _key(f) not in left}) for f in found]

    async def record(self, findings: Sequence[Finding]) -> None:
        """One event a project. What was not repaired is recorded once: the id of the event says
        what is wrong, and since when the document is as it is."""
        for project in dict.fromkeys(f.project for f in findings):
            mine = [f for f in findings if f.project == project]
            repaired = _count(f for f in mine if f.repaired)
            event = self._examiner.drifted(
                project=project,
                found=_count(mine),
                repaired=repaired,
                examples=tuple(f"{f.what}:{f.id}" for f in mine[:EXAMPLES]),
            )
            id_ = uuid4() if repaired else _standing(mine)
            pending = Pending(event, id_, id_, f"svc:{self._service}", lane="bulk")
            if (await self._log.append([pending])).status == "appended":
                _tell(mine)

    async def _subjects(self, after: int, project: str | None, limit: int) -> list[Subject]:
        rows = self._sql.documents(self._log.pool, after=after, project=project, limit=limit)
        return [Subject(r["position"], r["project"], r["document_id"]) async for r in rows]


def _key(finding: Finding) -> tuple[str, str, str | None]:
    return finding.what, finding.id, finding.version_id


def _count(findings: Iterable[Finding]) -> int:
    return sum(f.count for f in findings)


def _standing(findings: Sequence[Finding]) -> UUID:
    """The id of the event about these, which are not repaired."""
    said = sorted(f"{f.check}|{f.what}|{f.version_id}|{f.id}|{f.count}|{f.at}" for f in findings)
    return uuid5(REACTIONS, "audit|" + "\n".join(said))


def _tell(findings: Sequence[Finding]) -> None:
    for f in findings:
        outcome = "repaired" if f.repaired else "left"
        DRIFT.labels(f.check, f.what, outcome).inc(f.count)
    log.warning(
        "audit.drift",
        project=findings[0].project,
        found=_count(findings),
        repaired=_count(f for f in findings if f.repaired),
        examples=[f"{f.what}:{f.id}" for f in findings[:EXAMPLES]],
    )


async def history(event_log: Streams, document_id: str) -> list[Envelope]:
    """Every event of a document and of its versions, in log order."""
    own = await event_log.stream(f"document-{document_id}")
    versions = dict.fromkeys(e.data["version_id"] for e in own if "version_id" in e.data)
    return await event_log.streams([f"document-{document_id}", *(f"version-{v}" for v in versions)])


def by_version(envelopes: Iterable[Envelope]) -> dict[str, list[Envelope]]:
    """Events by the version that they are about, versions in the order in which they came."""
    found: dict[str, list[Envelope]] = {}
    for envelope in envelopes:
        found.setdefault(envelope.data["version_id"], []).append(envelope)
    return found


def settled(envelopes: Sequence[Envelope], now: datetime) -> bool:
    """Is the newest of these events so old that every service has done what it does about it?"""
    return not envelopes or envelopes[-1].recorded_at + SETTLES < now


def add_audit_route(app: FastAPI, auditor: Auditor, check: Check) -> None:
    """`POST /audit/<check>`."""

    @app.post(f"/audit/{check}", response_model=AuditPage, name=f"audit_{check}")
    async def post_audit(request: AuditRequest) -> AuditPage:
        return await auditor.page(request)
