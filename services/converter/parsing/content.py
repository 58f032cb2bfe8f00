"""The main content of a web page: navigation, notices and other furniture taken away."""

import re
from collections.abc import Iterable, Iterator

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag

_DROPPED = [
    "iframe", "object", "embed", "svg", "canvas", "button", "select", "input", "textarea", "nav",
    "dialog", "audio", "video", "map",
]  # fmt: skip
_DROPPED_ROLES = frozenset({
    "navigation", "banner", "contentinfo", "search", "dialog", "alertdialog", "menu", "menubar",
    "toolbar", "tablist", "complementary",
})  # fmt: skip
_NOTICE = re.compile(
    r"cookie|consent|gdpr|onetrust|cmp-?(?:banner|container)|privacy-?banner", re.I
)
_FURNITURE = re.compile(
    r"(?:^|[\s_-])(?:breadcrumbs?|sidebar|share|sharing|social|related|recommend\w*|newsletter|"
    r"pagination|pager|advert\w*|ads?|promo\w*|sponsor\w*|skip-?link|comments?|respond|footer|"
    r"menu|navbar|nav|topbar|toolbar|login|subscribe|popup|modal|widget|tags?|meta|author-?box|"
    r"print|disqus|banner|teaser|masthead)(?:$|[\s_-])",
    re.I,
)
_BLOCKS = frozenset({
    "p", "li", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "dt", "dd",
    "figcaption", "caption",
})  # fmt: skip
_BLOCKS_LIST = sorted(_BLOCKS)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_KEPT = ["table", "pre", "code", "figure", "math", "br"]
_ARTICLE = re.compile(
    r"property=[\"']og:type[\"'][^>]*content=[\"']article|content=[\"']article[\"'][^>]*og:type"
    r"|[\"']@type[\"']\s*:\s*\[?\s*[\"']\w*(?:Article|BlogPosting)|itemtype=[\"'][^\"']*Article"
    r"|<article[\s>]",
    re.I,
)
_LONG_NOTICE = 3000
_ENOUGH = 250


def reduce_to_content(soup: BeautifulSoup, source: str) -> None:
    """Leave in `soup` the main content and the page's first heading.

    Args:
        soup: the page without hidden parts; changed in place.
        source: the same page as HTML text, for the library that knows articles.
    """
    body = soup.body or soup
    heading = body.find("h1")
    blocks = _known_blocks(body, _article_text(source))
    _drop(body, blocks)
    article = _ARTICLE.search(source) is not None and sum(blocks.values()) >= _ENOUGH
    root = _root(body, blocks, article=article)
    if article or root is not body:
        _prune(root, blocks, article=article)
    if isinstance(heading, Tag) and not root.find("h1") and heading is not root:
        root.insert(0, heading.extract())
    if root is not body:
        root = root.extract()
        body.clear()
        body.append(root)


def _drop(body: Tag, blocks: dict[int, int]) -> None:
    """Remove furniture, but never what holds a good part of the page or of the article."""
    total = len(body.get_text())
    known = sum(blocks.values())
    for tag in list(body.find_all(True)):
        if tag.decomposed or not (tag.name in _DROPPED or _is_furniture(tag, total)):
            continue
        if len(tag.get_text()) * 2 > total or _weight(tag, blocks) * 10 > known > 0:
            continue
        heading = tag.find("h1")
        if isinstance(heading, Tag):
            heading.extract()
        tag.decompose()


def _is_furniture(tag: Tag, total: int) -> bool:
    if tag.name in {"body", "html", "main", "article"} or tag.name in _HEADINGS:
        return False
    if str(tag.get("role") or "").lower() in _DROPPED_ROLES:
        return True
    in_article = tag.find_parent(["article", "main"]) is not None
    if tag.name in {"header", "footer", "aside"}:
        return tag.name == "footer" or not in_article
    names = f"{tag.get('id') or ''} {' '.join(tag.get('class') or [])}"
    if not names.strip():
        return False
    size = len(tag.get_text())
    if _NOTICE.search(names):
        return size < _LONG_NOTICE and size * 2 < total
    return bool(_FURNITURE.search(names)) and size * 3 < total and _links(tag) > 0.3


def _links(tag: Tag) -> float:
    """Share of the text that lies in links."""
    size = len(tag.get_text(strip=True))
    return sum(len(a.get_text(strip=True)) for a in tag.find_all("a")) / size if size else 1.0


def _article_text(source: str) -> str:
    """What trafilatura holds for the main text."""
    import trafilatura

    found = trafilatura.extract(
        source, output_format="txt", include_comments=False, include_tables=True
    )
    return _squeezed(found or "")


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def _known_blocks(body: Tag, article: str) -> dict[int, int]:
    """Length of each block whose text the article has, by identity."""
    texts = ((block, _squeezed(block.get_text())) for block in _leaf_blocks(body))
    return {id(block): len(text) for block, text in texts if len(text) > 2 and text in article}


def _leaf_blocks(body: Tag) -> Iterator[Tag]:
    """Blocks that hold text and no other block, each piece of text in one of them."""
    stack = [body]
    while stack:
        tag = stack.pop()
        own_text = any(isinstance(c, NavigableString) and c.strip() for c in tag.contents)
        if (tag.name in _BLOCKS or own_text) and tag.find(_BLOCKS_LIST) is None:
            yield tag
        else:
            stack += _children(tag)


def _root(body: Tag, blocks: dict[int, int], *, article: bool) -> Tag:
    """The smallest element that holds nearly all of the article, without the strangers in it."""
    known = sum(blocks.values())
    total = len(_squeezed(body.get_text()))
    # Little found, or nearly all: no article among other things, but a plain document.
    if known < _ENOUGH or (not article and (known * 4 < total or known * 10 > total * 9)):
        return body
    root = body
    while True:
        child = _heaviest(root, blocks)
        if child is None or _weight(child, blocks) < 0.9 * known:
            break
        root = child
    return root


def _children(tag: Tag) -> Iterable[Tag]:
    return (child for child in tag.contents if isinstance(child, Tag))


def _weight(tag: Tag, blocks: dict[int, int]) -> int:
    own = blocks.get(id(tag), 0)
    return own or sum(blocks.get(id(inner), 0) for inner in tag.find_all(True))


def _heaviest(root: Tag, blocks: dict[int, int]) -> Tag | None:
    if id(root) in blocks:
        return None
    return max(_children(root), key=lambda child: _weight(child, blocks), default=None)


def _prune(root: Tag, blocks: dict[int, int], *, article: bool) -> None:
    """Remove what holds nothing known: lists of links and small notices; in articles all of it.

    Tables, code and pictures are kept in any case, headings when something known follows.
    """
    stack = [root]
    while stack:
        parent = stack.pop()
        if id(parent) in blocks:
            continue
        followed = 0
        for child in reversed(list(_children(parent))):
            weight = _weight(child, blocks)
            if weight:
                stack.append(child)
            elif child.name in _HEADINGS:
                if not followed and article:
                    child.decompose()
                continue
            elif (
                child.find(_KEPT) is None
                and child.name not in _KEPT
                and (article or _stranger(child))
            ):
                child.decompose()
                continue
            followed += weight


def _stranger(tag: Tag) -> bool:
    names = f"{tag.get('id') or ''} {' '.join(tag.get('class') or [])}"
    return _links(tag) > 0.4 or bool(_FURNITURE.search(names))
