"""Files in the drop-zone on a real log: taken in once, followed to their end, told why not."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from contracts.envelope import Envelope
from contracts.events import DocumentReceived, Failed, Finding, Indexed, ScanVerdict
from kernel.blobs import Blobs, sha256
from kernel.errors import Retry
from kernel.log import Log, Pending
from kernel.testing import MemoryParseCache, first
from kernel.testing_wait import eventually
from services.ingest.domain import Identity
from services.ingest.dropped import Dropped
from services.ingest.dropzone import Dropzone, project_of
from services.ingest.elsewhere import Elsewhere
from services.ingest.erase import Eraser
from services.ingest.jobs import Jobs
from services.ingest.zone import Zone

IDENTITY = Identity(b"k" * 32)
LIMIT = 100_000


class World:
    """A zone, a log, and what the other services would do."""

    def __init__(self, log: Log, folder: Path) -> None:
        self.log, self.root = log, folder / "zone"
        self.blobs = Blobs(str(folder / "blobs"))
        self.restart()

    def restart(self) -> None:
        """A new process: nothing but the disk and the log is left of the old one."""
        self.zone = Zone(self.root, 0)
        self.dropzone = Dropzone(
            self.zone, self.log, self.blobs, IDENTITY, limit=LIMIT, interval=0.02
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.dropzone.run())
        try:
            yield
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def put(self, path: str, data: bytes | str = "# A text\n\nof words\n") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file

    def below(self, top: str) -> dict[str, str]:
        files = [p for p in (self.root / top).rglob("*") if p.is_file() and p.name != ".lock"]
        return {p.relative_to(self.root / top).as_posix(): p.read_text() for p in files}

    async def receipts(self) -> list[Envelope]:
        return [e for e in await self.log.read(0, 10_000) if e.type == "DocumentReceived"]

    async def received(self, count: int = 1) -> list[Envelope]:
        async def enough() -> list[Envelope]:
            assert await self.log.head() >= count
            found = await self.receipts()
            assert len(found) >= count
            return found

        return await eventually(enough, deadline=60, every=0.1)

    async def answer(self, cause: Envelope, make: Callable[[dict[str, Any]], Any]) -> None:
        event = cause.event()
        assert isinstance(event, DocumentReceived)
        pending = first(make(event.ids))
        await self.log.append(
            [Pending(pending.event, pending.event_id, cause.correlation_id, "t", lane="bulk")]
        )


@pytest.fixture
async def world(real_log: Log, tmp_path: Path) -> AsyncIterator[World]:
    made = World(real_log, tmp_path)
    yield made
    made.zone.close()
    await real_log.close()


def indexed(ids: dict[str, Any]) -> Indexed:
    return Indexed(
        **ids, body_sha256="a" * 64, chunks_sha256="b" * 64, chunk_count=1, embedder="e",
        embedded=1, reused=0,
    )  # fmt: skip


def failed(ids: dict[str, Any]) -> Failed:
    return Failed(**ids, stage="converter", code="corrupt-document", reason="no such page tree")


def judged(verdict: Any) -> Callable[[dict[str, Any]], ScanVerdict]:
    finding = Finding(rule="override-en-1", severity="high", byte_start=0, byte_end=9)
    return lambda ids: ScanVerdict(
        **ids, subject="parsed", text_sha256="a" * 64, verdict=verdict, score=1,
        findings=(finding,), ruleset="r",
    )  # fmt: skip


async def test_a_file_is_taken_in_and_lies_in_done_when_it_is_indexed(world: World) -> None:
    async with world.running():
        world.put("law/eu/Закон.md")
        (receipt,) = await world.received()
        assert receipt.data["project"] == "law"
        assert receipt.data["source_key"] == "law/eu/Закон.md"
        assert (receipt.data["name"], receipt.data["via"]) == ("Закон.md", "dropzone")
        assert (receipt.lane, receipt.data["trusted"]) == ("bulk", False)
        assert world.below("done") == {}
        await world.answer(receipt, indexed)
        await eventually(lambda: "law/eu/Закон.md" in world.below("done"))
    assert world.below("failed") == {}
    assert world.below(".working") == {}


@pytest.mark.parametrize(
    ("path", "project"),
    [("a.md", "default"), ("law/a.md", "law"), ("Мои документы/a.md", "default"),
     ("My Files/x/a.md", "default"), ("law_2/x/y/a.md", "law_2")],
)  # fmt: skip
def test_the_first_folder_is_the_project_if_it_can_be(path: str, project: str) -> None:
    assert project_of(path) == project


@pytest.mark.parametrize(
    ("path", "data", "code"),
    [
        ("empty.md", b"", "empty-document"),
        ("a.exe", b"MZ\x90\x00" + bytes(500), "unsupported-media-type"),
        ("big.md", b"x" * (LIMIT + 1), "too-large"),
        ("a\x01b.md", b"# text", "invalid-name"),
        ("\udcff.md", b"# text", "invalid-name"),
        ("x\x01y/a.md", b"# text", "invalid-name"),
    ],
)
async def test_what_is_refused_at_the_door_lies_in_failed_with_the_reason(
    world: World, path: str, data: bytes, code: str
) -> None:
    async with world.running():
        world.put(path, data)
        error = world.root / "failed" / f"{path}.error.txt"
        await eventually(error.exists)
        assert error.read_text().startswith(f"code: {code}\nreason: ")
        await eventually((world.root / "failed" / path).exists)
    assert await world.log.head() == 0
    assert world.below("done") == {}


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (failed, "code: corrupt-document\nreason: no such page tree\nstage: converter\n"),
        (judged("quarantine"), "code: quarantine\nreason: a person decides: kb review "),
    ],
)
async def test_what_fails_later_lies_in_failed_with_the_reason(
    world: World, make: Callable[[dict[str, Any]], Any], line: str
) -> None:
    async with world.running():
        world.put("x/a.md")
        (receipt,) = await world.received()
        await world.answer(receipt, make)
        await eventually(lambda: len(world.below("failed")) == 2)
    text = world.below("failed")["x/a.md.error.txt"]
    assert line in text
    assert f"job: {receipt.correlation_id}\n" in text


async def test_of_a_blocked_file_only_the_reason_and_its_hash_are_left(world: World) -> None:
    async with world.running():
        world.put("x/a.md", "the attack")
        (receipt,) = await world.received()
        await world.answer(receipt, judged("block"))
        await eventually(lambda: list(world.below("failed")) == ["x/a.md.error.txt"])
    text = world.below("failed")["x/a.md.error.txt"]
    assert "code: blocked\nreason: prompt injection: override-en-1\n" in text
    assert f"sha256: {sha256(b'the attack')}\nkept: no\n" in text
    assert world.below(".working") == world.below("done") == {}


async def test_why_a_file_was_blocked_stays_until_a_person_erases_it(world: World) -> None:
    cache: Any = MemoryParseCache()
    eraser = Eraser(world.log, world.blobs, cache, Elsewhere(Dropped(world.root)))
    async with world.running():
        world.put("x/a.md", "the attack")
        (receipt,) = await world.received()
        await world.answer(receipt, judged("block"))
        await eventually(lambda: list(world.below("failed")) == ["x/a.md.error.txt"])
        (verdict,) = [e for e in await world.log.read(0, 99) if e.type == "ScanVerdict"]
        event = verdict.event()
        assert isinstance(event, ScanVerdict)
        tombstone = await eraser.blocked(event)
        await world.answer(receipt, lambda _ids: tombstone)
        await eraser.purged(tombstone)
        assert "code: blocked" in world.below("failed")["x/a.md.error.txt"]
        await eraser.delete(event.document_id, "somebody")
    assert world.below("failed") == {}


async def test_what_was_written_after_a_file_was_taken_is_not_deleted_with_it(
    world: World,
) -> None:
    async with world.running():
        world.put("a.md", "the attack")
        (receipt,) = await world.received()
        (taken,) = (world.root / ".working").glob("*/file")
        taken.write_text("another text")
        await world.answer(receipt, judged("block"))
        _, again = await world.received(2)
        assert again.data["source_id"] == sha256(b"another text")
    assert world.below("failed") == {}


async def test_a_changed_file_of_the_same_name_is_the_next_version(world: World) -> None:
    async with world.running():
        world.put("a.md", "# One\n\ntext")
        (one,) = await world.received()
        await world.answer(one, indexed)
        await eventually(lambda: "a.md" in world.below("done"))
        world.put("a.md", "# Two\n\ntext")
        _, two = await world.received(2)
    assert two.data["document_id"] == one.data["document_id"]
    assert two.data["supersedes"] == one.data["version_id"]


async def test_a_known_file_is_done_at_once_and_not_taken_in_again(world: World) -> None:
    async with world.running():
        world.put("a.md")
        (one,) = await world.received()
        world.put("a.md")  # again while the first is on its way
        await eventually(lambda: not (world.root / "a.md").exists())
        await world.answer(one, indexed)
        await eventually(lambda: len(world.below("done")) == 2)
        world.put("a.md")
        await eventually(lambda: len(world.below("done")) == 3)
    assert len(await world.receipts()) == 1


async def test_a_file_that_failed_is_tried_again_when_it_is_put_there_again(world: World) -> None:
    async with world.running():
        world.put("a.md")
        (one,) = await world.received()
        await world.answer(one, failed)
        await eventually(lambda: "a.md.error.txt" in world.below("failed"))
        world.put("a.md")
        _, two = await world.received(2)
    assert (two.data["version_id"], two.data["attempt"]) == (one.data["version_id"], 2)


async def test_a_job_that_a_retry_replaced_is_followed_to_the_end_of_that(world: World) -> None:
    cache: Any = MemoryParseCache()
    jobs = Jobs(world.log, world.blobs, Eraser(world.log, world.blobs, cache))
    async with world.running():
        world.put("a.md")
        (one,) = await world.received()
        await jobs.retry(str(one.correlation_id), "somebody")
        _, two = await world.received(2)
        await world.answer(two, indexed)
        await eventually(lambda: "a.md" in world.below("done"))
    assert world.below("failed") == {}


async def test_a_cancelled_job_is_a_failed_file(world: World) -> None:
    cache: Any = MemoryParseCache()
    jobs = Jobs(world.log, world.blobs, Eraser(world.log, world.blobs, cache))
    async with world.running():
        world.put("a.md")
        (one,) = await world.received()
        await jobs.cancel(str(one.correlation_id), "somebody")
        await eventually(lambda: len(world.below("failed")) == 2)
    assert "code: cancelled\n" in world.below("failed")["a.md.error.txt"]


async def test_of_a_document_that_was_erased_meanwhile_no_file_is_put_away(world: World) -> None:
    cache: Any = MemoryParseCache()
    eraser = Eraser(world.log, world.blobs, cache)
    async with world.running():
        world.put("deep/a.md")
        (one,) = await world.received()
        await eraser.delete(one.data["document_id"], "somebody")
        await eventually(lambda: _none(world.below(".working")))
    assert {**world.below("failed"), **world.below("done"), **world.below("")} == {}


def _none(files: dict[str, str]) -> bool:
    assert files == {}
    return True


async def test_a_job_that_ends_while_nobody_looks_is_found_at_the_start(world: World) -> None:
    async with world.running():
        world.put("a.md")
        world.put("b.md", "# Other\n\ntext")
        receipts = await world.received(2)
    by_name = {r.data["name"]: r for r in receipts}
    await world.answer(by_name["a.md"], indexed)
    await world.answer(by_name["b.md"], failed)
    world.restart()
    async with world.running():
        await eventually(lambda: world.below("done").keys() == {"a.md"})
        await eventually(lambda: world.below("failed").keys() == {"b.md", "b.md.error.txt"})
    assert len(await world.receipts()) == 2


async def test_a_kill_after_the_receipt_does_not_take_the_file_twice(world: World) -> None:
    world.put("a.md")
    world.zone.open()
    world.zone.ripe(0)
    taken = world.zone.take("a.md")
    assert taken
    await world.dropzone._accept(taken)  # and the process dies
    (receipt,) = await world.receipts()
    await world.answer(receipt, failed)  # also the job has failed by now
    world.zone.close()
    world.restart()
    async with world.running():
        await eventually(lambda: "a.md.error.txt" in world.below("failed"))
    assert len(await world.receipts()) == 1
    assert receipt.correlation_id == UUID(taken.folder.name)


async def test_a_file_that_is_written_on_after_it_was_taken_comes_again(world: World) -> None:
    async with world.running():
        file = world.put("a.md", "# One\n\nfirst half")
        with file.open("a") as half:  # opened before it was taken: no lease tells
            (one,) = await _forced(world)
            half.write(" and second half")
        await world.answer(one, indexed)
        _, two = await world.received(2)
        await world.answer(two, indexed)
        await eventually(
            lambda: world.below("done") == {"a.md": "# One\n\nfirst half and second half"}
        )
    assert two.data["document_id"] == one.data["document_id"]


async def _forced(world: World) -> list[Envelope]:
    """Take the file although it is open, as on a system that cannot tell."""
    from services.ingest import zone

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zone, "is_being_written", lambda _: False)
        return await world.received()


async def test_a_file_that_changes_while_it_is_read_is_not_recorded_half_old_half_new(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from services.ingest import dropzone

    real = dropzone._read
    changed = threading.Event()

    def slow(handle: int) -> bytes:
        data = real(handle)
        if data and not changed.is_set():
            changed.set()
            with Path(f"/proc/self/fd/{handle}").readlink().open("r+b") as writer:
                writer.write(b"# Two")
        return data

    monkeypatch.setattr(dropzone, "_read", slow)
    async with world.running():
        world.put("a.md", "# One\n\ntext")
        (receipt,) = await world.received()
    assert receipt.data["source_id"] == sha256(b"# Two\n\ntext")


async def test_a_file_that_cannot_be_read_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def denied(path: Any, flags: int, *args: Any, **more: Any) -> int:
        if str(path).endswith("/file"):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *args, **more)

    monkeypatch.setattr(os, "open", denied)
    async with world.running():
        world.put("a.md")
        await eventually(lambda: "a.md.error.txt" in world.below("failed"))
    text = world.below("failed")["a.md.error.txt"]
    assert text.startswith("code: unreadable\nreason: Permission denied\n")


async def test_a_store_that_is_away_costs_time_and_no_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = world.blobs.put_stream, 0

    async def away(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls < 4:
            raise Retry("the blob store is away")
        return await real(*args, **more)

    monkeypatch.setattr(world.blobs, "put_stream", away)
    async with world.running():
        world.put("a.md")
        await world.received()
    assert calls == 4


async def test_a_file_that_kills_the_service_is_given_up_at_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def bug(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(world.blobs, "put_stream", bug)
    world.put("a.md")
    for _ in range(12):
        world.zone.close()
        world.restart()
        task = asyncio.create_task(world.dropzone.run())
        await eventually(partial(_ended, task, world))
        task.cancel()
        with suppress(asyncio.CancelledError, ExceptionGroup):
            await task
    assert "code: internal-error" in world.below("failed")["a.md.error.txt"]


def _ended(task: "asyncio.Task[None]", world: World) -> bool:
    return task.done() or len(world.below("failed")) == 2


async def test_a_thousand_files_moved_in_at_once_are_all_taken_in_once(
    world: World, tmp_path: Path
) -> None:
    folder = tmp_path / "made" / "law"
    for n in range(1000):
        (folder / str(n % 7)).mkdir(parents=True, exist_ok=True)
        (folder / str(n % 7) / f"Член {n}.md").write_text(f"# Член {n}\n\nтекст\n")
    async with world.running():
        await eventually((world.root / "done").exists)
        folder.rename(world.root / "law")
        receipts = await world.received(1000)
        for start in range(0, 1000, 8):
            await asyncio.gather(*(world.answer(r, indexed) for r in receipts[start : start + 8]))
        await eventually(lambda: len(world.below("done")) == 1000, deadline=60, every=0.2)
    assert len({r.data["source_key"] for r in receipts}) == 1000
    assert {r.data["project"] for r in receipts} == {"law"}
    assert world.below(".working") == {}


async def test_a_folder_that_cannot_be_used_does_not_stop_the_service(
    real_log: Log, tmp_path: Path
) -> None:
    (tmp_path / "zone").write_text("a file where the folder should be")
    world = World(real_log, tmp_path)
    async with world.running():
        await asyncio.sleep(0.2)
        (tmp_path / "zone").unlink()
        await eventually((tmp_path / "zone" / "done").is_dir)
    await real_log.close()
