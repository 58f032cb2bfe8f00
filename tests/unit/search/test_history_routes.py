"""What the routes of history take, and what they hand on."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from kernel.errors import Refusal
from kernel.web import create_api
from services.search.history import InTime, add_history_routes

END = datetime(2020, 1, 2, 23, 59, 59, 999999, tzinfo=UTC)


class Asked:
    """In place of the histories: remembers what was asked, and refuses."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    async def diff(self, *words: Any, unchanged: bool) -> None:
        self.seen.append((*words, unchanged))
        raise Refusal("no-earlier-version", "because of the test", status=404)

    async def history(self, id_: str) -> None:
        self.seen.append((id_,))
        raise Refusal("unknown-document", "because of the test", status=404)


@pytest.fixture
def histories() -> Asked:
    return Asked()


@pytest.fixture
def client(histories: Asked) -> httpx.AsyncClient:
    async def well() -> dict[str, str]:
        return {}

    app: FastAPI = create_api("search", api_key="k", health=well)
    add_history_routes(app, histories)  # type: ignore[arg-type]

    @app.get("/when")
    async def when(when: InTime) -> list[datetime | None]:
        return [when.moment, when.known]

    headers = {"authorization": "Bearer k"}
    transport = httpx.ASGITransport(app)
    return httpx.AsyncClient(transport=transport, base_url="http://t", headers=headers)


async def test_the_sides_are_from_and_to(client: httpx.AsyncClient, histories: Asked) -> None:
    answer = await client.get(
        "/documents/d/diff?from=2010-01-01&to=v2&recorded_as_of=2020-01-02&unchanged=true"
    )
    assert answer.json()["type"] == "urn:kb:problem:no-earlier-version"
    [(id_, older, newer, when, unchanged)] = histories.seen
    assert (id_, older, newer, unchanged) == ("d", "2010-01-01", "v2", True)
    assert (when.moment, when.known) == (None, END)
    await client.get("/documents/d/diff")
    assert histories.seen[1][1:3] == (None, None)


async def test_a_history_is_of_an_id(client: httpx.AsyncClient, histories: Asked) -> None:
    assert (await client.get("/documents/d/history")).status_code == 404
    assert histories.seen == [("d",)]


@pytest.mark.parametrize(
    "query, moment, known",
    [
        ("", None, None),
        ("?as_of=2020-01-02", END, None),
        ("?recorded_as_of=2020-01-02", END, END),
        ("?as_of=2020-01-02&recorded_as_of=2021-01-01T00:00:00Z", END,
         datetime(2021, 1, 1, tzinfo=UTC)),
    ],
)  # fmt: skip
async def test_what_was_known_is_asked_for_what_was_valid(
    client: httpx.AsyncClient, query: str, moment: datetime | None, known: datetime | None
) -> None:
    found = (await client.get(f"/when{query}")).json()
    assert [f and datetime.fromisoformat(f) for f in found] == [moment, known]


@pytest.mark.parametrize("day", ["2020-13-01", "now", "2020-01-01T00:00:00", "0001-01-01"])
async def test_what_is_no_day_is_refused(client: httpx.AsyncClient, day: str) -> None:
    answer = await client.get(f"/when?as_of={day}")
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:kb:problem:invalid-request"
