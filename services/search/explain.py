"""How a reply came about: where each leg had a passage, and what the question was made into."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from contracts.query import Asked, HitExplain, LegCount, LegPlace, Passed, QueryExplain
from kernel.keywords import KeywordQuery, Mode, Word
from services.search.legs import Candidate, Found, Legs
from services.search.question import Question
from services.search.scope import Scope


def explained(
    question: Question,
    scope: Scope,
    legs: Legs,
    mode: Mode,
    **counts: int,
) -> QueryExplain:
    """Of the whole reply. `counts`: of candidates, of twins, of passages that were read again."""
    return QueryExplain(
        moment=scope.moment,
        known=scope.known,
        asked=[_asked(scope, project, generation) for project, generation in scope.bases],
        keyword_mode=mode,
        words={name: list(terms) for name, terms in words(question.terms).items()},
        depth=question.depth,
        dense=LegCount(found=len(legs.dense), valid=len(legs.valid(legs.dense))),
        keyword=LegCount(found=len(legs.keyword), valid=len(legs.valid(legs.keyword))),
        **counts,
        rounds=question.rounds,
        took_ms={part: round(s * 1000, 3) for part, s in question.seconds.items()},
    )


def explained_hit(
    candidate: Candidate,
    scope: Scope,
    legs: Legs,
    places: Mapping[UUID, int],
    held: Mapping[UUID, Sequence[str]],
) -> HitExplain:
    """Of one hit. `places`: of all candidates before any reranking; `held`: words of the question
    in each passage."""
    point, row = candidate.fused.key, candidate.row
    return HitExplain(
        fused_rank=places[point],
        dense=next(filter(None, (place(legs, m, point) for m in legs.by_model.values())), None),
        keyword=place(legs, legs.keyword, point, held.get(point, ())),
        rerank_score=candidate.rerank_score,
        generation=dict(scope.bases)[row["project"]],
        passed=passed(scope, row["project"]),
        recorded_from=row["recorded_from"],
        recorded_until=row["recorded_until"],
    )


def place(
    legs: Legs, leg: Sequence[Found], point: UUID, held: Sequence[str] = ()
) -> LegPlace | None:
    """Where a leg has a passage; None: nowhere."""
    for raw, found in enumerate(leg, 1):
        if found.point_id == point:
            valid = [f.point_id for f in legs.valid(leg)]
            rank = valid.index(point) + 1 if point in legs.rows else None
            return LegPlace(rank=rank, raw_rank=raw, score=found.score, words=list(held))
    return None


def words(query: KeywordQuery) -> dict[str, tuple[str, ...]]:
    """The words of a question by a name that a person knows, each with its terms."""
    named: dict[str, tuple[str, ...]] = {}
    for word in query.words:
        name = _name(word)
        named[name] = tuple(dict.fromkeys((*named.get(name, ()), *word.terms)))
    return named


def words_held(query: KeywordQuery, terms: Collection[str]) -> list[str]:
    """Which words of a question a passage with these terms holds."""
    return [name for name, own in words(query).items() if not set(own).isdisjoint(terms)]


def passed(scope: Scope, project: str) -> Passed:
    """How the dense leg keeps to what is valid in a project."""
    if project in scope.sifted:
        return "sifted"
    return "payload" if scope.filters[project].versions is None else "named"


def _asked(scope: Scope, project: str, generation: int) -> Asked:
    flt: Any = scope.filters[project]
    return Asked(
        project=project,
        generation=generation,
        embedder=scope.embedders[project],
        passed=passed(scope, project),
        named=None if flt.versions is None else len(flt.versions),
        also=len(flt.also),
        without=len(flt.without),
    )


def _name(word: Word) -> str:
    """As typed or, folded, as in a language of which nothing is known."""
    plain = [t for t in word.terms if t.startswith(("=", "xx:"))] or list(word.terms)
    return plain[0].removeprefix("=").removeprefix("xx:")
