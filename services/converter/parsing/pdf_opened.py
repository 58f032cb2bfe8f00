"""PDFs opened by pdfium so that nothing of an earlier document is left in its fonts.

A font that a file names and does not hold is drawn by one of pdfium's two elastic ones (multiple
masters: Chrome Sans and Chrome Serif). Each is one object for the whole process, and keeps the
width and weight of the letter that it drew last; pdfium measures letters with what it finds there
(`CPDF_SimpleFont::LoadCharMetrics` sets neither). So boxes would depend on what was drawn before.
"""

from pathlib import Path

import pypdfium2 as pdfium

_LETTERS = b"""%PDF-1.4
1 0 obj <</Type/Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type/Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type/Page /Parent 2 0 R /MediaBox [0 0 20 20] /Contents 4 0 R
 /Resources <</Font <</A 5 0 R /B 6 0 R>>>>>> endobj
4 0 obj <</Length 50>> stream
BT /A 9 Tf 2 2 Td (x) Tj /B 9 Tf 9 0 Td (x) Tj ET
endstream endobj
5 0 obj <</Type/Font /Subtype/Type1 /BaseFont/No-Sans /FirstChar 120 /LastChar 120 /Widths [500]
 /FontDescriptor <</Type/FontDescriptor /FontName/No-Sans /Flags 32>>>> endobj
6 0 obj <</Type/Font /Subtype/Type1 /BaseFont/No-Serif /FirstChar 120 /LastChar 120 /Widths [500]
 /FontDescriptor <</Type/FontDescriptor /FontName/No-Serif /Flags 34>>>> endobj
trailer <</Root 1 0 R>>
"""
"""A letter of either elastic font, as wide as Helvetica and Times have it. Without `Widths` the
letter would be as wide as the last one left it."""


def opened(path: Path) -> pdfium.PdfDocument:
    """The document, with pdfium's own fonts as they are at the start of every other one.

    No other document may be open: letters that it has drawn would not be drawn again. A third of
    a millisecond.

    Raises:
        PdfiumError: it cannot be opened, or only by a password.
    """
    _settle()
    return pdfium.PdfDocument(path)


def _settle() -> None:
    document = pdfium.PdfDocument(_LETTERS)
    try:
        page = document[0]
        page.render(scale=1).close()
        page.close()
    finally:
        document.close()
