"""The read projection: each event's effect, twice is once, replay equals live."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.artifacts import BodyMeta
from contracts.events import (
    Chunked,
    Converted,
    Erased,
    Event,
    Failed,
    Finding,
    Indexed,
    Parsed,
    Reinstated,
    Rejected,
    Released,
    ScanVerdict,
    Superseded,
    Window,
)
from kernel.db import pool
from kernel.log import Log, Pending
from kernel.testing import MemoryBlobs, first, received
from services.search.documents import Documents
from services.search.projection import Projection, digest

A, B, C, D = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)
NOW = datetime(2025, 6, 1, tzinfo=UTC)


class World:
    """A log with one document, its projection and the reads on it."""

    def __init__(self, log: Log) -> None:
        self.log, self.blobs = log, MemoryBlobs()
        self.projection = Projection(log, self.blobs)  # type: ignore[arg-type]
        self.documents = Documents(log, self.blobs)  # type: ignore[arg-type]
        self.receipt = received("Закон.md")
        self.start: Pending | None = None

    async def begin(self) -> None:
        await self.projection._sql.start(self.log.pool)
        self.start = first(self.receipt)
        await self.log.append([self.start])

    async def add(self, event: Event) -> None:
        assert self.start
        pending = first(event)
        await self.log.append([Pending(event, pending.event_id, self.start.correlation_id, "t")])

    async def fold(self) -> Any:
        while await self.projection.step():
            pass
        return await self.documents.document(self.receipt.version_id)

    async def to_indexed(self) -> None:
        meta = BodyMeta(title="Закон", language="sr", media_type="text/markdown")
        meta_sha256 = await self.blobs.put(meta.to_bytes())
        for event in life(self.receipt, meta_sha256):
            await self.add(event)


def life(receipt: Event, meta: str = C) -> list[Event]:
    ids = receipt.ids
    return [
        Parsed(**ids, parsed_sha256=A, parser="markdown-1", language="sr"),
        ScanVerdict(**ids, subject="parsed", text_sha256=A, verdict="clean", score=0, ruleset="r"),
        Converted(
            **ids, body_sha256=B, meta_sha256=meta, body_bytes=9, converter="c", language="sr"
        ),
        ScanVerdict(
            **ids,
            subject="converted",
            text_sha256=B,
            meta_sha256=meta,
            verdict="clean",
            score=0,
            ruleset="r",
        ),
        Chunked(
            **ids, body_sha256=B, meta_sha256=meta, chunks_sha256=D, chunk_count=3, chunker="h"
        ),
        Indexed(
            **ids,
            body_sha256=B,
            chunks_sha256=D,
            chunk_count=3,
            embedder="e5",
            embedded=3,
            reused=0,
        ),
    ]


@pytest.fixture
async def world(database: str) -> AsyncIterator[World]:
    db = await pool(database)
    made = World(Log(db))
    await made.begin()
    yield made
    db.terminate()


@pytest.mark.parametrize(
    ("steps", "status", "stage"),
    [
        (0, "received", "converter"),
        (1, "parsed", "scanner"),
        (2, "converting", "converter"),
        (3, "scanning", "scanner"),
        (4, "chunking", "indexer"),
        (5, "indexing", "indexer"),
        (6, "indexed", None),
    ],
)
async def test_each_step_says_who_is_next(
    world: World, steps: int, status: str, stage: str | None
) -> None:
    for event in life(world.receipt)[:steps]:
        await world.add(event)
    view = await world.fold()
    job = await world.documents.job(view.job_id)
    assert (view.status, job.status, job.stage) == (status, status, stage)
    assert job.done == (status == "indexed")


async def test_the_manifest_of_an_indexed_version(world: World) -> None:
    await world.to_indexed()
    view = await world.fold()
    assert view.title == "Закон"
    assert (view.parser, view.converter, view.embedder) == ("markdown-1", "c", "e5")
    assert (view.chunk_count, view.language, view.current) == (3, "sr", True)


async def test_a_version_is_not_current_before_it_is_indexed(world: World) -> None:
    assert not (await world.fold()).current


async def test_a_quarantined_version_waits_and_a_release_sends_it_on(world: World) -> None:
    ids = world.receipt.ids
    for event in (
        life(world.receipt)[0],
        ScanVerdict(
            **ids, subject="parsed", text_sha256=A, verdict="quarantine", score=0.5, ruleset="r"
        ),
    ):
        await world.add(event)
    assert (await world.fold()).status == "review"
    await world.add(Released(**ids, subject="parsed", text_sha256=A, reviewer="p", reason="ok"))
    assert (await world.fold()).status == "converting"


async def test_a_rejected_version_is_final(world: World) -> None:
    await world.add(
        Rejected(**world.receipt.ids, subject="parsed", text_sha256=A, reviewer="p", reason="no")
    )
    assert (await world.fold()).status == "rejected"


async def test_a_blocked_version_names_the_rules_and_stays_blocked_when_erased(
    world: World,
) -> None:
    ids = world.receipt.ids
    finding = Finding(rule="override-en-1", severity="high", byte_start=0, byte_end=9)
    await world.add(
        ScanVerdict(
            **ids,
            subject="parsed",
            text_sha256=A,
            verdict="block",
            score=1,
            findings=(finding,),
            ruleset="r",
        )
    )
    await world.add(Erased(**ids, reason="blocked", blobs=2))
    view = await world.fold()
    assert view.status == "blocked"
    assert "override-en-1" in view.error["reason"]


async def test_a_failed_version_says_where_and_why(world: World) -> None:
    await world.add(
        Failed(**world.receipt.ids, stage="converter", code="encrypted-document", reason="pw")
    )
    view = await world.fold()
    assert view.status == "failed"
    assert view.error == {"stage": "converter", "code": "encrypted-document", "reason": "pw"}


async def test_a_failure_after_indexing_leaves_the_version_indexed(world: World) -> None:
    await world.to_indexed()
    await world.add(Failed(**world.receipt.ids, stage="ingest", code="internal-error", reason="x"))
    view = await world.fold()
    assert view.status == "indexed"
    assert view.error["stage"] == "ingest"


async def test_a_second_attempt_begins_anew(world: World) -> None:
    await world.add(Failed(**world.receipt.ids, stage="converter", code="x", reason="y"))
    await world.log.append([first(received("Закон.md", attempt=2))])
    view = await world.fold()
    assert (view.status, view.error) == ("received", None)


async def test_windows_replace_the_line_of_the_document(world: World) -> None:
    await world.to_indexed()
    ids, other = world.receipt.ids, "9" * 32
    mine = world.receipt.version_id
    line = (
        Window(version_id=mine, valid_from=NOW, valid_until=NOW),
        Window(version_id=other, valid_from=NOW),
    )
    await world.add(Superseded(**ids, by_version_id=other, valid_until=NOW, windows=line))
    assert not (await world.fold()).current
    later = NOW.replace(day=9)
    back = (*line[:1], Window(version_id=mine, valid_from=later))
    await world.add(Reinstated(**ids, supersedes=other, valid_from=NOW, windows=back))
    assert (await world.fold()).current


async def test_an_erased_version_has_no_window(world: World) -> None:
    await world.to_indexed()
    await world.add(Erased(**world.receipt.ids, reason="request", blobs=3))
    view = await world.fold()
    assert (view.status, view.windows) == ("erased", [])


async def test_a_replay_from_zero_equals_the_live_state(world: World) -> None:
    await world.to_indexed()
    await world.fold()
    live = await digest(world.log.pool)
    await world.projection.replay()
    assert await digest(world.log.pool) == live
    assert set(live) == {"version", "validity", "job"}
    await world.add(
        Rejected(**world.receipt.ids, subject="parsed", text_sha256=A, reviewer="p", reason="no")
    )
    await world.fold()
    assert await digest(world.log.pool) != live  # the digest sees a change


async def test_a_batch_that_fails_leaves_state_and_position(world: World) -> None:
    await world.fold()
    before, position = await digest(world.log.pool), await world.projection.position()
    await world.add(life(world.receipt)[0])
    await world.log.append([first(received("b.md"))])
    await world.log.pool.execute("ALTER TABLE read.version ADD CONSTRAINT t CHECK (name <> 'b.md')")
    with pytest.raises(Exception, match="violates check"):
        await world.projection.step()
    assert (await digest(world.log.pool), await world.projection.position()) == (before, position)


async def test_a_job_is_visible_as_soon_as_it_is_accepted(world: World) -> None:
    assert world.start
    job = await world.documents.job(str(world.start.correlation_id))
    assert (job.status, job.stage) == ("received", "converter")


async def test_pages_hold_every_document_once(world: World) -> None:
    for n in range(7):
        await world.log.append([first(received(f"{n}.md"))])
    await world.fold()
    seen, cursor = [], None
    while True:
        page = await world.documents.listing(None, cursor, 3)
        seen += [d.version_id for d in page.documents]
        cursor = page.next
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 8
