"""The language policy: refuse only what is surely foreign."""

import json
from pathlib import Path

import pytest

from kernel.errors import Refusal
from kernel.language import ACCEPTED, Identified, detect, identify
from services.converter import language
from services.converter.language import Policy, judge

LID = Path(__file__).parents[3] / "../shared/evaldata/lid/lingua/sentences.jsonl"
POLISH = (
    "Komitet opublikuje swój raport przed końcem miesiąca i zaprosi obywateli do dyskusji. " * 4
)
GERMAN = "Der Ausschuss wird seinen Bericht vor Ende des Monats veröffentlichen. " * 4
BOSNIAN = (
    "Općina je saopćila da će historija mahale i tačno hiljadu zanatlija biti opisani u knjizi. "
    "Uopće nije lahko reći ko će ovih sedmica u septembru doći na uspomene, kahvu i sevdah, "
    "saopćeno je iz Sarajeva. Evropska komisija je prihvatila izvještaj Predsjedništva."
)


def test_a_foreign_language_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        judge(POLISH)
    assert refused.value.code == "language-not-accepted"
    assert "pl" in refused.value.reason


def test_a_short_text_is_taken_in_as_unknown_with_a_warning() -> None:
    judged = judge(POLISH[:80])
    assert judged.language == "unknown"
    assert "undetermined" in judged.warnings[0]


def test_an_accepted_language_passes_without_a_warning() -> None:
    assert judge(GERMAN) == ("de", (), {"de": 1.0})


def test_what_is_accepted_is_the_policys_matter() -> None:
    assert judge(POLISH, frozenset({"pl"})).language == "pl"
    with pytest.raises(Refusal):
        judge(GERMAN, frozenset({"pl"}))


def test_without_the_check_a_foreign_text_is_unknown_with_a_warning() -> None:
    judged = judge(POLISH, check=False)
    assert (judged.language, judged.shares) == ("unknown", {"pl": 1.0})
    assert "pl" in judged.warnings[0]
    assert judge(GERMAN, check=False) == ("de", (), {"de": 1.0})


def test_a_mixed_document_is_taken_in_for_its_main_language() -> None:
    judged = judge(GERMAN * 6 + POLISH * 3)
    assert judged.language == "de"
    assert list(judged.shares) == ["de", "pl"]


def test_a_document_half_accepted_is_not_refused() -> None:
    # Polish is the largest share, but under six tenths: none is lost for a long quotation.
    judged = judge(GERMAN * 10 + POLISH * 9)
    assert judged.language in {"de", "unknown"}


def test_bosnian_is_accepted_as_its_neighbour_with_a_warning() -> None:
    judged = judge(BOSNIAN)
    assert judged.language in {"hr", "sr"}
    assert judged.warnings == (
        f"the text reads as Bosnian: taken in as its nearest neighbour, {judged.language}",
    )


JAPANESE = "委員会は月末までに報告書を公表する予定です。Microsoft Windows, "

INVOICE = (
    "Broj računa\nGiovanni Rossi\nUlica 12\nIBAN DE89\nBIC COBADEFF\n"
    + "\n".join(
        f"| {number} | {thing} XR-{number} | {number * 7},00 EUR |"
        for number, thing in enumerate(
            (
                "Papir San Marino", "Svjetiljka Müller GmbH", "Papir Kovač", "Stolac Le Monde",
                "Vijci Via Roma", "Papir Giovanni Rossi", "Stolac Hewlett Packard", "Boja Philips",
            ) * 2
        )
    )
)  # fmt: skip


def test_a_list_of_names_and_units_is_not_refused_for_what_they_look_like() -> None:
    assert identify(INVOICE).code not in ACCEPTED
    judged = judge(INVOICE)
    assert judged.language == "unknown"
    assert "undetermined" in judged.warnings[0]


def test_what_cannot_be_named_is_not_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(text: str) -> Identified:
        shares = {"pl": 0.5, text.split(maxsplit=1)[0]: 0.3, "de": 0.2}
        return Identified("pl", "Latn", shares, 0.5, None)

    monkeypatch.setattr(language, "identify", found)
    assert judge("unknown slowa " * 40).language == "unknown"
    with pytest.raises(Refusal):
        judge("cs slowa " * 40)


def test_a_foreign_text_in_capitals_or_without_them_is_refused() -> None:
    for text in (
        POLISH.upper(),
        POLISH.lower(),
        "委員会は月末までに報告書を公表する予定です。" * 20,
    ):
        with pytest.raises(Refusal):
            judge(text)


def test_a_parse_judged_otherwise_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {Policy().cache_key, Policy(frozenset({"pl"})).cache_key, Policy(check=False).cache_key}
    monkeypatch.setattr(language, "REVISION", language.REVISION + 1)
    assert len(keys | {Policy().cache_key}) == 4


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
    "piece", ["a", "ж", ".", "a@", "a_", "```x\n", "~~~ ", "[", "<", "`", "&a", "a1 ", "한", "a ж "]
)
@pytest.mark.timeout(120)  # it took hours: the patterns were quadratic
def test_a_megabyte_of_hostile_text_is_judged(piece: str) -> None:
    assert detect(piece * (1_000_000 // len(piece))).confidence <= 1


def test_words_at_the_end_of_a_long_text_are_seen() -> None:
    text = "1 2 3 4 5. " * 20_000 + "Казна износи двадесет милиона динара по закону. " * 3_000
    assert detect(text).code == "sr"
