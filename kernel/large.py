"""One large document at a time: it may take gigabytes and minutes, and small ones must pass it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kernel.errors import Retry

LARGE_BYTES = 8 * 1024 * 1024
RETRY_SECONDS = 5.0


class OneLarge:
    """Shared by all who work on documents in a process."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    def check(self, size: int) -> None:
        """Before anything is fetched for a document of so many bytes.

        Raises:
            Retry: it is large, and another large one is under work. No queue: those who wait in one
                would keep small documents from being delivered.
        """
        if size > LARGE_BYTES and self._turn.locked():
            raise Retry("another large document is under work", after=RETRY_SECONDS)

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[bool]:
        """Work on a document of so many bytes; gives whether it is large. Raises as `check`."""
        if size <= LARGE_BYTES:
            yield False
            return
        self.check(size)
        async with self._turn:
            yield True
