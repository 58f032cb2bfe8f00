"""`kb events`: the live stream of facts (SSE), taken up again where it broke off."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
from httpx_sse import ServerSentEvent, SSEError, connect_sse

from cli.client import checked, client, unreachable
from cli.datadir import DataDir

_PATIENCE_SECONDS = 120.0


def stream(
    data: DataDir, *, follow: bool, after: int, which: Mapping[str, Any]
) -> Iterator[ServerSentEvent]:
    """Events after position `after`; with `follow` for ever, over restarts of the front door.

    Args:
        data: the folder of the stack.
        follow: go on with what comes.
        after: only after this position.
        which: filters of `GET /events`: `type`, `project`, `stream`.

    Raises:
        CliError: a problem reply, or no connection (for two minutes, when following).
    """
    last_contact = time.monotonic()
    while True:
        try:
            for event in _once(data, {"follow": str(follow).lower(), "after": after} | dict(which)):
                last_contact = time.monotonic()
                after = int(event.id) if event.id.isdigit() else after
                if event.data:
                    yield event
        except httpx.HTTPError as error:
            if not follow or time.monotonic() - last_contact > _PATIENCE_SECONDS:
                raise unreachable(error) from error
        if not follow:
            return
        time.sleep(0.5)


def _once(data: DataDir, parameters: dict[str, Any]) -> Iterator[ServerSentEvent]:
    with client(data) as http:
        http.timeout = httpx.Timeout(60, connect=5)
        with connect_sse(http, "GET", "/events", params=parameters) as source:
            if not source.response.is_success:
                source.response.read()
                checked(source.response)
            try:
                yield from source.iter_sse()
            except SSEError as error:
                raise httpx.RemoteProtocolError(str(error)) from error
