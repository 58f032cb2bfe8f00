"""Bodies of the routes under `/audit`: is the log whole, and do the stores hold what it says?

A check goes over everything in pages, each a short request; the caller carries where it is.
"""

from typing import Literal

from pydantic import Field

from contracts.events import Project, Sha256
from contracts.http import LAST_POSITION, Body

FaultCode = Literal[
    "missing",
    "data-changed",
    "link-broken",
    "before-missing",
    "not-erased",
    "words-left",
    "tail-missing",
    "not-appended",
    "head-missing",
    "fingerprint",
    "anchor",
]
"""What is wrong with the log.

`missing`: no event has this position. `data-changed`: the event's data are not those that were
recorded. `link-broken`: another column is not what was recorded, or the event does not follow the
one before it in its stream. `before-missing`: the stream's event before it is gone. `not-erased`:
the words of an event were taken out, and nobody had its version erased. `words-left`: a redacted
event says more than an erasure leaves. `tail-missing`: the log ends before its head.
`not-appended`: events beyond the head, or before the first, that no append wrote.
`head-missing`: nothing says where the log ends.
`fingerprint`: the links up to the head are not those that were appended. `anchor`: those up to an
anchor are not those that were there when its fingerprint was written down.
"""


class Fault(Body):
    """Something in the log is not as it was recorded; `position`: of the event, or where one should
    be."""

    position: int
    code: FaultCode
    stream_id: str | None = None


class Anchor(Body):
    """The fingerprint of the log up to a position, as somebody wrote it down."""

    position: int = Field(ge=1, le=LAST_POSITION)
    fingerprint: Sha256


class ChainRequest(Body):
    """`POST /audit/chain`: check up to `limit` events after position `after`.

    `fingerprint`: that of the log up to `after`, as the page before said; without it, only from 0
    on, fingerprints cannot be compared.
    """

    after: int = Field(0, ge=0, le=LAST_POSITION)
    fingerprint: Sha256 | None = None
    anchors: tuple[Anchor, ...] = Field((), max_length=100)
    limit: int = Field(20_000, ge=1, le=100_000)


class ChainPage(Body):
    """What a page of the log is like.

    `position`: the last that was looked at; `head`: the end of the log, when `done` the same.
    `fingerprint`: of the log up to `position`, None where it is unknown. `events`: how many were
    looked at, `redacted`: how many of them lost words to an erasure. `found`: how many faults there
    are, `faults`: the first of them.
    """

    position: int
    head: int
    fingerprint: Sha256 | None
    done: bool
    events: int
    redacted: int
    found: int
    faults: tuple[Fault, ...]


Check = Literal["projection", "index", "bytes"]
"""Against what the log is held: rows that are read, both legs of the search, stored bytes."""


class Finding(Body):
    """Something that is not what the log says of it.

    `what` says of which kind it is, `id` which one: a row, a point, a blob, a version; `count`: how
    many of this kind the version has, `id` is the first of them. `at`: position of the document's
    newest event. `left`: why it was not repaired, where that is known.
    """

    check: Check
    what: str
    id: str
    project: Project
    document_id: str | None = None
    version_id: str | None = None
    count: int = Field(1, ge=1)
    at: int = 0
    repaired: bool = False
    left: str | None = None


class AuditRequest(Body):
    """`POST /audit/projection`, `/audit/index`, `/audit/bytes`: look at documents whose receipt
    comes after position `after`, at most `limit` of them.

    `repair`: put right what can be; without it nothing is changed.
    """

    after: int = Field(0, ge=0, le=LAST_POSITION)
    project: Project | None = None
    limit: int = Field(50, ge=1, le=1000)
    repair: bool = False


class AuditPage(Body):
    """What a page of documents is like.

    `position`: of the receipt of the last document that was looked at; `done`: there are no more,
    and what belongs to no document was looked for, too. `moving`: of how many documents something
    differs that is still being worked on. `checked`: things that were compared. `found`: how many
    findings there are, `repaired` how many of them were put right, `findings`: the first of them.
    """

    position: int
    done: bool
    documents: int
    moving: int
    checked: int
    found: int
    repaired: int
    findings: tuple[Finding, ...]


class AuditSize(Body):
    """`GET /audit`: how much there is to look at."""

    head: int
    documents: int
