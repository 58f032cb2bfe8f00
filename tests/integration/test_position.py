"""Read your writes, over HTTP: replies say their position, requests may ask for one."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from kernel.db import pool
from kernel.log import Log
from kernel.settings import Settings
from kernel.web import create_api
from services.search.app import create_app
from services.search.documents import Documents
from services.search.engine import Engine
from tests.integration.lines_world import Lines

START = datetime(2020, 1, 1, tzinfo=UTC)
TEXT = "# Act\n\nThe maximum fine is ten euro."
KEY = "k" * 32


class Door(Lines):
    """Search as others see it."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.wait_s, self.within_s = 0.0, 30.0

    def client(self, key: str = KEY) -> httpx.AsyncClient:
        async def health() -> dict[str, str]:
            return {"status": "ok"}

        settings = Settings.model_validate({"api_key": KEY})
        env: Any = SimpleNamespace(settings=settings, health=health, log=self.log, blobs=self.blobs)
        legs = (self.embedder, self.vectors)
        limits: Any = {"wait_s": self.wait_s, "within_s": self.within_s}
        engine = Engine(self.log, self.projection, *legs, **limits)
        documents = Documents(self.log, self.blobs)  # type: ignore[arg-type]
        searching = create_app(env, engine, documents, self.projection, len)
        app = create_api("indexer", api_key=KEY, health=health)
        known = {getattr(r, "path", None) for r in app.router.routes}  # as in one process with it
        app.router.routes += [r for r in searching.router.routes if r.path not in known]  # type: ignore[attr-defined]
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://search",
            headers={"Authorization": f"Bearer {key}"},
        )


@pytest.fixture
async def door(database: str) -> AsyncIterator[Door]:
    db = await pool(database)
    made = Door(Log(db))
    await made.start()
    yield made
    await made.log.close()
    db.terminate()


async def ask(client: httpx.AsyncClient, **more: Any) -> httpx.Response:
    return await client.post("/query", json={"query": "maximum fine", **more})


async def test_every_reply_says_which_position_it_reflects(door: Door) -> None:
    done = await door.load("act.md", TEXT, START)
    head = await door.log.head()
    await door.put("late.md", TEXT + " Late.", START)  # nobody has folded that in
    async with door.client() as client:
        one = f"/documents/{done.document_id}"
        others = ("/documents", "/documents/none", "/jobs", "/jobs/none", "/projects")
        replies = [await client.get(path) for path in (one, f"{one}/journal", *others)]
        asked = await ask(client)
        health = await client.get("/health")
    assert {r.headers["KB-Position"] for r in replies} == {str(head)}
    assert asked.headers["KB-Position"] == str(head) == str(asked.json()["position"])
    assert "KB-Position" not in health.headers


async def test_what_was_written_is_read_as_soon_as_its_position_is_reached(door: Door) -> None:
    await door.put("act.md", TEXT, START)
    door.wait_s = 60
    async with door.client() as client:
        asked = asyncio.create_task(ask(client, min_position=await door.log.head()))
        listed = asyncio.create_task(
            client.get("/documents", headers={"KB-Min-Position": str(await door.log.head())})
        )
        await asyncio.sleep(0)
        before = await ask(client)
        assert not asked.done() and not listed.done()
        await door.fold()
        assert before.json()["results"] == []
        assert len((await asked).json()["results"]) == 1
        assert len((await listed).json()["documents"]) == 1


async def test_another_replica_may_be_the_one_that_folds(door: Door) -> None:
    await door.put("act.md", TEXT, START)
    door.wait_s = 60
    other = Lines(door.log)
    async with door.client() as client:
        asked = asyncio.create_task(ask(client, min_position=await door.log.head()))
        await asyncio.sleep(0)
        await other.fold()
        assert (await asked).json()["position"] == await door.log.head()


async def test_a_position_that_is_not_reached_in_time_is_said_with_the_one_that_is(
    door: Door,
) -> None:
    await door.load("act.md", TEXT, START)
    reached = await door.log.head()
    await door.put("late.md", TEXT + " Late.", START)
    head = str(await door.log.head())
    async with door.client() as client:
        replies = [
            await ask(client, min_position=int(head)),
            await client.get("/documents", headers={"KB-Min-Position": head}),
        ]
        for reply in replies:
            assert reply.status_code == 503
            assert reply.headers["content-type"] == "application/problem+json"
            assert reply.headers["Retry-After"] == "1"
            problem = reply.json()
            assert problem["type"] == "urn:kb:problem:not-reached"
            assert problem["position"] == reached
            assert str(reached) in problem["detail"] and head in problem["detail"]
        assert (await ask(client, min_position=reached)).status_code == 200


async def test_a_position_beyond_the_end_of_the_log_is_refused_at_once(door: Door) -> None:
    await door.load("act.md", TEXT, START)
    door.wait_s = 3600
    head = await door.log.head()
    async with door.client() as client:
        for wanted in (head + 1, 2**63 - 1):
            reply = await ask(client, min_position=wanted)
            assert (reply.status_code, reply.json()["position"]) == (409, head)
            assert reply.json()["type"] == "urn:kb:problem:position-ahead"
            assert "Retry-After" not in reply.headers
        assert (await ask(client, min_position=head)).status_code == 200


@pytest.mark.parametrize("bad", ["-1", "x", "1.5", "", "٣", "9" * 40])
async def test_a_position_that_is_no_number_is_refused(door: Door, bad: str) -> None:
    async with door.client() as client:
        headers = {b"KB-Min-Position": bad.encode()}
        reply = await client.get("/documents", headers=headers)
        assert reply.status_code == 422
        assert (await ask(client, min_position=bad)).status_code == 422


async def test_nobody_without_the_key_is_waited_for(door: Door) -> None:
    await door.put("act.md", TEXT, START)
    door.wait_s = 3600
    headers = {"KB-Min-Position": str(await door.log.head())}
    async with door.client("wrong") as client:
        reply = await client.get("/documents", headers=headers)
    assert reply.status_code == 401
    assert "KB-Position" not in reply.headers


async def test_a_question_that_takes_too_long_is_told_so_and_no_store_is_blamed(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    await door.load("act.md", TEXT, START)
    door.within_s = 0.05

    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(door.vectors, "search", never)
    async with door.client() as client:
        reply = await ask(client)
    assert (reply.status_code, reply.json()["type"]) == (504, "urn:kb:problem:too-slow")
    assert "within 0.05 s" in reply.json()["detail"]


async def test_a_store_that_times_out_is_away(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    await door.load("act.md", TEXT, START)

    async def late(*_: Any) -> Any:
        raise TimeoutError

    monkeypatch.setattr(door.vectors, "search", late)
    async with door.client() as client:
        reply = await ask(client)
    assert (reply.status_code, reply.json()["type"]) == (503, "urn:kb:problem:unavailable")
