"""Pages that look unlike prose, and are what they say."""

from pathlib import Path

from reportlab.pdfgen.canvas import Canvas

from services.converter.parsing.pdf_broken import broken, reads_as_words
from services.converter.parsing.probe import probe
from services.converter.settings import ParseOptions
from tests.unit.converter.pdf_drawing import SIDE, drawn

READABLE = "POWER AMPLIFIER CIRCUIT additional lines following Test cell"
SHIFTED = "QPXFS BNQMJGJFS DJSDVJU BEEJUJPOBM MJOFT GPMMPXJOH UFTU DFMM"
COLOURS = "yellow olive magenta color complementary harmony split analogous tetrad triad"

CODE = [
    f"\\def\\J@Ref{a}{b}XX{{\\csname l@lvl{a}\\endcsname#{n}}}"
    for n, (a, b) in enumerate(zip("abcdefghijklmnopqrst", "kxqzwvbnmrtpsdfghjcl", strict=True))
]


def _page(canvas: Canvas) -> None:
    canvas.setFont("Helvetica", 10)
    canvas.drawString(70, SIDE - 60, "The commands of the package and what each of them does are:")
    canvas.setFont("Courier", 9)
    for number, text in enumerate(CODE):
        canvas.drawString(70, SIDE - 90 - 12 * number, text)


def test_a_page_of_program_code_is_not_broken(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(drawn(_page))
    assert broken(CODE, 0), "the page must look broken but for its type"
    assert probe(path, ParseOptions()).pages[0].broken == ""


def test_letters_without_a_character_in_the_file_may_make_words() -> None:
    assert reads_as_words(READABLE.split())
    assert not reads_as_words(SHIFTED.split())
    assert not reads_as_words(["*", "53", "of"])


def test_a_few_names_without_vowels_do_not_make_a_page_broken() -> None:
    assert broken([*COLOURS.split(), "adjacent", "colors", "cmyk", "rgb", "Hsb"] * 3, 0) == ""
