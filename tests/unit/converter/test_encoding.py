"""Bytes to text."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.errors import Refusal
from services.converter.parsing.encoding import decode

SAMPLES = Path(__file__).parents[3] / "../shared/evaldata/parsing/encodings"
RUSSIAN = "Комиссия опубликует свой доклад до конца месяца, а граждане выскажут замечания."
CROATIAN = (
    "Povjerenstvo će izvješće objaviti prije kraja mjeseca, građani će žustro raspravljati o tome."
)
GERMAN = "Die Größe der Fläche übertrifft alle Erwartungen, schön für die Gäste des Schlosses."


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
@pytest.mark.parametrize("text", [RUSSIAN, CROATIAN, GERMAN, "für alle da"])
def test_unicode_is_read_with_and_without_a_mark(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding))[0] == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "windows-1251"), (RUSSIAN, "koi8-r"), (RUSSIAN, "iso-8859-5"),
        (RUSSIAN, "cp866"), (RUSSIAN, "mac-cyrillic"),
        (CROATIAN, "windows-1250"), (CROATIAN, "iso-8859-2"), (GERMAN, "windows-1252"),
    ],
)  # fmt: skip
def test_eight_bit_charsets_are_told_by_their_words(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding))[0] == text


BULGARIAN = (
    "След като идентичността ви е зададена, можете да настроите редактор, който се използва, "
    "когато трябва да въведете съобщение. Това е важно за хората, които живеят в града."
)
SERBIAN = (
    "Како се ради? Резултати које су добили наши људи показују да је њихова кућа велика. Ако више "
    "не желите књигу, можете да је вратите у библиотеку, где је ваш пријатељ."
)
QUOTED_CROATIAN = (
    "Ovo je čist hrvatski tekst o životu u većem gradu – „đačkoj šumi”, žabi i Šibeniku… "
    "Pritisnite „Otvori“ – tada će se otvoriti »Postavke« – i odaberite „Više“."
)
SLOVENE = (
    "Sledeči primeri so za novo pogovorno okno, imenovano »Pogovorno okno 1«. V urejevalniku "
    "izberite »Lastnosti« – nato »Dogodki« – in določite »Makro«, če želite – tako je najlažje."
)


@pytest.mark.parametrize("encoding", ["windows-1251", "mac-cyrillic", "iso-8859-5"])
@pytest.mark.parametrize("text", [BULGARIAN, SERBIAN, RUSSIAN + " Это я знаю. Пусть так."])
def test_capitals_and_single_letters_tell_cyrillic_charsets_apart(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding))[0] == text


@pytest.mark.parametrize("text", [QUOTED_CROATIAN, SLOVENE])
def test_quotes_and_dashes_do_not_hide_a_central_european_charset(text: str) -> None:
    assert decode(text.encode("windows-1250"))[0] == text


def test_line_ends_marks_and_nul_are_normalised() -> None:
    assert decode(b"\xef\xbb\xbfa\r\nb\rc\0\n")[0] == "a\nb\nc\n"


def test_a_wrong_declaration_is_survived() -> None:
    assert decode(RUSSIAN.encode("windows-1251"), "utf-8")[0] == RUSSIAN
    assert decode(RUSSIAN.encode("windows-1251"), "iso-8859-1")[0] == RUSSIAN
    assert decode(RUSSIAN.encode("koi8-r"), "no-such-charset")[0] == RUSSIAN


def test_a_right_declaration_is_believed() -> None:
    assert decode("Preis: 5 €".encode("cp1252"), "windows-1252")[0] == "Preis: 5 €"


@pytest.mark.parametrize(
    "data",
    [
        RUSSIAN.encode()[:-2],
        b"hello \xff\xfe invalid \x80\x81",
        bytes(range(128, 256)),
        "odd".encode("utf-16") + b"\0",
    ],
)
def test_bytes_that_no_charset_explains_are_refused(data: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        decode(data)
    assert refused.value.code == "invalid-encoding"


def test_a_web_page_with_a_broken_letter_is_still_read() -> None:
    assert decode(RUSSIAN.encode() + b"\xd0!", lenient=True)[0] == f"{RUSSIAN}\ufffd!"


@given(st.binary(max_size=600))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    try:
        text, _ = decode(data)
    except Refusal as refusal:
        assert refusal.code == "invalid-encoding"
    else:
        assert "\0" not in text
        assert "\r" not in text


def test_real_files_in_old_charsets_are_read_right() -> None:
    if not SAMPLES.exists():
        pytest.skip(f"no evaluation data at {SAMPLES}")
    rows = [json.loads(line) for line in (SAMPLES / "manifest.jsonl").read_text().splitlines()]
    wrong = []
    for row in rows:
        data = (SAMPLES / row["file"]).read_bytes()
        truth = data.decode(row["encoding"]).lstrip("\ufeff").replace("\0", "")
        if decode(data)[0] != truth.replace("\r\n", "\n").replace("\r", "\n"):
            wrong.append(row["file"])
    assert len(wrong) * 50 < len(rows), wrong
