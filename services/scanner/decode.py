"""Encoded passages and what they say: base64 and its kin, escapes, shifted letters, smuggling."""

import base64
import binascii
import html
import quopri
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote_to_bytes

from services.scanner.normalise import STEM, has_strange_characters, parts, regions, stems

MAX_DEPTH = 4
MAX_BYTES = 8_000_000
"""Decoded bytes of one document, all layers together: a bound on hostile nesting."""

_SHORTEST = 8  # decoded characters; nothing can be ordered in fewer
_INFLATED = 1_000_000
_TEXT_BYTES = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_READABLE = re.compile(
    rb"(?:[\x20-\x7e\t\n\r]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}"
    rb"|[\xf0-\xf4][\x80-\xbf]{3}){12,}"
)

Decoder = Callable[[str], Iterator[bytes | str]]
Gate = Literal[
    "long",
    "pairs",
    "strange",
    "percent",
    "ampersand",
    "equals",
    "escape",
    "angle",
    "caesar",
    "reversed",
]


@dataclass(frozen=True, slots=True)
class Decoded:
    """What the `span` of the source says when it is decoded; None where the limits end the search.

    `hiding`: nobody encodes prose like this for honest transport. `names`: of the encodings,
    outermost first.
    """

    span: tuple[int, int]
    text: str | None
    hiding: bool
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scheme:
    """One encoding: where it may be, and how to read it.

    `hiding`: see `Decoded`. `margin`: characters around a hit that belong to it. A scheme is tried
    only if its gate opens. Patterns are possessive and begin with what they look for, so that no
    text makes them slow.
    """

    name: str
    gate: Gate
    pattern: re.Pattern[str]
    read: Decoder
    hiding: bool = True
    margin: int = 0

    def places(self, text: str) -> Iterable[tuple[int, int]]:
        """Where `text` may hold this encoding."""
        if self.margin:
            return regions(text, self.pattern, self.margin)
        return (match.span() for match in self.pattern.finditer(text))


def decoded(text: str) -> Iterator[Decoded]:
    """Every encoded passage of `text` that decodes to readable text, nested ones too.

    The last one has no text if something was left undecoded: too deep, or too much.
    """
    yield from _layers(text, MAX_DEPTH, _Budget(MAX_BYTES))


class _Budget:
    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, size: int) -> bool:
        self.left -= size
        return self.left >= 0


def _layers(text: str, depth: int, budget: _Budget) -> Iterator[Decoded]:
    gates = _open_gates(text)
    for scheme in (scheme for scheme in SCHEMES if scheme.gate in gates):
        name = (scheme.name,)
        for span in scheme.places(text):
            for plain in _plain(scheme, text[slice(*span)]):
                if not scheme.margin and (depth == 0 or not budget.take(len(plain))):
                    yield Decoded(span, None, True, name)
                    return
                if depth > 0:
                    yield Decoded(span, plain, scheme.hiding, name)
                    for deeper in _layers(plain, depth - 1, budget):
                        hiding = scheme.hiding or deeper.hiding
                        yield Decoded(span, deeper.text, hiding, name + deeper.names)


def _open_gates(text: str) -> frozenset[Gate]:
    """What kinds of encodings `text` may hold at all: most texts hold none."""
    words = frozenset().union(*(stems(part.lower()) for part in parts(text)))
    gates: dict[Gate, bool] = {
        "long": _LONG.search(text) is not None,
        "pairs": _PAIRS.search(text) is not None,
        "strange": has_strange_characters(text),
        "percent": "%" in text,
        "ampersand": "&" in text,
        "equals": "=" in text,
        "escape": "\\u" in text or "\\U" in text or "U+" in text,
        "angle": "~>" in text,
        "caesar": not words.isdisjoint(_CAESAR_STEMS),
        "reversed": not words.isdisjoint(_REVERSED_STEMS),
    }
    return frozenset(gate for gate, open_ in gates.items() if open_)


def _plain(scheme: Scheme, found: str) -> Iterator[str]:
    for inner in scheme.read(found):
        yield from (plain for plain in _readable(inner) if plain != found)


def _readable(inner: bytes | str) -> Iterator[str]:
    """The parts of decoded bytes that are text: all of it, or runs as `strings` would find them."""
    if isinstance(inner, str):
        if len(inner) >= _SHORTEST:
            yield inner
        return
    if inner[:2] in (b"\x1f\x8b", b"\x78\x9c", b"\x78\xda", b"\x78\x01"):
        inner = _inflate(inner)
    if len(inner) < _SHORTEST:
        return
    try:
        whole = inner.decode("utf-16" if inner[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    except UnicodeDecodeError:
        whole = ""
    if whole and sum(not c.isprintable() and not c.isspace() for c in whole[:400]) * 20 < 400:
        yield whole
        return
    for run in _READABLE.findall(inner.replace(b"\0", b"")):
        yield run.decode("utf-8", "replace")


def _inflate(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(47).decompress(data, _INFLATED)
    except zlib.error:
        return b""


def _base64(found: str) -> Iterator[bytes]:
    packed = re.sub(r"[\s>]", "", found).translate(str.maketrans("-_", "+/")).rstrip("=")
    for skip in range(4):
        piece = packed[skip:]
        piece = piece[: len(piece) - (len(piece) % 4 == 1)]
        raw = base64.b64decode(piece + "=" * (-len(piece) % 4))
        yield raw
        if _mostly_text(raw):
            return


def _mostly_text(raw: bytes) -> bool:
    head = raw[:300]
    return len(head.translate(None, _TEXT_BYTES)) * 10 < len(head)


def _base32(found: str) -> Iterator[bytes]:
    packed = re.sub(r"[\s=]", "", found).upper()
    packed = packed[: len(packed) - {1: 1, 3: 1, 6: 1}.get(len(packed) % 8, 0)]
    try:
        yield base64.b32decode(packed + "=" * (-len(packed) % 8))
    except binascii.Error:
        return


def _ascii85(found: str) -> Iterator[bytes]:
    try:
        yield base64.a85decode(found, adobe=True)
    except ValueError:
        return


def _hex(found: str) -> Iterator[bytes]:
    digits = re.sub(r"\\x|0x|[^0-9A-Fa-f]", "", found)
    yield bytes.fromhex(digits[: len(digits) // 2 * 2])


def _numbers(found: str) -> Iterator[str]:
    codes = [int(n) for n in re.findall(r"\d+", found)]
    if all(c in range(32, 127) or c in (9, 10, 13) for c in codes):
        yield "".join(map(chr, codes))


def _binary(found: str) -> Iterator[bytes]:
    bits = re.sub(r"[^01]", "", found)
    yield bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits) - 7, 8))


def _url(found: str) -> Iterator[bytes]:
    yield unquote_to_bytes(found.replace("+", " "))


def _entities(found: str) -> Iterator[str]:
    yield html.unescape(found)


def _quoted_printable(found: str) -> Iterator[bytes]:
    yield quopri.decodestring(found.encode("ascii", "replace"))


def _escapes(found: str) -> Iterator[str]:
    def character(match: re.Match[str]) -> str:
        code = int(match.group(1) or match.group(2), 16)
        return chr(code) if code < 0x110000 else ""

    yield re.sub(r"\\[uU]\{?([0-9a-fA-F]{4,6})\}?|U\+([0-9a-fA-F]{4,6})\s?", character, found)


def _tags(found: str) -> Iterator[str]:
    yield "".join(chr(ord(c) - 0xE0000) for c in found if 0xE0020 <= ord(c) < 0xE007F)


def _selectors(found: str) -> Iterator[bytes]:
    codes = (ord(c) for c in found)
    yield bytes(c - 0xFE00 if c < 0xFE10 else c - 0xE0100 + 16 for c in codes)


def _two_symbols(found: str) -> Iterator[bytes]:
    """A run of two invisible characters read as bits, either way round, in bytes of 8 or 7."""
    symbols = sorted(set(found))
    if len(symbols) != 2:
        return
    for zero in symbols:
        bits = "".join("0" if c == zero else "1" for c in found)
        for width in (8, 7):
            yield bytes(int(bits[i : i + width], 2) for i in range(0, len(bits) - width + 1, width))


def _caesar(found: str) -> Iterator[str]:
    """The text with each alphabet shift that turns one of its words into a suspicious one."""
    words = set(_WORD.findall(found.lower()))
    for shift, signs in _SHIFTED.items():
        if not words.isdisjoint(signs):
            yield found.translate(_alphabet(-shift))


def _alphabet(shift: int) -> dict[int, int]:
    """A translation that moves each Latin letter on by `shift` places."""
    return {first + n: first + (n + shift) % 26 for first in (65, 97) for n in range(26)}


def _reversed(found: str) -> Iterator[str]:
    yield found[::-1]


_WORDS = ("ignore", "disregard", "forget", "instruction", "instructions", "prompt", "prompts")
_SHIFTED = {n: frozenset(w.translate(_alphabet(n)) for w in _WORDS) for n in range(1, 26)}
_CAESAR = frozenset[str]().union(*_SHIFTED.values())
_REVERSED = frozenset(w[::-1] for w in _WORDS)
_CAESAR_STEMS = frozenset(word[:STEM] for word in _CAESAR)
_REVERSED_STEMS = frozenset(word[:STEM] for word in _REVERSED)
_WORD = re.compile(r"[^\W_]+")
_B64 = r"[A-Za-z0-9+/_-]"
_LINE = r"[ \t]*\r?\n[ \t>]*"
_LONG = re.compile(rf"{_B64}{{16}}|{_B64}{{8}}{_LINE}{_B64}{{8}}")
_PAIRS = re.compile(
    r"(?:[0-9A-Fa-f]{2,8}(?:[\s,;:-]{1,2}(?:\\x|0x)?|\\x|0x)){7}|\\x[0-9A-Fa-f]{2}\\x"
)


def _scheme(gate: Gate, name: str, pattern: str, read: Decoder, margin: int = 0) -> Scheme:
    return Scheme(name, gate, re.compile(pattern), read, hiding=not margin, margin=margin)


def _any_word(words: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<![^\W_])(?:{'|'.join(sorted(words))})(?![^\W_])")


SCHEMES: tuple[Scheme, ...] = (
    _scheme(
        "long",
        "base64",
        rf"(?<!{_B64})(?:{_B64}{{16,}}+|{_B64}{{8,}}+(?={_LINE}{_B64}{{8}}))"
        rf"(?:{_LINE}{_B64}{{8,}}+)*+(?:{_LINE}{_B64}{{1,7}}(?![^\s=]))?={{0,2}}",
        _base64,
    ),
    _scheme("long", "base32", r"(?<![A-Za-z0-9])(?:[A-Z2-7]{16,}+|[a-z2-7]{24,}+)={0,6}", _base32),
    _scheme("long", "hex", r"(?<![0-9A-Za-z])[0-9A-Fa-f]{16,}+", _hex),
    _scheme("long", "binary", r"(?<!\d)[01]{64,}+", _binary),
    _scheme("angle", "ascii85", r"<~[!-uz\s]{10,2000}~>", _ascii85),
    _scheme(
        "pairs",
        "hex",
        r"(?<![0-9A-Za-z])(?:\\x|0x)?[0-9A-Fa-f]{2}"
        r"(?:(?:[ \t\n:,;-]{1,2}(?:\\x|0x)?|\\x|0x)[0-9A-Fa-f]{2}){7,}+",
        _hex,
    ),
    _scheme("pairs", "numbers", r"(?<!\d)\d{2,3}(?:[\s,;]{1,2}\d{2,3}){9,}+(?!\d)", _numbers),
    _scheme("pairs", "binary", r"(?<!\d)[01]{8}(?:[\s,]{1,2}[01]{8}){7,}+", _binary),
    _scheme("escape", "code-points", r"(?:U\+[0-9a-fA-F]{4,6}[\s,]{0,2}+){8,}+", _escapes),
    _scheme("escape", "escapes", r"\\[uU]\{?[0-9a-fA-F]{4,6}\}?", _escapes, 60),
    _scheme("strange", "tag-characters", r"[\U000e0020-\U000e007e]{3,}", _tags),
    _scheme("strange", "selectors", r"[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}", _selectors),
    _scheme("strange", "bits", r"[\u200b-\u200f\u2060-\u2064\ufeff]{56,}", _two_symbols),
    _scheme("percent", "url", r"%[0-9A-Fa-f]{2}", _url, 60),
    _scheme("ampersand", "entities", r"&#?\w{1,8};", _entities, 60),
    _scheme("equals", "quoted-printable", r"=(?:[0-9A-F]{2}|\r?\n)", _quoted_printable, 60),
    Scheme("caesar", "caesar", _any_word(_CAESAR), _caesar, margin=160),
    Scheme("reversed", "reversed", _any_word(_REVERSED), _reversed, margin=160),
)
