"""Routes of erasure: `POST /erasures`, `POST /erasures/plan`, `GET /erasures/{id}`."""

from fastapi import FastAPI, Request

from contracts.erasure import ErasePlan, EraseRequest, Erasure
from contracts.events import EraseScope
from kernel.errors import Refusal
from kernel.log import Log
from kernel.web import actor, role
from services.ingest.erase import Eraser, Targets, Why
from services.ingest.jobs import Jobs
from services.ingest.receipts import Receipts


def add_erasure_routes(app: FastAPI, log: Log, eraser: Eraser, jobs: Jobs) -> None:
    """Register the routes; all of them are an administrator's."""
    receipts = Receipts(log)

    async def targets(asked: EraseRequest) -> Targets:
        if asked.document is not None:
            return {await jobs.document(asked.document): None}
        found = await eraser.bytes_in(asked.source or "", asked.project)
        if not found:
            reason = "no document of the project has, or had, these bytes"
            raise Refusal("unknown-document", reason, status=404)
        return found

    @app.post("/erasures/plan", response_model=ErasePlan)
    async def post_plan(asked: EraseRequest, request: Request) -> ErasePlan:
        _admin(request)
        return await eraser.plan(await targets(asked), _scope(asked))

    @app.post("/erasures", response_model=Erasure, status_code=202)
    async def post_erasure(asked: EraseRequest, request: Request) -> Erasure:
        _admin(request)
        why = Why("request", actor(request), scope=_scope(asked))
        found = await targets(asked)
        tally = await eraser.erase(found, why)
        # Asked again: nothing is left to bury, and the receipt is that of the first time.
        return await receipts.of(str(why.request) if tally.versions else next(iter(found)))

    @app.get("/erasures/{id}", response_model=Erasure)
    async def get_erasure(id: str, request: Request) -> Erasure:  # noqa: A002 - the path's name
        _admin(request)
        return await receipts.of(id)


def _scope(asked: EraseRequest) -> EraseScope:
    return "document" if asked.document is not None else "source"


def _admin(request: Request) -> None:
    if role(request) != "admin":
        raise Refusal("forbidden", "only an admin may erase", status=403)
