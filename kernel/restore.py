"""A backup becomes an installation again; what was erased since it was made stays gone."""

import asyncio
import gzip
import hashlib
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.artifacts import ChunkManifest
from contracts.audit import Anchor
from kernel import chain
from kernel.backup import AT_ONCE, PAGE, Progress, listed, no_progress, together
from kernel.blobs import PIECE_BYTES, Blobs
from kernel.cache import EmbeddingCache
from kernel.db import connect, queries
from kernel.errors import Refusal
from kernel.log import ANY_VERSION
from kernel.migrations import files as migration_files
from kernel.migrations import migrate
from kernel.needs import Needs
from kernel.packed import texts_of, unpack
from kernel.repository import Manifest, Repository, Table


@dataclass(frozen=True)
class Restored:
    """What a restore did. `erased`: versions that were erased after the backup was made."""

    manifest: Manifest
    position: int
    events: int
    blobs: int
    blob_bytes: int
    erased: int
    left_out: tuple[str, ...]
    """Blobs that the backup does not have whole, where that was allowed."""
    vectors: int
    """Manifests of passages whose vectors are in the cache."""
    projects: tuple[str, ...]
    """Those whose index is to be made."""
    faults: int
    """What is wrong with the log's hash chain: it was so when it was backed up."""
    accounts: bool
    """Are there people who may sign in?"""


async def restore(
    dsn: str,
    blobs: Blobs,
    repository: Repository,
    manifest: Manifest,
    *,
    without_damaged: bool = False,
    progress: Progress = no_progress,
) -> Restored:
    """Fill an empty database and an empty blob store.

    The backup's tables are read into the schema that they were written from, which is then migrated
    forward like any other. Projections are empty: they are made when the services start.

    Raises:
        Refusal: `not-empty`, `newer-backup`, `torn-backup`, `damaged-blobs` (how many; nothing of
            the database was written).
        OSError: the disk is full, or away.
    """
    connection = await connect(dsn, service="kb-restore")
    try:
        run = _Run(connection, dsn, blobs, repository, manifest, progress)
        return await run.run(without_damaged)
    finally:
        await connection.close()


class _Run:
    """One restore."""

    def __init__(
        self,
        connection: Any,
        dsn: str,
        blobs: Blobs,
        repository: Repository,
        manifest: Manifest,
        progress: Progress,
    ) -> None:
        self._connection, self._dsn = connection, dsn
        self._blobs, self._repository, self._manifest = blobs, repository, manifest
        self._progress = progress
        self._sql = queries("kernel.sql", "backup")
        self._bytes = 0

    async def run(self, without_damaged: bool) -> Restored:
        if not await self._sql.is_empty(self._connection) or not await self._blobs.is_empty():
            raise Refusal("not-empty", "a backup is restored into an empty installation only")
        sql = self._known_migrations()
        files = {t: self._repository.file(self._manifest, t) for t in self._manifest.tables}
        names = await asyncio.to_thread(listed, self._repository, self._manifest)
        left_out = await self._copy(names)
        if left_out and not without_damaged:
            what = f"{len(left_out)} blobs are missing or damaged, {left_out[0][:12]}… first"
            raise Refusal("damaged-blobs", f"{what}; --without-damaged restores the rest")
        await migrate(self._dsn, only=sql)
        events = await self._load(files)
        await migrate(self._dsn)
        erased = await self._bury()
        needs = Needs()
        await self._fold(needs)
        await needs.look_inside(self._blobs.get, needs.versions)
        for name in names.keys() - needs.names:
            await self._blobs.delete(name)
        vectors = await self._vectors(needs)
        faults = await self._faults()
        moment = await self._sql.moment(self._connection)
        return Restored(
            manifest=self._manifest,
            position=moment["position"],
            events=events,
            blobs=len(names.keys() & needs.names) - len(needs.names & set(left_out)),
            blob_bytes=self._bytes,
            erased=erased,
            left_out=tuple(left_out),
            vectors=vectors,
            projects=tuple([r["project"] async for r in self._sql.projects(self._connection)]),
            faults=faults,
            accounts=await self._sql.has_accounts(self._connection),
        )

    def _known_migrations(self) -> list[str]:
        """Names of the migrations that made the schema of the backup."""
        known = {n: hashlib.sha256(sql.encode()).hexdigest() for n, sql in migration_files()}
        strange = [n for n, sha in self._manifest.migrations if known.get(n) != sha]
        if strange:
            what = f"{strange[0]} is not known to this version"
            raise Refusal("newer-backup", f"the backup was made by another version: {what}")
        return [name for name, _ in self._manifest.migrations]

    async def _copy(self, names: Mapping[str, int]) -> list[str]:
        """Bring the blobs; returns those that the backup does not have whole."""
        source, bad, dropped = self._repository.blobs, list[str](), self._repository.dropped()
        left, done = iter(names.items()), 0

        async def work() -> None:
            nonlocal done
            for name, size in left:
                if not await self._copy_one(source, name) and name not in dropped:
                    bad.append(name)
                else:
                    self._bytes += size
                done += 1
                self._progress(done, len(names), self._bytes)

        await together(work() for _ in range(AT_ONCE))
        return sorted(bad)

    async def _copy_one(self, source: Blobs, name: str) -> bool:
        try:
            async with source.local_path(name) as path:
                with path.open("rb") as file:
                    stored = await self._blobs.put_parts(iter(lambda: file.read(PIECE_BYTES), b""))
        except FileNotFoundError:
            return False
        if stored != name:
            await self._blobs.delete(stored)
        return stored == name

    async def _load(self, files: Mapping[Table, Path]) -> int:
        """The rows of all tables, in one transaction; returns how many events there are."""
        events = 0
        async with self._connection.transaction():
            for table, path in files.items():
                where = {"schema": table.schema_name, "name": table.name}
                if (table.schema_name, table.name) != ("log", "event"):
                    await self._connection.execute(
                        await self._sql.clear_statement(self._connection, **where)
                    )
                told = await self._connection.copy_to_table(
                    table.name,
                    schema_name=table.schema_name,
                    columns=list(table.columns),
                    source=_unzipped(path),
                    timeout=None,
                )
                rows = int(told.rpartition(" ")[2])
                if rows != table.rows:
                    raise Refusal("torn-backup", f"{path.name} has {rows} rows, not {table.rows}")
                if (table.schema_name, table.name) == ("log", "event"):
                    events = rows
            moment = await self._sql.moment_of_head(self._connection)
            if moment != self._manifest.position or events != moment:
                raise Refusal("torn-backup", f"the log ends at {moment}, with {events} events")
        return events

    async def _bury(self) -> int:
        """Append the erasures that the backup does not know; the people who were erased go.

        What else an erasure does (names in the log, receipts) follows from its event as ever.
        """
        tombstones = list(self._repository.tombstones().values())
        ids = [t["data"]["version_id"] for t in tombstones]
        rows = self._sql.receipts_of(self._connection, version_ids=ids)
        there = {r["version_id"] async for r in rows}
        appended = 0
        for t in tombstones:
            if t["data"]["version_id"] not in there:
                continue
            row = {k: v for k, v in t.items() if k not in ("position", "stream_id", "version")}
            done = await self._sql.append(
                self._connection, stream_id=t["stream_id"], expected=ANY_VERSION, events=[row]
            )
            appended += done["status"] == "appended"
        await self._sql.forget_people(self._connection, actor_ids=self._repository.people())
        return appended

    async def _faults(self) -> int:
        """Is the log the one whose fingerprint the manifest has? Erasures since are in it now."""
        manifest = self._manifest
        anchors = []
        if manifest.position and any(name.startswith("0009") for name, _ in manifest.migrations):
            anchors.append(Anchor(position=manifest.position, fingerprint=manifest.fingerprint))
        page = await chain.verify(self._connection, anchors=anchors)
        return page.found

    async def _fold(self, needs: Needs) -> None:
        after = 0
        while True:
            rows = [
                r async for r in self._sql.about_versions(self._connection, after=after, limit=PAGE)
            ]
            for r in rows:
                needs.apply(r["type"], r["schema_version"], r["data"])
            if len(rows) < PAGE:
                return
            after = rows[-1]["position"]

    async def _vectors(self, needs: Needs) -> int:
        """Fill the embedding cache, so that the index is made without a model."""
        cache, done = EmbeddingCache(self._connection), 0
        for cut in needs.passages().values():
            if cut.model is None:
                continue
            file = self._repository.vectors_file(cut.model, cut.manifest)
            if not file.exists():
                continue
            try:
                manifest = ChunkManifest.model_validate_json(await self._blobs.get(cut.manifest))
                texts = texts_of(manifest, await self._blobs.get(cut.body))
                data = await asyncio.to_thread(file.read_bytes)
                await unpack(cache, cut.model, texts, data, cut.version_id)
            except (FileNotFoundError, ValueError):
                continue  # embedded anew with the index
            done += 1
        return done


async def _unzipped(path: Path) -> AsyncIterator[bytes]:
    with gzip.open(path, "rb") as file:
        while True:
            try:
                part = await asyncio.to_thread(file.read, PIECE_BYTES)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise Refusal("torn-backup", f"{path.name} cannot be unpacked") from error
            if not part:
                return
            yield part
