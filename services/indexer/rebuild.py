"""A project's index made anew from the log and the caches, beside the old one, then switched."""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from contracts.envelope import Envelope
from contracts.events import (
    AttachmentsReceived,
    Chunked,
    DocumentReceived,
    Event,
    Reinstated,
    Superseded,
)
from contracts.http import Rebuilt
from kernel.clearance import Texts
from kernel.errors import KbError, Refusal
from services.indexer.index import Generation, Index

log = structlog.get_logger()
PAGE = 2000


class NotVerified(KbError):
    """The new generation does not hold what the log says; the old one stays."""


@dataclass
class Contents:
    """What the log says must be in a project's index, folded up to `position`."""

    project: str
    position: int = 0

    def __post_init__(self) -> None:
        self.texts: dict[str, Texts] = {}
        """By version."""
        self.chunked: dict[str, Chunked] = {}
        """Version id → the cut that is indexed, or the newest of one that never was."""
        self.valid_from: dict[str, datetime] = {}
        self.indexed: dict[str, str] = {}
        """Version id → name of the chunk manifest that was indexed last."""
        self.moved: set[str] = set()
        """Documents whose windows were set since `the fold began`."""

    def apply(self, envelope: Envelope) -> None:
        """Fold one event in."""
        event = envelope.fact()
        if not isinstance(event, Event):
            return
        match event:
            case Superseded() | Reinstated():
                self.moved.add(event.document_id)
            case AttachmentsReceived():
                pass
            case _:
                self._about(event, envelope)

    def _about(self, event: Event, envelope: Envelope) -> None:
        version_id = event.version_id
        if isinstance(event, DocumentReceived):
            self.valid_from[version_id] = event.valid_from
        texts = self.texts.setdefault(version_id, Texts())
        texts.apply(envelope)
        # Not the newest cut: a later attempt may have been cancelled, or have failed.
        if (cut := texts.searchable) is not None:
            self.indexed[version_id], self.chunked[version_id] = cut.chunks_sha256, cut
            return
        self.indexed.pop(version_id, None)
        if texts.cut is not None and texts.may_be_indexed(texts.cut):
            self.chunked[version_id] = texts.cut
        else:
            self.chunked.pop(version_id, None)

    async def catch_up(self, index: Index) -> None:
        """Fold in what the log got since."""
        while batch := await index.log.read(self.position, PAGE):
            for envelope in batch:
                if envelope.project == self.project:
                    self.apply(envelope)
            self.position = batch[-1].position


async def rebuild(index: Index, project: str) -> Rebuilt:
    """Build the next generation of `project`, verify it, switch to it, drop the old one.

    Searches are answered from the old generation all the while. Writers wait only for the switch.

    Raises:
        Refusal: `rebuild-running`, or `unknown-project`.
        NotVerified: the new generation is wrong; it is dropped and the old one stays.
    """
    async with index.log.pool.acquire() as guard:
        if not await index.sql.own_rebuild(guard, project=project):
            raise Refusal("rebuild-running", f"{project} is being rebuilt already", status=409)
        try:
            return await _rebuild(index, project)
        finally:
            await index.sql.disown_rebuild(guard, project=project)


async def _rebuild(index: Index, project: str) -> Rebuilt:
    started = time.monotonic()
    contents = Contents(project)
    await contents.catch_up(index)
    if not contents.valid_from:
        raise Refusal("unknown-project", f"there is no project {project}", status=404)
    async with index.log.pool.acquire() as connection, connection.transaction():
        left = [g async for g in index.left_over(connection, project)]
        generation = await index.new_generation(connection, project, "building")
    for abandoned in left:
        await _drop(index, abandoned)
    done: dict[str, str] = {}
    try:
        embedded = await _fill(index, generation, contents, done)
        await contents.catch_up(index)
        embedded += await _fill(index, generation, contents, done)
        old = await _switch(index, generation, contents, done)
    except BaseException:
        await _drop(index, generation)
        raise
    for gone in old:
        await _drop(index, gone)
    passages = sum(contents.chunked[v].chunk_count for v in contents.indexed)
    seconds = round(time.monotonic() - started, 3)
    log.info("rebuilt", project=project, generation=generation.number, passages=passages)
    return Rebuilt(
        project=project,
        generation=generation.number,
        versions=len(contents.indexed),
        passages=passages,
        embedded=embedded,
        position=contents.position,
        seconds=seconds,
    )


async def _fill(
    index: Index,
    generation: Generation,
    contents: Contents,
    done: dict[str, str],
    connection: Any = None,
) -> int:
    """Write every version that is not in `done` yet; returns how many passages were embedded."""
    embedded = 0
    for version_id, chunks_sha256 in list(contents.indexed.items()):
        if done.get(version_id) == chunks_sha256:
            continue
        event = contents.chunked[version_id]
        passages, written = await index.passages(event, contents.valid_from[version_id])
        if connection is not None:
            await index.put(connection, generation, passages)
        else:
            async with index.log.pool.acquire() as own, own.transaction():
                await index.put(own, generation, passages)
        done[version_id] = chunks_sha256
        embedded += written.embedded
    return embedded


async def _switch(
    index: Index, generation: Generation, contents: Contents, done: dict[str, str]
) -> list[Generation]:
    """Alone among writers: what came meanwhile, verification, the pointer. Returns the old ones."""
    project = generation.project
    async with index.log.pool.acquire() as connection, connection.transaction():
        await index.sql.own_project(connection, project=project)
        old = [g for g in await index.kept(connection, project) if g != generation]
        await contents.catch_up(index)
        await _add_unlogged(index, connection, old, contents)
        await _fill(index, generation, contents, done, connection)
        for document_id in contents.moved:
            await index.respan([generation], document_id)
        for version_id in done.keys() - contents.indexed.keys():
            await index.forget(connection, generation, version_id)
        await verify(index, connection, generation, contents)
        for state, members in (("retired", old), ("live", [generation])):
            for member in members:
                await index.sql.set_state(
                    connection, project=project, generation=member.number, state=state
                )
        await index.sql.activate(connection, project=project, generation=generation.number)
    return old


async def _add_unlogged(
    index: Index, connection: Any, old: list[Generation], contents: Contents
) -> None:
    """Versions that a writer put into the old generation and has not said so in the log yet."""
    for generation in old:
        rows = index.sql.versions_in(
            connection, project=generation.project, generation=generation.number
        )
        async for row in rows:
            version_id = row["version_id"]
            if version_id not in contents.indexed and version_id in contents.chunked:
                contents.indexed[version_id] = contents.chunked[version_id].chunks_sha256


async def verify(index: Index, connection: Any, generation: Generation, contents: Contents) -> None:
    """Both legs hold exactly the passages that the log says, and a passage finds itself.

    Raises:
        NotVerified: they do not.
    """
    expected = sum(contents.chunked[v].chunk_count for v in contents.indexed)
    rows = [
        r["point_id"]
        async for r in index.sql.points_in(
            connection, project=generation.project, generation=generation.number
        )
    ]
    points = await index.vectors.ids(generation.collection)
    if len(rows) != expected or rows != points:
        raise NotVerified(f"{expected} passages in the log, {len(rows)} rows, {len(points)} points")
    samples = index.sql.sample(connection, project=generation.project, generation=generation.number)
    async for row in samples:
        if not await index.finds(generation, row["text"]):
            raise NotVerified(f"{row['chunk_id']} does not find itself")


async def _drop(index: Index, generation: Generation) -> None:
    """Forget a generation in both legs; what a crash leaves is dropped by the next rebuild."""
    await index.vectors.drop(generation.collection)
    key = {"project": generation.project, "generation": generation.number}
    async with index.log.pool.acquire() as connection, connection.transaction():
        await index.sql.drop_chunks(connection, **key)
        await index.sql.forget_generation(connection, **key)
