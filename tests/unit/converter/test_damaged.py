"""Containers of which a part is damaged, or the end is missing."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from PIL import Image
from pptx.util import Pt

from kernel.errors import Refusal
from kernel.media import DOCX, ODT, PPTX, XLSX
from services.converter.parsing import parse
from services.converter.parsing.archive import Archive
from services.converter.parsing.result import Parse
from services.converter.settings import ParseOptions

OPTIONS = ParseOptions()
ODF = "urn:oasis:names:tc:opendocument:xmlns:"
NAMES = f'xmlns:office="{ODF}office:1.0" xmlns:text="{ODF}text:1.0"'


def picture() -> io.BytesIO:
    out = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(out, "png")
    out.seek(0)
    return out


def word() -> bytes:
    document = docx.Document()
    document.add_paragraph("the text")
    document.add_picture(picture())
    document.core_properties.title = "Title"
    return saved(document.save)


def slides() -> bytes:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "the text"
    slide.shapes.add_picture(picture(), Pt(1), Pt(1))
    slide.notes_slide.notes_text_frame.text = "a note"
    return saved(deck.save)


def book() -> bytes:
    made: Any = openpyxl.Workbook()
    made.active.append(["the text", "more"])
    made.active.append([1, 2])
    return saved(made.save)


def text() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "content.xml",
            f"<office:document-content {NAMES}><office:body><office:text>"
            "<text:p>the text</text:p></office:text></office:body></office:document-content>",
        )
        archive.writestr("styles.xml", f"<office:document-styles {NAMES}/>")
        archive.writestr("meta.xml", f"<office:document-meta {NAMES}/>")
    return out.getvalue()


def saved(save: Callable[[Any], object]) -> bytes:
    out = io.BytesIO()
    save(out)
    return out.getvalue()


def span_of(data: bytes, name: str) -> tuple[int, int]:
    """Where the packed content of an entry lies."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo(name)
    at = info.header_offset
    size = sum(int.from_bytes(data[at + n : at + n + 2], "little") for n in (26, 28))
    return at + 30 + size, at + 30 + size + info.compress_size


def broken(data: bytes, name: str) -> bytes:
    start, end = span_of(data, name)
    return data[:start] + bytes(byte ^ 0x55 for byte in data[start:end]) + data[end:]


def read(tmp_path: Path, data: bytes, media_type: str) -> Parse:
    (tmp_path / "a").write_bytes(data)
    return parse(tmp_path / "a", media_type, OPTIONS)


@pytest.mark.parametrize(
    ("make", "media_type", "name", "told"),
    [
        (word, DOCX, "word/media/image1.png", "1 in word/media"),
        (word, DOCX, "docProps/core.xml", "1 in docProps"),
        (word, DOCX, "docProps/thumbnail.jpeg", "1 in docProps"),
        (word, DOCX, "word/settings.xml", "1 in the container"),
        (word, DOCX, "word/theme/theme1.xml", "1 in word/theme"),
        (slides, PPTX, "ppt/media/image1.png", "1 in ppt/media"),
        (slides, PPTX, "docProps/thumbnail.jpeg", "1 in docProps"),
        (slides, PPTX, "docProps/core.xml", "1 in docProps"),
        (slides, PPTX, "ppt/notesSlides/notesSlide1.xml", "1 in ppt/notesSlides"),
        (book, XLSX, "docProps/core.xml", "1 in docProps"),
        (text, ODT, "meta.xml", "1 in the container"),
    ],
)
def test_a_damaged_part_without_text_is_left_out_and_noted(
    tmp_path: Path, make: Callable[[], bytes], media_type: str, name: str, told: str
) -> None:
    data = make()
    whole = read(tmp_path, data, media_type)
    found = read(tmp_path, broken(data, name), media_type)
    assert whole.warnings == []
    assert found.warnings == [f"damaged parts were left out: {told}"]
    assert found.document.markdown == whole.document.markdown
    assert "the text" in found.document.markdown


@pytest.mark.parametrize(
    ("make", "media_type", "name"),
    [
        (word, DOCX, "word/document.xml"),
        (word, DOCX, "word/styles.xml"),
        (slides, PPTX, "ppt/slides/slide1.xml"),
        (slides, PPTX, "ppt/presentation.xml"),
        (book, XLSX, "xl/worksheets/sheet1.xml"),
        (book, XLSX, "xl/styles.xml"),
        (text, ODT, "content.xml"),
        (text, ODT, "styles.xml"),
    ],
)
def test_a_damaged_part_with_text_is_a_refusal(
    tmp_path: Path, make: Callable[[], bytes], media_type: str, name: str
) -> None:
    with pytest.raises(Refusal, match="damaged") as refused:
        read(tmp_path, broken(make(), name), media_type)
    assert refused.value.code == "corrupt-document"


@pytest.mark.parametrize(
    ("make", "media_type"), [(word, DOCX), (slides, PPTX), (book, XLSX), (text, ODT)]
)
def test_a_missing_table_of_contents_is_done_without(
    tmp_path: Path, make: Callable[[], bytes], media_type: str
) -> None:
    data = make()
    whole = read(tmp_path, data, media_type).document.markdown
    found = read(tmp_path, data[: data.index(b"PK\x01\x02") + 9], media_type)
    assert found.document.markdown == whole
    assert found.warnings == ["the end of the file is missing: read as far as it goes"]


@pytest.mark.parametrize(
    ("make", "media_type", "name"),
    [
        (word, DOCX, "word/document.xml"),
        (slides, PPTX, "ppt/slides/slide1.xml"),
        (book, XLSX, "xl/worksheets/sheet1.xml"),
        (text, ODT, "content.xml"),
    ],
)
def test_a_file_cut_off_before_its_text_is_a_refusal_that_says_so(
    tmp_path: Path, make: Callable[[], bytes], media_type: str, name: str
) -> None:
    data = make()
    with pytest.raises(Refusal, match=r"end of the file is missing|not a readable zip"):
        read(tmp_path, data[: span_of(data, name)[0] + 10], media_type)


def test_the_contents_of_a_zip_inside_a_cut_one_are_not_taken_for_its_own(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("first", b"a" * 100)
        archive.writestr("inner.zip", word())
        archive.writestr("last", b"b" * 100)
    data = out.getvalue()
    (tmp_path / "a").write_bytes(data[: span_of(data, "last")[1] + 2])
    with Archive(tmp_path / "a", OPTIONS) as cut:
        assert cut.is_cut
        assert cut.names == ["first", "inner.zip", "last"]


def test_entries_whose_sizes_stand_behind_them_are_found(tmp_path: Path) -> None:
    class Pipe(io.RawIOBase):
        """Nothing that could be gone back in: sizes are written behind."""

        def __init__(self) -> None:
            self.data = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.data += data
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a", "b"):
            archive.writestr(name, name * 1000)
    (tmp_path / "a").write_bytes(pipe.data[: pipe.data.index(b"PK\x01\x02") + 4])
    with Archive(tmp_path / "a", OPTIONS) as cut:
        assert [cut.read(name) for name in cut.names] == [b"a" * 1000, b"b" * 1000]


def test_a_bomb_without_a_table_of_contents_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(50_000_000))
    (tmp_path / "a").write_bytes(out.getvalue()[:-30])
    with pytest.raises(Refusal, match="decompression-bomb"):
        Archive(tmp_path / "a", OPTIONS)
