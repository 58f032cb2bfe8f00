"""Elements of a page that no browser shows: templates, scripts, what stands in for them."""

import json
from collections.abc import Iterator
from typing import Any

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, Tag

from contracts.artifacts import HiddenText
from services.converter.parsing.css_strings import told_by
from services.converter.parsing.hidden import hidden_texts, is_sentence
from services.converter.parsing.html_attributes import attributes_in

_CODE = frozenset({"text/javascript", "text/ecmascript", "text/babel", "text/typescript"})
_PLAYED = ("audio", "canvas", "video", "object", "iframe")
_ASIDE = ("option", "rp", "annotation", "annotation-xml")
"""What is chosen from, or stands in for a reading aid or a formula: never part of the text."""
_STAND_INS = ("noscript", "datalist", "noembed", *_PLAYED)
_LONGEST_STAND_IN = 200
_LEAST_PAGE = 200
"""Letters outside of templates that a page has at least, if it is not made of them by a script."""
_LONGEST_FACT = 500
_MOST_FACTS = 2000


def take_templates(soup: BeautifulSoup) -> Iterator[HiddenText]:
    """Remove templates, with their styles and scripts, which count for nothing.

    One that a browser puts in place of its element's content stays (a shadow root), and so do long
    ones of a page that has next to no other text: its script shows them; they are told as well.
    """
    for tag in soup.find_all("template", shadowrootmode=True):
        # Of several in one element, the first counts.
        if tag.parent is not None:
            yield from _open_shadow(tag)
    outer = [tag for tag in soup.find_all("template") if tag.find_parent("template") is None]
    is_page = bool(outer) and sum(map(str.isalnum, soup.get_text())) >= _LEAST_PAGE
    for tag in outer:
        text = _all_text(tag)
        yield from hidden_texts("script", text)
        if is_page or len(text) <= _LONGEST_STAND_IN:
            yield from attributes_in(tag)
            tag.decompose()
        else:
            _unwrap(tag)


def _open_shadow(template: Tag) -> Iterator[HiddenText]:
    """What the element around it holds besides is shown in its slots only."""
    host = template.parent
    if host is not None and template.find("slot") is None and not host.find_parent("template"):
        for other in [node for node in host.contents if node is not template]:
            yield from hidden_texts("invisible-style", _all_text(other))
            other.extract()
    _unwrap(template)


def _all_text(node: PageElement) -> str:
    """Also of texts that bs4 counts as no text, since they stand in a template."""
    if isinstance(node, Tag):
        return " ".join(
            str(text)
            for text in node.find_all(string=True)
            if text.parent is None or text.parent.name not in {"script", "style"}
        )
    return str(node) if type(node) is NavigableString else ""


def _unwrap(template: Tag) -> None:
    for node in template.find_all(string=True):
        if node.parent is not None and node.parent.name not in {"script", "style"}:
            node.replace_with(NavigableString(str(node)))
    for inner in template.find_all("template"):
        inner.name = "div"
    template.unwrap()


def take_inert(soup: BeautifulSoup) -> Iterator[HiddenText]:
    """Remove elements that are never rendered; scripts hold code, not text, and are only dropped.

    Within `_PLAYED` stands what only a browser shows that knows none of them.
    """
    total = len(soup.get_text())
    for tag in soup.find_all(_STAND_INS):
        size = len(tag.get_text())
        yield from hidden_texts("script", tag.get_text(" "))
        yield from attributes_in(tag)
        if size * 2 > total and (size > _LONGEST_STAND_IN or tag.name not in _PLAYED):
            # An end tag was forgotten, and the parser put the page itself in here.
            tag.unwrap()
        else:
            tag.decompose()
    for tag in soup.find_all(_ASIDE):
        text = tag.get_text(" ")
        yield from hidden_texts("attribute", text if is_sentence(text) else "")
    for tag in soup.find_all("script"):
        kind = str(tag.get("type") or "")
        if kind.endswith("json"):
            yield from _facts(tag.get_text())
        elif kind.startswith("text/") and kind not in _CODE:
            yield from hidden_texts("script", tag.get_text(" "))
        tag.decompose()


def take_styles(soup: BeautifulSoup) -> Iterator[HiddenText]:
    """Remove style sheets; the words that they put on the page are told."""
    sheets = [tag.get_text() for tag in soup.find_all("style")]
    values = (str(tag["style"]) for tag in soup.find_all(style=True))
    own = (value for value in values if "--" in value and ("'" in value or '"' in value))
    told = told_by("\n".join([*sheets, *own]))
    if is_sentence(told):
        yield from hidden_texts("attribute", told)
    for tag in soup.find_all("style"):
        tag.decompose()


def _facts(source: str) -> Iterator[HiddenText]:
    """Sentences in data for machines. The article itself stands there, too: it is no fact."""
    try:
        stack: list[Any] = [json.loads(source)]
    except (ValueError, RecursionError):
        yield from hidden_texts("script", source if is_sentence(source) else "")
        return
    left = _MOST_FACTS
    while stack and left:
        left -= 1
        one = stack.pop()
        if isinstance(one, dict):
            stack += reversed([*one.values()])
        elif isinstance(one, list):
            stack += reversed(one)
        elif isinstance(one, str) and len(one) <= _LONGEST_FACT and is_sentence(one):
            yield from hidden_texts("script", one)
