"""Books: chapters in reading order, without their contents lists."""

import zipfile
from pathlib import Path

import pytest

from contracts.artifacts import Place
from kernel.errors import Refusal
from services.converter.parsing.epub import parse_epub
from services.converter.parsing.result import Parse
from services.converter.settings import ParseOptions

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
)
FACTS = (
    "<dc:title>Книга</dc:title><dc:creator>A</dc:creator><dc:creator>B</dc:creator>"
    "<dc:date>2020-05-01</dc:date><dc:publisher>House</dc:publisher>"
)


def page(body: str, head: str = "<title>t</title>") -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml">'
        f"<head>{head}</head><body>{body}</body></html>"
    )


def book(tmp_path: Path, pages: dict[str, str], spine: str, **more: str) -> Path:
    items = "".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"'
        f"{' properties=' + chr(34) + 'nav' + chr(34) if name == 'nav' else ''}/>"
        for name in [*pages, "gone"]
    )
    references = "".join(
        f'<itemref idref="{name.strip("*")}" linear="{"no" if "*" in name else "yes"}"/>'
        for name in spine.split()
    )
    package = (
        '<!DOCTYPE package><package xmlns="http://www.idpf.org/2007/opf"'
        f' xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>{FACTS}</metadata>'
        f'<manifest>{items}<item id="ncx" href="toc.ncx" '
        f'media-type="application/x-dtbncx+xml"/></manifest><spine>{references}</spine></package>'
    )
    path = tmp_path / "a.epub"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("OEBPS/book.opf", package)
        for name, text in pages.items():
            archive.writestr(f"OEBPS/{name}.xhtml", text)
        for name, text in more.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), text)
    return path


def parsed(path: Path) -> Parse:
    return parse_epub(path, ParseOptions())


def test_chapters_come_in_reading_order(tmp_path: Path) -> None:
    pages = {
        "nav": page('<nav><ol><li><a href="one.xhtml">One</a></li></ol></nav>'),
        "one": page("<h1>Глава 1</h1><p>first</p>"),
        "answers": page("<h1>Answers</h1><p>last</p>"),
        "two": page("<h1>Two</h1><p>second</p>"),
    }
    document = parsed(book(tmp_path, pages, "nav one answers* two")).document
    assert document.markdown == ("# Глава 1\n\nfirst\n\n# Two\n\nsecond\n\n# Answers\n\nlast\n")
    meta = document.meta
    assert (meta.title, meta.author, meta.date, meta.publication) == (
        "Книга", "A, B", "2020-05-01", "House",
    )  # fmt: skip
    assert document.spans[1].place == Place(part="OEBPS/one.xhtml", path="/html[1]/body[1]/p[1]")


def test_notes_of_chapters_do_not_meet(tmp_path: Path) -> None:
    note = (
        '<p>word<a href="#n1" id="r1" epub:type="noteref"><sup>1</sup></a></p><p>žuto</p>'
        '<aside epub:type="footnote" id="n1"><p>the note</p></aside>'
    )
    pages = {name: page(f"<h1>{name}</h1>{note}") for name in ("one", "two")}
    document = parsed(book(tmp_path, pages, "one two")).document
    data = document.markdown.encode()
    texts = [data[s.byte_start : s.byte_end].decode() for s in document.spans]
    assert texts.count("žuto") == 2
    if "[^" in document.markdown:
        assert "[^1-" in document.markdown and "[^2-" in document.markdown


def test_a_chapter_without_heading_gets_that_of_the_contents(tmp_path: Path) -> None:
    contents = (
        '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>'
        'The beginning</text></navLabel><content src="one.xhtml#x"/></navPoint></navMap></ncx>'
    )
    path = book(tmp_path, {"one": page("<p>text</p>")}, "one", OEBPS__toc_ncx=contents)
    assert parsed(path).document.markdown == "# The beginning\n\ntext\n"


def test_empty_elements_do_not_swallow_the_page(tmp_path: Path) -> None:
    body = '<a id="p1"/><h1>One</h1><p>text<br/>more</p><script src="x.js"/><p>end</p>'
    document = parsed(book(tmp_path, {"one": page(body, "<title/>")}, "one")).document
    assert document.markdown.startswith("# One") and document.markdown.endswith("end\n")
    assert "more" in document.markdown


def test_missing_chapters_are_told(tmp_path: Path) -> None:
    parse = parsed(book(tmp_path, {"one": page("<p>text</p>")}, "one gone"))
    assert parse.warnings == ["1 chapters are missing or damaged"]


def test_a_damaged_chapter_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    pages = {"one": page("<p>first</p>"), "two": page("<p>second</p>")}
    path = book(tmp_path, pages, "one two")
    path.write_bytes(path.read_bytes().replace(b"second", b"sec\x01nd"))
    parse = parsed(path)
    assert parse.document.markdown == "first\n"
    assert parse.warnings == [
        "damaged parts were left out: 1 in the container", "1 chapters are missing or damaged",
    ]  # fmt: skip


def test_a_book_without_its_end_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    pages = {"one": page("<p>first</p>"), "two": page("<p>second</p>")}
    path = book(tmp_path, pages, "one two")
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"second")])
    parse = parsed(path)
    assert parse.document.markdown == "first\n"
    assert len(parse.warnings) == 2


def test_protected_books_are_refused_and_garbled_fonts_are_none(tmp_path: Path) -> None:
    def encryption(algorithm: str) -> str:
        return f'<e><EncryptionMethod Algorithm="{algorithm}"/></e>'

    pages = {"one": page("<p>text</p>")}
    font = encryption("http://www.idpf.org/2008/embedding")
    assert parsed(book(tmp_path, pages, "one", **{"META-INF__encryption_xml": font})).document
    locked = encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc")
    with pytest.raises(Refusal) as refused:
        parsed(book(tmp_path, pages, "one", **{"META-INF__encryption_xml": locked}))
    assert refused.value.code == "encrypted-document"


def test_a_book_without_package_or_text_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.epub", "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
    with pytest.raises(Refusal) as refused:
        parsed(tmp_path / "a.epub")
    assert refused.value.code == "corrupt-document"
    with pytest.raises(Refusal) as refused:
        parsed(book(tmp_path, {"one": page("<img/>")}, "one"))
    assert refused.value.code == "empty-document"


def test_what_stands_beside_the_contents_is_text(tmp_path: Path) -> None:
    contents = '<nav><h1>Contents</h1><ol><li><a href="one.xhtml">One</a></li></ol></nav>'
    pages = {"nav": page(f"{contents}<p>To the reader.</p>"), "one": page("<h1>One</h1><p>Text.")}
    found = parsed(book(tmp_path, pages, "nav one"))
    assert found.document.markdown == "To the reader.\n\n# One\n\nText.\n"
    assert found.document.spans[0].place.path == "/html[1]/body[1]/p[1]"
    pages["nav"] = page(f"<h1>Contents</h1>{contents}")
    found = parsed(book(tmp_path, pages, "nav one"))
    assert found.document.markdown == "# One\n\nText.\n"
    assert found.warnings == []


def test_a_page_stands_in_for_a_picture(tmp_path: Path) -> None:
    path = book(tmp_path, {"one": page("<p>One.")}, "picture gone")
    with zipfile.ZipFile(path) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    parts["OEBPS/book.opf"] = parts["OEBPS/book.opf"].replace(
        b"<manifest>",
        b'<manifest><item id="picture" href="a.png" media-type="image/png" fallback="other"/>'
        b'<item id="other" href="b.svg" media-type="image/svg+xml" fallback="one"/>',
    )
    with zipfile.ZipFile(path, "w") as changed:
        for name, data in parts.items():
            changed.writestr(name, data)
    assert parsed(path).document.markdown == "One.\n"


def test_marks_of_notes_stand_apart_from_their_word(tmp_path: Path) -> None:
    text = (
        '<p>In that year<a href="#n" epub:type="noteref">2</a> and'
        '<sup><a href="#m" role="doc-noteref">3</a></sup>.</p>'
    )
    markdown = parsed(book(tmp_path, {"one": page(text)}, "one")).document.markdown
    assert markdown == "In that year[2] and[3].\n"


def test_a_page_is_found_in_upper_or_lower_case(tmp_path: Path) -> None:
    path = book(tmp_path, {"one": page("<p>One.")}, "one")
    data = path.read_bytes().replace(b"OEBPS/one.xhtml", b"OEBPS/One.xhtml")
    path.write_bytes(data)
    assert parsed(path).document.markdown == "One.\n"
