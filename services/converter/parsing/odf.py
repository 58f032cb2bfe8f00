"""OpenDocument: what texts, sheets and slides have in common.

Not by docling: it gives no places, glues blanks into words that change their style, and takes
deleted, hidden and annotated text for content.
"""

import re
from typing import Any

from contracts.artifacts import BodyMeta, HiddenText
from contracts.events import HiddenKind
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from services.converter.parsing.archive import Archive, Damaged
from services.converter.parsing.looks import (
    BOLD,
    ITALIC,
    STRUCK,
    names_quotation,
    names_title,
)
from services.converter.parsing.office import side_part
from services.converter.parsing.properties import line, told_title

_ODF = "{urn:oasis:names:tc:opendocument:xmlns:"
OFFICE = _ODF + "office:1.0}"
TEXT = _ODF + "text:1.0}"
TABLE = _ODF + "table:1.0}"
DRAW = _ODF + "drawing:1.0}"
STYLE = _ODF + "style:1.0}"
SVG = _ODF + "svg-compatible:1.0}"
PRESENTATION = _ODF + "presentation:1.0}"
FO = _ODF + "xsl-fo-compatible:1.0}"
_META = _ODF + "meta:1.0}"
_NUMBER = _ODF + "datastyle:1.0}"
XLINK = "{http://www.w3.org/1999/xlink}"

CONTENT = "content.xml"
_TINY_POINTS, _SMALL, _FAINT = 2.0, 12.0, 5.0
"""The others per cent: of the size around, of full paint, of the usual width."""
_FAR_LEFT, _FAR_RIGHT = -200.0, 1500.0
_OPACITY = "{urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0}opacity"
_POINTS = {"pt": 1.0, "in": 72.0, "cm": 28.3465, "mm": 2.83465, "px": 0.75, "pc": 12.0}
_SPLIT_SECOND = re.compile(r"(?<=:\d\d)\.\d+")
_LENGTH = re.compile(r"(-?\d*\.?\d+)\s*(pt|in|cm|mm|px|pc)")
SHAPES = frozenset(
    DRAW + name
    for name in (
        "custom-shape", "rect", "ellipse", "circle", "polygon", "polyline", "path", "line",
        "connector", "caption", "regular-polygon", "measure",
    )
)  # fmt: skip
"""Shapes that hold their text themselves."""
BOXES = SHAPES | {DRAW + "frame", DRAW + "g"}
"""What floats, and is not part of the line in which it is anchored."""


def check(archive: Archive) -> None:
    """Whether the container can be read.

    Raises:
        Refusal: `encrypted-document`, `corrupt-document`.
    """
    try:
        manifest = archive.read("META-INF/manifest.xml")
    except Damaged:
        # Were the document encrypted, its content would be no XML.
        archive.miss("META-INF/manifest.xml")
        manifest = b""
    if b"encryption-data" in manifest or "encrypted-package" in archive.names:
        raise Refusal("encrypted-document", "the document is protected by a password")
    if CONTENT not in archive.names:
        raise archive.lack("the document itself")
    if archive.is_cut and "styles.xml" not in archive.names:
        raise archive.lack("its styles, which tell what is hidden")


def metadata(archive: Archive, media_type: str, **more: Any) -> tuple[BodyMeta, list[HiddenText]]:
    """Title, author and date; and all properties for the scanner."""
    root = side_part(archive, "meta.xml")
    facts: dict[str, str] = {}
    for element in () if root is None else root.iter():
        if element.tag in {OFFICE + "document-meta", OFFICE + "meta"} or len(element):
            continue
        text = line(element.text)
        name = element.get(_META + "name") or element.tag.rpartition("}")[2]
        if text and not element.tag.endswith(("generator", "editing-cycles", "editing-duration")):
            facts.setdefault(name, text)
    meta = BodyMeta(
        title=told_title(facts.get("title", "")),
        language=UNKNOWN,
        media_type=media_type,
        author=facts.get("initial-creator") or facts.get("creator"),
        date=_SPLIT_SECOND.sub("", facts.get("creation-date") or facts.get("date") or "") or None,
        **more,
    )
    return meta, [HiddenText(kind="metadata", text=text) for text in facts.values()]


def points(length: str | None) -> float | None:
    """`2.5cm` in points."""
    match = _LENGTH.fullmatch((length or "").strip())
    return float(match[1]) * _POINTS[match[2]] if match else None


class Styles:
    """Styles by family and name, automatic ones first, each with what it inherits."""

    def __init__(self, *roots: Any | None) -> None:
        self._styles: dict[tuple[str, str], Any] = {}
        self.lists: dict[str, Any] = {}
        self.outline: dict[int, Any] = {}
        self._by_hand: set[str | None] = set()
        self._silent: set[str] = set()
        for root in roots:
            if root is None:
                continue
            for style in root.iter(STYLE + "style"):
                key = (style.get(STYLE + "family") or "", style.get(STYLE + "name") or "")
                self._styles.setdefault(key, style)
                if style.getparent().tag == OFFICE + "automatic-styles" and key[0] == "paragraph":
                    self._by_hand.add(key[1])
            for style in root.iter(TEXT + "list-style"):
                self.lists.setdefault(style.get(STYLE + "name") or "", style)
            for style in root.iter(_NUMBER + "text-style"):
                if style.find(_NUMBER + "text-content") is None:
                    self._silent.add(style.get(STYLE + "name") or "")
            for level in root.iter(TEXT + "outline-level-style"):
                self.outline.setdefault(_int(level.get(TEXT + "level"), 1), level)

    def get(self, family: str, name: str | None, properties: str, attribute: str) -> str | None:
        """An attribute of a style or of the nearest one it is based on."""
        seen: set[str] = set()
        while name and name not in seen and (family, name) in self._styles:
            seen.add(name)
            style = self._styles[(family, name)]
            for found in style.iter(STYLE + properties):
                if found.get(attribute) is not None:
                    return str(found.get(attribute))
            name = style.get(STYLE + "parent-style-name")
        return None

    def look(self, family: str, name: str | None, outer: int) -> int:
        """How text in this style stands out; what it says nothing of is as in `outer`."""
        weight = self.get(family, name, "text-properties", FO + "font-weight")
        slant = self.get(family, name, "text-properties", FO + "font-style")
        line_ = self.get(family, name, "text-properties", STYLE + "text-line-through-style")
        told = (
            (BOLD, weight and (weight == "bold" or weight in {"600", "700", "800", "900"})),
            (ITALIC, slant and slant in {"italic", "oblique"}),
            (STRUCK, line_ and line_ != "none"),
        )
        for bit, on in told:
            if on is not None:
                outer = outer | bit if on else outer & ~bit
        return outer

    def named(self, name: str | None) -> str | None:
        """The named style behind one that holds what was set by hand for a paragraph."""
        seen: set[str | None] = set()
        while name in self._by_hand and name not in seen:
            seen.add(name)
            name = self._styles[("paragraph", name or "")].get(STYLE + "parent-style-name")
        return name

    def is_title(self, name: str | None) -> bool:
        """Whether paragraphs of this style are the title of the document."""
        named = self.named(name)
        style = self._styles.get(("paragraph", named or ""))
        told = None if style is None else style.get(STYLE + "display-name")
        return names_title(told or named or "")

    def is_quote(self, name: str | None) -> bool:
        """Whether paragraphs of this style are quotations."""
        seen: set[str] = set()
        while name and name not in seen and ("paragraph", name) in self._styles:
            seen.add(name)
            style = self._styles[("paragraph", name)]
            if names_quotation(style.get(STYLE + "display-name") or name):
                return True
            name = style.get(STYLE + "parent-style-name")
        return False

    def is_outlined(self, name: str | None) -> bool:
        """Whether paragraphs of this style take part in the numbering of headings."""
        seen: set[str] = set()
        while name and name not in seen and ("paragraph", name) in self._styles:
            seen.add(name)
            style = self._styles[("paragraph", name)]
            if style.get(STYLE + "default-outline-level"):
                return True
            name = style.get(STYLE + "parent-style-name")
        return False

    def raises(self, name: str | None) -> bool:
        """Whether text in this style stands above the line: `super 58%`, or a share of a line."""
        told = self.get("text", name, "text-properties", STYLE + "text-position") or ""
        return re.match(r"super|[1-9]\d*%", told.strip()) is not None

    def hides(self, family: str, name: str | None) -> HiddenKind | None:
        """Why text in this style cannot be read; None too when the style says nothing of it."""

        def told(attribute: str, properties: str = "text-properties") -> str:
            return self.get(family, name, properties, attribute) or ""

        if told(TEXT + "display") == "none" or _share(told(_OPACITY), 100) <= _FAINT:
            return "invisible-style"
        size = points(told(FO + "font-size"))
        small = _share(told(FO + "font-size"), 100) <= _SMALL
        if (size is not None and size <= _TINY_POINTS) or small:
            return "zero-size"
        if _share(told(STYLE + "text-scale"), 100) <= _FAINT:
            return "zero-size"
        if family == "paragraph":
            aside = points(told(FO + "margin-left", "paragraph-properties"))
            if aside is not None and not _FAR_LEFT < aside < _FAR_RIGHT:
                return "off-page"
        return None

    def is_silent(self, name: str | None) -> bool:
        """Whether cells in this style show nothing of a text (`;;;`)."""
        seen: set[str] = set()
        while name and name not in seen and ("table-cell", name) in self._styles:
            seen.add(name)
            style = self._styles["table-cell", name]
            told = style.get(STYLE + "data-style-name")
            if told:
                return told in self._silent
            name = style.get(STYLE + "parent-style-name")
        return False

    def colours(self, family: str, name: str | None) -> tuple[str | None, str | None]:
        """Of the letters, and of what a style paints behind them; None where it tells nothing.

        Letters whose colour a program chooses can be read, whatever is behind them.
        """
        front = self.get(family, name, "text-properties", FO + "color")
        automatic = self.get(family, name, "text-properties", STYLE + "use-window-font-color")
        grounds = ("text-properties", "paragraph-properties", "table-cell-properties")
        told = (self.get(family, name, one, FO + "background-color") for one in grounds)
        behind = next((one for one in told if one and one != "transparent"), None)
        return ("" if automatic == "true" else front), behind

    def pictured(self, family: str, name: str | None) -> bool:
        """Whether a picture lies behind what has this style."""
        style = self._styles.get((family, name or ""))
        pictures = () if style is None else style.iter(STYLE + "background-image")
        return any(picture.get(XLINK + "href") for picture in pictures)


def _share(told: str, other: float) -> float:
    """`50%` as a number, else `other`."""
    match = re.fullmatch(r"(\d{1,4}(?:\.\d+)?)%", told.strip())
    return float(match[1]) if match else other


def is_far(box: Any) -> bool:
    """Whether a box lies off every page."""
    sides = (points(box.get(SVG + side)) for side in ("x", "y"))
    return any(side is not None and not _FAR_LEFT < side < _FAR_RIGHT for side in sides)


def is_hidden_paragraph(paragraph: Any) -> bool:
    """Whether a field takes the whole paragraph away."""
    for field in paragraph.iter(TEXT + "hidden-paragraph"):
        state = field.get(TEXT + "is-hidden") or field.get(TEXT + "condition") or ""
        if state.rpartition(":")[2].strip().lower() in {"true", "1"}:
            return True
    return False


def _int(text: str | None, other: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 9 else other


def whole(text: str | None, other: int = 1) -> int:
    """A small whole number of an attribute, else `other`."""
    return _int(text, other)


def plain(element: Any) -> str:
    """All text below in one line."""
    return " ".join(" ".join(element.itertext()).split())
