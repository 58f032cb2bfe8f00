"""Whether the text layer of a page says what the page shows: measured on its words."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources

_LEAST_LETTERS = 40
_LEAST_WORDS = 20
_UNMAPPED = 0.25
_COMMON = 0.02
_ODD, _ODD_OF_FEW = 0.1, 0.25
_FEW, _MANY = 6, 60
_PIECE = re.compile(r"\S+")
_EDGE = re.compile(r"^\W+|\W+$")
_GLYPH_NAME = re.compile(r"\(cid:\d+\)|GLYPH<\w*>|\bglyph\d+\b", re.IGNORECASE)
_VOWELS = frozenset("aeiouyаеиоуыэюяёіїєъ")
_CONSONANTS_IN_A_ROW = re.compile(r"[bcdfghjklmnpqrstvwxzбвгджзйклмнпрстфхцчшщђјљњћџѓќѕ]{6}")
_VOWELS_IN_A_ROW = re.compile(r"[aeiouаеиоуыэюя]{4}")
_CASE = re.compile(r"[a-zа-я][A-ZА-Я][a-zа-я]*[A-ZА-Я]|[a-zа-я]{2}[A-ZА-Я]{2}")
_INSIDE = re.compile(r"\w[^\w\s'’.,/:@&_\-‐–—\u00ad+()\[\]]\w")


def broken(words: Iterable[str], unmapped: int) -> str:
    """Why the words cannot be what a reader of the page sees; empty if they can.

    Args:
        words: what the text layer says, in any order.
        unmapped: how many of its letters have no character in the file.
    """
    text = " ".join(words)
    pieces = _PIECE.findall(text)
    letters = sum(map(len, pieces))
    if letters < _LEAST_LETTERS:
        return ""
    named = sum(len(found[0]) for found in _GLYPH_NAME.finditer(text))
    nothing = max(unmapped, sum(map(_says_nothing, text)) + named) / letters
    if nothing >= _UNMAPPED:
        return "many of its glyphs have no character"
    if _is_gibberish(pieces):
        return "its letters make no words"
    return ""


def common_share(pieces: Iterable[str]) -> float:
    """How many of the words are such as texts of the accepted languages are full of, 0 to 1."""
    words = [_EDGE.sub("", piece).lower() for piece in pieces]
    words = [word for word in words if len(word) > 2]
    return sum(word in _common() for word in words) / len(words) if words else 0.0


def _says_nothing(letter: str) -> bool:
    """Private use, unassigned, control, or the mark of a character that is not known."""
    return letter == "\ufffd" or unicodedata.category(letter) in {"Co", "Cn", "Cc"}


def _is_gibberish(pieces: Sequence[str]) -> bool:
    """No words that every text has, and shapes that words do not have.

    Both are asked for: lists of names or codes have few common words, and words of a language that
    we do not know may have unusual shapes, but hardly both in such numbers.
    """
    words = {word for word in (_EDGE.sub("", piece) for piece in pieces) if len(word) > 2}
    words = {w for w in words if sum(map(str.isalpha, w)) * 2 > len(w) and not _has_digit(w)}
    known = [word for word in words if _script(word)]
    plain = [word for word in known if not _is_abbreviation(word)]
    if len(plain) * 2 > len(known):
        known = plain
    if len(known) < _LEAST_WORDS or len(known) * 2 < len(words):
        return _is_shifted(pieces)
    common = sum(word.lower() in _common() for word in known) / len(known)
    least = _ODD if len(known) >= _MANY else _ODD_OF_FEW
    return common < _COMMON and sum(map(_is_odd, known)) / len(known) >= least


def reads_as_words(pieces: Iterable[str]) -> bool:
    """Whether letters without a character in the file make words all the same, as they may."""
    words = {_EDGE.sub("", piece) for piece in pieces}
    words = {word for word in words if len(word) > 2 and word.isalpha()}
    odd = sum(map(_is_odd, words))
    return len(words) >= _FEW and odd <= _ODD * len(words)


def _is_shifted(pieces: Sequence[str]) -> bool:
    """Letters that became signs: pieces in which signs stand among letters, nearly throughout."""
    long = [piece for piece in pieces if len(piece) > 3 and not piece.isdigit()]
    if len(long) < _LEAST_WORDS:
        return False
    signs = sum(1 for piece in long if _INSIDE.search(piece)) / len(long)
    return signs > 0.5


def _is_abbreviation(word: str) -> bool:
    return word.isupper() and len(word) <= 5


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _script(word: str) -> str:
    """`latin`, `cyrillic`, `mixed` for letters of both; empty for others."""
    names = {unicodedata.name(letter, "").split(" ")[0] for letter in word if letter.isalpha()}
    if names <= {"LATIN"}:
        return "latin"
    if names <= {"CYRILLIC"}:
        return "cyrillic"
    return "mixed" if names <= {"LATIN", "CYRILLIC"} else ""


def _is_odd(word: str) -> bool:
    """Not a word of a European language by its shape."""
    plain = unicodedata.normalize("NFD", word)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter)).lower()
    if _script(word) == "mixed" or _CASE.search(word) or _INSIDE.search(word):
        return True
    vowels = sum(letter in _VOWELS for letter in plain)
    return (
        vowels == 0
        or vowels * 6 < len(plain)
        or vowels == len(plain)
        or bool(_CONSONANTS_IN_A_ROW.search(plain) or _VOWELS_IN_A_ROW.search(plain))
    )


@cache
def _common() -> frozenset[str]:
    """Words of three letters and more that texts of the accepted languages are full of."""
    folder = resources.files("kernel").joinpath("stopwords")
    words: set[str] = set()
    for file in folder.iterdir():
        lines = file.read_text(encoding="utf-8").splitlines()
        words.update(word for line in lines if not line.startswith("#") for word in line.split())
    return frozenset(word for word in words if len(word) > 2)
