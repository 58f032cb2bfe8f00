"""HTML by docling, after the page was cleared of what is hidden and what is furniture."""

import io
import re
import unicodedata
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from bs4 import BeautifulSoup
from bs4.element import Tag

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument
from kernel.errors import Refusal
from services.converter.parsing.alignment import DISTINCT, squeezed
from services.converter.parsing.anchors import free_sections, without_ids
from services.converter.parsing.article import main_text, page_tree
from services.converter.parsing.code_language import fences_named
from services.converter.parsing.content import reduce_to_content
from services.converter.parsing.encoding import decode
from services.converter.parsing.headline import metadata_of
from services.converter.parsing.html_signs import signs_written
from services.converter.parsing.markdown import to_markdown
from services.converter.parsing.marks import Marks
from services.converter.parsing.origin import Origins
from services.converter.parsing.quotes import Quotes
from services.converter.parsing.rendering import rendered
from services.converter.parsing.result import Parse
from services.converter.parsing.simplify import page_address, simplify
from services.converter.parsing.trees import in_parts, parsed
from services.converter.parsing.visibility import take_hidden
from services.converter.settings import ParseOptions

# Bounded, or a page of nothing but "<meta" would take hours.
_CHARSET = re.compile(
    rb"<meta[^>]{1,500}?charset\s*=\s*[\"']?\s*([\w-]{2,40})"
    rb"|<\?xml[^>]{1,200}?encoding=[\"']([\w-]{2,40})",
    re.I,
)
_CHARSET_WITHIN = 262_144
# Declared in bytes that are ASCII so far, these cannot be true; or they are no charsets of the web.
_NEVER = re.compile(r"utf-?(?:7|16|32)|unicode|raw|idna|punycode|undefined|ucs", re.I)
# A page that says it is XML is still read as browsers read it.
_XML_HEAD = re.compile(r"\A\s*<\?xml[^>]*\?>")
# Docling levels quotes, dashes and dots, but a citation must have those of its source.
_KEPT = "‐‒–—―‘’“”…\u200c\u200d"
_STAND_INS = [chr(plane << 16 | 0xFFFE | low) for plane in range(1, 17) for low in (0, 1)]
_PROTECT = str.maketrans(dict(zip(_KEPT, _STAND_INS, strict=False)))
_RESTORE = str.maketrans(dict(zip(_STAND_INS, _KEPT, strict=False)))
_LARGE = 30_000
"""Elements and texts of a page from which on it is written without docling."""
_HEAD = 500_000
"""Characters of a page in which its author and date are looked for: whoever looks for them takes
time by the square of the elements."""
_LONGEST = 4_000_000
"""Characters of a page that the article extractor gets."""
_THOROUGH = 1_000_000
"""Characters of a page up to which other extractors are asked, too."""
_ARTICLE = 500
"""Letters of an article that a page may hide; a few hidden words are what they seem."""
_SHORT_ARTICLE = 200
_SWITCHED = frozenset({"invisible-style", "background-colour"})
_PART = 4000
"""Elements that docling gets at once: its document takes 20 times the room of the text."""
# A link, code or emphasis that a place begins or ends with belongs to it as a whole.
_MARK = "(?:\ufde0[\ufdd0-\ufddf]+\ufde1|\ufde4[\ufdd0-\ufddf]+\ufde5)"
# From the start of a run of signs only: there may be a hundred thousand in one.
_OPENING = re.compile(rf"(?<![\[`~*])([\[`~*]+ ?)({_MARK}+)")
_ENDING = re.compile(r"(\ufde2)((?: ?`+|[~*]+|\]\([^()\s]*\))+)")
# No text may hold these; in one they would be forged marks or stand-ins.
_NONCHARACTERS = re.compile(f"[\ufdd0-\ufdef\ufffe\uffff{''.join(_STAND_INS)}]")


def parse_html(data: bytes, options: ParseOptions, *, article: bool = True) -> Parse:
    """The main content of a page; all of it with `article=False` (a mail, a chapter of a book).

    Spans have the XPath of their element in the page as lxml parses it.

    Raises:
        Refusal: `invalid-encoding`, `too-deep`, `corrupt-document`, `empty-document`.
    """
    page = _reduced(data, options, article=article)
    blocks = page.parts if page.written else map(_convert, page.parts)
    written = "\n\n".join(filter(None, blocks))
    if not page.written:
        written = written.translate(_RESTORE)
    written = signs_written(fences_named(written))
    written = _ENDING.sub(r"\2\1", _OPENING.sub(r"\2\1", written))
    markdown, spans = page.marks.resolve(page.quotes.written(written))
    if not markdown.strip():
        raise Refusal("empty-document", "the page has no visible text")
    hidden = tuple(page.hidden)
    document = ParsedDocument(markdown=markdown, hidden=hidden, meta=page.meta, spans=spans)
    return Parse(document, page.warnings)


class _Page(NamedTuple):
    """A page without its tree, which is ten times as large as its text.

    `parts` are HTML for docling, or Markdown if `written`.
    """

    parts: list[str]
    written: bool
    marks: Marks
    quotes: Quotes
    hidden: list[HiddenText]
    meta: BodyMeta
    warnings: list[str]


def _reduced(data: bytes, options: ParseOptions, *, article: bool) -> _Page:
    source, encoding = _decoded(data)
    soup = parsed(source)
    _check_depth(soup, options.max_depth)
    _clear_noncharacters(soup)
    origins = Origins(soup)
    meta, warnings = metadata_of(soup, page_tree(source[:_HEAD]))
    if not encoding.startswith("utf-8"):
        warnings.append(f"decoded as {encoding}")
    base = page_address(soup)
    _open_inner_pages(soup)
    _check_depth(soup, options.max_depth)
    doubted: list[HiddenText] = []
    hidden = take_hidden(soup, doubted=doubted)
    _open_frames(soup)
    if article:
        ids = free_sections(soup)
        told = _article_of(source, ids)
        if _hides(hidden, told):
            seen = _seen_article(source, ids, hidden, told)
            told = seen or told
            if not seen:
                soup, origins, hidden = _shown(source)
                doubted.clear()
                free_sections(soup)
                warnings.append("the style of the page hides much of its article, which was read")
        reduce_to_content(soup, source, told)
    hidden = list(dict.fromkeys([*hidden, *doubted]))
    simplify(soup, base)
    quotes = Quotes(soup)
    marks = Marks()
    if soup.body is not None:
        origins.mark(soup.body, marks)
        if _is_large(soup.body):
            return _Page(list(rendered(soup.body)), True, marks, quotes, hidden, meta, warnings)
    parts = _parts(soup)
    return _Page(parts, False, marks, quotes, hidden, meta, warnings)


def _article_of(source: str, ids: frozenset[str], *, thorough: bool = True) -> str:
    # Beyond any article: a page of this size is a document, and reading it twice has its price.
    if len(source) > _LONGEST:
        return ""
    tree = without_ids(page_tree(source), ids)
    return main_text(tree, thorough=thorough and len(source) <= _THOROUGH)


def _hides(hidden: list[HiddenText], article: str, least: int = _ARTICLE) -> bool:
    """Whether much of the article cannot be seen before a script of the page has run."""
    text = squeezed(article)
    unseen = {squeezed(h.text) for h in hidden if h.kind in _SWITCHED}
    found = sum(len(own) for own in unseen if len(own) >= DISTINCT and own in text)
    return found * 3 > len(text) >= least


def _seen_article(source: str, ids: frozenset[str], hidden: list[HiddenText], unseen: str) -> str:
    """An article that can be seen, where other extractors prefer a longer text that cannot: the
    boxes of a site for consent, its menus. Empty if there is none, or if it only begins `unseen`.
    """
    article = _article_of(source, ids, thorough=False)
    if len(squeezed(article)) < _SHORT_ARTICLE or _hides(hidden, article, least=1):
        return ""
    longer, lines = squeezed(unseen), map(squeezed, article.splitlines())
    return "" if any(len(one) >= 2 * DISTINCT and one in longer for one in lines) else article


def _shown(source: str) -> tuple[BeautifulSoup, Origins, list[HiddenText]]:
    """The page with all that a script may show, read anew."""
    soup = parsed(source)
    _clear_noncharacters(soup)
    origins = Origins(soup)
    _open_inner_pages(soup)
    hidden = take_hidden(soup, shown_by_script=True)
    for tag in soup.find_all(style=True):
        # Docling obeys it, too.
        del tag["style"]
    _open_frames(soup)
    return soup, origins, hidden


def _is_large(body: Tag) -> bool:
    return next(islice(body.descendants, _LARGE, None), None) is not None


def _decoded(data: bytes) -> tuple[str, str]:
    declared = _CHARSET.search(data[:_CHARSET_WITHIN])
    name = (declared[1] or declared[2]).decode("ascii") if declared else None
    if name and _NEVER.match(name):
        name = None
    source, encoding = decode(data, name, lenient=True)
    source = _NONCHARACTERS.sub("", _XML_HEAD.sub("", source))
    return unicodedata.normalize("NFC", source), encoding


def _clear_noncharacters(soup: BeautifulSoup) -> None:
    """Those that were written as references."""
    for node in soup.find_all(string=_NONCHARACTERS):
        node.replace_with(type(node)(_NONCHARACTERS.sub("", node)))


def _open_inner_pages(soup: BeautifulSoup) -> None:
    """A page in an attribute is read where its frame stands, and has the place of that."""
    for frame in soup.find_all("iframe", srcdoc=True):
        inner = parsed(_NONCHARACTERS.sub("", str(frame["srcdoc"]))).body
        frame.clear()
        frame.attrs = {}
        # No wrapper, which may go and take the place along.
        frame.name = "figure"
        frame.extend(list(inner.contents) if inner else [])


def _open_frames(soup: BeautifulSoup) -> None:
    """A page of frames has no body but the text for readers that know none."""
    if soup.body is not None:
        return
    body = soup.new_tag("body")
    for text in soup.find_all("noframes"):
        # The parser leaves its markup as text; the element stays around it for its place.
        inner = parsed(text.get_text()).body
        text.clear()
        text.extend(list(inner.contents) if inner else [])
        text.name = "div"
        body.append(text.extract())
    soup.append(body)


def _parts(soup: BeautifulSoup) -> list[str]:
    """The reduced page as HTML, in parts of bounded size."""
    if soup.body is None:
        return [str(soup).translate(_PROTECT)]
    return [part.translate(_PROTECT) for part in in_parts(soup.body, _PART)]


def _check_depth(soup: BeautifulSoup, most: int) -> None:
    stack: list[tuple[Tag, int]] = [(soup, 0)]
    while stack:
        tag, depth = stack.pop()
        if depth > most:
            raise Refusal("too-deep", f"elements nested more than {most} deep")
        stack += [(child, depth + 1) for child in tag.contents if isinstance(child, Tag)]


@cache
def _converter() -> Any:
    from docling.backend.html_backend import HTMLDocumentBackend
    from docling.datamodel.backend_options import HTMLBackendOptions
    from docling.datamodel.base_models import InputFormat
    from docling.document_converter import DocumentConverter, HTMLFormatOption

    class Backend(HTMLDocumentBackend):
        """Docling's, with the page in elements whose edits do not search all of them."""

        def __init__(self, in_doc: Any, path_or_stream: Any, options: Any) -> None:
            super().__init__(in_doc, io.BytesIO(b"<p>"), options)
            self.soup = parsed(path_or_stream.getvalue().decode("utf-8-sig"), "html.parser")

    # Furniture is gone already; docling would take all before the first heading for it.
    options = HTMLBackendOptions.model_validate({"infer_furniture": False, "add_title": False})
    html = HTMLFormatOption(backend=Backend, backend_options=options)
    return DocumentConverter(
        allowed_formats=[InputFormat.HTML], format_options={InputFormat.HTML: html}
    )


def _convert(html: str) -> str:
    from docling.datamodel.base_models import ConversionStatus, DocumentStream

    # The mark of UTF-8 tells docling what it has before it.
    data = html.encode("utf-8-sig")
    stream = DocumentStream(name="page.html", stream=io.BytesIO(data))
    result = _converter().convert(stream, raises_on_error=False)
    if result.status != ConversionStatus.SUCCESS:
        raise Refusal("corrupt-document", "the page cannot be read")
    return to_markdown(result.document)
