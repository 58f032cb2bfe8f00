"""What the learned layer reads of a document: its windows, and what is encoded in it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from services.scanner.decode import decoded
from services.scanner.learned.windows import LONGEST, windows
from services.scanner.normalise import ZERO_WIDTH
from services.scanner.readings import CYRILLIC_LOOKALIKES, INNER_TAG, LATIN_LOOKALIKES

LETTERS = 6
"""A window with fewer says nothing."""

Texts = Mapping[int | None, str]
"""The texts of a document: the hidden ones by their numbers, the text itself by None."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A window of one of a document's texts, or of what is encoded there."""

    hidden: int | None
    start: int
    end: int
    alone: bool
    decoded: str | None = None
    """What these characters say when they are decoded."""

    def said(self, texts: Texts) -> str:
        """As it is read."""
        if self.decoded is not None:
            return squeezed(self.decoded)
        return squeezed(texts[self.hidden][self.start : self.end])


def pieces(texts: Texts) -> Iterator[Piece]:
    """The windows of all texts that have words."""
    for number, text in texts.items():
        for window in windows(text):
            if has_words(text[window.start : window.end]):
                yield Piece(number, window.start, window.end, window.alone)


def encoded_pieces(texts: Texts) -> Iterator[Piece]:
    """The windows of all that is encoded in the texts, without those that stand there as well."""
    for number, text in texts.items():
        passages = list(decoded(text))
        if not passages:
            continue
        standing = {text[window.start : window.end].strip() for window in windows(text)}
        known: set[tuple[int, int, str]] = set()
        for passage in passages:
            start, end = passage.span
            # A passage that is only in part encoded begins and ends within a window of the text.
            edges = (
                text[start : min(end, start + 2 * LONGEST)],
                text[max(start, end - 2 * LONGEST) : end],
            )
            for window in windows(passage.text or ""):
                said = (passage.text or "")[window.start : window.end].strip()
                same = (start, end, said) in known or said in standing
                if same or any(said in edge for edge in edges) or not has_words(said):
                    continue
                known.add((start, end, said))
                yield Piece(number, start, end, window.alone, said)


def has_words(text: str) -> bool:
    """Whether there is enough to read in a window."""
    return sum(map(str.isalpha, squeezed(text))) >= LETTERS


_RUN = re.compile(r"[A-Za-z0-9+/=_-]{16,}")
_CHANGE = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
_BETWEEN_LETTERS = re.compile(
    rf"(?<=[^\W\d_])(?:\*{{1,3}}|~~|<!--[^<>]{{0,80}}-->|<{INNER_TAG})+(?=[^\W\d_])"
)
_UNSEEN = re.compile(f"[{ZERO_WIDTH}]+")
_WORD = re.compile(r"[^\W\d_]{2,}")


def squeezed(text: str) -> str:
    """The words of a window with single spaces: a column's padding says nothing.

    Keys, hashes and pictures in base64 say nothing either, and beside them every honest sentence
    is far from the subject. What is encoded there is decoded, here and by the rules. Words are read
    without what is between their letters, and in one script.
    """
    if not text.isascii():
        text = _WORD.sub(_in_one_script, _UNSEEN.sub("", text))
    text = _BETWEEN_LETTERS.sub("", text)
    return " ".join(_RUN.sub(_unless_encoded, text).split())


def _unless_encoded(match: re.Match[str]) -> str:
    """The run, or a blank: letters and digits change places as no name or path has them do."""
    run = match.group()
    return " " if len(_CHANGE.findall(run)) * 4 > len(run) else run


def _in_one_script(match: re.Match[str]) -> str:
    """The word; one of two scripts is written in that which most of its letters belong to."""
    word = match.group()
    latin = sum(c.isascii() for c in word)
    if not latin or latin == len(word):
        return word
    small = word.lower()
    foreign = sum(c in LATIN_LOOKALIKES for c in small if not c.isascii())
    if latin + foreign == len(word) and latin >= foreign:
        return "".join(LATIN_LOOKALIKES.get(c, c) for c in small)
    if latin < len(word) - latin and "\u0400" <= max(small) <= "\u052f":
        return "".join(CYRILLIC_LOOKALIKES.get(c, c) for c in small)
    return word
