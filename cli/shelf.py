"""Documents as readers see them, folded from the log: for plain folders and the git mirror."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from contracts.artifacts import BodyMeta
from contracts.envelope import Envelope
from contracts.events import Chunked, DocumentReceived, Event, Window
from kernel.blobs import Blobs
from kernel.clearance import Texts
from kernel.front_matter import front_matter
from kernel.log import Log
from services.ingest.domain import Line

PAGE = 2000
_RESERVED = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(10))}
)


@dataclass(frozen=True)
class Shown:
    """A version that can be searched, and when it is valid."""

    receipt: DocumentReceived
    cut: Chunked
    window: Window


@dataclass
class _Document:
    line: Line
    texts: dict[str, Texts] = field(default_factory=dict)


class Shelf:
    """Folds events in log order. Of a version, nothing counts that is before its last erasure:
    `erased` says where that is.
    """

    def __init__(self, erased: Mapping[str, int]) -> None:
        self._erased = erased
        self._documents: dict[str, _Document] = {}

    def apply(self, envelope: Envelope) -> Event | None:
        """Fold one event in; returns it if it may change what is shown."""
        document_id, version_id = envelope.data.get("document_id"), envelope.data.get("version_id")
        if not document_id or not envelope.stream_id.startswith(("document-", "version-")):
            return None
        gone = envelope.position <= self._erased.get(version_id or "", 0)
        # Windows are of the whole line, which goes on without this version.
        if gone and envelope.type not in ("Superseded", "Reinstated"):
            return None
        event = envelope.event()
        document = self._documents.setdefault(document_id, _Document(Line(document_id)))
        document.line.apply(event)
        if event.category == "version" or envelope.type in ("DocumentReceived", "Erased"):
            document.texts.setdefault(event.version_id, Texts()).apply(envelope)
        return event

    @property
    def documents(self) -> list[str]:
        """Ids of all documents, sorted."""
        return sorted(self._documents)

    def line(self, document_id: str) -> list[Shown]:
        """The versions that can be searched with their windows, oldest first."""
        document = self._documents[document_id]
        found = []
        for window in document.line.settled:
            texts = document.texts.get(window.version_id)
            receipt = document.line.received.get(window.version_id)
            cut = texts.searchable if texts else None
            if cut is not None and receipt is not None:
                found.append(Shown(receipt, cut, window))
        return found

    def newest(self, document_id: str) -> Shown | None:
        """The version whose window is open."""
        line = self.line(document_id)
        return line[-1] if line and line[-1].window.valid_until is None else None

    def at(self, document_id: str, moment: datetime) -> Shown | None:
        """The version that is valid at a moment."""
        for shown in self.line(document_id):
            end = shown.window.valid_until
            if shown.window.valid_from <= moment and (end is None or moment < end):
                return shown
        return None


async def erasures(log: Log, until: int) -> dict[str, int]:
    """Version id → position of its last erasure, up to a position of the log."""
    found: dict[str, int] = {}
    after = 0
    while after < until:
        for envelope in await log.read(after, PAGE):
            after = envelope.position
            if envelope.type == "Erased" and after <= until:
                found[envelope.data["version_id"]] = after
    return found


async def markdown(shown: Shown, blobs: Blobs, **more: Any) -> bytes:
    """A version as a file: front matter with what it is and when it is valid, then the body.

    Raises:
        FileNotFoundError: its body or meta is not in the store.
    """
    meta = BodyMeta.model_validate_json(await blobs.get(shown.cut.meta_sha256))
    window, receipt = shown.window, shown.receipt
    until = window.valid_until
    fields = {
        "source": receipt.source_key,
        "name": receipt.name,
        "project": receipt.project,
        "document_id": receipt.document_id,
        "version_id": receipt.version_id,
        "source_id": receipt.source_id,
        "valid_from": window.valid_from.isoformat(),
        "valid_until": until and until.isoformat(),
        **more,
    }
    return front_matter(meta, fields).encode() + await blobs.get(shown.cut.body_sha256)


def safe_stem(name: str, most: int = 120) -> str:
    """The stem of a file name, made one that every system takes: letters of any script stay.

    `most` is bytes of UTF-8; what Windows reserves becomes `_`.
    """
    plain = unicodedata.normalize("NFC", PurePosixPath(name).stem or name)
    plain = "".join(c if c.isprintable() else "_" for c in plain)
    plain = _RESERVED.sub("_", plain).strip(" .")
    cut = plain.encode()[:most].decode("utf-8", "ignore").strip(" .")
    if not cut or cut.split(".")[0].casefold() in _DEVICES or cut.startswith("-"):
        cut = f"_{cut}"
    return cut


def safe_suffix(name: str) -> str:
    """The suffix of a file name, if it is a plain one: `.pdf`, else nothing."""
    suffix = PurePosixPath(name).suffix
    return suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,10}", suffix) else ""


def distinct(stems: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Key → stem; where several keys have one stem, on a system that ignores case or the form of
    letters, each gets the first eight characters of its key."""
    counted: dict[str, int] = {}
    for _, stem in stems:
        folded = unicodedata.normalize("NFKC", stem).casefold()
        counted[folded] = counted.get(folded, 0) + 1
    return {
        key: stem
        if counted[unicodedata.normalize("NFKC", stem).casefold()] == 1
        else f"{stem}-{key[:8]}"
        for key, stem in stems
    }
