"""Beautiful Soup for pages of any size.

Each of its edits looks for the position of an element among its siblings from the first one on:
20,000 line breaks in one paragraph would take 200 million steps. Edits come in document order, so
here the search begins where the last one ended.
"""

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, PreformattedString, Tag


class NearTag(Tag):
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
    return BeautifulSoup(source, parser, element_classes={Tag: NearTag})


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


def is_joined(node: NavigableString) -> bool:
    """Whether it is no running text (a comment and the like), and stays by itself."""
    return isinstance(node, PreformattedString)
