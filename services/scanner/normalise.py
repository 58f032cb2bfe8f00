"""Texts as the rules read them, each with a map back to the characters it was made from."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u180e\u034f\u2061\u2062\u2063\u2064\u00ad"
"""Invisible characters without a reading direction; the soft hyphen is one of them."""

LETTER = r"[^\W\d_]"
STEM = 4
"""Letters by which a word is looked up."""

_MARGIN = 160  # characters around a suspicious place that its reading takes in
_BLANK_CATEGORIES = {"Cf", "Mn", "Me"}
_HANGUL_FILLERS = "\u115f\u1160\u3164\uffa0"
_WHITESPACE = dict.fromkeys("\t\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029", " ") | {"\r": "\n"}
_PUNCTUATION = dict.fromkeys("‘’‚‛′ʼ`´", "'") | dict.fromkeys("“”„‟«»″", '"')
_PUNCTUATION |= dict.fromkeys("‐‑‒–—―−", "-") | {"：": ":", "∕": "/", "⁄": "/"}
_STROKES = {"đ": "d", "ł": "l", "ø": "o", "ı": "i", "ħ": "h", "ŧ": "t", "ɡ": "g", "ɑ": "a"}
_SMALL_CAPITALS = dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True))
_BOXED = {chr(0x1F130 + i + shift): chr(97 + i) for i in range(26) for shift in (0, 32, 64, 182)}
_SPECIAL = _WHITESPACE | _PUNCTUATION | _STROKES | _SMALL_CAPITALS | _BOXED

_CYRILLIC_LATIN = dict(
    zip("авсԁеғһіјкӏмпорԛгѕтуԝхуьѵѡбԍ", "abcdefhijklmnopqrstuwxybvwbg", strict=True)
)
_GREEK_LATIN = dict(zip("αβγεζηικμνορτυχωϲϳ", "abyeznikuvoptuxwcj", strict=True))
_OTHER_LATIN = dict(zip("օոսաոհցյզքԁᴦꭰꭱꮃꮇ", "onuwnhgjqpdrdrwm", strict=True))
LATIN_LOOKALIKES = _CYRILLIC_LATIN | _GREEK_LATIN | _OTHER_LATIN
CYRILLIC_LOOKALIKES = dict(zip("abcehijkmopstuxy3", "авсенијкморѕтихуз", strict=True))
LEET = {"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t", "8": "b", "9": "g", "@": "a"}
LEET |= {"$": "s", "!": "i", "|": "l", "+": "t", "(": "c", "€": "e"}


@dataclass(frozen=True, slots=True)
class Mapped:
    """A text and, for each of its characters, the index of the character it came from."""

    text: str
    origin: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where `text[start:end]` lies in the source, as a half-open span; not for empty spans."""
        return self.origin[start], self.origin[end - 1] + 1

    def cut(self, start: int, end: int) -> "Mapped":
        """The part `text[start:end]`, still mapped to the same source."""
        return Mapped(self.text[start:end], self.origin[start:end])

    def replace(self, pattern: re.Pattern[str], with_: str | Callable[[str], str]) -> "Mapped":
        """As `re.sub`; what is put in is mapped to the start of what it replaces."""
        parts: list[str] = []
        origin: list[int] = []
        at = 0
        for match in pattern.finditer(self.text):
            start, end = match.span()
            new = with_ if isinstance(with_, str) else with_(match.group())
            parts += (self.text[at:start], new)
            origin += self.origin[at:start]
            origin += [self.origin[start]] * len(new)
            at = end
        parts.append(self.text[at:])
        origin += self.origin[at:]
        return Mapped("".join(parts), origin)

    def translate(self, table: Mapping[str, str]) -> "Mapped":
        """Each character replaced by one other character."""
        return Mapped(
            self.text.translate(str.maketrans(dict[str, str | int | None](table))), self.origin
        )


class _Folds(dict[int, str]):
    """Code point → what stands for it in a folded text, worked out when first seen."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold_character(chr(code))
        return folded


_folds = _Folds()


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
    return "".join(_SPECIAL.get(c, c) for c in folded)


def fold(text: str, offset: int = 0) -> Mapped:
    """The normalised copy: NFKC, case, accents, spaces, quotes, dashes; nothing invisible.

    Args:
        text: any string.
        offset: where `text` begins in the source; the map counts from there.
    """
    whole = range(offset, offset + len(text))
    if text.isascii():
        return Mapped(text.lower().translate(_folds), whole)
    folded = text.translate(_folds)
    irregular = {c for c in set(text) if len(_folds[ord(c)]) != 1}
    if not irregular:
        return Mapped(folded, whole)
    origin: list[int] = []
    at = 0
    for match in re.finditer("[" + re.escape("".join(sorted(irregular))) + "]", text):
        here = match.start()
        origin += whole[at:here]
        origin += [offset + here] * len(_folds[ord(match.group())])
        at = here + 1
    origin += whole[at:]
    return Mapped(folded, origin)


def regions(
    text: str, pattern: re.Pattern[str], margin: int = _MARGIN
) -> Iterator[tuple[int, int]]:
    """Spans of `text` around the matches of `pattern`, merged where they touch, in order."""
    start = end = -1
    for match in pattern.finditer(text):
        low, high = max(0, match.start() - margin), min(len(text), match.end() + margin)
        if low > end:
            if end > start:
                yield start, end
            start = low
        end = high
    if end > start:
        yield start, end


_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:(?:[^\w\n<>]|_|\n(?!\n)){1,6}+[^\W_](?![^\W_])){6,}+")
_NOT_LETTER = re.compile(r"[\W_]+")
_WORDS = re.compile(r"[^\W_]+")
_GAP = re.compile(r"[\W_]")
_PART = 1 << 20
_MIXED = re.compile(r"[a-z][\u0370-\u058f\u13a0-\u13f5]|[\u0370-\u058f\u13a0-\u13f5][a-z]")
_LEET = re.compile(r"(?:[a-z][01345789@$!|+(€]{1,2}[a-z]|(?<![\w@$])[01345789@$][a-z]{2})")
_LEET_STEM = re.compile(r"[a-z]\d[a-z]|\d[a-z]{2}")
_INNER_TAG = r"/?(?:b|i|u|s|em|strong|span|font|a|mark|sub|sup|wbr|small|big|code)\b[^<>]{0,80}>"
_SPLIT = re.compile(  # begins with what is rare, and looks back for the letter afterwards
    r"(?:\*(?<=[^\W_]\*)\*{0,2}|~(?<=[^\W_]~)~|'(?<=[^\W_]')'{1,2}|\\(?<=[^\W_]\\)"
    r"|_(?<=[^\W_]_)_?|-(?<=[^\W_]-)[ ]?\n[ ]{0,8}"
    rf"|<(?<=[^\W_]<)(?:!--[^<>]{{0,80}}-->|{_INNER_TAG}))(?=[^\W_])"
)
_GLUE = re.compile(r"(?<=[^\W_])(?:[*~'\\_]{1,3}|-\s+|<[^<>]{1,90}>)(?=[^\W_])")
# The text of a link stays, and each of its characters where it was.
_LINK_MARKS = re.compile(
    r"\[(?=[^\[\]]{1,300}+\][(\[])"
    r"|(?<=[^\s\[])\](?:\((?:<[^<>\n]{0,2000}>|[^()\s<>]{0,2000}+)\)|\[[^\[\]]{0,99}\])"
)
_STRANGE = re.compile(
    r"[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_INVISIBLE = re.compile(rf"(?<=\w)[{ZERO_WIDTH}\U000e0000-\U000e007f]+(?=\w)")
_ERASED = re.compile(r"[^\x08\x7f][\x08\x7f]")
_BIDI_RUN = re.compile(r"[\u202d\u202e]([^\u202a-\u202e\n]{2,400})\u202c?")


def stems(text: str) -> frozenset[str]:
    """The first letters of all words of a folded text."""
    found: set[str] = set()
    for part in parts(text):
        found.update([word[:STEM] for word in _WORDS.findall(part)])
    return frozenset(found)


def parts(text: str) -> Iterator[str]:
    """`text` cut between words: all words of a large one together take many times its memory."""
    at = 0
    while len(text) - at > _PART:
        gap = _GAP.search(text, at + _PART)
        end = gap.start() if gap else len(text)
        yield text[at:end]
        at = end
    yield text[at:]


def has_strange_characters(text: str) -> bool:
    """Is anything in it that has no shape of its own, or steers the reading direction?"""
    return not text.isascii() and _STRANGE.search(text) is not None


def squeezed(view: Mapped, words: frozenset[str]) -> Iterator[Mapped]:
    """Words typed with gaps between their letters, without any gap at all."""
    if sum(len(word) == 1 for word in words) > 7:
        for match in _SPACED.finditer(view.text):
            yield view.cut(*match.span()).replace(_NOT_LETTER, "")


def readings(raw: Mapped, view: Mapped, words: frozenset[str]) -> Iterator[Mapped]:
    """Other ways to read suspicious places of a text: each is short, most texts have none.

    Args:
        raw: the text as it is.
        view: its folded copy.
        words: the stems of `view`.
    """
    if not view.text.isascii():
        for low, high in regions(view.text, _MIXED):
            yield view.cut(low, high).translate(LATIN_LOOKALIKES)
            yield view.cut(low, high).translate(CYRILLIC_LOOKALIKES)
    if "@" in view.text or "$" in view.text or any(map(_LEET_STEM.search, words)):
        for low, high in regions(view.text, _LEET):
            yield view.cut(low, high).translate(LEET)
            yield view.cut(low, high).translate(LEET | {"1": "l", "|": "i"})
    for low, high in regions(view.text, _SPLIT):
        yield view.cut(low, high).replace(_GLUE, "")
    if "](" in view.text or "][" in view.text:
        for low, high in regions(view.text, _LINK_MARKS):
            yield view.cut(low, high).replace(_LINK_MARKS, "")
    yield from _raw_readings(raw)


def _raw_readings(raw: Mapped) -> Iterator[Mapped]:
    if has_strange_characters(raw.text):
        for low, high in regions(raw.text, _INVISIBLE):
            yield _refold(raw.cut(low, high).replace(_INVISIBLE, " "))
        for low, high in regions(raw.text, _BIDI_RUN):
            yield _refold(raw.cut(low, high).replace(_BIDI_RUN, lambda run: run[::-1]))
    if "\b" in raw.text or "\x7f" in raw.text:
        for low, high in regions(raw.text, _ERASED):
            yield _refold(raw.cut(low, high).replace(_ERASED, ""))


def _refold(view: Mapped) -> Mapped:
    """`view` folded, mapped to the source of `view`."""
    folded = fold(view.text)
    return Mapped(folded.text, [view.origin[i] for i in folded.origin])
