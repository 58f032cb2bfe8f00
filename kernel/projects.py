"""How a project works: settings that an administrator changed, folded from its stream."""

from collections.abc import Iterable
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from contracts.envelope import Envelope
from contracts.events import (
    Chunking,
    ProjectConfigured,
    ProjectCreated,
    ProjectDeleted,
    ProjectRenamed,
    ScanPolicy,
)


class ProjectSettings(BaseModel):
    """`accepted_languages` None: those of the installation; `title` "": nobody gave one.

    `embedder`: by the name that the installation gives it. `deleted`: nothing comes in until it is
    made again. `made`: by a person, not by its first document.
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    chunking: Chunking = "heading"
    language_check: bool = True
    accepted_languages: tuple[str, ...] | None = None
    scan: ScanPolicy = "full"
    embedder: str = "default"
    title: str = ""
    deleted: bool = False
    made: bool = False


class Streams(Protocol):
    """The part of the log that is read here."""

    async def stream(self, stream_id: str) -> list[Envelope]: ...


async def project_settings(log: Streams, project: str) -> ProjectSettings:
    """The settings in force: later events over earlier ones, defaults under both."""
    return fold(await log.stream(f"project-{project}"))


def fold(events: Iterable[Envelope]) -> ProjectSettings:
    """The settings after the events of a project's stream; a deletion takes all of them back."""
    settings = ProjectSettings()
    for envelope in events:
        match fact := envelope.fact():
            case ProjectCreated():
                settings = ProjectSettings(title=fact.title, made=True)
            case ProjectRenamed():
                settings = settings.model_copy(update={"title": fact.title})
            case ProjectConfigured():
                said = fact.model_dump(exclude_none=True, exclude={"project", "actor"})
                settings = settings.model_copy(update=said)
            case ProjectDeleted():
                settings = ProjectSettings(deleted=True)
            case _:
                pass
    return settings
