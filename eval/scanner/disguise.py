"""Disguises for an attack's text, as the attackers of the literature use them."""

import base64
import codecs
import gzip
import html
import quopri
import textwrap
import urllib.parse
from collections.abc import Callable
from itertools import chain

_LATIN_TO_CYRILLIC = str.maketrans("aceopxyiABCEHKMOPTX", "асеорхуіАВСЕНКМОРТХ")
_CYRILLIC_TO_LATIN = str.maketrans("асеорхуАВСЕНКМОРТХ", "aceopxyABCEHKMOPTX")
_LEET = str.maketrans("aeiostAEIOST", "431057431057")


def zero_width(text: str) -> str:
    """A zero-width space behind each letter."""
    return "".join(c + "\u200b" if c.isalpha() else c for c in text)


def soft_hyphens(text: str) -> str:
    """A soft hyphen in the middle of each word."""
    return " ".join(w[: len(w) // 2] + "\u00ad" + w[len(w) // 2 :] for w in text.split(" "))


def tags(text: str) -> str:
    """UTF-8 bytes as Unicode tag characters: nothing is seen. ASCII as itself, the rest in hex."""
    plain = "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in text)
    return "".join(chr(0xE0000 + ord(c)) for c in plain)


def homoglyphs(text: str) -> str:
    """Each letter that has a twin in the other alphabet becomes it."""
    cyrillic = sum("а" <= c.lower() <= "я" for c in text)
    return text.translate(_CYRILLIC_TO_LATIN if cyrillic * 2 > len(text) else _LATIN_TO_CYRILLIC)


def base64_of(text: str) -> str:
    """One line of base64."""
    return base64.b64encode(text.encode()).decode()


def base64_wrapped(text: str) -> str:
    """Base64 in lines of 40, URL-safe, without padding."""
    packed = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return "\n".join(textwrap.wrap(packed, 40))


def base64_twice(text: str) -> str:
    """Base64 of base64."""
    return base64_of(base64_of(text))


def gzip_base64(text: str) -> str:
    """Base64 of gzip."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def hex_of(text: str) -> str:
    """Bytes in hex."""
    return text.encode().hex()


def rot13(text: str) -> str:
    """Latin letters 13 further."""
    return codecs.encode(text, "rot13")


def leet(text: str) -> str:
    """Digits for vowels."""
    return text.translate(_LEET)


def spaced(text: str) -> str:
    """A blank between letters, three between words."""
    return "   ".join(" ".join(word) for word in text.split(" "))


def full_width(text: str) -> str:
    """The wide twins of ASCII."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def comment(text: str) -> str:
    """In an HTML comment."""
    return f"<!-- {text} -->"


def entities(text: str) -> str:
    """Every letter a numeric entity, every other hexadecimal."""
    kinds = ("&#{};", "&#x{:x};")
    return "".join(kinds[n % 2].format(ord(c)) for n, c in enumerate(text))


def url_of(text: str) -> str:
    """Percent signs for everything."""
    return "".join(f"%{b:02X}" for b in text.encode())


def url_plain(text: str) -> str:
    """As a browser writes it: ASCII letters stay."""
    return urllib.parse.quote(text)


def quoted_printable(text: str) -> str:
    """As in a mail; ASCII letters are escaped as well."""
    plain = quopri.encodestring(text.encode(), quotetabs=True).decode()
    if not text.isascii():
        return plain
    return "".join(f"={b:02X}" for b in text.encode())


def escapes(text: str) -> str:
    r"""`\uXXXX` for every character."""
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2))


def split_by_markup(text: str) -> str:
    """Words broken by empty tags and by bold."""
    marks = ("<b></b>", "**", "<span></span>")
    words = text.split(" ")
    return " ".join(_broken(w, marks[n % 3]) for n, w in enumerate(words))


def _broken(word: str, mark: str) -> str:
    half = len(word) // 2
    return f"**{word[:half]}**{word[half:]}" if mark == "**" else word[:half] + mark + word[half:]


def entities_in_base64(text: str) -> str:
    """Entities inside base64."""
    return base64_of(html.escape(entities(text), quote=False))


LATIN_ONLY = frozenset({"rot13", "leet", "full width"})
"""What says nothing about letters beyond a to z."""

DISGUISES: dict[str, Callable[[str], str]] = {
    "zero width": zero_width,
    "soft hyphen": soft_hyphens,
    "tags": tags,
    "homoglyphs": homoglyphs,
    "base64": base64_of,
    "base64 wrapped": base64_wrapped,
    "base64 twice": base64_twice,
    "gzip base64": gzip_base64,
    "hex": hex_of,
    "rot13": rot13,
    "leet": leet,
    "spaced letters": spaced,
    "full width": full_width,
    "HTML comment": comment,
    "entities": entities,
    "URL, all": url_of,
    "URL": url_plain,
    "quoted printable": quoted_printable,
    "\\u": escapes,
    "markup in words": split_by_markup,
    "entities in base64": entities_in_base64,
}


def disguised(text: str, *, latin: bool) -> dict[str, str]:
    """`text` in each disguise that changes it; those for Latin letters only where it is Latin."""
    wanted = ((n, make(text)) for n, make in DISGUISES.items() if latin or n not in LATIN_ONLY)
    return {name: made for name, made in chain(wanted) if made != text}
