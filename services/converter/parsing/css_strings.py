"""Words that a style sheet puts on a page: people read them, no element holds them."""

import re
from collections.abc import Iterator

# Possessive, so that no text makes it slow. What stands in brackets is an address or a format.
_STRING = r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'"
_DECLARATION = re.compile(
    r"(?<![\w-])(?:content|list-style(?:-type)?|quotes|symbols|prefix|suffix|text-overflow"
    r"|--(?![\w-]*font)[\w-]+)"
    rf"\s*:((?:[^;{{}}\"'\\]|{_STRING}|\\.)*+)",
    re.DOTALL | re.IGNORECASE,
)
_PIECE = re.compile(
    r"(?:url|format|local|src)\([^)]{0,20000}+\)" rf"|({_STRING})", re.DOTALL | re.IGNORECASE
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\n]?|(\n)|(.))", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{2,}")
_MOST = 500_000
"""Characters of all sheets together: pages of more have frameworks in them, and no words."""


def told_by(css: str) -> str:
    """The strings with words in them, in order: one sentence may be spread over many rules.

    Signs of icon fonts, from the private areas of Unicode, are no text.
    """
    return " ".join(filter(_WORD.search, _values(css[:_MOST])))


def _values(css: str) -> Iterator[str]:
    for declaration in _DECLARATION.finditer(css):
        strings = (match[1] for match in _PIECE.finditer(declaration[1]) if match[1])
        yield "".join(_ESCAPE.sub(_unescaped, string[1:-1]) for string in strings)


def _unescaped(match: re.Match[str]) -> str:
    if not match[1]:
        return match[3] or ""
    code = int(match[1], 16)
    is_sign = code in {9, 10, 13} or (code >= 32 and not _is_private(code))
    return chr(code) if is_sign and not 0xD800 <= code < 0xE000 and code <= 0x10FFFF else ""


def _is_private(code: int) -> bool:
    return 0xE000 <= code <= 0xF8FF or code >= 0xF0000
