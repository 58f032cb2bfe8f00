"""Lines of another law that a law quotes: "… is replaced by the following:". Pure."""

from collections.abc import Sequence

_CLOSING = {
    "„": '“”"',
    "“": '”"',
    "«": "»",
    "»": "«",
    "‘": "’",
    '"': '"',
}
_BEFORE = "#*_>-–—\\ \t"
_AFTER = ".,;:)]*_\\ \t"
_MOST_LINES = 400
_MOST_OPEN = 200
"""Quotations that are never closed, after which none is looked for: each is read to its end."""


def quoted_lines(texts: Sequence[str]) -> set[int]:
    """Numbers of the lines within a quotation that opens at the start of a line and goes on below.

    Only after a line that announces it with a colon; what is never closed is no quotation.
    """
    found: set[int] = set()
    above, number, open_ones = "", 0, 0
    while number < len(texts) and open_ones < _MOST_OPEN:
        text = texts[number].lstrip(_BEFORE)
        after = number + 1
        if text[:1] in _CLOSING and above.rstrip(_AFTER.replace(":", "")).endswith(":"):
            end = _end(texts, number, text[0])
            open_ones += end < 0
            if end > number:
                found.update(range(number, end + 1))
                after = end + 1
        above = texts[after - 1] if texts[after - 1].strip() else above
        number = after
    return found


def _end(texts: Sequence[str], first: int, opening: str) -> int:
    """The line that closes the quotation; -1 if none does."""
    depth = 0
    for number in range(first, min(first + _MOST_LINES, len(texts))):
        text = texts[number]
        if opening in '‘"':
            # An apostrophe and a mark of inches look the same: only the end of a line tells.
            closes = text.rstrip(_AFTER)[-1:] == _CLOSING[opening]
            if closes and (number > first or text.count(opening) > 1 or opening == "‘"):
                return number
            continue
        depth += text.count(opening) - sum(text.count(c) for c in _CLOSING[opening])
        if depth <= 0:
            return number
    return -1
