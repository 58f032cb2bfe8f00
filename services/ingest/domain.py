"""Identity, versions and valid time, as pure functions of what the log says about a document."""

import hashlib
import hmac
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

import yaml

from contracts.events import (
    DocumentReceived,
    Erased,
    Event,
    Failed,
    Indexed,
    Reinstated,
    ScanVerdict,
    Superseded,
    Window,
)
from contracts.http import within
from kernel.errors import Refusal
from kernel.media import SUPPORTED, sniff, unread

ID_HEX = 32
NAME_BYTES = 255


@dataclass(frozen=True)
class Identity:
    """Ids that cannot be guessed without the installation's key, and that do not change."""

    key: bytes

    def document(self, project: str, source_key: str) -> str:
        """Id of the document that (project, source key) names."""
        return self._hmac("document", project, source_key)

    def version(self, document_id: str, source_id: str) -> str:
        """Id of the state of a document with these bytes."""
        return self._hmac("version", document_id, source_id)

    def _hmac(self, *parts: str) -> str:
        message = "\x00".join(parts).encode()
        return hmac.new(self.key, message, hashlib.sha256).hexdigest()[:ID_HEX]


@dataclass
class Line:
    """A document's line of versions, folded from its streams."""

    document_id: str
    version: int = 0
    """Version of the document stream, for the optimistic append."""
    received: dict[str, DocumentReceived] = field(default_factory=dict)
    indexed: set[str] = field(default_factory=set)
    over: set[str] = field(default_factory=set)
    """Versions whose last attempt failed, was blocked or was erased: they may be tried again."""
    deleted: set[str] = field(default_factory=set)
    """Versions that a person deleted for their own sake, and that nobody sent again since."""
    erased: set[str] = field(default_factory=set)
    """Versions that are gone, and that nobody sent again since."""
    windows: tuple[Window, ...] = ()
    stated: set[tuple[str, datetime]] = field(default_factory=set)
    """Instants from which on a version was said to be valid. They stand, also where it was valid
    anyway: what is put before one ends there."""

    def apply(self, event: Event) -> None:
        """Fold one event in."""
        match event:
            case DocumentReceived():
                self._receive(event)
            case Indexed():
                self.indexed.add(event.version_id)
            case Superseded():
                self.windows = event.windows
            case Reinstated():
                self.windows = event.windows
                self.stated.add((event.version_id, event.valid_from))
            case Erased():
                self._leave(event.version_id)
                if event.reason == "request" and event.cause is None:
                    self.deleted.add(event.version_id)
            case Failed():
                self.over.add(event.version_id)
            case ScanVerdict(verdict="block"):
                self.over.add(event.version_id)
            case _:
                pass

    def _receive(self, event: DocumentReceived) -> None:
        version_id = event.version_id
        if version_id in self.erased:  # it comes anew, after what came meanwhile
            self.erased.discard(version_id)
            del self.received[version_id]
        if version_id not in self.indexed:
            self._unsay(version_id)
        self.stated.add((version_id, event.valid_from))
        self.received[version_id] = event
        self.over.discard(version_id)
        self.deleted.discard(version_id)

    def _leave(self, version_id: str) -> None:
        self.over.add(version_id)
        self.erased.add(version_id)
        self.indexed.discard(version_id)
        self.windows = tuple(w for w in self.windows if w.version_id != version_id)
        self._unsay(version_id)

    def _unsay(self, version_id: str) -> None:
        self.stated = {s for s in self.stated if s[0] != version_id}

    @property
    def source_key(self) -> str:
        """The document's key, as its newest receipt says that still does: erasures take it out."""
        return next((r.source_key for r in reversed(self.received.values()) if r.source_key), "")

    @property
    def settled(self) -> tuple[Window, ...]:
        """Windows as recorded, or the one of the first version that was indexed."""
        if self.windows or not self.indexed:
            return self.windows
        first = next(v for v in self.received if v in self.indexed)
        return (Window(version_id=first, valid_from=self.received[first].valid_from),)

    @property
    def current(self) -> str | None:
        """The version whose window is open."""
        return next((w.version_id for w in self.settled if w.valid_until is None), None)

    def is_past(self, version_id: str, now: datetime) -> bool:
        """Was the version valid once, and is it neither now nor later?"""
        ends = [w.valid_until for w in self.settled if w.version_id == version_id]
        return bool(ends) and all(end is not None and end <= now for end in ends)

    def says(self, version_id: str, moment: datetime) -> bool:
        """Was it said already that this version is valid from `moment` on, and is it so?"""
        return (version_id, moment) in self.stated and any(
            w.valid_from <= moment and (w.valid_until is None or moment < w.valid_until)
            for w in self.settled
            if w.version_id == version_id
        )


def fold(document_id: str, events: Iterable[Event], version: int) -> Line:
    """The line of versions after `events` (document and version streams, in log order)."""
    line = Line(document_id, version)
    for event in events:
        line.apply(event)
    return line


def activate(
    windows: Sequence[Window],
    version_id: str,
    valid_from: datetime,
    *,
    later: Collection[str] = (),
    stated: Collection[tuple[str, datetime]] = (),
) -> tuple[Window, ...]:
    """The line after `version_id` became valid at `valid_from`, anywhere in the line.

    The new window ends where the next begins, and the one that it falls into ends there. No other
    changes: the time of a version that was erased stays nobody's. Of two with one beginning the
    later activation wins; the other keeps a window without length, so that it stays in the
    history. `later`: versions whose activation counts as later than this one, though they are in
    the line already. `stated`: see `Line.stated`.
    """
    rows = [(w.valid_from, float(n), w) for n, w in enumerate(_cut(windows, stated))]
    last = float(len(rows))
    rows = [r for r in rows if (r[0], r[2].version_id) != (valid_from, version_id)]
    after = (n for at, n, w in rows if at == valid_from and w.version_id in later)
    place = next(after, last) - 0.5
    rows.append((valid_from, place, Window(version_id=version_id, valid_from=valid_from)))
    line: list[Window] = []
    for window in (r[2] for r in sorted(rows, key=lambda r: r[:2])):
        line = _joined(line, window)
    following = [*(w.valid_from for w in line[1:]), None]
    return tuple(_until(w, at) for w, at in zip(line, following, strict=True))


def _cut(windows: Iterable[Window], stated: Collection[tuple[str, datetime]]) -> Iterator[Window]:
    """The windows, each cut at the instants inside it from which on its version was stated."""
    for window in windows:
        until = window.valid_until
        inside = sorted(
            at
            for version_id, at in stated
            if version_id == window.version_id
            and window.valid_from < at
            and (until is None or at < until)
        )
        for begin, end in pairwise([window.valid_from, *inside, until]):
            yield window.model_copy(update={"valid_from": begin, "valid_until": end})


def _joined(line: list[Window], window: Window) -> list[Window]:
    """The line with one window more; one that goes on where the same version was is the same."""
    last = line[-1] if line else None
    goes_on = last is not None and last.version_id == window.version_id
    if (
        last is None
        or not goes_on
        or _until(last, window.valid_from).valid_until != window.valid_from
    ):
        return [*line, window]
    return [*line[:-1], last.model_copy(update={"valid_until": window.valid_until})]


def _until(window: Window, at: datetime | None) -> Window:
    """The window, over at `at` at the latest."""
    ends = [end for end in (window.valid_until, at) if end is not None]
    return window.model_copy(update={"valid_until": min(ends, default=None)})


def supersede(line: Line, indexed: Indexed) -> Superseded | None:
    """What the arrival of `indexed` in the index does to the line; None for a first version."""
    known = {w.version_id for w in line.settled}
    fresh = [v for v in line.received if v in line.indexed and v not in known]
    if not fresh:
        return None
    windows, order = line.settled, list(line.received)
    for version_id in fresh:  # the order of receipt counts, not how long each took
        valid_from = line.received[version_id].valid_from
        later = order[order.index(version_id) + 1 :]
        windows = activate(windows, version_id, valid_from, later=later, stated=line.stated)
    at = next(i for i, w in enumerate(windows) if w.version_id == fresh[-1])
    ended, by = (windows[at - 1], windows[at]) if at else (windows[at], windows[at + 1])
    return Superseded(
        project=indexed.project,
        document_id=indexed.document_id,
        version_id=ended.version_id,
        source_id=line.received[ended.version_id].source_id,
        by_version_id=by.version_id,
        valid_until=by.valid_from,
        windows=windows,
    )


def reinstate(line: Line, receipt: DocumentReceived, valid_from: datetime) -> Reinstated:
    """Content returned to the earlier version of `receipt`.

    Nothing is valid where the version that took its place was erased: then that one is named.
    """
    others = (v for v in reversed(line.received) if v != receipt.version_id)
    return Reinstated(
        project=receipt.project,
        document_id=receipt.document_id,
        version_id=receipt.version_id,
        source_id=receipt.source_id,
        supersedes=line.current or next(others),
        valid_from=valid_from,
        windows=activate(line.settled, receipt.version_id, valid_from, stated=line.stated),
    )


def checked_name(name: str) -> str:
    """A file name as it came, if it is one.

    Raises:
        Refusal: `invalid-name`: empty, too long, a path, or with control characters.
    """
    if not name.strip() or len(name.encode()) > NAME_BYTES:
        raise Refusal("invalid-name", f"a file name has 1 to {NAME_BYTES} bytes")
    if "/" in name or "\\" in name or name in (".", "..") or not name.isprintable():
        raise Refusal("invalid-name", "a file name holds no path and no control characters")
    return name


def readable_type(head: bytes, name: str) -> str:
    """The media type of a file that starts with `head`, by its content.

    Raises:
        Refusal: `unsupported-media-type` (415): no parser reads it.
    """
    media_type = sniff(head, name)
    if media_type not in SUPPORTED:
        raise Refusal("unsupported-media-type", unread(media_type), status=415)
    return media_type


def stated_valid_from(head: bytes, media_type: str) -> datetime | None:
    """`valid_from` of a Markdown file's YAML front matter; None unless it is a date."""
    if media_type != "text/markdown" or not head.startswith(b"---"):
        return None
    block, found, _ = head[3:8192].decode("utf-8", "replace").partition("\n---")
    if not found:
        return None
    try:
        fields: Any = yaml.safe_load(block)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return _moment(fields.get("valid_from")) if isinstance(fields, dict) else None


def _moment(value: object) -> datetime | None:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        return None
    try:
        return within(value if value.tzinfo else value.replace(tzinfo=UTC))
    except ValueError:
        return None
