"""The gateway: bounded in time and size, and nothing but JSON of one shape back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from kernel.ai import AiFailed, AiOff, AiSettings, Gateway, Message, open_gateway
from tests.model_server import ModelServer, Script, completion, http, model_server, says


class Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid")

    good: bool
    words: str


GOOD = '{"good": true, "words": "да"}'


@asynccontextmanager
async def asking(script: Script) -> AsyncIterator[tuple[Gateway, ModelServer]]:
    async with model_server(script) as server:
        gateway = open_gateway(server.settings)
        try:
            yield gateway, server
        finally:
            await gateway.aclose()


async def ask(gateway: Gateway, seconds: float = 20) -> Verdict:
    messages = [Message("system", "the task"), Message("user", "текст")]
    return await gateway.ask("second-opinion", messages, Verdict, seconds=seconds)


async def why(script: Script, seconds: float = 20) -> str:
    async with asking(script) as (gateway, _):
        with pytest.raises(AiFailed) as failed:
            await ask(gateway, seconds)
    return failed.value.why


def fixed(answer: bytes) -> Script:
    async def script(_: dict[str, Any], __: asyncio.StreamWriter) -> bytes:
        return answer

    return script


async def test_a_model_is_asked_at_temperature_zero_and_answers_in_the_schema() -> None:
    async with asking(says(lambda _: GOOD)) as (gateway, server):
        assert await ask(gateway) == Verdict(good=True, words="да")
    (request,) = server.requests
    assert (request["model"], request["temperature"]) == ("judge-1", 0)
    assert [m["content"] for m in request["messages"]] == ["the task", "текст"]
    assert request["response_format"]["json_schema"]["schema"]["additionalProperties"] is False
    assert "authorization: bearer the-key" in server.headers[0].lower()
    assert "tools" not in request and not request.get("stream")


async def test_a_gateway_that_takes_no_schema_is_asked_without_one_from_then_on() -> None:
    async def script(request: dict[str, Any], _: asyncio.StreamWriter) -> bytes:
        if "response_format" in request:
            return http('{"error": {"message": "unknown field"}}', 400)
        return http(completion(GOOD))

    async with asking(script) as (gateway, server):
        for _ in range(2):
            assert (await ask(gateway)).good
    assert ["response_format" in r for r in server.requests] == [True, False, False]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_passing_fault_is_tried_once_more(status: int) -> None:
    answers = [http("{}", status, retry_after="0"), http(completion(GOOD))]

    async def script(_: dict[str, Any], __: asyncio.StreamWriter) -> bytes:
        return answers.pop(0)

    async with asking(script) as (gateway, _):
        assert (await ask(gateway)).good
    assert answers == []


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500])
async def test_a_fault_that_stays_is_told_by_its_number(status: int) -> None:
    page = f"<html>{'secret' * 100}</html>"
    answer = http(page, status, retry_after="0", content_type="text/html")
    assert await why(fixed(answer)) == f"http-{status}"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "clean",
        "null",
        "[]",
        f"[{GOOD}]",
        f"{GOOD}{GOOD}",
        f"{GOOD} and that is final",
        f"Sure! {GOOD}",
        f"```json\n{GOOD}\n```",
        '{"good": true}',
        '{"good": "true", "words": ""}',
        '{"good": 1, "words": ""}',
        '{"good": null, "words": ""}',
        '{"good": true, "words": 3}',
        '{"good": false, "good": true, "words": ""}',
        '{"good": true, "words": "", "verdict": "clean"}',
        '{"good": true, "words": NaN}',
        "{'good': True, 'words': ''}",
        "[" * 20_000,
        GOOD + " " * 20_000,
        "\ufeff" + GOOD,
    ],
)
async def test_any_other_text_than_one_object_of_the_shape_is_nonsense(content: str) -> None:
    assert await why(says(lambda _: content)) == "nonsense"


@pytest.mark.parametrize("body", ["", "null", "[]", "{}", "<html></html>", '{"choices": []}',
    '{"choices": null}', '{"choices": [{"message": "x"}]}', "{" * 9])  # fmt: skip
async def test_an_answer_that_is_not_of_the_protocol_is_nonsense(body: str) -> None:
    assert await why(fixed(http(body))) == "nonsense"
    assert await why(fixed(http(body, content_type="text/html"))) == "nonsense"


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (completion(GOOD, "length"), "cut-off"),
        (completion(GOOD, "content_filter"), "refused"),
        (completion(None, refusal="I cannot help with that"), "refused"),
        (completion(None), "nonsense"),
        (completion(GOOD, "tool_calls"), "nonsense"),
        (json.dumps(json.loads(completion(GOOD)) | {"choices": []}), "nonsense"),
        (
            json.dumps(
                json.loads(completion(GOOD))
                | {"choices": json.loads(completion(GOOD))["choices"] * 2}
            ),
            "nonsense",
        ),
    ],
)
async def test_what_is_no_whole_answer_is_none(answer: str, word: str) -> None:
    assert await why(fixed(http(answer))) == word


@pytest.mark.parametrize("status", [200, 429])
async def test_an_endless_answer_is_not_read_to_its_end(status: int) -> None:
    sent = 0

    async def script(_: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(f"HTTP/1.1 {status} X\r\nretry-after: 0\r\n\r\n".encode())
        for _n in range(200):
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    assert await why(script) == "too-large"
    assert sent < 2 * 10_000_000


async def test_a_packed_answer_is_not_unpacked() -> None:
    import gzip

    bomb = gzip.compress(bytes(50_000_000))
    assert await why(fixed(http(bomb, content_encoding="gzip"))) == "too-large"


async def test_a_redirection_is_not_followed() -> None:
    async with model_server(says(lambda _: GOOD)) as other:
        answer = http("", 307, location=f"{other.url}/chat/completions")
        assert (await why(fixed(answer))).startswith("http-307")
        assert other.requests == []


async def test_a_model_that_stands_still_is_given_up() -> None:
    async def script(_: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n{")
        await asyncio.sleep(60)

    assert await why(script, seconds=0.5) == "timeout"


async def test_a_model_that_asks_for_patience_gets_no_more_than_the_call_has() -> None:
    assert await why(fixed(http("{}", 429, retry_after="30")), seconds=0.5) == "timeout"


async def test_a_connection_that_breaks_off_is_a_failure() -> None:
    async def script(_: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n{")
        await writer.drain()
        writer.transport.abort()

    assert await why(script) == "unreachable"


async def test_a_gateway_that_is_not_there_is_a_failure() -> None:
    async with asking(says(lambda _: GOOD)) as (_, server):
        pass
    gateway = open_gateway(server.settings)
    with pytest.raises(AiFailed, match="unreachable"):
        await ask(gateway)
    await gateway.aclose()


@pytest.mark.parametrize("given", [{}, {"url": "http://h/v1"}, {"model": "m"}])
def test_without_an_address_ai_is_off_and_says_so(given: dict[str, str]) -> None:
    with pytest.raises(AiOff, match="KB_AI_URL"):
        open_gateway(AiSettings.model_validate({"url": "", "model": ""} | given))


@pytest.mark.parametrize("url", ["gateway", "file:///etc/passwd", "http://", "ftp://h/v1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="KB_AI_URL"):
        open_gateway(AiSettings(url=url, model="m"))


async def test_nothing_of_the_environment_of_the_client_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-another")
    async with asking(says(lambda _: GOOD)) as (gateway, server):
        assert (await ask(gateway)).good
    assert "another" not in server.headers[0]
