"""Bytes to text: by mark, by UTF-8, else by the charset that makes words of a known language."""

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernel.errors import Refusal
from kernel.media import unmarked_utf16

_CYRILLIC = ("cp1251", "koi8_r", "iso8859_5", "cp866", "mac_cyrillic", "cp855")
_CENTRAL = ("cp1250", "iso8859_2")
_WESTERN = ("cp1252",)
_PLAUSIBLE = {
    **dict.fromkeys(_CYRILLIC, frozenset({"ru", "bg", "sr", "mk", "uk", "be"})),
    **dict.fromkeys(
        _CENTRAL, frozenset({"hr", "sl", "sr", "bs", "cs", "sk", "pl", "hu", "ro", "sq"})
    ),
    **dict.fromkeys(
        _WESTERN,
        frozenset(
            {
                "de",
                "en",
                "fr",
                "es",
                "it",
                "pt",
                "nl",
                "da",
                "sv",
                "no",
                "fi",
                "is",
                "ca",
                "gl",
                "eu",
                "af",
            }
        ),
    ),
}
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LATIN_SOUTH_SLAVIC = frozenset({"hr", "sr", "bs", "sl"})
_LETTERS = {
    language: frozenset(letters)
    for language, letters in {
        "ru": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
        "bg": "абвгдежзийклмнопрстуфхцчшщъьюяѝ",
        "sr": "абвгдђежзијклљмнњопрстћуфхцчџш",
        "mk": "абвгдѓежзѕијклљмнњопрстќуфхцчџшѐѝ",
    }.items()
}
_SAMPLE = 65536
_FEW_LETTERS = 5
_GLUED = re.compile(r"(?<!\w)[¬√≈∆†‡•‰€™’”–—‚](?=[^\W\d_])")
"""Signs at the front of a word: capital letters in the wrong charset."""
_ENOUGH = 0.5
_WORD = re.compile(r"[^\W\d_]+")
_TAG = re.compile(r"<[^>]*>")
_VALID_SEQUENCE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_HIGH = re.compile(rb"[\x80-\xff]")


def decode(data: bytes, declared: str | None = None, *, lenient: bool = False) -> tuple[str, str]:
    r"""Text with `\n` line ends and no BOM or NUL, and the name of the encoding.

    Args:
        data: the whole file.
        declared: what the document says of itself; believed when it decodes without an error
            and the bytes are not plainly UTF-8.
        lenient: damaged UTF-8 is read with U+FFFD for the damage, as browsers do.

    Raises:
        Refusal: `invalid-encoding`.
    """
    text, encoding = _decode(data, declared, lenient)
    return text.lstrip("\ufeff").replace("\0", "").replace("\r\n", "\n").replace(
        "\r", "\n"
    ), encoding


def encoding_of(path: Path) -> str:
    """The encoding of a text file, read in pieces: for files too large to be held twice.

    Decides as `decode` does: mark, UTF-16 without mark, UTF-8, a charset that makes words.

    Raises:
        Refusal: `invalid-encoding`.
    """
    with path.open("rb") as file:
        head = file.read(_SAMPLE)
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return "utf-8-sig" if encoding == "utf-8" else encoding
    encoding_16 = unmarked_utf16(head)
    if encoding_16:
        return encoding_16
    valid = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in _pieces(path):
            valid.decode(piece)
        valid.decode(b"", final=True)
    except UnicodeDecodeError:
        return _charset_of(path)
    return "utf-8"


def _charset_of(path: Path) -> str:
    """The 8-bit charset of a file that is not UTF-8."""
    lines: list[bytes] = []
    size = 0
    with path.open("rb") as file:
        # Lines with letters outside ASCII tell the charset, wherever they stand.
        for line in iter(lambda: file.readline(_SAMPLE), b""):
            if not line.isascii():
                lines.append(line)
                size += len(line)
            if size >= _SAMPLE:
                break
    sample = b"".join(lines)
    if _broken_utf8(sample):
        raise Refusal("invalid-encoding", "UTF-8 with invalid bytes in it")
    return _guessed(sample)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            yield piece


def _decode(data: bytes, declared: str | None, lenient: bool) -> tuple[str, str]:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _strictly(data, encoding), encoding
    encoding_16 = unmarked_utf16(data[:_SAMPLE])
    if encoding_16:
        return _strictly(data, encoding_16), encoding_16
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        pass
    if _broken_utf8(data):
        if lenient:
            return data.decode("utf-8", "replace"), "utf-8 with damage"
        raise Refusal("invalid-encoding", "UTF-8 with invalid bytes in it")
    encoding = _believed(data, declared) or _guessed(data)
    return _strictly(data, encoding), encoding


def _strictly(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise Refusal("invalid-encoding", f"not valid {encoding}") from error


def _broken_utf8(data: bytes) -> bool:
    """Most bytes outside ASCII form UTF-8 sequences: then it is that, damaged."""
    in_sequences = sum(map(len, _VALID_SEQUENCE.findall(data)))
    return in_sequences * 2 > len(_HIGH.findall(data))


def _believed(data: bytes, declared: str | None) -> str | None:
    """The declared encoding, unless bytes or language speak against it."""
    if not declared:
        return None
    try:
        name = codecs.lookup(declared).name.replace("-", "_")
        data.decode(name)
    except (LookupError, UnicodeDecodeError):
        return None
    # A page that says Latin-1 is read as Windows-1252, as every browser does.
    name = {"iso8859_1": "cp1252", "ascii": "cp1252", "latin_1": "cp1252"}.get(name, name)
    claimed = _score(data, name) if name in _PLAUSIBLE else 1.0
    best = _best(data)
    if best and best[0] > claimed + 0.3:
        return None
    return name


def _guessed(data: bytes) -> str:
    best = _best(data)
    if best and best[0] >= _ENOUGH:
        return best[1]
    encoding = _typographic(data)
    if encoding:
        return encoding
    raise Refusal("invalid-encoding", "neither UTF-8 nor text in a known 8-bit charset")


def _best(data: bytes) -> tuple[float, str] | None:
    """The most plausible of the charsets that charset-normalizer leaves in the race."""
    from charset_normalizer import from_bytes

    sample = _telling(data)
    matches = {match.encoding for match in from_bytes(sample, cp_isolation=list(_PLAUSIBLE))}
    scored = [(_score(sample, name), name) for name in _PLAUSIBLE]
    # Short texts fit several: then the common charset, and the one that both detectors name. In
    # longer ones a single odd letter has to count for more.
    bonus = {"cp1251": 0.1, "cp1250": 0.05}
    weight = min(1.0, _FEW_LETTERS / max(1, len(_HIGH.findall(sample))))
    score, name = max(
        scored,
        key=lambda pair: pair[0] + weight * (bonus.get(pair[1], 0) + 0.05 * (pair[1] in matches)),
    )
    return (score, name) if score > 0 else None


def _telling(data: bytes) -> bytes:
    """The start of `data`, or the lines further on that hold its first letters outside ASCII."""
    head = data[:_SAMPLE]
    first = _HIGH.search(data, _SAMPLE) if head.isascii() else None
    if first is None:
        return head
    start = data.rfind(b"\n", 0, first.start()) + 1
    return data[max(start, first.start() - 1000) :][:_SAMPLE]


def _score(data: bytes, encoding: str) -> float:
    """0 to 1: how much the words with letters outside ASCII look like one of its languages."""
    try:
        text = _TAG.sub(" ", data[:_SAMPLE].decode(encoding))
    except UnicodeDecodeError:
        return 0.0
    words = _WORD.findall(text)
    foreign = [word for word in words if not word.isascii()]
    if not foreign or any("\x80" <= letter <= "\x9f" for letter in text):
        return 0.0
    sample = foreign if encoding in _CYRILLIC else words
    found = _identifier().FindLanguage(" ".join(sample)[:4000])
    probability = found.probability if found.language in _PLAUSIBLE[encoding] else 0.0
    south_slavic = found.language in _LATIN_SOUTH_SLAVIC and encoding not in _CYRILLIC
    if encoding in _CYRILLIC or south_slavic:
        # A few words are too little for the detector, and near languages share what it is sure
        # of, but their letters speak for themselves.
        probability = 0.5 + probability / 2
    high = [letter for letter in text if letter > "\x7f"]
    if encoding not in _CYRILLIC:
        # Quotes and dashes are the same in all of them.
        high = [letter for letter in high if letter not in _TYPOGRAPHY] or high
    usual = 1.0
    if encoding in _CYRILLIC:
        usual = _usual_letters(foreign)
    elif south_slavic:
        usual = sum(letter in "čćžšđČĆŽŠĐ" for letter in high) / len(high)
    alphabetic = sum(map(str.isalpha, high)) / len(high)
    regular = sum(_is_regular(word, found.language) for word in foreign)
    odd = len(_GLUED.findall(text))
    return float(probability * regular / (len(foreign) + odd) * alphabetic * usual)


def _is_regular(word: str, language: str) -> bool:
    """Whether its capitals are where they may be, and its letters those of the language."""
    letters = _LETTERS.get(language) if word[0] > "\u03ff" else None
    return (word.islower() or word.istitle() or word.isupper()) and (
        letters is None or letters.issuperset(word.lower())
    )


def _usual_letters(words: list[str]) -> float:
    """1 when the words are pure Cyrillic with the commonest letters as common as they are."""
    text = "".join(word for word in words if len(word) < 30).lower() or "?"
    usual = sum(letter in "оеаинтсрвлку" for letter in text) / len(text)
    pure = sum(not any(letter.isascii() for letter in word) for word in words) / len(words)
    return min(1.0, usual / 0.5) * pure * min(1.0, len(text) / 6)


def _identifier() -> Any:
    from kernel.language import identifier

    return identifier()


_TYPOGRAPHY = frozenset("‘’“”„‚–—…•§©®°«»€™ \xa0·×±²³½¼¾µ£")


def _typographic(data: bytes) -> str | None:
    """Windows-1252 when all that is outside ASCII is typography or single letters in words."""
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return None
    for match in re.finditer(r"[^\x00-\x7f]", text):
        letter = match[0]
        around = text[max(0, match.start() - 1) : match.end() + 1].replace(letter, "", 1)
        inside = letter.isalpha() and any(near.isalpha() and near.isascii() for near in around)
        if not inside and letter not in _TYPOGRAPHY:
            return None
    return "cp1252"
