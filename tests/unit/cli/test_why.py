"""`kb why`: what is sent, and lines for a person."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from tests.unit.cli.door import HEX, Door, open_door
from tests.unit.cli.test_commands import Kb, kb  # noqa: F401 - a fixture

AHEAD: dict[str, Any] = {
    "chunk_id": "c1", "version_id": HEX, "project": "default", "title": "Law\x1b[31m",
    "heading_path": ["Fines"], "score": 0.75,
}  # fmt: skip
TOLD: dict[str, Any] = {
    "reason": "below-top-k", "why": "others stand before it", "chunk_id": "c2",
    "versions": [HEX, "1" * 32], "version_id": HEX, "document_id": HEX, "project": "default",
    "generation": 3, "title": "Act", "heading_path": ["Part"], "depth": 50, "looked": 1000,
    "windows": [{"valid_from": "2026-01-02T00:00:00Z", "valid_until": None,
                 "recorded_from": "2026-01-03T00:00:00Z", "recorded_until": None}],
    "dense": {"brought": True, "rank": 9, "score": 0.5, "before": [AHEAD]},
    "keyword": {"brought": False, "rank": None, "score": None, "words": ["fine"]},
    "fused_rank": 12, "place": 11, "twin_of": AHEAD, "position": 1,
}  # fmt: skip


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    with open_door() as door:
        monkeypatch.setenv("KB_URL", door.url)
        monkeypatch.setenv("KB_API_KEY", "test-key")
        yield door


def test_why_sends_the_question_and_the_passage(door: Door, kb: Kb) -> None:  # noqa: F811
    kb("why", "x", "c2", "--version", HEX, "--type", "pdf", "--project", "a", "--project", "b",
       "--min-score", "0.2", "--json")  # fmt: skip
    method, path, sent = door.seen[0]
    assert (method, path) == ("POST", "/query/why")
    assert json.loads(sent) == {
        "query": "x", "chunk": "c2", "version": HEX, "types": ["pdf"], "projects": ["a", "b"],
        "min_score": 0.2,
    }  # fmt: skip


def test_a_person_is_told_each_step(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(TOLD)
    out = kb("why", "x", "c2").out
    assert out.startswith("below-top-k: others stand before it\n")
    assert "passage    Act > Part" in out
    assert "2 versions have one of that name (--version)" in out
    assert "valid      from 2026-01-02 00:00" in out
    assert "dense      rank 9, 0.5000" in out and "after 0.7500 Law" in out
    assert "keyword    not among the first 1000, words: fine; the leg brought at most 50" in out
    assert "fused      rank 12, place 11 of what may be shown" in out
    assert "\x1b" not in out
