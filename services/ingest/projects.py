"""Projects: made, named, set, closed. `/projects` but for the list, which search has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from fastapi import FastAPI, Request
from pydantic import TypeAdapter, ValidationError

from contracts.events import (
    Fact,
    Project,
    ProjectConfigured,
    ProjectCreated,
    ProjectDeleted,
    ProjectRenamed,
)
from contracts.http import Deleted, ProjectChange, ProjectCreate, ProjectGone, ProjectView
from contracts.states import WORKING
from kernel.errors import Refusal, WrongVersion
from kernel.language import ACCEPTED
from kernel.log import Log, Pending
from kernel.projects import ProjectSettings, fold
from kernel.web import actor, role
from services.ingest.accept import TRIES
from services.ingest.life import load_life

_PROJECT: TypeAdapter[str] = TypeAdapter(Project)
ROUNDS = 5
"""Times that a deletion looks for documents that came while it ran."""


class Erases(Protocol):
    """The part of the eraser that is used here."""

    async def delete(self, document_id: str, actor: str) -> Deleted: ...


@dataclass(frozen=True)
class _State:
    """A project as its stream says, and the version of that stream."""

    settings: ProjectSettings
    version: int


class Projects:
    """What an administrator may do to projects. Every step is decided on a version of the
    project's stream, so that of two who press at once the second is told what the first did."""

    def __init__(self, log: Log, eraser: Erases) -> None:
        self._log, self._eraser = log, eraser

    async def view(self, project: str) -> ProjectView:
        """The settings in force; those of a project that nobody set are the defaults.

        Raises:
            Refusal: `invalid-request`: no name of a project.
        """
        settings = (await self._state(_checked(project))).settings
        return ProjectView(
            project=project,
            title=settings.title or project,
            state="deleted" if settings.deleted else "open",
            position=await self._log.head(),
            **settings.model_dump(exclude={"title", "deleted", "made"}),
        )

    async def create(self, asked: ProjectCreate, who: str) -> None:
        """Make a project.

        Raises:
            Refusal: `project-exists` (409), `invalid-request`.
        """
        _known(asked)
        project = asked.project
        for _ in range(TRIES):
            state = await self._state(project)
            documents = [] if state.settings.deleted else await self._log.documents(project)
            if state.settings.made or documents:
                raise Refusal("project-exists", f"there is a project {project} already", status=409)
            facts: list[Fact] = [
                ProjectCreated(project=project, title=asked.title or project, actor=who)
            ]
            if changed := _changes(asked, ProjectSettings()):
                facts.append(ProjectConfigured(project=project, actor=who, **changed))
            if await self._append(facts, state, who):
                return
        raise _conflict()

    async def change(self, project: str, asked: ProjectChange, who: str) -> None:
        """Record what changes; nothing is recorded for a change of nothing.

        Raises:
            Refusal: `invalid-request`: no name of a project, or a language that no part of the
                system knows. `project-deleted`.
        """
        project = _checked(project)
        _known(asked)
        for _ in range(TRIES):
            state = await self._state(project)
            if state.settings.deleted:
                raise Refusal("project-deleted", "the project was deleted", status=409)
            facts: list[Fact] = []
            if asked.title not in (None, state.settings.title or project):
                facts.append(ProjectRenamed(project=project, title=asked.title or "", actor=who))
            if changed := _changes(asked, state.settings):
                facts.append(ProjectConfigured(project=project, actor=who, **changed))
            if not facts or await self._append(facts, state, who):
                return
        raise _conflict()

    async def delete(self, project: str, who: str) -> ProjectGone:
        """Close a project and erase all that is in it. Done again, it finishes what was left.

        Nothing comes in once it is closed, so that the erasure has an end.

        Raises:
            Refusal: `unknown-project`, `project-busy` (a job runs), `conflict`.
        """
        project = _checked(project)
        for _ in range(TRIES):
            state = await self._state(project)
            documents = await self._log.documents(project)
            if not (documents or state.settings.made or state.settings.deleted):
                raise Refusal("unknown-project", f"there is no project {project}", status=404)
            if state.settings.deleted:
                break
            await self._idle(documents)
            gone = ProjectDeleted(project=project, documents=len(documents), actor=who)
            if await self._append([gone], state, who):
                break
        else:
            raise _conflict()
        return await self._erase(project, who)

    async def _erase(self, project: str, who: str) -> ProjectGone:
        erased: set[str] = set()
        versions = blobs = 0
        for _ in range(ROUNDS):
            left = [d for d in await self._log.documents(project) if d not in erased]
            for document_id in left:
                said = await self._eraser.delete(document_id, who)
                versions, blobs = versions + said.versions, blobs + said.blobs
            erased.update(left)
            if not left:
                break
        position = await self._log.head()
        return ProjectGone(
            project=project,
            documents=len(erased),
            versions=versions,
            blobs=blobs,
            position=position,
        )

    async def _idle(self, documents: Sequence[str]) -> None:
        """Raises Refusal `project-busy` while a job of one of the documents runs."""
        for document_id in documents:
            own = await self._log.stream(f"document-{document_id}")
            for version_id in {e.data["version_id"] for e in own if e.type == "DocumentReceived"}:
                life = await load_life(self._log, document_id, version_id)
                if not life.erased and life.last.status in WORKING:
                    job = life.last.job
                    raise Refusal(
                        "project-busy", f"job {job} runs: wait for it or cancel it", status=409
                    )

    async def _state(self, project: str) -> _State:
        events = await self._log.stream(f"project-{project}")
        return _State(fold(events), events[-1].version if events else 0)

    async def _append(self, facts: Sequence[Fact], state: _State, who: str) -> bool:
        request = uuid4()
        try:
            await self._log.append(
                [Pending(fact, uuid4(), request, who) for fact in facts], expected=state.version
            )
        except WrongVersion:
            return False
        return True


def add_project_routes(app: FastAPI, projects: Projects) -> None:
    """`POST /projects`; `GET`, `PUT` and `DELETE /projects/{id}`."""

    @app.post("/projects", response_model=ProjectView, status_code=201)
    async def post_project(asked: ProjectCreate, request: Request) -> ProjectView:
        _admin(request)
        await projects.create(asked, actor(request))
        return await projects.view(asked.project)

    @app.get("/projects/{id}", response_model=ProjectView)
    async def get_project(id: str) -> ProjectView:  # noqa: A002 - the path's name
        return await projects.view(id)

    @app.put("/projects/{id}", response_model=ProjectView)
    async def put_project(id: str, change: ProjectChange, request: Request) -> ProjectView:  # noqa: A002
        _admin(request)
        await projects.change(id, change, actor(request))
        return await projects.view(id)

    @app.delete("/projects/{id}", response_model=ProjectGone)
    async def delete_project(id: str, request: Request) -> ProjectGone:  # noqa: A002
        _admin(request)
        return await projects.delete(id, actor(request))


def _admin(request: Request) -> None:
    if role(request) != "admin":
        raise Refusal("forbidden", "only an admin may change a project", status=403)


def _changes(asked: ProjectChange, settings: ProjectSettings) -> dict[str, Any]:
    old = settings.model_dump()
    said = asked.model_dump(exclude_none=True, exclude={"title", "project"})
    return {k: v for k, v in said.items() if old[k] != v}


def _known(asked: ProjectChange) -> None:
    if strange := set(asked.accepted_languages or ()) - ACCEPTED:
        known = ", ".join(sorted(ACCEPTED))
        raise Refusal("invalid-request", f"no such language: {sorted(strange)[0]}; {known}")


def _conflict() -> Refusal:
    return Refusal("conflict", "others change this project at the same time", status=409)


def _checked(project: str) -> str:
    try:
        return _PROJECT.validate_python(project)
    except ValidationError as error:
        raise Refusal("invalid-request", "a project is a plain word of small letters") from error
