"""How a project works: who may change it, what is kept, what is refused."""

from typing import Any

import pytest

from kernel.projects import ProjectSettings, project_settings
from tests.unit.ingest.test_app import Door, code


@pytest.fixture
def door(tmp_path: Any) -> Door:
    return Door(tmp_path)


async def test_a_project_that_nobody_set_has_the_defaults(door: Door) -> None:
    reply = await door.client.get("/projects/law")
    assert reply.json() == {
        "project": "law", "chunking": "heading", "language_check": True,
        "accepted_languages": None, "position": 0,
    }  # fmt: skip


async def test_a_change_leaves_the_rest_as_it_was(door: Door) -> None:
    await door.client.put("/projects/law", json={"chunking": "paragraph"})
    await door.client.put("/projects/law", json={"accepted_languages": ["de", "sr"]})
    reply = await door.client.put("/projects/law", json={"language_check": False})
    assert reply.json()["chunking"] == "paragraph"
    assert await project_settings(door.log, "law") == ProjectSettings(
        chunking="paragraph", language_check=False, accepted_languages=("de", "sr")
    )
    assert await project_settings(door.log, "other") == ProjectSettings()


async def test_what_changes_nothing_is_not_recorded(door: Door) -> None:
    await door.client.put("/projects/law", json={"chunking": "heading"})
    await door.client.put("/projects/law", json={})
    assert await door.log.head() == 0


async def test_only_an_admin_changes_a_project(door: Door) -> None:
    headers = {"x-kb-role": "editor"}
    reply = await door.client.put("/projects/law", json={"language_check": False}, headers=headers)
    assert (reply.status_code, code(reply)) == (403, "forbidden")
    assert await door.log.head() == 0


@pytest.mark.parametrize(
    ("project", "change"),
    [
        ("law", {"chunking": "words"}),
        ("law", {"accepted_languages": []}),
        ("law", {"accepted_languages": ["xx"]}),
        ("law", {"language_check": "perhaps"}),
        ("Закон", {"chunking": "paragraph"}),
        ("a" * 64, {"chunking": "paragraph"}),
    ],
)
async def test_a_change_that_makes_no_sense_is_refused(
    door: Door, project: str, change: dict[str, Any]
) -> None:
    reply = await door.client.put(f"/projects/{project}", json=change)
    assert reply.status_code in {400, 422}
    assert await door.log.head() == 0
