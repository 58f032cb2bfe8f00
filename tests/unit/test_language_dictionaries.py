"""Spelling dictionaries as lists of forms, and pairs of old yat in them."""

from pathlib import Path

import pytest

from eval.language_dictionaries import Entry, entries, yat

AFFIXES = """SET UTF-8
FLAG {flag}
{aliases}
SFX {a} Y 3
SFX {a} 0 u [^a]
SFX {a} a e a  # with a remark
SFX {a} a 0 [^j]a
PFX {b} Y 1
PFX {b} 0 ne .
"""
ALIASES = "AF 2\nAF 10,20\nAF 10"


def _read(folder: Path, affixes: str, words: str) -> dict[str, frozenset[str]]:
    (folder / "x.aff").write_text(affixes, "utf-8")
    (folder / "x.dic").write_text(words, "utf-8")
    return {entry.lemma: entry.forms for entry in entries(folder / "x.aff")}


@pytest.mark.parametrize(
    ("affixes", "both", "one"),
    [
        (AFFIXES.format(flag="num", aliases="", a="10", b="20"), "10,20", "10"),
        (AFFIXES.format(flag="long", aliases="", a="Aa", b="Bb"), "AaBb", "Aa"),
        (AFFIXES.format(flag="num", aliases=ALIASES, a="10", b="20"), "1", "2"),
    ],
)
def test_affix_rules_make_the_forms(tmp_path: Path, affixes: str, both: str, one: str) -> None:
    found = _read(tmp_path, affixes, f"4\ngrad/{both}\nzemlja/{one}\nkuća\nBeograd/{one}\n")
    assert found == {
        "grad": {"grad", "gradu", "negrad", "negradu"},
        "zemlja": {"zemlja", "zemlje"},
        "kuća": {"kuća"},
    }


def _entry(lemma: str, flags: str, *forms: str) -> Entry:
    return Entry(lemma, frozenset(flags), frozenset((lemma, *forms)))


def test_a_pair_of_yat_has_one_inflection_and_no_other_lemma() -> None:
    ijekavian, ekavian = yat(
        [
            _entry("mlijeko", "A", "mlijeka"),
            _entry("mleko", "A", "mleka"),
            _entry("linije", "B"),
            _entry("line", "C"),
            _entry("njega", "D", "njegu"),
            _entry("nega", "D", "negu"),
            _entry("on", "E", "njega"),
        ]
    )
    assert ijekavian == {"mlijeko", "mlijeka", "njegu"}
    assert ekavian == {"mleko", "mleka", "nega", "negu"}
