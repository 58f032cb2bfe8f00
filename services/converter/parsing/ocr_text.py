"""What an engine read of a page, judged by what it says, not by what the engine thinks of it.

An engine that does not know a script is sure of its nonsense. `score` has the formula.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
_LEAST_SHARE, _RUN = 0.12, 200
_FAMILY = {"hr": "hbs", "sr": "hbs", "bs": "hbs"}
_WORD = re.compile(r"[^\W\d_]{2,}")
_FIGURE, _BETWEEN = re.compile(r"\d{2,}"), re.compile(r"\d\D+\d")
_PARTED, _SURE_FIGURE = re.compile(r"\d+(?:[.,]\d+)+"), 0.95
_FOREIGN = re.compile(r"[\u2e80-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_OWN = {
    "en": "eng", "de": "deu", "hr": "hrv", "sl": "slv", "sr": "srp_latn", "ru": "rus", "bg": "bul",
    "mk": "mkd",
}  # fmt: skip
_DICTIONARIES = {"sr": "hbs", "hr": "hbs"}


@dataclass(frozen=True)
class Text:
    """What one engine read, and how far it can be believed by itself.

    `found` counts its words of two letters and more; `known` are those that a dictionary has.
    `language` is that of most of it; `languages` are Tesseract's for all that it is in.
    """

    words: list[Seen] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    known: frozenset[str] = frozenset()
    confidence: float = 0.0
    language: str = ""
    languages: tuple[str, ...] = ()

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
    def figures(self) -> float:
        """The share of its words that are figures."""
        return sum(1 for w in self.words if _FIGURE.search(w.text)) / max(1, len(self.words))

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


def with_separators(words: Sequence[Seen], others: Sequence[Seen]) -> list[Seen]:
    """`words` with the points and commas in figures that only another engine saw: 4.5, not 45.

    An engine loses a small point sooner than it sees one that is not there. The digits must be the
    same, at the same place, and the other engine sure.
    """
    parted = [w for w in others if w.confidence >= _SURE_FIGURE and _PARTED.fullmatch(w.text)]
    return [word._replace(text=_parted(word, parted)) for word in words]


def _parted(word: Seen, parted: Sequence[Seen]) -> str:
    digits = _FIGURE.findall(word.text)
    if len(digits) == 1 and not _BETWEEN.search(word.text):
        for other in parted:
            across, down = (other.left + other.right) / 2, (other.top + other.bottom) / 2
            here = word.left <= across <= word.right and word.top <= down <= word.bottom
            if here and re.sub(r"\D", "", other.text) == digits[0]:
                return word.text.replace(digits[0], other.text)
    return word.text


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
    codes = _codes(kept)
    weights = [len(word.text) for word in kept]
    sure = sum(w.confidence * n for w, n in zip(kept, weights, strict=True)) / sum(weights)
    found = Counter(_WORD.findall(whole))
    known = _known(found, {code for code, _ in codes})
    language = codes[0][0] if codes else ""
    return Text(kept, found, known, round(sure, 4), language, _models(codes))


def _codes(words: Sequence[Seen]) -> list[tuple[str, bool]]:
    """Languages, each with whether it is Cyrillic, that have a fair share of the words, most first.

    Told on runs of words, since columns and paragraphs of one page may be in several. Nearly the
    same languages are one: a run is too short to tell them apart.
    """
    whole = detect(" ".join(word.text for word in words)).code
    shares: Counter[tuple[str, bool]] = Counter()
    for run in _runs(words):
        code = detect(run).code
        cyrillic = len(_CYRILLIC.findall(run)) * 2 > sum(map(str.isalpha, run))
        if _FAMILY.get(code, code) == _FAMILY.get(whole, whole):
            code = whole
        if code in ACCEPTED:
            shares[code, cyrillic] += len(run)
    least = _LEAST_SHARE * sum(shares.values())
    return [pair for pair, letters in shares.most_common() if letters >= least]


def _runs(words: Sequence[Seen]) -> Iterator[str]:
    """Words that follow one another, of one script, until they are enough to tell a language."""
    run: list[str] = []
    for word in words:
        script = bool(_CYRILLIC.search(word.text))
        if run and (script != bool(_CYRILLIC.search(run[-1])) or sum(map(len, run)) >= _RUN):
            yield " ".join(run)
            run = []
        if any(map(str.isalpha, word.text)):
            run.append(word.text)
    if run:
        yield " ".join(run)


def _models(codes: Sequence[tuple[str, bool]]) -> tuple[str, ...]:
    """Tesseract's languages for ours; English last, as its words stand in every text."""
    own = ["srp" if pair == ("sr", True) else _OWN[pair[0]] for pair in codes]
    others = dict.fromkeys(name for name in own if name != "eng")
    return (*others, "eng") if own else ()


def _is_text(word: Seen) -> bool:
    """Specks and strokes are read as marks, without much belief, or as Chinese."""
    if _FOREIGN.search(word.text):
        return False
    return word.confidence >= _MARK_CONFIDENCE or any(map(str.isalnum, word.text))


def _known(words: Iterable[str], codes: set[str]) -> frozenset[str]:
    """Those that a dictionary of the languages, or of English, has."""
    from simplemma import is_known

    wanted = (codes or set(ACCEPTED)) | {"en"}
    names = tuple(sorted({_DICTIONARIES.get(code, code) for code in wanted}))
    return frozenset(word for word in words if any(is_known(word, lang=name) for name in names))


def languages_of(texts: Sequence[Text]) -> tuple[str, ...]:
    """Tesseract's languages for a page that was read several times: those of the best reading.

    Also those of the best in the other script, if much of that makes sense too: a page in two
    scripts, of which each reading knew one.
    """
    best = max(texts, key=lambda text: text.worth)
    others = [text for text in texts if (text.cyrillic >= 0.5) != (best.cyrillic >= 0.5)]
    other = max(others, key=lambda text: text.worth, default=None)
    if other is None or other.worth < _LEAST_SHARE * best.worth:
        return best.languages
    both = [code for code in (*best.languages, *other.languages) if code != "eng"]
    return (*dict.fromkeys(both), "eng")
