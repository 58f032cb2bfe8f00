"""Is the log as it was recorded? Its hash chains and its fingerprint, computed anew.

What a link is made of is written in migration 0009. It is computed here in Python, from the text
that the database prints, so that the check does not rest on functions of the database under check.
Whoever owns the database can change an event and compute all links after it anew: only a
fingerprint that was written down elsewhere (an anchor) shows that.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import asyncpg

from contracts.audit import Anchor, ChainPage, Fault, FaultCode
from kernel.db import queries
from kernel.erasure import redacted

NOTHING = bytes(32)
"""The link before the first of a stream, and the fingerprint of an empty log."""
BATCH = 500
"""Events that are held at once: a few milliseconds of work between two turns of the loop."""
SHOWN = 100
"""Faults that a page lists; all are counted."""

_HEADER = (
    "position", "stream_id", "version", "event_id", "type", "schema_version", "lane", "project",
    "causation_id", "correlation_id", "actor", "traceparent", "occurred", "recorded",
)  # fmt: skip


def digest(salt: bytes, data: str) -> bytes:
    """SHA-256 over the salt and the data, as jsonb prints them."""
    return sha256(salt + data.encode()).digest()


def header(row: Mapping[str, Any]) -> bytes:
    """The other columns as a JSON array, byte for byte as `log.header` says it."""
    return json.dumps([row[name] for name in _HEADER], ensure_ascii=False).encode()


def linked(before: bytes, *parts: bytes) -> bytes:
    """The link that follows `before`; a fingerprint is made in the same way out of links."""
    return sha256(b"".join((before, *parts))).digest()


def faults_of(row: Mapping[str, Any]) -> Iterator[FaultCode]:
    """What is wrong with one event by itself, and with how it follows the one before it."""
    if row["salt"] is None:
        yield from _redaction(row)
    elif digest(row["salt"], row["data"]) != row["digest"]:
        yield "data-changed"
    before = NOTHING if row["version"] == 1 else row["before"]
    if before is None:
        yield "before-missing"
    elif linked(before, row["digest"], header(row)) != row["chain"]:
        yield "link-broken"


def _redaction(row: Mapping[str, Any]) -> Iterator[FaultCode]:
    """An event without its words: its version was erased, and it says no more than ids and counts.

    Its stream is in the chain, so the data cannot name another document or version than theirs.
    """
    data = json.loads(row["data"])
    streams = (f"document-{data.get('document_id')}", f"version-{data.get('version_id')}")
    if not row["buried"] or row["stream_id"] not in streams:
        yield "not-erased"
    elif redacted(row["type"], data) != data:
        yield "words-left"


@dataclass
class Walk:
    """Goes over events in order of position and notes what is wrong."""

    position: int
    fingerprint: bytes | None
    anchors: dict[int, bytes] = field(default_factory=dict)
    events: int = 0
    redacted: int = 0
    found: int = 0
    faults: list[Fault] = field(default_factory=list)

    def step(self, row: Mapping[str, Any]) -> None:
        """The next event."""
        if row["position"] != self.position + 1:
            self.fault(self.position + 1, "missing")
        self.position = row["position"]
        self.events += 1
        self.redacted += row["salt"] is None
        for code in faults_of(row):
            self.fault(self.position, code, row["stream_id"])
        if self.fingerprint is not None:
            self.fingerprint = linked(self.fingerprint, row["chain"])
            said = self.anchors.get(self.position)
            if said not in (None, self.fingerprint):
                self.fault(self.position, "anchor")

    def end(self, head: int, fingerprint: bytes, last: int) -> None:
        """The head was reached: is this what was appended?"""
        if self.position != head:
            self.fault(min(self.position, head) + 1, "tail-missing")
        elif self.fingerprint not in (None, fingerprint):
            self.fault(head, "fingerprint")
        if last > head:
            self.fault(last, "not-appended")
        for position in self.anchors:
            if position > max(head, self.position):
                self.fault(position, "anchor")

    def fault(self, position: int, code: FaultCode, stream_id: str | None = None) -> None:
        """Note it."""
        self.found += 1
        if len(self.faults) < SHOWN:
            self.faults.append(Fault(position=position, code=code, stream_id=stream_id))

    def page(self, head: int, *, done: bool) -> ChainPage:
        """What was found."""
        known = self.fingerprint
        return ChainPage(
            position=self.position,
            head=head,
            fingerprint=None if known is None else known.hex(),
            done=done,
            events=self.events,
            redacted=self.redacted,
            found=self.found,
            faults=tuple(self.faults),
        )


async def verify(
    pool: "asyncpg.Pool[Any]",
    *,
    after: int = 0,
    fingerprint: str | None = None,
    anchors: Sequence[Anchor] = (),
    limit: int | None = None,
) -> ChainPage:
    """Check the events after position `after`, up to the head as it is now, or `limit` of them.

    Memory does not grow with the log. Appends and erasures go on meanwhile.

    Args:
        pool: of any role that may read `log.event` and `log.head`.
        after: where to begin; events up to there count as checked.
        fingerprint: of the log up to `after`, in hex. Without it fingerprints are compared from 0
            on only.
        anchors: fingerprints that were written down.
        limit: stop after so many events; None: at the head.
    """
    q = queries("kernel.sql", "chain")
    known = bytes.fromhex(fingerprint) if fingerprint else NOTHING if after == 0 else None
    walk = Walk(after, known, {a.position: bytes.fromhex(a.fingerprint) for a in anchors})
    head = await q.head(pool)
    if head["position"] is None:
        walk.fault(0, "head-missing")
        return walk.page(0, done=True)
    if head["first"] is not None and head["first"] < 1:
        walk.fault(head["first"], "not-appended")
    while limit is None or walk.events < limit:
        size = BATCH if limit is None else min(BATCH, limit - walk.events)
        span = {"after": walk.position, "until": head["position"], "limit": size}
        rows = [row async for row in q.links(pool, **span)]
        for row in rows:
            walk.step(row)
        if len(rows) < size:
            walk.end(head["position"], head["fingerprint"], head["last"] or 0)
            return walk.page(head["position"], done=True)
    return walk.page(head["position"], done=False)


async def whole(pool: "asyncpg.Pool[Any]", streams: Sequence[str]) -> bool:
    """Is every event of these streams as it was recorded, and does it follow the one before it?"""
    rows = queries("kernel.sql", "chain").links_of(pool, streams=list(streams))
    return not any([code async for row in rows for code in faults_of(row)])
