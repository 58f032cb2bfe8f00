"""Re-scans as the log says them, and what one makes of a version: pure folds and decisions."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from contracts.envelope import Envelope
from contracts.events import (
    Fact,
    Kept,
    KeptCode,
    RescanAdvanced,
    RescanCounts,
    RescanFinished,
    RescanStarted,
)
from contracts.rescan import RescanState, RescanView
from kernel.clearance import Text, Word
from services.scanner.domain import ScanResult

UNREADABLE: frozenset[KeptCode] = frozenset({"text-missing", "text-changed", "text-unreadable"})


@dataclass(frozen=True)
class Rescan:
    """A re-scan of a project, folded from the project's stream of re-scans."""

    begun: RescanStarted
    event_id: UUID
    until: int
    """Log position: what was received after it was judged by these rules when it came."""
    started_at: datetime
    updated_at: datetime
    version: int
    """Version of the stream after the newest event of this re-scan."""
    cursor: int = 0
    done: int = 0
    """Receipts up to the cursor."""
    counts: RescanCounts = field(default_factory=RescanCounts)
    seconds: float = 0.0
    state: RescanState = "running"

    @property
    def id(self) -> str:
        """Of the re-scan."""
        return self.begun.rescan_id

    def apply(self, event: Fact, version: int, at: datetime) -> "Rescan":
        """The re-scan after one more of its events, at a version of the stream."""
        now = replace(self, version=version, updated_at=at)
        if isinstance(event, RescanAdvanced):
            seconds = round(self.seconds + event.seconds, 3)
            now = replace(now, cursor=event.cursor, done=event.receipts, seconds=seconds)
        if isinstance(event, RescanFinished):
            now = replace(now, state=event.outcome, seconds=event.seconds)
        if isinstance(event, RescanAdvanced | RescanFinished):
            now = replace(now, counts=event.counts)
        return now

    def view(self, ruleset: str) -> RescanView:
        """For people; `ruleset` is that of this process."""
        stuck = self.state == "running" and self.begun.ruleset != ruleset
        return RescanView(
            rescan_id=self.id,
            project=self.begun.project,
            state=self.state,
            ruleset=self.begun.ruleset,
            actor=self.begun.actor,
            started_at=self.started_at,
            updated_at=self.updated_at,
            receipts=self.begun.receipts,
            done=self.done,
            counts=self.counts,
            seconds=self.seconds,
            waiting="other-rules" if stuck else None,
        )


@dataclass(frozen=True)
class Rescans:
    """All re-scans of a project, oldest first; `version` of its stream."""

    all: tuple[Rescan, ...] = ()
    version: int = 0

    @property
    def newest(self) -> Rescan | None:
        """It alone may be running."""
        return self.all[-1] if self.all else None

    @property
    def running(self) -> Rescan | None:
        """The one that is open."""
        newest = self.newest
        return newest if newest and newest.state == "running" else None

    def covered(self, ruleset: str) -> int:
        """Log position up to which every text was judged by these rules; 0: nothing was."""
        whole = [
            r.until
            for r in self.all
            if r.state == "finished"
            and r.begun.ruleset == ruleset
            and not UNREADABLE & r.counts.kept.keys()
        ]
        return max(whole, default=0)


def fold(envelopes: Iterable[Envelope]) -> Rescans:
    """The re-scans of a project after the events of its stream."""
    found: list[Rescan] = []
    version = 0
    for envelope in envelopes:
        version, at = envelope.version, envelope.recorded_at
        event = envelope.fact()
        if isinstance(event, RescanStarted):
            found.append(Rescan(event, envelope.event_id, envelope.position, at, at, version))
        elif found:
            found[-1] = found[-1].apply(event, version, at)
    return Rescans(tuple(found), version)


Outcome = Literal["clean", "quarantined", "lowered", "known", "absent"] | Kept
"""What became of a version; `lowered`: quarantined, though the rules say block."""


@dataclass
class Tally:
    """What became of versions since the last `RescanAdvanced`, on top of what was counted then."""

    outcomes: Counter[str] = field(default_factory=Counter)
    codes: Counter[KeptCode] = field(default_factory=Counter)
    kept: list[Kept] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count one version."""
        self.outcomes["looked"] += 1
        if isinstance(outcome, Kept):
            self.codes[outcome.code] += 1
            self.kept.append(outcome)
            return
        self.outcomes[outcome] += 1
        self.outcomes["quarantined"] += outcome == "lowered"

    def on(self, counts: RescanCounts) -> RescanCounts:
        """`counts` and these."""
        codes: Counter[KeptCode] = Counter(counts.kept)
        codes.update(self.codes)
        before = counts.model_dump(exclude={"kept"})
        added = {name: n + self.outcomes[name] for name, n in before.items()}
        return RescanCounts(**added, kept=dict(sorted(codes.items())))


@dataclass(frozen=True)
class Hit:
    """A stored text in which the rules found something."""

    subject: Literal["parsed", "converted"]
    text: Text
    result: ScanResult

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that it is about, each once."""
        return tuple(sorted({f.rule for f in self.result.findings}))


def to_decide(parse: Hit | None, body: Hit | None, *, hidden: bool) -> Sequence[Hit]:
    """Texts that a person has to decide about, the first that nobody released yet: the parse for
    what is `hidden` in it, the body for what is in the body.

    What only the visible text of a parse holds is in its body too, as a rule; the parse is shown
    where it is not.
    """
    if parse is not None and (hidden or body is None):
        return [parse, body] if body else [parse]
    return [body] if body else []


def is_known(word: Word, ruleset: str, covered: int) -> bool:
    """Was this text judged by these rules already?"""
    return word.ruleset == ruleset or word.position <= covered
