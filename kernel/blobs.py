"""Bytes under their SHA-256: a local folder, S3, GCS or Azure through obstore."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from uuid import uuid4

import obstore
from obstore.store import LocalStore, from_url

from kernel.errors import Refusal, Retry

HEAD_BYTES = 65536
PIECE_BYTES = 1024 * 1024
_WAITING_BYTES = 8 * 1024 * 1024  # a part of an S3 upload has 5 MiB at least


def sha256(data: bytes) -> str:
    """Lower-case hexadecimal SHA-256: the name of a blob."""
    return hashlib.sha256(data).hexdigest()


def sha256_of(parts: Iterable[bytes]) -> str:
    """As `sha256`, of bytes that come in parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


@dataclass(frozen=True)
class Stored:
    """A streamed upload that is in the store; `head` holds its first bytes, to tell its type."""

    sha256: str
    size_bytes: int
    head: bytes


def _key(name: str) -> str:
    return f"{name[:2]}/{name[2:4]}/{name}"


class Blobs:
    """The blob store. Writing the same bytes twice is writing them once.

    A blob is written under a temporary name and renamed, so a name never points at half a file.
    """

    def __init__(self, url: str) -> None:
        self._root: Path | None = None
        if "://" in url:
            self._store: Any = from_url(url)
        else:
            self._root = Path(url).absolute()
            self._root.mkdir(parents=True, exist_ok=True)
            self._store = LocalStore(self._root)

    async def put(self, data: bytes) -> str:
        """Store bytes; returns their SHA-256. What stands under the name and is not them goes."""
        name = sha256(data)
        if not await self._holds(name, data):
            temporary = f"tmp/{uuid4().hex}"
            with _transient():
                await obstore.put_async(self._store, temporary, data)
                await self._publish(temporary, name)
        return name

    async def _holds(self, name: str, data: bytes) -> bool:
        """Is the blob there? Somebody may have changed it: a small one is read, of a large one the
        size is compared."""
        try:
            if await self.size(name) != len(data):
                return False
            return len(data) > PIECE_BYTES or await self.get(name) == data
        except FileNotFoundError:
            return False

    async def put_parts(self, parts: Iterable[bytes]) -> str:
        """Store bytes that come in parts, without ever holding them all; returns their SHA-256.

        `parts` runs in a thread. What it raises is raised here, and nothing stays then.
        """
        pieces = _gathered(parts)
        first = await asyncio.to_thread(next, pieces, b"")
        second = await asyncio.to_thread(next, pieces, b"")
        if not second:
            return await self.put(first)
        temporary, digest = f"tmp/{uuid4().hex}", hashlib.sha256()
        try:
            with _transient():
                async with self._writer(temporary) as writer:
                    rest = chain((first, second), pieces)
                    while piece := await asyncio.to_thread(next, rest, b""):
                        digest.update(piece)
                        await writer.write(piece)
                await self._publish(temporary, digest.hexdigest())
        except BaseException:
            await self._discard(temporary)
            raise
        return digest.hexdigest()

    async def put_stream(
        self,
        chunks: AsyncIterable[bytes],
        *,
        limit: int,
        check: Callable[[bytes], None],
        confirm: Callable[[], Awaitable[None]],
    ) -> Stored:
        """Store a stream without ever holding it in memory.

        Args:
            chunks: the bytes.
            limit: most bytes to take.
            check: sees the first bytes before the rest is taken; may raise a `Refusal`.
            confirm: is awaited when all bytes are there and have no name yet; may raise one too.

        Raises:
            Refusal: `empty-document`, or `too-large` as soon as the limit is passed; nothing stays.
        """
        temporary = f"tmp/{uuid4().hex}"
        digest, size, head, checked = hashlib.sha256(), 0, b"", False
        try:
            with _transient():
                async with self._writer(temporary) as writer:
                    async for chunk in chunks:
                        size += len(chunk)
                        if size > limit:
                            raise Refusal("too-large", f"more than {limit} bytes", status=413)
                        digest.update(chunk)
                        head += chunk[: HEAD_BYTES - len(head)]
                        if not checked and len(head) == HEAD_BYTES:
                            check(head)
                            checked = True
                        await writer.write(chunk)
                if size == 0:
                    raise Refusal("empty-document", "the file is empty")
                if not checked:
                    check(head)
                name = digest.hexdigest()
                await confirm()
                await self._publish(temporary, name)
        except BaseException:
            await self._discard(temporary)
            raise
        return Stored(name, size, head)

    def _writer(self, key: str) -> Any:
        # Without limits a slow store lets more than a hundred megabytes wait to be written.
        return obstore.open_writer_async(
            self._store, key, buffer_size=_WAITING_BYTES, max_concurrency=2
        )

    async def get(self, name: str) -> bytes:
        """The bytes of a blob.

        Raises:
            FileNotFoundError: there is no such blob (never stored, or erased).
        """
        with _transient():
            result = await obstore.get_async(self._store, _key(name))
            return bytes(await result.bytes_async())

    async def head(self, name: str, count: int) -> bytes:
        """The first `count` bytes of a blob, fewer if it is shorter.

        Raises:
            FileNotFoundError: as `get`.
        """
        with _transient():
            result = await obstore.get_async(self._store, _key(name))
            head = b""
            async for part in result.stream(min_chunk_size=count):
                head += bytes(part)
                if len(head) >= count:
                    break
        return head[:count]

    async def digest(self, name: str) -> str:
        """SHA-256 of the bytes that are stored under a name: the name, if nobody changed them.

        Raises:
            FileNotFoundError: as `get`.
        """
        with _transient():
            found = hashlib.sha256()
            result = await obstore.get_async(self._store, _key(name))
            async for part in result.stream():
                await asyncio.to_thread(found.update, part)
        return found.hexdigest()

    async def exists(self, name: str) -> bool:
        """Is the blob there?"""
        try:
            await self.size(name)
        except FileNotFoundError:
            return False
        return True

    async def size(self, name: str) -> int:
        """How many bytes a blob has.

        Raises:
            FileNotFoundError: as `get`.
        """
        with _transient():
            return int((await obstore.head_async(self._store, _key(name)))["size"])

    async def delete(self, name: str) -> bool:
        """Remove a blob; False if it was not there."""
        if not await self.exists(name):
            return False
        with suppress(FileNotFoundError), _transient():
            await obstore.delete_async(self._store, _key(name))
        return True

    async def is_empty(self) -> bool:
        """Is there no blob, and none on its way?"""
        with _transient():
            async for page in obstore.list(self._store, chunk_size=1):
                return not page
        return True

    async def names(self, older_than: timedelta = timedelta(0)) -> AsyncIterator[str]:
        """Names of all blobs that were written before that long ago, in no order."""
        limit = datetime.now(UTC) - older_than
        with _transient():
            async for page in obstore.list(self._store):
                for item in page:
                    name = item["path"].rpartition("/")[2]
                    if item["path"] == _key(name) and item["last_modified"] <= limit:
                        yield name

    async def sweep(self, older_than: timedelta = timedelta(days=1)) -> int:
        """Remove what uploads left that a killed process never finished; returns how many."""
        limit, gone = datetime.now(UTC) - older_than, 0
        with _transient():
            async for page in obstore.list(self._store, prefix="tmp"):
                for item in page:
                    if item["last_modified"] <= limit:
                        await self._discard(item["path"])
                        gone += 1
        return gone

    @asynccontextmanager
    async def local_path(self, name: str) -> AsyncIterator[Path]:
        """A file with the blob's bytes, read-only: the store's own when it is a local folder.

        Raises:
            FileNotFoundError: there is no such blob.
        """
        if self._root is not None:
            path = self._root / _key(name)
            if not path.exists():
                raise FileNotFoundError(name)
            yield path
            return
        with NamedTemporaryFile(prefix="kb-blob-") as file:
            with _transient():
                result = await obstore.get_async(self._store, _key(name))
                async for part in result.stream():
                    file.write(part)
            file.flush()
            yield Path(file.name)

    async def _publish(self, temporary: str, name: str) -> None:
        """Give a finished upload its name. On a local folder it is flushed to disk first."""
        if self._root is not None:
            _sync(self._root / temporary)
        await obstore.rename_async(self._store, temporary, _key(name), overwrite=True)

    async def _discard(self, temporary: str) -> None:
        with suppress(FileNotFoundError, obstore.exceptions.BaseError):
            await obstore.delete_async(self._store, temporary)


def _gathered(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in larger pieces: each one is a write, and a step to a thread and back."""
    gathered = bytearray()
    for part in parts:
        gathered += part
        if len(gathered) >= PIECE_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _transient:  # noqa: N801 - reads as a statement
    """A store that is away is a retry; a blob that is not there is not."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, obstore.exceptions.NotFoundError):
            raise FileNotFoundError(str(error)) from error
        if isinstance(error, obstore.exceptions.BaseError):
            raise Retry(f"blob store: {error}", after=2) from error
