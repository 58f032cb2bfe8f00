"""`GET /events`: facts of the log, filtered, as server-sent events or as JSON lines."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from pydantic import BaseModel, Field
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import StreamingResponse

from contracts.envelope import Envelope
from contracts.events import EVENTS, Project
from contracts.http import Plain, ValidFrom
from contracts.replay import EventCount, EventSummary
from kernel.db import queries
from kernel.errors import Refusal
from kernel.log import Log, to_envelope
from services.search.places import LAST

PAGE = 500
"""Events that are read, and written out, at once: questions are answered between two pages."""
JSON_LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Filter:
    """Which events: no types are all types; the rest is not asked where it is None."""

    types: tuple[str, ...] = ()
    project: str | None = None
    stream: str | None = None

    def matches(self, envelope: Envelope) -> bool:
        """Is this one of them?"""
        return (
            (not self.types or envelope.type in self.types)
            and self.project in (None, envelope.project)
            and self.stream in (None, envelope.stream_id)
        )


@dataclass(frozen=True)
class Span:
    """Positions after `after`, up to `until`; None: there is no end."""

    after: int
    until: int | None


class RangeQuery(BaseModel, hide_input_in_errors=True):
    """Query of `GET /events/summary`: positions after `after`, up to `until`, of what was recorded
    at or after `recorded_from` and before `recorded_before` (of a bare day: its start, UTC)."""

    after: int = Field(0, ge=0, le=LAST)
    until: int | None = Field(None, ge=0, le=LAST)
    recorded_from: ValidFrom | None = None
    recorded_before: ValidFrom | None = None
    type: list[str] = []
    project: Project | None = None
    stream: Plain | None = None

    def filter(self) -> Filter:
        """Which events.

        Raises:
            Refusal: `unknown-event-type`.
        """
        names = tuple(dict.fromkeys(self.type))
        if strange := [name for name in names if name not in EVENTS]:
            known = ", ".join(sorted(EVENTS))
            raise Refusal("unknown-event-type", f"{', '.join(strange)[:200]}; there are {known}")
        return Filter(names, self.project, self.stream)


class EventQuery(RangeQuery):
    """Query of `GET /events`. `current`: data of old versions in the current shape. `follow`: go
    on with what comes; server-sent events do so unless it is false."""

    current: bool = False
    follow: bool | None = None


class Stream:
    """Reads of the log for those who are not one of its services."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._sql = queries("services.search", "stream")

    async def span(self, asked: RangeQuery) -> Span:
        """The range that the limits by position and by time leave."""
        after, until = asked.after, asked.until
        if asked.recorded_from is not None:
            after = max(after, await self._before(asked.recorded_from))
        if asked.recorded_before is not None:
            last = await self._before(asked.recorded_before)
            until = last if until is None else min(until, last)
        return Span(after, until)

    async def pages(self, span: Span, which: Filter) -> AsyncIterator[list[Envelope]]:
        """The events of a range that are in the log now, in order; no page is empty."""
        after, until = span.after, await self._end(span)
        while after < until and (page := await self._page(after, until, which)):
            yield page
            after = page[-1].position

    async def follow(self, span: Span, which: Filter) -> AsyncIterator[list[Envelope]]:
        """The same, and then what comes, until the end of the range if it has one."""
        head = await self._log.head()
        there = Span(span.after, head if span.until is None else min(span.until, head))
        async for page in self.pages(there, which):
            yield page
        after = max(span.after, head)
        if span.until is not None and after >= span.until:
            return
        async for batch in self._log.follow(after):
            yield [e for e in batch if which.matches(e) and _within(e, span)]
            if batch and span.until is not None and batch[-1].position >= span.until:
                return

    async def summary(self, span: Span, which: Filter) -> EventSummary:
        """Counts by project and type."""
        until = await self._end(span)
        rows = [r async for r in self._asked("counts", which, after=span.after, until=until)]
        first = min((r["first"] for r in rows), default=None)
        last = max((r["last"] for r in rows), default=None)
        return EventSummary(
            events=sum(r["events"] for r in rows),
            after=span.after,
            until=until,
            first=first,
            last=last,
            first_recorded=await self._recorded_at(first),
            last_recorded=await self._recorded_at(last),
            head=await self._log.head(),
            counts=[EventCount(project=r["project"], type=r["type"], events=r["events"])
                    for r in rows],
        )  # fmt: skip

    async def _page(self, after: int, until: int, which: Filter) -> list[Envelope]:
        rows = self._asked("events", which, after=after, until=until, limit=PAGE)
        return [to_envelope(r) async for r in rows]

    def _asked(self, what: str, which: Filter, **limits: int) -> Any:
        """Rows of the query that finds these events by an index: what is optional in a statement
        may cost it its index."""
        filters: dict[str, Any] = {}
        name = what
        if which.stream is not None:
            name = f"{what}_of_stream"
            filters = {"stream": which.stream, "types": list(which.types) or None}
            filters["project"] = which.project
        elif which.types:
            name = f"{what}_of_types"
            filters = {"types": list(which.types), "project": which.project}
        elif which.project is not None:
            name = f"{what}_of_project"
            filters = {"project": which.project}
        return getattr(self._sql, name)(self._log.pool, **filters, **limits)

    async def _end(self, span: Span) -> int:
        head = await self._log.head()
        return head if span.until is None else min(span.until, head)

    async def _before(self, moment: datetime) -> int:
        return int(await self._sql.position_before(self._log.pool, moment=moment))

    async def _recorded_at(self, position: int | None) -> datetime | None:
        if position is None:
            return None
        found: datetime = await self._sql.recorded_at(self._log.pool, position=position)
        return found


def add_stream_route(app: FastAPI, log: Log) -> None:
    """`GET /events` and `GET /events/summary`."""
    stream = Stream(log)

    @app.get("/events")
    async def get_events(request: Request, asked: Annotated[EventQuery, Query()]) -> Response:
        resume = request.headers.get("last-event-id", "")
        if resume.isdecimal():
            asked = asked.model_copy(update={"after": min(int(resume[:19]), LAST)})
        which, span = asked.filter(), await stream.span(asked)
        if JSON_LINES in request.headers.get("accept", ""):
            if asked.follow:
                raise Refusal("invalid-request", "JSON lines end; text/event-stream goes on")
            lines = _lines(stream.pages(span, which), asked.current)
            return StreamingResponse(lines, media_type=JSON_LINES)
        if asked.follow is False:
            return EventSourceResponse(_sse(stream.pages(span, which), asked.current), ping=15)
        if asked.recorded_before is not None:
            raise Refusal("invalid-request", "follow goes up to a position, not up to a time")
        return EventSourceResponse(_sse(stream.follow(span, which), asked.current), ping=15)

    @app.get("/events/summary", response_model=EventSummary)
    async def get_summary(asked: Annotated[RangeQuery, Query()]) -> EventSummary:
        which = asked.filter()
        return await stream.summary(await stream.span(asked), which)


def _within(envelope: Envelope, span: Span) -> bool:
    return span.until is None or envelope.position <= span.until


def _shaped(envelope: Envelope, current: bool) -> str:
    shown = envelope.current() if current else envelope
    return json.dumps(shown.to_cloudevent(), ensure_ascii=False)


async def _lines(pages: AsyncIterator[list[Envelope]], current: bool) -> AsyncIterator[bytes]:
    async for page in pages:
        yield "".join(f"{_shaped(e, current)}\n" for e in page).encode()


async def _sse(
    pages: AsyncIterator[list[Envelope]], current: bool
) -> AsyncIterator[ServerSentEvent]:
    """Their id is the position, to resume from."""
    async for page in pages:
        for envelope in page:
            data = _shaped(envelope, current)
            yield ServerSentEvent(data, event=envelope.type, id=str(envelope.position))
