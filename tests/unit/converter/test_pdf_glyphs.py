"""Words by place, as two readers of a page tell them."""

from types import SimpleNamespace
from typing import Any

from docling_core.types.doc.base import BoundingBox
from docling_core.types.doc.page import BoundingRectangle

from services.converter.parsing.pdf_glyphs import _TEX_FONT, Box, Font, Glyphs, Piece, Type
from services.converter.parsing.pdf_words import Turn, words_of

TEXT = "the council takes note of what has been said and will not be long in doing so"
FONT = Font(10.0, False, False, False)


def page(*words: tuple[str, float, float]) -> Type:
    """Words with their left and right edges, on one line."""
    return Type(Glyphs(left, 100, right, 110, text, FONT, False) for text, left, right in words)


def pieces(known: Type, text: str, left: float, right: float) -> list[str]:
    ((_, found),) = known.at([Piece(text, Box(left, 98, right, 111))])
    return [piece.text for piece in found]


def test_words_that_one_reader_joins_are_divided_as_the_other_tells() -> None:
    known = page(("new", 50, 65), ("modules", 67, 100), ("here", 104, 120))
    assert pieces(known, "newmodules", 50, 100) == ["new", "modules"]


def test_a_ligature_that_one_reader_lacks_is_filled_in() -> None:
    assert pieces(page(("configure", 50, 90)), "con\ufffdgure", 50, 90) == ["configure"]


def test_letters_set_wide_stay_one_word() -> None:
    letters = [(letter, 50.0 + 10 * n, 55.0 + 10 * n) for n, letter in enumerate("WIDE")]
    assert pieces(page(*letters), "WIDE", 50, 85) == []


def test_parts_of_a_word_set_wide_stay_one_word() -> None:
    parts = page(("fo", 50, 58), ("rma", 60, 74), ("tte", 76, 86), ("d", 88, 93))
    assert pieces(parts, "formatted", 50, 93) == []
    assert pieces(page(("so", 50, 60), ("me", 62, 74)), "some", 50, 74) == []


def test_no_blank_comes_before_a_comma_or_a_bracket() -> None:
    for sign in (",", ".", "),", "’)."):
        known = page(("(value", 50, 80), (sign, 82, 88))
        assert pieces(known, "(value" + sign, 50, 88) == [], sign


def test_what_reads_otherwise_is_left_alone() -> None:
    assert pieces(page(("other", 50, 70), ("words", 75, 100)), "newmodules", 50, 100) == []
    assert pieces(page(("newmodules", 50, 100)), "newmodules", 50, 100) == []


def test_the_type_of_a_word_is_that_of_its_middle() -> None:
    ((font, _),) = page(("word", 50, 90)).at([Piece("word", Box(50, 98, 90, 111))])
    assert font == FONT
    assert list(page().at([Piece("word", Box(0, 0, 9, 9))])) == [(None, [])]


def cells(*texts: str) -> Any:
    """What docling's parser gives: words of a page, ten points apart."""
    made = []
    for n, text in enumerate(texts):
        rect = BoundingRectangle.from_bounding_box(
            BoundingBox(l=50 + 30 * n, t=98, r=75 + 30 * n, b=111)
        )
        made.append(SimpleNamespace(rect=rect, text=text, font_name="F1", from_ocr=False))
    return SimpleNamespace(word_cells=made)


def test_where_one_reader_sees_no_words_the_other_is_believed() -> None:
    english = TEXT.split()
    known = page(*((word, 50.0 + 30 * n, 75.0 + 30 * n) for n, word in enumerate(english * 3)))
    flat = Turn(0, 2000, 842)
    garbled = words_of(cells(*("❚❤❡", "❝♦✉♥❝✐❧") * 20), flat, known)
    assert [word.text for word in garbled] == english * 3
    other = page(*(("xqz", 900.0 + n, 901.0 + n) for n in range(60)))
    sound = words_of(cells(*english), flat, other)
    assert [word.text for word in sound] == english


def test_only_fonts_of_tex_have_letters_where_others_have_numbers_of_glyphs() -> None:
    for name in ("sfrm1000", "abcdef+ecti1095", "cmr10", "lmr10", "", "f28"):
        assert _TEX_FONT.match(name), name
    for name in ("aaaaai+notosanscjkkr-bold", "helveticaneueltcom-roman", "calibri"):
        assert not _TEX_FONT.match(name), name
