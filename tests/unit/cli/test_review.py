"""`kb review`: what it asks, what a person sees, and what a terminal never gets."""

import json
import sys
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from tests.unit.cli.door import HEX, Door, problem
from tests.unit.cli.test_commands import DAY, SCAN, VERSION, Kb, door, kb

__all__ = ("door", "kb")  # fixtures

HASH = "b" * 64
OTHER = "1" * 32
VIEW: dict[str, Any] = {
    "version_id": HEX, "document_id": HEX, "source_id": "a" * 64, "project": "default",
    "name": "a\x1b[2J paper.pdf", "subject": "converted", "text_sha256": HASH, "score": 0.62,
    "ruleset": "rules-1", "judged_at": DAY, "rescan": True, "lowered": True, "left_out": 4,
    "findings": [
        {"number": 1, "rule": "override.en.x", "kind": "override", "severity": "medium",
         "why": "It orders a model to forget.", "count": 3, "text": 0, "byte_start": 12,
         "byte_end": 22, "decoded": [], "before": "They\nwrite ", "match": "ignore\nall",
         "after": " now", "says": ""},
        {"number": 2, "rule": "encoded.y", "kind": "", "severity": "high", "why": "", "count": 1,
         "text": 1, "byte_start": 0, "byte_end": 8, "decoded": ["base64", "rot13"], "before": "",
         "match": "SWdub3Jl", "after": "", "says": "Ignore⟦U+202E⟧"},
        {"number": 3, "rule": "old", "kind": "", "severity": "low", "why": "", "count": 1,
         "text": None, "byte_start": -1, "byte_end": -1, "decoded": [], "before": "", "match": "",
         "after": "", "says": ""},
    ],
    "texts": [
        {"hidden": None, "hidden_index": None, "size_bytes": 900, "pieces": [
            {"text": "", "findings": [], "left_out": 77},
            {"text": "They\nwrite ", "findings": [], "left_out": 0},
            {"text": "ignore\nall", "findings": [1], "left_out": 0},
            {"text": " now\x1b[31m", "findings": [], "left_out": 0},
        ]},
        {"hidden": "comment", "hidden_index": 1, "size_bytes": 8, "pieces": [
            {"text": "SWdub3Jl", "findings": [2], "left_out": 0},
        ]},
    ],
}  # fmt: skip


@pytest.fixture(name="waiting")
def _waiting(door: Door) -> Door:
    """A door behind which one version waits."""
    door.replies = {
        f"/documents/{HEX}": JSONResponse(VERSION | {"versions": [VERSION]}),
        f"/review/{HEX}": JSONResponse(VIEW),
    }
    return door


def decided(door: Door, decision: str = "release") -> None:
    """The next decision is taken."""
    body = {"version_id": HEX, "decision": decision, "position": 9, "text_sha256": HASH}
    door.replies[f"POST /review/{HEX}"] = JSONResponse(body)


def test_what_waits_is_listed_with_why(door: Door, kb: Kb) -> None:
    evil = VERSION | {"title": "a\x1b[2J\nb", "scan": SCAN}
    door.reply = JSONResponse({"documents": [evil, VERSION], "next": "c2", "total": 2})
    done = kb("review", "list", "--project", "p", "--limit", "7", "--cursor", "c1")
    asked = {"status": "review", "project": "p", "limit": "7", "cursor": "c1"}
    assert door.seen == [("GET", "/documents", asked)]
    lines = done.out.splitlines()
    assert lines[0] == f"{HEX}  2026-01-01 00:00  high    0.62  default  a\ufffd[2J b"
    assert lines[1].strip() == "a.b, c.d"
    assert lines[2] == f"{HEX}  2026-01-01 00:00  –          –  default  Law"
    assert done.err == "more: --cursor c2\n"


def test_nothing_waits_is_said(door: Door, kb: Kb) -> None:
    door.reply = JSONResponse({"documents": [], "next": None, "total": 0})
    assert kb("review", "list").out == "nothing waits\n"
    assert json.loads(kb("review", "list", "--json").out)["total"] == 0


def test_findings_are_shown_with_reason_place_and_text(waiting: Door, kb: Kb) -> None:
    done = kb("review", "show", HEX)
    out = done.out
    assert "name           a\ufffd[2J paper.pdf" in out
    assert f"text           {HASH[:16]} (what would be indexed)" in out
    assert "was in the index until newer rules found this; for a new document they say block" in out
    assert "1. medium  override.en.x ×3  bytes 12-22\n   It orders a model to forget." in out
    assert "   … They write »ignore all« now …" in out
    assert "2. high  encoded.y  bytes 0-8 of hidden comment, base64+rot13" in out
    assert "the rules of today have no such rule" in out
    assert "   says: Ignore⟦U+202E⟧" in out
    assert "3. low  old  (place unknown)" in out and "and 4 findings more" in out
    text = out.partition("-- text, 900 bytes")[2]
    assert "| [… 77 bytes …]\n| They\n| write »ignore«\n| »all« now\ufffd[31m\n" in text
    assert "hidden from readers: comment, 8 bytes" in text and "| »SWdub3Jl«" in text
    assert "\x1b" not in out
    assert f"kb review release|reject {HEX} --text {HASH[:16]} --reason" in done.err


def test_json_is_the_reply(waiting: Door, kb: Kb) -> None:
    assert json.loads(kb("review", "show", HEX, "--json").out) == VIEW


def test_a_terminal_gets_colours_and_nothing_else_does(
    waiting: Door, kb: Kb, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b" not in kb("review", "show", HEX).out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    out = kb("review", "show", HEX).out
    assert "\x1b[33m" in out and "\x1b[31m\x1b[1mSWdub3Jl\x1b[0m" in out
    # The document's own escape sequences are not among them.
    assert "now\ufffd[31m" in out


@pytest.mark.parametrize("decision", ["release", "reject"])
def test_a_decision_is_sent_with_its_reason(waiting: Door, kb: Kb, decision: str) -> None:
    decided(waiting, decision)
    done = kb("review", decision, HEX, "--reason", " a quotation ")
    method, path, body = waiting.seen[-1]
    assert (method, path) == ("POST", f"/review/{HEX}")
    assert json.loads(body) == {"decision": decision, "reason": "a quotation"}
    assert done.out == f"{decision[:7].removesuffix('e')}ed  {HEX}  text {HASH[:16]}\n"


def test_a_decision_about_a_text_names_it_whole(waiting: Door, kb: Kb) -> None:
    decided(waiting)
    assert kb("review", "release", HEX, "--reason", "x", "--text", HASH[:12].upper()).code == 0
    assert json.loads(waiting.seen[-1][2])["text_sha256"] == HASH


def test_a_decision_about_another_text_is_not_sent(waiting: Door, kb: Kb) -> None:
    for given, said in (("c" * 16, "another text waits"), (HASH[:7], "--text is too short")):
        done = kb("review", "release", HEX, "--reason", "x", "--text", given)
        assert done.code == 1 and said in done.err
    assert all(method == "GET" for method, _, _ in waiting.seen)


def test_a_reason_is_required(waiting: Door, kb: Kb) -> None:
    assert kb("review", "release", HEX).code == 2
    done = kb("review", "release", HEX, "--reason", "  ")
    assert done.code == 1 and "--reason is empty" in done.err
    assert waiting.seen == []


def test_an_id_of_a_document_means_the_version_that_waits(waiting: Door, kb: Kb) -> None:
    document = "d" * 32
    old = VERSION | {"version_id": OTHER, "status": "indexed"}
    found = VERSION | {"version_id": OTHER, "versions": [old, VERSION]}
    waiting.replies[f"/documents/{document}"] = JSONResponse(found)
    kb("review", "show", document)
    assert waiting.seen[-1][1] == f"/review/{HEX}"
    both = [VERSION, VERSION | {"version_id": OTHER}]
    waiting.replies[f"/documents/{document}"] = JSONResponse(VERSION | {"versions": both})
    done = kb("review", "release", document, "--reason", "x")
    assert done.code == 1 and "several versions of it wait" in done.err and OTHER in done.err


def test_a_refusal_is_one_line(waiting: Door, kb: Kb) -> None:
    waiting.replies[f"/review/{HEX}"] = problem("not-in-review", 409, "no decision\x1b is open")
    done = kb("review", "reject", HEX, "--reason", "x")
    assert done.code == 1
    assert done.err == "error: No: no decision\ufffd is open (urn:kb:problem:not-in-review)\n"
