"""Bodies of the HTTP API of erasures: what was asked for, what would go, and the receipt."""

from typing import Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from contracts.events import EraseScope, Project, Sha256
from contracts.http import Body, Plain

Reason = Literal["blocked", "request"]
Open = Literal["bytes", "index"]
"""What of an erased version may still be there: bytes, texts and names (ingest), or passages and
vectors (indexer)."""

DELETED_USER = "deleted-user"
"""Name of everybody whose account was erased."""


class EraseRequest(Body):
    """`POST /erasures` and `/erasures/plan`: a document with all its versions (`document`: its id,
    or that of a version), or certain bytes in every document of a project (`source`)."""

    document: Plain | None = Field(None, min_length=1, max_length=128)
    source: Sha256 | None = None
    project: Project = "default"

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.document is None) == (self.source is None):
            raise ValueError("give a document or a source")
        return self


class EraseTarget(Body):
    """A document that an erasure reaches: `versions` of it go, `stay` are left.

    `attached`: it goes since it was attached to another one.
    """

    document_id: str
    name: str
    versions: list[str]
    stay: int
    attached: bool = False


class ErasePlan(Body):
    """`POST /erasures/plan`: what would go. `blobs` would be deleted, `kept` are also others'."""

    project: str
    scope: EraseScope
    documents: list[EraseTarget]
    versions: int
    blobs: int
    kept: int
    jobs: int
    """That run, and would be cancelled."""


class ErasedVersion(Body):
    """One tombstone: what was removed where, and what is `open`."""

    version_id: str
    document_id: str
    source_id: str
    reason: Reason
    scope: EraseScope
    cause: str | None
    actor: str
    at: AwareDatetime
    position: int
    removed: dict[str, int]
    kept: dict[str, int]
    open: list[Open]
    done_at: AwareDatetime | None


class Erasure(Body):
    """`GET /erasures/{id}`: the receipt of a request, or of all erasures of a document.

    `complete`: every service has said what it removed. `files`: whether the files of the database
    were written anew since (`kb scrub`); before that they may hold what was deleted from them.
    """

    id: str
    project: str
    complete: bool
    asked_at: AwareDatetime
    done_at: AwareDatetime | None
    removed: dict[str, int]
    kept: dict[str, int]
    open: dict[Open, int]
    files: Literal["clean", "open"]
    files_at: AwareDatetime | None
    versions: list[ErasedVersion]
    position: int
    """Of the log, when this was told."""


class ErasePersonRequest(Body):
    """`POST /erasures/person`: an account by its name, or by the id under which it is in the log
    (`actor:…`)."""

    person: Plain = Field(min_length=1, max_length=128)


class PersonErased(Body):
    """The account of a person is gone; in the log only an opaque id is left of it.

    `changed` false: it was erased before.
    """

    actor: str
    changed: bool
    sessions: int
