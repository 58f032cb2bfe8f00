"""Words of eight languages as index terms, and questions as groups of terms.

A word becomes its stem and, outside English, its first letters: inflection in German and the Slavic
languages outruns light stemmers, and of all that was measured "the stem, else the beginning" found
most. Terms are marked by the analyser that made them
(`de:frist`, its beginning `de~frist`), so languages do not collide in one index; what is matched
as typed (numbers, identifiers, `§ 5`) is marked `=` and is the same in every language.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from typing import Literal

LANGUAGES = ("en", "de", "bg", "ru", "sr", "mk", "hr", "sl")
"""The languages with an analyser of their own; Croatian and Serbian share theirs."""

Mode = Literal["legacy", "or", "and_or"]
"""legacy: every word; or: any word; and_or: passages with every word before those with some."""

MAX_GROUPS = 64
"""Words of a question that are looked up; further ones are left out."""

_BEGINNING = 5
_LONGEST = 64  # letters of a term; Postgres takes 2,046 bytes
_OTHER = "xx"
_ANALYSER = {language: language for language in LANGUAGES} | {"hr": "sr"}

_TOKEN = re.compile(
    r"§+\s*(?P<section>\d+[^\W\d_]?)\b"
    r"|(?P<number>\d{1,3}(?:[ .,]\d{3})+(?![\w.,]\d))"
    r"|(?P<compound>[^\W_]+(?:[-_./:@+#&'’]+[^\W_]+|\([^\W_]{1,4}\))+)"
    r"|(?P<word>[^\W_]+)"
)
_PART = re.compile(r"[^\W_]+")
_INVISIBLE = re.compile("[\u00ad\u0300\u0301\u200b-\u200f\u2060\ufeff]")
_POSSESSIVE = re.compile(r"['’]s?$|['’]s(?=\W|$)")


@dataclass(frozen=True, slots=True)
class Word:
    """One place of a text: the terms that stand for it.

    `extra`: it repeats words that stand beside it (`§ 5`, `kb_url` beside `kb` and `url`), so a
    passage need not hold it to hold every word.
    """

    terms: tuple[str, ...]
    extra: bool = False


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """A question, analysed in every language: a word is a group of terms, any of which will do."""

    words: tuple[Word, ...]

    @property
    def terms(self) -> list[str]:
        """All terms, beside `groups`."""
        return [term for word in self.words for term in word.terms]

    @property
    def groups(self) -> list[int]:
        """For each of `terms` the number of its word."""
        return [number for number, word in enumerate(self.words) for _ in word.terms]

    @property
    def required(self) -> list[int]:
        """Numbers of the words that a passage must hold to hold every word."""
        return [number for number, word in enumerate(self.words) if not word.extra]

    def tsquery(self, mode: Mode, terms: Collection[str]) -> str:
        """What `terms @@ …::tsquery` must match: every word for legacy, else any of `terms`."""
        words = [w.terms for w in self.words if mode != "legacy" or not w.extra]
        groups = [[_quoted(term) for term in word if term in terms] for word in words]
        joined = ["(" + " | ".join(group) + ")" for group in groups if group]
        return (" & " if mode == "legacy" else " | ").join(joined)


def analyse(text: str, language: str) -> list[Word]:
    """The words of a passage in order, stop words left out. An unknown language has no stemmer."""
    analyser = _ANALYSER.get(language, _OTHER)
    found: list[Word] = []
    for token in _tokens(text):
        if token.kind == "exact":
            found += _exact(token, (analyser,))
        elif not _is_stop(token.text, analyser):
            found.append(Word(_terms(token.text, analyser)))
    return found


def query_terms(text: str, languages: Iterable[str] = LANGUAGES) -> KeywordQuery:
    """The question as groups of terms, each word analysed as a word of every language.

    A word that is a stop word of the question's own language (the one with most stop words in
    it) is left out for all: `die` of a German question does not look for English deaths.
    """
    analysers = tuple(dict.fromkeys([*(_ANALYSER.get(x, _OTHER) for x in languages), _OTHER]))
    tokens = list(_tokens(text))
    likely = _likely(tokens, analysers)
    words: list[Word] = []
    for token in tokens:
        if token.kind == "exact":
            words += _exact(token, analysers, likely)
        elif not any(_is_stop(token.text, analyser) for analyser in likely):
            own = [a for a in analysers if not _is_stop(token.text, a)]
            words.append(Word(tuple(dict.fromkeys(t for a in own for t in _terms(token.text, a)))))
    return KeywordQuery(tuple(dict.fromkeys(words))[:MAX_GROUPS])


def tsvector(words: Iterable[Word]) -> str:
    """Postgres' text form of a tsvector; a word's terms share its position, from 1.

    Postgres keeps at most 255 positions of a term, and none above 16,383.
    """
    places: dict[str, list[int]] = {}
    for position, word in enumerate(words, 1):
        for term in word.terms:
            places.setdefault(term, []).append(position)
    return " ".join(f"{_quoted(term)}:{','.join(map(str, p))}" for term, p in places.items())


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    kind: Literal["word", "exact"]
    extra: bool = False
    before: str = ""  # of a number: the word right before it, as in `Article 33`


def _quoted(term: str) -> str:
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def _tokens(text: str) -> Iterator[_Token]:
    """Words and exact terms; a number is told the word before it."""
    plain = _plain_letters(text)
    before, end = "", 0
    for match in _TOKEN.finditer(plain):
        tokens = list(_of_match(match))
        at = _first_number(tokens)
        if at is not None and before and not plain[end : match.start()].strip(" ."):
            tokens[at] = replace(tokens[at], before=before)
        yield from tokens
        before, end = tokens[-1].text if tokens[-1].kind == "word" else "", match.end()


def _plain_letters(text: str) -> str:
    """Compatible forms and cases made one; without stress marks, hyphenation points and ё."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", folded)).replace("ё", "е")


def _first_number(tokens: Sequence[_Token]) -> int | None:
    numbers = (at for at, token in enumerate(tokens) if token.text.isdecimal())
    return next(numbers, None)


def _of_match(match: re.Match[str]) -> Iterator[_Token]:
    whole = match[0]
    if match["section"]:
        yield _Token(f"§{match['section']}", "exact", extra=True)
        yield _Token(match["section"], "exact")
    elif match["number"]:
        yield _Token(re.sub(r"\D", "", whole), "exact")
    elif match["compound"]:
        yield from _of_compound(_POSSESSIVE.sub("", whole))
    else:
        yield _plain(whole)


def _of_compound(whole: str) -> Iterator[_Token]:
    """`kb_url`, `2016/679`, `33(1)` as typed and in parts; `e-mail` as one word and in parts."""
    parts = _PART.findall(whole)
    if len(parts) > 1:
        joined = "".join(parts)
        if set(whole) - set(joined) <= {"-"} and joined.isalpha():
            yield _Token(joined[:_LONGEST], "word")
        else:
            yield _Token(whole[:_LONGEST], "exact", extra=True)
    yield from map(_plain, parts)


def _plain(word: str) -> _Token:
    return _Token(word[:_LONGEST], "word" if word.isalpha() else "exact")


def _exact(token: _Token, analysers: Sequence[str], likely: Iterable[str] = ()) -> Iterator[Word]:
    """As typed; and `Article 33` as one term more: the word tells 33 from other numbers."""
    yield Word((f"={token.text}",), extra=token.extra)
    own = [a for a in analysers if not _is_stop(token.before, a)] if token.before else []
    if own and not any(_is_stop(token.before, analyser) for analyser in likely):
        stems = (f"{a}:{_stem(token.before, a)} {token.text}" for a in own)
        yield Word(tuple(dict.fromkeys(stems)), extra=True)


def _terms(word: str, analyser: str) -> tuple[str, ...]:
    """The stem and, but in English, how the word begins: stemmers cut `защите` to `защ`."""
    stem, letters = _stem(word, analyser), _letters(word, analyser)
    if analyser == "en" or len(letters) < _BEGINNING:
        return (f"{analyser}:{stem}",)
    return (f"{analyser}:{stem}", f"{analyser}~{letters[:_BEGINNING]}")


def _likely(tokens: Iterable[_Token], analysers: Iterable[str]) -> list[str]:
    """The language, or languages, that most words are stop words of."""
    words = [token.text for token in tokens if token.kind == "word"]
    votes = {a: sum(_is_stop(word, a) for word in words) for a in analysers}
    most = max(votes.values(), default=0)
    return [analyser for analyser, count in votes.items() if count == most > 0]


def _is_stop(word: str, analyser: str) -> bool:
    return _letters(word, analyser) in _stop_words(analyser)


@cache
def _stop_words(analyser: str) -> frozenset[str]:
    if analyser == _OTHER:
        return frozenset()
    file = resources.files("kernel").joinpath("stopwords", f"{analyser}.txt")
    lines = file.read_text("utf-8").splitlines()
    words = {word for line in lines for word in line.partition("#")[0].split()}
    return frozenset(_letters(word, analyser) for word in words)


@lru_cache(maxsize=100_000)
def _stem(word: str, analyser: str) -> str:
    """The stem, its letters folded. A word that is all ending stays whole."""
    if analyser in _ENDINGS:
        shortened = word
        for least, endings in _ENDINGS[analyser]:
            shortened = _without(shortened, endings, least)
    elif analyser == _OTHER:
        shortened = word
    else:
        before = word.translate(_LATIN) if analyser == "sr" else word
        shortened = _snowball(analyser)(before)
    return _letters(shortened or word, analyser)


@lru_cache(maxsize=100_000)
def _letters(word: str, analyser: str) -> str:
    """Serbian in Latin script; Latin letters without their marks. Cyrillic й stays й."""
    latin = word.translate(_LATIN) if analyser == "sr" else word
    if latin.isascii() or analyser in _CYRILLIC:
        return latin
    parts = unicodedata.normalize("NFD", latin.translate(_UNMARKED))
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


@cache
def _snowball(analyser: str) -> Callable[[str], str]:
    import snowballstemmer

    stem: Callable[[str], str] = snowballstemmer.stemmer(_SNOWBALL[analyser]).stemWord
    return stem


def _without(word: str, endings: Sequence[str], least: int) -> str:
    """The word without the longest of `endings` that leaves `least` letters."""
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return word[: -len(ending)]
    return word


def _longest_first(endings: str) -> tuple[str, ...]:
    return tuple(sorted(endings.split(), key=len, reverse=True))


_SNOWBALL = {"en": "english", "de": "german", "ru": "russian", "sr": "serbian"}
_CYRILLIC = frozenset({"ru", "bg", "mk"})
_UNMARKED = str.maketrans({"đ": "dj", "ł": "l", "ø": "o", "æ": "ae", "œ": "oe"})
_LATIN = str.maketrans(
    dict(zip("абвгдђежзијклмнопрстћуфхцчш", "abvgdđežzijklmnoprstćufhcčš", strict=True))
    | {"љ": "lj", "њ": "nj", "џ": "dž"}
)

# Snowball has no stemmer for these three: the article first, where there is one, then an ending;
# each with the letters that it must leave.
_ENDINGS = {
    "bg": (
        (4, _longest_first("ият ията ите ето ът ят ата ото та то те ия я а")),
        (3, _longest_first("""
            овете евете овци ове еве ища ане ение ения ание ания ете ят ат аш иш ам им ем еш ах ал
            ял ил ла ло ли ки и е о а я у й ен на но ни ък""")),
    ),
    "mk": (
        (4, _longest_first("от та то те ов ва во ве он")),
        (3, _longest_first("""
            увањето увањата ување увања увате увам увал ува уваат ови еви ета ање ања ење ења ит
            ат ет ме те ше л ла ло ле и е о а у ен на но ни ски ска ско""")),
    ),
    "sl": (
        (3, _longest_first("""
            anjem anja anje anju enja enje enju osti ostjo ost skega skemu skih skim ski ska sko
            ega emu imi ima ih im em om ov ev ami ama ah am ajo ejo ijo ati iti eti aš eš iš al il
            el ala ila ela ali ili alo ilo ale ile amo imo emo ate ite ete a e i o u je jo ja ju n
            na ni no ne nih nim nega""")),
    ),
}  # fmt: skip
