"""What of an HTML page a reader does not see: taken out of the tree, kept for the scanner."""

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from bs4 import BeautifulSoup
from bs4.element import Comment, NavigableString, PageElement, PreformattedString, Tag

from contracts.artifacts import HiddenKind, HiddenText
from services.converter.parsing.style import Style, declarations, style_sheet

Color = tuple[int, int, int]

_MOST_HIDDEN = 20_000
_NUMBER = re.compile(r"(-?\d*\.?\d+)\s*(px|pt|em|rem|%|vw|vh|)")
_HIDDEN_CLASSES = frozenset({
    "sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text", "screen-reader-only",
})  # fmt: skip
_ATTRIBUTES = ("title", "aria-label", "aria-description", "placeholder", "data-content")
_TOLD = frozenset({"alt", *_ATTRIBUTES})
_LOOKS = frozenset({
    "style", "hidden", "class", "aria-hidden", "color", "text", "bgcolor", "background",
})  # fmt: skip
"""Attributes that may change how an element looks."""
_PLAYED = ("audio", "canvas", "video")
_LONGEST_STAND_IN = 200
_NAMED_COLORS: dict[str, Color] = {
    "white": (255, 255, 255), "black": (0, 0, 0), "snow": (255, 250, 250),
    "ivory": (255, 255, 240), "ghostwhite": (248, 248, 255), "whitesmoke": (245, 245, 245),
    "red": (255, 0, 0), "green": (0, 128, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0),
    "gray": (128, 128, 128), "grey": (128, 128, 128), "silver": (192, 192, 192),
    "navy": (0, 0, 128), "maroon": (128, 0, 0), "orange": (255, 165, 0), "purple": (128, 0, 128),
}  # fmt: skip


class _Look(NamedTuple):
    """What an element passes on to its children; `background` None: unknown."""

    hidden: HiddenKind | None
    color: Color
    background: Color | None
    shown_by_script: bool = False


def take_hidden(soup: BeautifulSoup, *, shown_by_script: bool = False) -> list[HiddenText]:
    """Remove from `soup` what is not seen, and return its text in document order.

    `shown_by_script`: what is switched off or painted over by style is seen, since a script of the
    page shows it; too small, clipped or moved away it still is not.
    """
    hidden = [*_comments(soup), *_metadata(soup)]
    # With a style sheet that we do not have, the page behind the text may have any colour.
    foreign = any("stylesheet" in (link.get("rel") or []) for link in soup.find_all("link"))
    sheet = style_sheet(soup, partial(_relevant, colours=not foreign))
    hidden += _inert(soup)
    background = None if foreign else (255, 255, 255)
    look = _Look(None, (0, 0, 0), None if shown_by_script else background, shown_by_script)
    hidden += _unseen_text(soup, sheet, look)
    hidden += _attributes(soup)
    return list(dict.fromkeys(hidden))


def unseen_kind(opening: str, *, on_white: bool) -> HiddenKind | None:
    """Why the text of one element is not seen, by its opening tag alone; None if it is.

    `on_white`: nothing around it is known to paint another background.
    """
    tag = BeautifulSoup(opening, "html.parser").find(True)
    if not isinstance(tag, Tag):
        return None
    look = _look(tag, _Look(None, (0, 0, 0), (255, 255, 255) if on_white else None), {})
    # What is within a painted element has a colour of its own.
    coloured = tag.get("color") or "color" in declarations(str(tag.get("style") or ""))
    return look.hidden or (_unreadable(look) if coloured else None)


def _text(kind: HiddenKind, text: str) -> Iterator[HiddenText]:
    text = re.sub(r"\s+", " ", text).strip()
    if text:
        yield HiddenText(kind=kind, text=text[:_MOST_HIDDEN])


def _comments(soup: BeautifulSoup) -> Iterator[HiddenText]:
    for node in [node for node in soup.descendants if isinstance(node, PreformattedString)]:
        if isinstance(node, Comment):
            yield from _text("comment", str(node))
        node.extract()


def _metadata(soup: BeautifulSoup) -> Iterator[HiddenText]:
    for meta in soup.find_all("meta"):
        name = str(meta.get("name") or meta.get("property") or "").lower()
        if name in {"description", "keywords", "og:description", "twitter:description", "abstract"}:
            yield from _text("metadata", str(meta.get("content") or ""))


def _inert(soup: BeautifulSoup) -> Iterator[HiddenText]:
    """Elements that are never rendered; scripts hold code, not text, and are only dropped.

    Within `_PLAYED` stands what only a browser shows that knows none of them.
    """
    total = len(soup.get_text())
    for tag in soup.find_all(["template", "noscript", *_PLAYED]):
        size = len(tag.get_text())
        if size * 2 > total and (size > _LONGEST_STAND_IN or tag.name not in _PLAYED):
            # An end tag was forgotten, and the parser put the page itself in here.
            tag.unwrap()
            continue
        yield from _text("script", tag.get_text(" "))
        tag.decompose()
    for tag in soup.find_all("script"):
        if str(tag.get("type") or "").startswith("text/"):
            kind = str(tag.get("type"))
            if kind not in {"text/javascript", "text/ecmascript", "text/babel"}:
                yield from _text("script", tag.get_text(" "))
        tag.decompose()
    for tag in soup.find_all("style"):
        tag.decompose()


def _attributes(soup: BeautifulSoup) -> Iterator[HiddenText]:
    """Texts in attributes that take more than a glance to see."""
    for tag in soup.find_all(True):
        if _TOLD.isdisjoint(tag.attrs):
            continue
        yield from _text("alt-text", str(tag.get("alt") or ""))
        for name in _ATTRIBUTES:
            yield from _text("attribute", str(tag.get(name) or ""))


def _unseen_text(soup: BeautifulSoup, sheet: dict[int, Style], page: _Look) -> Iterator[HiddenText]:
    """Depth first, without recursion: each text node judged by the look of its element."""
    stack: list[tuple[PageElement, _Look]] = [(soup, page)]
    while stack:
        node, look = stack.pop()
        if isinstance(node, Tag):
            mine = look if node is soup else _look(node, look, sheet.get(id(node), {}))
            stack += [(child, mine) for child in reversed(node.contents)]
        elif isinstance(node, NavigableString) and node.strip():
            kind = look.hidden or _unreadable(look)
            if kind:
                yield from _text(kind, str(node))
                node.extract()


def _unreadable(look: _Look) -> HiddenKind | None:
    if look.background is None:
        return None
    distance = max(abs(a - b) for a, b in zip(look.color, look.background, strict=True))
    return "background-colour" if distance < 24 else None


def _look(tag: Tag, outer: _Look, sheet: Style) -> _Look:
    if not sheet and _LOOKS.isdisjoint(tag.attrs):
        # Most elements of a page: nothing of their own.
        return outer
    style = {**sheet, **declarations(str(tag.get("style") or ""))}
    hidden = outer.hidden
    # A page that hides all of itself is shown by its script: nobody publishes an empty page.
    if tag.name not in {"html", "body"}:
        hidden = hidden or _hidden_by_markup(tag)
        hidden = hidden or _hidden_by_style(style, switched=not outer.shown_by_script)
    color = _color(style.get("color") or str(tag.get("color") or tag.get("text") or ""))
    painted = " ".join(
        value for name, value in style.items() if name in {"background", "background-color"}
    ) or str(tag.get("bgcolor") or "")
    background = outer.background
    if painted and painted not in {"none", "transparent", "inherit"}:
        background = None if "url(" in painted or "gradient" in painted else _color(painted)
    elif "background-image" in style or tag.get("background"):
        background = None
    if outer.shown_by_script:
        background = None
    return _Look(hidden, color or outer.color, background, outer.shown_by_script)


def _hidden_by_markup(tag: Tag) -> HiddenKind | None:
    classes = set(tag.get("class") or [])
    if tag.has_attr("hidden") or classes & _HIDDEN_CLASSES:
        return "invisible-style"
    return "attribute" if str(tag.get("aria-hidden") or "").lower() == "true" else None


def _hidden_by_style(style: Style, *, switched: bool = True) -> HiddenKind | None:
    """`switched`: also by a switch that a script may turn."""
    checks: tuple[tuple[bool, HiddenKind], ...] = (
        (switched and _is_invisible(style), "invisible-style"),
        (_is_tiny(style), "zero-size"),
        (_is_clipped(style), "invisible-style"),
        (_is_moved_away(style), "off-page"),
    )
    return next((kind for found, kind in checks if found), None)


def _is_invisible(style: Style) -> bool:
    opacity = _number(style.get("opacity"))
    return (
        style.get("display") == "none"
        or style.get("visibility") in {"hidden", "collapse"}
        or (opacity is not None and opacity < 0.05)
    )


def _is_tiny(style: Style) -> bool:
    size = _number(style.get("font-size"))
    least = 0.1 if "em" in style.get("font-size", "") else 2
    shrunk = re.search(r"scale\(\s*0?\.?0*\s*[,)]", style.get("transform", ""))
    return (size is not None and size < least) or shrunk is not None


def _is_clipped(style: Style) -> bool:
    sides = [_number(style.get(side)) for side in ("height", "width")]
    thin = any(side is not None and side < 2 for side in sides)
    return (
        (thin and style.get("overflow") in {"hidden", "clip"})
        or re.match(r"rect\(\s*[01](px)?[\s,]", style.get("clip", "")) is not None
        or re.match(r"inset\(\s*(100|50)%", style.get("clip-path", "")) is not None
    )


def _is_moved_away(style: Style) -> bool:
    names = ("left", "top", "text-indent", "margin-left")
    return min(_number(style.get(name)) or 0 for name in names) <= -500


def _number(value: str | None) -> float | None:
    match = _NUMBER.match(value.strip()) if value else None
    return float(match[1]) if match else None


def _color(value: str) -> Color | None:
    """An opaque colour; None when there is none that can be compared."""
    value = value.strip().lower()
    match = re.search(r"#([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})\b", value)
    if match:
        digits = match[1] if len(match[1]) > 4 else "".join(d * 2 for d in match[1])
        return (int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16))
    match = re.search(r"rgba?\(\s*(\d+)[\s,]+(\d+)[\s,]+(\d+)", value)
    if match:
        return (int(match[1]), int(match[2]), int(match[3]))
    return next((_NAMED_COLORS[word] for word in value.split() if word in _NAMED_COLORS), None)


def _relevant(style: Style, *, colours: bool) -> Style:
    """What can hide text or show it again: few rules of a page, and matching all is slow."""
    if _hidden_by_style(style):
        return style
    names = {"display", "visibility"}
    if colours:
        names |= {"color", "background", "background-color", "background-image"}
    return {name: value for name, value in style.items() if name in names}
