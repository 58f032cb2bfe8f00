"""A bundle from elsewhere, checked from end to end before anything of it is believed."""

import asyncio
import hashlib
import json
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.artifacts import ChunkManifest
from contracts.envelope import Envelope, UnknownEvent
from contracts.events import Lane, Sha256
from kernel.blobs import PIECE_BYTES
from kernel.bundle import LOG, MANIFEST, SIGNATURE, BundleManifest, Member
from kernel.chain import NOTHING, digest, header, linked
from kernel.errors import Refusal
from kernel.needs import Cut, Needs
from kernel.packed import texts_of, unpacked
from kernel.signing import is_signed

_MANIFEST_BYTES = 512 * 1024 * 1024
_SIGNATURE_BYTES = 4096
_LINE_BYTES = 1024 * 1024
"""An event has 64 KiB at most; its data are escaped once more in a line."""
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


class Line(BaseModel):
    """An event as `log.jsonl` has it; `data` is JSON as text, times are microseconds since 1970."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    position: int
    stream_id: str
    version: int
    event_id: UUID
    type: str
    schema_version: int
    lane: Lane
    project: str
    causation_id: UUID | None
    correlation_id: UUID
    actor: str
    traceparent: str | None
    occurred: int
    recorded: int
    data: str
    salt: str | None
    digest: Sha256
    chain: Sha256

    def content(self) -> dict[str, Any]:
        """The data.

        Raises:
            ValueError: they are no JSON object.
        """
        found = json.loads(self.data)
        if not isinstance(found, dict):
            raise ValueError("no object")
        return found


@dataclass
class _Streams:
    """Where each stream is, while its events are checked in log order."""

    position: int = 0
    ends: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    ids: set[UUID] = field(default_factory=set)


class Bundle:
    """An open bundle. Nothing of it is read before its signature was checked.

    Raises (all of them `Refusal`): `no-bundle`, `unsigned-bundle`, `untrusted-key` (`key` says
    which), `changed-bundle`.
    """

    def __init__(self, file: Path) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise Refusal("no-bundle", "this is no bundle of a project") from error
        self._infos: dict[str, zipfile.ZipInfo] = {}
        self.needs = Needs()

    def __enter__(self) -> "Bundle":
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._zip.close()

    def signed_by(self) -> str:
        """The public key whose owner signed the manifest. It is for others to say whether that one
        is believed."""
        for info in self._zip.infolist():
            if info.filename in self._infos:
                raise Refusal("changed-bundle", "a file is in the bundle twice")
            if info.flag_bits & 0x1 or info.compress_type not in _METHODS:
                raise Refusal("changed-bundle", "a file of the bundle is packed in another way")
            self._infos[info.filename] = info
        if SIGNATURE not in self._infos:
            raise Refusal("unsigned-bundle", "the bundle is not signed")
        self._text = self._short(MANIFEST, _MANIFEST_BYTES)
        try:
            said = json.loads(self._short(SIGNATURE, _SIGNATURE_BYTES))
            key, signature = str(said["key"]), str(said["signature"])
        except (ValueError, KeyError, TypeError) as error:
            raise Refusal("unsigned-bundle", "the bundle's signature cannot be read") from error
        if not is_signed(self._text, key, signature):
            raise Refusal("changed-bundle", "the bundle is not as it was signed")
        return key

    async def check(self) -> None:
        """Every byte of every member, every event and link, and that nothing is missing or too
        many. The manifest's lengths are the most that is ever unpacked."""
        try:
            self.manifest = BundleManifest.model_validate_json(self._text)
        except ValidationError as error:
            raise Refusal("no-bundle", "the bundle is of a version that is not known") from error
        self.sha256 = hashlib.sha256(self._text).hexdigest()
        members = self.manifest.members
        strange = (self._infos.keys() - {MANIFEST, SIGNATURE}) ^ members.keys()
        if strange or LOG not in members:
            raise Refusal("changed-bundle", "the bundle's files are not those of its manifest")
        await asyncio.to_thread(self._check_bytes)
        await self.needs.look_inside(self.blob, self.needs.versions)
        self._check_blobs()
        await self._check_vectors()

    async def packed_vectors(self) -> AsyncIterator[tuple[str, Cut, list[str], bytes]]:
        """Vectors in the bundle: model, manifest of passages, the passages' texts, the bytes."""
        cuts = self.needs.passages()
        for name in self.manifest.members:
            kind, _, rest = name.partition("/")
            model, _, cut = rest.partition("/")
            if kind == "vectors":
                if cut not in cuts:
                    raise Refusal("changed-bundle", "vectors of the bundle are of no passages")
                passages = ChunkManifest.model_validate_json(await self.blob(cut))
                texts = texts_of(passages, await self.blob(cuts[cut].body))
                yield unquote(model), cuts[cut], texts, b"".join(self.pieces(name))

    async def _check_vectors(self) -> None:
        try:
            async for _, _, texts, data in self.packed_vectors():
                unpacked(len(texts), data)
        except (ValueError, FileNotFoundError) as error:
            raise Refusal("changed-bundle", "vectors do not fit their passages") from error

    def pieces(self, name: str) -> Iterator[bytes]:
        """A member's bytes, never more than the manifest says."""
        left = self.manifest.members[name].bytes
        try:
            with self._zip.open(self._infos[name]) as source:
                while piece := source.read(min(PIECE_BYTES, left + 1)):
                    left -= len(piece)
                    if left < 0:
                        raise Refusal("changed-bundle", "a file of the bundle is too long")
                    yield piece
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            raise Refusal("changed-bundle", "a file of the bundle cannot be unpacked") from error

    def lines(self) -> Iterator[Line]:
        """The events."""
        rest = b""
        for piece in self.pieces(LOG):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield _line(line)
            if len(rest) > _LINE_BYTES:
                raise Refusal("changed-bundle", "an event of the bundle is too long")
        if rest:
            raise Refusal("changed-bundle", "the bundle's log ends in the middle")

    async def blob(self, name: str) -> bytes:
        """A blob's bytes.

        Raises:
            FileNotFoundError: it is not here.
        """
        if f"blobs/{name}" not in self.manifest.members:
            raise FileNotFoundError(name)
        return await asyncio.to_thread(lambda: b"".join(self.pieces(f"blobs/{name}")))

    def _short(self, name: str, limit: int) -> bytes:
        info = self._infos.get(name)
        if info is None or info.file_size > limit:
            raise Refusal("no-bundle", f"the bundle has no {name}, or one that is too long")
        try:
            with self._zip.open(info) as source:
                data = source.read(limit + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            raise Refusal("no-bundle", f"{name} of the bundle cannot be read") from error
        if len(data) > limit:
            raise Refusal("no-bundle", f"{name} of the bundle is too long")
        return data

    def _check_bytes(self) -> None:
        for name, member in self.manifest.members.items():
            self._check_member(name, member)
        self._check_log()

    def _check_member(self, name: str, member: Member) -> None:
        if self._infos[name].file_size != member.bytes:
            raise Refusal("changed-bundle", f"{name} of the bundle has another length")
        found, size = hashlib.sha256(), 0
        for piece in self.pieces(name):
            found.update(piece)
            size += len(piece)
        named = name.removeprefix("blobs/") if name.startswith("blobs/") else member.sha256
        if size != member.bytes or found.hexdigest() != member.sha256 or member.sha256 != named:
            raise Refusal("changed-bundle", f"{name} of the bundle was changed")

    def _check_log(self) -> None:
        streams, events = _Streams(), 0
        for line in self.lines():
            _check_line(line, self.manifest, streams)
            self.needs.apply(line.type, line.schema_version, line.content())
            events += 1
        if events != self.manifest.events:
            raise Refusal("changed-bundle", "the bundle's log has another number of events")

    def _check_blobs(self) -> None:
        """What the events name is here, and nothing else is."""
        blobs = {n.removeprefix("blobs/") for n in self.manifest.members if n.startswith("blobs/")}
        if (self.needs.names - blobs) - set(self.manifest.missing) or blobs - self.needs.names:
            raise Refusal("changed-bundle", "the bundle's blobs are not those that its log names")


def _line(text: bytes) -> Line:
    try:
        return Line.model_validate_json(text)
    except ValidationError as error:
        raise Refusal("changed-bundle", "an event of the bundle cannot be read") from error


def _check_line(line: Line, manifest: BundleManifest, streams: _Streams) -> None:
    """One event: of this project, in order, of a known kind, in its own stream, and linked."""
    if line.project != manifest.project or line.event_id in streams.ids:
        raise Refusal("changed-bundle", "an event is of another project, or there twice")
    if not streams.position < line.position <= manifest.position:
        raise Refusal("changed-bundle", "the bundle's events are not in order")
    streams.position = line.position
    streams.ids.add(line.event_id)
    version, link = streams.ends.get(line.stream_id, (0, NOTHING))
    row = line.model_dump(mode="json")
    if line.salt is not None and digest(bytes.fromhex(line.salt), line.data).hex() != line.digest:
        raise Refusal("changed-bundle", f"the data of event {line.position} were changed")
    link = linked(link, bytes.fromhex(line.digest), header(row))
    if line.version != version + 1 or link.hex() != line.chain:
        raise Refusal("changed-bundle", f"event {line.position} does not follow the one before it")
    streams.ends[line.stream_id] = line.version, link
    _check_fact(line)


def _check_fact(line: Line) -> None:
    try:
        envelope = Envelope.model_validate(
            line.model_dump(exclude={"salt", "digest", "chain", "occurred", "recorded", "data"})
            | {"data": line.content(), "occurred_at": line.occurred / 1e6,
               "recorded_at": line.recorded / 1e6}
        )  # fmt: skip
        fact = envelope.fact()
    except UnknownEvent as error:
        raise Refusal(
            "newer-bundle", f"the bundle has events of a newer version: {error}"
        ) from error
    except (ValidationError, ValueError, KeyError) as error:
        raise Refusal("changed-bundle", f"event {line.position} is no {line.type}") from error
    if fact.project != line.project or fact.stream_id != line.stream_id:
        raise Refusal("changed-bundle", f"event {line.position} is in a stream of another")
