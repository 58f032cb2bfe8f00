"""A folder of backups on disk: blobs under their names once, a folder for each backup, tombstones.

```
blobs/ab/cd/<sha256>    bytes that any backup needs        vectors/<model>/ab/<sha256>
backups/<id>/           manifest.json and the tables        tombstones.jsonl
```
A backup gets its name when it is whole. What was erased since is in `tombstones.jsonl`, which
outlives every backup: a restore of an older one does not bring it back.
"""

import asyncio
import fcntl
import gzip
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Literal
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, ConfigDict

from contracts.events import Sha256
from kernel.blobs import Blobs
from kernel.errors import Refusal

FORMAT = 1
_MARK = "citelog-backups.json"
_MANIFEST_BYTES = 256 * 1024 * 1024


class Part(BaseModel):
    """A file of a backup."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    file: str
    bytes: int
    sha256: Sha256


class Table(Part):
    """A table as Postgres' COPY writes it (text, gzip)."""

    schema_name: str
    name: str
    columns: tuple[str, ...]
    rows: int


class Listing(Part):
    """Names and sizes of the blobs of a backup, one a line (gzip)."""

    count: int
    content_bytes: int


class Manifest(BaseModel):
    """What one backup holds.

    `missing`: blobs that the log names and the store did not have, `damaged`: those whose bytes
    were not what their name says. `vectors`: models whose vectors are here, with how many manifests
    of passages; without them a restore embeds anew. `settings`: those of the data folder that hold
    no secret, `left_out`: names of those that may.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    format: Literal[1] = 1
    id: str
    created_at: AwareDatetime
    installation: Sha256
    version: str
    position: int
    fingerprint: Sha256
    migrations: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    blobs: Listing
    missing: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    redacted: int = 0
    """Events of its log that say no more than an erasure left of them."""
    vectors: dict[str, int] = {}
    settings: dict[str, str] = {}
    left_out: tuple[str, ...] = ()


class _Sealed(BaseModel, hide_input_in_errors=True):
    """A manifest and the SHA-256 of its JSON, in one file: it is whole or it is not."""

    sha256: Sha256
    manifest: Manifest

    @classmethod
    def of(cls, manifest: Manifest) -> "_Sealed":
        text = manifest.model_dump_json().encode()
        return cls(sha256=hashlib.sha256(text).hexdigest(), manifest=manifest)


class Repository:
    """The folder. Nothing is created before `create`."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.backups = self.root / "backups"
        self.tombstones_file = self.root / "tombstones.jsonl"
        self._blobs: Blobs | None = None

    @property
    def blobs(self) -> Blobs:
        """The bytes."""
        if self._blobs is None:
            self._blobs = Blobs(str(self.root / "blobs"))
        return self._blobs

    def create(self) -> None:
        """Make the folder one of backups, readable by this user only.

        Raises:
            Refusal: `no-backups`: there is something else in it.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark = self.root / _MARK
        if not mark.exists():
            if any(self.root.iterdir()):
                raise Refusal("no-backups", f"{self.root} holds other things; name an empty folder")
            mark.write_text(json.dumps({"format": FORMAT}) + "\n")
        self.backups.mkdir(mode=0o700, exist_ok=True)

    def check(self) -> None:
        """Raises Refusal `no-backups`: this is no folder of backups, or of a newer version."""
        try:
            format_ = json.loads((self.root / _MARK).read_bytes())["format"]
        except (OSError, ValueError, KeyError, TypeError):
            raise Refusal("no-backups", f"{self.root} is no folder of backups") from None
        if format_ != FORMAT:
            raise Refusal("no-backups", f"{self.root} was written by a newer version")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One writer at a time.

        Raises:
            Refusal: `backup-running`.
        """
        with (self.root / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Refusal("backup-running", "another backup is being written here") from None
            yield

    async def sweep(self) -> None:
        """Remove what a killed backup left. Only while `alone`."""
        for folder in self.backups.glob(".partial-*"):
            shutil.rmtree(folder)
        for manifest in self.whole():
            self._tidy(manifest)
        await self.blobs.sweep(timedelta(0))

    def partial(self, id_: str) -> Path:
        """A folder for a backup that is not whole yet."""
        folder = self.backups / f".partial-{id_}"
        folder.mkdir(mode=0o700)
        return folder

    def finish(self, partial: Path, manifest: Manifest) -> None:
        """Give a whole backup its name; everything of it is on disk then."""
        _write_manifest(partial, manifest)
        partial.rename(self.backups / manifest.id)
        _flush(self.backups)

    def replace(self, manifest: Manifest) -> None:
        """Other files take the place of those of a backup: they are in its folder already. What
        the manifest does not name goes, now or with the next `sweep`."""
        _write_manifest(self.backups / manifest.id, manifest)
        self._tidy(manifest)

    def _tidy(self, manifest: Manifest) -> None:
        named = {"manifest.json", manifest.blobs.file, *(t.file for t in manifest.tables)}
        for file in (self.backups / manifest.id).iterdir():
            if file.name not in named:
                file.unlink()

    def ids(self) -> list[str]:
        """Of all backups, oldest first."""
        if not self.backups.is_dir():
            return []
        return sorted(p.name for p in self.backups.iterdir() if not p.name.startswith("."))

    def manifest(self, id_: str) -> Manifest:
        """Of one backup.

        Raises:
            Refusal: `torn-backup`: it is not there or not whole.
        """
        try:
            file = self.backups / id_ / "manifest.json"
            if file.stat().st_size > _MANIFEST_BYTES:
                raise ValueError("too long")
            sealed = _Sealed.model_validate_json(file.read_bytes())
            if sealed.sha256 != sealed.of(sealed.manifest).sha256 or sealed.manifest.id != id_:
                raise ValueError("changed")
        except (OSError, ValueError) as error:
            what = f"the manifest of backup {id_} cannot be read"
            raise Refusal("torn-backup", f"{what}: {type(error).__name__}") from error
        return sealed.manifest

    def whole(self) -> list[Manifest]:
        """Of all backups whose manifest can be read, oldest first."""
        found = []
        for id_ in self.ids():
            with suppress(Refusal):
                found.append(self.manifest(id_))
        return found

    def choose(self, at: str | None) -> Manifest:
        """The newest backup; with `at` the one of that id, or the newest until that time.

        Raises:
            Refusal: `no-backups`, `torn-backup`, `unknown-backup`.
        """
        self.check()
        ids = self.ids()
        if at in ids:
            return self.manifest(at)
        moment = None if at is None else _moment(at)
        if not ids:
            raise Refusal("no-backups", f"there is no backup in {self.root}")
        for id_ in reversed(ids):
            found = self.manifest(id_)
            if moment is None or found.created_at <= moment:
                return found
        raise Refusal("unknown-backup", f"there is no backup until {at}")

    def file(self, manifest: Manifest, part: Part) -> Path:
        """A file of a backup, checked by length and hash.

        Raises:
            Refusal: `torn-backup`.
        """
        path = self.backups / manifest.id / part.file
        if path.parent != self.backups / manifest.id or not path.is_file():
            raise Refusal("torn-backup", f"{part.file} of backup {manifest.id} is missing")
        if path.stat().st_size != part.bytes or file_sha256(path) != part.sha256:
            raise Refusal("torn-backup", f"{part.file} of backup {manifest.id} is damaged")
        return path

    # -- what was erased --------------------------------------------------------------------

    def tombstones(self) -> dict[str, dict[str, Any]]:
        """Erasures by event id, oldest first. A line that a crash tore is passed over: whoever
        wrote it has not said that it was done."""
        found: dict[str, dict[str, Any]] = {}
        for line in _lines(self.tombstones_file):
            if "event_id" in line:
                found[line["event_id"]] = line
        return found

    def people(self) -> list[str]:
        """Actor ids of people who were erased."""
        return [line["person"] for line in _lines(self.tombstones_file) if "person" in line]

    def dropped(self) -> set[str]:
        """Names of blobs that were taken out, for they were erased."""
        lines = _lines(self.tombstones_file)
        return {name for line in lines for name in line.get("dropped", ())}

    def bury(self, lines: Sequence[dict[str, Any]]) -> None:
        """Add to the tombstones; they are on disk when this returns."""
        if not lines:
            return
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        fd = os.open(self.tombstones_file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(fd, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = file.seek(0, os.SEEK_END)
            if end and os.pread(fd, 1, end - 1) != b"\n":  # a crash in the middle of a line
                text = "\n" + text
            file.write(text.encode())
            file.flush()
            os.fsync(fd)
        _flush(self.root)

    async def drop(self, names: Iterable[str]) -> int:
        """Delete blobs of erased versions, and vectors of manifests of these names; returns how
        many blobs. That they are gone is written down before: they are no damage."""
        gone, names = 0, sorted(set(names))
        if names:
            await asyncio.to_thread(self.bury, [{"dropped": names}])
        for name in names:
            gone += await self.blobs.delete(name)
            for file in (self.root / "vectors").glob(f"*/{name[:2]}/{name}"):
                file.unlink(missing_ok=True)
            (self.root / "damaged" / name).unlink(missing_ok=True)
        return gone

    async def set_aside(self, name: str) -> None:
        """Move a damaged blob out of the way: the next backup brings it again."""
        folder = self.root / "damaged"
        folder.mkdir(mode=0o700, exist_ok=True)
        async with self.blobs.local_path(name) as path:
            path.replace(folder / name)

    def vectors_file(self, model: str, manifest: str) -> Path:
        """Where the vectors of a manifest of passages are: float32, little endian, row by row."""
        return self.root / "vectors" / quote(model, safe="") / manifest[:2] / manifest


class Gzipped:
    """A gzip file, hashed as it is written. The same content gives the same bytes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> "Gzipped":
        self._raw: BinaryIO = self._path.open("wb")
        self._gzip = gzip.GzipFile(
            fileobj=self._raw, mode="wb", compresslevel=1, mtime=0, filename=""
        )
        return self

    async def feed(self, data: bytes) -> None:
        """Write a part."""
        self.write(data)

    def write(self, data: bytes) -> None:
        """Write a part."""
        self._gzip.write(data)

    def __exit__(self, *_: object) -> None:
        self._gzip.close()
        self._raw.close()

    @property
    def part(self) -> Part:
        """What a manifest says of the file, once it is closed."""
        with self._path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Part(file=self._path.name, bytes=self._path.stat().st_size, sha256=digest)


def write_flushed(path: Path, data: bytes) -> None:
    """Write a file that is on disk when this returns."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def file_sha256(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    draft = folder / "manifest.json.new"
    write_flushed(draft, _Sealed.of(manifest).model_dump_json(indent=1).encode())
    draft.replace(folder / "manifest.json")
    _flush(folder)


def _flush(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    if not file.exists():
        return
    with file.open("rb") as lines:
        for line in lines:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found


def _moment(at: str) -> datetime:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise Refusal("unknown-backup", f"{at} is neither a backup nor a time") from None
    if len(at) == len("2026-01-01"):
        moment = moment.replace(hour=23, minute=59, second=59, microsecond=999999)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
