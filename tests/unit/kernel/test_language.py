"""Language detection: Serbian in both scripts, its neighbours, and texts that are no prose."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.language import ACCEPTED, UNKNOWN, _label, detect, identify, prose
from kernel.language.bosnian import Traits, reads_bosnian
from kernel.language.guess import Guess
from kernel.language.lexicon import kinds, weighed

SENTENCES = {
    "en": "The committee will publish its report before the end of the month and invite comments.",
    "de": "Der Ausschuss wird seinen Bericht vor Ende des Monats veröffentlichen und einladen.",
    "bg": "Комисията ще публикува доклада си преди края на месеца и ще покани гражданите.",
    "ru": "Комиссия опубликует свой доклад до конца месяца и предложит его обсудить.",
    "mk": "Комисијата ќе го објави својот извештај пред крајот на месецот и ќе повика.",
    "sl": "Odbor bo svoje poročilo objavil pred koncem meseca in povabil državljane.",
    "hr": "Povjerenstvo će svoje izvješće objaviti prije kraja mjeseca i pozvati građane.",
}
FOREIGN = {
    "uk": "Комісія опублікує свій звіт до кінця місяця і запросить громадян до обговорення.",
    "be": "Камісія апублікуе сваю справаздачу да канца месяца і запросіць грамадзян.",
    "cs": "Výbor zveřejní svou zprávu před koncem měsíce a vyzve občany k diskusi.",
    "sk": "Výbor zverejní svoju správu pred koncom mesiaca a vyzve občanov na diskusiu.",
    "pl": "Komitet opublikuje swój raport przed końcem miesiąca i zaprosi obywateli do dyskusji.",
    "nl": "De commissie zal haar verslag voor het einde van de maand publiceren.",
    "it": "Il comitato pubblicherà la sua relazione prima della fine del mese.",
    "el": "Η επιτροπή θα δημοσιεύσει την έκθεσή της πριν από το τέλος του μήνα.",
    "he": "הוועדה תפרסם את הדוח שלה לפני סוף החודש ותזמין את הציבור להגיב.",
    "ja": "委員会は月末までに報告書を公表し、意見を募集する予定です。",
    "so": "Guddigu wuxuu daabici doonaa warbixintiisa ka hor dhammaadka bisha",
}
SERBIAN_LATIN = (
    "Komisija će svoj izveštaj objaviti pre kraja meseca i pozvati građane da učestvuju u raspravi "
    "o ceni voza, a posle toga će opština doneti odluku."
)
SERBIAN_CYRILLIC = (
    "Комисија ће свој извештај објавити пре краја месеца и позвати грађане да учествују у расправи "
    "о цени воза, а после тога ће општина донети одлуку."
)
BARE = SERBIAN_LATIN.translate(str.maketrans("ćčšžđ", "ccszd"))


@pytest.mark.parametrize(("code", "text"), SENTENCES.items())
def test_each_accepted_language_is_told(code: str, text: str) -> None:
    assert detect(text).code == code


@pytest.mark.parametrize("text", [SERBIAN_LATIN, SERBIAN_CYRILLIC, BARE])
def test_serbian_is_serbian_in_both_scripts(text: str) -> None:
    assert detect(text).code == "sr"


@pytest.mark.parametrize(("code", "text"), FOREIGN.items())
def test_a_foreign_language_is_named(code: str, text: str) -> None:
    found = detect(text)
    assert found.code == code
    assert found.code not in ACCEPTED


def test_the_script_is_told() -> None:
    texts = (SERBIAN_LATIN, SERBIAN_CYRILLIC, FOREIGN["el"], FOREIGN["ja"])
    assert [identify(text).script for text in texts] == ["Latn", "Cyrl", "Grek", "Jpan"]


@pytest.mark.parametrize("text", ["", " \n", "12345 67", "---", "\0\0"])
def test_what_has_no_words_is_unknown(text: str) -> None:
    assert detect(text) == (UNKNOWN, 0.0)
    assert identify(text).shares == {}


@pytest.mark.parametrize(
    ("code", "word"), [("sr", "ђак"), ("mk", "ќе"), ("ru", "мыши"), ("de", "Straße"), ("uk", "їжа")]
)
def test_letters_of_one_language_settle_a_word(code: str, word: str) -> None:
    assert detect(word).code == code


def test_code_and_addresses_do_not_count() -> None:
    code = "```python\nfor value in values_of_things: print(value)\n```\n"
    assert (
        detect(f"{code * 20}{SENTENCES['de']} https://example.org/an/english/address").code == "de"
    )
    assert "python" not in prose(code)


def test_the_main_language_of_a_mixed_document_wins() -> None:
    mixed = (SENTENCES["bg"] + " ") * 60 + (SENTENCES["en"] + " ") * 12
    found = identify(mixed)
    assert found.code == "bg"
    assert list(found.shares) == ["bg", "en"]
    assert found.shares["en"] == pytest.approx(12 / 72, abs=0.05)


def test_a_document_in_two_scripts_is_serbian_alone() -> None:
    for mixed in (
        (SERBIAN_CYRILLIC + "\n\n") * 10 + (SERBIAN_LATIN + "\n\n") * 10,
        f"{SERBIAN_CYRILLIC} / {SERBIAN_LATIN}\n" * 10,
    ):
        assert identify(mixed).shares == {"sr": 1.0}


def test_names_in_another_script_are_no_language() -> None:
    text = "Компания Microsoft выпустила новую версию своей программы для всех желающих. " * 10
    assert identify(text).shares == {"ru": 1.0}


def test_shares_add_up_and_the_largest_comes_first() -> None:
    mixed = "\n\n".join(
        (text + " ") * times
        for text, times in ((SENTENCES["de"], 30), (FOREIGN["uk"], 20), (SENTENCES["en"], 10))
    )
    found = identify(mixed)
    assert list(found.shares) == ["de", "uk", "en"]
    assert sum(found.shares.values()) == pytest.approx(1, abs=0.001)


def test_a_doubtful_paragraph_follows_its_document() -> None:
    doubtful = "Radnici su mu pomagali, a on je bio zadovoljan. Na kraju su svi otišli u grad. "
    croatian = SENTENCES["hr"] + " Tijekom tjedna općina će tisućama građana uručiti rješenja. "
    assert identify(croatian * 8 + doubtful * 3).shares == {"hr": 1.0}


def test_bosnian_is_its_nearest_neighbour_with_a_label() -> None:
    found = identify(
        "Općina je saopćila da će historija mahale i tačno hiljadu zanatlija biti u knjizi. "
        "Uopće nije lahko reći ko će ovih sedmica u septembru doći na uspomene, kahvu i sevdah, "
        "saopćeno je iz Sarajeva. Evropska komisija je prihvatila izvještaj Predsjedništva."
    )
    assert found.code in {"hr", "sr"}
    assert found.label == "bs"
    assert "bs" not in found.shares


def test_croatian_and_serbian_have_no_label() -> None:
    assert identify(SENTENCES["hr"] * 30).label is None
    assert identify(SERBIAN_LATIN * 20).label is None
    assert identify(SENTENCES["hr"]).label is None
    assert identify(SERBIAN_LATIN).label is None
    assert identify(SENTENCES["en"]).label is None


CROATIAN = (
    "Gradska je knjižnica prošle godine dobila novu zgradu. Djeca iz obližnje škole dolaze svake "
    "srijede poslije podne čitati i posuđivati knjige, a cijena članarine ostaje ista."
)
_CELLS = " | ".join(("Total", "item", "Datum"))
AROUND = {
    "bullets": "\n".join(f"* bullet {number}" for number in range(12)),
    "cells": "\n".join(f"| r{row}c1 | r{row}c2 | {row * 37} |" for row in range(12)),
    "table": "\n".join(f"| {_CELLS} {row} |" for row in range(12)),
    "names": "\n".join(f"* {name}" for name in ("Sarajevo", "Zenica", "Tuzla", "Mostar", "Amir")),
    "code": "\n".join(f"    for item in list: print(item, {number})" for number in range(8)),
    "front": "---\ntitle: Report\nauthor: Petar\ntags: [library, draft]\nlayout: page\n---",
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
@pytest.mark.parametrize(
    ("code", "text"), [("sr", SERBIAN_CYRILLIC), ("sr", SERBIAN_LATIN), ("hr", CROATIAN)]
)
def test_what_stands_around_prose_makes_it_no_bosnian(code: str, text: str, around: str) -> None:
    for body in (f"{text * 3}\n\n{around}", f"{around}\n\n{text * 8}"):
        assert identify(body)[:1] + identify(body)[4:] == (code, None)


BOSNIAN = (
    "Općina je saopćila da će historija mahale i tačno hiljadu zanatlija biti opisani u knjizi. "
    "Uopće nije lahko reći ko će ovih sedmica doći, saopćeno je poslije sjednice. "
    "Evropska komisija je prihvatila izvještaj, a djeca su u srijedu posjetila taj muzej."
)


def test_bosnian_in_latin_has_its_label_beside_lists_and_tables() -> None:
    for around in AROUND.values():
        assert identify(f"{BOSNIAN * 4}\n\n{around}").label == "bs"


def test_ekavian_words_are_not_bosnian_whatever_else_is() -> None:
    assert identify(BOSNIAN).label == "bs"
    ekavian = BOSNIAN
    for old, new in (
        ("poslije", "posle"), ("izvještaj", "izveštaj"), ("djeca", "deca"), ("srijedu", "sredu"),
        ("posjetila", "posetila"), ("sjednice", "sednice"),
    ):  # fmt: skip
        ekavian = ekavian.replace(old, new)
    assert identify(ekavian).label is None


def test_text_in_cyrillic_with_bosnian_names_in_latin_has_no_label() -> None:
    body = f"{SERBIAN_CYRILLIC * 3}\n\n{BOSNIAN}"
    assert identify(BOSNIAN).label == "bs"
    assert identify(body).label is None


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [((0, 2, 2, 0, 0, 1), True), ((0, 2, 2, 1, 0, 1), False), ((0, 2, 0, 0, 0, 1), False)],
)
def test_bosnian_needs_ijekavian_words_and_few_ekavian_ones(
    kinds: tuple[int, ...], expected: bool
) -> None:
    assert reads_bosnian([(Traits(6.0, -2.0, kinds), 300.0)]) is expected


def test_bosnian_is_the_mean_of_the_windows_by_their_letters() -> None:
    bosnian = Traits(2.5, -2.0, (0, 2, 2, 0, 0, 1))
    croatian = Traits(-1.0, -6.0, (1, 0, 2, 0, 3, 0))
    assert reads_bosnian([(bosnian, 300.0), (croatian, 1.0)])
    assert not reads_bosnian([(bosnian, 1.0), (croatian, 300.0)])
    assert not reads_bosnian([(bosnian, 300.0), (None, 301.0)])
    assert not reads_bosnian([])


def test_english_in_a_croatian_text_has_no_say_in_the_label() -> None:
    english = Guess({"en": 0.99, "hr": 0.01}, Traits(9.0, 0.0, (0, 9, 9, 0, 0, 9)), 400)
    croatian = Guess({"hr": 1.0}, Traits(-1.0, -6.0, (1, 0, 2, 0, 3, 0)), 400)
    assert _label("hr", [croatian, english], {"hr": 0.6, "en": 0.4}) is None


@pytest.mark.parametrize(
    "text", ["cell red kolona ", "item kolona ", "red kolona ", "мера цена ", "μέτρο τιμή "]
)
def test_no_language_is_named_that_is_not_written_so(text: str) -> None:
    # Of words that come again and again the compact detector says that they are Japanese.
    assert "ja" not in identify(text * 30).shares


NEIGHBOURS = {
    "hr": [
        "Djeca su u srijedu poslije podne vidjela bijelu zvijezdu na sjeveru.",
        "Tvrtka je u siječnju povećala plaće svojim djelatnicima za pet posto.",
        "Na kolodvoru smo tjedan dana čekali vlak koji uopće nije dolazio.",
        "Gradsko je vijeće u četvrtak prihvatilo prijedlog proračuna za sljedeću godinu. Najviše "
        "će se novca uložiti u obnovu škola i vrtića, a dio sredstava namijenjen je obali. "
        "Oporba smatra da prihodi nisu točno procijenjeni i najavljuje svoje primjedbe.",
        "Kad se vratila s mora, baka je u vrtu zatekla suhu zemlju i uvele rajčice. Zalijevala ih "
        "je cijelu večer, a susjed joj je donio vreću gnojiva. Sljedećega je jutra padala kiša pa "
        "se smijala samoj sebi i rekla da bi ubuduće trebala više vjerovati vremenskoj prognozi.",
    ],
    "sr": [
        "Deca su u sredu posle podne videla belu zvezdu na severu, iznad reke.",
        "Preduzeće je u januaru povećalo plate svojim zaposlenima za pet odsto.",
        "Na stanici smo nedelju dana čekali voz koji uopšte nije dolazio.",
        "Skupština grada je u četvrtak usvojila predlog budžeta za sledeću godinu. Najviše novca "
        "biće uloženo u obnovu škola i vrtića, a deo sredstava namenjen je uređenju keja. "
        "Opozicija smatra da prihodi nisu tačno procenjeni i najavljuje svoje primedbe.",
        "Kada se vratila sa mora, baka je u bašti zatekla suvu zemlju i uveli paradajz. Zalivala "
        "ga je celo veče, a komšija joj je doneo džak đubriva. Sledećeg jutra je padala kiša, pa "
        "se smejala samoj sebi i rekla da ubuduće treba više da veruje vremenskoj prognozi.",
    ],
}


@pytest.mark.parametrize(
    ("code", "text"), [(code, text) for code, texts in NEIGHBOURS.items() for text in texts]
)
def test_croatian_is_told_from_serbian_in_latin_script(code: str, text: str) -> None:
    assert detect(text).code == code
    assert detect(text.upper()).code == code


def evidence(text: str) -> float:
    return weighed(kinds(text))


def test_words_of_one_dictionary_are_evidence_for_it() -> None:
    assert evidence("sljedeći prijedlog, cijela djeca") < -5
    assert evidence("sledeći predlog, cela deca") > 5
    assert evidence("SLEDEĆI PREDLOG") == evidence("sledeći predlog") > 0
    assert evidence("Europska Tjedan") == evidence("europska tjedan") < 0


def test_names_of_places_and_words_of_both_are_no_evidence() -> None:
    assert evidence("Bela Reka Rijeka Bijelo hrvatske srpski, grad i škola") == 0
    assert evidence("") == evidence("12 !") == evidence("a" * 5_000) == 0


def test_a_text_of_any_length_is_judged_by_windows() -> None:
    assert detect((SENTENCES["ru"] + " ") * 20_000).code == "ru"


def test_the_same_text_has_the_same_figures() -> None:
    text = f"{SERBIAN_LATIN} {SENTENCES['hr']} {SENTENCES['en']} {SENTENCES['mk']}" * 5
    assert identify(text) == identify(text)


@settings(deadline=None)
@given(st.text(max_size=400))
def test_any_text_gets_an_answer(text: str) -> None:
    code, confidence = detect(text)
    assert code
    assert 0 <= confidence <= 1
