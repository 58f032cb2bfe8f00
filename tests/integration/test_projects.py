"""The list of projects, and which documents a project has, in the log and in the fake of it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from contracts.events import DocumentReceived, Erased, ProjectCreated, ProjectDeleted
from kernel.db import pool
from kernel.log import Log
from kernel.testing import MemoryBlobs, MemoryLog, first, received
from services.search.projection import Projection
from services.search.projects import project_list


@pytest.fixture
async def real(database: str) -> AsyncIterator[Log]:
    db = await pool(database)
    yield Log(db)
    db.terminate()


@pytest.fixture(params=["postgres", "memory"])
async def log(request: pytest.FixtureRequest, real: Log) -> Any:
    return real if request.param == "postgres" else MemoryLog()


def erased(receipt: DocumentReceived) -> Erased:
    return Erased(**receipt.ids, reason="request", scope="document", blobs=1)


async def test_a_project_has_the_documents_that_are_not_erased(log: Any) -> None:
    a, b, other = received("a.md"), received("b.md"), received("c.md", project="other")
    second = received("a2.md", document_id=a.document_id)
    for event in (a, second, b, other, erased(a), erased(b)):
        await log.append([first(event)])
    assert await log.documents("default") == [a.document_id]
    assert await log.documents("other") == [other.document_id]
    assert await log.documents("nothing") == []
    await log.append([first(erased(second))])
    assert await log.documents("default") == []
    await log.append([first(b)])  # sent again after its erasure
    assert await log.documents("default") == [b.document_id]


async def test_the_list_counts_what_is_there_and_names_what_was_made(real: Log) -> None:
    gone = received("c.md", project="gone")
    made = ProjectCreated(project="laws", title="Закони", actor="actor:1")
    closed = ProjectCreated(project="closed", title="Closed", actor="actor:1")
    deleted = ProjectDeleted(project="closed", documents=0, actor="actor:1")
    for event in (received("a.md"), received("b.md"), gone, erased(gone), made, closed, deleted):
        await real.append([first(event)])  # type: ignore[arg-type]
    projection = Projection(real, MemoryBlobs())  # type: ignore[arg-type]
    await projection.replay()
    found = {p.project: p for p in (await project_list(real)).projects}
    assert list(found) == ["default", "laws"]
    default, laws = found["default"], found["laws"]
    assert (default.documents, default.versions, default.indexed, default.running) == (2, 2, 0, 2)
    assert (laws.title, laws.documents, laws.running) == ("Закони", 0, 0)
