"""Composition root of the converter. It parses what strangers wrote, so it serves no requests."""

import asyncio

from kernel.cache import ParseCache
from kernel.service import Env, Service
from services.converter import handlers
from services.converter.cell import ParseCell
from services.converter.settings import ConverterSettings
from services.converter.temporary import require_temporary_folder
from services.converter.weights import with_weights


async def build(env: Env) -> Service:
    """The converter with its parse cell."""
    require_temporary_folder()
    settings = await asyncio.to_thread(with_weights, ConverterSettings())
    cell = ParseCell(settings)
    return Service(
        "converter",
        handlers=handlers,
        deps={
            "blobs": env.blobs,
            "cell": cell,
            "cache": ParseCache(env.pool),
            "settings": settings,
            "received": env.log.received,
            "log": env.log,
        },
        # One may be a large document: a small one behind it is delivered all the same.
        concurrency=max(env.settings.concurrency, 2),
        on_stop=(cell.close,),
    )
