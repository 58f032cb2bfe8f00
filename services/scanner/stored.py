"""Stored texts as they are judged: read, checked against their names, scanned beside the loop."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument
from contracts.events import ScanPolicy, Sha256
from kernel.errors import Refusal
from kernel.large import OneLarge
from kernel.parsed import load
from kernel.projects import Streams, project_settings
from services.scanner.domain import ScanResult
from services.scanner.texts import hidden_of, hidden_of_meta


class Reads(Protocol):
    """What the scanner needs of the blob store; FileNotFoundError if there is no such blob."""

    async def get(self, name: str) -> bytes: ...
    async def size(self, name: str) -> int: ...
    def local_path(self, name: str) -> AbstractAsyncContextManager[Path]: ...


class Judges(Protocol):
    """The scanner's judgement; `version` names everything that it follows from."""

    @property
    def version(self) -> str: ...
    def under(self, policy: ScanPolicy) -> "Judges": ...
    def load(self) -> str: ...
    def judge(self, text: str, hidden: Sequence[HiddenText]) -> ScanResult: ...


class Opinion(Protocol):
    """Somebody who is asked about a text that was found clean."""

    async def on(
        self, text: str, hidden: Sequence[HiddenText], result: ScanResult
    ) -> ScanResult: ...


class LiveFirst:
    """What has just come in goes before what is scanned again."""

    def __init__(self) -> None:
        self._working = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def live(self) -> AsyncIterator[None]:
        """A scan of something new is under way."""
        self._working += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._working -= 1
            if not self._working:
                self._idle.set()

    async def wait(self, patience: float) -> None:
        """Until nothing new is being scanned, or for so many seconds: it must come on, too."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._idle.wait()


class Stored:
    """Judges what the blob store has under a name, and nothing else."""

    def __init__(
        self, blobs: Reads, judge: Judges, large: OneLarge, opinion: Opinion | None = None
    ) -> None:
        self._blobs, self._large, self._opinion = blobs, large, opinion
        self.judge = judge

    async def of(self, log: Streams, project: str) -> "Stored":
        """The same, as a project wants to be scanned."""
        policy = (await project_settings(log, project)).scan
        if policy == "full":
            return self
        return Stored(self._blobs, self.judge.under(policy), self._large, self._opinion)

    async def ruleset(self) -> str:
        """What judges here, in its final name: without its model it has another one."""
        await asyncio.to_thread(self.judge.load)
        return self.judge.version

    async def parse(self, name: Sha256, *, ask: bool = False) -> ScanResult:
        """Of a parse, with hidden text and meta.

        Args:
            name: of its blob.
            ask: for a second opinion, too, if there is anybody to ask.

        Raises:
            Refusal: `text-missing`, `text-changed`: it is not the text that was announced.
            Retry: it is large, and another large document is under work.
        """
        async with self._large.turn(await read_size(self._blobs, name)):
            parsed = await read_parse(self._blobs, name)
            return await self._judged(parsed.markdown, hidden_of(parsed), ask)

    async def hidden(self, name: Sha256) -> ScanResult:
        """Of what is hidden in a parse alone. Raises as `parse`."""
        async with self._large.turn(await read_size(self._blobs, name)):
            return await self._judged("", hidden_of(await read_parse(self._blobs, name)))

    async def body(self, name: Sha256, meta_sha256: Sha256, *, ask: bool = False) -> ScanResult:
        """Of a body with its meta. `ask` and errors as `parse`."""
        async with self._large.turn(await read_size(self._blobs, name)):
            body = (await read_checked(self._blobs, name)).decode()
            meta = BodyMeta.model_validate_json(await read_checked(self._blobs, meta_sha256))
            return await self._judged(body, hidden_of_meta(meta), ask)

    async def together(self, parse: Sha256, body: Sha256, meta_sha256: Sha256) -> ScanResult:
        """Of a body with its meta and with all that is hidden in its parse: one reading where two
        find nothing. Raises as `parse`."""
        async with self._large.turn(await read_size(self._blobs, parse)):
            parsed = await read_parse(self._blobs, parse)
            text = (await read_checked(self._blobs, body)).decode()
            meta = BodyMeta.model_validate_json(await read_checked(self._blobs, meta_sha256))
            return await self._judged(text, (*hidden_of(parsed), *hidden_of_meta(meta)))

    async def _judged(
        self, text: str, hidden: Sequence[HiddenText], ask: bool = False
    ) -> ScanResult:
        """In a thread, so that the heartbeat of the delivery goes on."""
        result = await asyncio.to_thread(self.judge.judge, text, hidden)
        return await self._opinion.on(text, hidden, result) if ask and self._opinion else result


async def read_size(blobs: Reads, name: Sha256) -> int:
    """Bytes of a blob.

    Raises:
        Refusal: `text-missing`.
    """
    try:
        return await blobs.size(name)
    except FileNotFoundError:
        raise _missing() from None


async def read_parse(blobs: Reads, name: Sha256) -> ParsedDocument:
    """A parse, checked like `read_checked`, and never there twice."""
    try:
        async with blobs.local_path(name) as path:
            return await asyncio.to_thread(_loaded, path, name)
    except FileNotFoundError:
        raise _missing() from None


async def read_checked(blobs: Reads, name: Sha256) -> bytes:
    """The bytes of a blob, checked against its name: what is read is what is named.

    Raises:
        Refusal: `text-missing`, `text-changed`.
    """
    try:
        data = await blobs.get(name)
    except FileNotFoundError:
        raise _missing() from None
    if hashlib.sha256(data).hexdigest() != name:
        raise _changed()
    return data


def _loaded(path: Path, name: Sha256) -> ParsedDocument:
    try:
        document, digest = load(path)
    except ValueError:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest == name:
            raise
    if digest != name:
        raise _changed()
    return document


def _missing() -> Refusal:
    return Refusal("text-missing", "the text to scan is no longer stored", status=410)


def _changed() -> Refusal:
    reason = "the stored text is not the one that was announced"
    return Refusal("text-changed", reason, status=409)
