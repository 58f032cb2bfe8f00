"""The parse cell: what reads untrusted documents, in processes of its own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from contracts.artifacts import ParsedDocument
from kernel.errors import Refusal
from kernel.large import OneLarge
from kernel.media import SUPPORTED, unread
from services.converter.answer import Answer
from services.converter.language import Policy
from services.converter.outcome import BodyOutcome, ParseOutcome, recalled
from services.converter.parsers import parser_for
from services.converter.process import Worker
from services.converter.settings import ConverterSettings

_PATIENCE_SECONDS = 5.0


class ParseCell:
    """Parses, and makes bodies of parses, one document at a time in one child process.

    A small document need not wait for a long one: when the child has been at work on another for
    five seconds, it goes to a second child, which ends when there is nothing to do. Two large ones
    are never under work together.
    """

    def __init__(
        self, settings: ConverterSettings, *, module: str = "services.converter.child"
    ) -> None:
        self._limits, self._options = settings.limits, settings.parse_options
        self._main = Worker(module, settings.limits)
        self._side = Worker(module, settings.limits)
        self._large = OneLarge()

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
        """End the children; what is under work is waited for."""
        await self._main.close()
        await self._side.close()

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
            Retry: the parser cannot start, the disk is full, or another large document is under
                work.
        """
        self._admit(path, media_type)
        answer = await self._ask(
            "parse", path,
            media_type=media_type,
            options=self._options.model_dump(mode="json"),
            policy=policy.told if policy else None,
        )  # fmt: skip
        return await asyncio.to_thread(_made, ParseOutcome, answer, self.parser_for(media_type))

    async def recall(self, path: Path) -> ParsedDocument:
        """A parse that was stored at `path`, without its text.

        Raises:
            Refusal: `parse-timeout`, `parse-memory`, `parse-crash`.
            Retry: as `parse`.
        """
        with await self._ask("recall", path) as answer:
            return recalled(answer)

    async def canonical(self, path: Path, fallback_title: str) -> BodyOutcome:
        """The body of the parse at `path`, as `domain.canonical` makes it.

        Raises:
            Refusal: as `recall`.
            Retry: as `parse`.
        """
        return _made(BodyOutcome, await self._ask("canonical", path, title=fallback_title))

    def check(self, size: int) -> None:
        """Before a file of so many bytes is fetched.

        Raises:
            Retry: another large document is under work.
        """
        self._large.check(size)

    def _admit(self, path: Path, media_type: str) -> None:
        size = path.stat().st_size
        if size == 0:
            raise Refusal("empty-document", "the file is empty")
        if size > self._limits.file_bytes:
            raise Refusal("too-large", f"{size} bytes, at most {self._limits.file_bytes}")
        if media_type not in SUPPORTED:
            raise Refusal("unsupported-media-type", unread(media_type), status=415)

    async def _ask(self, task: str, path: Path, **more: Any) -> Answer:
        size, whole = _known(path)
        request = {"task": task, "path": whole, **more}
        try:
            async with self._worker(size) as worker:
                return await worker.ask(request)
        finally:
            if not self._main.users and not self._side.users:
                await self._side.close()

    @contextlib.asynccontextmanager
    async def _worker(self, size: int) -> AsyncIterator[Worker]:
        """Who is to work on a document of so many bytes."""
        async with self._large.turn(size) as large:
            yield self._main if large or await self._soon() else self._side

    async def _soon(self) -> bool:
        """Whether the first child is free, or becomes so while one may well wait."""
        # Of those who wait together one is next, and it may take long: the others look again.
        while self._main.users:
            waited = asyncio.get_running_loop().time() - self._main.busy_since
            if not await self._main.free(_PATIENCE_SECONDS - waited):
                return False
        return True


def _known(path: Path) -> tuple[int, str]:
    """Bytes of a file, and its path as the child can open it, who is in another folder."""
    return path.stat().st_size, str(path.resolve())


Outcome = TypeVar("Outcome")


def _made(kind: Callable[..., Outcome], answer: Answer, *more: Any) -> Outcome:
    """What the child says is checked: it may have been taken over by a document."""
    try:
        return kind(answer, *more)
    except BaseException:
        answer.close()
        raise
