"""EPUB: the chapters in reading order, each read as a web page without furniture.

Not by docling, which has the chapters but no place in them, and takes contents lists for text.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument, Place, Span
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import EPUB
from services.converter.parsing.archive import Archive, Damaged
from services.converter.parsing.html import parse_html
from services.converter.parsing.office import part
from services.converter.parsing.properties import line, told_title
from services.converter.parsing.result import Parse
from services.converter.parsing.trees import HEADINGS, parsed
from services.converter.parsing.wordml import parse_xml
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

_CONTAINER = "META-INF/container.xml"
_PAGES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_NOTE = re.compile(rb"\[\^(?=[\w-]{1,40}\])")
_CLOSED = re.compile(rb"<([A-Za-z][\w:-]{0,40})((?:\s[^<>]*)?)/>")
_VOID = frozenset(b"area base br col embed hr img input link meta param source track wbr".split())
_NOTE_LINK = re.compile(
    rb"<a\b[^<>]{0,500}\b(?:epub:type|role)=[\"'][^\"'<>]{0,100}noteref[^<>]{0,500}>[^<>]{1,20}</a>"
    rb"(?!</sup>)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_DOCUMENT_TYPE = re.compile(
    rb"<!DOCTYPE[^>\[]{0,1000}(?:\[[^\]]{0,100000}\]\s{0,1000})?>", re.IGNORECASE
)


class _Chapter(NamedTuple):
    """An entry of the container, and what the book's contents call it."""

    name: str
    label: str
    lists: bool = False
    """Whether it is the page of the contents: its lists are left out, what else it says is not."""


class _Book(NamedTuple):
    facts: dict[str, list[str]]
    chapters: list[_Chapter]


def parse_epub(path: Path, options: ParseOptions) -> Parse:
    """A book. Spans name the entry and the XPath in it.

    A chapter without a heading gets the one that the contents give it; contents lists themselves
    are left out, what else stands on their page is not.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`, `decompression-bomb`, `too-deep`,
            `too-large`, `empty-document`.
    """
    writer = Writer(options.max_output_bytes)
    hidden: list[HiddenText] = []
    missing = 0
    with Archive(path, options) as archive:
        book = _book(archive)
        for number, chapter in enumerate(book.chapters, 1):
            data = _whole(archive, chapter.name)
            data = _without_lists(data) if chapter.lists else data
            document = _read(data, options) if data else None
            missing += not data and not chapter.lists
            if document is not None:
                hidden += document.hidden
                _write(writer, _with_own_notes(document, number), chapter)
    if writer.empty:
        raise Refusal("empty-document", "the book has no visible text")
    markdown, spans = writer.finish()
    hidden += [HiddenText(kind="metadata", text=t) for texts in book.facts.values() for t in texts]
    document = ParsedDocument(
        markdown=markdown, hidden=tuple(dict.fromkeys(hidden)), meta=_meta(book), spans=spans
    )
    told = [f"{missing} chapters are missing or damaged"] if missing else []
    return Parse(document, [*archive.warnings, *told])


def _whole(archive: Archive, name: str) -> bytes:
    """An entry, empty if it is damaged or not there."""
    try:
        return archive.read(name)
    except Damaged:
        archive.miss(name)
        return b""


def _meta(book: _Book) -> BodyMeta:
    facts = book.facts
    return BodyMeta(
        title=told_title(line(next(iter(facts.get("title", [])), ""))),
        language=UNKNOWN,
        media_type=EPUB,
        author=line(", ".join(facts.get("creator", []))) or None,
        date=line(next(iter(facts.get("date", [])), "")) or None,
        publication=line(", ".join(facts.get("publisher", []))) or None,
    )


def _read(data: bytes, options: ParseOptions) -> ParsedDocument | None:
    try:
        return parse_html(_opened(data), options, article=False).document
    except Refusal as refusal:
        if refusal.code != "empty-document":
            raise
        return None


def _opened(page: bytes) -> bytes:
    """`<title/>` as a browser of pages needs it: it would take all that follows for the title.

    Marks of notes are raised, as readers of books show them.
    """
    page = _CLOSED.sub(
        lambda m: m[0] if m[1].lower() in _VOID else b"<" + m[1] + m[2] + b"></" + m[1] + b">",
        _DOCUMENT_TYPE.sub(b"", page, count=1),
    )
    return _NOTE_LINK.sub(rb"<sup>\g<0></sup>", page)


def _without_lists(page: bytes) -> bytes:
    """A page of the contents without them; empty if it says no more than a heading."""
    soup = parsed(_opened(page).decode("utf-8", "replace"))
    for contents in soup.find_all("nav"):
        # The element stays: what follows it keeps its place.
        contents.clear()
    body = soup.body
    said = body is not None and any(
        text.strip() and text.find_parent(HEADINGS) is None for text in body.find_all(string=True)
    )
    return str(soup).encode() if said else b""


def _write(writer: Writer, document: ParsedDocument, chapter: _Chapter) -> None:
    if chapter.label and not _HEADING.search(document.markdown):
        writer.heading(chapter.label, 1, Place(part=chapter.name))
    writer.copy(document, chapter.name)


def _with_own_notes(document: ParsedDocument, number: int) -> ParsedDocument:
    """Notes of every chapter count from 1: in the book each has a mark of its own."""
    source = document.markdown.encode()
    pieces: list[bytes] = []
    shifts: list[tuple[int, int]] = []
    at = 0
    for match in _NOTE.finditer(source):
        added = f"{number}-".encode()
        pieces += [source[at : match.end()], added]
        at = match.end()
        shifts.append((at, len(added)))
    if not shifts:
        return document
    pieces.append(source[at:])

    def moved(offset: int) -> int:
        return offset + sum(size for start, size in shifts if start <= offset)

    spans = tuple(
        Span(byte_start=moved(s.byte_start), byte_end=moved(s.byte_end), place=s.place)
        for s in document.spans
    )
    return document.model_copy(update={"markdown": b"".join(pieces).decode(), "spans": spans})


# --- the package --------------------------------------------------------------------------------


def _book(archive: Archive) -> _Book:
    _refuse_encrypted(archive)
    container = part(archive, _CONTAINER)
    root_files = [] if container is None else [
        unquote(e.get("full-path") or "") for e in container.iter() if _local(e) == "rootfile"
    ]  # fmt: skip
    name = next((one for one in root_files if one in archive.names), None)
    name = name or next((one for one in sorted(archive.names) if one.endswith(".opf")), None)
    if name is None:
        raise Refusal("corrupt-document", "the container holds no book")
    package = parse_xml(_untyped(archive.read(name)))
    folder = posixpath.dirname(name)
    items = {
        e.get("id") or "": (_resolved(folder, e.get("href") or ""), e)
        for e in package.iter()
        if _local(e) == "item"
    }
    skipped = _contents_pages(package, items, folder)
    labels = _labels(archive, items)
    order = [e for e in package.iter() if _local(e) == "itemref"]
    # What stands beside the line of reading (answers, notes) comes at the end.
    order.sort(key=lambda e: e.get("linear") == "no")
    names = (archive.actual(page) for e in order if (page := _page(items, e.get("idref") or "")))
    navigation = _navigation(items)
    chapters = [
        _Chapter(one, "" if one in navigation else labels.get(one, ""), one in navigation)
        for one in dict.fromkeys(names)
        if one not in skipped
    ]
    return _Book(_facts(package), chapters)


def _page(items: dict[str, tuple[str, Any]], key: str) -> str | None:
    """The page of an item, or that which stands in for a picture or a page of another kind."""
    seen: set[str] = set()
    while key in items and key not in seen:
        name, element = items[key]
        if (element.get("media-type") or "") in _PAGES:
            return name
        seen.add(key)
        key = element.get("fallback") or ""
    return None


def _navigation(items: dict[str, tuple[str, Any]]) -> set[str]:
    return {name for name, e in items.values() if "nav" in (e.get("properties") or "").split()}


def _untyped(data: bytes) -> bytes:
    """Without a document type: old books have one. An entity that it declares stays unknown."""
    return _DOCUMENT_TYPE.sub(b"", data, count=1)


def _local(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _resolved(folder: str, href: str) -> str:
    """The entry that a reference means; `..` never leads out of the container."""
    path = posixpath.join("/", folder, unquote(urlsplit(href).path))
    return posixpath.normpath(path).lstrip("/")


def _facts(package: Any) -> dict[str, list[str]]:
    facts: dict[str, list[str]] = {}
    for element in package.iter():
        if str(element.tag).startswith("{http://purl.org/dc/") and line(element.text):
            facts.setdefault(_local(element), []).append(line(element.text))
    return facts


def _contents_pages(package: Any, items: dict[str, tuple[str, Any]], folder: str) -> set[str]:
    """Pages of older books that only list the chapters."""
    guide = {
        _resolved(folder, e.get("href") or "")
        for e in package.iter()
        if _local(e) == "reference"
        and (e.get("type") or "").lower() == "toc"
        # A reference into a chapter is no page of its own.
        and "#" not in (e.get("href") or "")
    }
    return guide - _navigation(items)


def _labels(archive: Archive, items: dict[str, tuple[str, Any]]) -> dict[str, str]:
    """What the contents call each entry."""
    labels: dict[str, str] = {}
    for name, element in items.values():
        is_nav = "nav" in (element.get("properties") or "").split()
        if (is_nav or element.get("media-type") == "application/x-dtbncx+xml") and (
            name in archive.names
        ):
            try:
                root = parse_xml(_untyped(archive.read(name)))
            except Refusal:
                # Chapters can be read without their list.
                continue
            for target, label in _entries(root):
                labels.setdefault(_resolved(posixpath.dirname(name), target), label)
    return labels


def _entries(root: Any) -> Iterator[tuple[str, str]]:
    for element in root.iter():
        text = line("".join(element.itertext())) if _local(element) in {"a", "navLabel"} else ""
        if _local(element) == "a" and text:
            yield element.get("href") or "", text
        elif text:
            targets = (e for e in element.getparent() if _local(e) == "content")
            yield from ((target.get("src") or "", text) for target in targets)


def _refuse_encrypted(archive: Archive) -> None:
    """Fonts may be garbled, pages may not."""
    root = part(archive, "META-INF/encryption.xml")
    for method in () if root is None else root.iter():
        algorithm = method.get("Algorithm") or ""
        if _local(method) == "EncryptionMethod" and algorithm not in _FONTS:
            raise Refusal("encrypted-document", "the book is protected")
