"""The auditor: rows, both indexes and bytes against the log. What is broken is found, told once,
and put right where that can be."""

import asyncio
import copy
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import asyncpg
import numpy as np
import pytest
from prometheus_client import REGISTRY

from contracts.audit import AuditRequest, Finding
from contracts.events import BytesDrifted, DocumentReceived, IndexDrifted, ProjectionDrifted
from kernel import audit
from kernel.audit import Auditor
from kernel.db import pool
from kernel.log import Log
from kernel.testing_wait import eventually
from kernel.vectors import Point
from services.indexer.audit import IndexExaminer
from services.ingest.audit import AGAIN, EARLIER, ORIGINAL, BytesExaminer
from services.ingest.audit_chain import ChainWatch
from services.search.audit import ProjectionExaminer
from services.search.projection import digest
from tests.conftest import on_database
from tests.integration.rescan_world import World

ACT = "# Act\n\nThe maximum fine for a breach is {} million euro.\n\n## Terms\n\nThirty days.\n"
GUIDE = "# Guide\n\nThe purple walrus swims in the northern sea of documents.\n"
NOTE = "# Белешка\n\nКазна за повреду износи двадесет милиона динара.\nhidden:страна један\n"
"""Its body is not its bytes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rules")


class Audited(World):
    """A world with a document of two versions, one of one version, one that was deleted, and the
    auditors of all three stores."""

    old: str
    new: str
    note: str
    gone: str

    async def fill(self) -> None:
        self.old = await self.send("act.md", ACT.format("ten"))
        await self.deliver()
        self.new = await self.send("act.md", ACT.format("twenty"))
        self.note = await self.send("белешка.md", NOTE)
        self.gone = await self.send("guide.md", GUIDE)
        await self.deliver()
        await self.jobs.delete(self.gone, "admin-1")
        await self.deliver()

    @cached_property
    def auditors(self) -> dict[str, Auditor]:
        """One for each store."""
        blobs: Any = self.blobs
        return {
            "projection": Auditor(self.log, "search", ProjectionExaminer(self.log, blobs), 60),
            "index": Auditor(self.log, "indexer", IndexExaminer(self.index), 60),
            "bytes": Auditor(
                self.log, "ingest", BytesExaminer(self.log, self.blobs, self.jobs), 60
            ),
        }

    async def look(self, check: str, *, repair: bool = False) -> list[Finding]:
        """What one pass over everything finds."""
        page = await self.auditors[check].page(AuditRequest(repair=repair))
        assert page.done
        assert page.documents == 3
        return list(page.findings)

    async def mended(self, check: str) -> set[str]:
        """Kinds of what was found; all of it was repaired, and nothing is found after that."""
        found = await self.look(check, repair=True)
        assert all(f.repaired for f in found), found
        assert await self.look(check) == []
        return {f.what for f in found}

    async def named(self, field: str, version_id: str) -> str:
        """The blob that the last event of a version names so."""
        events = await self.log.read(0, 1000)
        found: str = next(
            e.data[field]
            for e in reversed(events)
            if e.data.get("version_id") == version_id and e.data.get(field)
        )
        return found

    @property
    def held(self) -> Any:
        """The collection of the only project."""
        return self.vectors._collections["default__g1"]


class Filled(NamedTuple):
    """A world to start from: a database, and what was in memory."""

    database: str
    memory: dict[str, Any]


@pytest.fixture(scope="module")
def filled(postgres_dsn: str, migrated_template: str, folder: Path) -> Iterator[Filled]:
    """Made once; each test gets a copy."""
    name, memory = f"audit_{secrets.token_hex(4)}", {}

    async def fill() -> None:
        owner = await asyncpg.connect(postgres_dsn)
        await owner.execute(f"CREATE DATABASE {name} TEMPLATE {migrated_template}")
        await owner.close()
        db = await pool(on_database(postgres_dsn, name), size=10)
        log = Log(db)
        world = Audited(log, folder, await log.identity_key())
        await world.fill()
        memory.update({k: getattr(world, k) for k in ("old", "new", "note", "gone", "delivered")})
        memory["content"], memory["collections"] = world.blobs.content, world.vectors._collections
        await log.close()
        await db.close()

    asyncio.run(fill())
    yield Filled(name, memory)


@pytest.fixture
async def world(postgres_dsn: str, filled: Filled, folder: Path) -> AsyncIterator[Audited]:
    name = f"test_{secrets.token_hex(6)}"
    owner = await asyncpg.connect(postgres_dsn)
    await owner.execute(f"CREATE DATABASE {name} TEMPLATE {filled.database}")
    db = await pool(on_database(postgres_dsn, name), size=10)
    log = Log(db)
    world, memory = Audited(log, folder, await log.identity_key()), copy.deepcopy(filled.memory)
    world.blobs.content, world.vectors._collections = memory["content"], memory["collections"]
    for key in ("old", "new", "note", "gone", "delivered"):
        setattr(world, key, memory[key])
    yield world
    db.terminate()
    await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await owner.close()


@pytest.mark.parametrize("check", ["projection", "index", "bytes"])
async def test_where_nothing_was_touched_nothing_is_found(world: Audited, check: str) -> None:
    head = await world.log.head()
    page = await world.auditors[check].page(AuditRequest(repair=True))
    assert (page.findings, page.moving, page.done, page.documents) == ((), 0, True, 3)
    assert page.checked >= 3
    assert await world.log.head() == head


# -- rows that are read ----------------------------------------------------------------------------

ROWS = {
    "DELETE FROM read.validity WHERE version_id = '{new}'": "validity-missing",
    "UPDATE read.validity SET valid_until = now() WHERE version_id = '{new}'": "validity-changed",
    "INSERT INTO read.validity SELECT '{old}', document_id, project, '2001-01-01', NULL, now()"
    " FROM read.validity WHERE version_id = '{new}'": "validity-extra",
    "DELETE FROM read.validity_past": "validity-past-missing",
    "UPDATE read.version SET status = 'failed' WHERE version_id = '{note}'": "version-changed",
    "UPDATE read.version SET live = true WHERE version_id = '{gone}'": "version-changed",
    "DELETE FROM read.version WHERE version_id = '{note}'": "version-missing",
    "DELETE FROM read.job WHERE version_id = '{note}'": "job-missing",
    "UPDATE read.job SET status = 'received' WHERE version_id = '{note}'": "job-changed",
    "DELETE FROM read.line": "line-missing",
    "UPDATE read.line SET position = position + 1000": "line-changed",
}


@pytest.mark.parametrize("statement", ROWS)
async def test_a_row_that_is_not_the_fold_is_found_and_folded_anew(
    world: Audited, statement: str
) -> None:
    before = await digest(world.log.pool)
    ids = {"old": world.old, "new": world.new, "note": world.note, "gone": world.gone}
    assert (await world.log.pool.execute(statement.format(**ids)))[-1] != "0"
    found = await world.look("projection")
    assert {f.what for f in found} == {ROWS[statement]}
    assert not any(f.repaired for f in found)
    assert await world.mended("projection") == {ROWS[statement]}
    assert await digest(world.log.pool) == before


async def test_a_look_changes_no_row_and_does_not_stop_the_projection(world: Audited) -> None:
    before = await digest(world.log.pool)
    await asyncio.gather(
        world.look("projection"), *(world.send(f"{n}.md", NOTE) for n in range(3)), world.fold()
    )
    await world.deliver()
    assert (await world.log.pool.fetchval("SELECT count(*) FROM read.version")) == 7
    after = await world.auditors["projection"].page(AuditRequest())
    assert (after.found, after.documents) == (0, 6)
    assert before != await digest(world.log.pool)


async def test_what_the_projection_has_not_folded_yet_is_not_missed(world: Audited) -> None:
    await world.send("new.md", NOTE)
    page = await world.auditors["projection"].page(AuditRequest())
    assert (page.found, page.documents) == (0, 4)


async def test_rows_of_what_the_log_does_not_know_are_removed(world: Audited) -> None:
    await world.log.pool.execute(
        "INSERT INTO read.job (job_id, project, document_id, version_id, name, status, started_at,"
        " updated_at, attempt) VALUES (gen_random_uuid(), 'default', 'x', 'y', 'z', 'failed',"
        " now(), now(), 1)"
    )
    await world.log.pool.execute(
        "INSERT INTO read.validity SELECT 'y', 'x', project, valid_from, NULL, now()"
        " FROM read.validity LIMIT 1"
    )
    assert await world.mended("projection") == {"job-extra", "validity-extra"}


async def test_a_title_stays_though_its_blob_is_gone(world: Audited) -> None:
    await world.blobs.delete(await world.named("meta_sha256", world.note))
    assert await world.look("projection") == []
    await world.log.pool.execute("DELETE FROM read.job WHERE version_id = $1", world.note)
    assert await world.mended("projection") == {"job-missing"}
    assert (await world.documents.document(world.note)).title == "белешка.md"


async def test_what_the_indexer_said_of_the_vectors_survives_a_repair(world: Audited) -> None:
    before = await world.log.pool.fetchval("SELECT settled FROM read.line")
    await world.log.pool.execute("DELETE FROM read.job")
    await world.look("projection", repair=True)
    assert await world.log.pool.fetchval("SELECT settled FROM read.line") == before


# -- both indexes ----------------------------------------------------------------------------------

CHUNKS = {
    "DELETE FROM read.chunk WHERE version_id = '{new}' AND ordinal = 0": "passage-missing",
    "UPDATE read.chunk SET text = 'x' WHERE version_id = '{note}'": "passage-changed",
    "UPDATE read.chunk SET terms = '' WHERE version_id = '{note}'": "passage-changed",
    "UPDATE read.chunk SET byte_end = byte_end + 1 WHERE version_id = '{new}'": "passage-changed",
    "INSERT INTO read.chunk SELECT project, generation, version_id, 'more', document_id, source_id,"
    " 9, heading_path, byte_start, byte_end, title, text, language, terms, term_count,"
    " gen_random_uuid() FROM read.chunk WHERE version_id = '{note}'": "passage-extra",
    "DELETE FROM read.placed WHERE version_id = '{new}'": "placed-missing",
    "UPDATE read.placed SET passages = 99 WHERE version_id = '{new}'": "placed-changed",
}


@pytest.mark.parametrize("statement", CHUNKS)
async def test_a_passage_that_is_not_of_the_cut_is_found_and_written_anew(
    world: Audited, statement: str
) -> None:
    rows = "SELECT * FROM read.chunk ORDER BY point_id"
    before = await world.log.pool.fetch(rows)
    done = await world.log.pool.execute(statement.format(new=world.new, note=world.note))
    assert done[-1] != "0"
    found = await world.look("index")
    assert [f.what for f in found] == [CHUNKS[statement]]
    assert await world.mended("index") == {CHUNKS[statement]}
    assert await world.log.pool.fetch(rows) == before


def lose_a_vector(world: Audited) -> None:
    key = _point_of(world, world.new)
    del world.held.vectors[key], world.held.payloads[key]


def lose_all_vectors(world: Audited) -> None:
    world.vectors._collections.clear()


def change_windows(world: Audited) -> None:
    world.held.payloads[_point_of(world, world.new)]["until_0"] = 1


def change_the_only_window(world: Audited) -> None:
    world.held.payloads[_point_of(world, world.note)]["from_0"] = 1


def _point_of(world: Audited, version_id: str) -> UUID:
    found: UUID = next(k for k, p in world.held.payloads.items() if p["version"] == version_id)
    return found


VECTORS: dict[Callable[[Audited], None], str] = {
    lose_a_vector: "vector-missing",
    lose_all_vectors: "vector-missing",
    change_windows: "windows-changed",
    change_the_only_window: "windows-changed",
}


@pytest.mark.parametrize("harm", VECTORS)
async def test_a_vector_that_is_lost_or_wrong_is_found_and_written_anew(
    world: Audited, harm: Callable[[Audited], None]
) -> None:
    before = {k: dict(p) for k, p in world.held.payloads.items()}
    embedded = world.embedder.model_id
    harm(world)
    assert {f.what for f in await world.look("index")} == {VECTORS[harm]}
    assert await world.mended("index") == {VECTORS[harm]}
    assert {k: dict(p) for k, p in world.held.payloads.items()} == before
    assert world.embedder.model_id == embedded


async def extra_point(world: Audited, version_id: str) -> None:
    await world.vectors.upsert(
        "default__g1",
        [Point(
            point_id=uuid4(), vector=np.ones(world.embedder.dim, np.float32),
            version_id=version_id, document_id="d", project="default", language="en",
            heading_path=(), valid_from=datetime(2020, 1, 1, tzinfo=UTC), valid_until=None,
        )],
    )  # fmt: skip


async def test_a_vector_too_many_is_found_and_removed(world: Audited) -> None:
    points = await world.points()
    await extra_point(world, world.note)
    assert "vector-extra" in await world.mended("index")
    assert await world.points() == points


async def test_vectors_and_passages_of_versions_that_nobody_knows_are_removed(
    world: Audited,
) -> None:
    points = await world.points()
    await extra_point(world, "stranger")
    await world.log.pool.execute(
        "INSERT INTO read.chunk SELECT project, generation, 'alien', chunk_id, 'x', source_id,"
        " ordinal, heading_path, byte_start, byte_end, title, text, language, terms, term_count,"
        " gen_random_uuid() FROM read.chunk WHERE version_id = $1",
        world.note,
    )
    found = await world.look("index", repair=True)
    assert {(f.what, f.id) for f in found} == {
        ("vector-extra", "stranger"), ("passage-extra", "alien"),
    }  # fmt: skip
    assert all(f.repaired for f in found)
    assert await world.points() == points
    assert await world.look("index") == []


async def test_a_version_that_should_be_out_of_the_index_is_given_time(
    world: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The indexer may still be on its way; once it should long be done, it is drift."""
    await extra_point(world, world.gone)
    page = await world.auditors["index"].page(AuditRequest(repair=True))
    assert (page.found, page.moving) == (0, 1)
    monkeypatch.setattr(audit, "SETTLES", timedelta(0))
    assert await world.mended("index") == {"vector-extra"}


async def test_windows_that_the_indexer_has_not_heard_of_yet_are_no_drift(world: Audited) -> None:
    await world.log.pool.execute("UPDATE read.placed SET windows_at = 1")
    change_windows(world)
    page = await world.auditors["index"].page(AuditRequest(repair=True))
    assert (page.found, page.moving) == (0, 1)


async def test_a_document_that_is_being_indexed_is_not_judged(world: Audited) -> None:
    await world.send("late.md", NOTE.replace("двадесет", "тридесет"))
    await world.deliver(stop="Chunked")
    page = await world.auditors["index"].page(AuditRequest(repair=True))
    assert (page.found, page.moving, page.documents) == (0, 1, 4)
    await world.deliver()
    assert (await world.auditors["index"].page(AuditRequest())).moving == 0


async def test_a_line_that_nobody_told_the_vectors_of_is_told(
    world: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.log.pool.execute("UPDATE read.line SET settled = 0")
    assert await world.look("index") == []
    monkeypatch.setattr(audit, "SETTLES", timedelta(0))
    assert await world.mended("index") == {"line-unsettled"}


async def test_from_a_log_that_was_tampered_with_nothing_is_repaired(world: Audited) -> None:
    async with world.log.pool.acquire() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(
            "UPDATE log.event SET data = jsonb_set(data, '{name}', '\"x\"')"
            " WHERE type = 'DocumentReceived' AND data ->> 'version_id' = $1",
            world.note,
        )
        await owner.execute("RESET session_replication_role")
    before = await digest(world.log.pool)
    found = await world.look("projection", repair=True)
    assert {f.what for f in found} == {"version-changed", "job-changed"}
    assert {(f.repaired, f.left) for f in found} == {(False, audit.TAMPERED)}
    assert await digest(world.log.pool) == before


async def test_passages_whose_manifest_is_gone_are_told_and_left(world: Audited) -> None:
    await world.blobs.delete(await world.named("chunks_sha256", world.note))
    (found,) = await world.look("index", repair=True)
    assert (found.what, found.repaired) == ("manifest-damaged", False)
    assert found.left
    assert len(await world.rows()) == 3


async def test_a_look_at_the_index_embeds_nothing(world: Audited) -> None:
    class Silent:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError("a model was asked")

    world.index.embedders = Silent()  # type: ignore[assignment]
    assert await world.look("index") == []


# -- bytes -----------------------------------------------------------------------------------------

DERIVED = ("parsed_sha256", "body_sha256", "meta_sha256", "chunks_sha256")


@pytest.mark.parametrize("changed", [False, True], ids=["missing", "changed"])
@pytest.mark.parametrize("field", DERIVED)
async def test_what_was_made_of_an_original_is_made_again(
    world: Audited, field: str, changed: bool
) -> None:
    name = await world.named(field, world.note)
    bytes_before = world.blobs.content[name]
    if changed:
        world.blobs.content[name] = b"x" * len(bytes_before)
    else:
        del world.blobs.content[name]
    found = await world.look("bytes")
    assert [(f.what, f.id) for f in found] == [
        ("blob-changed" if changed else "blob-missing", name)
    ]
    (found_again,) = await world.look("bytes", repair=True)
    assert found_again.repaired
    await world.deliver()
    assert world.blobs.content[name] == bytes_before
    assert await world.status(world.note) == "indexed"
    assert await world.look("bytes") == []


async def test_an_original_that_is_gone_is_told_and_left(world: Audited) -> None:
    name = await world.named("source_id", world.note)
    await world.blobs.delete(name)
    (found,) = await world.look("bytes", repair=True)
    assert (found.id, found.repaired, found.left) == (name, False, ORIGINAL)
    assert len(await world.of_type(DocumentReceived)) == 4


async def test_a_changed_original_is_not_deleted(world: Audited) -> None:
    name = await world.named("source_id", world.note)
    world.blobs.content[name] = b"other bytes"
    (found,) = await world.look("bytes", repair=True)
    assert (found.what, found.left) == ("blob-changed", ORIGINAL)
    assert world.blobs.content[name] == b"other bytes"


async def test_a_version_is_tried_again_once(world: Audited) -> None:
    """Should the parser make other bytes of it now, nothing is tried for ever."""
    name = await world.named("body_sha256", world.note)
    await world.blobs.delete(name)
    await world.look("bytes", repair=True)
    await world.deliver()
    await world.blobs.delete(name)
    (found,) = await world.look("bytes", repair=True)
    assert (found.repaired, found.left) == (False, AGAIN)


async def test_while_a_version_is_tried_again_nothing_is_found(world: Audited) -> None:
    await world.blobs.delete(await world.named("body_sha256", world.note))
    await world.look("bytes", repair=True)
    page = await world.auditors["bytes"].page(AuditRequest(repair=True))
    assert (page.found, page.moving) == (0, 1)


async def test_bytes_of_what_was_erased_are_not_missed(world: Audited) -> None:
    await world.jobs.delete(world.note, "admin-1")
    await world.deliver()
    assert await world.look("bytes") == []


async def test_an_earlier_text_of_a_version_is_not_made_again(world: Audited) -> None:
    job = await world.log.pool.fetchval(
        "SELECT job_id FROM read.job WHERE version_id = $1", world.note
    )
    name = await world.named("body_sha256", world.note)
    source = await world.named("source_id", world.note)
    world.blobs.content[source] += b"\nmore\n"  # as if another parser made another text of it
    await world.jobs.retry(str(job), "admin-1")
    await world.deliver()
    world.blobs.content[source] = world.blobs.content[source].removesuffix(b"\nmore\n")
    await world.blobs.delete(name)
    (found,) = await world.look("bytes", repair=True)
    assert (found.id, found.left) == (name, EARLIER)


# -- what is told ----------------------------------------------------------------------------------


def counted(outcome: str) -> float:
    labels = {"check": "projection", "what": "job-missing", "outcome": outcome}
    return REGISTRY.get_sample_value("kb_drift_total", labels) or 0.0


async def test_drift_is_an_event_and_a_metric_once_while_it_stays(world: Audited) -> None:
    await world.log.pool.execute("DELETE FROM read.job")
    before = counted("left")
    for _ in range(3):
        assert len(await world.look("projection")) == 4
    (event,) = await world.of_type(ProjectionDrifted)
    assert (event.found, event.repaired, event.project) == (4, 0, "default")
    assert event.examples[0].startswith("job-missing:")
    assert counted("left") == before + 4


async def test_what_breaks_again_after_a_repair_is_told_again(world: Audited) -> None:
    before = counted("repaired")
    for _ in range(2):
        await world.log.pool.execute("DELETE FROM read.job WHERE version_id = $1", world.note)
        await world.look("projection", repair=True)
    events = await world.of_type(ProjectionDrifted)
    assert [(e.found, e.repaired) for e in events] == [(1, 1), (1, 1)]
    assert counted("repaired") == before + 2


async def test_examples_say_no_word_of_a_document(world: Audited) -> None:
    await world.log.pool.execute("DELETE FROM read.chunk")
    await world.look("index", repair=True)
    (event,) = await world.of_type(IndexDrifted)
    assert "act" not in str(event.examples).lower()


async def test_pages_follow_each_other_and_the_last_says_so(world: Audited) -> None:
    auditor, seen, after = world.auditors["projection"], 0, 0
    while True:
        page = await auditor.page(AuditRequest(after=after, limit=1))
        seen, after = seen + page.documents, page.position
        if page.done:
            break
    assert seen == 3


async def test_a_project_is_looked_at_alone(world: Audited) -> None:
    await world.send("other.md", NOTE, project="other")
    await world.deliver()
    await world.log.pool.execute("DELETE FROM read.job")
    page = await world.auditors["projection"].page(AuditRequest(project="other"))
    assert (page.documents, {f.project for f in page.findings}) == (1, {"other"})


# -- by itself -------------------------------------------------------------------------------------


async def in_background(work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    async def run() -> None:
        await work()

    return asyncio.create_task(run())


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "ROUND_SECONDS", 0.1)
    monkeypatch.setattr(audit, "SHARE", 1.0)
    monkeypatch.setattr(audit, "AWAY_SECONDS", 0.05)


async def test_by_itself_it_finds_and_repairs_everything(world: Audited, fast: None) -> None:
    before = await digest(world.log.pool)
    for auditor in world.auditors.values():
        auditor._per_minute = 60_000
    body = await world.named("body_sha256", world.note)
    await world.log.pool.execute("DELETE FROM read.validity WHERE version_id = $1", world.old)
    await world.log.pool.execute("DELETE FROM read.chunk WHERE version_id = $1", world.new)
    lose_a_vector(world)
    await world.blobs.delete(body)
    tasks = [await in_background(a.run) for a in world.auditors.values()]
    types = (ProjectionDrifted, IndexDrifted, BytesDrifted)
    try:
        for type_ in types:
            await eventually(lambda t=type_: _told(world, t))  # type: ignore[misc]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await world.deliver()
    assert await world.blobs.exists(body)
    for check in world.auditors:
        assert await world.look(check) == []
    assert (await digest(world.log.pool))["validity"] == before["validity"]


async def _told(world: Audited, type_: type[Any]) -> bool:
    return bool([e for e in await world.of_type(type_) if e.repaired])


async def test_a_document_that_hurts_the_auditor_stops_nobody(world: Audited, fast: None) -> None:
    auditor = world.auditors["projection"]
    auditor._per_minute = 60_000
    examiner, hurt = auditor._examiner, 0
    look = examiner.look

    async def hurting(subject: Any) -> Any:
        nonlocal hurt
        if subject.position == 1:
            hurt += 1
            raise ZeroDivisionError
        return await look(subject)

    examiner.look = hurting  # type: ignore[method-assign]
    await world.log.pool.execute("DELETE FROM read.job WHERE version_id = $1", world.note)
    task = await in_background(auditor.run)
    await eventually(lambda: _told(world, ProjectionDrifted))
    await eventually(lambda: hurt > 1)
    assert not task.done()
    task.cancel()


async def test_with_a_rate_of_nothing_it_does_nothing(world: Audited) -> None:
    await Auditor(world.log, "search", world.auditors["index"]._examiner, 0).run()


async def test_the_chain_is_watched_in_slices(
    world: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.ingest.audit_chain.SLICE", 7)
    watch, page, turns = ChainWatch(world.log), None, 0
    while page is None or not page.done:
        page, turns = await watch.turn(page), turns + 1
    assert turns > 3
    assert REGISTRY.get_sample_value("kb_chain_faults") == 0
    assert REGISTRY.get_sample_value("kb_chain_position") == await world.log.head()
    async with world.log.pool.acquire() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute("UPDATE log.event SET actor = 'x' WHERE position = 3")
        await owner.execute("RESET session_replication_role")
    await watch.turn(page)
    assert REGISTRY.get_sample_value("kb_chain_faults") == 1
