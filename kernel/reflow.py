"""A stretch of Markdown for a screen: how its paragraphs are cut into lines says nothing."""

import re

_CUT = re.compile(r"\n(?!\n|\s*(?:[-*+>|]|\d{1,9}[.)])(?:\s|$)|\s*\|)[ \t]*")
_CODE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)


def reflow(text: str) -> str:
    """Each paragraph on one line; items, rows and quotes keep theirs, and so does code.

    A stretch that holds a mark of code is left as it is.
    """
    if _CODE.search(text):
        return text
    return "\n\n".join(_CUT.sub(" ", part) for part in re.split(r"\n{2,}", text))
