"""Routes of what a person may do to a job or a document."""

from fastapi import FastAPI, Request

from contracts.http import Deleted, JobChanged
from kernel.errors import Refusal
from kernel.web import actor, role
from services.ingest.jobs import Jobs


def add_control_routes(app: FastAPI, jobs: Jobs) -> None:
    """`POST /jobs/{id}/cancel`, `POST /jobs/{id}/retry`, `DELETE /documents/{id}`."""

    @app.post("/jobs/{id}/cancel", response_model=JobChanged)
    async def post_cancel(id: str, request: Request) -> JobChanged:  # noqa: A002 - the path's name
        _need(request, "editor", "admin")
        return await jobs.cancel(id, actor(request))

    @app.post("/jobs/{id}/retry", response_model=JobChanged)
    async def post_retry(id: str, request: Request) -> JobChanged:  # noqa: A002
        _need(request, "editor", "admin")
        return await jobs.retry(id, actor(request))

    @app.delete("/documents/{id}", response_model=Deleted)
    async def delete_document(id: str, request: Request) -> Deleted:  # noqa: A002
        _need(request, "admin")
        return await jobs.delete(id, actor(request))


def _need(request: Request, *roles: str) -> None:
    if role(request) not in roles:
        raise Refusal("forbidden", f"this needs the role {roles[0]}", status=403)
