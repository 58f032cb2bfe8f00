"""What the pages show of a diff and of a history: pure functions from contract models."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from urllib.parse import urlencode

from markupsafe import Markup, escape

from contracts.diff import (
    DiffReply,
    HistoryEntry,
    Hunk,
    Piece,
    PieceKind,
    SectionDiff,
    SectionKind,
    SectionPlace,
)
from contracts.http import VersionView
from kernel.fence import visible
from kernel.reflow import reflow
from services.ui.view import Validity, validity

KINDS: tuple[SectionKind, ...] = ("changed", "added", "removed", "renamed", "moved", "same")
TONES = {
    "changed": "warn", "added": "good", "removed": "bad", "renamed": "busy-still",
    "moved": "busy-still", "same": "",
}  # fmt: skip
_TAGS = {"removed": "del", "added": "ins"}


@dataclass(frozen=True)
class Row:
    """Lines of a section beside each other; `both` is for where there is no room for that.

    A row that is the same has one text. `gap`: bytes that are not shown.
    """

    kind: str
    old: Markup
    new: Markup
    both: Markup
    gap: int = 0


@dataclass(frozen=True)
class Change:
    """A section with what changed in it. `above`: the headings above its own."""

    number: int
    kind: SectionKind
    notes: tuple[str, ...]
    above: tuple[str, ...]
    heading: Markup
    rows: list[Row]
    coarse: bool
    old_link: str | None
    new_link: str | None

    @property
    def tone(self) -> str:
        """The colour of its kind."""
        return TONES[self.kind]


def changes(reply: DiffReply) -> list[Change]:
    """The sections of a diff, in their order."""
    sides = (reply.old.version_id, reply.new.version_id)
    return [_change(n, section, sides) for n, section in enumerate(reply.sections, 1)]


def _change(number: int, section: SectionDiff, sides: tuple[str, str]) -> Change:
    place = section.new or section.old
    path = [visible(part) for part in place.heading_path] if place else []
    heading = marked(section.heading, {"same", "removed", "added"}) if section.heading else None
    also = {"renamed": section.renamed, "moved": section.moved}
    return Change(
        number=number,
        kind=section.kind,
        notes=tuple(n for n, true in also.items() if true and n != section.kind),
        above=tuple(path[:-1]),
        heading=heading or escape(path[-1] if path else ""),
        rows=[_row(h) for h in section.hunks],
        coarse=section.coarse,
        old_link=_link(sides[0], section.old),
        new_link=_link(sides[1], section.new),
    )


def _link(version_id: str, place: SectionPlace | None) -> str | None:
    """The page of the version with the section highlighted."""
    if place is None or place.byte_start == place.byte_end:
        return None
    query = urlencode({"start": place.byte_start, "end": place.byte_end})
    return f"/ui/documents/{version_id}?{query}#passage"


def _row(hunk: Hunk) -> Row:
    if hunk.left_out:
        return Row(hunk.kind, Markup(), Markup(), Markup(), hunk.left_out)
    plain = hunk.kind != "changed"
    return Row(
        kind=hunk.kind,
        old=marked(hunk.pieces, {"same", "removed"}, plain=plain),
        new=marked(hunk.pieces, {"same", "added"}, plain=plain),
        both=marked(hunk.pieces, {"same", "removed", "added"}, plain=plain),
    )


def marked(pieces: Sequence[Piece], kinds: set[PieceKind], *, plain: bool = False) -> Markup:
    """The pieces of some kinds, what went in `<del>` and what came in `<ins>`.

    `plain`: without these, where the whole line went or came.
    """
    return Markup().join(_piece(p, plain) for p in pieces if p.kind in kinds)


def _piece(piece: Piece, plain: bool) -> Markup:
    text = escape(visible(reflow(piece.text)))
    tag = _TAGS.get(piece.kind)
    if tag is None or plain:
        return text
    # A blank at the edge is no part of the mark: only words are struck or underlined.
    words = text.strip()
    start = text.index(words) if words else 0
    before, behind = text[:start], text[start + len(words) :]
    return Markup("{}<{}>{}</{}>{}").format(
        before, tag, words or text, tag, behind if words else ""
    )


@dataclass(frozen=True)
class Choice:
    """A version to compare with."""

    version_id: str
    number: int
    validity: Validity | None
    current: bool


def choices(versions: Sequence[VersionView], now: datetime) -> list[Choice]:
    """All versions of a document that have a text, newest first; the oldest is number 1."""
    return [
        Choice(
            version_id=v.version_id,
            number=number,
            validity=validity(v.valid_from, v.valid_until, now) if v.windows else None,
            current=v.current,
        )
        for number, v in reversed(list(enumerate(versions, 1)))
        if v.body_sha256 is not None
    ]


@dataclass(frozen=True)
class Counted:
    """How many sections are of a kind."""

    kind: SectionKind
    number: int
    tone: str


def counted(counts: dict[SectionKind, int] | None) -> list[Counted]:
    """The kinds that there are, those that changed first."""
    return [
        Counted(kind, (counts or {})[kind], TONES[kind])
        for kind in KINDS
        if (counts or {}).get(kind)
    ]


@dataclass(frozen=True)
class Stretch:
    """A line of the history."""

    entry: HistoryEntry
    validity: Validity | None
    counts: list[Counted]
    before: str | None
    """The version that it is compared with."""


def stretches(entries: Sequence[HistoryEntry], now: datetime) -> list[Stretch]:
    """The history with what changed from each entry to the one before it in valid time."""
    valid = [e for e in entries if e.valid_from is not None]
    before = {id(e): older.version_id for e, older in pairwise(valid)}
    return [
        Stretch(
            entry=e,
            validity=validity(e.valid_from, e.valid_until, now) if e.valid_from else None,
            counts=[c for c in counted(e.changes) if c.kind != "same"],
            before=before.get(id(e)),
        )
        for e in entries
    ]
