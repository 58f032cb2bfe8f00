"""Bodies of the HTTP API about classes of documents."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from contracts.events import UNCATEGORIZED, ClassName, Project, Sha256
from contracts.http import Body, Plain


def _small(value: str) -> str:
    name = value.strip().lower()
    if name == UNCATEGORIZED:
        raise ValueError(f"{UNCATEGORIZED} is what is in no class")
    return name


Keyword = Annotated[Plain, StringConstraints(min_length=1, max_length=60, strip_whitespace=True)]
LARGEST = 256 * 1024
"""Bytes of a taxonomy: it is one event, and must fit into a message."""


class ClassBody(Body):
    """A class: what it is called, what its documents are about, and words that tell it."""

    name: Annotated[ClassName, AfterValidator(_small)]
    """`law/criminal` is a class below `law`, which need not be described."""
    description: Plain = Field("", max_length=500)
    keywords: tuple[Keyword, ...] = Field((), max_length=50)


class TaxonomyChange(Body):
    """`PUT /projects/{id}/taxonomy`: all of it, as it is to be."""

    classes: tuple[ClassBody, ...] = Field(min_length=1, max_length=500)
    threshold: float = Field(0.5, ge=0, le=1)
    """A document whose best class is less certain than this is `uncategorized`."""

    @model_validator(mode="after")
    def _fits(self) -> "TaxonomyChange":
        names = [c.name for c in self.classes]
        if len(set(names)) < len(names):
            raise ValueError("two classes have the same name")
        if len(self.model_dump_json()) > LARGEST:
            raise ValueError(f"a taxonomy has at most {LARGEST // 1024} KiB")
        return self


class TaxonomyView(TaxonomyChange):
    """The taxonomy of a project; `taxonomy` names exactly this one."""

    project: Project
    taxonomy: Sha256
    set_at: datetime
    actor: str


class Reclassified(Body):
    """`POST /projects/{id}/taxonomy/apply`: how many versions, by their main class.

    `known` were classified by this taxonomy before; `without_summary` need a rebuild first. `left`:
    how many were not looked at, for a request ends after a minute: ask again.
    """

    taxonomy: Sha256
    classified: int
    known: int
    without_summary: int
    left: int = 0
    classes: dict[str, int]
