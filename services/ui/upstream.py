"""The internal services: one HTTP client for the forwarded API and for the pages."""

from collections.abc import Mapping
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from contracts.http import Problem
from kernel.early_answer import EarlyAnswerTransport
from kernel.errors import Refusal
from services.ui.settings import UiSettings

M = TypeVar("M", bound=BaseModel)

PREFIX = "urn:kb:problem:"
FORWARD_TIMEOUT = httpx.Timeout(300.0, connect=3.0, pool=3.0)
STREAM_TIMEOUT = httpx.Timeout(3.0, read=None)
PAGE_TIMEOUT = httpx.Timeout(30.0, connect=3.0, pool=3.0)
HEALTH_TIMEOUT = httpx.Timeout(2.0)


class Upstream:
    """Calls to the internal services with our key and the caller's opaque id."""

    def __init__(self, settings: UiSettings) -> None:
        self._settings = settings
        self._client = httpx.AsyncClient(transport=EarlyAnswerTransport())

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    def headers(self, service: str, actor: str, role: str = "viewer") -> dict[str, str]:
        """What tells an internal service who calls, and for whom."""
        return {
            "authorization": f"Bearer {self._settings.door_key(service)}",
            "x-kb-actor": actor,
            "x-kb-role": role,
        }

    async def open(
        self,
        service: str,
        method: str,
        path: str,
        *,
        headers: list[tuple[str, str]] | dict[str, str],
        timeout: httpx.Timeout,  # noqa: ASYNC109
        params: Any = None,
        **body: Any,
    ) -> httpx.Response:
        """Send a request and return the answer with its body unread; the caller closes it.

        Raises:
            Refusal: `upstream-unavailable` (503) or `upstream-failed` (502).
        """
        request = self._client.build_request(
            method,
            self._settings.upstream(service) + path,
            headers=headers,
            params=params,
            timeout=timeout,
            **body,
        )
        try:
            return await self._client.send(request, stream=True)
        except (httpx.ConnectError, httpx.TimeoutException) as error:
            raise Refusal(
                "upstream-unavailable", f"the service {service} does not answer", status=503
            ) from error
        except httpx.TransportError as error:
            raise Refusal(
                "upstream-failed", f"the service {service} broke off", status=502
            ) from error

    async def read(
        self,
        service: str,
        method: str,
        path: str,
        actor: str,
        *,
        limit: int,
        role: str = "viewer",
        **request: Any,
    ) -> bytes:
        """The body of a good answer; `role` is the person's, where the service asks for more.

        Raises:
            Refusal: the service's problem, `upstream-…`, or `too-large` (413) beyond `limit` bytes.
        """
        response = await self.open(
            service,
            method,
            path,
            headers=self.headers(service, actor, role),
            timeout=PAGE_TIMEOUT,
            **request,
        )
        try:
            body = await _at_most(response, limit)
        except httpx.TransportError as error:
            raise Refusal(
                "upstream-failed", f"the service {service} broke off", status=502
            ) from error
        finally:
            await response.aclose()
        if response.is_success:
            return body
        raise refusal_of(service, response.status_code, body)

    async def stream(self, service: str, path: str, actor: str) -> httpx.Response:
        """A good answer to a GET with its body unread; the caller closes it. Raises as `read`."""
        answer = await self.open(
            service, "GET", path, headers=self.headers(service, actor), timeout=PAGE_TIMEOUT
        )
        if answer.is_success:
            return answer
        try:
            raise refusal_of(service, answer.status_code, await _at_most(answer, 1 << 20))
        finally:
            await answer.aclose()

    async def get(
        self,
        model: type[M],
        service: str,
        path: str,
        actor: str,
        params: Mapping[str, Any] | None = None,
        *,
        role: str = "viewer",
    ) -> M:
        """A page's GET, checked against the contract. Raises as `read` and `parse` do."""
        kept = {k: v for k, v in (params or {}).items() if v is not None}
        body = await self.read(service, "GET", path, actor, limit=16 << 20, role=role, params=kept)
        return parse(model, service, body)

    async def healthy(self, service: str) -> bool:
        """Whether the service says that it is well."""
        try:
            answer = await self.open(service, "GET", "/health", headers={}, timeout=HEALTH_TIMEOUT)
        except Refusal:
            return False
        await answer.aclose()
        return answer.is_success


def parse(model: type[M], service: str, body: bytes) -> M:
    """An answer as its model.

    Raises:
        Refusal: `upstream-failed` (502): not what the contract says.
    """
    try:
        return TypeAdapter(model).validate_json(body)
    except ValidationError as error:
        raise Refusal(
            "upstream-failed", f"the service {service} gave an unexpected answer", status=502
        ) from error


def refusal_of(service: str, status: int, body: bytes) -> Refusal:
    """A service's error answer as a refusal with the same code."""
    try:
        given = Problem.model_validate_json(body)
    except ValidationError:
        code = "upstream-failed" if status >= 500 else "refused"
        shown = 502 if status >= 500 else status
        return Refusal(code, f"the service {service} answered {status}", status=shown)
    return Refusal(given.type.removeprefix(PREFIX), given.detail or given.title, status=status)


async def _at_most(response: httpx.Response, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > limit:
            raise Refusal("too-large", "this is too large to show on a page", status=413)
        parts.append(part)
    return b"".join(parts)
