"""Text that runs from right to left: lines, columns and tables in the order of reading."""

import re
from pathlib import Path

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from services.converter.parsing.pdf_direction import runs_leftwards
from services.converter.parsing.pdf_shapes import Word, join_words
from tests.unit.converter.drawn import FACES, FONTS, font
from tests.unit.converter.pdf_drawing import SIDE, drawn, parsed

HEBREW = (
    "המועצה מפרסמת את הדוח השנתי שלה לפני סוף חודש מרץ",
    "וכל חבר מקבל עותק אחד ומי שרוצה יכול לבקש עוד אחד",
    "במשרד הראשי של העיר בשעות הפתיחה הרגילות שלו.",
)


def _typeface() -> None:
    font("sans", 10)
    pdfmetrics.registerFont(TTFont("Sans", str(FONTS / FACES["sans"])))


def _shown(text: str) -> str:
    """As it looks from left to right; numbers and Latin words keep their own direction."""
    words = re.findall(r"[A-Za-z]+(?: [A-Za-z]+)*|[\d./]+|\s|[^\sA-Za-z\d./]+|\S", text)
    return "".join(w if w[0].isascii() else w[::-1] for w in reversed(words))


def _right(canvas: Canvas, right: float, top: float, texts: tuple[str, ...]) -> None:
    canvas.setFont("Sans", 10)
    for number, text in enumerate(texts):
        canvas.drawRightString(right, SIDE - top - 14 * number, _shown(text))


def _words(*shown: str, against: bool) -> list[Word]:
    """Words of five points a letter, set from left to right."""
    words, left = [], 0.0
    for text in shown:
        leftwards = runs_leftwards([text])
        words.append(
            Word(text, left, 0, left + 5 * len(text), 10, 10, against=leftwards == against)
        )
        left += 5 * len(text) + 3
    return words


def test_a_line_from_right_to_left_is_in_the_order_of_reading(tmp_path: Path) -> None:
    _typeface()
    markdown = parsed(tmp_path, drawn(lambda c: _right(c, 700, 80, HEBREW))).document.markdown
    assert markdown.split() == " ".join(HEBREW).split()


def test_latin_words_and_numbers_keep_their_direction_in_it(tmp_path: Path) -> None:
    _typeface()
    mixed = ("הדוח נשמר בקובץ Annual Report של המועצה מיום 12/05/2024 ועד היום",)
    data = drawn(lambda c: _right(c, 700, 80, (*HEBREW[:2], *mixed)))
    markdown = parsed(tmp_path, data).document.markdown
    assert "בקובץ Annual Report של המועצה מיום 12/05/2024 ועד" in " ".join(markdown.split())


def test_hebrew_words_in_an_english_line_are_turned_as_one() -> None:
    words = _words("the", "word", "עולם", "שלום", "means", "hello", against=True)
    assert join_words(words) == "the word שלום עולם means hello"


def test_a_number_behind_a_latin_name_stays_behind_it() -> None:
    # As the mirrored page shows it: the line reads `כונן USB 2 חדש`.
    words = _words("כונן", "2", "USB", "חדש", against=False)
    assert join_words(words) == "כונן USB 2 חדש"


def test_the_right_column_is_read_first(tmp_path: Path) -> None:
    _typeface()
    right, left = (f"שורה מספר {n} של הטור השני בדף" for n in ("אחת", "שתיים"))
    many = tuple(HEBREW[:2]) * 8

    def draw(canvas: Canvas) -> None:
        _right(canvas, 780, 80, (right, *many))
        _right(canvas, 380, 80, (left, *many))

    markdown = parsed(tmp_path, drawn(draw)).document.markdown
    assert markdown.index(right) < markdown.index(left)


def test_the_first_column_of_a_table_is_the_right_one(tmp_path: Path) -> None:
    _typeface()

    def draw(canvas: Canvas) -> None:
        _right(canvas, 780, 80, HEBREW)
        canvas.grid([300, 450, 600], [600, 620, 640, 660])
        for row, (name, value) in enumerate((("שם", "ערך"), ("גובה", "12"), ("רוחב", "7"))):
            _right(canvas, 590, SIDE - 645 + 20 * row, (name,))
            _right(canvas, 440, SIDE - 645 + 20 * row, (value,))

    markdown = parsed(tmp_path, drawn(draw)).document.markdown
    assert "| שם | ערך |" in markdown
    assert "| גובה | 12 |" in markdown


def test_places_are_those_of_the_page_as_it_is_shown(tmp_path: Path) -> None:
    _typeface()
    data = drawn(lambda c: _right(c, 700, 80, HEBREW))
    box = parsed(tmp_path, data).document.spans[0].place.box
    assert box is not None
    assert 690 < box[2] < 702
    assert box[0] > 350
