"""`kb verify`: what it asks, what it prints, how it ends."""

import json
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from contracts.audit import AuditRequest, ChainRequest
from tests.unit.cli.door import HEX, Door, problem
from tests.unit.cli.test_commands import Kb, door, kb  # noqa: F401 - fixtures

PRINT = "ab" * 32
CHAIN = {
    "position": 9, "head": 9, "fingerprint": PRINT, "done": True, "events": 9, "redacted": 0,
    "found": 0, "faults": [],
}  # fmt: skip
PAGE = {
    "position": 5, "done": True, "documents": 2, "moving": 0, "checked": 7, "found": 0,
    "repaired": 0, "findings": [],
}  # fmt: skip


def finding(**changes: Any) -> dict[str, Any]:
    return {
        "check": "index", "what": "vector-missing", "id": "point-1", "project": "default",
        "version_id": HEX, "count": 3,
    } | changes  # fmt: skip


def answers(door: Door, chain: Any = CHAIN, **pages: Any) -> None:  # noqa: F811
    door.replies = {
        "GET /audit": JSONResponse({"head": 9, "documents": 2}),
        "POST /audit/chain": JSONResponse(chain),
    }
    for check in ("projection", "index", "bytes"):
        door.replies[f"POST /audit/{check}"] = JSONResponse(PAGE | pages.get(check, {}))


def drifted(**changes: Any) -> dict[str, Any]:
    repaired = 3 if changes.get("repaired") else 0
    return {"found": 3, "repaired": repaired, "findings": [finding(**changes)]}


def test_where_nothing_is_wrong_the_end_is_0_with_an_anchor_to_keep(door: Door, kb: Kb) -> None:  # noqa: F811
    answers(door)
    done = kb("verify")
    assert done.code == 0
    assert f"9:{PRINT}" in done.out
    lines = [line.split() for line in done.out.splitlines()]
    assert ["log", "9", "events", "0", "0", "0"] in lines
    assert ["index", "2", "documents", "7", "passages", "0", "0", "0"] in lines


def test_drift_ends_with_1_and_says_what_to_do(door: Door, kb: Kb) -> None:  # noqa: F811
    answers(door, index=drifted())
    done = kb("verify")
    assert done.code == 1
    assert f"index: vector-missing ×3  point-1  version {HEX}  default  left" in done.out
    assert "kb verify --repair" in done.out


def test_what_was_repaired_ends_with_2(door: Door, kb: Kb) -> None:  # noqa: F811
    answers(door, index=drifted(repaired=True))
    done = kb("verify", "--repair")
    assert done.code == 2
    assert done.out.count("repaired") == 2
    assert all(
        AuditRequest.model_validate_json(b).repair
        for _, p, b in door.seen
        if p in ("/audit/projection", "/audit/index", "/audit/bytes")
    )


def test_a_tampered_log_ends_with_1_though_all_else_was_repaired(door: Door, kb: Kb) -> None:  # noqa: F811
    fault = {"position": 4, "code": "data-changed", "stream_id": "document-x\x1b[31m"}
    answers(door, CHAIN | {"found": 1, "faults": [fault]}, index=drifted(repaired=True))
    done = kb("verify", "--repair")
    assert done.code == 1
    assert "log: data-changed at position 4  document-x" in done.out
    assert "\x1b" not in done.out
    assert PRINT not in done.out
    asked = [AuditRequest.model_validate_json(b) for m, p, b in door.seen if p == "/audit/index"]
    assert [a.repair for a in asked] == [False]


def test_json_is_one_document_and_nothing_else(door: Door, kb: Kb) -> None:  # noqa: F811
    answers(door, index=drifted(left="why"))
    done = kb("verify", "--json")
    told = json.loads(done.out)
    assert (done.code, done.err, told["result"]) == (1, "", "drift")
    assert told["chain"]["fingerprint"] == PRINT
    assert [c["check"] for c in told["checks"]] == ["projection", "index", "bytes"]
    assert told["checks"][1]["findings"][0]["left"] == "why"


def test_a_project_and_anchors_are_passed_on(door: Door, kb: Kb) -> None:  # noqa: F811
    answers(door)
    assert kb("verify", "--project", "law", "--anchor", f"3:{PRINT.upper()}").code == 0
    asked = {p: b for _, p, b in door.seen}
    (anchor,) = ChainRequest.model_validate_json(asked["/audit/chain"]).anchors
    assert (anchor.position, anchor.fingerprint) == (3, PRINT)
    assert AuditRequest.model_validate_json(asked["/audit/bytes"]).project == "law"


@pytest.mark.parametrize("text", ["", "3", f"0:{PRINT}", f"3:{PRINT[1:]}", f"-1:{PRINT}", "a:b"])
def test_an_anchor_that_is_none_is_refused(door: Door, kb: Kb, text: str) -> None:  # noqa: F811
    done = kb("verify", f"--anchor={text}")
    assert (done.code != 0, door.seen) == (True, [])
    assert "no such anchor" in done.err


def test_a_project_that_nobody_knows_is_no_project_without_faults(door: Door, kb: Kb) -> None:  # noqa: F811
    answers(door)
    door.replies["GET /audit"] = JSONResponse({"head": 9, "documents": 0})
    assert kb("verify").code == 0
    done = kb("verify", "--project", "typo")
    assert done.code == 1
    assert "typo" in done.err


def test_documents_that_are_being_worked_on_are_told(door: Door, kb: Kb) -> None:  # noqa: F811
    answers(door, index={"moving": 4})
    assert "4 documents are being worked on" in kb("verify").out


def test_whoever_may_not_is_told_so(door: Door, kb: Kb) -> None:  # noqa: F811
    answers(door)
    door.replies["GET /audit"] = problem("forbidden", 403)
    done = kb("verify")
    assert done.code not in (0, 2)
    assert "forbidden" in done.err
