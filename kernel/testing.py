"""Fakes that ship with the product, proven against the real thing by the congruence suite."""

import hashlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from uuid import UUID, uuid4

from contracts.envelope import Envelope
from contracts.events import DocumentReceived, Event, Lane
from kernel.erasure import redacted
from kernel.errors import WrongVersion
from kernel.log import ANY_VERSION, Appended, Pending, Standing

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryLog:
    """The log in memory: same order, same idempotence, same version check."""

    def __init__(self) -> None:
        self.events: list[Envelope] = []
        self.failures: dict[tuple[str, str], tuple[int, str]] = {}

    async def append(
        self,
        pending: Sequence[Pending],
        *,
        expected: int = ANY_VERSION,
        unless_over: UUID | None = None,
        connection: Any = None,
    ) -> Appended:
        """As `Log.append`."""
        streams = {p.event.stream_id for p in pending}
        if len(streams) != 1:
            raise ValueError(f"one stream at a time, not {len(streams)}")
        stream_id = streams.pop()
        known = {e.event_id: e for e in self.events}
        seen = [known[p.event_id] for p in pending if p.event_id in known]
        if any(e.stream_id != stream_id for e in seen) or 0 < len(seen) < len(pending):
            raise RuntimeError(f"KB002 event ids partly known on {stream_id}")
        if seen:
            return Appended("duplicate", seen[-1].version, seen[-1].position)
        if unless_over is not None and self._over(unless_over):
            return Appended("over", 0, 0)
        version = sum(e.stream_id == stream_id for e in self.events)
        if expected not in (ANY_VERSION, version):
            raise WrongVersion(stream_id, expected)
        for p in pending:
            version += 1
            self.events.append(to_envelope(p, position=len(self.events) + 1, version=version))
        return Appended("appended", version, len(self.events))

    async def head(self) -> int:
        """As `Log.head`."""
        return len(self.events)

    async def read(self, after: int, limit: int = 1000) -> list[Envelope]:
        """As `Log.read`."""
        return self.events[after : after + limit]

    async def stream(self, stream_id: str) -> list[Envelope]:
        """As `Log.stream`."""
        return [e for e in self.events if e.stream_id == stream_id]

    async def streams(self, stream_ids: Sequence[str]) -> list[Envelope]:
        """As `Log.streams`."""
        return [e for e in self.events if e.stream_id in stream_ids]

    async def known(self, event_id: UUID) -> bool:
        """As `Log.known`."""
        return any(e.event_id == event_id for e in self.events)

    async def standing(self, reaction: UUID, job: UUID) -> Standing:
        """As `Log.standing`."""
        return Standing(await self.known(reaction), self._over(job))

    def _over(self, job: UUID) -> bool:
        return any(
            e.correlation_id == job and e.type == "Failed" and e.data["code"] == "cancelled"
            for e in self.events
        )

    async def job(self, correlation_id: UUID) -> Envelope | None:
        """As `Log.job`."""
        mine = (e for e in self.events if e.correlation_id == correlation_id)
        return next((e for e in mine if e.type == "DocumentReceived"), None)

    async def documents(self, project: str) -> list[str]:
        """As `Log.documents`."""
        there: set[tuple[str, str]] = set()
        for e in (e for e in self.events if e.project == project):
            version = (e.data.get("document_id", ""), e.data.get("version_id", ""))
            if e.type == "DocumentReceived":
                there.add(version)
            elif e.type == "Erased":
                there.discard(version)
        return sorted({document_id for document_id, _ in there})

    async def attached(self, version_ids: Sequence[str]) -> list[DocumentReceived]:
        """As `Log.attached`."""
        found = [e.event() for e in self.events if e.type == "DocumentReceived"]
        return [e for e in found if isinstance(e, DocumentReceived) and e.parent in version_ids]

    async def users(self, name: str) -> list[tuple[str, str]]:
        """As `Log.users`."""
        keys = {
            "DocumentReceived": ("source_id",),
            "ScanVerdict": ("text_sha256", "meta_sha256"),
            "Released": ("text_sha256",),
        }
        found = [
            (e.data["document_id"], e.data["version_id"])
            for e in self.events
            if name in [e.data.get(k) for k in keys.get(e.type, ())]
        ]
        return list(dict.fromkeys(found))

    async def received(self, event: Event) -> DocumentReceived:
        """As `Log.received`."""
        for e in reversed(self.events):
            if e.type == "DocumentReceived" and e.data["version_id"] == event.version_id:
                found = e.event()
                assert isinstance(found, DocumentReceived)  # noqa: S101 - by its type
                return found
        raise LookupError(f"no receipt of version {event.version_id}")

    async def event(self, event_id: UUID) -> Envelope | None:
        """As `Log.event`."""
        return next((e for e in self.events if e.event_id == event_id), None)

    async def document_of(self, project: str, source_key: str) -> str | None:
        """As `Log.document_of`."""
        for e in self.events:
            named = (e.project, e.data.get("source_key")) == (project, source_key)
            if e.type == "DocumentReceived" and named:
                return str(e.data["document_id"])
        return None

    async def receipts(self, source_id: str) -> list[DocumentReceived]:
        """As `Log.receipts`."""
        found = [e.event() for e in self.events if e.type == "DocumentReceived"]
        return [e for e in found if isinstance(e, DocumentReceived) and e.source_id == source_id]

    async def redact(self, document_id: str, version_id: str) -> int:
        """As `Log.redact`."""
        of_version = (f"document-{document_id}", f"version-{version_id}")
        mine = [
            e
            for e in self.events
            if e.stream_id in of_version and e.data.get("version_id") == version_id
        ]
        graves = [e.position for e in mine if e.type == "Erased" and e.data["reason"] == "request"]
        if not graves:
            raise RuntimeError(f"KB006 nobody had version {version_id} erased")
        changed = 0
        for e in mine:
            less = redacted(e.type, e.data)
            if e.position < graves[-1] and less != e.data:
                self.events[e.position - 1] = e.model_copy(update={"data": less})
                changed += 1
        return changed

    async def tombstones(self, correlation_ids: Sequence[UUID]) -> list[Envelope]:
        """As `Log.tombstones`."""
        ids = set(correlation_ids)
        return [e for e in self.events if e.type == "Erased" and e.correlation_id in ids]

    async def scrubbed(self) -> tuple[int, datetime | None]:
        """As `Log.scrubbed`; in memory there are no files."""
        return len(self.events), None

    async def count_failure(self, consumer: str, cause: Envelope, error: BaseException) -> int:
        """As `Log.count_failure`."""
        key = (consumer, str(cause.event_id))
        attempts = self.failures.get(key, (0, ""))[0] + 1
        self.failures[key] = (attempts, "retrying")
        return attempts

    async def settle_failure(
        self, consumer: str, event_id: UUID | str, state: Literal["dead", "resolved"]
    ) -> None:
        """As `Log.settle_failure`."""
        key = (consumer, str(event_id))
        if key in self.failures:
            self.failures[key] = (self.failures[key][0], state)


class MemoryBlobs:
    """The blob store in memory."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    async def put(self, data: bytes) -> str:
        """As `Blobs.put`."""
        name = hashlib.sha256(data).hexdigest()
        self.content[name] = bytes(data)
        return name

    async def put_parts(self, parts: Iterable[bytes]) -> str:
        """As `Blobs.put_parts`."""
        return await self.put(b"".join(parts))

    async def get(self, name: str) -> bytes:
        """As `Blobs.get`."""
        if name not in self.content:
            raise FileNotFoundError(name)
        return self.content[name]

    async def digest(self, name: str) -> str:
        """As `Blobs.digest`."""
        return hashlib.sha256(await self.get(name)).hexdigest()

    async def exists(self, name: str) -> bool:
        """As `Blobs.exists`."""
        return name in self.content

    async def size(self, name: str) -> int:
        """As `Blobs.size`."""
        return len(await self.get(name))

    async def head(self, name: str, count: int) -> bytes:
        """As `Blobs.head`."""
        return (await self.get(name))[:count]

    async def delete(self, name: str) -> bool:
        """As `Blobs.delete`."""
        return self.content.pop(name, None) is not None

    @asynccontextmanager
    async def local_path(self, name: str) -> AsyncIterator[Path]:
        """As `Blobs.local_path`."""
        data = await self.get(name)
        with TemporaryDirectory(prefix="kb-blob-") as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            yield path


class MemoryParseCache:
    """The parse cache in memory."""

    def __init__(self) -> None:
        self.content: dict[tuple[str, str, str], str] = {}

    async def get(self, source_id: str, parser: str, options: str) -> str | None:
        """As `ParseCache.get`."""
        return self.content.get((source_id, parser, options))

    async def put(self, source_id: str, parser: str, options: str, parsed_sha256: str) -> None:
        """As `ParseCache.put`."""
        self.content[source_id, parser, options] = parsed_sha256

    async def drop(self, source_id: str) -> list[str]:
        """As `ParseCache.drop`."""
        keys = [k for k in self.content if k[0] == source_id]
        return [self.content.pop(k) for k in keys]


def to_envelope(pending: Pending, *, position: int, version: int) -> Envelope:
    """A pending event as it would be read back."""
    when = pending.occurred_at or EPOCH + timedelta(seconds=position)
    row: dict[str, Any] = pending.to_row() | {
        "position": position,
        "stream_id": pending.event.stream_id,
        "version": version,
        "occurred_at": when,
        "recorded_at": EPOCH + timedelta(seconds=position),
    }
    return Envelope.model_validate(row)


def first(event: Event, *, lane: Lane = "live") -> Pending:
    """`event` as the first of a job."""
    return Pending(event, event_id=uuid4(), correlation_id=uuid4(), actor="test", lane=lane)


def received(name: str = "a.md", **changes: Any) -> DocumentReceived:
    """A receipt whose ids follow from `name`."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    fields: dict[str, Any] = {
        "project": "default", "document_id": digest[:32], "version_id": digest[32:],
        "source_id": digest, "source_key": name, "name": name, "media_type": "text/markdown",
        "size_bytes": 10, "valid_from": EPOCH,
    }  # fmt: skip
    return DocumentReceived(**(fields | changes))
