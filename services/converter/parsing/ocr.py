"""Pages without text, read: set straight, read by both engines, the better reading kept.

A reading is judged by what it says, not by what its engine thinks of it: an engine that does not
know a script is sure of its nonsense. `score` has the formula.
"""

import ctypes
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import cast

from PIL import Image

from contracts.events import Reading
from kernel.language import ACCEPTED, detect
from services.converter.parsing.ocr_engines import (
    CYRILLIC,
    LATIN,
    Orientation,
    Rapid,
    Seen,
    Tesseract,
    rapid,
    tesseract,
)
from services.converter.parsing.pdf_shapes import Rule, Word
from services.converter.parsing.upright import (
    Frame,
    dark_on_light,
    evenly_lit,
    rotated,
    skew_of,
    turned,
    without_rules,
)
from services.converter.settings import ParseOptions

_GOOD = 0.6
_LEAST_SIDE = 8
_LEAST_CONTRAST = 20
_SURE_TURN = 8.0
_LONG_WORD, _FLAT = 5, 0.5
_SAME_SIZE, _GAP = 0.14, 0.2
_MARK_CONFIDENCE = 0.6
_FEW_LETTERS = 24
_WORD = re.compile(r"[^\W\d_]{2,}")
_OWN = {
    "en": ("eng",), "de": ("deu", "eng"), "hr": ("hrv", "eng"), "sl": ("slv", "eng"),
    "sr": ("srp_latn", "eng"), "ru": ("rus", "eng"), "bg": ("bul", "eng"), "mk": ("mkd", "eng"),
}  # fmt: skip
_SCRIPTS = {"Latin": LATIN, "Cyrillic": CYRILLIC}
_SERBIAN_CYRILLIC = ("srp", "eng")
_DICTIONARIES = {"sr": "hbs", "hr": "hbs"}


@dataclass(frozen=True)
class Scan:
    """A page as it was read: words and drawn lines in points of `frame`, the page set straight."""

    words: list[Word]
    rules: list[Rule]
    frame: Frame
    reading: Reading


@dataclass(frozen=True)
class _Text:
    """What one engine read, and how far it can be believed by itself.

    `found` counts its words of two letters and more; `known` are those that a dictionary has.
    """

    words: list[Seen] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    known: frozenset[str] = frozenset()
    confidence: float = 0.0
    language: str = ""

    @property
    def letters(self) -> int:
        """In words of two letters and more."""
        return sum(len(word) * count for word, count in self.found.items())

    def letters_in(self, right: frozenset[str]) -> int:
        """In those words that are known or `right`."""
        return sum(
            len(word) * count
            for word, count in self.found.items()
            if word in self.known or word in right
        )

    @property
    def plausibility(self) -> float:
        """The share of its letters that stand in words of its language."""
        if self.letters < _FEW_LETTERS:
            # Numbers and a word or two: no dictionary judges those.
            return self.confidence * self.level
        return self.level * self.letters_in(frozenset()) / self.letters

    @property
    def level(self) -> float:
        """The share of letters in long words that lie flat: both engines read upright lines too."""
        long = [word for word in self.words if len(word.text) >= _LONG_WORD]
        flat = sum(len(w.text) for w in long if w.right - w.left > w.bottom - w.top)
        return flat / sum(len(w.text) for w in long) if long else 1.0


def engines() -> tuple[Tesseract | None, Rapid | None]:
    """The engines that are on this machine."""
    return tesseract(), rapid()


def told_engines(options: ParseOptions) -> str:
    """For the journal: by what pages are read, or why they are not."""
    if not options.ocr:
        return "not read: OCR is switched off"
    names = [engine.name for engine in engines() if engine is not None]
    if not names:
        return "not read: neither tesseract nor rapidocr is installed"
    missing = "" if len(names) == 2 else " alone: the other engine is not installed"
    return f"read by {' and '.join(names)}{missing}"


class PageReader:
    """Reads the pages of one document, one after the other.

    What the page before was (its turn, its language) is tried first on the next one, so the same
    pages in the same order give the same text.
    """

    def __init__(self) -> None:
        self._tesseract, self._rapid = engines()
        self._languages: tuple[str, ...] = ()

    def read(self, image: Image.Image, number: int, size: tuple[float, float]) -> Scan | None:
        """The page `number` from its picture; `size` is the page's in points.

        None when nothing on it can be read.
        """
        grey = dark_on_light(image)
        darkest, lightest = cast("tuple[int, int]", grey.getextrema())
        if min(grey.size) < _LEAST_SIDE or lightest - darkest < _LEAST_CONTRAST:
            return None
        told = self._orientation(grey)
        best = self._upright(grey, told.quarters, told.script)
        if not any(text.words for text in best.texts.values()):
            return None
        # A script that none of our languages has is a page seen wrong way up.
        sure = told.certainty >= _SURE_TURN and told.script in _SCRIPTS
        if max(best.scores.values()) < _GOOD and not (sure and best.level >= _FLAT):
            others = (self._upright(grey, told.quarters + n, told.script) for n in (1, 2, 3))
            best = max((best, *others), key=lambda attempt: attempt.worth)
        _give_back()
        return best.scan(number, grey.size, size)

    def _orientation(self, grey: Image.Image) -> Orientation:
        found = None
        if self._tesseract is not None:
            found = self._tesseract.orientation(grey)
        if found is None and self._rapid is not None:
            found = self._rapid.orientation(grey)
        return found or Orientation(0, 0.0)

    def _upright(self, grey: Image.Image, quarters: int, script: str) -> "_Attempt":
        level = evenly_lit(turned(grey, quarters))
        skew = skew_of(level)
        clean, rules = without_rules(rotated(level, skew))
        return _Attempt(quarters % 4, skew, rules, self._both(clean, script))

    def _both(self, image: Image.Image, script: str) -> dict[str, _Text]:
        """What each engine reads, at the same time: Tesseract is a process of its own."""
        if self._tesseract is None or self._rapid is None:
            alone = {}
            if self._tesseract is not None:
                alone["tesseract"] = self._by_tesseract(self._tesseract, image, script)
            if self._rapid is not None:
                alone["rapidocr"] = _text(self._rapid.read(image))
            return alone
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(self._by_tesseract, self._tesseract, image, script)
            second = _text(self._rapid.read(image))
            return {"tesseract": first.result(), "rapidocr": second}

    def _by_tesseract(self, engine: Tesseract, image: Image.Image, script: str) -> _Text:
        """With the languages of the page before, else all of the script, then those it is in."""
        if self._languages:
            text = _text(engine.read(image, self._languages))
            if text.plausibility >= _GOOD and _own(text) == self._languages:
                return text
        groups = [_SCRIPTS[script]] if script in _SCRIPTS else list(_SCRIPTS.values())
        text = max((_text(engine.read(image, group)) for group in groups), key=_worth)
        own = _own(text)
        if own:
            text = max(text, _text(engine.read(image, own)), key=_worth)
            self._languages = own
        return text


@dataclass(frozen=True)
class _Attempt:
    """A page read in one position."""

    quarters: int
    skew: float
    rules: list[Rule]
    texts: dict[str, _Text]

    @property
    def scores(self) -> dict[str, float]:
        """`score` of each engine; rounded, as it is written down."""
        return score(self.texts)

    @property
    def level(self) -> float:
        return max((text.level for text in self.texts.values() if text.words), default=1.0)

    @property
    def worth(self) -> float:
        return max(map(_worth, self.texts.values()), default=0.0)

    def scan(self, number: int, pixels: tuple[int, int], size: tuple[float, float]) -> Scan | None:
        """In points of the straight page."""
        scores = self.scores
        engine = max(scores, key=lambda name: (scores[name], name == "tesseract"), default="")
        if not engine or not self.texts[engine].words:
            return None
        unit = size[0] / pixels[0]
        frame = Frame.of(*size).turned(self.quarters).rotated(self.skew)
        words = _words(self.texts[engine].words, unit)
        rules = [Rule(r.left * unit, r.top * unit, r.right * unit, r.bottom * unit)
                 for r in self.rules]  # fmt: skip
        return Scan(words, rules, frame, Reading(page=number, engine=engine, scores=scores))


def score(texts: dict[str, _Text]) -> dict[str, float]:
    """How much of the page each engine read right, 0 to 1; the same yardstick for all.

    right letters / max(own letters, most right letters of any engine), where a word is right if a
    dictionary of the text's language has it or another engine read the same: nonsense counts
    against an engine, and so does what it left out but another read. A page with next to no letters
    is judged by confidence and amount.
    """
    agreed = frozenset(
        word
        for word, engines_ in Counter(w for text in texts.values() for w in text.found).items()
        if engines_ > 1
    )
    right = {name: text.letters_in(agreed) for name, text in texts.items()}
    most = max(right.values(), default=0)
    letters = max((text.letters for text in texts.values()), default=0)
    many = max((len(text.words) for text in texts.values()), default=0)
    scores: dict[str, float] = {}
    for name, text in texts.items():
        if letters >= _FEW_LETTERS:
            value = right[name] / max(1, text.letters, most)
        else:
            value = text.confidence * len(text.words) / max(1, many)
        scores[name] = round(value, 4)
    return scores


def _worth(text: _Text) -> float:
    """Letters read right; confidence decides among those without."""
    return (text.letters_in(frozenset()) + text.confidence) * text.level


def _text(words: Iterable[Seen]) -> _Text:
    kept = [word for word in words if _is_text(word)]
    whole = " ".join(word.text for word in kept)
    if not kept:
        return _Text()
    language = detect(whole).code
    weights = [len(word.text) for word in kept]
    sure = sum(w.confidence * n for w, n in zip(kept, weights, strict=True)) / sum(weights)
    found = Counter(_WORD.findall(whole))
    return _Text(kept, found, _known(found, language), round(sure, 4), language)


def _is_text(word: Seen) -> bool:
    """Specks and strokes are read as marks, without much belief."""
    return word.confidence >= _MARK_CONFIDENCE or any(map(str.isalnum, word.text))


def _known(words: Iterable[str], language: str) -> frozenset[str]:
    """Those that a dictionary of the language, or of English, has."""
    from simplemma import is_known

    wanted = {language} if language in ACCEPTED else set(ACCEPTED)
    codes = tuple(sorted({_DICTIONARIES.get(code, code) for code in wanted | {"en"}}))
    return frozenset(word for word in words if any(is_known(word, lang=code) for code in codes))


def _own(text: _Text) -> tuple[str, ...]:
    """Tesseract's languages for a text, or none when it is not told."""
    if text.language == "sr" and any("\u0400" <= c <= "\u04ff" for w in text.words for c in w.text):
        return _SERBIAN_CYRILLIC
    return _OWN.get(text.language, ())


def _give_back() -> None:
    """What a page took in memory, to the system: the C library would keep it (300 MB a page)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


# --- to points --------------------------------------------------------------------------------


def _words(seen: Sequence[Seen], unit: float) -> list[Word]:
    sizes = _steady([word.size * unit for word in seen], [len(word.text) for word in seen])
    words = [_word(word, size, unit) for word, size in zip(seen, sizes, strict=True)]
    for word, after in pairwise(words):
        # Boxes may touch where the text has a blank.
        free = _GAP * min(word.size, after.size)
        if word.left < after.left and abs(word.middle - after.middle) < free:
            word.right = max(min(word.right, after.left - free), (word.left + after.left) / 2)
    return words


def _word(word: Seen, size: float, unit: float) -> Word:
    """As high as its font: boxes around ink differ from line to line by the letters in it."""
    left, right = word.left * unit, word.right * unit
    middle = (word.top + word.bottom) / 2 * unit
    half = size / 2 if word.upright else (word.bottom - word.top) / 2 * unit
    return Word(
        word.text, left, middle - half, right, middle + half, size=size, upright=word.upright
    )


def _steady(sizes: Sequence[float], weights: Sequence[int]) -> list[float]:
    """Sizes that differ by what OCR cannot measure made equal: those near a common one join it."""
    steady = [0.0] * len(sizes)
    left = set(range(len(sizes)))
    while left:
        middle = _weighted_median([(sizes[n], weights[n]) for n in left])
        near = {n for n in left if abs(sizes[n] - middle) <= _SAME_SIZE * middle}
        value = round(median(sizes[n] for n in near), 1)
        for n in near:
            steady[n] = value
        left -= near
    return steady


def _weighted_median(pairs: Sequence[tuple[float, int]]) -> float:
    half = sum(weight for _, weight in pairs) / 2
    for value, weight in sorted(pairs):
        half -= weight
        if half <= 0:
            return value
    return max(value for value, _ in pairs)
