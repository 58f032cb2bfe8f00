"""Language detection: Serbian in both scripts, its neighbours, and texts that are no prose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.language import ACCEPTED, UNKNOWN, detect, prose

SENTENCES = {
    "en": "The committee will publish its report before the end of the month and invite comments.",
    "de": "Der Ausschuss wird seinen Bericht vor Ende des Monats veröffentlichen und einladen.",
    "bg": "Комисията ще публикува доклада си преди края на месеца и ще покани гражданите.",
    "ru": "Комиссия опубликует свой доклад до конца месяца и предложит его обсудить.",
    "mk": "Комисијата ќе го објави својот извештај пред крајот на месецот и ќе повика.",
    "sl": "Odbor bo svoje poročilo objavil pred koncem meseca in povabil državljane.",
    "hr": "Povjerenstvo će svoje izvješće objaviti prije kraja mjeseca i pozvati građane.",
}
SERBIAN_LATIN = (
    "Komisija će svoj izveštaj objaviti pre kraja meseca i pozvati građane da učestvuju u raspravi "
    "o ceni voza, a posle toga će opština doneti odluku."
)
SERBIAN_CYRILLIC = (
    "Комисија ће свој извештај објавити пре краја месеца и позвати грађане да учествују у расправи "
    "о цени воза, а после тога ће општина донети одлуку."
)


@pytest.mark.parametrize(("code", "text"), SENTENCES.items())
def test_each_accepted_language_is_told(code: str, text: str) -> None:
    assert detect(text).code == code


@pytest.mark.parametrize("text", [SERBIAN_LATIN, SERBIAN_CYRILLIC])
def test_serbian_is_serbian_in_both_scripts(text: str) -> None:
    assert detect(text).code == "sr"


def test_a_foreign_language_is_named() -> None:
    found = detect(
        "Komitet opublikuje swój raport przed końcem miesiąca i zaprosi obywateli do dyskusji."
    )
    assert found.code == "pl"
    assert found.code not in ACCEPTED


def test_ukrainian_is_not_russian() -> None:
    assert (
        detect(
            "Комісія опублікує свій звіт до кінця місяця і запросить громадян до обговорення."
        ).code
        == "uk"
    )


@pytest.mark.parametrize("text", ["", " \n", "12345 67", "---", "\0\0"])
def test_what_has_no_words_is_unknown(text: str) -> None:
    assert detect(text) == (UNKNOWN, 0.0)


def test_code_and_addresses_do_not_count() -> None:
    code = "```python\nfor value in values_of_things: print(value)\n```\n"
    assert (
        detect(f"{code * 20}{SENTENCES['de']} https://example.org/an/english/address").code == "de"
    )
    assert "python" not in prose(code)


def test_the_main_language_of_a_mixed_document_wins() -> None:
    mixed = (SENTENCES["bg"] + " ") * 60 + (SENTENCES["en"] + " ") * 12
    found = detect(mixed)
    assert found.code == "bg"
    assert found.confidence < 1


def test_a_text_of_any_length_is_judged_by_windows() -> None:
    assert detect((SENTENCES["ru"] + " ") * 20_000).code == "ru"


@given(st.text(max_size=400))
def test_any_text_gets_an_answer(text: str) -> None:
    code, confidence = detect(text)
    assert code
    assert 0 <= confidence <= 1
