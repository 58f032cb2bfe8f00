"""What Word wraps around text, rows and cells, opened: docling passes over some of it, and over
all of it within tables.
"""

import re
from typing import Any
from urllib.parse import quote

from lxml import etree

from contracts.artifacts import HiddenText
from services.converter.parsing.wordml import W, text_of

_ALWAYS = frozenset(W + name for name in ("ins", "moveTo", "smartTag", "customXml", "dir", "bdo"))
_PROPERTIES = frozenset(W + name for name in ("rPr", "trPr", "tcPr", "numPr", "pPr", "sectPr"))
_TOLD = frozenset({W + "smartTagPr", W + "customXmlPr"})
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DRAWN = (W + "drawing", W + "pict", W + "object")
_MOST_COLUMNS = 1000
_SAFE = "!#$%&'*+,/:;=?@[]~"
"""Of an address; what would end it in Markdown, or a cell, is written as a number."""
_LINE = frozenset({W + "p", W + "hyperlink"})
_TICK = "{http://schemas.microsoft.com/office/word/2010/wordml}checkbox"
_R_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_LINK = re.compile(
    r"\s*HYPERLINK\s+(?:\\[not]\s+)*\"([^\"]+)\"(?:\s+\\l\s+\"([^\"]+)\")?", re.IGNORECASE
)
_OUTSIDE = re.compile(r"(?:https?|mailto|ftp):", re.IGNORECASE)


def open_wrappers(root: Any) -> list[HiddenText]:
    """Put content in the place of what is wrapped around it; in place.

    Opened are insertions, smart tags, custom XML, turns of direction, and the controls of forms
    but those within a line of text outside of tables, and boxes to tick that docling reads. Rows
    that were deleted go, and are returned.
    """
    hidden = [*_take_deleted_rows(root), *_choose(root)]
    for wrapper in list(root.iter(*_ALWAYS)):
        parent = wrapper.getparent()
        if parent is not None and parent.tag not in _PROPERTIES:
            _open(wrapper, wrapper)
    for ruby in list(root.iter(W + "ruby")):
        _open_ruby(ruby)
    ticks = {tick for tick in root.iter(_TICK) if _read_tick(tick)}
    for control in list(root.iter(W + "sdt")):
        content = control.find(W + "sdtContent")
        in_line = control.getparent().tag in _LINE
        inside = not in_line or _in_table(control)
        if content is not None and inside and ticks.isdisjoint(control.iter(_TICK)):
            _open(control, content)
    return hidden


def _choose(root: Any) -> list[HiddenText]:
    """Of what is written twice, for newer and older programs, the newer: docling passes over it,
    but for drawings. What the other says is returned where it says something else."""
    hidden: list[HiddenText] = []
    for both in list(root.iter(_MC + "AlternateContent")):
        newer, older = both.find(_MC + "Choice"), both.find(_MC + "Fallback")
        if both.getparent() is None or newer is None:
            continue
        texts = ["" if one is None else text_of(one) for one in (newer, older)]
        if texts[1] and texts[0] != texts[1]:
            hidden.append(HiddenText(kind="attribute", text=texts[1]))
        if next(both.iter(*_DRAWN), None) is None:
            for child in list(newer):
                both.addprevious(child)
            both.getparent().remove(both)
        elif texts[1] and texts[0] != texts[1]:
            both.remove(older)
    return hidden


def _read_tick(tick: Any) -> bool:
    """Whether docling reads the box: the only one of its paragraph, in a cell of several."""
    paragraph = next(tick.iterancestors(W + "p"), None)
    cell = next(tick.iterancestors(W + "tc"), None)
    if paragraph is None or cell is None:
        return False
    return len(cell.findall(W + "p")) > 1 and sum(1 for _ in paragraph.iter(_TICK)) == 1


def _in_table(element: Any) -> bool:
    return next(element.iterancestors(W + "tc"), None) is not None


def _open(wrapper: Any, content: Any) -> None:
    for child in list(content):
        if child.tag not in _TOLD:
            wrapper.addprevious(child)
    wrapper.getparent().remove(wrapper)


def _open_ruby(ruby: Any) -> None:
    """`word(reading)`: docling reads neither."""
    base, reading = ruby.find(W + "rubyBase"), ruby.find(W + "rt")
    words = "" if base is None else text_of(base)
    small = "" if reading is None else text_of(reading)
    text = etree.Element(W + "t")
    text.text = f"{words}({small})" if small else words
    ruby.getparent().replace(ruby, text)


def _take_deleted_rows(root: Any) -> list[HiddenText]:
    hidden: list[HiddenText] = []
    for row in list(root.iter(W + "tr")):
        properties = row.find(W + "trPr")
        table = row.getparent()
        if properties is None or properties.find(W + "del") is None or table is None:
            continue
        text = text_of(row)
        hidden += [HiddenText(kind="tracked-change", text=text)] if text else []
        table.remove(row)
        if table.tag == W + "tbl" and next(table.iter(W + "tr"), None) is None:
            table.getparent().remove(table)
    return hidden


def complete_tables(root: Any) -> None:
    """Give every table the grid of columns that docling wants to see; in place."""
    for table in root.iter(W + "tbl"):
        if table.find(W + "tblGrid") is not None:
            continue
        grid = etree.Element(W + "tblGrid")
        width = max((sum(map(_columns, row.iter(W + "tc"))) for row in table.findall(W + "tr")),
                    default=0)  # fmt: skip
        for _ in range(min(width, _MOST_COLUMNS)):
            etree.SubElement(grid, W + "gridCol")
        properties = table.find(W + "tblPr")
        if properties is None:
            table.insert(0, etree.Element(W + "tblPr"))
            properties = table[0]
        properties.addnext(grid)


def _columns(cell: Any) -> int:
    span = cell.find(f"{W}tcPr/{W}gridSpan")
    told = "" if span is None else span.get(W + "val") or ""
    return int(told) if told.isdecimal() and 0 < len(told) < 4 else 1


def link_fields(root: Any) -> dict[str, str]:
    """Make links of the fields that lead to an address outside; in place.

    Returns:
        The address of each new relation, by its id.
    """
    found: dict[str, str] = {}
    for field in list(root.iter(W + "fldSimple")):
        address = _address(field.get(W + "instr") or "")
        if address:
            _wrap(list(field), _new(found, address))
            _open(field, field)
    for paragraph in list(root.iter(W + "p")):
        _link_runs(paragraph, found)
    return found


def anchor_links(root: Any, known: dict[str, str]) -> dict[str, str]:
    """Give links that lead to a place within a page outside the whole address; in place.

    Args:
        root: the document.
        known: the addresses outside, by the id of the relation.

    Returns:
        The address of each new relation, by its id.
    """
    found: dict[str, str] = {}
    for link in root.iter(W + "hyperlink"):
        anchor, address = link.get(W + "anchor"), known.get(link.get(_R_ID) or "")
        if anchor and address and "#" not in address:
            key = f"rIdAnchor{len(found) + 1}"
            found[key] = f"{address}#{anchor}"
            link.set(_R_ID, key)
    return found


def write_cell_links(root: Any, known: dict[str, str]) -> None:
    """Write the links within tables, of which docling keeps the words only; in place.

    Args:
        root: the document.
        known: the addresses outside, by the id of the relation.
    """
    for link in list(root.iter(W + "hyperlink")):
        address = known.get(link.get(_R_ID) or "", "")
        texts = [text for text in link.iter(W + "t") if (text.text or "").strip()]
        words = "".join(text.text or "" for text in texts).strip()
        if not texts or not _OUTSIDE.match(address) or not _in_table(link):
            continue
        if words.rstrip("/") in {address.rstrip("/"), address.removeprefix("mailto:")}:
            continue
        texts[0].text = f"[{(texts[0].text or '').lstrip()}"
        texts[-1].text = f"{(texts[-1].text or '').rstrip()}]({quote(address, safe=_SAFE)})"
        _open(link, link)


def _link_runs(paragraph: Any, found: dict[str, str]) -> None:
    """Fields whose begin, code and result are runs of one paragraph."""
    code: str | None = None
    shown: list[Any] | None = None
    depth = 0
    for run in list(paragraph.findall(W + "r")):
        mark = run.find(W + "fldChar")
        kind = None if mark is None else mark.get(W + "fldCharType")
        if kind == "begin":
            depth += 1
            code, shown = ("", None) if depth == 1 else (code, shown)
        elif kind == "separate" and depth == 1:
            shown = []
        elif kind == "end":
            depth = max(0, depth - 1)
            if depth == 0:
                address = _address(code or "")
                if address and shown:
                    _wrap(shown, _new(found, address))
                code = shown = None
        elif shown is not None:
            shown.append(run)
        elif code is not None and depth == 1:
            code += "".join(text.text or "" for text in run.iter(W + "instrText"))


def _address(code: str) -> str:
    match = _LINK.match(code)
    if match is None or not _OUTSIDE.match(match[1].strip()):
        return ""
    return match[1].strip() + (f"#{match[2].strip()}" if match[2] else "")


def _new(found: dict[str, str], address: str) -> str:
    key = f"rIdField{len(found) + 1}"
    found[key] = address
    return key


def _wrap(runs: list[Any], key: str) -> None:
    if not runs:
        return
    link = etree.Element(W + "hyperlink")
    link.set(_R_ID, key)
    runs[0].addprevious(link)
    link.extend(runs)
