"""Headings of a PDF that only their numbers tell: `4.1. Data` in the type of the text.

An item of a list has a number, too. What makes a heading of it: it stands in the sequence of the
document's numbers, it is short and alone, and text follows before the next one.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from services.converter.headings import number_parts, roman_value
from services.converter.parsing.pdf_elements import Element

_ROMAN, _LETTER = re.compile(r"([IVX]{1,5})\.\s+(?=\S)"), re.compile(r"([A-Z])\.\s+(?=[^\W\d_a-z])")
_LEAST, _LEAST_TEXT, _LONGEST, _APART = 3, 150, 120, 0.15
_HIGHEST = 60

Number = tuple[int, ...]


class _Numbered(NamedTuple):
    """Index of the element in the document, and its number."""

    at: int
    number: Number


def numbered_headings(elements: Sequence[Element], could_head: Sequence[bool]) -> set[int]:
    """Indexes of text and list items that head what follows; `could_head` says which may at all.

    Headings that are known already count as members of their sequence.
    """
    found: set[int] = set()
    may = [
        can and not _is_listed(elements[max(0, n - 1) : n + 2]) for n, can in enumerate(could_head)
    ]
    for candidates in (_decimal(elements, may), _roman(elements, may)):
        chain = _longest(_looking_alike(elements, candidates))
        if len(chain) >= _LEAST and _has_text_between(elements, chain):
            found.update(one.at for one in chain)
    return {index for index in found if elements[index].kind != "heading"}


def _told(element: Element) -> str:
    return f"{element.marker} {element.text}" if element.marker not in {"", "-"} else element.text


def _is_listed(near: Sequence[Element]) -> bool:
    """Items of a list stand under one another, with no text between them."""
    return sum(one.kind == "list" and one.marker != "-" for one in near) > 1


def _looking_alike(elements: Sequence[Element], candidates: Sequence[_Numbered]) -> list[_Numbered]:
    """Without those that look otherwise than the known headings of their depth."""
    looks: defaultdict[int, set[tuple[int, bool]]] = defaultdict(set)
    for at, number in candidates:
        if elements[at].kind == "heading":
            looks[len(number)].add(_look(elements[at]))
    return [
        one
        for one in candidates
        if not looks[len(one.number)] or _look(elements[one.at]) in looks[len(one.number)]
    ]


def _look(element: Element) -> tuple[int, bool]:
    return round(element.block.size), element.block.bold


def _may_head(element: Element, could_head: bool) -> bool:
    if element.kind == "heading":
        return True
    text, block = element.text, element.block
    return (
        could_head
        and element.kind in {"text", "list"}
        and block.kind in {"text", "list"}
        and len(text) <= _LONGEST
        and re.search(r"[.,;:…]$", text) is None
        and block.space_above > _APART * block.size
    )


def _decimal(elements: Sequence[Element], could_head: Sequence[bool]) -> list[_Numbered]:
    found: list[_Numbered] = []
    for index, element in enumerate(elements):
        number = number_parts(_told(element)) if _may_head(element, could_head[index]) else None
        if number and max(number) <= _HIGHEST:
            found.append(_Numbered(index, number))
    return found


def _roman(elements: Sequence[Element], could_head: Sequence[bool]) -> list[_Numbered]:
    """`IV. Results` is (4,), `B. Errors` behind it (4, 2)."""
    found: list[_Numbered] = []
    chapter = 0
    for index, element in enumerate(elements):
        if not _may_head(element, could_head[index]):
            continue
        text = _told(element)
        roman, letter = _ROMAN.match(text), _LETTER.match(text)
        value = roman_value(roman[1]) if roman else 0
        if value == chapter + 1 or (value and not letter):
            chapter = value
            found.append(_Numbered(index, (value,)))
        elif letter and chapter:
            found.append(_Numbered(index, (chapter, ord(letter[1]) - ord("A") + 1)))
    return found


def _longest(candidates: Sequence[_Numbered]) -> list[_Numbered]:
    """The longest run in which each number is the next after the one before.

    After 2.3 come 2.3.1, 2.4, 3 and, if the name of chapter 3 was not seen, 3.1.
    """
    lengths: list[int] = []
    before: list[int] = []
    exact: dict[Number, int] = {}
    under: dict[Number, int] = {}
    for place, (_, number) in enumerate(candidates):
        last, above = number[-1], number[:-1]
        options = [under.get((*above, last - 1))]
        if last == 1 and above:
            options += [exact.get(above), under.get((*above[:-1], above[-1] - 1))]
        known = [option for option in options if option is not None]
        best = max(known, key=lambda option: lengths[option], default=-1)
        lengths.append(lengths[best] + 1 if known else 1)
        before.append(best)
        for depth in range(1, len(number) + 1):
            prefix = number[:depth]
            if prefix not in under or lengths[under[prefix]] <= lengths[place]:
                under[prefix] = place
        if number not in exact or lengths[exact[number]] <= lengths[place]:
            exact[number] = place
    chain: list[_Numbered] = []
    place = max(range(len(lengths)), key=lambda n: (lengths[n], -n), default=-1)
    while place >= 0:
        chain.append(candidates[place])
        place = before[place]
    return chain[::-1]


def _has_text_between(elements: Sequence[Element], chain: Sequence[_Numbered]) -> bool:
    """Whether text stands under most of them; where two follow at once, one heads the other."""
    sizes = [len(element.text) for element in elements]
    ends = [*(one.at for one in chain[1:]), len(elements)]
    between = [
        sum(sizes[one.at + 1 : end])
        for one, end, after in zip(chain, ends, [*chain[1:], None], strict=True)
        if after is None or len(after.number) <= len(one.number)
    ]
    return median(between) >= _LEAST_TEXT
