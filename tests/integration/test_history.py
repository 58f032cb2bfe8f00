"""A document over time on a real Postgres: as of a day, its history, what changed."""

import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import yaml

from contracts.artifacts import BodyMeta
from contracts.events import (
    Converted,
    DocumentReceived,
    Erased,
    Indexed,
    Reinstated,
    ScanVerdict,
    Superseded,
    Window,
)
from kernel.db import pool
from kernel.errors import Refusal
from kernel.log import Log, Pending
from kernel.testing import MemoryBlobs, received
from services.search.documents import NOW, Documents, When
from services.search.history import Histories
from services.search.projection import Projection

H = "c" * 64
DOCUMENT = "d" * 32


def day(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}T12:00:00+00:00")


def start(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}T00:00:00+00:00")


class World:
    """One law with its versions, as the log would have them."""

    def __init__(self, log: Log) -> None:
        self.log, self.blobs = log, MemoryBlobs()
        self.projection = Projection(log, self.blobs)  # type: ignore[arg-type]
        self.documents = Documents(log, self.blobs)  # type: ignore[arg-type]
        self.histories = Histories(log, self.documents)
        self.receipts: dict[str, DocumentReceived] = {}

    async def add(self, event: Any, job: UUID, actor: str = "svc:t") -> datetime:
        """Append, and fold; when it was recorded."""
        await self.log.append([Pending(event, uuid4(), job, actor)])
        await self.projection._sql.start(self.log.pool)
        while await self.projection.step():
            pass
        return (await self.log.read(await self.log.head() - 1, 1))[0].recorded_at

    async def put(
        self, name: str, since: str, text: str = "", *, actor: str = "actor:1", **fields: Any
    ) -> datetime:
        """A version comes in and is indexed, by itself; when that was recorded."""
        where = {"document_id": DOCUMENT, "source_key": "law", "valid_from": start(since)}
        receipt = received(name, **(where | fields))
        self.receipts[name] = receipt
        job = uuid4()
        await self.add(receipt, job, actor)
        body = (text or f"# Law\n\nAs of {since}.\n").encode()
        digest = await self.blobs.put(body)
        meta = BodyMeta(title=f"Law of {name}", language="en", media_type="text/markdown")
        meta_sha256 = await self.blobs.put(meta.model_dump_json().encode())
        more = {"converter": "c", "language": "en", "meta_sha256": meta_sha256}
        await self.add(
            Converted(**receipt.ids, body_sha256=digest, body_bytes=len(body), **more), job
        )
        done = {"chunks_sha256": H, "chunk_count": 1, "embedder": "e", "embedded": 1, "reused": 0}
        return await self.add(Indexed(**receipt.ids, body_sha256=digest, **done), job)

    def windows(self, *line: tuple[str, str]) -> tuple[Window, ...]:
        """`(name, since)`: each until the next."""
        ends = [*(start(since) for _, since in line[1:]), None]
        return tuple(
            Window(version_id=self.receipts[n].version_id, valid_from=start(s), valid_until=end)
            for (n, s), end in zip(line, ends, strict=True)
        )

    async def supersede(self, old: str, new: str, *line: tuple[str, str]) -> datetime:
        """`new` takes the place of `old`."""
        windows = self.windows(*line)
        until = next(w.valid_from for w in windows if w.version_id == self.id(new))
        event = Superseded(
            **self.receipts[old].ids, by_version_id=self.id(new), valid_until=until, windows=windows
        )
        return await self.add(event, uuid4(), "svc:ingest")

    def id(self, name: str) -> str:
        """A version's id."""
        return self.receipts[name].version_id


@pytest.fixture
async def world(database: str) -> AsyncIterator[World]:
    db = await pool(database)
    yield World(Log(db))
    db.terminate()


@pytest.fixture
async def law(world: World) -> World:
    """Three versions, each valid from the year of its name on."""
    await world.put("2010", "2010-01-01", "# Law\n\n## § 1\n\nA fee of ten.\n\n## § 2\n\nOld.\n")
    await world.put("2015", "2015-01-01", "# Law\n\n## § 1\n\nA fee of five.\n\n## § 2\n\nOld.\n")
    await world.supersede("2010", "2015", ("2010", "2010-01-01"), ("2015", "2015-01-01"))
    text = "# Law\n\n## § 1\n\nA fee of five.\n\n## § 3\n\nNew.\n"
    await world.put("2020", "2020-01-01", text, actor="actor:2")
    line = [(y, f"{y}-01-01") for y in ("2010", "2015", "2020")]
    await world.supersede("2015", "2020", *line)
    return world


async def names(world: World, when: When, **which: Any) -> list[str]:
    page = await world.documents.listing(None, None, 50, when=when, **which)
    assert page.total == len(page.documents)
    return [d.name for d in page.documents]


async def test_the_base_is_listed_as_it_was_on_a_day(law: World) -> None:
    other = received("other.md", valid_from=start("2012-01-01"))
    await law.put("other.md", "2012-01-01", **{k: getattr(other, k) for k in ("document_id",)})
    assert await names(law, When(day("2009-12-31"))) == []
    assert await names(law, When(day("2011-01-01"))) == ["2010"]
    assert await names(law, When(start("2010-01-01"))) == ["2010"]
    assert await names(law, When(start("2015-01-01"))) == ["other.md", "2015"]
    assert await names(law, When(day("2016-01-01"))) == ["other.md", "2015"]
    assert await names(law, When(datetime.now(UTC))) == ["other.md", "2020"]


async def test_a_listing_as_of_a_day_has_the_window_of_that_day(law: World) -> None:
    [then] = (await law.documents.listing(None, None, 5, when=When(day("2016-01-01")))).documents
    assert (then.valid_from, then.valid_until) == (start("2015-01-01"), start("2020-01-01"))
    assert not then.current


async def test_a_listing_by_source_finds_key_and_name(law: World) -> None:
    assert await names(law, NOW, source="law") == ["2020", "2015", "2010"]
    assert await names(law, NOW, source="2015") == ["2015"]
    assert await names(law, When(day("2011-06-01")), source="law") == ["2010"]
    assert await names(law, NOW, source="nothing") == []


@pytest.mark.parametrize("by", ["document", "version", "bytes"])
async def test_document_and_body_are_those_of_a_day(law: World, by: str) -> None:
    receipt = law.receipts["2020"]
    key = {"document": DOCUMENT, "version": receipt.version_id, "bytes": receipt.source_id}[by]
    view = await law.documents.document(key, When(day("2014-12-31")))
    assert (view.name, view.valid_until) == ("2010", start("2015-01-01"))
    assert [v.name for v in view.versions] == ["2010", "2015", "2020"]
    _, body = await law.documents.body(key, When(day("2015-01-01")))
    assert b"fee of five" in body and b"Old." in body


async def test_front_matter_says_when_the_version_is_valid(law: World) -> None:
    view = await law.documents.document(DOCUMENT, When(day("2016-01-01")))
    head = (await law.documents.front_matter(view)).decode()
    said = yaml.safe_load(head.removeprefix("---\n").removesuffix("---\n"))
    assert said["title"] == "Law of 2015" and said["source"] == "law"
    assert (said["valid_from"], said["valid_until"]) == (
        "2015-01-01T00:00:00+00:00", "2020-01-01T00:00:00+00:00",
    )  # fmt: skip
    assert said["version_id"] == law.id("2015")
    now = await law.documents.front_matter(await law.documents.document(DOCUMENT))
    assert b"valid_until" not in now


async def test_before_the_first_version_there_is_none(law: World) -> None:
    with pytest.raises(Refusal) as refused:
        await law.documents.document(DOCUMENT, When(day("2009-01-01")))
    assert (refused.value.code, refused.value.status) == ("not-valid-then", 404)


async def test_what_was_known_before_a_version_came_is_answered_without_it(world: World) -> None:
    known = await world.put("old", "2010-01-01")
    await world.put("new", "2011-01-01")
    later = await world.supersede("old", "new", ("old", "2010-01-01"), ("new", "2011-01-01"))
    moment = day("2012-06-01")
    assert (await world.documents.document(DOCUMENT, When(moment, known))).name == "old"
    assert (await world.documents.document(DOCUMENT, When(moment, later))).name == "new"
    assert await names(world, When(moment, known)) == ["old"]
    assert await names(world, When(moment)) == ["new"]
    found = await world.histories.diff(DOCUMENT, "2010-06-01", "2012-06-01", When(None, known))
    assert (found.old.name, found.new.name) == ("old", "old")
    [entry] = (await world.documents.document(DOCUMENT, When(None, known))).windows
    assert entry.valid_until is None


# --- what changed -----------------------------------------------------------------------------


async def test_the_last_change_is_what_a_diff_tells_by_itself(law: World) -> None:
    found = await law.histories.diff(DOCUMENT, None, None)
    assert (found.old.name, found.new.name) == ("2015", "2020")
    assert found.counts == {"same": 2, "removed": 1, "added": 1}
    body = await law.documents.text(law_version(found.new.version_id, await line(law)))
    [added] = [s for s in found.sections if s.kind == "added"]
    assert added.new is not None
    cut = body[added.new.byte_start : added.new.byte_end]
    assert (cut, added.new.heading_path) == (b"## \xc2\xa7 3\n\nNew.\n", ["Law", "§ 3"])


async def line(world: World) -> list[Any]:
    return (await world.documents.document(DOCUMENT)).versions


def law_version(id_: str, line: list[Any]) -> Any:
    return next(v for v in line if v.version_id == id_)


@pytest.mark.parametrize("how", ["version", "bytes", "day", "instant"])
async def test_two_versions_are_named_in_any_way(law: World, how: str) -> None:
    old, new = law.receipts["2010"], law.receipts["2020"]
    sides = {
        "version": (old.version_id, new.version_id),
        "bytes": (old.source_id, new.source_id),
        "day": ("2012-03-04", "2024-01-01"),
        "instant": ("2014-12-31T23:59:59Z", "2020-01-01T00:00:00+00:00"),
    }[how]
    found = await law.histories.diff(DOCUMENT, *sides)
    assert (found.old.name, found.new.name) == ("2010", "2020")
    assert (found.old.valid_from, found.old.valid_until) == (
        start("2010-01-01"), start("2015-01-01"),
    )  # fmt: skip
    back = await law.histories.diff(DOCUMENT, sides[1], sides[0])
    assert back.counts["removed"] == found.counts["added"]


async def test_an_older_version_is_compared_with_the_one_before_it(law: World) -> None:
    found = await law.histories.diff(law.id("2015"), None, None)
    assert (found.old.name, found.new.name) == ("2010", "2015")
    found = await law.histories.diff(DOCUMENT, None, "2016-01-01")
    assert (found.old.name, found.new.name) == ("2010", "2015")


async def test_versions_of_two_documents_can_be_compared(law: World) -> None:
    await law.put("copy", "2021-01-01", "# Law\n\nOther.\n", document_id="e" * 32)
    found = await law.histories.diff(DOCUMENT, DOCUMENT, "e" * 32)
    assert (found.old.name, found.new.name) == ("2020", "copy")


@pytest.mark.parametrize(
    "sides, code",
    [
        (("2009-01-01", None), "not-valid-then"),
        (("2009-13-01", None), "invalid-request"),
        (("2012-01-01T10:00:00", None), "invalid-request"),
        (("nothing", None), "unknown-document"),
        ((None, "2012-01-01"), "no-earlier-version"),
    ],
)
async def test_what_cannot_be_compared_is_refused(
    law: World, sides: tuple[str | None, str | None], code: str
) -> None:
    with pytest.raises(Refusal) as refused:
        await law.histories.diff(DOCUMENT, *sides)
    assert refused.value.code == code


async def test_a_version_without_a_text_is_not_compared(law: World) -> None:
    await law.blobs.delete(
        hashlib.sha256((await law.documents.body(law.id("2015")))[1]).hexdigest()
    )
    with pytest.raises(Refusal) as refused:
        await law.histories.diff(DOCUMENT, None, None)
    assert (refused.value.code, refused.value.status) == ("no-body", 410)


async def test_a_text_that_waits_for_a_person_is_not_compared(law: World) -> None:
    waits = received("waits", document_id=DOCUMENT, valid_from=start("2022-01-01"))
    job = uuid4()
    await law.add(waits, job, "actor:1")
    verdict = {"subject": "parsed", "text_sha256": H, "verdict": "quarantine", "score": 0.5}
    await law.add(ScanVerdict(**waits.ids, **verdict, ruleset="r"), job)
    for sides in ((None, waits.version_id), (waits.version_id, None)):
        with pytest.raises(Refusal) as refused:
            await law.histories.diff(DOCUMENT, *sides)
        assert (refused.value.code, refused.value.status) == ("no-body", 404)


async def test_a_text_that_is_too_large_is_not_read(
    law: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.search.history.MOST_COMPARED", 20)
    with pytest.raises(Refusal) as refused:
        await law.histories.diff(DOCUMENT, None, None)
    assert (refused.value.code, refused.value.status) == ("too-large-to-compare", 413)


# --- the history ------------------------------------------------------------------------------


async def test_a_history_tells_both_times_who_and_why(law: World) -> None:
    history = await law.histories.history(law.id("2010"))
    assert (history.document_id, history.source_key) == (DOCUMENT, "law")
    told = [(e.name, e.cause, e.actor, e.current) for e in history.entries]
    assert told == [
        ("2020", "superseded", "actor:2", True),
        ("2015", "superseded", "actor:1", False),
        ("2010", "received", "actor:1", False),
    ]
    new, old = history.entries[:2]
    assert (old.valid_from, old.valid_until) == (start("2015-01-01"), start("2020-01-01"))
    assert old.ended_at == new.recorded_at and old.ended_by == new.version_id
    assert new.valid_until is None and new.ended_at is None
    assert all(e.recorded_at and e.recorded_at > e.received_at for e in history.entries)
    assert [e.changes for e in history.entries] == [
        {"same": 2, "removed": 1, "added": 1}, {"same": 2, "changed": 1}, None,
    ]  # fmt: skip


async def test_what_returned_is_told_twice(law: World) -> None:
    windows = law.windows(
        ("2010", "2010-01-01"), ("2015", "2015-01-01"), ("2020", "2020-01-01"),
        ("2015", "2022-01-01"),
    )  # fmt: skip
    event = Reinstated(
        **law.receipts["2015"].ids, supersedes=law.id("2020"), valid_from=start("2022-01-01"),
        windows=windows,
    )  # fmt: skip
    await law.add(event, uuid4(), "actor:3")
    entries = (await law.histories.history(DOCUMENT)).entries
    assert [(e.name, e.cause, e.actor) for e in entries][:2] == [
        ("2015", "reinstated", "actor:3"), ("2020", "superseded", "actor:2"),
    ]  # fmt: skip
    found = await law.histories.diff(DOCUMENT, None, None)
    assert (found.old.name, found.new.name) == ("2020", "2015")


async def test_what_was_never_valid_comes_last(law: World) -> None:
    await law.add(
        received("late", document_id=DOCUMENT, valid_from=datetime.now(UTC)), uuid4(), "actor:4"
    )
    entries = (await law.histories.history(DOCUMENT)).entries
    assert (entries[-1].name, entries[-1].valid_from, entries[-1].status) == (
        "late", None, "received",
    )  # fmt: skip
    assert entries[-1].changes is None and entries[0].changes


async def test_a_history_outlives_an_erased_version(law: World) -> None:
    erased = Erased(**law.receipts["2015"].ids, reason="request", scope="version", blobs=1)
    await law.add(erased, uuid4(), "actor:9")
    entries = (await law.histories.history(DOCUMENT)).entries
    assert (entries[-1].version_id, entries[-1].status) == (law.id("2015"), "erased")
    assert [e.name for e in entries][:2] == ["2020", "2010"]


async def test_many_large_texts_are_not_counted(
    law: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.search.history.MOST_COUNTED", 100)
    entries = (await law.histories.history(DOCUMENT)).entries
    assert [e.changes is None for e in entries] == [False, True, True]


async def test_a_document_without_versions_is_unknown(world: World) -> None:
    for call in (world.histories.history("f" * 32), world.histories.diff("f" * 32, None, None)):
        with pytest.raises(Refusal) as refused:
            await call
        assert refused.value.code == "unknown-document"


def test_a_window_holds_its_first_moment_and_not_its_last() -> None:
    from services.search.documents import window_at

    window = Window(
        version_id="a" * 32, valid_from=start("2010-01-01"), valid_until=day("2011-01-01")
    )
    assert window_at([window], start("2010-01-01")) is window
    assert window_at([window], day("2011-01-01")) is None
    assert window_at([window], day("2011-01-01") - timedelta(microseconds=1)) is window
