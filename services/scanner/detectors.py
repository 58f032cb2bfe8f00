"""Signs that no phrase can name: reading direction, invisible characters, hidden markup, spam."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from services.scanner.identifiers import (
    dense_lookalikes,
    invisible_in_code,
    lookalikes_in_code,
)
from services.scanner.normalise import FILLERS, LETTER, STRANGE, ZERO_WIDTH
from services.scanner.readings import LATIN_LOOKALIKES

Span = tuple[int, int]

_RTL = r"\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff"
_RTL_LETTER = re.compile(f"[{_RTL}]")
NEARBY = 400
"""Characters around an invisible one that its detectors look at."""

_LTR_LETTER = re.compile(r"[A-Za-z\u00c0-\u024f\u0370-\u052f]")
_OVERRIDE = re.compile(r"[\u202d\u202e]")
_EMBEDDING = re.compile(r"[\u202b\u2067]")
_MARKS = re.compile(r"[\u202a\u2066\u2068]")
_NEARBY = 200  # characters on each side that tell which script a place is written in


def bidi_override(text: str) -> Iterator[Span]:
    """LRO and RLO, except where all letters nearby are right-to-left ones that RLO leaves alone."""
    block, foreign = -1, False
    for match in _OVERRIDE.finditer(text):
        start, end = match.span()
        if start // _NEARBY != block:
            block = start // _NEARBY
            low = block * _NEARBY
            foreign = _right_to_left(text[max(0, low - _NEARBY) : low + 2 * _NEARBY])
        affected = re.split(r"[\u202c\n]", text[end : end + _NEARBY], maxsplit=1)[0]
        wrong = _LTR_LETTER if match.group() == "\u202e" else _RTL_LETTER
        if not foreign or wrong.search(affected):
            yield start, end


def bidi_embedding(text: str) -> Iterator[Span]:
    """RLE and RLI in a place without right-to-left letters."""
    yield from _stray(text, _EMBEDDING)


def bidi_marks(text: str) -> Iterator[Span]:
    """LRE, LRI and FSI in a place without right-to-left letters."""
    yield from _stray(text, _MARKS)


def _stray(text: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    for match in pattern.finditer(text):
        if not _RTL_LETTER.search(text, max(0, match.start() - _NEARBY), match.end() + _NEARBY):
            yield match.span()


def _right_to_left(text: str) -> bool:
    return len(_RTL_LETTER.findall(text)) > 2 * len(_LTR_LETTER.findall(text))


_EUROPEAN = r"A-Za-z\u00c0-\u024f\u0370-\u052f"
_BETWEEN = ZERO_WIDTH.replace("\u00ad", "")
_IN_WORD = re.compile(rf"(?<=[{_EUROPEAN}])[{_BETWEEN}]+(?=[{_EUROPEAN}])")
_DENSE = re.compile(rf"(?:[{_EUROPEAN}][{ZERO_WIDTH}]{{1,4}}+\s?){{5,}}")
_RUN = re.compile(r"[\u200b-\u200d\u2060-\u2064\ufeff\u034f\u180e]{9,}")
_TAGS = re.compile(r"(\U0001f3f4)?([\U000e0020-\U000e007e]{2,}+)(\U000e007f)?")
_SELECTORS = re.compile(r"[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}")


def zero_width_in_words(text: str) -> Iterator[Span]:
    """Invisible characters between letters of a European script."""
    return (m.span() for m in _IN_WORD.finditer(text))


def zero_width_dense(text: str) -> Iterator[Span]:
    """Letter after letter parted by invisible characters."""
    return (m.span() for m in _DENSE.finditer(text))


def invisible_run(text: str) -> Iterator[Span]:
    """Many invisible characters in a row: they carry data."""
    return (m.span() for m in _RUN.finditer(text))


def tag_characters(text: str) -> Iterator[Span]:
    """Unicode tags, except those that make a flag."""
    for match in _TAGS.finditer(text):
        if not (match.group(1) and match.group(3) and len(match.group(2)) <= 6):
            yield match.span(2)


def variation_selectors(text: str) -> Iterator[Span]:
    """Several variation selectors in a row: no glyph has more than one."""
    return (m.span() for m in _SELECTORS.finditer(text))


def lookalikes(text: str, mixed: Sequence[Span]) -> Iterator[Span]:
    """Words mostly of Latin letters in which some are replaced by look-alikes of other scripts."""
    for start, end in mixed:
        word = text[start:end]
        foreign = [c for c in word if not c.isascii()]
        latin = sum(c.isascii() and c.isalpha() for c in word)
        if latin > len(foreign) and all(c.casefold() in LATIN_LOOKALIKES for c in foreign):
            yield start, end


_CLOAK = re.compile(
    r"<(\w{1,12})\b[^<>]{0,300}?(?:display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?![.\d])"
    r"|font-size\s*:\s*[01](?:px|pt|em)?(?![.\d])|(?<!-)color\s*:\s*(?:white|#fff(?:fff)?|transparent)\b"
    r"|(?:left|top|text-indent)\s*:\s*-\d{3,}|clip\s*:\s*rect\(0|\shidden(?=[\s>]))[^<>]{0,300}>",
    re.I,
)
_LATEX = re.compile(r"\\(?:text)?color\{white\}\{?|\\phantom\{|\\tiny\b|\\fontsize\{[01](?:pt)?\}")
_CLOAKED = 4000  # characters that one hiding tag can hide


def hidden_spans(text: str) -> list[Span]:
    """Where `text` itself says that a reader will not see it: comments, invisible styles."""
    spans = list(_comments(text))
    if "]:" in text and _speaks_of(_REFERENCE_NAMES, text):
        spans += (m.span() for m in _REFERENCE_COMMENT.finditer(text))
    if "<" in text and _speaks_of(_CLOAK_HINTS, text.lower()):
        for match in _CLOAK.finditer(text):
            inner = _lower(text[match.end() : match.end() + _CLOAKED])
            close = inner.find(f"</{match.group(1).lower()}")
            spans.append((match.end(), match.end() + max(close, 0)))
    if "\\" in text:
        for match in _LATEX.finditer(text):
            close = text.find("}", match.end(), match.end() + _CLOAKED)
            spans.append((match.end(), close if close >= 0 else match.end()))
    return _merged(spans)


_CLOAK_HINTS = ("display", "visibility", "opacity", "font-size", "color", "left", "clip", "hidden")
_REFERENCE_NAMES = ("[//]:", "[comment]:", "[_]:")
_REFERENCE_COMMENT = re.compile(r"^\[(?://|comment|_)\]:[ ]?(?:#|<>)[ ]?\S[^\n]{0,2000}", re.M)


def _speaks_of(words: Sequence[str], text: str) -> bool:
    return any(word in text for word in words)


def _lower(text: str) -> str:
    """Each letter small, as long as it stays one."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(small if len(small := c.lower()) == 1 else c for c in text)


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _comments(text: str) -> Iterator[Span]:
    """Comments; one that is never closed ends with its paragraph."""
    start, close = text.find("<!--"), 0
    while start >= 0:
        close = text.find("-->", start + 4) if close >= 0 else close
        end = close + 3 if close >= 0 else text.find("\n\n", start, start + _CLOAKED)
        end = end if end >= 0 else min(len(text), start + _CLOAKED)
        yield start, end
        start = text.find("<!--", end)


_LINE = 4000  # characters of a line that are searched for its quotation marks


class Quotes:
    """Which places of a Markdown text are quoted: code, block quotes, quotation marks."""

    _FENCE = re.compile(r"^[ >]{0,6}(`{3,}|~{3,})[^\n]*\n", re.M)
    _MARKS = re.compile(
        r"`[^`\n]{1,250}`|\"[^\"\n]{1,250}\"|“[^”\n]{1,250}”|„[^“”\"\n]{1,250}[“”\"]|«[^»\n]{1,250}»"
        r"|»[^«\n]{1,250}«|(?<!\w)[‘‚'][^’‘'\n]{1,250}[’‘'](?!\w)"
    )

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences = self._fenced()
        self._starts = [start for start, _ in self._fences]
        self._read: tuple[int, int] = (0, 0)
        self._marked: list[Span] = []

    def _fenced(self) -> list[Span]:
        spans: list[Span] = []
        opened: tuple[str, int] | None = None
        for match in self._FENCE.finditer(self._text + "\n"):
            mark = match.group(1)
            if opened is None:
                opened = (mark, match.end())
            elif mark.startswith(opened[0]):
                spans.append((opened[1], match.start()))
                opened = None
        return spans

    def is_code(self, start: int, end: int) -> bool:
        """Is all of `text[start:end]` in one fenced block?"""
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and end <= self._fences[at][1]

    def holds(self, start: int, end: int) -> bool:
        """Is all of `text[start:end]` quoted?"""
        if self.is_code(start, end):
            return True
        first = self._text.rfind("\n", max(0, start - _LINE), start) + 1
        if re.match(r" {0,3}>", self._text[first : first + 4]):
            return True
        if start - first > _LINE:  # begins at the same place for all that is near
            first = start - _LINE - start % _LINE
        after = self._text.find("\n", end, first + 3 * _LINE)
        spans = self._in_marks(first, after if after >= 0 else first + 3 * _LINE)
        at = bisect_left(spans, (start, 0)) - 1
        return at >= 0 and end < spans[at][1]

    def _in_marks(self, low: int, high: int) -> list[Span]:
        """What stands between quotation marks in a line, or in a part of a long one."""
        if self._read != (low, high):
            self._read = low, high
            self._marked = [m.span() for m in self._MARKS.finditer(self._text, low, high)]
        return self._marked


_LINK = re.compile(r"https?://[^\s)>\]\"']{4,300}|www\.[^\s)>\]\"']{4,300}")
_LONGEST_LINK = 308
_SAMPLE = 100_000  # characters that show what the words of a text are
_FEWEST = 12  # lines
_LONG = 400  # characters; shorter texts have too few lines and words for a share to mean anything


def repeated_lines(text: str) -> Iterator[Span]:
    """One sentence makes up more than a third of all lines."""
    if len(text) < _LONG or text.count("\n") < _FEWEST - 1:
        return
    counts = Counter(line for line in _lines(text) if len(line) > 24 and line[0] not in "|-+=#")
    lines = counts.total()
    if lines < _FEWEST:
        return
    line, count = counts.most_common(1)[0]
    if count >= 10 and count * 3 > lines and len(set(line)) > 8:
        start = text.find(line)
        yield start, start + len(line)


def _lines(text: str) -> Iterator[str]:
    """The lines without blanks around them. Not all at once: a text may have millions."""
    at = 0
    while (end := text.find("\n", at + _SAMPLE)) >= 0:
        yield from map(str.strip, text[at:end].split("\n"))
        at = end + 1
    yield from map(str.strip, text[at:].split("\n"))


def link_density(text: str) -> Iterator[Span]:
    """Addresses of web pages make up more than half of the text."""
    if len(text) < _LONG or "://" not in text:
        return
    most = text.count("://") + text.count("www.")
    if most < 15 or most * _LONGEST_LINK * 2 <= len(text):
        return
    links = [m.span() for m in _LINK.finditer(text)]
    if len(links) >= 15 and sum(end - start for start, end in links) * 2 > len(text):
        yield links[0]


_OFTEN = 30  # times that a word is said before anybody minds
_AT_WORDS = ".,;:!?()[]\"'*_"


def stuffed_words(text: str) -> Iterator[Span]:
    """One longer word is more than a seventh of all longer words."""
    if len(text) < _LONG:
        return
    sample = text[:_SAMPLE].lower()
    # Cheap, and most texts have no longer word nearly so often, whatever marks stand at it.
    tokens = sample.split()
    least = max(10, len(tokens) // 52)
    counts = Counter([word for word in tokens if len(word) >= 5])
    if max(counts.values(), default=0) < least:
        return
    often = (word for word, count in counts.items() if count >= least)
    if not any(sample.count(word.strip(_AT_WORDS)) >= _OFTEN for word in often):
        return
    words = re.findall(rf"{LETTER}{{5,}}", sample)
    if not words:
        return
    word, count = Counter(words).most_common(1)[0]
    if count >= _OFTEN and count * 7 > len(words):
        start = text.lower().find(word)
        yield start, start + len(word)


def shouting(text: str) -> Iterator[Span]:
    """Exclamation marks in rows, again and again."""
    if "!!" not in text and "！" not in text:
        return
    rows = [m.span() for m in re.finditer(r"[!！]{3,}", text)]
    if len(rows) >= 5 and len(rows) * 400 > len(text):
        yield rows[0]


Detector = Callable[[str], Iterator[Span]]
DETECTORS: dict[str, Detector] = {
    "bidi-override": bidi_override,
    "bidi-embedding": bidi_embedding,
    "bidi-marks": bidi_marks,
    "zero-width-in-words": zero_width_in_words,
    "zero-width-dense": zero_width_dense,
    "invisible-run": invisible_run,
    "tag-characters": tag_characters,
    "variation-selectors": variation_selectors,
    "invisible-in-code": invisible_in_code,
    "repeated-lines": repeated_lines,
    "link-density": link_density,
    "stuffed-words": stuffed_words,
    "shouting": shouting,
}
"""By the name that a rule gives in `detector`."""

MIXED: dict[str | None, Callable[[str, Sequence[Span]], Iterator[Span]]] = {
    "lookalikes": lookalikes,
    "lookalikes-in-code": lookalikes_in_code,
    "dense-lookalikes": dense_lookalikes,
}
"""Those that read the words of more than one script, which are found once."""

NEAR_STRANGE = frozenset(DETECTORS) - {
    "invisible-in-code", "repeated-lines", "link-density", "stuffed-words", "shouting",
}  # fmt: skip
"""Those that have work only where there are invisible characters or marks of direction."""

NEEDS = dict.fromkeys(NEAR_STRANGE, STRANGE) | {"invisible-in-code": STRANGE | FILLERS}
"""The traits of a text one of which a detector needs."""


def inside(spans: Sequence[Span], start: int, end: int) -> bool:
    """Does one of the sorted, separate `spans` hold all of [start, end)?"""
    at = bisect_right(spans, (start, 1 << 62)) - 1
    return at >= 0 and end <= spans[at][1]
