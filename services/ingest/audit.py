"""The auditor of bytes: are the blobs there that live versions name, and are they what they say?

Bytes are no projection: nothing but a backup brings an original back. What was made of it is made
again: the version is tried anew, as a person would, and the same bytes give the same parse.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from contracts.audit import Check, Finding
from contracts.envelope import Envelope
from contracts.events import BytesDrifted, Drifted
from contracts.states import WORKING
from kernel.audit import Looked, Streams, Subject, by_version, history
from kernel.clearance import Texts
from kernel.erasure import KEPT_BY
from kernel.needs import Needs
from services.ingest.jobs import Jobs

ACTOR = "svc:ingest"
ORIGINAL = "the original is damaged: only a backup has it"
EARLIER = "an earlier text of the version: only a backup has it"
AGAIN = "it was tried again for this, and that did not bring it back"


class Store(Protocol):
    """The part of the blob store that is used here."""

    async def digest(self, name: str) -> str: ...
    async def delete(self, name: str) -> bool: ...


class BytesExaminer:
    """Reads every blob that the live versions of a document name."""

    check: Check = "bytes"
    drifted: type[Drifted] = BytesDrifted

    def __init__(self, event_log: Streams, blobs: Store, jobs: Jobs) -> None:
        self._log, self._blobs, self._jobs = event_log, blobs, jobs

    async def look(self, subject: Subject) -> Looked:
        """Blobs that are missing, or whose bytes are not those that their names say."""
        events = await history(self._log, subject.document_id)
        looked = Looked()
        known: dict[str, str | None] = {}
        for version_id, mine in by_version(events).items():
            names = _needed(version_id, mine)
            for name in sorted(names - known.keys()):
                known[name] = await self._state(name)
            wrong = {name: state for name in names if (state := known[name])}
            if wrong and _working(mine):
                looked.moving = True
                continue
            for name, state in sorted(wrong.items()):
                looked.findings.append(
                    Finding(
                        check=self.check,
                        what=state,
                        id=name,
                        project=subject.project,
                        document_id=subject.document_id,
                        version_id=version_id,
                        at=events[-1].position,
                        left=_hopeless(name, wrong, mine),
                    )
                )
        looked.checked = len(known)
        return looked

    async def repair(self, subject: Subject, findings: Sequence[Finding]) -> None:
        """Try each version again whose derived blobs are damaged; what is not itself goes first."""
        events = by_version(await history(self._log, subject.document_id))
        for version_id in dict.fromkeys(f.version_id for f in findings if not f.left):
            mine = events.get(version_id or "", [])
            for f in findings:
                if f.version_id == version_id and f.what == "blob-changed":
                    await self._blobs.delete(f.id)
            receipt = _receipt(mine)
            if receipt is not None:
                await self._jobs.retry(str(receipt.correlation_id), ACTOR)

    async def strays(self, project: str | None) -> list[Finding]:
        """Blobs that nobody names are not looked for: an upload is one for a moment."""
        return []

    async def remove(self, strays: Sequence[Finding]) -> None:
        """There are none."""

    async def _state(self, name: str) -> str | None:
        try:
            return None if await self._blobs.digest(name) == name else "blob-changed"
        except FileNotFoundError:
            return "blob-missing"


def _needed(version_id: str, events: Iterable[Envelope]) -> set[str]:
    """Names of all blobs that a version needs; none if it is gone."""
    needs = Needs()
    for e in events:
        needs.apply(e.type, e.schema_version, e.data)
    return needs.of([version_id]) if needs.live.get(version_id) else set()


def _newest(events: Iterable[Envelope]) -> set[str]:
    """Names that the version's last attempt, and the one before where it did not come so far, gave
    to its bytes: what trying it again makes anew."""
    last: dict[str, str] = {}
    for e in events:
        about = e.data.get("subject", "")
        last |= {f"{about}{field}": e.data[field] for field in KEPT_BY if e.data.get(field)}
    return set(last.values())


def _receipt(events: Sequence[Envelope]) -> Envelope | None:
    return next((e for e in reversed(events) if e.type == "DocumentReceived"), None)


def _working(events: Sequence[Envelope]) -> bool:
    """Is an attempt at the version under way?"""
    return any(status in WORKING for status in Texts(events).jobs.values())


def _hopeless(name: str, wrong: Iterable[str], events: Sequence[Envelope]) -> str | None:
    """Why a blob cannot be made again; None if it can."""
    receipt = _receipt(events)
    if receipt is None or receipt.data["source_id"] in wrong:
        return ORIGINAL
    if name not in _newest(events):
        return EARLIER
    return AGAIN if receipt.actor == ACTOR else None
