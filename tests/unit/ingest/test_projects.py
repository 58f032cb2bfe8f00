"""Projects: who may make, change and close them, what is kept, what is refused."""

import asyncio
from typing import Any, cast
from uuid import uuid4

import pytest

from contracts.events import DocumentReceived, Erased, Failed
from contracts.http import Deleted
from kernel.log import Pending
from kernel.projects import ProjectSettings, project_settings
from kernel.testing import first, received
from services.ingest.projects import Projects, add_project_routes
from tests.unit.ingest.test_app import Door, code


class Eraser:
    """Appends a tombstone for each version of a document, as the real one does."""

    def __init__(self, door: Door) -> None:
        self._log = door.log

    async def delete(self, document_id: str, actor: str) -> Deleted:
        own = await self._log.stream(f"document-{document_id}")
        for event in {e.data["version_id"]: e.event() for e in own}.values():
            gone = Erased(**event.ids, reason="request", scope="document", blobs=2)
            await self._log.append([first(gone)])
        return Deleted(
            project=own[0].project, document_id=document_id, documents=[document_id], versions=1,
            blobs=2, jobs_cancelled=0, position=await self._log.head(),
        )  # fmt: skip


@pytest.fixture
def door(tmp_path: Any) -> Door:
    door = Door(tmp_path)
    add_project_routes(door.app, Projects(cast("Any", door.log), Eraser(door)))
    return door


async def finished(door: Door, **about: Any) -> DocumentReceived:
    """A document whose job is over."""
    receipt = received(**about)
    job = first(receipt)
    failed = Failed(**receipt.ids, stage="converter", code="damaged", reason="cut off")
    await door.log.append([job])
    await door.log.append([Pending(failed, uuid4(), job.correlation_id, "svc:converter")])
    return receipt


async def test_a_project_that_nobody_set_has_the_defaults(door: Door) -> None:
    reply = await door.client.get("/projects/law")
    assert reply.json() == {
        "project": "law", "title": "law", "state": "open", "chunking": "heading",
        "language_check": True, "accepted_languages": None, "scan": "full",
        "embedder": "default", "position": 0,
    }  # fmt: skip


async def test_a_change_leaves_the_rest_as_it_was(door: Door) -> None:
    await door.client.put("/projects/law", json={"chunking": "paragraph"})
    await door.client.put("/projects/law", json={"accepted_languages": ["de", "sr"]})
    await door.client.put("/projects/law", json={"title": " Закони "})
    reply = await door.client.put("/projects/law", json={"language_check": False, "scan": "rules"})
    assert (reply.json()["chunking"], reply.json()["title"]) == ("paragraph", "Закони")
    assert await project_settings(door.log, "law") == ProjectSettings(
        chunking="paragraph", language_check=False, accepted_languages=("de", "sr"), scan="rules",
        title="Закони",
    )  # fmt: skip
    assert await project_settings(door.log, "other") == ProjectSettings()


async def test_what_changes_nothing_is_not_recorded(door: Door) -> None:
    await door.client.put("/projects/law", json={"chunking": "heading", "title": "law"})
    await door.client.put("/projects/law", json={})
    assert await door.log.head() == 0


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
async def test_only_an_admin_changes_a_project(door: Door, method: str) -> None:
    path = "/projects" if method == "POST" else "/projects/law"
    body = {"language_check": False} | ({"project": "law"} if method == "POST" else {})
    reply = await door.client.request(method, path, json=body, headers={"x-kb-role": "editor"})
    assert (reply.status_code, code(reply)) == (403, "forbidden")
    assert await door.log.head() == 0


@pytest.mark.parametrize(
    ("project", "change"),
    [
        ("law", {"chunking": "words"}),
        ("law", {"accepted_languages": []}),
        ("law", {"accepted_languages": ["xx"]}),
        ("law", {"language_check": "perhaps"}),
        ("law", {"scan": "off"}),
        ("law", {"title": " \u200a "}),
        ("law", {"title": "two\nlines"}),
        ("law", {"title": "t" * 201}),
        ("Закон", {"chunking": "paragraph"}),
        ("a" * 64, {"chunking": "paragraph"}),
    ],
)
async def test_a_change_that_makes_no_sense_is_refused(
    door: Door, project: str, change: dict[str, Any]
) -> None:
    reply = await door.client.put(f"/projects/{project}", json=change)
    assert reply.status_code in {400, 422}
    made = await door.client.post("/projects", json={"project": project} | change)
    assert made.status_code in {400, 422}
    assert await door.log.head() == 0


async def test_a_project_is_made_with_its_settings_in_one_step(door: Door) -> None:
    asked = {"project": "law", "title": "Gesetze", "chunking": "paragraph"}
    reply = await door.client.post("/projects", json=asked)
    assert reply.status_code == 201
    assert (reply.json()["title"], reply.json()["chunking"]) == ("Gesetze", "paragraph")
    assert [e.type for e in await door.log.read(0)] == ["ProjectCreated", "ProjectConfigured"]


async def test_a_project_is_made_once_also_by_two_at_once(door: Door) -> None:
    asked = {"project": "law"}
    replies = await asyncio.gather(*(door.client.post("/projects", json=asked) for _ in range(5)))
    assert sorted(r.status_code for r in replies) == [201, 409, 409, 409, 409]
    assert await door.log.head() == 1


async def test_what_has_documents_cannot_be_made_again(door: Door) -> None:
    await finished(door)
    reply = await door.client.post("/projects", json={"project": "default"})
    assert (reply.status_code, code(reply)) == (409, "project-exists")


async def test_a_project_with_a_running_job_is_not_deleted(door: Door) -> None:
    await door.log.append([first(received())])
    reply = await door.client.delete("/projects/default")
    assert (reply.status_code, code(reply)) == (409, "project-busy")
    assert await door.log.head() == 1


async def test_deleting_a_project_erases_its_documents_and_leaves_those_of_others(
    door: Door,
) -> None:
    await finished(door)
    other = received("b.md", project="other")
    await door.log.append([first(other)])
    reply = await door.client.delete("/projects/default")
    assert reply.json() | {"position": 0} == {
        "project": "default", "documents": 1, "versions": 1, "blobs": 2, "position": 0,
    }  # fmt: skip
    assert await door.log.documents("default") == []
    assert await door.log.documents("other") == [other.document_id]


async def test_nothing_comes_into_a_deleted_project_until_it_is_made_again(door: Door) -> None:
    await finished(door)
    await door.client.put("/projects/default", json={"chunking": "paragraph"})
    await door.client.delete("/projects/default")
    refused = await door.post()
    assert (refused.status_code, code(refused)) == (409, "project-deleted")
    set_ = await door.client.put("/projects/default", json={"chunking": "heading"})
    assert (set_.status_code, code(set_)) == (409, "project-deleted")
    assert (await door.client.get("/projects/default")).json()["state"] == "deleted"
    made = await door.client.post("/projects", json={"project": "default"})
    assert (made.status_code, made.json()["chunking"]) == (201, "heading")
    assert (await door.post()).status_code == 202


async def test_a_deletion_that_broke_off_is_finished_by_the_next(door: Door) -> None:
    await finished(door)
    projects = Projects(cast("Any", door.log), Eraser(door))
    broken = Projects(cast("Any", door.log), Broken())
    with pytest.raises(ConnectionError):
        await broken.delete("default", "actor:1")
    assert await door.log.documents("default") != []
    assert (await projects.delete("default", "actor:1")).documents == 1
    assert [e.type for e in await door.log.read(0)].count("ProjectDeleted") == 1


async def test_an_unknown_project_is_not_deleted(door: Door) -> None:
    reply = await door.client.delete("/projects/nothing")
    assert (reply.status_code, code(reply)) == (404, "unknown-project")


class Broken:
    """An eraser whose store is away."""

    async def delete(self, document_id: str, actor: str) -> Deleted:
        raise ConnectionError
