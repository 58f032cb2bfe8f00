"""THE table: what happens after what. Rights, subscriptions, docs and tests are made from it."""

from dataclasses import dataclass
from typing import Literal

from contracts.events import (
    AttachmentsReceived,
    BytesDrifted,
    BytesPurged,
    Chunked,
    Classified,
    Converted,
    DocumentReceived,
    Erased,
    Event,
    Fact,
    Failed,
    GenerationSwitched,
    IndexDrifted,
    Indexed,
    IndexPurged,
    Parsed,
    ProjectConfigured,
    ProjectCreated,
    ProjectDeleted,
    ProjectImported,
    ProjectionDrifted,
    ProjectRenamed,
    Reinstated,
    Rejected,
    Released,
    RescanAdvanced,
    RescanFinished,
    RescanStarted,
    ScanVerdict,
    Superseded,
    TaxonomySet,
)

Marker = Literal["HTTP", "ANY", "TASK"]


@dataclass(frozen=True)
class Step:
    """When `consumes` happened, `service` acts, and one or more of `emits` follow.

    `HTTP`: a person's request. `ANY`: the service reads the whole log in order (a projection).
    `TASK`: it works in the background on what the log says is open.
    """

    consumes: type[Event] | Marker
    service: str
    emits: tuple[type[Fact], ...]
    why: str


FLOW: tuple[Step, ...] = (
    Step(
        "HTTP", "ingest", (DocumentReceived, Reinstated), "bytes in, identity and version decided"
    ),
    Step("HTTP", "ingest", (DocumentReceived, Failed), "a job is tried again, or cancelled"),
    Step("HTTP", "ingest", (Erased, Failed), "a document is deleted, its jobs cancelled"),
    Step(
        "HTTP",
        "ingest",
        (ProjectCreated, ProjectRenamed, ProjectConfigured, ProjectDeleted, ProjectImported),
        "an administrator makes a project, names it, sets how it works, closes it, brings it in",
    ),
    Step(DocumentReceived, "converter", (Parsed, Failed), "deterministic parse in a child process"),
    Step(Parsed, "scanner", (ScanVerdict, Failed), "first scan: the parse, hidden text included"),
    Step(ScanVerdict, "converter", (Converted, Failed), "a clean parse becomes canonical Markdown"),
    Step(Released, "converter", (Converted, Failed), "so does a parse that a person released"),
    Step(Converted, "scanner", (ScanVerdict, Failed), "second scan: the exact text to be indexed"),
    Step(
        ScanVerdict,
        "indexer",
        (Chunked, Failed),
        "a clean body is cut into passages; a text that a re-scan hit leaves both indexes",
    ),
    Step(Released, "indexer", (Chunked, Failed), "so is a body that a person released"),
    Step(Chunked, "indexer", (Indexed, Failed), "passages go to the keyword and vector index"),
    Step(Indexed, "ingest", (Superseded, Failed), "valid time of the document's versions settled"),
    Step(
        ScanVerdict,
        "ingest",
        (DocumentReceived, Reinstated, AttachmentsReceived, Erased, Failed),
        "files inside a clean parse become documents; a blocked version is deleted",
    ),
    Step(
        Released,
        "ingest",
        (DocumentReceived, Reinstated, AttachmentsReceived, Failed),
        "so do those inside a parse that a person released",
    ),
    Step(
        Erased, "ingest", (BytesPurged, Failed), "bytes and text of an erased version are deleted"
    ),
    Step("HTTP", "scanner", (Released, Rejected), "a person reviews what is in quarantine"),
    Step(
        "HTTP",
        "scanner",
        (RescanStarted, RescanFinished),
        "an administrator has stored texts judged by new rules, or cancels that",
    ),
    Step(
        "TASK",
        "scanner",
        (ScanVerdict, RescanAdvanced, RescanStarted, RescanFinished),
        "a re-scan: hits among stored texts",
    ),
    Step(Superseded, "indexer", (Failed,), "new validity reaches the vector payload"),
    Step(Reinstated, "indexer", (Failed,), "so does a reinstatement"),
    Step(Erased, "indexer", (IndexPurged, Failed), "an erased version leaves both indexes"),
    Step(Indexed, "indexer", (Classified, Failed), "it is classified, if there is a taxonomy"),
    Step(
        "HTTP",
        "indexer",
        (TaxonomySet, Classified),
        "an administrator says what classes there are, and has versions classified anew",
    ),
    Step(
        "HTTP",
        "indexer",
        (GenerationSwitched, Chunked, Indexed),
        "an index is made anew, by another chunker or embedder too, or an old one brought back",
    ),
    Step("TASK", "ingest", (BytesDrifted,), "the auditor: the bytes that the log names"),
    Step("TASK", "indexer", (IndexDrifted,), "the auditor: both indexes against the log"),
    Step("TASK", "search", (ProjectionDrifted,), "the auditor: the read projection"),
    Step("ANY", "search", (), "documents, versions, jobs: the read projection"),
    Step("ANY", "ui", (), "live event stream"),
)

SERVICES: tuple[str, ...] = ("ingest", "scanner", "converter", "indexer", "search", "ui")


def consumed_by(service: str) -> tuple[Step, ...]:
    """The steps in which `service` works on an event from JetStream."""
    return tuple(s for s in FLOW if s.service == service and not isinstance(s.consumes, str))


def emitted_by(service: str) -> frozenset[str]:
    """Type names that `service` may append to the log; the database enforces it."""
    return frozenset(e.__name__ for s in FLOW if s.service == service for e in s.emits)


def kebab(name: str) -> str:
    """`DocumentReceived` → `document-received`."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


def durable(service: str, consumes: type[Event], lane: str) -> str:
    """Name of the JetStream consumer: `scanner-parsed-live`."""
    return f"{service}-{kebab(consumes.__name__)}-{lane}"


def handler_name(consumes: type[Event]) -> str:
    """`DocumentReceived` → `on_document_received`."""
    return f"on_{kebab(consumes.__name__).replace('-', '_')}"


_MARKED: dict[Marker, str] = {
    "HTTP": "*(a request)*",
    "ANY": "*(every event)*",
    "TASK": "*(in the background)*",
}


def table() -> str:
    """The flow as a Markdown table, for README and docs."""
    rows = [
        "| when this happened | this service | then one of these follows | why |",
        "|---|---|---|---|",
    ]
    for s in FLOW:
        what = _MARKED[s.consumes] if isinstance(s.consumes, str) else f"`{s.consumes.__name__}`"
        then = " · ".join(f"`{e.__name__}`" for e in s.emits) or "*(projection)*"
        rows.append(f"| {what} | {s.service} | {then} | {s.why} |")
    return "\n".join(rows)
