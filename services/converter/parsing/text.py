"""Markdown and plain text: kept as they are, but for what a reader of the rendered page misses."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from contracts.artifacts import BodyMeta, HiddenKind, HiddenText, ParsedDocument, Place, Span
from kernel.errors import Refusal
from kernel.language import UNKNOWN
from kernel.media import MARKDOWN
from services.converter.parsing.encoding import decode
from services.converter.parsing.marks import unmarked
from services.converter.parsing.result import Parse
from services.converter.parsing.writer import Writer
from services.converter.settings import ParseOptions

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,65536}?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.M | re.S)
_FENCE = re.compile(r"\ufdea* {0,3}(`{3,}|~{3,})")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.S)
_REMOVED = "\ufdea"
"""Stands for a line end that went with what was hidden around it."""
_LONG_PARAGRAPH = 10
_REFERENCE_COMMENT = re.compile(
    r"^\ufdea* {0,3}\[[^\]\n]{1,99}\]:[ \t]*(?:#|<>|<#>)[ \t]*[\"'(](.*)[\"')][ \t]*$", re.M
)
_INVISIBLE_ELEMENT = re.compile(
    r"<(script|style|template|noscript|(?P<tag>[a-z][a-z0-9]*)\b[^<>]*?(?:"
    r"\bhidden\b|display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0[;\"'\s]"
    r"))[^<>]*>(?P<text>.*?)</(?:(?P=tag)|\1)\s*>",
    re.I | re.S,
)


def parse_text(data: bytes, media_type: str, options: ParseOptions | None = None) -> Parse:
    r"""A text file as it is, with `\n` line ends; hidden parts of Markdown taken out.

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
    if media_type == MARKDOWN:
        text, fields = _front_matter(text, hidden)
        text = _outside_code(text, lambda part: take_hidden(part, hidden))
    if not text.replace(_REMOVED, "").strip():
        raise Refusal("empty-document", "the file has no text")
    markdown, spans = _with_places(text, (options or ParseOptions()).max_output_bytes)
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


def _with_places(text: str, most_bytes: int) -> tuple[str, tuple[Span, ...]]:
    """The text without the traces of what was removed, and where its paragraphs stood."""
    writer = Writer(most_bytes)
    lines: list[tuple[str, int, int]] = []
    for line, first, last in _numbered(text):
        if line.strip():
            lines.append((line, first, last))
            continue
        _write(writer, lines)
        lines = []
        writer.add(line)
    _write(writer, lines)
    return writer.finish(close=False)


def _numbered(text: str) -> Iterator[tuple[str, int, int]]:
    """Each line with its end, and the numbers of the first and last line that it came from."""
    number, at = 1, 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        line = text[at:end]
        last = number + line.count(_REMOVED)
        first = number + len(line) - len(line.lstrip(_REMOVED))
        yield line.replace(_REMOVED, ""), first, last
        number, at = last + 1, end


def _write(writer: Writer, lines: list[tuple[str, int, int]]) -> None:
    if len(lines) > _LONG_PARAGRAPH:
        for line, first, last in lines:
            writer.add(line, Place(lines=(first, last)))
    elif lines:
        place = Place(lines=(lines[0][1], lines[-1][2]))
        writer.add("".join(line for line, _, _ in lines), place)


# --- hidden parts -------------------------------------------------------------------------------


def take_hidden(markdown: str, hidden: list[HiddenText]) -> str:
    """`markdown` (no code in it) without comments and invisible elements; those go to `hidden`.

    What went leaves a `_REMOVED` for each of its line ends.
    """

    def taken(kind: HiddenKind, group: str | int) -> Callable[[re.Match[str]], str]:
        def take(match: re.Match[str]) -> str:
            text = match[group].replace(_REMOVED, "\n").strip()
            if text:
                hidden.append(HiddenText(kind=kind, text=text))
            return _removed(match[0])

        return take

    markdown = _COMMENT.sub(taken("comment", 1), markdown)
    markdown = _REFERENCE_COMMENT.sub(taken("comment", 1), markdown)
    return _INVISIBLE_ELEMENT.sub(taken("invisible-style", "text"), markdown)


def _removed(text: str) -> str:
    return _REMOVED * (text.count("\n") + text.count(_REMOVED))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """`change` applied to everything but fenced blocks and code spans."""
    return "".join(part if code else _outside_spans(part, change) for code, part in _fences(text))


def _fences(text: str) -> Iterator[tuple[bool, str]]:
    """The text in runs of lines, each with whether it is a fenced block."""
    run: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
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


def _outside_spans(text: str, change: Callable[[str], str]) -> str:
    """Code spans are put aside, since a comment may contain one and the other way round."""
    spans: list[str] = []

    def aside(match: re.Match[str]) -> str:
        if "\n\n" in match[0]:
            return match[0]
        spans.append(match[0])
        return f"\0{len(spans) - 1}\0"

    changed = change(_CODE_SPAN.sub(aside, text))
    return re.sub(r"\0(\d+)\0", lambda match: spans[int(match[1])], changed)


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
