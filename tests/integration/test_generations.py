"""Generations of a project's index: rebuild, stand by, roll back, another cut, another model."""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any

import pytest

from contracts.events import (
    Chunked,
    Erased,
    Fact,
    GenerationSwitched,
    Indexed,
    ScanVerdict,
    Superseded,
    Window,
)
from contracts.generations import Rebuilt
from contracts.query import QueryRequest
from kernel.consumer import Consumer, bind_handler
from kernel.db import pool
from kernel.embedder import Embedders, HashedEmbedder
from kernel.errors import Refusal
from kernel.log import Log, reaction_id
from kernel.testing import EPOCH, first
from kernel.vectors import VectorFilter
from services.indexer.app import generations
from services.indexer.chunker import CHUNKERS
from services.indexer.handlers import on_chunked, on_erased, on_scan_verdict
from services.indexer.index import EmbedderChanged, Index
from services.indexer.rebuild import NotVerified, Run, rebuild, rollback, sweep
from services.search.engine import Engine
from services.search.projection import Projection
from tests.integration.test_index import BODY, Counting, World, judged

SMALL = "hashed-3gram-1#dim=64,max=512"
MANY = "".join(
    f"## Члан {n}\n\nСадржај члана број {n} о казни и року.\n\nДруги став члана {n}.\n\n"
    for n in range(4)
)


class Small(Counting):
    """Another model."""

    def __init__(self) -> None:
        super().__init__(64)
        self.questions = 0

    async def embed_query(self, text: str) -> Any:
        self.questions += 1
        return await super().embed_query(text)


class TwoWorld(World):
    """A world whose process has two embedders, and search beside the indexer."""

    def __init__(self, log: Log) -> None:
        super().__init__(log)
        self.small = Small()
        self.embedders = Embedders(self.embedder, {"small": lambda: self.small})
        self.index = self.new_index()
        self.projection = Projection(log, self.blobs)  # type: ignore[arg-type]
        self.engine = Engine(log, self.projection, self.embedders, self.vectors)

    def new_index(self) -> Index:
        """As another process has it."""
        return Index(self.log, self.blobs, self.embedders, self.vectors)  # type: ignore[arg-type]

    async def facts(self, kind: type[Fact]) -> list[Any]:
        """All of a type in the log."""
        return [e.fact() for e in await self.log.read(0, 10_000) if e.type == kind.__name__]

    async def indexed_by_job(self, name: str, body: str = BODY) -> Indexed:
        """As `indexed`, all events of one job, as services do it; the projection sees them."""
        done = await self.indexed(name, body)
        await self.projected()
        return done

    async def projected(self) -> None:
        """The read projection has seen everything."""
        await self.log.pool.execute(
            "INSERT INTO log.projection (name) VALUES ('read') ON CONFLICT DO NOTHING"
        )
        while await self.projection.step():
            pass

    async def state(self) -> dict[int, str]:
        """State by number of generation."""
        rows = await self.log.pool.fetch("SELECT generation, state FROM read.generation")
        return {r["generation"]: r["state"] for r in rows}

    async def chunk_ids(self) -> set[str]:
        """Of the live generation."""
        return {r["chunk_id"] for r in await self.rows()}

    async def ask(self, words: str) -> list[str]:
        """Chunk ids that a question brings."""
        reply = await self.engine.query(QueryRequest(query=words, project="default", top_k=20))
        return [hit.chunk_id for hit in reply.results]

    async def consistent(self) -> None:
        """Both legs of the live generation hold the same, and what `read.placed` says."""
        live = await self.index.live("default")
        rows = sorted(r["point_id"] for r in await self.rows())
        assert rows == await self.vectors.ids(live.collection)
        placed = [r async for r in self.index.sql.placed_in(self.log.pool, **live.key)]
        assert sum(p["passages"] for p in placed) == len(rows)


@pytest.fixture
async def world(database: str) -> AsyncIterator[TwoWorld]:
    db = await pool(database, size=8)
    world = TwoWorld(Log(db))
    yield world
    db.terminate()


def _erased(done: Indexed) -> Erased:
    return Erased(**done.ids, reason="request", scope="document", blobs=1)


# -- standing by, and coming back ------------------------------------------------------------------


async def test_the_generation_before_stands_by_and_the_one_before_that_is_dropped(
    world: TwoWorld,
) -> None:
    await world.indexed("a.md")
    await rebuild(world.index, "default")
    assert await world.state() == {1: "standby", 2: "live"}
    await rebuild(world.index, "default")
    assert await world.state() == {2: "standby", 3: "live"}
    assert await world.vectors.collections() == ["default__g2", "default__g3"]
    assert {r["generation"] for r in await world.log.pool.fetch("SELECT * FROM read.chunk")} == {
        2,
        3,
    }


async def test_a_rollback_writes_only_what_differs(world: TwoWorld) -> None:
    kept, changed = await world.indexed("a.md"), await world.indexed("b.md")
    await rebuild(world.index, "default")
    await world.indexed("b.md", BODY + "\n## Члан 7\n\nНови.\n")
    await world.indexed("c.md", MANY)
    before = {(r["version_id"], r["chunk_id"]) for r in await world.rows()}
    embedded = world.embedder.embedded
    done = await rollback(world.index, "default", actor="ana")
    assert (done.generation, done.before, done.written) == (1, 2, 3 + 4)
    assert done.embedded == world.embedder.embedded - embedded == 0
    assert {(r["version_id"], r["chunk_id"]) for r in await world.rows()} == before
    assert await world.state() == {1: "live", 2: "standby"}
    assert {kept.version_id, changed.version_id} < {v for v, _ in before}
    await world.consistent()


async def test_a_rollback_and_a_rollback_are_where_it_was(world: TwoWorld) -> None:
    await world.indexed("a.md")
    await rebuild(world.index, "default")
    assert (await rollback(world.index, "default")).written == 0
    assert (await rollback(world.index, "default")).generation == 2
    assert await world.state() == {1: "standby", 2: "live"}


async def test_without_a_generation_that_stands_by_nothing_is_rolled_back(world: TwoWorld) -> None:
    await world.indexed("a.md")
    with pytest.raises(Refusal) as refused:
        await rollback(world.index, "default")
    assert (refused.value.code, refused.value.status) == ("no-standby", 409)
    with pytest.raises(Refusal, match="unknown-project"):
        await rollback(world.index, "nobody")


async def test_what_is_erased_leaves_the_one_that_stands_by_at_once(world: TwoWorld) -> None:
    done, other = await world.indexed("a.md"), await world.indexed("b.md", MANY)
    await rebuild(world.index, "default")
    await world.log.append([first(_erased(done))])
    await on_erased(_erased(done), index=world.index)
    held = await world.log.pool.fetch("SELECT DISTINCT version_id FROM read.chunk")
    assert [r["version_id"] for r in held] == [other.version_id]
    assert await world.vectors.count("default__g1") == other.chunk_count
    assert (await rollback(world.index, "default")).versions == 1
    await world.consistent()


async def test_a_text_that_is_found_to_be_bad_leaves_the_one_that_stands_by(
    world: TwoWorld,
) -> None:
    event = await world.chunked("a.md")
    (done,) = await on_chunked(event, index=world.index, **world.deps)
    await world.log.append([first(done)])
    await rebuild(world.index, "default")
    await judged(world, event, "quarantine")
    verdict: Any = (await world.facts(ScanVerdict))[-1]
    await on_scan_verdict(verdict, cut_options=world.cut, index=world.index, **world.deps)
    assert await world.log.pool.fetchval("SELECT count(*) FROM read.chunk") == 0
    assert await world.vectors.count("default__g1") == 0
    assert (await rollback(world.index, "default")).passages == 0


async def test_a_bad_text_that_was_replaced_leaves_the_one_that_stands_by_too(
    world: TwoWorld,
) -> None:
    """What stands by still holds the text that the live generation does not have any more."""
    old = await world.chunked("a.md")
    (done,) = await on_chunked(old, index=world.index, **world.deps)
    await world.log.append([first(done)])
    await rebuild(world.index, "default")
    await world.indexed("a.md", MANY)
    await judged(world, old, "quarantine")
    verdict: Any = (await world.facts(ScanVerdict))[-1]
    await on_scan_verdict(verdict, cut_options=world.cut, index=world.index, **world.deps)
    assert {r["generation"] for r in await world.log.pool.fetch("SELECT * FROM read.chunk")} == {2}
    assert await world.vectors.count("default__g1") == 0
    assert (await rollback(world.index, "default")).passages == 4
    await world.consistent()


async def test_a_rollback_brings_the_windows_that_were_set_meanwhile(world: TwoWorld) -> None:
    done = await world.indexed("a.md")
    await rebuild(world.index, "default")
    until = EPOCH.replace(year=2027)
    windows = (
        Window(version_id=done.version_id, valid_from=EPOCH, valid_until=until),
        Window(version_id="9" * 32, valid_from=until),
    )
    event = Superseded(**done.ids, by_version_id="9" * 32, valid_until=until, windows=windows)
    await world.log.append([first(event)])
    await world.projected()
    await rollback(world.index, "default")
    vector = await world.embedder.embed_query("казна")
    for year, count in ((2026, 2), (2028, 0)):
        flt = VectorFilter(as_of=EPOCH.replace(year=year, month=2))
        assert len(await world.vectors.search("default__g1", vector, flt, 9)) == count


async def test_a_generation_that_stands_by_and_is_damaged_does_not_come_back(
    world: TwoWorld,
) -> None:
    await world.indexed("a.md")
    await rebuild(world.index, "default")
    await world.vectors.drop("default__g1")
    with pytest.raises(NotVerified):
        await rollback(world.index, "default")
    assert await world.state() == {1: "standby", 2: "live"}
    assert (await rebuild(world.index, "default")).generation == 3


async def test_the_log_says_who_switched_to_what(world: TwoWorld) -> None:
    await world.indexed("a.md")
    await rebuild(world.index, "default", actor="ana")
    await rollback(world.index, "default", actor="boris")
    told = [
        (f.generation, f.before, f.cause, f.actor, f.passages)
        for f in await world.facts(GenerationSwitched)
    ]
    assert told == [(2, 1, "rebuild", "ana", 2), (1, 2, "rollback", "boris", 2)]


async def test_generations_are_listed_with_what_they_hold(world: TwoWorld) -> None:
    await world.indexed("a.md")
    await rebuild(world.index, "default")
    await world.indexed("b.md", MANY)
    listed = await generations(world.index, "default")
    assert [(g.generation, g.state, g.versions, g.passages, g.vectors) for g in listed] == [
        (1, "standby", 1, 2, 2), (2, "live", 2, 6, 6),
    ]  # fmt: skip
    assert {g.chunker for g in listed} == {"headings-4"}
    assert listed[1].since >= listed[1].created_at
    assert await generations(world.index, "other") == []


async def test_what_a_dead_rebuild_left_is_swept(world: TwoWorld) -> None:
    await world.indexed("a.md")
    async with world.log.pool.acquire() as connection:
        await world.index.new_generation(
            connection, "default", "building", world.embedder, "headings-4"
        )
    await sweep(world.index)
    assert await world.state() == {1: "live"}
    assert await world.vectors.collections() == ["default__g1"]


# -- another chunker -------------------------------------------------------------------------------


async def test_a_rebuild_cuts_anew_where_the_project_is_cut_in_another_way_now(
    world: TwoWorld,
) -> None:
    done = await world.indexed("a.md", MANY)
    await world.configured(chunking="paragraph")
    rebuilt = await rebuild(world.index, "default", actor="ana")
    assert (rebuilt.chunker, rebuilt.recut) == ("paragraphs-3", 1)
    assert rebuilt.passages == len(await world.rows()) != done.chunk_count
    newest, said = (await world.facts(Chunked))[-1], (await world.facts(Indexed))[-1]
    assert newest.chunker == "paragraphs-3"
    assert said.chunks_sha256 == newest.chunks_sha256 != done.chunks_sha256
    assert said.version_id == newest.version_id == done.version_id
    assert (said.embedded, said.embedded + said.reused) == (rebuilt.embedded, said.chunk_count)
    for row in await world.rows():
        assert MANY.encode()[row["byte_start"] : row["byte_end"]].decode() in row["text"]
    await world.consistent()
    assert (await rebuild(world.index, "default")).recut == 0


async def test_the_worker_finds_the_new_passages_and_writes_and_embeds_nothing(
    world: TwoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.indexed("a.md", MANY)
    await world.configured(chunking="paragraph")
    await rebuild(world.index, "default")
    cause = [e for e in await world.log.read(0, 1000) if e.type == "Chunked"][-1]
    embedded, written = world.embedder.embedded, []

    async def upsert(*_: Any) -> None:
        written.append(1)

    monkeypatch.setattr(world.vectors, "upsert", upsert)
    event: Any = cause.fact()
    (again,) = await on_chunked(event, index=world.index, **world.deps)
    assert isinstance(again, Indexed)
    assert (world.embedder.embedded, written) == (embedded, [])
    # What the worker would record is in the log already, under the id that it would give it.
    assert await world.log.known(reaction_id(cause.event_id, "indexer.on_chunked"))


async def test_a_passage_whose_cut_did_not_change_keeps_its_id(
    world: TwoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.indexed("a.md", MANY)
    before = await world.chunk_ids()
    monkeypatch.setitem(CHUNKERS, "heading", "headings-5")
    rebuilt = await rebuild(world.index, "default")
    assert rebuilt.recut == 1  # the name of the chunker is in the manifest
    assert await world.chunk_ids() == before
    assert rebuilt.embedded == 0


async def test_a_cut_that_comes_out_as_before_is_the_one_before(world: TwoWorld) -> None:
    await world.indexed("a.md", MANY)
    rebuilt = await rebuild(world.index, "default", recut=True)
    assert (rebuilt.recut, len(await world.facts(Chunked))) == (0, 1)


async def test_a_rollback_brings_the_old_cut_back_and_says_so(world: TwoWorld) -> None:
    done = await world.indexed("a.md", MANY)
    before = await world.chunk_ids()
    await world.configured(chunking="paragraph")
    await rebuild(world.index, "default")
    assert await world.chunk_ids() != before
    back = await rollback(world.index, "default")
    assert (back.written, back.recut, back.chunker) == (0, 1, "headings-4")
    assert await world.chunk_ids() == before
    assert (await world.facts(Indexed))[-1].chunks_sha256 == done.chunks_sha256
    forth = await rollback(world.index, "default")
    assert (forth.written, forth.recut, forth.chunker) == (0, 1, "paragraphs-3")
    assert len(await world.facts(Indexed)) == 4
    await world.consistent()


async def test_what_comes_during_a_rebuild_is_cut_as_the_project_says(world: TwoWorld) -> None:
    for n in range(3):
        await world.indexed(f"{n}.md", MANY)
    await world.configured(chunking="paragraph")

    async def comes() -> Indexed:
        return await world.indexed("late.md", MANY)

    _, late = await asyncio.gather(rebuild(world.index, "default"), comes())
    cuts = {c.version_id: c for c in await world.facts(Chunked)}
    assert {c.chunker for c in cuts.values()} == {"paragraphs-3"}
    assert len({c.chunk_count for c in cuts.values()}) == 1
    assert late.version_id in {r["version_id"] for r in await world.rows()}
    await world.consistent()


async def test_a_version_that_moves_on_while_its_new_cut_is_recorded_is_looked_at_again(
    world: TwoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = await world.indexed("a.md", MANY)
    await world.indexed("b.md", MANY)
    await world.configured(chunking="paragraph")
    append = world.log.append
    once: list[int] = []

    async def late(pending: Any, **options: Any) -> Any:
        if isinstance(pending[0].event, Chunked) and not once:
            once.append(1)
            cut: Any = next(
                c for c in await world.facts(Chunked) if c.version_id == done.version_id
            )
            await judged(world, cut, "quarantine")
        return await append(pending, **options)

    monkeypatch.setattr(world.log, "append", late)
    rebuilt = await rebuild(world.index, "default")
    assert once and rebuilt.versions == 1
    assert done.version_id not in {r["version_id"] for r in await world.rows()}
    await world.consistent()


@pytest.mark.parametrize("gone", ["erased", "found to be bad"])
async def test_a_version_that_goes_at_the_last_moment_does_not_stop_the_rebuild(
    world: TwoWorld, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    done = await world.indexed("a.md", MANY)
    kept = await world.indexed("b.md")
    passages = world.index.passages
    cut: Any = (await world.facts(Chunked))[0]

    async def late(event: Chunked, *args: Any) -> Any:
        made = await passages(event, *args)
        if event.version_id == done.version_id and gone == "erased":
            monkeypatch.undo()
            await world.log.append([first(_erased(done))])
            world.blobs.content.pop(cut.body_sha256)
        elif event.version_id == done.version_id:
            monkeypatch.undo()
            await judged(world, cut, "quarantine")
        return made

    monkeypatch.setattr(world.index, "passages", late)
    rebuilt = await rebuild(world.index, "default")
    assert rebuilt.versions == 1
    assert {r["version_id"] for r in await world.rows()} == {kept.version_id}
    await world.consistent()


async def test_a_version_that_goes_during_the_switch_is_looked_at_again(
    world: TwoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.indexed("a.md")
    late = await world.chunked("late.md", MANY)
    said = {"chunks_sha256": late.chunks_sha256, "body_sha256": late.body_sha256}
    catch_up, passages = Run._catch_up, world.index.passages

    async def one_more(run: Run, before: Any) -> None:
        done = Indexed(**late.ids, **said, chunk_count=4, embedder="m", embedded=0, reused=0)
        await world.log.append([first(done)])
        monkeypatch.setattr(Run, "_catch_up", catch_up)
        await catch_up(run, before)

    async def goes(event: Chunked, *args: Any) -> Any:
        if event.version_id == late.version_id:
            await judged(world, late, "quarantine")
        return await passages(event, *args)

    monkeypatch.setattr(Run, "_catch_up", one_more)
    monkeypatch.setattr(world.index, "passages", goes)
    assert (await rebuild(world.index, "default")).versions == 1
    await world.consistent()


async def test_a_generation_of_before_0011_comes_back_as_it_was_cut(world: TwoWorld) -> None:
    await world.indexed("a.md", MANY)
    before = await world.chunk_ids()
    await world.log.pool.execute(
        "UPDATE read.placed SET chunks_sha256 = '', windows_at = -1;"
        "UPDATE read.generation SET chunker = NULL"
    )
    await rebuild(world.index, "default")
    back = await rollback(world.index, "default")
    assert (back.chunker, back.recut, back.written) == ("", 0, 4)
    assert await world.chunk_ids() == before


# -- another embedder ------------------------------------------------------------------------------


async def test_another_embedder_is_another_generation_and_the_old_one_answers_until_the_switch(
    world: TwoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.indexed_by_job("a.md", MANY)
    await world.configured(embedder="small")
    asked: list[int] = []
    during: list[list[str]] = []
    finds = world.index.finds

    async def verified(*args: Any) -> bool:
        before = world.small.questions
        during.append(await world.ask("казна"))
        asked.append(world.small.questions - before)
        return await finds(*args)

    monkeypatch.setattr(world.index, "finds", verified)
    rebuilt = await rebuild(world.index, "default")
    assert (rebuilt.embedder, rebuilt.embedded) == (SMALL, 4)
    assert (await world.index.live("default")).dim == 64
    assert during and all(during) and not any(asked)  # the old model embedded these questions
    assert await world.ask("казна") and world.small.questions == 1
    await world.consistent()


async def test_documents_that_come_before_the_switch_have_the_old_vectors_and_then_the_new(
    world: TwoWorld,
) -> None:
    await world.indexed("a.md")
    await world.configured(embedder="small")
    late = await world.indexed("b.md", MANY)
    assert late.embedder == world.embedder.model_id
    await rebuild(world.index, "default")
    newest = await world.indexed("c.md", MANY)
    assert (newest.embedder, newest.embedded) == (SMALL, 0)  # the same texts as b.md
    await world.consistent()


async def test_a_write_that_meets_the_switch_has_the_vectors_of_the_generation_it_goes_into(
    world: TwoWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.indexed("a.md")
    event = await world.chunked("b.md", MANY)
    passages = world.index.passages

    async def late(*args: Any) -> Any:
        made = await passages(*args)
        if args[0] == event:
            monkeypatch.undo()
            await world.configured(embedder="small")
            await rebuild(world.index, "default")
        return made

    monkeypatch.setattr(world.index, "passages", late)
    (done,) = await on_chunked(event, index=world.index, **world.deps)
    assert getattr(done, "embedder", "") == SMALL
    await world.consistent()


async def test_a_rollback_of_another_embedder_embeds_nothing(world: TwoWorld) -> None:
    await world.indexed("a.md", MANY)
    await world.configured(embedder="small")
    await rebuild(world.index, "default")
    back = await rollback(world.index, "default")
    assert (back.embedder, back.embedded, back.written) == (world.embedder.model_id, 0, 0)


async def test_an_embedder_that_nobody_named_is_refused(world: TwoWorld) -> None:
    await world.indexed("a.md")
    await world.configured(embedder="huge")
    with pytest.raises(Refusal) as refused:
        await rebuild(world.index, "default")
    assert refused.value.code == "unknown-embedder"
    assert await world.state() == {1: "live"}


async def test_documents_of_a_new_project_wait_for_an_embedder_that_nobody_named(
    world: TwoWorld,
) -> None:
    await world.configured(embedder="huge")
    event = await world.cleared("a.md")
    with pytest.raises(EmbedderChanged, match="KB_EMBEDDERS"):
        await on_scan_verdict(event, cut_options=world.cut, index=world.index, **world.deps)
    await world.configured(embedder="small")
    (chunked,) = await on_scan_verdict(
        event, cut_options=world.cut, index=world.index, **world.deps
    )
    assert isinstance(chunked, Chunked)
    assert (await world.index.live("default")).embedder == SMALL


async def test_a_process_that_was_given_another_embedder_only_is_helped_by_a_rebuild(
    world: TwoWorld,
) -> None:
    await world.indexed("a.md", MANY)
    event = await world.chunked("b.md")
    index = Index(world.log, world.blobs, Small(), world.vectors)  # type: ignore[arg-type]
    with pytest.raises(EmbedderChanged):
        await on_chunked(event, index=index, **world.deps)
    assert (await rebuild(index, "default")).embedder == SMALL
    (done,) = await on_chunked(event, index=index, **world.deps)
    assert getattr(done, "embedder", "") == SMALL


# -- vectors that are known ------------------------------------------------------------------------


async def test_a_text_is_embedded_once_also_over_versions_and_projects(world: TwoWorld) -> None:
    await world.indexed("a.md", MANY)
    embedded = world.embedder.embedded
    changed = await world.indexed("a.md", MANY.replace("Други став члана 3", "Трећи став члана 3"))
    assert (changed.embedded, changed.reused) == (1, 3)
    event = await world.chunked("b.md", MANY)
    other = event.model_copy(update={"project": "other"})
    written = await world.index.write(other, EPOCH)
    assert (written.embedded, written.reused) == (0, 4)
    assert world.embedder.embedded == embedded + 1


# -- killed ----------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


class Fuse:
    """Lets `left` calls through; then, and ever after, none."""

    def __init__(self, left: int) -> None:
        self.left = left

    def burn(self) -> None:
        """One call."""
        self.left -= 1
        if self.left < 0:
            raise Killed


class Fused:
    """Anything, each of whose methods burns a fuse first."""

    def __init__(self, real: Any, fuse: Fuse) -> None:
        self._real, self._fuse = real, fuse

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            self._fuse.burn()
            return value(*args, **options)

        return call


def _fused(world: TwoWorld, steps: int) -> tuple[Index, Fuse]:
    index, fuse = world.new_index(), Fuse(steps)
    for name in ("vectors", "sql"):
        setattr(index, name, Fused(getattr(index, name), fuse))
    index.log = FusedLog(world.log, fuse)
    return index, fuse


class FusedLog(Log):
    """A log whose appends burn a fuse."""

    def __init__(self, real: Log, fuse: Fuse) -> None:
        super().__init__(real.pool)
        self._fuse = fuse

    async def append(self, *args: Any, **options: Any) -> Any:
        self._fuse.burn()
        done = await super().append(*args, **options)
        self._fuse.burn()
        return done


Act = Callable[[Index], Any]


async def _killed_everywhere(world: TwoWorld, act: Act, again: Act) -> int:
    """Kill `act` at each of its steps; after each, all is whole, and `again` finishes it."""
    for steps in range(400):
        live, ids = await world.index.live("default"), await world.chunk_ids()
        index, fuse = _fused(world, steps)
        try:
            await act(index)
        except Killed:
            pass
        if fuse.left >= 0:
            return steps
        now = await world.index.live("default")
        await world.consistent()
        assert (now == live and await world.chunk_ids() == ids) or now != live, steps
        await _workers(world)
        await world.consistent()
        await again(world.index)
        await world.consistent()
        states = sorted((await world.state()).values())
        assert states == ["live", "standby"], steps
        assert len(await world.vectors.collections()) == 2
    raise AssertionError("it never came to an end")


async def _workers(world: TwoWorld) -> None:
    """The worker is given every cut that is in the log, as JetStream would do."""
    deps = world.deps | {"index": world.index}
    for cause in await world.log.read(0, 10_000):
        if cause.type != "Chunked" or await world.log.known(
            reaction_id(cause.event_id, "indexer.on_chunked")
        ):
            continue
        step: Any = next(s for s in _steps() if s.consumes is Chunked)
        consumer = Consumer("indexer", step, "live", bind_handler(on_chunked, deps), world.log)
        await consumer._work(cause)


def _steps() -> Any:
    from contracts.flow import consumed_by

    return consumed_by("indexer")


async def test_a_rebuild_that_is_killed_anywhere_leaves_the_old_or_the_new(
    world: TwoWorld,
) -> None:
    await world.indexed("a.md")
    await rebuild(world.index, "default")
    steps = await _killed_everywhere(
        world,
        lambda index: rebuild(index, "default"),
        lambda index: rebuild(index, "default"),
    )
    assert steps > 20


async def test_a_rollback_that_is_killed_anywhere_leaves_the_old_or_the_new(
    world: TwoWorld,
) -> None:
    await world.indexed("a.md")
    await rebuild(world.index, "default")
    count = 0

    async def act(index: Index) -> Rebuilt:
        return await rollback(index, "default")

    async def again(index: Index) -> None:
        nonlocal count
        count += 1
        await world.indexed("b.md", BODY + f"\n## Члан {count + 6}\n\nЈош {count}.\n")
        await rollback(index, "default")

    assert await _killed_everywhere(world, act, again) > 20


async def test_a_change_of_the_chunker_that_is_killed_anywhere_leaves_no_doubles(
    world: TwoWorld,
) -> None:
    await world.indexed("a.md", MANY)
    await _workers(world)
    await rebuild(world.index, "default")
    before = len(await world.facts(Indexed))
    ways = ["paragraph", "heading"]

    async def act(index: Index) -> None:
        ways.reverse()
        await world.configured(chunking=ways[0])
        await rebuild(index, "default")

    async def again(index: Index) -> None:
        await rebuild(index, "default")

    assert await _killed_everywhere(world, act, again) > 20
    said = [f.chunks_sha256 for f in (await world.facts(Indexed))[before - 1 :]]
    assert all(a != b for a, b in pairwise(said))  # never twice the same


# -- searches go on --------------------------------------------------------------------------------


async def test_every_question_is_answered_by_one_generation_through_rebuild_and_rollback(
    world: TwoWorld,
) -> None:
    for n in range(6):
        await world.indexed(f"{n}.md", MANY)
    await world.projected()
    cuts = {frozenset(await world.chunk_ids())}
    answers: list[frozenset[str]] = []
    over = asyncio.Event()

    async def asking() -> None:
        while not over.is_set():
            answers.append(frozenset(await world.ask("казна и рок члана")))
            await asyncio.sleep(0)

    async def changing() -> None:
        try:
            await rebuild(world.index, "default")
            await world.configured(chunking="paragraph", embedder="small")
            await rebuild(world.index, "default")
            cuts.add(frozenset(await world.chunk_ids()))
            await rollback(world.index, "default")
            await rollback(world.index, "default")
        finally:
            over.set()

    await asyncio.gather(asking(), asking(), changing())
    assert len(cuts) == 2 and len(answers) > 10
    wrong = [a for a in answers if not a or not any(a <= cut for cut in cuts)]
    assert wrong == []
    assert {next(c for c in cuts if a <= c) for a in answers} == cuts


async def test_two_rollbacks_at_once_switch_once(world: TwoWorld) -> None:
    await world.indexed("a.md")
    await rebuild(world.index, "default")
    done = await asyncio.gather(
        *(rollback(i, "default") for i in (world.index, world.new_index())), return_exceptions=True
    )
    refused = [d for d in done if isinstance(d, Refusal)]
    assert len(refused) == 1 and refused[0].code == "rebuild-running"


async def test_many_writers_and_a_rebuild_do_not_wait_for_each_other_for_ever(
    world: TwoWorld,
) -> None:
    """Each writer holds a connection and needs a second one: eight of them had all there are."""
    events = [await world.chunked(f"{n}.md") for n in range(12)]
    await world.indexed("a.md")
    async with asyncio.timeout(60):
        await asyncio.gather(
            rebuild(world.index, "default"),
            *(on_chunked(e, index=world.index, **world.deps) for e in events),
            *(world.index.revalidate("default", e.document_id) for e in events),
        )
    await world.consistent()


def test_the_other_model_is_another_one() -> None:
    assert HashedEmbedder(64).model_id == SMALL != HashedEmbedder().model_id
