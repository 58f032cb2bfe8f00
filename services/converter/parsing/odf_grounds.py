"""The colour behind a text of an OpenDocument file: of its cell, shape, section, slide or page."""

import re
from functools import cached_property
from typing import Any

from services.converter.parsing.hidden import alike_in_hex
from services.converter.parsing.odf import (
    BOXES,
    DRAW,
    FO,
    OFFICE,
    PRESENTATION,
    STYLE,
    SVG,
    TABLE,
    TEXT,
    Styles,
    points,
)

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
WHITE = "#ffffff"
_MOST_SHAPES = 200
_SOURCES = {
    TABLE + "table-cell": ("table-cell", "table-cell-properties", TABLE),
    TABLE + "table-row": ("table-row", "table-row-properties", TABLE),
    TABLE + "table": ("table", "table-properties", TABLE),
    TEXT + "section": ("section", "section-properties", TEXT),
}
_BACKGROUND = FO + "background-color"


def is_same(front: str, behind: str | None) -> bool:
    """Whether letters cannot be told from what is behind them; None: that is not known."""
    if behind is None or not (_COLOUR.fullmatch(front) and _COLOUR.fullmatch(behind)):
        return False
    return alike_in_hex(front[1:], behind[1:])


class Grounds:
    """Colours by place."""

    def __init__(self, styles: Styles, design: Any | None) -> None:
        self._styles, self._design = styles, design
        self._last: tuple[Any, str | None] = (None, None)

    def of(self, element: Any) -> str | None:
        """`#rrggbb`; None where it is not known: a picture, a gradient, another shape below."""
        if self._last[0] is not element:
            self._last = (element, self._found(element))
        return self._last[1]

    def _found(self, element: Any) -> str | None:
        for outer in (element, *element.iterancestors()):
            if outer.tag in _SOURCES:
                told = self._told(*_SOURCES[outer.tag], outer)
            elif outer.tag in BOXES:
                told = self._of_shape(outer)
            elif outer.tag == DRAW + "page":
                return self._of_slide(outer, element)
            elif outer.tag == OFFICE + "text":
                return self._paper
            else:
                continue
            if told != "":
                return told
        return None

    def front(self, element: Any) -> str | None:
        """The colour of letters that the shape or cell around a paragraph tells; None for none."""
        for outer in element.iterancestors(TABLE + "table-cell", *BOXES):
            names = [("table-cell", outer.get(TABLE + "style-name") or ""), *_styles_of(outer)]
            for family, name in names:
                front, _ = self._styles.colours(family, name)
                if front is not None:
                    return front
        return None

    def _told(self, family: str, properties: str, space: str, element: Any) -> str | None:
        """Empty if the colour of what is around it shows."""
        name = element.get(space + "style-name")
        if self._styles.pictured(family, name):
            return None
        told = self._styles.get(family, name, properties, _BACKGROUND) or ""
        if _COLOUR.fullmatch(told):
            return told
        if self._styles.get(family, name, "graphic-properties", DRAW + "fill"):
            return self._fill(family, name, "graphic-properties")
        # A design of tables has colours of its own, which are not in the styles.
        return None if element.get(TABLE + "template-name") else ""

    def _fill(self, family: str, name: str | None, properties: str) -> str | None:
        fill = self._styles.get(family, name, properties, DRAW + "fill")
        if fill == "solid":
            return self._styles.get(family, name, properties, DRAW + "fill-color")
        return "" if fill == "none" else None

    def _of_shape(self, shape: Any) -> str | None:
        for family, name in _styles_of(shape):
            told = self._styles.get(family, name, "graphic-properties", _BACKGROUND) or ""
            if _COLOUR.fullmatch(told):
                return told
            if self._styles.get(family, name, "graphic-properties", DRAW + "fill"):
                return self._fill(family, name, "graphic-properties")
        # What is told nowhere is filled, for a shape, and not for a frame.
        return "" if shape.tag in {DRAW + "frame", DRAW + "g"} else None

    def _of_slide(self, page: Any, element: Any) -> str | None:
        master = self._masters.get(page.get(DRAW + "master-page-name") or "")
        shapes = [one for one in page if one.tag in BOXES]
        drawn = [] if master is None else [one for one in master if one.tag in BOXES]
        # The other shapes may lie below: where they do, nothing is known.
        around = {id(outer) for outer in (element, *element.iterancestors())}
        own = next((one for one in shapes if id(one) in around), None)
        others = [one for one in [*shapes, *drawn] if one is not own]
        if len(others) > _MOST_SHAPES or any(self._lies_below(one, own) for one in others):
            return None
        for holder in filter(lambda one: one is not None, (page, master)):
            name = holder.get(DRAW + "style-name")
            fill = self._styles.get("drawing-page", name, "drawing-page-properties", DRAW + "fill")
            if fill and fill != "none":
                return self._fill("drawing-page", name, "drawing-page-properties")
        return WHITE

    def _lies_below(self, shape: Any, own: Any | None) -> bool:
        if own is None:
            return True
        if shape.get(PRESENTATION + "class") or self._is_bare(shape):
            return False
        one, other = _box(shape), _box(own)
        if one is None or other is None:
            return True
        across = one[0] < other[2] and other[0] < one[2]
        return across and one[1] < other[3] and other[1] < one[3]

    def _is_bare(self, shape: Any) -> bool:
        """A frame of text alone, through which the ground shows."""
        held = {inner.tag for inner in shape} - {SVG + "title", SVG + "desc"}
        return held <= {DRAW + "text-box"} and self._of_shape(shape) == ""

    @cached_property
    def _masters(self) -> dict[str, Any]:
        found = () if self._design is None else self._design.iter(STYLE + "master-page")
        return {master.get(STYLE + "name") or "": master for master in found}

    @cached_property
    def _paper(self) -> str | None:
        """Of the pages of a text; not known where they differ."""
        if self._design is None:
            return WHITE
        layouts = list(self._design.iter(STYLE + "page-layout-properties"))
        told = {layout.get(_BACKGROUND) or "transparent" for layout in layouts}
        fills = {layout.get(DRAW + "fill") or "none" for layout in layouts}
        pictured = any(one.find(STYLE + "background-image") is not None for one in layouts)
        colours = {one if _COLOUR.fullmatch(one) else WHITE for one in told}
        if len(colours) > 1 or pictured or not fills <= {"none", "solid"}:
            return None
        return colours.pop() if colours else WHITE


def _styles_of(shape: Any) -> list[tuple[str, str]]:
    names = (
        ("graphic", shape.get(DRAW + "style-name")),
        ("presentation", shape.get(PRESENTATION + "style-name")),
    )
    return [(family, name) for family, name in names if name]


def _box(shape: Any) -> tuple[float, float, float, float] | None:
    sides = [points(shape.get(SVG + side)) for side in ("x", "y", "width", "height")]
    left, top, width, height = (-1.0 if side is None else side for side in sides)
    return None if None in sides else (left, top, left + width, top + height)
