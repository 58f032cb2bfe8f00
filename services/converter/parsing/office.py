"""What every Office Open XML container has: relations between parts, and properties."""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from lxml import etree

from services.converter.parsing.archive import Archive, Damaged
from services.converter.parsing.wordml import parse_xml, usual

_BORING = frozenset({
    "Template", "TotalTime", "Pages", "Words", "Characters", "Application", "DocSecurity", "Lines",
    "Paragraphs", "ScaleCrop", "LinksUpToDate", "CharactersWithSpaces", "SharedDoc", "AppVersion",
    "HyperlinksChanged", "HeadingPairs", "TitlesOfParts", "revision", "modified", "lastPrinted",
    "PresentationFormat", "Slides", "Notes", "HiddenSlides", "MMClips",
})  # fmt: skip


_TYPES = "[Content_Types].xml"
_OPEN_XML = rb"application/vnd\.openxmlformats-officedocument\."
_KINDS = tuple(
    (
        re.compile(
            _OPEN_XML + kind + rb"\.(?:template|slideshow)\.main\+xml"
            rb"|application/vnd\.ms-" + program + rb"\.\w+\.macroEnabled(?:Template)?\.main\+xml",
            re.IGNORECASE,
        ),
        b"application/vnd.openxmlformats-officedocument." + kind + b"." + name + b".main+xml",
    )
    for kind, program, name in (
        (b"wordprocessingml", b"word", b"document"),
        (b"presentationml", b"powerpoint", b"presentation"),
    )
)
_RELATIONS = re.compile(r"((?:.*/)?)_rels/([^/]*)\.rels")
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_P = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_EMPTY = tuple(
    (re.compile(pattern), root)
    for pattern, root in (
        (r"\.rels$", f'<Relationships xmlns="{_PACKAGE}/relationships"/>'),
        ("^docProps/core", f'<c:coreProperties xmlns:c="{_PACKAGE}/metadata/core-properties"/>'),
        (r"^word/header\d*\.xml", f"<w:hdr {_W}/>"),
        (r"^word/footer\d*\.xml", f"<w:ftr {_W}/>"),
        (r"^word/comments\.xml", f"<w:comments {_W}/>"),
        (r"^word/settings\.xml", f"<w:settings {_W}/>"),
        (
            r"^ppt/notesSlides/",
            f"<p:notes {_P}><p:cSld><p:spTree><p:nvGrpSpPr/><p:grpSpPr/>"
            "</p:spTree></p:cSld></p:notes>",
        ),
        (
            "/charts/",
            '<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"/>',
        ),
    )
)


class Relation(NamedTuple):
    """A part that another one names by `id`; `kind` is the last step of the relation's type."""

    id: str
    kind: str
    target: str


def part(archive: Archive, name: str) -> Any | None:
    """Root of an XML part, None if there is none.

    Raises:
        Refusal: `corrupt-document`, `too-deep`, `decompression-bomb`.
    """
    data = archive.read(name)
    return parse_xml(data) if data else None


def side_part(archive: Archive, name: str) -> Any | None:
    """As `part`, of a part that no text depends on: None too if it is damaged, which is noted.

    Raises:
        Refusal: `corrupt-document` for a document type, `too-deep`, `decompression-bomb`.
    """
    try:
        return part(archive, name)
    except Damaged:
        archive.miss(name)
        return None


def whole_copy(
    archive: Archive, changed: Mapping[str, bytes], needed: re.Pattern[str]
) -> io.BytesIO:
    """The container for a library that opens all of it: other content for `changed` parts, and
    stand-ins for those that are damaged or missing and not `needed`, which is noted.

    Raises:
        Refusal: `corrupt-document`, `decompression-bomb`.
    """
    out = io.BytesIO()
    names = dict.fromkeys(archive.names)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as copy:
        for name in names:
            try:
                data = changed[name] if name in changed else archive.read(name)
            except Damaged:
                if needed.fullmatch(name):
                    raise
                archive.miss(name)
                data = _stand_in(name)
            copy.writestr(name, _plain(name, data))
        for name in dict.fromkeys(_named(archive)):
            actual = archive.actual(name)
            if name not in names and actual in names:
                copy.writestr(name, _plain(name, archive.read(actual)))
            elif name not in names:
                if needed.fullmatch(name):
                    raise archive.lack("a part with text")
                archive.miss(name)
                copy.writestr(name, _stand_in(name))
    out.seek(0)
    return out


def _plain(name: str, data: bytes) -> bytes:
    """A part as libraries know it."""
    if name == _TYPES:
        return _as_document(data)
    return usual(data) if name.endswith((".xml", ".rels")) else data


def _as_document(types: bytes) -> bytes:
    """Templates, shows and files with macros told to be plain documents: libraries know no other
    kind of what is the same inside."""
    for pattern, plain in _KINDS:
        types = pattern.sub(plain, types)
    return types


def _named(archive: Archive) -> Iterator[str]:
    """The parts that relations of others lead to."""
    for rels in archive.names:
        match = _RELATIONS.fullmatch(rels)
        if match:
            with suppress(Damaged):
                yield from (r.target for r in _relations(archive, f"{match[1]}{match[2]}"))


def _stand_in(name: str) -> bytes:
    """What a library can open in the place of a part: nothing, in the form that it expects."""
    base = posixpath.basename(name)
    if not base.endswith((".xml", ".rels", ".vml")):
        return b""
    root = next((root for sign, root in _EMPTY if sign.search(name)), "<none/>")
    return root.encode()


def relations(archive: Archive, name: str) -> list[Relation]:
    """The parts of this container that the part `name` refers to; never addresses outside."""
    found = _relations(archive, name)
    return [relation._replace(target=archive.actual(relation.target)) for relation in found]


def _relations(archive: Archive, name: str) -> list[Relation]:
    folder, base = posixpath.split(name)
    found: list[Relation] = []
    root = part(archive, posixpath.join(folder, "_rels", f"{base}.rels"))
    for element in () if root is None else root:
        target = element.get("Target") or ""
        if element.get("TargetMode") == "External" or not target:
            continue
        path = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        kind = (element.get("Type") or "").rpartition("/")[2]
        found.append(Relation(element.get("Id") or "", kind, path))
    return found


def addresses(archive: Archive, name: str) -> dict[str, str]:
    """Where the links of the part `name` lead outside of this container, by the relation's id."""
    folder, base = posixpath.split(name)
    root = side_part(archive, posixpath.join(folder, "_rels", f"{base}.rels"))
    return {
        element.get("Id") or "": element.get("Target") or ""
        for element in (() if root is None else root)
        if element.get("TargetMode") == "External"
        and (element.get("Type") or "").endswith("/hyperlink")
    }


def properties(archive: Archive) -> dict[str, str]:
    """Core, extended and custom properties with text, by their local name."""
    found: dict[str, str] = {}
    for name in ("docProps/core.xml", "docProps/app.xml", "docProps/custom.xml"):
        root = side_part(archive, name)
        for element in () if root is None else root:
            text = re.sub(r"\s+", " ", "".join(element.itertext())).strip()
            key = element.get("name") or etree.QName(element).localname
            if text and key not in _BORING:
                found.setdefault(key, text[:2000])
    return found
