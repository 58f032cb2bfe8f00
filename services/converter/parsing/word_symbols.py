"""Signs of the fonts Symbol and Wingdings as the characters that they look like.

Symbol after Adobe's mapping for it (symbol.txt, Unicode), Wingdings its commonest signs only.
"""

from collections.abc import Mapping
from typing import Any

from lxml import etree

from services.converter.parsing.wordml import W

_SYMBOL: Mapping[int, str] = dict(
    zip(
        (*range(0x21, 0x7F), *range(0xA1, 0xF0), *range(0xF1, 0xFF)),
        "!∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾"
        "αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
        "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪"
        "〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭",
        strict=True,
    )
)
_WINGDINGS: Mapping[int, str] = dict(
    zip(
        (0x4A, 0x4B, 0x4C, 0x6C, 0x6D, 0x6E, 0x6F, 0x71, 0x75, 0x76, 0x9F, 0xA1, 0xA7, 0xA8, 0xD8,
         0xDF, 0xE0, 0xE1, 0xE2, 0xE8, 0xF0, 0xFB, 0xFC, 0xFD, 0xFE,
         *range(0x80, 0x8B), *range(0x8B, 0x96)),
        "☺😐☹●❍■□❑◆❖•○▪□➢←→↑↓➔⇨✗✓☒☑⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿",
        strict=True,
    )
)  # fmt: skip
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS}
_PRIVATE = 0xF000


def name_symbols(root: Any) -> None:
    """Write the signs of these fonts as text; in place."""
    for sign in list(root.iter(W + "sym")):
        code = sign.get(W + "char") or ""
        text = etree.Element(W + "t")
        hexadecimal = len(code) <= 6 and all(c in "0123456789abcdefABCDEF" for c in code)
        told = int(code, 16) if code and hexadecimal else 0
        text.text = _sign(told, sign.get(W + "font") or "")
        sign.getparent().replace(sign, text)
    for fonts in root.iter(W + "rFonts"):
        font = fonts.get(W + "ascii") or ""
        if font.lower() in _FONTS and fonts.getparent().getparent().tag == W + "r":
            for text in fonts.getparent().getparent().findall(W + "t"):
                text.text = "".join(_typed(char, font) for char in text.text or "")


def _typed(char: str, font: str) -> str:
    """A letter of a run in such a font: Word stores them as signs, others as letters."""
    return _sign(ord(char), font) if _PRIVATE < ord(char) <= _PRIVATE + 0xFF else char


def _sign(code: int, font: str) -> str:
    known = _FONTS.get(font.lower())
    low = code - _PRIVATE if _PRIVATE <= code <= _PRIVATE + 0xFF else code
    if known is not None:
        return known.get(low, "")
    # Another font: its own signs mean nothing elsewhere.
    return "" if low != code or not 0x20 <= code < 0xD800 else chr(code)
