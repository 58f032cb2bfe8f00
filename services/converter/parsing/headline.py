"""Title, author, date and publication of a web page, without what sites put around them."""

import re
from typing import Any

from bs4 import BeautifulSoup

from contracts.artifacts import BodyMeta
from kernel.language import UNKNOWN
from kernel.media import HTML
from services.converter.parsing.properties import line, told_title

_SHORTEST_HEADING = 4
_PARTS = re.compile(r"\s+[|»«·•–—-]\s+")
_BY = re.compile(
    r"\W*(?:(?:view|see|show) all (?:posts|articles) (?:by|from)|zeige? alle beiträge von|"
    r"alle (?:beiträge|artikel) von|posts? by|posted by|written by|published by|article by|"
    r"articles? de|story by|author|autor(?:in|ka)?|by|von|par|por|od|piše|napisa[ol]|автор|от|"
    r"责任编辑)(?:\s*[:：]\s*|\s+)(?=\S)",
    re.I,
)
# What metadata libraries stumble over in odd pages; the page itself is worth more.
_SLIPS = (
    AssertionError, AttributeError, IndexError, KeyError, OverflowError, RecursionError,
    TypeError, ValueError,
)  # fmt: skip


def metadata_of(soup: BeautifulSoup, tree: Any) -> tuple[BodyMeta, list[str]]:
    """From JSON-LD, meta elements, byline and headings; and warnings for the journal.

    Args:
        soup: the page before anything was removed from it.
        tree: its `page_tree`.
    """
    found, warnings = _extracted(tree)
    shown = line(soup.title.get_text(" ", strip=True)) if soup.title else ""
    publication = line(getattr(found, "sitename", None))
    meta = BodyMeta(
        title=_title(soup, told_title(line(getattr(found, "title", None))), shown, publication),
        language=UNKNOWN,
        media_type=HTML,
        author=_BY.sub("", line(getattr(found, "author", None)), count=1) or None,
        date=line(getattr(found, "date", None)) or None,
        publication=publication or None,
    )
    return meta, warnings


def _extracted(tree: Any) -> tuple[Any, list[str]]:
    from trafilatura.metadata import extract_metadata

    # A fixed last day: the library's own is today, and the same page must give the same parse.
    dates = {"original_date": True, "extensive_search": False, "max_date": "2100-01-01"}
    if tree is None:
        return None, []
    try:
        return extract_metadata(tree, date_config=dates, extensive=False), []
    except _SLIPS as error:
        return None, [f"author and date not read: {type(error).__name__}"]


def _title(soup: BeautifulSoup, found: str, shown: str, publication: str) -> str:
    """The heading that the page's own title holds; else the title without the site's name."""
    headings = [line(h.get_text(" ", strip=True)) for h in soup.find_all("h1", limit=20)]
    shown = told_title(shown)
    # A heading that the page's title does not know is that of the site, or of its menu.
    if not found or (found in headings and shown and _bare(found) not in _bare(shown)):
        found = shown
    for title in (found, shown):
        for heading in headings:
            bare = _bare(heading)
            if len(bare) >= _SHORTEST_HEADING and bare in _bare(title) and told_title(heading):
                return heading
    first, *others = _PARTS.split(found)
    if others and _bare(others[-1]) in {_bare(publication), _bare(first)}:
        return found[: found.rindex(others[-1])].rstrip(" |»«·•–—-")
    return found


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()
