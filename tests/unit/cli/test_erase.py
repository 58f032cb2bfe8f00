"""`kb erase`: a question, a dry run, a wait, a receipt; `kb scrub` where the database is."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from tests.unit.cli.door import HEX, Door, problem
from tests.unit.cli.test_commands import Kb, door, kb  # noqa: F401 - fixtures
from tests.unit.cli.test_jobs import _Answer

AT = "2026-01-01T00:00:00Z"
PLAN = {
    "project": "default", "scope": "document", "versions": 3, "blobs": 9, "kept": 1, "jobs": 1,
    "documents": [
        {"document_id": HEX, "name": "a\x1b.md", "versions": [HEX, HEX], "stay": 1},
        {"document_id": HEX, "name": "b.md", "versions": [HEX], "stay": 0, "attached": True},
    ],
}  # fmt: skip
DONE: dict[str, Any] = {
    "id": "r-1", "project": "default", "complete": True, "asked_at": AT, "done_at": AT,
    "removed": {"originals": 1, "passages": 2}, "kept": {"bodies": 1}, "open": {}, "files": "open",
    "files_at": None, "versions": [], "position": 9,
}  # fmt: skip
OPEN = DONE | {"complete": False, "done_at": None, "open": {"index": 1}}


@pytest.fixture
def eraser(door: Door, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:  # noqa: F811
    """A door that knows one erasure; nobody waits long for it."""
    monkeypatch.setattr("cli.erase.PATIENCE_S", 0.0)
    door.replies = {
        "POST /erasures/plan": JSONResponse(PLAN),
        "POST /erasures": JSONResponse(DONE, 202),
        "GET /erasures/r-1": JSONResponse(DONE),
    }
    yield door


def asked(of: Door) -> list[tuple[str, str]]:
    return [(method, path) for method, path, _ in of.seen]


def test_a_dry_run_tells_what_would_go_and_asks_for_nothing(eraser: Door, kb: Kb) -> None:  # noqa: F811
    out = kb("erase", "document", HEX, "--dry-run").out
    assert "2 versions, 1 stay" in out
    assert "(attached)" in out
    assert "3 versions, 9 files would go; 1 files stay" in out
    assert "\x1b" not in out
    assert asked(eraser) == [("POST", "/erasures/plan")]
    assert json.loads(kb("erase", "document", HEX, "--dry-run", "--json").out) == PLAN


def test_without_yes_it_asks_and_a_no_changes_nothing(
    eraser: Door,
    kb: Kb,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", _Answer("n\n"))
    done = kb("erase", "document", HEX)
    assert "for ever?" in done.err
    assert done.code != 0
    assert ("POST", "/erasures") not in asked(eraser)


def test_the_receipt_says_what_went_and_what_stays(eraser: Door, kb: Kb) -> None:  # noqa: F811
    out = kb("erase", "source", "A" * 64, "--project", "law", "--yes", "--no-scrub").out
    assert "removed       2  passages" in out
    assert "kept          1  bodies (other documents have the same)" in out
    assert "not written anew yet: kb scrub" in out
    assert json.loads(eraser.seen[-1][2]) == {"source": "a" * 64, "project": "law"}


def test_what_is_open_is_said_and_is_no_success(eraser: Door, kb: Kb) -> None:  # noqa: F811
    eraser.replies["POST /erasures"] = JSONResponse(OPEN, 202)
    done = kb("erase", "document", HEX, "--yes")
    assert done.code == 1
    assert "indexer has not said yet" in done.out
    assert kb("erase", "document", HEX, "--yes", "--no-wait").code == 0


def test_a_wait_ends_when_the_receipt_is_complete(
    eraser: Door,
    kb: Kb,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cli.erase.PATIENCE_S", 20.0)
    eraser.replies["POST /erasures"] = JSONResponse(OPEN, 202)
    done = kb("erase", "document", HEX, "--yes", "--json", "--no-scrub")
    assert (done.code, json.loads(done.out)) == (0, DONE)


def test_a_receipt_can_be_asked_for_again(eraser: Door, kb: Kb) -> None:  # noqa: F811
    assert "complete at 2026-01-01" in kb("erase", "receipt", "r-1").out
    assert json.loads(kb("erase", "receipt", "r-1", "--json").out) == DONE


def test_a_person_is_erased_by_name(eraser: Door, kb: Kb) -> None:  # noqa: F811
    told = {"actor": "actor:1", "changed": True, "sessions": 2}
    eraser.replies["POST /erasures/person"] = JSONResponse(told)
    assert "2 sessions ended" in kb("erase", "person", "alice", "--yes").out
    eraser.replies["POST /erasures/person"] = JSONResponse(told | {"changed": False})
    assert "was erased already" in kb("erase", "person", "actor:1", "--yes").out
    eraser.replies["POST /erasures/person"] = problem("last-admin", 409)
    assert kb("erase", "person", "admin", "--yes").code == 1


def test_where_there_is_no_installation_nothing_is_scrubbed(kb: Kb) -> None:  # noqa: F811
    assert kb("scrub").code == 1
