"""Names in source code that look like other names: look-alike letters, invisible characters.

After Boucher and Anderson, "Trojan Source: Invisible Vulnerabilities" (2021), and the confusable
identifiers of Unicode Technical Standard 39. Prose is left alone: scans, brand names with endings
of another script and hints for line breaks have such words without any harm.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from services.scanner.normalise import Place

# Letters that are drawn like Latin ones in most fonts; Greek small letters are mathematics.
_TWINS = frozenset("асеорхуіјѕһԁԛԝӏѵАВСЕНІЈКМОРЅТХУΑΒΕΖΗΙΚΜΝΟΡΤΥΧοօոսհց")
_OTHER = r"\u0370-\u058f\u13a0-\u13f5"
_LATIN_BEFORE = re.compile(rf"[{_OTHER}](?:(?=[A-Za-z_])|(?<=[A-Za-z_].))")
_OTHER_BEFORE = re.compile(rf"[A-Za-z](?:(?=[{_OTHER}])|(?<=[{_OTHER}].))")
_DECLINED = re.compile(r"[A-Za-z0-9_]+[^\W\d_a-zA-Z]+")
_NAME = re.compile(r"\w{1,80}")
_UNSEEN = "\u200b\u200c\u200d\u2060-\u2064\u180e\u034f\u115f\u1160\u3164\uffa0"
_CUT_NAME = re.compile(rf"[{_UNSEEN}](?<=[A-Za-z0-9_].)[{_UNSEEN}]*+(?=[A-Za-z0-9_])")
_UNSEEN_RUN = re.compile(f"[{_UNSEEN}]+")
_LONGEST_NAME = 80
_PART = re.compile(rf"[\w{_UNSEEN}]{{0,80}}")
_CODE = re.compile(
    r"\w\(|[;{}]\s*$|=>|->|::|[=!]=|[+:]=|^\s*(?:def|func?|fn|function|class|import|include|let|var"
    r"|const|return|if|for|while|public|private|static|void|int|bool|string)\b[^.!?]*$"
    r"|^\s*\w+\s*=\s*\S|^\s*\w+:\s*$"
)
_FENCE = re.compile(r"^ {0,3}(?:`{3,}|~{3,})", re.M)
_LONGEST_LINE = 400
_MOST = 500  # names of a text that are looked at; a flood says no more
_MANY = 6  # names with hints for line breaks: an interface is documented, nobody is deceived
_FEW = 4  # words of two scripts
_NEAR = 200  # within so many characters
_CYRILLIC = re.compile(r"[\u0400-\u052f]")


def mixed_words(text: str) -> Iterator[Place]:
    """Words of letters of more than one script, in ascending order; Latin is one of them."""
    if text.isascii():
        return
    few = text.count("e") + text.count("a") < text.count("е") + text.count("а")
    done = 0
    for seam in (_OTHER_BEFORE if few else _LATIN_BEFORE).finditer(text):
        start = seam.start()
        if start < done:
            continue
        while start > done and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1
        word = _NAME.match(text, start)
        if word is not None:
            done = word.end()
            yield word.span()


def lookalikes_in_code(text: str, mixed: Sequence[Place]) -> Iterator[Place]:
    """Names in code, mostly of Latin letters, in which the others are drawn like Latin ones."""
    disguised = islice((place for place in mixed if _is_disguised(text[slice(*place)])), _MOST)
    fences: list[int] | None = None
    for start, end in disguised:
        fences = _fences(text) if fences is None else fences
        if _in_code(text, start, end, fences):
            yield start, end


def dense_lookalikes(text: str, mixed: Sequence[Place]) -> Iterator[Place]:
    """Several such words close together, in code or not: no scan is so bad and still so good.

    Each word counts once. Endings do not count, since Slavic texts decline foreign names, nor do
    abbreviations, and where people write in Cyrillic more words have the wrong keyboard's letters.
    """
    found: list[tuple[str, int, int]] = []
    for start, end in mixed:
        word = text[start:end]
        if word.isupper() or not _is_disguised(word) or _DECLINED.fullmatch(word):
            continue
        found = [f for f in found if f[0] != word and end - f[1] <= _NEAR] + [(word, start, end)]
        if len(found) >= _FEW and len(found) >= _needed(text, found[0][1], end):
            yield found[0][1], end
            found = []


def _needed(text: str, start: int, end: int) -> int:
    around = text[max(0, start - _NEAR) : start] + text[end : end + _NEAR]
    latin = sum(c.isascii() and c.isalpha() for c in around)
    return 2 * _FEW if len(_CYRILLIC.findall(around)) > latin else _FEW


def invisible_in_code(text: str) -> Iterator[Place]:
    """Invisible characters within a name in code that make it another name.

    A zero-width space is a hint for a line break where many names have one, or where the same name
    never stands without it.
    """
    if text.isascii():
        return
    cuts = islice(_CUT_NAME.finditer(text), _MOST)
    names = [(m.span(), _whole_name(text, m.start())) for m in cuts]
    hints = {text[slice(*place)] for _, place in names if _has_hint(text, place)}
    fences = _fences(text) if names else []
    twins: dict[str, bool] = {}
    for span, place in names:
        if _in_code(text, *place, fences):
            plain = _UNSEEN_RUN.sub("", text[slice(*place)])
            if _has_hint(text, place) and plain not in twins:
                found = len(hints) < _MANY and re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", text)
                twins[plain] = bool(found)
            if twins.get(plain, True):
                yield span


def _has_hint(text: str, place: Place) -> bool:
    return "\u200b" in text[slice(*place)]


def _whole_name(text: str, at: int) -> Place:
    """The name around a place, invisible characters included."""
    start = at
    while start > 0 and at - start < _LONGEST_NAME and _PART.fullmatch(text, start - 1, start):
        start -= 1
    match = _PART.match(text, start)
    return start, match.end() if match else at


def _is_disguised(word: str) -> bool:
    foreign = [c for c in word if not c.isascii()]
    latin = sum(c.isascii() and c.isalpha() for c in word)
    return latin > len(foreign) and all(c in _TWINS for c in foreign)


def _fences(text: str) -> list[int]:
    """Where code blocks begin and end, in turn."""
    return [match.start() for match in _FENCE.finditer(text)]


def _in_code(text: str, start: int, end: int, fences: list[int]) -> bool:
    """Is the place called like a function, in a line that looks like code, or in a code block?"""
    if text[end : end + 1] == "(":
        return True
    low = max(text.rfind("\n", max(0, start - _LONGEST_LINE), start) + 1, start - _LONGEST_LINE)
    high = text.find("\n", end, end + _LONGEST_LINE)
    line = text[low : high if high >= 0 else end + _LONGEST_LINE]
    return bisect_left(fences, start) % 2 == 1 or _CODE.search(line) is not None
