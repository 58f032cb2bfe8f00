"""`kb doc summary` and `kb taxonomy`: what is sent, and what a person sees."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from contracts.taxonomy import Reclassified
from tests.unit.cli.door import HEX, Door, problem
from tests.unit.cli.test_commands import Kb, door, kb  # noqa: F401 - fixtures

SUMMARY: dict[str, Any] = {
    "source_id": "0" * 64, "document_id": HEX, "version_id": HEX, "project": "default",
    "title": "Law", "language": "en", "summariser": "extractive-1", "levels": "1-2-3",
    "lead": {"text": "The \x1b[2Jlead.", "byte_start": 0, "byte_end": 9},
    "sections": [
        {"heading_path": ["Law"], "depth": 1, "byte_start": 0, "byte_end": 20, "digest": []},
        {
            "heading_path": ["Law", "§ 5"], "depth": 2, "byte_start": 20, "byte_end": 60,
            "digest": [{"text": "A fine.", "byte_start": 30, "byte_end": 37}],
        },
    ],
    "left_out": 3, "text": "x", "fence": "y",
}  # fmt: skip
TAXONOMY: dict[str, Any] = {
    "project": "default", "taxonomy": "0" * 64, "threshold": 0.5, "actor": "actor:1",
    "set_at": "2026-12-01T00:00:00Z",
    "classes": [{"name": "law/criminal", "description": "Crimes.", "keywords": ["theft"]}],
}  # fmt: skip
FILE = "classes:\n  - name: law/criminal\n    keywords: [theft]\n"


def applied(**more: Any) -> Reclassified:
    empty = {"classified": 0, "known": 0, "without_summary": 0, "classes": {}, "left": 0}
    return Reclassified.model_validate({"taxonomy": "0" * 64} | empty | more)


def test_a_summary_is_the_sentence_the_outline_and_the_digests(door: Door, kb: Kb) -> None:  # noqa: F811
    door.replies = {f"GET /documents/{HEX}/summary": JSONResponse(SUMMARY)}
    lines = kb("doc", "summary", HEX).out.splitlines()
    assert "\x1b" not in "".join(lines)
    assert "Law  [0-20]" in lines
    assert "  § 5  [20-60]" in lines
    assert "    - A fine.  [30-37]" in lines
    assert "3 more headings" in lines


def test_a_taxonomy_is_read_from_yaml_and_json(door: Door, kb: Kb, tmp_path: Path) -> None:  # noqa: F811
    door.replies = {"PUT /projects/legal/taxonomy": JSONResponse(TAXONOMY)}
    said = {"classes": [{"name": "law/criminal", "keywords": ["theft"]}]}
    for name, text in {"a.yaml": FILE, "a.json": json.dumps(said)}.items():
        (tmp_path / name).write_text(text, "utf-8")
        out = kb("taxonomy", "set", str(tmp_path / name), "--project", "legal").out
        assert "1 classes, threshold 0.5" in out
        assert json.loads(door.seen[-1][2]) == said


@pytest.mark.parametrize("text", ["classes: [", "{"])
def test_a_file_that_is_neither_is_an_error(kb: Kb, tmp_path: Path, text: str) -> None:  # noqa: F811
    file = tmp_path / ("a.json" if text == "{" else "a.yaml")
    file.write_text(text, "utf-8")
    done = kb("taxonomy", "set", str(file))
    assert done.code == 1 and "cannot read the file" in done.err


def test_what_is_left_is_asked_for_again(kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    replies = [
        applied(classified=2, classes={"law": 2}, left=2),
        applied(classified=1, known=3, classes={"manuals": 1}, without_summary=1),
    ]
    monkeypatch.setattr("cli.taxonomy._apply", lambda *_: replies.pop(0))
    out = kb("taxonomy", "apply").out
    assert "2  law" in out and "1  manuals" in out
    assert "3 classified, 1 were already, 1 have no summary (kb rebuild)" in out


def test_a_project_without_a_taxonomy_is_told(door: Door, kb: Kb) -> None:  # noqa: F811
    door.replies = {"GET /projects/default/taxonomy": problem("no-taxonomy", 404, "it has none")}
    done = kb("taxonomy", "show")
    assert done.code == 1 and "it has none" in done.err
