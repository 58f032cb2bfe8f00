"""The account of other products on a real nats-server: they hear all, and change nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import httpx
import nats
import nats.errors
import pytest
from fastapi import FastAPI

from cli.datadir import BUS_USERS, OUTSIDE_BUS_USERS
from contracts.events import EVENTS, subject
from docs.subscriber.subscriber import events
from kernel.db import pool
from kernel.embedded import EmbeddedNats
from kernel.log import Log, Pending
from kernel.provision import LANES, OUTSIDE_USERS, STREAM, nats_config, provision
from kernel.testing import received
from kernel.testing_wait import eventually
from services.search.stream import add_stream_route


class Bus:
    """A server with all users."""

    def __init__(self, server: EmbeddedNats) -> None:
        self.server = server

    async def connect(self, user: str) -> tuple[Any, list[str]]:
        """A client, and what it is refused."""
        refused: list[str] = []

        async def note(error: Exception) -> None:
            refused.append(str(error).lower())

        url = self.server.url.replace("//", f"//{user}:secret-{user}@")
        return await nats.connect(url, error_cb=note, allow_reconnect=False), refused


@pytest.fixture
async def bus(tmp_path: Any) -> AsyncIterator[Bus]:
    users = {user: f"secret-{user}" for user in (*BUS_USERS, *OUTSIDE_BUS_USERS)}
    server = EmbeddedNats(tmp_path / "nats", config=nats_config(users))
    await asyncio.to_thread(server.start)
    await provision(server.url.replace("//", "//admin:secret-admin@"))
    yield Bus(server)
    await asyncio.to_thread(server.stop)


def test_the_users_outside_are_those_of_the_configuration() -> None:
    assert OUTSIDE_BUS_USERS == OUTSIDE_USERS


async def test_a_subscriber_hears_events_and_replays(bus: Bus) -> None:
    subscriber, refused = await bus.connect("subscriber")
    heard: list[tuple[str, bytes]] = []

    async def note(message: Any) -> None:
        heard.append((message.subject, message.data))

    await subscriber.subscribe("kb.evt.>", cb=note)
    await subscriber.subscribe("kb.replay.>", cb=note)
    await subscriber.flush()
    relay, _ = await bus.connect("relay")
    await relay.request("kb.evt.live.Parsed.v1", b"1", timeout=5)
    replay, _ = await bus.connect("replay")
    await replay.publish("kb.replay.mine", b"2")
    await replay.flush()
    await eventually(lambda: len(heard) == 2)
    assert sorted(heard) == [("kb.evt.live.Parsed.v1", b"1"), ("kb.replay.mine", b"2")]
    assert refused == []
    for client in (subscriber, relay, replay):
        await client.close()


@pytest.mark.parametrize("user", OUTSIDE_USERS)
async def test_nobody_outside_publishes_an_event(bus: Bus, user: str) -> None:
    tried = [subject(lane, name, 1) for lane in LANES for name in EVENTS]
    tried += ["mine", "kb.replayed", "KB.API.INFO", "_INBOX.x.y"]
    client, refused = await bus.connect(user)
    for name in tried:
        await client.publish(name, b"{}", reply="_INBOX.mine")
    await client.flush()
    await eventually(lambda: len(refused) == len(tried))
    await client.close()


async def test_whoever_is_outside_has_streams_of_its_own_and_sees_none_of_ours(bus: Bus) -> None:
    client, refused = await bus.connect("subscriber")
    js = client.jetstream(timeout=5)
    with pytest.raises(nats.errors.Error):
        await js.stream_info(STREAM)
    await js.add_stream(name="MINE", subjects=["kb.replay.mine", "kb.evt.>"])
    # An answer asked for on the subject of an event stays outside, too.
    await client.publish("$JS.API.INFO", b"", reply="kb.evt.live.Parsed.v1")
    await client.flush()
    assert (await js.stream_info("MINE")).config.name == "MINE"
    admin, _ = await bus.connect("admin")
    assert (await admin.jetstream().stream_info(STREAM)).state.messages == 0
    assert refused == []
    for one in (client, admin):
        await one.close()


async def test_a_stream_outside_stores_replays(bus: Bus) -> None:
    client, _ = await bus.connect("subscriber")
    await client.jetstream(timeout=5).add_stream(name="MINE", subjects=["kb.replay.mine"])
    replay, refused = await bus.connect("replay")
    ack = await replay.jetstream(timeout=5).publish("kb.replay.mine", b"1")
    assert (ack.stream, ack.seq, refused) == ("MINE", 1, [])
    for one in (client, replay):
        await one.close()


async def test_the_example_subscriber_hears_every_event_once(bus: Bus, database: str) -> None:
    """Also those from before it came, and those that the bus lost while it was away."""
    db = await pool(database)
    log = Log(db)
    app = FastAPI()
    add_stream_route(app, log)
    transport = httpx.ASGITransport(app)
    relay, _ = await bus.connect("relay")

    async def happen(*, lost: bool = False) -> None:
        event = received(document_id=uuid4().hex, version_id=uuid4().hex)
        await log.append([Pending(event, uuid4(), uuid4(), "svc:ingest")])
        (stored,) = await log.read(await log.head() - 1)
        if not lost:
            wire = json.dumps(stored.to_cloudevent()).encode()
            await relay.request(stored.subject, wire, timeout=5)

    for _ in range(3):
        await happen()
    heard: list[int] = []
    async with httpx.AsyncClient(transport=transport, base_url="http://kb") as http:
        url = bus.server.url.replace("//", "//subscriber:secret-subscriber@")

        async def listen() -> None:
            async for event in events(url, http, 1):
                heard.append(event["position"])

        listening = asyncio.ensure_future(listen())
        await eventually(lambda: heard == [2, 3])
        await happen()
        await happen(lost=True)
        await happen()
        await eventually(lambda: heard == [2, 3, 4, 5, 6])
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
    await relay.close()
    db.terminate()
