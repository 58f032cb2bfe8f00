"""What every HTTP surface shares: problem+json, the key check, health and metrics."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, cast

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contracts.http import Problem
from kernel.db import UNAVAILABLE
from kernel.errors import Behind, Refusal, Retry

log = structlog.get_logger()
LINGER_SECONDS = 60.0
OPEN_PATHS = frozenset({"/health", "/metrics"})
"""Metrics hold no text. At the front door they need the key."""
Check = Callable[[], Awaitable[dict[str, Any]]]


def problem(
    code: str, detail: str, status: int, title: str = "", position: int | None = None
) -> JSONResponse:
    """An RFC 9457 reply; `code` is stable."""
    body = Problem(
        type=f"urn:kb:problem:{code}",
        title=title or code.replace("-", " ").capitalize(),
        status=status,
        detail=detail,
        position=position,
    )
    said = body.model_dump(exclude_none=True)
    return JSONResponse(said, status, media_type="application/problem+json")


def behind(error: Behind) -> JSONResponse:
    """The reply that says how far the log is reflected, and when to ask again."""
    reply = problem(error.code, error.reason, error.status, position=error.position)
    if error.after is not None:
        reply.headers["Retry-After"] = str(error.after)
    return reply


class CloseEarly:
    """Deals with an answer that comes before the end of the request's body.

    The answer goes out at once, so a client that looks stops sending. What others still send is
    read and dropped for at most `LINGER_SECONDS`, since closing on them would take the answer away
    too (a reset overtakes it). Then the connection is closed; uvicorn alone would read for ever.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        read = False

        async def watched() -> Message:
            nonlocal read
            message = await receive()
            read = read or not message.get("more_body", False)
            return message

        async def drain() -> None:
            while not read:
                await watched()

        async def closing(message: Message) -> None:
            if read:
                await send(message)
            elif message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (b"connection", b"close")]
                await send({**message, "headers": headers})
            elif message.get("more_body", False):
                await send(message)
            else:
                await send({**message, "more_body": True})
                with suppress(TimeoutError):
                    async with asyncio.timeout(LINGER_SECONDS):
                        await drain()
                await send({"type": "http.response.body", "body": b""})

        await self._app(scope, watched, closing)


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def create_api(title: str, *, api_key: str, health: Check) -> FastAPI:
    """A FastAPI application that is closed by default: without a key only `/health` answers."""
    app = FastAPI(title=f"citelog {title}", docs_url=None, redoc_url=None)

    @app.middleware("http")
    async def guard(
        request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        if request.url.path not in OPEN_PATHS and (refused := _refused(request, api_key)):
            return refused
        return await call_next(request)

    @app.get("/health", include_in_schema=False)
    async def get_health() -> JSONResponse:
        state = await health()
        return JSONResponse(state, 200 if state["status"] == "ok" else 503)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    add_problem_handlers(app)
    return app


def _refused(request: Request, api_key: str) -> JSONResponse | None:
    if not api_key:
        return problem("no-api-key", "this service was started without KB_API_KEY", 503)
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(given.encode(), api_key.encode()):
        return problem("unauthorized", "send Authorization: Bearer <KB_API_KEY>", 401)
    return None


def actor(request: Request) -> str:
    """Who asks: the opaque id that the front door sent along with the key, or `api`."""
    return request.headers.get("x-kb-actor", "api")[:100]


def role(request: Request) -> str:
    """The role of who asks, as the front door says; whoever holds the key itself is an admin."""
    return request.headers.get("x-kb-role", "admin")


def add_problem_handlers(app: FastAPI) -> None:
    """Every error leaves as problem+json; no traceback and no document text in it."""

    @app.exception_handler(Refusal)
    async def refusal(_: Request, error: Refusal) -> JSONResponse:
        if isinstance(error, Behind):
            return behind(error)
        return problem(error.code, error.reason, error.status)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        where = "; ".join(
            f"{'.'.join(str(p) for p in e['loc'][1:]) or e['loc'][0]}: {e['msg']}"
            for e in error.errors()[:5]
        )
        return problem("invalid-request", where, 422)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
        return problem(code, str(error.detail), error.status_code)

    async def away(_: Request, error: Exception) -> JSONResponse:
        log.warning("http.away", error=f"{type(error).__name__}: {error}"[:300])
        reply = problem("unavailable", "a store is away; try again", 503)
        reply.headers["Retry-After"] = "2"
        return reply

    kinds: tuple[type[BaseException], ...] = (Retry, *UNAVAILABLE)
    for kind in kinds:
        app.exception_handler(cast(type[Exception], kind))(away)

    @app.exception_handler(Exception)
    async def bug(_: Request, error: Exception) -> JSONResponse:
        log.exception("http.bug", exc_info=error)
        return problem("internal-error", "see the log of the service", 500)
