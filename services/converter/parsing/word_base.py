"""What every module about WordprocessingML needs: texts, values and styles."""

import re
from collections.abc import Iterator
from typing import Any

from services.converter.parsing.looks import names_quotation

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
GROUNDS = {W + "p": "pPr", W + "tc": "tcPr", W + "tr": "trPr", W + "tbl": "tblPr"}
"""What may have a ground of its own, and where it tells so."""


def text_of(element: Any) -> str:
    """All text below, tabs and breaks as blanks."""
    return raw_text(element).strip()


def raw_text(element: Any) -> str:
    """The same with the blanks at its edges."""
    parts: list[str] = []
    for node in element.iter(W + "t", W + "delText", W + "tab", W + "br", W + "p", W + "cr"):
        parts.append(node.text or "" if node.tag in {W + "t", W + "delText"} else " ")
    return re.sub(r"\s+", " ", "".join(parts))


class Styles:
    """Run properties of the styles, each with what it inherits."""

    def __init__(self, root: Any | None) -> None:
        self._styles = (
            {} if root is None else {s.get(W + "styleId"): s for s in root.iter(W + "style")}
        )
        self._told: dict[tuple[str, str], Any | None] = {}
        self._shades: dict[Any, tuple[bool, Any | None]] = {}

    def told(self, own: Any | None, name: str, *style_ids: str | None) -> Any | None:
        """A property of a run: by its `own` ones, else by the first of the styles that has it."""
        found = None if own is None else own.find(W + name)
        for style_id in style_ids:
            if found is None and style_id:
                found = self._of_style(style_id, name)
        return found

    def _of_style(self, style_id: str, name: str) -> Any | None:
        """A run property of the style or of the nearest that it is based on; looked up once."""
        passed: list[str] = []
        at: str | None = style_id
        found = None
        while at and at in self._styles:
            if (at, name) in self._told:
                found = self._told[at, name]
                break
            # Not found, until it is: so a ring of styles ends.
            self._told[at, name] = None
            passed.append(at)
            properties = self._styles[at].find(W + "rPr")
            found = None if properties is None else properties.find(W + name)
            if found is not None:
                break
            at = value(self._styles[at], "basedOn")
        for one in passed:
            self._told[one, name] = found
        return found

    def shaded(self, element: Any) -> bool:
        """Whether a paragraph, cell, row or table has a ground of its own; looked up once."""
        return self._ground(element)[0]

    def shade(self, element: Any) -> Any | None:
        """Its shading; None where it has none, or a design of tables tells it for each cell."""
        return self._ground(element)[1]

    def _ground(self, element: Any) -> tuple[bool, Any | None]:
        if element not in self._shades:
            properties = element.find(W + GROUNDS[element.tag])
            shade = None if properties is None else properties.find(W + "shd")
            if shade is None and element.tag == W + "p":
                shade = self._shade_of_style(value(properties, "pStyle"))
            by_design = shade is None and self._paints(value(properties, "tblStyle"))
            self._shades[element] = paints(shade) or by_design, shade
        return self._shades[element]

    def _shade_of_style(self, style_id: str | None) -> Any | None:
        for style in self._line(style_id):
            shade = style.find(f"{W}pPr/{W}shd")
            if shade is not None:
                return shade
        return None

    def _line(self, style_id: str | None) -> Iterator[Any]:
        """A style and those that it is based on."""
        seen: set[str] = set()
        while style_id and style_id in self._styles and style_id not in seen:
            seen.add(style_id)
            yield self._styles[style_id]
            style_id = value(self._styles[style_id], "basedOn")

    def _paints(self, style_id: str | None) -> bool:
        """Whether a design of tables has grounds of its own; one that is not there may."""
        if not style_id or style_id not in self._styles:
            return bool(style_id)
        return any(any(map(paints, style.iter(W + "shd"))) for style in self._line(style_id))

    def is_quote(self, style_id: str | None) -> bool:
        """Whether a paragraph in this style is a quotation."""
        return any(names_quotation(value(style, "name") or "") for style in self._line(style_id))

    def is_contents(self, style_id: str | None) -> bool:
        """A line of a table of contents: Word keeps this style's name in every language."""
        style = self._styles.get(style_id)
        return style is not None and bool(
            re.fullmatch(r"toc (?:\d+|heading)", value(style, "name") or "", re.I)
        )


def value(parent: Any | None, name: str) -> str | None:
    """The attribute `w:val` of a child, None if there is none."""
    child = None if parent is None else parent.find(W + name)
    return None if child is None else child.get(W + "val")


def paints(shade: Any | None) -> bool:
    """Whether a shading has a colour: `auto` without a pattern is that of what lies below."""
    if shade is None:
        return False
    plain = (shade.get(W + "val") or "clear") in {"clear", "nil"}
    return (
        not plain or bool(shade.get(W + "themeFill")) or shade.get(W + "fill") not in {None, "auto"}
    )


def is_on(toggle: Any | None) -> bool:
    return toggle is not None and (toggle.get(W + "val") or "1") not in {"0", "false", "off"}
