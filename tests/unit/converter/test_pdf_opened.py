"""What one PDF leaves in pdfium's fonts does not show in the parse of another."""

from pathlib import Path

import pypdfium2 as pdfium
import pytest
from PIL import Image

from services.converter.parsing import scans
from services.converter.parsing.pdf import parse_pdf
from services.converter.settings import ParseOptions

_TEXT = "Water is wet and waffles are good"
_SANS, _SERIF = 32, 34
_WIDTHS = "/FirstChar 32 /LastChar 126 /Widths [{}]"


def _with_foreign_font(flags: int, width: int | None = None) -> bytes:
    """A page in a font that the file does not hold; `width`: of each letter, if it is told."""
    widths = _WIDTHS.format(f"{width} " * 95) if width else ""
    content = f"BT /F 20 Tf 20 100 Td ({_TEXT}) Tj ET"
    descriptor = f"<</Type/FontDescriptor /FontName/Nowhere /Flags {flags}>>"
    return f"""%PDF-1.4
1 0 obj <</Type/Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type/Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type/Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R
 /Resources <</Font <</F 5 0 R>>>>>> endobj
4 0 obj <</Length {len(content) + 1}>> stream
{content}
endstream endobj
5 0 obj <</Type/Font /Subtype/TrueType /BaseFont/Nowhere {widths}
 /FontDescriptor {descriptor}>> endobj
trailer <</Root 1 0 R>>
""".encode()


def _draw(flags: int, width: int) -> None:
    """Have the letters drawn that wide, as the reading of another document does."""
    document = pdfium.PdfDocument(_with_foreign_font(flags, width))
    page = document[0]
    page.render(scale=1).close()
    page.close()
    document.close()


@pytest.mark.parametrize("flags", [_SANS, _SERIF])
def test_the_parse_does_not_depend_on_what_was_drawn_before(tmp_path: Path, flags: int) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(_with_foreign_font(flags))
    parses = set()
    for width in (200, 1000, 200):
        _draw(flags, width)
        parses.add(parse_pdf(path, ParseOptions(ocr=False)).document.to_bytes())
    assert len(parses) == 1


@pytest.mark.parametrize("flags", [_SANS, _SERIF])
def test_ocr_gets_the_same_picture_whatever_was_drawn_before(
    tmp_path: Path, flags: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures: list[bytes] = []

    class Reader:
        def __init__(self, _: ParseOptions) -> None: ...

        def read(self, image: Image.Image, _number: int, _size: tuple[float, float]) -> None:
            pictures.append(image.tobytes())

    monkeypatch.setattr(scans, "PageReader", Reader)
    path = tmp_path / "a.pdf"
    path.write_bytes(_with_foreign_font(flags))
    for width in (200, 1000, 200):
        _draw(flags, width)
        scans.read_pages(path, [1], ParseOptions())
    assert len(pictures) == 3
    assert len(set(pictures)) == 1
