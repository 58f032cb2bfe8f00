"""Read your writes: a reply says how far it reflects the log, and may be asked for a position."""

import asyncio
from contextlib import suppress

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contracts.http import LAST_POSITION
from kernel.errors import Behind
from kernel.log import Log
from kernel.web import OPEN_PATHS, behind, problem
from services.search.projection import Projection

HEADER = "KB-Position"
"""Of a reply: it reflects the log up to here, at least."""
WANTED = "KB-Min-Position"
"""Of a request: wait until the reply reflects the log up to here."""
AGAIN_AFTER = 1
LOOK_AGAIN_S = 0.1


class Positions:
    """Waits for the read projection."""

    def __init__(self, event_log: Log, projection: Projection, *, wait_s: float) -> None:
        self._log, self._projection, self._wait_s = event_log, projection, wait_s

    async def now(self) -> int:
        """What a reply from now on reflects, at least."""
        return await self._projection.position()

    async def reach(self, wanted: int | None) -> None:
        """Return when the projection has folded `wanted` in.

        Raises:
            Behind: `position-ahead`: the log does not go so far; at once. `not-reached`: not within
                the longest wait.
        """
        if wanted is None:
            return
        reached = await self.now()
        if reached < wanted and (head := await self._log.head()) < wanted:
            reason = f"position {wanted} is beyond the end of the log, which is {head}"
            raise Behind("position-ahead", reason, position=reached, status=409, after=None)
        clock = asyncio.get_running_loop().time
        end = clock() + self._wait_s
        while reached < wanted:
            if clock() >= end:
                reason = f"the reply would reflect position {reached}, not yet {wanted}"
                raise Behind("not-reached", reason, position=reached, status=503, after=AGAIN_AFTER)
            folded = self._projection.folded
            with suppress(TimeoutError):  # another replica may be the one that folds
                async with asyncio.timeout(min(end - clock(), LOOK_AGAIN_S)):
                    await folded.wait()
            reached = await self.now()


class Reflecting:
    """Adds `KB-Position` to replies of reads, and obeys `KB-Min-Position` of any request.

    The position is taken before the work, so the reply reflects it or more.
    """

    def __init__(self, app: ASGIApp, positions: Positions) -> None:
        self._app, self._positions = app, positions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        wanted = Headers(scope=scope).get(WANTED)
        try:
            if wanted is not None:
                await self._positions.reach(_number(wanted))
        except ValueError:
            reason = f"{WANTED} is a number from 0 to {LAST_POSITION}"
            await problem("invalid-request", reason, 422)(scope, receive, send)
            return
        except Behind as error:
            await behind(error)(scope, receive, send)
            return
        reads = scope["method"] in ("GET", "HEAD")
        position = await self._positions.now() if reads else None

        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start" and position is not None:
                MutableHeaders(scope=message).setdefault(HEADER, str(position))
            await send(message)

        await self._app(scope, receive, telling)


def reflect(app: FastAPI, positions: Positions) -> None:
    """Let every reply of the routes that `app` has by now say its position.

    Each route is wrapped, not the application: one process may serve the routes of several services
    by one application, and this is behind the check of the key.
    """
    for route in app.router.routes:
        if isinstance(route, APIRoute):
            route.app = Reflecting(route.app, positions)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ValueError(text)
    return min(int(text), LAST_POSITION)
