"""Names leave the log and the bus; texts, vectors and cached vectors leave the index."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import nats
import pytest
from nats.js.errors import NotFoundError
from pydantic import create_model

from contracts.events import (
    EVENTS,
    AttachmentsReceived,
    BytesPurged,
    DocumentReceived,
    Erased,
    Event,
    Failed,
    LeftOut,
    Parsed,
    ProjectDeleted,
    Rejected,
    Released,
    Sha256,
)
from kernel.db import pool
from kernel.embedded import EmbeddedNats
from kernel.erasure import GONE, redacted
from kernel.log import Log, Pending, reactions
from kernel.provision import STREAM, provision
from kernel.relay import Relay
from kernel.testing import first, received
from kernel.testing_wait import eventually
from services.indexer.erase import purge
from services.indexer.handlers import on_chunked, take_back
from tests.integration.test_index import BODY, World, world  # noqa: F401 - a fixture
from tests.integration.test_privileges import connect_as

SECRET = "Тајни договор Müller.pdf"
RECEIPT = received("a.md").model_copy(update={"name": SECRET, "source_key": f"архива/{SECRET}"})
IDS = RECEIPT.ids
TOMB = Erased(**IDS, reason="request", scope="document", blobs=1)
TOLD: tuple[Event, ...] = (
    RECEIPT,
    Parsed(**IDS, parsed_sha256="1" * 64, parser="p", language="sr", warnings=(SECRET, "x")),
    AttachmentsReceived(
        **IDS,
        taken=0,
        left_out=(LeftOut(number=1, name=SECRET, media_type="x/y", code="missing"),),
    ),
    Released(**IDS, subject="parsed", text_sha256="1" * 64, reviewer="actor:1", reason=SECRET),
    Rejected(**IDS, subject="parsed", text_sha256="1" * 64, reviewer="actor:1", reason=SECRET),
    Failed(**IDS, stage="ingest", code="cancelled", reason=SECRET),
)
"""Everything in which the log holds words of people."""


@pytest.fixture
async def log(database: str) -> AsyncIterator[Log]:
    db = await pool(database)
    yield Log(db)
    db.terminate()


async def write(log: Log, *events: Event) -> list[Pending]:
    """Each event by itself, as of jobs of their own."""
    pending = [first(e) for e in events]
    for one in pending:
        await log.append([one])
    return pending


async def told(log: Log) -> str:
    """All that the log says, as text."""
    rows = await log.pool.fetch("SELECT * FROM log.event ORDER BY position")
    rows += await log.pool.fetch("SELECT * FROM log.failure")
    return "\n".join(str(dict(r)) for r in rows)


async def test_names_keys_and_reasons_leave_the_log(log: Log) -> None:
    await write(log, *TOLD, TOMB)
    assert SECRET in await told(log)
    assert await log.redact(RECEIPT.document_id, RECEIPT.version_id) == len(TOLD)
    assert SECRET not in await told(log)
    assert "Müller" not in await told(log)
    assert await log.redact(RECEIPT.document_id, RECEIPT.version_id) == 0


async def test_what_is_left_is_read_as_before(log: Log) -> None:
    await write(log, *TOLD, TOMB)
    await log.redact(RECEIPT.document_id, RECEIPT.version_id)
    events = [e.event() for e in await log.read(0)]
    assert [type(e) for e in events] == [*map(type, TOLD), Erased]
    receipt = events[0]
    assert isinstance(receipt, DocumentReceived)
    assert receipt == RECEIPT.model_copy(update={"name": GONE, "source_key": ""})


@pytest.mark.parametrize("type_", EVENTS)
async def test_the_database_and_the_code_mean_the_same_by_it(log: Log, type_: str) -> None:
    folder = Path("contracts/samples")
    for sample in folder.glob(f"{type_}.v*.json"):
        data = json.loads(sample.read_text())
        data = data.get("data", data)
        found = await log.pool.fetchval("SELECT log.redacted($1, $2)", type_, data)
        assert found == redacted(type_, data)
        EVENTS[type_].model_validate(found | {"scope": "version"})


async def test_digest_and_chain_stay_and_the_salt_goes(log: Log) -> None:
    await write(log, *TOLD, TOMB)
    kept = "SELECT position, event_id, digest, chain, recorded_at FROM log.event ORDER BY 1"
    before = await log.pool.fetch(kept)
    await log.redact(RECEIPT.document_id, RECEIPT.version_id)
    assert await log.pool.fetch(kept) == before
    salts = await log.pool.fetch("SELECT salt FROM log.event WHERE redacted_at IS NOT NULL")
    assert [r["salt"] for r in salts] == [None] * len(TOLD)


async def test_only_what_a_person_had_erased_loses_its_name(log: Log) -> None:
    other = received("b.md")
    blocked = Erased(**other.ids, reason="blocked", scope="version", blobs=1)
    await write(log, RECEIPT, other, blocked, TOMB)
    with pytest.raises(asyncpg.PostgresError) as refused:
        await log.redact(other.document_id, other.version_id)
    assert refused.value.sqlstate == "KB006"
    await log.redact(RECEIPT.document_id, RECEIPT.version_id)
    assert "b.md" in await told(log)


async def test_what_was_sent_again_keeps_its_name(log: Log) -> None:
    again = RECEIPT.model_copy(update={"attempt": 2, "name": "new.md"})
    await write(log, RECEIPT, TOMB, again)
    assert await log.redact(RECEIPT.document_id, RECEIPT.version_id) == 1
    assert [e.data.get("name") for e in await log.read(0)] == [GONE, None, "new.md"]


async def test_messages_of_failed_deliveries_lose_their_words(log: Log) -> None:
    await write(log, RECEIPT)
    (cause,) = await log.read(0)
    await log.count_failure("scanner-parsed-live", cause, RuntimeError(SECRET))
    await write(log, TOMB)
    await log.redact(RECEIPT.document_id, RECEIPT.version_id)
    assert SECRET not in await told(log)


async def test_a_failure_is_told_without_the_values_that_it_quotes(log: Log) -> None:
    await write(log, RECEIPT)
    (cause,) = await log.read(0)
    telling = create_model("Telling", parsed_sha256=(Sha256, ...))  # ours do not quote
    with pytest.raises(ValueError, match="Müller") as refused:
        telling.model_validate({"parsed_sha256": SECRET})
    await log.count_failure("scanner-parsed-live", cause, refused.value)
    error = await log.pool.fetchval("SELECT error FROM log.failure")
    assert "parsed_sha256" in error
    assert "Müller" not in error


@pytest.mark.parametrize("role", ["converter", "scanner", "indexer", "search", "ui", "relay"])
async def test_nobody_but_ingest_may_redact(database: str, log: Log, role: str) -> None:
    await write(log, *TOLD, TOMB)
    connection = await connect_as(database, f"kb_{role}")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.fetchval("SELECT log.redact($1, $2)", *list(IDS.values())[1:3])
    await connection.close()


async def test_ingest_may_redact_and_nothing_else(database: str, log: Log) -> None:
    await write(log, *TOLD, TOMB)
    connection = await connect_as(database, "kb_ingest")
    ids = (RECEIPT.document_id, RECEIPT.version_id)
    await connection.execute("SET citelog.redacting = 'on'")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute("UPDATE log.event SET data = '{}'")
    assert await connection.fetchval("SELECT log.redact($1, $2)", *ids) == len(TOLD)
    await connection.close()


@pytest.mark.parametrize("change", ["type = 'X'", "chain = digest", "position = 99", "data = '{}'"])
async def test_nobody_changes_an_event_in_another_way(log: Log, change: str) -> None:
    await write(log, RECEIPT)
    async with log.pool.acquire() as connection:
        for setting in ("off", "on"):
            await connection.execute(f"SET citelog.redacting = '{setting}'")
            with pytest.raises(asyncpg.PostgresError, match="append-only"):
                await connection.execute(f"UPDATE log.event SET {change}")


# -- the bus -----------------------------------------------------------------------------------


async def purged(log: Log) -> None:
    """The erasure is done, as ingest says it."""
    await log.redact(RECEIPT.document_id, RECEIPT.version_id)
    tombstone = (await log.read(0))[-1]
    event = BytesPurged(
        project="default",
        document_id=RECEIPT.document_id,
        version_id=RECEIPT.version_id,
        removed={"names": len(TOLD)},
    )
    await log.append(reactions(tombstone, "ingest.on_erased", [event]))


async def stream(url: str, last: int) -> dict[int, bytes]:
    """The messages that are in the stream when it has reached `last`."""
    client = await nats.connect(url)
    js = client.jetstream()

    async def reached() -> bool:
        assert (await js.stream_info(STREAM)).state.last_seq == last
        return True

    await eventually(reached)
    found = {}
    for n in range(1, last + 1):
        with suppress(NotFoundError):
            found[n] = (await js.get_msg(STREAM, n)).data or b""
    await client.close()
    return found


async def relayed(log: Log, server: EmbeddedNats, last: int) -> dict[int, bytes]:
    """What a relay that begins now makes of the stream."""
    relay = asyncio.create_task(Relay(log, server.url).run())
    try:
        return await stream(server.url, last)
    finally:
        relay.cancel()
        with suppress(asyncio.CancelledError):
            await relay


async def test_the_relay_deletes_the_messages_that_held_the_names(
    log: Log, nats_server: EmbeddedNats, tmp_path: Path
) -> None:
    await provision(nats_server.url)
    await write(log, *TOLD, TOMB)
    before = await relayed(log, nats_server, len(TOLD) + 1)
    assert sum(SECRET.encode() in m for m in before.values()) == len(TOLD)
    await purged(log)
    after = await relayed(log, nats_server, len(TOLD) + 2)
    assert sorted(after) == [len(TOLD) + 1, len(TOLD) + 2]
    nats_server.stop()
    files = [p for p in (tmp_path / "nats").rglob("*") if p.is_file()]
    assert files
    assert [p.name for p in files if SECRET.encode() in p.read_bytes()] == []


async def test_a_relay_that_was_killed_before_deletes_them_too(
    log: Log, nats_server: EmbeddedNats
) -> None:
    """Everything is in one batch: what is to be deleted is published just before."""
    await provision(nats_server.url)
    await write(log, *TOLD, TOMB)
    await relayed(log, nats_server, len(TOLD) + 1)
    await purged(log)
    await write(log, received("other.md"))
    after = await relayed(log, nats_server, len(TOLD) + 3)
    assert sorted(after) == [len(TOLD) + n for n in (1, 2, 3)]


async def test_a_stream_that_was_lost_is_filled_with_what_the_log_has_now(
    log: Log, nats_server: EmbeddedNats
) -> None:
    await provision(nats_server.url)
    await write(log, *TOLD, TOMB)
    await relayed(log, nats_server, len(TOLD) + 1)
    await purged(log)
    client = await nats.connect(nats_server.url)
    await client.jetstream().delete_stream(STREAM)
    await client.close()
    await provision(nats_server.url)
    after = await relayed(log, nats_server, len(TOLD) + 2)
    assert [n for n, m in after.items() if SECRET.encode() in m] == []
    assert len(TOLD) + 2 in after


# -- the index ---------------------------------------------------------------------------------

OTHER = BODY.replace("Казна износи двадесет милиона динара.", "Казна износи пет милиона динара.")


async def cached(world: World) -> int:  # noqa: F811
    return int(await world.log.pool.fetchval("SELECT count(*) FROM cache.embedding"))


async def erased(world: World, event: Any) -> Erased:  # noqa: F811
    """A tombstone of the version that an event is about."""
    tombstone = Erased(**event.ids, reason="request", scope="document", blobs=1)
    await world.log.append([Pending(tombstone, uuid4(), uuid4(), "somebody")])
    return tombstone


async def test_passages_points_and_cached_vectors_go_and_are_counted(world: World) -> None:  # noqa: F811
    one = await world.indexed("a.md")
    said = await purge(await erased(world, one), world.index)
    assert said.removed == {"passages": 2, "vectors": 2, "cached-vectors": 2}
    assert (await world.rows(), await world.points(), await cached(world)) == ([], 0, 0)
    again = await purge(await erased(world, one), world.index)
    assert set(again.removed.values()) == {0}


async def test_a_vector_whose_text_another_version_has_stays_until_that_one_goes(
    world: World,  # noqa: F811
) -> None:
    one, other = await world.indexed("a.md"), await world.indexed("b.md", OTHER)
    assert await cached(world) == 3  # the second section is in both
    said = await purge(await erased(world, one), world.index)
    assert (said.removed["cached-vectors"], said.kept) == (1, {"cached-vectors": 1})
    assert (len(await world.rows()), await cached(world)) == (2, 2)
    last = await purge(await erased(world, other), world.index)
    assert (last.removed["cached-vectors"], await cached(world)) == (2, 0)


async def test_vectors_of_a_version_that_never_came_into_the_index_go_too(
    world: World,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut = await world.chunked("a.md")

    async def killed(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(world.vectors, "upsert", killed)
    with pytest.raises(RuntimeError):
        await on_chunked(cut, index=world.index, **world.deps)
    assert (await world.rows(), await cached(world)) == ([], 2)
    said = await purge(await erased(world, cut), world.index)
    assert (said.removed["cached-vectors"], await cached(world)) == (2, 0)


async def test_an_attempt_that_outlived_the_erasure_leaves_no_vector(world: World) -> None:  # noqa: F811
    cut = await world.chunked("a.md")
    await purge(await erased(world, cut), world.index)
    await on_chunked(cut, index=world.index, **world.deps)  # it was under way
    await take_back(cut, world.index)
    assert (await world.rows(), await world.points(), await cached(world)) == ([], 0, 0)


async def test_killed_between_points_and_rows_the_next_delivery_counts_all(
    world: World,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tombstone = await erased(world, await world.indexed("a.md"))
    real = world.vectors.delete_version

    async def dying(collection: str, version_id: str) -> None:
        await real(collection, version_id)
        raise RuntimeError("killed")

    monkeypatch.setattr(world.vectors, "delete_version", dying)
    with pytest.raises(RuntimeError):
        await purge(tombstone, world.index)
    assert (len(await world.rows()), await cached(world)) == (2, 2)
    monkeypatch.setattr(world.vectors, "delete_version", real)
    said = await purge(tombstone, world.index)
    assert said.removed == {"passages": 2, "vectors": 2, "cached-vectors": 2}


async def test_the_last_version_of_a_closed_project_takes_the_index_along(world: World) -> None:  # noqa: F811
    one, other = await world.indexed("a.md"), await world.indexed("b.md", OTHER)
    closed = ProjectDeleted(project="default", documents=2, actor="a")
    await world.log.append([Pending(closed, uuid4(), uuid4(), "a")])
    await purge(await erased(world, one), world.index)
    assert await world.vectors.collections() != []
    await purge(await erased(world, other), world.index)
    assert await world.vectors.collections() == []
    for table in ("generation", "active", "placed", "chunk"):
        assert await world.log.pool.fetchval(f"SELECT count(*) FROM read.{table}") == 0
