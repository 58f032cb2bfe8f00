"""Beautiful Soup for pages of any size.

Each of its edits looks for the position of an element among its siblings from the first one on:
20,000 line breaks in one paragraph would take 200 million steps. Edits come in document order, so
here the search begins where the last one ended. Each of its searches builds a matcher, which for
a look at the parents takes longer than the look itself: a search for names alone does without.
"""

from collections.abc import Iterator
from typing import Any

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, PreformattedString, ResultSet, Tag

HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
"""Names of elements, as searches take them."""
_SECTIONS = frozenset({"div", "section", "article", "main", "header", "form", "fieldset", "center"})
# By these docling knows forms and what is not seen.
_OWN_LOOK = frozenset({"style", "hidden", "aria-hidden"})
_OWN_CLASSES = frozenset({
    "checkbox", "checkbox-box", "checkbox-container", "checkbox-input", "checkbox-item",
    "checkbox-label", "checkbox-option", "form_region", "info-text", "option",
})  # fmt: skip
_BEGINNINGS = frozenset({"p", *HEADINGS})
_BLOCKS = ["p", *HEADINGS, "table", "ul", "ol", "dl", "pre"]


class _Searched(Tag):
    """Finds elements by their names as Beautiful Soup does, without its matchers."""

    def find_all(self, name: Any = None, attrs: Any = None, *more: Any, **kwargs: Any) -> Any:
        """As `Tag.find_all`."""
        names = _names(name)
        if names is None or attrs or more or kwargs:
            return super().find_all(name, attrs, *more, **kwargs)
        found: ResultSet[Tag] = ResultSet(None)
        if self.contents:
            at: Any = self.contents[0]
            last: Any = self._last_descendant()
            while at is not None and at is not last.next_element:
                if isinstance(at, Tag) and (not names or at.name in names):
                    found.append(at)
                at = at.next_element
        return found

    def _find_all(
        self,
        name: Any,
        attrs: Any,
        string: Any,
        limit: int | None,
        generator: Iterator[PageElement],
        **kwargs: Any,
    ) -> Any:
        names = _names(name)
        if names is None or attrs or string is not None or kwargs:
            return super()._find_all(name, attrs, string, limit, generator, **kwargs)
        found: ResultSet[Tag] = ResultSet(None)
        for element in generator:
            if isinstance(element, Tag) and (not names or element.name in names):
                found.append(element)
                if len(found) == limit:
                    break
        return found


def _names(name: Any) -> frozenset[str] | None:
    """What a search asks for; empty for every element, None for more than names."""
    if name is True:
        return frozenset()
    names = [name] if isinstance(name, str) else name
    plain = isinstance(names, list) and all(isinstance(n, str) and ":" not in n for n in names)
    return frozenset(names) if plain and names else None


class Page(_Searched, BeautifulSoup):
    """A page whose elements are `NearTag`s."""


class NearTag(_Searched):
    """An element that finds a child fast if it is near to the one that was asked for before."""

    _near = 0

    def index(self, element: PageElement) -> int:
        """As `Tag.index`: the position of a child, by identity.

        Raises:
            ValueError: it is no child.
        """
        contents = self.contents
        below = min(self._near, len(contents) - 1)
        above = below + 1
        while below >= 0 or above < len(contents):
            if below >= 0:
                if contents[below] is element:
                    self._near = below
                    return below
                below -= 1
            if above < len(contents):
                if contents[above] is element:
                    self._near = above
                    return above
                above += 1
        raise ValueError("no child of this element")


def parsed(source: str, parser: str = "lxml") -> BeautifulSoup:
    """A page of such elements; `parser` as Beautiful Soup names it."""
    return Page(source, parser, element_classes={Tag: NearTag})


def smooth(soup: BeautifulSoup) -> None:
    """As `soup.smooth()`: texts beside each other become one; each is copied once only."""
    for first in soup.find_all(string=True):
        if is_joined(first) or first.parent is None:
            continue
        following: list[NavigableString] = []
        text = first.next_sibling
        while isinstance(text, NavigableString) and not is_joined(text):
            following.append(text)
            text = text.next_sibling
        if following:
            for text in following:
                text.extract()
            first.replace_with(NavigableString("".join([first, *following])))


def in_parts(body: Tag, most: int) -> Iterator[str]:
    """The page as HTML, cut where a block begins that stands in nothing but sections.

    Args:
        body: what is to be written; not changed.
        most: elements from which on a part ends at the next such block. Lists, tables and
            paragraphs are never cut, and no part begins with a list or a table.
    """
    pieces: list[str] = []
    size = depth = 0
    stack: list[PageElement | None] = [*reversed(body.contents)]
    while stack:
        node = stack.pop()
        if node is None:
            pieces.append("</div>")
            depth -= 1
        elif isinstance(node, Tag) and _is_section(node):
            pieces.append("<div>")
            depth += 1
            stack += [None, *reversed(node.contents)]
        else:
            if size >= most and _may_begin(node):
                yield _page(pieces, "</div>" * depth)
                pieces, size = ["<div>" * depth], 0
            pieces.append(_written(node))
            size += 1 + (len(node.find_all(True)) if isinstance(node, Tag) else 0)
    yield _page(pieces)


def _is_section(tag: Tag) -> bool:
    """Whether it says nothing but where its blocks begin and end."""
    return _is_plain(tag) and tag.find(_BLOCKS) is not None


def _is_plain(tag: Tag) -> bool:
    return (
        tag.name in _SECTIONS
        and _OWN_LOOK.isdisjoint(tag.attrs)
        and _OWN_CLASSES.isdisjoint(tag.get_attribute_list("class"))
    )


def _may_begin(node: PageElement) -> bool:
    """Of sections only those without blocks: others may begin with a list."""
    if not isinstance(node, Tag):
        return False
    shown = node.name in _BEGINNINGS and _OWN_LOOK.isdisjoint(node.attrs)
    return shown or _is_plain(node)


def _written(node: PageElement) -> str:
    if isinstance(node, NavigableString):
        return node.output_ready("minimal")
    return node.decode() if isinstance(node, Tag) else ""


def _page(pieces: list[str], end: str = "") -> str:
    return f"<html><body>{''.join(pieces)}{end}</body></html>"


def is_joined(node: NavigableString) -> bool:
    """Whether it is no running text (a comment and the like), and stays by itself."""
    return isinstance(node, PreformattedString)
