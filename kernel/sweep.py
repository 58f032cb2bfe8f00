"""Deletes blobs that no event names: a process was killed between writing one and saying so.

Nobody would ever find them: not even an erasure, which goes by what the log names. For the owner of
the database, who sees all of it.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg

from contracts.artifacts import ParsedDocument
from kernel.blobs import Blobs
from kernel.db import queries

BATCH = 1000
AGE = timedelta(days=1)
"""What is younger may be about to be named."""


async def sweep(dsn: str, blobs: Blobs, older_than: timedelta = AGE) -> int:
    """Delete the blobs that are older and that neither an event, nor the parse cache, nor a parse
    (its attachments) names; returns how many.

    Raises:
        Retry: the blob store is away.
        asyncpg.PostgresError: the role may not read the log.
    """
    connection = await asyncpg.connect(dsn)
    try:
        sql, gone = queries("kernel.sql", "sweep"), 0
        await sql.collect(connection)
        await _inside(connection, sql, blobs)
        async for names in _batches(blobs.names(older_than)):
            for row in [r async for r in sql.unknown(connection, names=names)]:
                gone += await blobs.delete(row["name"])
        return gone
    finally:
        await connection.close()


async def _inside(connection: Any, sql: Any, blobs: Blobs) -> None:
    """The files inside parses, which a parse alone names."""
    for row in [r async for r in sql.parses_with_files(connection)]:
        try:
            data = await blobs.get(row["name"])
        except FileNotFoundError:
            continue  # erased
        files = ParsedDocument.model_validate_json(data).attachments
        await sql.add(connection, names=[f.sha256 for f in files])


async def _batches(names: AsyncIterator[str]) -> AsyncIterator[list[str]]:
    batch: list[str] = []
    async for name in names:
        batch.append(name)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
