"""The event stream: facts of the log as server-sent events, to follow and to resume."""

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from sse_starlette import EventSourceResponse, ServerSentEvent

from contracts.envelope import Envelope
from contracts.events import Project
from kernel.log import Log
from services.search.places import LAST


def add_stream_route(app: FastAPI, log: Log) -> None:
    """`GET /events`."""

    @app.get("/events")
    async def get_events(
        request: Request,
        after: Annotated[int, Query(ge=0, le=LAST)] = 0,
        follow: bool = True,
        project: Project | None = None,
    ) -> Response:
        resume = request.headers.get("last-event-id", "")
        start = min(int(resume[:19]), LAST) if resume.isdecimal() else after
        return EventSourceResponse(_events(log, start, follow, project), ping=15)


async def _events(
    log: Log, after: int, follow: bool, project: str | None
) -> AsyncIterator[ServerSentEvent]:
    """Events after a position as server-sent events; their id is the position, to resume from."""
    if follow:
        async for batch in log.follow(after):
            for envelope in batch:
                if project in (None, envelope.project):
                    yield _sse(envelope)
        return
    while batch := await log.read(after):
        after = batch[-1].position
        for envelope in batch:
            if project in (None, envelope.project):
                yield _sse(envelope)


def _sse(envelope: Envelope) -> ServerSentEvent:
    data = json.dumps(envelope.to_cloudevent(), ensure_ascii=False)
    return ServerSentEvent(data, event=envelope.type, id=str(envelope.position))
