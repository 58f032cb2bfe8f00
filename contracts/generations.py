"""Bodies of the HTTP API of an index's generations: rebuild, rollback, list."""

from datetime import datetime
from typing import Literal

from contracts.events import Project
from contracts.http import Body


class RebuildRequest(Body):
    """`POST /rebuild`: one project, or all.

    `rollback`: bring back the generation that stands by (of one project). `recut`: cut every body
    anew, also where the chunker is the same.
    """

    project: Project | None = None
    rollback: bool = False
    recut: bool = False


class Rebuilt(Body):
    """Another generation of a project's index is live; the one `before` it stands by.

    `written` passages were not there as they had to be, `embedded` of them were not in the cache;
    `recut` versions have other passages than before.
    """

    project: str
    generation: int
    before: int | None
    embedder: str
    chunker: str
    versions: int
    passages: int
    written: int
    embedded: int
    recut: int
    position: int
    seconds: float


class RebuildReply(Body):
    """What a rebuild made; `position`: the read projection was folded anew up to there."""

    rebuilt: list[Rebuilt]


class GenerationView(Body):
    """A generation of a project's index: `since` when it is in its state, `chunker` None: unknown.

    `live` answers queries, `standby` is the one that a rollback brings back, `building` and
    `retired` are on their way in and out.
    """

    project: str
    generation: int
    state: Literal["building", "live", "standby", "retired"]
    embedder: str
    dim: int
    chunker: str | None
    versions: int
    passages: int
    vectors: int
    created_at: datetime
    since: datetime


class GenerationList(Body):
    """`GET /generations`."""

    generations: list[GenerationView]
