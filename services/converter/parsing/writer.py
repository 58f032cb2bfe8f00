"""Markdown written piece by piece, with the place of every piece."""

import codecs
from collections.abc import Iterator

from contracts.artifacts import ParsedDocument, Place, Span
from kernel.errors import Refusal
from services.converter.parsing.literal import LONGEST_HEADING, heading, span

_FEW_SPANS = 20_000
_SPAN_BYTES = 4096
_PIECE = 1 << 22
_EDGES = b" \t\r\n|"


class Writer:
    """The Markdown of one document as it grows, held once, as UTF-8.

    Beyond 20,000 spans, neighbours in the lines of one file are joined up to 4 KiB: a table of a
    million rows needs no million spans to be found in.
    """

    def __init__(self, most_bytes: int) -> None:
        self._out = bytearray()
        self._spans: list[Span] = []
        self._most = most_bytes
        self._in_list = False

    @property
    def empty(self) -> bool:
        """Whether nothing was written."""
        return not self._out

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return len(self._out)

    def add(self, markdown: str, place: Place | None = None) -> None:
        """Append Markdown as it is.

        Raises:
            Refusal: `too-large`.
        """
        data = markdown.encode("utf-8", "replace")
        start = len(self._out)
        self._out += data
        if len(self._out) > self._most:
            raise Refusal("too-large", f"the text has more than {self._most} bytes")
        text = data.strip(_EDGES) if place is not None else b""
        if place is not None and text:
            begin = start + data.index(text)
            self._note(begin, begin + len(text), place)

    def block(self, markdown: str, place: Place | None = None) -> None:
        """Append a block, parted by a blank line from what is before. Nothing for an empty one."""
        if markdown.strip():
            self.gap()
            self.add(markdown, place)

    def item(self, line: str, place: Place | None = None) -> None:
        """Append an item of a list with its mark; items that follow each other are one list."""
        if self._in_list:
            self._out += b"\n"
        else:
            self.gap()
        self.add(line, place)
        self._in_list = True

    def copy(self, document: ParsedDocument, part: str) -> None:
        """Append another document's Markdown as blocks; its spans lie in `part` of this one."""
        self.gap()
        start = len(self._out)
        self.add(document.markdown)
        for one in document.spans:
            place = one.place.model_copy(update={"part": part})
            self._note(start + one.byte_start, start + one.byte_end, place)

    @property
    def text(self) -> str:
        """What was written so far."""
        return self._out.decode()

    def gap(self) -> None:
        """End the block before, if there is one."""
        self._in_list = False
        if self._out and not self._out.endswith(b"\n\n"):
            self._out += b"\n" if self._out.endswith(b"\n") else b"\n\n"

    def heading(self, text: str, level: int, place: Place | None = None) -> None:
        """A heading of literal text; below the sixth level, and when very long, bold."""
        literal = heading(text)
        if not literal:
            return
        if level > 6 or len(literal) > LONGEST_HEADING:
            self.block(f"**{span(text)}**", place)
        else:
            self.block(f"{'#' * level} {literal}", place)

    def finish(self, *, close: bool = True) -> tuple[str, tuple[Span, ...]]:
        """The Markdown and its spans; the writer is empty then. `close` ends the last line.

        Raises:
            Refusal: `too-large`.
        """
        # What a JSON string of it will take: the parse travels as one.
        size = len(self._out) + sum(self._out.count(c) for c in (b"\n", b'"', b"\\"))
        if size + 160 * len(self._spans) > self._most:
            raise Refusal("too-large", f"the text has more than {self._most} bytes")
        if close and self._out and not self._out.endswith(b"\n"):
            self._out += b"\n"
        # A single letter of another plane makes four bytes of each of the text: not beside it.
        pieces = list(codecs.iterdecode(_pieces(self._out), "utf-8"))
        spans = tuple(self._spans)
        self._out, self._spans = bytearray(), []
        return "".join(pieces), spans

    def _note(self, begin: int, end: int, place: Place) -> None:
        last = self._spans[-1] if self._spans else None
        if last is not None and not self._out[last.byte_end : begin].strip(_EDGES):
            joined = _joined(last.place, place) if len(self._spans) > _FEW_SPANS else None
            small = end - last.byte_start <= _SPAN_BYTES
            if last.place == place or (joined is not None and small):
                begin, place = last.byte_start, joined or place
                self._spans.pop()
        self._spans.append(Span(byte_start=begin, byte_end=end, place=place))


def _pieces(data: bytearray) -> Iterator[bytes]:
    return (bytes(data[at : at + _PIECE]) for at in range(0, len(data), _PIECE))


def _joined(first: Place, second: Place) -> Place | None:
    """Both places as one, if they are lines of one file."""
    if first.lines is None or second.lines is None or first.part != second.part:
        return None
    return Place(part=first.part, lines=(first.lines[0], max(first.lines[1], second.lines[1])))
