"""What of an HTML page a reader does not see: taken out of the tree, kept for the scanner."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple

from bs4 import BeautifulSoup
from bs4.element import Comment, NavigableString, PageElement, PreformattedString, Tag

from contracts.artifacts import HiddenText
from contracts.events import HiddenKind
from services.converter.parsing.css_values import Colour, colour, only_colour
from services.converter.parsing.hidden import hidden_texts, is_sentence
from services.converter.parsing.html_attributes import attributes_in
from services.converter.parsing.inert import take_inert, take_styles, take_templates
from services.converter.parsing.style import (
    IMPORTANT,
    Style,
    declarations,
    style_sheet,
    substituted,
)
from services.converter.parsing.unseen_style import (
    FAINT,
    TINY,
    covers,
    fills,
    font_size,
    halves,
    hidden_kind,
    is_doubtful,
    is_lit,
    opacity_of,
    painted,
)

_HIDDEN_CLASSES = frozenset({
    "sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text", "screen-reader-only",
})  # fmt: skip
_HIDING_NAMES = frozenset({
    "hidden", "d-none", "hide", "invisible", "is-hidden", "u-hidden", "display-none", "hide-text",
})  # fmt: skip
"""Classes by which style sheets that we do not have mostly hide something."""
_LOOKS = frozenset({
    "style", "hidden", "class", "aria-hidden", "color", "text", "bgcolor", "background", "open",
    "popover",
})  # fmt: skip
"""Attributes that may change how an element looks."""
_IN_LINE = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "del", "em", "font", "i", "ins", "kbd", "label",
    "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "u", "var",
})  # fmt: skip
_PAINTS = frozenset({"color", "text", "bgcolor", "background"})
_MOST_VARIABLES, _MOST_COVERS, _LONGEST_VALUE = 500, 10, 500
_SAME, _LIKE = 24, 56
"""Differences of colours up to which text cannot be read, and hardly."""
_MOST_DOUBTED = 0.3
"""Share of a page's letters: where more would be doubtful, it has a look that we do not know."""
_WHITE, _BLACK = Colour(255, 255, 255), Colour(0, 0, 0)
_PICTURES = ("img", "svg", "picture", "video", "canvas", "iframe", "object", "embed")
_INHERITED = frozenset({"inherit", "currentcolor", "unset"})


class _Look(NamedTuple):
    """What an element passes on to its children; a colour that is None is not known.

    `doubt` is why people may not see it, for its own reasons; `guess` are colour and background if
    a style sheet that we do not have changes nothing.
    """

    hidden: HiddenKind | None
    color: Colour | None
    background: Colour | None
    shown_by_script: bool = False
    invisible: bool = False
    size: float = 16.0
    lit: bool = False
    doubt: HiddenKind | None = None
    guess: tuple[Colour | None, Colour | None] | None = None
    opacity: float = 1.0
    variables: Mapping[str, str] = MappingProxyType({})

    @property
    def kind(self) -> HiddenKind | None:
        """Why text with this look is not seen."""
        if self.hidden or self.invisible:
            return self.hidden or "invisible-style"
        return "zero-size" if self.size <= TINY else self._unreadable(self.color, self.background)

    @property
    def doubtful(self) -> HiddenKind | None:
        """Why text with this look is perhaps not seen."""
        if self.doubt or self.guess is None:
            return self.doubt or self._unreadable(self.color, self.background, _LIKE)
        return self._unreadable(*self.guess, _SAME)

    def _unreadable(
        self, color: Colour | None, background: Colour | None, least: float = _SAME
    ) -> HiddenKind | None:
        if self.opacity < FAINT:
            return "invisible-style"
        if color is None or self.lit:
            return None
        if color.alpha < 0.05:
            return "invisible-style"
        if background is None:
            return None
        near = color.over(background).distance(background) * self.opacity < least
        return "background-colour" if near else None


def take_hidden(
    soup: BeautifulSoup, *, shown_by_script: bool = False, doubted: list[HiddenText] | None = None
) -> list[HiddenText]:
    """Remove from `soup` what is not seen, and return its text in document order.

    Args:
        soup: the page.
        shown_by_script: what is switched off or painted over by style is seen, since a script of
            the page shows it; too small, clipped or moved away it still is not.
        doubted: gets the texts that people perhaps cannot see; these stay in the page.
    """
    hidden = [*_comments(soup), *take_templates(soup), *_metadata(soup)]
    # With a style sheet that we do not have, the page behind the text may have any colour.
    foreign = any("stylesheet" in (link.get("rel") or []) for link in soup.find_all("link"))
    hidden += take_inert(soup)
    sheet = style_sheet(soup, _relevant)
    hidden += take_styles(soup)
    hidden += _drawn(soup)
    page = _Look(
        None, _BLACK, None if foreign or shown_by_script else _WHITE, shown_by_script,
        guess=(_BLACK, _WHITE) if foreign and not shown_by_script else None,
    )  # fmt: skip
    walk = _Walk(soup, sheet, foreign=foreign)
    hidden += walk.unseen(page)
    hidden += attributes_in(soup)
    found = list(dict.fromkeys(hidden))
    if doubted is not None:
        doubted += dict.fromkeys(walk.doubted())
    return found


def unseen_kind(opening: str, *, on_white: bool) -> HiddenKind | None:
    """Why the text of one element is not seen, by its opening tag alone; None if it is.

    `on_white`: nothing around it is known to paint another background.
    """
    tag = BeautifulSoup(opening, "html.parser").find(True)
    if not isinstance(tag, Tag):
        return None
    look = _look(tag, _Look(None, _BLACK, _WHITE if on_white else None), {})
    # What is within a painted element has a colour of its own.
    coloured = tag.get("color") or "color" in declarations(str(tag.get("style") or ""))
    return look.kind if coloured or look.kind != "background-colour" else None


def _comments(soup: BeautifulSoup) -> Iterator[HiddenText]:
    for node in [node for node in soup.descendants if isinstance(node, PreformattedString)]:
        if isinstance(node, Comment):
            yield from hidden_texts("comment", str(node))
        node.extract()


def _metadata(soup: BeautifulSoup) -> Iterator[HiddenText]:
    described = {"description", "keywords", "og:description", "twitter:description", "abstract"}
    for meta in soup.find_all("meta"):
        name = str(meta.get("name") or meta.get("property") or meta.get("itemprop") or "").lower()
        content = str(meta.get("content") or "")
        if name in described or (not meta.get("http-equiv") and is_sentence(content)):
            yield from hidden_texts("metadata", content)
    for title in soup.find_all("title")[1:]:
        if title.find_parent("svg") is None:
            yield from hidden_texts("metadata", title.get_text())


def _drawn(soup: BeautifulSoup) -> Iterator[HiddenText]:
    """Words of drawings, which are no text of the page."""
    for svg in soup.find_all("svg"):
        for part in svg.find_all(["title", "desc", "metadata", "text"]):
            unseen = part.name == "metadata" or any(_is_unpainted(one) for one in _up_to(part, svg))
            yield from hidden_texts("invisible-style" if unseen else "alt-text", part.get_text(" "))


def _up_to(part: Tag, last: Tag) -> Iterator[Tag]:
    yield part
    if part is not last:
        for outer in part.parents:
            yield outer
            if outer is last:
                return


def _is_unpainted(part: Tag) -> bool:
    style = {name: str(value).strip().lower() for name, value in part.attrs.items()}
    style |= declarations(str(part.get("style") or ""))
    fill = style.get("fill", "")
    pale = colour(fill)
    opacity = (style.get(name, "") for name in ("opacity", "fill-opacity"))
    return (
        part.name in {"defs", "symbol"}
        or fill == "none"
        or (pale is not None and (pale.alpha < 0.05 or pale.distance(_WHITE) < _SAME))
        or any(re.fullmatch(r"0?\.?0+\d?%?", told) for told in opacity)
        or hidden_kind(style) is not None
    )


class _Walk:
    """Depth first, without recursion: each text judged by the look of its element."""

    def __init__(self, soup: BeautifulSoup, sheet: dict[int, Style], *, foreign: bool) -> None:
        self._soup, self._sheet, self._foreign = soup, sheet, foreign
        self._seen = 0
        self._doubted: list[tuple[HiddenKind, Tag | None, str]] = []
        self._open: tuple[HiddenKind | None, Tag | None, list[str]] = None, None, []
        self._placed: defaultdict[tuple[Any, ...], list[tuple[float, bool, Tag]]] = defaultdict(
            list
        )
        """Elements that float, by parent and place: height above the page, whether it covers."""
        self._heights: dict[int, float] = {}
        """Of elements with a place of their own, by identity."""
        self._covers: list[Tag] = []
        """Those that fill all of what is around them, and let nothing through."""

    def unseen(self, page: _Look) -> Iterator[HiddenText]:
        """Take out what nobody sees."""
        stack: list[tuple[PageElement, _Look]] = [(self._soup, page)]
        while stack:
            node, look = stack.pop()
            if isinstance(node, Tag):
                mine = look if node is self._soup else self._look(node, look)
                stack += [(child, mine) for child in reversed(node.contents)]
            elif isinstance(node, NavigableString) and node.strip():
                kind, block = look.kind, _block_of(node)
                if kind != self._open[0] or block is not self._open[1]:
                    yield from self._closed()
                    self._open = kind, block, []
                if kind:
                    self._open[2].append(str(node))
                    node.extract()
                    continue
                self._seen += len(node)
                doubtful = None if look.shown_by_script else look.doubtful
                if doubtful:
                    self._doubted.append((doubtful, block, str(node)))
            elif isinstance(node, NavigableString) and self._open[0]:
                self._open[2].append(" ")
        yield from self._closed()

    def _closed(self) -> Iterator[HiddenText]:
        """What is hidden of one block, whatever elements it was split into."""
        kind, _, parts = self._open
        self._open = None, None, []
        if kind:
            yield from hidden_texts(kind, "".join(parts))

    def doubted(self) -> list[HiddenText]:
        """What people perhaps do not see, after `unseen`."""
        blocks = groupby(self._doubted, key=lambda one: (one[0], id(one[1])))
        found = [
            text
            for (kind, _), pieces in blocks
            for text in hidden_texts(kind, "".join(piece for _, _, piece in pieces))
        ]
        found += self._covered()
        return found if sum(len(one.text) for one in found) <= _MOST_DOUBTED * self._seen else []

    def _look(self, tag: Tag, outer: _Look) -> _Look:
        sheet = self._sheet.get(id(tag), {})
        look = _look(tag, outer, sheet, foreign=self._foreign)
        if look is not outer and not look.hidden and (sheet or "style" in tag.attrs):
            style = _style(tag, sheet, outer.variables)
            position = style.get("position", "static")
            told = re.fullmatch(r"-?\d{1,9}", style.get("z-index", ""))
            height = float(told[0]) if told else 0.0
            if position != "static":
                self._heights[id(tag)] = height
            if position in {"absolute", "fixed"}:
                place = tuple(
                    style.get(edge) for edge in ("left", "top", "right", "bottom", "inset")
                )
                if fills(style) and (covers(style) or tag.name in _PICTURES):
                    self._covers.append(tag)
                if any(place):
                    picture = covers(style) or tag.find(_PICTURES) is not None
                    self._placed[(id(tag.parent), *place)].append((height, picture, tag))
        return look

    def _covered(self) -> Iterator[HiddenText]:
        """Texts at the place of something that lies above them."""
        for placed in self._placed.values():
            for number, (height, _, tag) in enumerate(placed[:100]):
                above = (
                    covers_ and (height_ > height or (height_ == height and later > number))
                    for later, (height_, covers_, _) in enumerate(placed[:100])
                )
                if any(above):
                    yield from hidden_texts("invisible-style", tag.get_text(" "))
        for cover in self._covers[:_MOST_COVERS]:
            height = self._heights[id(cover)]
            # What has a place of its own and comes later lies above, at the same height.
            beside = ((cover.previous_siblings, height + 1), (cover.next_siblings, height))
            for under in (tag for tags, least in beside for tag in tags if self._lies(tag, least)):
                yield from hidden_texts("invisible-style", under.get_text(" "))

    def _lies(self, tag: PageElement, least: float) -> bool:
        """Whether nothing of it is as high as `least`: what covers the elements beside it covers
        this one, too."""
        if not isinstance(tag, Tag):
            return False
        known = (self._heights.get(id(one)) for one in (tag, *tag.find_all(True)))
        return all(height is None or height < least for height in known)


def _block_of(node: PageElement) -> Tag | None:
    """The nearest element around a text that is not part of a line."""
    return next((tag for tag in node.parents if tag.name not in _IN_LINE), None)


def _style(tag: Tag, sheet: Style, variables: Mapping[str, str]) -> Style:
    """What holds for an element: of the sheet, of its own, and what is important.

    `variables` are those of the elements around it.
    """
    own = declarations(str(tag.get("style") or ""))
    style = own
    if sheet:
        style = {name: value for name, value in sheet.items() if name[0] != IMPORTANT} | own
        style |= {name[1:]: value for name, value in sheet.items() if name[0] == IMPORTANT}
    if not any("var(" in value for value in style.values()):
        return style
    known = {**variables, **_variables_of(style)}
    return {
        name: substituted(value, known)
        if "var(" in value and len(value) < _LONGEST_VALUE
        else value
        for name, value in style.items()
    }


def _joint(outer: Mapping[str, str], own: dict[str, str]) -> Mapping[str, str]:
    return {**outer, **own} if own and len(outer) < _MOST_VARIABLES else outer


def _variables_of(style: Style) -> dict[str, str]:
    return {name: value for name, value in style.items() if name.startswith("--")}


def _look(tag: Tag, outer: _Look, sheet: Style, *, foreign: bool = False) -> _Look:
    if not sheet and _LOOKS.isdisjoint(tag.attrs) and tag.name != "dialog":
        # Most elements of a page: nothing of their own.
        return outer
    style = _style(tag, sheet, outer.variables)
    hidden, doubt = outer.hidden, outer.doubt
    # A page that hides all of itself is shown by its script: nobody publishes an empty page.
    if tag.name not in {"html", "body"}:
        hidden = hidden or _hidden_by_markup(tag)
        hidden = hidden or hidden_kind(style, switched=not outer.shown_by_script)
        if not _HIDING_NAMES.isdisjoint(tag.get("class") or ()) or is_doubtful(style):
            doubt = doubt or "invisible-style"
    if not style and _PAINTS.isdisjoint(tag.attrs):
        return (
            outer
            if (hidden, doubt) == (outer.hidden, outer.doubt)
            else outer._replace(hidden=hidden, doubt=doubt)
        )
    told = style.get("visibility")
    invisible = outer.invisible if told is None else told in {"hidden", "collapse"}
    # Of a page with a sheet that we do not have, the colours of its other sheets prove nothing.
    own = declarations(str(tag.get("style") or "")) if foreign else style
    sure = {name: style[name] for name in own}
    return _Look(
        hidden,
        _color(tag, sure, outer.color),
        None if outer.shown_by_script else _background(tag, sure, outer.background),
        outer.shown_by_script,
        invisible=invisible and not outer.shown_by_script and tag.name not in {"html", "body"},
        size=font_size(style, outer.size),
        lit=is_lit(style) or (outer.lit and "text-shadow" not in style),
        doubt=doubt,
        variables=_joint(outer.variables, _variables_of(style)),
        opacity=1.0 if outer.shown_by_script else outer.opacity * opacity_of(style),
        guess=outer.guess
        and (_color(tag, style, outer.guess[0]), _background(tag, style, outer.guess[1])),
    )


def _color(tag: Tag, style: Style, outer: Colour | None) -> Colour | None:
    told = style.get("-webkit-text-fill-color") or style.get("color")
    told = told or str(tag.get("color") or tag.get("text") or "")
    if not told or told in _INHERITED:
        return outer
    return _BLACK if told == "initial" else colour(told)


def _background(tag: Tag, style: Style, outer: Colour | None) -> Colour | None:
    told = painted(style) or str(tag.get("bgcolor") or "")
    if told and told not in {"none", "transparent", "inherit", "initial", "unset"}:
        pictured = "url(" in told or "gradient" in told
        found = only_colour(told) if pictured else colour(told)
        if pictured and found is None:
            return None
        if found is None or found.alpha >= 1:
            return found
        return None if outer is None else found.over(outer)
    return None if "background-image" in style or tag.get("background") else outer


def _hidden_by_markup(tag: Tag) -> HiddenKind | None:
    classes = set(tag.get("class") or [])
    closed = (tag.name == "dialog" and not tag.has_attr("open")) or tag.has_attr("popover")
    if tag.has_attr("hidden") or closed or classes & _HIDDEN_CLASSES:
        return "invisible-style"
    return "attribute" if str(tag.get("aria-hidden") or "").lower() == "true" else None


_OF_COLOUR = frozenset({
    "color", "background", "background-color", "background-image", "-webkit-text-fill-color",
    "text-shadow", "background-clip", "-webkit-background-clip", "-webkit-text-stroke",
})  # fmt: skip
_SHOWING = frozenset(
    {"display", "visibility", "font-size", "font", "position", "z-index", "inset", *_OF_COLOUR}
)
_PLACING = frozenset({"left", "top", "right", "bottom"})
_WHOLE = frozenset({"width", "height"})


def _relevant(style: Style) -> Style:
    """What can hide text or show it again: few rules of a page, and matching all is slow."""
    if hidden_kind(style) or is_doubtful(style) or "opacity" in style:
        return style
    names = _SHOWING | _PLACING | _WHOLE if "position" in style else _SHOWING
    return {name: value for name, value in style.items() if name in names} | halves(style)
