"""What an error looks like: a page that says what can be done, or problem+json; no traceback."""

from http import HTTPStatus
from typing import Any

import asyncpg
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from kernel.db import UNAVAILABLE
from kernel.errors import Refusal, Retry
from kernel.web import problem
from services.ui.access import is_page
from services.ui.site import SeeOtherError, Site

log = structlog.get_logger()
_AWAY: Any = (Retry, *UNAVAILABLE)


def add_answers(app: FastAPI, site: Site) -> None:
    """Give every exception its answer."""

    async def see_other(request: Request, error: Exception) -> Response:
        return site.redirect(request, str(error))

    async def refused(request: Request, error: Exception) -> Response:
        return await _answer(site, request, as_refusal(error))

    app.add_exception_handler(SeeOtherError, see_other)
    for kind in (Refusal, RequestValidationError, HTTPException, Exception, *_AWAY):
        app.add_exception_handler(kind, refused)


def as_refusal(error: Exception) -> Refusal:
    """Any error as a refusal; one that we did not foresee is logged and says nothing."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, RequestValidationError):
        names = ", ".join(str(e["loc"][-1]) for e in error.errors()[:5])
        return Refusal("invalid-request", names)
    if isinstance(error, HTTPException):
        code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
        return Refusal(code, str(error.detail), status=error.status_code)
    if isinstance(error, _AWAY):
        log.warning("http.away", error=f"{type(error).__name__}: {error}"[:300])
        return Refusal("unavailable", "a store is away; try again", status=503)
    log.error("http.bug", exc_info=error)
    return Refusal("internal-error", "see the log of the service", status=500)


async def _answer(site: Site, request: Request, refusal: Refusal) -> Response:
    if is_page(request.url.path):
        person = await _person(site, request)
        reply = site.page(request, "error.html", person, status=refusal.status, refusal=refusal)
    else:
        reply = problem(refusal.code, refusal.reason, refusal.status)
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        reply.headers["www-authenticate"] = "Bearer"
    if refusal.status in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}:
        reply.headers["retry-after"] = "5"
    return reply


async def _person(site: Site, request: Request) -> Any:
    """Who is signed in, for the head of the page; nobody when even that cannot be found out."""
    try:
        return await site.access.person(request)
    except (asyncpg.PostgresError, *_AWAY):
        return None
