"""The front door for programs: who gets through, and what passes unchanged."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from services.ui.app import create_app
from services.ui.front import ROUTES
from services.ui.identity import Accounts
from tests.unit.ui.conftest import settings
from tests.unit.ui.fake import BODY, KEY, Fake, served, version

ID = version().version_id
BEARER = {"authorization": f"Bearer {KEY}"}


CALLS = [(r.method, r.path.replace("{id}", ID)) for r in ROUTES]


async def test_every_route_asks_for_the_key(front: str, fake: Fake) -> None:
    wrong: tuple[dict[str, str], ...] = (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": KEY},
    )
    async with httpx.AsyncClient(base_url=front) as stranger:
        for method, path in CALLS:
            for headers in wrong:
                answer = await stranger.request(method, path, headers=headers)
                assert answer.status_code == 401, path
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.headers["www-authenticate"] == "Bearer"
    assert fake.seen == []


async def test_without_a_configured_key_every_route_is_closed(internal: str) -> None:
    app = create_app(settings(internal, api_key=None), None)
    async with served(app) as url, httpx.AsyncClient(base_url=url) as client:
        for method, path in CALLS:
            for headers in ({}, {"authorization": "Bearer"}, {"authorization": "Bearer None"}):
                answer = await client.request(method, path, headers=headers)
                assert answer.status_code == 503, path
                assert answer.json()["type"] == "urn:kb:problem:not-configured"
        assert (await client.get("/health")).status_code == 200


async def test_every_route_reaches_its_service(program: httpx.AsyncClient) -> None:
    for method, path in CALLS:
        async with program.stream(method, path) as answer:
            assert answer.status_code < 300, path


async def test_the_query_string_and_the_body_pass_unchanged(
    program: httpx.AsyncClient, fake: Fake
) -> None:
    await program.get("/documents?project=a%20b&cursor=%C3%A4&cursor=2")
    await program.post("/query", content=b'{"query": "\xd1\x88"}')

    assert fake.last("/documents").query == "project=a%20b&cursor=%C3%A4&cursor=2"
    assert fake.last("/query").body == b'{"query": "\xd1\x88"}'


async def test_a_service_sees_our_key_and_our_actor_only(
    program: httpx.AsyncClient, fake: Fake
) -> None:
    await program.get(
        "/documents",
        headers={
            "x-kb-actor": "actor:somebody-else",
            "cookie": "kb_session=secret",
            "connection": "x-hop",
            "x-hop": "1",
            "te": "trailers",
            "traceparent": "00-ab-cd-01",
        },
    )

    headers = fake.last("/documents").headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["x-kb-actor"] == "api"
    assert headers["traceparent"] == "00-ab-cd-01"
    assert {"cookie", "x-hop", "te"}.isdisjoint(headers)


async def test_an_answer_loses_hop_by_hop_headers_and_cookies(program: httpx.AsyncClient) -> None:
    answer = await program.get(f"/documents/{ID}/body")

    assert answer.content == BODY.encode()
    assert answer.headers["etag"] == '"abc"'
    assert {"x-secret", "set-cookie"}.isdisjoint(answer.headers)
    assert len(answer.headers.get_list("date")) == 1
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("key", ["..", "%2e%2e", "a%2Fb", "x" * 129, "%00", "a%23b", "%D1%88"])
async def test_an_id_cannot_climb_out_of_its_place(key: str, front: str, fake: Fake) -> None:
    host, port = front.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"GET /documents/{key}/body HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {KEY}"
    writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()

    assert answer.startswith(b"HTTP/1.1 404")
    assert fake.seen == []


async def test_a_problem_of_a_service_passes_unchanged(
    program: httpx.AsyncClient, fake: Fake
) -> None:
    fake.refusals["/query"] = ("unknown-project", 404)
    answer = await program.post("/query", json={"query": "x"})

    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:kb:problem:unknown-project"


async def test_a_service_that_is_down_is_a_problem_and_not_a_trace() -> None:
    app = create_app(settings("http://127.0.0.1:9"), None)
    async with served(app) as url, httpx.AsyncClient(base_url=url, headers=BEARER) as client:
        answer = await client.get("/documents")
        assert answer.status_code == 503
        assert answer.json()["type"] == "urn:kb:problem:upstream-unavailable"
        assert answer.headers["retry-after"]
        health = await client.get("/health")
        assert (health.status_code, health.json()["services"]["search"]) == (503, "down")


async def test_a_service_that_breaks_off_is_a_problem() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    app = create_app(settings(f"http://127.0.0.1:{port}"), None)
    async with server, served(app) as url, httpx.AsyncClient(base_url=url) as client:
        answer = await client.get("/jobs", headers=BEARER)
    assert answer.status_code == 502
    assert answer.json()["type"] == "urn:kb:problem:upstream-failed"


async def test_health_is_open_and_names_every_service(front: str) -> None:
    async with httpx.AsyncClient(base_url=front) as stranger:
        answer = await stranger.get("/health", headers={"host": "10.0.0.7:8080"})

    assert answer.json() == {
        "status": "ok",
        "services": dict.fromkeys(("ui", "ingest", "search", "scanner", "indexer"), "ok"),
    }


async def test_a_large_upload_is_never_held_in_memory(
    program: httpx.AsyncClient, fake: Fake
) -> None:
    fake.limit = 1 << 40
    before = psutil.Process().memory_info().rss

    async def body() -> AsyncIterator[bytes]:
        for _ in range(400):
            yield b"x" * (1 << 20)

    answer = await program.post("/documents", content=body(), timeout=120)

    assert answer.status_code == 202
    assert psutil.Process().memory_info().rss - before < 200 << 20


async def test_a_refused_upload_is_answered_while_it_is_still_sent(front: str, fake: Fake) -> None:
    """The service answers 413 and stops reading; the client has 10 GB to send."""
    fake.limit = 1 << 20
    host, port = front.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"POST /documents HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Length: {10 << 30}\r\n\r\n".encode()
    )

    async def send() -> None:
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    sending = asyncio.ensure_future(send())
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
    body = await asyncio.wait_for(reader.read(4096), 20)
    assert not sending.done()
    sending.cancel()
    writer.close()
    assert head.startswith(b"HTTP/1.1 413")
    assert json.loads(body)["type"] == "urn:kb:problem:too-large"


async def test_an_answer_arrives_though_the_service_reads_no_further() -> None:
    """A service that answers early and lets the socket fill up: no write may block for ever."""

    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await writer.drain()
        await stopped.wait()
        writer.close()

    stopped = asyncio.Event()
    server = await asyncio.start_server(early, "127.0.0.1", 0, limit=1 << 12)
    app = create_app(settings(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"), None)
    async with server, served(app) as url, httpx.AsyncClient(base_url=url) as client:
        answer = await client.post("/documents", content=b"x" * (32 << 20), headers=BEARER)
        stopped.set()
    assert (answer.status_code, answer.content) == (413, b"no")


async def test_events_arrive_one_by_one_and_end_with_the_reader(front: str, fake: Fake) -> None:
    async with (
        httpx.AsyncClient(base_url=front, headers=BEARER) as client,
        client.stream("GET", "/events?after=3", headers={"last-event-id": "5"}) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        first = await anext(answer.aiter_bytes())
        assert b"event: Indexed" in first
    await asyncio.wait_for(fake.events_closed.wait(), 10)
    assert fake.last("/events").headers["last-event-id"] == "5"
    assert fake.last("/events").query == "after=3"


async def test_a_client_that_hangs_up_in_an_upload_frees_the_service(
    front: str, fake: Fake
) -> None:
    host, port = front.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"POST /documents HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {KEY}\r\n"
        "Content-Length: 1000000\r\n\r\nhalf".encode()
    )
    await writer.drain()
    writer.close()
    async with httpx.AsyncClient(base_url=front, headers=BEARER) as client:
        assert (await client.get("/documents")).status_code == 200
    assert not [s for s in fake.seen if s.path == "/documents" and s.method == "POST"]


async def test_a_foreign_host_name_is_refused(program: httpx.AsyncClient, fake: Fake) -> None:
    foreign = (
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "[::1",
        "a@localhost",
    )
    for host in foreign:
        for path in ("/documents", "/", "/openapi.json", "/ui/static/app.js"):
            answer = await program.get(path, headers={"host": host})
            assert answer.status_code in {400, 421}, host
    assert fake.seen == []


async def test_loopback_names_are_known(program: httpx.AsyncClient) -> None:
    for host in ("localhost", "LOCALHOST:80", "127.0.0.1", "[::1]:8080", "kb.localhost"):
        assert (await program.get("/documents", headers={"host": host})).status_code == 200, host


async def test_the_configured_host_is_known(internal: str) -> None:
    app = create_app(settings(internal, public_host="kb.example, ui"), None)
    async with served(app) as url, httpx.AsyncClient(base_url=url, headers=BEARER) as client:
        for host in ("kb.example", "KB.example:443", "ui:8080"):
            assert (await client.get("/jobs", headers={"host": host})).status_code == 200
        assert (await client.get("/jobs", headers={"host": "a.kb.example"})).status_code == 421


async def test_metrics_ask_for_the_key(program: httpx.AsyncClient) -> None:
    assert "python_info" in (await program.get("/metrics")).text
    assert (await program.get("/metrics", headers={"authorization": ""})).status_code == 401


async def test_openapi_describes_every_route_of_the_api(program: httpx.AsyncClient) -> None:
    described = (await program.get("/openapi.json")).json()["paths"]

    found = {(m.upper(), p) for p, ms in described.items() for m in ms}
    own = {("GET", "/health"), ("GET", "/metrics"), ("POST", "/erasures/person")}
    assert found == {(r.method, r.path) for r in ROUTES} | own


async def test_an_unknown_path_is_a_problem_for_programs(program: httpx.AsyncClient) -> None:
    answer = await program.get("/no/such/thing")

    assert (answer.status_code, answer.json()["type"]) == (404, "urn:kb:problem:not-found")
    assert (await program.delete("/documents")).status_code == 405


async def test_keys_are_compared_by_digest_in_constant_time() -> None:
    source = Path("services/ui/access.py").read_text("utf-8")

    assert not re.search(r"==\s*(self\.)?_?key\b", source)
    assert source.count("hmac.compare_digest") == 2


async def test_a_person_is_erased_with_the_key_of_an_administrator_only(
    internal: str, accounts: Accounts
) -> None:
    path = "/erasures/person"
    app = create_app(settings(internal), None, accounts=accounts)
    async with served(app) as url, httpx.AsyncClient(base_url=url) as stranger:
        assert (await stranger.post(path, json={"person": "admin"})).status_code == 401
        stranger.headers.update(BEARER)
        unknown = await stranger.post(path, json={"person": "nobody"})
        told = (unknown.status_code, unknown.json()["type"])
        assert told == (404, "urn:kb:problem:unknown-person")
        wrong: tuple[Any, ...] = ({}, {"person": ""}, {"person": "a", "more": 1}, [])
        for body in (*wrong, {"person": "a\nb"}):
            assert (await stranger.post(path, json=body)).status_code == 422
        gone = {"person": "actor:00000000-0000-4000-8000-000000000000"}
        assert (await stranger.post(path, json=gone)).json()["changed"] is False
