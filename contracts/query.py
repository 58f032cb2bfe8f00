"""Bodies of `POST /query`. `Hit` and `QueryReply` are a contract: they only ever grow."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from contracts.events import Project
from contracts.http import LAST_POSITION, AsOf, Body, Plain, ValidFrom

Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")]
"""As passages have it: `en`, `sr`."""
Type = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.+/-]{0,127}$")]
Name = Annotated[Plain, StringConstraints(min_length=1, max_length=128)]


class QueryRequest(Body):
    """`POST /query`."""

    query: str = Field(min_length=1, max_length=8192)
    top_k: int = Field(5, ge=1, le=100)
    as_of: AsOf | None = None
    """When the passages are valid: by default now, or at `recorded_as_of`."""
    recorded_as_of: AsOf | None = None
    """Answer from what was known then: which versions there were, and when they were valid."""
    include_historical: bool = False
    """Every version, whenever it is valid; with `recorded_as_of`, every one that was known then."""
    project: Project = "default"
    projects: Annotated[tuple[Project, ...], Field(min_length=1, max_length=16)] | None = None
    """Several knowledge bases at once, instead of `project`."""
    min_score: float | None = Field(None, ge=0, le=1)
    """Drop passages that the reranker scores below; without a reranking it says nothing."""
    min_position: int | None = Field(None, ge=0, le=LAST_POSITION)
    """Wait until the answer reflects the log up to here: what a write replied as `position`."""
    explain: bool = False
    """Say of each hit and of the reply how they came about."""
    heading_prefix: Annotated[tuple[Plain, ...], Field(max_length=16)] = ()
    """Passages under these headings, from the outermost."""
    languages: Annotated[tuple[Language, ...], Field(max_length=16)] = ()
    """Passages in one of these."""
    documents: Annotated[tuple[Name, ...], Field(max_length=500)] = ()
    """Passages of one of these documents, by their ids."""
    types: Annotated[tuple[Type, ...], Field(max_length=32)] = ()
    """Of files of one of these: a media type, a family (`pdf`, `word`) or an ending (`docx`)."""
    tags: Annotated[tuple[Name, ...], Field(max_length=32)] = ()
    """Of versions with all of these."""
    classes: Annotated[tuple[Name, ...], Field(max_length=32)] = ()
    """Of versions in one of these classes, or in one below it."""
    dated_from: ValidFrom | None = None
    """The validity that lets a passage pass begins then (a day: its start, UTC) or later …"""
    dated_until: AsOf | None = None
    """… and then (a day: its end, UTC) or earlier."""
    received_from: ValidFrom | None = None
    """Its file came in then or later …"""
    received_until: AsOf | None = None
    """… and then or earlier."""
    fold: bool = True
    """Near-identical passages are one hit, with its `twins`; `top_k` counts hits."""
    max_distance: float | None = Field(None, ge=0, le=2)
    """Nothing farther than this from the question in the dense leg (1 - cosine)."""

    @model_validator(mode="after")
    def _one_or_several(self) -> "QueryRequest":
        if self.projects is not None and "project" in self.model_fields_set:
            raise ValueError("name project or projects")
        return self

    @model_validator(mode="after")
    def _in_order(self) -> "QueryRequest":
        for what in ("dated", "received"):
            first, last = getattr(self, f"{what}_from"), getattr(self, f"{what}_until")
            if first is not None and last is not None and first > last:
                raise ValueError(f"{what}_from is after {what}_until")
        return self

    @property
    def bases(self) -> tuple[str, ...]:
        """The projects that are asked, each once."""
        return tuple(dict.fromkeys(self.projects or (self.project,)))


Passed = Literal["payload", "named", "sifted"]
"""How the dense leg of a project keeps to what is valid: by the spans that the vectors carry, by a
list of the valid versions, or by asking Postgres about what was found."""


class LegPlace(Body):
    """Where a leg had a passage.

    `rank`: among what is valid; it counts in the fusion. `raw_rank`: in what the leg brought.
    `score`: cosine similarity or BM25. `words`: those of the question that the passage holds, as
    the keyword leg reads them (`explain.words` of the reply).
    """

    rank: int | None
    raw_rank: int
    score: float
    words: list[str] = Field(default_factory=list)


class HitExplain(Body):
    """How a hit came about.

    `fused_rank`: before any reranking. `recorded_from`, `recorded_until`: since when, and until
    when, the log says what makes the passage valid at the asked moment.
    """

    fused_rank: int
    dense: LegPlace | None
    keyword: LegPlace | None
    rerank_score: float | None
    generation: int
    passed: Passed
    recorded_from: datetime
    recorded_until: datetime | None


class Asked(Body):
    """A project as it was asked.

    `named`: versions that were named to the dense leg as the only ones; None: none were. `also`,
    `without`: versions about which the vectors were told better.
    """

    project: str
    generation: int
    embedder: str
    passed: Passed
    named: int | None
    also: int
    without: int


class LegCount(Body):
    """What a leg brought, and how much of it Postgres confirmed."""

    found: int
    valid: int


class QueryExplain(Body):
    """How a reply came about.

    `words`: of the question, each with the terms that stand for it. `moment`, `known`: at what time
    passages had to be valid, by what was known when; None: any time, and now. `depth`: passages
    that each leg may bring. `twins`: candidates that were folded into others. `rounds`: looks, more
    than one where validity changed meanwhile, or twins took too many places. `took_ms`: by step;
    the legs run beside each other, and later looks are added up.
    """

    moment: datetime | None
    known: datetime | None
    asked: list[Asked]
    keyword_mode: str
    words: dict[str, list[str]]
    depth: int
    dense: LegCount
    keyword: LegCount
    candidates: int
    twins: int
    reranked: int
    rounds: int
    took_ms: dict[str, float]


class Twin(Body):
    """A passage that says the same as the hit that it stands under: its words are the same but for
    few of them, and numbers, names, denials and duties are. Where it stands is as in a hit."""

    chunk_id: str
    source_id: str
    document_id: str
    version_id: str
    project: str
    title: str
    heading_path: list[str]
    byte_start: int
    byte_end: int
    valid_from: datetime
    valid_until: datetime | None


class Hit(Body):
    """A passage that can be cited.

    `byte_start`, `byte_end`: UTF-8 bytes into the body, `GET /documents/{source_id}/body`.
    `text`: the embedded text (breadcrumb, context, passage) as untrusted data, between two lines
    `<NAME note="…">` and `</NAME>`, where NAME is the reply's `fence`. Characters that a reader
    does not see are shown in it, in `title` and in `heading_path` (`⟦U+202E⟧`): the exact words
    are the bytes. `title` and `heading_path` are a stranger's words too, and not fenced.
    """

    chunk_id: str
    source_id: str
    heading_path: list[str]
    byte_start: int
    byte_end: int
    valid_until: datetime | None
    text: str
    score: float
    rrf_score: float
    rerank_score: float | None = None
    document_id: str
    version_id: str
    project: str
    title: str
    language: str
    valid_from: datetime
    dense_rank: int | None = None
    keyword_rank: int | None = None
    twins: list[Twin] = Field(default_factory=list)
    """Near-identical passages that were found, too; `fold` of the request."""
    explain: HitExplain | None = None
    """Asked for by `explain`."""


class QueryReply(Body):
    """Hits in order of `score`; `score_kind` says which score that is."""

    results: list[Hit]
    reranked: bool
    score_kind: Literal["rrf", "scores", "rerank"]
    position: int
    """The log position that the answer reflects."""
    rerank_skipped: str | None = None
    """Why a configured reranker did not order the hits: loading, busy, late, failed or away."""
    fence: str = ""
    """Name of the tag around every `text`: drawn anew for each reply, so no text can close it."""
    explain: QueryExplain | None = None
    """Asked for by `explain`."""
    answerable: float | None = None
    """How likely it is, 0 to 1, that the base answers the question at all, by what both legs
    brought; fitted with the bundled embedder (eval/RESULTS.md). None: too little to say."""
