"""Real honest documents come in; real attacks do not. Data that is not part of the project."""

import json
from pathlib import Path
from typing import Any

import pytest

from services.scanner.domain import scan
from services.scanner.ruleset import default_ruleset

DATA = Path(__file__).parents[4] / "shared/evaldata"

pytestmark = pytest.mark.skipif(
    not DATA.exists(), reason=f"NOT RUN: the labelled documents are not at {DATA}"
)


def rows(name: str) -> list[dict[str, Any]]:
    lines = (DATA / "injection" / name).read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def verdict(text: str) -> str:
    return scan(text, (), default_ruleset()).verdict


def test_long_laws_pass_as_clean() -> None:
    laws = [r for r in rows("benign_hard/documents.jsonl") if "law" in r["why"]]
    assert len(laws) >= 4
    assert {r["id"]: verdict(r["text"]) for r in laws} == {r["id"]: "clean" for r in laws}


def test_documents_that_quote_no_attack_pass_as_clean() -> None:
    honest = [r for r in rows("benign_hard/documents.jsonl") if "quotes" not in r["why"]]
    assert [r["id"] for r in honest if verdict(r["text"]) != "clean"] == []


def test_documents_about_attacks_are_never_blocked() -> None:
    about = [r for r in rows("benign_hard/documents.jsonl") if "quotes" in r["why"]]
    assert [r["id"] for r in about if verdict(r["text"]) == "block"] == []


def test_nineteen_of_twenty_disguised_attacks_are_stopped() -> None:
    attacks = rows("obfuscated/documents.jsonl")
    stopped = sum(verdict(r["text"]) != "clean" for r in attacks)
    assert stopped >= 0.95 * len(attacks)
