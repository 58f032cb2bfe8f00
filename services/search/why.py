"""Why a passage is not among the answers to a question: the way of the question, step by step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import and_
from typing import Any
from uuid import UUID

from fastapi import FastAPI, Request, Response

from contracts.query import QueryRequest
from contracts.why import Ahead, Known, LegWhy, Reason, WhyReply, WhyRequest
from kernel.db import queries
from kernel.fence import visible
from kernel.fit import Fit
from services.search.bodies import parsed
from services.search.domain import holds
from services.search.engine import Answer, Engine
from services.search.legs import Candidate, Found, Legs
from services.search.position import HEADER as POSITION
from services.search.question import Question
from services.search.scope import Scope, fit_of

LOOKED = 1000
"""So deep both legs are looked at, to tell a rank."""
BEFORE = 3
"""Passages before it that are told."""


@dataclass
class _Case:
    """A passage and what became of it."""

    question: Question
    answer: Answer
    row: Any
    windows: list[Any]
    deep: Legs = field(default_factory=lambda: Legs({}, [], {}))
    score: float | None = None
    words: list[str] = field(default_factory=list)

    @property
    def point(self) -> UUID:
        """Its id in both legs."""
        id_: UUID = self.row["point_id"]
        return id_

    @property
    def scope(self) -> Scope:
        """What the question saw."""
        return self.answer.look.scope


class Whys:
    """Answers `WhyRequest`s, by asking the question again."""

    def __init__(self, pool: Any, engine: Engine) -> None:
        self._pool, self._engine = pool, engine
        self._sql = queries("services.search", "why")

    async def why(self, request: WhyRequest) -> WhyReply:
        """Why.

        Raises:
            Refusal, Behind: those of `Engine.query`.
        """
        await self._engine.positions.reach(request.min_position)
        async with self._engine.in_time():
            return await self._why(request)

    async def _why(self, request: WhyRequest) -> WhyReply:
        question = Question(request)
        answer = await self._engine.answer(question)
        which = {"chunk": request.chunk, "version": request.version}
        rows = [r async for r in self._sql.called(self._pool, **which)]
        if not rows:
            return await self._absent(request, answer)
        windows = await self._windows(answer.look.scope, rows)
        row = max(rows, key=lambda r: _nearness(answer, r, windows[r["version_id"]]))
        case = _Case(question, answer, row, windows[row["version_id"]])
        reason = before_the_legs(case)
        if reason is None:
            case.deep = await self._engine.deep(question, case.scope, LOOKED)
            case.score = await self._engine.nearness(question, case.scope, row)
            held = await self._engine.words_of(question, case.scope, [case.point])
            case.words = held.get(case.point, [])
            reason = after_the_legs(case)
        return _told(case, reason, list(dict.fromkeys(r["version_id"] for r in rows)))

    async def _absent(self, request: WhyRequest, answer: Answer) -> WhyReply:
        status = None
        if request.version is not None:
            status = await self._sql.status(self._pool, version=request.version)
        reason: Reason = "unknown" if status is None else "not-indexed"
        why = "no passage is called so; of what was erased, none is left"
        if status == "erased":
            reason, why = "erased", "its version was erased"
        elif status is not None:
            why = f"its version has no passage of that name in the index; it is {status}"
        return WhyReply(
            reason=reason, why=why, chunk_id=request.chunk, version_id=request.version,
            versions=[], position=answer.look.scope.position,
        )  # fmt: skip

    async def _windows(self, scope: Scope, rows: Sequence[Any]) -> dict[str, list[Any]]:
        windows: dict[str, list[Any]] = {r["version_id"]: [] for r in rows}
        which = {"versions": list(windows), "known": scope.known}
        async for r in self._sql.windows(self._pool, **which):
            windows[r["version_id"]].append(r)
        return windows


def _nearness(answer: Answer, row: Any, windows: list[Any]) -> tuple[bool, ...]:
    """How far a passage comes, of those of one name."""
    scope, shown = answer.look.scope, {c.fused.key for c in answer.candidates}
    return (
        (row["project"], row["generation"]) in scope.bases,
        any(_holds(w, scope.moment) for w in windows),
        row["point_id"] in answer.look.legs.rows,
        row["point_id"] in shown,
    )


def before_the_legs(case: _Case) -> Reason | None:
    """What keeps the passage from being found at all; None: nothing."""
    row, scope = case.row, case.scope
    if row["status"] == "erased":
        return "erased"
    if row["project"] not in case.question.request.bases:
        return "other-project"
    if (row["project"], row["generation"]) not in scope.bases:
        return "other-generation"
    if not any(_holds(w, scope.moment) for w in case.windows):
        return "not-valid"
    return "filtered" if failed_filters(case.question.request, row, _valid(case)) else None


def after_the_legs(case: _Case) -> Reason:
    """What became of a passage that may be found."""
    look, request = case.answer.look, case.question.request
    at = _place(look.candidates, case.point)
    if at is None:
        far = request.max_distance is not None and case.score is not None
        return "too-far" if far and not _near(case) and not case.words else "not-among-candidates"
    shown = _place(look.shown, case.point)
    if shown is None:
        return "twin"
    place = _place(case.answer.candidates, case.point)
    if place is None:
        return "below-min-score" if shown <= case.answer.read else "not-read"
    if place <= request.top_k:
        return "shown"
    return "reranked-down" if case.answer.reranked and shown <= request.top_k else "below-top-k"


def failed_filters(
    request: QueryRequest, row: Mapping[str, Any], windows: Iterable[Any]
) -> list[str]:
    """Fields of a question that a passage does not pass; `windows`: those that it is valid by."""
    fit, labels = fit_of(request), set(row["labels"] or ())
    prefix = list(request.heading_prefix)
    passes = {
        "heading_prefix": list(row["heading_path"])[: len(prefix)] == prefix,
        "languages": not request.languages or row["language"] in request.languages,
        "documents": not request.documents or row["document_id"] in request.documents,
        "types": not fit.media_types or row["media_type"] in fit.media_types,
        "tags": fit.tags <= labels,
        "classes": not fit.classes or not fit.classes.isdisjoint(labels),
        "received_from": fit.received_from is None or row["received_at"] >= fit.received_from,
        "received_until": fit.received_until is None or row["received_at"] <= fit.received_until,
    }
    dates = _failed_dates(fit, [w["valid_from"] for w in windows])
    return [*(name for name, passed in passes.items() if not passed), *dates]


def _failed_dates(fit: Fit, begins: Sequence[datetime]) -> list[str]:
    """Both, where each lets another window pass."""
    late = [fit.dated_from is None or begin >= fit.dated_from for begin in begins]
    early = [fit.dated_until is None or begin <= fit.dated_until for begin in begins]
    if any(map(and_, late, early)):
        return []
    alone = [n for n, of in (("dated_from", late), ("dated_until", early)) if not any(of)]
    return alone or ["dated_from", "dated_until"]


_SAID: dict[Reason, str] = {
    "shown": "it is among the answers",
    "erased": "its version was erased",
    "other-project": "it is in a project that was not asked",
    "other-generation": "it is in a generation of the index that questions do not read",
    "not-valid": "its version is not valid at the moment that was asked for",
    "too-far": "it is farther than max_distance, and has no word of the question",
    "twin": "it says the same as another passage, and is listed under that one",
    "not-read": "the reranker reads fewer passages, and it was not among them",
    "below-min-score": "the reranker gave it less than min_score",
    "reranked-down": "the reranker put others before it",
    "below-top-k": "others stand before it",
}


def _told(case: _Case, reason: Reason, versions: list[str]) -> WhyReply:
    row, answer, scope = case.row, case.answer, case.scope
    ranked = {c.fused.key: c for c in answer.candidates}
    first = next((c for c in answer.look.shown if _has(c, case.point)), None)
    filters = failed_filters(case.question.request, row, _valid(case))
    searched = reason not in _EARLY
    return WhyReply(
        reason=reason,
        why=_sentence(case, reason, filters),
        chunk_id=row["chunk_id"],
        versions=versions,
        version_id=row["version_id"],
        document_id=row["document_id"],
        project=row["project"],
        generation=row["generation"],
        title=None if reason == "erased" else visible(row["title"]),
        heading_path=[] if reason == "erased" else [visible(h) for h in row["heading_path"]],
        moment=scope.moment,
        known=scope.known,
        windows=[_known(w) for w in case.windows],
        filters=filters,
        depth=case.question.depth,
        looked=LOOKED if searched else None,
        dense=_dense(case) if searched else None,
        keyword=_keyword(case) if searched else None,
        fused_rank=_place(answer.look.candidates, case.point),
        rerank_score=ranked[case.point].rerank_score if case.point in ranked else None,
        rerank_skipped=answer.skipped,
        place=None if first is None else _place(answer.candidates, first.fused.key),
        twin_of=_ahead(first.row, first.fused.score) if reason == "twin" and first else None,
        position=scope.position,
    )


_EARLY = ("erased", "other-project", "other-generation", "not-valid", "filtered")


def _sentence(case: _Case, reason: Reason, filters: list[str]) -> str:
    if reason == "filtered":
        return f"it does not pass {', '.join(filters)}"
    if reason == "not-among-candidates":
        shares = "" if case.words else "; it has no word of the question"
        return f"neither leg has it among the first {case.question.depth}{shares}"
    return _SAID[reason]


def _dense(case: _Case) -> LegWhy:
    model = case.scope.embedders[case.row["project"]]
    brought = case.answer.look.legs.by_model.get(model, [])
    rank, before = _rank(case.deep, case.deep.by_model.get(model, []), case.point)
    return LegWhy(brought=_in(brought, case.point), rank=rank, score=case.score, before=before)


def _keyword(case: _Case) -> LegWhy:
    found, point = case.deep.keyword, case.point
    rank, before = _rank(case.deep, found, point)
    return LegWhy(
        brought=_in(case.answer.look.legs.keyword, point),
        rank=rank,
        score=next((f.score for f in found if f.point_id == point), None),
        words=case.words,
        before=before,
    )


def _rank(legs: Legs, leg: Sequence[Found], point: UUID) -> tuple[int | None, list[Ahead]]:
    """Among what is valid, and the last ones before it."""
    valid = legs.valid(leg)
    at = next((n for n, f in enumerate(valid) if f.point_id == point), None)
    if at is None:
        return None, []
    before = valid[max(0, at - BEFORE) : at]
    return at + 1, [_ahead(legs.rows[f.point_id], f.score) for f in before]


def _ahead(row: Any, score: float) -> Ahead:
    return Ahead(
        chunk_id=row["chunk_id"],
        version_id=row["version_id"],
        project=row["project"],
        title=visible(row["title"]),
        heading_path=[visible(h) for h in row["heading_path"]],
        score=score,
    )


def _valid(case: _Case) -> list[Any]:
    return [w for w in case.windows if _holds(w, case.scope.moment)]


def _holds(window: Any, moment: datetime | None) -> bool:
    return holds(window["valid_from"], window["valid_until"], moment)


def _known(window: Any) -> Known:
    return Known(**{name: window[name] for name in Known.model_fields})


def _near(case: _Case) -> bool:
    most = case.question.request.max_distance
    return most is None or (case.score is not None and 1 - case.score <= most)


def _place(candidates: Sequence[Candidate], point: UUID) -> int | None:
    return next((n for n, c in enumerate(candidates, 1) if c.fused.key == point), None)


def _has(candidate: Candidate, point: UUID) -> bool:
    return point in (candidate.fused.key, *(twin.fused.key for twin in candidate.twins))


def _in(leg: Iterable[Found], point: UUID) -> bool:
    return any(f.point_id == point for f in leg)


def add_why_route(app: FastAPI, whys: Whys) -> None:
    """`POST /query/why`."""

    @app.post("/query/why", response_model=WhyReply)
    async def post_why(request: Request, response: Response) -> WhyReply:
        reply = await whys.why(await parsed(WhyRequest, request))
        response.headers[POSITION] = str(reply.position)
        return reply
