"""The drop-zone at work: files that stopped growing are taken in and followed to their end."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import structlog
from pydantic import TypeAdapter, ValidationError

from contracts.envelope import Envelope
from contracts.events import Failed, Indexed, Project, Rejected, ScanVerdict
from contracts.http import Accepted, Plain
from kernel.blobs import Blobs
from kernel.db import UNAVAILABLE
from kernel.errors import KbError, Refusal, Retry
from kernel.log import Log
from services.ingest.accept import Offer, accept
from services.ingest.domain import Identity, checked_name, readable_type, stated_valid_from
from services.ingest.life import check_bytes, load_life
from services.ingest.settings import DropzoneSettings
from services.ingest.zone import Taken, Zone

log = structlog.get_logger()
AWAY: tuple[type[BaseException], ...] = (Retry, *UNAVAILABLE)
CHUNK = 1 << 20
AT_ONCE = 4
"""Files that are taken in at the same time."""
TRIES = 10
"""Processes that may die while they work on one file before it is given up."""
_PROJECT: TypeAdapter[str] = TypeAdapter(Project)
_KEY: TypeAdapter[str] = TypeAdapter(Plain)
KEY_LENGTH = 2048


class Unreadable(KbError):
    """The file in the zone cannot be read."""


class StillWritten(KbError):
    """The file changed while it was read."""


@dataclass(frozen=True)
class End:
    """How a job ended: `code` is None when the document is in the index."""

    code: str | None
    reason: str = ""
    stage: str = "ingest"
    source_id: str = ""
    """Of a blocked file, which is not kept: the SHA-256 of its bytes says which one it was."""

    def text(self, taken: Taken, job: UUID | str) -> str | None:
        """What is written beside a file that failed."""
        if self.code is None:
            return None
        now = datetime.now(UTC).isoformat(timespec="seconds")
        lines = (
            ("code", self.code), ("reason", self.reason), ("stage", self.stage),
            ("file", taken.path), ("job", job), ("time", now),
            *([("sha256", self.source_id), ("kept", "no")] if self.source_id else []),
        )  # fmt: skip
        return "".join(f"{name}: {value}\n" for name, value in lines)


INDEXED = End(None)


@dataclass
class Followed:
    """A taken file whose job was begun, or is about to be."""

    taken: Taken
    job: UUID
    end: End | None = None
    sent: bool = False


@dataclass
class Board:
    """The files on their way, by job: several files may wait for one job."""

    files: dict[UUID, list[Followed]] = field(default_factory=dict)

    def add(self, followed: Followed) -> None:
        """Follow a file."""
        self.files.setdefault(followed.job, []).append(followed)

    def move(self, followed: Followed, job: UUID) -> None:
        """The file turned out to belong to another job."""
        self.drop(followed)
        followed.job = job
        self.add(followed)

    def drop(self, followed: Followed) -> None:
        """No longer follow it."""
        rest = [f for f in self.files.pop(followed.job, []) if f is not followed]
        if rest:
            self.files[followed.job] = rest

    def all(self) -> list[Followed]:
        """Every file."""
        return [f for files in self.files.values() for f in files]

    def see(self, envelopes: Iterable[Envelope]) -> None:
        """Events of the log: jobs may end."""
        for envelope in envelopes:
            for followed in self.files.get(envelope.correlation_id, ()):
                if followed.end is not INDEXED:  # what fails beside that changes nothing
                    released = envelope.type == "Released"
                    followed.end = None if released else end_of(envelope) or followed.end


def end_of(envelope: Envelope) -> End | None:
    """The end that an event of a job means for the file; None: it goes on."""
    match envelope.fact():
        case Indexed():
            end = INDEXED
        case Failed() as failed:
            end = End(failed.code, failed.reason, failed.stage)
        case ScanVerdict(verdict="block") as verdict:
            rules = ", ".join(sorted({f.rule for f in verdict.findings}))
            end = End("blocked", f"prompt injection: {rules}", "scanner", verdict.source_id)
        case ScanVerdict(verdict="quarantine") as verdict:
            reason = f"a person decides: kb review show {verdict.version_id}"
            end = End("quarantine", reason, "scanner")
        case Rejected():
            end = End("rejected", "a person refused it", "scanner")
        case _:
            return None
    return end


def project_of(path: str) -> str:
    """The first folder, if its name can be a project's; else `default`."""
    first, inside, _ = path.partition("/")
    try:
        return _PROJECT.validate_python(first) if inside else "default"
    except ValidationError:
        return "default"


def source_key(path: str) -> str:
    """The path below the zone as the name of a source.

    Raises:
        Refusal: `invalid-name`: not UTF-8, with control characters, or too long.
    """
    try:
        path.encode()
        key = _KEY.validate_python(path)
    except (UnicodeEncodeError, ValidationError) as error:
        reason = "a path is UTF-8 without control characters"
        raise Refusal("invalid-name", reason) from error
    if len(key) > KEY_LENGTH:
        raise Refusal("invalid-name", f"a path has at most {KEY_LENGTH} characters")
    return key


class Dropzone:
    """Runs beside the HTTP surface of ingest, in one process of the installation at a time."""

    def __init__(
        self, zone: Zone, event_log: Log, blobs: Blobs, identity: Identity, *, limit: int,
        interval: float,
    ) -> None:  # fmt: skip
        self._zone, self._log, self._blobs, self._identity = zone, event_log, blobs, identity
        self._limit, self._interval = limit, interval
        self._board = Board()

    async def run(self) -> None:
        """Take in what is put into the zone, until cancelled."""
        while True:
            taken = await self._opened()
            if taken is not None:
                break
            await asyncio.sleep(self._interval)
        try:
            async with asyncio.TaskGroup() as tasks:
                start = await self._head()
                for file in taken:
                    self._begun(file)
                tasks.create_task(self._follow(start))
                while True:
                    await self.step()
                    await asyncio.sleep(self._interval)
        finally:
            self._zone.close()

    async def _opened(self) -> list[Taken] | None:
        """What an earlier process had taken. None: another process has the zone, or the folder
        cannot be used (that is logged)."""
        try:
            if not await asyncio.to_thread(self._zone.open):
                return None
            return await asyncio.to_thread(self._zone.recover)
        except OSError as error:
            self._zone.close()
            log.error("dropzone.unusable", folder=str(self._zone.root), error=str(error))
            await asyncio.sleep(30 * self._interval)
            return None

    async def step(self) -> None:
        """One look at everything: what ended, what was not sent yet, what is new."""
        old = iter(self._board.all())
        new = iter(await asyncio.to_thread(self._zone.ripe, time.monotonic()))

        async def work() -> None:
            for followed in old:
                if not await self._advance(followed):
                    return
            for path in new:
                taken = await asyncio.to_thread(self._zone.take, path)
                if taken is not None and not await self._advance(self._begun(taken)):
                    return

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    def _begun(self, taken: Taken) -> Followed:
        followed = Followed(taken, taken.job)
        self._board.add(followed)
        return followed

    async def _advance(self, followed: Followed) -> bool:
        """Bring one file on; what cannot be done now is tried with the next look.

        False: a store is away, so the others need not be tried now.
        """
        try:
            if not followed.sent and followed.end is None:
                await self._send(followed)
            await self._settle(followed)
        except AWAY as error:
            log.warning("dropzone.away", error=f"{type(error).__name__}: {error}"[:300])
            return False
        except OSError as error:
            job, why = str(followed.job), error.strerror
            log.warning("dropzone.cannot_move", job=job, error=why)  # names are words
        return True

    async def _head(self) -> int:
        while True:
            with suppress(*AWAY):
                return await self._log.head()
            await asyncio.sleep(self._interval)

    async def _follow(self, after: int) -> None:
        while True:
            with suppress(*AWAY):
                async for batch in self._log.follow(after):
                    self._board.see(batch)
                    after = batch[-1].position if batch else after
            await asyncio.sleep(self._interval)

    async def _send(self, followed: Followed) -> None:
        """Begin the file's job, unless an earlier process did; its end may be known at once."""
        taken = followed.taken
        if taken.tries > TRIES:
            followed.end = End("internal-error", "the service ended while it worked on this file")
            return
        begun = await self._log.job(taken.job)
        if begun is None:
            await asyncio.to_thread(self._zone.count_try, taken)
            accepted = await self._taken_in(followed)
            if accepted is None:
                return
            if accepted.reinstated:
                followed.end = INDEXED
            if UUID(accepted.job_id) != followed.job:
                self._board.move(followed, UUID(accepted.job_id))
        followed.sent = True
        await self._catch_up(followed)

    async def _catch_up(self, followed: Followed) -> None:
        """What the log says of the job by now; of one that gave way to a retry, of that."""
        begun = await self._log.job(followed.job)
        if begun is None:
            return
        ids = begun.data["document_id"], begun.data["version_id"]
        newest = (await load_life(self._log, *ids)).last.job
        if newest != followed.job:
            followed.end = None
            self._board.move(followed, newest)
        of_job = await self._log.streams([f"document-{ids[0]}", f"version-{ids[1]}"])
        self._board.see(e for e in of_job if e.correlation_id == followed.job)

    async def _taken_in(self, followed: Followed) -> Accepted | None:
        """The decision about the file; None: it ended at the door, or went back to its place."""
        try:
            return await self._accept(followed.taken)
        except Refusal as refusal:
            followed.end = End(refusal.code, refusal.reason)
        except Unreadable as error:
            followed.end = End("unreadable", str(error))
        except StillWritten:
            await self._put_back(followed)
        return None

    async def _accept(self, taken: Taken) -> Accepted:
        key, name = source_key(taken.path), checked_name(taken.path.rpartition("/")[2])
        if taken.stamp.size > self._limit:
            raise Refusal("too-large", f"more than {self._limit} bytes", status=413)

        def check(head: bytes) -> None:
            readable_type(head, name)

        async def confirm() -> None:
            if await asyncio.to_thread(self._zone.is_changed, taken):
                raise StillWritten(taken.path)

        stored = await self._blobs.put_stream(
            _content(taken), limit=self._limit, check=check, confirm=confirm
        )
        media_type = readable_type(stored.head, name)
        offer = Offer(
            project=project_of(taken.path),
            source_id=stored.sha256,
            name=name,
            media_type=media_type,
            size_bytes=stored.size_bytes,
            valid_from=stated_valid_from(stored.head, media_type),
            source=key,
            lane="bulk",
            via="dropzone",
            actor="dropzone",
            job=taken.job,
        )
        accepted = await accept(offer, self._log, self._identity)
        await check_bytes(accepted, self._log, self._blobs)
        return accepted

    async def _settle(self, followed: Followed) -> None:
        """Move a file whose end is known to its last place."""
        if followed.end is not None and followed.end.code == "cancelled":
            await self._catch_up(followed)
        if followed.end is None:
            return
        taken, end = followed.taken, followed.end
        keep = not end.source_id
        if not (keep and end.code) and await asyncio.to_thread(self._zone.is_changed, taken):
            await self._put_back(followed)  # written once more after it was taken: a new version
            return
        if keep and await self._is_erased(followed):
            await asyncio.to_thread(self._zone.discard, taken)
            self._board.drop(followed)
            return
        text = end.text(taken, followed.job)
        await asyncio.to_thread(self._zone.settle, taken, text, keep=keep)
        self._board.drop(followed)
        log.info("dropzone.settled", job=str(followed.job), code=end.code)  # names are words

    async def _is_erased(self, followed: Followed) -> bool:
        """Was the document erased before its file was put away? Nothing is left of it then."""
        begun = await self._log.job(followed.job)
        if begun is None:
            return False
        ids = begun.data["document_id"], begun.data["version_id"]
        return (await load_life(self._log, *ids)).erased

    async def _put_back(self, followed: Followed) -> None:
        if await asyncio.to_thread(self._zone.put_back, followed.taken):
            self._board.drop(followed)
        else:
            reason = "it changed while it was read, and another file came to its place"
            followed.end = End("changed", reason)


async def _content(taken: Taken) -> AsyncIterator[bytes]:
    """The bytes of a file.

    Raises:
        Unreadable: it cannot be opened or read.
    """
    try:
        handle = await asyncio.to_thread(os.open, taken.file, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    try:
        while chunk := await asyncio.to_thread(_read, handle):
            yield chunk
    finally:
        os.close(handle)


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, CHUNK)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error


def open_dropzone(
    settings: DropzoneSettings, event_log: Log, blobs: Blobs, identity: Identity, limit: int
) -> Dropzone | None:
    """The drop-zone of the settings; None: there is none."""
    if settings.dropzone is None:
        return None
    zone = Zone(settings.dropzone, settings.dropzone_quiet)
    interval = settings.dropzone_interval
    return Dropzone(zone, event_log, blobs, identity, limit=limit, interval=interval)
