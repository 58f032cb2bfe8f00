"""The read projection: each event's effect, twice is once, replay equals live."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.artifacts import BodyMeta
from contracts.events import (
    AttachmentsReceived,
    Chunked,
    Converted,
    Erased,
    Event,
    Failed,
    Finding,
    Indexed,
    LeftOut,
    Parsed,
    Reinstated,
    Rejected,
    Released,
    ScanVerdict,
    Superseded,
    Window,
)
from contracts.states import STATES
from kernel.db import pool
from kernel.log import Log, Pending
from kernel.testing import MemoryBlobs, first, received
from services.search.documents import Documents
from services.search.projection import Projection, digest

A, B, C, D, E = ("a" * 64, "b" * 64, "c" * 64, "d" * 64, "e" * 64)
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
    await world.add(Erased(**ids, reason="blocked", scope="version", blobs=2))
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
    await world.add(Erased(**world.receipt.ids, reason="request", scope="document", blobs=3))
    view = await world.fold()
    assert (view.status, view.windows) == ("erased", [])


async def test_a_replay_from_zero_equals_the_live_state(world: World) -> None:
    await world.to_indexed()
    await world.fold()
    live = await digest(world.log.pool)
    await world.projection.replay()
    assert await digest(world.log.pool) == live
    assert set(live) == {"version", "validity", "validity_past", "job"}
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


# -- attempts, cancellations, deletions ------------------------------------------------------------


async def again(world: World) -> Pending:
    """Another attempt at the version; what is added from now on belongs to its job."""
    world.start = first(received("Закон.md", attempt=2))
    await world.log.append([world.start])
    return world.start


def newer(receipt: Event, meta: str) -> list[Event]:
    """The life of an attempt with another parse."""
    events = life(receipt, meta)
    changes: dict[type[Event], dict[str, Any]] = {
        Parsed: {"parser": "markdown-2", "parsed_sha256": E},
        Converted: {"body_sha256": E, "body_bytes": 11},
        Chunked: {"body_sha256": E, "chunks_sha256": E, "chunk_count": 5},
        Indexed: {"body_sha256": E, "chunks_sha256": E, "chunk_count": 5},
    }
    return [e.model_copy(update=changes.get(type(e), {})) for e in events]


async def test_an_indexed_version_stays_as_it_is_until_the_new_attempt_is_indexed(
    world: World,
) -> None:
    await world.to_indexed()
    before = await world.fold()
    start = await again(world)
    steps = newer(world.receipt, C)
    for event, status in zip(
        steps, ("parsed", "converting", "scanning", "chunking", "indexing", "indexed"), strict=True
    ):
        await world.add(event)
        view = await world.fold()
        job = await world.documents.job(str(start.correlation_id))
        assert (view.status, view.current, job.status) == ("indexed", True, status)
        if status != "indexed":
            kept = before.model_copy(update={"job_id": view.job_id})
            newest = {"versions", "scan"}  # the newest verdict is told, whichever attempt it is of
            assert view.model_dump(exclude=newest) == kept.model_dump(exclude=newest)
    assert (view.parser, view.body_sha256, view.chunk_count) == ("markdown-2", E, 5)
    assert view.received_at == before.received_at


@pytest.mark.parametrize("steps", range(6))
async def test_an_attempt_that_fails_leaves_the_indexed_version(world: World, steps: int) -> None:
    await world.to_indexed()
    before = await world.fold()
    start = await again(world)
    for event in newer(world.receipt, C)[:steps]:
        await world.add(event)
    await world.add(Failed(**world.receipt.ids, stage="converter", code="x", reason="y"))
    view = await world.fold()
    assert (view.status, view.body_sha256, view.parser) == ("indexed", B, before.parser)
    assert view.error == {"stage": "converter", "code": "x", "reason": "y"}
    assert (await world.documents.job(str(start.correlation_id))).status == "failed"


async def test_a_new_parse_in_quarantine_leaves_the_text_that_is_searchable(world: World) -> None:
    await world.to_indexed()
    world.blobs.content[B] = b"the old body"
    await again(world)
    ids = world.receipt.ids
    await world.add(newer(world.receipt, C)[0])
    await world.add(
        ScanVerdict(
            **ids, subject="parsed", text_sha256=E, verdict="quarantine", score=0.5, ruleset="r"
        )
    )
    assert (await world.fold()).status == "review"
    assert (await world.documents.body(world.receipt.version_id))[1] == b"the old body"
    await world.add(Rejected(**ids, subject="parsed", text_sha256=E, reviewer="p", reason="no"))
    view = await world.fold()
    assert (view.status, view.error["code"]) == ("indexed", "rejected")


async def test_a_new_parse_that_is_blocked_is_erased(world: World) -> None:
    await world.to_indexed()
    await again(world)
    ids = world.receipt.ids
    await world.add(
        ScanVerdict(**ids, subject="parsed", text_sha256=E, verdict="block", score=1, ruleset="r")
    )
    assert (await world.fold()).status == "blocked"
    await world.add(Erased(**ids, reason="blocked", scope="version", blobs=2))
    view = await world.fold()
    assert (view.status, view.current, view.windows) == ("blocked", False, [])


@pytest.mark.parametrize("steps", range(6))
async def test_a_cancelled_job_is_never_revived(world: World, steps: int) -> None:
    for event in life(world.receipt)[:steps]:
        await world.add(event)
    cancelled = Failed(**world.receipt.ids, stage="ingest", code="cancelled", reason="no more")
    await world.add(cancelled)
    for event in life(world.receipt)[steps:]:  # no append lets them through; a fold would not
        await world.add(event)
    view = await world.fold()
    job = await world.documents.job(view.job_id)
    assert (view.status, job.status, view.current) == ("failed", "failed", False)
    assert job.error and job.error["code"] == "cancelled"


async def test_a_late_event_of_an_older_attempt_changes_that_job_only(world: World) -> None:
    old = world.start
    await again(world)
    new, world.start = world.start, old
    await world.add(life(world.receipt)[0])
    view = await world.fold()
    assert old and new
    assert (view.status, view.job_id) == ("received", str(new.correlation_id))
    assert (await world.documents.job(str(old.correlation_id))).status == "parsed"


async def test_a_deletion_ends_the_job_and_leaves_no_text(world: World) -> None:
    await world.to_indexed()
    job_id = (await world.fold()).job_id
    await world.log.append(
        [first(Erased(**world.receipt.ids, reason="request", scope="document", blobs=5))]
    )
    view = await world.fold()
    assert (view.status, view.title, view.windows) == ("erased", "(erased)", [])
    assert (view.name, view.source_key) == ("(erased)", "")
    job = await world.documents.job(job_id)
    assert (job.status, job.name) == ("erased", "(erased)")


@pytest.mark.parametrize("sent_again", [False, True])
async def test_a_replay_comes_to_the_same_whether_names_left_the_log_or_not(
    world: World, sent_again: bool
) -> None:
    await world.to_indexed()
    await again(world)
    await world.add(Failed(**world.receipt.ids, stage="converter", code="corrupt", reason="words"))
    await attach(world, "child.md")
    ids = world.receipt.ids
    await world.log.append([first(Erased(**ids, reason="request", scope="document", blobs=5))])
    if sent_again:
        await again(world)
    await world.fold()
    live = await digest(world.log.pool)
    await world.projection.replay()
    assert await digest(world.log.pool) == live
    assert await world.log.redact(world.receipt.document_id, world.receipt.version_id) > 2
    await world.projection.replay()
    assert await digest(world.log.pool) == live


async def test_a_version_that_is_sent_again_after_its_deletion_begins_anew(world: World) -> None:
    await world.to_indexed()
    await world.log.append(
        [first(Erased(**world.receipt.ids, reason="request", scope="document", blobs=5))]
    )
    await again(world)
    view = await world.fold()
    assert (view.status, view.body_sha256, view.error) == ("received", None, None)


async def test_a_replay_of_attempts_cancellations_and_attachments_equals_the_live_state(
    world: World,
) -> None:
    await world.to_indexed()
    await again(world)
    for event in newer(world.receipt, C)[:3]:
        await world.add(event)
    await world.add(Failed(**world.receipt.ids, stage="ingest", code="cancelled", reason="x"))
    await again(world)
    await world.add(newer(world.receipt, C)[0])
    await attach(world, "child.md")
    await world.fold()
    live = await digest(world.log.pool)
    await world.projection.replay()
    assert await digest(world.log.pool) == live


async def attach(world: World, name: str, **more: Any) -> Any:
    """A child of the document, and what was said about its files."""
    child = received(name, via="attachment", parent=world.receipt.version_id, **more)
    await world.log.append([first(child)])
    left = LeftOut(number=2, name="x.exe", media_type="", code="unsupported-media-type")
    counted: Any = {"unsupported-media-type": 3}
    await world.add(
        AttachmentsReceived(
            **world.receipt.ids, taken=1, left_out=(left,), left_out_by_code=counted
        )
    )
    return child


async def test_a_document_names_its_files_and_each_of_them_names_it(world: World) -> None:
    await world.to_indexed()
    child = await attach(world, "child.md")
    view = await world.fold()
    (below,) = view.attachments
    assert (below.version_id, below.name, below.status) == (
        child.version_id, "child.md", "received",
    )  # fmt: skip
    assert [x["name"] for x in view.left_out] == ["x.exe"]
    assert view.left_out_by_code == {"unsupported-media-type": 3}
    inner = await world.documents.document(child.version_id)
    assert inner.parent == world.receipt.version_id
    assert inner.attached_to and inner.attached_to.document_id == world.receipt.document_id
    assert (inner.attachments, view.attached_to, view.status) == ([], None, "indexed")


async def test_of_a_file_in_two_versions_the_newest_state_is_listed(world: World) -> None:
    old = await attach(world, "child.md")
    new = received(
        "new.md", document_id=old.document_id, via="attachment", parent=world.receipt.version_id
    )
    await world.log.append([first(new)])
    assert [a.version_id for a in (await world.fold()).attachments] == [new.version_id]


async def test_a_file_that_went_with_its_document_says_so(world: World) -> None:
    child = await attach(world, "child.md")
    await world.log.append(
        [
            first(
                Erased(
                    **child.ids,
                    reason="blocked",
                    scope="version",
                    blobs=1,
                    cause=world.receipt.version_id,
                )
            )
        ]
    )
    await world.fold()
    view = await world.documents.document(child.version_id)
    assert view.error
    assert (view.status, view.error["code"]) == ("blocked", "parent-blocked")


async def test_a_job_says_whose_turn_it_is_and_until_when(world: World) -> None:
    await world.add(life(world.receipt)[0])
    view = await world.fold()
    job = await world.documents.job(view.job_id)
    state = STATES["parsed"]
    assert (job.owner, job.next_action, job.progress) == (
        "scanner", state.next_action, state.progress,
    )  # fmt: skip
    assert state.within and job.deadline == job.updated_at + state.within
    assert (job.overdue, job.attempt) == (False, 1)
    await world.log.pool.execute("UPDATE read.job SET updated_at = updated_at - interval '1 day'")
    late = (await world.documents.jobs(None, None, 5)).jobs[0]
    assert late.overdue


async def test_what_is_done_is_never_overdue(world: World) -> None:
    await world.to_indexed()
    view = await world.fold()
    await world.log.pool.execute("UPDATE read.job SET updated_at = updated_at - interval '1 year'")
    job = await world.documents.job(view.job_id)
    assert (job.deadline, job.overdue, job.progress) == (None, False, 1.0)


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
