"""The front door: which API route goes to which service, and how it is forwarded."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from contracts.audit import AuditPage, AuditRequest, AuditSize, ChainPage, ChainRequest
from contracts.diff import DiffReply, History
from contracts.erasure import ErasePersonRequest, ErasePlan, EraseRequest, Erasure, PersonErased
from contracts.generations import GenerationList, RebuildReply, RebuildRequest
from contracts.http import (
    Accepted,
    Deleted,
    DocumentPage,
    DocumentView,
    JobChanged,
    JobPage,
    JobView,
    Journal,
    Places,
    Problem,
    ProjectChange,
    ProjectCreate,
    ProjectGone,
    ProjectList,
    ProjectView,
    Reviewed,
    ReviewRequest,
    ReviewView,
    TextUpload,
)
from contracts.passages import ContextReply, ContextRequest, PassageView
from contracts.query import QueryReply, QueryRequest
from contracts.replay import EventSummary
from contracts.rescan import RescanReply, RescanReport, RescanRequest
from contracts.summaries import SummaryView
from contracts.taxonomy import Reclassified, TaxonomyChange, TaxonomyView
from contracts.why import WhyReply, WhyRequest
from kernel.errors import Refusal
from services.ui.access import Access, Caller
from services.ui.settings import UiSettings
from services.ui.upstream import FORWARD_TIMEOUT, STREAM_TIMEOUT, Upstream

UPSTREAMS = ("ingest", "search", "scanner", "indexer")
HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
NOT_FORWARDED = HOP_BY_HOP | {
    "host", "authorization", "cookie", "x-kb-actor", "x-kb-role",
    "x-csrf-token", "expect", "origin", "referer",
}  # fmt: skip
NOT_RETURNED = HOP_BY_HOP | {"server", "date", "set-cookie"}
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}\Z")


@dataclass(frozen=True)
class Route:
    """An API route: who serves it, which role it asks for, and what OpenAPI says about it."""

    method: str
    path: str
    service: str
    role: str
    summary: str
    reply: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    query: tuple[str, ...] = ()
    status: int = 200
    stream: bool = False


_EVENTS = (
    "after", "until", "recorded_from", "recorded_before", "type", "project", "stream",
)  # fmt: skip
ROUTES: tuple[Route, ...] = (
    Route("POST", "/documents", "ingest", "editor", "Put a document in: a file or text",
          Accepted, TextUpload, status=202),
    Route("GET", "/documents", "search", "viewer", "List documents, newest first", DocumentPage,
          query=("project", "cursor", "limit", "status", "trusted", "source", "as_of",
                 "recorded_as_of")),
    Route("GET", "/documents/{id}", "search", "viewer", "A document with its versions",
          DocumentView, query=("as_of", "recorded_as_of")),
    Route("GET", "/documents/{id}/body", "search", "viewer", "The canonical Markdown of a version",
          query=("as_of", "recorded_as_of", "front_matter")),
    Route("GET", "/documents/{id}/diff", "search", "viewer",
          "What changed between two versions or days, section by section", DiffReply,
          query=("from", "to", "recorded_as_of", "unchanged")),
    Route("GET", "/documents/{id}/history", "search", "viewer",
          "When each version was valid, since when that is known, and who sent it", History),
    Route("GET", "/documents/{id}/places", "search", "viewer",
          "Where in the original a range of the body came from", Places, query=("start", "end")),
    Route("GET", "/documents/{id}/passage", "search", "viewer",
          "The exact words of a range of the body, and what surrounds them", PassageView,
          query=("start", "end", "chunk", "neighbours", "raw", "as_of", "recorded_as_of")),
    Route("GET", "/documents/{id}/summary", "search", "viewer",
          "A version in short: one sentence, its outline, a digest of each section", SummaryView,
          query=("as_of", "recorded_as_of")),
    Route("GET", "/documents/{id}/source", "search", "viewer", "The bytes that were uploaded"),
    Route("GET", "/documents/{id}/journal", "search", "viewer", "Everything that happened to it",
          Journal),
    Route("DELETE", "/documents/{id}", "ingest", "admin",
          "Erase a document, all its versions and what was attached to it", Deleted),
    Route("GET", "/jobs", "search", "viewer", "List ingests, newest first", JobPage,
          query=("project", "cursor", "limit")),
    Route("GET", "/jobs/{id}", "search", "viewer", "Where an ingest is", JobView),
    Route("GET", "/projects", "search", "viewer", "The projects, and what is in them",
          ProjectList),
    Route("POST", "/projects", "ingest", "admin", "Make a project", ProjectView, ProjectCreate,
          status=201),
    Route("GET", "/projects/{id}", "ingest", "viewer", "How a project works", ProjectView),
    Route("PUT", "/projects/{id}", "ingest", "admin", "Change how a project works",
          ProjectView, ProjectChange),
    Route("DELETE", "/projects/{id}", "ingest", "admin",
          "Close a project and erase all that is in it; not while its jobs run", ProjectGone),
    Route("GET", "/projects/{id}/taxonomy", "indexer", "viewer",
          "The classes that documents are put into", TaxonomyView),
    Route("PUT", "/projects/{id}/taxonomy", "indexer", "admin",
          "Say what classes there are; new documents are put into them", TaxonomyView,
          TaxonomyChange),
    Route("POST", "/projects/{id}/taxonomy/apply", "indexer", "admin",
          "Classify the documents that are there anew", Reclassified),
    Route("POST", "/jobs/{id}/cancel", "ingest", "editor", "End an ingest", JobChanged),
    Route("POST", "/jobs/{id}/retry", "ingest", "editor",
          "Try the document of an ingest again, as a new job", JobChanged),
    Route("POST", "/query", "search", "viewer", "Find passages", QueryReply, QueryRequest),
    Route("POST", "/query/why", "search", "viewer", "Why a passage is not among the answers",
          WhyReply, WhyRequest),
    Route("POST", "/context", "search", "viewer",
          "Found passages as numbered, fenced sources for a model, within a number of tokens",
          ContextReply, ContextRequest),
    Route("GET", "/events", "search", "viewer",
          "The events as they happen (SSE), or those that are there (application/x-ndjson)",
          query=(*_EVENTS, "current", "follow"), stream=True),
    Route("GET", "/events/summary", "search", "viewer", "How many events of each type there are",
          EventSummary, query=_EVENTS),
    Route("GET", "/review/{id}", "scanner", "editor",
          "What was found in a version in quarantine, in the text that was judged", ReviewView),
    Route("POST", "/review/{id}", "scanner", "editor",
          "Release or reject a version in quarantine; the text that was judged and no other",
          Reviewed, ReviewRequest),
    Route("POST", "/rescan", "scanner", "admin",
          "Have all stored texts judged by the rules in force, in the background",
          RescanReply, RescanRequest, status=202),
    Route("GET", "/rescan", "scanner", "editor", "How far re-scans are", RescanReply,
          query=("project",)),
    Route("GET", "/rescan/{id}", "scanner", "editor", "What a re-scan found", RescanReport),
    Route("POST", "/rescan/cancel", "scanner", "admin", "End re-scans that run",
          RescanReply, RescanRequest),
    Route("POST", "/erasures", "ingest", "admin",
          "Erase a document, or certain bytes wherever they are in a project", Erasure,
          EraseRequest, status=202),
    Route("POST", "/erasures/plan", "ingest", "admin", "What such an erasure would remove",
          ErasePlan, EraseRequest),
    Route("GET", "/erasures/{id}", "ingest", "admin",
          "The receipt of an erasure, or of all of a document: what was removed where", Erasure),
    Route("GET", "/audit", "ingest", "admin", "How much there is to check", AuditSize,
          query=("project",)),
    Route("POST", "/audit/chain", "ingest", "admin",
          "Check the next events: is the log as it was recorded?", ChainPage, ChainRequest),
    Route("POST", "/audit/projection", "search", "admin",
          "Check the next documents: are the rows that are read the fold of the log?",
          AuditPage, AuditRequest),
    Route("POST", "/audit/index", "indexer", "admin",
          "Check the next documents: do both indexes hold what the log says?",
          AuditPage, AuditRequest),
    Route("POST", "/audit/bytes", "ingest", "admin",
          "Check the next documents: are the bytes there that the log names, and unchanged?",
          AuditPage, AuditRequest),
    Route("POST", "/rebuild", "indexer", "admin",
          "Build the indexes again from the log, or bring back the generation before",
          RebuildReply, RebuildRequest),
    Route("GET", "/generations", "indexer", "viewer", "The generations of the indexes",
          GenerationList, query=("project",)),
    Route("POST", "/projections/read/rebuild", "search", "admin",
          "Fold documents, versions and jobs anew from the log"),
)  # fmt: skip
"""The public API; every other path is a page, or does not exist."""


class Relay(StreamingResponse):
    """An upstream's answer, passed on as it comes; the upstream is closed whatever happens."""

    def __init__(self, upstream: httpx.Response, seconds: float | None) -> None:
        super().__init__(_parts(upstream, seconds), upstream.status_code)
        self._upstream = upstream
        # Lists of pairs: a header may come twice.
        named = _listed(upstream.headers.get("connection", ""))
        self.raw_headers = [
            (k.lower(), v)
            for k, v in upstream.headers.raw
            if (name := k.decode("latin-1").lower()) not in NOT_RETURNED and name not in named
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._upstream.aclose()


async def _parts(upstream: httpx.Response, seconds: float | None) -> AsyncIterator[bytes]:
    """The body. After `seconds` it ends: a browser reconnects, and its session is checked again."""
    try:
        async with asyncio.timeout(seconds):
            async for part in upstream.aiter_raw():
                yield part
    except TimeoutError:
        return


def _listed(connection: str) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in connection.split(","))


def forwarded_headers(request: Request, ours: dict[str, str]) -> list[tuple[str, str]]:
    """The client's headers without hop-by-hop, secret and actor headers, and ours."""
    named = _listed(request.headers.get("connection", ""))
    kept = [(k, v) for k, v in request.headers.items() if k not in NOT_FORWARDED and k not in named]
    return [*kept, *ours.items()]


def path_of(route: Route, request: Request) -> str:
    """The upstream's path and query string; ids are checked, since `..` would climb out.

    Raises:
        Refusal: `not-found` (404).
    """
    path = route.path
    if "{id}" in path:
        key = str(request.path_params["id"])
        if not _ID.match(key):
            raise Refusal("not-found", "there is nothing with this id", status=404)
        path = path.replace("{id}", key)
    query = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


async def forward(
    route: Route, request: Request, caller: Caller, upstream: Upstream, settings: UiSettings
) -> Response:
    """Pass a request on and its answer back, neither held in memory."""
    has_body = request.method not in {"GET", "HEAD"}
    try:
        answer = await upstream.open(
            route.service,
            request.method,
            path_of(route, request),
            headers=forwarded_headers(
                request, upstream.headers(route.service, caller.actor, caller.role)
            ),
            timeout=STREAM_TIMEOUT if route.stream else FORWARD_TIMEOUT,
            **({"content": request.stream()} if has_body else {}),
        )
    except ClientDisconnect:
        return Response(status_code=499)  # nobody is there to read it
    limited = route.stream and caller.person is not None
    return Relay(answer, settings.session_stream_seconds if limited else None)


def _openapi(route: Route) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "query", "required": False, "schema": {"type": "string"}}
        for name in route.query
    ]
    if "{id}" in route.path:
        schema = {"type": "string", "pattern": _ID.pattern.removesuffix(r"\Z")}
        parameters.insert(0, {"name": "id", "in": "path", "required": True, "schema": schema})
    extra: dict[str, Any] = {"parameters": parameters, "security": [{"key": []}, {"session": []}]}
    if route.body:
        content: dict[str, Any] = {"application/json": {"schema": route.body.model_json_schema()}}
        if route.body is TextUpload:
            file = {"type": "string", "format": "binary"}
            content["multipart/form-data"] = {
                "schema": {"type": "object", "required": ["file"], "properties": {"file": file}}
            }
        extra["requestBody"] = {"required": True, "content": content}
    return extra


def router(settings: UiSettings, access: Access, upstream: Upstream) -> APIRouter:
    """Every route of the public API."""
    api = APIRouter()
    problems: dict[int | str, dict[str, Any]] = {
        code: {"model": Problem} for code in (401, 403, 404, 422, 502, 503)
    }

    def endpoint(route: Route) -> Callable[[Request], Awaitable[Response]]:
        async def call(request: Request) -> Response:
            caller = await access.api_caller(request, route.role)
            return await forward(route, request, caller, upstream, settings)

        return call

    for route in ROUTES:
        good: dict[str, Any] = {"model": route.reply} if route.reply else {}
        api.add_api_route(
            route.path,
            endpoint(route),
            methods=[route.method],
            summary=route.summary,
            tags=[route.service],
            status_code=route.status,
            response_class=Response,
            response_model=None,
            responses={**problems, route.status: good},
            openapi_extra=_openapi(route),
            operation_id=f"{route.method.lower()}_{route.path.strip('/').replace('/', '_')}",
        )
    _add_people(api, access)
    _add_operation(api, access, upstream)
    return api


def _add_people(api: APIRouter, access: Access) -> None:
    problems: dict[int | str, dict[str, Any]] = {
        code: {"model": Problem} for code in (401, 403, 404, 409, 422, 503)
    }

    @api.post(
        "/erasures/person",
        summary="Erase a person's account: only an opaque id is left of it",
        tags=["ui"],
        responses=problems,
        openapi_extra={"security": [{"key": []}, {"session": []}]},
    )
    async def erase_person(request: Request) -> PersonErased:
        await access.api_caller(request, "admin")
        try:
            asked = ErasePersonRequest.model_validate_json(await request.body())
        except ValidationError as error:
            raise Refusal("invalid-request", "person: a name, or actor:…") from error
        return await access.accounts.erase(asked.person)


def _add_operation(api: APIRouter, access: Access, upstream: Upstream) -> None:
    @api.get("/health", summary="One word for every service", tags=["ui"])
    async def health() -> JSONResponse:
        answers = await asyncio.gather(*(upstream.healthy(name) for name in UPSTREAMS))
        services = {
            name: "ok" if well else "down" for name, well in zip(UPSTREAMS, answers, strict=True)
        }
        well = all(answers)
        body = {"status": "ok" if well else "degraded", "services": {"ui": "ok", **services}}
        return JSONResponse(body, 200 if well else 503)

    @api.get("/metrics", summary="Prometheus metrics of this process", tags=["ui"])
    async def metrics(request: Request) -> Response:
        await access.api_caller(request, "viewer")
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
