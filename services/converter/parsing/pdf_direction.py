"""Which way a text runs: Arabic and Hebrew letters run from right to left."""

import unicodedata
from collections.abc import Iterable

_LEFTWARDS = frozenset({"R", "AL"})


def runs_leftwards(texts: Iterable[str]) -> bool:
    """Whether most letters run from right to left."""
    left = right = 0
    for text in texts:
        if text.isascii():
            right += sum(map(str.isalpha, text))
            continue
        against = sum(map(_is_leftwards, text))
        left, right = left + against, right + sum(map(str.isalpha, text)) - against
    return left > right


def goes_against(text: str, *, mirrored: bool) -> bool:
    """Whether a word runs against its page; a sign runs with any, a number as Latin letters do."""
    if text.isascii() and not mirrored:
        return False
    if any(map(_is_leftwards, text)):
        return not mirrored
    return mirrored and any(map(str.isalnum, text))


def _is_leftwards(letter: str) -> bool:
    return unicodedata.bidirectional(letter) in _LEFTWARDS
