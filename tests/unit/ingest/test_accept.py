"""What an upload is: new, duplicate, again, another version, a return."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.events import Erased, Failed, Indexed, Reinstated, ScanVerdict, Superseded
from contracts.http import Accepted
from kernel.blobs import sha256
from kernel.errors import Refusal
from kernel.log import Log, reactions
from kernel.testing import MemoryBlobs, MemoryLog, MemoryParseCache, first
from services.ingest.accept import Offer, accept
from services.ingest.attachments import Attachments
from services.ingest.domain import Identity
from services.ingest.erase import Eraser
from services.ingest.handlers import on_indexed, on_scan_verdict

IDENTITY = Identity(b"k" * 32)


def day(n: int) -> datetime:
    return datetime(2025, 1, n, tzinfo=UTC)


def offer(text: str, **changes: Any) -> Offer:
    data = text.encode()
    base = Offer("default", sha256(data), f"{text}.md", "text/markdown", len(data))
    return replace(base, **changes)


class World:
    """A log, and what the other services would do to it."""

    def __init__(self) -> None:
        log: Any = MemoryLog()
        blobs: Any = MemoryBlobs()
        cache: Any = MemoryParseCache()
        self.log, self.blobs, self.cache = log, blobs, cache
        self.eraser = Eraser(log, blobs, cache)
        self.attachments = Attachments(log, blobs, IDENTITY)

    async def judge(self, event: ScanVerdict) -> Any:
        """The verdict is in the log, and ingest acts on it."""
        await self.log.append([first(event)])
        return await on_scan_verdict(event, attachments=self.attachments, eraser=self.eraser)

    async def upload(self, text: str, **changes: Any) -> Accepted:
        await self.blobs.put(text.encode())
        return await accept(offer(text, **changes), self.log, IDENTITY)

    async def index(self, accepted: Accepted) -> None:
        ids = about_accepted(accepted)
        event = Indexed(
            **ids,
            body_sha256="a" * 64,
            chunks_sha256="b" * 64,
            chunk_count=1,
            embedder="e",
            embedded=1,
            reused=0,
        )
        await self.log.append([first(event)])
        cause = (await self.log.read(await self.log.head() - 1))[0]
        emitted: Any = await on_indexed(event, log=self.log)
        if emitted:
            await self.log.append(
                reactions(cause, "ingest.on_indexed", emitted), expected=emitted.expected
            )

    async def fail(self, accepted: Accepted) -> None:
        failed = Failed(**about_accepted(accepted), stage="converter", code="x", reason="y")
        await self.log.append([first(failed)])

    async def types(self) -> list[str]:
        return [e.type for e in await self.log.read(0)]

    async def windows(self) -> list[tuple[str, datetime, datetime | None]]:
        last = [
            e.event() for e in await self.log.read(0) if e.type in ("Superseded", "Reinstated")
        ][-1]
        assert isinstance(last, Superseded | Reinstated)
        return [(w.version_id, w.valid_from, w.valid_until) for w in last.windows]


def about_accepted(accepted: Accepted) -> dict[str, str]:
    return accepted.model_dump(include={"project", "document_id", "version_id", "source_id"})


async def test_new_bytes_are_received() -> None:
    world = World()
    accepted = await world.upload("a")
    assert accepted.duplicate_of is None
    assert accepted.source_id == sha256(b"a")
    assert await world.types() == ["DocumentReceived"]


async def test_known_bytes_are_a_duplicate_with_the_first_job() -> None:
    world = World()
    once = await world.upload("a")
    twice = await world.upload("a", name="other.md")
    assert twice.duplicate_of == once.version_id
    assert twice.job_id == once.job_id
    assert await world.types() == ["DocumentReceived"]


async def test_racing_uploads_of_the_same_bytes_are_received_once(real_log: Log) -> None:
    same = offer("a")
    results = await asyncio.gather(*(accept(same, real_log, IDENTITY) for _ in range(8)))
    assert sum(r.duplicate_of is None for r in results) == 1
    assert len({r.version_id for r in results}) == 1
    assert await real_log.head() == 1


async def test_racing_versions_of_one_document_are_all_received(real_log: Log) -> None:
    offers = [offer(str(n), source="key") for n in range(6)]
    results = await asyncio.gather(*(accept(o, real_log, IDENTITY) for o in offers))
    assert len({r.document_id for r in results}) == 1
    assert await real_log.head() == 6


async def test_another_project_has_its_own_document() -> None:
    world = World()
    a, b = await world.upload("a"), await world.upload("a", project="other")
    assert b.duplicate_of is None
    assert a.document_id != b.document_id


async def test_the_same_bytes_under_another_source_are_another_document() -> None:
    world = World()
    a, b = await world.upload("a", source="x"), await world.upload("a", source="y")
    assert b.duplicate_of is None
    assert a.document_id != b.document_id


async def test_bytes_without_a_source_are_a_duplicate_wherever_they_are() -> None:
    world = World()
    a = await world.upload("a", source="x")
    assert (await world.upload("a")).duplicate_of == a.version_id


async def test_a_failed_version_is_tried_again_as_a_new_job() -> None:
    world = World()
    once = await world.upload("a")
    await world.fail(once)
    again = await world.upload("a")
    assert again.duplicate_of is None
    assert again.version_id == once.version_id
    assert again.job_id != once.job_id
    assert (await world.log.read(2))[0].data["attempt"] == 2


async def test_a_first_version_supersedes_nothing() -> None:
    world = World()
    await world.index(await world.upload("a"))
    assert await world.types() == ["DocumentReceived", "Indexed"]


async def test_a_new_version_ends_the_old_one_where_it_begins() -> None:
    world = World()
    a = await world.upload("a", source="k", valid_from=day(1))
    await world.index(a)
    b = await world.upload("b", source="k", valid_from=day(5))
    assert "Superseded" not in await world.types()  # not before it can be found
    await world.index(b)
    assert await world.windows() == [(a.version_id, day(1), day(5)), (b.version_id, day(5), None)]


@pytest.mark.parametrize("target", ["version_id", "document_id", "source_id"])
async def test_supersedes_names_the_document(target: str) -> None:
    world = World()
    a = await world.upload("a")
    await world.index(a)
    b = await world.upload("b", supersedes=getattr(a, target))
    assert b.document_id == a.document_id


async def test_superseding_what_is_not_there_is_refused() -> None:
    world = World()
    await world.upload("a", project="other")
    with pytest.raises(Refusal) as refused:
        await world.upload("b", supersedes=sha256(b"a"))
    assert refused.value.code == "unknown-version"
    assert await world.types() == ["DocumentReceived"]


async def test_versions_that_are_indexed_out_of_order_get_the_same_line() -> None:
    world = World()
    a = await world.upload("a", source="k", valid_from=day(1))
    b = await world.upload("b", source="k", valid_from=day(5))
    c = await world.upload("c", source="k", valid_from=day(9))
    for accepted in (c, a, b):
        await world.index(accepted)
    assert await world.windows() == [
        (a.version_id, day(1), day(5)),
        (b.version_id, day(5), day(9)),
        (c.version_id, day(9), None),
    ]


async def test_a_version_may_be_put_between_two_older_ones() -> None:
    world = World()
    a = await world.upload("a", source="k", valid_from=day(1))
    c = await world.upload("c", source="k", valid_from=day(9))
    await world.index(a)
    await world.index(c)
    b = await world.upload("b", source="k", valid_from=day(5))
    await world.index(b)
    assert [w[0] for w in await world.windows()] == [a.version_id, b.version_id, c.version_id]
    assert [w[2] for w in await world.windows()] == [day(5), day(9), None]


async def test_content_that_returns_is_reinstated() -> None:
    world = World()
    a = await world.upload("a", source="k", valid_from=day(1))
    await world.index(a)
    b = await world.upload("b", source="k", valid_from=day(5))
    await world.index(b)
    back = await world.upload("a", source="k", valid_from=day(9))
    assert back.reinstated
    assert back.version_id == a.version_id
    assert await world.windows() == [
        (a.version_id, day(1), day(5)),
        (b.version_id, day(5), day(9)),
        (a.version_id, day(9), None),
    ]
    assert (await world.upload("a", source="k")).duplicate_of == a.version_id


async def test_the_valid_text_is_a_duplicate_while_a_later_one_is_scheduled() -> None:
    world = World()
    a = await world.upload("a", source="k", valid_from=day(1))
    await world.index(a)
    b = await world.upload("b", source="k", valid_from=datetime(2999, 1, 1, tzinfo=UTC))
    await world.index(b)
    for text, version in (("a", a), ("b", b)):
        again = await world.upload(text, source="k")
        assert again.duplicate_of == version.version_id


async def test_of_two_versions_with_one_beginning_the_later_is_valid() -> None:
    world = World()
    a = await world.upload("a", source="k", valid_from=day(1))
    b = await world.upload("b", source="k", valid_from=day(1))
    await world.index(a)
    await world.index(b)
    assert await world.windows() == [(a.version_id, day(1), day(1)), (b.version_id, day(1), None)]


async def test_a_return_at_the_same_moment_is_one_window() -> None:
    world = World()
    a = await world.upload("a", source="k", valid_from=day(1))
    await world.index(a)
    b = await world.upload("b", source="k", valid_from=day(1))
    await world.index(b)
    await world.upload("a", source="k", valid_from=day(1))
    assert await world.windows() == [(b.version_id, day(1), day(1)), (a.version_id, day(1), None)]


async def test_a_blocked_version_leaves_no_bytes_and_no_text() -> None:
    world = World()
    a = await world.upload("a")
    parsed = await world.blobs.put(b"parsed text")
    await world.cache.put(a.source_id, "p", "", parsed)
    events = await world.judge(verdict(a, parsed))
    assert isinstance(events[0], Erased)
    assert events[0].blobs == 2
    assert world.blobs.content == {}
    assert world.cache.content == {}


async def test_blocked_bytes_stay_while_another_version_with_them_is_not_blocked() -> None:
    world = World()
    a = await world.upload("a", source="x")
    await world.upload("a", source="y", trusted=True)
    parsed = await world.blobs.put(b"parsed text")
    await world.judge(verdict(a, parsed))
    assert set(world.blobs.content) == {a.source_id, parsed}


async def test_a_clean_or_quarantined_version_keeps_its_bytes() -> None:
    world = World()
    a = await world.upload("a")
    for kind in ("clean", "quarantine"):
        event = verdict(a, a.source_id).model_copy(update={"verdict": kind})
        assert await world.judge(event) == []
    assert set(world.blobs.content) == {a.source_id}


def verdict(accepted: Accepted, parsed: str) -> ScanVerdict:
    return ScanVerdict(
        **about_accepted(accepted),
        subject="parsed",
        text_sha256=parsed,
        verdict="block",
        score=1,
        ruleset="r",
    )


async def test_ids_do_not_follow_from_the_file_alone() -> None:
    a, b = Identity(b"a" * 32), Identity(b"b" * 32)
    assert a.document("default", "k") == a.document("default", "k")
    assert a.document("default", "k") != b.document("default", "k")
    assert received_event(a).ids != received_event(b).ids


def received_event(identity: Identity) -> Indexed:
    document_id = identity.document("default", "k")
    return Indexed(
        project="default",
        document_id=document_id,
        source_id="a" * 64,
        version_id=identity.version(document_id, "a" * 64),
        body_sha256="a" * 64,
        chunks_sha256="b" * 64,
        chunk_count=1,
        embedder="e",
        embedded=1,
        reused=0,
    )


ELSEWHERE = Identity(b"e" * 32)
"""Another installation, which the log came from."""


@pytest.fixture(params=["memory", "real"])
def either_log(request: pytest.FixtureRequest) -> Any:
    """Both logs must find a document by its key alike."""
    return MemoryLog() if request.param == "memory" else request.getfixturevalue("real_log")


async def test_a_document_from_elsewhere_keeps_its_id(either_log: Any) -> None:
    key = "https://пример.рф/закон?" + "я" * 2000  # longer than an entry of an index may be
    old = await accept(offer("a", source=key), either_log, ELSEWHERE)
    new = await accept(offer("b", source=key), either_log, IDENTITY)
    assert new.document_id == old.document_id
    assert (await accept(offer("a", source=key), either_log, IDENTITY)).duplicate_of
    assert await either_log.head() == 2


async def test_a_key_names_a_document_within_its_project_only(either_log: Any) -> None:
    old = await accept(offer("a", source="k"), either_log, ELSEWHERE)
    other = await accept(offer("a", source="k", project="other"), either_log, IDENTITY)
    assert other.document_id == IDENTITY.document("other", "k") != old.document_id


async def test_known_bytes_from_elsewhere_are_a_duplicate_without_a_key() -> None:
    log: Any = MemoryLog()
    old = await accept(offer("a"), log, ELSEWHERE)
    assert (await accept(offer("a"), log, IDENTITY)).duplicate_of == old.version_id


async def test_a_version_from_elsewhere_is_superseded_by_its_id() -> None:
    log: Any = MemoryLog()
    old = await accept(offer("a", source="k"), log, ELSEWHERE)
    new = await accept(offer("b", supersedes=old.version_id), log, IDENTITY)
    assert new.document_id == old.document_id
    assert new.version_id == IDENTITY.version(old.document_id, sha256(b"b"))


async def test_a_failed_version_from_elsewhere_is_tried_again_as_itself() -> None:
    world = World()
    once = await accept(offer("a"), world.log, ELSEWHERE)
    await world.fail(once)
    again = await world.upload("a")
    assert (again.version_id, again.duplicate_of) == (once.version_id, None)


async def test_racing_versions_of_a_document_from_elsewhere_are_its(real_log: Log) -> None:
    old = await accept(offer("0", source="k"), real_log, ELSEWHERE)
    offers = [offer(str(n), source="k") for n in range(1, 6)]
    results = await asyncio.gather(*(accept(o, real_log, IDENTITY) for o in offers))
    assert {r.document_id for r in results} == {old.document_id}
    assert await real_log.head() == 6


async def test_bytes_whose_receipt_lost_its_key_keep_the_key_of_their_document() -> None:
    log: Any = MemoryLog()
    old = await accept(offer("a", source="k"), log, IDENTITY)
    await accept(offer("b", source="k"), log, IDENTITY)
    envelope = log.events[0]
    redacted = envelope.data | {"source_key": "", "name": "(erased)"}
    log.events[0] = envelope.model_copy(update={"data": redacted})
    await log.append([first(Erased(
        **about_accepted(old), reason="request", scope="version", blobs=1,
    ))])  # fmt: skip
    again = await accept(offer("a"), log, IDENTITY)
    assert again.document_id == old.document_id
    assert log.events[-1].data["source_key"] == "k"
