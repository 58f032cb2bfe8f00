"""DrawingML text: paragraphs with their bullets, and what of them cannot be read."""

import re
from typing import Any, NamedTuple

from contracts.events import HiddenKind
from services.converter.parsing.hidden import Unseen, alike_in_hex
from services.converter.parsing.literal import raised
from services.converter.parsing.looks import Links, Runs, look_of, plain_text

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PALE = 232
_TINY = 200
_SEE_THROUGH = 5000
_MOST_LEVEL = 8
_TYPED = re.compile(r"\s*(\d{1,4})[.)]\s+(?=\S)")
_BULLETS = (A + "buChar", A + "buAutoNum", A + "buBlip", A + "buNone")
_FILLS = (A + "solidFill", A + "gradFill", A + "blipFill", A + "pattFill", A + "grpFill")


class Line(NamedTuple):
    """A paragraph; `bullet` is `-`, `3.` or empty."""

    runs: Runs
    level: int
    bullet: str

    @property
    def text(self) -> str:
        return plain_text(self.runs)


def text_of(element: Any) -> str:
    """All text below in one line."""
    pieces = (
        node.text or "" if node.tag in {A + "t", _M + "t"} else " "
        for node in element.iter(A + "t", _M + "t", A + "br", A + "p")
    )
    return re.sub(r"\s+", " ", "".join(pieces)).strip()


class Bullets:
    """Which paragraphs of a slide are items of a list, by themselves or by the slide's design."""

    def __init__(self, slide: Any) -> None:
        layout = slide.slide_layout
        self._layout = list(layout.placeholders)
        self._master = list(layout.slide_master.placeholders)
        styles = layout.slide_master.element.find(P + "txStyles")
        self._body = None if styles is None else styles.find(P + "bodyStyle")

    def of(self, paragraph: Any, shape: Any, level: int) -> Any | None:
        """The element that decides: `buNone`, `buChar`, …; None when nothing does."""
        own = paragraph.find(A + "pPr")
        for properties in (own, *self._designs(shape, level)):
            found = None if properties is None else _first(properties)
            if found is not None:
                return found
        return None

    def _designs(self, shape: Any, level: int) -> list[Any | None]:
        from pptx.enum.shapes import PP_PLACEHOLDER as KIND

        tag = f"{A}lvl{level + 1}pPr"
        own = shape._element.find(f"{P}txBody/{A}lstStyle/{tag}")
        if not shape.is_placeholder:
            return [own]
        form = shape.placeholder_format
        layout = next((p for p in self._layout if p.placeholder_format.idx == form.idx), None)
        kinds = {form.type, KIND.BODY} if form.type == KIND.OBJECT else {form.type}
        master = next((p for p in self._master if p.placeholder_format.type in kinds), None)
        designs = [own]
        for outer in (layout, master):
            path = f"{P}txBody/{A}lstStyle/{tag}"
            designs.append(None if outer is None else outer._element.find(path))
        if kinds & {KIND.BODY, KIND.OBJECT} and self._body is not None:
            designs.append(self._body.find(tag))
        return designs


def _first(properties: Any) -> Any | None:
    return next((child for child in properties if child.tag in _BULLETS), None)


class Inline(NamedTuple):
    """Where links lead and hidden text goes; `part`: whose relations name the addresses."""

    part: Any
    links: Links
    hidden: Unseen

    def address(self, run: Any) -> str:
        """Where a run leads, outside of the presentation; empty if nowhere."""
        click = run.find(f"{A}rPr/{A}hlinkClick")
        key = "" if click is None else click.get(_ID) or ""
        relation = self.part.rels.get(key)
        external = relation is not None and relation.is_external
        return str(relation.target_ref) if relation is not None and external else ""


def lines_of(shape: Any, bullets: Bullets, inline: Inline, ground: str | None) -> list[Line]:
    """The paragraphs of a shape that have text; unreadable runs go to `hidden`.

    `ground` is the colour behind the text (`FFFFFF`), None where it is not known.
    """
    body = shape._element.find(P + "txBody")
    lines: list[Line] = []
    numbers: dict[int, int] = {}
    for paragraph in () if body is None else body.iter(A + "p"):
        runs = _readable(paragraph, inline, ground)
        if not plain_text(runs).strip():
            continue
        own = paragraph.find(A + "pPr")
        told = (own.get("lvl") or "0") if own is not None else "0"
        level = min(int(told), _MOST_LEVEL) if told.isdecimal() else 0
        kind = bullets.of(paragraph, shape, level)
        lines.append(Line(runs, level, _bullet(kind, level, numbers)))
    return _levelled(_counted(lines))


def _counted(lines: list[Line]) -> list[Line]:
    """Bulleted paragraphs that were numbered by hand, one after the other, as a numbered list."""
    typed = [_TYPED.match(one.text) if one.bullet == "-" else None for one in lines]
    out: list[Line] = []
    for number, (one, own) in enumerate(zip(lines, typed, strict=True)):
        near = [typed[n] for n in (number - 1, number + 1) if 0 <= n < len(typed)]
        if own and any(other and abs(int(other[1]) - int(own[1])) == 1 for other in near):
            out.append(one._replace(runs=_without(one.runs, own.end()), bullet=f"{own[1]}."))
        else:
            out.append(one)
    return out


def _without(runs: Runs, size: int) -> Runs:
    """Without the first `size` characters."""
    out: Runs = []
    for text, look in runs:
        out.append((text[size:], look))
        size = max(0, size - len(text))
    return out


def _bullet(kind: Any | None, level: int, numbers: dict[int, int]) -> str:
    for deeper in [one for one in numbers if one > level]:
        del numbers[deeper]
    if kind is None or kind.tag == A + "buNone":
        numbers.pop(level, None)
        return ""
    if kind.tag != A + "buAutoNum":
        numbers.pop(level, None)
        return "-"
    start = kind.get("startAt") or "1"
    first = int(start) if start.isdecimal() and len(start) < 6 else 1
    numbers[level] = numbers[level] + 1 if level in numbers else first
    return f"{numbers[level]}."


def _levelled(lines: list[Line]) -> list[Line]:
    """No item deeper than one step below the item before it: Markdown would take it for code."""
    out: list[Line] = []
    for one in lines:
        most = out[-1].level + 1 if out and out[-1].bullet else 0
        out.append(one._replace(level=min(one.level, most) if one.bullet else 0))
    return out


def runs_of(body: Any, inline: Inline, ground: str | None) -> Runs:
    """The text of a table's cell in one line, without what cannot be read."""
    runs: Runs = []
    for paragraph in body.iter(A + "p"):
        own = _readable(paragraph, inline, ground)
        runs += [(" ", 0), *own] if runs else own
    return runs


def _readable(paragraph: Any, inline: Inline, ground: str | None) -> Runs:
    runs: Runs = []
    for child in paragraph:
        if child.tag == A + "br":
            runs.append(("\n", 0))
            continue
        kind = _unreadable(child, ground)
        text = "".join(node.text or "" for node in child.iter(A + "t", _M + "t"))
        text = raised(text) if _is_raised(child) else text
        address = inline.address(child)
        if kind:
            inline.hidden.add(kind, text)
        elif address and text.strip():
            runs += [Links.opened, (text, _look(child)), inline.links.closed(address)]
        else:
            runs.append((text, _look(child)))
    return runs


def _look(run: Any) -> int:
    """How a run stands out by itself; what its design says holds for all of the shape."""
    properties = run.find(A + "rPr")
    if properties is None:
        return 0
    bold, italic = (properties.get(name) in {"1", "true"} for name in ("b", "i"))
    struck = (properties.get("strike") or "noStrike") != "noStrike"
    return look_of(bold=bold, italic=italic, struck=struck)


def _is_raised(run: Any) -> bool:
    properties = run.find(A + "rPr")
    told = "" if properties is None else properties.get("baseline") or ""
    return bool(re.fullmatch(r"[1-9]\d*%?", told))


def _unreadable(run: Any, ground: str | None) -> HiddenKind | None:
    properties = run.find(A + "rPr")
    if properties is None:
        return None
    size = properties.get("sz") or ""
    if size.isdecimal() and int(size) <= _TINY:
        return "zero-size"
    fill = properties.find(A + "solidFill")
    if fill is None:
        line = properties.find(A + "ln")
        drawn = line is not None and line.find(A + "noFill") is None and len(line) > 0
        return None if properties.find(A + "noFill") is None or drawn else "invisible-style"
    through = (alpha.get("val") or "" for alpha in fill.iter(A + "alpha"))
    if any(told.isdecimal() and int(told) <= _SEE_THROUGH for told in through):
        return "invisible-style"
    color = _hex_of(fill)
    return "background-colour" if ground and color and alike_in_hex(color, ground) else None


def _hex_of(fill: Any) -> str | None:
    """`FFFFFF`, where a filling tells one colour; of a theme that of the paper only."""
    color = fill.find(A + "srgbClr")
    if color is not None:
        told = color.get("val") or ""
        return told if re.fullmatch(r"[0-9A-Fa-f]{6}", told) else None
    color = fill.find(A + "schemeClr")
    plain = color is not None and not len(color) and color.get("val") in {"bg1", "lt1"}
    return "FFFFFF" if plain else None


def _is_pale(value: str) -> bool:
    if not re.fullmatch(r"[0-9A-Fa-f]{6}", value):
        return False
    return all(int(value[n : n + 2], 16) >= _PALE for n in (0, 2, 4))


def painted_colour(element: Any, place: str = "spPr") -> str | None:
    """The colour that a shape or a cell (`tcPr`) paints behind its text, None if not known."""
    own = element.find(P + place) if place == "spPr" else element.find(A + place)
    fill = None if own is None else own.find(A + "solidFill")
    if fill is None or next(fill.iter(A + "alpha"), None) is not None:
        return None
    return _hex_of(fill)


def page_colour(slide: Any) -> str | None:
    """The colour of the slide, None if it is not known."""
    if white_page(slide):
        return "FFFFFF"
    fill = slide.element.find(f"{P}cSld/{P}bg/{P}bgPr/{A}solidFill")
    return None if fill is None else _hex_of(fill)


def is_painted(element: Any) -> bool:
    """Whether a shape has, or may have by its style, something behind its text."""
    own = element.find(P + "spPr")
    if own is not None and own.find(A + "noFill") is not None:
        return False
    return element.find(P + "style") is not None or (
        own is not None and any(child.tag in _FILLS for child in own)
    )


def white_page(slide: Any) -> bool:
    """Whether the slide is surely white: no picture or colour behind, by itself or its design."""
    for one in (slide, slide.slide_layout, slide.slide_layout.slide_master):
        background = one.element.find(f"{P}cSld/{P}bg")
        if background is None:
            continue
        scheme = [color.get("val") for color in background.iter(A + "schemeClr")]
        plain = [color.get("val") or "" for color in background.iter(A + "srgbClr")]
        if any(background.iter(A + "blipFill", A + "gradFill", A + "pattFill")):
            return False
        return scheme in (["bg1"], ["lt1"]) or (not scheme and any(map(_is_pale, plain)))
    return True
