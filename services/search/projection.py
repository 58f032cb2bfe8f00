"""The read projection: documents, versions, validity and jobs, folded from the log in order."""

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg
import structlog
from pydantic import ValidationError

from contracts.artifacts import BodyMeta
from contracts.envelope import Envelope
from contracts.events import Converted, Event
from kernel.blobs import Blobs
from kernel.db import UNAVAILABLE, queries
from kernel.log import Log
from kernel.telemetry import LOG_HEAD, PROJECTION_POSITION
from services.search.fold import Changes, Entry, Known, Said, Touched, fold, touched

log = structlog.get_logger()
AWAY: tuple[type[BaseException], ...] = (*UNAVAILABLE, OSError)
BATCH = 500
AT_ONCE = 16
"""Titles that are read together."""
REVISION = 2
"""Of the fold: tables that an earlier one made are made anew. 2: recorded time is kept."""


class Projection:
    """Folds the log into `read.version`, `read.validity`, `read.validity_past` and `read.job`.

    Recorded time is that of the event. The checkpoint moves in the transaction of the writes, and
    its row lock makes replicas take turns, so every event is folded in exactly once.
    """

    def __init__(self, event_log: Log, blobs: Blobs, *, batch: int = BATCH) -> None:
        self._log, self._blobs, self._size = event_log, blobs, batch
        self._sql = queries("services.search", "projection")
        self.folded = asyncio.Event()
        """Set when this process folds something in after it was taken."""

    async def run(self) -> None:
        """Follow the log until cancelled; Postgres may go away and come back."""
        while True:
            try:
                await self._sql.start(self._log.pool)
                await self.renew()
                async for _ in self._log.follow(await self.position(), limit=self._size):
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
            batch = await self._log.read(after or 0, self._size)
            if batch:
                await self._fold(connection, batch, position=batch[-1].position)
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
            while batch := await self._log.read(position, self._size):
                await self._fold(connection, batch)
                position = batch[-1].position
            await self._sql.set_position(connection, position=position)
        return position

    async def _fold(
        self, connection: Any, batch: Sequence[Envelope], *, position: int | None = None
    ) -> None:
        """Read what the events touch, fold them, write what changed; under the lock. `position`:
        where the projection is then."""
        entries = await self._entries(batch)
        known = await self._known(connection, touched(entries))
        await self._write(connection, fold(known, entries), position)

    async def _entries(self, batch: Sequence[Envelope]) -> list[Entry]:
        """The events that are folded; settings of a project are read from its stream."""
        facts = [(envelope, envelope.fact()) for envelope in batch]
        events = [(envelope, fact) for envelope, fact in facts if isinstance(fact, Event)]
        titles = await self._read_titles([e for _, e in events if isinstance(e, Converted)])
        return [
            Entry(
                event=event,
                job=str(envelope.correlation_id),
                position=envelope.position,
                at=envelope.recorded_at,
                title=titles.get(id(event)),
            )
            for envelope, event in events
        ]

    async def _read_titles(self, events: Sequence[Converted]) -> dict[int, str | None]:
        """By the identity of the event, several at a time."""
        if not events:
            return {}
        turns = asyncio.Semaphore(AT_ONCE)

        async def title(event: Converted) -> str | None:
            async with turns:
                return await self._title(event)

        found = await asyncio.gather(*map(title, events))
        return {id(event): title for event, title in zip(events, found, strict=True)}

    async def _title(self, event: Converted) -> str | None:
        """Titles are text, so they are in a blob and not in the log; an erased one is gone."""
        try:
            return BodyMeta.model_validate_json(await self._blobs.get(event.meta_sha256)).title
        except (FileNotFoundError, ValidationError):
            return None

    async def _known(self, connection: Any, ids: Touched) -> Known:
        named = {name: sorted(getattr(ids, name)) for name in Touched.__dataclass_fields__}
        known, asked = Known(), [self._sql.known] if ids.versions else []
        if ids.windowed or ids.moved:
            asked.append(self._sql.known_windows)
        for ask in asked:
            async for kind, row in ask(connection, **named):
                if kind == "version":
                    known.versions[row["version_id"]] = row
                elif kind == "job":
                    known.jobs[row["job_id"]] = row
                else:
                    said = Said.of(row)
                    known.windows[said.key] = said
        return known

    async def _write(self, connection: Any, changes: Changes, position: int | None) -> None:
        if changes.gone:
            versions, begins = zip(*changes.gone, strict=True)
            await self._sql.drop_windows(connection, version_ids=versions, froms=begins)
        if changes.windows or changes.past or changes.lines:
            await self._sql.write_windows(
                connection, windows=changes.windows, past=changes.past, lines=changes.lines
            )
        if changes.versions or changes.jobs or position is not None:
            await self._sql.write(
                connection, versions=changes.versions, jobs=changes.jobs, position=position
            )


async def digest(pool: "asyncpg.Pool[Any]") -> dict[str, str]:
    """One hash a table of the projection: equal states have equal digests."""
    q = queries("services.search", "digest")
    return {r["name"]: r["digest"] async for r in q.digests(pool)}
