"""OCR: two engines, one yardstick; pages set straight; both scripts."""

import socket
import stat
from pathlib import Path
from typing import Any

import pytest
from rapidfuzz.distance import Levenshtein

from services.converter.parsing import ocr, ocr_engines
from services.converter.parsing.ocr import PageReader, Scan, told_engines
from services.converter.parsing.ocr_engines import (
    Clock,
    Rapid,
    Seen,
    Tesseract,
    TooSlow,
    rapid,
    tesseract,
)
from services.converter.parsing.ocr_text import score, text_of, with_separators
from services.converter.parsing.upright import Frame
from services.converter.settings import ParseOptions
from tests.unit.converter.drawn import TEXTS, drawn, scanned

FACES = ("sans", "serif", "narrow")


@pytest.fixture
def both() -> None:
    if tesseract() is None:
        pytest.skip("NOT TESTED: tesseract is not installed")
    assert rapid() is not None


def said(scan: Scan | None) -> str:
    assert scan is not None
    return " ".join(word.text for word in scan.words)


def wrong(scan: Scan | None, text: str) -> float:
    return Levenshtein.distance(said(scan), text) / len(text)


def read(image: Any, reader: PageReader | None = None) -> Scan | None:
    size = float(image.width) / 2, float(image.height) / 2
    return (reader or PageReader()).read(image, 1, size)


def seen(text: str, confidence: float = 0.9) -> list[Seen]:
    return [
        Seen(word, 60.0 * n, 0, 60.0 * n + 50, 20, 20, confidence)
        for n, word in enumerate(text.split())
    ]


# --- the yardstick ----------------------------------------------------------------------------


def test_an_engine_that_is_sure_of_nonsense_loses() -> None:
    garbage = "Cobet o6jabnbyje roguwmbu u3beuwtaj npe kpaja mapta CBaku 4naH"
    scores = score(
        {
            "tesseract": text_of(seen(TEXTS["sr-Cyrl"], 0.6)),
            "rapidocr": text_of(seen(garbage, 0.99)),
        }
    )
    assert scores["tesseract"] > 0.8
    assert scores["rapidocr"] < 0.1


def test_an_engine_that_left_out_half_of_the_page_loses() -> None:
    half = " ".join(TEXTS["en"].split()[:13])
    scores = score({"a": text_of(seen(TEXTS["en"])), "b": text_of(seen(half, 1.0))})
    assert scores["a"] > 0.9
    assert scores["b"] < 0.6


def test_a_page_of_figures_is_judged_by_confidence_and_amount() -> None:
    scores = score({"a": text_of(seen("12 450 17 380", 0.9)), "b": text_of(seen("12 450", 0.95))})
    assert scores == {"a": 0.9, "b": 0.475}


def test_nothing_read_has_no_score() -> None:
    assert score({"a": text_of([]), "b": text_of([])}) == {"a": 0.0, "b": 0.0}


@pytest.mark.parametrize("language", TEXTS)
def test_the_dictionaries_know_every_language_and_script(language: str) -> None:
    text = text_of(seen(TEXTS[language]))
    assert text.plausibility > 0.85
    assert text.language == language.partition("-")[0]


@pytest.mark.parametrize(
    ("languages", "models"),
    [
        (("de",), ("deu", "eng")),
        (("de", "hr"), ("deu", "hrv", "eng")),
        (("ru", "en"), ("rus", "eng")),
        (("bg", "de"), ("bul", "deu", "eng")),
        (("sr-Cyrl", "en"), ("srp", "eng")),
        (("sr-Latn",), ("srp_latn", "eng")),
    ],
)
def test_a_page_in_several_languages_is_read_with_all_of_them(
    languages: tuple[str, ...], models: tuple[str, ...]
) -> None:
    text = text_of(seen(" ".join(f"{TEXTS[code]} {TEXTS[code]}" for code in languages)))
    assert set(text.languages) == set(models)
    assert text.languages[-1] == "eng"
    assert text.plausibility > 0.85


def test_a_word_of_another_language_is_not_another_language() -> None:
    text = text_of(seen(f"{TEXTS['ru']} {TEXTS['ru']} Made in Germany"))
    assert text.languages == ("rus", "eng")


def test_the_half_of_a_page_in_another_script_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    class Both(_Told):
        def read(self, image: Any, languages: Any, clock: Clock) -> list[Seen]:
            self.asked.append(tuple(languages))
            garbled = (
                "Оег Вм уегоИев зетеп фагИсЬеп " * 5,
                "CoBeT nykyet exxerogHbii oTyeT ueHa " * 5,
            )
            latin = TEXTS["de"] if "deu" in languages else garbled[0]
            other = TEXTS["ru"] if "rus" in languages else garbled[1]
            return seen(f"{latin} {other}")

    engine = Both("", "Latin")
    monkeypatch.setattr(ocr, "engines", lambda: (engine, None))
    scan = read(drawn(TEXTS["en"]))
    assert said(scan) == f"{TEXTS['de']} {TEXTS['ru']}"


def test_specks_are_no_text() -> None:
    assert not text_of(seen("~ | . -", 0.3)).words
    assert len(text_of(seen("– a", 0.9)).words) == 2


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("_", 0.9), ("__ | -", 0.7), ("2", 0.86), ("REN", 0.45), ("華 青 罐", 0.9),
        ("а ее ый Про рана ра Дела: | | темы тут та", 0.29),
        ("fi ll Wy aeee ooqw ppqz xxkr vvqp zzrk mmkq", 0.62),
    ],
)  # fmt: skip
def test_what_engines_see_in_noise_is_no_text(
    text: str, confidence: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "engines", lambda: (_Whole(text, confidence=confidence), None))
    assert read(drawn(TEXTS["en"])) is None


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("12 450 17 380", 0.8), ("Ulica 5", 0.7), (TEXTS["mk"], 0.6),
        ("KX-2231 QWR ZTTP-99 BRRTV ZKLMN PPQRS TTRXZ", 0.85),
    ],
)  # fmt: skip
def test_figures_names_and_badly_printed_text_are_text(
    text: str, confidence: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "engines", lambda: (_Whole(text, confidence=confidence), None))
    assert said(read(drawn(TEXTS["en"]))) == text


# --- languages and scripts --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.usefixtures("both")
def test_a_scanned_page_is_read_in_its_own_script(language: str) -> None:
    face = FACES[list(TEXTS).index(language) % len(FACES)]
    scan = read(scanned(drawn(TEXTS[language], face=face)))
    assert wrong(scan, TEXTS[language]) < 0.04
    assert scan is not None
    assert set(scan.reading.scores) == {"tesseract", "rapidocr"}
    assert scan.reading.scores[scan.reading.engine] == max(scan.reading.scores.values())
    if any("\u0400" <= letter <= "\u04ff" for letter in TEXTS[language]):
        assert scan.reading.engine == "tesseract"
        assert scan.reading.scores["rapidocr"] < 0.2


class _Told:
    """A Tesseract that answers from a list and notes what it was asked."""

    name = "tesseract"
    languages = frozenset({"osd", *ocr_engines.LATIN, *ocr_engines.CYRILLIC})

    def __init__(self, text: str, script: str) -> None:
        self.text, self.script = text, script
        self.asked: list[tuple[str, ...]] = []

    def orientation(self, image: Any, clock: Clock) -> ocr_engines.Orientation:
        return ocr_engines.Orientation(0, 9.0, self.script)

    def read(self, image: Any, languages: Any, clock: Clock) -> list[Seen]:
        self.asked.append(tuple(languages))
        return seen(self.text)


class _Whole(_Told):
    """Reads every page, all over it, in the time that it takes."""

    def __init__(self, text: str, *, confidence: float = 0.95, script: str = "Latin") -> None:
        super().__init__(text, script)
        self.confidence, self.pages = confidence, 0

    def read(self, image: Any, languages: Any, clock: Clock) -> list[Seen]:
        self.pages += 1
        box = (0, 0, image.width, image.height, 20, self.confidence)
        return [Seen(word, *box) for word in self.text.split()]


class _Second(_Whole):
    name = "rapidocr"

    def read(self, image: Any, clock: Clock) -> list[Seen]:  # type: ignore[override]
        return super().read(image, (), clock)


class _Endless(_Whole):
    """Never comes to an end by itself."""

    def read(self, image: Any, languages: Any, clock: Clock) -> list[Seen]:
        while True:
            clock.left()


def reader_of(monkeypatch: pytest.MonkeyPatch, *both: Any, **options: float) -> PageReader:
    monkeypatch.setattr(ocr, "engines", lambda: both)
    return PageReader(ParseOptions(**options))


def engines_of(scan: Scan | None) -> set[str]:
    assert scan is not None
    return set(scan.reading.scores)


def test_of_pages_that_were_read_well_one_in_ten_is_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = _Second(TEXTS["de"])
    reader = reader_of(monkeypatch, _Whole(TEXTS["de"]), second)
    page = drawn(TEXTS["de"])
    compared = [n for n in range(21) if "rapidocr" in engines_of(read(page, reader))]
    assert compared == [0, 10, 20]
    assert second.pages == 3


@pytest.mark.parametrize(
    "first",
    [
        _Whole(TEXTS["de"], confidence=0.8),
        _Whole("rnmbr icprt qffcc zzkt brnt " * 3 + TEXTS["de"]),
    ],
    ids=["confidence", "words"],
)
def test_a_page_of_which_the_first_engine_is_not_sure_is_compared(
    first: _Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = reader_of(monkeypatch, first, _Second(TEXTS["de"]))
    first.text = (
        first.text if first.confidence < 0.9 else "rnmbr icprt qffcc zzkt " * 6 + first.text
    )
    page = drawn(TEXTS["de"])
    assert all("rapidocr" in engines_of(read(page, reader)) for _ in range(4))


def test_a_page_of_which_the_first_engine_left_out_a_part_is_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Half(_Whole):
        def read(self, image: Any, languages: Any, clock: Clock) -> list[Seen]:
            whole = super().read(image, languages, clock)
            return [word._replace(bottom=image.height / 2) for word in whole]

    second = _Second(TEXTS["en"])
    reader = reader_of(monkeypatch, Half(TEXTS["en"]), second)
    page = drawn(TEXTS["en"] * 4)
    assert all("rapidocr" in engines_of(read(page, reader)) for _ in range(4))


def figure(text: str, left: float = 0, confidence: float = 0.98) -> Seen:
    return Seen(text, left, 0, left + 50, 20, 20, confidence)


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("45%", figure("4.5"), "4.5%"), ("1234567", figure("1,234,567"), "1,234,567"),
        ("45%", figure("4.6"), "45%"), ("45%", figure("4.5", left=80), "45%"),
        ("45%", figure("4.5", confidence=0.7), "45%"), ("4.5", figure("45"), "4.5"),
        ("3-12", figure("3.12"), "3-12"), ("year", figure("4.5"), "year"),
    ],
)  # fmt: skip
def test_a_point_in_a_figure_that_one_engine_lost_is_taken_from_the_other(
    first: str, second: Seen, kept: str
) -> None:
    (word,) = with_separators([figure(first)], [second])
    assert word.text == kept


def test_a_page_with_many_figures_is_read_by_both(monkeypatch: pytest.MonkeyPatch) -> None:
    said_ = TEXTS["en"] + " 45% 13% 1,841 753 12 99"
    reader = reader_of(monkeypatch, _Whole(said_), _Second(said_))
    page = drawn(TEXTS["en"])
    assert all(engines_of(read(page, reader)) == {"tesseract", "rapidocr"} for _ in range(3))


def test_where_the_second_engine_was_better_it_reads_the_next_page_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    half = " ".join(TEXTS["en"].split()[:12])
    reader = reader_of(monkeypatch, _Whole(half), _Second(TEXTS["en"]))
    page = drawn(TEXTS["en"])
    for _ in range(3):
        scan = read(page, reader)
        assert scan is not None
        assert scan.reading.engine == "rapidocr"


def test_the_second_engine_is_not_asked_for_letters_that_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = _Second("nonsense")
    first = _Whole(TEXTS["bg"], confidence=0.7, script="Cyrillic")
    reader = reader_of(monkeypatch, first, second)
    page = drawn(TEXTS["bg"])
    assert [engines_of(read(page, reader)) for _ in range(3)][1:] == [{"tesseract"}] * 2
    assert second.pages == 1


def test_an_engine_that_is_late_does_not_cost_the_reading_of_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = reader_of(monkeypatch, _Endless(""), _Second(TEXTS["hr"]), page_seconds=0.3)
    scan = read(drawn(TEXTS["hr"]), reader)
    assert said(scan) == TEXTS["hr"]
    assert engines_of(scan) == {"rapidocr"}


@pytest.mark.parametrize("second", [None, _Second("Cobet roguwmbu u3beuwtaj npe kpaja CBaku 4naH")])
def test_a_page_that_cannot_be_believed_when_its_time_is_up_is_given_up(
    second: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = reader_of(monkeypatch, _Endless(""), second, page_seconds=0.3)
    with pytest.raises(TooSlow):
        read(drawn(TEXTS["sr-Cyrl"]), reader)


def test_when_the_time_of_the_document_is_up_no_page_is_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = _Whole(TEXTS["en"])
    reader = reader_of(monkeypatch, engine, None, total_seconds=0.0)
    with pytest.raises(TooSlow):
        read(drawn(TEXTS["en"]), reader)
    assert not engine.pages


@pytest.mark.parametrize("told", ["Latin", "Cyrillic", "", "Thai"])
def test_a_script_that_was_told_wrongly_is_found_out(
    told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cyrillic(_Told):
        def read(self, image: Any, languages: Any, clock: Clock) -> list[Seen]:
            self.asked.append(tuple(languages))
            right = {"rus", "mkd"} & set(languages)
            return seen(self.text if right else "CoBeToT ro o6jaByBa roAMWHMOT M3BeWTaj")

    engine = Cyrillic(TEXTS["mk"], told)
    monkeypatch.setattr(ocr, "engines", lambda: (engine, None))
    assert said(read(drawn(TEXTS["en"]))) == TEXTS["mk"]


def test_a_language_is_found_once_and_tried_first_on_the_next_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = _Told(TEXTS["mk"], "Cyrillic")
    monkeypatch.setattr(ocr, "engines", lambda: (engine, None))
    reader = PageReader()
    page = drawn(TEXTS["en"])
    read(page, reader)
    assert engine.asked == [ocr_engines.CYRILLIC, ("mkd", "eng")]
    read(page, reader)
    assert engine.asked[2:] == [("mkd", "eng")]


@pytest.mark.usefixtures("both")
def test_only_installed_languages_are_asked_for() -> None:
    installed = tesseract()
    assert installed is not None
    partly = Tesseract(installed._program, frozenset({"eng"}))
    page = drawn(TEXTS["en"])
    assert partly.read(page, ("rus", "mkd"), Clock(60)) == []
    assert len(partly.read(page, ("deu", "eng"), Clock(60))) > 20


# --- position ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("quarters", [1, 2, 3])
@pytest.mark.parametrize("language", ["de", "bg"])
@pytest.mark.usefixtures("both")
def test_a_turned_page_is_read_and_its_boxes_are_those_of_the_page_as_shown(
    language: str, quarters: int
) -> None:
    straight = drawn(TEXTS[language])
    shown = straight.rotate(90 * quarters, expand=True)
    scan = read(shown)
    assert wrong(scan, TEXTS[language]) < 0.04
    assert scan is not None
    first = scan.words[0]
    box = scan.frame.back(ocr_box(first))
    # The first word stands at (80, 180) of the straight page, in pixels.
    wide, high = straight.width / 2, straight.height / 2
    x, y = 45.0, 96.0
    want = {1: (y, wide - x), 2: (wide - x, high - y), 3: (high - y, x)}[quarters]
    assert box.left - 3 <= want[0] <= box.right + 3
    assert box.top - 3 <= want[1] <= box.bottom + 3


def ocr_box(word: Any) -> Any:
    from services.converter.parsing.pdf_glyphs import Box

    return Box(word.left, word.top, word.right, word.bottom)


@pytest.mark.slow
@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_turned_page_is_read_without_tesseract(
    quarters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "engines", lambda: (None, rapid()))
    scan = read(drawn(TEXTS["hr"]).rotate(90 * quarters, expand=True))
    assert wrong(scan, TEXTS["hr"]) < 0.04


@pytest.mark.slow
@pytest.mark.usefixtures("both")
def test_words_of_a_page_askew_stand_on_level_lines() -> None:
    scan = read(scanned(drawn(TEXTS["en"]), angle=-3.0))
    assert scan is not None
    assert wrong(scan, TEXTS["en"]) < 0.04
    tops = [word.top for word in scan.words[:10]]
    assert max(tops) - min(tops) < 6


# --- engines that are missing or fail ---------------------------------------------------------


@pytest.mark.slow
def test_without_tesseract_the_bundled_engine_reads_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ocr, "engines", lambda: (None, rapid()))
    scan = read(scanned(drawn(TEXTS["sl"])))
    assert wrong(scan, TEXTS["sl"]) < 0.04
    assert scan is not None
    assert scan.reading.engine == "rapidocr"
    assert set(scan.reading.scores) == {"rapidocr"}
    told = "read by rapidocr alone: without tesseract only Latin letters can be read"
    assert told_engines(ParseOptions()) == told


def test_without_any_engine_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ocr, "engines", lambda: (None, None))
    assert read(drawn(TEXTS["en"])) is None
    assert told_engines(ParseOptions()) == "not read: neither tesseract nor rapidocr is installed"
    assert told_engines(ParseOptions(ocr=False)) == "not read: OCR is switched off"


def test_the_bundled_engine_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    fresh = rapid.__wrapped__()
    assert isinstance(fresh, Rapid)
    assert "council" in " ".join(word.text for word in fresh.read(drawn(TEXTS["en"]), Clock(60)))


def test_a_bundled_engine_without_its_models_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import rapidocr

    monkeypatch.setattr(rapidocr, "__file__", str(tmp_path / "__init__.py"))
    assert rapid.__wrapped__() is None


def test_the_bundled_engine_reads_after_it_was_asked_for_the_orientation() -> None:
    engine = rapid()
    assert engine is not None
    blank = drawn("")
    assert engine.orientation(blank, Clock(60)) is None
    assert engine.read(blank, Clock(60)) == []
    assert len(engine.read(drawn(TEXTS["en"]), Clock(60))) > 20


def program(folder: Path, script: str) -> Tesseract:
    path = folder / "tesseract"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Tesseract(str(path), frozenset({"eng", "osd"}))


@pytest.mark.parametrize("script", ["exit 3", "echo '<html'", "true"])
def test_a_program_that_fails_has_read_nothing(script: str, tmp_path: Path) -> None:
    engine = program(tmp_path, script)
    assert engine.read(drawn("A"), ("eng",), Clock(20)) == []
    assert engine.orientation(drawn("A"), Clock(20)) is None


def test_a_program_that_hangs_is_ended_in_time(tmp_path: Path) -> None:
    engine = program(tmp_path, "exec sleep 300")
    with pytest.raises(TooSlow):
        engine.read(drawn("A"), ("eng",), Clock(0.5))


def test_the_bundled_engine_stops_between_lines() -> None:
    engine = rapid()
    assert engine is not None
    page = drawn(TEXTS["en"] * 20)
    assert len(engine.read(page, Clock(60))) > 200
    lines = engine._lines
    read, left = lines._read, [3]

    def counted(batch: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            lines.clock = Clock(0)
        return read(batch)

    lines._read = counted
    try:
        with pytest.raises(TooSlow):
            engine.read(page, Clock(60))
    finally:
        lines._read = read
    assert left[0] == 0


def test_a_speck_is_no_page() -> None:
    assert read(drawn("A").resize((3, 3))) is None


class _Misled(_Told):
    """Says that an upright page lies on its head, and reads nonsense in any other position."""

    def __init__(self, text: str, script: str, certainty: float) -> None:
        super().__init__(text, script)
        self._certainty = certainty

    def orientation(self, image: Any, clock: Clock) -> ocr_engines.Orientation:
        return ocr_engines.Orientation(2, self._certainty, self.script)

    def read(self, image: Any, languages: Any, clock: Clock) -> list[Seen]:
        self.asked.append(tuple(languages))
        upright = image.getpixel((85, 195)) < image.getpixel((image.width - 85, 10))
        return seen(self.text if upright else "vlk qrtz ppx wqw zzkr vbn mnb rtz plk")


@pytest.mark.parametrize(("script", "certainty"), [("Latin", 1.0), ("Devanagari", 30.0)])
def test_a_position_that_makes_no_sense_is_given_up(
    script: str, certainty: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = _Misled(TEXTS["sl"], script, certainty)
    monkeypatch.setattr(ocr, "engines", lambda: (engine, None))
    page = drawn(TEXTS["sl"], width=800)
    page.paste(0, (80, 190, 90, 200))
    scan = read(page)
    assert said(scan) == TEXTS["sl"]
    assert scan is not None
    assert scan.frame == Frame.of(page.width / 2, page.height / 2)


def test_words_whose_boxes_touch_keep_their_blank() -> None:
    from services.converter.parsing.pdf_shapes import join_words

    touching = [
        Seen("napredak", 10, 0, 90, 20, 20, 0.9), Seen("i", 90, 0, 96, 20, 20, 0.9),
        Seen("bolji", 97, 0, 140, 20, 20, 0.9),
    ]  # fmt: skip
    assert join_words(ocr._words(touching, 1.0)) == "napredak i bolji"


def test_lines_of_one_size_are_of_one_size() -> None:
    words = [Seen("a" * 9, 0, 30.0 * n, 90, 30.0 * n + 20, 20 + n % 3, 0.9) for n in range(9)]
    title = Seen("Title", 0, 400, 90, 440, 34, 0.9)
    sizes = [word.size for word in ocr._words([*words, title], 0.5)]
    assert set(sizes[:-1]) == {10.5}
    assert sizes[-1] == 17.0
