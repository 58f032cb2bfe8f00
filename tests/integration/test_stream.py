"""The route `/events` on a real Postgres: filters, ranges, forms."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest
from fastapi import FastAPI

from contracts.events import DocumentReceived, Failed
from kernel.db import pool
from kernel.log import Log, Pending
from kernel.testing import received
from kernel.web import add_problem_handlers
from services.search.stream import (
    JSON_LINES,
    PAGE,
    Filter,
    Span,
    Stream,
    add_stream_route,
)

KEY = {"stage": "converter", "code": "corrupt", "reason": "no"}


class World:
    """A log, and the route over it."""

    def __init__(self, db: "asyncpg.Pool[Any]") -> None:
        self.log = Log(db)
        app = FastAPI()
        add_problem_handlers(app)
        add_stream_route(app, self.log)
        transport = httpx.ASGITransport(app)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://test")

    async def document(self, project: str, *, failed: bool = False) -> DocumentReceived:
        """One event, or two."""
        event = received(project=project, document_id=uuid4().hex, version_id=uuid4().hex)
        job = uuid4()
        await self.log.append([Pending(event, uuid4(), job, "svc:ingest")])
        if failed:
            failure = Failed(**event.ids, **KEY)
            await self.log.append([Pending(failure, uuid4(), job, "svc:converter")])
        return event

    async def get(self, **asked: Any) -> list[dict[str, Any]]:
        """The events of `GET /events` as JSON lines."""
        reply = await self.http.get("/events", params=asked, headers={"accept": JSON_LINES})
        assert reply.status_code == 200, reply.text
        return [json.loads(line) for line in reply.text.splitlines()]

    async def positions(self, **asked: Any) -> list[int]:
        """Where the events of `get` are."""
        return [e["position"] for e in await self.get(**asked)]

    async def refused(self, **asked: Any) -> dict[str, Any]:
        """The problem of a request that is refused."""
        reply = await self.http.get("/events", params=asked, headers={"accept": JSON_LINES})
        assert reply.status_code == 422
        return dict(reply.json())


@pytest.fixture
async def world(database: str) -> AsyncIterator[World]:
    db = await pool(database)
    yield World(db)
    db.terminate()


async def test_json_lines_hold_every_event_once_over_several_pages(world: World) -> None:
    for _ in range(PAGE + 3):
        await world.document("default")
    found = await world.get()
    assert [e["position"] for e in found] == list(range(1, PAGE + 4))
    assert found[0]["type"] == "kb.DocumentReceived"
    assert (await world.log.read(0, 1))[0].to_cloudevent() == found[0]


async def test_each_filter_takes_what_it_names_and_nothing_else(world: World) -> None:
    first = await world.document("one", failed=True)
    await world.document("two", failed=True)
    await world.document("one")
    assert await world.positions(type="Failed") == [2, 4]
    assert await world.positions(type=["Failed", "DocumentReceived"]) == [1, 2, 3, 4, 5]
    assert await world.positions(project="one") == [1, 2, 5]
    assert await world.positions(project="one", type="Failed") == [2]
    assert await world.positions(stream=first.stream_id) == [1]
    assert await world.positions(stream=f"version-{first.version_id}", type="Failed") == [2]
    assert await world.positions(stream=first.stream_id, project="two") == []
    assert await world.positions(project="nobody") == []


async def test_filters_go_on_over_pages(world: World) -> None:
    for _ in range(PAGE + 2):
        await world.document("one", failed=True)
    for which in ({"type": "Failed"}, {"project": "one", "type": ["Failed"]}):
        found = await world.positions(**which)
        assert found == list(range(2, 2 * PAGE + 5, 2))
    assert await world.positions(project="one") == list(range(1, 2 * PAGE + 5))


async def test_a_range_of_positions_is_open_below_and_closed_above(world: World) -> None:
    for _ in range(5):
        await world.document("default")
    assert await world.positions(after=1, until=3) == [2, 3]
    assert await world.positions(after=4, until=99) == [5]
    assert await world.positions(after=3, until=2) == []
    assert await world.positions(after=99) == []


async def test_a_range_of_times_is_closed_below_and_open_above(world: World) -> None:
    for _ in range(40):
        await world.document("default")
    times = [e.recorded_at for e in await world.log.read(0)]
    for n in (0, 1, 17, 39):
        moment = times[n].isoformat()
        same = [p for p, t in enumerate(times, 1) if t >= times[n]]
        assert await world.positions(recorded_from=moment) == same
        before = [p for p, t in enumerate(times, 1) if t < times[n]]
        assert await world.positions(recorded_before=moment) == before
    day = datetime.now(UTC).date()
    assert len(await world.positions(recorded_from=day - timedelta(days=1))) == 40
    assert await world.positions(recorded_before=str(day - timedelta(days=1))) == []
    assert await world.positions(recorded_from=str(day + timedelta(days=2))) == []


async def test_an_empty_log_has_no_events_and_a_summary(world: World) -> None:
    assert await world.positions(recorded_from="2026-01-01") == []
    summary = (await world.http.get("/events/summary")).json()
    assert (summary["events"], summary["head"], summary["first"]) == (0, 0, None)


async def test_a_summary_counts_what_the_same_filters_answer(world: World) -> None:
    first = await world.document("one", failed=True)
    await world.document("two", failed=True)
    for which in (
        {}, {"project": "one"}, {"type": "Failed"}, {"after": 1, "until": 3},
        {"stream": first.stream_id}, {"recorded_from": first.valid_from.isoformat()},
    ):  # fmt: skip
        found = await world.get(**which)
        summary = (await world.http.get("/events/summary", params=which)).json()
        assert summary["events"] == len(found) == sum(c["events"] for c in summary["counts"])
        assert (summary["first"], summary["last"]) == (found[0]["position"], found[-1]["position"])
        assert datetime.fromisoformat(summary["last_recorded"]) == datetime.fromisoformat(
            found[-1]["recordedtime"]
        )
        assert summary["head"] == 4


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"type": "Recieved"}, "unknown-event-type"),
        ({"type": ["Failed", ""]}, "unknown-event-type"),
        ({"after": -1}, "invalid-request"),
        ({"until": 2**63}, "invalid-request"),
        ({"recorded_from": "yesterday"}, "invalid-request"),
        ({"recorded_from": "2026-01-01T00:00:00"}, "invalid-request"),
        ({"stream": "a\x00b"}, "invalid-request"),
        ({"project": "../x"}, "invalid-request"),
        ({"follow": "true"}, "invalid-request"),
    ],
)
async def test_what_cannot_be_is_refused_with_a_code(
    world: World, asked: dict[str, Any], code: str
) -> None:
    problem = await world.refused(**asked)
    assert problem["type"] == f"urn:kb:problem:{code}"


async def test_old_events_are_given_as_stored_or_in_the_current_shape(
    world: World, database: str
) -> None:
    event = await world.document("default")
    data = {**event.ids, "reason": "request", "blobs": 1}
    row = {
        "event_id": str(uuid4()), "type": "Erased", "schema_version": 1, "lane": "live",
        "project": "default", "correlation_id": str(uuid4()), "actor": "svc:ingest",
        "occurred_at": datetime.now(UTC).isoformat(), "data": data,
    }  # fmt: skip
    owner = await asyncpg.connect(database)
    try:
        await owner.execute(
            "SELECT log.append($1, -1, $2::jsonb)", event.stream_id, json.dumps([row])
        )
    finally:
        await owner.close()
    (stored,) = await world.get(type="Erased")
    assert (stored["schemaversion"], stored["data"]) == (1, data)
    (lifted,) = await world.get(type="Erased", current="true")
    assert (lifted["schemaversion"], lifted["dataschema"]) == (2, "urn:kb:Erased:2")
    assert lifted["data"] == data | {"scope": "document"}


async def test_server_sent_events_end_at_the_end_of_the_range(world: World) -> None:
    for _ in range(3):
        await world.document("default", failed=True)
    reply = await world.http.get("/events", params={"type": "Failed", "until": 4})
    assert [x for x in reply.text.split() if x.isdecimal()] == ["2", "4"]
    assert reply.headers["content-type"].startswith("text/event-stream")


async def test_what_happens_between_what_is_there_and_what_comes_is_given_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.document("one", failed=True)
    real = world.log.head

    async def head() -> int:
        """The log grows right after it was looked at."""
        found = await real()
        if found < 12:
            await world.document("one", failed=True)
        return found

    monkeypatch.setattr(world.log, "head", head)
    stream, found = Stream(world.log), []
    async for page in stream.follow(Span(0, 12), Filter(types=("Failed",))):
        found += [e.position for e in page]
        if await real() < 12:
            await world.document("one", failed=True)
    assert found == [2, 4, 6, 8, 10, 12]
