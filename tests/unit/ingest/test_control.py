"""Who may cancel, retry and delete, over HTTP."""

from typing import Any

import httpx
import pytest

from kernel.testing import MemoryLog, MemoryParseCache
from kernel.web import create_api
from services.ingest.control import add_control_routes
from services.ingest.erase import Eraser
from services.ingest.jobs import Jobs
from tests.unit.ingest.test_jobs import World

KEY = "k" * 32


class Door:
    """The routes on a log in memory."""

    def __init__(self, folder: Any) -> None:
        log: Any = MemoryLog()
        self.world = World(log, folder)
        cache: Any = MemoryParseCache()

        async def health() -> dict[str, str]:
            return {"status": "ok"}

        app = create_api("ingest", api_key=KEY, health=health)
        add_control_routes(app, Jobs(log, self.world.blobs, Eraser(log, self.world.blobs, cache)))
        headers = {"Authorization": f"Bearer {KEY}"}
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://ingest", headers=headers
        )


@pytest.fixture
def door(tmp_path: Any) -> Door:
    return Door(tmp_path / "blobs")


@pytest.mark.parametrize(
    ("act", "allowed"),
    [("cancel", {"editor", "admin"}), ("retry", {"editor", "admin"}), ("delete", {"admin"})],
)
@pytest.mark.parametrize("role", ["viewer", "editor", "admin"])
async def test_only_who_may_can(door: Door, act: str, allowed: set[str], role: str) -> None:
    accepted = await door.world.reach("parsed")
    before = await door.world.types()
    headers = {"x-kb-role": role, "x-kb-actor": "actor:1"}
    if act == "delete":
        reply = await door.client.delete(f"/documents/{accepted.document_id}", headers=headers)
    else:
        reply = await door.client.post(f"/jobs/{accepted.job_id}/{act}", headers=headers)
    assert reply.status_code == (200 if role in allowed else 403), reply.text
    changed = await door.world.types() != before
    assert changed == (role in allowed)


async def test_the_key_alone_may_do_everything(door: Door) -> None:
    accepted = await door.world.reach("parsed")
    reply = await door.client.post(f"/jobs/{accepted.job_id}/cancel")
    assert (reply.status_code, reply.json()["changed"]) == (200, True)
    assert reply.json()["status"] == "failed"


async def test_without_the_key_nothing_is_changed(door: Door) -> None:
    accepted = await door.world.reach("parsed")
    reply = await door.client.delete(
        f"/documents/{accepted.document_id}", headers={"Authorization": "Bearer x"}
    )
    assert reply.status_code == 401
    assert await door.world.status(accepted) == "parsed"


async def test_what_cannot_be_done_is_a_problem_with_a_type(door: Door) -> None:
    accepted = await door.world.reach("blocked")
    reply = await door.client.post(f"/jobs/{accepted.job_id}/retry")
    assert reply.status_code == 409
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["type"] == "urn:kb:problem:bytes-gone"
