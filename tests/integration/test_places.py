"""From a range of the body back to the original: places of the body that is read, and the bytes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from contracts.artifacts import Place, Span, SpanMap
from contracts.events import Converted, Erased, Event, Parsed, ScanVerdict
from kernel.blobs import Blobs
from kernel.db import pool
from kernel.log import Log, Pending
from kernel.testing import first, received
from kernel.web import add_problem_handlers
from services.search.documents import Documents
from services.search.places import Originals, add_original_routes
from services.search.projection import Projection

BODY = "# Члан 1\n\nПрви став.\n\nДруги став.\n".encode()
SOURCE = b"%PDF-1.7 the original"
PAGE_1, PAGE_2 = (Place(page=n, box=(72.0, 90.5, 520.0, 110.0)) for n in (1, 2))


class World:
    """A converted version, its span map, and the routes on it."""

    def __init__(self, log: Log, folder: Path) -> None:
        self.log, self.blobs = log, Blobs(str(folder))
        self.projection = Projection(log, self.blobs)
        app = FastAPI()
        add_problem_handlers(app)
        documents = Documents(log, self.blobs)
        add_original_routes(app, Originals(log, self.blobs, documents))
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://search"
        )
        self.receipt, self.job = received("Закон 1.pdf"), uuid4()

    async def begin(self, *, spans: bool = True) -> None:
        self.receipt = self.receipt.model_copy(
            update={"source_id": await self.blobs.put(SOURCE), "size_bytes": len(SOURCE)}
        )
        body = await self.blobs.put(BODY)
        half = BODY.index("Други".encode())
        places = SpanMap(
            body_sha256=body,
            spans=(
                Span(byte_start=2, byte_end=half - 2, place=PAGE_1),
                Span(byte_start=half, byte_end=len(BODY) - 1, place=PAGE_2),
            ),
        )
        map_ = await self.blobs.put(places.to_bytes())
        ids = self.receipt.ids
        verdict: Any = {"verdict": "clean", "score": 0, "ruleset": "r"}
        for event in (
            self.receipt,
            Parsed(**ids, parsed_sha256="a" * 64, parser="p", language="sr"),
            ScanVerdict(**ids, subject="parsed", text_sha256="a" * 64, **verdict),
            Converted(
                **ids, body_sha256=body, meta_sha256="c" * 64, body_bytes=len(BODY), converter="c",
                language="sr", spans_sha256=map_ if spans else None,
            ),
        ):  # fmt: skip
            await self.add(event)
        await self.fold()

    async def add(self, event: Event) -> None:
        """An event of the one job."""
        pending = first(event)
        await self.log.append([Pending(event, pending.event_id, self.job, "t")])

    async def fold(self) -> None:
        await self.projection._sql.start(self.log.pool)
        while await self.projection.step():
            pass

    async def get(self, what: str, **params: Any) -> httpx.Response:
        return await self.client.get(f"/documents/{self.receipt.version_id}/{what}", params=params)


@pytest.fixture
async def world(database: str, tmp_path: Path) -> AsyncIterator[World]:
    db = await pool(database)
    yield World(Log(db), tmp_path)
    db.terminate()


async def test_a_range_of_the_body_leads_to_its_pages(world: World) -> None:
    await world.begin()
    start = BODY.index("Други".encode())
    found = (await world.get("places", start=start, end=start + 4)).json()
    assert [s["place"]["page"] for s in found["spans"]] == [2]
    assert found["spans"][0]["place"]["box"] == [72.0, 90.5, 520.0, 110.0]
    assert found["source_id"] == world.receipt.source_id
    everything = (await world.get("places")).json()
    assert [s["place"]["page"] for s in everything["spans"]] == [1, 2]


@pytest.mark.parametrize(("start", "end"), [(5, 5), (9, 3), (0, len(BODY) + 1), (len(BODY), None)])
async def test_what_is_no_range_of_the_body_is_refused(
    world: World, start: int, end: int | None
) -> None:
    await world.begin()
    params = {"start": start} | ({} if end is None else {"end": end})
    reply = await world.get("places", **params)
    assert reply.json()["type"] == "urn:kb:problem:invalid-request"


async def test_a_body_from_before_there_were_places_has_none(world: World) -> None:
    await world.begin(spans=False)
    assert (await world.get("places")).json()["spans"] == []


async def test_the_original_comes_byte_for_byte_and_is_never_run(world: World) -> None:
    await world.begin()
    reply = await world.get("source")
    assert reply.content == SOURCE
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-disposition"].startswith("attachment; filename*=UTF-8''%D0%97")
    assert reply.headers["x-content-type-options"] == "nosniff"


async def test_the_original_of_a_text_in_review_is_not_given_out(world: World) -> None:
    await world.begin()
    ids = world.receipt.ids
    verdict = ScanVerdict(
        **ids, subject="converted", text_sha256="b" * 64, verdict="quarantine", score=0.5,
        ruleset="r",
    )  # fmt: skip
    await world.add(verdict)
    await world.fold()
    reply = await world.get("source")
    assert (reply.status_code, reply.json()["type"]) == (404, "urn:kb:problem:no-body")


async def test_an_erased_original_is_gone(world: World) -> None:
    await world.begin()
    await world.blobs.delete(world.receipt.source_id)
    reply = await world.get("source")
    assert (reply.status_code, reply.json()["type"]) == (410, "urn:kb:problem:no-source")
    await world.add(Erased(**world.receipt.ids, reason="request", scope="document", blobs=1))
    await world.fold()
    assert (await world.get("places")).status_code == 404
