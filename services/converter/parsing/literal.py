"""Text from outside as literal Markdown: it shows as it was and can never become structure."""

import re

from services.converter.parsing.marks import unmarked

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")
_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITY = re.compile(r"&(?=#?\w{1,32};)")
# U+FFFE starts a sign of `looks.py` or of a note, in the place of a bracket.
_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{-~\ufffe]|$)", re.MULTILINE)
_LINK = re.compile(r"\](?=[(:])")
_LINE_BREAKS = re.compile(r"\r\n?|[\n\v\f\x1c-\x1e\x85\u2028\u2029]")
_START = re.compile(r"(?:#{1,6}(?=\s|$)|>|`{3}|~{3}|\||=+\s*$|(?=[-:|\s]*-)[-:|\s]+$)")
_RULE = re.compile(r"([*_])(?:\s*\1){2,}\s*$")
_ITEM = re.compile(r"[-+*](?=\s|$)")
_NUMBERED = re.compile(r"(\d{1,9})(?=[.)](?:\s|$))")
_ITEM_MARK = re.compile(r"(?:[-+*]|\d{1,9}[.)])\s+(?=\S)")
_DEEPEST = 99
"""Items in items on one line; no reader takes more for lists."""
_CLOSING = re.compile(r"(?<!\S)(#+)\s*$")
_BRACKET = re.compile(r"\\.|([\[\]])", re.DOTALL)
_RAISED = str.maketrans("0123456789+-−()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ")
_RAISABLE = re.compile(r"[-−+]?\d{1,4}|n")
_CELL_SPECIAL = re.compile(r"[\\|<&\]\x00-\x1f\x7f\x85\u2028\u2029\ufdd0-\ufdef\ud800-\udfff]")

LONGEST_HEADING = 300
"""Characters of a name that can head a section."""


def plain_line(text: str) -> str:
    """One line without controls or doubled blanks; not escaped."""
    return " ".join(unmarked(_CONTROLS.sub("", _LINE_BREAKS.sub(" ", text))).split())


def cell(text: str) -> str:
    """A cell of a table row."""
    if not _CELL_SPECIAL.search(text):
        return text.strip()
    return _inline(plain_line(text)).replace("|", "\\|")


def is_plain(row: str) -> bool:
    """Whether no cell in `row` (cells put together) needs `cell`."""
    return _CELL_SPECIAL.search(row) is None


def heading(text: str) -> str:
    """The text of a heading, without its `#`."""
    return _CLOSING.sub(r"\\\1", _inline(plain_line(text)))


def span(text: str) -> str:
    """A piece of a line that does not start it."""
    return _inline(plain_line(text))


def item(text: str) -> str:
    """The line of an item behind its mark: it may not start a block inside the item."""
    return _line(plain_line(text), lists=False)


def paragraph(text: str, *, lists: bool = False) -> str:
    """Running text, line ends kept, blank lines one; `lists`: marks of items stay what they are."""
    lines = _LINE_BREAKS.split(unmarked(text))
    kept: list[str] = []
    for raw in lines:
        line = _CONTROLS.sub("", raw).strip()
        if line or (kept and kept[-1]):
            kept.append(_line(line, lists=lists))
    return "\n".join(kept).strip()


def raised(text: str) -> str:
    """Superscript in letters that are, so that 2 to the 32nd is not read as 232.

    Only numbers and `n`; what else stands raised (`1st`) reads right as it is.
    """
    return text.translate(_RAISED) if _RAISABLE.fullmatch(text.strip()) else text


def linked(text: str, address: str) -> str:
    """Literal Markdown as a link, if there is something to follow and something to see."""
    address = address.strip()
    if not text.strip() or not address or re.search(r"[\s<>\\\x00-\x1f]", address):
        return text
    if address.lower().startswith(("javascript:", "data:", "vbscript:")):
        return text
    address = address.replace("|", "%7C")
    target = f"<{address}>" if "(" in address or ")" in address else address
    return f"[{_even(text)}]({target})"


def _even(text: str) -> str:
    """The text of a link: a bracket without its partner would end or begin another, and a
    backslash take its end for text."""
    if (len(text) - len(text.rstrip("\\"))) % 2:
        text += "\\"
    depth = least = 0
    for bracket in _BRACKET.finditer(text):
        depth += {"[": 1, "]": -1}.get(bracket[0], 0)
        least = min(least, depth)
    if not depth and not least:
        return text
    return _BRACKET.sub(lambda match: f"\\{match[1]}" if match[1] else match[0], text)


def _line(line: str, *, lists: bool) -> str:
    return line_start(_inline(line), lists=lists)


def line_start(line: str, *, lists: bool = False) -> str:
    """A line of literal Markdown that starts no block; `lists`: but for an item, in which none
    starts either."""
    at = 0
    for _ in range(_DEEPEST if lists else 0):
        mark = None if _starts_block(line, at) else _ITEM_MARK.match(line, at)
        if mark is None:
            break
        at = mark.end()
    if _starts_block(line, at):
        return f"{line[:at]}\\{line[at:]}"
    if lists:
        return line
    if _ITEM.match(line):
        return f"\\{line}"
    return _NUMBERED.sub(r"\1\\", line, count=1) if _NUMBERED.match(line) else line


def _starts_block(line: str, at: int) -> bool:
    return bool(_START.match(line, at) or _RULE.match(line, at))


def _inline(text: str) -> str:
    text = _BACKSLASH.sub(r"\\\\", text)
    text = _LINK.sub(r"\\]", text)
    return _ENTITY.sub(r"\\&", _TAG_START.sub(r"\\<", text))
