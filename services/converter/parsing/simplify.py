"""A page brought into the few forms that docling reads without loss.

Each function changes the tree in place and never the words. What docling would lose or glue:
blanks in code, code within list items, letters of ordered lists, feet of tables, raised digits,
formulas, small print above characters, marks of footnotes, tables that only lay out a page.
"""

import re
from urllib.parse import quote, urljoin, urlsplit

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, Tag

from services.converter.parsing.article import is_gone
from services.converter.parsing.code_language import guarded, language_of
from services.converter.parsing.formula import linear
from services.converter.parsing.html_emphasis import write_emphasis
from services.converter.parsing.html_signs import keep_signs, tell_touching
from services.converter.parsing.literal import raised as superscript
from services.converter.parsing.trees import HEADINGS, smooth

_PLAIN_INLINE = [
    "b", "strong", "i", "em", "u", "ins", "span", "font", "small", "big", "sub", "sup", "mark",
    "abbr", "acronym", "cite", "dfn", "var", "time", "bdi", "bdo", "label", "wbr", "center", "nobr",
    "data", "rb", "rtc",
]  # fmt: skip
_CODE = ["code", "kbd", "samp", "tt"]
_STRUCK = ["s", "strike", "del"]
_ONE_LINE = frozenset({"td", "th", *HEADINGS, "caption", "figcaption"})
_BLOCKS = ["pre", "table", "ul", "ol", "dl", "p", *HEADINGS]
_MARK = re.compile(r"[(\[]?(?:\d{1,3}|[^\W\d_]{1,2}|[ivxlc]{1,6})[)\].]{1,2}|[—–\-•·*]")
_PERMALINK = frozenset({"¶", "#", "§", "🔗", "∞", "link", "permalink"})
_BACKLINK = re.compile(r"[↩↑⏎⤴^\ufe0e\ufe0f\s]+|jump up|zurück|back", re.IGNORECASE)
_NOTE_MARK = re.compile(r"\d{1,4}|[a-z]|[*†‡§]+", re.IGNORECASE)
_IN_TABLE = frozenset({
    "caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "td", "th", "script", "template",
})  # fmt: skip
_WRAPPERS = ["div", "section", "article", "main", "header", "center", "form", "fieldset"]
_WRAPPED = frozenset({*_WRAPPERS, *_BLOCKS})
_OWN_NAME = re.compile(r"p$|.*[-_]")
_MOST_COLUMNS = 500
_MOST_CELLS = 50_000
_LETTERED = frozenset({"a", "A", "i", "I"})
# U+FDE8 is the mark of `html_signs.py` before a sign that will be escaped.
_BACKSLASH = re.compile(r"\\(?=[!-/:;=-@\[-`{-~\ufde8]|$)", re.MULTILINE)
_LINK = re.compile(r"\](?=[(\[:])")
_ENTITY = re.compile(r"&(?=#?\w{1,32};)")
_BRACKET = re.compile(r"[\[\]]")
_SAFE = "%/:=&?~#+!$,;'@*[]._-"
_ELSEWHERE = re.compile(r"//|[^/?#]*:")
_CODE_BLOCKS = ["pre", "listing", "xmp"]
_LANGUAGE = "data-kb-language"
_FORMULA_IMAGE = re.compile(r"(?:^|[\s_-])(?:math|latex|tex|formula|equation)(?:$|[\s_-])")


def simplify(soup: BeautifulSoup, base: str) -> None:
    """All of them; `base` is the absolute address of the page, or empty."""
    _name_languages(soup)
    _open_wrappers(soup)
    _write_formulas(soup)
    _write_notes(soup)
    _write_ruby(soup)
    _collapse(soup)
    _free_strays(soup)
    _unfold_layout(soup)
    _unfold_marks(soup)
    _letter_lists(soup)
    _order_tables(soup)
    _tame_spans(soup)
    _name_captions(soup)
    _keep_code(soup)
    _open_definitions(soup)
    _lift_blocks(soup)
    _resolve_links(soup, base)
    _flatten_inline(soup)
    smooth(soup)
    tell_touching(soup)
    _escape(soup)


def page_address(soup: BeautifulSoup) -> str:
    """What relative links refer to: `<base>`, the canonical address, or nothing."""
    canonical = ""
    for link in soup.find_all("link"):
        if "canonical" in (link.get("rel") or []):
            canonical = canonical or _absolute(str(link.get("href") or ""), "")
    for meta in soup.find_all("meta", attrs={"property": "og:url"}):
        canonical = canonical or _absolute(str(meta.get("content") or ""), "")
    declared = soup.find("base", href=True)
    if isinstance(declared, Tag):
        return _absolute(str(declared.get("href")), canonical) or canonical
    return canonical


def _absolute(address: str, base: str) -> str:
    """A web address that can stand in Markdown; empty when there is none."""
    try:
        whole = urljoin(base, address.strip()) if base else address.strip()
        parts = urlsplit(whole)
    except ValueError:
        return ""
    if parts.scheme.lower() not in {"http", "https"} or not parts.netloc:
        return ""
    return quote(whole, safe=_SAFE)


def _address(written: str, base: str) -> str:
    """Absolute if it can be; as it is written when the page does not say where it stands."""
    written = written.strip()
    if base or _ELSEWHERE.match(written):
        return _absolute(written, base)
    return quote(written, safe=_SAFE)


def _text(value: str) -> NavigableString:
    return NavigableString(value)


def _write_formulas(soup: BeautifulSoup) -> None:
    for math in soup.find_all("math"):
        if not is_gone(math):
            math.replace_with(_text(linear(math)))
    for image in soup.find_all("img", alt=True):
        if _FORMULA_IMAGE.search(" ".join(image.get("class") or [])):
            image.replace_with(_text(f"${str(image['alt']).strip()}$"))


def _write_notes(soup: BeautifulSoup) -> None:
    """Footnote marks stand apart from their word; ways back from a note are not its text."""
    for raised in soup.find_all("sup"):
        words = raised.get_text(strip=True)
        inner = raised.find("a", href=True) or raised.find_parent("a", href=True)
        if isinstance(inner, Tag) and "#" in str(inner["href"]) and _NOTE_MARK.fullmatch(words):
            raised.replace_with(_text(f"[{words}]"))
        elif (number := superscript(words)) != words:
            raised.replace_with(_text(number))
    for link in soup.find_all("a", href=True):
        if not is_gone(link) and "#" in str(link["href"]):
            words = link.get_text(strip=True)
            heading = link.find_parent(HEADINGS) is not None
            if _BACKLINK.fullmatch(words) or (heading and words.lower() in _PERMALINK):
                link.decompose()
    for tag in soup.find_all(class_="mw-editsection"):
        tag.decompose()


def _write_ruby(soup: BeautifulSoup) -> None:
    """`漢字(かんじ)`: the reading in brackets, as the page itself asks for with `<rp>`."""
    for bracket in soup.find_all("rp"):
        bracket.decompose()
    for reading in soup.find_all("rt"):
        reading.insert(0, _text("("))
        reading.append(_text(")"))
        reading.unwrap()
    for ruby in soup.find_all("ruby"):
        for child in list(ruby.children):
            if isinstance(child, NavigableString):
                child.replace_with(_text(child.strip()))
        ruby.unwrap()


def _open_wrappers(soup: BeautifulSoup) -> None:
    """`<p>` around paragraphs, and elements of a page's own name (`<txt_te>`, `<my-card>`), hold
    blocks as a `div` does: to docling all in them is one paragraph."""
    for tag in soup.find_all(_OWN_NAME):
        if tag.find([*_BLOCKS, "div"]):
            tag.name = "div"


def _collapse(soup: BeautifulSoup) -> None:
    """Wrappers around a single element say nothing, and docling pays for each at every text."""
    for tag in reversed(soup.find_all(_WRAPPERS)):
        inner = [c for c in tag.contents if isinstance(c, Tag) or str(c).strip()]
        if not inner and tag.parent is not None:
            tag.decompose()
        elif len(inner) == 1 and isinstance(inner[0], Tag) and inner[0].name in _WRAPPED:
            tag.replace_with(inner[0].extract())


def _tame_spans(soup: BeautifulSoup) -> None:
    """Spans beyond the table itself, or of a size that no reader sees, are undone."""
    for table in soup.find_all("table"):
        rows = table.find_all("tr")
        cells = table.find_all(["td", "th"], attrs={"colspan": True})
        spans = [_number(cell.get("colspan")) for cell in cells]
        wide = sum(spans) > _MOST_COLUMNS * max(1, len(rows)) or max(spans, default=1) > (
            _MOST_COLUMNS
        )
        for cell in cells if wide else ():
            del cell["colspan"]
        for cell in table.find_all(["td", "th"], attrs={"rowspan": True}):
            cell["rowspan"] = str(max(1, min(_number(cell.get("rowspan")), len(rows))))
        _unfold_sparse(table, rows)


def _unfold_sparse(table: Tag, rows: list[Tag]) -> None:
    """One row of 1000 cells would make 1000 of each other row: such a table becomes paragraphs."""
    cells = [row.find_all(["td", "th"], recursive=False) for row in rows]
    widths = [sum(_number(cell.get("colspan")) for cell in row) for row in cells]
    room = len(rows) * max(widths, default=0)
    if room > _MOST_CELLS and room > 10 * sum(map(len, cells)):
        for part in (table, *table.find_all(["thead", "tbody", "tfoot", "tr", "td", "th"])):
            part.name = "div"


def _number(value: object) -> int:
    text = str(value).strip()
    return int(text) if text.isdecimal() and len(text) < 7 else 1


def _free_strays(soup: BeautifulSoup) -> None:
    """What a table holds outside of its cells stands before it, as browsers show it."""
    for part in soup.find_all(["table", "thead", "tbody", "tfoot", "tr"]):
        table = part if part.name == "table" else part.find_parent("table")
        if table is None:
            continue
        for child in list(part.contents):
            stray = child.name not in _IN_TABLE if isinstance(child, Tag) else str(child).strip()
            if stray:
                table.insert_before(child.extract())
            elif isinstance(child, Tag) and child.name in {"td", "th"} and part.name != "tr":
                row = child.wrap(soup.new_tag("tr"))
                while isinstance(cell := row.next_sibling, Tag) and cell.name in {"td", "th"}:
                    row.append(cell.extract())


def _unfold_layout(soup: BeautifulSoup) -> None:
    """Tables that hold other tables or headings are no data, but the page itself."""
    for table in reversed(soup.find_all("table")):
        told = str(table.get("role") or "").lower() in {"presentation", "none"}
        if not told and (table.find(["table", *HEADINGS[:4]]) is None or table.find("th")):
            continue
        for part in table.find_all(["caption", "thead", "tbody", "tfoot", "tr", "td"]):
            if part.find_parent("table") is table:
                part.name = "div"
        table.name = "div"


def _unfold_marks(soup: BeautifulSoup) -> None:
    """Tables that only set a mark beside its text, as official journals do, become paragraphs."""
    for table in reversed(soup.find_all("table")):
        rows = [row.find_all(["td", "th"], recursive=False) for row in table.find_all("tr")]
        marks = [cells[0].get_text(strip=True) for cells in rows if len(cells) == 2]
        if not rows or len(marks) < len(rows) or not all(map(_MARK.fullmatch, marks)):
            continue
        for cells, mark in zip(rows, marks, strict=True):
            _unfold_row(soup, cells[1], mark)
        for part in table.find_all(["thead", "tbody", "tfoot"]):
            part.name = "div"
        table.name = "div"


def _unfold_row(soup: BeautifulSoup, cell: Tag, mark: str) -> None:
    """The row becomes a section; its first paragraph is made anew, since its place is the row."""
    row = cell.parent
    if row is None:
        return
    first = cell.find(["p", "span", "div"], recursive=False)
    opening = soup.new_tag("p" if first is None else first.name)
    opening.append(_text(f"{mark} "))
    opening.extend(list((cell if first is None else first).contents))
    if first is not None:
        first.decompose()
    rest = list(cell.contents)
    row.clear()
    row.extend([opening, *rest])
    row.name = "div"


def _letter_lists(soup: BeautifulSoup) -> None:
    """`<ol type="a">` counts in letters, and laws are cited by them."""
    for ordered in soup.find_all("ol"):
        kind = str(ordered.get("type") or "")
        items = ordered.find_all("li", recursive=False)
        if kind not in _LETTERED or len(items) > 500:
            continue
        start = str(ordered.get("start") or "1")
        first = int(start) if start.isdecimal() and len(start) < 4 else 1
        for number, item in enumerate(items, first):
            item.insert(0, _text(f"{_counted(number, kind)}. "))
        ordered.name = "ul"


def _counted(number: int, kind: str) -> str:
    if kind in "aA":
        letters = ""
        while number > 0:
            number, rest = divmod(number - 1, 26)
            letters = chr(ord(kind) + rest) + letters
        return letters
    numerals = zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ["m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"],
        strict=True,
    )
    written = ""
    for value, sign in numerals:
        written += sign * (number // value)
        number %= value
    return written.upper() if kind == "I" else written


def _order_tables(soup: BeautifulSoup) -> None:
    """Feet are rows too, and come last."""
    for foot in soup.find_all("tfoot"):
        table = foot.find_parent("table")
        foot.name = "tbody"
        if table is not None:
            table.append(foot.extract())


def _name_captions(soup: BeautifulSoup) -> None:
    """Captions are paragraphs beside what they name; pictures are not text."""
    for caption in soup.find_all("caption"):
        table = caption.find_parent("table")
        caption.name = "p"
        if table is not None:
            table.insert_before(caption.extract())
    for caption in soup.find_all("figcaption"):
        caption.name = "div" if caption.find(_BLOCKS) else "p"
    for figure in soup.find_all("figure"):
        figure.name = "div"
    for picture in soup.find_all(["img", "picture", "source"]):
        if not is_gone(picture):
            picture.decompose()


def _name_languages(soup: BeautifulSoup) -> None:
    """Before the elements around code go, which may tell its language."""
    for block in soup.find_all(_CODE_BLOCKS):
        block[_LANGUAGE] = language_of(block)


def _keep_code(soup: BeautifulSoup) -> None:
    """Code is one text with its own line ends; the guard keeps the blanks that it starts with."""
    for block in soup.find_all(_CODE_BLOCKS):
        if is_gone(block) or block.find("table"):
            continue
        for br in block.find_all("br"):
            br.replace_with(_text("\n"))
        code = block.get_text().removeprefix("\n").rstrip()
        language = str(block.get(_LANGUAGE) or "")
        block.name = "pre"
        block.clear()
        block.attrs = {}
        if code.strip():
            block.append(_text(guarded(code, language)))


def _open_definitions(soup: BeautifulSoup) -> None:
    """A definition with blocks in it, or texts outside of it, is more than an item of a list.

    The parser leaves one that follows another inside of that.
    """
    for part in soup.find_all(["dt", "dd"]):
        around = part.find_parent(["dl", "dt", "dd"])
        if around is not None and around.name != "dl":
            around.insert_after(part.extract())
    for listed in reversed(soup.find_all("dl")):
        strangers = (
            child
            for child in listed.children
            if (isinstance(child, Tag) and child.name not in {"dt", "dd", "div"})
            or (isinstance(child, NavigableString) and child.strip())
        )
        blocks = listed.find(["pre", "table", "ul", "ol", "blockquote", *HEADINGS]) or _nested(
            listed
        )
        if blocks is None and listed.find("dt") and next(strangers, None) is None:
            continue
        for part in listed.find_all(["dt", "dd"]):
            if part.find_parent("dl") is listed:
                part.name = "div" if part.find([*_BLOCKS, "div"]) else "p"
        listed.name = "div"


def _nested(listed: Tag) -> Tag | None:
    """A list within its definitions that is not all of one."""
    for inner in listed.find_all("dl"):
        around = inner.find_parent(["dd", "dt", "dl"])
        if around is None or around.name != "dd" or inner.parent is not around:
            return inner
        if any(node is not inner and node.get_text(strip=True) for node in around.children):
            return inner
    return None


def _lift_blocks(soup: BeautifulSoup) -> None:
    """Code, tables and quotes of a list item stand after it in its list, and so does what follows
    them."""
    for block in soup.find_all(["pre", "table", "blockquote"]):
        item = block.find_parent(["li", "td", "th", "blockquote"])
        if item is None or item.name != "li" or item.parent is None:
            continue
        rest = soup.new_tag("div")
        for step in _after(block, item):
            rest.append(step.extract())
        item.insert_after(block.extract())
        if rest.get_text(strip=True):
            block.insert_after(rest)


def _after(block: Tag, item: Tag) -> list[PageElement]:
    """What stands after `block` in `item`, from inside to outside."""
    node: Tag = block
    found: list[PageElement] = []
    while node is not item and node.parent is not None:
        found += list(node.next_siblings)
        node = node.parent
    return found


def _resolve_links(soup: BeautifulSoup, base: str) -> None:
    """Links with an absolute address stay; in headings and code the text alone does."""
    page = base.partition("#")[0]
    for link in soup.find_all("a"):
        address = _address(str(link.get("href") or ""), base)
        document, fragment, _ = address.partition("#")
        inside = bool(fragment) and document == page
        bare = link.find(_BLOCKS) is not None or link.find_parent([*HEADINGS, "pre"]) is not None
        if not address or inside or bare or not link.get_text(strip=True):
            link.unwrap()
        else:
            link.attrs = {"href": address}


def _flatten_inline(soup: BeautifulSoup) -> None:
    """Join the pieces of inline markup: docling would put blanks between them."""
    for quote_ in soup.find_all("q"):
        quote_.insert(0, _text("“"))
        quote_.append(_text("”"))
        quote_.unwrap()
    for struck in soup.find_all(_STRUCK):
        struck.name = "s"
    for tag in soup.find_all(_CODE):
        tag.name = "code"
        if tag.find_parent(["code", "pre", *HEADINGS]) or not tag.get_text(strip=True):
            tag.unwrap()
    for tag in soup.find_all("br"):
        if tag.find_parent(list(_ONE_LINE)):
            tag.replace_with(_text(" "))
    keep_signs(soup)
    write_emphasis(soup)
    for tag in soup.find_all(_PLAIN_INLINE):
        tag.unwrap()


def _escape(soup: BeautifulSoup) -> None:
    """What would be a link, its definition or a character reference in Markdown is none here.

    Tags and marks at the start of lines are left to `to_markdown`.
    """
    for node in soup.find_all(string=re.compile(r"[\\&\[\]]")):
        if node.find_parent(["pre", "code"]):
            continue
        text = _ENTITY.sub(r"\\&", _BACKSLASH.sub(r"\\\\", node))
        linked = node.find_parent("a") is not None
        text = _BRACKET.sub(r"\\\g<0>", text) if linked else _LINK.sub(r"\\]", text)
        node.replace_with(_text(text))
