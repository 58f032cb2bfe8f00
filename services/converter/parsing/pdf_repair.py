"""A damaged PDF written anew, so that docling sees the pages that pdfium sees, by the same numbers.

docling leaves out a page whose entry is damaged, and counts on: every page behind it would get the
number of the one before.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pypdfium2 as pdfium


@contextmanager
def same_pages(path: Path, sizes: list[tuple[float, float]]) -> Iterator[Path]:
    """`path` if docling counts as many pages as there are `sizes`, else a copy that has them.

    A page with no width cannot be read: an empty one takes its place.
    """
    if _counted(path) == len(sizes):
        yield path
        return
    with TemporaryDirectory(prefix="citelog-pdf-") as folder:
        copy = Path(folder) / "copy.pdf"
        _write(path, copy, sizes)
        yield copy


def _counted(path: Path) -> int:
    """Pages by docling's parser; 0 if it cannot open the file."""
    from docling_parse.pdf_parser import DoclingPdfParser

    try:
        document = DoclingPdfParser(loglevel="fatal").load(path)
        count: int = document.number_of_pages()
        document.unload()
    except (RuntimeError, ValueError):
        return 0
    return count


def _write(path: Path, copy: Path, sizes: list[tuple[float, float]]) -> None:
    source = pdfium.PdfDocument(path)
    target = pdfium.PdfDocument.new()
    try:
        for index, (width, _) in enumerate(sizes):
            try:
                if width <= 0:
                    raise pdfium.PdfiumError("no page")
                target.import_pages(source, [index])
            except pdfium.PdfiumError:
                target.new_page(595, 842, index)
        target.save(copy)
    finally:
        target.close()
        source.close()
