"""What a Word document says beside its text: in names, fields and parts for programs."""

import re
from collections.abc import Iterator
from typing import Any

from contracts.artifacts import HiddenText
from contracts.events import HiddenKind
from services.converter.parsing.archive import Archive
from services.converter.parsing.hidden import in_parts, is_sentence
from services.converter.parsing.office import side_part
from services.converter.parsing.word_base import W

_MOST_SAID, _MOST_LETTERS = 2000, 1 << 20
_TOLD = (
    ("bookmarkStart", "name"), ("hyperlink", "tooltip"), ("alias", "val"), ("tag", "val"),
    ("helpText", "val"), ("statusText", "val"), ("tblCaption", "val"), ("tblDescription", "val"),
    ("listItem", "displayText"), ("listItem", "value"), ("listEntry", "val"), ("default", "val"),
)  # fmt: skip
_FIELDS = re.compile(
    r"\s*(?:PAGE|NUMPAGES|TOC|HYPERLINK|REF|PAGEREF|NOTEREF|SEQ|DATE|TIME|STYLEREF|INDEX|XE|TC"
    r"|FORM\w+|MERGEFIELD|SECTION\w*|SAVEDATE|CREATEDATE|FILENAME|EQ|ADDIN|CITATION|BIBLIOGRAPHY)\b"
)
_PARTS = re.compile(
    r"word/settings\.xml|customXml/item\d+\.xml|word/glossary/document\.xml|docProps/custom\.xml"
)


def said_beside(root: Any, archive: Archive) -> list[HiddenText]:
    """Sentences in names, instructions of fields, settings and parts that hold data."""
    found = [*_names(root), *_instructions(root)]
    for name in sorted(archive.names):
        part = side_part(archive, name) if _PARTS.fullmatch(name) else None
        for element in () if part is None else part.iter():
            kept = [element.text or "", element.get(W + "val") or "", element.get("name") or ""]
            found += _said("metadata", *kept)
    return list(dict.fromkeys(found))[:_MOST_SAID]


def _names(root: Any) -> Iterator[HiddenText]:
    for name, attribute in _TOLD:
        for element in root.iter(W + name):
            yield from _said("attribute", element.get(W + attribute) or "")


def _instructions(root: Any) -> Iterator[HiddenText]:
    codes = [field.get(W + "instr") or "" for field in root.iter(W + "fldSimple")]
    for paragraph in root.iter(W + "p"):
        codes.append("".join(code.text or "" for code in paragraph.iter(W + "instrText")))
    for code in codes:
        if not _FIELDS.match(code):
            yield from _said("attribute", code.replace('"', " "))


def _said(kind: HiddenKind, *texts: str) -> Iterator[HiddenText]:
    for text in texts:
        squeezed = re.sub(r"\s+", " ", text[:_MOST_LETTERS]).strip()
        if is_sentence(squeezed):
            yield from (HiddenText(kind=kind, text=part) for part in in_parts(squeezed))
