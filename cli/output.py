"""What a terminal gets: results to stdout, everything else to stderr, no control characters."""

import json
import sys
import unicodedata
from typing import Any
from urllib.parse import quote

from kernel.errors import KbError

_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class CliError(KbError):
    """One line for a person, `{"title": …, "detail": …}` for a program."""

    def __init__(self, title: str, detail: str = "", type_: str = "", *, body: bytes = b"") -> None:
        super().__init__(title)
        self.title, self.detail, self.type, self.body = title, detail, type_, body

    def line(self) -> str:
        """`error: <title>: <detail> (<type>)`."""
        text = ": ".join(part for part in ("error", self.title, self.detail) if part)
        return clean(text, one_line=True) + (f" ({self.type})" if self.type else "")

    def document(self) -> str:
        """The problem body as the server sent it, or one in its form."""
        if self.body:
            return self.body.decode(errors="replace")
        return json.dumps({"type": self.type, "title": self.title, "detail": self.detail})


def clean(text: str, *, one_line: bool = False) -> str:
    """Text of documents and servers, made harmless: it may carry escape sequences."""
    if one_line:
        text = " ".join(text.split())
    return "".join(_harmless(c) for c in text)


def _harmless(char: str) -> str:
    if char in "\n\t":
        return char
    return "\ufffd" if unicodedata.category(char) in ("Cc", "Cs") or char in _BIDI else char


def out(text: str = "") -> None:
    """A line of the result."""
    print(text, flush=True)


def note(text: str) -> None:
    """A line beside the result."""
    print(text, file=sys.stderr, flush=True)


def raw(data: bytes) -> None:
    """Bytes as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def as_json(value: Any) -> None:
    """A value as one line of JSON."""
    out(json.dumps(value, ensure_ascii=False, default=str))


def path_part(id_: str) -> str:
    """An id as one part of a path, whatever was typed.

    Raises:
        CliError: it is none.
    """
    if not id_ or id_ in (".", ".."):
        raise CliError("no such id", id_)
    return quote(id_, safe="")
