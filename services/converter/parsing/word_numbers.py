"""Headings and numbers of Word: styles by their names in other languages, labels that are words.

Docling counts lists well, but writes the number of every heading in digits: `§ 3` and `Artikel 3`
would be `3`, `IV.` would be `4`.
"""

import re
from typing import Any, NamedTuple

from lxml import etree

from services.converter.parsing.wordml import W, value

_HEADING_NAMES = re.compile(
    r"\s*(?:heading|überschrift|заголовок|заглавие|наслов|naslov|rubrik|titre|titolo|título)"
    r"[ _]*([1-9])\s*",
    re.IGNORECASE,
)
_NAMED = re.compile(r"heading ([1-9])", re.IGNORECASE)
_DIGITS = re.compile(r"[\d.\s]*")
_WORDS = re.compile(r"§|[^\W\d_]{3,}")
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_MOST_LEVEL = 8
_BODY_LEVEL = 9
_MOST_NUMBER = 9999


class _Level(NamedTuple):
    form: str
    text: str
    start: int
    legal: bool
    restart: int | None


def name_headings(styles: Any | None) -> None:
    """Give heading styles of other languages the name that every reader knows; in place."""
    for style in () if styles is None else styles.iter(W + "style"):
        name = style.find(W + "name")
        match = _HEADING_NAMES.fullmatch(value(style, "name") or "")
        if name is not None and match and style.get(W + "type") == "paragraph":
            name.set(W + "val", f"heading {match[1]}")
    _inherit_outlines(styles)


def _inherit_outlines(styles: Any | None) -> None:
    """Tell of every style that is based on a heading's what it inherits: docling does not look."""
    by_id = {} if styles is None else {s.get(W + "styleId"): s for s in styles.iter(W + "style")}
    for style in by_id.values():
        name = value(style, "name") or ""
        told = style.find(f"{W}pPr/{W}outlineLvl")
        if style.get(W + "type") != "paragraph" or told is not None or _NAMED.fullmatch(name):
            continue
        level = _inherited(style, by_id)
        if level is not None:
            properties = style.find(W + "pPr")
            if properties is None:
                properties = etree.SubElement(style, W + "pPr")
            etree.SubElement(properties, W + "outlineLvl").set(W + "val", level)


def _inherited(style: Any, by_id: dict[str, Any]) -> str | None:
    seen = [style]
    while (base := by_id.get(value(seen[-1], "basedOn") or "")) is not None and base not in seen:
        level = value(base.find(W + "pPr"), "outlineLvl")
        named = _NAMED.fullmatch(value(base, "name") or "")
        if level or named:
            return level or str(int(named[1]) - 1 if named else 0)
        seen.append(base)
    return None


def write_labels(root: Any, styles: Any | None, numbering: Any | None) -> None:
    """Write labels into the text where they are more than a mark of a list; in place.

    Args:
        root: the document.
        styles: with the names of headings as `name_headings` leaves them.
        numbering: the part with the definitions of lists.
    """
    if numbering is None:
        return
    numbers = _Numbers(styles, numbering)
    labels = [(p, numbers.label(p)) for p in root.iter(W + "p")]
    # A list is written as a whole: docling would count on without the paragraphs taken from it.
    written = {
        label.definition
        for paragraph, label in labels
        if label.worded or (not _DIGITS.fullmatch(label.text) and numbers.heads(paragraph))
    }
    for paragraph, label in labels:
        if label.text and label.definition in written:
            _write(paragraph, label.text)


def _write(paragraph: Any, label: str) -> None:
    text = next((t for t in paragraph.iter(W + "t") if t.text and t.text.strip()), None)
    if text is None:
        return
    text.text = f"{label} {text.text.lstrip()}"
    text.set(_SPACE, "preserve")
    properties = paragraph.find(W + "pPr")
    if properties is None:
        properties = etree.Element(W + "pPr")
        paragraph.insert(0, properties)
    own = properties.find(W + "numPr")
    if own is None:
        own = etree.SubElement(properties, W + "numPr")
    for child in list(own):
        own.remove(child)
    # No list, whatever the style says.
    etree.SubElement(own, W + "numId").set(W + "val", "0")


class _Label(NamedTuple):
    """A label, the definition of its list, and whether it has more to it than a number."""

    definition: str
    text: str
    worded: bool


class _Numbers:
    def __init__(self, styles: Any | None, numbering: Any) -> None:
        self._styles = (
            {} if styles is None else {s.get(W + "styleId"): s for s in styles.iter(W + "style")}
        )
        abstract = {a.get(W + "abstractNumId"): a for a in numbering.iter(W + "abstractNum")}
        self._levels: dict[str, dict[int, _Level]] = {}
        self._lists: dict[str, str] = {}
        """The definition behind each list: lists of one definition count on together."""
        self._by_style: dict[str, tuple[str, int]] = {}
        for num in numbering.iter(W + "num"):
            key, base = num.get(W + "numId") or "", value(num, "abstractNumId") or ""
            if base in abstract:
                self._lists[key] = base
                levels = [*abstract[base].iter(W + "lvl"), *num.iter(W + "lvl")]
                self._levels[key] = {_int(lvl.get(W + "ilvl"), 0): _level(lvl) for lvl in levels}
                for lvl in levels:
                    style = value(lvl, "pStyle")
                    if style:
                        self._by_style.setdefault(style, (key, _int(lvl.get(W + "ilvl"), 0)))
        self._counts: dict[str, dict[int, int]] = {}

    def label(self, paragraph: Any) -> _Label:
        """What Word writes before the paragraph; counts it."""
        key, level = self._list_of(paragraph)
        levels = self._levels.get(key, {})
        if level not in levels:
            return _Label("", "", worded=False)
        counts = self._counts.setdefault(self._lists[key], {})
        for deeper in [one for one in counts if one > level]:
            restart = levels[deeper].restart if deeper in levels else None
            if restart != 0:
                del counts[deeper]
        counts[level] = counts[level] + 1 if level in counts else levels[level].start
        text = _text(levels, counts, level)
        worded = bool(text) and _WORDS.search(re.sub(r"%\d", " ", levels[level].text)) is not None
        return _Label(self._lists[key], text, worded)

    def heads(self, paragraph: Any) -> bool:
        """Whether the paragraph is a heading by its style."""
        for style in self._chain(value(paragraph.find(W + "pPr"), "pStyle")):
            if re.fullmatch(r"heading \d", value(style, "name") or "", re.IGNORECASE):
                return True
            outline = value(style.find(W + "pPr"), "outlineLvl")
            if outline:
                return _int(outline, _BODY_LEVEL) < _BODY_LEVEL
        return False

    def _chain(self, style_id: str | None) -> list[Any]:
        chain: list[Any] = []
        while style_id in self._styles and self._styles[style_id] not in chain:
            chain.append(self._styles[style_id])
            style_id = value(chain[-1], "basedOn")
        return chain

    def _list_of(self, paragraph: Any) -> tuple[str, int]:
        """List and level of a paragraph, by itself or by its style; an empty list for none."""
        properties = paragraph.find(W + "pPr")
        style_id = value(properties, "pStyle")
        key: str | None = None
        level: str | None = None
        sources = [properties, *(style.find(W + "pPr") for style in self._chain(style_id))]
        for source in sources:
            own = None if source is None else source.find(W + "numPr")
            level = level or value(own, "ilvl")
            key = key or value(own, "numId")
        if key in self._levels and level is None:
            # A style of a list says by name at which level it stands.
            linked = self._by_style.get(style_id or "")
            level = str(linked[1]) if linked and linked[0] == key else None
        return key or "", min(_int(level, 0), _MOST_LEVEL)


def _level(lvl: Any) -> _Level:
    restart = value(lvl, "lvlRestart")
    legal = lvl.find(W + "isLgl")
    return _Level(
        value(lvl, "numFmt") or "decimal",
        value(lvl, "lvlText") or "",
        _int(value(lvl, "start"), 1),
        legal is not None and legal.get(W + "val") not in {"0", "false"},
        _int(restart, 0) if restart is not None else None,
    )


def _text(levels: dict[int, _Level], counts: dict[int, int], level: int) -> str:
    mine = levels[level]
    if mine.form in {"bullet", "none"}:
        return ""

    def number(match: re.Match[str]) -> str:
        at = int(match[1]) - 1
        one = levels.get(at)
        form = "decimal" if mine.legal or one is None else one.form
        return numeral(counts.get(at, one.start if one else 1), form)

    return re.sub(r"%([1-9])", number, mine.text).strip()


def numeral(number: int, form: str) -> str:
    """A number in one of Word's forms; digits for the ones that are not known."""
    number = min(number, _MOST_NUMBER)
    match form:
        case "lowerLetter" | "upperLetter" if number > 0:
            letters = chr(97 + (number - 1) % 26) * ((number - 1) // 26 + 1)
            return letters if form == "lowerLetter" else letters.upper()
        case "lowerRoman" | "upperRoman" if number > 0:
            roman = _roman(number)
            return roman if form == "lowerRoman" else roman.upper()
        case "decimalZero":
            return f"{number:02}"
        case "russianLower" | "russianUpper" if number > 0:
            letter = _RUSSIAN[(number - 1) % len(_RUSSIAN)]
            return letter if form == "russianLower" else letter.upper()
    return str(number)


_RUSSIAN = "абвгдежзиклмнопрстуфхцчшщэюя"


def _roman(number: int) -> str:
    text = ""
    for amount, sign in (
        (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
        (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
    ):  # fmt: skip
        count, number = divmod(number, amount)
        text += sign * count
    return text


def _int(text: str | None, other: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 6 else other
