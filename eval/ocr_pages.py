"""Pages with known text to measure OCR on: drawn from evaluation data at run time, degraded."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from eval.corpus import EVALDATA

LANGUAGES = ("en", "de", "hr", "sl", "sr-Latn", "sr-Cyrl", "mk", "bg", "ru")
FONTS = Path("/usr/share/fonts/truetype")
FACES: dict[str, tuple[str, str]] = {
    "dejavu-sans": ("dejavu/DejaVuSans.ttf", "dejavu/DejaVuSans-Bold.ttf"),
    "dejavu-serif": ("dejavu/DejaVuSerif.ttf", "dejavu/DejaVuSerif-Bold.ttf"),
    "dejavu-condensed": ("dejavu/DejaVuSansCondensed.ttf", "dejavu/DejaVuSansCondensed-Bold.ttf"),
    "liberation-sans": (
        "liberation/LiberationSans-Regular.ttf", "liberation/LiberationSans-Bold.ttf",
    ),
    "liberation-serif": (
        "liberation/LiberationSerif-Regular.ttf", "liberation/LiberationSerif-Bold.ttf",
    ),
    "liberation-mono": (
        "liberation/LiberationMono-Regular.ttf", "liberation/LiberationMono-Bold.ttf",
    ),
}  # fmt: skip
"""Regular and bold, as Debian's fonts-dejavu and fonts-liberation put them."""

_DRAWN_DPI = 300
_WIDTH, _HEIGHT = 1750, 2480
_MARGIN = 170


class Sample(NamedTuple):
    """A page: `text` is what stands on it, `image` how it looks."""

    language: str
    face: str
    text: str
    image: Image.Image


def paragraphs(language: str) -> list[str]:
    """Running text in `language`, distinct, from sets of language identification."""
    code, _, script = language.partition("-")
    wanted = {"sr-Cyrl": "srp_cyrl", "sr-Latn": "srp_latn"}.get(language)
    found: dict[str, None] = {}
    for row in _rows("lid/udhr_paragraphs/paragraphs.jsonl"):
        if row["lang"] == code and (wanted is None or row.get("code") == wanted):
            found[row["text"]] = None
    if script == "Latn":
        for row in _rows("retrieval/gnome_help/sr-Latn/corpus.jsonl"):
            found |= dict.fromkeys(p for p in row["text"].split("\n") if 60 < len(p) < 400)
    else:
        found |= dict.fromkeys(
            row["text"] for row in _rows("lid/lingua/sentences.jsonl") if row["lang"] == code
        )
    return list(found)


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (EVALDATA / name).open(encoding="utf-8") as lines:
        yield from map(json.loads, filter(str.strip, lines))


def page(language: str, texts: list[str], face: str, *, points: float = 10.5) -> Sample:
    """An A5 page at 300 dpi: a title, two headings, paragraphs as far as they fit."""
    image = Image.new("L", (_WIDTH, _HEIGHT), 255)
    pen = _Pen(image, face)
    title, *rest = texts
    pen.write(" ".join(title.split()[:5]), points * 1.7, bold=True)
    for number, text in enumerate(rest):
        if number in {0, 4}:
            pen.write(f"{number // 4 + 1}. {' '.join(text.split()[:3])}", points * 1.25, bold=True)
        if not pen.write(text, points):
            break
    return Sample(language, face, "\n".join(pen.written), image)


class _Pen:
    def __init__(self, image: Image.Image, face: str) -> None:
        self._draw = ImageDraw.Draw(image)
        self._face = FACES[face]
        self._top = float(_MARGIN)
        self.written: list[str] = []

    def write(self, text: str, points: float, *, bold: bool = False) -> bool:
        """A paragraph; False if the page is full."""
        size = points * _DRAWN_DPI / 72
        font = ImageFont.truetype(str(FONTS / self._face[bold]), round(size))
        lines = self._broken(text, font)
        if self._top + len(lines) * size * 1.3 > _HEIGHT - _MARGIN:
            return False
        for line in lines:
            self._draw.text((_MARGIN, self._top), line, font=font, fill=0)
            self._top += size * 1.3
        self._top += size * 0.6
        self.written.append(" ".join(lines))
        return True

    def _broken(self, text: str, font: ImageFont.FreeTypeFont) -> list[str]:
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if font.getlength(longer) > _WIDTH - 2 * _MARGIN and lines[-1]:
                lines.append(word)
            else:
                lines[-1] = longer
        return lines


def scan(image: Image.Image, seed: int) -> Image.Image:
    """An honest office scan: 200 dpi, 0.6° askew, a little blur and noise."""
    return _degraded(image, seed, scale=200 / 300, angle=0.6, blur=0.6, noise=8)


def poor(image: Image.Image, seed: int) -> Image.Image:
    """A bad copy: 140 dpi, 1.5° askew, blurred, noisy, unevenly lit, JPEG of quality 40."""
    worse = _degraded(image, seed, scale=140 / 300, angle=-1.5, blur=0.7, noise=14)
    shade = np.linspace(0.72, 1.0, worse.width)[None, :]
    lit = Image.fromarray((np.asarray(worse) * shade).astype(np.uint8))
    out = io.BytesIO()
    lit.save(out, "JPEG", quality=40)
    return Image.open(out).convert("L")


def bad(image: Image.Image, seed: int) -> Image.Image:
    """Hardly legible: 95 dpi, 2.5° askew, blurred, very noisy, JPEG of quality 25."""
    out = io.BytesIO()
    _degraded(image, seed, scale=95 / 300, angle=2.5, blur=0.6, noise=22).save(
        out, "JPEG", quality=25
    )
    return Image.open(out).convert("L")


def sideways(image: Image.Image, seed: int) -> Image.Image:
    """A scan that lies on its side or on its head."""
    return scan(image, seed).rotate(90 * (1 + seed % 3), expand=True)


def _degraded(
    image: Image.Image, seed: int, *, scale: float, angle: float, blur: float, noise: float
) -> Image.Image:
    turned = image.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=255)
    size = (round(turned.width * scale), round(turned.height * scale))
    small = turned.resize(size, Image.Resampling.LANCZOS).filter(ImageFilter.GaussianBlur(blur))
    grain = np.random.default_rng(seed).normal(0, noise, (size[1], size[0]))
    return Image.fromarray(np.clip(np.asarray(small) + grain, 0, 255).astype(np.uint8))


DEGRADED: dict[str, Callable[[Image.Image, int], Image.Image]] = {
    "clean": lambda image, _: image,
    "scan": scan,
    "sideways": sideways,
    "poor": poor,
    "bad": bad,
}


def samples(pages: int, offset: int = 0) -> Iterator[Sample]:
    """`pages` clean pages of each language, each in another face; `offset` gives other text."""
    faces = list(FACES)
    for place, language in enumerate(LANGUAGES):
        texts = paragraphs(language)
        for number in range(pages):
            start = ((offset + number) * 29) % max(1, len(texts) - 30)
            face = faces[(offset + number + place) % len(faces)]
            yield page(language, texts[start : start + 30], face)
