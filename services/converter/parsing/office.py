"""What every Office Open XML container has: relations between parts, and properties."""

import posixpath
import re
from typing import Any, NamedTuple

from lxml import etree

from services.converter.parsing.archive import Archive
from services.converter.parsing.wordml import parse_xml

_BORING = frozenset({
    "Template", "TotalTime", "Pages", "Words", "Characters", "Application", "DocSecurity", "Lines",
    "Paragraphs", "ScaleCrop", "LinksUpToDate", "CharactersWithSpaces", "SharedDoc", "AppVersion",
    "HyperlinksChanged", "HeadingPairs", "TitlesOfParts", "revision", "modified", "lastPrinted",
    "PresentationFormat", "Slides", "Notes", "HiddenSlides", "MMClips",
})  # fmt: skip


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


def relations(archive: Archive, name: str) -> list[Relation]:
    """The parts of this container that the part `name` refers to; never addresses outside."""
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


def properties(archive: Archive) -> dict[str, str]:
    """Core, extended and custom properties with text, by their local name."""
    found: dict[str, str] = {}
    for name in ("docProps/core.xml", "docProps/app.xml", "docProps/custom.xml"):
        root = part(archive, name)
        for element in () if root is None else root:
            text = re.sub(r"\s+", " ", "".join(element.itertext())).strip()
            key = element.get("name") or etree.QName(element).localname
            if text and key not in _BORING:
                found.setdefault(key, text[:2000])
    return found
