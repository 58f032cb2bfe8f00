"""One real stack for all stories that only read and add."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from tests.stack import Stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The embedded stack with the bundled embedder, as a user has it."""
    made = Stack(tmp_path_factory.mktemp("stack"), "bundled")
    made.kb("up", "--detach")
    yield made
    made.kb("down")


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the key."""
    async with stack.client() as made:
        yield made
