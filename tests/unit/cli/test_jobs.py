"""`kb job`, `kb doc delete`, and what a journal shows of a parse."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from cli import show
from cli.main import main
from contracts.http import DocumentView, JobView
from tests.unit.cli.door import HEX, Door
from tests.unit.cli.test_commands import Kb, door, kb  # noqa: F401 - fixtures

JOB = "00000000-0000-0000-0000-000000000001"
CHANGED = {
    "job_id": JOB, "project": "default", "document_id": HEX, "version_id": HEX, "attempt": 2,
    "status": "received", "changed": True, "position": 7,
}  # fmt: skip
VIEW = {
    "version_id": HEX, "document_id": HEX, "source_id": HEX * 2, "project": "default",
    "source_key": "k", "name": "mail.eml", "title": "A letter", "media_type": "message/rfc822",
    "size_bytes": 9, "language": "en", "status": "indexed", "verdict": "clean", "parser": "p",
    "converter": "c", "embedder": "e", "body_sha256": HEX * 2, "body_bytes": 3, "chunk_count": 1,
    "error": None, "received_at": "2026-01-01T00:00:00Z", "valid_from": "2026-01-01T00:00:00Z",
    "valid_until": None, "current": True, "job_id": JOB,
}  # fmt: skip


def _asked(of: Door) -> list[tuple[str, str]]:
    return [(method, path) for method, path, _ in of.seen]


def test_cancel_and_retry_ask_for_that_and_say_what_came_of_it(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(CHANGED)
    assert kb("job", "cancel", JOB).out == "cancelled\n"
    assert kb("job", "retry", JOB).out == f"{JOB}  attempt 2\n"
    assert _asked(door) == [("POST", f"/jobs/{JOB}/cancel"), ("POST", f"/jobs/{JOB}/retry")]


def test_what_was_so_already_is_said(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(CHANGED | {"changed": False, "status": "indexed"})
    assert kb("job", "cancel", JOB).out == "was over already: indexed\n"
    assert "was tried again already: attempt 2" in kb("job", "retry", JOB).out
    assert json.loads(kb("job", "cancel", JOB, "--json").out)["changed"] is False


def test_a_job_tells_whose_turn_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    at = "2026-01-01T00:00:00Z"
    show.job(
        JobView.model_validate(
            {k: CHANGED[k] for k in ("job_id", "project", "document_id", "version_id", "attempt")}
            | {"name": "a.md", "status": "failed", "stage": "converter", "done": True,
               "chunk_count": None, "started_at": at, "updated_at": at, "owner": "ingest",
               "next_action": "retry", "progress": 0.5,
               "error": {"stage": "converter", "code": "corrupt", "reason": "broken\x1b"}}
        )
    )  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert {"owner          ingest", "next_action    retry", "progress       50%",
            "code           corrupt", "reason         broken\ufffd"} <= set(lines)  # fmt: skip


def test_the_list_shows_what_is_overdue(door: Door, kb: Kb) -> None:  # noqa: F811
    at = "2026-01-01T00:00:00Z"
    job = {k: v for k, v in CHANGED.items() if k not in ("changed", "position")} | {
        "name": "a.md", "stage": "converter", "done": False, "chunk_count": None, "error": None,
        "started_at": at, "updated_at": at, "overdue": True, "next_action": "the converter parses",
    }  # fmt: skip
    door.reply = JSONResponse({"jobs": [job, job | {"overdue": False}], "next": None})
    one, two = kb("jobs").out.splitlines()
    assert one.endswith("a.md  overdue: the converter parses") and two.endswith("a.md")


def test_delete_asks_first(door: Door, kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    door.reply = JSONResponse(VIEW | {"versions": [VIEW], "attachments": []})
    monkeypatch.setattr("sys.stdin", _Answer("n\n"))
    done = kb("doc", "delete", HEX)
    assert done.code == 1 and "A letter" in done.err
    assert _asked(door) == [("GET", f"/documents/{HEX}")]


def test_delete_with_yes_does_not_ask(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(
        {"project": "default", "document_id": HEX, "documents": [HEX, "1" * 32], "versions": 3,
         "blobs": 5, "jobs_cancelled": 1, "position": 9}
    )  # fmt: skip
    done = kb("doc", "delete", HEX, "--yes")
    assert done.out == "erased: 3 versions, 5 files, 1 attached to it, 1 jobs cancelled\n"
    assert _asked(door) == [("DELETE", f"/documents/{HEX}")]


class _Answer:
    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)

    def readline(self, *_: Any) -> str:
        return self._lines.pop(0) if self._lines else ""

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize("words", [["job", "cancel", ".."], ["doc", "delete", "..", "--yes"]])
def test_an_id_stays_one_part_of_the_path(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main([*words, "--data", str(tmp_path)])


def test_a_journal_shows_the_whole_story_of_a_parse(capsys: pytest.CaptureFixture[str]) -> None:
    data = {
        "project": "p", "parser": "pdf-1", "shares": {"de": 0.83, "en": 0.17},
        "missing_pages": [4, 5, 6, 9], "warnings": ["w" * 500, "type told by content"],
        "readings": [
            {"page": 1, "engine": "tesseract", "scores": {"tesseract": 0.9, "rapidocr": 0.5}},
            {"page": 2, "engine": "tesseract", "scores": {"tesseract": 0.8, "rapidocr": 0.6}},
            {"page": 7, "engine": "rapidocr", "scores": {"rapidocr": 0.7}},
        ],
    }  # fmt: skip
    show.event({"position": 3, "time": "2026-01-01T00:00:00Z", "type": "Parsed", "data": data})
    lines = [x.strip() for x in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        "languages: de 83%, en 17%",
        "pages that could not be read: 4-6, 9",
        "OCR by tesseract: pages 1-2; mean scores there: rapidocr 0.55, tesseract 0.85",
        "OCR by rapidocr: pages 7; mean scores there: rapidocr 0.70",
        f"warning: {'w' * 500}",
        "warning: type told by content",
    ]


def test_a_document_shows_what_is_attached_and_what_was_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = {"version_id": HEX, "document_id": "2" * 32, "name": "a\x1b.pdf",
             "media_type": "application/pdf", "status": "indexed"}  # fmt: skip
    left = {"number": 2, "name": "x.exe", "media_type": "", "code": "unsupported-media-type"}
    show.document(
        DocumentView.model_validate(
            VIEW | {"attachments": [other], "attached_to": other | {"name": "outer.eml"},
                    "left_out": [left], "left_out_by_code": {"unsupported-media-type": 3}}
        )
    )  # fmt: skip
    out = capsys.readouterr().out
    assert f"attached to {'2' * 32}  indexed    outer.eml" in out
    assert f"+ {'2' * 32}  indexed    a\ufffd.pdf" in out
    assert "- x.exe  unknown type  left out: unsupported-media-type" in out
    assert "- 2 more left out" in out
