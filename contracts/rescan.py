"""Bodies of the re-scan's HTTP API: stored texts judged by the rules that are in force now."""

from datetime import datetime
from typing import Literal

from contracts.events import Kept, Project, RescanCounts
from contracts.http import Body

RescanState = Literal["running", "finished", "cancelled", "replaced"]


class RescanRequest(Body):
    """`POST /rescan` and `POST /rescan/cancel`: one project, or all."""

    project: Project | None = None


class RescanView(Body):
    """A re-scan of a project. `done` of `receipts` receipts have been reached.

    `ruleset` are its rules; `seconds` is time at work. `waiting`: why nothing moves, if nothing
    does (`other-rules`: this process has other rules than those that the re-scan began with).
    """

    rescan_id: str
    project: str
    state: RescanState
    ruleset: str
    actor: str
    started_at: datetime
    updated_at: datetime
    receipts: int
    done: int
    counts: RescanCounts
    seconds: float
    waiting: str | None = None


class RescanReply(Body):
    """The newest re-scan of each project that was asked for.

    `ruleset`: the rules in force; `started`: projects whose re-scan this request began. A project
    that has none yet is not listed. `position`: of the log, with all that the request wrote.
    """

    ruleset: str
    rescans: list[RescanView]
    started: tuple[str, ...] = ()
    position: int = 0


class RescanHit(Body):
    """A version that a re-scan took out of the index: `verdict` is what the rules say.

    `decision`: what a person did about it since; `score` from 0 to 1.
    """

    version_id: str
    document_id: str
    name: str
    source_key: str
    subject: Literal["parsed", "converted"]
    verdict: Literal["quarantine", "block"]
    score: float
    rules: list[str]
    decision: Literal["open", "released", "rejected", "over"]
    position: int


class RescanReport(Body):
    """`GET /rescan/{id}`: what a re-scan found so far, and what it left in the index all the same.

    At most 1000 of `hits` and of `kept` are listed; `rescan.counts` counts all.
    """

    rescan: RescanView
    hits: list[RescanHit]
    kept: list[Kept]
