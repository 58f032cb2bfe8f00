"""`kb project`: what is asked of the front door, and what a person reads."""

import json
from io import StringIO
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from tests.unit.cli.door import Door
from tests.unit.cli.test_commands import Kb, door, kb  # noqa: F401 - fixtures

VIEW: dict[str, Any] = {
    "project": "law", "title": "Закони", "state": "open", "chunking": "heading",
    "language_check": True, "accepted_languages": None, "scan": "rules",
    "embedder": "default", "position": 3,
}  # fmt: skip


def test_a_project_is_made_with_what_was_said(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(VIEW, 201)
    words = ("--title", "Закони", "--scan", "rules", "--embedder", "small")
    done = kb("project", "create", "law", *words)
    (asked,) = door.seen
    assert asked[:2] == ("POST", "/projects")
    assert json.loads(asked[2]) == {
        "project": "law", "title": "Закони", "scan": "rules", "embedder": "small",
    }  # fmt: skip
    assert "Закони" in done.out and "rules alone" in done.out


def test_a_rename_changes_the_title_and_nothing_else(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(VIEW)
    kb("project", "rename", "law", "Закони")
    (asked,) = door.seen
    assert asked[:2] == ("PUT", "/projects/law")
    assert json.loads(asked[2]) == {"title": "Закони"}


def test_the_list_says_how_much_is_in_each(door: Door, kb: Kb) -> None:  # noqa: F811
    counts = {"documents": 3, "versions": 5, "indexed": 4, "review": 1, "running": 2}
    projects = [
        {"project": "law", "title": "Закони", **counts},
        {"project": "b", "title": "b", **dict.fromkeys(counts, 0)},
    ]
    door.reply = JSONResponse({"projects": projects})
    lines = kb("project", "list").out.splitlines()
    assert lines == [
        "law  3 documents, 4 versions indexed, 1 in review, 2 jobs run  Закони",
        "b    0 documents, 0 versions indexed",
    ]
    assert json.loads(kb("project", "list", "--json").out) == {"projects": projects}


def test_a_deletion_is_asked_for_first(door: Door, kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    gone = {"project": "law", "documents": 2, "versions": 3, "blobs": 9, "position": 8}
    door.reply = JSONResponse(gone)
    monkeypatch.setattr("sys.stdin", StringIO("n\n"))
    assert kb("project", "delete", "law").code != 0
    assert door.seen == []
    done = kb("project", "delete", "law", "--yes")
    assert done.out == "erased: 2 documents, 3 versions, 9 blobs\n"


@pytest.mark.parametrize("name", ["..", "a/b", "Закон"])
def test_an_odd_name_stays_one_part_of_the_path(door: Door, kb: Kb, name: str) -> None:  # noqa: F811
    door.reply = JSONResponse(VIEW)
    done = kb("project", "show", name)
    if name == "..":
        assert (done.code, door.seen) == (1, [])
    else:
        ((_, path, _),) = door.seen
        assert path.count("/") == 2
