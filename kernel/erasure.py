"""Which blobs versions left behind, which of them nobody else needs, and what a tombstone hides."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from contracts.artifacts import ParsedDocument
from contracts.envelope import Envelope
from contracts.events import Event, Fact, Parsed

KEPT_BY = {
    "source_id": "source_id",
    "parsed_sha256": "parsed_sha256",
    "text_sha256": "text_sha256",
    "meta_sha256": "meta_sha256",
    "body_sha256": "body_sha256",
    "spans_sha256": "body_sha256",
    "chunks_sha256": "body_sha256",
    "summary_sha256": "body_sha256",
}
"""Fields of events that name a blob → the field whose blob, still in use, keeps it."""

Keepers = Mapping[str, frozenset[str]]
"""Name of a blob → names of which one in use keeps it."""

STORES = ("originals", "parses", "bodies", "other")
"""What a receipt calls the kinds of blobs; one that is of several kinds counts as the first."""

GONE = "(erased)"
"""Stands where the log had a name or a reason of an erased version. A source key becomes empty:
nobody can send an empty one, so nothing is ever taken for the document that had it."""


class Uses(Protocol):
    """The part of the log that is read here."""

    async def users(self, name: str) -> list[tuple[str, str]]: ...
    async def streams(self, stream_ids: Sequence[str]) -> list[Envelope]: ...


class Store(Protocol):
    """The part of the blob store that is used here."""

    async def get(self, name: str) -> bytes: ...
    async def delete(self, name: str) -> bool: ...


def is_live(version_id: str, events: Iterable[Envelope]) -> bool:
    """Is a version still there, by the events of its document and its own, in log order?

    Not if it was erased or blocked and nobody sent it again since.
    """
    live = False
    for envelope in events:
        if envelope.data.get("version_id") != version_id:
            continue
        if envelope.type == "DocumentReceived":
            live = True
        elif envelope.type == "Erased" or envelope.data.get("verdict") == "block":
            live = False
    return live


def redacted(type_: str, data: dict[str, Any]) -> dict[str, Any]:
    """What is left of an event of an erased version: ids, hashes and counts, no words of people.

    The SQL function `log.redacted` says the same; a test compares them.
    """
    match type_:
        case "DocumentReceived":
            return data | {"name": GONE, "source_key": ""}
        case "AttachmentsReceived":
            return data | {"left_out": [x | {"name": GONE} for x in data.get("left_out", ())]}
        case "Parsed":
            return data | {"warnings": []}
        case "Classified":
            return data | {"main": GONE, "tags": []}
        case "Released" | "Rejected" | "Failed":
            return data | {"reason": GONE}
        case _:
            return data


def store_of(field: str, event: Event) -> str:
    """What a receipt calls the blob that `field` of an event names."""
    if field == "text_sha256":
        return "parses" if getattr(event, "subject", "") == "parsed" else "bodies"
    known = {"source_id": "originals", "parsed_sha256": "parses", "body_sha256": "bodies"}
    return known.get(field, "other")


def stores(events: Iterable[Event]) -> dict[str, str]:
    """Name of each blob that events name → what a receipt calls it."""
    found: dict[str, str] = {}
    for event in events:
        for field in KEPT_BY:
            if name := getattr(event, field, None):
                kinds = (found.get(name, STORES[-1]), store_of(field, event))
                found[name] = min(kinds, key=STORES.index)
    return found


def _buries(envelope: Envelope, version_id: str) -> bool:
    return envelope.type == "Erased" and envelope.data.get("version_id") == version_id


class Traces:
    """Finds and deletes blobs of versions that are gone. Safe to repeat at any time."""

    def __init__(self, log: Uses, blobs: Store) -> None:
        self._log, self._blobs = log, blobs

    async def names(self, events: Iterable[Event]) -> Keepers:
        """The blobs that events of versions name, files inside a parse included.

        Whoever still has the source bytes has the same text, so they keep all of it.
        """
        found: dict[str, frozenset[str]] = {}
        for event in events:
            fields = event.model_dump(include=set(KEPT_BY))
            for field, keeper in KEPT_BY.items():
                if name := fields.get(field):
                    kept = {str(fields[keeper]), event.source_id}
                    found[name] = found.get(name, frozenset()) | kept
            if isinstance(event, Parsed) and event.attachments:
                found |= await self._inside(event)
        return found

    async def unused(self, names: Keepers, *, but: Iterable[str] = ()) -> list[str]:
        """Those that no live version needs; the versions `but` do not count."""
        used: dict[str, bool] = {}
        for keeper in sorted(frozenset().union(*names.values())):
            used[keeper] = await self._used(keeper, frozenset(but))
        return sorted(n for n, keepers in names.items() if not any(used[k] for k in keepers))

    async def delete(self, names: Iterable[str]) -> int:
        """Delete blobs; returns how many there were."""
        return sum([await self._blobs.delete(name) for name in names])

    async def take_back(self, event: Event, emitted: Sequence[Fact]) -> None:
        """Delete what a handler stored for a version that was erased while it worked."""
        about = [e for e in emitted if isinstance(e, Event)]
        if about and not await self._live(event.document_id, event.version_id):
            await self.delete(await self.unused(await self.names(about)))

    async def counted_elsewhere(self, keepers: Iterable[str], version_id: str, at: int) -> bool:
        """Was another version that had one of these blobs erased after position `at`?

        Of several that had the same bytes the last one takes them along: its receipt counts them.
        """
        for keeper in sorted(keepers):
            for document, other in await self._log.users(keeper):
                if other == version_id:
                    continue
                streams = [f"document-{document}", f"version-{other}"]
                events = await self._log.streams(streams)
                if any(_buries(e, other) and e.position > at for e in events):
                    return True
        return False

    async def _inside(self, event: Parsed) -> dict[str, frozenset[str]]:
        try:
            data = await self._blobs.get(event.parsed_sha256)
        except FileNotFoundError:
            return {}
        files = ParsedDocument.model_validate_json(data).attachments
        return {f.sha256: frozenset({f.sha256, event.source_id}) for f in files}

    async def _used(self, name: str, but: frozenset[str]) -> bool:
        for document_id, version_id in await self._log.users(name):
            if version_id not in but and await self._live(document_id, version_id):
                return True
        return False

    async def _live(self, document_id: str, version_id: str) -> bool:
        streams = [f"document-{document_id}", f"version-{version_id}"]
        return is_live(version_id, await self._log.streams(streams))
