"""Which blobs versions left behind, and which of them nobody else needs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from contracts.artifacts import ParsedDocument
from contracts.envelope import Envelope
from contracts.events import Event, Parsed

KEPT_BY = {
    "source_id": "source_id",
    "parsed_sha256": "parsed_sha256",
    "text_sha256": "text_sha256",
    "meta_sha256": "meta_sha256",
    "body_sha256": "body_sha256",
    "spans_sha256": "body_sha256",
    "chunks_sha256": "body_sha256",
}
"""Fields of events that name a blob → the field whose blob, still in use, keeps it."""

Keepers = Mapping[str, frozenset[str]]
"""Name of a blob → names of which one in use keeps it."""


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

    async def take_back(self, event: Event, emitted: Sequence[Event]) -> None:
        """Delete what a handler stored for a version that was erased while it worked."""
        if emitted and not await self._live(event.document_id, event.version_id):
            await self.delete(await self.unused(await self.names(emitted)))

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
