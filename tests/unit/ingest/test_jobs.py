"""Cancel, retry and delete in every state, twice and at the same time."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, get_args
from uuid import UUID, uuid4

import pytest

from contracts.artifacts import Attachment, BodyMeta, ParsedDocument
from contracts.envelope import Envelope
from contracts.events import (
    Chunked,
    Converted,
    Erased,
    Event,
    Failed,
    Indexed,
    Parsed,
    Rejected,
    ScanVerdict,
)
from contracts.http import Accepted, Status
from contracts.states import STATES
from kernel.blobs import Blobs, sha256
from kernel.errors import Refusal
from kernel.log import Log, Pending
from kernel.testing import MemoryLog, MemoryParseCache
from services.ingest.accept import Offer, accept
from services.ingest.domain import Identity
from services.ingest.erase import Eraser
from services.ingest.handlers import on_erased
from services.ingest.jobs import Jobs
from services.ingest.life import STOPPABLE, check_bytes, load_life

IDENTITY = Identity(b"k" * 32)
TEXT = b"# A law\n\nwith words\n"
META = BodyMeta(title="A law", language="en", media_type="text/markdown")
Ids = dict[str, Any]


class World:
    """A real log and blob store, and documents at any step of their way."""

    def __init__(self, log: Log, folder: Any) -> None:
        self.log, self.blobs = log, Blobs(str(folder))
        cache: Any = MemoryParseCache()
        self.cache, self.eraser = cache, Eraser(log, self.blobs, cache)
        self.jobs = Jobs(log, self.blobs, self.eraser)

    async def upload(self, data: bytes = TEXT, **more: Any) -> Accepted:
        source_id = await self.blobs.put(data)
        offer = Offer("default", source_id, "a.md", "text/markdown", len(data), **more)
        return await accept(offer, self.log, IDENTITY)

    async def add(self, job: str, event: Event) -> Envelope:
        """An event of a job, as a service would record it."""
        pending = Pending(event, uuid4(), UUID(job), "svc:test")
        await self.log.append([pending], unless_over=UUID(job))
        found = await self.log.event(pending.event_id)
        assert found
        return found

    async def reach(self, status: str, data: bytes = TEXT, **more: Any) -> Accepted:
        """A document whose newest attempt is in that state."""
        accepted = await self.upload(data, **more)
        for make in WAY[status]:
            event = await make(self, about(accepted))
            await self.add(accepted.job_id, event)
        return accepted

    async def status(self, accepted: Accepted) -> Status:
        life = await load_life(self.log, accepted.document_id, accepted.version_id)
        return life.last.status

    async def types(self) -> list[str]:
        return [e.type for e in await self.log.read(0)]

    async def stored(self) -> set[str]:
        return {p.name for p in self.blobs._root.rglob("*") if p.is_file()}  # type: ignore[union-attr]


def about(accepted: Accepted) -> Ids:
    return accepted.model_dump(include={"project", "document_id", "version_id", "source_id"})


async def parse(world: World, ids: Ids, **more: Any) -> Parsed:
    text = f"text of {ids['source_id']}"
    document = ParsedDocument(markdown=text, meta=META, **more)
    name = await world.blobs.put(document.to_bytes())
    await world.cache.put(ids["source_id"], "p", "", name)
    count = len(document.attachments)
    return Parsed(**ids, parsed_sha256=name, parser="p", language="en", attachments=count)


def judge(verdict: Any, subject: Any) -> Callable[[World, Ids], Any]:
    async def judged(world: World, ids: Ids) -> ScanVerdict:
        names = await bodies(world, ids) if subject == "converted" else (sha256(b"p"), None)
        return ScanVerdict(
            **ids, subject=subject, text_sha256=names[0], meta_sha256=names[1], verdict=verdict,
            score=0, ruleset="r",
        )  # fmt: skip

    return judged


async def bodies(world: World, ids: Ids) -> tuple[str, str]:
    body = f"body of {ids['source_id']}".encode()
    return await world.blobs.put(body), await world.blobs.put(META.to_bytes())


async def convert(world: World, ids: Ids) -> Converted:
    body, meta = await bodies(world, ids)
    return Converted(
        **ids, body_sha256=body, meta_sha256=meta, body_bytes=9, converter="c", language="en"
    )


async def cut(world: World, ids: Ids) -> Chunked:
    body, meta = await bodies(world, ids)
    chunks = await world.blobs.put(f"chunks of {ids['source_id']}".encode())
    return Chunked(
        **ids, body_sha256=body, meta_sha256=meta, chunks_sha256=chunks, chunk_count=1, chunker="h"
    )


async def index(world: World, ids: Ids) -> Indexed:
    chunked = await cut(world, ids)
    return Indexed(
        **ids, body_sha256=chunked.body_sha256, chunks_sha256=chunked.chunks_sha256, chunk_count=1,
        embedder="e", embedded=1, reused=0,
    )  # fmt: skip


async def fail(_: World, ids: Ids) -> Failed:
    return Failed(**ids, stage="converter", code="corrupt-document", reason="broken")


async def reject(_: World, ids: Ids) -> Rejected:
    return Rejected(
        **ids, subject="parsed", text_sha256=sha256(b"p"), reviewer="somebody", reason="no"
    )


async def erase(_: World, ids: Ids) -> Erased:
    return Erased(**ids, reason="request", scope="document", blobs=1)


CLEAN = judge("clean", "parsed")
FULL = (parse, CLEAN, convert, judge("clean", "converted"), cut, index)
WAY: dict[str, tuple[Callable[[World, Ids], Any], ...]] = {
    "received": (),
    "parsed": FULL[:1],
    "converting": FULL[:2],
    "scanning": FULL[:3],
    "chunking": FULL[:4],
    "indexing": FULL[:5],
    "indexed": FULL,
    "review": (parse, judge("quarantine", "parsed")),
    "rejected": (parse, judge("quarantine", "parsed"), reject),
    "blocked": (parse, judge("block", "parsed")),
    "failed": (fail,),
    "erased": (*FULL, erase),
}
ALL = sorted(get_args(Status))


@pytest.fixture
def world(tmp_path: Any) -> World:
    log: Any = MemoryLog()
    return World(log, tmp_path / "blobs")


@pytest.fixture
def racing(real_log: Log, tmp_path: Any) -> World:
    """On a real log, where two can be at the same step."""
    return World(real_log, tmp_path / "blobs")


@pytest.mark.parametrize("status", ALL)
async def test_every_state_can_be_reached_here(world: World, status: str) -> None:
    assert await world.status(await world.reach(status)) == status


def test_every_state_has_an_owner_a_next_action_and_a_way_here() -> None:
    assert set(STATES) == set(WAY) == set(ALL)
    services = {"ingest", "converter", "scanner", "indexer", "search"}
    assert all(s.owner in services and s.next_action for s in STATES.values())
    due = {name for name, s in STATES.items() if s.within is not None}
    assert due == STOPPABLE  # as long as anybody is to do anything, it is due at some time


# -- cancel ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ALL)
async def test_a_cancelled_job_is_over_and_one_that_was_over_stays(
    world: World, status: str
) -> None:
    accepted = await world.reach(status)
    before = await world.types()
    changed = await world.jobs.cancel(accepted.job_id, "somebody")
    assert changed.changed == (status in STOPPABLE)
    assert (
        changed.status == ("failed" if changed.changed else status) == await world.status(accepted)
    )
    assert await world.types() == before + ["Failed"] * changed.changed


@pytest.mark.parametrize("status", sorted(STOPPABLE))
async def test_nothing_of_a_cancelled_job_is_recorded_any_more(world: World, status: str) -> None:
    accepted = await world.reach(status)
    await world.jobs.cancel(accepted.job_id, "somebody")
    before = await world.types()
    pending = Pending(await index(world, about(accepted)), uuid4(), UUID(accepted.job_id), "t")
    appended = await world.log.append([pending], unless_over=UUID(accepted.job_id))
    assert appended.status == "over"
    assert await world.types() == before


async def test_a_cancellation_says_who_and_when(world: World) -> None:
    accepted = await world.reach("parsed")
    await world.jobs.cancel(accepted.job_id, "actor:1")
    last = (await world.log.read(0))[-1]
    assert (last.actor, str(last.correlation_id)) == ("actor:1", accepted.job_id)
    assert (last.data["code"], last.data["stage"]) == ("cancelled", "ingest")


async def test_of_many_who_cancel_at_once_one_did_it(racing: World) -> None:
    accepted = await racing.reach("converting")
    told = await asyncio.gather(*(racing.jobs.cancel(accepted.job_id, str(n)) for n in range(8)))
    assert sum(t.changed for t in told) == 1
    assert (await racing.types()).count("Failed") == 1


async def test_a_job_that_ends_while_it_is_cancelled_is_indexed_or_cancelled(racing: World) -> None:
    for n in range(10):
        accepted = await racing.reach("indexing", f"# {n}\n".encode())
        done = await index(racing, about(accepted))
        pending = Pending(done, uuid4(), UUID(accepted.job_id), "t")
        told, appended = await asyncio.gather(
            racing.jobs.cancel(accepted.job_id, "x"),
            racing.log.append([pending], unless_over=UUID(accepted.job_id)),
        )
        assert told.changed == (appended.status == "over")


@pytest.mark.parametrize("id_", ["", "x", "00000000-0000-0000-0000-000000000000"])
async def test_a_job_that_is_not_there_is_a_problem(world: World, id_: str) -> None:
    for act in (world.jobs.cancel, world.jobs.retry):
        with pytest.raises(Refusal) as refused:
            await act(id_, "x")
        assert (refused.value.code, refused.value.status) == ("unknown-job", 404)


# -- retry -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", sorted({*ALL} - {"blocked", "erased"}))
async def test_a_retry_is_a_new_attempt_and_the_old_one_is_over(world: World, status: str) -> None:
    accepted = await world.reach(status)
    told = await world.jobs.retry(accepted.job_id, "actor:1")
    assert (told.changed, told.attempt, told.status) == (True, 2, "received")
    assert told.job_id != accepted.job_id
    assert told.version_id == accepted.version_id
    last = (await world.log.read(0))[-1]
    assert (last.type, str(last.correlation_id), last.actor) == (
        "DocumentReceived", told.job_id, "actor:1",
    )  # fmt: skip
    cancelled = [e for e in await world.log.read(0) if e.data.get("code") == "cancelled"]
    assert len(cancelled) == (status in STOPPABLE)


@pytest.mark.parametrize("status", ["blocked", "erased"])
async def test_what_has_no_bytes_any_more_is_not_tried_again(world: World, status: str) -> None:
    accepted = await world.reach(status)
    with pytest.raises(Refusal) as refused:
        await world.jobs.retry(accepted.job_id, "x")
    assert (refused.value.code, refused.value.status) == ("bytes-gone", 409)


async def test_bytes_that_are_lost_are_told(world: World) -> None:
    accepted = await world.reach("failed")
    await world.blobs.delete(accepted.source_id)
    with pytest.raises(Refusal, match="bytes-gone"):
        await world.jobs.retry(accepted.job_id, "x")


async def test_a_retry_keeps_what_the_document_is(world: World) -> None:
    day = datetime(2020, 1, 1, tzinfo=UTC)
    accepted = await world.reach("indexed", source="k", valid_from=day, trusted=True, lane="bulk")
    await world.jobs.retry(accepted.job_id, "x")
    first, last = [e for e in await world.log.read(0) if e.type == "DocumentReceived"]
    assert last.data == first.data | {"attempt": 2}
    assert last.lane == "bulk"


async def test_of_many_who_retry_at_once_one_begins_and_all_are_told_the_same(
    racing: World,
) -> None:
    accepted = await racing.reach("parsed")
    told = await asyncio.gather(*(racing.jobs.retry(accepted.job_id, str(n)) for n in range(8)))
    assert sum(t.changed for t in told) == 1
    assert len({t.job_id for t in told}) == 1
    assert (await racing.types()).count("DocumentReceived") == 2


async def test_a_retry_that_was_killed_half_way_is_finished_by_the_next(world: World) -> None:
    accepted = await world.reach("parsed")
    await world.jobs.cancel(accepted.job_id, "x")  # all that the killed one did
    assert (await world.jobs.retry(accepted.job_id, "x")).changed


async def test_a_retry_of_an_older_attempt_tells_the_newest(world: World) -> None:
    accepted = await world.reach("failed")
    second = await world.jobs.retry(accepted.job_id, "x")
    again = await world.jobs.retry(accepted.job_id, "x")
    assert (again.changed, again.job_id) == (False, second.job_id)


async def test_cancel_and_retry_at_once_leave_one_running_attempt_or_none(racing: World) -> None:
    for n in range(6):
        accepted = await racing.reach("parsed", f"# {n}\n".encode())
        await asyncio.gather(
            racing.jobs.cancel(accepted.job_id, "a"), racing.jobs.retry(accepted.job_id, "b")
        )
        life = await load_life(racing.log, accepted.document_id, accepted.version_id)
        assert [a.status for a in life.attempts] == ["failed", "received"]


# -- delete ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ALL)
async def test_a_deleted_document_leaves_no_byte_and_a_tombstone(world: World, status: str) -> None:
    accepted = await world.reach(status)
    told = await world.jobs.delete(accepted.document_id, "somebody")
    assert told.versions == (status != "erased")
    assert told.jobs_cancelled == (status in STOPPABLE)
    assert await world.stored() == set()
    assert world.cache.content == {}
    assert (await world.types())[-2:] == ["Erased", "BytesPurged"]
    assert await world.status(accepted) == "erased"


async def test_all_versions_go_and_their_count_is_told(world: World) -> None:
    accepted = await world.reach("indexed", source="k")
    await world.reach("parsed", b"# Two\n", source="k")
    await world.reach("failed", b"# Three\n", source="k")
    told = await world.jobs.delete(accepted.version_id, "x")
    assert (told.versions, told.jobs_cancelled) == (3, 1)
    assert told.blobs == 5 + 2 + 1  # bytes, parse, body, meta, chunks; bytes, parse; bytes
    assert await world.stored() == set()


async def test_deleting_twice_is_fine_and_finishes_what_was_left(world: World) -> None:
    accepted = await world.reach("indexed")
    await world.add(accepted.job_id, await erase(world, about(accepted)))  # and it was killed
    assert await world.stored()
    told = await world.jobs.delete(accepted.document_id, "x")
    assert (told.versions, await world.stored()) == (0, set())


async def test_a_tombstone_that_comes_around_deletes_what_the_request_left(world: World) -> None:
    accepted = await world.reach("indexed")
    event = await erase(world, about(accepted))
    await world.add(accepted.job_id, event)
    [purged] = await on_erased(event, eraser=world.eraser)
    assert purged.removed["originals"] == 1
    assert await world.stored() == set()


async def test_a_tombstone_of_a_version_that_came_again_deletes_nothing(world: World) -> None:
    accepted = await world.reach("indexed")
    event = await erase(world, about(accepted))
    await world.add(accepted.job_id, event)
    await world.upload()
    before = await world.stored()
    await on_erased(event, eraser=world.eraser)
    assert await world.stored() == before


async def test_of_many_who_delete_at_once_one_did_it(racing: World) -> None:
    accepted = await racing.reach("indexing")
    told = await asyncio.gather(*(racing.jobs.delete(accepted.document_id, "x") for _ in range(6)))
    assert sum(t.versions for t in told) == 1
    assert (await racing.types()).count("Erased") == 1


async def test_retry_and_delete_at_once_leave_nothing_running(racing: World) -> None:
    for n in range(6):
        accepted = await racing.reach("parsed", f"# {n}\n".encode())
        results = await asyncio.gather(
            racing.jobs.retry(accepted.job_id, "a"),
            racing.jobs.delete(accepted.document_id, "b"),
            return_exceptions=True,
        )
        assert not isinstance(results[1], BaseException)
        retried = results[0]
        if isinstance(retried, BaseException):
            assert isinstance(retried, Refusal) and retried.code in ("bytes-gone", "conflict")
        assert await racing.status(accepted) == "erased"
    assert await racing.stored() == set()


async def test_bytes_and_texts_that_others_use_stay(world: World) -> None:
    one = await world.reach("indexed", source="one")
    await world.reach("indexed", source="two")
    other = await world.reach("indexed", b"# Another\n", source="three")  # shares the meta only
    before = await world.stored()
    await world.jobs.delete(one.document_id, "x")
    assert await world.stored() == before
    await world.jobs.delete(other.document_id, "x")
    assert sha256(META.to_bytes()) in await world.stored()


async def test_an_erased_version_does_not_keep_bytes_for_another(world: World) -> None:
    one = await world.reach("indexed", source="one")
    two = await world.reach("indexed", source="two")
    await world.jobs.delete(one.document_id, "x")
    await world.jobs.delete(two.document_id, "x")
    assert await world.stored() == set()


async def test_a_document_is_named_by_itself_a_version_or_its_only_bytes(world: World) -> None:
    for name in ("document_id", "version_id", "source_id"):
        accepted = await world.reach("indexed", name.encode())
        told = await world.jobs.delete(getattr(accepted, name), "x")
        assert told.document_id == accepted.document_id


async def test_bytes_of_two_documents_name_neither(world: World) -> None:
    accepted = await world.reach("indexed", source="one")
    await world.reach("indexed", source="two")
    with pytest.raises(Refusal) as refused:
        await world.jobs.delete(accepted.source_id, "x")
    assert (refused.value.code, refused.value.status) == ("ambiguous-id", 409)


@pytest.mark.parametrize("id_", ["", "x", "0" * 32, "0" * 64])
async def test_a_document_that_is_not_there_is_a_problem(world: World, id_: str) -> None:
    with pytest.raises(Refusal) as refused:
        await world.jobs.delete(id_, "x")
    assert (refused.value.code, refused.value.status) == ("unknown-document", 404)


async def test_what_was_deleted_may_be_sent_again(world: World) -> None:
    accepted = await world.reach("indexed")
    await world.jobs.delete(accepted.document_id, "x")
    again = await world.reach("indexed")
    assert (again.version_id, again.duplicate_of) == (accepted.version_id, None)
    assert await world.status(again) == "indexed"


async def test_files_inside_a_parse_go_with_it(world: World) -> None:
    accepted = await world.upload()
    inside = await world.blobs.put(b"\x00 a file of no known kind")
    attachment = Attachment(name="x.bin", sha256=inside, size_bytes=9)
    parsed = await parse(world, about(accepted), attachments=(attachment,))
    await world.add(accepted.job_id, parsed)
    await world.jobs.delete(accepted.document_id, "x")
    assert await world.stored() == set()


# -- bytes that come while they are deleted --------------------------------------------------------


async def test_an_upload_whose_bytes_are_deleted_before_its_receipt_is_told(world: World) -> None:
    old = await world.reach("indexed")
    await world.blobs.put(TEXT)  # the bytes came once more …
    await world.jobs.delete(old.document_id, "x")  # … went with the old version …
    offer = Offer("default", sha256(TEXT), "a.md", "text/markdown", len(TEXT))
    accepted = await accept(offer, world.log, IDENTITY)  # … and only then it is recorded
    with pytest.raises(Refusal) as refused:
        await check_bytes(accepted, world.log, world.blobs)
    assert (refused.value.code, refused.value.status) == ("conflict", 409)
    assert await world.status(accepted) == "failed"


async def test_a_receipt_whose_bytes_are_deleted_after_it_is_cancelled_by_the_deletion(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await world.reach("indexed")
    real, again = world.blobs.delete, []

    async def late(name: str) -> bool:
        if name == old.source_id:  # between the look at who needs it and the deletion
            offer = Offer("default", old.source_id, "a.md", "text/markdown", len(TEXT))
            again.append(await accept(offer, world.log, IDENTITY))
        return await real(name)

    monkeypatch.setattr(world.blobs, "delete", late)
    await world.jobs.delete(old.document_id, "x")
    assert await world.status(again[0]) == "failed"
    failed = [e for e in await world.log.read(0) if e.type == "Failed"]
    assert "send it again" in failed[-1].data["reason"]


async def test_an_upload_whose_bytes_are_there_is_fine(world: World) -> None:
    accepted = await world.upload()
    await check_bytes(accepted, world.log, world.blobs)
    assert await world.status(accepted) == "received"
