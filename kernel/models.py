"""Embedders and vector engine, once a process."""

import asyncio
from typing import cast

from kernel.embedder import Embedder, Embedders, EmbedderSettings, load_embedders
from kernel.service import Env
from kernel.vectors import VectorIndex, open_index


async def shared_embedders(env: Env) -> Embedders:
    """The embedders of this process, loaded off the event loop by whoever asks first."""

    async def load() -> Embedders:
        embedders = await asyncio.to_thread(load_embedders, EmbedderSettings())
        env.stack.push_async_callback(embedders.aclose)
        return embedders

    return cast(Embedders, await env.share("embedders", load))


async def shared_vectors(env: Env) -> VectorIndex:
    """The vector engine of this process: a server, or the embedded one (one process only)."""

    async def open_() -> VectorIndex:
        settings = env.settings
        index = await asyncio.to_thread(
            open_index,
            root=settings.data / "vectors",
            url=settings.qdrant_url,
            api_key=settings.qdrant_api_key.get_secret_value(),
        )
        env.stack.push_async_callback(index.close)
        return index

    return cast(VectorIndex, await env.share("vectors", open_))


async def shared_embedder(env: Env) -> Embedder:
    """The one that the process was given."""
    return (await shared_embedders(env)).default
