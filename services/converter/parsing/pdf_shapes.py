"""Words and rules: what the layout of a page is told from."""

from dataclasses import dataclass


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
