"""Bodies of the public HTTP API."""

import unicodedata
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)

from contracts.artifacts import Span
from contracts.events import (
    Chunking,
    HiddenKind,
    Project,
    ScanPolicy,
    ScanSubject,
    Severity,
    Sha256,
    Stage,
    Verdict,
    Window,
)


def _moment(value: object) -> object:
    """A bare day means its last instant in UTC: it sees what became valid on that day."""
    if isinstance(value, str) and len(value) == 10:
        return f"{date.fromisoformat(value)}T23:59:59.999999Z"
    return value


def _day(value: object) -> object:
    """A bare day means its first instant in UTC."""
    if isinstance(value, str) and len(value) == 10:
        return f"{date.fromisoformat(value)}T00:00:00Z"
    return value


def within(moment: datetime) -> datetime:
    """The moment in UTC.

    Raises:
        ValueError: not of the years 2 to 9998: Postgres and time zones need the room.
    """
    try:
        moment = moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a year from 2 to 9998") from error
    if not 2 <= moment.year <= 9998:
        raise ValueError("a year from 2 to 9998")
    return moment


def _plain(value: str) -> str:
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in value):
        raise ValueError("no control characters and no halves of surrogate pairs")
    return value


def _encodable(value: str) -> str:
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise ValueError("no halves of surrogate pairs")
    return value


def _titled(value: str) -> str:
    if not _plain(value).strip():
        raise ValueError("a title has letters")
    return value.strip()


Plain = Annotated[str, AfterValidator(_plain)]
"""One line that every store can keep."""

AsOf = Annotated[AwareDatetime, BeforeValidator(_moment), AfterValidator(within)]
"""A day (`2025-12-30`: its end, UTC) or an instant with zone."""

ValidFrom = Annotated[AwareDatetime, BeforeValidator(_day), AfterValidator(within)]
"""A day (`2025-12-30`: its start, UTC) or an instant with zone."""


LAST_POSITION = 2**63 - 1
"""Positions of the log are signed 64-bit integers."""


class Body(BaseModel):
    """A JSON body; unknown request fields are an error, so that a typing mistake is seen."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


Status = Literal[
    "received", "parsed", "converting", "scanning", "chunking", "indexing", "indexed",
    "review", "rejected", "blocked", "failed", "erased",
]  # fmt: skip
"""Where a version is. `indexed` and after are final, `review` waits for a person."""

FINAL: frozenset[str] = frozenset({"indexed", "review", "rejected", "blocked", "failed", "erased"})


class ScanNote(Body):
    """The newest verdict on a version: what, and because of which rules (worst first).

    With `bypassed` an administrator trusted the version: it counts as clean whatever was found;
    `ruled` is what the rules say (None in verdicts of before 2026-12). `worst` is None without
    findings.
    """

    subject: ScanSubject
    verdict: Verdict
    score: float
    worst: Severity | None
    rules: list[str]
    findings: int
    ruleset: str
    bypassed: bool
    ruled: Verdict | None = None
    text_sha256: str
    at: datetime


class Trust(Body):
    """Who said that a version may pass the scan, and when."""

    actor: str
    at: datetime


class VersionView(Body):
    """One version: the manifest.

    `scan` and `trust` are given with one document, and in lists by `status` or `trusted`.
    """

    version_id: str
    document_id: str
    source_id: str
    project: str
    source_key: str
    name: str
    title: str
    media_type: str
    size_bytes: int
    language: str | None
    status: Status
    verdict: str | None
    parser: str | None
    converter: str | None
    embedder: str | None
    body_sha256: str | None
    body_bytes: int | None
    chunk_count: int | None
    error: dict[str, Any] | None
    received_at: datetime
    valid_from: datetime
    valid_until: datetime | None
    current: bool
    windows: list[Window] = []
    job_id: str
    trusted: bool = False
    parent: str | None = None
    """The version that this file was attached to."""
    labels: list[str] = []
    """What it was classified as: `class:…`, `tag:…`."""
    scan: ScanNote | None = None
    trust: Trust | None = None


class Relative(Body):
    """A document that another one was attached to, or that is attached to it."""

    version_id: str
    document_id: str
    name: str
    media_type: str
    status: Status


class DocumentView(VersionView):
    """A document: its current version's manifest and the line of all versions, oldest first.

    `attached_to` and `attachments` are about that version; `left_out` are attachments of it that
    became no documents, `{number, name, media_type, code}`, the first fifty of them.
    """

    versions: list[VersionView] = []
    attached_to: Relative | None = None
    attachments: list[Relative] = []
    left_out: list[dict[str, Any]] = []
    left_out_by_code: dict[str, int] = {}


class DocumentPage(Body):
    """A page of documents, newest first; `next` is the cursor of the following page.

    `total`: how many a list by `status` or `trusted` has, at most 1,000 are counted.
    """

    documents: list[VersionView]
    next: str | None
    total: int | None = None


class JobView(Body):
    """An ingest: one job per attempt at a version.

    `owner`, `deadline`, `next_action`, `progress` follow from the status (`contracts/states.py`).
    `overdue`: the deadline has passed. `done`: no service works on it any more.
    """

    job_id: str
    project: str
    document_id: str
    version_id: str
    name: str
    status: Status
    stage: Stage | None
    done: bool
    chunk_count: int | None
    error: dict[str, Any] | None
    started_at: datetime
    updated_at: datetime
    attempt: int = 1
    owner: str | None = None
    deadline: datetime | None = None
    next_action: str = ""
    overdue: bool = False
    progress: float = Field(0, ge=0, le=1)


class JobPage(Body):
    """A page of jobs, newest first."""

    jobs: list[JobView]
    next: str | None


class TextUpload(Body):
    """`POST /documents` with JSON: a text instead of a file."""

    text: Annotated[str, AfterValidator(_encodable)] = Field(min_length=1)
    name: Plain = Field("note.md", max_length=255)
    project: Project = "default"
    source: Plain | None = Field(None, max_length=2048)
    supersedes: Plain | None = Field(None, max_length=128)
    valid_from: ValidFrom | None = None
    trusted: bool = False
    lane: Literal["live", "bulk"] = "live"


class ProjectChange(Body):
    """`PUT /projects/{project}`: settings to change; what is left out stays as it is.

    `chunking` and `scan` hold for documents that come from now on, and for those that are retried;
    a rebuild cuts all of them anew. `embedder`, one of KB_EMBEDDERS or `default`, holds from the
    next rebuild on. `title` is what people call the project; its id stays.
    """

    title: Annotated[str, AfterValidator(_titled)] | None = Field(None, max_length=200)

    chunking: Chunking | None = None
    language_check: bool | None = None
    accepted_languages: Annotated[tuple[str, ...], Field(min_length=1, max_length=32)] | None = None
    scan: ScanPolicy | None = None
    embedder: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,99}$")] | None = None


class ProjectCreate(ProjectChange):
    """`POST /projects`: a new project. What is left out has its default, `title` the id."""

    project: Project


class ProjectView(Body):
    """How a project works; `accepted_languages` None: those of the installation."""

    project: str
    title: str
    state: Literal["open", "deleted"]
    chunking: Chunking
    language_check: bool
    accepted_languages: tuple[str, ...] | None
    scan: ScanPolicy
    embedder: str
    position: int


class ProjectSummary(Body):
    """A line of `GET /projects`; counts are of versions that are not erased."""

    project: str
    title: str
    documents: int
    versions: int
    indexed: int
    review: int
    running: int
    """Jobs that are under way."""


class ProjectList(Body):
    """`GET /projects`, by id."""

    projects: list[ProjectSummary]


class ProjectGone(Body):
    """Reply of `DELETE /projects/{project}`: everything in it is erased."""

    project: str
    documents: int
    versions: int
    blobs: int
    position: int


class Accepted(Body):
    """`POST /documents`: 202 with a new job, or 200 with `duplicate_of` (a `version_id`)."""

    job_id: str
    project: str
    document_id: str
    version_id: str
    source_id: str
    position: int
    duplicate_of: str | None = None
    reinstated: bool = False


class Places(Body):
    """`GET /documents/{id}/places`: where in the original a range of the body came from.

    Spans touch the range asked for, in ascending order; what the converter itself put into the
    body (marks of headings, blank lines) has none.
    """

    version_id: str
    source_id: str
    media_type: str
    body_sha256: str
    byte_start: int
    byte_end: int
    spans: list[Span]


class JournalEntry(Body):
    """One event of a document's life."""

    position: int
    type: str
    at: datetime
    actor: str
    version_id: str | None
    data: dict[str, Any]


class Journal(Body):
    """`GET /documents/{id}/journal`, oldest first."""

    document_id: str
    entries: list[JournalEntry]


class Problem(Body):
    """RFC 9457 `application/problem+json`; `type` is stable: `urn:kb:problem:<code>`."""

    type: str
    title: str
    status: int
    detail: str = ""
    position: int | None = None
    """Of a reply that would not reflect the log as far as it was asked to: how far it would."""


class ReviewFinding(Body):
    """One finding of the verdict that waits for a decision.

    `text` is the place in `ReviewView.texts` of the text in which the bytes count; None: it is not
    known (a verdict of before 2026-12). `kind`, `why` are empty when this rule set has no such
    rule. In `before`, `match`, `after`, `says` characters that nobody sees are shown (`⟦U+202E⟧`);
    a long match is cut in its middle. `says`: what the match is when it is `decoded`.
    """

    number: int
    rule: str
    kind: str
    severity: Severity
    why: str
    count: int
    text: int | None
    byte_start: int
    byte_end: int
    decoded: list[str]
    before: str
    match: str
    after: str
    says: str = ""


class ReviewPiece(Body):
    """A stretch of a text, characters that nobody sees shown, and the `number` of each finding that
    covers it. A gap has no text: `left_out` bytes are not shown."""

    text: str
    findings: list[int] = []
    left_out: int = 0


class ReviewText(Body):
    """A text that was judged: the Markdown, or one that a reader does not see (`hidden` its kind,
    `hidden_index` its number). The pieces are its parts around the findings, in order."""

    hidden: HiddenKind | None
    hidden_index: int | None
    size_bytes: int
    pieces: list[ReviewPiece]


class ReviewView(Body):
    """`GET /review/{version_id}`: the open verdict, and the text that it is about.

    `rescan`: the text was in the index when newer rules found this; `lowered`: they say block.
    `left_out`: how many findings, and hidden texts, are beyond what one answer shows.
    """

    version_id: str
    document_id: str
    source_id: str
    project: str
    name: str
    subject: ScanSubject
    text_sha256: str
    score: float
    ruleset: str
    judged_at: datetime
    rescan: bool
    lowered: bool
    findings: list[ReviewFinding]
    texts: list[ReviewText]
    left_out: int = 0


class ReviewRequest(Body):
    """`POST /review/{version_id}`: what a person decides about a quarantined version.

    `text_sha256`: the text that the person looked at; nothing is decided if another one waits.
    """

    decision: Literal["release", "reject"]
    reason: Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_plain)] = (
        Field(min_length=1, max_length=500)
    )
    text_sha256: Sha256 | None = None


class Reviewed(Body):
    """The decision is in the log. It is about the text `text_sha256` and no other."""

    version_id: str
    decision: Literal["release", "reject"]
    position: int
    text_sha256: str = ""


class JobChanged(Body):
    """`POST /jobs/{id}/cancel` and `/retry`. `changed` false: it was so already.

    After a retry `job_id` is the new job; `status` is that of the job after the request.
    """

    job_id: str
    project: str
    document_id: str
    version_id: str
    attempt: int
    status: Status
    changed: bool
    position: int


class Deleted(Body):
    """`DELETE /documents/{id}`: the document and what was attached to it. `versions` is how many
    were erased now, `blobs` how many stored files went with them."""

    project: str
    document_id: str
    documents: list[str]
    versions: int
    blobs: int
    jobs_cancelled: int
    position: int
