"""Receipts of erasures, folded from the log: tombstones, and what each service says it removed."""

from collections import Counter
from collections.abc import Iterable
from typing import get_args
from uuid import UUID

from contracts.envelope import Envelope
from contracts.erasure import ErasedVersion, Erasure, Open
from contracts.events import BytesPurged, Erased, IndexPurged
from kernel.errors import Refusal
from kernel.log import Log
from services.ingest.accept import receipt_id

_SAID_BY: dict[str, Open] = {BytesPurged.__name__: "bytes", IndexPurged.__name__: "index"}


class Receipts:
    """Reads receipts. Nothing is stored for them: they are a fold."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def of(self, id_: str) -> Erasure:
        """The receipt of a request (its id), or of all that was erased of a document (its id, or
        one of a version), with what went along since it was attached.

        Raises:
            Refusal: `unknown-erasure`.
        """
        graves = await self._of_request(id_) if "-" in id_ else await self._of_document(id_)
        if not graves:
            raise Refusal("unknown-erasure", "nothing of this id was erased", status=404)
        said = await self._log.streams([f"erasure-{g.data['version_id']}" for g in graves])
        position, at = await self._log.scrubbed()
        versions = [_version(g, [e for e in said if e.causation_id == g.event_id]) for g in graves]
        newest = max(e.position for e in (*graves, *said))
        open_ = Counter(o for v in versions for o in v.open)
        clean = not open_ and position >= newest
        done = [v.done_at for v in versions if v.done_at is not None]
        return Erasure(
            id=id_,
            project=graves[0].project,
            complete=not open_,
            asked_at=graves[0].recorded_at,
            done_at=max(done) if done and not open_ else None,
            removed=_sum(v.removed for v in versions),
            kept=_sum(v.kept for v in versions),
            open=dict(open_),
            files="clean" if clean else "open",
            files_at=at if clean else None,
            versions=versions,
            position=await self._log.head(),
        )

    async def _of_request(self, id_: str) -> list[Envelope]:
        try:
            return await self._log.tombstones([UUID(id_)])
        except ValueError:
            return []

    async def _of_document(self, id_: str) -> list[Envelope]:
        own = await self._log.stream(f"document-{id_}")
        only = None
        if not own and (received := await self._log.event(receipt_id(id_, 1))):
            only = id_
            own = await self._log.stream(received.stream_id)
        graves = [e for e in own if e.type == "Erased" and only in (None, e.data["version_id"])]
        every = await self._log.tombstones(list({g.correlation_id for g in graves}))
        found = {g.event_id: g for g in graves}
        reached = {g.data["version_id"] for g in graves}
        for grave in every:  # what was attached comes after that which it was attached to
            if grave.data.get("cause") in reached:
                reached.add(grave.data["version_id"])
                found[grave.event_id] = grave
        return sorted(found.values(), key=lambda g: g.position)


def _version(grave: Envelope, said: Iterable[Envelope]) -> ErasedVersion:
    event = grave.event()
    assert isinstance(event, Erased)  # noqa: S101 - by its type
    lines = [e for e in said if e.type in _SAID_BY]
    open_ = set(get_args(Open)) - {_SAID_BY[e.type] for e in lines}
    return ErasedVersion(
        **event.model_dump(
            include={"version_id", "document_id", "source_id", "reason", "scope", "cause"}
        ),
        actor=grave.actor,
        at=grave.recorded_at,
        position=grave.position,
        removed=_sum(e.data["removed"] for e in lines),
        kept=_sum(e.data.get("kept", {}) for e in lines),
        open=sorted(open_),
        done_at=None if open_ else max(e.recorded_at for e in lines),
    )


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        for name, n in each.items():
            total[name] += n
    return dict(total)
