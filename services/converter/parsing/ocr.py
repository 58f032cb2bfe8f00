"""Pages without text, read: set straight, read by one engine or both, the better reading kept.

Tesseract reads first. The second engine takes three times as long, so it reads where it can matter:
on the first page of a document and on one of ten, and on every page of which the first reading is
not sure. The limits of `_is_sure` were measured with `eval.ocr`: above them the second engine never
had the better text by more than a letter in a thousand.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import cast

from PIL import Image

from contracts.events import Reading
from services.converter.memory import give_back
from services.converter.parsing.ocr_engines import (
    CYRILLIC,
    LATIN,
    Clock,
    Orientation,
    Rapid,
    Seen,
    Tesseract,
    TooSlow,
    rapid,
    tesseract,
)
from services.converter.parsing.ocr_text import (
    GOOD,
    Text,
    is_noise,
    languages_of,
    score,
    text_of,
    with_separators,
)
from services.converter.parsing.pdf_shapes import Rule, Word
from services.converter.parsing.upright import (
    Frame,
    dark_on_light,
    densest,
    evenly_lit,
    legible,
    rotated,
    skew_of,
    turned,
    unread,
    without_rules,
)
from services.converter.settings import ParseOptions

_LEAST_SIDE = 8
_LEAST_CONTRAST = 20
_SURE_TURN = 8.0
_FLAT = 0.5
_SURE_WORDS, _SURE_CONFIDENCE, _MOST_UNREAD = 0.8, 0.93, 0.03
_EVERY, _ROUNDS = 10, 2
_MANY_FIGURES = 0.08
_BETTER = 0.02
_SAMPLE = 900
_SHARE_OF_TIME = 0.8
_SAME_SIZE, _GAP = 0.14, 0.2
_SCRIPTS = {"Latin": LATIN, "Cyrillic": CYRILLIC}
_SHORT = {"Latin": ("eng",), "Cyrillic": ("rus",)}


@dataclass(frozen=True)
class Scan:
    """A page as it was read: words and drawn lines in points of `frame`, the page set straight."""

    words: list[Word]
    rules: list[Rule]
    frame: Frame
    reading: Reading


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
    if names == [Rapid.name]:
        return f"read by {Rapid.name} alone: without tesseract only Latin letters can be read"
    if len(names) == 1:
        return f"read by {names[0]} alone: the other engine is not installed"
    return f"read by {' and '.join(names)} where in doubt"


@dataclass
class _Attempt:
    """A page in one position, and what the engines read in it."""

    quarters: int
    skew: float
    rules: list[Rule]
    image: Image.Image
    texts: dict[str, Text] = field(default_factory=dict)

    @classmethod
    def of(cls, grey: Image.Image, quarters: int) -> "_Attempt":
        level = evenly_lit(turned(grey, quarters))
        skew = skew_of(level)
        image, rules = without_rules(rotated(level, skew))
        return cls(quarters % 4, skew, rules, image)

    @property
    def scores(self) -> dict[str, float]:
        """`score` of each engine; rounded, as it is written down."""
        return score(self.texts)

    @property
    def best(self) -> str:
        scores = self.scores
        return max(scores, key=lambda name: (scores[name], name == "tesseract"), default="")

    @property
    def worth(self) -> float:
        return max((text.worth for text in self.texts.values()), default=0.0)

    @property
    def plausible(self) -> bool:
        return any(t.words and t.plausibility >= GOOD for t in self.texts.values())

    def scan(self, number: int, size: tuple[float, float]) -> Scan | None:
        """In points of the straight page."""
        engine = self.best
        if not engine or not self.texts[engine].words:
            return None
        frame = Frame.of(*size).turned(self.quarters).rotated(self.skew)
        unit = frame.size[0] / self.image.width
        seen = self.texts[engine].words
        if engine == "tesseract" and "rapidocr" in self.texts:
            seen = with_separators(seen, self.texts["rapidocr"].words)
        words = _words(seen, unit)
        rules = [Rule(r.left * unit, r.top * unit, r.right * unit, r.bottom * unit)
                 for r in self.rules]  # fmt: skip
        return Scan(words, rules, frame, Reading(page=number, engine=engine, scores=self.scores))


class PageReader:
    """Reads the pages of one document, one after the other.

    What the page before was (its position, its language, which engine was better) is tried first on
    the next one, so the same pages in the same order give the same text.
    """

    def __init__(self, options: ParseOptions | None = None) -> None:
        options = options or ParseOptions()
        self._tesseract, self._rapid = engines()
        self._page_seconds = options.page_seconds
        self._end = time.monotonic() + _SHARE_OF_TIME * options.total_seconds
        self._languages: tuple[str, ...] = ()
        self._quarters: int | None = None
        self._pages, self._doubt = 0, False

    def read(self, image: Image.Image, number: int, size: tuple[float, float]) -> Scan | None:
        """The page `number` from its picture; `size` is the page's in points.

        None when nothing on it can be read.

        Raises:
            TooSlow: what could be read within the page's time, or the document's, is not to be
                believed.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise TooSlow
        clock = Clock(min(self._page_seconds, left))
        grey = dark_on_light(image)
        darkest, lightest = cast("tuple[int, int]", grey.getextrema())
        if min(grey.size) < _LEAST_SIDE or lightest - darkest < _LEAST_CONTRAST:
            return None
        try:
            best = self._read(legible(grey), clock)
        finally:
            self._pages += 1
            give_back()
        return best.scan(number, size) if best is not None else None

    def _read(self, grey: Image.Image, clock: Clock) -> _Attempt | None:
        """The best attempt at a page; None when no engine found text."""
        attempts: list[_Attempt] = []
        try:
            self._attempt(grey, clock, attempts)
        except TooSlow:
            # What was read until then may do.
            pass
        best = max((a for a in attempts if a.texts), key=lambda a: a.worth, default=None)
        if clock.over and not (best and best.plausible):
            raise TooSlow
        if best is not None and best.plausible:
            self._remember(best)
        if best is not None and is_noise(best.texts[best.best]):
            return None
        return best

    def _attempt(self, grey: Image.Image, clock: Clock, attempts: list[_Attempt]) -> None:
        """Reads the page until a reading is plausible, or nothing else is left to try."""
        if self._quarters is not None:
            attempts.append(_Attempt.of(grey, self._quarters))
            self._first(attempts[-1], "", clock)
            if attempts[-1].plausible:
                self._compare(attempts[-1], clock)
                return
        told = self._orientation(grey, clock)
        # A script that none of our languages has is a page seen wrong way up.
        sure = told.certainty >= _SURE_TURN and told.script in _SCRIPTS
        if not sure:
            told = self._sampled(grey, told.quarters, clock)
        self._further(grey, told, clock, attempts)
        if not any(text.words for a in attempts for text in a.texts.values()):
            self._by_rapid(attempts[-1], clock)
            return
        flat = max((text.level for text in attempts[-1].texts.values()), default=0.0) >= _FLAT
        if sure and not flat and not any(a.plausible for a in attempts):
            told = self._sampled(grey, told.quarters, clock)
            self._further(grey, told, clock, attempts)
        self._compare(max(attempts, key=lambda a: a.worth), clock)

    def _further(
        self, grey: Image.Image, told: Orientation, clock: Clock, attempts: list[_Attempt]
    ) -> None:
        """One more attempt, unless the page was read in that position."""
        if told.quarters not in {attempt.quarters for attempt in attempts}:
            attempts.append(_Attempt.of(grey, told.quarters))
            self._first(attempts[-1], told.script, clock)

    def _orientation(self, grey: Image.Image, clock: Clock) -> Orientation:
        found = None
        if self._tesseract is not None:
            found = self._tesseract.orientation(grey, clock)
        if found is None and self._rapid is not None:
            found = self._rapid.orientation(grey, clock)
        return found or Orientation(0, 0.0)

    def _sampled(self, grey: Image.Image, quarters: int, clock: Clock) -> Orientation:
        """Position and script in which the part of the page with most ink makes most sense.

        `quarters` are tried first, and are enough if they make sense.
        """
        sample = densest(grey, _SAMPLE)
        best, most = Orientation(quarters, 0.0), 0.0
        for turn in sorted(range(4), key=lambda n: n != quarters):
            for script, text in self._samples(turned(sample, turn), clock):
                if text.worth > most:
                    best, most = Orientation(turn, 0.0, script), text.worth
                if text.letters and text.plausibility >= GOOD and turn == quarters:
                    return best
        return best

    def _samples(self, sample: Image.Image, clock: Clock) -> Iterator[tuple[str, Text]]:
        """A part of the page, read by one language of each script."""
        if self._tesseract is not None:
            for script, languages in _SHORT.items():
                yield script, text_of(self._tesseract.read(sample, languages, clock))
        elif self._rapid is not None:
            yield "", text_of(self._rapid.read(sample, clock))

    # --- the two engines ---

    def _first(self, attempt: _Attempt, script: str, clock: Clock) -> None:
        """By Tesseract; by the second engine at the same time when it is its turn, or alone."""
        if self._tesseract is None:
            self._by_rapid(attempt, clock)
            return
        if self._pages % _EVERY and not self._doubt:
            self._by_tesseract(attempt, script, clock)
            return
        with ThreadPoolExecutor(1) as pool:
            # It is a process of its own.
            first = pool.submit(self._by_tesseract, attempt, script, clock)
            self._by_rapid(attempt, clock)
            first.result()

    def _compare(self, attempt: _Attempt, clock: Clock) -> None:
        """Lets the second engine read what the first was not sure of."""
        if not self._is_sure(attempt):
            self._by_rapid(attempt, clock)

    def _is_sure(self, attempt: _Attempt) -> bool:
        text = attempt.texts.get("tesseract")
        if text is None or text.plausibility < GOOD or text.figures > _MANY_FIGURES:
            return False
        if text.cyrillic > 0.5:
            # The second engine does not know these letters.
            return True
        return (
            text.plausibility >= _SURE_WORDS
            and text.confidence >= _SURE_CONFIDENCE
            and unread(attempt.image, text.words) <= _MOST_UNREAD
        )

    def _remember(self, attempt: _Attempt) -> None:
        scores, text = attempt.scores, attempt.texts.get("tesseract")
        better = scores.get("rapidocr", 0.0) > scores.get("tesseract", 0.0) + _BETTER
        self._doubt = better or not self._is_sure(attempt)
        self._quarters = attempt.quarters
        if text is not None and text.plausibility >= GOOD:
            self._languages = text.languages or self._languages

    def _by_rapid(self, attempt: _Attempt, clock: Clock) -> None:
        """An engine that is late has read nothing."""
        if self._rapid is not None and "rapidocr" not in attempt.texts:
            with suppress(TooSlow):
                attempt.texts["rapidocr"] = text_of(self._rapid.read(attempt.image, clock))

    def _by_tesseract(self, attempt: _Attempt, script: str, clock: Clock) -> None:
        """In several languages, one after the other; the best reading counts."""
        if self._tesseract is None:
            return
        kept: list[Text] = []
        with suppress(TooSlow):
            likely = self._languages or self._guessed(attempt.image, script, clock)
            for languages in _asked(likely, script, kept):
                kept.append(text_of(self._tesseract.read(attempt.image, languages, clock)))
        if kept:
            attempt.texts["tesseract"] = max(kept, key=lambda text: text.worth)

    def _guessed(self, image: Image.Image, script: str, clock: Clock) -> tuple[str, ...]:
        """Languages of the part of a large page that has most ink; none of a small one."""
        if self._tesseract is None or max(image.size) < 2 * _SAMPLE:
            return ()
        sample = densest(image, _SAMPLE)
        texts: list[Text] = []
        for name in _scripts(script):
            texts.append(text_of(self._tesseract.read(sample, _SCRIPTS[name], clock)))
            if name == script and texts[-1].plausibility >= _SURE_WORDS:
                break
        return languages_of(texts)


def _scripts(first: str) -> list[str]:
    return sorted(_SCRIPTS, key=lambda name: name != first)


def _asked(likely: tuple[str, ...], script: str, kept: Sequence[Text]) -> Iterator[tuple[str, ...]]:
    """The likely languages, else all of a script, then those that the page is in.

    `kept` are the texts read with those asked for so far.
    """
    asked = [frozenset(likely)]
    sure = False
    if likely:
        yield likely
        sure = kept[-1].plausibility >= _SURE_WORDS
    for name in () if sure else _scripts(script):
        yield _SCRIPTS[name]
        if name == script and kept[-1].plausibility >= _SURE_WORDS:
            break
    for _ in range(_ROUNDS):
        own = languages_of(kept)
        if any(set(own) <= others for others in asked):
            return
        asked.append(frozenset(own))
        yield own


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
