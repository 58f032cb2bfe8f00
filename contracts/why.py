"""Bodies of `POST /query/why`: why a passage is not among the answers to a question."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from contracts.http import Body
from contracts.query import Name, QueryRequest

Reason = Literal[
    "shown",
    "unknown",
    "erased",
    "not-indexed",
    "other-project",
    "other-generation",
    "not-valid",
    "filtered",
    "too-far",
    "not-among-candidates",
    "twin",
    "not-read",
    "below-min-score",
    "reranked-down",
    "below-top-k",
]
"""The first of these that holds, in the order in which a question goes on."""


class WhyRequest(QueryRequest):
    """A question as it was asked, and the passage. `version`: where several have a passage of that
    name; by default the one that comes nearest to being an answer."""

    chunk: Name
    version: Name | None = None


class Known(Body):
    """A window of validity, and since when, until when, the log says it."""

    valid_from: datetime
    valid_until: datetime | None
    recorded_from: datetime
    recorded_until: datetime | None


class Ahead(Body):
    """A passage that stands before, or for, the one that was asked about."""

    chunk_id: str
    version_id: str
    project: str
    title: str
    heading_path: list[str]
    score: float


class LegWhy(Body):
    """A leg and the passage.

    `brought`: it is among what the leg brought. `rank`: among all that is valid and passes; None:
    beyond `WhyReply.looked`, or not at all. `score`: cosine or BM25. `words`: of the question, in
    the passage. `before`: the last ones before it.
    """

    brought: bool
    rank: int | None
    score: float | None
    words: list[str] = Field(default_factory=list)
    before: list[Ahead] = Field(default_factory=list)


class WhyReply(Body):
    """Why. What could not be known is empty or None.

    `versions`: all that have a passage of that name. `windows`: of its version, by what was known.
    `filters`: fields of the question that it does not pass. `depth`: passages that each leg may
    bring to this question, `looked`: so many were looked at here. `fused_rank`: among all
    candidates. `place`: in the answer, or of the one it is a twin of.
    """

    reason: Reason
    why: str
    chunk_id: str
    versions: list[str]
    version_id: str | None = None
    document_id: str | None = None
    project: str | None = None
    generation: int | None = None
    title: str | None = None
    heading_path: list[str] = Field(default_factory=list)
    moment: datetime | None = None
    known: datetime | None = None
    windows: list[Known] = Field(default_factory=list)
    filters: list[str] = Field(default_factory=list)
    depth: int | None = None
    looked: int | None = None
    dense: LegWhy | None = None
    keyword: LegWhy | None = None
    fused_rank: int | None = None
    rerank_score: float | None = None
    rerank_skipped: str | None = None
    place: int | None = None
    twin_of: Ahead | None = None
    position: int = 0
