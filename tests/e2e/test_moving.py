"""A base is lost and comes back; a project goes elsewhere: the answers are the same."""

import json
import shutil
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import nats
import pytest

from cli.plan import with_user
from kernel.provision import STREAM
from kernel.testing_wait import eventually
from tests.e2e.test_line import LAW, ZAKON, ingest, query
from tests.stack import Stack

QUESTIONS = ("maximum fine for a data breach", "новчана казна за повреду", "seventy-two hours")


async def told(client: httpx.AsyncClient) -> dict[str, Any]:
    """What a reader gets: answers now and as of an earlier day, the list, the bodies."""
    answers = {}
    for text in QUESTIONS:
        for as_of in (None, "2025-03-01"):
            fields = {"as_of": as_of} if as_of else {}
            hits = await query(client, text, **fields)
            answers[f"{text} {as_of}"] = [{k: h[k] for k in h if k != "text"} for h in hits]
    documents = (await client.get("/documents")).json()["documents"]
    bodies = {
        d["version_id"]: (await client.get(f"/documents/{d['version_id']}/body")).text
        for d in documents
    }
    sources = {
        d["version_id"]: (await client.get(f"/documents/{d['version_id']}/source")).content
        for d in documents
    }
    return {"answers": answers, "documents": documents, "bodies": bodies, "sources": sources}


async def log_of(stack: Stack) -> tuple[int, list[tuple[Any, ...]]]:
    connection = await asyncpg.connect(stack.owner)
    head = await connection.fetchval("SELECT position FROM log.head")
    rows = await connection.fetch(
        "SELECT stream_id, version, event_id, type, data::text FROM log.event"
        " WHERE type <> 'ProjectImported' AND stream_id !~ '^(index|audit)-' ORDER BY 1, 2"
    )
    await connection.close()
    return head, [tuple(r) for r in rows]


def without_times(reply: dict[str, Any]) -> dict[str, Any]:
    """What is recorded anew where a project comes in: positions, and when it was recorded."""
    text = json.dumps(reply | {"sources": sorted(map(str, reply["sources"].items()))})
    reply = dict(json.loads(text))
    for document in reply["documents"]:
        for field in ("received_at", "position", "recorded_from"):
            document.pop(field, None)
    reply["documents"].sort(key=lambda d: d["version_id"])
    return reply


async def idle(stack: Stack) -> None:
    """Every event was delivered to everybody who reads it."""
    connection = await nats.connect(
        with_user(stack.address("nats"), "admin", stack.config["KB_BUS_PASSWORD_ADMIN"])
    )
    jetstream = connection.jetstream()

    async def done() -> bool:
        head, _ = await log_of(stack)
        assert (await jetstream.stream_info(STREAM)).state.last_seq == head
        infos = await jetstream.consumers_info(STREAM)
        return not sum((i.num_pending or 0) + (i.num_ack_pending or 0) for i in infos)

    try:
        await eventually(done, deadline=60, every=0.2)
    finally:
        await connection.close()


@pytest.mark.slow
async def test_what_was_lost_comes_back_and_what_moves_stays_the_same(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "one", "hashed")
    stack.kb("up", "--detach")
    async with stack.client() as client:
        await ingest(client, "law.md", LAW, source="law", valid_from="2025-01-01")
        await ingest(
            client, "law.md", LAW.replace("twenty", "thirty"), source="law",
            valid_from="2025-06-01",
        )  # fmt: skip
        await ingest(client, "закон.md", ZAKON)
        before, log = await told(client), await log_of(stack)
    backups, bundle = tmp_path / "backups", tmp_path / "default.kb"
    stack.kb("backup", str(backups), "--with-vectors")
    exported = json.loads(stack.kb("export", "default", str(bundle), "--with-vectors", "--json"))
    stack.kb("down")
    shutil.rmtree(stack.data.root)  # everything is gone

    again = Stack(tmp_path / "two", "hashed")
    restored = json.loads(again.kb("restore", str(backups), "--json"))
    assert [row["embedded"] for row in restored["rebuilt"]] == [0]
    again.kb("up", "--detach")
    async with again.client() as client:
        assert await told(client) == before
        assert (await log_of(again))[1] == log[1]
    again.kb("down")

    other = Stack(tmp_path / "three", "hashed")
    other.kb("up", "--detach")
    try:
        with pytest.raises(RuntimeError, match="untrusted-key"):
            other.kb("import", str(bundle), "--json")
        imported = json.loads(other.kb("import", str(bundle), "--trust", exported["key"], "--json"))
        assert imported["events"] == exported["events"]
        assert [row["embedded"] for row in imported["rebuilt"]] == [0]
        async with other.client() as client:
            assert without_times(await told(client)) == without_times(before)
            await idle(other)
            # Nobody did any of it again.
            assert (await log_of(other))[1] == log[1]
            once_more = json.loads(other.kb("import", str(bundle), "--no-index", "--json"))
            assert once_more["events"] == 0
            new = await ingest(client, "law.md", LAW.replace("twenty", "forty"), source="law")
            laws = [d for d in before["documents"] if d["name"] == "law.md"]
            assert new.document_id == laws[0]["document_id"]
    finally:
        other.kb("down")
