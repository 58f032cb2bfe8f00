"""Embedder and vector engine, once a process."""

import asyncio
from typing import cast

from kernel.embedder import Embedder, EmbedderSettings, load_embedder
from kernel.service import Env
from kernel.vectors import VectorIndex, open_index


async def shared_embedder(env: Env) -> Embedder:
    """The embedder of this process, loaded off the event loop by whoever asks first."""

    async def load() -> Embedder:
        embedder = await asyncio.to_thread(load_embedder, EmbedderSettings())
        env.stack.push_async_callback(embedder.aclose)
        return embedder

    return cast(Embedder, await env.share("embedder", load))


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
