"""Words and rules: what the layout of a page is told from."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

BULLET = re.compile(r"^([•‣◦▪▫●○■□◆◇►▶➢➤✓✔\uf0b7\uf0a7\uf0d8\uf02d·∙]|[-–—*](?=\s))\s*")


@dataclass(slots=True)
class Word:
    """A word with its font. `size` is the font's height, not the glyphs'."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    size: float
    bold: bool = False
    italic: bool = False
    mono: bool = False
    upright: bool = True

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


@dataclass(slots=True)
class Rule:
    """A thin drawn line, horizontal or vertical."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def horizontal(self) -> bool:
        return self.right - self.left >= self.bottom - self.top


def join_words(words: Iterable[Word], touch: float = 0.12) -> str:
    """Words left to right; pieces nearer than `touch` of their size are one word."""
    text, before = "", None
    for word in words:
        gap = word.left - before.right if before is not None else 0.0
        if before is not None and gap > touch * min(word.size, before.size):
            text += " "
        text += word.text
        before = word
    return text
