"""A child process for untrusted documents: asked one thing at a time, watched, and replaced."""

import asyncio
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import psutil

from kernel.errors import Refusal, Retry
from services.converter.answer import Answer
from services.converter.child import NO_ROOM, PART, READY
from services.converter.memory import SHORT
from services.converter.settings import Limits
from services.converter.temporary import temporary_folder

_ROOT = Path(__file__).resolve().parents[2]
_POLL_SECONDS = 0.1
_PROGRAMS_SECONDS = 0.5
"""How often the programs that a child runs are looked for: that means all processes there are."""

_START_SECONDS = 120
_HEADER_BYTES = 1024 * 1024
_NEAR = 0.75
"""Who crashes with so much of its memory in use most likely crashed for want of it."""

_FATAL = frozenset({"parse-crash", "parse-memory"})
_BROKEN = (OSError, EOFError, KeyError, ValueError, TypeError, asyncio.LimitOverrunError)
_ANSWER = "answer"
_HOME = "kb-child-"


class Worker:
    """Works on one document at a time in a child process; callers queue.

    The child is started with the first document, kept warm, and replaced after
    `limits.recycle_after` documents, when it has grown, and after every failure of its own. A
    document that crashes or starves a child which had parsed others gets one try in a fresh one,
    so that it does not pay for what another left behind.
    """

    def __init__(self, module: str, limits: Limits) -> None:
        self._module, self._limits = module, limits
        self._turn = asyncio.Lock()
        self._child: _Child | None = None
        self.users = 0
        """Callers that are served or wait."""
        self.busy_since = 0.0
        """Since when they are at work on one document, by the clock of the loop."""

    async def ask(self, request: dict[str, Any]) -> Answer:
        """What the child answers.

        Raises:
            Refusal: whatever the child refuses, `parse-timeout`, `parse-memory`, `parse-crash`.
            Retry: the child cannot start, or the disk is full.
        """
        if not self.users:
            self.busy_since = asyncio.get_running_loop().time()
        self.users += 1
        try:
            async with self._turn:
                self.busy_since = asyncio.get_running_loop().time()
                return await self._ask(request)
        finally:
            self.users -= 1

    async def free(self, seconds: float) -> bool:
        """Wait until nobody is served; False if that takes too long."""
        try:
            async with asyncio.timeout(max(0.0, seconds)), self._turn:
                return True
        except TimeoutError:
            return False

    async def close(self) -> None:
        """End the child; a document under work is waited for."""
        async with self._turn:
            await self._drop()

    async def _ask(self, request: dict[str, Any]) -> Answer:
        child = await self._ready()
        used = child.served > 0
        try:
            return await self._try(child, request)
        except Refusal as refusal:
            if not used or refusal.code not in _FATAL:
                raise
        return await self._try(await self._ready(), request)

    async def _try(self, child: "_Child", request: dict[str, Any]) -> Answer:
        """One attempt; a child that did not answer properly is never used again."""
        healthy = False
        try:
            header, answer = await child.ask(request, self._limits)
            if header.get("code") == NO_ROOM:
                raise Retry(
                    f"parsing: the disk is full; temporary folder {temporary_folder()}", after=5
                )
            if header.get("code") in _FATAL:
                raise _refusal(header)
            healthy = not child.grown(self._limits)
            if answer is None:
                raise _refusal(header)
            return answer
        finally:
            if not healthy:
                await self._drop()

    async def _ready(self) -> "_Child":
        if self._child is None or not self._child.alive:
            await self._drop()
            self._child = await _Child.start(self._module, self._limits)
        return self._child

    async def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            # Shielded: a caller that is cancelled while we clean up must not leak a process.
            await asyncio.shield(child.end())


def _refusal(header: dict[str, Any]) -> Refusal:
    code = re.sub("[^a-z0-9-]", "-", str(header["code"])[:60])
    return Refusal(code, str(header.get("reason", ""))[:300])


class _Child:
    """A running child: asked one thing at a time."""

    def __init__(self, process: asyncio.subprocess.Process, home: "_Home") -> None:
        self._process, self._home = process, home
        self._watched = psutil.Process(process.pid)
        self._programs: list[psutil.Process] = []
        self._advanced = self._looked = 0.0
        self._most = 0
        self.served = 0

    @classmethod
    async def start(cls, module: str, limits: Limits) -> "_Child":
        with _given():
            await asyncio.to_thread(_sweep)
            home = _Home()
        try:
            with _given():
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-P", "-m", module,
                    str(limits.memory_bytes), str(limits.cpu_seconds),
                    stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL, cwd=home.name, env=_environment(home.name),
                    start_new_session=True, limit=_HEADER_BYTES,
                )  # fmt: skip
        except BaseException:
            home.cleanup()
            raise
        child = cls(process, home)
        try:
            await child.come_up()
        except BaseException:
            await asyncio.shield(child.end())
            raise
        return child

    async def come_up(self) -> None:
        """Wait until the child says that it serves.

        Raises:
            Retry: it cannot start: the installation's fault, not a document's.
        """
        assert self._process.stdout  # noqa: S101 - a pipe
        try:
            async with asyncio.timeout(_START_SECONDS):
                if await self._process.stdout.readline() == READY:
                    return
        except TimeoutError as error:
            raise Retry(f"the parser did not start within {_START_SECONDS} s") from error
        raise Retry(f"the parser cannot start: it ended with {await self._process.wait()}")

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def ask(
        self, request: dict[str, Any], limits: Limits
    ) -> tuple[dict[str, Any], Answer | None]:
        """Send `request`, return the header of the answer and, if all went well, the answer.

        Raises:
            Refusal: `parse-timeout`, `parse-memory` or `parse-crash`; the child is unusable then.
            Retry: no file can be made for the answer.
        """
        # Opened before the child knows it, and without a name afterwards: it stays what it is.
        path = Path(self._home.name) / _ANSWER
        with _given():
            file = await asyncio.to_thread(path.open, "w+b")
        answer: Answer | None = None
        try:
            header = await self._header({**request, "answer": str(path)}, limits)
            self.served += 1
            if header.get("code") == "parse-crash" and self._near(limits):
                header = {"code": "parse-memory", "reason": f"{header['reason']}, near the limit"}
            if "code" not in header:
                answer = _answer(header, file, limits.output_bytes)
            return header, answer
        except _BROKEN as error:
            raise await self._fate(limits) from error
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)
            if answer is None:
                file.close()

    async def _header(self, request: dict[str, Any], limits: Limits) -> dict[str, Any]:
        now = asyncio.get_running_loop().time
        self._advanced = self._looked = started = now()
        self._most = 0
        reply = asyncio.ensure_future(self._exchange(request))
        try:
            while not reply.done():
                self._look(now())
                self._most = max(self._most, self._memory())
                if self._most > limits.memory_bytes:
                    raise Refusal("parse-memory", f"over {limits.memory_bytes} bytes of memory")
                if now() - self._advanced > limits.wall_seconds:
                    raise Refusal("parse-timeout", f"nothing done for {limits.wall_seconds} s")
                if now() - started > limits.total_seconds:
                    raise Refusal("parse-timeout", f"over {limits.total_seconds} s")
                await asyncio.wait({reply}, timeout=_POLL_SECONDS)
            return reply.result()
        finally:
            reply.cancel()
            with contextlib.suppress(asyncio.CancelledError, *_BROKEN):
                await reply

    async def _exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout  # noqa: S101 - both are pipes
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        await self._process.stdin.drain()
        while (line := await self._process.stdout.readuntil(b"\n")) == PART:
            self._advanced = asyncio.get_running_loop().time()
            # A child that says nothing else must not keep us from looking at the clock.
            await asyncio.sleep(0)
        header: Any = json.loads(line)
        if not isinstance(header, dict):
            raise ValueError("no header")
        return header

    def _look(self, now: float) -> None:
        """Find the programs that the child runs, not for every short document."""
        if now - self._looked > _PROGRAMS_SECONDS:
            self._looked = now
            with contextlib.suppress(psutil.Error):
                self._programs = self._watched.children(recursive=True)

    def _memory(self) -> int:
        """Resident bytes of the child and of the programs it runs, as far as they are known."""
        total = 0
        for process in (self._watched, *self._programs):
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        return total

    def _near(self, limits: Limits) -> bool:
        """Whether the last document took nearly all the memory that one may."""
        return self._most > _NEAR * limits.memory_bytes

    async def _fate(self, limits: Limits) -> Refusal:
        """Why the child stopped answering."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._process.wait()
        code = self._process.returncode
        if code == -signal.SIGXCPU:
            return Refusal("parse-timeout", "too much processor time")
        if code == -signal.SIGKILL:
            return Refusal("parse-memory", "killed by the system, most likely for memory")
        if code == SHORT:
            return Refusal("parse-memory", "an allocation failed")
        if self._near(limits):
            return Refusal("parse-memory", f"the parser ended with {code}, near the limit")
        return Refusal("parse-crash", f"the parser ended with {code}")

    def grown(self, limits: Limits) -> bool:
        """Whether it is time for a fresh process; the programs of a document end with it."""
        self._programs = []
        return self.served >= limits.recycle_after or self._memory() > limits.recycle_bytes

    async def end(self) -> None:
        """Kill the child with everything it started, and clean up."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        await asyncio.to_thread(self._home.cleanup)


class _Home:
    """The folder of one child. It is locked while its owner lives, and what a killed owner left is
    removed when the next one is made: a parse may lie there, of a document that is deleted since.
    """

    def __init__(self) -> None:
        # Locked before it has a name that anybody looks for.
        young = Path(tempfile.mkdtemp(prefix=f"new-{_HOME}", dir=temporary_folder()))
        self._lock = os.open(young, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.name = str(young.rename(young.with_name(young.name.removeprefix("new-"))))

    def cleanup(self) -> None:
        """Remove it."""
        shutil.rmtree(self.name, ignore_errors=True)
        os.close(self._lock)


def _sweep() -> None:
    for home in temporary_folder().glob(f"{_HOME}*"):
        # Not a folder, not ours, or gone meanwhile; or locked: its owner lives.
        with contextlib.suppress(OSError):
            _remove_if_left(home)


def _remove_if_left(home: Path) -> None:
    lock = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(home, ignore_errors=True)
    finally:
        os.close(lock)


@contextlib.contextmanager
def _given() -> Iterator[None]:
    """What the machine does not give (disk space, a process) is no document's fault."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise Retry(f"parsing: {why}; temporary folder {temporary_folder()}", after=5) from error


def _answer(header: dict[str, Any], file: BinaryIO, most: int) -> Answer:
    sizes = [int(size) for size in header["sizes"]]
    if sum(sizes) > most:
        raise ValueError("too large an answer")
    return Answer(file, sizes)


def _environment(home: str) -> dict[str, str]:
    """Nothing of the parent's environment but the path and the run: it may hold secrets."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        # What belongs to which stack: a supervisor that comes after a crash looks for it.
        **({"KB_RUN_ID": os.environ["KB_RUN_ID"]} if "KB_RUN_ID" in os.environ else {}),
        "PYTHONPATH": str(_ROOT),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        "HOME": home,
        "TMPDIR": home,
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "OMP_THREAD_LIMIT": "1",
    }
