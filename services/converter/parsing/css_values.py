"""Values of CSS as far as they tell whether text can be seen: lengths, colours, transforms."""

import math
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

_NUMBER = re.compile(r"(?:calc\(\s*)?([-+]?\d*\.?\d+(?:e[-+]?\d+)?)\s*([a-z]{1,4}|%|)")
_PIXELS = {
    "": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0,
    "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.945,
    "vw": 12.8, "vh": 8.0, "vmin": 8.0, "vmax": 12.8, "dvw": 12.8, "dvh": 8.0, "svh": 8.0,
}  # fmt: skip
"""Of a usual window, 1280 by 800, with type of 16."""
_FUNCTION = re.compile(r"([a-z0-9-]+)\(([^()]*)\)")
_HEX = re.compile(r"#([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})\b")
_PLAIN = re.compile(r"(rgb|hsl|hwb)a?\(([^()]*)\)")
_OTHER = re.compile(r"(ok)?(?:lab|lch)\(([^()]*)\)|color\(\s*(?:srgb|display-p3)\s([^()]*)\)")
_PART = re.compile(r"[-+]?\d*\.?\d+%?")
_MOST_FUNCTIONS = 20
_REACH = 3.0
"""Times its own size that an element is moved, to be far from its place."""
_SUM = re.compile(r"calc\(([^()]{1,80})\)")
_CHOICE = re.compile(r"(min|max|clamp)\(([^()]{1,120})\)")
_OF_SYSTEM = {"canvas": (255, 255, 255), "field": (255, 255, 255), "canvastext": (0, 0, 0)}


class Colour(NamedTuple):
    """Red, green and blue from 0 to 255; `alpha` from 0, nothing, to 1."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0

    def over(self, other: "Colour") -> "Colour":
        """What is seen where this is painted over an opaque one."""
        share = self.alpha
        mixed = (a * share + b * (1 - share) for a, b in zip(self[:3], other[:3], strict=True))
        return Colour(*mixed)

    def distance(self, other: "Colour") -> float:
        """The largest difference of a part."""
        return max(abs(a - b) for a, b in zip(self[:3], other[:3], strict=True))


def share(value: str) -> float | None:
    """`0.5` or `50%`."""
    match = _NUMBER.match(value.strip()) if value else None
    return None if match is None else float(match[1]) / (100 if match[2] == "%" else 1)


def length(value: str, whole: float | None = None) -> float | None:
    """A length in pixels; `whole` is what a percentage is of. None where it tells none."""
    if "(" in value:
        return _reckoned(value.strip(), whole)
    match = _NUMBER.match(value.strip()) if value else None
    if match is None:
        return None
    if match[2] == "%":
        return None if whole is None else float(match[1]) * whole / 100
    unit = _PIXELS.get(match[2])
    return None if unit is None else float(match[1]) * unit


def _reckoned(value: str, whole: float | None) -> float | None:
    """`calc(100% - 9999px)`, `min(1px, 2vw)`; without brackets within them."""
    choice = _CHOICE.match(value)
    if choice is not None:
        told = [_sum(part, whole) for part in choice[2].split(",")]
        known = [one for one in told if one is not None]
        if not known or len(known) < len(told):
            return None
        if choice[1] == "clamp":
            return max(known[0], min(known[1:], default=known[0]))
        return min(known) if choice[1] == "min" else max(known)
    match = _SUM.match(value)
    return None if match is None else _sum(match[1], whole)


def _sum(told: str, whole: float | None) -> float | None:
    """Signs of addition have blanks around them, in CSS."""
    found = 0.0
    for term in re.split(r"\s(?=[-+]\s)", told.strip()):
        sign = -1.0 if term.startswith("- ") else 1.0
        factors = re.split(r"\s*([*/])\s*", term.removeprefix("- ").removeprefix("+ ").strip())
        product = length(factors[0], whole)
        for how, factor in zip(factors[1::2], factors[2::2], strict=True):
            by = length(factor, whole)
            if product is None or by is None or (how == "/" and by == 0):
                return None
            product = product * by if how == "*" else product / by
        if product is None:
            return None
        found += sign * product
    return found


def lengths(value: str, whole: float | None = None) -> list[float]:
    """All lengths of a value like `-9999px auto 0 -100vw`."""
    found = (length(part, whole) for part in value.split()[:8])
    return [one for one in found if one is not None]


def functions(value: str) -> Iterator[tuple[str, list[str]]]:
    """`scale(0) translate(1px, 2px)` by name, with their arguments."""
    for match in list(_FUNCTION.finditer(value))[:_MOST_FUNCTIONS]:
        yield match[1], [part for part in re.split(r"[\s,]+", match[2].strip()) if part]


def colour(value: str) -> Colour | None:
    """The first colour that a value tells; None if it tells none that is known."""
    value = value.strip().lower()
    match = _HEX.search(value)
    if match:
        digits = match[1] if len(match[1]) > 4 else "".join(d * 2 for d in match[1])
        parts = [int(digits[at : at + 2], 16) for at in range(0, len(digits), 2)]
        alpha = parts[3] / 255 if len(parts) > 3 else 1.0
        return Colour(parts[0], parts[1], parts[2], alpha)
    if "(" in value and (_PLAIN.search(value) or _OTHER.search(value)):
        return _of_function(value)
    for word in re.findall(r"[a-z]+", value):
        if word == "transparent":
            return Colour(0, 0, 0, 0)
        if word in _OF_SYSTEM:
            return Colour(*_OF_SYSTEM[word])
        if word in _names():
            return _names()[word]
    return None


def only_colour(value: str) -> Colour | None:
    """The colour of a gradient from one to the same; None if it has several, or a picture."""
    if "url(" in value or value.count("(") > 4:
        return None
    inner = re.split(r",(?![^()]*\))", value.partition("gradient(")[2].rpartition(")")[0])
    told = [one for one in map(colour, inner[:20]) if one is not None]
    return told[0] if told and all(one == told[0] for one in told) else None


def _of_function(value: str) -> Colour | None:
    match = _PLAIN.search(value)
    if match:
        return _of_parts(match[1], _PART.findall(match[2]))
    match = _OTHER.search(value)
    if match is None:
        return None
    of_shares = match[3] is not None
    return _of_shares(match[3]) if of_shares else _of_lightness(match[2], ok=bool(match[1]))


def _of_parts(kind: str, parts: list[str]) -> Colour | None:
    if len(parts) < 3:
        return None
    alpha = _alpha_of(parts)
    if kind == "rgb":
        whole = [float(p[:-1]) * 2.55 if p.endswith("%") else float(p) for p in parts[:3]]
        red, green, blue = (min(255.0, max(0.0, one)) for one in whole)
        return Colour(red, green, blue, alpha)
    import colorsys

    hue, saturation, light = (float(part.rstrip("%")) for part in parts[:3])
    if kind == "hwb":
        white, black = (min(100.0, max(0.0, one)) / 100 for one in (saturation, light))
        scale = max(1.0, white + black)
        pure = colorsys.hls_to_rgb(hue % 360 / 360, 0.5, 1)
        room = 1 - (white + black) / scale
        red, green, blue = (255 * (one * room + white / scale) for one in pure)
        return Colour(red, green, blue, alpha)
    mixed = colorsys.hls_to_rgb(hue % 360 / 360, min(light, 100) / 100, min(saturation, 100) / 100)
    red, green, blue = (255 * one for one in mixed)
    return Colour(red, green, blue, alpha)


def _alpha_of(parts: list[str]) -> float:
    return min(1.0, max(0.0, share(parts[3]) or 0.0)) if len(parts) > 3 else 1.0


def _of_shares(told: str) -> Colour | None:
    """`color(srgb 1 0.5 0 / 50%)`."""
    parts = _PART.findall(told)
    if len(parts) < 3:
        return None
    red, green, blue = (255 * min(1.0, max(0.0, share(part) or 0.0)) for part in parts[:3])
    return Colour(red, green, blue, _alpha_of(parts))


def _of_lightness(told: str, *, ok: bool) -> Colour | None:
    """White and black of `lab()` and its kin, whose numbers go to 100, those of `ok` to 1; other
    colours are not known."""
    parts = _PART.findall(told)
    light = share(parts[0]) if len(parts) > 2 else None
    if light is None:
        return None
    light /= 1 if ok or "%" in parts[0] else 100
    if _alpha_of(parts) < 0.05:
        return Colour(0, 0, 0, 0)
    if 0.03 < light < 0.97:
        return None
    level = 255.0 if light >= 0.97 else 0.0
    return Colour(level, level, level, _alpha_of(parts))


@cache
def _names() -> dict[str, Colour]:
    from PIL import ImageColor

    return {name: Colour(*ImageColor.getrgb(name)[:3]) for name in ImageColor.colormap}


def moved(value: str, whole: float | None = None) -> float:
    """How far `translate…` of a transform moves at most, in pixels; negative to the left or up.

    Shares of the element's own size count from some times it on: to centre it takes half, to hide
    a menu beside the window one.
    """
    parts = []
    for name, arguments in functions(value):
        if name.startswith("translate"):
            parts += lengths(" ".join(arguments), whole)
            own = [share(one) for one in arguments if one.endswith("%")]
            parts += [1280 * one for one in own if one is not None and abs(one) >= _REACH]
    return max(parts, key=abs, default=0.0)


def flattened(value: str) -> bool:
    """Whether a transform leaves next to nothing of an element: scaled to nothing, or seen from
    its edge."""
    for name, arguments in functions(value):
        numbers = [share(one) for one in arguments]
        known = [one for one in numbers if one is not None]
        if name.startswith("scale") and known and min(map(abs, known)) < 0.05:
            return True
        if name == "matrix" and len(known) == 6:
            a, b, c, d = known[:4]
            if abs(a * d - b * c) < 0.0025:
                return True
        if name == "rotate3d" and len(arguments) == 4 and _is_edge(arguments[3]):
            x, y, z = (share(one) or 0.0 for one in arguments[:3])
            if z == 0 and (x == 0) is not (y == 0):
                return True
        if name in {"rotatex", "rotatey"} and arguments and _is_edge(arguments[0]):
            return True
    return False


def _is_edge(angle: str) -> bool:
    match = re.match(r"([-+]?\d*\.?\d+)(deg|turn|rad|grad)", angle)
    if match is None:
        return False
    degrees = float(match[1]) * {"deg": 1, "turn": 360, "rad": 180 / math.pi, "grad": 0.9}[match[2]]
    return abs(degrees % 180 - 90) < 1
