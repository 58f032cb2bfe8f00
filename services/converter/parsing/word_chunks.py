"""What of a Word document lies in other parts: pages, mails and texts (altChunk), SmartArt."""

import re
from collections.abc import Callable, Iterator
from email import message_from_bytes
from typing import Any

from bs4 import BeautifulSoup
from bs4.element import Tag
from lxml import etree

from kernel.errors import Refusal
from services.converter.parsing.encoding import decode
from services.converter.parsing.visibility import take_hidden
from services.converter.parsing.wordml import W, parse_xml

_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_DATA = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}dm"
_DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_BLOCKS = ["h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "pre", "div", "blockquote"]
_INNER = [*_BLOCKS, "table"]
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_MOST = 100


def unfold(
    root: Any, read: Callable[[str], tuple[str, bytes]], headings: dict[int, str]
) -> dict[Any, str]:
    """Put the text of every chunk in its place, as paragraphs, headings and tables.

    Args:
        root: the document, changed in place.
        read: name and content of the part that a relation names.
        headings: ids of the styles of headings by level.

    Returns:
        For every paragraph that was put in, the name of its part.
    """
    origins: dict[Any, str] = {}
    for chunk in list(root.iter(W + "altChunk"))[:_MOST]:
        name, data = read(chunk.get(_ID) or "")
        for block in _blocks(name, data, headings):
            chunk.addprevious(block)
            origins |= dict.fromkeys(block.iter(W + "p"), name)
        chunk.getparent().remove(chunk)
    return origins


def unfold_diagrams(root: Any, read: Callable[[str], tuple[str, bytes]]) -> dict[Any, str]:
    """Put the texts of every SmartArt behind the paragraph that shows it; as `unfold` does."""
    origins: dict[Any, str] = {}
    for ids in list(root.iter(_DGM + "relIds"))[:_MOST]:
        around = list(ids.iterancestors(W + "p"))
        name, data = read(ids.get(_DATA) or "")
        if not around or not data:
            continue
        for point in reversed(list(parse_xml(data).iter(_DGM + "pt"))):
            text = _clean("".join(t.text or "" for t in point.iter(_A + "t")))
            if text:
                paragraph = _paragraph(text, None)
                around[-1].addnext(paragraph)
                origins[paragraph] = name
    return origins


def _table(table: Tag) -> Any:
    out = etree.Element(W + "tbl")
    etree.SubElement(out, W + "tblPr")
    grid = etree.SubElement(out, W + "tblGrid")
    rows = [row.find_all(["td", "th"]) for row in table.find_all("tr")]
    for _ in range(max(map(len, rows), default=0)):
        etree.SubElement(grid, W + "gridCol")
    for cells in rows:
        if cells:
            line = etree.SubElement(out, W + "tr")
            for cell in cells:
                box = etree.SubElement(line, W + "tc")
                box.append(_paragraph(_clean(cell.get_text(" ")), None))
    return out


def _paragraph(text: str, style: str | None) -> Any:
    paragraph = etree.Element(W + "p")
    if style:
        properties = etree.SubElement(paragraph, W + "pPr")
        etree.SubElement(properties, W + "pStyle").set(W + "val", style)
    run = etree.SubElement(etree.SubElement(paragraph, W + "r"), W + "t")
    run.text = text
    run.set(_SPACE, "preserve")
    return paragraph


def _blocks(name: str, data: bytes, headings: dict[int, str]) -> Iterator[Any]:
    kind = name.lower().rpartition(".")[2]
    if kind in {"mht", "mhtml", "eml"}:
        data = _page_of(data)
        kind = "html"
    if kind not in {"html", "htm", "xhtml", "txt"} or not data:
        return
    try:
        text = decode(data, lenient=True)[0]
    except Refusal:
        return
    if kind == "txt":
        yield from (_paragraph(line, None) for line in map(_clean, text.split("\n")) if line)
        return
    soup = BeautifulSoup(re.sub(r"\A\s*<\?xml[^>]*\?>", "", text), "lxml")
    take_hidden(soup)
    for block in _leaves(soup.body or soup):
        line = _clean(block.get_text())
        if block.name == "table":
            yield _table(block)
        elif line:
            level = int(block.name[1]) if re.fullmatch(r"h[1-6]", block.name) else 0
            yield _paragraph(line, headings.get(level))


def _leaves(body: Tag) -> list[Tag]:
    found = [
        tag
        for tag in body.find_all([*_BLOCKS, "table"])
        if tag.find_parent("table") is None and (tag.name == "table" or tag.find(_INNER) is None)
    ]
    return found or [body]


def _clean(text: str) -> str:
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "", text)
    return " ".join(text.split())


def _page_of(data: bytes) -> bytes:
    """The first page in a mail-like file."""
    for part in message_from_bytes(data).walk():
        if part.get_content_type() in {"text/html", "application/xhtml+xml"}:
            content = part.get_payload(decode=True)
            return content if isinstance(content, bytes) else b""
    return b""
