"""Sections of a document whose `id` is a place that links lead to, not what they are for.

A section about authors has `id="authors"`, one about cookies `id="set-cookie"`: extractors take
such names for the box of the author and the notice of a site, and leave the sections out.
"""

import re
from typing import Any
from urllib.parse import unquote

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag

from services.converter.parsing.trees import HEADINGS

_SECTIONS = ["section", "div"]
_FEWEST = 5
"""Such sections that make a document; a page of a site leads to its comments and its footer."""
_TELLING = re.compile(
    r"(?:(?:site|page|main|post|article|entry|blog)[-_]?)?(?:content|main|article|post|entry|body|"
    r"text|story|comments?|respond|footer|header|sidebar|top|page)"
    r"(?:[-_]?(?:wrap(?:per)?|container|inner|area|list|body|\d+))*",
    re.I,
)
"""Ids that say what an element is for, wherever they stand."""


def free_sections(soup: BeautifulSoup) -> frozenset[str]:
    """Take the ids of its sections from a document, and give them back; none from other pages.

    A section begins with its heading, and a link of the page leads to it.
    """
    linked = {unquote(str(a["href"])[1:]) for a in soup.find_all("a", href=True) if _is_inner(a)}
    sections = [
        tag
        for tag in soup.find_all(_SECTIONS, id=True)
        if tag["id"] in linked and not _TELLING.fullmatch(str(tag["id"])) and _begins_headed(tag)
    ]
    if len(sections) < _FEWEST:
        return frozenset()
    ids = frozenset(str(tag["id"]) for tag in sections)
    for tag in sections:
        del tag["id"]
    return ids


def without_ids(tree: Any, ids: frozenset[str]) -> Any:
    """The same page as lxml has it, changed in place: its sections have no such ids."""
    if tree is not None and ids:
        for element in tree.iter(*_SECTIONS):
            if element.get("id") in ids:
                del element.attrib["id"]
    return tree


def _is_inner(link: Tag) -> bool:
    return len(str(link["href"])) > 1 and str(link["href"])[0] == "#"


def _begins_headed(tag: Tag) -> bool:
    """Whether the first text of an element is its heading."""
    first = next((n for n in tag.descendants if isinstance(n, NavigableString) and n.strip()), None)
    heading = first.find_parent(HEADINGS) if first is not None else None
    return heading is not None and any(parent is tag for parent in heading.parents)
