"""A front door for tests of the command line: real HTTP, made-up answers."""

import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse, ServerSentEvent

from contracts.http import Accepted, JobView, Problem

HEX = "0" * 32


def problem(code: str, status: int, detail: str = "") -> JSONResponse:
    """A problem+json reply."""
    body = Problem(type=f"urn:kb:problem:{code}", title="No", status=status, detail=detail)
    return JSONResponse(body.model_dump(), status, media_type="application/problem+json")


class Door:
    """Records requests; a file's *name* says what becomes of it: `failed.md`, `duplicate.md`, …"""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, Any]] = []
        self.uploads: list[dict[str, Any]] = []
        self.polls: dict[str, int] = {}
        self.events: list[str] = []
        self.cut_after: int | None = None
        self.reply: Response = JSONResponse({})
        self.replies: dict[str, Response] = {}
        """Of single paths, or of a method and a path (`POST /x`), instead of `reply`."""
        self.url = ""

    def app(self) -> FastAPI:
        """The routes."""
        app = FastAPI()
        app.post("/documents")(self.post_document)
        app.get("/jobs/{job_id}")(self.get_job)
        app.get("/events")(self.get_events)
        app.api_route("/{path:path}", methods=["GET", "POST", "PUT", "DELETE"])(self.anything)
        return app

    async def post_document(self, request: Request) -> Response:
        """Accepts; the job's id is the name."""
        if request.headers.get("authorization") != "Bearer test-key":
            return problem("unauthorized", 401)
        form = await request.form()
        file = form["file"]
        assert not isinstance(file, str)
        name = file.filename or ""
        fields = {k: v for k, v in form.items() if isinstance(v, str)}
        self.uploads.append({"name": name, "size": len(await file.read()), **fields})
        if name.startswith("refused"):
            return problem("unsupported-media-type", 415, "a\x1b[31m b\nc")
        twin = HEX if name.startswith("duplicate") else None
        accepted = Accepted(
            job_id=name, project="default", document_id=HEX, version_id=HEX, source_id=HEX * 2,
            position=1, duplicate_of=twin,
        )  # fmt: skip
        return JSONResponse(accepted.model_dump(), 200 if twin else 202)

    async def get_job(self, job_id: str) -> Response:
        """Not there yet, then on its way, then what the name says."""
        self.polls[job_id] = turn = self.polls.get(job_id, 0) + 1
        if turn == 1:
            return problem("not-found", 404)
        if turn == 2:
            return problem("unavailable", 503)
        status = job_id.partition(".")[0].partition("-")[0] if turn > 3 else "parsed"
        error = {"stage": "converter", "code": "encrypted", "reason": "has a password"}
        done = turn > 3
        job = JobView.model_validate(
            {
                "job_id": job_id, "project": "default", "document_id": HEX, "version_id": HEX,
                "name": job_id, "status": status, "stage": None, "done": done,
                "chunk_count": 3 if status == "indexed" else None,
                "error": error if status == "failed" else None,
                "started_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
            }
        )  # fmt: skip
        return Response(job.model_dump_json(), media_type="application/json")

    async def get_events(self, after: int = 0, follow: bool = True) -> Response:
        """`events` after a position; the connection ends after `cut_after` of them."""
        self.seen.append(("GET", "/events", {"after": after, "follow": follow}))

        async def some() -> AsyncIterator[ServerSentEvent]:
            last = len(self.events) if self.cut_after is None else after + self.cut_after
            for n, data in enumerate(self.events[after:last], after + 1):
                yield ServerSentEvent(data, id=str(n))

        return EventSourceResponse(some())

    async def anything(self, request: Request) -> Response:
        """The prepared reply."""
        body = await request.body()
        target = request.scope["raw_path"].decode()
        query = dict(request.query_params)
        self.seen.append((request.method, target, body or query))
        of_path = self.replies.get(target, self.reply)
        return self.replies.get(f"{request.method} {target}", of_path)


@contextmanager
def open_door() -> Iterator[Door]:
    """A door on a loopback port."""
    door = Door()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        door.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(door.app(), log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield door
        server.should_exit = True
        thread.join()
