"""`POST /documents`: what is taken, and what is refused without a trace."""

from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from kernel.blobs import Blobs
from kernel.testing import MemoryLog
from services.ingest.app import create_app
from services.ingest.domain import Identity

KEY = "k" * 32
NO_FILE = b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n--b--\r\n'
TEXT = b"# Title\n\nSome words of a document.\n"


class Secret:
    def __init__(self, value: str) -> None:
        self._value = value

    def get_secret_value(self) -> str:
        return self._value


class Door:
    """The app with a log in memory and blobs in a folder."""

    def __init__(self, folder: Any, key: str = KEY, limit: int = 100_000) -> None:
        self.log, self.blobs, self.folder = MemoryLog(), Blobs(str(folder)), folder

        async def health() -> dict[str, str]:
            return {"status": "ok"}

        settings = SimpleNamespace(api_key=Secret(key), max_upload_bytes=limit)
        env: Any = SimpleNamespace(settings=settings, health=health, log=self.log, blobs=self.blobs)
        self.app = app = create_app(env, Identity(b"i" * 32))
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://ingest",
            headers={"Authorization": f"Bearer {KEY}"},
        )

    async def post(self, data: bytes = TEXT, name: str = "a.md", **more: Any) -> httpx.Response:
        headers = more.pop("headers", {})
        return await self.client.post(
            "/documents", files={"file": (name, data)}, data=more, headers=headers
        )

    def files(self) -> list[str]:
        return [p.name for p in self.folder.rglob("*") if p.is_file()]


@pytest.fixture
def door(tmp_path: Any) -> Door:
    return Door(tmp_path)


def code(reply: httpx.Response) -> str:
    assert reply.headers["content-type"] == "application/problem+json"
    return str(reply.json()["type"]).removeprefix("urn:kb:problem:")


async def nothing_stays(door: Door) -> None:
    assert door.files() == []
    assert await door.log.head() == 0


async def test_a_file_is_taken(door: Door) -> None:
    reply = await door.post(name="Закон о подацима.md", project="law", valid_from="2025-12-30")
    assert reply.status_code == 202
    (event,) = await door.log.read(0)
    assert event.data["name"] == "Закон о подацима.md"
    assert event.data["media_type"] == "text/markdown"
    assert event.data["valid_from"] == "2025-12-30T00:00:00Z"
    assert door.files() == [reply.json()["source_id"]]


async def test_the_same_file_again_is_ok_and_a_duplicate(door: Door) -> None:
    await door.post()
    reply = await door.post(name="b.md")
    assert (reply.status_code, bool(reply.json()["duplicate_of"])) == (200, True)


async def test_a_text_is_taken_as_json(door: Door) -> None:
    reply = await door.client.post("/documents", json={"text": "# Наслов\n\nтекст", "name": "x.md"})
    assert reply.status_code == 202
    assert (await door.log.read(0))[0].data["via"] == "text"


async def test_a_file_says_itself_since_when_it_is_valid(door: Door) -> None:
    head = b"---\ntitle: T\nvalid_from: 2024-01-01\n---\n"
    await door.post(head + TEXT)
    await door.post(head + TEXT + b"more", name="b.md", valid_from="2025-01-01")
    moments = [e.data["valid_from"] for e in await door.log.read(0)]
    assert moments == ["2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"]


@pytest.mark.parametrize(
    "front_matter",
    [
        b"valid_from: 0001-01-01T00:00:00+14:00",
        b"valid_from: soon",
        b"valid_from: [1]",
        b"- a",
        b": :",
        b"a: &a [*a]",
        b"x: " + b"[" * 3000,
    ],
)
async def test_front_matter_that_is_no_date_is_no_date(door: Door, front_matter: bytes) -> None:
    reply = await door.post(b"---\n" + front_matter + b"\n---\n" + TEXT)
    assert reply.status_code == 202
    assert (await door.log.read(0))[0].data["valid_from"] > "2026"


@pytest.mark.parametrize(
    ("data", "more", "expected"),
    [
        (b"", {}, "empty-document"),
        (TEXT, {"name": "../a.md"}, "invalid-name"),
        (TEXT, {"name": "x" * 300 + ".md"}, "invalid-name"),
        (TEXT, {"name": "я" * 150 + ".md"}, "invalid-name"),
        (b"MZ\x90\x00" + bytes(500), {"name": "a.exe"}, "unsupported-media-type"),
        (b"x" * 100_001, {}, "too-large"),
    ],
)
async def test_a_bad_file_is_refused_and_nothing_stays(
    door: Door, data: bytes, more: dict[str, str], expected: str
) -> None:
    assert code(await door.post(data, **more)) == expected
    await nothing_stays(door)


@pytest.mark.parametrize(
    "fields",
    [
        {"project": "Nope!"},
        {"valid_from": "yesterday"},
        {"valid_from": "2025-02-30"},
        {"valid_from": "0001-01-01T00:00:00+14:00"},
        {"valid_from": "9999-12-31T23:59:59-14:00"},
        {"source": "a\x00b"},
        {"lane": "fast"},
        {"trusted": "perhaps"},
        {"source": "x" * 5000},
    ],
)
async def test_a_bad_field_is_named_and_nothing_is_recorded(
    door: Door, fields: dict[str, str]
) -> None:
    reply = await door.post(**fields)  # type: ignore[arg-type]
    assert code(reply) == "invalid-request"
    await nothing_stays(door)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"plain", "text/plain"),
        (b"", "multipart/form-data"),
        (NO_FILE, "multipart/form-data; boundary=b"),
        (b"garbage", "multipart/form-data; boundary=b"),
        (b"{", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"text": ""}', "application/json"),
        (b'{"text": "a", "nmae": "b"}', "application/json"),
        (b'{"text": "a", "source": "\\u0000"}', "application/json"),
        (b'{"text": "a", "source": "\\ud800"}', "application/json"),
        (b'{"text": "a\\ud800"}', "application/json"),
        (b'{"text": "a", "supersedes": "\\u0000"}', "application/json"),
        (b'{"text": "a", "valid_from": "0001-01-01T00:00:00+14:00"}', "application/json"),
    ],
)
async def test_a_body_that_is_no_upload_is_refused(door: Door, content: bytes, kind: str) -> None:
    reply = await door.client.post("/documents", content=content, headers={"content-type": kind})
    assert code(reply) in ("invalid-request", "empty-document")
    await nothing_stays(door)


async def test_two_files_in_one_request_are_refused(door: Door) -> None:
    files = [("file", ("a.md", TEXT)), ("file", ("b.md", TEXT))]
    assert code(await door.client.post("/documents", files=files)) == "invalid-request"
    await nothing_stays(door)


async def test_a_declared_length_over_the_limit_is_refused_before_reading(door: Door) -> None:
    async def never() -> Any:
        raise AssertionError("the body was read")
        yield b""

    headers = {"content-length": str(10 * 2**30), "content-type": "multipart/form-data; boundary=b"}
    reply = await door.client.post("/documents", content=never(), headers=headers)
    assert (reply.status_code, code(reply)) == (413, "too-large")


async def test_superseding_what_is_not_there_is_refused(door: Door) -> None:
    assert code(await door.post(supersedes="0" * 32)) == "unknown-version"
    await nothing_stays(door)


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("editor", 403), ("admin", 202)])
async def test_only_an_admin_bypasses_the_scan(door: Door, role: str, status: int) -> None:
    reply = await door.post(trusted="true", headers={"x-kb-role": role})
    assert reply.status_code == status
    assert await door.log.head() == (status == 202)


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("editor", 403), ("admin", 202)])
async def test_only_an_admin_bypasses_the_scan_of_a_text(
    door: Door, role: str, status: int
) -> None:
    text = {"text": "Some words of a document.", "trusted": True}
    reply = await door.client.post("/documents", json=text, headers={"x-kb-role": role})
    assert reply.status_code == status
    assert await door.log.head() == (status == 202)


async def test_the_key_itself_may_bypass_the_scan_and_it_is_recorded(door: Door) -> None:
    await door.post(trusted="true", headers={"x-kb-actor": "actor:1"})
    (event,) = await door.log.read(0)
    assert (event.data["trusted"], event.actor) == (True, "actor:1")


async def test_without_or_with_a_wrong_key_nothing_is_taken(door: Door, tmp_path: Any) -> None:
    for headers in ({"Authorization": "Bearer x"}, {"Authorization": ""}):
        assert (await door.post(headers=headers)).status_code == 401
    closed = Door(tmp_path, key="")
    assert (await closed.post()).status_code == 503
    await nothing_stays(door)
