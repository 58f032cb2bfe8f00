"""A picture of a page set straight: quarter turns, skew, light on dark, drawn lines taken out."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from PIL import Image

from services.converter.parsing.pdf_glyphs import Box
from services.converter.parsing.pdf_shapes import Rule

_LEAST_SKEW, _MOST_SKEW = 0.15, 7.0
_PROFILE_SIDE = 900
_LIGHT_SIDE, _AROUND = 400, 15
_EVEN, _DARKEST = 0.9, 60
_LEAST_RULE = 0.07
_SOLID = 0.88
_RUN = 7
_THICKEST_RULE = 0.004
_MOST_RULES = 2000

_LEAST_LETTER, _LETTER = 5, 17.0
_LEAST_LARGER, _MOST_LARGER, _MOST_PIXELS = 1.25, 2.5, 8_000_000
_FEW_SHAPES = 20
_SLACK = 0.3
_WIDTH, _HEIGHT, _AREA = 2, 3, 4

Pixels = Any
"""A grey picture: `numpy.ndarray` of uint8, rows first."""


class Placed(Protocol):
    """A word with its box and the size of its font, in pixels."""

    @property
    def left(self) -> float: ...
    @property
    def top(self) -> float: ...
    @property
    def right(self) -> float: ...
    @property
    def bottom(self) -> float: ...
    @property
    def size(self) -> float: ...


class Straight(Protocol):
    """How a page was set straight; `shown` is its size before that."""

    @property
    def shown(self) -> tuple[float, float]: ...

    def back(self, box: Box) -> Box:
        """Where a box of the straight page lies on the page as it is shown."""
        ...


class Frame(NamedTuple):
    """From the points of a page as it is shown to those of the page set straight, and back.

    `matrix`: a, b, c, d, e, f of x' = ax + by + c, y' = dx + ey + f; `size`: of the straight page;
    `shown`: of the page as it is shown.
    """

    matrix: tuple[float, float, float, float, float, float]
    size: tuple[float, float]
    shown: tuple[float, float]

    @classmethod
    def of(cls, width: float, height: float) -> Self:
        """A page that stands straight."""
        return cls((1.0, 0.0, 0.0, 0.0, 1.0, 0.0), (width, height), (width, height))

    def turned(self, quarters: int) -> Self:
        """Turned clockwise by quarters."""
        width, height = self.size
        match quarters % 4:
            case 1:
                return self._then((0, -1, height, 1, 0, 0), (height, width))
            case 2:
                return self._then((-1, 0, width, 0, -1, height), self.size)
            case 3:
                return self._then((0, 1, 0, -1, 0, width), (height, width))
        return self

    def rotated(self, degrees: float) -> Self:
        """Turned counterclockwise about the middle, the page growing to hold its corners."""
        width, height = self.size
        cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        wide = abs(width * cos) + abs(height * sin)
        high = abs(width * sin) + abs(height * cos)
        across = (wide - width * cos - height * sin) / 2
        down = (high + width * sin - height * cos) / 2
        return self._then((cos, sin, across, -sin, cos, down), (wide, high))

    def scaled(self, factor: float) -> Self:
        """With `factor` units of the straight page for each that it had."""
        size = (self.size[0] * factor, self.size[1] * factor)
        return self._then((factor, 0, 0, 0, factor, 0), size)

    def _then(self, by: Sequence[float], size: tuple[float, float]) -> Self:
        a, b, c, d, e, f = self.matrix
        p, q, r, s, t, u = by
        matrix = (p * a + q * d, p * b + q * e, p * c + q * f + r,
                  s * a + t * d, s * b + t * e, s * c + t * f + u)  # fmt: skip
        return type(self)(matrix, size, self.shown)

    def back(self, box: Box) -> Box:
        """Where a box of the straight page lies on the page as it is shown."""
        a, b, c, d, e, f = self.matrix
        unit = a * e - b * d
        corners = [
            ((e * (x - c) - b * (y - f)) / unit, (a * (y - f) - d * (x - c)) / unit)
            for x in (box.left, box.right)
            for y in (box.top, box.bottom)
        ]
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        return Box(min(xs), min(ys), max(xs), max(ys))


def turned(image: Image.Image, quarters: int) -> Image.Image:
    """The image turned clockwise by quarters."""
    ways = (
        None, Image.Transpose.ROTATE_270, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_90,
    )  # fmt: skip
    way = ways[quarters % 4]
    return image if way is None else image.transpose(way)


def dark_on_light(image: Image.Image) -> Image.Image:
    """A grey image; one that is mostly dark is inverted."""
    grey = image.convert("L")
    reduced = np.asarray(grey.reduce(max(1, min(grey.size) // 200)))
    if float(np.median(reduced)) >= 110:
        return grey
    return Image.fromarray(255 - np.asarray(grey))


def evenly_lit(image: Image.Image) -> Image.Image:
    """The grey image over its own background: shadows of a fold or a lamp are gone.

    The background is the lightest grey around each place, smoothed, told on a small copy.
    """
    import cv2

    grey = np.asarray(image)
    factor = max(1.0, max(image.size) / _LIGHT_SIDE)
    size = max(1, round(image.width / factor)), max(1, round(image.height / factor))
    small = cv2.medianBlur(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), 3)
    around = np.ones((_AROUND, _AROUND), np.uint8)
    light = cv2.GaussianBlur(cv2.dilate(small, around), (0, 0), _AROUND)
    if float(light.min()) > _EVEN * float(light.max()):
        return image
    light = cv2.resize(light, image.size, interpolation=cv2.INTER_LINEAR)
    # Where all is dark there is a picture, not a shadow.
    light = np.maximum(light, _DARKEST)
    return Image.fromarray(np.clip(grey * (255.0 / light), 0, 255).astype(np.uint8))


def legible(image: Image.Image) -> Image.Image:
    """The grey image, larger where its letters are too small to be told apart.

    By the median height of what has the shape of a letter; `unread` has the shape.
    """
    _, shapes = _letters(np.asarray(image))
    if len(shapes) < _FEW_SHAPES:
        return image
    factor = min(_LETTER / float(np.median(shapes[:, _HEIGHT])), _MOST_LARGER,
                 (_MOST_PIXELS / (image.width * image.height)) ** 0.5)  # fmt: skip
    if factor < _LEAST_LARGER:
        return image
    size = round(image.width * factor), round(image.height * factor)
    return image.resize(size, Image.Resampling.LANCZOS)


def densest(image: Image.Image, side: int) -> Image.Image:
    """The square of `side` pixels, or less where the image ends, with the most ink in it."""
    import cv2

    factor = max(1, min(side // 50, *image.size))
    size = image.width // factor, image.height // factor
    small = cv2.resize(_ink(np.asarray(image)), size, interpolation=cv2.INTER_AREA)
    reach = max(1, side // factor)
    sums = cv2.boxFilter(small.astype(np.float32), -1, (reach, reach),
                         borderType=cv2.BORDER_CONSTANT)  # fmt: skip
    row, column = np.unravel_index(int(np.argmax(sums)), sums.shape)
    left = max(0, min(int(column) * factor - side // 2, image.width - side))
    top = max(0, min(int(row) * factor - side // 2, image.height - side))
    return image.crop((left, top, min(image.width, left + side), min(image.height, top + side)))


def unread(image: Image.Image, words: Iterable[Placed]) -> float:
    """The share of what has the shape of letters that lies in none of the `words`, 0 to 1."""
    middles, shapes = _letters(np.asarray(image))
    if not len(shapes):
        return 0.0
    read = np.zeros((image.height, image.width), bool)
    for word in words:
        slack = _SLACK * word.size
        top, left = max(0, int(word.top - slack)), max(0, int(word.left - slack))
        read[top : int(word.bottom + slack), left : int(word.right + slack)] = True
    across, down = middles[:, 0].astype(int), middles[:, 1].astype(int)
    missed = shapes[~read[down, across], _AREA].sum()
    return float(missed) / float(shapes[:, _AREA].sum())


def _letters(grey: Pixels) -> tuple[Pixels, Pixels]:
    """Middles and statistics (of `connectedComponentsWithStats`) of what may be letters.

    Pieces of ink that are neither specks nor strokes, and of about the size that most have.
    """
    import cv2

    _, _, stats, middles = cv2.connectedComponentsWithStats(_ink(grey))
    stats, middles = stats[1:], middles[1:]
    wide, high = stats[:, _WIDTH], stats[:, _HEIGHT]
    shaped = (high >= _LEAST_LETTER) & (high < grey.shape[0] / 10) & (wide < 6 * high)
    shaped &= (6 * wide > high) & (stats[:, _AREA] > 0.12 * wide * high)
    if shaped.any():
        usual = float(np.median(high[shaped]))
        shaped &= (high > 0.6 * usual) & (high < 3 * usual)
    return middles[shaped], stats[shaped]


def skew_of(image: Image.Image) -> float:
    """Degrees by which to turn the image counterclockwise for its lines to run level.

    The angle at which the sums of ink by row differ most from row to row (Postl 1986); 0 when no
    angle stands out.
    """
    import cv2

    factor = max(image.size) / _PROFILE_SIDE
    small = np.asarray(image.resize((
        max(1, round(image.width / max(1.0, factor))),
        max(1, round(image.height / max(1.0, factor))),
    )))  # fmt: skip
    ink = _ink(small).astype(np.float32)
    height, width = ink.shape
    if not ink.any() or min(width, height) < 32:
        return 0.0

    def sharpness(degrees: float) -> float:
        way = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1.0)
        rows = cv2.warpAffine(ink, way, (width, height)).sum(axis=1)
        return float(np.square(np.diff(rows)).sum())

    level = sharpness(0.0)
    coarse = max(np.arange(-_MOST_SKEW, _MOST_SKEW + 0.1, 0.5), key=lambda a: sharpness(float(a)))
    fine = coarse + np.arange(-0.45, 0.46, 0.05)
    best = max((float(a) for a in fine), key=sharpness)
    sure = abs(best) < _MOST_SKEW and sharpness(best) > 1.05 * level
    return best if sure and abs(best) >= _LEAST_SKEW else 0.0


def rotated(image: Image.Image, degrees: float) -> Image.Image:
    """The grey image turned counterclockwise as `Frame.rotated` says, white around it."""
    if not degrees:
        return image
    return image.rotate(degrees, Image.Resampling.BICUBIC, expand=True, fillcolor=255)


def _ink(grey: Pixels) -> Pixels:
    """255 where there is ink: darker than its surroundings."""
    import cv2

    side = max(15, (min(grey.shape) // 40) | 1)
    return cv2.adaptiveThreshold(
        grey, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, side, 15
    )


def without_rules(image: Image.Image) -> tuple[Image.Image, list[Rule]]:
    """The grey image with its drawn lines painted over, and the lines, in pixels."""
    import cv2

    grey = np.asarray(image).copy()
    ink = _ink(grey)
    rules: list[Rule] = []
    over = np.zeros_like(ink)
    side = max(image.size)
    least, thickest = max(50, round(_LEAST_RULE * side)), max(4, round(_THICKEST_RULE * side))
    for shape in ((least, 1), (1, least)):
        # Nearly all ink over a length that no letter has: noise does not break it, text is not it.
        core = (cv2.blur(ink, shape) > _SOLID * 255).astype(np.uint8)
        lines = cv2.dilate(core, np.ones((shape[1], shape[0]), np.uint8))
        count, labels, stats, _ = cv2.connectedComponentsWithStats(lines)
        for number in range(1, min(count, _MOST_RULES)):
            left, top, width, height = (int(v) for v in stats[number][:4])
            if min(width, height) <= thickest:
                part = slice(top, top + height), slice(left, left + width)
                over[part][labels[part] == number] = 255
                rules.append(_rule(left, top, ink[part]))
    if rules:
        grey[cv2.dilate(over, np.ones((3, 3), np.uint8)) > 0] = 255
    return Image.fromarray(grey), rules


def _rule(left: int, top: int, ink: Pixels) -> Rule:
    """Without its thickness, as layout wants it, and without the slack that was searched in."""
    height, width = ink.shape
    filled = ink.max(axis=0 if width >= height else 1).astype(np.float32)
    solid = np.convolve(filled, np.ones(_RUN) / _RUN, mode="same") > _SOLID * 255
    ends = np.flatnonzero(solid)
    first, last = (int(ends[0]), int(ends[-1]) + 1) if ends.size else (0, filled.size)
    first, last = max(0, first - _RUN // 2), min(filled.size, last + _RUN // 2)
    if width >= height:
        middle = top + height / 2
        return Rule(left + first, middle, left + last, middle)
    middle = left + width / 2
    return Rule(middle, top + first, middle, top + last)
