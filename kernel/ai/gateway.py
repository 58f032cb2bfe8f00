"""One client for every model: bounded in time and size, and nothing but JSON of one shape back.

What a model says is a stranger's text, like the documents that it read: it is checked against a
schema, and no other text of it leaves this module.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit

import structlog
from pydantic import BaseModel, ValidationError

from kernel.ai.settings import AiSettings
from kernel.errors import KbError
from kernel.telemetry import AI_CALLS, AI_SECONDS, AI_TOKENS

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletion

log = structlog.get_logger()
A = TypeVar("A", bound=BaseModel)

Purpose = Literal["second-opinion"]
"""What a call is for; metrics and, later, models and prompts go by it."""
Role = Literal["system", "user"]

MOST_BYTES = 1 << 20
"""Of a whole answer of the gateway; of any longer one nothing is read further."""
MOST_TEXT = 16_384
"""Characters that a model may answer with."""
_UNKNOWN_SCHEMA = frozenset({400, 422})


@dataclass(frozen=True)
class Message:
    """A part of a conversation."""

    role: Role
    text: str


class AiOff(KbError):
    """There is no gateway: `KB_AI_URL` or `KB_AI_MODEL` is empty."""


class AiFailed(KbError):
    """A call brought no answer. `why` is one of a few words, and never the gateway's own."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the model gave no answer: {why}")
        self.why = why


class Gateway:
    """Asks models. Made by `open_gateway`; `aclose` when done."""

    def __init__(self, client: "AsyncOpenAI", model: str) -> None:
        self._client, self.model = client, model
        self._with_schema = True

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def ask(
        self,
        purpose: Purpose,
        messages: Sequence[Message],
        answer: type[A],
        *,
        seconds: float,
        max_tokens: int = 512,
    ) -> A:
        """One answer of the shape `answer`, at temperature 0.

        Args:
            purpose: what it is for.
            messages: system and user texts; strangers' words stand in fences.
            answer: a model whose fields are all that may be said; others are refused.
            seconds: until the call is given up, repetition included: 429 and passing faults are
                tried once more.
            max_tokens: most that the model may write.

        Raises:
            AiFailed: `timeout`, `unreachable`, `http-<status>`, `too-large`, `cut-off`, `refused`,
                `nonsense`.
        """
        outcome = "cancelled"
        with AI_SECONDS.labels(purpose).time():
            try:
                async with asyncio.timeout(seconds):
                    completion = await self._complete(messages, answer, max_tokens)
                found = parsed(_text(completion), answer)
                outcome = "ok"
            except TimeoutError:
                outcome = "timeout"
                raise AiFailed("timeout") from None
            except AiFailed as failed:
                outcome = failed.why
                raise
            finally:
                AI_CALLS.labels(purpose, outcome).inc()
                log.info("ai.asked", purpose=purpose, model=self.model, outcome=outcome)
        _count(purpose, completion)
        return found

    async def _complete(
        self, messages: Sequence[Message], answer: type[BaseModel], max_tokens: int
    ) -> "ChatCompletion":
        """With the schema for gateways that take one; else the prompt alone has to do."""
        import httpx2
        import openai

        try:
            return await self._send(messages, answer if self._with_schema else None, max_tokens)
        except openai.APIStatusError as error:
            if not self._with_schema or error.status_code not in _UNKNOWN_SCHEMA:
                raise AiFailed(f"http-{error.status_code}") from None
            self._with_schema = False
            return await self._complete(messages, answer, max_tokens)
        except _TooLarge:
            raise AiFailed("too-large") from None
        except openai.APITimeoutError:
            raise AiFailed("timeout") from None
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            raise AiFailed("too-large" if _is_too_large(error) else "unreachable") from None
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            # A body that is no JSON, or JSON of another shape: the client stumbles over it somehow.
            raise AiFailed("nonsense") from None

    async def _send(
        self, messages: Sequence[Message], schema: type[BaseModel] | None, max_tokens: int
    ) -> "ChatCompletion":
        form: dict[str, Any] = {}
        if schema is not None:
            described = {"name": "answer", "strict": True, "schema": schema.model_json_schema()}
            form = {"response_format": {"type": "json_schema", "json_schema": described}}
        raw = await self._client.chat.completions.with_raw_response.create(
            model=self.model,
            messages=[{"role": m.role, "content": m.text} for m in messages],  # type: ignore[misc]
            temperature=0,
            max_tokens=max_tokens,
            **form,
        )
        return _completion(raw.content)


def _completion(data: bytes) -> "ChatCompletion":
    from openai.types.chat import ChatCompletion

    return ChatCompletion.model_validate_json(data)


def _text(completion: "ChatCompletion") -> str:
    """What the model said, if it said one thing and came to its end."""
    if len(completion.choices) != 1:
        raise AiFailed("nonsense")
    (choice,) = completion.choices
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise AiFailed("refused")
    if choice.finish_reason == "length":
        raise AiFailed("cut-off")
    if choice.finish_reason != "stop" or choice.message.tool_calls:
        raise AiFailed("nonsense")
    return choice.message.content or ""


def parsed(text: str, answer: type[A]) -> A:
    """`text` as exactly one JSON object of the shape, with nothing before or behind it.

    Raises:
        AiFailed: `nonsense`.
    """
    try:
        if len(text) > MOST_TEXT:
            raise AiFailed("nonsense")
        json.loads(text, object_pairs_hook=_once, parse_constant=_never)
        return answer.model_validate_json(text, strict=True, extra="forbid")
    except (ValueError, ValidationError, RecursionError):
        raise AiFailed("nonsense") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A name that is there twice would mean what its reader likes."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _never(_: str) -> None:
    raise ValueError("NaN and Infinity are no JSON")


def _count(purpose: Purpose, completion: "ChatCompletion") -> None:
    if usage := completion.usage:
        AI_TOKENS.labels(purpose, "in").inc(max(usage.prompt_tokens, 0))
        AI_TOKENS.labels(purpose, "out").inc(max(usage.completion_tokens, 0))


class _TooLarge(Exception):
    """The answer has more bytes than anybody reads."""


def _is_too_large(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, _TooLarge):
            return True
        error = error.__cause__ or error.__context__
    return False


def open_gateway(settings: AiSettings) -> Gateway:
    """The gateway of the settings. Nothing is sent yet.

    Raises:
        AiOff: no address or no model is set.
        ValueError: the address is none.
    """
    if not settings.url or not settings.model:
        raise AiOff("KB_AI_URL and KB_AI_MODEL are not set: AI is off")
    parts = urlsplit(settings.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("KB_AI_URL is no http address")
    from openai import AsyncOpenAI

    client = AsyncOpenAI(
        base_url=settings.url,
        api_key=settings.key.get_secret_value() or "none",
        organization="",
        project="",
        max_retries=1,
        http_client=_http(),
    )
    return Gateway(client, settings.model)


def _http() -> Any:
    """A client that follows no redirection (the text would go elsewhere) and stops reading."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._stream:
                size += len(part)
                if size > MOST_BYTES:
                    raise _TooLarge
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    class Transport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: Any) -> Any:
            answer = await super().handle_async_request(request)
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise _TooLarge  # nobody knows how large it is
            answer.stream = Bounded(answer.stream)
            return answer

    return httpx2.AsyncClient(
        transport=Transport(retries=0),
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        timeout=httpx2.Timeout(60.0, connect=5.0),
        limits=httpx2.Limits(max_connections=16),
    )
