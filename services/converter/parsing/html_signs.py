"""Signs of a page's text that Markdown would take for its own, and blanks that docling adds.

Both are told by noncharacters in the text, which docling hands on: one before a sign that must be
escaped, one where a link or code touches the text beside it.
"""

import re
from collections import defaultdict

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, Tag

from services.converter.parsing.article import INLINE

_LITERAL = "\ufde8"
_TOUCHES = "\ufde9"
_SIGN = re.compile(r"[*_`]+")
_APART = ["a", "code", "s"]
"""What docling writes with blanks around it."""
_VERBATIM = ["pre", "code", "kbd", "samp", "tt", "listing", "xmp"]
_PLACE = "(?:\ufde0[\ufdd0-\ufddf]+\ufde1)"
_GAP = re.compile(f"{_TOUCHES} | ({_PLACE}*){_TOUCHES}|{_TOUCHES}")


def keep_signs(soup: BeautifulSoup) -> None:
    """Mark stars, low lines and backticks of the text that would begin and end something.

    Before emphasis of the page itself is written. One alone means nothing and stays as it is, and
    so do those within a word or among blanks, where they do.
    """
    blocks: defaultdict[int, list[NavigableString]] = defaultdict(list)
    for node in soup.find_all(string=_SIGN):
        if type(node) is NavigableString and node.find_parent(_VERBATIM) is None:
            blocks[id(_block(node))].append(node)
    for nodes in blocks.values():
        signs = "".join(sign for sign in "*_`" if _pairs(nodes, sign))
        for node in nodes if signs else ():
            node.replace_with(NavigableString(_marked(node, signs)))


def _block(node: PageElement) -> Tag | None:
    tag = node.parent
    while tag is not None and tag.name in INLINE:
        tag = tag.parent
    return tag


def _pairs(nodes: list[NavigableString], sign: str) -> bool:
    """Whether one that can begin something comes before one that can end it."""
    begun = False
    for node in nodes:
        for found in _SIGN.finditer(node):
            if sign in found[0]:
                begins, ends = _flanks(node, found, sign)
                # Three alone would be a line across the page.
                rule = sign != "`" and found[0].count(sign) > 2
                if (begun and ends) or (begins and ends and rule):
                    return True
                begun = begun or begins
    return False


def _flanks(text: str, found: re.Match[str], sign: str) -> tuple[bool, bool]:
    """Whether it can begin, and whether it can end; at the edge of a text the next may go on."""
    before, after = text[: found.start()][-1:], text[found.end() :][:1]
    begins, ends = not after.isspace(), not before.isspace()
    if sign == "`":
        return True, True
    if sign == "_":
        return begins and not before.isalnum(), ends and not after.isalnum()
    return begins, ends


def _marked(text: str, signs: str) -> str:
    def mark(found: re.Match[str]) -> str:
        alone = not any(any(_flanks(text, found, sign)) for sign in signs)
        return found[0] if alone else "".join(_LITERAL * (c in signs) + c for c in found[0])

    return _SIGN.sub(mark, text)


def tell_touching(soup: BeautifulSoup) -> None:
    """Mark texts that stand right beside a link, code or struck text, no blank between."""
    for tag in soup.find_all(_APART):
        text = tag.get_text()
        before, after = tag.previous_sibling, tag.next_sibling
        if isinstance(before, NavigableString) and not (_blank(before[-1:]) or _blank(text[:1])):
            before.replace_with(NavigableString(before + _TOUCHES))
        if isinstance(after, NavigableString) and not (_blank(after[:1]) or _blank(text[-1:])):
            after.replace_with(NavigableString(_TOUCHES + after))


def _blank(edge: str) -> bool:
    return not edge.strip()


def signs_written(markdown: str) -> str:
    """The Markdown of such a page with its escapes and without those blanks."""
    return _GAP.sub(r"\1", markdown).replace(_LITERAL, "\\")
