"""What the log says must be in a project's index."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from contracts.envelope import Envelope
from contracts.events import (
    AttachmentsReceived,
    Chunked,
    Classified,
    DocumentReceived,
    Event,
    Indexed,
    Lane,
    Reinstated,
    Superseded,
)
from kernel.clearance import Texts
from kernel.log import Log

PAGE = 500
"""Events that are read together; questions wait for as many to be understood."""


class Saying(NamedTuple):
    """The event that says that a version is in the index, and its job."""

    event_id: UUID
    job: UUID
    lane: Lane


@dataclass
class Contents:
    """The index of a project after the events up to `position`. Everything is by version id."""

    project: str
    position: int = 0
    texts: dict[str, Texts] = field(default_factory=dict)
    cuts: dict[str, dict[str, Chunked]] = field(default_factory=dict)
    """Every cut of a version that was ever recorded, by the name of its manifest."""
    indexed: dict[str, Chunked] = field(default_factory=dict)
    """The cut that is indexed. Not the newest: a later attempt may have been cancelled."""
    sayings: dict[str, Saying] = field(default_factory=dict)
    classified: dict[str, Classified] = field(default_factory=dict)
    """What a version was classified as last."""
    valid_from: dict[str, datetime] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """Document id → position of the event that set its windows last."""

    async def catch_up(self, log: Log) -> None:
        """Fold in what the log got since."""
        while batch := await log.read(self.position, PAGE):
            for envelope in batch:
                if envelope.project == self.project:
                    self.apply(envelope)
            self.position = batch[-1].position

    def apply(self, envelope: Envelope) -> None:
        """Fold one event in."""
        event = envelope.fact()
        if isinstance(event, Superseded | Reinstated):
            self.lines[event.document_id] = envelope.position
        elif isinstance(event, Event) and not isinstance(event, AttachmentsReceived):
            self._about(event, envelope)

    def may_be_indexed(self, version_id: str, cut: Chunked) -> bool:
        """Is the version there, and the text of this cut of it cleared?"""
        texts = self.texts[version_id]
        return texts.live and texts.may_be_indexed(cut)

    def _about(self, event: Event, envelope: Envelope) -> None:
        version_id = event.version_id
        match event:
            case DocumentReceived():
                self.valid_from[version_id] = event.valid_from
            case Chunked():
                self.cuts.setdefault(version_id, {})[event.chunks_sha256] = event
            case Indexed():
                said = Saying(envelope.event_id, envelope.correlation_id, envelope.lane)
                self.sayings[version_id] = said
            case Classified():
                self.classified[version_id] = event
            case _:
                pass
        texts = self.texts.setdefault(version_id, Texts())
        texts.apply(envelope)
        if (cut := texts.searchable) is not None:
            self.indexed[version_id] = cut
        else:
            self.indexed.pop(version_id, None)
