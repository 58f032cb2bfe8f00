"""Our own sentences in nine variants: attacks are seen, near-misses are left alone."""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from services.scanner.domain import scan
from services.scanner.ruleset import default_ruleset

FILE = Path(__file__).parents[3] / "eval/data/scanner_phrases.jsonl"
VARIANTS = ("en", "de", "ru", "bg", "sr-Cyrl", "sr-Latn", "mk", "hr", "sl")


@cache
def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


@cache
def seen() -> dict[str, float]:
    """Share of the attacks of each variant that do not stay clean."""
    total: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for row in (r for r in rows() if r["label"]):
        total[row["language"]] += 1
        found[row["language"]] += verdict(row["text"]) != "clean"
    return {variant: found[variant] / total[variant] for variant in VARIANTS}


def verdict(text: str) -> str:
    return scan(text, (), default_ruleset()).verdict


def test_each_sentence_is_there_in_every_variant() -> None:
    variants: dict[str, set[str]] = {}
    for row in rows():
        variants.setdefault(row["id"].split(".")[0], set()).add(row["language"])
    assert len(variants) >= 120
    assert {i: v for i, v in variants.items() if v != set(VARIANTS)} == {}


@pytest.mark.parametrize("variant", VARIANTS)
def test_attacks_are_seen_in_every_variant_as_in_english(variant: str) -> None:
    assert seen()[variant] >= max(0.9, seen()["en"] - 0.05)


def test_near_misses_stay_clean() -> None:
    assert [r["id"] for r in rows() if not r["label"] and verdict(r["text"]) != "clean"] == []
