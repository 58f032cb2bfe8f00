"""Composition root of the indexer."""

import asyncio
from typing import Any

from fastapi import FastAPI

from contracts.http import RebuildReply, RebuildRequest
from kernel.embedder import Embedder, EmbedderSettings, load_embedder
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
    app = create_api(
        "indexer", api_key=env.settings.api_key.get_secret_value(), health=env.health
    )

    @app.post("/rebuild", response_model=RebuildReply)
    async def post_rebuild(request: RebuildRequest) -> RebuildReply:
        projects = [request.project] if request.project else await index.projects()
        return RebuildReply(rebuilt=[await rebuild(index, project) for project in projects])

    return app
