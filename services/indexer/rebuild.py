"""A project's index made anew from the log and the caches, beside the one in use, then switched.

The generation that was in use stands by: `rollback` brings it up to date and switches back.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

import structlog

from contracts.artifacts import BodyMeta
from contracts.events import Chunked, GenerationSwitched, Indexed
from contracts.generations import Rebuilt
from kernel.db import UNAVAILABLE
from kernel.embedder import Embedder, UnknownEmbedder
from kernel.errors import Refusal, Retry, WrongVersion
from kernel.log import Pending, reaction_id
from kernel.projects import project_settings
from services.indexer.chunker import CHUNKERS, Cut, cut, manifest
from services.indexer.contents import Contents, Saying
from services.indexer.erase import purge
from services.indexer.index import Generation, Index, Written

log = structlog.get_logger()
REBUILD, WORKER = "indexer.rebuild", "indexer.on_chunked"
"""Parts of the ids of events: a cut is recorded once, and what the worker says of it too."""
SAMPLES = 5
ROUNDS = 5
"""Times that a switch looks again when a version moves on while its new cut is recorded."""
LEFT_OVER = ("building", "retired")
"""States of what nobody goes on with, where no rebuild runs."""
SWEEP_SECONDS = 3600.0
AWAY: tuple[type[BaseException], ...] = (*UNAVAILABLE, OSError, Retry)
Cause = Literal["rebuild", "rollback"]


class NotVerified(Refusal):
    """A generation does not hold what the log says; the one in use stays."""

    def __init__(self, reason: str) -> None:
        super().__init__("not-verified", reason, status=500)


async def rebuild(
    index: Index,
    project: str,
    *,
    options: Cut | None = None,
    actor: str = "svc:indexer",
    recut: bool = False,
) -> Rebuilt:
    """Build the next generation of `project`, verify it, switch to it; the one before stands by.

    It has the embedder and the chunker that the project chose. Bodies are cut anew where the
    chunker or the embedder is another one, or with `recut`; a cut that comes out as before is the
    one before. Searches are answered from the old generation, with its embedder, all the while.
    Writers wait only for the switch.

    Args:
        index: of all projects.
        project: which.
        options: how to cut; the project's strategy and the embedder are filled in.
        actor: who asks.
        recut: cut every body anew.

    Raises:
        Refusal: `rebuild-running`, `unknown-project`, or `unknown-embedder`.
        NotVerified: the new generation is wrong; it is dropped and the old one stays.
    """
    async with _owning(index, project):
        started = time.monotonic()
        contents = await _contents(index, project)
        settings = await project_settings(index.log, project)
        try:
            embedder = await index.embedders.named(settings.embedder)
        except UnknownEmbedder as error:
            raise Refusal("unknown-embedder", str(error), status=409) from error
        chunker = CHUNKERS[settings.chunking]
        async with index.log.pool.acquire() as connection, connection.transaction():
            left = await index.generations(connection, project, LEFT_OVER)
            before = await index.generations(connection, project, ["live"])
            generation = await index.new_generation(
                connection, project, "building", embedder, chunker
            )
        for abandoned in left:  # only now, so that a number is not given twice
            await _drop(index, abandoned)
        run = Run(index, generation, contents, embedder, actor, "rebuild")
        run.options = (options or Cut(embedder.count_tokens)).fitted(embedder, settings.chunking)
        run.anew = recut or any(g.embedder != generation.embedder for g in before)
        try:
            return await run.through(started)
        except BaseException:
            await _drop(index, generation)
            raise


async def rollback(
    index: Index, project: str, *, options: Cut | None = None, actor: str = "svc:indexer"
) -> Rebuilt:
    """Bring back the generation that stands by; the one in use stands by then.

    It is brought up to date from the log first: only what differs is written, with its own
    embedder and chunker. Raises as `rebuild`, and Refusal `no-standby`.
    """
    async with _owning(index, project):
        started = time.monotonic()
        contents = await _contents(index, project)
        await drop_left_over(index, project)
        standby = await index.generations(index.log.pool, project, ["standby"])
        if not standby:
            raise Refusal("no-standby", f"no generation of {project} stands by", status=409)
        (generation,) = standby
        embedder = await _its_embedder(index, generation)
        live = await index.live(project)
        run = Run(index, generation, contents, embedder, actor, "rollback")
        chunkings = [k for k, v in CHUNKERS.items() if v == generation.chunker]
        chunking = chunkings[0] if chunkings else "heading"
        run.options = (options or Cut(embedder.count_tokens)).fitted(embedder, chunking)
        run.anew = live.embedder != generation.embedder
        run.placed = {p["version_id"]: p["chunks_sha256"] for p in await run.placed_in(generation)}
        return await run.through(started)


async def drop_left_over(index: Index, project: str) -> None:
    """Drop generations that a dead rebuild left, and those that nothing brings back."""
    for left in await index.generations(index.log.pool, project, LEFT_OVER):
        await _drop(index, left)


async def sweeping(index: Index) -> None:
    """Sweep at the start and every hour, until cancelled."""
    while True:
        try:
            await sweep(index)
        except AWAY as error:
            log.warning("sweep.away", error=str(error)[:300])
        await asyncio.sleep(SWEEP_SECONDS)


async def sweep(index: Index) -> None:
    """Drop what a crash left: it may hold what was erased meanwhile."""
    for project in await index.projects():
        try:
            async with _owning(index, project):
                await drop_left_over(index, project)
        except Refusal:
            log.info("sweep.skipped", project=project)  # another process rebuilds it


@dataclass
class Run:
    """One generation on its way to being the live one."""

    index: Index
    generation: Generation
    contents: Contents
    embedder: Embedder
    actor: str
    cause: Cause
    options: Cut = field(init=False)
    anew: bool = False
    """Cut every body anew."""
    placed: dict[str, str] = field(default_factory=dict)
    """What the generation holds: version id → name of the manifest."""
    wanted: dict[str, tuple[Chunked, Chunked]] = field(default_factory=dict)
    """Version id → the cut that the log says, and the one that this generation must hold."""
    unlogged: set[str] = field(default_factory=set)
    """Versions whose worker wrote them and has not said so yet."""
    announced: dict[str, tuple[Pending, int]] = field(default_factory=dict)
    """New cuts that were recorded, by version, and the versions of their streams then."""
    behind: bool = False
    """Did the log say more than what was folded of it?"""
    erased: list[Chunked] = field(default_factory=list)
    """Cuts of versions that were erased while we embedded them."""
    counts: dict[str, Written] = field(default_factory=dict)
    """What was written of a version; nothing of one that was there."""
    embedded: int = 0
    written: int = 0

    async def through(self, started: float) -> Rebuilt:
        """Fill, catch up, switch; what happened since `started` (monotonic seconds)."""
        try:
            await self.fill(self._among_others)
            await self.contents.catch_up(self.index.log)
            await self.fill(self._among_others)
            before = await self.switch()
        finally:
            for event in self.erased:
                await purge(event, self.index)
        await self._say_indexed()
        await drop_left_over(self.index, self.generation.project)
        done = Rebuilt(
            project=self.generation.project,
            generation=self.generation.number,
            before=before and before.number,
            embedder=self.generation.embedder,
            chunker=self.generation.chunker or "",
            versions=len(self.contents.indexed),
            passages=self.expected,
            written=self.written,
            embedded=self.embedded,
            recut=len(self.announced),
            position=self.contents.position,
            seconds=round(time.monotonic() - started, 3),
        )
        log.info("rebuilt", **done.model_dump(exclude={"position", "embedder"}))
        return done

    @property
    def expected(self) -> int:
        """Passages that the generation must hold."""
        return sum(self.wanted[v][1].chunk_count for v in self.contents.indexed)

    async def fill(self, lock: "Lock") -> None:
        """Write every version that is not there as it must be."""
        for version_id, said in list(self.contents.indexed.items()):
            try:
                event = await self._wanted(version_id, said)
                if self.placed.get(version_id) != event.chunks_sha256:
                    await self._write(event, lock)
            except FileNotFoundError:
                # Its blobs are gone: it was erased while we worked, or something is wrong.
                self.behind = True
                await self.contents.catch_up(self.index.log)
                if version_id in self.contents.indexed:
                    raise

    async def _write(self, event: Chunked, lock: "Lock") -> None:
        valid_from = self.contents.valid_from[event.version_id]
        passages = await self.index.passages(event, valid_from, self.embedder)
        first = self.cause == "rebuild" and event.version_id not in self.placed
        async with lock(event.document_id) as connection:
            # Whoever takes a text out of the index says so in the log first, and then waits here.
            texts = await self.index.texts(event)
            if not texts.live:
                self.erased.append(event)
            if not texts.live or not texts.may_be_indexed(event):
                self.behind = True
                return
            left = await self.index.put(connection, self.generation, passages, first=first)
        if left:
            async with lock(event.document_id) as connection:
                await self.index.tidy(connection, self.generation, passages)
        self.placed[event.version_id] = event.chunks_sha256
        self.counts[event.version_id] = passages.written
        self.embedded += passages.written.embedded
        self.written += event.chunk_count

    async def _wanted(self, version_id: str, said: Chunked) -> Chunked:
        """The cut that this generation must hold of a version of which the log says `said`."""
        known = self.wanted.get(version_id)
        if known is None or known[0] != said:
            cut = await self._cut_of(version_id, said)
            self.wanted[version_id] = said, await self._summarised(version_id, said, cut)
        return self.wanted[version_id][1]

    async def _cut_of(self, version_id: str, said: Chunked) -> Chunked:
        if version_id in self.unlogged:
            return said
        own = self.contents.cuts[version_id].get(self.placed.get(version_id, ""))
        if own is not None and _text(own) == _text(said):
            return own
        if self.generation.chunker in (None, said.chunker) and not self.anew:
            return said
        return await self._recut(said)

    async def _summarised(self, version_id: str, said: Chunked, cut: Chunked) -> Chunked:
        """The cut with the summary of its body that is made today."""
        now = self.index.summariser
        if version_id in self.unlogged or cut.summariser == now.name:
            return cut
        if said.summariser == now.name:
            name = said.summary_sha256
        else:
            body, meta = await self._read(said)
            about = {"title": meta.title, "language": meta.language}
            summary = await now(body, said.body_sha256, **about)
            name = await self.index.blobs.put(summary.to_bytes())
        return cut.model_copy(update={"summary_sha256": name, "summariser": now.name})

    async def _read(self, said: Chunked) -> tuple[str, BodyMeta]:
        body = (await self.index.blob(said.body_sha256)).decode()
        meta = await self.index.blob(said.meta_sha256)
        return body, BodyMeta.model_validate_json(meta)

    async def _recut(self, said: Chunked) -> Chunked:
        """The body of `said`, cut as this generation is cut."""
        body, meta = await self._read(said)
        chunks = await asyncio.to_thread(
            cut, body, meta.title, said.document_id, meta.language, self.options
        )
        made = manifest(said.body_sha256, meta.title, chunks, self.options.chunking)
        return said.model_copy(
            update={
                "chunks_sha256": await self.index.blobs.put(made.to_bytes()),
                "chunk_count": len(chunks),
                "chunker": made.chunker,
            }
        )

    async def switch(self) -> Generation | None:
        """Alone among writers: what came meanwhile, new cuts into the log, verification, the
        pointer and its fact. Returns the generation that queries read before."""
        project = self.generation.project
        async with self.index.log.pool.acquire() as connection, connection.transaction():
            await self.index.sql.own_project(connection, project=project)
            live = await self.index.generations(connection, project, ["live"])
            before = live[0] if live else None
            for _ in range(ROUNDS):
                await self._catch_up(before)
                if not self.behind and await self._announce():
                    break
            else:
                raise NotVerified("versions move on too fast: try it again")
            await verify(self)
            standby = await self.index.generations(connection, project, ["standby"])
            states = [(g, "retired") for g in standby if g != self.generation]
            states += [(self.generation, "live"), *((g, "standby") for g in live)]
            for member, state in states:
                await self.index.sql.set_state(connection, **member.key, state=state)
            await self._projected()
            await self.index.settle_project(connection, project, self.contents.position)
            await self.index.sql.activate(connection, **self.generation.key)
            await self.index.log.append([self._switched(before)], connection=connection)
        return before

    async def _projected(self) -> None:
        """The vectors must not say of a document what the read projection does not know yet.

        Where no projection runs, nobody reads it; one that is stuck does not stop a rebuild.
        """
        if not await self.index.sql.projected(self.index.log.pool):
            return
        try:
            await self.index.projected(await self.index.log.head())
        except Retry as late:
            log.warning("rebuild.ahead", reason=str(late))

    async def _catch_up(self, before: Generation | None) -> None:
        """Make the generation hold what the log says now."""
        self.behind = False
        await self.contents.catch_up(self.index.log)
        await self._add_unlogged(before)
        await self.fill(self._alone)
        held = await self.placed_in(self.generation)
        for row in held:
            if row["version_id"] not in self.contents.indexed:
                async with self._alone(row["document_id"]) as connection:
                    await self.index.forget(connection, self.generation, row["version_id"])
                self.placed.pop(row["version_id"], None)
        lines = self.contents.lines
        for document_id in {
            r["document_id"] for r in held if r["windows_at"] < lines.get(r["document_id"], 0)
        }:
            async with self._alone(document_id) as connection:
                await self.index.respan(connection, [self.generation], document_id)

    async def _add_unlogged(self, before: Generation | None) -> None:
        """Versions that a worker put into the live generation and has not said so in the log yet:
        it was given the newest cut."""
        for row in await self.placed_in(before) if before else []:
            version_id = row["version_id"]
            texts = self.contents.texts.get(version_id)
            newest = texts.cut if texts else None
            if (
                newest is not None
                and newest != self.contents.indexed.get(version_id)
                and row["chunks_sha256"] in (newest.chunks_sha256, "")
                and self.contents.may_be_indexed(version_id, newest)
            ):
                self.unlogged.add(version_id)
                self.contents.indexed[version_id] = newest

    async def _announce(self) -> bool:
        """Record the new cuts. False: a version moved on since the log was read.

        A worker that is given such an event waits for the switch. After it, it finds the passages
        there and writes nothing; where we died before, it writes them into the old generation.
        """
        for version_id, (said, wanted) in self.wanted.items():
            if said == wanted or self.contents.indexed.get(version_id) != said:
                continue
            pending = self._pending(wanted, self.contents.sayings[version_id])
            try:
                done = await self.index.log.append(
                    [pending], expected=self.contents.texts[version_id].at
                )
            except WrongVersion:
                return False
            self.announced[version_id] = pending, done.version
        return True

    def _pending(self, wanted: Chunked, saying: Saying) -> Pending:
        return Pending(
            wanted,
            reaction_id(saying.event_id, REBUILD, _made(wanted)),
            saying.job,
            self.actor,
            causation_id=saying.event_id,
            lane=saying.lane,
        )

    async def _say_indexed(self) -> None:
        """What the workers would say of the new cuts, under the ids that they would give it."""
        for pending, at in self.announced.values():
            event = pending.event
            if not isinstance(event, Chunked):
                raise TypeError(type(event).__name__)
            new = self.counts.get(event.version_id)
            embedded = new.embedded if new else 0
            indexed = Indexed(
                **event.ids,
                body_sha256=event.body_sha256,
                chunks_sha256=event.chunks_sha256,
                chunk_count=event.chunk_count,
                embedder=self.generation.embedder,
                embedded=embedded,
                reused=event.chunk_count - embedded,
            )
            said = Pending(
                indexed,
                reaction_id(pending.event_id, WORKER),
                pending.correlation_id,
                "svc:indexer",
                causation_id=pending.event_id,
                lane=pending.lane,
            )
            try:
                await self.index.log.append([said], expected=at, unless_over=pending.correlation_id)
            except WrongVersion:
                log.info("rebuild.left_to_the_worker", version_id=event.version_id)

    def _switched(self, before: Generation | None) -> Pending:
        fact = GenerationSwitched(
            project=self.generation.project,
            generation=self.generation.number,
            before=before and before.number,
            embedder=self.generation.embedder,
            chunker=self.generation.chunker or "",
            versions=len(self.contents.indexed),
            passages=self.expected,
            cause=self.cause,
            actor=self.actor,
        )
        return Pending(fact, uuid4(), uuid4(), self.actor)

    async def placed_in(self, generation: Generation) -> list[Any]:
        """Rows of what a generation holds."""
        return [r async for r in self.index.sql.placed_in(self.index.log.pool, **generation.key)]

    def _among_others(self, document_id: str) -> AbstractAsyncContextManager[Any]:
        return self.index.writing(self.generation.project, document_id)

    @asynccontextmanager
    async def _alone(self, document_id: str) -> AsyncIterator[Any]:
        """A transaction while the switch holds the project."""
        async with self.index.log.pool.acquire() as connection, connection.transaction():
            await self.index.sql.own_document(connection, document_id=document_id)
            yield connection


Lock = Callable[[str], AbstractAsyncContextManager[Any]]
"""Document id → a transaction that may write its passages."""


async def verify(run: Run) -> None:
    """Both legs hold exactly the passages that the log says, and a passage finds itself.

    Raises:
        NotVerified: they do not.
    """
    index, generation, expected = run.index, run.generation, run.expected
    pool = index.log.pool
    rows = [r["point_id"] async for r in index.sql.points_in(pool, **generation.key)]
    points = await index.vectors.ids(generation.collection)
    if len(rows) != expected or rows != points:
        raise NotVerified(f"{expected} passages in the log, {len(rows)} rows, {len(points)} points")
    async for row in index.sql.sample(pool, **generation.key, count=SAMPLES):
        if not await index.finds(generation, row["text"]):
            raise NotVerified(f"point {row['point_id']} does not find itself")


def _made(event: Chunked) -> str:
    return f"{event.chunks_sha256} {event.summary_sha256}"


def _text(event: Chunked) -> tuple[str, str]:
    return event.body_sha256, event.meta_sha256


async def _contents(index: Index, project: str) -> Contents:
    contents = Contents(project)
    await contents.catch_up(index.log)
    if not contents.valid_from:
        raise Refusal("unknown-project", f"there is no project {project}", status=404)
    return contents


async def _its_embedder(index: Index, generation: Generation) -> Embedder:
    try:
        return await index.embedders.of(generation.embedder)
    except UnknownEmbedder as error:
        raise Refusal("unknown-embedder", str(error), status=409) from error


@asynccontextmanager
async def _owning(index: Index, project: str) -> AsyncIterator[None]:
    """One rebuild of a project anywhere, and one of any project at a time in this process."""
    running = Refusal("rebuild-running", f"{project} is being rebuilt already", status=409)
    if project in index.rebuilding:
        raise running
    index.rebuilding.add(project)
    try:
        async with index.one_rebuild, index.log.pool.acquire() as guard:
            if not await index.sql.own_rebuild(guard, project=project):
                raise running
            try:
                yield
            finally:
                await index.sql.disown_rebuild(guard, project=project)
    finally:
        index.rebuilding.discard(project)


async def _drop(index: Index, generation: Generation) -> None:
    """Forget a generation in both legs; what a crash leaves is dropped by the next rebuild."""
    await index.vectors.drop(generation.collection)
    async with index.log.pool.acquire() as connection, connection.transaction():
        await index.sql.drop_chunks(connection, **generation.key)
        await index.sql.forget_generation(connection, **generation.key)
