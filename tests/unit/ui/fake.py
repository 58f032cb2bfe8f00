"""The internal services as one small application on loopback, with documents to look at."""

import asyncio
import hashlib
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import ASGIApp

from contracts.artifacts import breadcrumb
from contracts.diff import DiffReply, DiffSide, History, HistoryEntry
from contracts.http import (
    Accepted,
    DocumentPage,
    DocumentView,
    JobPage,
    JobView,
    Journal,
    JournalEntry,
    ReviewFinding,
    ReviewPiece,
    ReviewText,
    ReviewView,
    ScanNote,
    VersionView,
)
from contracts.query import Hit, QueryReply
from kernel.fence import fence
from kernel.web import problem
from services.search.diff import compare

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
KEY = "an-internal-key"
FENCE = "untrusted-document-7f3a7f3a7f3a7f3a"
BODY = """# General Data Protection Regulation

Regulation (EU) 2016/679 of the European Parliament and of the Council.

## Chapter VIII

### Article 83

General conditions for imposing **administrative fines**

Infringements of the following provisions shall be subject to fines up to 20 000 000 EUR, or in the
case of an undertaking, up to 4 % of the total worldwide annual turnover, whichever is higher.

- the basic principles for processing
- the data subjects' rights

| Provision | Maximum fine |
|---|---|
| Articles 5, 6, 7 and 9 | 20 000 000 EUR |
| Articles 8 and 11 | 10 000 000 EUR |

## Глава IX

Положения, связанные с особыми ситуациями обработки. Штраф за нарушение.

<script>alert("from a document")</script> [click](javascript:alert(1)) ![beacon](http://evil.example/x.png)
"""


def span(text: str, until: str | None = None) -> tuple[int, int]:
    """Bytes of BODY from `text` to the end of `until`."""
    raw = BODY.encode()
    last = (until or text).encode()
    start = raw.index(text.encode())
    return start, raw.index(last, start) + len(last)


def hexid(name: str) -> str:
    """A 128-bit id made from a name."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def version(name: str = "gdpr.html", **changes: Any) -> VersionView:
    """A version that is indexed and valid now, with `changes`."""
    values: dict[str, Any] = {
        "version_id": hexid(name),
        "document_id": hexid(f"document of {name}"),
        "source_id": hashlib.sha256(name.encode()).hexdigest(),
        "project": "default",
        "source_key": f"https://example.org/{name}",
        "name": name,
        "title": "General Data Protection Regulation",
        "media_type": "text/html",
        "size_bytes": 534_221,
        "language": "en",
        "status": "indexed",
        "verdict": "clean",
        "parser": "docling 2.143",
        "converter": "plain 1",
        "embedder": "multilingual-e5-small",
        "body_sha256": hashlib.sha256(BODY.encode()).hexdigest(),
        "body_bytes": len(BODY.encode()),
        "chunk_count": 3,
        "error": None,
        "received_at": NOW - timedelta(hours=3),
        "valid_from": datetime(2018, 5, 25, tzinfo=UTC),
        "valid_until": None,
        "current": True,
        "job_id": hexid(f"job of {name}"),
    }
    return VersionView(**(values | changes))


def hit(
    start_text: str, until: str | None = None, *, path: tuple[str, ...] = (), **changes: Any
) -> Hit:
    """A hit on a stretch of BODY, fenced as search fences it."""
    view = version()
    start, end = span(start_text, until)
    passage = BODY.encode()[start:end].decode()
    inner = f"{breadcrumb(view.title, path)}\n{passage}"
    values: dict[str, Any] = {
        "chunk_id": f"{view.version_id}:{start}",
        "source_id": view.source_id,
        "heading_path": list(path),
        "byte_start": start,
        "byte_end": end,
        "valid_until": None,
        "text": fence(inner, FENCE),
        "score": 0.0325,
        "rrf_score": 0.0325,
        "document_id": view.document_id,
        "version_id": view.version_id,
        "project": "default",
        "title": view.title,
        "language": "en",
        "valid_from": view.valid_from,
        "dense_rank": 1,
        "keyword_rank": 2,
    }
    return Hit(**(values | changes))


def note(**changes: Any) -> ScanNote:
    """A verdict of quarantine, with `changes`."""
    values: dict[str, Any] = {
        "subject": "parsed", "verdict": "quarantine", "score": 0.62, "worst": "medium",
        "rules": ["override.en.ignore-previous", "spam.links"], "findings": 3,
        "ruleset": "rules-1a2b3c4d", "bypassed": False, "text_sha256": "a" * 64, "at": NOW,
    }  # fmt: skip
    return ScanNote(**(values | changes))


def exhibit(**changes: Any) -> ReviewView:
    """What waits: a quoted attack, and an encoded one in a comment."""
    findings = [
        ReviewFinding(
            number=1, rule="override.en.ignore-previous", kind="override", severity="medium",
            why="It orders a model to forget what it was told.", count=1, text=0, byte_start=40,
            byte_end=72, decoded=[], before="Attackers write: ", match="ignore all previous",
            after=" and go on.",
        ),
        ReviewFinding(
            number=2, rule="encoded.instruction", kind="encoded", severity="high",
            why="Nobody encodes an order for an honest reason.", count=3, text=1, byte_start=0,
            byte_end=12, decoded=["base64", "rot13"], before="", match="SWdub3Jl", after="",
            says="Ignore⟦U+202E⟧",
        ),
    ]  # fmt: skip
    texts = [
        ReviewText(
            hidden=None, hidden_index=None, size_bytes=90_000,
            pieces=[
                ReviewPiece(text="", left_out=1234),
                ReviewPiece(text="Attackers write: "),
                ReviewPiece(text="ignore all previous", findings=[1]),
                ReviewPiece(text=" and go on.\nEnd <b>."),
            ],
        ),
        ReviewText(
            hidden="comment", hidden_index=1, size_bytes=12,
            pieces=[ReviewPiece(text="SWdub3Jl", findings=[2])],
        ),
    ]  # fmt: skip
    view = version()
    values: dict[str, Any] = {
        "version_id": view.version_id, "document_id": view.document_id,
        "source_id": view.source_id, "project": "default", "name": "a paper.pdf",
        "subject": "parsed", "text_sha256": "a" * 64, "score": 0.62, "ruleset": "rules-1a2b3c4d",
        "judged_at": NOW, "rescan": False, "lowered": False, "findings": findings, "texts": texts,
    }  # fmt: skip
    return ReviewView(**(values | changes))


def change(old: bytes, new: bytes, sides: Sequence[VersionView] = ()) -> DiffReply:
    """What changed, as the search service says it."""
    found = compare(old, new)
    fields = set(DiffSide.model_fields)
    views = sides or (version(), version())
    shown = [DiffSide(**v.model_dump(include=fields)) for v in views]
    return DiffReply(
        old=shown[0], new=shown[1], counts=found.counts, sections=found.sections,
        left_out=found.left_out, merged=found.merged,
    )  # fmt: skip


def line(*versions: VersionView, **changes: Any) -> History:
    """The history of a document, newest first, each version valid until the next."""
    views = versions or (version(),)
    names = {"version_id", "source_id", "name", "title", "status", "current", "valid_from",
             "valid_until", "received_at", "size_bytes", "body_bytes"}  # fmt: skip
    entries = [
        HistoryEntry(
            **v.model_dump(include=names), cause="superseded" if n else "received",
            actor="actor:7", via="upload", recorded_at=v.received_at,
            changes={"same": 3, "changed": 2, "added": 1} if n else None,
        )
        for n, v in enumerate(views)
    ]  # fmt: skip
    fields = {"document_id": views[0].document_id, "project": "default", "source_key": "law",
              "title": views[0].title, "entries": entries[::-1]}  # fmt: skip
    return History.model_validate(fields | changes)


@dataclass
class Seen:
    """A request that arrived at a service."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Fake:
    """What the services answer, and what they were asked."""

    versions: list[VersionView] = field(default_factory=lambda: [version()])
    hits: list[Hit] = field(default_factory=list)
    body: bytes = field(default_factory=BODY.encode)
    entries: list[JournalEntry] = field(default_factory=list)
    review: ReviewView = field(default_factory=exhibit)
    diff: DiffReply = field(default_factory=lambda: change(BODY.encode(), BODY.encode()))
    history: History = field(default_factory=line)
    as_of_refusal: tuple[str, int] | None = None
    statuses: list[str] = field(default_factory=lambda: ["scanning", "indexed"])
    refusals: dict[str, tuple[str, int]] = field(default_factory=dict)
    limit: int = 64 << 20
    most_held: int = 0
    events_closed: asyncio.Event = field(default_factory=asyncio.Event)
    seen: list[Seen] = field(default_factory=list)

    def last(self, path: str) -> Seen:
        """The newest request to a path."""
        return next(s for s in reversed(self.seen) if s.path == path)

    def app(self) -> FastAPI:
        """Every internal service in one application."""
        app = FastAPI()

        @app.middleware("http")
        async def refuse(request: Request, call_next: Any) -> Response:
            if request.url.path in self.refusals:
                await self._note(request, b"")
                code, status = self.refusals[request.url.path]
                return problem(code, "because of the test", status)
            answer: Response = await call_next(request)
            return answer

        self._add_reads(app)
        self._add_time(app)
        self._add_jobs(app)
        self._add_writes(app)
        return app

    async def _note(self, request: Request, body: bytes | None = None) -> None:
        given = await request.body() if body is None else body
        self.seen.append(
            Seen(request.method, request.url.path, request.url.query, dict(request.headers), given)
        )

    def _find(self, key: str) -> VersionView | None:
        return next(
            (v for v in self.versions if key in {v.version_id, v.document_id, v.source_id}), None
        )

    def _add_reads(self, app: FastAPI) -> None:
        @app.get("/health")
        async def health() -> dict[str, str]:
            return {"status": "ok"}

        @app.get("/documents")
        async def documents(request: Request) -> DocumentPage:
            await self._note(request)
            project = request.query_params.get("project")
            status, trusted = (request.query_params.get(n) for n in ("status", "trusted"))
            rows = [
                v
                for v in self.versions
                if project in {None, v.project}
                and status in {None, v.status}
                and (trusted is None or v.trusted == (trusted == "true"))
            ]
            at = int(request.query_params.get("cursor", 0))
            limit = int(request.query_params.get("limit", 50))
            more = str(at + limit) if len(rows) > at + limit else None
            counted = status or trusted or "as_of" in request.query_params
            total = len(rows) if counted else None
            return DocumentPage(documents=rows[at : at + limit], next=more, total=total)

        @app.get("/documents/{key}")
        async def document(request: Request, key: str) -> Response:
            await self._note(request)
            found = self._find(key)
            if self.as_of_refusal and "as_of" in request.query_params:
                code, status = self.as_of_refusal
                return problem(code, "because of the test", status)
            if found is None:
                return problem("unknown-document", "no such document", 404)
            line = [v for v in self.versions if v.document_id == found.document_id]
            view = DocumentView(**found.model_dump(exclude={"versions"}), versions=line)
            return Response(view.model_dump_json(), media_type="application/json")

        @app.get("/documents/{key}/body")
        async def body(request: Request, key: str) -> Response:
            await self._note(request)
            headers = {
                "etag": '"abc"',
                "connection": "x-secret",
                "x-secret": "1",
                "set-cookie": "a=b",
            }
            return Response(self.body, media_type="text/markdown; charset=utf-8", headers=headers)

        @app.get("/documents/{key}/summary")
        @app.get("/documents/{key}/source")
        @app.get("/documents/{key}/passage")
        @app.get("/documents/{key}/places")
        async def places(request: Request, key: str) -> JSONResponse:
            await self._note(request)
            return JSONResponse({"places": []})

        @app.get("/documents/{key}/journal")
        async def journal(request: Request, key: str) -> Journal:
            return Journal(document_id=key, entries=self.entries)

    def _add_time(self, app: FastAPI) -> None:
        @app.get("/documents/{key}/diff")
        async def diff(request: Request, key: str) -> Response:
            await self._note(request)
            return Response(self.diff.model_dump_json(), media_type="application/json")

        @app.get("/documents/{key}/history")
        async def history(request: Request, key: str) -> Response:
            await self._note(request)
            return Response(self.history.model_dump_json(), media_type="application/json")

    def _add_jobs(self, app: FastAPI) -> None:
        @app.get("/jobs")
        async def jobs(request: Request) -> JobPage:
            await self._note(request)
            return JobPage(jobs=[], next=None)

        @app.get("/jobs/{key}")
        async def job(key: str) -> JobView:
            status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
            view = version()
            return JobView(
                job_id=key, project="default", document_id=view.document_id,
                version_id=view.version_id, name=view.name, status=status,
                stage="indexer", done=status == "indexed", chunk_count=3, error=None,
                started_at=NOW, updated_at=NOW,
            )  # fmt: skip

        @app.get("/events/summary")
        async def summary(request: Request) -> dict[str, int]:
            await self._note(request)
            return {"events": 0}

        @app.get("/events")
        async def events(request: Request) -> StreamingResponse:
            await self._note(request)

            async def lines() -> AsyncIterator[bytes]:
                try:
                    yield b"id: 1\nevent: Indexed\ndata: {}\n\n"
                    await asyncio.sleep(3600)
                finally:
                    self.events_closed.set()

            return StreamingResponse(lines(), media_type="text/event-stream")

    def _add_writes(self, app: FastAPI) -> None:
        @app.post("/query")
        async def query(request: Request) -> QueryReply:
            await self._note(request)
            return QueryReply(
                results=self.hits, reranked=False, score_kind="rrf", position=7, fence=FENCE
            )

        @app.post("/query/why")
        async def why(request: Request) -> JSONResponse:
            await self._note(request)
            return JSONResponse({"reason": "unknown"})

        @app.post("/context")
        async def context(request: Request) -> JSONResponse:
            await self._note(request)
            return JSONResponse({"context": "", "sources": []})

        @app.post("/documents")
        async def upload(request: Request) -> Response:
            size, kept = 0, b""
            async for part in request.stream():
                size += len(part)
                kept = kept + part if size < 1 << 20 else kept
                if size > self.limit:
                    await self._note(request, kept)
                    return problem("too-large", f"more than {self.limit} bytes", 413)
            await self._note(request, kept)
            view = version()
            accepted = Accepted(
                job_id=view.job_id, project="default", document_id=view.document_id,
                version_id=view.version_id, source_id=view.source_id, position=1,
            )  # fmt: skip
            return Response(accepted.model_dump_json(), 202, media_type="application/json")

        self._add_administration(app)
        self._add_erasures(app)
        self._add_audit(app)

    def _add_audit(self, app: FastAPI) -> None:
        @app.get("/audit")
        @app.post("/audit/chain")
        @app.post("/audit/projection")
        @app.post("/audit/index")
        @app.post("/audit/bytes")
        async def audit(request: Request) -> JSONResponse:
            await self._note(request)
            return JSONResponse({})

    def _add_erasures(self, app: FastAPI) -> None:
        @app.post("/erasures")
        @app.post("/erasures/plan")
        async def erase(request: Request) -> JSONResponse:
            await self._note(request)
            return JSONResponse({}, 202)

        @app.get("/erasures/{key}")
        async def receipt(request: Request, key: str) -> JSONResponse:
            await self._note(request)
            return JSONResponse({"id": key})

    def _add_administration(self, app: FastAPI) -> None:
        @app.get("/review/{key}")
        async def waiting(request: Request, key: str) -> Response:
            await self._note(request)
            return Response(self.review.model_dump_json(), media_type="application/json")

        @app.post("/review/{key}")
        async def review(request: Request, key: str) -> JSONResponse:
            await self._note(request)
            return JSONResponse({"position": 9})

        @app.get("/rescan")
        @app.post("/rescan")
        @app.post("/rescan/cancel")
        async def rescans(request: Request) -> JSONResponse:
            await self._note(request)
            return JSONResponse({"ruleset": "r", "rescans": []})

        @app.get("/rescan/{key}")
        async def rescan(request: Request, key: str) -> JSONResponse:
            await self._note(request)
            return JSONResponse({})

        @app.delete("/documents/{key}")
        @app.post("/jobs/{key}/cancel")
        @app.post("/jobs/{key}/retry")
        async def change(request: Request, key: str) -> JSONResponse:
            await self._note(request)
            return JSONResponse({"position": 10})

        @app.get("/projects")
        @app.post("/projects")
        async def projects(request: Request) -> JSONResponse:
            await self._note(request)
            return JSONResponse({"projects": []})

        @app.get("/projects/{key}/taxonomy")
        @app.put("/projects/{key}/taxonomy")
        @app.post("/projects/{key}/taxonomy/apply")
        @app.get("/projects/{key}")
        @app.put("/projects/{key}")
        @app.delete("/projects/{key}")
        async def project(request: Request, key: str) -> JSONResponse:
            await self._note(request)
            return JSONResponse({"project": key})

        @app.get("/generations")
        async def generations(request: Request) -> JSONResponse:
            await self._note(request)
            return JSONResponse({"generations": []})

        @app.post("/projections/read/rebuild")
        @app.post("/rebuild")
        async def rebuild(request: Request) -> JSONResponse:
            await self._note(request)
            return JSONResponse({"projects": ["default"]})


def entry(position: int, kind: str, minutes: float, **data: Any) -> JournalEntry:
    """An entry of the journal, `minutes` after the document came."""
    return JournalEntry(
        position=position,
        type=kind,
        at=NOW - timedelta(hours=3) + timedelta(minutes=minutes),
        actor="svc:test",
        version_id=version().version_id,
        data=json.loads(json.dumps(data, default=str)),
    )


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """An application on a free loopback port; its base URL."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_level="critical", lifespan="off")
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        # `serve()` looks every 0.1 s whether it should end: too slow for hundreds of tests.
        await server.startup([listening])
        await server.on_tick(0)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.force_exit = True
            await server.shutdown([listening])
