"""Files inside a document become documents of their own, once its text was found clean."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath

from contracts.artifacts import Attachment, ParsedDocument
from contracts.events import (
    AttachmentsReceived,
    DocumentReceived,
    Event,
    LeftOut,
    LeftOutCode,
    Parsed,
    Reinstated,
)
from kernel.blobs import Blobs
from kernel.erasure import is_live
from kernel.log import Beginning, Log, Spawning
from kernel.media import SNIFF_BYTES, SUPPORTED, sniff
from services.ingest.accept import Offer, decide, receipt_id, repeat_id
from services.ingest.domain import NAME_BYTES, Identity
from services.ingest.lines import document_id_of, load_line, version_id_of

DEPTH = 5
"""A file in a mail in a mail …: documents deeper than this are left out."""
MOST = 1000
"""Attachments of one document that are taken in."""
LISTED = 50
"""Attachments left out that are named in the event; all of them are counted."""
KEY_LENGTH = 2048


@dataclass(frozen=True)
class File:
    """An attachment with its place in the parse and the source key of the document it becomes."""

    number: int
    key: str
    name: str
    blob: Attachment


def files_of(parent_key: str, attachments: Sequence[Attachment]) -> Iterator[File]:
    """Attachments with the keys of their documents: `<parent's key>#<name>`, and for the second
    of that name `<parent's key>#2/<name>`.

    So a new version of the parent finds the same documents, also when others came or went.
    """
    seen: Counter[str] = Counter()
    base = parent_key if len(parent_key) <= KEY_LENGTH - 300 else _short(parent_key)
    for number, blob in enumerate(attachments, 1):
        name = safe_name(blob.name, number)
        seen[name] += 1
        which = f"{seen[name]}/" if seen[name] > 1 else ""
        yield File(number, f"{base}#{which}{name}", name, blob)


def _short(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def safe_name(name: str, number: int) -> str:
    """A name that came inside a file, made one that a file may have: nothing of it is believed."""
    plain = "".join("_" if c in "/\\" or not c.isprintable() else c for c in name).strip()
    if plain in ("", ".", ".."):
        return f"attachment-{number}"
    if len(plain.encode()) <= NAME_BYTES:
        return plain
    suffix = PurePosixPath(plain).suffix
    suffix = suffix if len(suffix.encode()) <= NAME_BYTES // 4 else ""
    stem = plain.removesuffix(suffix).encode()[: NAME_BYTES - len(suffix.encode())]
    return stem.decode("utf-8", "ignore") + suffix


class Attachments:
    """Decides what becomes of the files inside a version."""

    def __init__(self, log: Log, blobs: Blobs, identity: Identity) -> None:
        self._log, self._blobs, self._identity = log, blobs, identity

    async def take(self, event: Event, parsed_sha256: str) -> Sequence[Event]:
        """Receipts of the documents that the files become, and `AttachmentsReceived`.

        Nothing for a parse without attachments, which is told from the log alone, and for a version
        that was erased meanwhile.
        """
        if not await self._any(event, parsed_sha256) or await self._is_gone(event):
            return []
        parent = await self._log.received(event)
        data = await self._blobs.get(parsed_sha256)
        attachments = ParsedDocument.model_validate_json(data).attachments
        too_deep = await self._depth(parent) >= DEPTH
        begun: list[Beginning] = []
        left: list[LeftOut] = []
        for file in files_of(parent.source_key, attachments):
            code: LeftOutCode | None = "too-deep" if too_deep else None
            code = "too-many" if file.number > MOST else code
            media_type = ""
            if code is None:
                media_type, code = await self._kind(file)
            if code is None:
                code = await self._decided(parent, file, media_type, begun)
            if code is not None:
                left.append(_left_out(file, media_type, code))
        counted: Counter[LeftOutCode] = Counter(x.code for x in left)
        taken = AttachmentsReceived(
            **event.ids,
            taken=len(attachments) - len(left),
            left_out=tuple(left[:LISTED]),
            left_out_by_code=dict(sorted(counted.items())),
        )
        return Spawning([taken], begun)

    async def _any(self, event: Event, parsed_sha256: str) -> bool:
        """Does the parse hold files? The newest parse of that name in the version's stream."""
        stream = await self._log.stream(f"version-{event.version_id}")
        of_text = [e for e in stream if e.data.get("parsed_sha256") == parsed_sha256]
        parsed = of_text[-1].event() if of_text else None
        return isinstance(parsed, Parsed) and parsed.attachments > 0

    async def _is_gone(self, event: Event) -> bool:
        streams = [f"document-{event.document_id}", f"version-{event.version_id}"]
        return not is_live(event.version_id, await self._log.streams(streams))

    async def _depth(self, receipt: DocumentReceived) -> int:
        """How many documents this one is inside of, counted up to `DEPTH`."""
        depth = 0
        while receipt.parent is not None and depth < DEPTH:
            envelope = await self._log.event(receipt_id(receipt.parent, 1))
            if envelope is None:
                raise LookupError(f"no receipt of version {receipt.parent}")
            above = envelope.event()
            assert isinstance(above, DocumentReceived)  # noqa: S101 - by its id
            receipt, depth = above, depth + 1
        return depth

    async def _kind(self, file: File) -> tuple[str, LeftOutCode | None]:
        try:
            head = await self._blobs.head(file.blob.sha256, SNIFF_BYTES)
        except FileNotFoundError:
            return "", "missing"
        media_type = sniff(head, file.name)
        return media_type, None if media_type in SUPPORTED else "unsupported-media-type"

    async def _decided(
        self, parent: DocumentReceived, file: File, media_type: str, begun: list[Beginning]
    ) -> LeftOutCode | None:
        """Add what the file is to its document, if anything; or say why it may not come in."""
        identity = self._identity
        document_id = await document_id_of(self._log, identity, parent.project, file.key)
        line = await load_line(self._log, document_id)
        version_id = version_id_of(line, identity, file.blob.sha256)
        if version_id in line.deleted:
            return "erased"
        offer = Offer(
            project=parent.project,
            source_id=file.blob.sha256,
            name=file.name,
            media_type=media_type,
            size_bytes=file.blob.size_bytes,
            valid_from=parent.valid_from,
            source=file.key,
            via="attachment",
            returns=True,
            parent=parent.version_id,
        )
        match decide(offer, line, version_id, datetime.now(UTC)):
            case DocumentReceived() as received:
                event_id = receipt_id(version_id, received.attempt)
                begun.append(Beginning(received, event_id, line.version))
            case Reinstated() as reinstated:
                event_id = repeat_id(version_id, line.version)
                begun.append(Beginning(reinstated, event_id, line.version))
            case None:
                pass
        return None


def _left_out(file: File, media_type: str, code: LeftOutCode) -> LeftOut:
    return LeftOut(number=file.number, name=file.name[:255], media_type=media_type, code=code)
