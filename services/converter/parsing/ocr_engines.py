"""The two engines that read a picture: Tesseract as a program, RapidOCR from its own wheel.

Both look at a `Clock`: a page that is made to be slow costs itself only.
"""

import io
import math
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from services.converter.memory import says_short

LATIN = ("eng", "deu", "hrv", "slv", "srp_latn")
CYRILLIC = ("rus", "bul", "srp", "mkd")

_BBOX = re.compile(r"\bbbox (-?\d+) (-?\d+) (-?\d+) (-?\d+)")
_BASELINE = re.compile(r"\bbaseline (-?[\d.]+) (-?[\d.]+)")
_NUMBER = re.compile(r"\b(x_size|x_wconf|textangle) (-?[\d.]+)")
_LINES = frozenset({"ocr_line", "ocr_header", "ocr_caption", "ocr_textfloat"})
# Tesseract's size runs from ascender to descender, RapidOCR's box has a border around it: the
# medians over rendered pages in six typefaces, as shares of the font's size.
_TESSERACT_SIZE, _RAPID_SIZE = 1.05, 0.83
_ASCENT, _DESCENT = 0.76, 0.22
_RAPID_SIDE = 1700
_MOST_ASPECT = 6
_LINES_ASKED = 7


class TooSlow(Exception):
    """The time for a page is used up."""


class Clock:
    """Counts down the seconds that a page has."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds, more than none.

        Raises:
            TooSlow: there are none.
        """
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TooSlow
        return seconds

    @property
    def over(self) -> bool:
        return time.monotonic() >= self._end


class Seen(NamedTuple):
    """A word in a picture: its box and the size of its font in pixels, confidence 0 to 1."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    size: float
    confidence: float
    upright: bool = True


class Orientation(NamedTuple):
    """Quarter turns clockwise that set a page upright, and its script (empty: not told)."""

    quarters: int
    certainty: float
    script: str = ""


# --- Tesseract --------------------------------------------------------------------------------


class Tesseract:
    """The program `tesseract`, one call a picture; nothing touches the disk."""

    name = "tesseract"

    def __init__(self, program: str, languages: frozenset[str]) -> None:
        self._program = program
        self.languages = languages

    def orientation(self, image: Image.Image, clock: Clock) -> Orientation | None:
        """How the page lies and its script; None if too little is on it."""
        if "osd" not in self.languages:
            return None
        said = self._call(image, ["--psm", "0", "-l", "osd"], clock).decode("utf-8", "replace")
        told = dict(re.findall(r"^(Rotate|Orientation confidence|Script): (\S+)$", said, re.M))
        if "Rotate" not in told:
            return None
        certainty = float(told.get("Orientation confidence", 0))
        return Orientation(int(told["Rotate"]) // 90 % 4, certainty, told.get("Script", ""))

    def read(self, image: Image.Image, languages: Sequence[str], clock: Clock) -> list[Seen]:
        """The words of an upright page; those of `languages` that are installed are used.

        Raises:
            TooSlow: it did not end in time.
        """
        known = [code for code in languages if code in self.languages]
        if not known:
            return []
        words = self._call(image, ["--psm", "3", "-l", "+".join(known), "hocr"], clock)
        return list(_from_hocr(words))

    def _call(self, image: Image.Image, arguments: list[str], clock: Clock) -> bytes:
        """What the program prints; nothing when it fails.

        Raises:
            MemoryError: for want of memory.
        """
        picture = io.BytesIO()
        image.save(picture, "PPM")
        # Without a resolution: it estimates one from the letters, and a wrong one loses words.
        command = [self._program, "stdin", "stdout", *arguments]
        try:
            done = subprocess.run(  # noqa: S603 - our own argument list
                command, input=picture.getvalue(), capture_output=True,
                timeout=clock.left(), check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise TooSlow from error
        if done.returncode and says_short(done.stderr.decode("utf-8", "replace")):
            raise MemoryError
        return done.stdout if done.returncode == 0 else b""


@cache
def tesseract() -> Tesseract | None:
    """The installed program with its languages, or None."""
    program = shutil.which("tesseract")
    if program is None:
        return None
    done = subprocess.run(  # noqa: S603 - our own argument list
        [program, "--list-langs"], capture_output=True, text=True, timeout=20, check=False
    )
    return Tesseract(program, frozenset(done.stdout.split("\n")[1:]) - {""})


def _from_hocr(page: bytes) -> Iterator[Seen]:
    from lxml import etree

    if not page:
        return
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=False)
    root = etree.fromstring(page, parser)
    line = _HocrLine("")
    for element in root.iter("span") if root is not None else ():
        kind, title = element.get("class", ""), element.get("title", "")
        if kind in _LINES:
            line = _HocrLine(title)
        text = "".join(element.itertext()).strip()
        if kind == "ocrx_word" and text:
            yield from line.word(text, title)


class _HocrLine:
    """A line of Tesseract: its words are given the height of its font, not that of their ink."""

    def __init__(self, title: str) -> None:
        numbers = {name: float(value) for name, value in _NUMBER.findall(title)}
        self._size = numbers.get("x_size", 0.0) * _TESSERACT_SIZE
        self._upright = numbers.get("textangle", 0.0) % 180 == 0
        box, base = _BBOX.search(title), _BASELINE.search(title)
        self._base: tuple[float, float] | None = None
        if box and base and self._size and self._upright:
            slope = float(base[1])
            self._base = slope, float(box[4]) + float(base[2]) - slope * float(box[1])

    def word(self, text: str, title: str) -> Iterator[Seen]:
        """The word, if its title tells a box."""
        box = _BBOX.search(title)
        if box is None:
            return
        left, top, right, bottom = map(float, box.groups())
        if self._base is not None:
            base = self._base[0] * (left + right) / 2 + self._base[1]
            top, bottom = base - _ASCENT * self._size, base + _DESCENT * self._size
        numbers = {name: float(value) for name, value in _NUMBER.findall(title)}
        sure = numbers.get("x_wconf", 0.0) / 100
        size = self._size or bottom - top
        yield Seen(text, left, top, right, bottom, size, sure, self._upright)


# --- RapidOCR ---------------------------------------------------------------------------------


class Rapid:
    """The ONNX models that come inside the package `rapidocr`: Latin letters, no Cyrillic."""

    name = "rapidocr"

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._lines = _Lines(engine)

    def read(self, image: Image.Image, clock: Clock) -> list[Seen]:
        """The words of an upright page.

        Raises:
            TooSlow: it did not end in time; noticed between lines.
        """
        self._lines.clock = clock
        clock.left()
        small, scale = _reduced(_squarer(image), _RAPID_SIDE)
        # Every switch each time: it remembers those of the last call.
        found = self._engine(_pixels(small), use_det=True, use_cls=False, use_rec=True)
        # Where no line was found it answers in another shape.
        if getattr(found, "txts", None) is None:
            return []
        placed = found.word_results
        if len(placed) != len(found.txts) or not all(isinstance(line, tuple) for line in placed):
            # A line without words shifts those of all others.
            placed = [()] * len(found.txts)
        lines = zip(found.boxes, found.txts, found.scores, placed, strict=True)
        return [word for line in lines for word in _words_of_line(*line, scale)]

    def orientation(self, image: Image.Image, clock: Clock) -> Orientation | None:
        """By the shape of the lines, and by the model that tells upright lines from others."""
        clock.left()
        small, _ = _reduced(_squarer(image), 960)
        boxes = self._boxes(small)
        tall = sum(y2 - y1 for x1, y1, x2, y2 in boxes if y2 - y1 > 1.5 * (x2 - x1))
        wide = sum(x2 - x1 for x1, y1, x2, y2 in boxes if x2 - x1 > 1.5 * (y2 - y1))
        if not tall + wide:
            return None
        quarters = 1 if tall > wide else 0
        if quarters:
            small = small.rotate(-90, expand=True)
            boxes = self._boxes(small)
        longest = sorted(boxes, key=lambda box: box[0] - box[2])[:_LINES_ASKED]
        flipped = [self._flipped(small.crop(_start_of(box))) for box in longest]
        votes = sum(1 if yes else -1 for yes in flipped)
        return Orientation((quarters + 2 * (votes > 0)) % 4, float(abs(votes)))

    def _boxes(self, image: Image.Image) -> list[tuple[int, int, int, int]]:
        found = self._engine(_pixels(image), use_det=True, use_cls=False, use_rec=False)
        return [_around(box) for box in found.boxes] if found.boxes is not None else []

    def _flipped(self, line: Image.Image) -> bool:
        found = self._engine(_pixels(line), use_det=False, use_cls=True, use_rec=False)
        return bool(found.cls_res and found.cls_res[0][0] == "180")


class _Lines:
    """In the place of the model that reads lines, some at a time: looks at the clock before.

    A thread cannot be ended from outside; finding the lines takes about as long for every page.
    """

    def __init__(self, engine: Any) -> None:
        recognizer = engine._load_rec_model()
        self._read, recognizer.session = recognizer.session, self
        self.clock = Clock(0)

    def __call__(self, lines: Any) -> Any:
        self.clock.left()
        return self._read(lines)


def _around(corners: Any) -> tuple[int, int, int, int]:
    xs, ys = [int(x) for x, _ in corners], [int(y) for _, y in corners]
    return min(xs), min(ys), max(xs) + 1, max(ys) + 1


def _start_of(box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """As much of a line as the model sees without squeezing it: four times its height."""
    left, top, right, bottom = box
    return left, top, min(right, left + 4 * (bottom - top)), bottom


@cache
def rapid() -> Rapid | None:
    """RapidOCR over the models in its own package, or None; it never looks for others."""
    try:
        import rapidocr
    except ImportError:
        return None
    models = Path(str(rapidocr.__file__)).parent / "models"
    paths = {
        "Det.model_path": _one(models, "*_det_*.onnx"),
        "Rec.model_path": _one(models, "*_rec_*.onnx"),
        "Cls.model_path": _one(models, "*_cls_*.onnx"),
    }
    # A path that is not there would be fetched.
    if not all(paths.values()):
        return None
    settings: dict[str, Any] = {
        **paths,
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        "Global.log_level": "critical",
        "Global.return_word_box": True,
    }
    return Rapid(rapidocr.RapidOCR(params=settings))


def _one(folder: Path, pattern: str) -> str:
    return str(next(iter(sorted(folder.glob(pattern))), ""))


def _reduced(image: Image.Image, most: int) -> tuple[Image.Image, float]:
    """The image with its longer side at `most` pixels, and how many of the old one pixel is."""
    scale = max(image.size) / most
    if scale <= 1:
        return image, 1.0
    size = (max(1, round(image.width / scale)), max(1, round(image.height / scale)))
    return image.resize(size, Image.Resampling.LANCZOS), scale


def _squarer(image: Image.Image) -> Image.Image:
    """With white below or beside it: a thin strip would be made a thousand times larger."""
    least = max(image.size) // _MOST_ASPECT
    if min(image.size) >= least:
        return image
    whole = Image.new(image.mode, (max(image.width, least), max(image.height, least)), 255)
    whole.paste(image, (0, 0))
    return whole


def _pixels(image: Image.Image) -> Any:
    import numpy as np

    return np.asarray(image.convert("RGB"))


def _words_of_line(
    box: Any, text: str, score: float, words: Iterable[tuple[str, float, Any]], scale: float
) -> Iterator[Seen]:
    """Words with their own boxes; where those do not fit the text, by share of the letters."""
    height = min(math.dist(box[0], box[3]), math.dist(box[1], box[2])) * scale * _RAPID_SIZE
    top, bottom = min(p[1] for p in box) * scale, max(p[1] for p in box) * scale
    parts, placed = text.split(), list(words)
    left, right = min(p[0] for p in box) * scale, max(p[0] for p in box) * scale
    if [word for word, _, _ in placed] == parts:
        for word, sure, corners in placed:
            xs = [float(x) * scale for x, _ in corners]
            yield Seen(word, min(xs), top, max(xs), bottom, height, float(sure))
        return
    at, letter = left, (right - left) / max(1, len(" ".join(parts)))
    for word in parts:
        end = at + letter * len(word)
        yield Seen(word, at, top, end, bottom, height, float(score))
        at = end + letter
