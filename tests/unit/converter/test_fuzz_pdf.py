"""PDFs, damaged in every way."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from kernel.media import PDF
from tests.unit.converter.fuzzing import SLOW, check, damaged


def _valid(*, packed: bool) -> bytes:
    """Two pages: headings, prose, a ruled table, a picture, a note, an outline."""
    out = io.BytesIO()
    canvas = Canvas(out, pageCompression=int(packed), invariant=1)
    for number in (1, 2):
        canvas.bookmarkPage(f"p{number}")
        canvas.addOutlineEntry(f"{number} Part", f"p{number}")
        canvas.setFont("Helvetica-Bold", 16)
        canvas.drawString(72, 780, f"{number} Part")
        canvas.setFont("Helvetica", 10)
        for line in range(8):
            canvas.drawString(72, 750 - 13 * line, f"Line {line} of page {number} goes on and on.")
        for row in range(3):
            for column in range(2):
                canvas.rect(72 + 100 * column, 500 - 20 * row, 100, 20)
                canvas.drawString(76 + 100 * column, 506 - 20 * row, f"r{row}c{column}")
        canvas.linkURL("http://example.org", (72, 700, 200, 720))
        canvas.showPage()
    canvas.save()
    return out.getvalue()


_SEEDS = {"plain": _valid(packed=False), "packed": _valid(packed=True)}


@pytest.mark.parametrize("seed", _SEEDS)
@SLOW
@given(data=st.data())
def test_a_damaged_pdf_is_read_or_refused(tmp_path: Path, seed: str, data: st.DataObject) -> None:
    check(tmp_path / "a", data.draw(damaged(_SEEDS[seed])), PDF)


@SLOW
@given(data=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    check(tmp_path / "a", b"%PDF-1.7\n" + data, PDF)
