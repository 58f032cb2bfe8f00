"""Levels of the headings of a PDF: by the outline, or by type, rank in the law and numbering."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from services.converter.headings import legal_rank, number_depth
from services.converter.parsing.layout import Block

DEEPEST = 5
_NEARLY = 0.92
_LETTERED = re.compile(r"[A-Z]\.\s+\S")


class Heading(NamedTuple):
    """A heading in the order of the document."""

    text: str
    block: Block


_Style = tuple[float, ...]


def levels(headings: Sequence[Heading], known: Sequence[int | None]) -> list[int]:
    """Levels from 1; `known` are depths from 0 that an outline or a contents list gives.

    What is known holds if it knows most of the headings; the others then have the level of those
    that look like them, or that which their own look tells.
    """
    by_style = _by_style(headings)
    told = [depth for depth in known if depth is not None]
    if not told or len(told) * 2 < len(headings):
        return [min(level, DEEPEST) for level in by_style]
    styles = _styles(headings)
    alike: defaultdict[_Style, Counter[int]] = defaultdict(Counter)
    for style, depth in zip(styles, known, strict=True):
        if depth is not None:
            alike[style][depth + 1] += 1
    found: list[int] = []
    for level, style, depth in zip(by_style, styles, known, strict=True):
        if depth is not None:
            found.append(depth + 1)
        elif alike[style]:
            found.append(max(alike[style].items(), key=lambda item: (item[1], -item[0]))[0])
        else:
            found.append(min(level, (found[-1] if found else 0) + 1))
    return [min(level, DEEPEST) for level in found]


def _by_style(headings: Sequence[Heading]) -> list[int]:
    """The same style has the same level: that which it has in most places under what is heavier.

    So a level is never left out only because a style between two others exists elsewhere.
    """
    styles = _styles(headings)
    seen: defaultdict[_Style, Counter[int]] = defaultdict(Counter)
    open_styles: list[_Style] = []
    for style in styles:
        while open_styles and open_styles[-1] >= style:
            open_styles.pop()
        open_styles.append(style)
        seen[style][len(open_styles)] += 1
    usual = {s: max(c.items(), key=lambda i: (i[1], -i[0]))[0] for s, c in seen.items()}
    return [usual[style] for style in styles]


def _styles(headings: Sequence[Heading]) -> list[_Style]:
    """Size, then weight, then rank in the law, then depth of the number; the heaviest first.

    Sizes that differ by less than a tenth are one. Headings with numbers of one depth belong
    together, and take the commonest size among them.
    """
    classes: list[float] = []
    for size in sorted({h.block.size for h in headings}, reverse=True):
        if not classes or size <= _NEARLY * classes[-1]:
            classes.append(size)
    depths = _depths(headings)
    sizes = [sum(h.block.size <= _NEARLY * c for c in classes) for h in headings]
    weights = [0 if h.block.bold else 1 for h in headings]
    usual: dict[int, tuple[int, int]] = {}
    for depth in {d for d in depths if d}:
        together = Counter(
            (s, w) for d, s, w in zip(depths, sizes, weights, strict=True) if d == depth
        )
        usual[depth] = max(together.items(), key=lambda i: (i[1], -i[0][0], -i[0][1]))[0]
    styles: list[_Style] = []
    for heading, depth, size, weight in zip(headings, depths, sizes, weights, strict=True):
        rank = legal_rank(heading.text)
        common = usual.get(depth, (size, weight)) if rank is None else (size, weight)
        styles.append((*common, 9 if rank is None else rank, depth or 1))
    return styles


def _depths(headings: Sequence[Heading]) -> list[int]:
    """Of their numbers, 0 without one; `A. Data` is under `II. Method`."""
    depths: list[int] = []
    roman = False
    for heading in headings:
        depth = number_depth(heading.text) or 0
        roman = roman or (depth == 1 and heading.text[:1].isalpha())
        lettered = depth == 0 and roman and _LETTERED.match(heading.text) is not None
        depths.append(2 if lettered else depth)
    return depths
