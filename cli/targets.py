"""Where a replay goes: standard output, a file, a subject of the bus."""

import fcntl
import hashlib
import json
import os
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cli.client import bus
from cli.datadir import DataDir, write_private
from cli.output import CliError, clean
from kernel.provision import OUTSIDE_REPLAYS

ANSWER_SECONDS = 30
"""Longest wait until the bus has what was sent."""
BLOCK = 1024 * 1024
SUBJECT_BYTES = 255
"""Of a subject, at most."""
_BEGIN = b'{"specversion": '
"""So begins the line of an event."""
_TOKEN = re.compile(r"[^\s.*>\x00-\x1f\x7f]+\Z")


@dataclass(frozen=True)
class Reached:
    """How far an earlier replay came: `events` of them, the last one at `position`."""

    events: int
    position: int
    event_id: str | None = None


NOWHERE = Reached(0, 0)


class Target(Protocol):
    """Takes whole lines, each a CloudEvent with its newline."""

    label: str

    async def open(self) -> Reached:
        """Find out how far an earlier replay came; nothing is changed yet."""

    async def go_on(self) -> None:
        """What is there is the begin of this replay."""

    async def take(self, lines: bytes, last: int) -> None:
        """One or more lines; the last one is the event at position `last`."""

    async def close(self) -> None:
        """What was taken is there to stay."""


class Output:
    """Standard output. A terminal gets no control characters."""

    label = "standard output"

    async def open(self) -> Reached:
        """Nothing was there before."""
        return NOWHERE

    async def go_on(self) -> None:
        """Nothing to do."""

    async def take(self, lines: bytes, last: int) -> None:
        """Write them.

        Raises:
            CliError: the disk behind it is full.
        """
        if sys.stdout.isatty():
            lines = clean(lines.decode()).encode()
        try:
            sys.stdout.buffer.write(lines)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CliError("cannot write standard output", error.strerror or str(error)) from error

    async def close(self) -> None:
        """Nothing stays in the buffer."""
        sys.stdout.buffer.flush()


class File:
    """A file of JSON lines. It ends with a whole line whatever happens; only a crash leaves a torn
    one, which the next `--resume` cuts off."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.label = str(path)
        self._path, self._resume = path, resume
        self._fd = -1
        self._whole = 0
        self._end = 0
        self._regular = True

    async def open(self) -> Reached:
        """Make the file, or find its last whole line.

        Raises:
            CliError: it is there and `--resume` was not given, or it cannot be written, or it is no
                replay, or another replay writes to it.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            self._regular = not self._path.exists() or stat.S_ISREG(self._path.stat().st_mode)
            if not self._regular:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
                return NOWHERE
            self._fd = os.open(self._path, flags if self._resume else flags | os.O_EXCL, 0o666)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileExistsError as error:
            raise CliError(
                f"{self._path} is there already", "--resume goes on with it; or name another file"
            ) from error
        except BlockingIOError as error:
            raise CliError(f"{self._path} is in use", "another replay writes to it") from error
        except OSError as error:
            raise self._failed(error) from error
        return self._reached()

    async def go_on(self) -> None:
        """Cut a torn line off."""
        if self._regular:
            self._end = self._whole
            os.ftruncate(self._fd, self._end)
            os.lseek(self._fd, self._end, os.SEEK_SET)

    async def take(self, lines: bytes, last: int) -> None:
        """Append them.

        Raises:
            CliError: not all of them could be written: the disk is full, or the file is too large.
        """
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            raise self._failed(error) from error
        self._end += len(lines)

    async def close(self) -> None:
        """A line that is not whole is cut off, and the disk has the rest."""
        if self._fd < 0:
            return
        try:
            if self._regular:
                os.ftruncate(self._fd, self._end)
                os.fsync(self._fd)
            os.close(self._fd)
        except OSError as error:
            raise self._failed(error) from error
        finally:
            self._fd = -1

    def _reached(self) -> Reached:
        """Read the file once: how many lines, and the last one of them."""
        events, end, size = 0, 0, 0
        while block := os.pread(self._fd, BLOCK, size):
            events += block.count(b"\n")
            if (at := block.rfind(b"\n")) >= 0:
                end = size + at + 1
            size += len(block)
        self._whole, self._end = end, size
        if not events:
            self._check_torn(os.pread(self._fd, BLOCK, 0))
            return NOWHERE
        try:
            line = json.loads(self._last_line(end))
            return Reached(events, int(line["position"]), str(line["id"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CliError(f"{self._path} is no replay", "its last line is no event") from error

    def _check_torn(self, torn: bytes) -> None:
        if torn.strip(b"\x00") and not torn.startswith(_BEGIN[: len(torn)]):
            raise CliError(f"{self._path} is no replay", "it begins with no event")

    def _last_line(self, end: int) -> bytes:
        tail, start = b"", end
        while start > 0 and b"\n" not in tail[:-1]:
            step = min(BLOCK, start)
            start -= step
            tail = os.pread(self._fd, step, start) + tail
        return tail[:-1].rpartition(b"\n")[2]

    def _failed(self, error: OSError) -> CliError:
        reason = error.strerror or str(error)
        more = ""
        if self._end and self._regular:
            more = "; all lines in it are whole, and --resume goes on with it"
        return CliError(f"cannot write {self._path}", f"{reason}{more}")


class Subject:
    """A subject of NATS. A mark in the data folder says how far a replay to it came.

    An event is published before the mark moves, so after a crash some come twice: their header
    `Nats-Msg-Id`, the event's id, tells (a JetStream stream drops the second ones by itself).
    """

    def __init__(
        self, data: DataDir, subject: str, asked: Any, *, resume: bool, stored: bool
    ) -> None:
        self.label = f"subject {subject}"
        self._data, self._subject, self._resume, self._stored = data, subject, resume, stored
        about = json.dumps([subject, asked], sort_keys=True, default=str).encode()
        self._mark = data.run / f"replay-{hashlib.sha256(about).hexdigest()[:16]}.json"
        self._events = 0
        self._refused: list[str] = []
        self._nats: Any = None

    async def open(self) -> Reached:
        """Connect, and read the mark.

        Raises:
            CliError: there is no bus, or it is not reachable.
        """
        import nats
        import nats.errors

        url = _bus(self._data, self._subject)
        try:
            self._nats = await nats.connect(
                url, name="kb-replay", allow_reconnect=False, error_cb=self._on_error,
                connect_timeout=5,
            )  # fmt: skip
        except (OSError, TimeoutError, nats.errors.Error) as error:
            detail = str(error) or type(error).__name__
            raise CliError("the bus does not answer", detail) from error
        if not self._resume or not self._mark.exists():
            return NOWHERE
        found = json.loads(self._mark.read_text("utf-8"))
        self._events = found["events"]
        return Reached(found["events"], found["position"], found["event_id"])

    async def go_on(self) -> None:
        """Nothing to do."""

    async def take(self, lines: bytes, last: int) -> None:
        """Publish them, and move the mark when the server has them all.

        Raises:
            CliError: the server refused one, or went away, or no stream stores the subject.
        """
        import nats.errors
        import nats.js.errors

        events = [json.loads(line) for line in lines.splitlines()]
        try:
            if self._stored:
                await self._publish_stored(events)
            else:
                for payload, headers in map(_message, events):
                    await self._nats.publish(self._subject, payload, headers=headers)
                # nats-py sends the PING of a flush before what waits to be sent (2.16): the second
                # one comes behind it, and so does its answer behind what the server refused.
                await self._nats.flush(ANSWER_SECONDS)
                await self._nats.flush(ANSWER_SECONDS)
        except nats.js.errors.NoStreamResponseError as error:
            raise CliError("no stream stores the subject", self._subject) from error
        except nats.errors.TimeoutError as error:
            asked = "no stream answered" if self._stored else "no answer"
            raise CliError("the bus did not take the events", asked) from error
        except (nats.errors.Error, nats.js.errors.Error, OSError, TimeoutError) as error:
            detail = str(error) or type(error).__name__
            raise CliError("the bus did not take the events", detail) from error
        if self._refused:
            raise CliError("the bus refused the events", self._refused[0])
        self._events += len(events)
        self._data.run.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark = {"events": self._events, "position": last, "event_id": events[-1]["id"]}
        write_private(self._mark, json.dumps({"subject": self._subject, **mark}))

    async def close(self) -> None:
        """Leave the bus."""
        if self._nats is not None:
            await self._nats.close()

    async def _publish_stored(self, events: list[dict[str, Any]]) -> None:
        """In order: one is stored before the next is sent, so no failure leaves a gap behind it."""
        stream = self._nats.jetstream(timeout=10)
        for payload, headers in map(_message, events):
            await stream.publish(self._subject, payload, headers=headers)

    async def _on_error(self, error: Exception) -> None:
        self._refused.append(str(error))


def _message(event: dict[str, Any]) -> tuple[bytes, Any]:
    headers = {
        "Nats-Msg-Id": event["id"],
        "content-type": "application/json",
        "ce-id": event["id"],
        "ce-type": event["type"],
        "kb-position": str(event["position"]),
    }
    return json.dumps(event, ensure_ascii=False).encode(), headers


def check_subject(subject: str) -> None:
    """Is it one that a replay may go to?

    Raises:
        CliError: it is none, or it is a subject of the events themselves or of the server.
    """
    tokens = subject.split(".")
    if len(subject.encode()) > SUBJECT_BYTES or not all(map(_TOKEN.match, tokens)):
        raise CliError("--subject is no subject", "words with dots between, no * and no >")
    if tokens[:2] == ["kb", "evt"]:
        raise CliError(
            "--subject is of the events themselves", "only the relay publishes kb.evt…: a replay "
            f"there would be new events to whoever listens; take {OUTSIDE_REPLAYS}…",
        )  # fmt: skip
    if subject[0] in "$_" or tokens[:2] == ["KB", "API"]:
        raise CliError("--subject is the server's own", subject)


def _bus(data: DataDir, subject: str) -> str:
    """Address of the bus, with the user that may publish replays.

    Raises:
        CliError: nothing runs here, or the subject is not below that of replays.
    """
    url, ours = bus(data, "replay")
    if ours and not subject.startswith(OUTSIDE_REPLAYS):
        raise CliError(
            f"--subject is not below {OUTSIDE_REPLAYS}", "no other may be published to on this bus"
        )
    return url
