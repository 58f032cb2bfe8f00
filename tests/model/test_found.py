"""What random histories found: each bug as the shortest story that shows it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

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


def day(year: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC)


async def test_a_version_that_comes_back_after_its_erasure_is_found_by_its_meaning_too(
    world: World,
) -> None:
    """Its vectors had the windows of before the erasure, for ever."""
    for text, year in (("# Birch\n\nlighthouse", 2001), ("# Amber\n\nlighthouse", 2003)):
        sent = await world.send("north", "a.md", text, source="a.md", valid_from=day(year))
        await world.settle([])
    await world.jobs.delete(sent.document_id, "person")
    await world.settle([])
    await world.send("north", "a.md", "# Birch\n\nlighthouse", source="a.md", valid_from=day(2007))
    await world.settle([])
    (hit,) = await world.ask("north", day(2008))
    assert (hit.dense_rank, hit.keyword_rank) == (1, 1)
    assert await world.ask("north", day(2004)) == []


async def test_the_time_of_an_erased_version_stays_empty(world: World) -> None:
    """The version before it got that time, as soon as anything else was sent."""
    for text, year in (("# Amber", 2001), ("# Birch", 2003)):
        sent = await world.send("north", "a.md", text, source="a.md", valid_from=day(year))
        await world.settle([])
    await world.erase_version(sent.document_id, sent.version_id)
    await world.settle([])
    await world.send("north", "a.md", "# Cedar", source="a.md", valid_from=day(2007))
    await world.settle([])
    found = [len(await world.ask("north", day(year))) for year in (2002, 2004, 2008)]
    assert found == [1, 0, 1]


async def test_content_returns_where_the_version_that_took_its_place_was_erased(
    world: World,
) -> None:
    """Nothing was valid then, and the upload was an error of ours."""
    for text, year in (("# Amber", 2001), ("# Birch", 2003)):
        sent = await world.send("north", "a.md", text, source="a.md", valid_from=day(year))
        await world.settle([])
    await world.erase_version(sent.document_id, sent.version_id)
    await world.settle([])
    back = await world.send("north", "a.md", "# Amber", source="a.md", valid_from=day(2005))
    await world.settle([])
    assert back.reinstated
    assert await world.ask("north", day(2004)) == []
    (hit,) = await world.ask("north", day(2006))
    assert "Amber" in hit.text


async def test_of_two_with_one_beginning_one_that_came_anew_is_the_later(world: World) -> None:
    """Its place among the receipts was that of before its erasure."""
    gone = await world.send("north", "a.md", "# Birch", source="a.md", valid_from=day(2001))
    await world.settle([])
    await world.jobs.delete(gone.document_id, "person")
    await world.settle([])
    for text in ("# Amber", "# Birch"):
        await world.send("north", "a.md", text, source="a.md", valid_from=day(2001))
        await world.settle([])
    (hit,) = await world.ask("north", day(2002))
    assert "Birch" in hit.text
