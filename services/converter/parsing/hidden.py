"""Hidden text in small pieces, put together."""

import re
from collections.abc import Iterator, Sequence

from contracts.artifacts import HiddenText
from contracts.events import HiddenKind

_MOST = 8 * 1024 * 1024
_PIECE, _OVERLAP = 20_000, 500
_LEAST_SENTENCE = 4
"""Words."""
_ALIKE = 24
"""Of 256 in red, green and blue each."""
_SPOKEN = re.compile(r"[\"'(„“«]*[^\W\d_][\w'’,;:.!?\"()%–—“”»-]*")


def alike(front: Sequence[int], behind: Sequence[int]) -> bool:
    """Whether letters cannot be told from what is behind them, by red, green and blue."""
    return all(abs(one - other) < _ALIKE for one, other in zip(front, behind, strict=True))


def alike_in_hex(front: str, behind: str) -> bool:
    """The same of colours by six hex digits."""
    return alike(_parts(front), _parts(behind))


def _parts(colour: str) -> list[int]:
    return [int(colour[n : n + 2], 16) for n in (0, 2, 4)]


def is_sentence(text: str) -> bool:
    """Whether a value is meant for people, or models: some words, and most of it words."""
    words = text.split(maxsplit=200)
    spoken = sum(1 for word in words[:100] if _SPOKEN.fullmatch(word))
    return len(words) >= _LEAST_SENTENCE and spoken * 3 >= 2 * len(words[:100])


def in_parts(text: str) -> Iterator[str]:
    """A hidden text as it is told: up to 20,000 characters, of a longer one parts that overlap, so
    that nothing is cut in two."""
    for start in range(0, max(1, len(text) - _OVERLAP), _PIECE - _OVERLAP):
        part = text[start : start + _PIECE]
        if part:
            yield part


def hidden_texts(kind: HiddenKind, text: str) -> Iterator[HiddenText]:
    """A hidden text with single blanks, in parts."""
    for part in in_parts(re.sub(r"\s+", " ", text).strip()):
        yield HiddenText(kind=kind, text=part)


class Unseen:
    """Hidden texts by kind, joined up to 20,000 characters, as there may be a million."""

    def __init__(self) -> None:
        self._done: list[HiddenText] = []
        self._open: dict[HiddenKind, list[str]] = {}
        self._sizes: dict[HiddenKind, int] = {}
        self._left = _MOST

    def add(self, kind: HiddenKind, text: str) -> None:
        """One more text; after 8 MiB no more are kept."""
        text = re.sub(r"\s+", " ", text).strip()
        if not text or self._left <= 0:
            return
        self._left -= len(text)
        self._open.setdefault(kind, []).append(text)
        self._sizes[kind] = self._sizes.get(kind, 0) + len(text)
        if self._sizes[kind] > _PIECE:
            self._close(kind)

    def taken(self) -> list[HiddenText]:
        """All of it."""
        for kind in list(self._open):
            self._close(kind)
        return self._done

    def _close(self, kind: HiddenKind) -> None:
        self._done.append(HiddenText(kind=kind, text="\n".join(self._open.pop(kind))))
        self._sizes[kind] = 0
