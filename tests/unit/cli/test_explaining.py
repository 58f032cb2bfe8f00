"""`kb query --explain`: lines for a person."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.responses import JSONResponse

from tests.unit.cli.door import HEX, Door, open_door
from tests.unit.cli.test_commands import HIT, Kb, kb  # noqa: F401 - a fixture

PLACE: dict[str, Any] = {"rank": 1, "raw_rank": 2, "score": 0.75}
NOTE: dict[str, Any] = {
    "fused_rank": 3, "dense": PLACE, "keyword": None, "rerank_score": 0.5, "generation": 4,
    "passed": "named", "recorded_from": "2026-01-02T03:04:05Z", "recorded_until": None,
}  # fmt: skip
WHOLE: dict[str, Any] = {
    "moment": "2026-11-30T12:00:00Z", "known": None, "keyword_mode": "or",
    "asked": [{
        "project": "default", "generation": 4, "embedder": "m\x1b[31m", "passed": "named",
        "named": 7, "also": 0, "without": 0,
    }],
    "words": {"fine": ["en:fine"]}, "depth": 50, "dense": {"found": 50, "valid": 49},
    "keyword": {"found": 3, "valid": 3}, "candidates": 51, "twins": 4, "reranked": 10, "rounds": 2,
    "took_ms": {"embed": 4.25},
}  # fmt: skip


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    with open_door() as door:
        monkeypatch.setenv("KB_URL", door.url)
        monkeypatch.setenv("KB_API_KEY", "test-key")
        yield door


def test_an_explained_hit_says_place_score_and_validity(door: Door, kb: Kb) -> None:  # noqa: F811
    hit = HIT | {"explain": NOTE}
    door.reply = JSONResponse(
        {"results": [hit], "reranked": True, "score_kind": "rerank", "position": 1}
        | {"explain": WHOLE}
    )
    out = kb("query", "x", "--explain").out
    assert "dense    rank 1 (2 before validity), cosine 0.7500" in out
    assert "keyword  not among its candidates" in out
    assert "fused    place 3, reranked 0.5000" in out
    assert "valid    said 2026-01-02 03:04; only versions that were named (generation 4)" in out
    assert json.loads(door.seen[0][2])["explain"] is True


def test_an_explained_reply_says_what_was_asked(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(
        {"results": [], "reranked": False, "score_kind": "rrf", "position": 1, "explain": WHOLE}
    )
    out = kb("query", "x", "--explain").out
    assert "valid at   2026-11-30 12:00:00 UTC, by what is known now" in out
    assert "dense      50 of at most 50 passages, 1 not valid" in out
    assert "fused      51 candidates, 10 read by the reranker, 4 folded as twins, 2 looks" in out
    assert "took ms    embed 4.2" in out
    assert "\x1b" not in out


def test_every_filter_is_sent(door: Door, kb: Kb) -> None:  # noqa: F811
    kb(
        "query", "x", "--heading", "Act", "--heading", "Fines", "--language", "en", "--type", "pdf",
        "--document", HEX, "--tag", "old", "--tag", "new", "--class", "law",
        "--dated-from", "2026-01-01", "--dated-until", "2026-02-01",
        "--received-from", "2026-03-01", "--received-until", "2026-04-01",
        "--max-distance", "0.5", "--no-fold", "--json",
    )  # fmt: skip
    assert json.loads(door.seen[0][2]) == {
        "query": "x", "project": "default", "heading_prefix": ["Act", "Fines"],
        "languages": ["en"], "types": ["pdf"], "documents": [HEX], "tags": ["old", "new"],
        "classes": ["law"], "dated_from": "2026-01-01", "dated_until": "2026-02-01",
        "received_from": "2026-03-01", "received_until": "2026-04-01", "max_distance": 0.5,
        "fold": False,
    }  # fmt: skip


def test_how_likely_there_is_an_answer_is_told_with_what_was_found(door: Door, kb: Kb) -> None:  # noqa: F811
    reply = {"results": [HIT], "reranked": False, "score_kind": "rrf", "position": 1}
    door.reply = JSONResponse(reply | {"answerable": 0.913})
    assert "that the base answers it at all: 91% likely" in kb("query", "x").out
    door.reply = JSONResponse(reply)
    assert "likely" not in kb("query", "x").out
