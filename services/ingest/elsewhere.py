"""Where else an erased document may lie: in the drop-zone's folders, and in a folder of backups."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from contracts.envelope import Envelope
from contracts.events import DocumentReceived, Event
from kernel.backup import forget as forget_in_backups
from kernel.errors import Retry
from services.ingest.dropped import Dropped


@dataclass(frozen=True)
class Elsewhere:
    """Copies that ingest reaches; `backups` is the folder that `KB_BACKUPS` names."""

    dropped: Dropped | None = None
    backups: Path | None = None

    async def forget(
        self,
        tombstone: Envelope,
        events: Sequence[Event],
        blobs: Iterable[str],
        shared: bool,
    ) -> dict[str, int]:
        """Delete what is there of a version; returns how much, by place.

        Args:
            tombstone: of the version.
            events: all that happened to it.
            blobs: names that nobody needs any more.
            shared: another document has the same bytes; only what is this one's alone goes.

        Raises:
            Retry: a folder is away.
        """
        removed: dict[str, int] = {}
        receipts = [e for e in events if isinstance(e, DocumentReceived)]
        if self.dropped is not None:
            keys = {r.source_key for r in receipts if r.via == "dropzone"}
            sizes = {r.size_bytes for r in receipts}
            forget = partial(self.dropped.forget, tombstone.data["source_id"], sizes, keys)
            # Of a blocked file the note is all that is left: it says why, and only that.
            notes = tombstone.data["reason"] != "blocked"
            removed["dropped-files"] = await asyncio.to_thread(forget, shared=shared, notes=notes)
        if self.backups is not None:
            try:
                removed["backups"] = await forget_in_backups(
                    self.backups, tombstones=[tombstone], blobs=blobs
                )
            except OSError as error:
                raise Retry(f"backups: {error.strerror}", after=60) from error
        return removed
