"""From a parse to the canonical body: noise out, headings recovered, Markdown in one form. Pure."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from contracts.artifacts import BodyMeta, ParsedDocument
from services.converter.headings import recover_headings
from services.converter.noise import without_noise

CONVERTER = "canonical-1"
"""Name of this form; a new number whenever the same parse would give another body."""

_LINE_ENDS = re.compile(r"\r\n?|[\v\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f]")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`\n]*)$")
_ATX = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_PARAGRAPH_START = re.compile(r"^ {0,3}(?![#>|`~]|[-*+] |\d{1,9}[.)] )\S")
_RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")


def canonical(parsed: ParsedDocument, fallback_title: str) -> tuple[str, BodyMeta]:
    r"""The body of a document and its metadata.

    The body is Markdown with `\n` line ends, one blank line between blocks, ATX headings, no
    trailing blanks, closed fences and a last line end; it has no front matter and cannot be taken
    for one. Made canonical again it stays the same. It is empty only if the parse was.

    Args:
        parsed: what the parser saw.
        fallback_title: the title if neither metadata nor a first-level heading gives one.
    """
    plain = _normalised(parsed.markdown)
    cleaned = _normalised(without_noise(plain, parsed.meta.media_type))
    body = _normalised(recover_headings(cleaned)) or _normalised(plain.replace("\f", "\n"))
    # Not from the recovered headings: `Chapter I` is the title of no law.
    title = parsed.meta.title or _first_heading(cleaned) or fallback_title.strip()[:500]
    return body, parsed.meta.model_copy(update={"title": title})


def front_matter(meta: BodyMeta, fields: Mapping[str, Any]) -> str:
    """YAML front matter for the view of a body: `meta` first, then `fields`, None left out."""
    import yaml

    known = {name: value for name, value in meta.model_dump().items() if value is not None}
    known |= {name: value for name, value in fields.items() if value is not None}
    text = yaml.safe_dump(known, allow_unicode=True, sort_keys=False, width=10_000)
    return f"---\n{text}---\n"


# --- normal form ------------------------------------------------------------------------------


def _normalised(markdown: str) -> str:
    """One form for one meaning. Code keeps every character of its lines but trailing blanks."""
    text = unicodedata.normalize("NFC", _CONTROLS.sub("", _LINE_ENDS.sub("\n", markdown)))
    lines = [(code, line.rstrip(" \t")) for code, line in _marked(text.split("\n"))]
    return _spaced(_with_atx(lines))


def _marked(lines: Sequence[str]) -> Iterator[tuple[bool, str]]:
    """Each line with whether it belongs to a fenced block; an open fence is closed."""
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
        if not fence:
            fence = match[1] if match else ""
            yield bool(fence), line
            continue
        yield True, line
        if match and match[1].startswith(fence) and not match[2].strip():
            fence = ""
    if fence:
        yield True, fence


def _with_atx(lines: Sequence[tuple[bool, str]]) -> list[tuple[bool, str]]:
    """Headings as `## Text`, whichever way they were written; empty ones are left out."""
    out: list[tuple[bool, str]] = []
    for code, line in lines:
        underline = None if code else _SETEXT.match(line)
        if underline and _heads(out):
            out[-1] = (False, f"{'#' if underline[1][0] == '=' else '##'} {out[-1][1].strip()}")
            continue
        heading = None if code else _ATX.match(line)
        if heading is None:
            out.append((code, line))
        elif heading[2] and heading[2].strip("#").strip():
            out.append((False, f"{heading[1]} {heading[2].strip()}"))
    return out


def _heads(lines: Sequence[tuple[bool, str]]) -> bool:
    """Whether the last line is a paragraph of one line, which an underline makes a heading."""
    if not lines or lines[-1][0] or not _PARAGRAPH_START.match(lines[-1][1]):
        return False
    return len(lines) == 1 or not lines[-2][1].strip() or lines[-2][0] or _is_heading(lines[-2][1])


def _is_heading(line: str) -> bool:
    return re.match(r"#{1,6} ", line) is not None


def _spaced(lines: Sequence[tuple[bool, str]]) -> str:
    """Blank lines: one around headings and fenced blocks, never two, none at the ends."""
    out: list[str] = []
    before_code = False
    for code, line in lines:
        edge = (code != before_code) or (not code and _is_heading(line))
        after_heading = bool(out) and not before_code and _is_heading(out[-1])
        if out and out[-1] and line and (edge or after_heading):
            out.append("")
        if line or code or (out and out[-1]):
            out.append(line)
        before_code = code
    while out and not out[-1]:
        out.pop()
    while out and (not out[0] or _RULE.match(out[0])):
        out.pop(0)
    return "\n".join(out) + "\n" if out else ""


# --- title ------------------------------------------------------------------------------------


def _first_heading(body: str) -> str:
    """The text of the first heading of the first level, without markup."""
    for code, line in _marked(body.split("\n")):
        if not code and line.startswith("# "):
            return plain_text(line[2:2002])[:500]
    return ""


def plain_text(markdown: str) -> str:
    """A line of Markdown as a reader sees it."""
    steps: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
        (r"!?\[([^\]]*)\]\([^)]*\)", r"\1"),
        (r"`+([^`]*)`+", r"\1"),
        (r"(\*\*|__|~~)(.+?)\1", r"\2"),
        (r"(?<![\w*])\*([^*]+)\*(?![\w*])", r"\1"),
        (r"<[^<>]*>", ""),
        (r"\\([\\`*_{}\[\]()#+\-.!<>|~])", r"\1"),
        (r"\s+", " "),
    )
    for pattern, replacement in steps:
        markdown = re.sub(pattern, replacement, markdown)
    return markdown.strip()
