"""Texts in attributes of a page, which take more than a glance to see."""

from collections.abc import Iterator

from bs4.element import Tag

from contracts.artifacts import HiddenText
from services.converter.parsing.hidden import hidden_texts, is_sentence

_ATTRIBUTES = frozenset({
    "title", "aria-label", "aria-description", "aria-placeholder", "aria-valuetext", "placeholder",
    "data-content", "summary", "label", "longdesc",
})  # fmt: skip
_TOLD = frozenset({"alt", "value", *_ATTRIBUTES})


def attributes_in(element: Tag) -> Iterator[HiddenText]:
    """Those of an element and of all in it."""
    for tag in (element, *element.find_all(True)):
        attributes = tag.attrs
        if not attributes:
            continue
        if not _TOLD.isdisjoint(attributes):
            yield from hidden_texts("alt-text", str(attributes.get("alt") or ""))
            for name in _ATTRIBUTES & attributes.keys():
                yield from hidden_texts("attribute", str(attributes[name] or ""))
            if tag.name == "input" and is_sentence(str(attributes.get("value") or "")):
                yield from hidden_texts("attribute", str(attributes["value"]))
        for name, value in attributes.items():
            own = name.startswith("data-") and name not in _ATTRIBUTES
            if own and isinstance(value, str) and is_sentence(value):
                yield from hidden_texts("attribute", value)
