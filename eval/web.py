"""Article extraction side by side: `python -m eval.web` on trafilatura's own evaluation pages.

Its protocol: of each page, segments that must be in the text and segments that must not, at most
six of each; white space does not count. "of the Markdown" looks for them in the Markdown as it
is stored, with its marks of links and code; "its text" is what that Markdown shows to a reader.
Rows are scored on all pages and on the two halves by file name: rules may be fitted on the first
half only.
"""

import hashlib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from eval.corpus import EVALDATA

PAGES = EVALDATA / "parsing" / "trafilatura"
_MOST_SEGMENTS = 6


class Page(NamedTuple):
    """A page with its segments; `half` is 0 or 1."""

    file: str
    data: bytes
    wanted: list[str]
    unwanted: list[str]
    half: int


class Score(NamedTuple):
    """Shares, 0 to 1."""

    precision: float
    recall: float
    f1: float
    accuracy: float


def pages() -> list[Page]:
    """All annotated pages.

    Raises:
        FileNotFoundError: evaluation data is not there.
    """
    rows = (PAGES / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    return [_page(json.loads(row)) for row in rows if row.strip()]


def _page(row: dict[str, Any]) -> Page:
    # A hash, so that neighbours in the list and pages of one site fall apart by chance.
    half = hashlib.sha256(row["file"].encode()).digest()[0] >> 4 & 1
    wanted, unwanted = (
        [_squeezed(s) for s in row[k][:_MOST_SEGMENTS]] for k in ("with", "without")
    )
    return Page(row["file"], (PAGES / row["file"]).read_bytes(), wanted, unwanted, half)


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def score(found: Iterable[tuple[Page, str]]) -> Score:
    """Segments found, over all pages together."""
    counts: Counter[str] = Counter()
    for page, raw in found:
        text = _squeezed(raw)
        counts.update("tp" if segment in text else "fn" for segment in page.wanted)
        counts.update("fp" if segment in text else "tn" for segment in page.unwanted)
    tp, fn, fp, tn = (counts[name] for name in ("tp", "fn", "fp", "tn"))
    precision, recall = tp / max(1, tp + fp), tp / max(1, tp + fn)
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    return Score(precision, recall, f1, (tp + tn) / max(1, tp + fn + fp + tn))


def markdown_of(data: bytes) -> str:
    """Ours, as it is stored; empty for a page that is refused."""
    from kernel.errors import Refusal
    from services.converter.parsing.html import parse_html
    from services.converter.settings import ParseOptions

    try:
        return parse_html(data, ParseOptions()).document.markdown
    except Refusal:
        return ""


def shown(markdown: str) -> str:
    """What Markdown shows: text without the marks of links, code, tables and headings.

    The numbers of ordered lists are shown, the dots of others are no text.
    """
    from markdown_it import MarkdownIt

    lines = []
    number = ""
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown):
        if token.type == "list_item_open":
            number = f"{token.info}{token.markup} " if token.info else ""
        elif token.type == "inline":
            children = token.children or []
            blank = {"softbreak", "hardbreak"}
            line = "".join(c.content or " " * (c.type in blank) for c in children)
            lines.append(number + line)
            number = ""
        elif token.type in {"fence", "code_block"}:
            lines.append(token.content)
    return "\n".join(lines)


def _trafilatura(**options: Any) -> Callable[[bytes], str]:
    def extract(data: bytes) -> str:
        import trafilatura

        return trafilatura.extract(data, **options) or ""

    return extract


def _baseline(data: bytes) -> str:
    import trafilatura

    return str(trafilatura.baseline(data)[1])


def _whole_page(data: bytes) -> str:
    import trafilatura

    return str(trafilatura.html2txt(data))


def _justext(data: bytes) -> str:
    import justext  # type: ignore[import-untyped]

    words = justext.get_stoplist("English") | justext.get_stoplist("German")
    found = justext.justext(data, words)
    return "\n".join(p.text for p in found if not p.is_boilerplate)


def extractors() -> dict[str, Callable[[bytes], str]]:
    """Name to function from the bytes of a page to text."""
    return {
        "citelog, of the Markdown": markdown_of,
        "citelog, its text": lambda data: shown(markdown_of(data)),
        "trafilatura, default": _trafilatura(),
        "trafilatura, no comments": _trafilatura(include_comments=False),
        "trafilatura, precision": _trafilatura(include_comments=False, favor_precision=True),
        "trafilatura, recall": _trafilatura(include_comments=False, favor_recall=True),
        "trafilatura, fast": _trafilatura(include_comments=False, fast=True),
        "trafilatura, its Markdown with links": _trafilatura(
            include_comments=False, output_format="markdown", include_links=True
        ),
        "trafilatura, baseline": _baseline,
        "trafilatura, html2txt": _whole_page,
        "jusText, en + de": _justext,
    }


def _row(name: str, extract: Callable[[bytes], str], given: list[Page]) -> str:
    begin = time.perf_counter()
    found = [(page, extract(page.data)) for page in given]
    rate = len(given) / (time.perf_counter() - begin)
    whole = score(found)
    halves = [score(pair for pair in found if pair[0].half == half).f1 for half in (0, 1)]
    figures = [*whole, *halves]
    return f"| {name} | {' | '.join(f'{x:.3f}' for x in figures)} | {rate:.1f} |"


def large_pages() -> dict[str, str]:
    """Pages of many elements of one kind, named by what there are many of."""
    count = range(20_000)
    law = (
        "<section><h2>Article {n}</h2><p>1. Rules relating to {n}.</p><table><tr><td>(a)</td>"
        "<td><p>the first of {n}</p></td></tr></table></section>"
    )
    kinds = {
        "paragraphs": ("", "<p>Paragraph {n} of a long page, with a few words more.</p>"),
        "articles of a law": ("", law),
        "line breaks": ("<p>", "line {n}<br>"),
        "links": ("<p>", "see <a href='http://x.org/{n}'>link {n}</a> and "),
        "inline elements": ("<p>", "word <b>bold {n}</b> <span>x</span> "),
        "rows": ("<table>", "<tr><td>{n}<td>row {n}<td>value"),
        "items": ("<ol>", "<li>item number {n}"),
        "bare signs": ("<p>text", "<<<<<<<<<<"),
        "empty elements": ("<p>text</p>", "<div></div><p></p>"),
    }
    return {
        name: begin + "".join(piece.replace("{n}", str(n)) for n in count)
        for name, (begin, piece) in kinds.items()
    }


def _large() -> int:
    print("| 20,000 of | MB | CPU s | CPU s/MB |")
    print("|---|---|---|---|")
    for name, page in large_pages().items():
        begin = time.process_time()
        markdown_of(page.encode())
        spent, size = time.process_time() - begin, len(page) / 1e6
        print(f"| {name} | {size:.2f} | {spent:.1f} | {spent / size:.1f} |", flush=True)
    return 0


def main(arguments: list[str]) -> int:
    """Print the table; with `--large`, what large pages take."""
    if "--large" in arguments:
        markdown_of(b"<p>libraries are loaded before the clock starts")
        return _large()
    if not Path(PAGES).exists():
        print(f"not measured: {PAGES} is not there", file=sys.stderr)
        return 1
    given = pages()
    markdown_of(given[0].data)  # libraries are loaded before the clock starts
    print(f"{len(given)} pages, {sum(page.half == 0 for page in given)} in the first half")
    print("| extractor | precision | recall | F1 | accuracy | F1 half 1 | F1 half 2 | pages/s |")
    print("|---|---|---|---|---|---|---|---|")
    for name, extract in extractors().items():
        print(_row(name, extract, given), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
