"""Backups: the database and the blobs at one position of the log, while everything runs."""

import asyncio
import gzip
import shutil
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from contracts.artifacts import ChunkManifest
from contracts.envelope import Envelope
from kernel.backup_clean import clean
from kernel.blobs import PIECE_BYTES, Blobs
from kernel.cache import EmbeddingCache
from kernel.db import connect, queries
from kernel.errors import Refusal
from kernel.log import to_envelope
from kernel.migrations import files as migration_files
from kernel.needs import Cut, Needs
from kernel.packed import pack, texts_of
from kernel.repository import (
    Gzipped,
    Listing,
    Manifest,
    Repository,
    Table,
    file_sha256,
    write_flushed,
)

PAGE = 5000
AT_ONCE = 4
"""Blobs that are copied at the same time."""
Progress = Callable[[int, int, int], None]
"""Blobs done, of how many, and bytes that were copied."""


@dataclass(frozen=True)
class Made:
    """A backup, and what making it did: `copied` blobs were not in the folder before."""

    manifest: Manifest
    copied: int
    copied_bytes: int
    erased: int
    """Blobs that were taken out of the folder, for they were erased since they were put there."""


@dataclass(frozen=True)
class Settings:
    """Of the data folder: what goes into the backup, and names of what may hold a secret."""

    kept: Mapping[str, str]
    left_out: Sequence[str]


def no_progress(_: int, __: int, ___: int) -> None:
    """Tell nobody."""


async def backup(
    dsn: str,
    blobs: Blobs,
    repository: Repository,
    *,
    settings: Settings = Settings({}, ()),
    with_vectors: bool = False,
    progress: Progress = no_progress,
) -> Made:
    """Add a backup to the folder.

    The tables are read in one snapshot, and the blobs are those that the log names in it. Blobs
    only ever go away by an erasure, whose tombstone is in the log before: so what is missing is
    either erased, or was lost before.

    Raises:
        Refusal: `no-backups`, `backup-running`, `other-installation`.
        OSError: the disk is full, or away; no backup is added then.
    """
    repository.create()
    with repository.alone():
        await repository.sweep()
        connection: Any = await connect(dsn, service="kb-backup")
        try:
            run = _Run(connection, blobs, repository, settings, progress)
            return await run.run(EmbeddingCache(connection) if with_vectors else None)
        finally:
            await connection.close()


class _Run:
    """One backup."""

    def __init__(
        self,
        connection: Any,
        blobs: Blobs,
        repository: Repository,
        settings: Settings,
        progress: Progress,
    ) -> None:
        self._connection, self._blobs, self._repository = connection, blobs, repository
        self._settings, self._progress = settings, progress
        self._sql = queries("kernel.sql", "backup")
        self._needs = Needs()
        self._missing: list[str] = []
        self._damaged: list[str] = []
        self._copied = self._copied_bytes = 0

    async def run(self, cache: EmbeddingCache | None) -> Made:
        connection = self._connection
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            migrations = [(r["name"], r["sha256"]) async for r in self._sql.migrations(connection)]
            _up_to_date(migrations)
            moment = await self._sql.moment(connection)
            _same_installation(self._repository, moment["installation"])
            id_ = f"{moment['at']:%Y%m%dT%H%M%S.%f}Z-{moment['position']}"
            partial = self._repository.partial(id_)
            with _removed_unless_finished(partial):
                tables = await self._tables(connection, partial)
                await self._fold(connection, 0)
        with _removed_unless_finished(partial):
            versions = self._needs.versions
            await self._needs.look_inside(self._blobs.get, versions)
            sizes = await self._copy(sorted(self._needs.names))
            vectors = await self._vectors(cache) if cache else {}
            erased = await self._bury(moment["position"], sizes)
            manifest = Manifest(
                id=id_,
                created_at=moment["at"],
                installation=moment["installation"],
                version=version("citelog"),
                position=moment["position"],
                fingerprint=moment["fingerprint"],
                migrations=tuple(migrations),
                tables=tuple(tables),
                blobs=await asyncio.to_thread(_listing, partial, sizes),
                redacted=moment["redacted"],
                missing=tuple(sorted(self._missing)),
                damaged=tuple(sorted(self._damaged)),
                vectors=vectors,
                settings=dict(self._settings.kept),
                left_out=tuple(self._settings.left_out),
            )
            await asyncio.to_thread(self._repository.finish, partial, manifest)
        await clean(connection, self._repository)
        return Made(manifest, self._copied, self._copied_bytes, erased)

    async def _tables(self, connection: Any, partial: Path) -> list[Table]:
        found = [dict(r) async for r in self._sql.tables(connection)]
        return [await self._table(connection, partial, **row) for row in found]

    async def _table(
        self, connection: Any, partial: Path, schema: str, name: str, columns: list[str]
    ) -> Table:
        file = f"{schema}.{name}.copy.gz"
        with Gzipped(partial / file) as out:
            told = await connection.copy_from_table(
                name, schema_name=schema, columns=columns, output=out.feed
            )
        rows = int(told.rpartition(" ")[2])
        return Table(
            **out.part.model_dump(), schema_name=schema, name=name, columns=tuple(columns),
            rows=rows,
        )  # fmt: skip

    async def _fold(self, connection: Any, after: int) -> None:
        while True:
            rows = [r async for r in self._sql.about_versions(connection, after=after, limit=PAGE)]
            for r in rows:
                self._needs.apply(r["type"], r["schema_version"], r["data"])
            if len(rows) < PAGE:
                return
            after = rows[-1]["position"]

    async def _copy(self, names: Sequence[str]) -> dict[str, int]:
        """Bring blobs into the folder; returns the sizes of those that are there."""
        sizes: dict[str, int] = {}
        left = iter(names)

        async def work() -> None:
            for name in left:
                size = await self._copy_one(name)
                if size is not None:
                    sizes[name] = size
                self._progress(len(sizes), len(names), self._copied_bytes)

        await together(work() for _ in range(AT_ONCE))
        return sizes

    async def _copy_one(self, name: str) -> int | None:
        kept = self._repository.blobs
        held = await _size(kept, name)
        try:
            size = await self._blobs.size(name)
            if held == size:
                return size
            async with self._blobs.local_path(name) as path:
                with path.open("rb") as file:
                    stored = await kept.put_parts(iter(lambda: file.read(PIECE_BYTES), b""))
        except FileNotFoundError:
            if held is None:
                self._missing.append(name)
            return held  # the store lost it; an earlier backup has it still
        if stored != name:
            await kept.delete(stored)
            self._damaged.append(name)
            return None
        self._copied += 1
        self._copied_bytes += size
        return size

    async def _vectors(self, cache: EmbeddingCache) -> dict[str, int]:
        """Vectors of all passages that the cache still has, by model."""
        counted: dict[str, int] = {}
        for cut in self._needs.passages().values():
            if cut.model is None:
                continue
            file = self._repository.vectors_file(cut.model, cut.manifest)
            if file.exists() or await self._pack(cache, cut.model, cut, file):
                counted[cut.model] = counted.get(cut.model, 0) + 1
        return counted

    async def _pack(self, cache: EmbeddingCache, model: str, cut: Cut, file: Path) -> bool:
        kept = self._repository.blobs
        try:
            manifest = ChunkManifest.model_validate_json(await kept.get(cut.manifest))
            texts = texts_of(manifest, await kept.get(cut.body))
        except (FileNotFoundError, ValueError):
            return False
        packed = await pack(cache, model, texts)
        if packed is None:
            return False
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.new")
        write_flushed(draft, packed)
        draft.replace(file)
        return True

    async def _bury(self, position: int, sizes: dict[str, int]) -> int:
        """Write down what was erased, until now, and take it out of the folder.

        Those of before too: they may have been erased while nobody said where the backups are.
        """
        before = self._needs.names
        found = self._sql.tombstones(self._connection)
        rows = [to_envelope(r).model_dump(mode="json") async for r in found]
        await self._fold(self._connection, position)
        known = self._repository.tombstones()
        fresh = [r for r in rows if r["event_id"] not in known]
        gone_versions = [r["data"]["version_id"] for r in fresh]
        await self._needs.look_inside(self._repository.blobs.get, gone_versions)
        await asyncio.to_thread(self._repository.bury, fresh)
        needed = self._needs.names
        erased = self._needs.of(gone_versions) - needed
        gone = (before | erased) - needed
        for name in gone:
            sizes.pop(name, None)
        self._missing = [name for name in self._missing if name in needed]
        return await self._repository.drop(sorted(gone))


async def _size(blobs: Blobs, name: str) -> int | None:
    try:
        return await blobs.size(name)
    except FileNotFoundError:
        return None


@contextmanager
def _removed_unless_finished(partial: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


async def together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines at once; the first error ends all of them and is raised as it is."""
    tasks = [asyncio.create_task(w) for w in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _up_to_date(applied: Sequence[tuple[str, str]]) -> None:
    if {name for name, _ in applied} != {name for name, _ in migration_files()}:
        raise Refusal("not-migrated", "the database is of another version: start it once (kb up)")


def listed(repository: Repository, manifest: Manifest) -> dict[str, int]:
    """Names and sizes of the blobs of a backup.

    Raises:
        Refusal: `torn-backup`.
    """
    with gzip.open(repository.file(manifest, manifest.blobs), "rt") as lines:
        rows = (line.split() for line in lines)
        return {name: int(size) for name, size in rows}


def _same_installation(repository: Repository, installation: str) -> None:
    ids = repository.ids()
    if ids and repository.manifest(ids[-1]).installation != installation:
        raise Refusal(
            "other-installation", f"{repository.root} holds backups of another installation"
        )


async def forget(
    folder: Path,
    *,
    tombstones: Iterable[Envelope] = (),
    blobs: Iterable[str] = (),
    people: Iterable[str] = (),
) -> int:
    """Tell a folder of backups what was erased; returns how many blobs it held of it.

    Args:
        folder: of backups; nothing is done if there are none yet.
        tombstones: events of type Erased.
        blobs: names that nobody needs any more; vectors of manifests of passages go with them.
        people: actor ids.

    Raises:
        OSError: it is away: call again later, nothing is done twice.
    """
    repository = Repository(folder)
    if not repository.backups.is_dir():
        return 0
    known, gone = repository.tombstones(), set(repository.people())
    lines = [t.model_dump(mode="json") for t in tombstones if str(t.event_id) not in known]
    lines += [{"person": p} for p in people if p not in gone]
    await asyncio.to_thread(repository.bury, lines)
    return await repository.drop(blobs)


def _listing(partial: Path, sizes: Mapping[str, int]) -> Listing:
    with Gzipped(partial / "blobs.txt.gz") as out:
        for name, size in sorted(sizes.items()):
            out.write(f"{name} {size}\n".encode())
    total = sum(sizes.values())
    return Listing(**out.part.model_dump(), count=len(sizes), content_bytes=total)


@dataclass(frozen=True)
class Checked:
    """What reading a backup from end to end found; `missing` and `damaged` are names of blobs."""

    id: str
    blobs: int
    bytes: int
    missing: tuple[str, ...]
    damaged: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Is everything there that the manifest says?"""
        return not (self.missing or self.damaged)


async def verify(repository: Repository, manifest: Manifest) -> Checked:
    """Read a backup from end to end. A damaged blob is set aside, so that the next backup, which
    takes those that are there as they are, brings it again.

    Raises:
        Refusal: `torn-backup`: a table or the list of blobs is damaged.
    """
    for table in manifest.tables:
        await asyncio.to_thread(repository.file, manifest, table)
    names = await asyncio.to_thread(listed, repository, manifest)
    dropped = repository.dropped()
    missing, damaged, total = [], [], 0
    for name, size in names.items():
        try:
            async with repository.blobs.local_path(name) as path:
                good = path.stat().st_size == size
                good = good and await asyncio.to_thread(file_sha256, path) == name
        except FileNotFoundError:
            if name not in dropped:  # else it was erased since
                missing.append(name)
            continue
        total += size
        if not good:
            damaged.append(name)
            await repository.set_aside(name)
    return Checked(manifest.id, len(names), total, tuple(missing), tuple(damaged))
