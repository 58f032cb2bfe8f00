"""HTML by docling, after the page was cleared of what is hidden and what is furniture."""

import io
import re
from functools import cache
from typing import Any

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag

from contracts.artifacts import BodyMeta, ParsedDocument
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import HTML
from services.converter.parsing.content import reduce_to_content
from services.converter.parsing.encoding import decode
from services.converter.parsing.markdown import to_markdown
from services.converter.parsing.properties import line, told_title
from services.converter.parsing.result import Parse
from services.converter.parsing.visibility import take_hidden
from services.converter.settings import ParseOptions

_CHARSET = re.compile(
    rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w-]+)|<\?xml[^>]+encoding=[\"']([\w-]+)", re.I
)
# A page that says it is XML is still read as browsers read it.
_XML_HEAD = re.compile(r"\A\s*<\?xml[^>]*\?>")
_INLINE = [
    "b", "strong", "i", "em", "u", "ins", "span", "font", "small", "big", "sub", "sup", "mark",
    "abbr", "acronym", "cite", "q", "dfn", "var", "time", "bdi", "bdo", "s", "strike", "del",
    "label", "wbr", "center", "nobr",
]  # fmt: skip
_MARK = re.compile(r"[(\[]?(?:\d{1,3}|[^\W\d_]{1,2}|[ivxlc]{1,6})[)\].]{1,2}|[—–\-•·*]")


def parse_html(data: bytes, options: ParseOptions, *, article: bool = True) -> Parse:
    """The main content of a page; all of it with `article=False` (a mail, a chapter of a book).

    Raises:
        Refusal: `invalid-encoding`, `too-deep`, `empty-document`.
    """
    declared = _CHARSET.search(data[:4096])
    name = (declared[1] or declared[2]).decode("ascii") if declared else None
    source, encoding = decode(data, name, lenient=True)
    soup = BeautifulSoup(_XML_HEAD.sub("", source), "lxml")
    _check_depth(soup, options.max_depth)
    meta = _meta(source, soup)
    hidden = take_hidden(soup)
    if article:
        reduce_to_content(soup, source)
    _unfold_lists(soup)
    _flatten_inline(soup)
    markdown = _convert(str(soup))
    if not markdown.strip():
        raise Refusal("empty-document", "the page has no visible text")
    warnings = [] if encoding.startswith("utf-8") else [f"decoded as {encoding}"]
    return Parse(ParsedDocument(markdown=markdown, hidden=tuple(hidden), meta=meta), warnings)


def _check_depth(soup: BeautifulSoup, most: int) -> None:
    stack: list[tuple[Tag, int]] = [(soup, 0)]
    while stack:
        tag, depth = stack.pop()
        if depth > most:
            raise Refusal("too-deep", f"elements nested more than {most} deep")
        stack += [(child, depth + 1) for child in tag.contents if isinstance(child, Tag)]


def _meta(source: str, soup: BeautifulSoup) -> BodyMeta:
    from trafilatura.metadata import extract_metadata

    # A fixed last day: the library's own is today, and the same page must give the same parse.
    dates = {"original_date": True, "extensive_search": False, "max_date": "2100-01-01"}
    found = extract_metadata(source, date_config=dates, extensive=False)
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    return BodyMeta(
        title=told_title(line(found.title)) or told_title(line(title)),
        language=UNKNOWN,
        media_type=HTML,
        author=line(found.author) or None,
        date=line(found.date) or None,
        publication=line(found.sitename) or None,
    )


def _unfold_lists(soup: BeautifulSoup) -> None:
    """Tables that only set a mark beside its text, as official journals do, become paragraphs."""
    for table in reversed(soup.find_all("table")):
        rows = [row.find_all(["td", "th"], recursive=False) for row in table.find_all("tr")]
        marks = [cells[0].get_text(strip=True) for cells in rows if len(cells) == 2]
        if not rows or len(marks) < len(rows) or not all(map(_MARK.fullmatch, marks)):
            continue
        for cells, mark in zip(rows, marks, strict=True):
            inner = cells[1].find(["p", "span", "div"], recursive=False) or cells[1]
            inner.insert(0, NavigableString(f"{mark} "))
            for child in list(cells[1].contents):
                table.insert_before(child.extract())
        table.decompose()


def _flatten_inline(soup: BeautifulSoup) -> None:
    """Join the pieces of inline markup: docling would put blanks between them.

    Emphasis goes; code and links with an absolute address stay.
    """
    for tag in soup.find_all("br"):
        tag.replace_with(NavigableString("\n"))
    for tag in soup.find_all("a"):
        address = str(tag.get("href") or "")
        if not address.startswith(("http://", "https://")) or not tag.get_text(strip=True):
            tag.unwrap()
    for tag in soup.find_all(_INLINE):
        tag.unwrap()
    for tag in soup.find_all("img"):
        if tag.find_parent("figure") is None:
            tag.decompose()
    soup.smooth()


@cache
def _converter() -> Any:
    from docling.datamodel.backend_options import HTMLBackendOptions
    from docling.datamodel.base_models import InputFormat
    from docling.document_converter import DocumentConverter, HTMLFormatOption

    # Furniture is gone already; docling would take all before the first heading for it.
    backend = HTMLBackendOptions.model_validate({"infer_furniture": False, "add_title": False})
    return DocumentConverter(
        allowed_formats=[InputFormat.HTML],
        format_options={InputFormat.HTML: HTMLFormatOption(backend_options=backend)},
    )


def _convert(html: str) -> str:
    from docling.datamodel.base_models import DocumentStream

    stream = DocumentStream(name="page.html", stream=io.BytesIO(html.encode()))
    return to_markdown(_converter().convert(stream).document)
