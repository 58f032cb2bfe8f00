"""A real log, for what a fake cannot show: races."""

from collections.abc import AsyncIterator

import pytest

from kernel.db import pool
from kernel.log import Log


@pytest.fixture
async def real_log(database: str) -> AsyncIterator[Log]:
    """A log on an empty database."""
    db = await pool(database, size=8)
    yield Log(db)
    db.terminate()
