"""Composition root of the scanner: verdicts, and the review of what is in quarantine."""

from fastapi import FastAPI, Request

from contracts.http import Reviewed, ReviewRequest
from kernel.large import OneLarge
from kernel.service import Env, Service
from kernel.web import actor, create_api
from services.scanner import handlers
from services.scanner.review import review


def create_app(env: Env) -> FastAPI:
    """The HTTP surface: `POST /review/{version_id}`."""
    app = create_api("scanner", api_key=env.settings.api_key.get_secret_value(), health=env.health)

    @app.post("/review/{version_id}", response_model=Reviewed)
    async def post_review(version_id: str, body: ReviewRequest, request: Request) -> Reviewed:
        return await review(version_id, body, actor(request), env.log)

    return app


async def build(env: Env) -> Service:
    """The scanner."""
    return Service(
        "scanner",
        app=create_app(env),
        handlers=handlers,
        # One may be a large document: a small one behind it is delivered all the same.
        concurrency=max(env.settings.concurrency, 2),
        deps={"blobs": env.blobs, "received": env.log.received, "large": OneLarge()},
    )
