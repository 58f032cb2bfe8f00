"""Which blobs the versions of a log need, folded from its events."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

from contracts.artifacts import ParsedDocument
from contracts.events import EVENTS
from contracts.history.upcasters import upcast
from kernel.erasure import KEPT_BY

Read = Callable[[str], Awaitable[bytes]]


class Cut(NamedTuple):
    """A manifest of passages, its body, a version that has it, and the model that embedded it."""

    manifest: str
    body: str
    version_id: str
    model: str | None


class Needs:
    """What each version's events name. A version that was erased or blocked, and that nobody sent
    again since, needs nothing; of any other, all that its events ever named is needed: an earlier
    text of it may be asked for as it was recorded.
    """

    def __init__(self) -> None:
        self.live: dict[str, bool] = {}
        """Version id → is it there?"""
        self._names: dict[str, set[str]] = {}
        self._parses: dict[str, set[str]] = {}
        """Name of a parse with files inside → versions it is of."""
        self.cuts: dict[str, dict[str, str]] = {}
        """Version id → manifest of passages → its body."""
        self.embedders: dict[str, str] = {}
        """Manifest of passages → model that embedded them last."""

    def apply(self, type_: str, schema_version: int, data: Mapping[str, Any]) -> None:
        """Fold one event in; one that is about no version changes nothing."""
        version_id = data.get("version_id")
        if version_id is None or type_ not in EVENTS:
            return
        data = upcast(type_, schema_version, EVENTS[type_].schema_version, dict(data))
        if type_ == "DocumentReceived":
            self.live[version_id] = True
        elif type_ == "Erased" or data.get("verdict") == "block":
            self.live[version_id] = False
        names = self._names.setdefault(version_id, set())
        names.update(data[field] for field in KEPT_BY if data.get(field))
        if type_ == "Parsed" and data.get("attachments"):
            self._parses.setdefault(data["parsed_sha256"], set()).add(version_id)
        elif type_ == "Chunked":
            self.cuts.setdefault(version_id, {})[data["chunks_sha256"]] = data["body_sha256"]
        elif type_ == "Indexed":
            self.embedders[data["chunks_sha256"]] = data["embedder"]

    def of(self, version_ids: Iterable[str]) -> set[str]:
        """Names of the blobs that events of these versions name, there or not."""
        return set().union(*(self._names.get(v, set()) for v in version_ids))

    @property
    def versions(self) -> list[str]:
        """Versions that are there."""
        return [v for v, live in self.live.items() if live]

    @property
    def names(self) -> set[str]:
        """Names of all blobs that are needed."""
        return self.of(self.versions)

    async def look_inside(self, read: Read, version_ids: Iterable[str]) -> None:
        """Add the files inside parses of versions: no event names one that nobody took in.

        A parse that `read` does not find (FileNotFoundError) tells nothing: it is missing itself.
        """
        wanted = set(version_ids)
        for parse, versions in self._parses.items():
            if not versions & wanted:
                continue
            try:
                document = ParsedDocument.model_validate_json(await read(parse))
            except (FileNotFoundError, ValueError):
                continue
            for version_id in versions:
                self._names[version_id] |= {f.sha256 for f in document.attachments}

    def passages(self) -> dict[str, Cut]:
        """Manifests of passages of versions that are there."""
        return {
            manifest: Cut(manifest, body, version_id, self.embedders.get(manifest))
            for version_id in self.versions
            for manifest, body in self.cuts.get(version_id, {}).items()
        }
