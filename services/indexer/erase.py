"""An erased version leaves both indexes and the cache of vectors; a closed project its index."""

from typing import Any

from contracts.events import Event, IndexPurged
from kernel.db import queries
from kernel.projects import project_settings
from services.indexer.index import Index


async def purge(event: Event, index: Index) -> IndexPurged:
    """Remove the points of a version from every generation that is there, its passages, and the
    cached vectors of texts that no other passage has; says how many.

    Points go first: if this is killed, the rows that name them are still there for the next time.

    Raises:
        Retry: the vector engine is away.
    """
    which = {"project": event.project, "version_id": event.version_id}
    async with index.writing(event.project, event.document_id) as connection:
        for generation in await index.kept(connection, event.project, standby=True):
            await index.vectors.delete_version(generation.collection, event.version_id)
        row = await _sql().purge(connection, **which)
    await _close(event.project, index)
    return IndexPurged(
        project=event.project,
        document_id=event.document_id,
        version_id=event.version_id,
        removed={
            "passages": row["passages"],
            "vectors": row["passages"],  # each has one point
            "cached-vectors": row["forgotten"],
        },
        kept={"cached-vectors": row["kept"]} if row["kept"] else {},
    )


async def _close(project: str, index: Index) -> None:
    """Drop the index of a project that was closed, when the last version has left it."""
    if not (await project_settings(index.log, project)).deleted:
        return
    async with index.log.pool.acquire() as connection, connection.transaction():
        await index.sql.own_project(connection, project=project)
        if await _sql().is_used(connection, project=project):
            return
        await _sql().deactivate(connection, project=project)
        for generation in await index.kept(connection, project, standby=True):
            await index.vectors.drop(generation.collection)
            await index.sql.forget_generation(connection, **generation.key)


def _sql() -> Any:
    return queries("services.indexer", "erase")
