"""What was erased leaves the tables of older backups too: names in the log, people's accounts."""

import asyncio
import gzip
from collections.abc import Mapping
from typing import Any

from kernel.db import queries
from kernel.errors import Refusal
from kernel.repository import Gzipped, Manifest, Part, Repository, Table

Lines = Mapping[bytes, bytes | None]
"""A value of a column → the line that takes the place of the one with it, None for none."""


async def clean(connection: Any, repository: Repository) -> int:
    """Write the tables of backups anew where an erasure since took words from the log, or a person
    away; returns how many backups were changed. Only while `alone`.

    The log's other columns stay, and with them its hash chain: an event has the same digest before
    and after.
    """
    changed = 0
    for manifest in await asyncio.to_thread(repository.whole):
        try:
            tables = [await _cleaned(connection, repository, manifest, t) for t in manifest.tables]
        except Refusal:  # it is torn: `verify` says so, and nobody can restore it
            continue
        if any(new is not None for new in tables):
            await asyncio.to_thread(repository.replace, await _again(connection, manifest, tables))
            changed += 1
    return changed


async def _again(connection: Any, manifest: Manifest, tables: list[Table | None]) -> Manifest:
    sql = queries("kernel.sql", "backup")
    known = zip(manifest.tables, tables, strict=True)
    redacted = await sql.count_redacted(connection, position=manifest.position)
    return manifest.model_copy(
        update={"tables": tuple(new or old for old, new in known), "redacted": redacted}
    )


async def _cleaned(
    connection: Any, repository: Repository, manifest: Manifest, table: Table
) -> Table | None:
    """The table as it must be now; None if it is so."""
    match table.schema_name, table.name:
        case "log", "event":
            return await _log(connection, repository, manifest, table)
        case "auth", "account":
            gone: Lines = {p.encode(): None for p in repository.people()}
            return await asyncio.to_thread(_written, repository, manifest, table, "actor_id", gone)
        case _:
            return None


async def _log(
    connection: Any, repository: Repository, manifest: Manifest, table: Table
) -> Table | None:
    sql = queries("kernel.sql", "backup")
    position = manifest.position
    if await sql.count_redacted(connection, position=position) <= manifest.redacted:
        return None
    statement = await sql.redacted_statement(
        connection, columns=list(table.columns), position=position
    )
    lines = bytearray()

    async def take(data: bytes) -> None:
        lines.extend(data)

    await connection.copy_from_query(statement, output=take)
    at = table.columns.index("event_id")
    rows = bytes(lines).split(b"\n")[:-1]
    found: Lines = {row.split(b"\t")[at]: row + b"\n" for row in rows}
    return await asyncio.to_thread(_written, repository, manifest, table, "event_id", found)


def _written(
    repository: Repository, manifest: Manifest, table: Table, column: str, lines: Lines
) -> Table | None:
    """The table with other lines, as another file beside it; None if no line is another."""
    at, rows, changed = table.columns.index(column), 0, False
    source = repository.file(manifest, table)
    if not lines:
        return None
    stem, _, number = table.file.removesuffix(".copy.gz").partition("~")
    target = source.with_name(f"{stem}~{int(number or 0) + 1}.copy.gz")
    with gzip.open(source, "rb") as old, Gzipped(target) as out:
        for line in old:
            new = lines.get(line.rstrip(b"\n").split(b"\t")[at], line)
            changed |= new != line
            if new is not None:
                out.write(new)
                rows += 1
    if not changed:
        target.unlink()
        return None
    part: Part = out.part
    return table.model_copy(update=part.model_dump() | {"rows": rows})
