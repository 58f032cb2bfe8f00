"""Stored texts judged by the rules in force: in the background, one at a time, after what is new.

What is done is in the log: a worker that dies is followed by one that goes on from the newest
`RescanAdvanced`, and ids of verdicts follow from the re-scan and the text, so nothing happens
twice. Of several workers one has the turn: whoever advanced the re-scan last, until it was silent
for `LEASE` seconds.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID, uuid4

import structlog

from contracts.envelope import Envelope
from contracts.events import Kept, RescanAdvanced, RescanFinished, RescanStarted
from kernel.db import UNAVAILABLE, queries
from kernel.errors import Retry, WrongVersion
from kernel.log import Log, Pending, to_envelope
from services.scanner.history import Outcome, Rescan, Rescans, Tally, fold
from services.scanner.looking import ACTOR, Closed, Looking, Moved
from services.scanner.stored import LiveFirst, Stored

log = structlog.get_logger()
AWAY: tuple[type[BaseException], ...] = (*UNAVAILABLE, OSError, Retry)
CARRIED: tuple[type[BaseException], ...] = (*UNAVAILABLE, OSError, Closed)
PAGE = 100
"""Receipts that are done between two facts about the progress."""
EVERY = 5.0
"""Seconds of work after which the progress is recorded in any case."""
LEASE = 30.0
"""Seconds of silence after which another worker takes over: longer than a large text takes."""
POLL = 3.0
PATIENCE = 2.0
"""Seconds that a stored text waits for what is new."""
MOVING = 0.2
"""Seconds until a version that moved is looked at again."""


async def load(event_log: Log, project: str) -> Rescans:
    """The re-scans of a project as the log has them now."""
    return fold(await event_log.stream(f"rescans-{project}"))


def pending(event: RescanStarted | RescanAdvanced | RescanFinished, actor: str) -> Pending:
    """A fact about a re-scan on its way into the log; those of one share a correlation."""
    return Pending(event, uuid4(), UUID(event.rescan_id), actor)


def begin(project: str, ruleset: str, receipts: int, actor: str) -> RescanStarted:
    """A new re-scan."""
    return RescanStarted(
        project=project, rescan_id=uuid4().hex, ruleset=ruleset, receipts=receipts, actor=actor
    )


def end(
    rescan: Rescan, outcome: Literal["finished", "cancelled", "replaced"], actor: str
) -> RescanFinished:
    """A re-scan is over, as far as it came."""
    return RescanFinished(
        project=rescan.begun.project,
        rescan_id=rescan.id,
        outcome=outcome,
        counts=rescan.counts,
        seconds=rescan.seconds,
        actor=actor,
    )


class Rescanner:
    """Works on the re-scans that are open, one after the other."""

    def __init__(
        self,
        event_log: Log,
        stored: Stored,
        first: LiveFirst,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._log, self._stored, self._first, self._now = event_log, stored, first, now
        self._sql = queries("services.scanner", "rescan")
        self._wake = asyncio.Event()
        self._mine: dict[str, int] = {}
        """Re-scan → version of its stream that this worker made last."""

    def wake(self) -> None:
        """A re-scan was begun."""
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled; Postgres and the blob store may go away and come back."""
        fresh = True
        while True:
            try:
                await self.round(adopt=fresh)
                fresh = False
            except AWAY as error:
                log.warning("rescan.away", error=f"{type(error).__name__}: {error}"[:300])
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await self._wake.wait()
            self._wake.clear()

    async def round(self, *, adopt: bool = False) -> None:
        """Bring every open re-scan as far as this worker may. `adopt`: begin those anew that were
        begun with other rules, as this process has just come up with new ones."""
        for project in [r["project"] async for r in self._sql.open(self._log.pool)]:
            try:
                await self._turn(project, adopt=adopt)
            except (Closed, WrongVersion):
                log.info("rescan.left", project=project)

    async def _turn(self, project: str, *, adopt: bool) -> None:
        history = await load(self._log, project)
        rescan = history.running
        if rescan is None:
            return
        stored = await self._stored.of(self._log, project)
        ruleset = await stored.ruleset()
        if rescan.begun.ruleset != ruleset:
            if not adopt:
                return  # the process that began it goes on with it
            rescan = await self._anew(rescan, ruleset)
        silent = (self._now() - rescan.updated_at).total_seconds()
        others = rescan.done > 0 and self._mine.get(rescan.id) != rescan.version
        if not others or silent > LEASE:
            looking = Looking(self._log, stored, rescan, history.covered(ruleset))
            await self._work(rescan, looking)

    async def _anew(self, old: Rescan, ruleset: str) -> Rescan:
        project = old.begun.project
        receipts = await self._sql.count_receipts(self._log.pool, project=project)
        begun = begin(project, ruleset, receipts, ACTOR)
        facts = [pending(end(old, "replaced", ACTOR), ACTOR), pending(begun, ACTOR)]
        await self._log.append(facts, expected=old.version)
        rescan = (await load(self._log, project)).running
        if rescan is None:
            raise Closed
        return rescan

    async def _work(self, rescan: Rescan, looking: Looking) -> None:
        project = rescan.begun.project
        log.info("rescan.works", project=project, rescan=rescan.id, cursor=rescan.cursor)
        while page := await self._receipts(rescan):
            tally, since = Tally(), time.monotonic()
            for number, receipt in enumerate(page, 1):
                await self._first.wait(PATIENCE)
                outcome = await self._look(rescan, looking, receipt)
                if outcome is not None:
                    tally.add(outcome)
                if number == len(page) or time.monotonic() - since > EVERY:
                    rescan = await self._advance(rescan, receipt.position, number, tally, since)
                    break  # the next page begins behind it
        over = end(rescan, "finished", ACTOR)
        await self._log.append([pending(over, ACTOR)], expected=rescan.version)
        log.info("rescan.finished", project=project, **over.counts.model_dump())

    async def _receipts(self, rescan: Rescan) -> list[Envelope]:
        rows = self._sql.receipts(
            self._log.pool,
            project=rescan.begun.project,
            after=rescan.cursor,
            until=rescan.until,
            limit=PAGE,
        )
        return [to_envelope(r) async for r in rows]

    async def _advance(
        self, rescan: Rescan, cursor: int, more: int, tally: Tally, since: float
    ) -> Rescan:
        """Record how far it came.

        Raises:
            WrongVersion: it was cancelled, or another worker is at it.
        """
        event = RescanAdvanced(
            project=rescan.begun.project,
            rescan_id=rescan.id,
            cursor=cursor,
            receipts=rescan.done + more,
            counts=tally.on(rescan.counts),
            kept=tuple(tally.kept),
            seconds=round(time.monotonic() - since, 3),
        )
        done = await self._log.append([pending(event, ACTOR)], expected=rescan.version)
        self._mine[rescan.id] = done.version
        return rescan.apply(event, done.version, self._now())

    async def _look(self, rescan: Rescan, looking: Looking, receipt: Envelope) -> Outcome | None:
        """What becomes of a version, which is looked at with its newest receipt; None: not this."""
        ids = {k: receipt.data[k] for k in ("version_id", "document_id")}
        while True:
            try:
                life = [to_envelope(r) async for r in self._sql.life(self._log.pool, **ids)]
                received = [e.position for e in life if e.type == "DocumentReceived"]
                if max(p for p in received if p <= rescan.until) != receipt.position:
                    return None
                return await looking.outcome(life)
            except (Moved, WrongVersion):
                await asyncio.sleep(MOVING)
            except Retry as later:
                await asyncio.sleep(later.after)
            except CARRIED:
                raise
            except Exception:
                # A version that hurts its reader costs the re-scan that version only.
                log.exception("rescan.unreadable", **ids)
                return Kept(**ids, code="text-unreadable")
