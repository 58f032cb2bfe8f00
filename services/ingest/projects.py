"""How a project works, as its administrator set it: `GET` and `PUT /projects/{id}`."""

from uuid import uuid4

from fastapi import FastAPI, Request
from pydantic import TypeAdapter, ValidationError

from contracts.events import Project, ProjectConfigured
from contracts.http import ProjectChange, ProjectView
from kernel.errors import Refusal
from kernel.language import ACCEPTED
from kernel.log import Log, Pending
from kernel.projects import project_settings
from kernel.web import actor, role

_PROJECT: TypeAdapter[str] = TypeAdapter(Project)


def add_project_routes(app: FastAPI, log: Log) -> None:
    """Register both routes."""

    @app.get("/projects/{id}", response_model=ProjectView)
    async def get_project(id: str) -> ProjectView:  # noqa: A002 - the path's name
        return await view(id, log)

    @app.put("/projects/{id}", response_model=ProjectView)
    async def put_project(id: str, change: ProjectChange, request: Request) -> ProjectView:  # noqa: A002
        if role(request) != "admin":
            raise Refusal("forbidden", "only an admin may change a project", status=403)
        await configure(id, change, actor(request), log)
        return await view(id, log)


async def view(project: str, log: Log) -> ProjectView:
    """The settings in force; those of a project that nobody set are the defaults.

    Raises:
        Refusal: `invalid-request`: no name of a project.
    """
    settings = await project_settings(log, _checked(project))
    return ProjectView(project=project, position=await log.head(), **settings.model_dump())


async def configure(project: str, change: ProjectChange, who: str, log: Log) -> None:
    """Record what changes; nothing is recorded for a change of nothing.

    Raises:
        Refusal: `invalid-request`: no name of a project, or a language that no part of the system
            knows.
    """
    project = _checked(project)
    if strange := set(change.accepted_languages or ()) - ACCEPTED:
        known = ", ".join(sorted(ACCEPTED))
        raise Refusal("invalid-request", f"no such language: {sorted(strange)[0]}; {known}")
    old = (await project_settings(log, project)).model_dump()
    new = {k: v for k, v in change.model_dump(exclude_none=True).items() if old[k] != v}
    if new:
        event = ProjectConfigured(project=project, actor=who, **new)
        await log.append([Pending(event, uuid4(), uuid4(), who)])


def _checked(project: str) -> str:
    try:
        return _PROJECT.validate_python(project)
    except ValidationError as error:
        raise Refusal("invalid-request", "a project is a plain word of small letters") from error
