"""`kb rescan`: what it asks, what it prints, when it ends."""

import json
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from cli import rescan as rescan_module
from tests.unit.cli.door import HEX, Door
from tests.unit.cli.test_commands import Kb, door, kb  # noqa: F401 - fixtures

AT = "2026-01-01T00:00:00Z"
COUNTS = {"looked": 9, "clean": 6, "quarantined": 2, "lowered": 1, "kept": {"released": 1}}


def view(state: str = "running", **changes: Any) -> dict[str, Any]:
    return {
        "rescan_id": HEX, "project": "default", "state": state, "ruleset": "rules-1", "actor": "a",
        "started_at": AT, "updated_at": AT, "receipts": 9, "done": 4, "counts": COUNTS,
        "seconds": 1.5,
    } | changes  # fmt: skip


def reply(*views: dict[str, Any], started: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"ruleset": "rules-1", "rescans": list(views), "started": list(started)}


REPORT = {
    "rescan": view("finished", done=9),
    "hits": [
        {
            "version_id": HEX, "document_id": HEX, "name": "evil\x1b[31m\n.md", "source_key": "k",
            "subject": "converted", "verdict": "block", "score": 0.9, "rules": ["r.one"],
            "decision": "open", "position": 7,
        }
    ],
    "kept": [{"version_id": HEX, "document_id": HEX, "code": "released", "rules": ["r.two"]}],
}  # fmt: skip


class Running:
    """Answers one after the other, the last one for ever; reports on demand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, Any]] = []
        monkeypatch.setattr(rescan_module, "EVERY", 0.001)
        monkeypatch.setattr(rescan_module, "_call", self)

    def __call__(self, data: Any, method: str, path: str, **options: Any) -> Any:
        self.asked.append((method, path, options))
        report = path.startswith("/rescan/") and method == "GET"
        body = REPORT if report else self.answers[0]
        if not report and len(self.answers) > 1:
            self.answers.pop(0)
        return type("Reply", (), {"content": json.dumps(body).encode()})()


def test_it_begins_one_and_says_so(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(reply(view(), started=("default",)), 202)
    done = kb("rescan")
    assert (done.code, done.out) == (0, f"default  {HEX}  running  4/9  rules-1\n")
    door.reply = JSONResponse(reply(view()), 202)
    assert "it ran already" in kb("rescan", "--project", "default").out
    assert [(m, p, json.loads(b or "{}")) for m, p, b in door.seen] == [
        ("POST", "/rescan", {}),
        ("POST", "/rescan", {"project": "default"}),
    ]


def test_status_and_cancel_begin_nothing(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(reply(view("cancelled")))
    out = kb("rescan", "--status").out
    assert "cancelled" in out
    assert "9 versions: 6 clean, 2 to review, 1 kept (released); 1.5 s" in out
    kb("rescan", "--cancel")
    assert [(m, p) for m, p, _ in door.seen] == [("GET", "/rescan"), ("POST", "/rescan/cancel")]
    door.reply = JSONResponse(reply())
    assert kb("rescan", "--status").out == "no re-scan yet\n"


def test_waiting_ends_with_a_report(
    kb: Kb,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = Running(
        monkeypatch, reply(view(), started=("default",)), reply(view(done=8)),
        reply(view("finished", done=9)),
    )  # fmt: skip
    done = kb("rescan", "--wait")
    assert done.code == 0
    assert "4/9" in done.err
    assert "finished  9/9" in done.out
    assert f"{HEX}  block       open      evil\ufffd[31m .md  r.one" in done.out
    assert f"{HEX}  kept        released  r.two" in done.out
    assert [m for m, _, _ in running.asked] == ["POST", "GET", "GET", "GET"]


def test_one_that_was_cancelled_is_no_success(
    kb: Kb,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Running(monkeypatch, reply(view()), reply(view("cancelled")))
    done = kb("rescan", "--wait", "--json")
    assert (done.code, done.err) == (1, "")
    assert json.loads(done.out)["rescans"][0]["state"] == "cancelled"


def test_waiting_for_a_process_that_is_not_there_ends(
    kb: Kb,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Running(monkeypatch, reply(view(waiting="other-rules")))
    done = kb("rescan", "--wait")
    assert done.code != 0
    assert "nothing works on it" in done.err


def test_a_report_is_shown_by_its_id(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(REPORT)
    assert "r.one" in kb("rescan", "--report", HEX).out
    assert json.loads(kb("rescan", "--report", HEX, "--json").out) == REPORT
    assert door.seen[0][:2] == ("GET", f"/rescan/{HEX}")
    assert kb("rescan", "--report", "..").code != 0
    assert kb("rescan", "--status", "--cancel").code != 0
