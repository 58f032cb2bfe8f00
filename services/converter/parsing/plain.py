"""Plain text as Markdown that shows it: no line of it becomes code, markup or a heading."""

import re
from itertools import islice

from services.converter.parsing.markdown import literal_tags

_ENDS = r"\n\v\f\x1c-\x1e\x85\u2028\u2029"
"""What ends a line of the canonical form."""
_TICK = r"`\u1fef"
"""The Greek varia is a backtick in NFC."""
_SPECIAL = re.compile(rf"[<#~{_TICK}]|\]:")
_TAG = re.compile("<[A-Za-z/!?]")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f]")
# Quotes and items in front of it hold a block, too. A definition of a link would not be shown.
_BLOCK = re.compile(
    r"([ \t]*+(?:(?:>|(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]))[ \t]*+)*+)"
    rf"(#{{1,6}}(?=[ \t{_ENDS}]|\Z)|[{_TICK}]{{3,}}(?=[^{_TICK}{_ENDS}]*+(?:[{_ENDS}]|\Z))|~{{3,}}"
    rf"|\[?(?:\\.|[^\[\]\\{_ENDS}]){{0,999}}+\]:"
    rf"(?=[ \t]*+\S*+(?:[ \t]+[\"'(]|[ \t]*+(?:[{_ENDS}]|\Z))))"
)
_HEADING = re.compile(r"#{1,6}[ \t]+\S.*(?<![.,;\s])")
_LONGEST_HEADING = 200
_LEAST_HEADINGS, _MOST_HEADINGS = 2, 10_000
_MARKS = re.compile(r"^(?:(`{3,}|~{3,})[^`\n]*|#{1,6}(?=[ \t]).*)$", re.MULTILINE)
_LINK = re.compile(r"(?<!\\)\[[^\[\]\n]{1,200}\]\([^()\s]{1,500}\)")
_MARKDOWN_HEADINGS, _MOST_ODD = 3, 0.1


def literal_line(line: str, *, headed: bool = False) -> str:
    """A line of plain text, ends and indent kept; what would be a block or a tag is escaped.

    Args:
        line: with its end, or without.
        headed: `# …` at its very start heads a section; see `has_headings`.
    """
    if _SPECIAL.search(line) is None:
        return line
    # Before anything else: they go in the canonical form, and may part what makes a mark.
    line = _CONTROLS.sub("", line)
    if _TAG.search(line):
        line = literal_tags(line)
    if headed and line.startswith("#"):
        return line
    return "".join(map(_escaped, line.splitlines(keepends=True)))


def _escaped(line: str) -> str:
    match = _BLOCK.match(line)
    if match is None:
        return line
    before, mark = match.groups()
    rest = line[match.end() :]
    if mark[0] == "#":
        return f"{before}\\{mark}{rest}"
    if mark.endswith("]:"):
        return f"{before}{mark[:-2]}\\]:{rest}"
    return before + "".join(f"\\{sign}" for sign in mark) + rest


def has_headings(text: str) -> bool:
    """Whether `# …` heads sections, as where Markdown is called text, and is no comment.

    There are two such lines at least, and all that begin with the sign are short, do not end like
    a sentence and stand between blank lines.

    Args:
        text: with line ends of one sign.
    """
    starts = [0] if text.startswith("#") else []
    starts += islice((match.start() + 1 for match in re.finditer("\n#", text)), _MOST_HEADINGS)
    return len(starts) >= _LEAST_HEADINGS and all(_heads(text, at) for at in starts)


def reads_as_markdown(text: str) -> bool:
    """Whether a text is Markdown, whatever its name says.

    Outside its code there are three headings or more, of two levels at least; nine in ten of the
    lines that look like one stand alone as `has_headings` wants it; and it has what no plain text
    has, a link or code between fences. Every fence is closed, so none swallows what follows.

    Args:
        text: with line ends of one sign.
    """
    fence, fences, good, odd = "", 0, 0, 0
    levels: set[int] = set()
    for match in islice(_MARKS.finditer(text), _MOST_HEADINGS):
        mark = match[1]
        if fence:
            bare = mark is not None and match[0].strip() == mark
            if bare and mark[0] == fence[0] and len(mark) >= len(fence):
                fence, fences = "", fences + 1
        elif mark is not None:
            fence = mark
        elif _heads(text, match.start()):
            good += 1
            levels.add(len(match[0]) - len(match[0].lstrip("#")))
        else:
            odd += 1
    return (
        not fence
        and good >= _MARKDOWN_HEADINGS
        and len(levels) > 1
        and odd <= _MOST_ODD * good
        and (fences > 0 or _LINK.search(text) is not None)
    )


def _heads(text: str, at: int) -> bool:
    line = text[at : at + _LONGEST_HEADING].partition("\n")[0]
    end = at + len(line)
    above, below = text[max(0, at - 2) : at], text[end : end + 2]
    alone = above in ("", "\n\n") and below in ("", "\n", "\n\n")
    return alone and _HEADING.fullmatch(line) is not None
