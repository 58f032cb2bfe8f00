"""Ways from two legs to one ranking. What is not the product's is here to be measured only."""

from collections.abc import Callable, Mapping

from eval.ablation.base import Asked
from eval.ablation.legs import Legs
from kernel.keywords import Mode
from services.search.domain import by_scores, rrf

Variant = Callable[[Legs, Asked], list[int]]


def dense(legs: Legs, asked: Asked) -> list[int]:
    """The vectors alone, as the product has them."""
    return [number for number, _ in legs.dense[asked.id]]


def plain(legs: Legs, asked: Asked) -> list[int]:
    """The vectors alone, with the language in them."""
    return [number for number, _ in legs.plain[asked.id]]


def keyword(mode: Mode) -> Variant:
    """The keywords alone."""
    return lambda legs, asked: [number for number, _ in legs.keyword[mode][asked.id]]


def hybrid(mode: Mode = "or", k: int = 60, vectors: Variant = dense) -> Variant:
    """Reciprocal ranks, as the engine fuses them: up to 100 candidates."""

    def ranked(legs: Legs, asked: Asked) -> list[int]:
        return [f.key for f in rrf(vectors(legs, asked), keyword(mode)(legs, asked), k)]

    return ranked


def scores(legs: Legs, asked: Asked) -> list[int]:
    """Fused by the scores of both legs, as the engine does when it is asked to."""
    fused = rrf(dense(legs, asked), keyword("or")(legs, asked))
    return [f.key for f in by_scores(fused, [dict(legs.dense[asked.id])], legs.shares[asked.id])]


def plain_scores(legs: Legs, asked: Asked) -> list[int]:
    """The same with the language in the vectors."""
    fused = rrf(plain(legs, asked), keyword("or")(legs, asked))
    return [f.key for f in by_scores(fused, [dict(legs.plain[asked.id])], legs.shares[asked.id])]


VARIANTS: Mapping[str, Variant] = {
    "dense, language in it": plain,
    "dense": dense,
    "keyword legacy": keyword("legacy"),
    "keyword or": keyword("or"),
    "keyword and_or": keyword("and_or"),
    "hybrid RRF 60, language in it": hybrid(vectors=plain),
    "hybrid scores, language in it": plain_scores,
    "hybrid RRF 60": hybrid(),
    "hybrid RRF 10": hybrid(k=10),
    "hybrid RRF 60, and_or": hybrid("and_or"),
    "hybrid scores": scores,
}
