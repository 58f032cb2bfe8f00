"""Media types are decided by content."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel import media
from kernel.media import (
    CSV,
    DOC,
    DOCX,
    EPUB,
    HTML,
    JSON,
    MARKDOWN,
    MSG,
    OCTETS,
    ODP,
    ODS,
    ODT,
    OLE,
    OLE_MAGIC,
    PDF,
    PLAIN,
    PPTX,
    RTF,
    XLS,
    XLSX,
    XML,
    lie,
    sniff,
    unread,
)


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
        (b"<feed><entry>x</entry></feed>", "a.xml", XML),
        (b"<feed><entry>x</entry></feed>", "a.txt", PLAIN),
        (b"<html><p>x</p></html>", "a.xml", HTML),
        (b"prose", "a.xml", PLAIN),
        (b"prose that calls itself a PDF", "a.pdf", PLAIN),
        (b"\x89PNG\r\n\x1a\n....", "a.md", "image/png"),
        (bytes(range(256)) * 8, "a.txt", OCTETS),
        (b"", "a.md", MARKDOWN),
        (b"", "a", PLAIN),
        (OLE_MAGIC + b"...", "a.docx", DOCX),
        (OLE_MAGIC + b"...", "a.doc", DOC),
        (OLE_MAGIC + b"...", "a.msg", MSG),
        (OLE_MAGIC + b"...", "a", OLE),
        (b'{"a": 1}\n{"a": 2}\n', "a.jsonl", JSON),
        (b'{"a": 1}\n{"a": 2}\n', "a", JSON),
        (b'{"a": 1}\n{"a": 2}\n', "a.log", PLAIN),
        (b"{a} prose\n{b} prose\n", "a", PLAIN),
        (b"a\tb\n1\t2", "a.tsv", CSV),
        (b"{\\rtf1 x}", "a.doc", RTF),
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


@pytest.mark.parametrize(
    ("mimetype", "kind"),
    [
        ("application/vnd.oasis.opendocument.text", ODT),
        ("application/vnd.oasis.opendocument.text-template", ODT),
        ("application/vnd.oasis.opendocument.spreadsheet", ODS),
        ("application/vnd.oasis.opendocument.presentation", ODP),
        ("application/vnd.oasis.opendocument.graphics", "application/vnd.oasis.opendocument"),
    ],
)
def test_an_open_document_is_told_by_its_first_entry(mimetype: str, kind: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", mimetype)
        archive.writestr("content.xml", "<x/>")
    assert sniff(buffer.getvalue(), "a.docx") == kind


def test_a_mark_that_is_packed_leaves_it_to_the_name() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet" * 3)
    assert sniff(buffer.getvalue(), "a.ods") == ODS
    assert sniff(buffer.getvalue(), "a") == "application/zip"


def test_a_book_without_its_mark_goes_by_its_name() -> None:
    assert sniff(zipped("META-INF/container.xml"), "a.epub") == EPUB
    assert sniff(zipped("content.xml"), "a.ods") == ODS


def ole(*streams: str) -> bytes:
    """A header that puts the directory right behind it, and that directory's first sector."""
    header = bytearray(512)
    header[:8] = OLE_MAGIC
    header[30:32] = (9).to_bytes(2, "little")
    entries = b"".join(name.encode("utf-16-le").ljust(128, b"\0") for name in streams)
    return bytes(header) + entries


@pytest.mark.parametrize(
    ("streams", "name", "kind"),
    [
        (["Root Entry", "Workbook"], "a.doc", XLS),
        (["Root Entry", "WordDocument"], "a.xls", DOC),
        (["Root Entry", "__properties_version1.0"], "a", MSG),
        (["Root Entry", "EncryptedPackage"], "a.xlsx", XLSX),
        (["Root Entry", "EncryptedPackage"], "a", OLE),
    ],
)
def test_an_old_office_file_is_told_by_its_streams(
    streams: list[str], name: str, kind: str
) -> None:
    assert sniff(ole(*streams), name) == kind


@pytest.mark.parametrize(
    ("name", "media_type", "expected"),
    [
        ("report.docx", PDF, "the name says DOCX, the content is PDF"),
        ("page.pdf", HTML, "the name says PDF, the content is HTML"),
        ("table.xlsx", "application/zip", "the name says XLSX, the content is ZIP"),
        ("photo.png", "image/jpeg", "the name says PNG, the content is JPEG"),
        ("data.json", PLAIN, "the name says JSON, the content is plain text"),
        ("a.doc", RTF, "the name says DOC, the content is RTF"),
        ("REPORT.PDF", PDF, None),
        ("notes.md", MARKDOWN, None),
        ("feed.xml", PLAIN, None),
        ("macros.xlsm", XLSX, None),
        ("no ending", PDF, None),
        ("v1.2", PLAIN, None),
    ],
)
def test_a_name_that_lies_is_told(name: str, media_type: str, expected: str | None) -> None:
    assert lie(name, media_type) == expected


def test_a_type_that_is_not_read_comes_with_advice() -> None:
    assert unread(DOC) == "application/msword is not read: save it as DOCX"
    assert unread("video/mp4") == "video/mp4 is not read"


@given(st.binary(max_size=2000), st.text(max_size=30))
def test_any_bytes_get_an_answer(head: bytes, name: str) -> None:
    assert "/" in sniff(head, name)


@given(st.binary(max_size=3000), st.text(max_size=5))
def test_any_old_office_file_gets_an_answer(tail: bytes, name: str) -> None:
    assert "/" in sniff(OLE_MAGIC + tail, f"a.{name}")


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("From: a@b.c\nTo: d@e.f\nSubject: x\nDate: today\n\nhello", "note", "message/rfc822"),
        ("From: a@b.c\r\nSubject: x\r\n\r\nhello", "a.eml", "message/rfc822"),
        ("Received: by x\n\tfor y\nMIME-Version: 1.0\n\nx", "a.eml", "message/rfc822"),
        ("Subject: minutes\nDate: 3 May\nTo: all\n\nWe met.", "a.txt", "text/plain"),
        ("From: the beginning\n\nA story.", "a.txt", "text/plain"),
        ("no header at all", "a.eml", "text/plain"),
    ],
)
def test_a_mail_is_told_by_its_header_lines(text: str, name: str, kind: str) -> None:
    assert sniff(text.encode(), name) == kind


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("pdf", {media.PDF}),
        ("application/x-new", {"application/x-new"}),
        ("docx", {media.DOCX}),
        ("word", {media.DOC, media.DOCX, media.ODT, media.RTF}),
        ("md", {media.MARKDOWN}),
    ],
)
def test_types_are_named_as_people_call_them(name: str, types: set[str]) -> None:
    assert media.types_of(name) == types


def test_what_no_type_is_called_is_refused() -> None:
    with pytest.raises(ValueError, match="a media type, an ending, or pdf, word"):
        media.types_of("letter")
