"""A bundle: everything of a project in one signed file, to go on elsewhere with its ids.

A zip file. `manifest.json` names every other member with its length and SHA-256, and
`signature.json` holds the signature over the bytes of `manifest.json`:

* `log.jsonl`: the project's events in log order with all columns; data as the text that is hashed
* `blobs/<sha256>`: sources, parses, bodies, metas, span maps, manifests of passages
* `vectors/<model>/<sha256 of a manifest of passages>`: float32, little endian, row by row
"""

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from contracts.artifacts import ChunkManifest
from contracts.events import Project, Sha256
from kernel.blobs import PIECE_BYTES, Blobs
from kernel.cache import EmbeddingCache
from kernel.db import connect, queries
from kernel.errors import KbError, Refusal
from kernel.needs import Needs
from kernel.packed import pack, texts_of
from kernel.signing import Keys

MANIFEST, SIGNATURE, LOG = "manifest.json", "signature.json", "log.jsonl"
PAGE = 2000
TRIES = 3
_SAMPLE_BYTES = 16384
Progress = Callable[[int, int, int], None]
MemberName = Annotated[
    str,
    StringConstraints(pattern=r"^(log\.jsonl|blobs/[0-9a-f]{64}|vectors/[A-Za-z0-9_.%~-]+/[0-9a-f]{64})$"),
]  # fmt: skip


class Member(BaseModel):
    """Length and SHA-256 of a file in a bundle."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    bytes: int = Field(ge=0)
    sha256: Sha256


class BundleManifest(BaseModel):
    """What a bundle holds. `missing`: blobs that the log names and the store did not have."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    format: Literal["citelog-bundle-1"] = "citelog-bundle-1"
    project: Project
    created_at: AwareDatetime
    installation: Sha256
    version: str
    position: int = Field(ge=0)
    """Of the log that it was read at."""
    fingerprint: Sha256
    events: int = Field(ge=1)
    members: dict[MemberName, Member]
    missing: tuple[Sha256, ...] = ()
    vectors: tuple[str, ...] = ()
    """Models whose vectors are here."""


@dataclass(frozen=True)
class Exported:
    """A bundle that was written. `key` is the public key that it is signed with."""

    manifest: BundleManifest
    sha256: str
    """Of `manifest.json`."""
    key: str
    file_bytes: int


class _ErasedMeanwhile(KbError):
    """Something of the project was erased while it was read."""


def no_progress(_: int, __: int, ___: int) -> None:
    """Tell nobody."""


async def export(
    dsn: str,
    blobs: Blobs,
    project: str,
    file: Path,
    keys: Keys,
    *,
    with_vectors: bool = False,
    without_missing: bool = False,
    progress: Progress = no_progress,
) -> Exported:
    """Write a bundle, whole or not at all.

    Args:
        dsn: the database, as its owner.
        blobs: the store.
        project: whose events.
        file: where to; replaced if it is there.
        keys: to sign with.
        with_vectors: those of the cache too, so that nothing is embedded elsewhere.
        without_missing: go on if the store lacks blobs, and name them in the manifest.
        progress: is told of blobs.

    Raises:
        Refusal: `unknown-project`, `missing-blobs`, `conflict` (erasures all the while).
    """
    draft = file.with_name(f".{file.name}.part")
    connection: Any = await connect(dsn, service="kb-export")
    try:
        for _ in range(TRIES):
            try:
                run = _Export(connection, blobs, project, progress)
                made = await run.write(draft, keys, with_vectors, without_missing)
            except _ErasedMeanwhile:
                continue
            draft.replace(file)
            return made
        raise Refusal("conflict", "documents are being erased; try again later", status=409)
    finally:
        draft.unlink(missing_ok=True)
        await connection.close()


class _Export:
    """One try at a bundle."""

    def __init__(self, connection: Any, blobs: Blobs, project: str, progress: Progress) -> None:
        self._connection, self._blobs, self._project = connection, blobs, project
        self._progress = progress
        self._sql = queries("kernel.sql", "bundle")
        self._needs = Needs()
        self._members: dict[str, Member] = {}
        self._missing: list[str] = []
        self._copied = 0

    async def write(
        self, draft: Path, keys: Keys, with_vectors: bool, without_missing: bool
    ) -> Exported:
        with _created(draft) as raw, _zipped(raw) as bundle:
            moment, events = await self._log(bundle)
            await self._needs.look_inside(self._blobs.get, self._needs.versions)
            await self._copy(bundle)
            models = await self._vectors(bundle) if with_vectors else set[str]()
            await self._still(moment["position"])
            if self._missing and not without_missing:
                what = f"the store lacks {len(self._missing)} blobs, {self._missing[0][:16]}… first"
                raise Refusal("missing-blobs", f"{what}; --without-missing leaves them out")
            manifest = BundleManifest(
                project=self._project,
                created_at=moment["at"],
                installation=moment["installation"],
                version=version("citelog"),
                position=moment["position"],
                fingerprint=moment["fingerprint"],
                events=events,
                members=self._members,
                missing=tuple(sorted(self._missing)),
                vectors=tuple(sorted(models)),
            )
            text = manifest.model_dump_json(indent=1).encode()
            key, signature = keys.sign(text)
            bundle.writestr(MANIFEST, text)
            said = json.dumps({"key": key, "signature": signature}).encode()
            bundle.writestr(SIGNATURE, said)
            bundle.close()
            raw.flush()
            os.fsync(raw.fileno())
            return Exported(manifest, hashlib.sha256(text).hexdigest(), key, raw.tell())

    async def _log(self, bundle: zipfile.ZipFile) -> tuple[Any, int]:
        """The slice of the log, in one snapshot; what its versions need is folded on the way."""
        connection, after, events = self._connection, 0, 0
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            moment = await self._sql.moment(connection)
            with _Adding(bundle, LOG, self._members) as out:
                while True:
                    rows = [
                        dict(r)
                        async for r in self._sql.slice(
                            connection, project=self._project, after=after, limit=PAGE
                        )
                    ]
                    for row in rows:
                        line = json.dumps(row, ensure_ascii=False)
                        out.write(line.encode() + b"\n")
                        self._needs.apply(
                            row["type"], row["schema_version"], json.loads(row["data"])
                        )
                    events += len(rows)
                    if len(rows) < PAGE:
                        break
                    after = rows[-1]["position"]
        if not events:
            raise Refusal("unknown-project", f"there is no project {self._project}", status=404)
        return moment, events

    async def _copy(self, bundle: zipfile.ZipFile) -> None:
        names = sorted(self._needs.names)
        for done, name in enumerate(names, 1):
            try:
                async with self._blobs.local_path(name) as path:
                    with path.open("rb") as source:
                        self._add_blob(bundle, name, source)
            except FileNotFoundError:
                self._missing.append(name)
            self._progress(done, len(names), self._copied)

    def _add_blob(self, bundle: zipfile.ZipFile, name: str, source: BinaryIO) -> None:
        piece = source.read(PIECE_BYTES)
        packed = _shrinks(piece[:_SAMPLE_BYTES])
        with _Adding(bundle, f"blobs/{name}", self._members, packed=packed) as out:
            while piece:
                out.write(piece)
                piece = source.read(PIECE_BYTES)
        member = self._members[f"blobs/{name}"]
        self._copied += member.bytes
        if member.sha256 != name:
            raise Refusal("damaged-blob", f"the bytes of {name[:16]}… changed in the store")

    async def _vectors(self, bundle: zipfile.ZipFile) -> set[str]:
        cache, models = EmbeddingCache(self._connection), set[str]()
        for cut in self._needs.passages().values():
            if cut.model is None:
                continue
            try:
                manifest = ChunkManifest.model_validate_json(await self._blobs.get(cut.manifest))
                texts = texts_of(manifest, await self._blobs.get(cut.body))
            except FileNotFoundError:
                continue
            packed = await pack(cache, cut.model, texts)
            if packed is not None:
                models.add(cut.model)
                name = f"vectors/{quote(cut.model, safe='')}/{cut.manifest}"
                with _Adding(bundle, name, self._members, packed=False) as out:
                    out.write(packed)
        return models

    async def _still(self, position: int) -> None:
        """Nothing was erased meanwhile; else the file would hold what was."""
        rows = self._sql.erased_since(self._connection, project=self._project, after=position)
        if [r async for r in rows]:
            raise _ErasedMeanwhile("something was erased meanwhile")


def _created(file: Path) -> BinaryIO:
    """A new file that only this user may read."""
    file.unlink(missing_ok=True)
    return os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")


def _zipped(raw: BinaryIO) -> zipfile.ZipFile:
    # The fast level: what is large is compressed already.
    return zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=1)


def _shrinks(sample: bytes) -> bool:
    """Is it worth while to pack it?"""
    return len(zlib.compress(sample, 1)) < 0.9 * len(sample)


class _Adding:
    """A member of a zip file, counted and hashed as it is written."""

    def __init__(
        self,
        bundle: zipfile.ZipFile,
        name: str,
        members: dict[str, Member],
        *,
        packed: bool = True,
    ) -> None:
        self._bundle, self._name, self._members, self._packed = bundle, name, members, packed
        self._digest, self._bytes = hashlib.sha256(), 0

    def __enter__(self) -> "_Adding":
        # By its name it is packed as the file is, by a description as that says: not at all.
        info = self._name if self._packed else zipfile.ZipInfo(self._name)
        self._out = self._bundle.open(info, "w", force_zip64=True)
        return self

    def write(self, data: bytes) -> None:
        """More of it."""
        self._digest.update(data)
        self._bytes += len(data)
        self._out.write(data)

    def __exit__(self, *_: object) -> None:
        self._out.close()
        self._members[self._name] = Member(bytes=self._bytes, sha256=self._digest.hexdigest())
