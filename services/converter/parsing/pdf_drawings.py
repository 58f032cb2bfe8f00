"""What is drawn on a page besides text: thin lines, and where figures stand."""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

import pypdfium2 as pdfium
from pypdfium2 import raw

from services.converter.parsing.pdf_glyphs import Box, Shown

_MOST_OBJECTS = 6000
_MOST_SEGMENTS = 400
_MOST_RULES = 3000
_THIN = 3.0
_STRAIGHT = 0.7
_LEAST_LENGTH = 4.0
_TICK_BOX = 18.0
_NEAR = 8.0
_LEAST_SIDE = 40.0
_LEAST_STROKES = 12
_MOST_STROKES = 40
_MOST_SHARE = 0.6

_Point = tuple[float, float]


@dataclass
class Drawings:
    """Thin lines, level or upright, and boxes of figures, on the page as it is shown."""

    rules: list[Box] = field(default_factory=list)
    figures: list[Box] = field(default_factory=list)


def drawings(page: Any) -> Drawings:
    """A figure is a bitmap, or drawn with curves or slanted lines.

    What covers most of the page is a background and no figure.
    """
    shown = Shown(page)
    width, height = page.get_size()
    found = Drawings()
    images: list[tuple[Box, int]] = []
    drawn: list[tuple[Box, int]] = []
    kinds = [raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_SHADING]
    for item in islice(page.get_objects(filter=kinds, max_depth=6), _MOST_OBJECTS):
        try:
            matrix = _matrix(item)
            box = _bounds(item, matrix, shown)
        except pdfium.PdfiumError:
            continue
        backdrop = (box.right - box.left) * (box.bottom - box.top) > _MOST_SHARE * width * height
        if item.type != raw.FPDF_PAGEOBJ_PATH:
            images += [] if backdrop else [(box, _LEAST_STROKES)]
            continue
        rules, strokes = _path(item, matrix, shown)
        if len(found.rules) < _MOST_RULES:
            found.rules += rules
        if strokes and not backdrop:
            drawn.append((box, strokes))
    figures = [(box, strokes) for box, strokes in _clusters(drawn) if strokes >= _LEAST_STROKES]
    found.figures = [
        box
        for box, _ in _clusters([*images, *figures])
        if min(box.right - box.left, box.bottom - box.top) >= _LEAST_SIDE
        and (box.right - box.left) * (box.bottom - box.top) <= _MOST_SHARE * width * height
    ]
    return found


def _matrix(item: Any) -> Any:
    """From the coordinates in which the object's form is written to the page's."""
    matrix = pdfium.PdfMatrix()
    container = item.container
    while container is not None:
        matrix = matrix.multiply(container.get_matrix())
        container = container.container
    return matrix


def _bounds(item: Any, matrix: Any, shown: Shown) -> Box:
    left, bottom, right, top = item.get_bounds()
    corners = [matrix.on_point(x, y) for x in (left, right) for y in (bottom, top)]
    return _box(corners, shown)


def _box(points: Sequence[_Point], shown: Shown) -> Box:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return shown.box(min(xs), min(ys), max(xs), max(ys))


def _path(item: Any, matrix: Any, shown: Shown) -> tuple[list[Box], int]:
    """Rules that a path draws, and how many of its strokes are curves or slanted lines."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(item, fill, stroke)
    if not (fill.value or stroke.value):
        return [], 0
    rules: list[Box] = []
    strokes = 0
    whole = item.get_matrix().multiply(matrix)
    for outline, curves in _outlines(item, whole):
        strokes += curves
        box = _box(outline, shown)
        if _is_tick_box(box) and len(outline) > 3:
            continue
        if not stroke.value or _is_thin(box):
            # A line may be drawn as a long and narrow area.
            rules += [box] if not curves and _is_thin(box) else []
            continue
        for a, b in pairwise(outline):
            line = _box([a, b], shown)
            if min(line.right - line.left, line.bottom - line.top) > _STRAIGHT:
                strokes += 1
            elif max(line.right - line.left, line.bottom - line.top) >= _LEAST_LENGTH:
                rules.append(line)
    return rules, min(strokes, _MOST_STROKES)


def _is_tick_box(box: Box) -> bool:
    """As wide as it is high, nearly; a short rule may be a narrow box."""
    sides = sorted((box.right - box.left, box.bottom - box.top))
    return sides[0] > _THIN and sides[1] <= _TICK_BOX


def _is_thin(box: Box) -> bool:
    across, down = box.right - box.left, box.bottom - box.top
    return min(across, down) <= _THIN and max(across, down) >= max(
        _LEAST_LENGTH, 3 * min(across, down)
    )


def _outlines(item: Any, matrix: Any) -> Iterator[tuple[list[_Point], int]]:
    """Points of each part of a path, closed where it is, and how many curves are in it."""
    x, y = ctypes.c_float(), ctypes.c_float()
    points: list[_Point] = []
    curves = 0
    for index in range(min(raw.FPDFPath_CountSegments(item), _MOST_SEGMENTS)):
        segment = raw.FPDFPath_GetPathSegment(item, index)
        kind = raw.FPDFPathSegment_GetType(segment)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        if kind == raw.FPDF_SEGMENT_MOVETO and points:
            yield points, curves
            points, curves = [], 0
        curves += kind == raw.FPDF_SEGMENT_BEZIERTO
        points.append(matrix.on_point(x.value, y.value))
        if raw.FPDFPathSegment_GetClose(segment):
            points.append(points[0])
    if points:
        yield points, curves


def _clusters(boxes: Sequence[tuple[Box, int]]) -> list[tuple[Box, int]]:
    """Boxes that lie near one another as one, with the sum of their strokes."""
    clusters: list[tuple[Box, int]] = []
    for box, strokes in sorted(boxes, key=lambda b: (b[0].top, b[0].left)):
        joined, count = box, strokes
        while True:
            near = [c for c in clusters if _near(c[0], joined)]
            if not near:
                break
            clusters = [c for c in clusters if not _near(c[0], joined)]
            joined = _around([joined, *(b for b, _ in near)])
            count += sum(n for _, n in near)
        clusters.append((joined, count))
    return clusters


def _near(a: Box, b: Box) -> bool:
    return (
        a.left <= b.right + _NEAR
        and b.left <= a.right + _NEAR
        and a.top <= b.bottom + _NEAR
        and b.top <= a.bottom + _NEAR
    )


def _around(boxes: Sequence[Box]) -> Box:
    return Box(
        min(b.left for b in boxes), min(b.top for b in boxes),
        max(b.right for b in boxes), max(b.bottom for b in boxes),
    )  # fmt: skip
