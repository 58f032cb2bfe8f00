"""The commands against a front door: what they ask, print and return."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi.responses import JSONResponse, Response

from cli import ingest as ingest_module
from cli.main import main
from services.scanner.ruleset import reasons
from tests.unit.cli.door import HEX, Door, open_door, problem


@dataclass
class Done:
    """What a command left."""

    code: int
    out: str
    err: str


Kb = Callable[..., Done]


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    with open_door() as door:
        monkeypatch.setenv("KB_URL", door.url)
        monkeypatch.setenv("KB_API_KEY", "test-key")
        yield door


@pytest.fixture
def kb(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Kb:
    monkeypatch.setattr(ingest_module, "_POLL_SECONDS", 0.01)
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Done:
        code = 0
        try:
            main([*words, "--data", str(tmp_path / "data")])
        except SystemExit as end:
            code = int(end.code or 0)
        return Done(code, *capsys.readouterr())

    return call


def _file(tmp_path: Path, name: str, text: str = "hello") -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


# -- ingest ------------------------------------------------------------------------------------


def test_an_indexed_file_is_told_with_its_passages(door: Door, kb: Kb, tmp_path: Path) -> None:
    done = kb("ingest", _file(tmp_path, "indexed.md"))
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{tmp_path}/indexed.md: indexed, 3 chunks\n"


def test_the_fields_are_sent_and_only_those_given(door: Door, kb: Kb, tmp_path: Path) -> None:
    file = _file(tmp_path, "indexed.md")
    kb("ingest", file)
    kb(
        "ingest", file, "--source", "s", "--supersedes", HEX, "--valid-from", "2025-01-01",
        "--project", "p", "--trusted", "--lane", "bulk",
    )  # fmt: skip
    plain, full = door.uploads
    assert plain == {"name": "indexed.md", "size": 5, "project": "default"}
    assert full == {
        "name": "indexed.md", "size": 5, "project": "p", "source": "s", "supersedes": HEX,
        "valid_from": "2025-01-01", "trusted": "true", "lane": "bulk",
    }  # fmt: skip


def test_a_duplicate_is_said_and_is_no_failure(door: Door, kb: Kb, tmp_path: Path) -> None:
    done = kb("ingest", _file(tmp_path, "duplicate.md"))
    assert (done.code, done.out) == (0, f"{tmp_path}/duplicate.md: duplicate\n")
    assert door.polls == {}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("failed.md", "failed: has a password (encrypted)"),
        ("review.md", f"in quarantine; kb review show {HEX}"),
        ("blocked.md", "blocked"),
        ("refused.md", "No: a\ufffd[31m b c (urn:kb:problem:unsupported-media-type)"),
    ],
)
def test_a_file_that_is_not_indexed_fails_with_one_line(
    door: Door, kb: Kb, tmp_path: Path, name: str, line: str
) -> None:
    done = kb("ingest", _file(tmp_path, name))
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: {tmp_path}/{name}: {line}\n"


def test_one_bad_file_does_not_stop_the_others(door: Door, kb: Kb, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    names = [
        str(tmp_path / "folder"), str(tmp_path / "missing.md"), "/dev/null",
        _file(tmp_path, "refused.md"), _file(tmp_path, "indexed.md"),
    ]  # fmt: skip
    done = kb("ingest", *names)
    assert done.code == 1
    assert done.out == f"{tmp_path}/indexed.md: indexed, 3 chunks\n"
    assert [line.split(": ")[2] for line in done.err.splitlines()] == [
        "is a folder", "cannot read", "is not a plain file", "No",
    ]  # fmt: skip


def test_ingest_json_has_every_file(door: Door, kb: Kb, tmp_path: Path) -> None:
    done = kb("ingest", "--json", _file(tmp_path, "indexed.md"), _file(tmp_path, "failed.md"))
    report = json.loads(done.out)
    assert (done.code, report["ok"]) == (1, False)
    assert [(f["status"], f["ok"], f["chunk_count"]) for f in report["files"]] == [
        ("indexed", True, 3), ("failed", False, None),
    ]  # fmt: skip


def test_no_wait_returns_once_accepted(door: Door, kb: Kb, tmp_path: Path) -> None:
    done = kb("ingest", "--no-wait", _file(tmp_path, "failed.md"))
    assert (done.code, done.out) == (0, f"{tmp_path}/failed.md: accepted\n")
    assert door.polls == {}


@pytest.mark.parametrize("option", ["--source", "--supersedes"])
def test_what_names_one_document_takes_one_file(
    door: Door, kb: Kb, tmp_path: Path, option: str
) -> None:
    done = kb("ingest", _file(tmp_path, "a.md"), _file(tmp_path, "b.md"), option, "x")
    assert done.code == 1 and option in done.err
    assert door.uploads == []


def test_a_large_file_is_streamed_whole(door: Door, kb: Kb, tmp_path: Path) -> None:
    kb("ingest", "--no-wait", _file(tmp_path, "indexed.md", "ю" * 3_000_000))
    assert door.uploads[0]["size"] == 6_000_000


def test_many_files_keep_their_order_in_the_report(door: Door, kb: Kb, tmp_path: Path) -> None:
    files = [_file(tmp_path, f"indexed-{n}.md") for n in range(30)]
    report = json.loads(kb("ingest", "--json", *files).out)
    assert [f["file"] for f in report["files"]] == files
    assert report["ok"]


# -- query, doc, jobs --------------------------------------------------------------------------

HIT = {
    "chunk_id": "c", "source_id": "a" * 64, "heading_path": ["Fines"], "byte_start": 3,
    "byte_end": 9, "valid_until": None, "text": "up to\x1b[2J 20", "score": 0.5, "rrf_score": 0.5,
    "document_id": HEX, "version_id": HEX, "project": "default", "title": "Law", "language": "en",
    "valid_from": "2025-01-01T00:00:00Z",
}  # fmt: skip


DAY = "2026-01-01T00:00:00Z"
VERSION = {
    "version_id": HEX, "document_id": HEX, "source_id": "a" * 64, "project": "default",
    "source_key": "k", "name": "a.md", "title": "Law", "media_type": "text/markdown",
    "size_bytes": 9, "language": "en", "status": "review", "verdict": "quarantine", "parser": None,
    "converter": None, "embedder": None, "body_sha256": None, "body_bytes": None,
    "chunk_count": None, "error": None, "received_at": DAY, "valid_from": DAY, "valid_until": None,
    "current": False, "job_id": "j",
}  # fmt: skip
SCAN = {
    "subject": "parsed", "verdict": "quarantine", "score": 0.62, "worst": "high",
    "rules": ["a.b", "c.d"], "findings": 3, "ruleset": "rules-1", "bypassed": False,
    "text_sha256": "b" * 64, "at": DAY,
}  # fmt: skip


def test_query_json_is_the_reply_byte_for_byte(door: Door, kb: Kb) -> None:
    door.reply = Response('{"results": [ ],\n "ф": 1}', media_type="application/json")
    assert kb("query", "x", "--json").out == '{"results": [ ],\n "ф": 1}'


def test_query_sends_what_was_asked(door: Door, kb: Kb) -> None:
    kb(
        "query", "штраф", "--top-k", "7", "--as-of", "2025-12-30", "--include-historical",
        "--project", "p", "--json",
    )  # fmt: skip
    kb("query", "x", "--json")
    bodies = [json.loads(body) for _, _, body in door.seen]
    assert bodies == [
        {
            "query": "штраф", "top_k": 7, "as_of": "2025-12-30", "include_historical": True,
            "project": "p",
        },
        {"query": "x", "project": "default"},
    ]  # fmt: skip


def test_query_asks_at_two_times_and_several_projects(door: Door, kb: Kb) -> None:
    door.reply = JSONResponse(
        {"results": [HIT], "reranked": False, "score_kind": "rrf", "position": 9}
    )
    told = kb(
        "query", "штраф", "--recorded-as-of", "2026-11-30T12:00Z", "--min-position", "9",
        "--project", "a", "--project", "b",
    )  # fmt: skip
    [(_, _, body)] = door.seen
    assert json.loads(body) == {
        "query": "штраф", "recorded_as_of": "2026-11-30T12:00Z", "min_position": 9,
        "projects": ["a", "b"],
    }  # fmt: skip
    assert f"1. {HIT['project']}: Law > Fines" in told.out


def test_a_hit_can_be_cited_and_cannot_steer_the_terminal(door: Door, kb: Kb) -> None:
    reply = {"results": [HIT], "reranked": False, "score_kind": "rrf", "position": 1}
    door.reply = JSONResponse(reply)
    out = kb("query", "x").out
    assert "1. Law > Fines" in out and "bytes 3-9" in out and "aaaaaaaa" in out
    assert "\x1b" not in out


def test_a_person_sees_no_fence(door: Door, kb: Kb) -> None:
    hit = HIT | {"text": '<untrusted-document-1 note="data">\nThe fine.\n</untrusted-document-1>'}
    reply = {"results": [hit], "reranked": False, "score_kind": "rrf", "position": 1}
    door.reply = JSONResponse(reply | {"fence": "untrusted-document-1"})
    out = kb("query", "x").out
    assert "| The fine." in out and "untrusted" not in out


def test_nothing_found_is_said(door: Door, kb: Kb) -> None:
    door.reply = JSONResponse(
        {"results": [], "reranked": False, "score_kind": "rrf", "position": 1}
    )
    assert kb("query", "x").out == "nothing found\n"


def test_a_problem_is_one_line_and_a_failure(door: Door, kb: Kb) -> None:
    door.reply = problem("too-large", 413, "a query has at most 65536 bytes")
    done = kb("query", "x")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: No: a query has at most 65536 bytes (urn:kb:problem:too-large)\n"


def test_a_problem_with_json_is_the_body(door: Door, kb: Kb) -> None:
    door.reply = problem("too-large", 413, "d")
    done = kb("doc", "show", HEX, "--json")
    assert done.code == 1
    assert json.loads(done.out)["type"] == "urn:kb:problem:too-large"


def test_a_reply_that_is_no_problem_document_is_told_too(door: Door, kb: Kb) -> None:
    door.reply = Response("<html>bad gateway", 502)
    done = kb("jobs")
    assert (done.code, done.err) == (1, "error: HTTP 502: <html>bad gateway\n")


def test_an_id_cannot_leave_its_place_in_the_path(door: Door, kb: Kb) -> None:
    door.reply = problem("not-found", 404)
    kb("doc", "show", "../../metrics?x#y")
    assert door.seen[0][1] == "/documents/..%2F..%2Fmetrics%3Fx%23y"
    assert kb("doc", "show", "..").code == 1
    assert len(door.seen) == 1


def test_doc_body_is_byte_for_byte(door: Door, kb: Kb) -> None:
    door.reply = Response("# Тело\r\n\x00")
    assert kb("doc", "body", HEX).out == "# Тело\r\n\x00"


def test_documents_are_listed_by_status_and_trust(door: Door, kb: Kb) -> None:
    document = VERSION | {"trusted": True, "trust": {"actor": "actor:a\x1b", "at": DAY}}
    door.reply = JSONResponse({"documents": [document], "next": None, "total": 1})
    out = kb("doc", "list", "--trusted", "--status", "indexed").out
    asked = {"limit": "50", "trusted": "true", "status": "indexed"}
    assert door.seen == [("GET", "/documents", asked)]
    assert "trusted by actor:a\ufffd" in out
    kb("doc", "list")
    assert door.seen[-1][2] == {"limit": "50"}


def test_a_document_says_what_the_scan_found_and_who_trusted_it(door: Door, kb: Kb) -> None:
    trusted = {"trusted": True, "trust": {"actor": "actor:admin", "at": DAY}}
    door.reply = JSONResponse(
        VERSION | trusted | {"scan": SCAN | {"bypassed": True, "ruled": "block"}}
    )
    out = kb("doc", "show", HEX).out
    assert "trusted        by actor:admin, 2026-01-01 00:00" in out
    said = "trusted, the rules say block (parsed text, score 0.62, worst high; rules-1): a.b, c.d"
    assert f"scan           {said}" in out
    door.reply = JSONResponse(VERSION | {"scan": SCAN})
    out = kb("doc", "show", HEX).out
    assert "scan           quarantine (parsed text" in out
    assert "trusted        False" in out


def test_a_journal_says_for_each_finding_which_rule_where_and_why(door: Door, kb: Kb) -> None:
    rule, why = next(iter(reasons().items()))
    found = [
        {"rule": rule, "severity": "high", "byte_start": 3, "byte_end": 9, "count": 2},
        {"rule": "gone.rule", "severity": "low", "byte_start": -1, "byte_end": -1},
        {"rule": "x\x1b[2J", "severity": "low", "byte_start": 0, "byte_end": 1,
         "hidden": "comment", "hidden_index": 1, "decoded": ["base64", "rot13"]},
        *[{"rule": "r", "severity": "low", "byte_start": n, "byte_end": n} for n in range(30)],
    ]  # fmt: skip
    data = {"verdict": "quarantine", "score": 0.6, "findings": found}
    entry = {"position": 3, "type": "ScanVerdict", "at": DAY, "actor": "svc:scanner",
             "version_id": HEX, "data": data}  # fmt: skip
    door.reply = JSONResponse({"document_id": HEX, "entries": [entry]})
    lines = kb("doc", "journal", HEX).out.splitlines()
    assert '"verdict": "quarantine"' in lines[0] and "findings" not in lines[0]
    assert lines[1].strip() == f"high {rule} ×2, bytes 3-9: {why}"
    assert lines[2].strip() == "low gone.rule, hidden"
    assert lines[3].strip() == "low x\ufffd[2J, bytes 0-1 of hidden comment in base64+rot13"
    assert lines[-1].strip() == "and 13 findings more"


def test_lists_page_by_cursor(door: Door, kb: Kb) -> None:
    door.reply = JSONResponse({"jobs": [], "next": "c2"})
    done = kb("jobs", "--limit", "3", "--cursor", "c1")
    assert door.seen == [("GET", "/jobs", {"limit": "3", "cursor": "c1"})]
    assert done.err == "more: --cursor c2\n"


@pytest.mark.parametrize(
    ("words", "project"),
    [((), "default"), (("--project", "p"), "p"), (("--all-projects",), None)],
)
def test_rebuild_names_a_project_or_all(
    door: Door, kb: Kb, words: tuple[str, ...], project: str | None
) -> None:
    kb("rebuild", *words, "--json")
    method, path, body = door.seen[-1]
    assert (method, path, json.loads(body)) == ("POST", "/rebuild", {"project": project})
    folded = [path for _, path, _ in door.seen[:-1]]
    assert folded == ([] if project else ["/projections/read/rebuild"])


def test_a_rollback_is_of_one_project(door: Door, kb: Kb) -> None:
    kb("rebuild", "--rollback", "--project", "p", "--json")
    method, path, body = door.seen[-1]
    assert (method, path, json.loads(body)) == (
        "POST", "/rebuild", {"project": "p", "rollback": True},
    )  # fmt: skip
    assert kb("rebuild", "--rollback", "--all-projects").code == 2


def test_the_generations_of_a_project_are_shown(door: Door, kb: Kb) -> None:
    view = {
        "project": "p", "generation": 2, "state": "live", "embedder": "m", "dim": 3,
        "chunker": "headings-4", "versions": 1, "passages": 7, "vectors": 7,
        "created_at": "2026-11-30T10:00:00Z", "since": "2026-11-30T10:05:00Z",
    }  # fmt: skip
    older = view | {"generation": 1, "state": "standby", "chunker": None}
    door.replies["/generations"] = JSONResponse({"generations": [older, view]})
    done = kb("rebuild", "--list", "--project", "p")
    assert door.seen == [("GET", "/generations", {"project": "p"})]
    assert [line[0] for line in done.out.splitlines()] == [" ", "*"]
    assert "7 passages" in done.out and "2026-11-30 10:05" in done.out


# -- events ------------------------------------------------------------------------------------


def test_events_without_follow_end(door: Door, kb: Kb) -> None:
    door.events = ['{"position": 1, "type": "kb.Parsed"}', '{"position": 2}']
    done = kb("events", "--json")
    assert (done.code, done.out) == (0, "".join(f"{e}\n" for e in door.events))
    assert door.seen == [("GET", "/events", {"after": 0, "follow": False})]


def test_follow_goes_on_where_the_stream_broke_off(door: Door, tmp_path: Path) -> None:
    door.events = [f'{{"position": {n}}}' for n in range(1, 5)]
    door.cut_after = 2
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "events", "--follow", "--json"],
        env={**os.environ, "KB_DATA": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline().strip() for _ in range(4)]
    process.terminate()
    process.wait()
    assert lines == door.events


# -- without a front door ----------------------------------------------------------------------


def test_without_a_stack_the_way_to_start_it_is_said(
    kb: Kb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KB_URL", raising=False)
    done = kb("query", "x")
    assert done.code == 1
    assert done.err.startswith("error: citelog is not running: start it: kb up --data ")


def test_a_closed_port_is_one_line(kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("KB_API_KEY", "k")
    done = kb("query", "x")
    assert done.code == 1
    assert done.err.startswith("error: the front door does not answer: ")
    assert len(done.err.splitlines()) == 1


def test_a_wrong_key_is_one_line(
    door: Door, kb: Kb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_API_KEY", "other")
    done = kb("ingest", _file(tmp_path, "a.md"))
    assert done.code == 1 and "(urn:kb:problem:unauthorized)" in done.err


def test_an_unknown_service_is_told(kb: Kb) -> None:
    done = kb("run", "ingest", "nonsense")
    assert done.code == 1 and "nonsense" in done.err
    assert len(done.err.splitlines()) == 1


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    heavy = {"torch", "docling", "asyncpg", "httpx", "nats", "fastapi"}
    code = f"import sys, cli.main; print(sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
