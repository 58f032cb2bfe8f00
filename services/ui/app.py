"""Composition of the front door: settings, accounts, API routes, pages."""

from http import HTTPStatus
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import structlog
from fastapi import FastAPI
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from kernel.log import Log
from services.ui import errors, front, pages, signin, view
from services.ui.access import Access, Guard
from services.ui.identity import Accounts
from services.ui.settings import UiSettings
from services.ui.site import Site
from services.ui.strings import english
from services.ui.upstream import Upstream

if TYPE_CHECKING:
    from kernel.service import Env, Service

log = structlog.get_logger()


class _Static(StaticFiles):
    """Files whose URL holds their hash: they never change."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        if answer.status_code == HTTPStatus.OK:
            answer.headers["cache-control"] = "public, max-age=31536000, immutable"
        return answer


class FrontDoor(FastAPI):
    """FastAPI behind the guard; outermost, so that even the answer to a bug has its headers."""

    def __init__(self, settings: UiSettings, **options: Any) -> None:
        super().__init__(**options)
        self._settings = settings

    def build_middleware_stack(self) -> ASGIApp:
        return Guard(super().build_middleware_stack(), self._settings)


def create_app(
    settings: UiSettings,
    pool: "asyncpg.Pool[Any] | None",
    *,
    accounts: Accounts | None = None,
    backups: Path | None = None,
) -> FastAPI:
    """The front door as an ASGI application.

    Args:
        settings: keys, host names and the addresses of the internal services.
        pool: a database with the schema `auth`; without one nobody can sign in, but
            programs can work.
        accounts: instead of `pool`.
        backups: a folder that learns of people who were erased.
    """
    if accounts is None and pool is not None:
        accounts = Accounts(pool, session_hours=settings.session_hours, backups=backups)
    access, upstream, t = Access(settings, accounts), Upstream(settings), english()
    head = Log(pool).head if pool else _nothing
    site = Site(access, upstream, view.environment(t), t, head, settings.max_upload_bytes)
    app = FrontDoor(
        settings,
        title="citelog",
        summary=t("app.tagline"),
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
    )
    app.state.upstream, app.state.accounts = upstream, accounts
    app.include_router(front.router(settings, access, upstream))
    app.include_router(pages.router(site))
    app.include_router(signin.router(site))
    folder = resources.files("services.ui") / "static"
    app.mount("/ui/static", _Static(directory=str(folder)), "static")
    errors.add_answers(app, site)
    return app


async def build(env: "Env") -> "Service":
    """The service for `kb run ui`: makes the first account when there is none."""
    from kernel.service import Service

    settings = UiSettings()
    app = create_app(settings, env.pool, backups=env.settings.backups)
    if settings.bootstrap_password:
        made = await app.state.accounts.bootstrap(settings.bootstrap_password.get_secret_value())
        log.info("account.bootstrap", made=made)
    return Service("ui", app=app, on_stop=(app.state.upstream.aclose,))


async def _nothing() -> int:
    """The head of a log that is not there."""
    return 0
