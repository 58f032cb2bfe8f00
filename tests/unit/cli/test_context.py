"""`kb context` and `kb doc passage`: what is asked, and what a person sees of the reply."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.responses import JSONResponse, Response

from tests.unit.cli.door import HEX, Door, open_door
from tests.unit.cli.test_commands import Kb, kb  # noqa: F401 - a fixture

AT = {"valid_from": "2020-01-01T00:00:00Z", "valid_until": "2024-01-01T00:00:00Z"}
IDS = {
    "document_id": HEX, "version_id": HEX, "source_id": HEX * 2, "project": "default",
    "source": "закон.md",
}  # fmt: skip
SOURCE: dict[str, Any] = IDS | AT | {
    "number": 1, "title": "Закон", "heading_path": ["Члан 5"], "byte_start": 3, "byte_end": 9,
    "chunk_ids": ["c"], "score": 0.5, "cut": True,
}  # fmt: skip
TOLD: dict[str, Any] = {
    "context": "<f>\n[1] Закон (закон.md)\n\nКазна\x1b[31m\n</f>", "sources": [SOURCE],
    "tokens": 12, "budget": 300, "left_out": 2, "gone": 0, "fence": "f", "reranked": False,
    "score_kind": "rrf", "position": 7,
}  # fmt: skip
VIEW: dict[str, Any] = IDS | AT | {
    "title": "Закон", "media_type": "application/pdf", "language": "sr", "current": False,
    "body_sha256": "a" * 64, "body_bytes": 90, "byte_start": 3, "byte_end": 9,
    "heading_path": ["Глава 1", "Члан 5"], "text": "Казна\x1b[31m.\n\nДруго.",
    "section": {"byte_start": 0, "byte_end": 20, "heading_path": ["Глава 1", "Члан 5"]},
    "parent": {"byte_start": 0, "byte_end": 80, "heading_path": ["Глава 1"]},
    "before": [
        {"chunk_id": "b", "heading_path": [], "byte_start": 0, "byte_end": 2, "text": "Пре"},
    ],
    "after": [],
    "spans": [{"byte_start": 3, "byte_end": 9, "place": {"page": 4, "box": [1, 2, 3, 4]}}],
}  # fmt: skip


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    with open_door() as door:
        monkeypatch.setenv("KB_URL", door.url)
        monkeypatch.setenv("KB_API_KEY", "test-key")
        yield door


def test_a_context_is_printed_harmless_and_its_size_beside_it(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(TOLD)
    done = kb(
        "context", "казна", "--budget", "300", "--neighbours", "1", "--section", "--reading",
        "--as-of", "2021-01-01", "--project", "a", "--project", "b", "--type", "pdf",
    )  # fmt: skip
    assert "[1] Закон (закон.md)\n\nКазна\ufffd[31m\n" in done.out
    assert "1 sources, 12 of 300 tokens; 2 passages left out; the passage is cut" in done.err
    assert json.loads(door.seen[0][2]) == {
        "query": "казна", "budget": 300, "neighbours": 1, "section": True, "order": "reading",
        "as_of": "2021-01-01", "projects": ["a", "b"], "types": ["pdf"],
    }  # fmt: skip


def test_a_context_asks_for_no_more_than_was_said(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(TOLD | {"context": "", "sources": [], "left_out": 0})
    done = kb("context", "казна")
    assert done.out == ""
    assert json.loads(door.seen[0][2]) == {"query": "казна", "project": "default"}


def test_a_context_as_json_is_the_reply(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(TOLD)
    assert json.loads(kb("context", "казна", "--json").out) == TOLD


def test_a_passage_is_shown_with_its_section_page_and_neighbours(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(VIEW)
    out = kb("doc", "passage", HEX, "--start", "3", "--end", "9", "--neighbours", "1").out
    assert "Закон > Глава 1 > Члан 5\n" in out
    assert f"закон.md  version {HEX}  bytes 3-9  valid from 2020-01-01, until 2024-01-01" in out
    assert "section   Члан 5  bytes 0-20" in out
    assert "around it Глава 1  bytes 0-80" in out
    assert "pages     4" in out
    assert out.endswith("  Пре\n\n| Казна\ufffd[31m.\n|\n| Друго.\n\n")
    asked = {"start": "3", "end": "9", "neighbours": "1"}
    assert door.seen[0] == ("GET", f"/documents/{HEX}/passage", asked)


def test_a_passage_by_its_chunk_id_and_its_bytes(door: Door, kb: Kb) -> None:  # noqa: F811
    door.reply = JSONResponse(VIEW)
    kb("doc", "passage", HEX, "--chunk", "d:члан-5:1:ab", "--as-of", "2021-01-01")
    assert door.seen[0][2] == {"chunk": "d:члан-5:1:ab", "as_of": "2021-01-01"}
    door.reply = Response("Казна".encode())
    assert kb("doc", "passage", HEX, "--start", "3", "--end", "9", "--raw").out == "Казна"


@pytest.mark.parametrize(
    "options",
    [(), ("--start", "1"), ("--end", "4"), ("--chunk", "c", "--start", "1", "--end", "4")],
)
def test_a_passage_needs_a_range_or_an_id(door: Door, kb: Kb, options: tuple[str, ...]) -> None:  # noqa: F811
    done = kb("doc", "passage", HEX, *options)
    assert done.code != 0
    assert "say which passage" in done.err
    assert door.seen == []
