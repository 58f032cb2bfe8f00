"""One piece of text: how likely each language is."""

import math
from functools import cache
from typing import Any, NamedTuple

from kernel.language.bosnian import Traits
from kernel.language.features import Features, features, normalised
from kernel.language.lexicon import kinds, weighed
from kernel.language.model import scores, tables
from kernel.language.text import Piece

UNKNOWN = "unknown"
SOUTH = "sh"
"""The class of Bosnian, Croatian and Serbian in Latin script, told apart by a table of its own."""
_STRANGE = "xx"
_SURE, _FOREIGN = 0.9, 0.7
_MESSAGES, _NATIVE, _SHIFT = 0.12, 0.97, -0.08
"""Logistic regression of Serbian on the scores of both tables, fitted with the words' (see
`lexicon`)."""


class Guess(NamedTuple):
    """`shares`: code → probability, of all codes that matter; `traits`: of a piece in Latin script,
    what tells Bosnian; `letters`: the weight of the piece."""

    shares: dict[str, float]
    traits: Traits | None
    letters: int


def guess(piece: Piece) -> Guess | None:
    """Probabilities for a piece; nothing when it has no words in it that could be judged."""
    text = normalised(piece.text)
    if len(text) < 3:
        return None
    if piece.script not in {"Latn", "Cyrl"}:
        code, probability = _elsewhere(piece)
        return Guess({code: max(probability, 0.5)}, None, piece.letters) if code else None
    found = features(text)
    table = "latin" if piece.script == "Latn" else "cyrillic"
    logits = scores(found, table) - _strange_letters(text, tables()[table].classes)
    shares = dict(zip(tables()[table].classes, _softmax(logits), strict=True))
    shares = _with_strangers(shares, piece)
    traits = None
    if SOUTH in shares:
        together = shares.pop(SOUTH)
        croatian, serbian, traits = _south(found, piece.text)
        shares |= {"hr": together * croatian, "sr": together * serbian}
    return Guess({c: p for c, p in shares.items() if p > 1e-4}, traits, piece.letters)


def _softmax(logits: Any) -> list[float]:
    top = max(logits)
    odds = [math.exp(value - top) for value in logits]
    whole = sum(odds)
    return [value / whole for value in odds]


def _south(found: Features, text: str) -> tuple[float, float, Traits]:
    """Croatian and Serbian add up to one, Bosnian left aside."""
    towards, third = scores(found, "south")
    (native,) = scores(found, "native")
    counts = kinds(text)
    learnt = _MESSAGES * towards + _NATIVE * native
    croatian, serbian = _softmax((0.0, learnt + weighed(counts) + _SHIFT))
    return croatian, serbian, Traits(float(third), float(native), counts)


def _with_strangers(shares: dict[str, float], piece: Piece) -> dict[str, float]:
    """A language that the model was not trained on is named by the compact detector.

    Asked only where the model is not sure: the detector knows more languages, each less well.
    """
    strange = shares.pop(_STRANGE)
    best = max(shares.values())
    if best >= _SURE:
        return shares
    code, probability = _elsewhere(piece)
    if code and code not in shares and probability >= _FOREIGN and code not in _NEIGHBOURS:
        return {code: max(strange, best), **{c: p * (1 - best) for c, p in shares.items()}}
    if strange >= _SURE:
        return {UNKNOWN: strange, **shares}
    return {c: p / (1 - strange) for c, p in shares.items()}


_NEIGHBOURS = frozenset({"bs", "sh", "hr", "sr"})


@cache
def identifier() -> Any:
    """The compact detector of a hundred languages; loads in 30 ms, is kept."""
    import gcld3

    return gcld3.NNetLanguageIdentifier(min_num_bytes=0, max_num_bytes=8192)


_CODES = {"iw": "he", "no": "nb", "und": ""}
_IN_CYRILLIC = frozenset({"be", "bg", "kk", "ky", "mk", "mn", "ru", "sr", "tg", "uk"})
_IN_NEITHER = frozenset(
    {
        "am", "ar", "bn", "el", "fa", "gu", "he", "hi", "hy", "ja", "ka", "km", "kn", "ko", "lo",
        "ml", "mr", "my", "ne", "pa", "ps", "sd", "si", "ta", "te", "th", "ur", "yi", "zh",
    }
)  # fmt: skip
"""Of the compact detector's languages; the others are written in Latin script."""


def _elsewhere(piece: Piece) -> tuple[str, float]:
    """The compact detector's answer; no code where it has none, means transliterated text, or
    names a language that is not written in the script of the piece."""
    harmless = piece.text.encode("utf-8", "replace").decode()
    found = identifier().FindLanguage(harmless)
    code = _CODES.get(str(found.language), str(found.language))
    return (code if _written(code, piece.script) else ""), float(found.probability)


def _written(code: str, script: str) -> bool:
    """Of a text that says the same again and again the detector says Japanese."""
    if script == "Cyrl":
        return code in _IN_CYRILLIC
    if script == "Latn":
        return code not in _IN_CYRILLIC | _IN_NEITHER and not code.endswith("-Latn")
    return code in _IN_NEITHER and (code != "ja" or script in {"Jpan", "Hani"})


_COMMON = "абвгдежзклмнопрстуфхцчш"
_LETTERS = {
    "sr": "иђјљњћџ", "mk": "иѓѕјљњќџѐѝ", "ru": "иёйщъыьэюя", "bg": "ийщъьюяѝ",
    "uk": "иґєіїйщьюя", "be": "ёіўйыьэюя",
    "de": "äöüßéà", "en": "éèêëïöôçñ", "sl": "čšžćđ", "sh": "čšžćđ", "cs": "áčďéěíňóřšťúůýž",
    "sk": "áäčďéíĺľňóôŕšťúýž", "pl": "ąćęłńóśźż", "nl": "éëèïóöü", "da": "æøåéö", "nb": "æøåéòôö",
    "sv": "åäöéü", "fi": "åäöšž", "et": "äöüõšž", "lv": "āčēģīķļņšūž", "lt": "ąčęėįšųūž",
    "fr": "àâæçéèêëîïôœùûüÿ", "es": "áéíñóúüª", "pt": "áâãàçéêíóôõúüª", "it": "àèéìíîòóù",
    "ro": "ăâîșşțţ", "ca": "àçèéíïòóúüñ", "hu": "áéíóöőúüű", "tr": "çğıöşüâîûi\u0307",
    "sq": "çë", "is": "áðéíóúýþæö", "eu": "ñ", "id": "é",
}  # fmt: skip
"""Beyond `_COMMON` and the ASCII letters."""


def _strange_letters(text: str, classes: tuple[str, ...]) -> Any:
    """What to take off each class for letters that its language does not have.

    One such letter in a short text settles it; in a long one it is a name or a quotation.
    """
    import numpy as np

    off = np.zeros(len(classes))
    if text.isascii():
        return off
    counts = {letter: text.count(letter) for letter in set(text) if letter > "z"}
    letters = len(text) - text.count(" ")
    for place, code in enumerate(classes):
        if code in _LETTERS:
            own = _LETTERS[code] + _COMMON
            outside = sum(count for letter, count in counts.items() if letter not in own)
            off[place] = 6 * min(1.0, 60 * outside / letters)
    return off
