"""The internal services: one HTTP client for the forwarded API and for the pages."""

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import httpcore
import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from contracts.http import Problem
from kernel.errors import Refusal
from services.ui.settings import UiSettings

M = TypeVar("M", bound=BaseModel)

PREFIX = "urn:kb:problem:"
_POLL_SECONDS = 0.05
FORWARD_TIMEOUT = httpx.Timeout(300.0, connect=3.0, pool=3.0)
STREAM_TIMEOUT = httpx.Timeout(3.0, read=None)
PAGE_TIMEOUT = httpx.Timeout(30.0, connect=3.0, pool=3.0)
HEALTH_TIMEOUT = httpx.Timeout(2.0)


class _EarlyAnswer(httpcore.AsyncNetworkStream):
    """Stops sending a request as soon as the answer begins to come.

    httpcore reads only after it has sent everything, so a 413 in the middle of an upload would
    wait for the last byte. It does read after a `WriteError`, so that is what it gets.
    """

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        self._stop_if_answered()
        writing = asyncio.ensure_future(self._inner.write(buffer, timeout))
        try:
            while not (await asyncio.wait({writing}, timeout=_POLL_SECONDS))[0]:
                self._stop_if_answered()
            writing.result()
        finally:
            writing.cancel()

    def _stop_if_answered(self) -> None:
        if self._inner.get_extra_info("is_readable"):
            raise httpcore.WriteError("the answer came before the end of the request")

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        return await self._inner.start_tls(ssl_context, server_hostname, timeout)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.AnyIOBackend):
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        stream = await super().connect_tcp(host, port, timeout, local_address, socket_options)
        return _EarlyAnswer(stream)


class _Transport(httpx.AsyncHTTPTransport):
    def __init__(self) -> None:
        super().__init__(trust_env=False)
        # httpx has no public way to set the network backend; a test of the early 413 guards this.
        self._pool = httpcore.AsyncConnectionPool(
            max_connections=None,  # an event stream holds one for as long as somebody looks
            max_keepalive_connections=20,
            keepalive_expiry=3.0,  # less than uvicorn's 5 s: no request on a dying connection
            network_backend=_Backend(),
        )


class Upstream:
    """Calls to the internal services with our key and the caller's opaque id."""

    def __init__(self, settings: UiSettings) -> None:
        self._settings = settings
        self._client = httpx.AsyncClient(transport=_Transport(), trust_env=False)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    def headers(self, actor: str) -> dict[str, str]:
        """What tells an internal service who calls, and for whom."""
        return {"authorization": f"Bearer {self._settings.key}", "x-kb-actor": actor}

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
        self, service: str, method: str, path: str, actor: str, *, limit: int, **request: Any
    ) -> bytes:
        """The body of a good answer.

        Raises:
            Refusal: the service's problem, `upstream-…`, or `too-large` (413) beyond `limit` bytes.
        """
        response = await self.open(
            service, method, path, headers=self.headers(actor), timeout=PAGE_TIMEOUT, **request
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

    async def get(
        self,
        model: type[M],
        service: str,
        path: str,
        actor: str,
        params: Mapping[str, Any] | None = None,
    ) -> M:
        """A page's GET, checked against the contract. Raises as `read` and `parse` do."""
        kept = {k: v for k, v in (params or {}).items() if v is not None}
        body = await self.read(service, "GET", path, actor, limit=16 << 20, params=kept)
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
