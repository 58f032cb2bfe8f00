"""Composition root of search: questions, documents, jobs, the event stream."""

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from contracts.events import Project
from contracts.http import DocumentPage, DocumentView, JobPage, JobView, Journal, Status
from contracts.query import QueryReply, QueryRequest
from kernel.audit import Auditor, AuditSettings, add_audit_route
from kernel.models import shared_embedders, shared_vectors
from kernel.service import Env, Service
from kernel.web import create_api
from services.search.audit import ProjectionExaminer
from services.search.bodies import parsed
from services.search.context import Count
from services.search.contexts import Contexts, add_context_route
from services.search.documents import Documents
from services.search.engine import Engine
from services.search.history import Histories, InTime, add_history_routes
from services.search.passages import Passages, add_passage_routes
from services.search.places import Originals, add_original_routes
from services.search.position import HEADER as POSITION
from services.search.position import reflect
from services.search.projection import Projection
from services.search.projects import add_project_list
from services.search.rerank import RerankerSettings, open_reranker
from services.search.settings import SearchSettings
from services.search.stream import add_stream_route
from services.search.summaries import Summaries, add_summary_route
from services.search.warm import Warmer
from services.search.why import Whys, add_why_route

Limit = Annotated[int, Query(ge=1, le=500)]


def create_app(
    env: Env, engine: Engine, documents: Documents, projection: Projection, count: Count
) -> FastAPI:
    """The HTTP surface. `count`: tokens of a text, for the budget of a context."""
    app = create_api("search", api_key=env.settings.api_key.get_secret_value(), health=env.health)
    originals = Originals(env.log, env.blobs, documents)
    passages = Passages(env.log, documents, originals)
    add_original_routes(app, originals)
    add_passage_routes(app, passages)
    add_context_route(app, Contexts(engine, documents, passages, count))
    add_why_route(app, Whys(env.log.pool, engine))
    add_history_routes(app, Histories(env.log, documents))
    add_summary_route(app, Summaries(env.log, env.blobs, documents))
    add_stream_route(app, env.log)
    add_project_list(app, env.log)

    @app.post("/query", response_model=QueryReply)
    async def post_query(request: Request, response: Response) -> QueryReply:
        reply = await engine.query(await parsed(QueryRequest, request))
        response.headers[POSITION] = str(reply.position)
        return reply

    @app.get("/documents", response_model=DocumentPage)
    async def get_documents(
        when: InTime,
        project: Project | None = None,
        cursor: str | None = None,
        limit: Limit = 50,
        status: Status | None = None,
        trusted: bool | None = None,
        source: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> DocumentPage:
        return await documents.listing(
            project, cursor, limit, status=status, trusted=trusted, source=source, when=when
        )

    @app.get("/documents/{id}", response_model=DocumentView)
    async def get_document(id: str, when: InTime) -> DocumentView:
        return await documents.document(id, when)

    @app.get("/documents/{id}/body")
    async def get_body(id: str, when: InTime, front_matter: bool = False) -> Response:
        version, body = await documents.body(id, when)
        headers = {"KB-Version-Id": version.version_id, "X-Content-Type-Options": "nosniff"}
        if front_matter:
            head = await documents.front_matter(version)
            headers["KB-Front-Matter-Bytes"] = str(len(head))
            body = head + body
        else:
            headers["ETag"] = f'"{version.body_sha256}"'
        return Response(body, media_type="text/markdown; charset=utf-8", headers=headers)

    @app.get("/documents/{id}/journal", response_model=Journal)
    async def get_journal(id: str) -> Journal:
        return await documents.journal(id)

    @app.get("/jobs", response_model=JobPage)
    async def get_jobs(
        project: Project | None = None, cursor: str | None = None, limit: Limit = 50
    ) -> JobPage:
        return await documents.jobs(project, cursor, limit)

    @app.get("/jobs/{id}", response_model=JobView)
    async def get_job(id: str) -> JobView:
        return await documents.job(id)

    @app.post("/projections/read/rebuild")
    async def post_replay() -> dict[str, int]:
        return {"position": await projection.replay()}

    reflect(app, engine.positions)
    return app


async def build(env: Env) -> Service:
    """Search, with the read projection running beside it."""
    projection = Projection(env.log, env.blobs)
    embedders, vectors = await shared_embedders(env), await shared_vectors(env)
    settings, reranking = SearchSettings(), RerankerSettings()
    reranker = open_reranker(reranking)
    engine = Engine(
        env.log,
        projection,
        embedders,
        vectors,
        mode=settings.keyword_mode,
        fusion=settings.fusion,
        wait_s=settings.position_wait_s,
        within_s=settings.answer_within_s,
        reranker=reranker,
        rerank_top=reranking.reranker_top,
    )
    documents = Documents(env.log, env.blobs)
    app = create_app(env, engine, documents, projection, embedders.default.count_tokens)
    rate = AuditSettings().audit_per_minute
    auditor = Auditor(env.log, "search", ProjectionExaminer(env.log, env.blobs), rate)
    add_audit_route(app, auditor, "projection")
    return Service(
        "search",
        app=app,
        background=(
            projection.run,
            Warmer(env.pool, embedders).run,
            *((auditor.run,) if rate else ()),
        ),
        on_stop=(reranker.aclose,) if reranker else (),
    )
