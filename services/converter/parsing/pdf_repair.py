"""A damaged PDF written anew: one that lost its end, and one of which docling sees other pages.

docling must see the pages that pdfium sees, by the same numbers. It leaves out a page whose entry
is damaged, and counts on: every page behind it would get the number of the one before.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryDirectory

import pypdfium2 as pdfium
from pypdfium2 import raw

from services.converter.parsing.pdf_salvage import Salvage, salvage


@contextmanager
def openable(path: Path, most_pages: int) -> Iterator[tuple[Path, frozenset[int] | None]]:
    """`path` and None, or a copy that can be opened and the numbers of its damaged pages."""
    found = None if _opens(path) else _left(path, most_pages)
    if found is None:
        yield path, None
        return
    with TemporaryDirectory(prefix="citelog-pdf-") as folder:
        copy = Path(folder) / "left.pdf"
        shutil.copyfile(path, copy)
        with copy.open("ab") as file:
            file.write(found.end)
        yield copy, found.damaged


def _left(path: Path, most_pages: int) -> Salvage | None:
    if not path.stat().st_size:
        # An empty file has no map.
        return None
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return salvage(data, most_pages)


def _opens(path: Path) -> bool:
    """Whether there is a way to its pages; one with a password has it, and keeps it shut."""
    try:
        document = pdfium.PdfDocument(path)
    except pdfium.PdfiumError as error:
        code = raw.FPDF_GetLastError()
        return bool(code == raw.FPDF_ERR_PASSWORD or "password" in str(error).lower())
    try:
        return len(document) > 0
    finally:
        document.close()


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
