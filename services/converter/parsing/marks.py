"""Where text came from, carried through libraries that know nothing of it.

A mark is a short run of noncharacters (Unicode's U+FDD0…U+FDEF, which no text may hold) put in
front of a piece of text. Libraries copy it along with the text; at the end the marks are taken out
of the Markdown, and their positions are the spans.
"""

import re

from contracts.artifacts import Place, Span

NONCHARACTERS = "".join(map(chr, range(0xFDD0, 0xFDF0)))
"""Every character that a mark can be made of."""

_DIGITS = {ord(f"{n:x}"): 0xFDD0 + n for n in range(16)}
_VALUES = {code: chr(digit) for digit, code in _DIGITS.items()}
_OPEN, _CLOSE, _END = "\ufde0", "\ufde1", "\ufde2"
_ALL = re.compile("[\ufdd0-\ufdef]")
_MARK = re.compile(f"{_OPEN}([\ufdd0-\ufddf]+){_CLOSE}|{_END}")
_EDGES = " \t\r\n|"


def unmarked(text: str) -> str:
    """`text` without any mark, ours or forged; for text from outside before it is marked."""
    return _ALL.sub("", text)


def digits(number: int) -> str:
    """A number from 0 in characters of marks."""
    return f"{number:x}".translate(_DIGITS)


def number_of(written: str) -> int:
    """What `digits` wrote."""
    return int(written.translate(_VALUES), 16)


class Marks:
    """The marks of one document.

    A place holds from its mark to the next mark, or to `END`; text before the first has none.
    """

    END = _END
    """Ends the place before it without opening another."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._numbers: dict[Place, int] = {}

    def mark(self, place: Place) -> str:
        """The mark of `place`, to be put right before its text."""
        number = self._numbers.setdefault(place, len(self._places))
        if number == len(self._places):
            self._places.append(place)
        return _OPEN + digits(number) + _CLOSE

    def resolve(self, marked: str) -> tuple[str, tuple[Span, ...]]:
        """The text without marks, and spans over its UTF-8 bytes.

        Blanks, line ends and table bars at the edges of a span are not part of it; neighbours of
        one place are one span.
        """
        pieces: list[str] = []
        spans: list[Span] = []
        place: Place | None = None
        goes_on = False
        at = start = 0
        for match in [*_MARK.finditer(marked), None]:
            piece = _ALL.sub("", marked[start : match.start() if match else len(marked)])
            pieces.append(piece)
            size = len(piece.encode())
            if place is not None and piece.strip(_EDGES):
                _add(spans, piece, at, place, goes_on=goes_on)
            goes_on = place is not None
            at += size
            if match is not None:
                start = match.end()
                place = self._place(match[1])
        return "".join(pieces), tuple(spans)

    def _place(self, written: str | None) -> Place | None:
        number = number_of(written) if written else -1
        return self._places[number] if 0 <= number < len(self._places) else None


def _add(spans: list[Span], piece: str, at: int, place: Place, *, goes_on: bool) -> None:
    text = piece.strip(_EDGES)
    lead = len(piece[: piece.index(text)].encode())
    begin = at + lead
    end = begin + len(text.encode())
    if goes_on and spans and spans[-1].place == place:
        begin = spans.pop().byte_start
    spans.append(Span(byte_start=begin, byte_end=end, place=place))
