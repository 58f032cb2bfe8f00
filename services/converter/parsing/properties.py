"""Properties of documents: one line each, and titles that a person gave."""

import re

_BY_PROGRAMS = re.compile(
    r"\W*(?:untitled|unbekannt|unknown|anonymous|no title|title|microsoft word|"
    r"word document|dokument|document|документ|presentation|slide|powerpoint presentation|"
    r"home(?:page)?|index)\W*\d*\W*",
    re.IGNORECASE,
)
_FILE_NAME = re.compile(
    r"\.(?:docx?|pdf|tex|dvi|indd|qxd|pptx?|xlsx?|rtf|odt|fm|cdr|xml|html?|md|txt|p65|png|jpe?g)\b",
    re.IGNORECASE,
)


def line(value: object) -> str:
    """A property as one line of at most 500 characters; empty for nothing."""
    text = "" if value is None else str(value)
    return re.sub(r"\s+", " ", text.replace("\0", "")).strip()[:500]


def told_title(title: str) -> str:
    """The title property, unless a program filled it in or it is the name of a file."""
    return "" if _BY_PROGRAMS.fullmatch(title) or _FILE_NAME.search(title) else title
