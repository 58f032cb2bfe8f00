"""Every fact about a document, as frozen models. Ids, hashes, counts and verdicts; never text."""

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""A lower-case hexadecimal SHA-256: the name of a blob."""

Project = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Id = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
"""A 128-bit id in lower-case hexadecimal."""

Lane = Literal["live", "bulk"]
Stage = Literal["ingest", "converter", "scanner", "indexer"]
ScanSubject = Literal["parsed", "converted"]
Via = Literal["upload", "text", "dropzone", "url", "watch", "crawl", "attachment"]
Chunking = Literal["heading", "paragraph"]
ScanPolicy = Literal["full", "rules"]
"""`rules`: without the learned layer."""
Verdict = Literal["clean", "quarantine", "block"]
Severity = Literal["low", "medium", "high"]
HiddenKind = Literal[
    "comment", "invisible-style", "off-page", "zero-size", "background-colour", "metadata",
    "alt-text", "notes", "tracked-change", "script", "attribute",
]  # fmt: skip
"""What makes a reader not see a text."""


class Fact(BaseModel):
    """Something that happened in a project."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)
    schema_version: ClassVar[int] = 1

    project: Project

    @property
    def stream_id(self) -> str:
        """The log stream: what the fact is about."""
        return f"project-{self.project}"


class Event(Fact):
    """A fact about one version of one document. `source_id` is the SHA-256 of its bytes."""

    category: ClassVar[Literal["document", "version"]] = "version"

    document_id: Id
    version_id: Id
    source_id: Sha256

    @property
    def ids(self) -> dict[str, Any]:
        """The four ids that every event about the same version carries."""
        return {
            "project": self.project,
            "document_id": self.document_id,
            "version_id": self.version_id,
            "source_id": self.source_id,
        }

    @property
    def stream_id(self) -> str:
        """The log stream: a document's line of versions, or the life of one version."""
        key = self.document_id if self.category == "document" else self.version_id
        return f"{self.category}-{key}"


class Part(BaseModel):
    """A value inside an event."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class DocumentReceived(Event):
    """Bytes were accepted as a version of a document, and are in the blob store."""

    category = "document"
    source_key: str = Field(max_length=2048)
    name: str = Field(max_length=1024)
    media_type: str = Field(max_length=255)
    size_bytes: int = Field(gt=0)
    valid_from: AwareDatetime
    supersedes: Id | None = None
    trusted: bool = False
    attempt: int = Field(1, ge=1)
    via: Via = "upload"
    parent: Id | None = None
    """The version that this file was attached to."""


class Reading(Part):
    """What OCR made of a page: the engine whose text was kept, and the score of each, 0 to 1."""

    page: int = Field(ge=1)
    engine: str
    scores: dict[str, float]


class Parsed(Event):
    """The deterministic parse is in the blob `parsed_sha256` (a `ParsedDocument`).

    `parser` names the engines and their versions; `shares` are the languages of the text by code,
    largest first, together at most 1; `missing_pages` could not be read.
    """

    parsed_sha256: Sha256
    parser: str
    language: str
    pages: int | None = None
    warnings: tuple[str, ...] = ()
    reused: bool = False
    shares: dict[str, float] = {}
    missing_pages: tuple[int, ...] = ()
    readings: tuple[Reading, ...] = ()
    attachments: int = Field(0, ge=0)


class Finding(Part):
    """One hit of one rule in a text: bytes `[byte_start, byte_end)` of it.

    The text is the scanned Markdown, or, where `hidden` is set, the hidden text number
    `hidden_index` of what was scanned (verdicts of before 2026-12 say -1 and no number there).
    `decoded` are the encodings that hid the words, outermost first: the bytes are the encoded ones.
    """

    rule: str
    severity: Severity
    byte_start: int
    byte_end: int
    count: int = 1
    hidden: HiddenKind | None = None
    hidden_index: int | None = None
    decoded: tuple[str, ...] = ()


class ScanVerdict(Event):
    """The scanner's judgement of one exact text: `text_sha256` names the scanned blob.

    `subject` parsed: a `ParsedDocument`; converted: a body, judged with its `meta_sha256`.
    `bypassed`: its sender is trusted, so it is clean whatever was found; `ruled` is then what the
    rules say. `rescan`: it is about a stored text, which leaves the index; `lowered`: the rules say
    block, and a person decides all the same, for what was indexed is not deleted by a new rule.
    """

    subject: ScanSubject
    text_sha256: Sha256
    meta_sha256: Sha256 | None = None
    verdict: Verdict
    score: float = Field(ge=0, le=1)
    findings: tuple[Finding, ...] = ()
    ruleset: str
    bypassed: bool = False
    ruled: Verdict | None = None
    rescan: Id | None = None
    lowered: bool = False


class Converted(Event):
    """The canonical Markdown is in the blob `body_sha256`, its `BodyMeta` in `meta_sha256`."""

    body_sha256: Sha256
    meta_sha256: Sha256
    body_bytes: int = Field(ge=0)
    converter: str
    language: str
    spans_sha256: Sha256 | None = None
    """A `SpanMap` of the body."""


class Chunked(Event):
    """The body was cut; the blob `chunks_sha256` is a `ChunkManifest`.

    It was summarised, too: the blob `summary_sha256` is a `Summary`, made by `summariser` (None in
    events of before 2026-12; the next rebuild of the index makes one).
    """

    body_sha256: Sha256
    meta_sha256: Sha256
    chunks_sha256: Sha256
    chunk_count: int = Field(ge=0)
    chunker: str
    summary_sha256: Sha256 | None = None
    summariser: str | None = None


class Indexed(Event):
    """Every chunk is in the keyword and the vector index of the project's live generation."""

    body_sha256: Sha256
    chunks_sha256: Sha256
    chunk_count: int = Field(ge=0)
    embedder: str
    embedded: int = Field(ge=0)
    reused: int = Field(ge=0)


class Window(Part):
    """A span of valid time [valid_from, valid_until) in which a version is the valid one."""

    version_id: Id
    valid_from: AwareDatetime
    valid_until: AwareDatetime | None = None


class Superseded(Event):
    """Another version of the document took this one's place; `windows` is the whole line."""

    category = "document"
    by_version_id: Id
    valid_until: AwareDatetime
    windows: tuple[Window, ...]


class Reinstated(Event):
    """Content returned to an earlier version; `windows` is the whole line of the document."""

    category = "document"
    supersedes: Id
    valid_from: AwareDatetime
    windows: tuple[Window, ...]


class Released(Event):
    """A person let a quarantined text through."""

    subject: ScanSubject
    text_sha256: Sha256
    meta_sha256: Sha256 | None = None
    reviewer: str
    reason: str = Field(max_length=500)


class Rejected(Event):
    """A person refused a quarantined text for good."""

    subject: ScanSubject
    text_sha256: Sha256
    reviewer: str
    reason: str = Field(max_length=500)


EraseScope = Literal["version", "document", "source"]
"""What was asked to be erased: one version (the scanner blocked it), a document with all its
versions, or certain bytes wherever they are in a project."""


class Erased(Event):
    """Bytes, text and vectors of a version are gone; only this tombstone stays.

    `cause`: the version that it was attached to, where the erasure of that one took it along.
    """

    category = "document"
    schema_version = 2
    reason: Literal["blocked", "request"]
    scope: EraseScope
    blobs: int = Field(ge=0)
    cause: Id | None = None


class Purged(Fact):
    """A service has removed what its stores held of an erased version: a line of the receipt.

    `removed`: how many things were removed, by store; what was not there counts 0. `kept`: how
    many stay, since another document has the same.
    """

    document_id: Id
    version_id: Id
    removed: dict[str, int]
    kept: dict[str, int] = {}

    @property
    def stream_id(self) -> str:
        """The log stream: the receipt of one version's erasure."""
        return f"erasure-{self.version_id}"


class BytesPurged(Purged):
    """The bytes: `originals`, `parses`, `bodies`, `other` blobs, `cached-parses`, files that lie in
    the drop-zone's folders (`dropped-files`), and `names`: events that lost names and reasons."""


class IndexPurged(Purged):
    """The index: `passages` (rows), `vectors` (points), `cached-vectors`."""


LeftOutCode = Literal["unsupported-media-type", "too-deep", "too-many", "missing", "erased"]


class LeftOut(Part):
    """An attachment that did not become a document. `number` is its place in the parse, from 1."""

    number: int = Field(ge=1)
    name: str = Field(max_length=255)
    media_type: str = Field(max_length=255)
    code: LeftOutCode


class AttachmentsReceived(Event):
    """What became of the files inside a version: `taken` are documents of their own.

    `left_out` are the first of those that are none, `left_out_by_code` counts all of them.
    """

    category = "document"
    taken: int = Field(ge=0)
    left_out: tuple[LeftOut, ...] = Field((), max_length=50)
    left_out_by_code: dict[LeftOutCode, int] = {}


class ProjectConfigured(Fact):
    """An administrator changed settings of a project; what is None was left as it was."""

    chunking: Chunking | None = None
    language_check: bool | None = None
    accepted_languages: tuple[str, ...] | None = None
    scan: ScanPolicy | None = None
    embedder: str | None = Field(None, max_length=100)
    """Of the names in KB_EMBEDDERS, or `default`; the next rebuild of the index changes to it."""
    actor: str


class ProjectCreated(Fact):
    """An administrator made a project; `title` is what people call it."""

    title: str = Field(max_length=200)
    actor: str


class ProjectRenamed(Fact):
    """People call a project otherwise now. Its id stays."""

    title: str = Field(max_length=200)
    actor: str


class ProjectDeleted(Fact):
    """A project is closed: all its documents were erased before. Its id may be used again."""

    documents: int = Field(ge=0)
    actor: str


class ProjectImported(Fact):
    """Events and blobs of a project came from another installation, with their ids.

    `events`: how many; `origin_position`: of the last one, where they come from.
    """

    bundle_sha256: Sha256
    events: int = Field(ge=0)
    origin_position: int = Field(ge=0)
    actor: str


ClassName = Annotated[
    str, StringConstraints(pattern=r"^[^\W_][\w .&-]*(/[^\W_][\w .&-]*)*$", max_length=100)
]
"""In small letters; `law/criminal` is a class below `law`."""
UNCATEGORIZED = "uncategorized"


class TaxonomyClass(Part):
    """A class of documents, as an administrator describes it."""

    name: ClassName
    description: str = Field("", max_length=500)
    keywords: tuple[Annotated[str, StringConstraints(max_length=60)], ...] = Field(
        (), max_length=50
    )


class TaxonomySet(Fact):
    """An administrator said what classes there are. `taxonomy`: the SHA-256 of what was said.

    `threshold`: a version whose best class is less certain is `uncategorized`.
    """

    taxonomy: Sha256
    classes: tuple[TaxonomyClass, ...] = Field(min_length=1, max_length=500)
    threshold: float = Field(ge=0, le=1)
    actor: str

    @property
    def stream_id(self) -> str:
        """The log stream: the taxonomies of one project."""
        return f"taxonomy-{self.project}"


class Classified(Event):
    """The body was put into a class of a taxonomy, by its summary.

    `main`: a class, or `uncategorized`; `tags`: further ones that it may be of, likeliest first;
    `confidence`: of the likeliest class, 0 to 1; `classifier`: the method.
    """

    body_sha256: Sha256
    taxonomy: Sha256
    main: str
    tags: tuple[str, ...] = ()
    confidence: float = Field(ge=0, le=1)
    classifier: str
    embedder: str

    @property
    def labels(self) -> list[str]:
        """For filters: `class:…` of the main class and of each above it, `tag:…` of the others."""
        parts = self.main.split("/")
        classes = {f"class:{'/'.join(parts[:n])}" for n in range(1, len(parts) + 1)}
        return sorted(classes | {f"tag:{tag}" for tag in self.tags})


class GenerationSwitched(Fact):
    """Queries of a project read another generation of its index from now on.

    `before`: the one they read until now; it is kept, so that `rollback` can bring it back.
    """

    generation: int = Field(ge=1)
    before: int | None = None
    embedder: str
    chunker: str
    versions: int = Field(ge=0)
    passages: int = Field(ge=0)
    cause: Literal["rebuild", "rollback"]
    actor: str

    @property
    def stream_id(self) -> str:
        """The log stream: the generations of one project's index."""
        return f"index-{self.project}"


class Drifted(Fact):
    """The auditor found that a store does not hold what the log says.

    `found`: how many things are wrong, `repaired`: how many of them were put right; `examples`:
    the first of them, `<check>:<id>`.
    """

    found: int = Field(ge=1)
    repaired: int = Field(ge=0)
    examples: tuple[str, ...] = Field((), max_length=20)

    @property
    def stream_id(self) -> str:
        """The log stream: all that the auditor found in a project."""
        return f"audit-{self.project}"


class BytesDrifted(Drifted):
    """Blobs that a live version needs are missing, or are not what their names say."""


class IndexDrifted(Drifted):
    """Keyword rows or vectors that are missing, too many, or differ from the log."""


class ProjectionDrifted(Drifted):
    """Documents, versions, validity or jobs that are not the fold of the log."""


class Rescan(Fact):
    """A fact about the re-scans of a project: its stored texts, judged by other rules."""

    rescan_id: Id

    @property
    def stream_id(self) -> str:
        """The log stream: one a project, so that one re-scan at a time is open."""
        return f"rescans-{self.project}"


class RescanStarted(Rescan):
    """All texts of versions received before this are to be judged by the rules `ruleset`.

    `receipts`: how many receipts the project has; a version that was tried again has several.
    """

    ruleset: str
    receipts: int = Field(ge=0)
    actor: str


KeptCode = Literal["released", "trusted", "text-missing", "text-changed", "text-unreadable"]
"""Why a text stays in the index: a person released it, or its sender is trusted, in spite of a hit;
or it could not be judged."""


class Kept(Part):
    """A version that a re-scan left where it is, though it is not clean."""

    version_id: Id
    document_id: Id
    code: KeptCode
    rules: tuple[str, ...] = ()


class RescanCounts(Part):
    """Versions that a re-scan has reached: `looked` is the sum of all but `lowered`.

    `quarantined` left the index (of them `lowered` would be blocked as new documents); `kept` are
    counted by their code; `known` were judged by these rules already; of `absent` ones nothing is
    in the index or on its way there.
    """

    looked: int = Field(0, ge=0)
    clean: int = Field(0, ge=0)
    quarantined: int = Field(0, ge=0)
    lowered: int = Field(0, ge=0)
    known: int = Field(0, ge=0)
    absent: int = Field(0, ge=0)
    kept: dict[KeptCode, int] = {}


class RescanAdvanced(Rescan):
    """A re-scan came on: receipts up to the log position `cursor` are done.

    `counts` are of the whole re-scan, `kept` and `seconds` (of work) of what was done since the
    last such event.
    """

    cursor: int = Field(ge=0)
    receipts: int = Field(ge=0)
    counts: RescanCounts
    kept: tuple[Kept, ...] = Field((), max_length=1000)
    seconds: float = Field(ge=0)


class RescanFinished(Rescan):
    """A re-scan is over: to its end, cancelled, or replaced by one with other rules."""

    outcome: Literal["finished", "cancelled", "replaced"]
    counts: RescanCounts
    seconds: float = Field(ge=0)
    actor: str


class Failed(Event):
    """The version cannot go on at `stage`. `code` is a stable problem type."""

    stage: Stage
    code: str = Field(pattern=r"^[a-z0-9-]+$")
    reason: str = Field(max_length=500)
    attempts: int = Field(1, ge=1)


EVENTS: dict[str, type[Fact]] = {
    cls.__name__: cls
    for cls in (
        DocumentReceived, Parsed, ScanVerdict, Converted, Chunked, Indexed, Superseded,
        Reinstated, Released, Rejected, Erased, AttachmentsReceived, Failed, ProjectConfigured,
        RescanStarted, RescanAdvanced, RescanFinished, BytesPurged, IndexPurged, ProjectCreated,
        ProjectRenamed, ProjectDeleted, ProjectImported, GenerationSwitched, BytesDrifted,
        IndexDrifted, ProjectionDrifted, TaxonomySet, Classified,
    )
}  # fmt: skip
"""Current shape of every event, by its type name."""


def wire_type(cls: type[Fact]) -> str:
    """`DocumentReceived.v1`: the name that schemas, samples and subjects share."""
    return f"{cls.__name__}.v{cls.schema_version}"


def subject(lane: Lane, type_: str, schema_version: int | Literal["*"]) -> str:
    """JetStream subject of a stored event; `*` as version for a subscription."""
    suffix = "*" if schema_version == "*" else f"v{schema_version}"
    return f"kb.evt.{lane}.{type_}.{suffix}"


def utc(moment: datetime) -> str:
    """RFC 3339 in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
