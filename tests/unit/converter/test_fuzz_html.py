"""Whatever bytes say that they are HTML: read or refused, the same twice, places in order."""

import re
from unittest.mock import patch

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from contracts.artifacts import ParsedDocument
from kernel.errors import Refusal
from services.converter.parsing import html
from services.converter.parsing.html import parse_html
from services.converter.settings import ParseOptions

bounded = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

BLOCKS = [
    "p", "div", "h1", "h2", "h6", "ul", "ol", "li", "dl", "dt", "dd", "table", "tr", "td", "th",
    "tbody", "tfoot", "caption", "pre", "blockquote", "figure", "figcaption", "details", "summary",
    "section", "article", "header", "address", "center", "fieldset", "main", "body", "html",
]  # fmt: skip
INLINE = [
    "a href='http://x.org/y'", "a", "b", "code", "span", "sup", "sub", "s", "q", "ruby", "rt", "em",
    "math", "kbd", "font color=red", "o:p", "label", "time",
]  # fmt: skip
ODD = [
    "<br>", "<hr>", "<img alt=x src=y>", "<!-- c -->", "<![CDATA[x]]>", "<?pi?>", "</p>", "<", "&",
    "&#xFDE0;&#xFDD0;&#xFDE1;", "\ufdd0", "<script>", "<style>", "<p hidden>", "<template>", "\0",
    "<table><tr><td rowspan=9999999 colspan=9999999>", "<ol type=a start=999>", "\u200b", "\u202e",
    "<pre>", "<textarea>", "<plaintext>", "<svg><p>", "<noscript>", "<frameset>",
    "<base href='//'>", "<meta charset=utf-16>", "<a href='http://[x'>", "```", "\n---\n",
    "<p style='color:#fff'>",
]  # fmt: skip
WORDS = st.sampled_from([f"word{n}x" for n in range(40)])


def read(data: bytes, *, article: bool = True) -> ParsedDocument | None:
    """The parse, or None for a refusal; whatever else is raised fails the test."""
    try:
        return parse_html(data, ParseOptions(), article=article).document
    except Refusal:
        return None


def check(data: bytes) -> None:
    document = read(data)
    assert read(data) == document
    if document is None:
        return
    text = document.markdown.encode()
    at = 0
    for span in document.spans:
        assert at <= span.byte_start < span.byte_end <= len(text)
        assert text[span.byte_start : span.byte_end].decode().strip()
        assert (span.place.path or "").startswith("/")
        at = span.byte_end
    assert re.search("[\ufdd0-\ufdef]", document.markdown) is None


@bounded
@given(st.binary(max_size=300))
@example(b"<meta" * 2000)
@example(b"\xff\xfe<p>")
@example(b"<" * 3000)
@example(b"\\" * 3000 + b"<p>")
def test_random_bytes(data: bytes) -> None:
    check(data)


soup = st.lists(
    st.one_of(
        st.sampled_from([f"<{name}>" for name in BLOCKS + INLINE]),
        st.sampled_from([f"</{name.split()[0]}>" for name in BLOCKS + INLINE]),
        st.sampled_from(ODD),
        WORDS,
        st.text(max_size=5),
    ),
    max_size=60,
).map("".join)


@bounded
@given(soup)
def test_random_tag_soup(page: str) -> None:
    check(page.encode("utf-8", "replace"))


def _element(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(
        st.sampled_from([name for name in BLOCKS + INLINE if name not in {"body", "html", "math"}]),
        st.lists(children, min_size=1, max_size=4),
    ).map(lambda pair: f"<{pair[0]}>{' '.join(pair[1])}</{pair[0].split()[0]}>")


trees = st.lists(st.recursive(WORDS, _element, max_leaves=12), min_size=1, max_size=4)


@bounded
@given(trees)
def test_no_word_of_a_small_page_is_lost(parts: list[str]) -> None:
    check_words(parts)


@bounded
@given(trees, soup)
def test_no_word_of_a_large_page_is_lost(parts: list[str], page: str) -> None:
    with patch.object(html, "_LARGE", 0):
        check_words(parts)
        check(page.encode("utf-8", "replace"))


def check_words(parts: list[str]) -> None:
    page = f"<html><body>{' '.join(parts)}</body></html>"
    document = read(page.encode(), article=False)
    assert document is not None
    wanted = set(re.findall(r"word\d+x", page))
    assert wanted <= set(re.findall(r"word\d+x", document.markdown))


def whole_page() -> bytes:
    rows = "".join(f"<tr><td>Row {n}<td>{n * n}" for n in range(5))
    paragraphs = "".join(
        f"<p>Абзац {n} of the report, with <b>bold</b> text and <a href=/{n}>links</a>.</p>"
        for n in range(6)
    )
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Report</title>"
        "<style>.x{display:none}</style></head><body><nav><a href=/>Home</a></nav><article>"
        f"<h1>Report</h1>{paragraphs}<table><tr><th>A<th>B{rows}</table>"
        "<pre>code\n  more</pre><ul><li>one<ul><li>two</ul></ul></article></body></html>"
    ).encode()


@bounded
@given(st.integers(0, len(whole_page())), st.binary(max_size=3))
def test_a_page_cut_off_anywhere(end: int, junk: bytes) -> None:
    check(whole_page()[:end] + junk)
