"""An index changes its chunker and its model while questions are asked, through real processes."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kernel.testing_wait import eventually
from tests.e2e.test_line import LAW, ZAKON, ingest, query
from tests.stack import Stack

OTHER = {"small": {"embedder": "hashed", "embeddings_dim": 64}}
QUESTION = "fine for a breach"


@pytest.fixture(scope="module")
def own_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with two embedders."""
    folder: Path = tmp_path_factory.mktemp("generations")
    stack = Stack(folder, "hashed", KB_EMBEDDERS=json.dumps(OTHER))
    stack.kb("up", "--detach")
    yield stack
    stack.kb("down")


@pytest.fixture
async def client(own_stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with own_stack.client() as client:
        yield client


async def _shown(client: httpx.AsyncClient, version_id: str) -> dict[str, Any]:
    view = (await client.get(f"/documents/{version_id}")).json()
    return next(dict(v) for v in view["versions"] if v["version_id"] == version_id)


async def test_chunker_and_model_change_and_come_back_while_questions_are_answered(
    own_stack: Stack, client: httpx.AsyncClient
) -> None:
    accepted = [await ingest(client, n, d) for n, d in (("act.md", LAW), ("zakon.md", ZAKON))]
    before = await query(client, QUESTION)
    answers: list[tuple[str, ...]] = []
    over = asyncio.Event()

    async def asking() -> None:
        while not over.is_set():
            answers.append(tuple(sorted(hit["chunk_id"] for hit in await query(client, QUESTION))))

    async def changing() -> list[dict[str, Any]]:
        try:
            change = {"chunking": "paragraph", "embedder": "small"}
            assert (await client.put("/projects/default", json=change)).status_code == 200
            told = []
            for body in ({}, {"rollback": True}):
                reply = await client.post("/rebuild", json={"project": "default", **body})
                assert reply.status_code == 200, reply.text
                told += reply.json()["rebuilt"]
                told[-1]["hits"] = await query(client, QUESTION)
            return told
        finally:
            over.set()

    _, (made, back) = await asyncio.gather(asking(), changing())
    assert (made["generation"], made["before"], made["recut"]) == (2, 1, 2)
    assert (made["chunker"], "dim=64" in made["embedder"]) == ("paragraphs-3", True)
    assert (back["generation"], back["written"], back["embedded"], back["recut"]) == (1, 0, 0, 2)
    ids = [
        tuple(sorted(h["chunk_id"] for h in hits)) for hits in (before, made["hits"], back["hits"])
    ]
    assert ids[0] == ids[2] != ids[1]
    assert answers and set(answers) <= set(ids)
    await _settled(client, accepted[0].version_id, len(ids[0]))
    listed = json.loads(own_stack.kb("rebuild", "--list", "--json"))["generations"]
    assert [(g["generation"], g["state"]) for g in listed] == [(1, "live"), (2, "standby")]
    assert all(g["vectors"] == g["passages"] > 0 for g in listed)


async def _settled(client: httpx.AsyncClient, version_id: str, passages: int) -> None:
    """The document is shown as indexed, its job as done, and the journal tells all cuts."""

    async def look() -> bool:
        shown = await _shown(client, version_id)
        assert (shown["status"], shown["valid_until"]) == ("indexed", None)
        journal = (await client.get(f"/documents/{version_id}/journal")).json()["entries"]
        cuts = [e["data"]["chunker"] for e in journal if e["type"] == "Chunked"]
        assert cuts == ["headings-4", "paragraphs-3", "headings-4"]
        assert len([e for e in journal if e["type"] == "Indexed"]) == 3
        jobs = (await client.get("/jobs")).json()["jobs"]
        assert {j["status"] for j in jobs} == {"indexed"}
        return True

    assert passages > 0 and await eventually(look)


async def test_the_log_says_who_switched(own_stack: Stack, client: httpx.AsyncClient) -> None:
    text = own_stack.kb("events", "--json")
    facts = [json.loads(line) for line in text.splitlines() if "GenerationSwitched" in line]
    assert [f["data"]["cause"] for f in facts] == ["rebuild", "rollback"]
    assert all(f["data"]["actor"] for f in facts)
