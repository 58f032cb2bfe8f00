"""How a project works: settings that an administrator changed, folded from its stream."""

from typing import Protocol

from pydantic import BaseModel, ConfigDict

from contracts.envelope import Envelope
from contracts.events import Chunking, ProjectConfigured


class ProjectSettings(BaseModel):
    """`accepted_languages` None: those of the installation."""

    model_config = ConfigDict(frozen=True)

    chunking: Chunking = "heading"
    language_check: bool = True
    accepted_languages: tuple[str, ...] | None = None


class Streams(Protocol):
    """The part of the log that is read here."""

    async def stream(self, stream_id: str) -> list[Envelope]: ...


async def project_settings(log: Streams, project: str) -> ProjectSettings:
    """The settings in force: later events over earlier ones, defaults under both."""
    settings = ProjectSettings()
    for envelope in await log.stream(f"project-{project}"):
        fact = envelope.fact()
        if isinstance(fact, ProjectConfigured):
            said = fact.model_dump(exclude_none=True, exclude={"project", "actor"})
            settings = settings.model_copy(update=said)
    return settings
