"""Lists by status and by trust on a real Postgres: what waits and why, who trusted what."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from contracts.events import DocumentReceived, Finding, Released, ScanVerdict
from kernel.db import pool
from kernel.log import Log, Pending
from kernel.testing import MemoryBlobs, received
from services.search.documents import Documents
from services.search.projection import Projection

FINDINGS = (
    Finding(rule="spam.links", severity="low", byte_start=0, byte_end=4, count=7),
    Finding(rule="override.en.ignore", severity="high", byte_start=9, byte_end=12),
    Finding(rule="override.en.ignore", severity="medium", byte_start=20, byte_end=22),
)


class World:
    """A log, its projection, and the reads on it."""

    def __init__(self, log: Log) -> None:
        self.log, blobs = log, MemoryBlobs()
        self.projection = Projection(log, blobs)  # type: ignore[arg-type]
        self.documents = Documents(log, blobs)  # type: ignore[arg-type]
        self.jobs: dict[str, UUID] = {}

    async def add(self, event: Any, actor: str = "svc:t") -> None:
        if isinstance(event, DocumentReceived):
            self.jobs[event.version_id] = uuid4()
        job = self.jobs[event.version_id]
        await self.log.append([Pending(event, uuid4(), job, actor)])

    async def put(self, name: str, actor: str = "actor:1", **fields: Any) -> DocumentReceived:
        receipt = received(name, **fields)
        await self.add(receipt, actor)
        return receipt

    async def judge(self, receipt: DocumentReceived, verdict: str, **more: Any) -> None:
        fields: dict[str, Any] = {
            "subject": "parsed", "text_sha256": "a" * 64, "verdict": verdict, "score": 0.4,
            "findings": FINDINGS, "ruleset": "rules-1",
        }  # fmt: skip
        await self.add(ScanVerdict(**receipt.ids, **(fields | more)))

    async def fold(self) -> None:
        await self.projection._sql.start(self.log.pool)
        while await self.projection.step():
            pass

    async def names(self, **which: Any) -> list[str]:
        await self.fold()
        page = await self.documents.listing(None, None, 50, **which)
        return [d.name for d in page.documents]


@pytest.fixture
async def world(database: str) -> AsyncIterator[World]:
    db = await pool(database)
    yield World(Log(db))
    db.terminate()


async def test_what_waits_is_listed_with_the_verdict_that_made_it_wait(world: World) -> None:
    doubtful, fine = await world.put("doubtful.md"), await world.put("fine.md")
    await world.judge(doubtful, "quarantine")
    await world.judge(fine, "clean", findings=())
    await world.fold()
    page = await world.documents.listing(None, None, 50, status="review")
    assert (page.total, [d.name for d in page.documents]) == (1, ["doubtful.md"])
    note = page.documents[0].scan
    assert note is not None
    assert (note.verdict, note.score, note.worst, note.findings) == ("quarantine", 0.4, "high", 9)
    assert note.rules == ["override.en.ignore", "spam.links"]
    assert (note.subject, note.text_sha256, note.ruleset) == ("parsed", "a" * 64, "rules-1")
    whole = await world.documents.listing(None, None, 50)
    assert whole.total is None and all(d.scan is None for d in whole.documents)


async def test_what_was_decided_is_listed_no_longer(world: World) -> None:
    doubtful = await world.put("doubtful.md")
    await world.judge(doubtful, "quarantine")
    assert await world.names(status="review") == ["doubtful.md"]
    await world.add(
        Released(**doubtful.ids, subject="parsed", text_sha256="a" * 64, reviewer="p", reason="ok")
    )
    assert await world.names(status="review") == []
    assert await world.names(status="converting") == ["doubtful.md"]


async def test_filters_hold_together_and_over_pages(world: World) -> None:
    for n in range(5):
        for project in ("a", "b"):
            receipt = await world.put(f"{project}{n}.md", project=project)
            await world.judge(receipt, "quarantine" if n != 2 else "clean")
    await world.fold()
    seen: list[str] = []
    cursor = None
    while True:
        page = await world.documents.listing("b", cursor, 2, status="review")
        assert page.total == 4
        seen += [d.name for d in page.documents]
        cursor = page.next
        if cursor is None:
            break
    assert seen == ["b4.md", "b3.md", "b1.md", "b0.md"]


async def test_what_is_trusted_is_listed_with_who_trusted_it(world: World) -> None:
    trusted = await world.put("trusted.md", "actor:admin", trusted=True)
    await world.judge(trusted, "clean", bypassed=True, ruled="block")
    await world.put("other.md")
    assert await world.names(trusted=True) == ["trusted.md"]
    assert await world.names(trusted=False) == ["other.md"]
    page = await world.documents.listing(None, None, 50, trusted=True)
    [view] = page.documents
    assert page.total == 1
    assert view.trust is not None and view.trust.actor == "actor:admin"
    assert view.scan is not None and (view.scan.ruled, view.scan.worst) == ("block", "high")
    one = await world.documents.document(trusted.version_id)
    assert (one.trust, one.scan) == (view.trust, view.scan)


async def test_who_tries_a_trusted_version_again_is_not_who_trusted_it(world: World) -> None:
    first = await world.put("trusted.md", "actor:admin", trusted=True)
    await world.add(first.model_copy(update={"attempt": 2}), "actor:editor")
    await world.fold()
    view = await world.documents.document(first.version_id)
    assert view.trust is not None and view.trust.actor == "actor:admin"


async def test_trust_ends_with_a_receipt_without_it_and_begins_anew(world: World) -> None:
    first = await world.put("x.md", "actor:admin", trusted=True)
    await world.add(first.model_copy(update={"trusted": False}), "actor:editor")
    await world.fold()
    assert (await world.documents.document(first.version_id)).trust is None
    assert await world.names(trusted=True) == []
    await world.add(first, "actor:other")
    await world.fold()
    view = await world.documents.document(first.version_id)
    assert view.trust is not None and view.trust.actor == "actor:other"


async def test_a_late_clean_verdict_is_not_why_a_version_waits(world: World) -> None:
    receipt = await world.put("hit.md")
    await world.judge(receipt, "quarantine", text_sha256="b" * 64, rescan="c" * 32)
    await world.judge(receipt, "clean")
    await world.fold()
    [view] = (await world.documents.listing(None, None, 5, status="review")).documents
    assert view.scan is not None and view.scan.text_sha256 == "b" * 64


async def test_a_document_without_a_verdict_has_no_note(world: World) -> None:
    receipt = await world.put("new.md")
    await world.fold()
    view = await world.documents.document(receipt.version_id)
    assert (view.scan, view.trust) == (None, None)


async def test_a_column_of_a_newer_release_is_no_matter(world: World) -> None:
    await world.put("a.md")
    await world.log.pool.execute("ALTER TABLE read.version ADD COLUMN newer text DEFAULT 'x'")
    assert await world.names() == ["a.md"]
