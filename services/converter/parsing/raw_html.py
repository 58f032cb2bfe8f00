"""HTML inside Markdown as Markdown: tables, lists, links, emphasis; what is not seen apart.

Not by docling: the file is Markdown, which stays as it is, and HTML blocks come in halves with
Markdown between (`<details>`, a blank line, text, a blank line, `</details>`). Tags that HTML does
not know (`Vec<T>`) stay as they are.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import accumulate, takewhile
from typing import Any, NamedTuple

from bs4 import BeautifulSoup
from bs4.element import Tag

from contracts.artifacts import HiddenText
from contracts.events import HiddenKind
from services.converter.parsing.emphasis import Run, emphasised, emphasised_runs
from services.converter.parsing.literal import line_start, linked, plain_line, raised, span
from services.converter.parsing.marks import unmarked
from services.converter.parsing.table_text import has_head, table_rule
from services.converter.parsing.visibility import take_hidden

_CONTAINERS = frozenset({
    "html", "body", "p", "div", "section", "article", "main", "header", "footer", "aside", "nav",
    "center", "details", "summary", "figure", "figcaption", "dl", "dt", "dd", "address", "form",
    "fieldset", "legend", "tbody", "thead", "tfoot", "tr", "td", "th", "caption", "li",
})  # fmt: skip
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_LISTS = frozenset({"ul", "ol", "menu"})
_BLOCKS = _CONTAINERS | _HEADINGS | _LISTS | {"table", "pre", "blockquote", "hr"}
_INLINE = frozenset({
    "a", "abbr", "b", "big", "br", "cite", "code", "del", "em", "font", "i", "img", "ins", "kbd",
    "label", "mark", "picture", "q", "s", "samp", "small", "source", "span", "strike", "strong",
    "sub", "sup", "time", "tt", "u", "var", "wbr", "video", "audio", "input", "button", "g-emoji",
})  # fmt: skip
_BOLD, _ITALIC = frozenset({"b", "strong"}), frozenset({"i", "em", "cite", "var"})
_STRUCK, _CODE = frozenset({"s", "del", "strike"}), frozenset({"code", "tt", "samp"})
_NAMES = "|".join(sorted(_BLOCKS | _INLINE, key=len, reverse=True))
_ANY_TAG = re.compile(rf"</?(?:{_NAMES})(?=[\s/>])[^<>]*>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\b(alt|title|aria-label)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_HREF = re.compile(r"\bhref\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_KNOWN = frozenset({
    *_BLOCKS, *_INLINE,
    "acronym", "applet", "area", "base", "basefont", "bdi", "bdo", "bgsound", "blink", "canvas",
    "col", "colgroup", "data", "datalist", "dialog", "dir", "embed", "frame", "frameset", "head",
    "hgroup", "iframe", "isindex", "keygen", "link", "listing", "map", "marquee", "math", "meta",
    "meter", "nobr", "noembed", "noframes", "noscript", "object", "optgroup", "option", "output",
    "param", "plaintext", "portal", "progress", "rb", "rp", "rt", "rtc", "ruby", "script",
    "search", "select", "slot", "spacer", "strike", "style", "svg", "template", "textarea",
    "title", "track", "xmp",
})  # fmt: skip
"""Other names of tags are text, unless they have an end."""
_CLOSED = re.compile(r"</([a-z][^\s<>/]*)", re.IGNORECASE)
_PAIR = re.compile(
    r"<(a|b|strong|i|em|s|del|strike|code|tt|samp)(\s[^<>]*)?>([^<>]*)</\1\s*>", re.IGNORECASE
)
_EMPTY = re.compile(r"<(?:img|source|wbr)(?=[\s/>])[^<>]*>", re.IGNORECASE)
_SWALLOWS = re.compile(
    r"<(/?)(script|style|textarea|template|noscript|title|xmp|iframe|noembed|noframes|plaintext"
    r"|select|svg|math)(?=[\s>])",
    re.IGNORECASE,
)
_OPEN_ENDED = ("p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot")
_OPTIONAL_END = re.compile(rf"<(/?)({'|'.join(_OPEN_ENDED)})(?=[\s>])", re.IGNORECASE)
_BREAK = re.compile(r"[ \t]*<br\s*/?>[ \t]*", re.IGNORECASE)
_LINED = re.compile(r"<(tr|li|p|h[1-6]|pre|blockquote|div|dt|dd|summary)(?=[\s>])", re.IGNORECASE)
_MARKED_LINE = re.compile(r"\s*(?:[-*+|#>]|\d{1,9}[.)]\s)")
_TABLE_STARTS = re.compile(r"\s*<table\b", re.IGNORECASE)
_TABLE_ENDS = re.compile(r"</table\s*>", re.IGNORECASE)
_ONLY_TAGS = re.compile(r"\s*(?:<.*)?")
_BAR = re.compile(r"(?<!\\)((?:\\\\)*)\|")
_BLANKS = re.compile(r"[ \t]{2,}")
_NAME = re.compile(r"\w+")
_SUPERSCRIPT = re.compile(r"(<sup(?:\s[^<>]*)?>)([^<>]*)(?=</sup\s*>)", re.IGNORECASE)
_LOUD = re.compile(r"(?<!\\)!(?=<a\s)", re.IGNORECASE)
_LOUD_LINK = re.compile(r"(?<!\\)!(?=\[[^\[\]`]*\]\()")
_WORD_GAP = re.compile("(?<=\\S)\ufded+(?=[^\\s\ufded])")
_STRAY = re.compile(r"<(?=([a-z][^\s<>/]*)([^<>]*))", re.IGNORECASE)
_ITEM_MARK = re.compile(r"[-+*]|\d{1,9}[.)]")
_DEEPEST = 60
_DEEPEST_LIST = 8
_MOST_COLUMNS = 500
_MOST_REPEATED = 20_000
_LONGEST = 8_000_000
_ROUNDS = 8


class Line(NamedTuple):
    """A line of Markdown, and which of the lines before the change it starts at, from 0."""

    text: str
    start: int


def has_html(text: str) -> bool:
    """Whether there is something to do; very long texts are left alone."""
    return len(text) <= _LONGEST and _ANY_TAG.search(text) is not None


def without_html(lines: Sequence[str], hidden: list[HiddenText]) -> list[Line]:
    """The lines of a Markdown text with its raw HTML as Markdown.

    What a reader of the page does not see (alternative texts, titles, hidden elements) goes to
    `hidden`. Starts ascend; blocks of code stay as they are.
    """
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"maxNesting": 200}).enable("table").disable("inline")
    out: list[Line] = []
    tables = _Tables(lines)
    at = 0
    in_table = False
    for token in reader.parse("\n".join(lines)):
        in_table = token.type == "table_open" or (in_table and token.type != "table_close")
        if token.map is None or token.map[0] < at or token.type not in {"html_block", "inline"}:
            continue
        start, end = token.map
        out += [Line(lines[n], n) for n in range(at, start)]
        if token.type == "html_block" and _lead(lines[start], token.content).strip():
            out += _nested(lines, start, end, token.content, hidden)
        elif token.type == "html_block":
            end = tables.end(lines, start, end)
            out += _block(lines, start, end, hidden)
        else:
            out += _paragraph(lines, start, end, hidden, in_table=in_table)
        at = end
    return [*out, *(Line(lines[n], n) for n in range(at, len(lines)))]


# --- within paragraphs ----------------------------------------------------------------------------


def _paragraph(
    lines: Sequence[str], start: int, end: int, hidden: list[HiddenText], *, in_table: bool
) -> Iterator[Line]:
    text = "\n".join(lines[start:end])
    if not _ANY_TAG.search(text):
        yield from (Line(lines[n], n) for n in range(start, end))
        return
    from services.converter.parsing.text import outside_spans

    def change(part: str) -> str:
        return _inline_tags(part, hidden, in_table=in_table)

    changed = outside_spans(text, change, hidden)
    for number, line in enumerate(changed.split("\n")):
        if lines[start + number].lstrip().startswith("<") and not line.startswith("<"):
            # What stands behind a tag starts no block.
            line = line_start(line.lstrip())  # noqa: PLW2901
        for part in line.split(_MORE):
            yield Line(part, start + number)


_MORE, _BROKEN, _GAP, _LITERAL = "\ufdeb", "\ufdec", "\ufded", "\ufdee"
"""A line ends here that does not in the file; a line is broken here; a block began or ended here;
here is a `<` that is text: as signs in `marks.py`."""


def _inline_tags(text: str, hidden: list[HiddenText], *, in_table: bool) -> str:
    def pair(match: re.Match[str]) -> str:
        whole, at, end = match.string, match.start(), match.end()
        _note(match[0], hidden)
        return _paired(match, whole[max(0, at - 1) : at], whole[end : end + 1])

    def gone(match: re.Match[str]) -> str:
        _note(match[0], hidden)
        return _GAP if _NAME.findall(match[0])[0].lower() in _BLOCKS else ""

    # A link behind a bare `!` would be a picture.
    text = _LOUD.sub(r"\\!", text.replace("\\<", f"\\{_LITERAL}"))
    text = _EMPTY.sub(gone, _raised(text))
    text = "\n".join(_broken(text.split("\n"), in_table=in_table))
    for _ in range(_ROUNDS):
        # From the inside out.
        before = text
        text = _PAIR.sub(pair, text)
        if text == before:
            break
    text = _WORD_GAP.sub(" ", _ANY_TAG.sub(gone, text)).replace(_GAP, "")
    return text.replace(_LITERAL, "<")


def _paired(match: re.Match[str], before: str, after: str) -> str:
    """The Markdown of an element that holds only text."""
    name, inner = match[1].lower(), match[3]
    if not inner.strip():
        return inner
    if name == "a":
        found = _HREF.search(match[2] or "")
        return linked(inner, next(filter(None, found.groups()), "") if found else "")
    core = inner.strip()
    if name in _CODE:
        return inner if "`" in inner or "\0" in inner else f"`{_decoded(core)}`"
    if name in _STRUCK:
        return inner if "~" in (core[0], core[-1]) else f"~~{core}~~"
    return emphasised(inner, bold=name in _BOLD, italic=name in _ITALIC, before=before, after=after)


def _decoded(code: str) -> str:
    """Characters in the place of entities, which are none between backticks."""
    text = unescape(code.replace(_LITERAL, "<"))
    kept = all(text.count(sign) == code.count(sign) for sign in "`|\n")
    return text.replace("<", _LITERAL) if kept else code


def _broken(lines: list[str], *, in_table: bool) -> Iterator[str]:
    """Line breaks, where a line can be broken without a change of what it is part of."""
    for number, line in enumerate(lines):
        if "<" not in line:
            yield line
            continue
        parts = _BREAK.split(line)
        follows = number + 1 < len(lines)
        joint = f"\\{_MORE}"
        if in_table or any(map(_MARKED_LINE.match, parts)):
            joint = " "
        ends = len(parts) > 1 and not parts[-1] and follows and not in_table
        yield joint.join(part for part in parts if part) + ("\\" if ends else "")


def _note(tag: str, hidden: list[HiddenText]) -> None:
    for match in _ATTRIBUTE.finditer(tag):
        text = " ".join((match[2] or match[3] or "").split())
        kind: HiddenKind = "alt-text" if match[1].lower() == "alt" else "attribute"
        if text:
            hidden.append(HiddenText(kind=kind, text=text))


# --- blocks ---------------------------------------------------------------------------------------


class _Tables:
    """Where tables end: one may have blank lines between its tags, where Markdown would end it."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._ends = [n for n, line in enumerate(lines) if _TABLE_ENDS.search(line)]
        others = (not _ONLY_TAGS.fullmatch(line) for line in lines)
        self._others = list(accumulate(others, initial=0))
        """How many lines before each are not of tags only."""

    def end(self, lines: Sequence[str], start: int, end: int) -> int:
        """The end of an HTML block, or of the table that starts it."""
        if not _TABLE_STARTS.match(lines[start]):
            return end
        at = bisect_left(self._ends, start)
        last = self._ends[at] if at < len(self._ends) else 0
        whole = last >= end and self._others[end] == self._others[last + 1]
        return last + 1 if whole else end


def _lead(line: str, content: str) -> str:
    """The marks of quotes and items before the first line of a block."""
    text = content.split("\n", 1)[0]
    return line.removesuffix(text) if text else ""


def _nested(
    lines: Sequence[str], start: int, end: int, content: str, hidden: list[HiddenText]
) -> list[Line]:
    """An HTML block that a quote or an item of a list begins with."""
    own = content.split("\n")[: end - start]
    written = _block(own, 0, len(own), hidden)
    if [line.text for line in written] == own:
        return [Line(lines[n], n) for n in range(start, end)]
    lead = _lead(lines[start], content)
    inner = _ITEM_MARK.sub(lambda match: " " * len(match[0]), lead)
    out = [
        Line(f"{inner if number else lead}{line.text}".rstrip(), start + line.start)
        for number, line in enumerate(written)
    ]
    # As for other blocks; an item has its mark for that.
    if inner == lead and start and lines[start - 1].startswith(lead.rstrip()):
        out.insert(0, Line(inner.rstrip(), start))
    if end < len(lines) and lines[end].startswith(inner.rstrip() or inner):
        out.append(Line(inner.rstrip(), end - 1))
    return out


def _block(lines: Sequence[str], start: int, end: int, hidden: list[HiddenText]) -> list[Line]:
    text = "\n".join(lines[start:end])
    if not _ANY_TAG.search(text) or _swallows(text):
        return [Line(lines[n], n) for n in range(start, end)]
    if not _ANY_TAG.sub("", text).strip():
        # Half of an element, or pictures.
        for tag in _ANY_TAG.findall(text):
            _note(tag, hidden)
        return [Line("", start)]
    indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
    written = _Writer(text, hidden).lines
    if not written:
        return [Line("", start)]
    # What was a block of its own stays one, whatever stands beside it.
    if start and lines[start - 1].strip():
        written.insert(0, Line("", 0))
    if end < len(lines) and lines[end].strip():
        written.append(Line("", end - start - 1))
    return [Line(f"{indent}{line}" if line else "", start + at) for line, at in written]


def _swallows(text: str) -> bool:
    """Whether an element or comment has no end, in which an HTML parser would lose what follows."""
    if text.rfind("<!--") > text.rfind("-->"):
        return True
    open_: set[str] = set()
    for match in _SWALLOWS.finditer(text):
        name = match[2].lower()
        (open_.discard if match[1] else open_.add)(name)
    return bool(open_)


class _Writer:
    """Blocks of one piece of HTML."""

    def __init__(self, text: str, hidden: list[HiddenText]) -> None:
        self.lines: list[Line] = []
        text = _without_strays(_raised(text))
        soup = BeautifulSoup(text, "html.parser" if _is_even(text) else "lxml")
        self._starts = _starts(soup, text)
        self._at = 0
        hidden += take_hidden(soup)
        self._blocks(soup, "", 0)

    def _add(self, text: str) -> None:
        self.lines.append(Line(text, self._at))

    def _gap(self, indent: str) -> None:
        if self.lines and self.lines[-1].text.strip(" >"):
            self._add(indent.rstrip())

    def _put(self, runs: list[Run], lead: str, indent: str) -> None:
        """A paragraph; `lead` stands before its first line, `indent` before the others."""
        text = _BLANKS.sub(" ", _line_of(runs))
        lines = [line for line in map(str.strip, text.split("\n")) if line.strip(_BROKEN)]
        for number, line in enumerate(lines):
            joint = "\\" if line.endswith(_BROKEN) and number + 1 < len(lines) else ""
            written = line_start(line.replace(_BROKEN, "").rstrip()) + joint
            self._add(f"{lead if number == 0 else indent}{written}")

    def _blocks(self, node: Any, indent: str, depth: int) -> None:
        """Children of a container: blocks, and what lies between them as paragraphs."""
        runs: list[Run] = []
        for child in node.children:
            if isinstance(child, Tag) and child.name in _BLOCKS and depth < _DEEPEST:
                self._paragraph(runs, indent)
                runs = []
                self._at = max(self._at, self._starts.get(id(child), 0))
                self._block(child, indent, depth + 1)
            else:
                runs += _runs(child, bold=False, italic=False, depth=depth)
        self._paragraph(runs, indent)

    def _paragraph(self, runs: list[Run], indent: str) -> None:
        if any(run.text.strip() for run in runs):
            self._gap(indent)
            self._put(runs, indent, indent)

    def _block(self, tag: Tag, indent: str, depth: int) -> None:
        if tag.name in _HEADINGS:
            text = plain_line(tag.get_text(" "))
            if text:
                self._gap(indent)
                self._add(f"{indent}{'#' * int(tag.name[1])} {span(text)}")
        elif tag.name in _LISTS:
            self._list(tag, indent, depth)
        elif tag.name == "table":
            self._table(tag, indent)
        elif tag.name == "pre":
            self._code(tag, indent)
        elif tag.name == "blockquote":
            self._gap(indent)
            self._blocks(tag, f"{indent}> ", depth)
        elif tag.name != "hr":
            self._blocks(tag, indent, depth)

    def _list(self, tag: Tag, indent: str, depth: int) -> None:
        if tag.find_parent("li") is None:
            self._gap(indent)
        number = int(str(tag.get("start"))) if str(tag.get("start")).isdecimal() else 1
        loose: list[Run] = []
        for item in tag.children:
            if not isinstance(item, Tag) or item.name not in _BLOCKS:
                loose += _runs(item, bold=False, italic=False, depth=depth)
                continue
            self._paragraph(loose, indent)
            loose = []
            self._at = max(self._at, self._starts.get(id(item), 0))
            if item.name != "li":
                self._block(item, indent, depth + 1)
                continue
            self._item(item, f"{number}. " if tag.name == "ol" else "- ", indent, depth)
            number += 1
        self._paragraph(loose, indent)

    def _item(self, item: Tag, mark: str, indent: str, depth: int) -> None:
        runs: list[Run] = []
        inner: list[Tag] = []
        for child in item.children:
            own = isinstance(child, Tag) and child.name in _BLOCKS - {"p"}
            if isinstance(child, Tag) and own and depth < _DEEPEST:
                inner.append(child)
            else:
                runs += _runs(child, bold=False, italic=False, depth=depth)
        deeper = f"{indent}    " if len(indent) < 4 * _DEEPEST_LIST else indent
        if any(run.text.strip() for run in runs):
            self._put(runs, f"{indent}{mark}", deeper)
        for child in inner:
            self._block(child, deeper, depth + 1)

    def _table(self, tag: Tag, indent: str) -> None:
        rows = [row for row in tag.find_all("tr") if row.find_parent("table") is tag]
        self._paragraph(_outside_cells(tag, rows), indent)
        grid = _grid(rows)
        texts = [[_cell(runs) for runs in row] for row in grid]
        if not any(any(row) for row in texts):
            return
        columns = max(map(len, texts))
        self._gap(indent)
        headed = len(rows) == 1 or rows[0].find("th") is not None or has_head(texts)
        head = [_cell(runs, plain=True) for runs in grid[0]] if headed else []
        self._at = max(self._at, self._starts.get(id(rows[0]), 0))
        self._row(head, columns, indent)
        self._add(indent + table_rule(columns))
        for number in range(int(headed), len(texts)):
            self._at = max(self._at, self._starts.get(id(rows[number]), 0))
            self._row(texts[number], columns, indent)
        if indent:
            self._gap(indent)

    def _row(self, texts: Sequence[str], columns: int, indent: str) -> None:
        padded = [*texts, *[""] * (columns - len(texts))]
        self._add(f"{indent}| {' | '.join(padded)} |")

    def _code(self, tag: Tag, indent: str) -> None:
        text = unmarked(tag.get_text()).strip("\n")
        if not text.strip():
            return
        longest = max((len(run) for run in re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        self._gap(indent)
        self._add(indent + fence)
        for line in text.split("\n"):
            self._add(f"{indent}{line}")
        self._add(indent + fence)
        if indent:
            self._gap(indent)


def _raised(text: str) -> str:
    return _SUPERSCRIPT.sub(lambda match: match[1] + raised(match[2]), text)


def _without_strays(text: str) -> str:
    """What is no tag of HTML, has no end and does not end itself is text: `Vec<T>`, `<https://…>`."""
    closed = {name.lower() for name in _CLOSED.findall(text)}

    def literal(match: re.Match[str]) -> str:
        name = match[1].lower()
        is_tag = name in _KNOWN or name in closed or match[2].endswith("/")
        return "<" if is_tag else "&lt;"

    return _STRAY.sub(literal, text)


def _is_even(text: str) -> bool:
    """Whether every element that may go without an end has one: then the parser that closes none
    is right, and the one that does would tear `<h3><p>` apart."""
    counts = Counter(f"{match[1]}{match[2].lower()}" for match in _OPTIONAL_END.finditer(text))
    return all(counts[name] == counts[f"/{name}"] for name in _OPEN_ENDED)


def _starts(soup: BeautifulSoup, text: str) -> dict[int, int]:
    """The line of each element that is worth a place, where the parser put none in or out."""
    found: dict[str, list[int]] = {}
    line = at = 0
    for match in _LINED.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        found.setdefault(match[1].lower(), []).append(line)
    starts: dict[int, int] = {}
    for name, lines in found.items():
        tags = soup.find_all(name)
        if len(tags) == len(lines):
            starts |= {id(tag): line for tag, line in zip(tags, lines, strict=True)}
    return starts


def _cells_of(row: Tag) -> list[Tag]:
    return [cell for cell in row.find_all(["td", "th"]) if cell.find_parent("tr") is row]


def _outside_cells(table: Tag, rows: Sequence[Tag]) -> list[Run]:
    """A caption, and what has no business in a table but is there."""
    cells = {id(cell) for row in rows for cell in _cells_of(row)}
    runs: list[Run] = []
    for text in table.find_all(string=True):
        around = takewhile(lambda tag: tag is not table, text.parents)
        if text.strip() and not any(id(tag) in cells for tag in around):
            runs += [Run(" "), *_text(str(text), bold=False, italic=False)]
    return runs


def _grid(rows: Sequence[Tag]) -> list[list[list[Run]]]:
    """Cells of the rows; merged ones show their text in each of theirs, within reason."""
    grid: list[list[list[Run]]] = []
    below: dict[int, tuple[int, list[Run]]] = {}
    left = _MOST_REPEATED
    for row in rows:
        cells: list[list[Run]] = []
        waiting = _cells_of(row)[::-1]
        while waiting or len(cells) in below:
            if len(cells) in below:
                times, runs = below.pop(len(cells))
                if times > 1:
                    below[len(cells)] = (times - 1, runs)
                cells.append(runs)
                continue
            tag = waiting.pop()
            runs = [run for child in tag.children for run in _cell_runs(child)]
            across, down = _number(tag.get("colspan")), _number(tag.get("rowspan"))
            left -= across * down - 1
            if left < 0:
                across = down = 1
            for _ in range(across):
                if down > 1:
                    below[len(cells)] = (down - 1, runs)
                cells.append(runs)
        grid.append(cells)
    return grid


def _cell(runs: Sequence[Run], *, plain: bool = False) -> str:
    """The text of a cell in one line."""
    text = "".join(run.text for run in runs) if plain else _line_of(runs)
    text = _BLANKS.sub(" ", text.replace(f"{_BROKEN}\n", " ")).strip()
    return _BAR.sub(r"\1\\|", text)


def _line_of(runs: Sequence[Run]) -> str:
    """The runs with emphasis; a link behind `!` is no picture."""
    return _LOUD_LINK.sub(r"\\!", emphasised_runs(runs))


def _number(told: Any) -> int:
    return min(int(told), _MOST_COLUMNS) if str(told or "").isdecimal() and len(told) < 5 else 1


def _cell_runs(node: Any) -> list[Run]:
    """Of blocks in a cell the texts, one after the other."""
    runs = _runs(node, bold=False, italic=False, depth=0)
    is_block = isinstance(node, Tag) and node.name in _BLOCKS
    return [Run(" "), *runs, Run(" ")] if is_block else runs


def _runs(node: Any, *, bold: bool, italic: bool, depth: int) -> list[Run]:
    """What stands in a line, as literal Markdown."""
    if not isinstance(node, Tag) or depth > _DEEPEST:
        return _text(node.get_text(" "), bold=bold, italic=italic)
    if node.name == "br":
        return [Run(f"{_BROKEN}\n")]
    if node.name in _CODE:
        text = plain_line(node.get_text())
        return [Run(f"`{text}`" if text and "`" not in text else span(text))]
    bold, italic = bold or node.name in _BOLD, italic or node.name in _ITALIC
    inner = [
        run
        for child in node.children
        for run in _runs(child, bold=bold, italic=italic, depth=depth + 1)
    ]
    before, behind = _around(node) if any(run.text.strip() for run in inner) else ("", "")
    return [Run(before), *inner, Run(behind)]


def _around(tag: Tag) -> tuple[str, str]:
    """What stands before and behind the text of an element."""
    if tag.name in _STRUCK:
        return "~~", "~~"
    if tag.name in _BLOCKS:
        return " ", " "
    target = linked("x", str(tag.get("href") or "")) if tag.name == "a" else "x"
    return ("[", target[2:]) if target != "x" else ("", "")


def _text(text: str, *, bold: bool, italic: bool) -> list[Run]:
    """Blanks as HTML shows them."""
    core = span(text)
    if not core:
        return [Run(" ")] if text else []
    lead = " " if text[:1].isspace() else ""
    trail = " " if text[-1:].isspace() else ""
    return [Run(f"{lead}{core}{trail}", bold, italic)]
