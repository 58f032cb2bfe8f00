"""MathML as one line of text: the author's TeX where it is given, else signs in reading order."""

import re

from bs4.element import NavigableString, Tag

from services.converter.parsing.article import is_gone

_LIMITS = {
    "msup": "^", "msub": "_", "mover": "^", "munder": "_", "msubsup": "_^", "munderover": "_^",
}  # fmt: skip
_SIMPLE = re.compile(r"\w+|\W|")
_ANNOTATIONS = ["annotation", "annotation-xml"]


def linear(math: Tag) -> str:
    """`$E = mc^2$` from TeX; `x^2+(a)/(b)` from MathML alone."""
    for note in math.find_all("annotation"):
        if "tex" in str(note.get("encoding") or "").lower() and note.get_text(strip=True):
            return f"${_one_line(note.get_text())}$"
    if str(math.get("alttext") or "").strip():
        return f"${_one_line(str(math['alttext']))}$"
    for note in math.find_all(_ANNOTATIONS):
        if not is_gone(note):
            note.decompose()
    return _one_line(_written(math))


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _written(node: Tag) -> str:
    parts = [
        _written(child) if isinstance(child, Tag) else str(child).strip()
        for child in node.children
        if isinstance(child, Tag | NavigableString)
    ]
    args = [part for part in parts if part]
    match node.name:
        case "mfrac" if len(args) == 2:
            return f"{_grouped(args[0])}/{_grouped(args[1])}"
        case "msqrt":
            return f"√{_grouped(''.join(args))}"
        case "mroot" if len(args) == 2:
            return f"{_grouped(args[0])}^(1/{args[1]})"
        case "mtr":
            return f"{'  '.join(args)}; "
        case name if name in _LIMITS and len(args) == len(_LIMITS[name]) + 1:
            signs = zip(_LIMITS[name], args[1:], strict=True)
            return args[0] + "".join(sign + _grouped(arg) for sign, arg in signs)
    return "".join(args)


def _grouped(text: str) -> str:
    return text if _SIMPLE.fullmatch(text) else f"({text})"
