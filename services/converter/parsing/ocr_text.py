"""What an engine read of a page, judged by what it says, not by what the engine thinks of it.

An engine that does not know a script is sure of its nonsense. `score` has the formula.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kernel.language import ACCEPTED, detect
from services.converter.parsing.ocr_engines import Seen

GOOD = 0.6
"""Plausibility from which a text is believed."""

_LONG_WORD = 5
_MARK_CONFIDENCE = 0.6
_FEW_LETTERS = 24
_LEAST_TEXT, _NONSENSE = 3, 0.3
_BELIEF, _MORE_BELIEF = 0.55, 0.75
_LEAST_SHARE = 0.12
_WORD = re.compile(r"[^\W\d_]{2,}")
_FOREIGN = re.compile(r"[\u2e80-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_OWN = {
    "en": ("eng",), "de": ("deu", "eng"), "hr": ("hrv", "eng"), "sl": ("slv", "eng"),
    "sr": ("srp_latn", "eng"), "ru": ("rus", "eng"), "bg": ("bul", "eng"), "mk": ("mkd", "eng"),
}  # fmt: skip
_SERBIAN_CYRILLIC = ("srp", "eng")
_DICTIONARIES = {"sr": "hbs", "hr": "hbs"}


@dataclass(frozen=True)
class Text:
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

    @property
    def cyrillic(self) -> float:
        """The share of its letters that are Cyrillic."""
        own = sum(len(w) * n for w, n in self.found.items() if _CYRILLIC.search(w))
        return own / self.letters if self.letters else 0.0

    @property
    def worth(self) -> float:
        """Letters read right; confidence decides among those without."""
        return (self.letters_in(frozenset()) + self.confidence) * self.level


def is_noise(text: Text) -> bool:
    """Whether the words of a reading are no text: what engines see in photographs and in grain.

    Readings of noise have next to no letters, or no belief, or neither words nor much belief. Of
    legible text, however bad the page, both engines had more than `_BELIEF` (`eval.ocr`).
    """
    if sum(sum(map(str.isalnum, word.text)) for word in text.words) < _LEAST_TEXT:
        return True
    unbelieved = text.letters >= _FEW_LETTERS and text.plausibility < _NONSENSE
    return text.confidence < (_MORE_BELIEF if unbelieved else _BELIEF)


def score(texts: dict[str, Text]) -> dict[str, float]:
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


def text_of(words: Iterable[Seen]) -> Text:
    """The words that an engine saw, with what is known of them."""
    kept = [word for word in words if _is_text(word)]
    whole = " ".join(word.text for word in kept)
    if not kept:
        return Text()
    language = detect(whole).code
    weights = [len(word.text) for word in kept]
    sure = sum(w.confidence * n for w, n in zip(kept, weights, strict=True)) / sum(weights)
    found = Counter(_WORD.findall(whole))
    return Text(kept, found, _known(found, language), round(sure, 4), language)


def _is_text(word: Seen) -> bool:
    """Specks and strokes are read as marks, without much belief, or as Chinese."""
    if _FOREIGN.search(word.text):
        return False
    return word.confidence >= _MARK_CONFIDENCE or any(map(str.isalnum, word.text))


def _known(words: Iterable[str], language: str) -> frozenset[str]:
    """Those that a dictionary of the language, or of English, has."""
    from simplemma import is_known

    wanted = {language} if language in ACCEPTED else set(ACCEPTED)
    codes = tuple(sorted({_DICTIONARIES.get(code, code) for code in wanted | {"en"}}))
    return frozenset(word for word in words if any(is_known(word, lang=code) for code in codes))


def own_languages(text: Text) -> tuple[str, ...]:
    """Tesseract's languages for a text, or none when it is not told.

    Where the text is in two scripts: those of both.
    """
    parts = [
        [word.text for word in text.words if bool(_CYRILLIC.search(word.text)) is cyrillic]
        for cyrillic in (text.cyrillic >= 0.5, text.cyrillic < 0.5)
    ]
    return _languages_of_parts(parts)


def languages_of(texts: Sequence[Text]) -> tuple[str, ...]:
    """Tesseract's languages for a page that was read several times: those of the best reading.

    Also those of the best in the other script, if much of that makes sense too: a page in two
    scripts, of which each reading knew one.
    """
    best = max(texts, key=lambda text: text.worth)
    others = [text for text in texts if (text.cyrillic >= 0.5) != (best.cyrillic >= 0.5)]
    other = max(others, key=lambda text: text.worth, default=None)
    if other is None or other.worth < _LEAST_SHARE * best.worth:
        return own_languages(best)
    return _languages_of_parts([[w for w in text.found.elements() if w in text.known]
                                for text in (best, other)])  # fmt: skip


def _languages_of_parts(parts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """`parts` are words of one script each; a small one does not count."""
    sizes = [sum(map(len, part)) for part in parts]
    languages: list[str] = []
    for part, size in zip(parts, sizes, strict=True):
        if size >= _FEW_LETTERS and size >= _LEAST_SHARE * sum(sizes):
            languages += _own(" ".join(part))
    return tuple(dict.fromkeys(languages))


def _own(text: str) -> tuple[str, ...]:
    language = detect(text).code
    if language == "sr" and _CYRILLIC.search(text):
        return _SERBIAN_CYRILLIC
    return _OWN.get(language, ())
