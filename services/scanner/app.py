"""Composition root of the scanner: verdicts, the review of what is in quarantine, re-scans."""

import asyncio
from typing import Any

import structlog
from fastapi import FastAPI, Request

from contracts.rescan import RescanReply, RescanReport, RescanRequest
from kernel.ai import AiOff, AiSettings, open_gateway
from kernel.large import OneLarge
from kernel.service import Env, Service
from kernel.web import actor, create_api
from services.scanner import handlers
from services.scanner.judge import Judge, open_judge
from services.scanner.rescan import Rescanner
from services.scanner.rescans import Requests
from services.scanner.review_routes import add_review_routes
from services.scanner.second_opinion import SecondOpinion, SecondOpinionSettings
from services.scanner.stored import LiveFirst, Stored

log = structlog.get_logger()


def create_app(env: Env, requests: Requests, large: OneLarge, judge: Judge) -> FastAPI:
    """The HTTP surface: the review and the re-scans; the health says what judges here."""

    async def health() -> dict[str, Any]:
        learned = judge.without_model or "on"
        return await env.health() | {"ruleset": judge.version, "learned": learned}

    app = create_api("scanner", api_key=env.settings.api_key.get_secret_value(), health=health)

    add_review_routes(app, env.log, env.blobs, large)

    @app.post("/rescan", status_code=202, response_model=RescanReply)
    async def post_rescan(body: RescanRequest, request: Request) -> RescanReply:
        return await requests.start(body.project, actor(request))

    @app.post("/rescan/cancel", response_model=RescanReply)
    async def post_cancel(body: RescanRequest, request: Request) -> RescanReply:
        return await requests.cancel(body.project, actor(request))

    @app.get("/rescan", response_model=RescanReply)
    async def get_rescans(project: str | None = None) -> RescanReply:
        return await requests.status(project)

    @app.get("/rescan/{rescan_id}", response_model=RescanReport)
    async def get_report(rescan_id: str) -> RescanReport:
        return await requests.report(rescan_id)

    return app


def _opinion(env: Env) -> SecondOpinion | None:
    """A model that is asked about clean texts, if the settings want one and there is a gateway."""
    settings = SecondOpinionSettings()
    if not settings.second_opinion:
        return None
    try:
        gateway = open_gateway(AiSettings())
    except AiOff as off:
        log.warning("second_opinion.off", reason=str(off))
        return None
    env.stack.push_async_callback(gateway.aclose)
    return SecondOpinion(gateway, settings)


async def build(env: Env) -> Service:
    """The scanner."""
    judge = await asyncio.to_thread(open_judge)
    large, first = OneLarge(), LiveFirst()
    stored = Stored(env.blobs, judge, large, _opinion(env))
    rescanner = Rescanner(env.log, stored, first)
    return Service(
        "scanner",
        app=create_app(env, Requests(env.log, stored, rescanner), large, judge),
        handlers=handlers,
        background=(rescanner.run,),
        # One may be a large document: a small one behind it is delivered all the same.
        concurrency=max(env.settings.concurrency, 2),
        deps={"stored": stored, "received": env.log.received, "first": first, "log": env.log},
    )
