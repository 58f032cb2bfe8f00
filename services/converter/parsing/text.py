"""Markdown as it is, but for what a reader of the rendered page misses; plain text literally."""

import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from contracts.artifacts import BodyMeta, HiddenText, ParsedDocument, Place
from contracts.events import HiddenKind
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import MARKDOWN
from services.converter.parsing.encoding import decode
from services.converter.parsing.marks import unmarked
from services.converter.parsing.plain import has_headings, literal_line, reads_as_markdown
from services.converter.parsing.result import Parse
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,65536}?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.M | re.S)
_FENCE = re.compile(r"\ufdea* {0,3}(`{3,}|~{3,})")
_BACKTICKS = re.compile(r"`+")
_COMMENT_STARTS = re.compile(r"\ufdea* {0,3}<!--")
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.S)
_REMOVED = "\ufdea"
"""Stands for a line end that went with what was hidden around it."""
_ADDED = "\ufdeb"
"""On a line whose end stands in the text only: the next one is of the same line of the file."""
_SHOWN = re.compile(rf"[^\s{_REMOVED}]")
_LONG_PARAGRAPH = 10
_REFERENCE_COMMENT = re.compile(
    r"^\ufdea* {0,3}\[[^\]\n]{1,99}\]:[ \t]*(?:#|<>|<#>)[ \t]*[\"'(](.*)[\"')][ \t]*$", re.M
)
_OPENING = re.compile(r"<([a-z][a-z0-9]*)\b([^<>]*)>", re.I)
_NEVER_SHOWN = frozenset({"script", "style", "template", "noscript"})
_RAW = frozenset({"script", "style"})
"""Of elements, no other element is within them."""
_LOOKED = re.compile(r"style|hidden|class|color", re.I)
_TRANSPARENT = re.compile(r"(?<![-\w])color\s*:\s*transparent", re.I)
_PAINTED = re.compile(r"\b(?:background|bgcolor)", re.I)


def parse_text(data: bytes, media_type: str, options: ParseOptions | None = None) -> Parse:
    r"""A text file with `\n` line ends: Markdown as it is but for its hidden parts, which are taken
    out; plain text with escapes where Markdown would read a line otherwise. Text that plainly is
    Markdown is read as that, whatever its name.

    Every paragraph has its lines in the file as its place, in long ones (logs, lists) every line.

    Raises:
        Refusal: `invalid-encoding`, `empty-document`, `too-large`.
    """
    text, encoding = decode(data)
    del data
    # Of no character but in a forged mark of ours: `_REMOVED` must be free for use.
    text = unmarked(text)
    warnings = [] if encoding.startswith("utf-8") else [f"decoded as {encoding}"]
    hidden: list[HiddenText] = []
    fields: dict[str, str] = {}
    literal = media_type != MARKDOWN and not reads_as_markdown(text)
    if media_type != MARKDOWN and not literal:
        warnings.append("read as Markdown")
    if not literal:
        text, fields = _front_matter(text, hidden)
        text = _without_hidden(text, hidden)
        text = _rendered(text, hidden)
    if not _SHOWN.search(text):
        raise Refusal("empty-document", "the file has no text")
    lines = _literal(text) if literal else _numbered(text)
    writer = _with_places(lines, (options or ParseOptions()).max_output_bytes)
    del text, lines
    markdown, spans = writer.finish(close=False)
    meta = BodyMeta(
        title=fields.get("title", "")[:500],
        language=UNKNOWN,
        media_type=media_type,
        author=fields.get("author"),
        date=fields.get("date"),
        publication=fields.get("publication"),
    )
    document = ParsedDocument(markdown=markdown, hidden=tuple(hidden), meta=meta, spans=spans)
    return Parse(document, warnings)


# --- places -------------------------------------------------------------------------------------


def _with_places(numbered: Iterator[tuple[str, int, int]], most_bytes: int) -> Writer:
    """The lines, and where their paragraphs stood."""
    writer = Writer(most_bytes)
    lines: list[tuple[str, int, int]] = []
    long = False
    for line, first, last in numbered:
        if not line.strip():
            _write(writer, lines)
            lines, long = [], False
            writer.add(line)
        elif long:
            writer.add(line, Place(lines=(first, last)))
        else:
            lines.append((line, first, last))
            # A log may be one paragraph of millions of lines: they are not gathered.
            if len(lines) > _LONG_PARAGRAPH:
                _write(writer, lines)
                lines, long = [], True
    _write(writer, lines)
    return writer


def _literal(text: str) -> Iterator[tuple[str, int, int]]:
    """The lines of plain text, as Markdown shows them, each with its number twice."""
    headed = has_headings(text)
    return (
        (literal_line(line, headed=headed), first, last) for line, first, last in _numbered(text)
    )


def _numbered(text: str) -> Iterator[tuple[str, int, int]]:
    """Each line with its end, and the numbers of the first and last line that it came from."""
    number, at = 1, 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        line = text[at:end]
        last = number + line.count(_REMOVED)
        first = number + len(line) - len(line.lstrip(_REMOVED))
        added = line.count(_ADDED)
        yield line.replace(_REMOVED, "").replace(_ADDED, ""), first, last
        number, at = last + 1 - added, end


def _write(writer: Writer, lines: list[tuple[str, int, int]]) -> None:
    if len(lines) > _LONG_PARAGRAPH:
        for line, first, last in lines:
            writer.add(line, Place(lines=(first, last)))
    elif lines:
        place = Place(lines=(lines[0][1], lines[-1][2]))
        writer.add("".join(line for line, _, _ in lines), place)


def _rendered(text: str, hidden: list[HiddenText]) -> str:
    """Markdown in the place of raw HTML, with signs for the line ends that came or went."""
    from services.converter.parsing.raw_html import has_html, without_html

    if not has_html(text):
        return text
    lines = text.split("\n")
    bare = [line.replace(_REMOVED, "") for line in lines]
    gone = [line.count(_REMOVED) for line in lines]
    written = without_html(bare, hidden)
    starts = [line.start for line in written[1:]] + [len(lines)]
    out: list[str] = []
    for (part, start), end in zip(written, starts, strict=True):
        removed = sum(gone[start:end]) + max(0, end - start - 1)
        if bare[start] == part and end == start + 1:
            out.append(lines[start])
        else:
            out.append(part + _REMOVED * removed + (_ADDED if end == start else ""))
    return "\n".join(out)


# --- hidden parts -------------------------------------------------------------------------------


def take_hidden(markdown: str, hidden: list[HiddenText]) -> str:
    """`markdown` (no code in it) without comments and invisible elements; those go to `hidden`.

    What went leaves a `_REMOVED` for each of its line ends.
    """

    def note(kind: HiddenKind, text: str) -> None:
        text = text.replace(_REMOVED, "\n").strip()
        if text:
            hidden.append(HiddenText(kind=kind, text=text))

    def comment(match: re.Match[str]) -> str:
        note("comment", match[1])
        return _removed(match[0])

    markdown = _COMMENT.sub(comment, markdown)
    markdown = _REFERENCE_COMMENT.sub(comment, markdown)
    kept: list[str] = []
    at = 0
    for kind, start, inside, close, end in _invisible(markdown):
        note(kind, markdown[inside:close])
        kept += [markdown[at:start], _removed(markdown[start:end])]
        at = end
    return "".join([*kept, markdown[at:]])


def _invisible(markdown: str) -> Iterator[tuple[HiddenKind, int, int, int, int]]:
    """Elements that show nothing: why, start, start of the content, its end, end."""
    at = 0
    # What has no end is looked for once, and not from each of a thousand openings.
    unclosed: set[str] = set()
    uneven: set[str] = set()
    unseen = cache(partial(_unseen, on_white=_PAINTED.search(markdown) is None))
    for opening in _OPENING.finditer(markdown):
        name = opening[1].lower()
        if opening.start() < at or name in unclosed:
            continue
        kind = unseen(name, opening[2])
        if kind is None:
            continue
        closing = _closing(markdown, name, opening.end(), uneven)
        if closing is None:
            unclosed.add(name)
            continue
        yield kind, opening.start(), opening.end(), closing.start(), closing.end()
        at = closing.end()


def _unseen(name: str, attributes: str, *, on_white: bool) -> HiddenKind | None:
    """Why an element of this look shows nothing."""
    if name in _NEVER_SHOWN:
        return "invisible-style"
    if not _LOOKED.search(attributes):
        return None
    from services.converter.parsing.visibility import unseen_kind

    if _TRANSPARENT.search(attributes) and "clip" not in attributes:
        return "invisible-style"
    return unseen_kind(f"<{name}{attributes}>", on_white=on_white)


def _closing(markdown: str, name: str, at: int, uneven: set[str]) -> re.Match[str] | None:
    """The end tag of an element of which others may lie within it; where they do not pair, which
    `uneven` keeps, the first one."""
    first: re.Match[str] | None = None
    depth = 1
    for tag in re.compile(rf"<(/?){name}(?=[\s/>])[^<>]*>", re.I).finditer(markdown, at):
        depth += -1 if tag[1] else 1
        first = first or (tag if tag[1] else None)
        if first and (not depth or name in _RAW or name in uneven):
            return first if depth else tag
    uneven.add(name)
    return first


def _removed(text: str) -> str:
    return _REMOVED * (text.count("\n") + text.count(_REMOVED))


def _without_hidden(text: str, hidden: list[HiddenText]) -> str:
    """`take_hidden` of everything but fenced blocks and code spans."""

    def change(part: str) -> str:
        return take_hidden(part, hidden)

    return "".join(
        part if code else outside_spans(part, change, hidden) for code, part in _fences(text)
    )


def _fences(text: str) -> Iterator[tuple[bool, str]]:
    """The text in runs of lines, each with whether it is a fenced block."""
    run: list[str] = []
    fence = ""
    comment = False
    at, last = 0, text.rfind("-->")
    for line in text.splitlines(keepends=True):
        at += len(line)
        if comment or (not fence and at <= last and _opens_comment(line)):
            # What stands in a comment begins no code.
            comment = "-->" not in line.rpartition("<!--")[2]
            run.append(line)
            continue
        mark = _FENCE.match(line)
        if mark and not fence:
            yield False, "".join(run)
            run, fence = [line], mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            yield True, "".join([*run, line])
            run, fence = [], ""
        else:
            run.append(line)
    yield bool(fence), "".join(run)


def _opens_comment(line: str) -> bool:
    return bool(_COMMENT_STARTS.match(line)) and "-->" not in line.rpartition("<!--")[2]


def outside_spans(text: str, change: Callable[[str], str], hidden: list[HiddenText]) -> str:
    """`change` applied to everything but code spans; it may add to `hidden`.

    Those are put aside, since a comment may contain one and the other way round.
    """
    spans: list[str] = []
    kept: list[str] = []
    at = 0
    for start, end in _code_spans(text):
        kept += [text[at:start], f"\0{len(spans)}\0"]
        spans.append(text[start:end])
        at = end
    before = len(hidden)

    def whole(part: str) -> str:
        return re.sub(r"\0(\d+)\0", lambda match: spans[int(match[1])], part)

    changed = whole(change("".join([*kept, text[at:]])))
    # What is hidden is told with the words that it puts between backticks.
    hidden[before:] = [
        one.model_copy(update={"text": whole(one.text)}) if "\0" in one.text else one
        for one in hidden[before:]
    ]
    return changed


def _code_spans(text: str) -> Iterator[tuple[int, int]]:
    """From a run of backticks to the next one of its length in the same paragraph."""
    runs = [match.span() for match in _BACKTICKS.finditer(text)]
    by_size: dict[int, deque[int]] = {}
    for number, (start, end) in enumerate(runs):
        by_size.setdefault(end - start, deque()).append(number)
    number = 0
    while number < len(runs):
        start, end = runs[number]
        same = by_size[end - start]
        while same and same[0] <= number:
            same.popleft()
        if same and text.find("\n\n", end, runs[same[0]][0]) < 0:
            number = same[0]
            yield start, runs[number][1]
        number += 1


def _front_matter(text: str, hidden: list[HiddenText]) -> tuple[str, dict[str, str]]:
    """The text behind the document's own YAML front matter, and what that says.

    All of it is kept as hidden text: nobody who reads the page sees it.
    """
    match = _FRONT_MATTER.match(text)
    data = _yaml(match[1]) if match else None
    if match is None or not isinstance(data, dict):
        return text, {}
    if match[1].strip():
        hidden.append(HiddenText(kind="metadata", text=match[1].strip()))
    names = {"title": "title", "author": "author", "authors": "author", "date": "date",
             "publication": "publication", "publisher": "publication"}  # fmt: skip
    fields: dict[str, str] = {}
    for key, value in data.items():
        name = names.get(str(key).lower())
        line = _line(value)
        if name and line:
            fields.setdefault(name, line)
    return _removed(match[0]) + text[match.end() :], fields


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _line(value: Any) -> str:
    """A scalar or a list of scalars as one line."""
    values = value if isinstance(value, list) else [value]
    flat = [str(v) for v in values[:50] if v is not None and not isinstance(v, dict | list)]
    return re.sub(r"\s+", " ", ", ".join(flat)).strip()[:500]
