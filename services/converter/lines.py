"""Lines that know where they came from, so that places survive every change of a text. Pure."""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple, Self

from contracts.artifacts import Span

_LINE_END = r"\r\n?|[\v\x1c-\x1e\x85\u2028\u2029]"
_CONTROL = r"[\x00-\x08\x0e-\x1b\x1f\x7f]"
_UNCLEAN = re.compile(f"({_LINE_END})|{_CONTROL}")
_WORD = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")
"""A run outside ASCII with the letter before it: nothing composes over its edges."""
_MOST_MARKS = 30
"""Accents on one letter that are kept, as in UAX 15's Stream-Safe Text Format: composing takes
time by the square of their number."""
_LONG_RUN = re.compile(rf"[^\x00-\x7f]{{{_MOST_MARKS + 1},}}")
"""Marks are outside ASCII: to look for them everywhere takes minutes of a large text."""
_JAMO = re.compile(r"[\u1160-\u11ff\ud7b0-\ud7ff]")


class Piece(NamedTuple):
    """`line[start:start + length]` is `source_text[source:source + length]`."""

    start: int
    source: int
    length: int


class Tail(NamedTuple):
    """`source[start:end]`, not copied."""

    source: str
    start: int
    end: int


class Line(NamedTuple):
    """A line without its end.

    `origin`: the place of all of it in the source, or its `pieces`. `code`: it belongs to a fenced
    block, fences included. `page`: a page of the source starts here. `tail`: more text of a very
    long line, which is held only once; its origin is that of the text.
    """

    text: str
    origin: int | tuple[Piece, ...] = ()
    code: bool = False
    page: bool = False
    tail: Tail | None = None

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """In ascending order; what is in none of them was put in."""
        if isinstance(self.origin, int):
            return (Piece(0, self.origin, self.size),)
        return self.origin

    @property
    def size(self) -> int:
        """Characters, those of the tail included."""
        return len(self.text) + (self.tail.end - self.tail.start if self.tail else 0)

    def whole(self) -> Self:
        """The line with its tail in its text."""
        if self.tail is None:
            return self
        source, start, end = self.tail
        return self._replace(text=self.text + source[start:end], tail=None)

    def cut(self, start: int, end: int) -> Self:
        """`text[start:end]` with its origin; `start` and `end` within the text."""
        if start == 0 and end == len(self.text):
            return self
        text = self.text[start:end]
        if isinstance(self.origin, int):
            return self._replace(text=text, origin=self.origin + start if text else (), tail=None)
        kept = tuple(
            Piece(max(at - start, 0), source + max(start - at, 0), min(at + length, end) - first)
            for at, source, length in self.origin
            if (first := max(at, start)) < min(at + length, end)
        )
        return self._replace(text=text, origin=kept, tail=None)

    def stripped(self) -> Self:
        """Without blanks at the ends."""
        if self.tail is not None:
            return self.whole().stripped()
        text = self.text.strip()
        if len(text) == len(self.text):
            return self
        start = len(self.text) - len(self.text.lstrip())
        return self.cut(start, start + len(text))

    def without(self, ranges: Iterable[tuple[int, int]]) -> "Line":
        """All but these ranges, which are in ascending order."""
        at, parts = 0, list[Line | str]()
        for start, end in ranges:
            parts.append(self.cut(at, start))
            at = end
        parts.append(self.cut(at, len(self.text)))
        return joined(parts) if len(parts) > 1 else self


def joined(parts: Iterable[Line | str]) -> Line:
    """One line of text outside code; what is given as `str` came from nowhere."""
    at = 0
    texts: list[str] = []
    pieces: list[Piece] = []
    for given in parts:
        part = given if isinstance(given, str) else given.whole()
        text = part if isinstance(part, str) else part.text
        if not isinstance(part, str):
            pieces.extend(piece._replace(start=piece.start + at) for piece in part.pieces)
        texts.append(text)
        at += len(text)
    return Line("".join(texts), tuple(pieces))


# --- from a parse -----------------------------------------------------------------------------


class Edit(NamedTuple):
    """`text[start:end]` was replaced by `size` characters."""

    start: int
    end: int
    size: int


Edits = tuple[Sequence[Edit], ...]
"""Rounds of edits, each in ascending order, over the text that the round before it made."""


def cleaned(raw: str) -> tuple[str, Edits]:
    r"""`raw` with `\n` line ends, without control characters but tab and form feed, in NFC."""
    # In rounds: a control character between a letter and its accent must not keep them apart.
    text, ends = _edited(raw, _unclean(raw))
    text, heaps = _edited(text, _heaps(text))
    text, letters = _edited(text, _decomposed(text))
    return text, (ends, heaps, letters)


def _edited(text: str, changes: Iterable[tuple[int, int, str]]) -> tuple[str, list[Edit]]:
    edits: list[Edit] = []
    out: list[str] = []
    at = 0
    for start, end, new in changes:
        out += [text[at:start], new]
        edits.append(Edit(start, end, len(new)))
        at = end
    return ("".join([*out, text[at:]]), edits) if edits else (text, edits)


def _unclean(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _UNCLEAN.finditer(text):
        yield match.start(), match.end(), "\n" if match[1] else ""


def _heaps(text: str) -> Iterator[tuple[int, int, str]]:
    """Accents on one letter beyond the first `_MOST_MARKS`."""
    for run in _LONG_RUN.finditer(text):
        for match in _too_many_marks().finditer(text, run.start(), run.end()):
            yield match.start() + _MOST_MARKS, match.end(), ""


@cache
def _too_many_marks() -> re.Pattern[str]:
    marks = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.combining(c))
    return re.compile(f"[{marks}]{{{_MOST_MARKS}}}[{marks}]+")


def _decomposed(text: str) -> Iterator[tuple[int, int, str]]:
    if unicodedata.is_normalized("NFC", text):
        return
    for word in _WORD.finditer(text):
        if unicodedata.is_normalized("NFC", word[0]):
            continue
        at = word.start()
        for cluster in _clusters(word[0]):
            new = unicodedata.normalize("NFC", cluster)
            if new != cluster:
                yield at, at + len(cluster), new
            at += len(cluster)


def _clusters(word: str) -> list[str]:
    """Parts that can be composed one by one."""
    clusters: list[str] = []
    for char in word:
        if clusters and (unicodedata.category(char)[0] == "M" or _JAMO.match(char)):
            clusters[-1] += char
        else:
            clusters.append(char)
    whole = "".join(unicodedata.normalize("NFC", cluster) for cluster in clusters)
    return clusters if whole == unicodedata.normalize("NFC", word) else [word]


LONG_TABLE = 500
"""Rows of a table from which those in the middle are one line, ends and all: a spreadsheet of a
million rows needs no million objects, and nothing is done to a row alone."""

LONG_LINE = 1 << 16
"""Characters of a line beyond which they are its tail: more than anybody looks at."""

_ROW = r"\|[^\n\f]*\|\n"


def split(text: str) -> list[Line]:
    """The lines of a cleaned text; a form feed ends a line and a page."""
    lines: list[Line] = []
    at = 0
    for start, end in _middles(text):
        _split(lines, text[at : start - 1], at)
        lines.append(_line(text, start, end - 1))
        at = end
    _split(lines, text[at:] if at else text, at)
    return lines


def _middles(text: str) -> Iterator[tuple[int, int]]:
    """The rows in the middle of each long table: all but two at its start and one at its end."""
    # Only where a table begins: a search from each of its rows would be quadratic. And never back
    # again: that would be remembered for every row.
    rows = re.compile(rf"(?<!\|\n)^(?:{_ROW}){{2}}((?:{_ROW})++)", re.MULTILINE)
    for table in rows.finditer(text):
        start, end = table.span(1)
        if not text.startswith("|", end):
            end = text.rfind("\n", 0, end - 1) + 1
        if end > start and text.count("\n", start, end) >= LONG_TABLE:
            yield start, end


def _line(text: str, start: int, end: int) -> Line:
    """`text[start:end]`, whole rows."""
    first = text.find("\n", start + LONG_LINE, end)
    tail = Tail(text, first, end) if first >= 0 else None
    return Line(text[start : first if tail else end], start, tail=tail)


def _split(lines: list[Line], text: str, at: int) -> None:
    for number, page in enumerate(text.split("\f")):
        first = number > 0
        for line in page.split("\n"):
            size = len(line)
            lines.append(Line(line, at if size else (), page=first))
            at += size + 1
            first = False


# --- to a body --------------------------------------------------------------------------------


def body_of(lines: Sequence[Line]) -> str:
    """The text of `lines`, each with its end."""
    return "".join(body_pieces(lines))


_PIECE = 1 << 20


def body_pieces(lines: Iterable[Line]) -> Iterator[str]:
    """As `body_of`, piece by piece."""
    for line in lines:
        yield line.text
        if line.tail is not None:
            source, start, end = line.tail
            for at in range(start, end, _PIECE):
                yield source[at : min(at + _PIECE, end)]
        yield "\n"


def carried(
    spans: Sequence[Span], raw: str, edits: Edits, lines: Sequence[Line]
) -> tuple[Span, ...]:
    """`spans` over `raw` as spans over `body_of(lines)`; `lines` are of `cleaned(raw)`.

    The origin of text ascends through `lines`, so what is left of a span is one range, which holds
    nothing of another. A span of which nothing is left goes.
    """
    if not spans:
        return ()
    bounds = [bound for span in spans for bound in (span.byte_start, span.byte_end)]
    wanted = _characters(raw, bounds)
    for edited in edits:
        wanted = _after(edited, wanted)
    places = (
        (at + piece.start, piece.source, piece.length)
        for at, line in zip(_starts(lines), lines, strict=False)
        for piece in line.pieces
    )
    kept = list(_left(zip(spans, wanted[::2], wanted[1::2], strict=True), places))
    offsets = _bytes(body_pieces(lines), [at for start, end, _ in kept for at in (start, end)])
    return tuple(
        Span(byte_start=start, byte_end=end, place=span.place)
        for (_, _, span), start, end in zip(kept, offsets[::2], offsets[1::2], strict=True)
    )


def _left(
    spans: Iterable[tuple[Span, int, int]], places: Iterator[tuple[int, int, int]]
) -> Iterator[tuple[int, int, Span]]:
    """What of spans (with start and end in the source) is left, with start and end in the body.

    `places`: start in the body, start in the source, length; all in ascending order. They are as
    many as lines: they go by once.
    """
    place, ahead = next(places, None), next(places, None)
    for span, start, end in spans:
        while place is not None and place[1] + place[2] <= start:
            place, ahead = ahead, next(places, None)
        if place is None or start >= end or place[1] >= end:
            continue
        begin = place[0] + max(0, start - place[1])
        while ahead is not None and ahead[1] < end:
            place, ahead = ahead, next(places, None)
        yield begin, place[0] + min(place[2], end - place[1]), span


def _starts(lines: Sequence[Line]) -> Iterator[int]:
    return accumulate((line.size + 1 for line in lines), initial=0)


def _characters(text: str, offsets: Sequence[int]) -> list[int]:
    """Offsets in UTF-8 bytes, ascending, as offsets in characters."""
    if text.isascii():
        return list(offsets)
    out: list[int] = []
    data, at, before = b"", 0, 0
    for start in range(0, len(text), _PIECE):
        # `data` begins at byte `before`, its character number is `at`.
        before, at = before + len(data), start
        data = text[start : start + _PIECE].encode()
        first = 0
        while len(out) < len(offsets) and offsets[len(out)] <= before + len(data):
            last = offsets[len(out)] - before
            at += len(data[first:last].decode(errors="ignore"))
            out.append(at)
            first = last
    return out + [len(text)] * (len(offsets) - len(out))


def _bytes(pieces: Iterable[str], offsets: Sequence[int]) -> list[int]:
    """Offsets in the characters of a text in pieces, ascending, as offsets in UTF-8 bytes."""
    out: list[int] = []
    at = size = 0
    for piece in pieces:
        if len(out) == len(offsets):
            break
        first = 0
        plain = piece.isascii()
        while len(out) < len(offsets) and offsets[len(out)] <= at + len(piece):
            last = offsets[len(out)] - at
            size += last - first if plain else len(piece[first:last].encode())
            out.append(size)
            first = last
        size += len(piece) - first if plain else len(piece[first:].encode())
        at += len(piece)
    return out


def _after(edits: Sequence[Edit], offsets: Sequence[int]) -> list[int]:
    """Offsets, ascending, as they are after `edits`; one within an edit moves to its end."""
    out: list[int] = []
    shift = at = 0
    for offset in offsets:
        while at < len(edits) and edits[at].end <= offset:
            shift += edits[at].size - (edits[at].end - edits[at].start)
            at += 1
        inside = at < len(edits) and edits[at].start < offset
        out.append(edits[at].start + edits[at].size + shift if inside else offset + shift)
    return out
