"""Which texts of a version may be indexed, and which of them is: folded from the log."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

from contracts.envelope import Envelope
from contracts.events import (
    Chunked,
    Converted,
    DocumentReceived,
    Erased,
    Event,
    Failed,
    Indexed,
    Released,
    ScanVerdict,
)
from contracts.http import Status
from contracts.states import WORKING, moves, status_after

Clearance = Literal["cleared", "withdrawn", "unknown"]
"""May a text be indexed? `withdrawn`: it might once. `unknown`: nobody ever cleared it."""


class Text(NamedTuple):
    """An exact text: a parse, or a body with its meta."""

    sha256: str
    meta_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """The newest word about a text: a verdict, or (`ruleset` None) a release by a person."""

    clear: bool
    position: int
    ruleset: str | None = None
    trusted: bool = False
    rescan: str | None = None
    lowered: bool = False


class Streams(Protocol):
    """The part of the log that is read here."""

    async def stream(self, stream_id: str) -> list[Envelope]: ...


class Texts:
    """The texts of one version after events of its own stream, and of its document's too, where
    receipts and erasures count. A later word about a text replaces an earlier one.
    """

    def __init__(self, envelopes: Iterable[Envelope] = ()) -> None:
        self.at = 0
        """Version of the version's stream."""
        self.words: dict[Text, Word] = {}
        self.jobs: dict[UUID, Status] = {}
        """Attempts in order, and the state of each."""
        self.cancelled: set[UUID] = set()
        self.live = True
        """Is the version there? Not if it was blocked or erased, until it is received again."""
        self.receipt: Envelope | None = None
        """The newest one."""
        self.cut: Chunked | None = None
        """The newest cut."""
        self.indexed: Chunked | None = None
        """The cut that was indexed last."""
        self._once: set[Text] = set()
        self._parse: dict[UUID, Text] = {}
        self._body: dict[UUID, Text] = {}
        self._made_of: dict[Text, Text] = {}
        self._cuts: dict[str, Chunked] = {}
        for envelope in envelopes:
            self.apply(envelope)

    def apply(self, envelope: Envelope) -> None:
        """Fold one event of the version in."""
        event, job = envelope.event(), envelope.correlation_id
        if envelope.stream_id.startswith("version-"):
            self.at = envelope.version
        self._move(event, job)
        match event:
            case DocumentReceived():
                self.receipt, self.live = envelope, True
            case ScanVerdict():
                self._judged(event, job, _word(event, envelope.position))
                self.live = self.live and event.verdict != "block"
            case Released():
                self._judged(event, job, Word(True, envelope.position))
            case Converted():
                body = Text(event.body_sha256, event.meta_sha256)
                self._body[job] = body
                if job in self._parse:
                    self._made_of[body] = self._parse[job]
            case Chunked():
                self.cut = self._cuts[event.chunks_sha256] = event
            case Indexed():
                self.indexed = self._cuts.get(event.chunks_sha256)
            case Erased():
                self.live, self.indexed, self.cut = False, None, None
            case _:
                pass

    def _move(self, event: Event, job: UUID) -> None:
        if isinstance(event, Failed) and event.code == "cancelled":
            self.cancelled.add(job)
        status = status_after(event)
        if isinstance(event, Erased) and self.jobs:
            job = next(reversed(self.jobs))  # a tombstone is of no job: it ends the newest
        known = self.jobs.get(job)
        side = isinstance(event, Failed) and known == "indexed"
        if status and not side and job not in self.cancelled and moves(known, event):
            self.jobs[job] = status

    def _judged(self, event: ScanVerdict | Released, job: UUID, word: Word) -> None:
        text = Text(event.text_sha256, event.meta_sha256)
        self.words[text] = word
        if word.clear:
            self._once.add(text)
            if event.subject == "parsed":
                self._parse[job] = text

    def clearance(self, body_sha256: str, meta_sha256: str) -> Clearance:
        """May this body be indexed, with this meta? Its parse counts too, with its hidden text."""
        body = Text(body_sha256, meta_sha256)
        if body not in self._once:
            return "unknown"
        good = self.words[body].clear and not self.parse_withdrawn(body_sha256, meta_sha256)
        return "cleared" if good else "withdrawn"

    def parse_withdrawn(self, body_sha256: str, meta_sha256: str) -> bool:
        """Was the parse that this body was made of taken back since?"""
        parse = self._made_of.get(Text(body_sha256, meta_sha256))
        return parse is not None and not self.words[parse].clear

    def may_be_indexed(self, cut: Chunked) -> bool:
        """Is the text of a cut cleared?"""
        return self.clearance(cut.body_sha256, cut.meta_sha256) == "cleared"

    @property
    def searchable(self) -> Chunked | None:
        """What must be in the index: the cut that was indexed last, if nothing took it back."""
        cut = self.indexed
        return cut if cut and self.live and self.may_be_indexed(cut) else None

    @property
    def under_way(self) -> bool:
        """Will a cut that is cleared be in the index soon, and is it not yet?"""
        cut = self.cut
        if cut is None or cut is self.indexed or not self.live or not self.may_be_indexed(cut):
            return False
        return "indexing" in self.jobs.values()

    def at_stake(self) -> list[tuple[Text | None, Text | None]]:
        """Texts that are in the index, or cleared and on their way: `(body, its parse)`."""
        found: list[tuple[Text | None, Text | None]] = []
        if not self.live:
            return found
        if cut := self.searchable:
            body = Text(cut.body_sha256, cut.meta_sha256)
            found.append((body, self._made_of.get(body)))
        job = next((j for j, s in reversed(self.jobs.items()) if s in WORKING), None)
        if job is not None:
            on_its_way = (self._clear(self._body.get(job)), self._clear(self._parse.get(job)))
            if any(on_its_way) and on_its_way not in found:
                found.append(on_its_way)
        return found

    def _clear(self, text: Text | None) -> Text | None:
        return text if text in self.words and self.words[text].clear else None

    @property
    def job(self) -> UUID | None:
        """The newest attempt that was not cancelled."""
        return next((j for j in reversed(self.jobs) if j not in self.cancelled), None)


def _word(event: ScanVerdict, position: int) -> Word:
    return Word(
        clear=event.verdict == "clean",
        position=position,
        ruleset=event.ruleset,
        trusted=event.bypassed,
        rescan=event.rescan,
        lowered=event.lowered,
    )


async def texts_of_version(log: Streams, event: Event) -> Texts:
    """The texts of the version that `event` is about, by its own stream."""
    return Texts(await log.stream(f"version-{event.version_id}"))
