"""The system under test: real handlers on a real Postgres, and a bus that misbehaves."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from contracts.artifacts import HiddenText
from contracts.envelope import Envelope
from contracts.events import Event, Fact
from contracts.http import Accepted, ReviewRequest
from contracts.query import QueryRequest
from kernel.cache import ParseCache
from kernel.chain import verify
from kernel.consumer import Consumer, consumers_of
from kernel.embedder import HashedEmbedder
from kernel.erasure import Traces
from kernel.large import OneLarge
from kernel.log import Appended, Log
from services.indexer import handlers as indexer
from services.indexer.chunker import Cut
from services.indexer.index import Index
from services.indexer.rebuild import rebuild, rollback
from services.ingest import handlers as ingest
from services.ingest.accept import Offer, accept
from services.ingest.attachments import Attachments
from services.ingest.domain import Identity
from services.ingest.erase import Eraser, Why
from services.ingest.jobs import Jobs
from services.scanner import handlers as scanner
from services.scanner.domain import ScanResult
from services.scanner.rescan import Rescanner
from services.scanner.rescans import Requests
from services.scanner.review import review
from services.scanner.stored import LiveFirst, Stored
from services.search.documents import Documents
from services.search.engine import Engine
from services.search.projection import Projection, digest
from tests.integration.rescan_world import Converting
from tests.model import fuse
from tests.model.fuse import Killed, fused

COMMON = "lighthouse"
"""A word of every text."""
KEY = b"k" * 32
KEPT = ("log.writer", "log.identity", "public.migration")
MOST = 2_000
"""Deliveries after which a history that does not come to rest is given up."""


class Judge:
    """A judge of few words: `doubtful`, `hostile`, and `late` once the rules are strict."""

    strict = False

    @property
    def version(self) -> str:
        return "strict" if self.strict else "mild"

    def under(self, _: object) -> "Judge":
        return self

    def load(self) -> str:
        return ""

    def judge(self, text: str, hidden: Sequence[HiddenText]) -> ScanResult:
        if "hostile" in text:
            return ScanResult("block", 1.0, ())
        doubtful = "doubtful" in text or ("late" in text and self.strict)
        return ScanResult("quarantine" if doubtful else "clean", 0.5 * doubtful, ())


class Witness(Log):
    """Remembers how long the log is, and what a handler raised: nothing but `Retry` and refusals
    is in order."""

    raised: BaseException | None = None
    position = 0

    async def append(self, *args: Any, **options: Any) -> Appended:
        appended = await super().append(*args, **options)
        self.position = max(self.position, appended.position)
        return appended

    async def count_failure(self, consumer: str, cause: Envelope, error: BaseException) -> int:
        self.raised = error
        return await super().count_failure(consumer, cause, error)


class Turn(NamedTuple):
    """One delivery: which of those that wait, killed after how many operations, and then again?
    Is the projection up to date before?"""

    pick: int = 0
    steps: int | None = None
    twice: bool = False
    folded: bool = True


class Message:
    """A delivery; its acknowledgement is an operation, too."""

    def __init__(self, body: str) -> None:
        self.body, self.again = body, False

    async def ack_sync(self) -> None:
        fuse.burn()

    async def nack(self, delay: float | None = None) -> None:
        self.again = True

    async def reject(self) -> None:
        raise AssertionError("a delivery was given up")

    async def in_progress(self) -> None:
        """Still at work."""


@dataclass
class Waiting:
    """A message for one consumer."""

    consumer: Consumer
    body: str
    cause: str


class World:
    """The log, everybody who acts on it, and what waits to be delivered."""

    def __init__(self, pool: Any) -> None:
        self.log = Witness(pool)
        self.blobs, self.vectors = fuse.Blobs(), fuse.Vectors()
        self.judge, self.embedder = Judge(), HashedEmbedder()
        self.index = Index(self.log, self.blobs, self.embedder, self.vectors)
        self.index.patience = 0  # of a projection that lags: the delivery comes again
        self.projection = Projection(self.log, self.blobs)
        self.documents = Documents(self.log, self.blobs)
        self.engine = Engine(self.log, self.projection, self.embedder, self.vectors)
        self.identity = Identity(KEY)
        self.eraser = Eraser(self.log, self.blobs, ParseCache(pool))
        self.jobs = Jobs(self.log, self.blobs, self.eraser)
        self.first = LiveFirst()
        self.stored = Stored(self.blobs, self.judge, OneLarge())
        self.rescanner = Rescanner(self.log, self.stored, self.first)
        self.requests = Requests(self.log, self.stored, self.rescanner)
        self.sent = 0
        """Log position up to which messages were made."""
        self.folded = 0
        self.waiting: list[Waiting] = []
        self.consumers = self._consumers()

    def _consumers(self) -> list[Consumer]:
        deps = {
            "log": self.log, "blobs": self.blobs, "received": self.log.received,
            "index": self.index, "cut_options": Cut(self.embedder.count_tokens),
            "eraser": self.eraser, "stored": self.stored, "first": self.first,
            "attachments": Attachments(self.log, self.blobs, self.identity),
        }  # fmt: skip
        converting = Converting(self.blobs)
        converter = SimpleNamespace(
            **{n: getattr(converting, n) for n in dir(converting) if n.startswith("on_")}
        )
        modules = {
            "converter": converter, "scanner": scanner, "indexer": indexer, "ingest": ingest,
        }  # fmt: skip
        traces = Traces(self.log, self.blobs)

        async def take_back(event: Event, emitted: Sequence[Fact]) -> None:
            await indexer.take_back(event, self.index)
            await traces.take_back(event, emitted)

        return [
            consumer
            for service, module in modules.items()
            for consumer in consumers_of(service, cast(Any, module), self.log, deps, take_back)
            if consumer.lane == "live"
        ]

    async def start(self) -> None:
        """An empty installation: whatever an earlier history left is gone."""
        await empty(self.log.pool)
        await self.projection._sql.start(self.log.pool)

    # What people do -------------------------------------------------------------------------

    async def send(self, project: str, name: str, text: str, **more: Any) -> Accepted:
        """Bytes come in."""
        source_id = await self.blobs.put(text.encode())
        offer = Offer(
            project=project, source_id=source_id, name=name, media_type="text/markdown",
            size_bytes=len(text.encode()), **more,
        )  # fmt: skip
        return await accept(offer, self.log, self.identity)

    async def decide(self, version_id: str, decision: Any) -> None:
        """A person releases or rejects."""
        request = ReviewRequest(decision=decision, reason="looked at it")
        await review(version_id, request, "editor-1", self.log)

    async def erase_version(self, document_id: str, version_id: str) -> int:
        """One version of a document, as when certain bytes are erased."""
        why = Why("request", "person", scope="source")
        return (await self.eraser.erase({document_id: {version_id}}, why)).versions

    async def rescan(self) -> None:
        """Stored texts, by the rules in force."""
        await self.requests.start(None, "admin-1")
        await self.rescanner.round()

    async def rebuild(self, project: str) -> None:
        """The next generation of a project."""
        await rebuild(self.index, project)

    async def rollback(self, project: str) -> None:
        """The generation before, brought up to date."""
        await rollback(self.index, project)

    # What the machine does ------------------------------------------------------------------

    async def killed(self, work: Any, steps: int | None) -> bool:
        """Do `work` in a process that dies after so many operations. Did it?"""

        async def run() -> None:
            with fused(steps):
                await work

        task = asyncio.ensure_future(_caught(run()))
        return await task

    async def enqueue(self) -> None:
        """Make messages of what is new in the log."""
        if self.sent == self.log.position:
            return
        for envelope in await self.log.read(self.sent, 1000):
            self.sent = envelope.position
            body = json.dumps(envelope.to_cloudevent())
            self.waiting += [
                Waiting(consumer, body, envelope.type)
                for consumer in self.consumers
                if getattr(consumer.step.consumes, "__name__", "") == envelope.type
            ]

    async def deliver(self, turn: Turn) -> bool:
        """One delivery. False: nothing waits."""
        await self.enqueue()
        if not self.waiting:
            return False
        if turn.folded:
            await self.fold()
        item = self.waiting.pop(turn.pick % len(self.waiting))
        message = Message(item.body)
        outcomes: list[str] = []

        async def work() -> None:
            outcomes.append(await item.consumer.deliver(message))

        died = await self.killed(work(), turn.steps)
        if not died and outcomes[0] == "failed":
            raise AssertionError(
                f"{item.consumer.name} raised at {item.cause}"
            ) from self.log.raised
        if died or message.again or turn.twice:
            self.waiting.append(item)
        return True

    async def settle(self, turns: Sequence[Turn]) -> None:
        """Deliver until nothing waits, at first as `turns` say; then fold."""
        order = iter(turns)
        for _ in range(MOST):
            if not await self.deliver(next(order, Turn())):
                break
        else:
            raise AssertionError("it does not come to rest")
        await self.fold()

    async def fold(self) -> None:
        """Bring the projection up to the log."""
        if self.folded < self.log.position:
            while await self.projection.step():
                pass
            self.folded = self.log.position

    # What can be seen -----------------------------------------------------------------------

    async def ask(
        self, project: str, moment: datetime | None, known: datetime | None = None
    ) -> list[Any]:
        """All passages that a question finds at an instant, equal ones each by itself; None: of
        all times. `known`: by what was known then."""
        request = QueryRequest(
            query=COMMON, top_k=100, project=project, as_of=moment,
            include_historical=moment is None, recorded_as_of=known, fold=False,
        )  # fmt: skip
        return (await self.engine.query(request)).results

    async def stated(self, version_id: str) -> datetime:
        """From when on a version is valid, as its newest receipt or return says."""
        row: Any = await self.log.pool.fetchrow(
            "SELECT data FROM log.event WHERE data ->> 'version_id' = $1"
            " AND type IN ('DocumentReceived', 'Reinstated') ORDER BY position DESC LIMIT 1",
            version_id,
        )
        return datetime.fromisoformat(row["data"]["valid_from"])

    async def recorded(self) -> datetime:
        """When the newest event was recorded."""
        at: datetime = await self.log.pool.fetchval("SELECT max(recorded_at) FROM log.event")
        return at

    async def faults(self) -> list[Any]:
        """What is wrong with the chains of the log."""
        return list((await verify(self.log.pool)).faults)

    async def windows(self) -> list[Any]:
        """All rows of valid time."""
        found: list[Any] = await self.log.pool.fetch("SELECT * FROM read.validity")
        return found

    async def index_of(self, project: str) -> tuple[list[Any], list[Any]]:
        """Passages of the live generation, and the ids of its points."""
        rows = await self.log.pool.fetch(
            "SELECT c.version_id, c.point_id FROM read.chunk c JOIN read.active USING"
            " (project, generation) WHERE project = $1",
            project,
        )
        live = await self.index._live(self.log.pool, project)
        return rows, await self.vectors.ids(live.collection) if live else []

    async def digests(self) -> dict[str, str]:
        return await digest(self.log.pool)

    async def everything(self) -> str:
        """Every text that is anywhere: bytes, passages, what the log says.

        Not the blobs that no event names: a worker died before it could say so, and the auditor
        sweeps them.
        """
        rows = await self.log.pool.fetch(
            "SELECT text || title AS t FROM read.chunk UNION ALL SELECT data::text FROM log.event"
            " UNION ALL SELECT v::text FROM read.version v"
        )
        said = "\n".join(r["t"] for r in rows)
        named = [b.decode() for name, b in self.blobs.content.items() if name in said]
        return "\n".join([said, *named])


async def _caught(work: Any) -> bool:
    with suppress(Killed):
        await work
        return False
    return True


async def empty(pool: Any) -> None:
    """Delete every row of every store in Postgres."""
    names = await _tables(pool)
    deletes = "".join(f"DELETE FROM {name};" for name in names)
    await pool.execute(
        f"BEGIN; SET LOCAL session_replication_role = replica; {deletes}"
        " INSERT INTO log.head DEFAULT VALUES; COMMIT"
    )


_NAMES: list[str] = []


async def _tables(pool: Any) -> list[str]:
    if not _NAMES:
        rows = await pool.fetch(
            "SELECT schemaname || '.' || tablename AS name FROM pg_tables"
            " WHERE schemaname IN ('log', 'read', 'cache') ORDER BY 1"
        )
        _NAMES.extend(r["name"] for r in rows if r["name"] not in KEPT)
    return _NAMES
