"""Composition root of the indexer."""

from functools import partial

from fastapi import FastAPI, Request

from contracts.events import Project
from contracts.generations import GenerationList, GenerationView, RebuildReply, RebuildRequest
from contracts.taxonomy import Reclassified, TaxonomyChange, TaxonomyView
from kernel.audit import Auditor, AuditSettings, add_audit_route
from kernel.errors import Refusal
from kernel.language import detect
from kernel.models import shared_embedders, shared_vectors
from kernel.projects import project_settings
from kernel.service import Env, Service
from kernel.vectors import collection_name
from kernel.web import actor, create_api
from services.indexer import handlers
from services.indexer.audit import IndexExaminer
from services.indexer.chunker import Cut
from services.indexer.index import Index
from services.indexer.rebuild import rebuild, rollback, sweeping
from services.indexer.settings import IndexerSettings
from services.indexer.taxonomy import Taxonomy, reclassify, set_taxonomy, taxonomy_of


def create_app(env: Env, index: Index, cut_options: Cut) -> FastAPI:
    """The HTTP surface: rebuilds and generations."""
    app = create_api("indexer", api_key=env.settings.api_key.get_secret_value(), health=env.health)

    @app.post("/rebuild", response_model=RebuildReply)
    async def post_rebuild(body: RebuildRequest, request: Request) -> RebuildReply:
        who = actor(request)
        if body.rollback:
            if body.project is None or body.recut:
                raise Refusal("invalid-request", "a rollback is of one project, and cuts nothing")
            back = await rollback(index, body.project, options=cut_options, actor=who)
            return RebuildReply(rebuilt=[back])
        projects = [body.project] if body.project else await index.projects()
        return RebuildReply(
            rebuilt=[
                await rebuild(index, p, options=cut_options, actor=who, recut=body.recut)
                for p in projects
            ]
        )

    @app.get("/generations", response_model=GenerationList)
    async def get_generations(project: Project | None = None) -> GenerationList:
        return GenerationList(generations=await generations(index, project))

    add_taxonomy_routes(app, index)
    return app


def add_taxonomy_routes(app: FastAPI, index: Index) -> None:
    """Classes of documents."""

    @app.get("/projects/{id}/taxonomy", response_model=TaxonomyView)
    async def get_taxonomy(id: Project) -> TaxonomyView:
        found = await taxonomy_of(index.log, id)
        if found is None:
            raise Refusal("no-taxonomy", f"{id} has no taxonomy", status=404)
        return _view(found)

    @app.put("/projects/{id}/taxonomy", response_model=TaxonomyView)
    async def put_taxonomy(id: Project, change: TaxonomyChange, request: Request) -> TaxonomyView:
        await _there(index, id)
        return _view(await set_taxonomy(index.log, id, change, actor(request)))

    @app.post("/projects/{id}/taxonomy/apply", response_model=Reclassified)
    async def post_apply(id: Project, request: Request) -> Reclassified:
        await _there(index, id)
        return await reclassify(index, id, actor(request))


async def _there(index: Index, project: str) -> None:
    if (await project_settings(index.log, project)).deleted:
        raise Refusal("unknown-project", f"{project} was deleted", status=404)


def _view(taxonomy: Taxonomy) -> TaxonomyView:
    said = taxonomy.said.model_dump(mode="json")
    return TaxonomyView.model_validate(said | {"set_at": taxonomy.at})


async def generations(index: Index, project: str | None = None) -> list[GenerationView]:
    """Those of a project, or of all."""
    rows = [dict(r) async for r in index.sql.sizes(index.log.pool, project=project)]
    held = [await index.vectors.count(collection_name(r["project"], r["generation"])) for r in rows]
    return [GenerationView(**r, vectors=n) for r, n in zip(rows, held, strict=True)]


async def build(env: Env) -> Service:
    """The indexer, with the process's embedders and vector engine."""
    settings = IndexerSettings()
    embedders = await shared_embedders(env)
    index = Index(env.log, env.blobs, embedders, await shared_vectors(env))
    cut_options = Cut(
        count_tokens=embedders.default.count_tokens,
        detect=lambda text: detect(text).code,
        limit=settings.chunk_tokens,
    )
    app = create_app(env, index, cut_options)
    rate = AuditSettings().audit_per_minute
    auditor = Auditor(env.log, "indexer", IndexExaminer(index), rate)
    add_audit_route(app, auditor, "index")
    return Service(
        "indexer",
        app=app,
        handlers=handlers,
        # The embedder takes turns in small batches: a short document passes a long one. With four
        # at once the whole line was slower (eval/RESULTS.md).
        concurrency=max(env.settings.concurrency, 2),
        deps={"log": env.log, "blobs": env.blobs, "index": index, "cut_options": cut_options},
        take_back=lambda event, _: handlers.take_back(event, index),
        background=(partial(sweeping, index), *((auditor.run,) if rate else ())),
    )
