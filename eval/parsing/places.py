"""Whether the places that come with a body lead back to the text's own page."""

import re
from pathlib import Path
from typing import Any

_LETTERS = re.compile(r"[^\W_]+")
_ADDRESS = re.compile(r"\]\([^)\s]*\)")
_ENOUGH = 0.8


def score(path: Path, answer: dict[str, Any]) -> dict[str, float]:
    """Two measures of an answer with spans `(byte_start, byte_end, page)`; none without.

    placed: share of the letters and digits of the body that lie in a span. on page: share of the
    spans with a page of which at least 80 % of the words stand in the text of that page of the PDF
    at `path`, read by pdfium; left out for other formats.
    """
    spans = answer.get("spans")
    if spans is None or not answer.get("text"):
        return {}
    body = str(answer["text"]).encode()
    pieces = [(body[start:end].decode("utf-8", "replace"), page) for start, end, page in spans]
    inside = sum(_count(text) for text, _ in pieces)
    scores = {"placed": inside / max(1, _count(body.decode("utf-8", "replace")))}
    pages = page_words(path) if path.suffix == ".pdf" else []
    # A scan has no text layer to look it up in.
    paged = [(text, n) for text, n in pieces if n and (n > len(pages) or pages[n - 1])]
    if pages and paged:
        scores["on page"] = _right(paged, pages) / len(paged)
    return scores


def page_words(path: Path) -> list[set[str]]:
    """The words of each page, all cut to letters and digits."""
    import pypdfium2

    document = pypdfium2.PdfDocument(path)
    try:
        texts = [page.get_textpage().get_text_range() for page in document]
    finally:
        document.close()
    return [{w.casefold() for w in _LETTERS.findall(text)} for text in texts]


def _right(spans: list[tuple[str, int]], pages: list[set[str]]) -> int:
    right = 0
    for text, page in spans:
        words = [w.casefold() for w in _LETTERS.findall(text)]
        there = pages[page - 1] if page <= len(pages) else set()
        right += sum(w in there for w in words) >= _ENOUGH * len(words)
    return right


def _count(text: str) -> int:
    """Letters and digits that a reader sees: addresses of links are none of them."""
    return sum(len(word) for word in _LETTERS.findall(_ADDRESS.sub("]", text)))
