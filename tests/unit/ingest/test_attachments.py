"""Files inside a document: documents of their own, once, and never of one that was blocked."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from contracts.artifacts import Attachment, BodyMeta, ParsedDocument
from contracts.envelope import Envelope
from contracts.events import (
    AttachmentsReceived,
    DocumentReceived,
    Erased,
    Event,
    Failed,
    Indexed,
    Parsed,
    Released,
    ScanVerdict,
)
from contracts.flow import consumed_by
from contracts.http import Accepted
from kernel.blobs import sha256
from kernel.consumer import Consumer, bind_handler
from kernel.errors import WrongVersion
from kernel.log import Pending
from kernel.testing import MemoryBlobs, MemoryLog, MemoryParseCache, first
from services.ingest import handlers
from services.ingest.accept import Offer, accept
from services.ingest.attachments import DEPTH, LISTED, MOST, Attachments, files_of, safe_name
from services.ingest.domain import Identity
from services.ingest.erase import Eraser
from services.ingest.jobs import Jobs

IDENTITY = Identity(b"k" * 32)
META = BodyMeta(title="A letter", language="en", media_type="message/rfc822")
File = tuple[str, bytes]


class Message:
    """A delivery of an event."""

    def __init__(self, envelope: Envelope) -> None:
        self.body = json.dumps(envelope.to_cloudevent())
        self.outcome = ""

    async def ack_sync(self) -> None:
        self.outcome = "ack"

    async def nack(self, delay: float | None = None) -> None:
        self.outcome = "nack"

    async def reject(self) -> None:
        self.outcome = "reject"

    async def in_progress(self) -> None:
        """Nobody listens."""


class World:
    """Ingest with a log and blobs in memory, its consumers as the kernel runs them."""

    def __init__(self) -> None:
        log: Any = MemoryLog()
        blobs: Any = MemoryBlobs()
        cache: Any = MemoryParseCache()
        self.log, self.blobs, self.cache = log, blobs, cache
        self.eraser = Eraser(log, blobs, cache)
        self.attachments = Attachments(log, blobs, IDENTITY)
        self.jobs = Jobs(log, blobs, self.eraser)

    async def upload(self, data: bytes = b"a mail", **more: Any) -> Accepted:
        source_id = await self.blobs.put(data)
        offer = Offer("default", source_id, "m.md", "text/markdown", len(data), **more)
        return await accept(offer, self.log, IDENTITY)

    async def parsed(self, receipt: Envelope, files: Sequence[File]) -> Envelope:
        """The converter's work on a receipt: the files are in the blob store."""
        blobs = [
            Attachment(name=name, sha256=await self.blobs.put(data), size_bytes=len(data))
            for name, data in files
        ]
        text = f"text of {receipt.data['source_id']}"
        document = ParsedDocument(markdown=text, meta=META, attachments=tuple(blobs))
        name = await self.blobs.put(document.to_bytes())
        event = Parsed(
            **receipt.event().ids, parsed_sha256=name, parser="p", language="en",
            attachments=len(blobs),
        )  # fmt: skip
        await self.cache.put(event.source_id, "p", "", name)
        return await self.add(receipt, event)

    async def judged(self, parsed: Envelope, verdict: Any = "clean", **more: Any) -> Envelope:
        """The scanner's verdict on a parse."""
        event = ScanVerdict(
            **parsed.event().ids, text_sha256=parsed.data["parsed_sha256"], verdict=verdict,
            score=0, ruleset="r", **({"subject": "parsed"} | more),
        )  # fmt: skip
        return await self.add(parsed, event)

    async def add(self, cause: Envelope, event: Event) -> Envelope:
        pending = first(event)
        await self.log.append(
            [Pending(event, pending.event_id, cause.correlation_id, "t", lane=cause.lane)]
        )
        found: Envelope = self.log.events[-1]
        return found

    async def deliver(self, cause: Envelope) -> str:
        """Ingest gets an event from the bus."""
        deps = {"log": self.log, "eraser": self.eraser, "attachments": self.attachments}
        step = next(
            s for s in consumed_by("ingest") if getattr(s.consumes, "__name__", "") == cause.type
        )
        name = {"ScanVerdict": "on_scan_verdict", "Released": "on_released", "Erased": "on_erased"}
        handler = bind_handler(getattr(handlers, name[cause.type]), deps)
        consumer = Consumer("ingest", step, cause.lane, handler, self.log, delays=())
        message = Message(cause)
        outcome = await consumer.deliver(message)
        assert message.outcome == "ack", outcome
        return outcome

    async def mail(self, *files: File, **more: Any) -> Envelope:
        """A mail that was found clean, with its files taken in; the receipt of the mail."""
        await self.upload(**more)
        receipt = self.receipts()[-1]
        await self.deliver(await self.judged(await self.parsed(receipt, files)))
        return receipt

    def receipts(self, via: str | None = None) -> list[Envelope]:
        return [
            e for e in self.log.events
            if e.type == "DocumentReceived" and via in (None, e.data["via"])
        ]  # fmt: skip

    def children(self) -> list[Envelope]:
        return self.receipts("attachment")

    def told(self) -> AttachmentsReceived:
        events = [e.event() for e in self.log.events if e.type == "AttachmentsReceived"]
        assert isinstance(events[-1], AttachmentsReceived)
        return events[-1]

    async def erasures(self) -> None:
        """Deliver tombstones until no new ones come."""
        done = 0
        while done < len(self.log.events):
            envelope = self.log.events[done]
            done += 1
            if envelope.type == "Erased":
                await self.deliver(envelope)


@pytest.fixture
def world() -> World:
    return World()


TEXT: File = ("Уговор.md", "# Уговор\n\nтекст".encode())
PAGE: File = ("b.html", b"<!doctype html><p>words</p>")


async def test_the_files_in_a_clean_mail_become_documents(world: World) -> None:
    mail = await world.mail(TEXT, PAGE, source="inbox/1.eml", trusted=True, lane="bulk")
    one, two = [e.data for e in world.children()]
    assert (one["name"], one["media_type"]) == ("Уговор.md", "text/markdown")
    assert (two["name"], two["media_type"]) == ("b.html", "text/html")
    assert one["source_id"] == sha256(TEXT[1])
    assert one["source_key"] == "inbox/1.eml#Уговор.md"
    for child in (one, two):
        assert child["parent"] == mail.data["version_id"]
        assert child["valid_from"] == mail.data["valid_from"]
        assert not child["trusted"]
    assert {e.lane for e in world.children()} == {"bulk"}
    assert world.told().taken == 2
    assert world.told().left_out == ()


async def test_each_of_them_is_a_job_of_its_own(world: World) -> None:
    mail = await world.mail(TEXT, PAGE)
    jobs = {e.correlation_id for e in (mail, *world.children())}
    assert len(jobs) == 3
    assert {e.actor for e in world.children()} == {"svc:ingest"}
    verdict = next(e for e in world.log.events if e.type == "ScanVerdict")
    assert {e.causation_id for e in world.children()} == {verdict.event_id}


async def test_a_document_without_files_costs_no_blob(world: World) -> None:
    await world.upload()
    parsed = await world.parsed(world.receipts()[0], [])
    world.blobs.content.clear()
    assert await world.deliver(await world.judged(parsed)) == "nothing"


@pytest.mark.parametrize("verdict", ["quarantine", "block"])
async def test_of_a_mail_that_is_not_clean_nothing_comes_in(world: World, verdict: str) -> None:
    await world.upload()
    parsed = await world.parsed(world.receipts()[0], [TEXT])
    await world.deliver(await world.judged(parsed, verdict))
    assert world.children() == []


async def test_a_body_that_is_found_clean_takes_nothing_in_again(world: World) -> None:
    await world.upload()
    parsed = await world.parsed(world.receipts()[0], [TEXT])
    verdict = await world.judged(parsed, subject="converted")
    assert await world.deliver(verdict) == "nothing"


async def test_a_release_lets_the_files_in_too(world: World) -> None:
    await world.upload()
    parsed = await world.parsed(world.receipts()[0], [TEXT])
    await world.deliver(await world.judged(parsed, "quarantine"))
    name = parsed.data["parsed_sha256"]
    released = Released(
        **parsed.event().ids, subject="parsed", text_sha256=name, reviewer="p", reason="fine"
    )
    await world.deliver(await world.add(parsed, released))
    assert len(world.children()) == 1


async def test_a_second_delivery_makes_no_second_document(world: World) -> None:
    await world.mail(TEXT, PAGE)
    verdict = next(e for e in world.log.events if e.type == "ScanVerdict")
    before = len(world.log.events)
    assert await world.deliver(verdict) == "duplicate"
    assert len(world.log.events) == before


@pytest.mark.parametrize("survives", [0, 1, 2])
async def test_a_kill_between_two_files_makes_no_second_document(
    world: World, survives: int
) -> None:
    await world.upload()
    verdict = await world.judged(await world.parsed(world.receipts()[0], [TEXT, PAGE]))
    real, left = world.log.append, survives

    async def dying(*args: Any, **more: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ConnectionError("killed")
        return await real(*args, **more)

    world.log.append = dying
    with pytest.raises(AssertionError, match="retry"):
        await world.deliver(verdict)
    world.log.append = real
    assert len(world.children()) == survives
    assert await world.deliver(verdict) == "appended"
    assert len(world.children()) == 2
    assert world.told().taken == 2


async def test_the_same_file_in_two_mails_is_two_documents_on_one_blob(world: World) -> None:
    await world.mail(TEXT, data=b"mail 1")
    await world.mail(TEXT, data=b"mail 2")
    one, two = [e.data for e in world.children()]
    assert one["source_id"] == two["source_id"]
    assert one["document_id"] != two["document_id"]


async def test_the_same_name_twice_in_one_mail_is_two_documents(world: World) -> None:
    await world.mail(TEXT, (TEXT[0], b"# other"), TEXT, source="m")
    keys = [e.data["source_key"] for e in world.children()]
    assert keys == ["m#Уговор.md", "m#2/Уговор.md", "m#3/Уговор.md"]


async def test_a_new_version_of_the_mail_supersedes_the_files_that_changed(world: World) -> None:
    await world.mail(TEXT, PAGE, data=b"v1", source="m")
    await world.mail(("new.md", b"# first now"), PAGE, (TEXT[0], b"# new"), data=b"v2", source="m")
    old, page, new, changed = [e.data for e in world.children()]
    assert (changed["document_id"], changed["source_key"]) == (old["document_id"], "m#Уговор.md")
    assert changed["version_id"] != old["version_id"]
    assert page["name"] == "b.html"  # known already: not received again
    assert new["name"] == "new.md"
    assert world.told().taken == 3


async def test_files_of_a_mail_from_elsewhere_get_their_next_versions_here() -> None:
    world = World()
    elsewhere = Identity(b"e" * 32)
    world.attachments = Attachments(world.log, world.blobs, elsewhere)
    await world.mail(TEXT, data=b"v1", source="m")
    world.attachments = Attachments(world.log, world.blobs, IDENTITY)
    await world.mail((TEXT[0], b"# new"), TEXT, data=b"v2", source="m")
    old, changed, second = [e.data for e in world.children()]
    assert changed["document_id"] == old["document_id"] != second["document_id"]
    assert old["document_id"] == elsewhere.document("default", "m#Уговор.md")


async def test_a_file_that_returns_to_an_earlier_state_is_reinstated(world: World) -> None:
    for n, data in enumerate((b"# one", b"# two", b"# one")):
        await world.mail(("a.md", data), data=b"v%d" % n, source="m")
        if n < 2:
            child = world.children()[-1]
            ids = child.event().ids
            done = Indexed(
                **ids, body_sha256="a" * 64, chunks_sha256="b" * 64, chunk_count=1, embedder="e",
                embedded=1, reused=0,
            )  # fmt: skip
            cause = await world.add(child, done)
            emitted: Any = await handlers.on_indexed(done, log=world.log)
            for event in emitted:
                await world.add(cause, event)
    assert len(world.children()) == 2
    (back,) = [e for e in world.log.events if e.type == "Reinstated"]
    assert back.data["version_id"] == world.children()[0].data["version_id"]


async def test_files_of_no_known_kind_are_told_and_not_taken(world: World) -> None:
    await world.mail(TEXT, ("x.exe", b"MZ\x90\x00" + bytes(300)))
    told = world.told()
    assert (told.taken, told.left_out_by_code) == (1, {"unsupported-media-type": 1})
    (left,) = told.left_out
    assert (left.number, left.name, left.media_type) == (2, "x.exe", "application/octet-stream")


async def test_a_file_that_is_not_in_the_store_is_told(world: World) -> None:
    await world.upload()
    parsed = await world.parsed(world.receipts()[0], [TEXT])
    await world.blobs.delete(sha256(TEXT[1]))
    await world.deliver(await world.judged(parsed))
    assert world.told().left_out_by_code == {"missing": 1}


async def test_mails_in_mails_are_taken_in_to_a_depth(world: World) -> None:
    receipt = await world.mail(("0.md", b"# 0"))
    for n in range(1, DEPTH + 2):
        receipt = world.children()[-1]
        inner = (f"{n}.md", b"# %d" % n)
        await world.deliver(await world.judged(await world.parsed(receipt, [inner])))
    assert len(world.children()) == DEPTH
    assert world.told().left_out_by_code == {"too-deep": 1}


async def test_more_files_than_are_taken_in_are_counted(world: World) -> None:
    files = [(f"{n}.md", b"# same") for n in range(MOST + LISTED + 7)]
    await world.mail(*files)
    told = world.told()
    assert len(world.children()) == told.taken == MOST
    assert told.left_out_by_code == {"too-many": LISTED + 7}
    assert [x.number for x in told.left_out] == list(range(MOST + 1, MOST + LISTED + 1))
    assert len(world.log.events[-1].model_dump_json()) < 64 * 1024


async def test_a_file_that_failed_is_tried_again_with_its_mail(world: World) -> None:
    mail = await world.mail(TEXT, PAGE)
    child = world.children()[0]
    await world.add(child, Failed(**child.event().ids, stage="converter", code="x", reason="y"))
    await world.jobs.retry(str(mail.correlation_id), "somebody")
    await world.deliver(
        await world.judged(await world.parsed(world.receipts("upload")[-1], [TEXT, PAGE]))
    )
    again = world.children()[2:]
    assert [(e.data["name"], e.data["attempt"]) for e in again] == [("Уговор.md", 2)]
    assert again[0].correlation_id != child.correlation_id


async def test_another_writer_of_the_same_document_makes_the_decision_anew(world: World) -> None:
    await world.upload(source="m")
    verdict = await world.judged(await world.parsed(world.receipts()[0], [TEXT]))
    real, raced = world.log.append, False

    async def racing(pending: Any, **more: Any) -> Any:
        nonlocal raced
        if not raced:
            raced = True
            event: DocumentReceived = pending[0].event
            await real([first(event.model_copy(update={"attempt": 7}))])
            raise WrongVersion(event.stream_id, 0)
        return await real(pending, **more)

    world.log.append = racing
    assert await world.deliver(verdict) == "appended"
    assert [e.data["attempt"] for e in world.children()] == [7]
    assert world.told().taken == 1


# -- cancelled, blocked, deleted parents -----------------------------------------------------------


async def test_the_files_of_a_cancelled_mail_do_not_start(world: World) -> None:
    await world.upload()
    receipt = world.receipts()[0]
    verdict = await world.judged(await world.parsed(receipt, [TEXT]))
    await world.jobs.cancel(str(receipt.correlation_id), "somebody")
    assert await world.deliver(verdict) == "over"
    assert world.children() == []


async def test_a_cancellation_in_the_middle_stops_the_files_behind_it(world: World) -> None:
    await world.upload()
    receipt = world.receipts()[0]
    verdict = await world.judged(await world.parsed(receipt, [TEXT, PAGE]))
    real, calls = world.log.append, 0

    async def cancelling(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            world.log.append = real
            await world.jobs.cancel(str(receipt.correlation_id), "somebody")
        return await real(*args, **more)

    world.log.append = cancelling
    assert await world.deliver(verdict) == "over"
    assert len(world.children()) == 1


async def test_a_mail_whose_body_is_blocked_takes_its_files_along(world: World) -> None:
    mail = await world.mail(TEXT, PAGE)
    parsed = next(e for e in world.log.events if e.type == "Parsed")
    body = await world.blobs.put(b"body")
    verdict = await world.judged(parsed, "block", subject="converted", meta_sha256=body)
    await world.deliver(verdict)
    await world.erasures()
    gone = [e.data for e in world.log.events if e.type == "Erased"]
    assert {e["version_id"] for e in gone} == {
        mail.data["version_id"], *(c.data["version_id"] for c in world.children()),
    }  # fmt: skip
    assert [e["cause"] for e in gone] == [None, *[mail.data["version_id"]] * 2]
    assert {e["reason"] for e in gone} == {"blocked"}
    assert world.blobs.content == {}


async def test_deleting_a_mail_deletes_what_was_in_it_at_any_depth(world: World) -> None:
    mail = await world.mail(("inner.md", b"# a mail"))
    inner = world.children()[0]
    await world.deliver(await world.judged(await world.parsed(inner, [TEXT])))
    told = await world.jobs.delete(mail.data["document_id"], "somebody")
    assert (told.versions, told.jobs_cancelled, len(told.documents)) == (3, 3, 3)
    assert world.blobs.content == {}
    before = len(world.log.events)
    await world.erasures()
    assert len(world.log.events) == before


async def test_of_a_mail_that_was_erased_before_its_files_came_in_none_comes(world: World) -> None:
    await world.upload()
    receipt = world.receipts()[-1]
    verdict = await world.judged(await world.parsed(receipt, [TEXT]))
    gone = Erased(**receipt.event().ids, reason="request", scope="document", blobs=1)
    await world.add(receipt, gone)
    assert await world.deliver(verdict) == "nothing"
    assert world.children() == []


async def test_a_delete_that_was_killed_is_finished_by_the_tombstone(world: World) -> None:
    mail = await world.mail(TEXT)
    await world.add(mail, Erased(**mail.event().ids, reason="request", scope="document", blobs=1))
    await world.erasures()
    types = [e.type for e in world.log.events]
    assert (types.count("Erased"), types.count("BytesPurged")) == (2, 2)
    assert world.blobs.content == {}


async def test_a_file_that_is_also_in_another_mail_stays_there(world: World) -> None:
    one = await world.mail(TEXT, data=b"mail 1")
    await world.mail(TEXT, data=b"mail 2")
    await world.jobs.delete(one.data["document_id"], "somebody")
    assert sha256(TEXT[1]) in world.blobs.content


async def test_a_file_that_was_deleted_by_itself_does_not_come_back_with_its_mail(
    world: World,
) -> None:
    mail = await world.mail(TEXT, PAGE)
    child = world.children()[0]
    await world.jobs.delete(child.data["document_id"], "somebody")
    assert world.cache.content == {}  # the mail's parse named bytes that are gone
    await world.jobs.retry(str(mail.correlation_id), "somebody")
    await world.deliver(
        await world.judged(await world.parsed(world.receipts("upload")[-1], [TEXT, PAGE]))
    )
    assert world.told().left_out_by_code == {"erased": 1}
    assert len(world.children()) == 2


async def test_a_mail_that_is_sent_again_after_its_deletion_brings_its_files(world: World) -> None:
    mail = await world.mail(TEXT)
    await world.jobs.delete(mail.data["document_id"], "somebody")
    await world.mail(TEXT)
    assert [e.data["attempt"] for e in world.children()] == [1, 2]


# -- names and keys --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a.pdf", "a.pdf"), ("../../etc/passwd", ".._.._etc_passwd"), ("a\\b.md", "a_b.md"),
        ("", "attachment-7"), ("  ", "attachment-7"), ("..", "attachment-7"),
        ("a\x00\x1b\u202eb.md", "a___b.md"), ("/", "_"), ("ю" * 200 + ".pdf", "ю" * 125 + ".pdf"),
        ("x" * 300, "x" * 255),
    ],
)  # fmt: skip
def test_a_name_from_inside_a_file_is_made_harmless(name: str, safe: str) -> None:
    assert safe_name(name, 7) == safe
    assert len(safe.encode()) <= 255


@pytest.mark.parametrize("parent", ["k", "x" * 1800, "x" * 2048, "ю" * 2048])
def test_a_key_fits_however_long_the_parents_is(parent: str) -> None:
    blob = Attachment(name="я" * 255, sha256="a" * 64, size_bytes=1)
    (one, two) = files_of(parent, [blob, blob])
    assert len(one.key) <= 2048 and len(two.key) <= 2048
    assert one.key != two.key
