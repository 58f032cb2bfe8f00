"""Block quotes of a page, carried through docling, which knows none.

A token of noncharacters (see `marks.py`) in front of each text says in which quote it stands. When
the Markdown is written, blocks with a token get their `>`, and the tokens go.
"""

import re
from collections.abc import Iterator

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag

from services.converter.parsing.article import runs_of
from services.converter.parsing.marks import NONCHARACTERS, digits, number_of
from services.converter.parsing.trees import HEADINGS

_OPEN, _CLOSE = "\ufde4", "\ufde5"
_TOKEN = re.compile(f"{_OPEN}([\ufdd0-\ufddf]+){_CLOSE}")
_FENCE = re.compile("(`{3,})")
# Where Markdown has no quote, or one that hides its structure: pages are indented by quotes too.
_NO_QUOTE_IN = ["td", "th", "li", "dt", "caption", "figcaption", "pre"]
_DEEPEST = 20


class Quotes:
    """The quotes of one page; made when nothing more is changed in it."""

    def __init__(self, soup: BeautifulSoup) -> None:
        self._paths: list[tuple[int, ...]] = []
        numbers: dict[int, int] = {}
        quotes = soup.find_all("blockquote")
        for quote in quotes:
            around = quote.find_parent("blockquote")
            outer = self._paths[numbers[id(around)]] if around and id(around) in numbers else ()
            if quote.find(HEADINGS) or quote.find_parent(_NO_QUOTE_IN) or len(outer) >= _DEEPEST:
                if around and id(around) in numbers:
                    numbers[id(quote)] = numbers[id(around)]
                continue
            numbers[id(quote)] = len(self._paths)
            self._paths.append((*outer, len(self._paths)))
        if numbers:
            _mark(soup, numbers)
        for quote in quotes:
            # To docling and to the parts that it gets, a quote is a section.
            quote.name = "div"

    def written(self, markdown: str) -> str:
        """`markdown` with `>` before the lines of the quotes' blocks, and without tokens."""
        if not self._paths:
            return markdown
        lines: list[str] = []
        before: tuple[int, ...] = ()
        for block in _blocks(markdown):
            token = _TOKEN.search("\n".join(block))
            path = self._path(token[1]) if token else ()
            if lines:
                lines.append("> " * _common(before, path))
            lines += [f"{'> ' * len(path)}{_TOKEN.sub('', line)}" for line in block]
            before = path
        return "\n".join(line.rstrip(" ") if line.strip(" >") == "" else line for line in lines)

    def _path(self, written: str) -> tuple[int, ...]:
        number = number_of(written)
        return self._paths[number] if number < len(self._paths) else ()


def _mark(soup: BeautifulSoup, numbers: dict[int, int]) -> None:
    body = soup.body or soup
    # One climb for all: what is found for an element holds for all on the way to it.
    known: dict[int, int] = {id(body): -1}
    for run in runs_of(body):
        way: list[Tag] = []
        tag: Tag | None = run.block
        while tag is not None and id(tag) not in known and id(tag) not in numbers:
            way.append(tag)
            tag = tag.parent
        number = -1 if tag is None else numbers.get(id(tag), known.get(id(tag), -1))
        known.update((id(passed), number) for passed in way)
        if number >= 0:
            token = _OPEN + digits(number) + _CLOSE
            text = str(run.nodes[0])
            lead = len(text) - len(text.lstrip())
            run.nodes[0].replace_with(NavigableString(f"{text[:lead]}{token}{text[lead:]}"))


def _blocks(markdown: str) -> Iterator[list[str]]:
    """Lines that stand together; a fenced block is one, blank lines and all."""
    block: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        bare = line.strip(NONCHARACTERS)
        if fence:
            block.append(line)
            fence = "" if bare.rstrip(NONCHARACTERS + " ") == fence else fence
        elif bare.strip():
            match = _FENCE.match(bare)
            fence = match[1] if match else ""
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


def _common(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    size = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        size += 1
    return size
