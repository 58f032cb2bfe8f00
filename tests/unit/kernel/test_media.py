"""Media types are decided by content."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.media import DOCX, HTML, JSON, MARKDOWN, OCTETS, OLE_MAGIC, PDF, PLAIN, PPTX, XML, sniff


def zipped(*names: str, first: bytes = b"<x/>") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, first)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("head", "name", "expected"),
    [
        (b"%PDF-1.7\n", "a.txt", PDF),
        (b"junk before\n%PDF-1.4\n", "a", PDF),
        (b"<!DOCTYPE html><p>x", "a.pdf", HTML),
        (b"\xef\xbb\xbf <!-- c -->\n<HTML lang=de>", "a.txt", HTML),
        ("<!doctype html><p>ж".encode("utf-16"), "a.md", HTML),
        (b"<p>a fragment</p>", "a.html", HTML),
        (b"<p>a fragment</p>", "page", HTML),
        (b"<p align=center>logo</p>\n# Title", "README.md", MARKDOWN),
        (b"no tags at all", "a.html", PLAIN),
        (b"# Title", "a.md", MARKDOWN),
        (b"# Title", "a", PLAIN),
        ("Пример".encode("windows-1251"), "a.txt", PLAIN),
        ("Пример текста".encode("utf-16-le"), "a.txt", PLAIN),
        ("Пример текста".encode("utf-16-be"), "a", PLAIN),
        (b'{"a": [1, 2]}', "a.json", JSON),
        (b'{"a": [1, 2]}', "a", JSON),
        (b"[" * 60000, "a.json", JSON),
        (b"[link](x) is prose", "a.json", PLAIN),
        (b"a,b\n1,2", "a.csv", "text/csv"),
        (b'<?xml version="1.0"?><feed/>', "a", XML),
        (b"prose that calls itself a PDF", "a.pdf", PLAIN),
        (b"\x89PNG\r\n\x1a\n....", "a.md", "image/png"),
        (bytes(range(256)) * 8, "a.txt", OCTETS),
        (b"", "a.md", MARKDOWN),
        (b"", "a", PLAIN),
        (OLE_MAGIC + b"...", "a.docx", DOCX),
        (OLE_MAGIC + b"...", "a.doc", "application/x-ole-storage"),
    ],
)
def test_content_decides_and_the_name_breaks_ties(head: bytes, name: str, expected: str) -> None:
    assert sniff(head, name) == expected


def test_an_office_file_is_told_by_its_parts() -> None:
    assert sniff(zipped("[Content_Types].xml", "word/document.xml"), "a.pptx") == DOCX
    assert sniff(zipped("[Content_Types].xml", "ppt/x.xml"), "a") == PPTX


def test_an_embedded_workbook_does_not_change_the_kind() -> None:
    inner = zipped("xl/workbook.xml")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("ppt/presentation.xml", "x")
        archive.writestr("embedded.xlsx", inner)
    assert sniff(buffer.getvalue(), "a.pptx") == PPTX


def test_a_zip_of_anything_is_not_a_document() -> None:
    assert sniff(zipped("photo.jpg"), "a.docx") == "application/zip"


def test_an_epub_is_told_by_its_first_entry() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
    assert sniff(buffer.getvalue(), "book") == "application/epub+zip"


@given(st.binary(max_size=2000), st.text(max_size=30))
def test_any_bytes_get_an_answer(head: bytes, name: str) -> None:
    assert "/" in sniff(head, name)
