"""PDFs made in a test: pages drawn by hand."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

from reportlab.pdfgen.canvas import Canvas

from services.converter.parsing.pdf import parse_pdf
from services.converter.parsing.result import Parse
from services.converter.settings import ParseOptions

Drawing = Callable[[Canvas], None]

# Square, because reportlab changes the sides of a page that is to be rotated.
SIDE = 842.0
LINE = "the council takes note of measure {n} and of its cost for the year"


def drawn(*pages: Drawing, crop: tuple[float, ...] | None = None, packed: bool = True) -> bytes:
    """A page for each of `pages`; `packed` compresses their content."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(SIDE, SIDE), invariant=True, pageCompression=int(packed))
    for draw in pages:
        if crop:
            canvas.setCropBox(crop)
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def parsed(folder: Path, data: bytes) -> Parse:
    """The parse of a file `a.pdf`, without OCR."""
    path = folder / "a.pdf"
    path.write_bytes(data)
    return parse_pdf(path, ParseOptions(ocr=False))


def lines(canvas: Canvas, left: float, top: float, texts: Sequence[str], step: float = 13) -> None:
    """`texts` one under the other, the first `top` points below the upper edge."""
    canvas.setFont("Helvetica", 10)
    for number, text in enumerate(texts):
        canvas.drawString(left, SIDE - top - step * number, text)


def text(count: int, start: int = 0) -> list[str]:
    """Lines of running text."""
    return [LINE.format(n=start + n) for n in range(count)]
