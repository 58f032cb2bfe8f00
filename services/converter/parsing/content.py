"""The main content of a web page: navigation, notices and other furniture taken away."""

import re
from dataclasses import dataclass

from bs4 import BeautifulSoup
from bs4.element import Tag

from services.converter.parsing.alignment import squeezed
from services.converter.parsing.article import (
    Run,
    find_runs,
    is_gone,
    is_within,
    runs_of,
)
from services.converter.parsing.trees import HEADINGS

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
_ARTICLE = re.compile(
    r"property=[\"']og:type[\"'][^>]{0,500}content=[\"']article"
    r"|content=[\"']article[\"'][^>]{0,500}og:type"
    r"|[\"']@type[\"']\s*:\s*\[?\s*[\"']\w*(?:Article|BlogPosting)"
    r"|itemtype=[\"'][^\"']{0,200}Article"
    r"|<article[\s>]",
    re.I,
)
_POINTER = re.compile(
    r"\W*(?:see also|read (?:also|more|next)|also read|related|more on this|recommended|"
    r"lesen sie|lies auch|mehr (?:zum thema|dazu|lesen)|auch interessant|das könnte|siehe auch|"
    r"zum thema|weiterlesen|à lire|lire aussi|l?vea también|lea (?:también|además)|"
    r"[lt]e puede interesar|leia (?:também|mais)|leggi anche|czytaj (?:też|także|również)|"
    r"zobacz też|lees ook|(?:mir[ae]|lea|lire|read|watch|lesen)(?=\s*:)|puedes ver|"
    r"читайте также|смотрите также|по теме|прочетете|вижте (?:също|още)|"
    r"още по темата|"
    r"pročitajte|прочитајте|прочитај|повезано|povezano|preberite|više o|повеќе)\b",
    re.I,
)
_CALL = re.compile(
    r"\bsubscri|newsletter|\babonn|\bsign ?up\b|\blog ?in\b|\bregister (?:now|here|for|to)\b|"
    r"\bfollow (?:us|me|our)\b|\bjoin (?:us|our)\b|our app\b|anmelde|einloggen|"
    r"folg(?:en sie|t uns|e uns)|subskryp|prenumer|suscr[ií]|s[ií]guenos|[uú]nete|подпи[шс]|"
    r"абонира|претплат|pretplat|naroč|prijavi|registrier|registr(?:iraj|ujte|acij)|рассылк|"
    r"зарегистр|(?:canal|channel|kanal\w?|канал\w?)\b.{0,30}(?:youtube|telegram|whatsapp)|"
    r"(?:youtube|telegram|whatsapp).{0,3}(?:canal|channel|kanal|канал)",
    re.I,
)
_CREDIT = re.compile(
    r"\W*(?:(?:photo|foto|bild|image|picture|beitragsbild|titelbild)(?:s|o?graf\w*|o?graph\w*)?"
    r"(?:[\s-]?(?:credits?|nachweis|quelle|rechte))?|cr[eé]dits?(?:\s+photos?)?|fot\.|©|\(c\))"
    r"(?:\s*(?:[:/|©]|by\b|von\b|par\b)|(?<=©)|(?<=\(c\))).{0,60}",
    re.I | re.S,
)
_PIECES = re.compile(r"\s[|/:·•«»‹›~–—-]+\s")
"""What stands between a page's own title and the name of its site."""
_MOST_PIECES = 8
_COOKIES = re.compile(r"\bcookies?\b", re.I)
_ADDRESS = re.compile(r"https?:|www\.|@|\w\.[a-z]{2,4}\b", re.I)
_WHOLE = ["table", "pre", "math", "dl", "caption"]
_LISTS = ["ul", "ol"]
_LAYOUT = ["table", "form", "article", "section", "main", *HEADINGS[:4]]
_IN_STRUCTURE = [*HEADINGS, "li", "td", "th", "dt", "dd"]
_MOST_POINTERS = 3
_SHORTEST_POINTER = 12
_LONGEST_CALL = 200
_SHORTEST_LEAD = 40
_MOST_ABOVE = 300
"""Letters of an article that may stand above its lead: title, date, author."""
_LONGEST_COOKIES = 600
_STAY_EMPTY = frozenset({"td", "th", "br", "math", "body"})
_LONG_NOTICE = 3000
_ENOUGH = 100
_FURNISHED = 0.1
"""Share of a page's text in furniture from which on it is a page of a site, not a document."""


@dataclass
class _Weight:
    """Letters in an element: all, those in links, those of known runs."""

    total: int = 0
    linked: int = 0
    known: int = 0
    furniture: bool | None = None
    """Whether its names say so; found out once, and so is the next."""
    data: bool | None = None

    @property
    def links(self) -> float:
        """Share of the text that lies in links; all of it where there is no text."""
        return self.linked / self.total if self.total else 1.0


_Weights = dict[int, _Weight]


def reduce_to_content(soup: BeautifulSoup, source: str, told: str) -> None:
    """Leave in `soup` the main content and the page's first heading.

    Args:
        soup: the page without hidden parts; changed in place.
        source: the same page as HTML text.
        told: what `main_text` takes for its article.
    """
    body = soup.body or soup
    _free_headings(body)
    runs = runs_of(body)
    article = _ARTICLE.search(source) is not None
    find_runs(runs, told, repeats=not article)
    headline = _headline(soup, body, runs)
    heading = headline or body.find("h1")
    lead = _lead_of(runs, _described(soup)) if article else None
    if lead is not None:
        lead.known = True
    weights = _weigh(body, runs)
    whole = weights[id(body)].total
    _drop(body, weights, lead, headline)
    runs = [left for run in runs if (left := run.within(body))]
    _choose(body, runs, whole, headline, article=article)
    out = isinstance(heading, Tag) and not is_gone(heading) and not is_within(heading, body)
    if isinstance(heading, Tag) and out and (headline is not None or not body.find("h1")):
        body.insert(0, heading)


def _headline(soup: BeautifulSoup, body: Tag, runs: list[Run]) -> Tag | None:
    """The heading that says what the page's title says, unless the extractor has its words.

    It often leaves them out: it tells the title apart from the text.
    """
    told = [str(meta.get("content") or "") for meta in soup.find_all("meta", property="og:title")]
    if soup.title is not None:
        told.append(soup.title.get_text())
    titles = [[squeezed(piece) for piece in _PIECES.split(title)] for title in told]
    # A short title may have a long name of the site behind it.
    firsts = {pieces[0] for pieces in titles} - {"", *_names_of_site(soup)}
    headings = [(squeezed(tag.get_text()), tag) for tag in body.find_all(["h1", "h2"])]
    said = [pair for pair in headings if any(_says(pair[0], title) for title in titles)]
    for own, heading in said or [pair for pair in headings if pair[0] in firsts]:
        known = any(run.known and run.text == own for run in runs)
        return None if known else heading
    return None


def _names_of_site(soup: BeautifulSoup) -> set[str]:
    names = soup.find_all("meta", property="og:site_name")
    return {squeezed(str(meta.get("content") or "")) for meta in names}


def _says(own: str, title: list[str]) -> bool:
    """A title, given in pieces, is most of the heading, or the heading most of it from a piece on.

    Sites add their name to the one, and what an article is about to the other.
    """
    whole = "".join(title)
    if len(own) >= len(whole):
        return whole in own and len(whole) * 2 > len(own)
    begins = (len("".join(title[:n])) for n in range(min(len(title), _MOST_PIECES)))
    return len(own) * 2 > len(whole) and any(whole.startswith(own, at) for at in begins)


def _free_headings(body: Tag) -> None:
    """Buttons that fold a section away hold its heading."""
    for button in body.find_all("button"):
        if button.find_parent([*HEADINGS, "summary", "dt"]):
            button.unwrap()


def _weigh(body: Tag, runs: list[Run]) -> _Weights:
    weights: _Weights = {id(body): _Weight()}
    for run in runs:
        tag: Tag | None = run.block
        while tag is not None:
            weight = weights.setdefault(id(tag), _Weight())
            weight.total += run.size
            weight.linked += run.linked
            weight.known += run.size * run.known
            tag = tag.parent if tag is not body else None
    return weights


def _drop(body: Tag, weights: _Weights, lead: Run | None, headline: Tag | None) -> None:
    """Remove furniture, but never what holds the lead, or a good part of the page or article."""
    page = weights[id(body)]
    around = {id(tag) for tag in (lead.block, *lead.block.parents)} if lead else set()
    for tag in list(body.find_all(True)):
        if is_gone(tag):
            continue
        weight = weights.get(id(tag), _Weight())
        if id(tag) in around:
            continue
        if not (tag.name in _DROPPED or _is_furniture(tag, weight, page)):
            continue
        if weight.total * 2 > page.total or weight.known * 10 > page.known >= _ENOUGH:
            continue
        if headline is not None and headline is not tag and is_within(headline, tag):
            headline.extract()
        elif isinstance(heading := tag.find("h1"), Tag):
            heading.extract()
        tag.decompose()


def _is_furniture(tag: Tag, weight: _Weight, page: _Weight) -> bool:
    if tag.name in {"body", "html", "main", "article", *HEADINGS}:
        return False
    if str(tag.get("role") or "").lower() in _DROPPED_ROLES:
        return True
    if tag.name in {"header", "footer", "aside"}:
        return tag.name == "footer" or tag.find_parent(["article", "main"]) is None
    names = _names(tag)
    if _NOTICE.search(names):
        return weight.total < _LONG_NOTICE and weight.total * 2 < page.total
    return bool(_FURNITURE.search(names)) and weight.total * 3 < page.total and weight.links > 0.3


def _names(tag: Tag) -> str:
    return f"{tag.get('id') or ''} {' '.join(tag.get('class') or [])}"


def _choose(body: Tag, runs: list[Run], whole: int, headline: Tag | None, *, article: bool) -> None:
    """Remove the runs that are no content.

    On a page of a site the extractor decides. What it left out stays only where it is known to
    lose what it should not: tables, code and the like among its text, and where the page does not
    call itself an article, what stands among its text and is no stranger. On a plain document,
    which has next to no furniture, only strangers go, and none if the extractor understood little.

    Args:
        body: what is left of the page; changed in place.
        runs: its text.
        whole: letters of the page before its furniture was removed.
        headline: the heading that stays in any case.
        article: whether the page says that it is one.
    """
    weights = _weigh(body, runs)
    page = weights[id(body)]
    if page.known < _ENOUGH:
        return
    left_out = [run for run in runs if not run.known]
    lost = sum(run.size for run in left_out if not _stranger(run, weights, body))
    content = page.known + lost
    site = article or whole - content > _FURNISHED * whole
    if not site and lost > 0.3 * page.known:
        return
    root = _root(body, weights) if site else body
    # A caption says nothing without its picture, which no text has.
    inside = [is_within(run.block, root) and not (site and _is_caption(run.block)) for run in runs]
    away = _pointers(runs, article=article) if site else set()
    kept = [
        (run.known and id(run) not in away)
        or (within and not run.known and _belongs(run, weights, root, article=article))
        for run, within in zip(runs, inside, strict=True)
    ]
    _lead(runs, kept, site=site)
    for run, keep in zip(runs, kept, strict=True):
        if not (keep or (headline is not None and is_within(run.block, headline))):
            for node in run.nodes:
                node.extract()
    _sweep(body)


def _root(body: Tag, weights: _Weights) -> Tag:
    """The smallest element that holds nearly all of the article."""
    root = body
    while True:
        inner = [child for child in root.contents if isinstance(child, Tag)]
        heaviest = max(inner, key=lambda c: weights.get(id(c), _Weight()).known, default=None)
        if heaviest is None or weights.get(id(heaviest), _Weight()).known * 10 < (
            9 * weights[id(body)].known
        ):
            return root
        root = heaviest


def _described(soup: BeautifulSoup) -> set[str]:
    """Its descriptions for search engines and other sites, which are often its first words."""
    told = (str(meta.get("content") or "") for meta in soup.find_all("meta") if _describes(meta))
    return {text for text in map(squeezed, told) if len(text) >= _SHORTEST_LEAD}


def _describes(meta: Tag) -> bool:
    name = str(meta.get("name") or meta.get("property") or "").lower()
    return name in {"description", "og:description", "twitter:description"}


def _lead_of(runs: list[Run], described: set[str]) -> Run | None:
    """The lead of an article where the extractor missed it: a text above that describes it."""
    above = 0
    for run in runs:
        if run.known:
            above += run.size
            begins = any(run.text.startswith(told[:_SHORTEST_LEAD]) for told in described)
            if begins or above > _MOST_ABOVE:
                return None
        elif _describes_it(run, described):
            return run
    return None


def _describes_it(run: Run, described: set[str]) -> bool:
    if run.size < _SHORTEST_LEAD or run.linked * 2 >= run.size:
        return False
    return any(told.startswith(run.text) or run.text.startswith(told) for told in described)


def _pointers(runs: list[Run], *, article: bool) -> set[int]:
    """Identities of known runs that lead to other pages: "read also", "subscribe to …".

    In an article so does a paragraph that is nothing but a link, if few stand together: many are a
    list, and an address or a mark of a footnote says something by itself.
    """
    away = {id(run) for run in runs if run.known and _leads_away(run)}
    together: list[Run] = []
    for run in [*(run for run in runs if run.known and run.size), None]:
        if article and run is not None and _is_link(run):
            together.append(run)
            continue
        if len(together) <= _MOST_POINTERS:
            away.update(map(id, together))
        together = []
    return away


def _is_link(run: Run) -> bool:
    if run.size < _SHORTEST_POINTER or run.linked * 5 < run.size * 4:
        return False
    if run.block.name in _IN_STRUCTURE or run.block.find_parent(_IN_STRUCTURE) is not None:
        return False
    return not _is_within_page(run) and _ADDRESS.search("".join(run.nodes)) is None


def _is_within_page(run: Run) -> bool:
    """Whether all its links lead to places of the same page: `#chapter`."""
    links = {id(link): link for node in run.nodes if (link := node.find_parent("a", href=True))}
    told = [str(link["href"]) for link in links.values()]
    return bool(told) and all(len(to) > 1 and to[0] == "#" for to in told)


def _leads_away(run: Run) -> bool:
    text = "".join(run.nodes)
    if _POINTER.match(text):
        return run.linked * 2 >= run.size or run.size < 40
    if _CREDIT.fullmatch(text) and run.block.name not in _IN_STRUCTURE:
        return True
    calls = run.size < _LONGEST_CALL and _CALL.search(text) is not None
    return calls and (run.linked > 0 or run.block.find_parent("form") is not None)


def _belongs(run: Run, weights: _Weights, root: Tag, *, article: bool) -> bool:
    """Whether a run that the extractor left out is content all the same."""
    block = run.block if run.block.name in _WHOLE else run.block.find_parent(_WHOLE)
    if isinstance(block, Tag):
        weight = weights[id(block)]
        if weight.data is None:
            weight.data = _is_data(block, weights, root)
        if weight.data:
            return True
    listed = run.block.find_parent(_LISTS)
    if isinstance(listed, Tag) and listed is not root and is_within(listed, root):
        weight = weights[id(listed)]
        if weight.known * 2 > weight.total:
            return True
    return not article and not _stranger(run, weights, root)


def _is_data(block: Tag, weights: _Weights, root: Tag) -> bool:
    """Among the article's text; no list of links, no layout of the page."""
    if weights[id(block)].links >= 0.5:
        return False
    if block.name == "table" and (is_within(root, block) or block.find(_LAYOUT) is not None):
        return False
    around: Tag = block
    while around is not root and weights[id(around)].total == weights[id(block)].total:
        if around.parent is None:
            return False
        around = around.parent
    return weights[id(around)].known > 0


def _is_caption(block: Tag) -> bool:
    return block.name == "figcaption" or block.find_parent("figcaption") is not None


def _stranger(run: Run, weights: _Weights, root: Tag) -> bool:
    text = "".join(run.nodes)
    if run.size < _LONGEST_COOKIES and _COOKIES.search(text):
        return True
    if run.size < _LONGEST_CALL and _CALL.search(text):
        return True
    tag: Tag | None = run.block
    while tag is not None and tag is not root:
        weight = weights[id(tag)]
        if weight.furniture is None:
            weight.furniture = _FURNITURE.search(_names(tag)) is not None
        if weight.links > 0.4 or weight.furniture:
            return True
        if tag.name == "form" and not weight.known:
            return True
        tag = tag.parent
    return False


def _lead(runs: list[Run], kept: list[bool], *, site: bool) -> None:
    """A heading stays with what it leads, and only with that."""
    follows: Tag | None = None
    for n in range(len(runs) - 1, -1, -1):
        block = runs[n].block
        heading = block if block.name in HEADINGS else block.find_parent(HEADINGS)
        if isinstance(heading, Tag):
            if not runs[n].known:
                leads = follows is not None and _leads(heading, follows)
                kept[n] = leads and not (site and _leads_away(runs[n]))
        else:
            follows = block if kept[n] else None


def _leads(heading: Tag, block: Tag) -> bool:
    """Whether both stand in one section: below the heading's parent or the parent of that."""
    section = heading.parent.parent if heading.parent and heading.parent.parent else heading
    return is_within(block, section)


def _sweep(body: Tag) -> None:
    """Remove what is empty now."""
    for tag in reversed(body.find_all(True)):
        if tag.name not in _STAY_EMPTY and not any(
            isinstance(child, Tag) or str(child).strip() for child in tag.contents
        ):
            tag.decompose()
    for row in body.find_all("tr"):
        if not row.get_text(strip=True):
            row.decompose()
