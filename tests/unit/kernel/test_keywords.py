"""Terms of passages and questions in eight languages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.keywords import LANGUAGES, MAX_GROUPS, Word, analyse, query_terms, tsvector


def terms(text: str, language: str) -> set[str]:
    """All terms of a text."""
    return {term for word in analyse(text, language) for term in word.terms}


def asked(text: str) -> set[str]:
    """All terms of a question."""
    return set(query_terms(text).terms)


SAME_WORD = [
    ("en", "fines", "fine"),
    ("en", "inserting", "insert"),
    ("en", "café", "cafe"),
    ("de", "Straße", "STRASSE"),
    ("de", "Fristen", "Frist"),
    ("de", "Löschung", "löschungen"),
    ("de", "Daten­schutz", "Datenschutz"),
    ("ru", "учёта", "учет"),
    ("ru", "защите", "защита"),
    ("ru", "договоры", "договора"),
    ("ru", "за\u0301мок", "замок"),
    ("bg", "гражданите", "граждани"),
    ("bg", "правото", "права"),
    ("mk", "податоците", "податоци"),
    ("mk", "законот", "закон"),
    ("sl", "zakona", "zakon"),
    ("sl", "člena", "clen"),
    ("sr", "података", "podataka"),
    ("sr", "Љубав", "ljubav"),
    ("sr", "заштите", "заштита"),
    ("hr", "zaštite", "zaštita"),
    ("hr", "članak", "clanak"),
]


@pytest.mark.parametrize(("language", "one", "other"), SAME_WORD)
def test_forms_of_a_word_share_a_term(language: str, one: str, other: str) -> None:
    assert terms(one, language) & terms(other, language)


@pytest.mark.parametrize(("language", "one", "other"), SAME_WORD)
def test_a_question_finds_every_form(language: str, one: str, other: str) -> None:
    assert asked(other) & terms(one, language)
    assert asked(one) & terms(other, language)


DIFFERENT = [
    ("en", "university", "insurance"),
    ("de", "Recht", "Regel"),
    ("ru", "закон", "право"),
    ("bg", "закон", "право"),
    ("sl", "zakon", "pravo"),
    ("sr", "закон", "право"),
]


@pytest.mark.parametrize(("language", "one", "other"), DIFFERENT)
def test_other_words_share_nothing(language: str, one: str, other: str) -> None:
    assert not terms(one, language) & terms(other, language)


def test_croatian_and_serbian_share_their_terms() -> None:
    assert terms("Заштита података", "sr") == terms("zaštita podataka", "hr")


def test_languages_do_not_collide() -> None:
    assert not terms("die Gift", "de") & terms("die gift", "en")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "What is the and of who would have been"),
        ("de", "Wer hat das und die nicht für über"),
        ("ru", "что это и не было ещё"),
        ("bg", "какво е това и на"),
        ("mk", "што е тоа и на"),
        ("sl", "kaj je to in na če"),
        ("sr", "шта је то и на"),
        ("hr", "što je to i na"),
    ],
)
def test_stop_words_are_no_terms(language: str, text: str) -> None:
    assert analyse(text, language) == []
    assert query_terms(text).words == ()


def test_a_stop_word_of_the_question_is_no_term_of_another_language() -> None:
    assert not asked("Wie lang ist die Frist?") & terms("they die", "en")
    assert asked("When do animals die?") & terms("they die", "en")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("KB_QDRANT_URL", "=kb_qdrant_url"),
        ("Verordnung (EU) 2016/679", "=2016/679"),
        ("nach § 5 Abs. 2", "=§5"),
        ("§§ 12a ff.", "=§12a"),
        ("Art. 33(1)", "=33(1)"),
        ("20 000 000 EUR", "=20000000"),
        ("20.000.000 EUR", "=20000000"),
        ("20,000,000 EUR", "=20000000"),
        ("20\u00a0000\u202f000 EUR", "=20000000"),
        ("GPT4", "=gpt4"),
        ("v2.14.1", "=v2.14.1"),
        ("2025-12-30", "=2025-12-30"),
        ("mail@example.org", "=mail@example.org"),
        ("https://example.org/a", "=https://example.org/a"),
    ],
)
@pytest.mark.parametrize("language", ["en", "de", "ru", "unknown"])
def test_what_is_typed_is_kept(text: str, typed: str, language: str) -> None:
    assert typed in terms(text, language)
    assert typed in asked(text)


def test_parts_of_an_identifier_are_found_too() -> None:
    assert asked("qdrant url") <= terms("KB_QDRANT_URL", "en") | asked("qdrant url")
    assert terms("KB_QDRANT_URL", "en") >= {"en:kb", "en:qdrant", "en:url"}


def test_a_hyphen_may_be_left_out() -> None:
    assert asked("email") & terms("e-mail", "en")
    assert asked("e-mail") & terms("email", "en")
    assert asked("Grundverordnung") & terms("Datenschutz-Grundverordnung", "de")


def test_a_word_tells_its_number_from_others() -> None:
    assert "en:articl 33" in terms("under Article 33(1)", "en")
    assert "en:articl 33" in asked("What does Article 33 say?")
    assert "sr:clan 5" in terms("Члан 5.", "sr") & asked("član 5")
    assert "en:eu 5" not in terms("EU; 5", "en")


def test_a_stop_word_does_not_own_a_number() -> None:
    assert terms("nach 5", "de") == {"=5"}
    assert asked("die Frist nach 5 Tagen").isdisjoint({"en:nach 5"})


def test_possessive_ends_are_left_out() -> None:
    assert terms("the user's files", "en") == terms("the user files", "en")


def test_an_unknown_language_is_searched_by_whole_words() -> None:
    assert terms("Łódź", "pl") & asked("lodz")
    assert terms("слово", "unknown") & asked("слово")


def test_every_word_is_required_but_not_its_repetitions() -> None:
    query = query_terms("frist nach § 5 KB_URL")
    required = {t for number in query.required for t in query.words[number].terms}
    assert {"de:frist", "=5", "en:kb", "en:url"} <= required
    assert not required & {"=§5", "=kb_url"}


def test_legacy_joins_words_and_the_others_take_any() -> None:
    query = query_terms("frist § 5", ["de"])
    every = query.tsquery("legacy", query.terms)
    assert every == "('de:frist' | 'de~frist' | 'xx:frist' | 'xx~frist') & ('=5')"
    assert " & " not in query.tsquery("or", query.terms)
    assert query.tsquery("or", ["=5"]) == "('=5')"


def test_terms_and_groups_stand_beside_each_other() -> None:
    query = query_terms("Frist und Bußgeld")
    assert len(query.terms) == len(query.groups)
    assert [b - a for a, b in pairwise(query.groups)].count(1) == len(query.words) - 1


def test_a_word_asked_twice_counts_once() -> None:
    assert query_terms("Frist frist FRIST") == query_terms("frist")


def test_a_question_has_a_limit() -> None:
    assert len(query_terms(" ".join(f"word{n}" for n in range(10_000))).words) == MAX_GROUPS


def test_a_vector_counts_every_place_of_a_term() -> None:
    words = [Word(("en:a",)), Word(("en:b", "en~b")), Word(("en:a",))]
    assert tsvector(words) == "'en:a':1,3 'en:b':2 'en~b':2"


def test_quotes_and_backslashes_are_written_for_postgres() -> None:
    assert tsvector([Word(("=it's",)), Word(("=a\\b",))]) == "'=it''s':1 '=a\\\\b':2"


@pytest.mark.parametrize("text", ["", " ", "…—!?", "\u200b\u00ad", "\x00", "🙂🙂", "'’"])
def test_no_words_are_no_terms(text: str) -> None:
    assert analyse(text, "en") == []
    assert query_terms(text).words == ()


def test_a_giant_word_is_cut() -> None:
    found = analyse("a" * 100_000 + " " + "x_" * 50_000 + "y", "en")
    assert max(len(t) for word in found for t in word.terms) < 100


@given(st.text(), st.sampled_from([*LANGUAGES, "unknown", ""]))
def test_any_text_is_analysed_alike_twice_and_asked_for_by_itself(text: str, language: str) -> None:
    words = analyse(text, language)
    assert words == analyse(text, language)
    assert all(word.terms and all(word.terms) for word in words)
    assert all(ord(c) > 31 for word in words for term in word.terms for c in term)
