"""A consumer as the first seed's text has it: it knows `POST /query` and nothing else of ours.

Every expectation stands in that text: the fields and no class of ours, `" > ".join(heading_path)`,
the bytes behind a passage, what a filter by day brings, what an RRF score is.
"""

import hashlib
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.e2e.test_line import ingest

ACT = """# Data Protection Act

## Chapter 1

### § 5

The maximum fine for a data breach is {} million euro, or four per cent of the turnover.

### § 6

The controller tells the authority within seventy-two hours after it learned of the breach.
"""
ZAKON = """# Закон о заштити података о личности

## Глава 1

### Члан 5

Највећа новчана казна за повреду података износи двадесет милиона динара.

### Члан 6

Руковалац обавештава повереника у року од седамдесет два сата од сазнања за повреду.
"""
FIELDS = {
    "chunk_id": str, "source_id": str, "heading_path": list, "byte_start": int, "byte_end": int,
    "text": str, "score": float, "rrf_score": float,
}  # fmt: skip


async def ask(client: httpx.AsyncClient, **asked: Any) -> dict[str, Any]:
    """The seed's own call, and what it says of every reply."""
    reply = await client.post("/query", json=asked)
    assert reply.status_code == 200, reply.text
    body = dict(reply.json())
    assert {"results", "reranked", "score_kind"} <= set(body)
    assert body["score_kind"] == ("rerank" if body["reranked"] else "rrf")
    for result in body["results"]:
        for name, kind in FIELDS.items():
            assert type(result[name]) is kind, name
        assert result["valid_until"] is None or datetime.fromisoformat(result["valid_until"])
        assert result["rerank_score"] is None  # nothing reranks here
        assert result["score"] == result["rrf_score"]
    scores = [result["score"] for result in body["results"]]
    assert scores == sorted(scores, reverse=True)
    return body


async def cited(client: httpx.AsyncClient, result: dict[str, Any]) -> str:
    """The exact bytes behind a passage: offsets are UTF-8 bytes of the stored Markdown."""
    body = (await client.get(f"/documents/{result['source_id']}/body")).text
    body_bytes = body.encode("utf-8")
    return body_bytes[result["byte_start"] : result["byte_end"]].decode("utf-8")


async def test_the_seeds_question_is_answered_in_the_seeds_words(
    client: httpx.AsyncClient,
) -> None:
    text = ACT.format("twenty")
    await ingest(client, "act.md", text, project="seed", valid_from="2025-01-01")
    asked = {"query": "maximum fine for a data breach", "top_k": 5, "as_of": "2025-12-30"}
    body = await ask(client, **asked, project="seed")
    best = body["results"][0]
    assert " > ".join(best["heading_path"]) == "Data Protection Act > Chapter 1 > § 5"
    assert best["source_id"] == hashlib.sha256(text.encode()).hexdigest()
    assert best["valid_until"] is None
    assert "twenty million euro" in await cited(client, best)
    assert await cited(client, best) in best["text"]
    assert best["score"] == pytest.approx(2 / 61)  # first in both lists
    (only,) = (await ask(client, **asked | {"top_k": 1}, project="seed"))["results"]
    assert {**only, "text": ""} == {**best, "text": ""}  # the fence has another name


async def test_cyrillic_offsets_are_bytes_and_not_characters(client: httpx.AsyncClient) -> None:
    await ingest(client, "закон.md", ZAKON, project="seed-sr")
    results = (await ask(client, query="највећа новчана казна", project="seed-sr"))["results"]
    assert results[0]["heading_path"][-1] == "Члан 5"
    for result in results:
        passage = await cited(client, result)
        assert passage in result["text"]
        assert passage.encode() in ZAKON.encode()
        assert ZAKON[result["byte_start"] : result["byte_end"]] != passage  # by characters


async def test_an_id_encodes_the_headings_and_stays_while_they_stay(
    client: httpx.AsyncClient,
) -> None:
    await ingest(client, "a.md", ACT.format("twenty"), project="seed-id", source="act")
    before = await ask(client, query="controller tells the authority", project="seed-id")
    await ingest(client, "a.md", ACT.format("thirty"), project="seed-id", source="act")
    after = await ask(client, query="controller tells the authority", project="seed-id")
    first, second = before["results"][0], after["results"][0]
    assert first["heading_path"] == second["heading_path"]
    assert first["source_id"] != second["source_id"]
    assert first["chunk_id"] == second["chunk_id"]  # its section did not change
    fine = "maximum fine for a data breach"
    old = await ask(client, query=fine, project="seed-id", include_historical=True)
    ids = {r["chunk_id"] for r in old["results"] if r["heading_path"][-1] == "§ 5"}
    assert len(ids) == 2  # its words did


async def test_replaced_passages_cannot_crowd_out_the_one_that_is_valid(
    client: httpx.AsyncClient,
) -> None:
    for year, fine in ((2021, "one"), (2022, "two"), (2023, "three")):
        text = ACT.format(fine)
        await ingest(
            client, "a.md", text, project="seed-day", source="act", valid_from=f"{year}-01-01"
        )
    question = {"query": "maximum fine for a data breach", "project": "seed-day", "top_k": 1}

    async def best(**when: Any) -> tuple[str, str | None]:
        (result,) = (await ask(client, **question, **when))["results"]
        return await cited(client, result), result["valid_until"]

    now, until = await best()
    assert "three million" in now
    assert until is None
    then, until = await best(as_of="2022-06-01")
    assert "two million" in then
    assert until is not None
    assert until.startswith("2023-01-01")
    everything = await ask(client, **question | {"top_k": 50}, include_historical=True)
    fines = [await cited(client, r) for r in everything["results"]]
    assert all(any(f"{fine} million" in f for f in fines) for fine in ("one", "two", "three"))


async def test_the_text_is_fenced_and_told_to_be_data(client: httpx.AsyncClient) -> None:
    await ingest(client, "act.md", ACT.format("nine"), project="seed-fence")
    for result in (await ask(client, query="fine", project="seed-fence"))["results"]:
        first, *_, last = result["text"].splitlines()
        assert "data" in first
        assert "instruction" in first
        assert last.startswith("</")
