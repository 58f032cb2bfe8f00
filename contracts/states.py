"""THE table of states: who owns a job in each, until when, and what happens next."""

from dataclasses import dataclass
from datetime import timedelta

from contracts.events import (
    Chunked,
    Converted,
    DocumentReceived,
    Erased,
    Event,
    Failed,
    Indexed,
    Parsed,
    Rejected,
    Released,
    ScanVerdict,
)
from contracts.http import Status

LONG = timedelta(hours=1)
"""For steps that wait in a queue behind large documents."""
SHORT = timedelta(minutes=15)
"""A little over all repetitions of a delivery that fails (about 13 minutes)."""
PERSON = timedelta(days=7)


@dataclass(frozen=True)
class State:
    """`within` counts from the job's last step; None: nothing is due. `progress` is 0 to 1."""

    owner: str
    within: timedelta | None
    next_action: str
    progress: float


STATES: dict[Status, State] = {
    "received": State("converter", LONG, "the converter parses it in a child process", 0.0),
    "parsed": State("scanner", SHORT, "the scanner judges the parse, hidden text included", 0.3),
    "converting": State("converter", SHORT, "the converter makes the canonical body", 0.45),
    "scanning": State("scanner", SHORT, "the scanner judges the body that is to be indexed", 0.6),
    "chunking": State("indexer", SHORT, "the indexer cuts the body into passages", 0.7),
    "indexing": State("indexer", LONG, "the indexer embeds the passages and writes them", 0.8),
    "indexed": State("search", None, "nothing: it can be searched; retry parses it again", 1.0),
    "review": State("scanner", PERSON, "a person releases or rejects it, or cancels the job", 0.3),
    "rejected": State("scanner", None, "nothing: a person refused it; retry or delete", 1.0),
    "blocked": State("ingest", None, "nothing: its bytes are deleted; send it again to retry", 1.0),
    "failed": State("ingest", None, "a person reads the error, then retries or deletes it", 1.0),
    "erased": State("ingest", None, "nothing: only a tombstone is left", 1.0),
}
"""Cancel, retry and delete are legal in every one of them (`services/ingest/jobs.py`)."""


WORKING: frozenset[Status] = frozenset(
    {"received", "parsed", "converting", "scanning", "chunking", "indexing"}
)
"""A service works on it, or will."""


def status_after(event: Event) -> Status | None:
    """The state that an event brings its version into; None: it leaves the state as it is."""
    match event:
        case ScanVerdict(verdict="quarantine"):
            return "review"
        case ScanVerdict(verdict="block"):
            return "blocked"
        case ScanVerdict() | Released():
            return "converting" if event.subject == "parsed" else "chunking"
        case Erased():
            return "blocked" if event.reason == "blocked" else "erased"
        case _:
            return _PLAIN.get(type(event))


def moves(status: Status | None, event: Event) -> bool:
    """Does an event move a job that is in this state? Late steps of a service do not.

    What waits for a person goes on by a person only: a text may be taken back while a service
    works on it. What is erased stays so.
    """
    if status in ("blocked", "erased"):
        return isinstance(event, Erased)
    if status == "review":
        late = isinstance(event, Parsed | Converted | Chunked | Indexed)
        return not late and getattr(event, "verdict", "") != "clean"
    return True


_PLAIN: dict[type[Event], Status] = {
    DocumentReceived: "received",
    Parsed: "parsed",
    Converted: "scanning",
    Chunked: "indexing",
    Indexed: "indexed",
    Rejected: "rejected",
    Failed: "failed",
}


def table() -> str:
    """The states as a Markdown table, for the docs."""
    rows = ["| state | owner | deadline | next |", "|---|---|---|---|"]
    for name, s in STATES.items():
        rows.append(f"| `{name}` | {s.owner} | {_span(s.within)} | {s.next_action} |")
    return "\n".join(rows)


def _span(within: timedelta | None) -> str:
    if within is None:
        return "–"
    if within >= timedelta(days=1):
        return f"{within.days} days"
    return f"{int(within.total_seconds() // 60)} min"
