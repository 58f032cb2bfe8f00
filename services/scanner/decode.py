"""Encoded passages and what they say: base64 and its kin, escapes, smuggled characters."""

import base64
import binascii
import html
import quopri
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from string import ascii_letters, ascii_lowercase, digits, hexdigits
from typing import Literal
from urllib.parse import unquote_to_bytes

from services.scanner.normalise import (
    ZERO_WIDTH,
    Mapped,
    Place,
    regions,
    strange_regions,
)

MAX_DEPTH = 4
MAX_BYTES = 8_000_000
"""Decoded bytes of one document beyond its own size, all layers together: a bound on nesting."""

_SHORTEST = 8  # decoded characters; nothing can be ordered in fewer
_SHORT_PIECE = 200  # characters of an encoded run; longer pieces are read by themselves
_INFLATED = 1_000_000
_TEXT_BYTES = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_HEAD = 40  # characters of an encoded run that show whether it is text
_READABLE = re.compile(
    rb"(?:[\x20-\x7e\t\n\r]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}"
    rb"|[\xf0-\xf4][\x80-\xbf]{3}){12,}+"
)

Decoder = Callable[[str], Iterator[bytes | str]]
Gate = Literal[
    "runs", "groups", "strange", "percent", "ampersand", "equals", "escape", "code-points", "rare",
    "morse",
]  # fmt: skip


class _Cut(Exception):
    """Something was left unread: it unpacks to more than is looked at."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What the `span` of the source says when it is decoded; None where the limits end the search.

    `hiding`: nobody encodes prose like this for honest transport. `names`: of the encodings,
    outermost first.
    """

    span: Place
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


def decoded(text: str, *, strange: bool = True) -> Iterator[Decoded]:
    """Every encoded passage of `text` that decodes to readable text, nested ones too.

    The last one has no text if something was left undecoded: too deep, or too much.
    """
    budget = _Budget(MAX_BYTES + len(text))
    yield from _layers(text, MAX_DEPTH, budget, strange=strange)
    if strange and not text.isascii():
        # What is between the letters of an encoded run would cut it into pieces.
        for low, high in strange_regions(text, _SHORT_PIECE):
            view = Mapped.of(text[low:high], low).replace(_INVISIBLE, "")
            for passage in _layers(view.text, MAX_DEPTH, budget):
                yield replace(passage, span=view.span(*passage.span))


_INVISIBLE = re.compile(rf"[{ZERO_WIDTH}\U000e0100-\U000e01ef\ufe00-\ufe0f]+")


class _Budget:
    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, size: int) -> bool:
        self.left -= size
        return self.left >= 0


def _layers(text: str, depth: int, budget: _Budget, *, strange: bool = True) -> Iterator[Decoded]:
    for scheme, span in _places(text, strange=strange):
        name = (scheme.name,)
        try:
            for plain in _plain(scheme, text[slice(*span)]):
                if not scheme.margin and (depth == 0 or not budget.take(len(plain))):
                    yield Decoded(span, None, True, name)
                    return
                if depth > 0:
                    yield Decoded(span, plain, scheme.hiding, name)
                    for deeper in _layers(plain, depth - 1, budget):
                        hiding = scheme.hiding or deeper.hiding
                        yield Decoded(span, deeper.text, hiding, name + deeper.names)
        except _Cut:
            yield Decoded(span, None, True, name)


def _places(text: str, *, strange: bool) -> Iterator[tuple[Scheme, Place]]:
    """Where `text` may hold which encoding."""
    shape = text.encode("ascii", "replace")
    marked = shape.translate(_AS_RUNS)
    for span in _runs(text, marked):
        if not _WORDY.fullmatch(text, *span):
            yield _BASE64, span
            yield from _within(text, span, _IN_RUNS)
    yield from _grouped(text, _group_places(shape, marked))
    if strange and not text.isascii():
        for low, high in strange_regions(text, 0):
            if high - low >= _LEAST_UNSEEN:
                yield from _within(text, (low, high), _UNSEEN)
    gates = _open_gates(shape)
    for scheme in (scheme for scheme in SCHEMES if scheme.gate in gates):
        for span in (
            regions(text, scheme.pattern, scheme.margin)
            if scheme.margin
            else _found(scheme.pattern, text)
        ):
            yield scheme, span


def _within(text: str, place: Place, schemes: Sequence[Scheme]) -> Iterator[tuple[Scheme, Place]]:
    for scheme in schemes:
        for span in _found(scheme.pattern, text, *place):
            yield scheme, span


def _found(
    pattern: re.Pattern[str], text: str, low: int = 0, high: int | None = None
) -> Iterator[Place]:
    end = len(text) if high is None else high
    return (match.span() for match in pattern.finditer(text, low, end))


# --- where runs and groups may be ----------------------------------------------------------------
# Bytes are searched faster than text, one byte a character; most texts need no more than this.


def _table(classes: dict[str, str]) -> bytes:
    """Each ASCII character as the first class that has it, everything else as a point."""
    shown = (next((name for name, cs in classes.items() if chr(c) in cs), ".") for c in range(128))
    return "".join(shown).encode() + b"." * 128


_LETTERS = ascii_letters + digits + "+/_-"
_AS_RUNS = _table({"a": _LETTERS, "n": "\n\"'", " ": " \t\r"})
_AS_GROUPS = _table({"h": hexdigits + "xX \t\n\r\x0b\x0c,;:\\-"})
_SIXTEEN = b"a" * 16
_EIGHT = b"a" * 8
_JOINED = re.compile(rb"n(?:(?<=aaaaaaaan)|(?<= n))(?=[^a]{0,16}(?:a{1,4}[^a]{1,16})?a{8})")
_GROUPED_RUN = b"h" * 21
_FOURS = b"aaaa " * 6
_FOURS_ON = re.compile(rb"(?:aaaa )+")


def _runs(text: str, marked: bytes) -> Iterator[Place]:
    """Runs of base64 letters, also over several lines."""
    done = 0
    for start in _run_starts(marked):
        if start >= done and (match := _RUN.match(text, start)):
            done = match.end()
            yield match.span()


def _run_starts(marked: bytes) -> list[int]:
    """Where a run may begin, in ascending order: what is long, or goes on in the next line."""
    flat = marked.translate(_FLAT)
    starts: list[int] = []
    at = flat.find(_SIXTEEN)
    while at >= 0:
        starts.append(at)
        end = flat.find(b".", at)
        at = flat.find(_SIXTEEN, end) if end >= 0 else -1
    for join in _JOINED.finditer(marked):
        before = marked[max(0, join.start() - 40) : join.start()].rstrip(b" ")
        if before.endswith(_EIGHT):
            end = max(0, join.start() - 40) + len(before)
            starts.append(flat.rfind(b".", 0, end) + 1)
    return sorted(starts)


_FLAT = bytes(c if c == ord("a") else ord(".") for c in range(256))


def _group_places(shape: bytes, marked: bytes) -> list[Place]:
    """Where groups may stand, in ascending order."""
    grouped = shape.translate(_AS_GROUPS)
    places: list[Place] = []
    at = grouped.find(_GROUPED_RUN)
    while at >= 0:
        end = grouped.find(b".", at)
        end = len(grouped) if end < 0 else end
        places.append((at, end))
        at = grouped.find(_GROUPED_RUN, end)
    at = marked.find(_FOURS)
    while at >= 0:
        on = _FOURS_ON.match(marked, at)
        end = on.end() if on else at + 1
        places.append((at, end))
        at = marked.find(_FOURS, end)
    return sorted(places)


def _grouped(text: str, places: Sequence[Place]) -> Iterator[tuple[Scheme, Place]]:
    """Short groups of digits or letters with gaps between them."""
    done = 0
    for low, high in places:
        ahead = [(low, low)] if low == 0 and _GROUPS_AHEAD.match(text) else []
        for first, start in (*ahead, *_found(_GROUPS, text, max(0, low - 1), high)):
            if start < done:
                continue
            for scheme in _GROUPED:
                match = scheme.pattern.match(text, start) or scheme.pattern.match(text, first)
                if match is not None:
                    done = max(done, match.end())
                    yield scheme, match.span()


def _open_gates(shape: bytes) -> frozenset[Gate]:
    """What kinds of encodings a text may hold at all: most texts hold none."""
    rot47 = _ROT47_WORD in shape or (b"@" in shape and any(w in shape for w in _ROT47_WORDS))
    gates: dict[Gate, bool] = {
        "percent": b"%" in shape,
        "ampersand": b"&" in shape,
        "equals": b"=" in shape,
        "escape": b"\\" in shape,
        "code-points": b"U+" in shape,
        "rare": b"~>" in shape or rot47,
        "morse": _MORSE_RUN in shape.translate(_AS_MORSE)
        and (b"._." in shape or any(sign in shape for sign in _MORSE_SIGNS)),
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
    packed = inner[:2] in (b"\x1f\x8b", b"\x78\x9c", b"\x78\xda", b"\x78\x01", b"\x78\x5e")
    whole, cut = _inflate(inner) if packed else (inner, False)
    yield from _text_in(whole)
    if cut:
        raise _Cut


def _text_in(data: bytes) -> Iterator[str]:
    if len(data) < _SHORTEST:
        return
    try:
        whole = data.decode(_charset(data))
    except UnicodeDecodeError:
        whole = _one_byte_cyrillic(data)
    if whole and sum(not c.isprintable() and not c.isspace() for c in whole[:400]) < 20:
        yield whole
        return
    for run in _READABLE.findall(data.replace(b"\0", b"")):
        yield run.decode("utf-8", "replace")


def _charset(data: bytes) -> str:
    """UTF-16 if a mark says so or every other byte is that of Latin or Cyrillic letters."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        half = data[first:200:2]
        if len(half) - len(half.translate(None, b"\0\4")) > 0.9 * len(half):
            return name
    return "utf-8"


def _one_byte_cyrillic(data: bytes) -> str:
    """The text if nearly all of it is Cyrillic words in windows-1251 or KOI8-R, or nothing."""
    letters = len(data.translate(None, bytes(range(0xC0))))
    spaces = data.count(b" ")
    if (letters + spaces) * 10 < len(data) * 8 or not spaces:
        return ""
    # In each of the two, small letters fill the half of the table that the other has capitals in.
    small = len(data.translate(None, bytes(range(0xE0))))
    return data.decode("cp1251" if small * 2 > letters else "koi8-r", "replace")


def _inflate(data: bytes) -> tuple[bytes, bool]:
    """What packed data say, and whether there is more of it than was unpacked."""
    unpacker = zlib.decompressobj(47)
    try:
        found = unpacker.decompress(data, _INFLATED)
    except zlib.error:
        return b"", False
    return found, bool(unpacker.unconsumed_tail)


def _base64(found: str) -> Iterator[bytes]:
    packed = _NOT_BASE64.sub("", _JOINS.sub("", found)).translate(_URL_SAFE)
    for other in (packed[::-1], packed.translate(_ROT13)):
        if _mostly_text(_unpacked(other[:_HEAD])):
            yield _unpacked(other)
    for skip in range(4):
        piece = packed[skip:]
        if skip and not _mostly_text(_unpacked(piece[:_HEAD])):
            continue
        raw = _unpacked(piece)
        yield raw
        if _mostly_text(raw):
            return


_JOINS = re.compile(r"[\"'][^A-Za-z0-9]*[\"']")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/_-]")
_URL_SAFE = str.maketrans("-_", "+/")
_TURNED = ascii_lowercase[13:] + ascii_lowercase[:13]
_ROT13 = str.maketrans(ascii_letters, _TURNED + _TURNED.upper())


def _unpacked(piece: str) -> bytes:
    piece = piece[: len(piece) - (len(piece) % 4 == 1)]
    return base64.b64decode(piece + "=" * (-len(piece) % 4))


def _mostly_text(raw: bytes) -> bool:
    head = raw[:300]
    strange = len(head.translate(None, _TEXT_BYTES))
    if strange * 10 < len(head):
        return True
    known = head.decode("utf-8", "ignore")
    lost = len(head) - len(known.encode())
    return (lost + sum(not c.isprintable() for c in known)) * 10 < len(head)


def _base32(found: str) -> Iterator[bytes]:
    packed = re.sub(r"[\s=]", "", found).upper()
    packed = packed[: len(packed) - {1: 1, 3: 1, 6: 1}.get(len(packed) % 8, 0)]
    for number, one in enumerate((packed, packed[::-1], packed.translate(_ROT13))):
        try:
            raw = base64.b32decode(one + "=" * (-len(one) % 8))
        except binascii.Error:
            continue
        if number == 0 or _mostly_text(raw[:_HEAD]):
            yield raw


def _ascii85(found: str) -> Iterator[bytes]:
    try:
        yield base64.a85decode(found, adobe=True)
    except ValueError:
        return


def _hex(found: str) -> Iterator[bytes]:
    digits = re.sub(r"\\x|0x|[^0-9A-Fa-f]", "", found)
    raw = bytes.fromhex(digits[: len(digits) // 2 * 2])
    yield raw
    backwards = bytes.fromhex(digits[::-1][: min(len(digits) // 2 * 2, _HEAD)])
    if not _mostly_text(raw[:_HEAD]) and _mostly_text(backwards):
        yield bytes.fromhex(digits[::-1][: len(digits) // 2 * 2])


def _hex_by_rot13(found: str) -> Iterator[bytes]:
    yield from _hex(found.translate(_ROT13))


def _numbers(found: str) -> Iterator[bytes | str]:
    codes = [int(n) for n in re.findall(r"\d+", found)]
    if all(c in _WRITTEN for c in codes):
        yield "".join(map(chr, codes))
    if max(codes) in range(128, 256):
        yield bytes(codes)


_WRITTEN = frozenset((9, 10, 13, *range(32, 127), *range(0xA0, 0x180), *range(0x400, 0x460)))


def _octal(found: str) -> Iterator[bytes]:
    codes = [int(n, 8) for n in re.findall(r"[0-7]{3}", found)]
    if all(code < 256 for code in codes):
        yield bytes(codes)


def _hex_dump(found: str) -> Iterator[bytes]:
    """Rows of an address, bytes in hexadecimal and, after two blanks, what they show."""
    rows = (re.match(r"\s*[0-9A-Fa-f]+:?\s+((?:[0-9A-Fa-f]{2} ?)+)", r) for r in found.split("\n"))
    yield bytes.fromhex("".join(row.group(1) for row in rows if row))


def _binary(found: str) -> Iterator[bytes]:
    bits = re.sub(r"[^01]", "", found)
    yield bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits) - 7, 8))


def _url(found: str) -> Iterator[bytes]:
    # Half of a pair, as `\ud83d` says it, is no reason to fail.
    yield unquote_to_bytes(found.replace("+", " ").encode("utf-8", "surrogatepass"))


def _entities(found: str) -> Iterator[str]:
    yield html.unescape(found)


def _quoted_printable(found: str) -> Iterator[bytes]:
    yield quopri.decodestring(found.encode("ascii", "replace"))


def _escapes(found: str) -> Iterator[str]:
    def character(match: re.Match[str]) -> str:
        code = int(next(filter(None, match.groups())), 16)
        return chr(code) if code < 0x110000 else ""

    yield _ESCAPED.sub(character, found)


_HEX = "[0-9a-fA-F]"
_ESCAPED = re.compile(
    rf"\\[uUx]\{{({_HEX}{{1,6}})\}}|[\\%]u({_HEX}{{4}})|\\U({_HEX}{{8}})|\\(00{_HEX}{{4}}) ?"
    rf"|U\+({_HEX}{{4,6}})\s?|\\x({_HEX}{{2}})"
)


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


def _rot47(found: str) -> Iterator[str]:
    yield found.translate({33 + n: 33 + (n + 47) % 94 for n in range(94)})


_MORSE_LETTERS = (
    "a.- b-... c-.-. d-.. e. f..-. g--. h.... i.. j.--- k-.- l.-.. m-- n-. o--- p.--. q--.- r.-."
    " s... t- u..- v...- w.-- x-..- y-.-- z--.."
)
_AS_MORSE = bytes(109 if chr(c) in ".-_/ ?" else 32 for c in range(256))
_MORSE_RUN = b"m" * 28  # fourteen signs with gaps, in bytes as `_AS_MORSE` shows them
_MORSE_SIGNS = (b" .. ", b" -. ", b" .-. ", b" --- ")


def _morse(found: str) -> Iterator[str]:
    letters = {sign[1:]: sign[0] for sign in _MORSE_LETTERS.split()}
    words = re.split(r"\s*/\s*|\s{2,}", found.translate(str.maketrans("·•−–_", "..---")).strip())
    yield " ".join("".join(letters.get(sign, "") for sign in word.split()) for word in words)


# Words that give an order away, in ROT47, without their first letters, which may be capitals.
_ROT47_WORD, *_ROT47_WORDS = (b":DC682C5", b"8?@C6", b"DECF4E:@?", b"C6G:@FD", b"C@>AE")
_B64 = r"[A-Za-z0-9+/_-]"
# What joins the pieces of one run: the end of a line and the marks of the next, or quotation marks.
_JOIN = r"(?:[ \t]*\r?\n[ \t>#|*]*|[\"'][ \t,+.&\\]{0,4}(?:\r?\n[ \t>#|*]*)?[\"'])"
_RUN = re.compile(
    rf"(?<!{_B64})(?:{_B64}{{16,}}+|{_B64}{{8,}}+(?={_JOIN}{_B64}{{8}}))"
    rf"(?:{_JOIN}{_B64}{{8,}}+)*+(?:{_JOIN}{_B64}{{1,7}}(?![^\s=\"']))?={{0,2}}"
)
# Words and paths: what is encoded is not made of whole small words alone.
_WORDY = re.compile(
    r"(?:[A-Z]?[a-z]{3,}+|[A-Z]{2,}+(?![a-z])|[a-z]{1,2}+(?![A-Z0-9])|[-/_+=\s>#|*])*+"
)
_GROUP = r"[0\\]?[xb]?[0-9A-Fa-f]{2,8}[\s,;:\\-]{1,2}"
_GROUPS_AHEAD = re.compile(rf"(?:{_GROUP}){{7}}|(?:[A-Za-z0-9+/]{{4}}[ ]){{6}}|\\[x0-7]")
_GROUPS = re.compile(
    rf"[\s,;:\\-](?=(?:{_GROUP}){{7}}|x[0-9A-Fa-f]{{2}}\\x"
    r"|[0-7]{3}\\[0-7]{3}\\|(?:[A-Za-z0-9+/]{4}[ ]){6})"
)


def _scheme(gate: Gate, name: str, pattern: str, read: Decoder, margin: int = 0) -> Scheme:
    return Scheme(name, gate, re.compile(pattern), read, hiding=not margin, margin=margin)


_BASE64 = Scheme("base64", "runs", _RUN, _base64)
_IN_RUNS = (
    _scheme("runs", "base32", r"(?<![A-Za-z0-9])(?:[A-Z2-7]{16,}+|[a-z2-7]{24,}+)", _base32),
    _scheme(
        "runs",
        "hex",
        r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8,}+(?:[ \t>#|*]*\r?\n[ \t>#|*]*[0-9A-Fa-f]{8,}+)*+",
        _hex,
    ),
    _scheme("runs", "hex by rot13", r"(?<![0-9A-Za-z])[0-9N-Sn-s]{24,}+", _hex_by_rot13),
    _scheme("runs", "binary", r"(?<!\d)[01]{64,}+", _binary),
)
_GROUPED = (
    _scheme(
        "groups",
        "hex dump",
        r"(?:[0-9A-Fa-f]{4,8}:?[ ]{1,2}(?:[0-9A-Fa-f]{2,4}[ ]{1,2}){4}[^\n]*(?:\n[ ]*|\Z)){2,}+",
        _hex_dump,
    ),
    _scheme(
        "groups",
        "hex",
        r"(?<![0-9A-Za-z])(?:\\x|0x)?[0-9A-Fa-f]{2}"
        r"(?:(?:[ \t\n:,;-]{1,2}(?:\\x|0x)?|\\x|0x)[0-9A-Fa-f]{2}){7,}+",
        _hex,
    ),
    _scheme("groups", "numbers", r"(?<!\d)\d{2,4}(?:[\s,;]{1,2}\d{2,4}){9,}+(?!\d)", _numbers),
    _scheme("groups", "octal", r"(?:\\?[0-7]{3}[\s,]{0,2}){8,}+(?!\d)", _octal),
    _scheme("groups", "binary", r"(?<!\d)(?:0b)?[01]{8}(?:[\s,]{1,2}(?:0b)?[01]{8}){7,}+", _binary),
    _scheme(
        "groups",
        "base64",
        r"(?<![^\s])[A-Za-z0-9+/]{4}(?:[ ][A-Za-z0-9+/]{4}){4,}+(?:[ ][A-Za-z0-9+/]{2,4})?={0,2}",
        _base64,
    ),
)
_LEAST_UNSEEN = 3  # characters without a shape in a row
_UNSEEN = (
    _scheme("strange", "tag-characters", r"[\U000e0020-\U000e007e]{3,}", _tags),
    _scheme("strange", "selectors", r"[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}", _selectors),
    _scheme("strange", "bits", r"[\u200b-\u200f\u2060-\u2064\ufeff]{56,}", _two_symbols),
)
SCHEMES: tuple[Scheme, ...] = (
    _scheme("rare", "ascii85", r"<~[!-uz\s]{10,2000}~>", _ascii85),
    Scheme(
        "rot47",
        "rare",
        re.compile("|".join(re.escape(w.decode()) for w in (*_ROT47_WORDS, _ROT47_WORD))),
        _rot47,
        margin=160,
    ),
    _scheme(
        "morse", "morse", r"(?<![.·•−–_-])(?:[.·•−–_-]{1,6}(?:[ ]{1,3}/?[ ]{0,2}|/)){14,}+", _morse
    ),
    _scheme(
        "code-points",
        "code-points",
        r"U\+[0-9a-fA-F]{4,6}[\s,]{0,2}+(?:U\+[0-9a-fA-F]{4,6}[\s,]{0,2}+){7,}+",
        _escapes,
    ),
    _scheme(
        "escape",
        "escapes",
        rf"\\(?:[uUx]\{{{_HEX}{{1,6}}\}}|u{_HEX}{{4}}|U{_HEX}{{8}}|00{_HEX}{{4}}|x{_HEX}{{2}})",
        _escapes,
        60,
    ),
    _scheme("percent", "escapes", rf"%u{_HEX}{{4}}", _escapes, 60),
    _scheme("percent", "url", r"%[0-9A-Fa-f]{2}", _url, 60),
    _scheme(
        "ampersand",
        "entities",
        r"&(?:#x?[0-9a-fA-F]{2,7}"
        r"|(?!(?:quot|apos|copy|mdash|ndash|hellip|amp(?!;#?\w{1,8};));)#?\w{1,8};)",
        _entities,
        60,
    ),
    _scheme("equals", "quoted-printable", r"=(?:[0-9A-F]{2}|(?<!==)\r?\n)", _quoted_printable, 60),
)
