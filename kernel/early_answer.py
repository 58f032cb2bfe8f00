"""An HTTP transport that notices an answer in the middle of an upload.

httpcore reads only after it has sent everything, so a 413 would wait for the last byte, or be lost
when the server closes. It does read after a `WriteError`, so that is what it gets.
"""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

_POLL_SECONDS = 0.05


class EarlyAnswer(httpcore.AsyncNetworkStream):
    """Stops sending a request as soon as the answer begins to come."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """As httpcore."""
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """As httpcore; raises WriteError once there is something to read."""
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
        """As httpcore."""
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        """As httpcore."""
        return await self._inner.start_tls(ssl_context, server_hostname, timeout)

    def get_extra_info(self, info: str) -> Any:
        """As httpcore."""
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
        return EarlyAnswer(stream)


class EarlyAnswerTransport(httpx.AsyncHTTPTransport):
    """Connections to our own services, straight and without a proxy.

    Args:
        keepalive_expiry: seconds; less than uvicorn's 5, or requests meet dying connections.
    """

    def __init__(self, *, keepalive_expiry: float = 3.0) -> None:
        super().__init__(trust_env=False)
        # httpx has no public way to set the network backend; a test of the early 413 guards this.
        self._pool = httpcore.AsyncConnectionPool(
            max_connections=None,  # an event stream holds one for as long as somebody looks
            max_keepalive_connections=20,
            keepalive_expiry=keepalive_expiry,
            network_backend=_Backend(),
        )
