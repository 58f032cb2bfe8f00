"""Composition root of the indexer."""

from fastapi import FastAPI

from contracts.http import RebuildReply, RebuildRequest
from kernel.language import detect
from kernel.models import shared_embedder, shared_vectors
from kernel.service import Env, Service
from kernel.web import create_api
from services.indexer import handlers
from services.indexer.chunker import Cut
from services.indexer.index import Index
from services.indexer.rebuild import rebuild
from services.indexer.settings import IndexerSettings


def create_app(env: Env, index: Index) -> FastAPI:
    """The HTTP surface: rebuilds."""
    app = create_api("indexer", api_key=env.settings.api_key.get_secret_value(), health=env.health)

    @app.post("/rebuild", response_model=RebuildReply)
    async def post_rebuild(request: RebuildRequest) -> RebuildReply:
        projects = [request.project] if request.project else await index.projects()
        return RebuildReply(rebuilt=[await rebuild(index, project) for project in projects])

    return app


async def build(env: Env) -> Service:
    """The indexer, with the process's embedder and vector engine."""
    settings = IndexerSettings()
    embedder = await shared_embedder(env)
    index = Index(env.log, env.blobs, embedder, await shared_vectors(env))
    cut_options = Cut(
        count_tokens=embedder.count_tokens,
        detect=lambda text: detect(text).code,
        limit=min(settings.chunk_tokens, embedder.max_tokens),
        most=embedder.max_tokens,
    )
    return Service(
        "indexer",
        app=create_app(env, index),
        handlers=handlers,
        # The embedder takes turns in small batches: a short document passes a long one. With four
        # at once the whole line was slower (eval/RESULTS.md).
        concurrency=max(env.settings.concurrency, 2),
        deps={"log": env.log, "blobs": env.blobs, "index": index, "cut_options": cut_options},
        take_back=lambda event, _: handlers.take_back(event, index),
    )
