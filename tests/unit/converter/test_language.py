"""The language policy: refuse only what is surely foreign."""

import json
from pathlib import Path

import pytest

from kernel.errors import Refusal
from kernel.language import detect
from services.converter.language import judge

LID = Path(__file__).parents[3] / "../shared/evaldata/lid/lingua/sentences.jsonl"
POLISH = (
    "Komitet opublikuje swój raport przed końcem miesiąca i zaprosi obywateli do dyskusji. " * 4
)
GERMAN = "Der Ausschuss wird seinen Bericht vor Ende des Monats veröffentlichen. " * 4


def test_a_foreign_language_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        judge(POLISH)
    assert refused.value.code == "language-not-accepted"
    assert "pl" in refused.value.reason


def test_a_short_text_is_taken_in_as_unknown_with_a_warning() -> None:
    language, warnings = judge(POLISH[:80])
    assert language == "unknown"
    assert "undetermined" in warnings[0]


def test_an_accepted_language_passes_without_a_warning() -> None:
    assert judge(GERMAN) == ("de", ())


def test_what_is_accepted_is_the_policys_matter() -> None:
    assert judge(POLISH, frozenset({"pl"})).language == "pl"
    with pytest.raises(Refusal):
        judge(GERMAN, frozenset({"pl"}))


def test_numbers_are_no_language() -> None:
    assert judge("1234 5678\n" * 500).language == "unknown"


def test_no_document_of_an_accepted_language_is_refused() -> None:
    if not LID.exists():
        pytest.skip(f"no evaluation data at {LID}")
    texts: dict[str, list[str]] = {}
    for line in LID.read_text().strip().split("\n"):
        row = json.loads(line)
        if row["accepted"]:
            texts.setdefault(row["lang"], []).append(row["text"])
    wrong = total = 0
    for code, sentences in texts.items():
        for start in range(0, len(sentences) - 6, 6):
            judged = judge("\n".join(sentences[start : start + 6]))
            total += 1
            wrong += judged.language != code
    assert total > 400
    assert wrong <= total // 100


@pytest.mark.parametrize(
    "piece", ["a", "ж", ".", "a@", "a_", "```x\n", "~~~ ", "[", "<", "`", "&a", "a1 "]
)
@pytest.mark.timeout(120)  # it took hours: the patterns were quadratic
def test_a_megabyte_of_hostile_text_is_judged(piece: str) -> None:
    assert detect(piece * (1_000_000 // len(piece))).confidence <= 1


def test_words_at_the_end_of_a_long_text_are_seen() -> None:
    text = "1 2 3 4 5. " * 20_000 + "Казна износи двадесет милиона динара по закону. " * 3_000
    assert detect(text).code == "sr"
