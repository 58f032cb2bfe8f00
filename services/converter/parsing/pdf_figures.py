"""Where figures stand on a page: bitmaps, and drawings with curves or slanted lines."""

import ctypes
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pypdfium2 as pdfium
from pypdfium2 import raw

from services.converter.parsing.pdf_glyphs import Box, Shown

_MOST_OBJECTS = 6000
_MOST_SEGMENTS = 40
_NEAR = 8.0
_LEAST_SIDE = 40.0
_LEAST_DRAWN = 4
_MOST_SHARE = 0.6


def figures(page: Any) -> list[Box]:
    """Boxes of the figures; what covers most of the page is a background and none."""
    shown = Shown(page)
    width, height = page.get_size()
    images: list[Box] = []
    drawn: list[Box] = []
    kinds = [raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_SHADING]
    for item in islice(page.get_objects(filter=kinds, max_depth=6), _MOST_OBJECTS):
        try:
            box = shown.box(*item.get_bounds())
        except pdfium.PdfiumError:
            continue
        if (box.right - box.left) * (box.bottom - box.top) > _MOST_SHARE * width * height:
            continue
        if item.type != raw.FPDF_PAGEOBJ_PATH:
            images.append(box)
        elif _is_drawing(item):
            drawn.append(box)
    found = [box for box, count in _clusters(drawn) if count >= _LEAST_DRAWN]
    merged = list(_clusters([*images, *found]))
    return [
        box
        for box, _ in merged
        if min(box.right - box.left, box.bottom - box.top) >= _LEAST_SIDE
        and (box.right - box.left) * (box.bottom - box.top) <= _MOST_SHARE * width * height
    ]


def _is_drawing(item: Any) -> bool:
    """Whether a path has a curve or a slanted line; rules and boxes have none."""
    count = raw.FPDFPath_CountSegments(item)
    x, y = ctypes.c_float(), ctypes.c_float()
    before: tuple[float, float] | None = None
    for index in range(min(count, _MOST_SEGMENTS)):
        segment = raw.FPDFPath_GetPathSegment(item, index)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_BEZIERTO:
            return True
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = x.value, y.value
        drawn = before is not None and kind == raw.FPDF_SEGMENT_LINETO
        if drawn and before and min(abs(point[0] - before[0]), abs(point[1] - before[1])) > 1.5:
            return True
        before = point
    return False


def _clusters(boxes: Sequence[Box]) -> Iterator[tuple[Box, int]]:
    """Boxes that lie near one another as one, with how many they are."""
    clusters: list[tuple[Box, int]] = []
    for box in sorted(boxes, key=lambda b: (b.top, b.left)):
        joined, count = box, 1
        while True:
            near = [c for c in clusters if _near(c[0], joined)]
            if not near:
                break
            clusters = [c for c in clusters if not _near(c[0], joined)]
            joined = _around([joined, *(b for b, _ in near)])
            count += sum(n for _, n in near)
        clusters.append((joined, count))
    yield from clusters


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
