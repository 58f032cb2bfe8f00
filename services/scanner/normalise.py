"""Texts as the rules read them, each with a map back to the characters it was made from."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u180e\u034f\u2061\u2062\u2063\u2064\u00ad"
"""Invisible characters without a reading direction; the soft hyphen is one of them."""

LETTER = r"[^\W\d_]"
_MARGIN = 160  # characters around a suspicious place that its reading takes in
_BLANK_CATEGORIES = {"Cf", "Mn", "Me"}
_HANGUL_FILLERS = "\u115f\u1160\u3164\uffa0"
_WHITESPACE = dict.fromkeys("\t\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029", " ") | {"\r": "\n"}
_PUNCTUATION = dict.fromkeys("‘’‚‛′ʼ`´", "'") | dict.fromkeys("“”„‟«»″", '"')
_PUNCTUATION |= dict.fromkeys("‐‑‒–—―−", "-") | {"：": ":", "∕": "/", "⁄": "/"}
_PUNCTUATION |= dict.fromkeys("·•∙‧・･⋅●", ".") | dict.fromkeys("¦∣│┃", "|")
_STROKES = {"đ": "d", "ł": "l", "ø": "o", "ı": "i", "ħ": "h", "ŧ": "t", "ɡ": "g", "ɑ": "a"}
_STROKES |= dict(
    zip("ƀɓɖɗƒɠɨɩʝƙƚɫɱɲŋɵƥɍʂƭʈʉʋⱳɏƴȥʐɇꞇ", "bbddfgiijkllmnnoprsttuvwyyzzet", strict=True)
)
_SMALL_CAPITALS = dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz", strict=True))
_BOXED = {chr(0x1F130 + i + shift): chr(97 + i) for i in range(26) for shift in (0, 32, 64, 182)}
_SPECIAL = _WHITESPACE | _PUNCTUATION | _STROKES | _SMALL_CAPITALS | _BOXED
_SYMBOL = "*"  # what pictures are read as: a gap between words, or a mark within one


Place = tuple[int, int]
"""First and last character of something, the last one excluded."""


@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """A text and, for each of its characters, the index of the character it came from."""

    text: str
    origin: "NDArray[np.intp]"

    @classmethod
    def of(cls, text: str, offset: int = 0) -> "Mapped":
        """`text` as it stands, at `offset` of its source."""
        import numpy as np

        return cls(text, np.arange(offset, offset + len(text)))

    def span(self, start: int, end: int) -> Place:
        """Where `text[start:end]` lies in the source, as a half-open span; not for empty spans."""
        first, last = int(self.origin[start]), int(self.origin[end - 1])
        return min(first, last), max(first, last) + 1

    def cut(self, start: int, end: int) -> "Mapped":
        """The part `text[start:end]`, still mapped to the same source."""
        return Mapped(self.text[start:end], self.origin[start:end])

    def replace(self, pattern: re.Pattern[str], with_: str) -> "Mapped":
        """As `re.sub`; what is put in is mapped to the start of what it replaces.

        `pattern` matches no empty strings, and `with_` names no groups.
        """
        spans = [match.span() for match in pattern.finditer(self.text)]
        if not spans:
            return self
        return Mapped(pattern.sub(with_, self.text), self._instead(spans, len(with_)))

    def _instead(self, spans: Sequence[Place], length: int) -> "NDArray[np.intp]":
        """The origins where so many characters stand instead of each span."""
        import numpy as np

        starts, ends = np.array(spans).T
        within = np.zeros(len(self.text) + 1, np.int8)
        within[starts] += 1
        within[ends] -= 1
        times = 1 - within[:-1].cumsum(dtype=np.int8)
        times[starts] = length
        return self.origin.repeat(times)

    def turned(self, pattern: re.Pattern[str]) -> "Mapped":
        """Every match of `pattern` backwards, each character with its own place."""
        parts: list[str] = []
        origin = self.origin.copy()
        at = 0
        for match in pattern.finditer(self.text):
            start, end = match.span()
            parts += (self.text[at:start], match.group()[::-1])
            origin[start:end] = self.origin[start:end][::-1]
            at = end
        return Mapped("".join((*parts, self.text[at:])), origin)

    def translate(self, table: Mapping[int, str]) -> "Mapped":
        """Each character replaced by one other character; by code point."""
        return Mapped(self.text.translate(table), self.origin)


class _Folds(dict[int, str]):
    """Code point → what stands for it in a folded text, worked out when first seen."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold_character(chr(code))
        return folded


class _Regular(dict[int, str]):
    """The same, with a mark for each character that does not become exactly one."""

    def __init__(self) -> None:
        self._table: NDArray[np.uint32] | None = None

    def __missing__(self, code: int) -> str:
        folded = _folds[code]
        self[code] = shown = folded if len(folded) == 1 and folded != _IRREGULAR else _IRREGULAR
        return shown

    def fold(self, text: str) -> str:
        """`text.translate(self)`, four times as fast for texts that are not ASCII alone."""
        if len(text) < _BRIEF:
            return text.translate(self)
        import numpy as np

        if self._table is None:
            self._table = np.full(0x110000, _UNKNOWN, dtype="<u4")
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        folded = self._table[codes]
        unknown = folded == _UNKNOWN
        if unknown.any():
            for code in np.unique(codes[unknown]).tolist():
                self._table[code] = ord(self[code])
            folded = self._table[codes]
        shown: bytes = folded.tobytes()
        return shown.decode("utf-32-le", "surrogatepass")


_UNKNOWN = 0xFFFFFFFF
_BRIEF = 300  # characters that are not worth the detour
_IRREGULAR = "\uf8ff"
_folds = _Folds()
_regular = _Regular()


def _fold_character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    category = unicodedata.category(character)
    if category in _BLANK_CATEGORIES or character in _HANGUL_FILLERS:
        return ""
    if category == "Zs":
        return " "
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
    bare = [c for c in unicodedata.normalize("NFKD", plain) if unicodedata.category(c) != "Mn"]
    folded = unicodedata.normalize("NFC", "".join(_SPECIAL.get(c, c) for c in bare))
    folded = "".join(_SPECIAL.get(c, c) for c in folded)
    picture = category == "So" or (category == "Sk" and ord(character) > 0xFFFF)
    return _SYMBOL if picture and folded == character else folded


def fold(text: str, offset: int = 0) -> Mapped:
    """The normalised copy: NFKC, case, accents, spaces, quotes, dashes; nothing invisible.

    Args:
        text: any string.
        offset: where `text` begins in the source; the map counts from there.
    """
    if text.isascii():
        return Mapped.of(text.lower().translate(_regular), offset)
    folded = _regular.fold(text)
    if _IRREGULAR not in folded:
        return Mapped.of(folded, offset)
    return _with_irregular(text, folded, offset)


def _with_irregular(text: str, folded: str, offset: int) -> Mapped:
    """The folded copy with what stands for the characters that do not become exactly one."""
    import numpy as np

    shown, *others = folded.split(_IRREGULAR)
    pieces = [shown]
    places: list[int] = []
    lengths: list[int] = []
    at = len(shown)
    for other in others:
        instead = _folds[ord(text[at])]
        pieces += (instead, other)
        places.append(at)
        lengths.append(len(instead))
        at += 1 + len(other)
    times = np.ones(len(text), np.intp)
    times[places] = lengths
    return Mapped("".join(pieces), np.arange(offset, offset + len(text)).repeat(times))


_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")


def unescaped(view: Mapped) -> Mapped:
    """A folded text without the backslashes that Markdown puts before marks."""
    return view.replace(_ESCAPE, "") if "\\" in view.text else view


def refold(view: Mapped) -> Mapped:
    """`view` folded, mapped to the source of `view`."""
    folded = fold(view.text)
    return Mapped(folded.text, view.origin[folded.origin])


def regions(text: str, pattern: re.Pattern[str], margin: int = _MARGIN) -> Iterator[Place]:
    """Spans of `text` around the matches of `pattern`, merged where they touch, in order."""
    return around((match.span() for match in pattern.finditer(text)), len(text), margin)


def around(spans: Iterable[Place], size: int, margin: int = _MARGIN) -> Iterator[Place]:
    """The spans, in ascending order, with their margins, merged where they touch."""
    start = end = -1
    for first, last in spans:
        low, high = max(0, first - margin), min(size, last + margin)
        if low > end:
            if end > start:
                yield start, end
            start = low
        end = max(end, high)
    if end > start:
        yield start, end


_UNSEEN = (
    r"\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"
    r"\U000e0000-\U000e01ef"
)
OTHER_LETTERS = r"\u0370-\u058f\u13a0-\u13f5\u2c80-\u2cff\ua4d0-\ua4ff"
"""Those of alphabets that have twins of Latin letters."""

TURNED_LETTERS = "ɐɔǝɟƃɥᴉɾʞɯɹʇʌʍʎⱯƎᴚ"
STRANGE, FILLERS, OTHERS, TURNED = 1, 2, 4, 8
ALL_TRAITS = STRANGE | FILLERS | OTHERS | TURNED


@cache
def _trait_table() -> "NDArray[np.uint8]":
    import numpy as np

    table = np.zeros(0x110000, np.uint8)
    kinds = {
        STRANGE: _UNSEEN, FILLERS: _HANGUL_FILLERS, OTHERS: OTHER_LETTERS, TURNED: TURNED_LETTERS
    }  # fmt: skip
    every = "".join(map(chr, range(128, len(table))))
    for trait, characters in kinds.items():
        for match in re.finditer(f"[{characters}]+", every):
            table[128 + match.start() : 128 + match.end()] |= trait
    return table


def traits(text: str) -> int:
    """Which of the four kinds of characters above are in a text: most texts need no look at any."""
    if text.isascii():
        return 0
    import numpy as np

    return int(np.bitwise_or.reduce(_traits(text)))


def places(text: str, trait: int) -> "NDArray[np.intp]":
    """Where characters with a trait stand."""
    found: NDArray[np.intp] = (_traits(text) & trait).nonzero()[0]
    return found


def _traits(text: str) -> "NDArray[np.uint8]":
    import numpy as np

    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    traits: NDArray[np.uint8] = _trait_table()[codes]
    return traits


def strange_regions(text: str, margin: int) -> Iterator[Place]:
    """The neighbourhoods of characters that have no shape, or steer the reading direction."""
    found = places(text, STRANGE)
    if not len(found):
        return
    (gaps,) = (found[1:] - found[:-1] > 2 * margin + 1).nonzero()
    firsts = [int(found[0]), *found[gaps + 1].tolist()]
    lasts = [*found[gaps].tolist(), int(found[-1])]
    for first, last in zip(firsts, lasts, strict=True):
        yield max(0, first - margin), min(len(text), last + 1 + margin)
