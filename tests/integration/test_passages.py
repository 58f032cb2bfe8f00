"""From a citation to its words, and from a question to a context: the routes on a real Postgres."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest

from contracts.artifacts import Place, Span, SpanMap
from contracts.events import Chunked, Converted, DocumentReceived, Erased, Parsed
from kernel.db import pool
from kernel.log import Log, Pending
from kernel.testing import first
from tests.integration.test_position import Door

START, LATER = datetime(2020, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)
LAW = """# Закон о казнама

## Глава 1

### Члан 5

Новчана казна износи двадесет милиона динара.

### Члан 6

Рок је седамдесет два сата.

## Глава 2

### Члан 7

Надзор врши повереник.
"""
NEW = LAW.replace("двадесет", "тридесет")


class Library(Door):
    """Documents that were converted: there is a body to read."""

    async def cut_of(self, receipt: DocumentReceived, text: str) -> Chunked:
        ids, data = receipt.ids, text.encode()
        stream = await self.log.stream(f"document-{receipt.document_id}")
        job = next(e.correlation_id for e in stream if e.data["version_id"] == receipt.version_id)
        body = await self.blobs.put(data)
        span = Span(byte_start=0, byte_end=len(data), place=Place(page=3))
        map_ = SpanMap(body_sha256=body, spans=(span,))
        for event in (
            Parsed(**ids, parsed_sha256="a" * 64, parser="p", language="sr"),
            Converted(
                **ids, body_sha256=body, meta_sha256="c" * 64, body_bytes=len(data), converter="c",
                language="sr", spans_sha256=await self.blobs.put(map_.to_bytes()),
            ),
        ):  # fmt: skip
            await self.log.append([Pending(event, uuid4(), job, "t")])
        return await super().cut_of(receipt, text)


@pytest.fixture
async def library(database: str) -> AsyncIterator[Library]:
    db = await pool(database)
    made = Library(Log(db))
    await made.start()
    yield made
    await made.log.close()
    db.terminate()


async def hits(client: httpx.AsyncClient, query: str, **more: Any) -> list[dict[str, Any]]:
    reply = await client.post("/query", json={"query": query, **more})
    assert reply.status_code == 200, reply.text
    return list(reply.json()["results"])


async def passage(client: httpx.AsyncClient, id_: str, **params: Any) -> httpx.Response:
    return await client.get(f"/documents/{id_}/passage", params=params)


async def test_every_hit_leads_to_its_bytes_its_section_and_its_page(library: Library) -> None:
    await library.load("закон.md", LAW, START)
    async with library.client() as client:
        found = await hits(client, "казна рок надзор", top_k=50)
        assert len(found) == 3
        for hit in found:
            where = {"start": hit["byte_start"], "end": hit["byte_end"]}
            reply = await passage(client, hit["version_id"], **where)
            assert reply.status_code == 200, reply.text
            view = reply.json()
            assert view["text"] == LAW.encode()[hit["byte_start"] : hit["byte_end"]].decode()
            assert view["text"] in hit["text"]
            assert view["heading_path"] == hit["heading_path"]
            assert [s["place"]["page"] for s in view["spans"]] == [3]
            assert view["source"] == "закон.md"
            by_id = (await passage(client, hit["version_id"], chunk=hit["chunk_id"])).json()
            assert by_id == view
            raw = await passage(client, hit["version_id"], **where, raw=True)
            assert raw.content == view["text"].encode()
            assert raw.headers["kb-version-id"] == hit["version_id"]


async def test_the_section_and_the_one_around_it_are_ranges_that_can_be_read(
    library: Library,
) -> None:
    await library.load("закон.md", LAW, START)
    async with library.client() as client:
        (hit,) = [h for h in await hits(client, "рок сата") if h["heading_path"][-1] == "Члан 6"]
        view = (await passage(client, hit["document_id"], chunk=hit["chunk_id"])).json()

        async def text(range_: dict[str, Any]) -> str:
            where = {"start": range_["byte_start"], "end": range_["byte_end"]}
            return str((await passage(client, hit["document_id"], **where)).json()["text"])

        assert (await text(view["section"])).startswith("### Члан 6\n\nРок")
        assert view["section"]["heading_path"][-1] == "Члан 6"
        around = await text(view["parent"])
        assert around.startswith("## Глава 1\n")
        assert "Члан 5" in around
        assert around.endswith("сата.\n\n")
        top = (await passage(client, hit["document_id"], start=0, end=1)).json()
        assert top["section"]["byte_end"] == len(LAW.encode())
        assert top["parent"] is None


async def test_neighbours_are_the_passages_beside_it_in_the_order_of_the_body(
    library: Library,
) -> None:
    await library.load("закон.md", LAW, START)
    async with library.client() as client:
        (hit,) = [h for h in await hits(client, "рок сата") if h["heading_path"][-1] == "Члан 6"]
        id_, chunk = hit["version_id"], hit["chunk_id"]
        view = (await passage(client, id_, chunk=chunk, neighbours=5)).json()
        assert [n["heading_path"][-1] for n in view["before"]] == ["Члан 5"]
        assert [n["heading_path"][-1] for n in view["after"]] == ["Члан 7"]
        assert "двадесет милиона" in view["before"][0]["text"]
        alone = (await passage(client, id_, chunk=chunk)).json()
        assert (alone["before"], alone["after"]) == ([], [])


async def test_a_passage_is_read_as_of_any_day(library: Library) -> None:
    await library.load("закон.md", LAW, START)
    done = await library.load("закон.md", NEW, LATER)
    start = LAW.encode().index("Новчана".encode())
    end = LAW.encode().index("### Члан 6".encode()) - 2
    new_end = NEW.encode().index("### Члан 6".encode()) - 2
    async with library.client() as client:
        old = await passage(client, done.document_id, start=start, end=end, as_of="2021-01-01")
        new = await passage(client, done.document_id, start=start, end=new_end)
        assert "двадесет" in old.json()["text"]
        assert old.json()["valid_until"].startswith("2024-01-01")
        assert "тридесет" in new.json()["text"]
        none = await passage(client, done.document_id, start=0, end=1, as_of="2019-01-01")
        assert none.json()["type"] == "urn:kb:problem:not-valid-then"


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"start": 5, "end": 5}, "invalid-request"),
        ({"start": 9, "end": 3}, "invalid-request"),
        ({"start": 0, "end": 10**6}, "invalid-request"),
        ({"start": 0, "end": 10**30}, "invalid-request"),
        ({"start": -1, "end": 3}, "invalid-request"),
        ({"start": 3, "end": 12}, "invalid-request"),  # inside of `З`
        ({"start": 0}, "invalid-request"),
        ({}, "invalid-request"),
        ({"chunk": "x", "start": 0, "end": 2}, "invalid-request"),
        ({"chunk": "x", "raw": True}, "invalid-request"),
        ({"chunk": "nobody"}, "unknown-passage"),
    ],
)
async def test_what_is_no_passage_is_refused(
    library: Library, params: dict[str, Any], code: str
) -> None:
    done = await library.load("закон.md", LAW, START)
    async with library.client() as client:
        reply = await passage(client, done.version_id, **params)
        assert reply.json()["type"] == f"urn:kb:problem:{code}", reply.text
        assert reply.status_code in (404, 422)


async def test_half_a_character_is_refused_with_its_place_and_read_as_bytes(
    library: Library,
) -> None:
    done = await library.load("закон.md", LAW, START)
    async with library.client() as client:
        refused = (await passage(client, done.version_id, start=3, end=6)).json()
        assert "start 3 is inside of a character that begins at 2" in refused["detail"]
        raw = await passage(client, done.version_id, start=3, end=6, raw=True)
        assert raw.content == LAW.encode()[3:6]


async def test_what_was_erased_has_no_passage_and_is_in_no_context(library: Library) -> None:
    done = await library.load("закон.md", LAW, START)
    async with library.client() as client:
        (hit, *_) = await hits(client, "новчана казна")
        erased = Erased(**done.ids, reason="request", scope="version", blobs=1)
        await library.log.append([first(erased)])
        await library.fold()
        reply = await passage(client, done.version_id, chunk=hit["chunk_id"])
        assert reply.status_code in (404, 410)
        assert reply.json()["type"] == "urn:kb:problem:no-body"
        assert (await context(client, "новчана казна"))["context"] == ""


async def context(client: httpx.AsyncClient, query: str, **more: Any) -> dict[str, Any]:
    reply = await client.post("/context", json={"query": query, **more})
    assert reply.status_code == 200, reply.text
    assert reply.headers["kb-position"] == str(reply.json()["position"])
    return dict(reply.json())


async def test_a_context_quotes_the_bytes_that_its_sources_name(library: Library) -> None:
    await library.load("закон.md", LAW, START)
    await library.load("мачке.md", "# Мачке\n\nМачке једу рибу.\n", START)
    async with library.client() as client:
        told = await context(client, "новчана казна")
        assert [s["number"] for s in told["sources"]] == list(range(1, len(told["sources"]) + 1))
        for source in told["sources"]:
            body = (await client.get(f"/documents/{source['version_id']}/body")).content
            quoted = body[source["byte_start"] : source["byte_end"]].decode().strip()
            block = told["context"].split("\n\n<")[source["number"] - 1]
            assert quoted in block
            assert f"[{source['number']}] {source['title']} ({source['source']})" in block
        assert told["tokens"] == len(told["context"]) <= told["budget"]  # `len` counts here


async def test_a_context_widens_to_neighbours_and_to_the_section(library: Library) -> None:
    await library.load("закон.md", LAW, START)
    async with library.client() as client:
        alone = await context(client, "рок сата", top_k=1)
        beside = await context(client, "рок сата", top_k=1, neighbours=1)
        section = await context(client, "рок сата", top_k=1, section=True)
        assert "Члан 7" not in alone["context"]
        assert "повереник" in beside["context"]
        assert "двадесет милиона" in beside["context"]
        assert section["sources"][0]["byte_start"] == LAW.encode().index("### Члан 6".encode())
        assert len(beside["sources"]) == 1


async def test_a_context_keeps_to_its_budget_and_says_what_it_left_out(library: Library) -> None:
    for n in range(6):
        await library.load(f"закон-{n}.md", LAW.replace("двадесет", f"{n}0"), START)
    async with library.client() as client:
        small = await context(client, "новчана казна", budget=700)
        assert small["tokens"] <= 700
        assert small["left_out"] > 0
        assert small["sources"]


async def test_a_context_is_of_the_day_that_is_asked_for(library: Library) -> None:
    await library.load("закон.md", LAW, START)
    await library.load("закон.md", NEW, LATER)
    async with library.client() as client:
        old = await context(client, "новчана казна", as_of="2021-01-01")
        assert "двадесет милиона" in old["context"]
        assert "тридесет" not in old["context"]
        assert "Valid from 2020-01-01T00:00:00+00:00 to 2024-01-01T00:00:00+00:00" in old["context"]
        new = await context(client, "новчана казна")
        assert "тридесет милиона" in new["context"]
        assert "Valid from" not in new["context"]


async def test_an_unknown_project_has_an_empty_context(library: Library) -> None:
    async with library.client() as client:
        told = await context(client, "казна", project="nobody")
        assert (told["context"], told["sources"], told["left_out"]) == ("", [], 0)


@pytest.mark.parametrize(
    "wrong", [{"budget": 10}, {"neighbours": 99}, {"order": "random"}, {"nobody": 1}, {"query": ""}]
)
async def test_a_wrong_request_for_a_context_is_refused(
    library: Library, wrong: dict[str, Any]
) -> None:
    async with library.client() as client:
        reply = await client.post("/context", json={"query": "казна"} | wrong)
        assert reply.status_code == 422
        assert reply.json()["type"] == "urn:kb:problem:invalid-request"
