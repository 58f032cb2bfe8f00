"""The part of CSS that can hide text: a page's own rules, matched without backtracking.

Rules under conditions (`@media` and the like), for states (`:hover`) and for neighbours (`+`, `~`)
are left out. Every page, however hostile, costs a bounded number of steps.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from bs4 import BeautifulSoup
from bs4.element import Tag

Style = dict[str, str]

_MOST_RULES = 5000
_MOST_CHECKS = 2_000_000
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_BRACE = re.compile(r"[{};]")
_COMPOUND = re.compile(
    r"(?P<name>[a-zA-Z][\w-]*|\*)?(?P<rest>(?:[.#][\w-]+|\[[\w-]+(?:[*^$]?=(?:\"[^\"]*\"|'[^']*'|[\w-]+))?\])*)"
)
_PIECE = re.compile(r"([.#])([\w-]+)|\[([\w-]+)(?:([*^$]?=)(?:\"([^\"]*)\"|'([^']*)'|([\w-]+)))?\]")
_COMBINATOR = re.compile(r"\s*>\s*|\s+")
_COMPARE: dict[str, Callable[[str, str], bool]] = {
    "": lambda _value, _wanted: True,
    "=": lambda value, wanted: value == wanted,
    "*=": lambda value, wanted: bool(wanted) and wanted in value,
    "^=": lambda value, wanted: bool(wanted) and value.startswith(wanted),
    "$=": lambda value, wanted: bool(wanted) and value.endswith(wanted),
}


class _Compound(NamedTuple):
    """What one element must be: `div.note#n1[hidden]`."""

    name: str
    classes: tuple[str, ...]
    identity: str
    attributes: tuple[tuple[str, str, str], ...]

    def fits(self, tag: Tag) -> bool:
        if self.name and tag.name != self.name:
            return False
        if self.identity and tag.get("id") != self.identity:
            return False
        own = list(tag.get("class") or ())
        return all(name in own for name in self.classes) and all(
            tag.has_attr(name) and _COMPARE[sign](str(tag[name]), wanted)
            for name, sign, wanted in self.attributes
        )


class _Selector(NamedTuple):
    """Compounds from the outside in; `direct[n]`: the n-th stands right below the one before."""

    compounds: tuple[_Compound, ...]
    direct: tuple[bool, ...]

    def fits(self, tag: Tag) -> bool:
        """Right to left along the ancestors, all open choices at once: no backtracking."""
        last = len(self.compounds) - 1
        if not self.compounds[last].fits(tag):
            return False
        if last == 0:
            return True
        here = {last - 1}
        anywhere = set() if self.direct[last] else {last - 1}
        for parent in tag.parents:
            above: set[int] = set()
            for n in here | anywhere:
                if self.compounds[n].fits(parent):
                    if n == 0:
                        return True
                    above.add(n - 1)
                    if not self.direct[n]:
                        anywhere.add(n - 1)
            here = above
        return False


def declarations(css: str) -> Style:
    """`display: none; color: red` by name; the last one of a name wins."""
    style: Style = {}
    for declaration in css.split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            style[name.strip().lower()] = value.replace("!important", "").strip().lower()
    return style


def style_sheet(soup: BeautifulSoup, relevant: Callable[[Style], Style]) -> dict[int, Style]:
    """Declarations of the page's own style sheets, by identity of element; the last rule wins.

    Args:
        soup: the page with its `style` elements.
        relevant: the part of a rule's declarations that matters; empty drops the rule.
    """
    css = _COMMENT.sub("", "\n".join(tag.get_text() for tag in soup.find_all("style")))
    styles: dict[int, Style] = {}
    if not css.strip():
        return styles
    index = _Index(soup)
    checks = 0
    for prelude, body in islice(_rules(css), _MOST_RULES):
        found = relevant(declarations(body))
        selectors = list(_selectors(prelude)) if found else []
        for selector in selectors:
            candidates = index.candidates(selector.compounds[-1])
            checks += len(candidates)
            if checks > _MOST_CHECKS:
                return styles
            for tag in candidates:
                if selector.fits(tag):
                    styles.setdefault(id(tag), {}).update(found)
    return styles


def _rules(css: str) -> Iterator[tuple[str, str]]:
    """Selectors and body of each rule that is under no condition."""
    start = depth = body = 0
    prelude = ""
    for match in _BRACE.finditer(css):
        if match[0] == "{":
            depth += 1
            if depth == 1:
                prelude, body = css[start : match.start()].strip(), match.end()
        elif match[0] == "}":
            if depth == 1 and not prelude.startswith("@"):
                yield prelude, css[body : match.start()]
            depth = max(0, depth - 1)
            start = match.end()
        elif depth == 0:
            start = match.end()


def _selectors(prelude: str) -> Iterator[_Selector]:
    for part in prelude.split(",")[:200]:
        parsed = _selector(part.strip())
        if parsed is not None:
            yield parsed


def _selector(text: str) -> _Selector | None:
    compounds: list[_Compound] = []
    direct = [False]
    at = 0
    while at < len(text) and len(compounds) < 20:
        match = _COMPOUND.match(text, at)
        if match is None or match.end() == at:
            return None
        compounds.append(_compound(match["name"] or "", match["rest"] or ""))
        at = match.end()
        between = _COMBINATOR.match(text, at)
        if between is not None:
            direct.append(">" in between[0])
            at = between.end()
        elif at < len(text):
            return None
    complete = bool(compounds) and at == len(text) and len(direct) == len(compounds)
    return _Selector(tuple(compounds), tuple(direct)) if complete else None


def _compound(name: str, rest: str) -> _Compound:
    classes: list[str] = []
    attributes: list[tuple[str, str, str]] = []
    identity = ""
    for sign, value, attribute, compare, *wanted in _PIECE.findall(rest):
        if sign == ".":
            classes.append(value)
        elif sign == "#":
            identity = value
        else:
            attributes.append((attribute.lower(), compare, "".join(wanted)))
    name = "" if name == "*" else name.lower()
    return _Compound(name, tuple(classes), identity, tuple(attributes))


class _Index:
    """Elements by what a selector may name, so that a rule meets few of them."""

    def __init__(self, soup: BeautifulSoup) -> None:
        self._all: list[Tag] = soup.find_all(True)
        self._named: dict[str, list[Tag]] = {}
        for tag in self._all:
            keys = [tag.name, *(f".{c}" for c in dict.fromkeys(tag.get("class") or []))]
            for key in [*keys, f"#{tag.get('id')}"]:
                self._named.setdefault(key, []).append(tag)

    def candidates(self, wanted: _Compound) -> list[Tag]:
        keys = [f".{name}" for name in wanted.classes]
        keys += [f"#{wanted.identity}"] if wanted.identity else []
        keys += [wanted.name] if wanted.name else []
        found = [self._named.get(key, []) for key in keys]
        return min(found, key=len, default=self._all)
