"""What the system must answer, in a few plain rules. Shares nothing with the product but words.

A *line* is a document's history: rows of (version, from, until). A version put at an instant is
valid until the next row begins; it shortens the row that it falls into, and no other. That it was
put there stands, also inside its own row: what is put before ends there. Of two with one beginning
the one received later is valid, whatever was ready first. Taking a version away leaves its time
empty. A version is *shown* while it is in the index.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Kind = Literal["plain", "doubtful", "hostile", "late"]
"""How rules judge a text: clean; a person decides; deleted; clean until the rules are stricter."""
State = Literal["working", "indexed", "review", "rejected", "failed", "blocked", "erased"]
Answer = Literal["received", "reinstated", "duplicate", "not-indexed-yet"]
Place = tuple[str, str]
"""(project, source key): a document."""


@dataclass(frozen=True)
class Text:
    """What a version says; `marker` is a word that is in no other text."""

    marker: str
    kind: Kind


@dataclass
class Row:
    """A version is the valid one in [from_, until)."""

    version: Text
    from_: datetime
    until: datetime | None

    def holds(self, moment: datetime) -> bool:
        return self.from_ <= moment and (self.until is None or moment < self.until)


@dataclass
class Version:
    """The newest attempt at a version, and what is shown of it."""

    valid_from: datetime
    trusted: bool
    state: State = "working"
    shown: bool = False
    over: bool = False
    """Sent again, it is tried again: its newest attempt failed, or it was deleted."""
    scan: Literal["parsed", "converted"] = "parsed"
    """Which text a person must decide about next."""
    trusted_text: bool = False
    """Was the text that is shown let through because of trust?"""


@dataclass
class Document:
    """A line of versions."""

    versions: dict[Text, Version] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    said: set[tuple[Text, datetime]] = field(default_factory=set)
    """Where each version was put, or is to be put when it is ready."""

    def put(self, version: Text, at: datetime, later: Collection[Text] = ()) -> None:
        """From `at` on it is the valid one; of two with one beginning the later put wins, unless
        the other is one of `later`."""
        self.said.add((version, at))
        rows = [part for row in self.rows for part in self._parts(row)]
        rows = [r for r in rows if (r.version, r.from_) != (version, at)]
        lost = [n for n, r in enumerate(rows) if r.from_ == at and r.version in later]
        if lost:
            rows.insert(lost[0], Row(version, at, at))
        else:
            until = min((r.from_ for r in rows if r.from_ > at), default=None)
            for row in rows:
                if row.from_ <= at and (row.until is None or row.until > at):
                    row.until = at
            place = sum(r.from_ <= at for r in rows)
            rows.insert(place, Row(version, at, until))
        self.rows = []
        for row in rows:
            last = self.rows[-1] if self.rows else None
            if last and last.version == row.version and last.until == row.from_:
                last.until = row.until
            else:
                self.rows.append(row)

    def _parts(self, row: Row) -> list[Row]:
        """A row, cut where its version was put inside it."""
        cuts = sorted(
            at for v, at in self.said if v == row.version and row.from_ < at and row.holds(at)
        )
        begins, ends = [row.from_, *cuts], [*cuts, row.until]
        return [Row(row.version, a, b) for a, b in zip(begins, ends, strict=True)]

    def take(self, version: Text) -> None:
        """Nothing is left of a version but a tombstone."""
        self.rows = [r for r in self.rows if r.version != version]
        self.unsay(version)

    def unsay(self, version: Text) -> None:
        """It is to be put nowhere."""
        self.said = {s for s in self.said if s[0] != version}

    def is_past(self, version: Text, now: datetime) -> bool:
        """Was it valid once, and is it neither now nor later?"""
        ends = [r.until for r in self.rows if r.version == version]
        return bool(ends) and all(end is not None and end <= now for end in ends)

    def at(self, moment: datetime | None) -> set[Text]:
        """What a question about an instant may find; None: about all times."""
        rows = [r for r in self.rows if moment is None or r.holds(moment)]
        return {r.version for r in rows if self.versions[r.version].shown}


@dataclass
class Reference:
    """All documents, and the rules in force."""

    documents: dict[Place, Document] = field(default_factory=dict)
    strict: bool = False
    released: dict[tuple[Place, Text], bool] = field(default_factory=dict)

    def hit(self, text: Text, version: Version) -> bool:
        """Do the rules in force send this text to a person?"""
        bad = text.kind == "doubtful" or (text.kind == "late" and self.strict)
        return bad and not version.trusted

    def answer(self, place: Place, text: Text, at: datetime | None, now: datetime) -> Answer:
        """What bytes are to a document: to be taken in, back again, or nothing new; `at`: from when
        on they are said to be valid."""
        document = self.documents.get(place, Document())
        version = document.versions.get(text)
        if version is None or version.over:
            return "received"
        if at is None:
            return "reinstated" if document.is_past(text, now) else "duplicate"
        rows = [r for r in document.rows if r.version == text]
        if not rows:
            return "duplicate" if at == version.valid_from else "not-indexed-yet"
        known = (text, at) in document.said and any(r.holds(at) for r in rows)
        return "duplicate" if known else "reinstated"

    def receive(self, place: Place, text: Text, at: datetime, trusted: bool) -> None:
        """Bytes are taken in, valid from `at` on."""
        self._begin(self.documents.setdefault(place, Document()), text, Version(at, trusted))

    def reinstate(self, place: Place, text: Text, at: datetime) -> None:
        """Content returned."""
        self.documents[place].put(text, at)

    def _begin(self, document: Document, text: Text, fresh: Version) -> None:
        old = document.versions.get(text)
        if old is not None:
            fresh.shown, fresh.trusted_text = old.shown, old.trusted_text
            if old.state in ("erased", "blocked"):  # it comes anew, after what came meanwhile
                del document.versions[text]
        document.versions[text] = fresh
        if all(r.version != text for r in document.rows):
            document.unsay(text)
        document.said.add((text, fresh.valid_from))

    def settle(self, place: Place, text: Text) -> None:
        """The services have done with the newest attempt at a version."""
        document = self.documents[place]
        version = document.versions[text]
        if version.state != "working":
            return
        if text.kind == "hostile" and not version.trusted:
            document.take(text)
            version.state, version.shown, version.over = "blocked", False, True
        elif self.hit(text, version):
            version.state, version.shown, version.scan = "review", False, "parsed"
        else:
            self._show(document, text, version)

    def _show(self, document: Document, text: Text, version: Version) -> None:
        version.state, version.shown = "indexed", True
        version.trusted_text = version.trusted
        if all(r.version != text for r in document.rows):
            order = list(document.versions)
            document.put(text, version.valid_from, later=order[order.index(text) + 1 :])

    def cancel(self, place: Place, text: Text) -> bool:
        """End the newest attempt. Was there anything to end?"""
        version = self.documents[place].versions[text]
        if version.state not in ("working", "review"):
            return False
        version.state, version.over = "failed", True
        return True

    def retry(self, place: Place, text: Text) -> bool:
        """Try a version again. Not if its bytes are gone."""
        document = self.documents[place]
        version = document.versions[text]
        if version.state in ("blocked", "erased"):
            return False
        self._begin(document, text, Version(version.valid_from, version.trusted))
        return True

    def decide(self, place: Place, text: Text, decision: Literal["release", "reject"]) -> bool:
        """A person decides about what waits; a released parse is judged once more as a body."""
        document = self.documents[place]
        version = document.versions[text]
        if version.state != "review":
            return False
        if decision == "reject":
            version.state = "rejected"
            if version.scan == "converted":
                for key in self.released:
                    if key[0][0] == place[0] and key[1] == text:
                        self.released[key] = False
        elif version.scan == "parsed" and self.hit(text, version):
            version.scan = "converted"
        else:
            if version.scan == "converted":
                self.released[place, text] = True
            self._show(document, text, version)
        return True

    def rescan(self) -> None:
        """Everything that is shown is judged by the rules in force."""
        for place, document in self.documents.items():
            for text, version in document.versions.items():
                bad = text.kind in ("doubtful", "hostile") or (text.kind == "late" and self.strict)
                kept = version.trusted_text or self.released.get((place, text), False)
                if version.shown and bad and not kept:
                    version.state, version.shown, version.scan = "review", False, "converted"

    def erase(self, place: Place, only: Text | None = None) -> int:
        """All versions of a document, or one; how many were there. What the scanner blocked counts:
        its name is erased now."""
        document = self.documents[place]
        there = 0
        for text, version in document.versions.items():
            if only in (None, text) and version.state != "erased":
                version.state, version.shown, version.over = "erased", False, True
                document.take(text)
                there += 1
        return there

    def found(self, project: str, moment: datetime | None) -> set[tuple[str, str]]:
        """(source key, marker) of all that a question in a project finds, at one instant."""
        return {
            (place[1], text.marker)
            for place, document in self.documents.items()
            if place[0] == project
            for text in document.at(moment)
        }

    def known(
        self, then: "Reference", project: str, moment: datetime | None
    ) -> set[tuple[str, str]]:
        """As `found`, by what was known `then`. What left since, and is not back, is not told."""
        return {
            (place[1], text.marker)
            for place, document in then.documents.items()
            if place[0] == project
            for text in document.at(moment)
            if self.documents[place].versions[text].shown
        }

    def kept(self, marker: str) -> bool:
        """May this text be anywhere at all?"""
        return any(
            text.marker == marker and version.state not in ("erased", "blocked")
            for document in self.documents.values()
            for text, version in document.versions.items()
        )
