"""What of a Word document nobody sees: runs, boxes, rows and paragraphs."""

import re
from typing import Any

from contracts.artifacts import HiddenText
from contracts.events import HiddenKind
from services.converter.parsing.word_base import (
    GROUNDS,
    Styles,
    W,
    is_on,
    paints,
    text_of,
    value,
)

_WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_VML = "{urn:schemas-microsoft-com:vml}"
_WPS = "{http://schemas.microsoft.com/office/word/2010/wordprocessingShape}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_W14 = "{http://schemas.microsoft.com/office/word/2010/wordml}"
_TINY_HALF_POINTS = 4
_NARROWEST = 5
"""Per cent of their width to which letters are squeezed."""
_RAISED_HALF_POINTS, _TIGHT_TWIPS = 800, -160
_SAME, _PALE = 24, 232
_TRANSPARENT = 95_000
_FAR_LEFT_POINTS, _FAR_RIGHT_POINTS = -200, 1500
_EMU_PER_POINT, _TWIPS = 12700, 20
_LEAST_TWIPS = 60
"""Height of a row, or of a line, that can show letters."""
_WHITE = (255, 255, 255)
_HIGHLIGHTS = {
    "black": (0, 0, 0), "blue": (0, 0, 255), "cyan": (0, 255, 255), "green": (0, 255, 0),
    "magenta": (255, 0, 255), "red": (255, 0, 0), "yellow": (255, 255, 0), "white": _WHITE,
    "darkBlue": (0, 0, 128), "darkCyan": (0, 128, 128), "darkGreen": (0, 128, 0),
    "darkMagenta": (128, 0, 128), "darkRed": (128, 0, 0), "darkYellow": (128, 128, 0),
    "darkGray": (128, 128, 128), "lightGray": (192, 192, 192),
}  # fmt: skip
_PAPER = frozenset({"background1", "bg1", "light1", "lt1"})

Rgb = tuple[int, int, int]


def run_text(run: Any) -> str:
    """The text of a run with the blanks at its edges."""
    whole = "".join(node.text or "" for node in run.iter(W + "t", W + "delText"))
    return whole if whole.strip() else text_of(run)


class UnseenRuns:
    """Why runs are not seen, by their own properties and those of their styles."""

    def __init__(self, styles: Styles) -> None:
        self._styles = styles

    def of(self, run: Any, style_id: str | None) -> HiddenKind | None:
        """None for a run that can be read; `style_id` is the style of its paragraph."""
        own = run.find(W + "rPr")
        ids = value(own, "rStyle"), style_id
        told = self._styles.told
        if any(is_on(told(own, name, *ids)) for name in ("vanish", "webHidden", "specVanish")):
            return "invisible-style"
        size, width, spacing, raised = (
            _number(told(own, name, *ids)) for name in ("sz", "w", "spacing", "position")
        )
        tiny = size is not None and size <= _TINY_HALF_POINTS
        narrow = width is not None and 0 < width <= _NARROWEST
        if tiny or narrow or (spacing is not None and spacing <= _TIGHT_TWIPS):
            return "zero-size"
        if raised is not None and abs(raised) >= _RAISED_HALF_POINTS:
            return "off-page"
        if _is_unfilled(own):
            return "invisible-style"
        return self._unreadable(run, own, ids)

    def doubt(self, run: Any, style_id: str | None) -> HiddenKind | None:
        """Why a run that is shown may not be seen: it is pale, and nobody knows on what."""
        own = run.find(W + "rPr")
        ids = value(own, "rStyle"), style_id
        front = _front(self._styles.told(own, "color", *ids))
        if front is None or min(front) < _PALE:
            return None
        if any(paints(self._styles.told(own, name, *ids)) for name in ("highlight", "shd")):
            return None
        return "background-colour" if self._ground(run)[0] is None else None

    def _unreadable(
        self, run: Any, own: Any | None, ids: tuple[str | None, ...]
    ) -> HiddenKind | None:
        color = self._styles.told(own, "color", *ids)
        mark = self._styles.told(own, "highlight", *ids)
        shade = self._styles.told(own, "shd", *ids)
        behind = _HIGHLIGHTS.get(mark.get(W + "val") or "") if mark is not None else None
        if behind is None:
            behind = _shade(shade)
        painted = mark is not None or paints(shade)
        front = _front(color)
        if front is None:
            # Letters of no colour are black; on a dark ground programs make them white, but under
            # a black marker they do not.
            return "background-colour" if behind == (0, 0, 0) and mark is not None else None
        if not painted:
            behind, painted = self._ground(run)
        if not painted:
            return "background-colour" if min(front) >= _PALE else None
        same = behind is not None and max(map(_apart, zip(front, behind, strict=True))) < _SAME
        return "background-colour" if same else None

    def _ground(self, run: Any) -> tuple[Rgb | None, bool]:
        """The colour behind a run, None if it is not known; and whether there is one at all."""
        for outer in run.iterancestors():
            if outer.tag == W + "txbxContent":
                return _filling(outer), True
            if outer.tag in GROUNDS and self._styles.shaded(outer):
                return _shade(self._styles.shade(outer)), True
        page = outer.find(W + "background")
        return (None if page is None else _rgb(page.get(W + "color"))), page is not None


def _shade(shade: Any | None) -> Rgb | None:
    """The colour of a shading, None if it is not known."""
    if shade is None:
        return None
    return _rgb(shade.get(W + ("color" if shade.get(W + "val") == "solid" else "fill")))


def _filling(content: Any) -> Rgb | None:
    """The colour of a text box; not known if it lets shine through what lies below."""
    shape = next(content.iterancestors(_WPS + "wsp"), None)
    if shape is not None:
        properties = shape.find(_WPS + "spPr")
        told = None if properties is None else properties.find(f"{_A}solidFill/{_A}srgbClr")
        return None if told is None or len(told) else _rgb(told.get("val"))
    shape = next(content.iterancestors(_VML + "shape", _VML + "rect", _VML + "roundrect"), None)
    if shape is None or shape.find(_VML + "fill") is not None:
        return None
    if (shape.get("filled") or "t") not in {"t", "true"}:
        return None
    told = (shape.get("fillcolor") or "white").partition(" ")[0]
    return _WHITE if told == "white" else _rgb(told.removeprefix("#"))


def _apart(pair: tuple[int, int]) -> int:
    return abs(pair[0] - pair[1])


def _front(color: Any | None) -> Rgb | None:
    if color is None:
        return None
    told = _rgb(color.get(W + "val"))
    toned = any(color.get(W + name) for name in ("themeShade", "themeTint"))
    if told is None and not toned and (color.get(W + "themeColor") or "") in _PAPER:
        return _WHITE
    return told


def _rgb(told: str | None) -> Rgb | None:
    if not told or not re.fullmatch(r"[0-9A-Fa-f]{6}", told):
        return None
    return int(told[:2], 16), int(told[2:4], 16), int(told[4:], 16)


def _is_unfilled(properties: Any | None) -> bool:
    """Letters without a filling, or with one that lets all through."""
    fill = None if properties is None else properties.find(_W14 + "textFill")
    if properties is None or fill is None:
        return False
    outline = properties.find(_W14 + "textOutline")
    drawn = outline is not None and outline.find(_W14 + "noFill") is None and len(outline) > 0
    if fill.find(_W14 + "noFill") is not None:
        return not drawn
    through = (alpha.get(_W14 + "val") or "" for alpha in fill.iter(_W14 + "alpha"))
    return any(told.isdigit() and int(told) >= _TRANSPARENT for told in through)


def _number(element: Any | None) -> float | None:
    told = "" if element is None else element.get(W + "val") or ""
    return float(told) if re.fullmatch(r"-?\d{1,9}(?:\.\d+)?", told) else None


# --- boxes, rows and paragraphs -------------------------------------------------------------------


def take_blocks(root: Any, hidden: list[HiddenText]) -> None:
    """Take out text boxes that lie off every page or show nothing, rows and paragraphs too; in
    place. Word writes each box twice, for old and new readers."""
    for anchor in list(root.iter(_WP + "anchor", _WP + "inline")):
        kind = _kind_of_drawing(anchor)
        if kind:
            _take_shape(anchor, kind, hidden)
    for shape in list(root.iter(_VML + "shape", _VML + "rect", _VML + "roundrect")):
        kind = _kind_of_vml(shape.get("style") or "")
        if kind:
            _take_shape(shape, kind, hidden)
    for row in list(root.iter(W + "tr")):
        kind = _kind_of_row(row)
        if kind and row.getparent() is not None:
            _take(row, kind, hidden)
    for paragraph in list(root.iter(W + "p")):
        kind = _kind_of_paragraph(paragraph)
        if kind:
            for run in list(paragraph.iter(W + "r")):
                _take(run, kind, hidden)


def _kind_of_drawing(anchor: Any) -> HiddenKind | None:
    offsets = [int(o.text or 0) / _EMU_PER_POINT for o in anchor.iter(_WP + "posOffset")]
    if any(map(_is_far, offsets)):
        return "off-page"
    names = anchor.find(_WP + "docPr")
    if names is not None and names.get("hidden") in {"1", "true"}:
        return "invisible-style"
    size = anchor.find(_WP + "extent")
    sides = [] if size is None else [size.get(side) or "" for side in ("cx", "cy")]
    flat = any(side.isdigit() and int(side) < _EMU_PER_POINT for side in sides)
    return "zero-size" if flat else None


def _kind_of_vml(style: str) -> HiddenKind | None:
    told = re.findall(
        r"(?:^|;)\s*(left|top|margin-left|margin-top|width|height)\s*:\s*(-?[\d.]+)(pt|in|cm|mm|px)?",
        style,
    )
    scale = {"in": 72.0, "cm": 28.35, "mm": 2.835, "px": 0.75}
    sides = [(name, float(n) * scale.get(unit, 1.0)) for name, n, unit in told if n.strip(".-")]
    if any(_is_far(points) for name, points in sides if name not in {"width", "height"}):
        return "off-page"
    squeezed = style.replace(" ", "")
    if "visibility:hidden" in squeezed or "display:none" in squeezed:
        return "off-page"
    flat = any(points < 1 for name, points in sides if name in {"width", "height"})
    return "zero-size" if flat and "mso-fit-shape-to-text" not in squeezed else None


def _kind_of_row(row: Any) -> HiddenKind | None:
    properties = row.find(W + "trPr")
    if properties is None:
        return None
    if is_on(properties.find(W + "hidden")):
        return "invisible-style"
    height = properties.find(W + "trHeight")
    if height is None or height.get(W + "hRule") != "exact":
        return None
    points = _number(height)
    return "zero-size" if points is not None and points <= _LEAST_TWIPS else None


def _kind_of_paragraph(paragraph: Any) -> HiddenKind | None:
    properties = paragraph.find(W + "pPr")
    if properties is None:
        return None
    frame, indent = properties.find(W + "framePr"), properties.find(W + "ind")
    places = [] if frame is None else [frame.get(W + "x"), frame.get(W + "y")]
    places += [] if indent is None else [indent.get(W + "left"), indent.get(W + "start")]
    numbers = [int(p) / _TWIPS for p in places if p and re.fullmatch(r"-?\d{1,9}", p)]
    if any(map(_is_far, numbers)):
        return "off-page"
    spacing = properties.find(W + "spacing")
    if spacing is None or spacing.get(W + "lineRule") != "exact":
        return None
    line = spacing.get(W + "line") or ""
    return "zero-size" if line.isdigit() and int(line) <= _LEAST_TWIPS else None


def _is_far(points: float) -> bool:
    return not _FAR_LEFT_POINTS < points < _FAR_RIGHT_POINTS


def _take_shape(shape: Any, kind: HiddenKind, hidden: list[HiddenText]) -> None:
    wrapper = next(shape.iterancestors(_MC + "AlternateContent"), shape)
    _take(shape, kind, hidden)
    parent = wrapper.getparent()
    if parent is not None:
        parent.remove(wrapper)


def _take(element: Any, kind: HiddenKind, hidden: list[HiddenText]) -> None:
    text = text_of(element)
    if text:
        hidden.append(HiddenText(kind=kind, text=text))
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)
