"""Composition root of the converter. It parses what strangers wrote, so it serves no requests."""

from kernel.cache import ParseCache
from kernel.service import Env, Service
from services.converter import handlers
from services.converter.cell import ParseCell
from services.converter.settings import ConverterSettings


async def build(env: Env) -> Service:
    """The converter with its parse cell."""
    settings = ConverterSettings()
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
        },
        on_stop=(cell.close,),
    )
