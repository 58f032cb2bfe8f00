"""Bodies of the HTTP API that look at a document over time: its history, and what changed."""

from datetime import datetime
from typing import Literal

from contracts.http import Body, Status

SectionKind = Literal["same", "changed", "added", "removed", "moved", "renamed"]
HunkKind = Literal["same", "changed", "added", "removed"]
PieceKind = Literal["same", "added", "removed"]


class Range(Body):
    """UTF-8 bytes `[byte_start, byte_end)` of one side's body, `GET /documents/{version}/body`."""

    byte_start: int
    byte_end: int


class SectionPlace(Range):
    """A section of one side: its heading with the text below it, up to the next heading.

    `heading_path`: as search results have it; empty for the text before the first heading.
    """

    heading_path: list[str]


class Piece(Body):
    """A run of text that both sides have, or one of them."""

    kind: PieceKind
    text: str


class Hunk(Body):
    """Lines of a section: the same, only in one side, or the same line with other words.

    The text of the old side is that of its pieces that are `same` or `removed`, of the new side of
    those that are `same` or `added`. `left_out`: bytes of lines whose text is not given; it is in
    the bodies.
    """

    kind: HunkKind
    old: Range | None = None
    new: Range | None = None
    pieces: tuple[Piece, ...] = ()
    left_out: int = 0


class SectionDiff(Body):
    """A section on both sides, or on the one that has it.

    `kind` names the first that is true of: added, removed, changed (its text), renamed (its
    heading), moved (to another place among its neighbours, or below another heading), same; `moved`
    and `renamed` may be true besides. `heading`: the words of a heading that was renamed, marked.
    `coarse`: the change is too large to be told line by line.
    """

    kind: SectionKind
    moved: bool = False
    renamed: bool = False
    old: SectionPlace | None = None
    new: SectionPlace | None = None
    heading: tuple[Piece, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    coarse: bool = False


class DiffSide(Body):
    """A version that is compared. The window is the one that it was taken for, if it has one."""

    version_id: str
    document_id: str
    source_id: str
    project: str
    name: str
    title: str
    body_sha256: str
    body_bytes: int
    received_at: datetime
    valid_from: datetime
    valid_until: datetime | None


class DiffReply(Body):
    """`GET /documents/{id}/diff`: what changed from one version to another, section by section.

    Sections are in the order of the new side, those that went where they were. Sections that are
    the same are only counted unless they were asked for. Texts and headings are a stranger's words.
    `left_out`: sections beyond what one answer lists. `merged`: a side has too many headings; the
    deepest ones count as text.
    """

    old: DiffSide
    new: DiffSide
    counts: dict[SectionKind, int]
    sections: tuple[SectionDiff, ...]
    left_out: int = 0
    merged: bool = False


Cause = Literal["received", "superseded", "reinstated"]


class HistoryEntry(Body):
    """One stretch of valid time of a version, or a version that has none.

    `cause`: why it became valid: it is the document's first (`received`), it took another's place
    (`superseded`), or its content returned (`reinstated`). `recorded_at`: since when this system
    knows it; `ended_at`: since when it knows that it ended. `actor` sent it, `via` tells how.
    `changes`: sections by kind, against the entry before in valid time; None where that would be
    dear, or one of the texts cannot be read.
    """

    version_id: str
    source_id: str
    name: str
    title: str
    status: Status
    current: bool
    valid_from: datetime | None
    valid_until: datetime | None
    received_at: datetime
    recorded_at: datetime | None
    ended_at: datetime | None = None
    ended_by: str | None = None
    cause: Cause
    actor: str
    via: str
    size_bytes: int
    body_bytes: int | None
    changes: dict[SectionKind, int] | None = None


class History(Body):
    """`GET /documents/{id}/history`: the line of a document, newest valid time first; versions that
    were never valid (in review, failed, erased) come last."""

    document_id: str
    project: str
    source_key: str
    title: str
    entries: list[HistoryEntry]
