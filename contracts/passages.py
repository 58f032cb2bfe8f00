"""Bodies of the HTTP API that give out text to be cited: a passage with what surrounds it, and the
context for a model."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from contracts.artifacts import Span
from contracts.diff import Range, SectionPlace
from contracts.http import Body
from contracts.query import QueryRequest

MOST_NEIGHBOURS = 5


class Neighbour(Range):
    """A passage before or after; `text` is a stranger's, as that of `PassageView` is."""

    chunk_id: str
    heading_path: list[str]
    text: str


class PassageView(Range):
    """`GET /documents/{id}/passage`: the exact words of a range of a body, and where they stand.

    `text` is a stranger's text, not fenced: it is for a person, or for a check of a citation.
    `source`: its key, or the file's name where the bytes are the key. `section`: the innermost
    section that the range begins in, with what is below it; `parent`: the one around that.
    `before`, `after`: the passages of the index next to the range, in the order of the body.
    `spans`: where in the original it came from, as `GET /documents/{id}/places` has them.
    """

    document_id: str
    version_id: str
    source_id: str
    project: str
    source: str
    title: str
    media_type: str
    language: str | None
    valid_from: datetime
    valid_until: datetime | None
    current: bool
    body_sha256: str
    body_bytes: int
    heading_path: list[str]
    text: str
    section: SectionPlace
    parent: SectionPlace | None
    before: list[Neighbour]
    after: list[Neighbour]
    spans: list[Span]


class ContextRequest(QueryRequest):
    """`POST /context`: a question with its filters, and how much text a model is to be given.

    `top_k`: passages that are looked at. `budget`: tokens of `ContextReply.context` at most, as the
    installation's embedder counts them; other models count otherwise. `neighbours`: so many
    passages before and after each are given with it. `section`: the whole section around each, with
    what is below it, where the budget allows. `order` reading: by document, in the order of its
    text; else the best first.
    """

    top_k: int = Field(20, ge=1, le=100)
    budget: int = Field(3000, ge=200, le=200_000)
    neighbours: int = Field(0, ge=0, le=MOST_NEIGHBOURS)
    section: bool = False
    order: Literal["score", "reading"] = "score"


class ContextSource(Range):
    """What `[number]` stands for; the bytes are those of the version's body that are quoted.

    `source`: as in `PassageView`.
    `chunk_ids`: the found passages that are in it, best first. `score`: of the best. `cut`: only
    the beginning of the passage is quoted, since nothing else fits the budget.
    """

    number: int
    document_id: str
    version_id: str
    source_id: str
    project: str
    source: str
    title: str
    heading_path: list[str]
    valid_from: datetime
    valid_until: datetime | None
    chunk_ids: list[str]
    score: float
    cut: bool = False


class ContextReply(Body):
    """Sources as one text for a model, best first or in reading order.

    Each stands between two lines `<NAME source="1" note="…">` and `</NAME>`, NAME being `fence`,
    which is drawn anew for each reply; its first line is `[1] Title (source)`. `tokens`: of
    `context`. `left_out`: found passages that did not fit. `gone`: those whose text went meanwhile.
    """

    context: str
    sources: list[ContextSource]
    tokens: int
    budget: int
    left_out: int
    gone: int
    fence: str
    reranked: bool
    score_kind: Literal["rrf", "scores", "rerank"]
    rerank_skipped: str | None = None
    answerable: float | None = None
    """As in `QueryReply`."""
    position: int
