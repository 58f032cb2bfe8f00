"""The fold of the read projection: rows and events in, the rows that follow from them out.

Nothing here asks a database or a clock. Rows of versions and jobs are as Postgres writes them as
JSON, and none is changed: what an event says is a new row, so a row that is still the one that was
loaded need not be written.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from contracts.events import (
    AttachmentsReceived,
    Chunked,
    Classified,
    Converted,
    DocumentReceived,
    Erased,
    Event,
    Failed,
    Indexed,
    Parsed,
    Reinstated,
    Rejected,
    Released,
    ScanVerdict,
    Superseded,
)
from contracts.http import Status
from contracts.states import STATES, WORKING, moves, status_after

Row = dict[str, Any]
Key = tuple[str, datetime]
"""Of a window: version id, valid from."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An event, and what its envelope says; the title of the text that it is about, if any."""

    event: Event
    job: str
    position: int
    at: datetime
    title: str | None = None


class Said(NamedTuple):
    """A window that is said, since when."""

    version_id: str
    document_id: str
    project: str
    valid_from: datetime
    valid_until: datetime | None
    recorded_from: datetime

    @property
    def key(self) -> Key:
        """What is unique of it."""
        return self.version_id, self.valid_from

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Said":
        """From JSON."""
        return cls(
            row["version_id"],
            row["document_id"],
            row["project"],
            datetime.fromisoformat(row["valid_from"]),
            row["valid_until"] and datetime.fromisoformat(row["valid_until"]),
            datetime.fromisoformat(row["recorded_from"]),
        )

    def row(self, **more: str) -> Row:
        """As JSON."""
        return {
            "version_id": self.version_id,
            "document_id": self.document_id,
            "project": self.project,
            "valid_from": self.valid_from.isoformat(),
            "valid_until": self.valid_until and self.valid_until.isoformat(),
            "recorded_from": self.recorded_from.isoformat(),
        } | more


@dataclass(frozen=True)
class Touched:
    """The rows that a batch looks at or changes.

    versions, jobs: by their ids, and the newest jobs of these versions. erased: versions all of
    whose jobs lose their names. lines: documents whose held versions get other windows.
    windowed: documents all of whose windows count; a line may be long, so of those that are `shown`
    it only counts whether they have any, and of versions that are `moved` their own count.
    """

    versions: set[str] = field(default_factory=set)
    jobs: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    lines: set[str] = field(default_factory=set)
    windowed: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)


@dataclass
class Known:
    """Rows that were loaded."""

    versions: dict[str, Row] = field(default_factory=dict)
    jobs: dict[str, Row] = field(default_factory=dict)
    windows: dict[Key, Said] = field(default_factory=dict)


@dataclass(frozen=True)
class Changes:
    """Rows to be written: all of them whole, but for `gone`, the keys of windows that are not said
    any more. `past` are windows that were said, `lines` the newest position of each line."""

    versions: list[Row]
    jobs: list[Row]
    gone: list[Key]
    windows: list[Row]
    past: list[Row]
    lines: list[Row]


def touched(entries: Iterable[Entry]) -> Touched:
    """What has to be known to fold these events."""
    found, left = Touched(), set()
    for entry in entries:
        event = entry.event
        if isinstance(event, Superseded | Reinstated):
            found.lines.add(event.document_id)
            continue
        found.versions.add(event.version_id)
        found.jobs.add(entry.job)
        if isinstance(event, Erased) and event.reason == "request":
            found.erased.add(event.version_id)
        if isinstance(event, Indexed):
            found.shown.add(event.document_id)
            found.moved.add(event.version_id)
        elif _may_hide(event):
            left.add(event.document_id)
            found.moved.add(event.version_id)
    # Where some windows may go and others come, it counts which are left.
    found.windowed.update(found.lines, found.shown & left)
    found.shown.difference_update(found.windowed)
    return found


def _may_hide(event: Event) -> bool:
    if isinstance(event, ScanVerdict):
        return event.verdict == "quarantine"
    return isinstance(event, Erased)


def fold(known: Known, entries: Iterable[Entry]) -> Changes:
    """What is to be written when these events have happened."""
    folding = _Folding(known)
    for entry in entries:
        folding.take(entry)
    return folding.changes()


# -- what an event says ----------------------------------------------------------------------------

_NOTHING: Row = dict.fromkeys(
    ("verdict", "language", "title", "parser", "converter", "embedder", "parsed_sha256",
     "body_sha256", "meta_sha256", "chunks_sha256", "summary_sha256", "body_bytes", "chunk_count",
     "error")
)  # fmt: skip
_SAYS: dict[type[Event], tuple[str, ...]] = {
    Parsed: ("parser", "language", "parsed_sha256"),
    Converted: ("body_sha256", "meta_sha256", "body_bytes", "converter", "language"),
    Chunked: ("chunks_sha256", "chunk_count", "summary_sha256"),
    Indexed: ("chunk_count", "embedder"),
    Failed: ("stage", "code", "reason"),
}
_REFUSED = {"stage": "scanner", "code": "rejected", "reason": "a person refused the new parse"}
_GONE = {"blocked": "blocked", "request": "deleted"}
_FORGOTTEN = "(erased)"


def change(event: Event) -> Row:
    """What an event says about its version: `status`, `stage`, and columns with new values."""
    status = status_after(event)
    if status is None:
        raise TypeError(type(event).__name__)
    return {"status": status, "stage": _stage(status, event), **_columns(event)}


def _stage(status: Status, event: Event) -> str | None:
    if isinstance(event, Failed):
        return event.stage
    return STATES[status].owner if status in WORKING else None


def _columns(event: Event) -> Row:
    match event:
        case Failed():
            return {"error": _said(event)}
        case Erased(cause=str()):
            reason = f"the document that it was attached to was {_GONE[event.reason]}"
            code = f"parent-{_GONE[event.reason]}"
            return {"error": {"stage": "ingest", "code": code, "reason": reason}}
        case ScanVerdict() | Released():
            return _judged(event)
        case _:
            return _said(event)


def _said(event: Event) -> Row:
    return {name: getattr(event, name) for name in _SAYS.get(type(event), ())}


def _judged(event: ScanVerdict | Released) -> Row:
    verdict = event.verdict if isinstance(event, ScanVerdict) else "clean"
    if verdict != "block":
        return {"verdict": verdict}
    rules = sorted({f.rule for f in getattr(event, "findings", ())})
    error = {
        "stage": "scanner",
        "code": "blocked",
        "reason": f"prompt injection: {', '.join(rules)}",
    }
    return {"verdict": verdict, "error": error}


def _withdraws(event: Event, version: Row) -> bool:
    """Is this a verdict against the very text that is searchable, or against its parse?"""
    if not isinstance(event, ScanVerdict) or event.verdict != "quarantine":
        return False
    if event.subject == "parsed":
        return bool(event.text_sha256 == version["parsed_sha256"])
    body = (version["body_sha256"], version["meta_sha256"])
    return (event.text_sha256, event.meta_sha256) == body


def _given(row: Row) -> Row:
    return {k: v for k, v in row.items() if v is not None}


def _cancelled(job: Row | None) -> bool:
    return bool(job and job["error"] and job["error"].get("code") == "cancelled")


def _forgetting(error: Row | None) -> Row | None:
    return None if error is None else error | {"reason": _FORGOTTEN}


def _told(moment: datetime) -> str:
    """As Postgres writes it as JSON: held windows are compared as text."""
    whole, point, part = moment.astimezone(UTC).isoformat().removesuffix("+00:00").partition(".")
    return whole + point + part.rstrip("0") + "+00:00"


def _held(windows: Iterable[tuple[datetime, datetime | None]]) -> list[Row]:
    return [{"from": _told(f), "until": u and _told(u)} for f, u in sorted(windows, key=_begin)]


def _begin(window: tuple[datetime, datetime | None]) -> datetime:
    return window[0]


# -- a batch ---------------------------------------------------------------------------------------


class _Windows:
    """Windows by their keys, and which of them are of a document, of a version."""

    def __init__(self, known: Iterable[Said]) -> None:
        self.rows: dict[Key, Said] = {}
        self._of_document: dict[str, dict[Key, Said]] = defaultdict(dict)
        self._of_version: dict[str, dict[Key, Said]] = defaultdict(dict)
        for said in known:
            self.put(said)

    def put(self, said: Said) -> None:
        for rows in self._places(said):
            rows[said.key] = said

    def drop(self, said: Said) -> None:
        for rows in self._places(said):
            del rows[said.key]

    def of_document(self, document_id: str) -> list[Said]:
        return list(self._of_document[document_id].values())

    def of_version(self, version_id: str) -> list[Said]:
        return list(self._of_version[version_id].values())

    def _places(self, said: Said) -> tuple[dict[Key, Said], ...]:
        return self.rows, self._of_document[said.document_id], self._of_version[said.version_id]


class _Folding:
    """The tables, as far as a batch touches them, while its events are taken one by one."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._versions, self._jobs = dict(known.versions), dict(known.jobs)
        self._windows = _Windows(known.windows.values())
        self._held = {v["version_id"] for v in known.versions.values() if v["held"] is not None}
        self._attempts: dict[str, list[str]] = defaultdict(list)
        for job in known.jobs.values():
            self._attempts[job["version_id"]].append(job["job_id"])
        self._past: dict[tuple[str, datetime, datetime], Row] = {}
        self._lines: dict[str, Row] = {}

    def changes(self) -> Changes:
        """What differs from what was known."""
        before, now = self._known, self._windows.rows
        return Changes(
            versions=_newer(before.versions, self._versions),
            jobs=_newer(before.jobs, self._jobs),
            gone=[key for key in before.windows if key not in now],
            windows=[w.row() for key, w in now.items() if before.windows.get(key) != w],
            past=list(self._past.values()),
            lines=[self._lines[id_] for id_ in sorted(self._lines)],
        )

    def take(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, DocumentReceived):
            self._receive(entry, event)
        elif isinstance(event, Superseded | Reinstated):
            self._line(entry, event)
        elif isinstance(event, AttachmentsReceived):
            said = event.model_dump(mode="json", include={"left_out", "left_out_by_code"})
            self._set(event.version_id, attachments=said, position=entry.position)
        elif isinstance(event, Classified):
            self._classify(entry, event)
        else:
            self._change(entry, event)

    def _set(self, version_id: str, **columns: Any) -> None:
        version = self._versions.get(version_id)
        if version is not None:
            self._versions[version_id] = version | columns

    def _classify(self, entry: Entry, event: Classified) -> None:
        """What is about another text than the one that is read says nothing."""
        version = self._versions.get(event.version_id)
        if version and version["live"] and version["body_sha256"] == event.body_sha256:
            self._set(event.version_id, labels=event.labels, position=entry.position)

    # Receipts -------------------------------------------------------------------------------

    def _receive(self, entry: Entry, event: DocumentReceived) -> None:
        old = self._versions.get(event.version_id)
        newest = {"job_id": entry.job, "position": entry.position, "parent": event.parent}
        if old is not None and old["live"]:
            # Another attempt at a version that is in the index: it stays as it is until that is
            # indexed.
            new = old | {"status": "indexed", "stage": None, "error": None, "pending": {}}
        else:
            new = (old or _first(event)) | _NOTHING | _begun(entry, event)
        self._versions[event.version_id] = new | newest
        if entry.job not in self._jobs:
            self._jobs[entry.job] = _job(entry, event)
            self._attempts[event.version_id].append(entry.job)

    # The line of a document -----------------------------------------------------------------

    def _line(self, entry: Entry, event: Superseded | Reinstated) -> None:
        """The document's windows are these now; what stays as it was keeps its recorded time."""
        self._rewrite_held(event)
        line = {
            (w.version_id, w.valid_from): w.valid_until
            for w in event.windows
            if w.version_id not in self._held
        }
        for said in self._windows.of_document(event.document_id):
            if said.key not in line or line[said.key] != said.valid_until:
                self._end(said, entry.at)
        for (version_id, begin), until in line.items():
            self._say(Said(version_id, event.document_id, event.project, begin, until, entry.at))
        place = {"document_id": event.document_id, "project": event.project}
        place = self._lines.get(event.document_id, place)
        self._lines[event.document_id] = place | {"position": entry.position}

    def _rewrite_held(self, event: Superseded | Reinstated) -> None:
        """The held windows of a document's versions, as its new line has them."""
        for version_id in self._held:
            if self._versions[version_id]["document_id"] == event.document_id:
                theirs = [w for w in event.windows if w.version_id == version_id]
                held = _held((w.valid_from, w.valid_until) for w in theirs)
                self._set(version_id, held=held)

    def _say(self, said: Said) -> None:
        """From now on this window is said, unless it was before."""
        before = self._windows.rows.get(said.key)
        if before is not None and before.valid_until == said.valid_until:
            return
        if before is not None:
            self._end(before, said.recorded_from)
        self._windows.put(said)

    def _end(self, said: Said, at: datetime) -> None:
        """From now on this window is not said."""
        self._windows.drop(said)
        if said.recorded_from < at:
            key = (said.version_id, said.valid_from, said.recorded_from)
            self._past[key] = said.row(recorded_until=at.isoformat())

    def _end_all(self, version_id: str, at: datetime) -> None:
        for said in self._windows.of_version(version_id):
            self._end(said, at)

    # Steps of a version ---------------------------------------------------------------------

    def _change(self, entry: Entry, event: Event) -> None:
        met, job = self._versions.get(event.version_id), entry.job
        if met is None:
            return
        mine = self._jobs.get(job)
        if _cancelled(mine) and not isinstance(event, Erased):
            return  # what is cancelled stays so
        status = mine["status"] if mine else None
        withdrawn = met["live"] and _withdraws(event, met)
        if not withdrawn and not moves(status, event):
            return
        row = _NOTHING | change(event)
        if isinstance(event, Failed) and status == "indexed":
            # A side step failed after that: it stays indexed, the error is shown.
            self._set(event.version_id, error=row["error"], position=entry.position)
            return
        if isinstance(event, Converted):
            row["title"] = entry.title
        if isinstance(event, Erased):
            job = met["job_id"]
            self._bury(event, entry.at)
        if withdrawn:
            self._withdraw(entry, row, met)
            self._hold(event.version_id, entry.at)
        elif job == met["job_id"]:
            self._move(entry, row, met)
        self._step(job, row, entry.at)
        if isinstance(event, Indexed):
            returns = met["held"] is not None and job == met["job_id"]
            self._show(event, entry.at, returns=returns)

    def _step(self, job_id: str, row: Row, at: datetime) -> None:
        """A job came one step on."""
        job = self._jobs.get(job_id)
        if job is None:
            return
        found = _given({"chunk_count": row["chunk_count"], "error": row["error"]})
        place = {"status": row["status"], "stage": row["stage"], "updated_at": at.isoformat()}
        self._jobs[job_id] = job | place | found

    def _bury(self, event: Erased, at: datetime) -> None:
        """Nobody sees an erased version; where a person asked, nobody learns its names, as they
        leave the log (log.redacted): a replay, before or after that, comes to the same."""
        self._end_all(event.version_id, at)
        self._release(event.version_id)
        self._set(event.version_id, labels=None)
        if event.reason != "request":
            return
        version = self._versions[event.version_id]
        self._versions[event.version_id] = version | {
            "name": _FORGOTTEN,
            "title": _FORGOTTEN,
            "source_key": "",
            "attachments": None,
            "error": _forgetting(version["error"]),
        }
        for job_id in self._attempts[event.version_id]:
            job = self._jobs[job_id]
            self._jobs[job_id] = job | {"name": _FORGOTTEN, "error": _forgetting(job["error"])}

    def _show(self, event: Indexed, at: datetime, *, returns: bool) -> None:
        """Give a version in the index its windows back, or the first one of its document."""
        version = self._versions[event.version_id]
        said = (version["version_id"], version["document_id"], version["project"])
        if returns:
            for window in version["held"]:
                begin, until = datetime.fromisoformat(window["from"]), window["until"]
                self._say(Said(*said, begin, until and datetime.fromisoformat(until), at))
            self._release(event.version_id)
        if not self._windows.of_document(event.document_id):
            begin = datetime.fromisoformat(version["valid_from"])
            self._windows.put(Said(*said, begin, None, at))

    def _hold(self, version_id: str, at: datetime) -> None:
        """Nobody sees the version at any time until a person decides; its windows return with
        it."""
        windows = [(w.valid_from, w.valid_until) for w in self._windows.of_version(version_id)]
        self._set(version_id, held=_held(windows))
        self._held.add(version_id)
        self._end_all(version_id, at)

    def _release(self, version_id: str) -> None:
        self._set(version_id, held=None)
        self._held.discard(version_id)

    def _move(self, entry: Entry, row: Row, met: Row) -> None:
        """Bring the version on. One that is in the index stays as it is until the attempt is."""
        event, status = entry.event, row["status"]
        if not met["live"] or status in ("indexed", "blocked", "erased"):
            found = met["pending"] or {} if met["live"] else {}
            erased = isinstance(event, Erased)
            live = status == "indexed" or (met["live"] and not erased)
            self._update(entry, row, found, live=live)
            return
        over = isinstance(event, Failed | Rejected)
        found = {k: v for k, v in _given(row).items() if k not in ("status", "stage")}
        error = row["error"] or (_REFUSED if isinstance(event, Rejected) else None)
        self._set(
            event.version_id,
            status="review" if status == "review" else "indexed",
            position=entry.position,
            pending=None if over else (met["pending"] or {}) | found,
            **({} if error is None else {"error": error}),
        )

    def _withdraw(self, entry: Entry, row: Row, met: Row) -> None:
        """What is searchable was found to be bad: it waits for a person."""
        own = entry.job == met["job_id"]
        found = met["pending"] or {} if own else {}
        self._update(entry, row | {"stage": None}, found, live=False)
        if not own and _cancelled(self._jobs.get(met["job_id"])):
            # Another job than the newest, which was cancelled, goes on with the version.
            self._set(entry.event.version_id, job_id=entry.job)

    def _update(self, entry: Entry, row: Row, found: Row, *, live: bool) -> None:
        """What the event says, and what the attempt found before; the rest stays."""
        place = {"position": entry.position, "live": live, "pending": None}
        said = {"status": row["status"], "stage": row["stage"]}
        version = self._versions[entry.event.version_id]
        version = version | _given(found) | _given(row) | said | place
        if isinstance(entry.event, Erased):
            version["title"] = version["name"]
        self._versions[version["version_id"]] = version


def _newer(before: Mapping[Any, Row], now: Mapping[Any, Row]) -> list[Row]:
    return [row for id_, row in now.items() if before.get(id_) is not row]


def _first(event: DocumentReceived) -> Row:
    """What a version is once and for all, or until something happens to it."""
    names = ("version_id", "document_id", "source_id", "project", "size_bytes")
    return {name: getattr(event, name) for name in names} | {
        "live": False,
        "held": None,
        "labels": None,
    }


def _begun(entry: Entry, event: DocumentReceived) -> Row:
    """A version is there, or is tried again after a failure."""
    names = ("name", "media_type", "supersedes", "source_key", "trusted")
    return {name: getattr(event, name) for name in names} | {
        "title": event.name,
        "status": "received",
        "stage": "converter",
        "received_at": entry.at.isoformat(),
        "valid_from": event.valid_from.isoformat(),
        "pending": None,
        "attachments": None,
    }


def _job(entry: Entry, event: DocumentReceived) -> Row:
    at = entry.at.isoformat()
    names = ("project", "document_id", "version_id", "name", "attempt")
    return {name: getattr(event, name) for name in names} | {
        "job_id": entry.job,
        "status": "received",
        "stage": "converter",
        "chunk_count": None,
        "error": None,
        "started_at": at,
        "updated_at": at,
    }
