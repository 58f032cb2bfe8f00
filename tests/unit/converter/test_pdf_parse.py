"""PDFs as a careful reader wants them: forms, hidden text, broken layers, damaged pages."""

import re
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from reportlab.lib.colors import Color, black, white
from reportlab.pdfgen.canvas import Canvas

from contracts.artifacts import HiddenText
from contracts.events import Reading
from kernel.errors import Refusal
from services.converter.parsing import pdf, pdf_assembly
from services.converter.parsing.ocr import Scan
from services.converter.parsing.pdf_broken import broken
from services.converter.parsing.pdf_shapes import Word
from services.converter.parsing.probe import Probe, probe
from services.converter.parsing.result import Parse
from services.converter.parsing.scans import ReadPages
from services.converter.parsing.upright import Frame
from services.converter.settings import ParseOptions
from tests.unit.converter.pdf_drawing import SIDE, drawn, lines, parsed, text

ORDER = "obey the secret order at once"


def markdown(folder: Path, data: bytes) -> str:
    return parsed(folder, data).document.markdown


# --- forms ------------------------------------------------------------------------------------


def form(canvas: Canvas) -> None:
    lines(canvas, 60, 60, text(3))
    fields = canvas.acroForm
    for n, (label, value) in enumerate([("Family name", "Müller"), ("City", "Zagreb")]):
        lines(canvas, 60, 130 + 30 * n, [label])
        fields.textfield(
            name=label, value=value, x=160, y=SIDE - 134 - 30 * n, width=150, height=18, fontSize=10
        )
    lines(canvas, 60, 200, ["Married"])
    fields.checkbox(name="m", checked=True, x=160, y=SIDE - 204, size=14)
    lines(canvas, 200, 200, ["Single"])
    fields.checkbox(name="s", checked=False, x=260, y=SIDE - 204, size=14)


def test_the_values_of_a_form_stand_behind_their_labels(tmp_path: Path) -> None:
    blocks = markdown(tmp_path, drawn(form)).split("\n\n")
    assert blocks[1:] == ["Family name: Müller", "City: Zagreb", "☒ Married", "☐ Single"]


def test_values_in_columns_are_a_table(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, 60, 60, text(3))
        for column, title in enumerate(("Teacher", "Room", "Pupils")):
            lines(canvas, 60 + 150 * column, 130, [title])
            for row in range(3):
                canvas.acroForm.textfield(
                    name=f"{title}{row}", value=f"{title[0]}{row}", fontSize=10,
                    x=60 + 150 * column, y=SIDE - 155 - 20 * row, width=100, height=16,
                )  # fmt: skip

    assert "| T1 | R1 | P1 |" in markdown(tmp_path, drawn(draw))


def test_a_password_in_a_form_is_not_read(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, 60, 60, text(3))
        canvas.acroForm.textfield(
            name="p", value="hunter2", x=160, y=600, width=99, height=18, fieldFlags="password"
        )

    assert "hunter2" not in parsed(tmp_path, drawn(draw)).document.to_bytes().decode()


# --- what nobody sees -------------------------------------------------------------------------


def in_white(canvas: Canvas) -> None:
    canvas.setFillColor(white)
    canvas.drawString(60, 300, ORDER)


def tiny(canvas: Canvas) -> None:
    canvas.setFont("Helvetica", 0.5)
    canvas.drawString(60, 300, ORDER)


def off_page(canvas: Canvas) -> None:
    canvas.drawString(60, -200, ORDER)


def behind(canvas: Canvas) -> None:
    canvas.drawString(60, 300, ORDER)
    for n in range(40):
        canvas.setFillColor(Color(n / 40, 0.5, 1 - n / 40))
        canvas.rect(50 + 8 * n, 290, 8, 30, stroke=0, fill=1)


def in_mode_three(canvas: Canvas) -> None:
    pen = canvas.beginText(60, 300)
    pen.setTextRenderMode(3)
    pen.textOut(ORDER)
    canvas.drawText(pen)


def clipped(canvas: Canvas) -> None:
    path = canvas.beginPath()
    path.rect(0, 0, 10, 10)
    canvas.clipPath(path, stroke=0, fill=0)
    canvas.drawString(60, 300, ORDER)


def transparent_over_text(canvas: Canvas) -> None:
    canvas.setFillColor(black)
    canvas.drawString(60, 300, "what is plain to see here")
    canvas.setFillColor(Color(0, 0, 0, alpha=0))
    canvas.drawString(60, 300, ORDER)


@pytest.mark.parametrize(
    "hide", [in_white, tiny, off_page, behind, in_mode_three, clipped, transparent_over_text]
)
def test_hidden_text_is_for_the_scanner_only(tmp_path: Path, hide: object) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, 60, 60, text(6))
        assert callable(hide)
        hide(canvas)

    document = parsed(tmp_path, drawn(draw)).document
    hidden = " ".join(found.text for found in document.hidden)
    assert "secret order" in hidden
    assert "secret" not in document.markdown
    assert "measure 5" in document.markdown


def test_text_on_a_picture_is_seen(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setFillColor(Color(0.9, 0.9, 0.4))
        canvas.rect(40, 500, 500, 320, stroke=0, fill=1)
        canvas.setFillColor(black)
        lines(canvas, 60, 60, text(6))

    document = parsed(tmp_path, drawn(draw)).document
    assert "measure 5" in document.markdown
    assert not [found for found in document.hidden if found.kind != "metadata"]


def test_a_note_is_for_the_scanner(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, 60, 60, text(6))
        canvas.textAnnotation(ORDER, Rect=[100, 100, 120, 120])

    document = parsed(tmp_path, drawn(draw)).document
    assert HiddenText(kind="comment", text=ORDER) in document.hidden
    assert "secret" not in document.markdown


# --- broken text layers -----------------------------------------------------------------------

PROSE = [
    "The members of the committee have the right to be heard before any decision is taken,",
    "and the minutes of every meeting will be published within three weeks of its date.",
    "Whoever wishes to lodge a complaint about the work of the office shall write to its head,",
    "who answers within a month and says which steps were thought useful and which were not.",
    "No fee may be asked for this; costs that were caused on purpose can be claimed back.",
]
ENGLISH = " ".join(PROSE)
BULGARIAN = (
    "Комисията осъществява контрол по спазването на този закон и приема годишен отчет за своята "
    "дейност, който се внася в Народното събрание до края на месец март на следващата година"
)
CODES = " ".join(f"XKR-{n:04d} PN{n} DIN 912 M8x{n} GmbH" for n in range(20))


@pytest.mark.parametrize("good", [ENGLISH, BULGARIAN, CODES, "Ab 12", ""])
def test_text_is_not_broken(good: str) -> None:
    assert broken(good.split(), 0) == ""


@pytest.mark.parametrize(
    "bad",
    [
        "\ufffd" * 30 + ENGLISH[:40], "\ue012\ue013\ue014 " * 30, "(cid:12)(cid:44) " * 20,
        ENGLISH.translate(str.maketrans("abcdefghijklmnoprstuvwy", "qxzwkvbtjfhrgsmldnpcaei"[:23])),
        "".join(chr(ord(c) - 29) if c > " " else c for c in ENGLISH),
        BULGARIAN.encode("cp1251").decode("cp1252"),
    ],
    ids=["unknown", "private", "cid", "shuffled", "shifted", "charset"],
)  # fmt: skip
def test_a_broken_layer_is_told(bad: str) -> None:
    assert broken(bad.split(), 0)


def test_glyphs_without_a_character_are_counted() -> None:
    letters = ENGLISH.split()
    assert broken(letters, sum(map(len, letters)) // 2)


def test_a_page_with_a_shuffled_font_is_told_with_the_reason(tmp_path: Path) -> None:
    keys = str.maketrans("abcdefghiklmnorstuvy", "qxzwkvbtjfhrgpsmldnc")
    shuffled = [line.translate(keys) for line in PROSE]
    parse = parsed(
        tmp_path, drawn(lambda c: lines(c, 60, 60, text(8)), lambda c: lines(c, 60, 60, shuffled))
    )
    (warning,) = parse.warnings
    assert warning.startswith("pages whose text layer is broken 2 (its letters make no words)")


# --- damage -----------------------------------------------------------------------------------


def damaged(*replaced: tuple[bytes, bytes]) -> bytes:
    """Three pages, with changes in the entry of the second."""
    data = drawn(*(lambda c, n=n: lines(c, 60, 60, text(4, 10 * n)) for n in (1, 2, 3)))
    entries = [
        m for m in re.finditer(rb"\d+ 0 obj.*?endobj", data, re.DOTALL) if b"/MediaBox" in m[0]
    ]
    entry = entries[1][0]
    for old, new in replaced:
        entry = entry.replace(old, new, 1)
    return data.replace(entries[1][0], entry)


def test_a_damaged_page_is_told_and_costs_no_other(tmp_path: Path) -> None:
    parse = parsed(tmp_path, damaged((b"<<", b"[[")))
    assert parse.missing_pages == (2,)
    assert parse.warnings == ["pages that could not be read: 2"]
    assert pages(parse) == {"measure 10": 1, "measure 30": 3}


def test_pages_keep_their_numbers_when_one_is_mended(tmp_path: Path) -> None:
    parse = parsed(tmp_path, damaged((b"/Rotate 0", b"/Rotate [")))
    assert pages(parse)["measure 30"] == 3


def test_nothing_but_damage_is_no_document(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        parsed(tmp_path, drawn(lambda c: None)[:300])
    assert refused.value.code == "corrupt-document"


def pages(parse: Parse) -> dict[str, int | None]:
    """The page by the span map of the first measure told on each."""
    body = parse.document.markdown.encode()
    return {
        found: span.place.page
        for span in parse.document.spans
        for found in [re.findall(r"measure \d+", body[span.byte_start : span.byte_end].decode())[0]]
    }


# --- what is not running text -----------------------------------------------------------------


def test_words_of_a_figure_stay_together(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, 60, 60, text(4))
        for n in range(6):
            canvas.circle(120 + 40 * n, 560, 30)
        lines(canvas, 110, 270, ["inlet"])
        lines(canvas, 200, 280, ["valve"])
        lines(canvas, 290, 290, ["outlet"])
        lines(canvas, 60, 340, ["Figure 1: The pump", *text(3, 20)])

    blocks = markdown(tmp_path, drawn(draw)).split("\n\n")
    assert blocks[1] == "inlet; valve; outlet"


def test_a_paragraph_goes_on_behind_a_table(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, 60, 60, [*text(3), "and this sentence, which is not at its end, is about to"])
        canvas.grid([60, 200, 340], [SIDE - y for y in (120, 140, 160)])
        for n, cells in enumerate([("Name", "Price"), ("Soup", "3 euros")]):
            lines(canvas, 65, 134 + 20 * n, [cells[0]])
            lines(canvas, 205, 134 + 20 * n, [cells[1]])
        lines(canvas, 60, 190, ["go on below the table, where it ends.", *text(3, 9)])

    found = markdown(tmp_path, drawn(draw))
    assert "is about to go on below" in found
    assert found.index("go on below") < found.index("| Soup")


@pytest.mark.parametrize("read", ["_", "1", "rn"])
def test_a_letter_or_two_read_from_a_picture_are_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    word = Word(read, 10, 10, 20, 20, 10)
    reading = Reading(page=1, engine="tesseract", scores={"tesseract": 0.5})
    scan = Scan([word], [], Frame.of(SIDE, SIDE), reading)
    monkeypatch.setattr(pdf, "read_pages", lambda *_: ReadPages({1: scan}, frozenset()))
    path = tmp_path / "a.pdf"
    path.write_bytes(drawn(lambda canvas: canvas.circle(300, 300, 99, fill=1)))
    with pytest.raises(Refusal) as refused:
        pdf.parse_pdf(path, ParseOptions())
    assert refused.value.code == "no-text"


def test_a_nested_list_keeps_its_depth(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        lines(canvas, 60, 60, text(3))
        marks = [(60, "one"), (80, "two"), (100, "three"), (80, "four"), (60, "five")]
        for number, (left, item) in enumerate(marks):
            lines(canvas, left, 120 + 14 * number, [f"• {item}"])

    assert markdown(tmp_path, drawn(draw)).split("\n\n")[1].splitlines() == [
        "- one", "    - two", "        - three", "    - four", "- five",
    ]  # fmt: skip


def test_a_list_goes_on_on_the_next_page_at_its_depth(tmp_path: Path) -> None:
    def first(canvas: Canvas) -> None:
        lines(canvas, 60, 60, text(3))
        lines(canvas, 60, 120, ["• one"])
        lines(canvas, 80, 134, ["• two"])

    def second(canvas: Canvas) -> None:
        lines(canvas, 80, 120, ["• three"])
        lines(canvas, 60, 134, ["• four"])
        lines(canvas, 60, 180, text(3))

    assert markdown(tmp_path, drawn(first, second)).split("\n\n")[1].splitlines() == [
        "- one", "    - two", "    - three", "- four",
    ]  # fmt: skip


# --- a long document ---------------------------------------------------------------------------


def long(canvas: Canvas) -> None:
    for number in range(6):
        lines(canvas, 60, 60, [f"{number + 1}. Part"])
        lines(canvas, 60, 100, text(3))
        for row, sign in enumerate(["-", "-", "  -", "-"]):
            lines(canvas, 80, 220 + 20 * row, [f"{sign} item {row}"])
        lines(canvas, 60, 340, text(2))
        canvas.showPage()


def test_a_document_written_in_parts_reads_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = parsed(tmp_path, drawn(long)).document
    made: list[int] = []
    fill = pdf_assembly._fill

    def counted(document: Any, elements: Any, turns: Any) -> None:
        made.append(len(elements))
        fill(document, elements, turns)

    monkeypatch.setattr(pdf_assembly, "_fill", counted)
    monkeypatch.setattr(pdf_assembly, "_ELEMENTS", 2)
    parts = parsed(tmp_path, drawn(long)).document
    assert len(made) > 6
    assert (parts.markdown, parts.spans) == (whole.markdown, whole.spans)


def test_no_list_is_cut_between_parts() -> None:
    kinds = ["text", "list", "list", "list", "text", "text", "list", "text"]
    elements = deque(SimpleNamespace(kind=kind) for kind in kinds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf_assembly, "_ELEMENTS", 2)
        slices = [[e.kind for e in some] for some in pdf_assembly._in_slices(elements)]  # type: ignore[arg-type]
    assert slices == [["text", "list", "list", "list"], ["text", "text"], ["list", "text"]]


def test_what_only_the_reading_of_a_page_needs_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Probe] = []

    def kept(path: Path, options: ParseOptions) -> Probe:
        found.append(probe(path, options))
        assert all(list(page.type.words()) for page in found[0].pages[:-1])
        return found[0]

    monkeypatch.setattr(pdf, "probe", kept)
    assert "item 3" in markdown(tmp_path, drawn(long))
    assert not [word for page in found[0].pages for word in page.type.words()]


def test_memory_is_given_back_with_every_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    monkeypatch.setattr(pdf, "give_back", lambda: given.append(1))
    monkeypatch.setattr(pdf, "_SLICE", 2)
    assert "item 3" in markdown(tmp_path, drawn(long))
    # The last page is the empty one behind the sixth.
    assert len(given) == 4
