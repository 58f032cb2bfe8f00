"""One warm child process for untrusted documents, watched and replaced by its parent."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

import psutil

from contracts.artifacts import ParsedDocument
from kernel.errors import Refusal, Retry
from kernel.media import SUPPORTED, unread
from services.converter.answer import Answer
from services.converter.child import NO_ROOM, PART, READY
from services.converter.language import Policy
from services.converter.outcome import BodyOutcome, ParseOutcome, recalled
from services.converter.parsers import parser_for
from services.converter.settings import ConverterSettings, Limits

_ROOT = Path(__file__).resolve().parents[2]
_POLL_SECONDS = 0.1
_START_SECONDS = 120
_HEADER_BYTES = 1024 * 1024
_FATAL = frozenset({"parse-crash", "parse-memory"})
_BROKEN = (OSError, EOFError, KeyError, ValueError, TypeError, asyncio.LimitOverrunError)
_ANSWER = "answer"


class ParseCell:
    """Parses, and makes bodies of parses, one document at a time in a child process; callers queue.

    The child is started with the first document, kept warm, and replaced after
    `limits.recycle_after` documents, when it has grown, and after every failure of its own. A
    document that crashes or starves a child which had parsed others gets one try in a fresh one,
    so that it does not pay for what another left behind.
    """

    def __init__(
        self, settings: ConverterSettings, *, module: str = "services.converter.child"
    ) -> None:
        self._limits, self._options = settings.limits, settings.parse_options
        self._module = module
        self._turn = asyncio.Lock()
        self._child: _Child | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the child; a parse under way is waited for."""
        async with self._turn:
            await self._drop()

    def parser_for(self, media_type: str) -> str:
        """Name of the parser that `parse` will use: part of the key of a parse cache."""
        return parser_for(media_type, self._options)

    async def parse(
        self, path: Path, media_type: str, policy: Policy | None = None
    ) -> ParseOutcome:
        """Parse the file at `path`, and judge its language if there is a `policy`.

        Raises:
            Refusal: `empty-document`, `too-large`, `unsupported-media-type`,
                `encrypted-document`, `corrupt-document`, `decompression-bomb`, `too-many-pages`,
                `too-deep`, `invalid-encoding`, `no-text`, `language-not-accepted`,
                `parse-timeout`, `parse-memory`, `parse-crash`.
            Retry: the parser cannot start, or the disk is full.
        """
        request = {
            "task": "parse",
            "path": self._admitted(path, media_type),
            "media_type": media_type,
            "options": self._options.model_dump(mode="json"),
            "policy": policy.told if policy else None,
        }
        answer, parser = await self._ask(request), self.parser_for(media_type)
        return await asyncio.to_thread(_made, ParseOutcome, answer, parser)

    async def recall(self, path: Path) -> ParsedDocument:
        """A parse that was stored at `path`, without its text.

        Raises:
            Refusal: `parse-timeout`, `parse-memory`, `parse-crash`.
            Retry: as `parse`.
        """
        answer = await self._ask({"task": "recall", "path": _whole(path)})
        with answer:
            return recalled(answer)

    async def canonical(self, path: Path, fallback_title: str) -> BodyOutcome:
        """The body of the parse at `path`, as `domain.canonical` makes it.

        Raises:
            Refusal: as `recall`.
            Retry: as `parse`.
        """
        request = {"task": "canonical", "path": _whole(path), "title": fallback_title}
        return _made(BodyOutcome, await self._ask(request))

    def _admitted(self, path: Path, media_type: str) -> str:
        size = path.stat().st_size
        if size == 0:
            raise Refusal("empty-document", "the file is empty")
        if size > self._limits.file_bytes:
            raise Refusal("too-large", f"{size} bytes, at most {self._limits.file_bytes}")
        if media_type not in SUPPORTED:
            raise Refusal("unsupported-media-type", unread(media_type), status=415)
        return _whole(path)

    async def _ask(self, request: dict[str, Any]) -> Answer:
        async with self._turn:
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
                raise Retry(f"parsing: {header.get('reason', 'no room')}")
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


def _whole(path: Path) -> str:
    """As the child can open it, who is in another folder."""
    return str(path.resolve())


Outcome = TypeVar("Outcome")


def _made(kind: Callable[..., Outcome], answer: Answer, *more: Any) -> Outcome:
    """What the child says is checked: it may have been taken over by a document."""
    try:
        return kind(answer, *more)
    except BaseException:
        answer.close()
        raise


def _refusal(header: dict[str, Any]) -> Refusal:
    code = re.sub("[^a-z0-9-]", "-", str(header["code"])[:60])
    return Refusal(code, str(header.get("reason", ""))[:300])


class _Child:
    """A running child: asked one thing at a time."""

    def __init__(self, process: asyncio.subprocess.Process, home: Any) -> None:
        self._process, self._home = process, home
        self._watched = psutil.Process(process.pid)
        self._advanced = 0.0
        self.served = 0

    @classmethod
    async def start(cls, module: str, limits: Limits) -> "_Child":
        home = tempfile.TemporaryDirectory(prefix="kb-parse-", ignore_cleanup_errors=True)
        try:
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
        """
        # Opened before the child knows it, and without a name afterwards: it stays what it is.
        path = Path(self._home.name) / _ANSWER
        file = await asyncio.to_thread(path.open, "w+b")
        answer: Answer | None = None
        try:
            header = await self._header({**request, "answer": str(path)}, limits)
            self.served += 1
            if "code" not in header:
                answer = _answer(header, file, limits.output_bytes)
            return header, answer
        except _BROKEN as error:
            raise await self._fate() from error
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)
            if answer is None:
                file.close()

    async def _header(self, request: dict[str, Any], limits: Limits) -> dict[str, Any]:
        now = asyncio.get_running_loop().time
        self._advanced = started = now()
        reply = asyncio.ensure_future(self._exchange(request))
        try:
            while not reply.done():
                if self._memory() > limits.memory_bytes:
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

    def _memory(self) -> int:
        """Resident bytes of the child and of the programs it runs."""
        total = 0
        with contextlib.suppress(psutil.Error):
            for process in (self._watched, *self._watched.children(recursive=True)):
                total += process.memory_info().rss
        return total

    async def _fate(self) -> Refusal:
        """Why the child stopped answering."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._process.wait()
        code = self._process.returncode
        if code == -signal.SIGXCPU:
            return Refusal("parse-timeout", "too much processor time")
        if code == -signal.SIGKILL:
            return Refusal("parse-memory", "killed by the system, most likely for memory")
        return Refusal("parse-crash", f"the parser ended with {code}")

    def grown(self, limits: Limits) -> bool:
        """Whether it is time for a fresh process."""
        return self.served >= limits.recycle_after or self._memory() > limits.recycle_bytes

    async def end(self) -> None:
        """Kill the child with everything it started, and clean up."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        await asyncio.to_thread(self._home.cleanup)


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
