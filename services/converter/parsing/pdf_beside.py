"""What a PDF says in other places than its pages: for programs, for screen readers, in menus."""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contracts.artifacts import HiddenText
from contracts.events import HiddenKind
from services.converter.parsing.hidden import in_parts

if TYPE_CHECKING:
    import pikepdf

# What objects of the wrong kind raise, besides qpdf's own errors.
ODD = (
    ValueError, TypeError, KeyError, AttributeError, IndexError, RuntimeError, OverflowError,
    RecursionError, NotImplementedError,
)  # fmt: skip
_MOST_NODES, _MOST_TAGS = 4000, 40_000
_MOST_PACKET = 1 << 20
_MOST_LETTERS = 1 << 20
_MOST_SCRIPTS = 200
_LEAST_WORDS = 3
_TOLD: tuple[tuple[str, HiddenKind], ...] = (
    ("/Alt", "alt-text"), ("/ActualText", "alt-text"), ("/E", "alt-text"), ("/T", "alt-text"),
)  # fmt: skip
_DATES = re.compile(r"D?:?\d{4}[\d:TZ.+'’ -]*")


def said_beside(path: Path) -> list[HiddenText]:
    """Properties of any name, bookmarks, scripts, descriptions of figures and of attached files.

    Empty for a file that qpdf cannot open.
    """
    import pikepdf

    found: list[HiddenText] = []
    try:
        with pikepdf.open(path, suppress_warnings=True) as document:
            for part in (_properties, _packet, _bookmarks, _scripts, _descriptions, _files):
                try:
                    found += part(document)
                except (pikepdf.PdfError, *ODD):
                    # An odd object costs its own part only: what is told elsewhere is still told.
                    continue
    except (pikepdf.PdfError, pikepdf.PasswordError, *ODD):
        return found
    return list(dict.fromkeys(found))


def _text(kind: HiddenKind, value: object, least: int = _LEAST_WORDS) -> Iterator[HiddenText]:
    text = re.sub(r"\s+", " ", str(value)[:_MOST_LETTERS]).replace("\0", "").strip()
    if len(text.split()) >= least:
        yield from (HiddenText(kind=kind, text=part) for part in in_parts(text))


def _properties(document: "pikepdf.Pdf") -> Iterator[HiddenText]:
    for value in dict(document.docinfo).values():
        if not _DATES.fullmatch(str(value)):
            yield from _text("metadata", value)


def _packet(document: "pikepdf.Pdf") -> Iterator[HiddenText]:
    """The XMP packet: texts and attributes that hold some words."""
    from lxml import etree

    stream = document.Root.get("/Metadata")
    if stream is None:
        return
    data = stream.read_bytes()
    if len(data) > _MOST_PACKET:
        return
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, recover=True, remove_comments=False
    )
    root = etree.fromstring(data, parser)
    for element in () if root is None else root.iter():
        for value in (element.text or "", *element.attrib.values()):
            yield from _text("metadata", value)


def _bookmarks(document: "pikepdf.Pdf") -> Iterator[HiddenText]:
    """Titles of the outline, which a reader shows in a window of its own."""
    node = of(document.Root.get("/Outlines"), "/First")
    stack, left = [node] if node is not None else [], _MOST_NODES
    while stack and left:
        left -= 1
        one = stack.pop()
        title = one.get("/Title")
        if title is not None:
            yield from _text("metadata", title)
        following = (one.get("/Next"), one.get("/First"))
        stack += [inner for inner in following if inner is not None]


def _scripts(document: "pikepdf.Pdf") -> Iterator[HiddenText]:
    root = document.Root
    waiting = [root.get("/OpenAction"), *_values(root.get("/AA"))]
    names = of(of(root.get("/Names"), "/JavaScript"), "/Names")
    waiting += list(islice(names, _MOST_SCRIPTS)) if names is not None else []
    for page in islice(document.pages, _MOST_SCRIPTS):
        waiting += _values(page.obj.get("/AA"))
    for action in waiting[: 4 * _MOST_SCRIPTS]:
        code = of(action, "/JS")
        if code is not None:
            written = code if is_string(code) else code.read_bytes().decode("latin-1")
            yield from _text("script", written)


def _descriptions(document: "pikepdf.Pdf") -> Iterator[HiddenText]:
    """What the tree of the document's structure tells those who cannot see a figure."""
    stack: list[Any] = [document.Root.get("/StructTreeRoot")]
    # What is listed counts: a node may stand in the lists of all others.
    left = _MOST_TAGS
    while stack:
        node = stack.pop()
        if of(node, None) is None:
            continue
        for key, kind in _TOLD:
            told = node.get(key)
            if told is not None and is_string(told):
                yield from _text(kind, told)
        inner = _children(node, left)
        left -= len(inner)
        stack += inner[::-1]


def _files(document: "pikepdf.Pdf") -> Iterator[HiddenText]:
    for name, file in islice(document.attachments.items(), _MOST_SCRIPTS):
        yield from _text("metadata", name)
        yield from _text("metadata", file.description)


def _children(node: Any, most: int) -> list[Any]:
    import pikepdf

    # To begin a list costs as much as all of it.
    inner = of(node, "/K") if most > 0 else None
    listed = inner if isinstance(inner, pikepdf.Array) else [] if inner is None else [inner]
    return list(islice(listed, max(0, most)))


def _values(dictionary: Any) -> list[Any]:
    return [value for _, value in dictionary.items()] if of(dictionary, None) is not None else []


def of(holder: Any, key: str | None) -> Any:
    """An entry of a dictionary, or the dictionary itself for None; None if there is none."""
    import pikepdf

    if not isinstance(holder, pikepdf.Dictionary):
        return None
    return holder if key is None else holder.get(key)


def is_string(value: Any) -> bool:
    import pikepdf

    return isinstance(value, (str, pikepdf.String))
