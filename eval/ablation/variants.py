"""Ways from two legs to one ranking. What is not the product's is here to be measured only."""

from collections.abc import Callable, Mapping

from eval.ablation.base import Asked
from eval.ablation.legs import Legs
from kernel.keywords import Mode
from services.search.domain import rrf

Variant = Callable[[Legs, Asked], list[int]]


def dense(legs: Legs, asked: Asked) -> list[int]:
    """The vectors alone."""
    return [number for number, _ in legs.dense[asked.id]]


def keyword(mode: Mode) -> Variant:
    """The keywords alone."""
    return lambda legs, asked: [number for number, _ in legs.keyword[mode][asked.id]]


def hybrid(mode: Mode = "or", k: int = 60) -> Variant:
    """Reciprocal ranks, as the engine fuses them; the candidates of both legs, so up to 100."""

    def ranked(legs: Legs, asked: Asked) -> list[int]:
        fused = rrf(dense(legs, asked), keyword(mode)(legs, asked), k)
        return [f.key for f in fused]

    return ranked


VARIANTS: Mapping[str, Variant] = {
    "dense": dense,
    "keyword legacy": keyword("legacy"),
    "keyword or": keyword("or"),
    "keyword and_or": keyword("and_or"),
    "hybrid RRF 60": hybrid(),
    "hybrid RRF 10": hybrid(k=10),
    "hybrid RRF 60, and_or": hybrid("and_or"),
}
