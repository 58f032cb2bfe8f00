"""Whether letters of an RTF can be read, by their size, place and colour."""

from collections.abc import Sequence

from contracts.events import HiddenKind
from services.converter.parsing.hidden import alike

_TINY_HALF_POINTS = 4
_NARROWEST = 5
"""Per cent of their width to which letters are squeezed."""
_RAISED_HALF_POINTS = 800


def unreadable(
    size: int, width: int, lift: int, colours: tuple[Sequence[int], Sequence[int]] | None
) -> HiddenKind | None:
    """Why letters cannot be read; None if they can.

    Args:
        size: half points; 0 where nothing is told.
        width: per cent of the usual width.
        lift: half points above the line.
        colours: of the letters and of what lies behind, each red, green and blue; None if unknown.
    """
    if 0 < size <= _TINY_HALF_POINTS or 0 < width <= _NARROWEST:
        return "zero-size"
    if lift >= _RAISED_HALF_POINTS:
        return "off-page"
    if colours is None:
        return None
    return "background-colour" if alike(*colours) else None
