"""The part of CSS that can hide text: a page's own rules, matched without backtracking.

Rules count as they do in a window of a usual screen: those under other conditions (`@media print`)
and for states (`:hover`) are left out. Every page, however hostile, costs a bounded number of
steps.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from bs4 import BeautifulSoup
from bs4.element import Tag

from services.converter.parsing.css_values import length

Style = dict[str, str]

IMPORTANT = "!"
"""Stands before the names of declarations of a sheet that outweigh those of the element."""

_MOST_RULES = 20_000
_MOST_CHECKS = 2_000_000
_MOST_SUBSTITUTED, _MOST_VARIABLES = 50_000, 200
_MOST_NESTED, _LONGEST_SELECTOR = 5, 500
_WIDTH, _HEIGHT = 1280, 800
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_BRACE = re.compile(r"[{};]")
_ESCAPE = re.compile(r"\\([0-9a-fA-F]{1,6})[ \t\n]?")
_COMPOUND = re.compile(
    r"(?P<name>[a-zA-Z][\w-]*|\*)?(?P<rest>(?:[.#][\w-]+|\[[\w-]+(?:[*^$]?=(?:\"[^\"]*\"|'[^']*'|[\w-]+))?\])*)"
)
_PIECE = re.compile(r"([.#])([\w-]+)|\[([\w-]+)(?:([*^$]?=)(?:\"([^\"]*)\"|'([^']*)'|([\w-]+)))?\]")
_COMBINATOR = re.compile(r"\s*>\s*|\s+")
_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,\s*([^()]*))?\)")
_VARIABLE_NAME = re.compile(r"var\(\s*(--[\w-]+)")
_NAME = re.compile(r"--[\w-]+")
_STATES = re.compile(r":not\(\s*:(?:focus|hover|active|focus-within|focus-visible|target)\s*\)")
_PSEUDO = re.compile(r":+([\w-]+)")
_MATCHABLE = frozenset({
    "not", "is", "where", "matches", "root", "empty", "first-child", "last-child", "only-child",
    "nth-child", "nth-last-child", "first-of-type", "last-of-type", "nth-of-type", "only-of-type",
    "nth-last-of-type", "link", "any-link", "enabled",
})  # fmt: skip
_MOST_SIEVED, _MOST_SIBLINGS = 200, 2000
_SIBLINGS = re.compile(r"nth-|[+~]|of-type|only-|last-")
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
            tag.has_attr(name) and _COMPARE[sign](_value(tag, name), wanted)
            for name, sign, wanted in self.attributes
        )


def _value(tag: Tag, name: str) -> str:
    value = tag[name]
    return value if isinstance(value, str) else " ".join(value)


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


class _Rule(NamedTuple):
    """One selector with its declarations; rules apply in ascending order of `rank`."""

    rank: tuple[bool, int, int, int, int]
    selector: str
    style: Style


def declarations(css: str) -> Style:
    """`display: none; color: red` by name; the last one of a name wins."""
    return {name: value for name, value, _ in _declared(css)}


def _declared(css: str) -> Iterator[tuple[str, str, bool]]:
    """Name, value and whether it is important."""
    if "\\" in css:
        css = _ESCAPE.sub(_unescaped, css)
    for declaration in css.split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            told = value.replace("!important", "")
            yield name.strip().lower(), told.strip().lower(), len(told) < len(value)


def _unescaped(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0xD800 else ""


def style_sheet(soup: BeautifulSoup, relevant: Callable[[Style], Style]) -> dict[int, Style]:
    """Declarations of the page's own style sheets, by identity of element.

    Important ones have `IMPORTANT` before their name. The more special rule wins, then the last.

    Args:
        soup: the page with its `style` elements.
        relevant: the part of a rule's declarations that matters; empty drops the rule.
    """
    sheets = (tag for tag in soup.find_all("style") if _on_screen(str(tag.get("media") or "all")))
    css = _COMMENT.sub("", "\n".join(tag.get_text() for tag in sheets))
    styles: dict[int, Style] = {}
    if not css.strip():
        return styles
    rules = _ranked(list(islice(_rules(css), _MOST_RULES)), relevant, soup)
    index = _Index(soup)
    for rule in rules:
        for tag in index.matching(rule.selector):
            styles.setdefault(id(tag), {}).update(rule.style)
        if index.checks > _MOST_CHECKS:
            break
    return styles


def _ranked(
    rules: list[tuple[str, str]], relevant: Callable[[Style], Style], soup: BeautifulSoup
) -> list[_Rule]:
    known, several = _variables(rules, _own_styles(soup))
    kept_of: list[tuple[str, Style, Style, Style]] = []
    for prelude, body in rules:
        written = substituted(body, known, several) if "var(" in body else body
        plain, important = Style(), Style()
        for name, value, weighs in _declared(written):
            (important if weighs else plain)[name] = value
        own = {n: value for n, value in (plain | important).items() if n in several}
        kept_of.append((prelude, relevant(plain), relevant(important), own))
    used = _used(kept_of, several, soup) if several else frozenset()
    found: list[_Rule] = []
    for order, (prelude, plain, important, own) in enumerate(kept_of):
        usual = plain | {name: value for name, value in own.items() if name in used}
        marked = {IMPORTANT + name: value for name, value in important.items()}
        for style in filter(None, (usual, marked)):
            for part in prelude.split(",")[:200] if "(" not in prelude else _parts(prelude):
                selector = part.strip()
                rank = (style is marked, *_specificity(selector), order)
                found.append(_Rule(rank, selector, style))
    return sorted(found, key=lambda rule: rule.rank)


def _own_styles(soup: BeautifulSoup) -> str:
    """What elements declare of variables."""
    styles = (str(tag["style"]) for tag in soup.find_all(style=True))
    return ";".join(style for style in styles if "--" in style)


def _used(
    kept: list[tuple[str, Style, Style, Style]], several: frozenset[str], soup: BeautifulSoup
) -> frozenset[str]:
    """Those variables on which something depends that may hide text; frameworks have hundreds."""
    wanted = {match[1].lower() for match in _VARIABLE_NAME.finditer(_own_styles(soup))}
    for _, plain, important, _ in kept:
        for value in (*plain.values(), *important.values()):
            wanted.update(match[1].lower() for match in _VARIABLE_NAME.finditer(value))
    for _ in range(3):
        for *_, own in kept:
            for name in wanted & own.keys():
                found = _VARIABLE_NAME.finditer(own[name])
                wanted = wanted | {match[1].lower() for match in found}
    return frozenset(sorted(several & wanted)[:_MOST_VARIABLES])


def _parts(prelude: str) -> list[str]:
    """A list of selectors at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, sign in enumerate(prelude):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append(prelude[start:at])
            start = at + 1
    return [*parts, prelude[start:]][:200]


def _specificity(selector: str) -> tuple[int, int, int]:
    """Ids; classes, attributes and pseudo-classes; names of elements."""
    special = selector.count(".") + selector.count("[") + selector.count(":")
    names = len(re.findall(r"(?:^|[\s>+~(])[a-zA-Z]", selector[:_LONGEST_SELECTOR]))
    return selector.count("#"), special - selector.count(":where") - selector.count(":not"), names


def _variables(rules: Iterable[tuple[str, str]], own: str) -> tuple[dict[str, str], frozenset[str]]:
    """Values of `--names` that are the same on the whole page, and the names of the others.

    Args:
        rules: selectors and bodies.
        own: declarations of elements that name variables.
    """
    values: dict[str, set[str]] = {}
    for _, body in rules:
        for name, value in declarations(body if "--" in body else "").items():
            if name.startswith("--"):
                values.setdefault(name, set()).add(value)
    at_elements = {match[0].lower() for match in _NAME.finditer(own)}
    several = {name for name, told in values.items() if len(told) > 1} | at_elements
    return {n: next(iter(v)) for n, v in values.items() if n not in several}, frozenset(several)


def substituted(told: str, known: Mapping[str, str], others: Container[str] = ()) -> str:
    """Declarations, or a value, with the variables' values; those of `others` stay as they are."""

    def value(match: re.Match[str]) -> str:
        name = match[1].lower()
        found = None if name in others else known.get(name, match[2])
        return match[0] if found is None else found[:200]

    for _ in range(3):
        # A few letters may stand for many, which stand for more.
        told = _VARIABLE.sub(value, told) if len(told) <= _MOST_SUBSTITUTED else told
    return told


# --- rules and their conditions -------------------------------------------------------------------


class _Open(NamedTuple):
    """A brace that is open: a rule with its `selector`, or a group of rules that count or not."""

    counts: bool
    selector: str
    body: list[str]


def _rules(css: str) -> Iterator[tuple[str, str]]:
    """Selectors and body of each rule that counts, inner rules with those around them."""
    start = 0
    stack: list[_Open] = []
    for match in _BRACE.finditer(css):
        text = css[start : match.start()]
        start = match.end()
        if match[0] == "{":
            stack.append(_opened(text.strip(), stack))
            continue
        if stack and stack[-1].selector:
            stack[-1].body.append(text)
        if match[0] == "}" and stack:
            closed = stack.pop()
            if closed.counts and closed.selector:
                yield closed.selector, ";".join(closed.body)
    # What the page does not close, a browser does.
    if stack and stack[-1].selector:
        stack[-1].body.append(css[start:])
    for closed in reversed(stack):
        if closed.counts and closed.selector:
            yield closed.selector, ";".join(closed.body)


def _opened(prelude: str, stack: list[_Open]) -> _Open:
    outer = stack[-1] if stack else _Open(True, "", [])
    if not outer.counts or len(stack) > _MOST_NESTED:
        return _Open(False, "", [])
    if prelude.startswith("@"):
        return _Open(_applies(prelude), outer.selector, [])
    if not outer.selector:
        return _Open(True, prelude or "-", [])
    if len(prelude) + len(outer.selector) > _LONGEST_SELECTOR - 10 or "&" in outer.selector:
        return _Open(False, "", [])
    around = f":is({outer.selector})" if "," in outer.selector else outer.selector
    inner = f":is({prelude})" if "," in prelude and "&" not in prelude else prelude
    inner = inner if "&" in inner else f"& {inner}"
    return _Open(True, inner.replace("&", around)[:_LONGEST_SELECTOR], [])


def _applies(prelude: str) -> bool:
    """Whether the rules in a group count, on a usual screen."""
    name, _, rest = prelude[:_LONGEST_SELECTOR].partition(" ")
    if name.startswith("@media"):
        return _on_screen(prelude[len("@media") :])
    if name == "@supports":
        return not rest.strip().startswith("not")
    return name == "@layer"


def _on_screen(query: str) -> bool:
    return any(_fits(part.strip().lower()) for part in query[:_LONGEST_SELECTOR].split(","))


def _fits(query: str) -> bool:
    negated = query.startswith("not ")
    query = query.removeprefix("not ").removeprefix("only ").strip()
    kind = re.match(r"[a-z]+", query)
    fits = kind is None or kind[0] in {"all", "screen"}
    fits = fits and all(_has(feature) for feature in re.findall(r"\(([^()]*)\)", query))
    return fits is not negated


def _has(feature: str) -> bool:
    if "<" in feature or ">" in feature:
        return _in_range(feature)
    name, _, told = feature.partition(":")
    name, value = name.strip(), told.strip()
    sides = {"width": _WIDTH, "device-width": _WIDTH, "height": _HEIGHT, "device-height": _HEIGHT}
    bound, _, side = name.partition("-")
    if side in sides and bound in {"min", "max"}:
        limit = length(value)
        if limit is None:
            return False
        return limit <= sides[side] if bound == "min" else limit >= sides[side]
    usual = {
        "prefers-color-scheme": "light", "prefers-reduced-motion": "no-preference",
        "orientation": "landscape", "hover": "hover", "pointer": "fine", "any-hover": "hover",
        "any-pointer": "fine", "scripting": "enabled",
    }  # fmt: skip
    return usual.get(name) == value


def _in_range(feature: str) -> bool:
    """`width >= 600px`, `400px < width < 900px`."""
    parts = re.split(r"\s*([<>]=?)\s*", feature.strip())
    sides: dict[str, float] = {"width": _WIDTH, "height": _HEIGHT}
    values = [sides[part] if part in sides else length(part) for part in parts[::2]]
    pairs = zip(values, parts[1::2], values[1:], strict=False)
    return all(
        a is not None and b is not None and (a <= b if sign[0] == "<" else a >= b)
        for a, sign, b in pairs
    )


# --- selectors ------------------------------------------------------------------------------------


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
        self.checks = 0
        self._soup = soup
        self._all: list[Tag] = soup.find_all(True)
        self._named: dict[str, list[Tag]] = {}
        self._widest = max((len(tag.contents) for tag in self._all), default=0)
        self._sieved = 0
        for tag in self._all:
            keys = [tag.name, *(f".{c}" for c in dict.fromkeys(tag.get("class") or []))]
            for key in [*keys, f"#{tag.get('id')}"]:
                self._named.setdefault(key, []).append(tag)

    def matching(self, selector: str) -> Iterator[Tag]:
        """The elements that a selector names."""
        selector = selector.replace(":root", "html")
        parsed = _selector(selector)
        if parsed is None:
            yield from self._sieve(selector)
            return
        candidates = self._candidates(parsed.compounds[-1])
        self.checks += len(candidates)
        if self.checks <= _MOST_CHECKS:
            yield from (tag for tag in candidates if parsed.fits(tag))

    def _candidates(self, wanted: _Compound) -> list[Tag]:
        keys = [f".{name}" for name in wanted.classes]
        keys += [f"#{wanted.identity}"] if wanted.identity else []
        keys += [wanted.name] if wanted.name else []
        found = [self._named.get(key, []) for key in keys]
        return min(found, key=len, default=self._all)

    def _sieve(self, selector: str) -> list[Tag]:
        """By soupsieve, which knows more selectors: where it is worth it, and cannot take long."""
        import soupsieve

        selector = _STATES.sub("", selector)
        known = all(name in _MATCHABLE for name in _PSEUDO.findall(selector.replace("\\:", "")))
        if not known or not 0 < len(selector) <= _LONGEST_SELECTOR or selector.count("(") > 4:
            return []
        cost = len(self._all) * (1 + self._widest // 50 if _SIBLINGS.search(selector) else 2)
        self._sieved += 1
        self.checks += cost
        over = self.checks > _MOST_CHECKS or self._widest > _MOST_SIBLINGS
        if over or self._sieved > _MOST_SIEVED:
            self.checks -= cost
            return []
        try:
            return list(soupsieve.select(selector, self._soup))
        except (soupsieve.SelectorSyntaxError, NotImplementedError, ValueError):
            return []
