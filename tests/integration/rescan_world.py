"""All services of the line in one process, on a real Postgres: events are delivered one by one."""

import json
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument
from contracts.events import (
    Chunked,
    Converted,
    DocumentReceived,
    Event,
    Fact,
    Indexed,
    Parsed,
    Released,
    ScanPolicy,
    ScanVerdict,
)
from contracts.query import QueryReply, QueryRequest
from kernel.cache import ParseCache
from kernel.consumer import Consumer, consumers_of
from kernel.embedder import HashedEmbedder
from kernel.erasure import Traces
from kernel.large import OneLarge
from kernel.log import Log, Pending
from kernel.testing import MemoryBlobs, received
from kernel.vectors.memory import MemoryIndex
from services.indexer import handlers as indexer
from services.indexer.chunker import Cut
from services.indexer.index import Index
from services.ingest import handlers as ingest
from services.ingest.accept import Offer, accept
from services.ingest.attachments import Attachments
from services.ingest.domain import Identity
from services.ingest.erase import Eraser
from services.ingest.jobs import Jobs
from services.scanner import handlers as scanner
from services.scanner.domain import ScanResult, scan
from services.scanner.judge import RulesAlone
from services.scanner.rescan import Rescanner
from services.scanner.rescans import Requests
from services.scanner.ruleset import FOLDER, Ruleset, load
from services.scanner.stored import LiveFirst, Stored
from services.search.documents import Documents
from services.search.engine import Engine
from services.search.projection import Projection

NEW_RULE = """
kind = "override"

[[rule]]
id = "override.test.walrus"
severity = "{severity}"
why = "For tests."
anchors = ["purple walrus"]
regex = "purple walrus"
positive = "purple walrus"
negative = "walrus"
"""


@cache
def rules(folder: Path, severity: str | None) -> Ruleset:
    """The rules that ship; with a `severity` one more, which finds `purple walrus`."""
    if severity is None:
        return load(FOLDER)
    copy = folder / f"rules-{severity}"
    shutil.copytree(FOLDER, copy)
    (copy / "walrus.toml").write_text(NEW_RULE.format(severity=severity), "utf-8")
    return load(copy)


class Rules:
    """A judge whose rules may change: a process that is started anew. Counts what it reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.read = 0
        self.use(None)

    def use(self, severity: str | None) -> None:
        self.ruleset = rules(self._folder, severity)

    @property
    def version(self) -> str:
        return self.ruleset.version

    def load(self) -> str:
        return ""

    def under(self, policy: ScanPolicy) -> "RulesAlone":
        return RulesAlone(self.ruleset)

    def judge(self, text: str, hidden: Sequence[HiddenText]) -> ScanResult:
        self.read += 1
        return scan(text, hidden, self.ruleset)


class Converting:
    """The converter's place in the line: bytes are Markdown, lines with `hidden:` are not shown."""

    def __init__(self, blobs: MemoryBlobs) -> None:
        self._blobs = blobs

    async def on_document_received(self, event: DocumentReceived) -> list[Event]:
        lines = (await self._blobs.get(event.source_id)).decode().splitlines(keepends=True)
        hidden = [x.removeprefix("hidden:") for x in lines if x.startswith("hidden:")]
        parsed = ParsedDocument(
            markdown="".join(x for x in lines if not x.startswith("hidden:")),
            meta=BodyMeta(title=event.name, language="en", media_type="text/markdown"),
            hidden=tuple(HiddenText(kind="comment", text=h) for h in hidden),
        )
        name = await self._blobs.put(parsed.to_bytes())
        return [Parsed(**event.ids, parsed_sha256=name, parser="test", language="en")]

    async def on_scan_verdict(self, event: ScanVerdict) -> list[Event]:
        clean = event.subject == "parsed" and event.verdict == "clean"
        return await self._converted(event, event.text_sha256) if clean else []

    async def on_released(self, event: Released) -> list[Event]:
        parsed = event.subject == "parsed"
        return await self._converted(event, event.text_sha256) if parsed else []

    async def _converted(self, event: Event, parsed_sha256: str) -> list[Event]:
        parsed = ParsedDocument.model_validate_json(await self._blobs.get(parsed_sha256))
        body = parsed.markdown.encode()
        return [
            Converted(
                **event.ids,
                body_sha256=await self._blobs.put(body),
                meta_sha256=await self._blobs.put(parsed.meta.to_bytes()),
                body_bytes=len(body),
                converter="test",
                language="en",
            )
        ]


class Message:
    """A delivery."""

    def __init__(self, body: str) -> None:
        self.body, self.again = body, False

    async def ack_sync(self) -> None:
        """Done."""

    async def nack(self, delay: float | None = None) -> None:
        self.again = True

    async def reject(self) -> None:
        raise AssertionError("a delivery was given up")

    async def in_progress(self) -> None:
        """Still at work."""


class World:
    """The log, and everybody who acts on it; `deliver` brings events to them."""

    def __init__(self, log: Log, folder: Path, key: bytes) -> None:
        self.log, self.blobs, self.vectors = log, MemoryBlobs(), MemoryIndex()
        blobs: Any = self.blobs
        self.rules = Rules(folder)
        self.embedder = HashedEmbedder()
        self.index = Index(log, blobs, self.embedder, self.vectors)
        self.projection = Projection(log, blobs)
        self.documents = Documents(log, blobs)
        self.identity = Identity(key)
        self.eraser = Eraser(log, blobs, ParseCache(log.pool))
        self.jobs = Jobs(log, blobs, self.eraser)
        self.first = LiveFirst()
        self.stored = Stored(blobs, self.rules, OneLarge())
        self.rescanner = Rescanner(log, self.stored, self.first)
        self.requests = Requests(log, self.stored, self.rescanner)
        self.delivered = 0
        self.waiting: list[tuple[Consumer, Message]] = []
        self.consumers = self._consumers()

    def _consumers(self) -> list[Consumer]:
        blobs: Any = self.blobs
        deps = {
            "log": self.log, "blobs": blobs, "received": self.log.received, "index": self.index,
            "cut_options": Cut(self.embedder.count_tokens), "eraser": self.eraser,
            "attachments": Attachments(self.log, blobs, self.identity),
            "stored": self.stored, "first": self.first,
        }  # fmt: skip
        converting = Converting(self.blobs)
        converter: Any = SimpleNamespace(
            **{n: getattr(converting, n) for n in dir(converting) if n.startswith("on_")}
        )
        modules = {
            "converter": converter, "scanner": scanner, "indexer": indexer, "ingest": ingest,
        }  # fmt: skip
        traces = Traces(self.log, blobs)

        async def take_back(event: Event, emitted: Sequence[Fact]) -> None:
            await indexer.take_back(event, self.index)
            await traces.take_back(event, emitted)

        return [
            c
            for service, module in modules.items()
            for c in consumers_of(service, cast(Any, module), self.log, deps, take_back)
        ]

    def restarted(self) -> Rescanner:
        """A worker of another process."""
        return Rescanner(self.log, self.stored, self.first)

    async def send(self, name: str, text: str, **more: Any) -> str:
        """Bytes come in; the version's id."""
        source_id = await self.blobs.put(text.encode())
        offer = Offer(
            project=more.pop("project", "default"), source_id=source_id, name=name,
            media_type="text/markdown", size_bytes=len(text.encode()), source=name, **more,
        )  # fmt: skip
        return (await accept(offer, self.log, self.identity)).version_id

    async def stored_before(self, name: str, text: str) -> None:
        """A document that is in the index since the rules were others, put into the log at once."""
        receipt, job = received(name), uuid4()
        meta = BodyMeta(title=name, language="en", media_type="text/markdown")
        parse = await self.blobs.put(ParsedDocument(markdown=text, meta=meta).to_bytes())
        body, about = await self.blobs.put(text.encode()), await self.blobs.put(meta.to_bytes())
        made: Any = {"body_sha256": body, "meta_sha256": about}
        cut: Any = {"body_sha256": body, "chunks_sha256": "c" * 64, "chunk_count": 1}
        judged: Any = {"verdict": "clean", "score": 0, "ruleset": "old"}
        ids = receipt.ids
        events: list[Event] = [
            Parsed(**ids, parsed_sha256=parse, parser="p", language="en"),
            ScanVerdict(**ids, subject="parsed", text_sha256=parse, **judged),
            Converted(**ids, **made, body_bytes=len(text), converter="c", language="en"),
            ScanVerdict(
                **ids, subject="converted", text_sha256=body, meta_sha256=about, **judged
            ),
            Chunked(**ids, **cut, meta_sha256=about, chunker="h"),
            Indexed(**ids, **cut, embedder="e", embedded=1, reused=0),
        ]  # fmt: skip
        await self.log.append([Pending(receipt, uuid4(), job, "t")])
        await self.log.append([Pending(e, uuid4(), job, "t") for e in events])

    async def deliver(self, stop: str | None = None) -> None:
        """Deliver until nothing is left, or an event of the type `stop` is in the log and not yet
        delivered. Then fold the projection."""
        while await self._round(stop):
            pass
        await self.fold()

    async def _round(self, stop: str | None) -> bool:
        for envelope in await self.log.read(self.delivered, 1):
            if envelope.type == stop:
                return False
            self.delivered = envelope.position
            await self.fold()  # whoever tells the vectors of a new line waits for the projection
            wire = json.dumps(envelope.to_cloudevent())
            for consumer in self.consumers:
                wanted = consumer.step.consumes
                if (
                    consumer.lane == envelope.lane
                    and getattr(wanted, "__name__", "") == envelope.type
                ):
                    await self._hand(consumer, Message(wire))
            return True
        waiting, self.waiting = self.waiting, []
        for consumer, message in waiting:
            await self._hand(consumer, message)
        return bool(waiting)

    async def _hand(self, consumer: Consumer, message: Message) -> None:
        message.again = False
        await consumer.deliver(message)
        if message.again:
            self.waiting.append((consumer, message))

    async def fold(self) -> None:
        """Bring the projection up to the log."""
        await self.projection._sql.start(self.log.pool)
        while await self.projection.step():
            pass

    async def ask(self, query: str, **more: Any) -> list[str]:
        """Names of the documents that a question finds."""
        engine = Engine(self.log, self.projection, self.embedder, self.vectors)
        request = QueryRequest.model_validate({"query": query, "top_k": 50, **more})
        reply: QueryReply = await engine.query(request)
        return sorted({hit.title for hit in reply.results})

    async def status(self, version_id: str) -> str:
        return (await self.documents.document(version_id)).status

    async def rows(self) -> set[str]:
        """Versions in the keyword leg, of all generations."""
        found = await self.log.pool.fetch("SELECT DISTINCT version_id FROM read.chunk")
        return {r["version_id"] for r in found}

    async def points(self) -> int:
        """Points in the vector leg, of all generations."""
        names = await self.vectors.collections()
        return sum([await self.vectors.count(name) for name in names])

    async def of_type(self, cls: type[Any]) -> list[Any]:
        return [e.fact() for e in await self.log.read(0, 100_000) if e.type == cls.__name__]

    async def rescan(self, project: str | None = None) -> Any:
        """A whole re-scan, and everything that follows from it; its view."""
        await self.requests.start(project, "admin-1")
        await self.rescanner.round()
        await self.deliver()
        return (await self.requests.status(project)).rescans[0]
