"""Pages of which the content is damaged are told, whatever readers show of them."""

import io
import zlib
from pathlib import Path

import pikepdf
import pytest
from reportlab.pdfgen.canvas import Canvas

from kernel.errors import Refusal
from services.converter.parsing.pdf import parse_pdf
from services.converter.parsing.pdf_streams import torn_pages
from services.converter.settings import ParseOptions

OPTIONS = ParseOptions(ocr=False)


def pages(count: int, *, packed: bool = True) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, pageCompression=int(packed), invariant=1)
    for number in range(1, count + 1):
        for line in range(20):
            canvas.drawString(72, 720 - 20 * line, f"Page {number} has line {line * 7919 % 1013}.")
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def with_content(folder: Path, content: bytes, packed_by: str = "/FlateDecode") -> Path:
    """Three pages, the second with these bytes as its packed content."""
    path = folder / "a.pdf"
    with pikepdf.open(io.BytesIO(pages(3))) as document:
        stream = pikepdf.Stream(document, b"")
        stream.write(content, filter=pikepdf.Name(packed_by))
        document.pages[1].obj["/Contents"] = stream
        document.save(path)
    return path


def shown() -> bytes:
    """What a page shows, unpacked: some 4 kB that pack badly."""
    lines = "".join(f"({n * 7919 % 1013} {n * 104729 % 4099}) Tj 0 -9 Td\n" for n in range(200))
    return f"BT /F1 8 Tf 40 800 Td\n{lines}ET".encode()


def damaged(content: bytes, at: float) -> bytes:
    place = int(len(content) * at)
    return content[:place] + b"\x5a\xa5" * 8 + content[place + 16 :]


@pytest.mark.parametrize("at", [0.0, 0.3, 0.8])
def test_a_page_with_damaged_content_is_told(tmp_path: Path, at: float) -> None:
    path = with_content(tmp_path, damaged(zlib.compress(shown()), at))
    assert torn_pages(path, 3) == {2}
    parse = parse_pdf(path, OPTIONS)
    assert parse.missing_pages == (2,)
    assert "pages whose content is damaged, in part or whole: 2" in parse.warnings
    assert "Page 1 has" in parse.document.markdown
    assert "Page 3 has" in parse.document.markdown


def test_content_in_a_form_that_no_text_has_is_told(tmp_path: Path) -> None:
    assert torn_pages(with_content(tmp_path, b"\0" * 10, "/JBIG2Decode"), 3) == {2}


def test_sound_pages_are_whole(tmp_path: Path) -> None:
    for number, packed in enumerate([True, False]):
        path = tmp_path / f"{number}.pdf"
        path.write_bytes(pages(3, packed=packed))
        assert torn_pages(path, 3) == frozenset()
    assert torn_pages(with_content(tmp_path, zlib.compress(shown())), 3) == frozenset()


def test_content_without_a_check_sum_or_without_anything_is_whole(tmp_path: Path) -> None:
    content = zlib.compress(shown())
    for one in (content[:-4], content[:-1], content + b"\r\n", b"", b"\n"):
        assert torn_pages(with_content(tmp_path, one), 3) == frozenset()


def test_content_that_was_cut_off_or_fails_its_check_is_told(tmp_path: Path) -> None:
    content = zlib.compress(shown())
    for one in (content[: len(content) // 2], content[:-4] + b"\0\0\0\0"):
        assert torn_pages(with_content(tmp_path, one), 3) == {2}


def test_a_bomb_is_not_unpacked_as_a_whole(tmp_path: Path) -> None:
    packing = zlib.compressobj(9)
    bomb = b"".join(packing.compress(b" " * (1 << 20)) for _ in range(300)) + packing.flush()
    assert torn_pages(with_content(tmp_path, bomb + b"!"), 3) == frozenset()


def test_where_pages_are_counted_otherwise_none_is_accused(tmp_path: Path) -> None:
    path = with_content(tmp_path, damaged(zlib.compress(shown()), 0.3))
    assert torn_pages(path, 4) == frozenset()


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4\ngarbage", b"no pdf"])
def test_what_is_no_pdf_has_no_such_pages(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(data)
    assert torn_pages(path, 1) == frozenset()


def test_a_file_with_a_password_has_none_that_are_known(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    with pikepdf.open(io.BytesIO(pages(1))) as document:
        document.save(path, encryption=pikepdf.Encryption(owner="a", user="b"))
    assert torn_pages(path, 1) == frozenset()


def test_a_document_of_nothing_but_damage_is_refused_as_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    with pikepdf.open(io.BytesIO(pages(1))) as document:
        stream = pikepdf.Stream(document, b"")
        stream.write(b"\x5a" * 400, filter=pikepdf.Name("/FlateDecode"))
        document.pages[0].obj["/Contents"] = stream
        document.save(path)
    with pytest.raises(Refusal) as refused:
        parse_pdf(path, OPTIONS)
    assert refused.value.code == "corrupt-document"


def test_a_page_without_width_is_refused(tmp_path: Path) -> None:
    flat = tmp_path / "flat.pdf"
    with pikepdf.open(io.BytesIO(pages(1))) as document:
        document.pages[0].MediaBox = pikepdf.Array([0, 0, -10, 500])
        document.pages[0].CropBox = pikepdf.Array([0, 0, 500, 500])
        document.save(flat)
    with pytest.raises(Refusal):
        parse_pdf(flat, OPTIONS)
