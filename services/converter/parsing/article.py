"""Which pieces of a page the article extractor takes for the main text.

The extractor (trafilatura) gives text without a trace of where it stood. Here the page is cut into
runs, and each is looked up in that text, so that its own elements can be kept as they are.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bs4.element import NavigableString, PageElement, Tag

from services.converter.parsing.alignment import DISTINCT, aligned, squeezed

INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em",
    "font", "i", "img", "ins", "kbd", "label", "mark", "nobr", "q", "rb", "rp", "rt", "ruby", "s",
    "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
})  # fmt: skip
_HUGE_TAG = re.compile(r"<([a-zA-Z][a-zA-Z0-9]{0,20})\s[^<>]{20000,}>")
"""No attribute in it matters here, and the parser takes time by the square of their number."""


@dataclass(eq=False)
class Run:
    """Texts that stand together in one block, no other block or line break between them."""

    block: Tag
    nodes: list[NavigableString] = field(default_factory=list)
    known: bool = False
    linked: int = 0

    @cached_property
    def text(self) -> str:
        """Letters and digits of all nodes; asked for when they are complete."""
        return "".join(map(squeezed, self.nodes))

    @property
    def size(self) -> int:
        """Letters and digits, without those of blanks and signs."""
        return len(self.text)

    def within(self, body: Tag) -> "Run | None":
        """What is left of it in `body` after elements were removed."""
        if is_gone(self.block) or not is_within(self.block, body):
            return None
        left = [node for node in self.nodes if not is_gone(node) and node.parent]
        if len(left) == len(self.nodes):
            return self
        run = Run(self.block, known=self.known)
        for node in left:
            _add(run, node, linked=any(map(_is_link, node.parents)))
        return run if left else None


def is_gone(node: PageElement) -> bool:
    """`node.decomposed`, which for an element searches all that is below it."""
    return "_decomposed" in vars(node)


def is_within(tag: Tag, root: Tag) -> bool:
    """Whether `tag` is `root` or below it; elements that look alike are not the same."""
    return tag is root or any(parent is root for parent in tag.parents)


def runs_of(body: Tag, *, over_breaks: bool = False) -> list[Run]:
    """All text below `body` in document order; `over_breaks`: `<br>` ends no run.

    No recursion: pages are deep.
    """
    inline = INLINE | {"br"} if over_breaks else INLINE
    runs: list[Run] = []
    open_run: Run | None = None
    stack: list[tuple[PageElement | None, Tag, bool]] = [(body, body, False)]
    while stack:
        node, block, linked = stack.pop()
        if isinstance(node, Tag):
            linked = linked or _is_link(node)
            if node.name not in inline:
                open_run = None
                stack.append((None, block, linked))
                block = node
            stack += [(child, block, linked) for child in reversed(node.contents)]
        elif node is None:
            open_run = None
        elif isinstance(node, NavigableString) and node.strip():
            if open_run is None:
                open_run = Run(block)
                runs.append(open_run)
            _add(open_run, node, linked=linked)
    return runs


def _is_link(tag: Tag) -> bool:
    """`<a name=…>` is a place that links lead to; left open, it goes on to the page's end."""
    is_place = (tag.has_attr("name") or tag.has_attr("id")) and not tag.has_attr("href")
    return tag.name == "a" and not is_place


def _add(run: Run, node: NavigableString, *, linked: bool) -> None:
    run.nodes.append(node)
    run.linked += len(squeezed(node)) if linked else 0


def page_tree(source: str) -> Any:
    """The page as the article extractor wants it: `<html>` with all below; None for nothing."""
    from lxml.etree import ParserError
    from lxml.html import HTMLParser, document_fromstring

    parser = HTMLParser(remove_comments=True, remove_pis=True, default_doctype=False)
    try:
        return document_fromstring(_HUGE_TAG.sub(r"<\1>", source), parser=parser)
    except ParserError:
        return None


def main_text(tree: Any, *, thorough: bool = True) -> str:
    """What trafilatura holds for the main text of a page.

    Args:
        tree: the page, from `page_tree`; changed.
        thorough: compare its result with those of other extractors where it looks too short;
            without, it takes half the time and misses the article of one page in fifteen.
    """
    import trafilatura

    if tree is None:
        return ""
    found = trafilatura.extract(
        tree,
        output_format="txt",
        include_comments=False,
        include_tables=True,
        fast=not thorough,
    )
    return found or ""


def find_runs(runs: list[Run], article: str, *, repeats: bool = False) -> None:
    """Set `known` on the runs whose text the article has; `repeats` as in `aligned`."""
    known = aligned(["".join(run.nodes) for run in runs], article, repeats=repeats)
    for run, found in zip(runs, known, strict=True):
        run.known = found
    # The extractor takes of a text that stands there twice, as a refrain does, one only.
    places = {_place(run) for run in runs if run.known}
    for run in runs:
        run.known = run.known or (run.size >= DISTINCT and _place(run) in places)


def _place(run: Run) -> tuple[int, str, str]:
    """What is alike in texts that repeat another one beside it."""
    return id(run.block.parent), run.block.name, run.text
