"""What random histories found: each bug as the shortest story that shows it."""

from collections.abc import AsyncIterator

import pytest

from tests.model import fuse
from tests.model.world import World


@pytest.fixture
async def world(database: str) -> AsyncIterator[World]:
    pool = await fuse.pool(database)
    world = World(pool)
    await world.start()
    yield world
    pool.terminate()


async def test_the_last_document_of_the_same_bytes_takes_the_texts_of_all_along(
    world: World,
) -> None:
    """Parse and meta differ with the name: those of the first were kept for the second."""
    one = await world.send("north", "a.md", "# Amber", source="a.md")
    two = await world.send("north", "b.md", "# Amber", source="b.md")
    await world.settle([])
    for version in (one, two):
        await world.jobs.delete(version.version_id, "person")
        await world.settle([])
    assert world.blobs.content == {}
