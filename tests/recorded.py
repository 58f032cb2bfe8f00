"""What releases before this one wrote: their log, their blobs, and what they made of it.

`tests/releases/log-<commit>.jsonl` holds the events as CloudEvents, `.blobs.jsonl` the blobs that
they name, `.state.jsonl` the rows of the read projection and of the live passages, by table. All
texts are made up for it. They were made by `kb up` of that commit, through its front door; they are
never made again, for what was written once must stay readable.
"""

import base64
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import asyncpg

from contracts.envelope import Envelope
from kernel import migrations
from kernel.migrations import migrate
from kernel.testing import MemoryBlobs

DATA = Path(__file__).parent / "releases"
FIRST_NEW = "0009"
"""The first migration that the release did not have."""
COLUMNS = (
    "position", "stream_id", "version", "event_id", "type", "schema_version", "lane", "project",
    "causation_id", "correlation_id", "actor", "traceparent", "occurred_at", "recorded_at",
)  # fmt: skip
PLACES = ", ".join(f"${n}" for n in range(1, len(COLUMNS) + 2))


@dataclass(frozen=True)
class Release:
    """A release, by its commit."""

    commit: str

    def events(self) -> list[Envelope]:
        """Its log."""
        return [Envelope.from_cloudevent(e) for e in self._lines(f"log-{self.commit}.jsonl")]

    def state(self) -> dict[str, list[dict[str, Any]]]:
        """Its rows by table: `version`, `validity`, `job`, `chunk`."""
        tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in self._lines(f"log-{self.commit}.state.jsonl"):
            tables[line["table"]].append(line["row"])
        return tables

    async def blobs(self) -> MemoryBlobs:
        """Its blobs."""
        blobs = MemoryBlobs()
        for line in self._lines(f"log-{self.commit}.blobs.jsonl"):
            whole = line["text"].encode() if "text" in line else base64.b64decode(line["base64"])
            assert await blobs.put(whole) == line["name"]
        return blobs

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        with (DATA / name).open(encoding="utf-8") as file:
            yield from map(json.loads, file)


BEFORE = Release("dc80d80")


async def migrate_to(dsn: str, first_new: str) -> None:
    """The database as it was before the migration `first_new`."""
    old = [m for m in migrations.files() if m[0] < first_new]
    with mock.patch.object(migrations, "files", lambda: old):
        await migrate(dsn)


async def write(connection: Any, events: list[Envelope]) -> None:
    """Rows as they stood in a log of the release: `log.append` would give them new times."""
    rows = [
        (*(getattr(e, name) for name in COLUMNS), json.dumps(e.data, ensure_ascii=False))
        for e in events
    ]
    async with connection.transaction():
        names = ", ".join((*COLUMNS, "data"))
        await connection.executemany(f"INSERT INTO log.event ({names}) VALUES ({PLACES})", rows)
        await connection.execute("UPDATE log.head SET position = $1", events[-1].position)


async def write_state(connection: Any, state: dict[str, list[dict[str, Any]]], head: int) -> None:
    """The read projection of the release, up to `head`."""
    for table in ("version", "validity", "job"):
        await connection.execute(
            f"INSERT INTO read.{table} SELECT * FROM jsonb_populate_recordset(NULL::read.{table},"
            " $1::jsonb)",
            json.dumps(state[table], ensure_ascii=False),
        )
    await connection.execute(
        "INSERT INTO log.projection (name, position) VALUES ('read', $1)", head
    )


async def installation(dsn: str, release: Release = BEFORE) -> None:
    """The database of an installation of the release, before it is brought up to date."""
    await migrate_to(dsn, FIRST_NEW)
    connection = await asyncpg.connect(dsn)
    events = release.events()
    await write(connection, events)
    await write_state(connection, release.state(), events[-1].position)
    await connection.close()
