"""Which declarations of CSS make an element's text unseen, and which make that doubtful."""

import re

from contracts.events import HiddenKind
from services.converter.parsing.css_values import (
    colour,
    flattened,
    functions,
    length,
    lengths,
    moved,
    share,
)
from services.converter.parsing.style import Style

TINY = 2.0
"""Pixels: letters of this size or less are specks."""
_FAINT, FAINT = 0.05, 0.1
"""Share of its size, or of its colour, from which on something can be seen."""
_FAR, _FAR_RIGHT = -500.0, 5000.0
"""Pixels to the left of or above the page, and to the right of or below it."""
_EDGES = ("left", "top", "text-indent", "margin-left", "margin-top")
_FAR_EDGES = ("right", "bottom", "margin-right", "margin-bottom")
_SIDES = ("height", "width", "max-height", "max-width")
_OVERFLOWS = ("overflow", "overflow-x", "overflow-y")
_SIZES = {
    "xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0,
    "xx-large": 32.0,
}  # fmt: skip
_SHORT_FONT = re.compile(r"(?:^|\s)((?:calc\([^()]*\)|[-+]?\d*\.?\d+)(?:[a-z]{1,4}|%)?)(?=\s|/)")
_ZERO_CIRCLE = re.compile(r"(?:circle|ellipse)\(\s*0(?:px|%|em)?(?:\s+0(?:px|%)?)?\s*(?:at\b|\))")
_INSET = re.compile(r"inset\(([^()]*)")
_HIDING = frozenset({
    "display", "visibility", "content-visibility", "opacity", "filter", "zoom", "scale",
    "transform",
    "translate", "clip", "clip-path", "line-height", "inset", "margin", *_EDGES, *_FAR_EDGES,
    *_SIDES,
})  # fmt: skip
_MOVING = frozenset({"inset", "margin", "transform", "translate", *_EDGES, *_FAR_EDGES})
_BLURRED, _SQUEEZED = 8.0, -0.4
_BLENDS = frozenset({"screen", "lighten", "color-dodge", "plus-lighter", "difference", "exclusion"})


def hidden_kind(style: Style, *, switched: bool = True) -> HiddenKind | None:
    """Why what has this style cannot be seen, whatever stands in it; None if it can.

    `switched`: also by a switch that a script may turn.
    """
    if _HIDING.isdisjoint(style):
        # Most rules are about something else.
        return None
    checks: tuple[tuple[bool, HiddenKind], ...] = (
        (switched and _is_switched_off(style), "invisible-style"),
        (_is_shrunk(style), "zero-size"),
        (_is_clipped(style), "invisible-style"),
        (_is_moved_away(style), "off-page"),
    )
    return next((kind for found, kind in checks if found), None)


def is_doubtful(style: Style) -> bool:
    """Whether people may not be able to read what has this style, which also has honest uses."""
    blur = [
        lengths(" ".join(a)) for name, a in functions(style.get("filter", "")) if name == "blur"
    ]
    spacing = length(style.get("letter-spacing", ""))
    behind = share(style.get("z-index", ""))
    return (
        any(radius and radius[0] >= _BLURRED for radius in blur)
        or (spacing is not None and spacing <= 16 * _SQUEEZED)
        or (behind is not None and behind < 0)
        or "transparent" in style.get("mask", "") + style.get("mask-image", "")
        or style.get("mix-blend-mode") in _BLENDS
    )


def opacity_of(style: Style) -> float:
    """How much of its colours an element has, from 0 to 1."""
    told = share(style.get("opacity", ""))
    return 1.0 if told is None else min(1.0, max(0.0, told))


def font_size(style: Style, outer: float) -> float:
    """The size of type in pixels, in an element with `outer`."""
    told = style.get("font-size", "")
    if not told and "font" in style:
        match = _SHORT_FONT.search(style["font"])
        told = match[1] if match else ""
    if told in _SIZES:
        return _SIZES[told]
    relative = re.search(r"\d(?:em|ex|ch)\b", told)
    size = length(told, whole=outer)
    if size is None:
        return outer
    return size * outer / 16 if relative else size


def is_lit(style: Style) -> bool:
    """Whether letters show in another way than by their own colour: a shadow, or a picture that
    is cut out in their shape."""
    shadow = style.get("text-shadow", "none")
    stroke = style.get("-webkit-text-stroke", "") + style.get("-webkit-text-stroke-width", "")
    clips = (style.get(name, "") for name in ("background-clip", "-webkit-background-clip"))
    shaded = shadow not in {"none", "inherit", "initial", ""}
    stroked = bool(stroke) and length(stroke) != 0
    return shaded or stroked or any("text" in clip for clip in clips)


def _is_switched_off(style: Style) -> bool:
    opacity = share(style.get("opacity", ""))
    dimmed = [
        share(a[0]) for name, a in functions(style.get("filter", "")) if name == "opacity" and a
    ]
    return (
        style.get("display") == "none"
        or style.get("content-visibility") == "hidden"
        or (opacity is not None and opacity < FAINT)
        or any(one is not None and one < FAINT for one in dimmed)
        or (_is_thin(style, ("max-height", "max-width")) and _cuts_off(style))
    )


def _is_shrunk(style: Style) -> bool:
    zoom, scale = (share(style.get(name, "")) for name in ("zoom", "scale"))
    scaled = any(one is not None and abs(one) < _FAINT for one in (zoom, scale))
    return scaled or flattened(style.get("transform", ""))


def _is_thin(style: Style, sides: tuple[str, ...]) -> bool:
    found = (length(style.get(side, "")) for side in sides)
    return any(side is not None and side < 2 for side in found)


def _cuts_off(style: Style) -> bool:
    told = (style.get(name, "") for name in _OVERFLOWS)
    return any(word in one for one in told for word in ("hidden", "clip"))


def halves(style: Style) -> Style:
    """Declarations that hide nothing alone, but together with those of another rule."""
    thin = {name: style[name] for name in _SIDES if _is_thin(style, (name,))}
    cut = {name: style[name] for name in _OVERFLOWS if name in style} if _cuts_off(style) else {}
    return thin | cut


def _is_clipped(style: Style) -> bool:
    flat = share(style.get("line-height", "")) == 0
    cut = (flat or _is_thin(style, ("height", "width"))) and _cuts_off(style)
    clip, path = style.get("clip", ""), style.get("clip-path", "")
    points = re.match(r"polygon\(([^()]*)\)", path)
    return (
        cut
        or re.match(r"rect\(\s*[01](px)?[\s,]", clip) is not None
        or _is_inset(path)
        or _ZERO_CIRCLE.match(path) is not None
        or (points is not None and len({p.strip() for p in points[1].split(",")}) == 1)
    )


def _is_inset(path: str) -> bool:
    """Whether so much is cut off from opposite sides that nothing is left."""
    match = _INSET.match(path)
    told = [] if match is None else match[1].partition("round")[0].split()[:4]
    sides = [(share(one) or 0.0) if one.endswith("%") else 0.0 for one in told]
    if not sides:
        return False
    top, right, bottom, left = (
        sides[0],
        sides[1] if len(sides) > 1 else sides[0],
        sides[2] if len(sides) > 2 else sides[0],
        sides[3] if len(sides) > 3 else sides[min(1, len(sides) - 1)],
    )
    return top + bottom >= 1 or left + right >= 1


def _is_moved_away(style: Style) -> bool:
    if _MOVING.isdisjoint(style):
        return False
    near = [length(style.get(name, "")) or 0.0 for name in _EDGES]
    near += lengths(style.get("inset", "")) + lengths(style.get("margin", ""))
    shifted = moved(style.get("transform", "")) or moved(f"translate({style.get('translate', '')})")
    far = [length(style.get(name, "")) or 0.0 for name in _FAR_EDGES]
    beyond = max([*near, shifted]) >= _FAR_RIGHT
    indent = share(style.get("text-indent", ""))
    replaced = "%" in style.get("text-indent", "") and indent is not None and abs(indent) >= 1
    return (
        min([*near, shifted]) <= _FAR
        or min(far) <= 2 * _FAR
        or beyond
        or (replaced and (indent or 0) < 0)
        or (replaced and _cuts_off(style))
    )


def painted(style: Style) -> str:
    """What is told of the background, empty for nothing."""
    names = ("background", "background-color")
    return " ".join(style[name] for name in names if name in style)


def covers(style: Style) -> bool:
    """Whether an element with this style paints over what lies under it."""
    told = colour(painted(style))
    return (told is not None and told.alpha > 0.9) or "url(" in painted(style)


def fills(style: Style) -> bool:
    """Whether an element that is placed freely is as large as what is around it, at least."""
    inset = style.get("inset", "").split()
    if inset and all(length(edge, 1000) == 0 for edge in inset):
        return True
    return all(
        all(length(style.get(edge, ""), 1000) == 0 for edge in edges)
        or re.match(r"(?:1\d\d)(?:%|vw|vh|dvh|dvw)", style.get(side, "")) is not None
        for side, edges in (("width", ("left", "right")), ("height", ("top", "bottom")))
    )
