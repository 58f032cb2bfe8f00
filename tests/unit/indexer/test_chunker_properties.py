"""Invariants of the chunker on random Markdown and on real documents."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.artifacts import Chunk, embedded_text
from services.indexer.chunker import Cut, cut

REAL = Path(__file__).parents[3] / "../shared/evaldata/retrieval"

WORDS = st.sampled_from([
    "Закон", "члан", "word", "ćevap", "👩‍👩‍👧", "§", "5.", "z.", "B.", "конец.", "end!", "e\u0301",
    "a|b", "\\|", "`code`", "*it*", "[x]", "x" * 90, "<b>", "&amp;", "#", "-", ">", "1)", "~~~",
    "\u00a0", "\u200b", "\u2028", "\x1c", "ﷺ", "\t", "[x]:", "===", "---",
])  # fmt: skip
LINE = st.lists(WORDS, max_size=12).map(" ".join)
HEADING = st.builds(lambda n, text: f"{'#' * n} {text}", st.integers(1, 6), LINE)
PARAGRAPH = st.lists(LINE, min_size=1, max_size=6).map("\n".join)
SETEXT = st.builds(lambda text, rule: f"{text}\n{rule}", LINE, st.sampled_from(["===", "---"]))
FENCE = st.builds(
    lambda text, mark: f"{mark}\n{text}\n{mark}", PARAGRAPH, st.sampled_from(["```", "~~~"])
)
TABLE = st.builds(
    lambda rows, width: "\n".join(
        ["|" + "h|" * width, "|" + "-|" * width, *("|" + f"{row}|" * width for row in rows)]
    ),
    st.lists(LINE, max_size=8),
    st.integers(1, 4),
)
LIST = st.lists(
    st.builds(lambda dent, text: f"{'  ' * dent}- {text}", st.integers(0, 2), LINE)
).map("\n".join)
QUOTE = PARAGRAPH.map(lambda text: "> " + text.replace("\n", "\n> "))
ODD = st.sampled_from(["<!-- x", "    indented", "***", "[a]: http://x", "```", "", " ", "\n\n\n"])
BLOCK = st.one_of(HEADING, PARAGRAPH, SETEXT, FENCE, TABLE, LIST, QUOTE, ODD, st.text(max_size=40))
MARKDOWN = st.builds(
    lambda parts, gap: gap.join(parts),
    st.lists(BLOCK, max_size=14),
    st.sampled_from(["\n\n", "\n", "\r\n\r\n"]),
)


def tokens(text: str) -> int:
    return len(re.findall(r"\w{1,4}|[^\w\s]", text))


def check(body: str, limit: int, count: Callable[[str], int] = tokens) -> tuple[Chunk, ...]:
    """All that must hold for any body; returns the passages."""
    found = cut(body, "Title", "cd" * 32, "en", Cut(count, limit=limit))
    data, at = body.encode(), 0
    for chunk in found:
        assert at <= chunk.byte_start < chunk.byte_end
        assert not data[at : chunk.byte_start].decode().strip()  # nothing but blanks left out
        passage = data[chunk.byte_start : chunk.byte_end].decode()
        assert passage.strip()
        assert passage == passage.rstrip()
        assert (
            chunk.tokens
            == max(1, count(embedded_text("Title", chunk.heading_path, chunk.context, passage)))
            <= limit
        )
        assert len(chunk.chunk_id) <= 200
        at = chunk.byte_end
    assert not data[at:].decode().strip()
    assert len({chunk.chunk_id for chunk in found}) == len(found)
    return found


@settings(max_examples=300, deadline=None)
@given(MARKDOWN, st.sampled_from([700, 1000]))
def test_every_body_is_covered_by_passages_within_the_limit(body: str, limit: int) -> None:
    check(body, limit)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(PARAGRAPH, TABLE, LIST, FENCE, QUOTE, ODD), max_size=10).map("\n\n".join))
def test_small_limits_hold_too(body: str) -> None:
    # no heading with words of 90 letters: their breadcrumb alone would need more
    check("# A\n\n" + re.sub(r"(?m)^(\s{0,3})(#|=+|-+\s*$)", r"\1x", body), 40)


@settings(max_examples=100, deadline=None)
@given(MARKDOWN)
def test_the_same_body_is_always_cut_alike(body: str) -> None:
    assert check(body, 800) == check(body, 800)


@settings(max_examples=100, deadline=None)
@given(MARKDOWN, MARKDOWN)
def test_a_section_is_cut_alike_wherever_it_stands(body: str, other: str) -> None:
    # both begin with a heading of the first level, so neither is inside the other
    section, before = f"# Section\n\n{_closed(body)}", f"# Before\n\n{_closed(other)}"
    alone = [chunk.chunk_id for chunk in check(section, 800)]
    behind = [chunk.chunk_id for chunk in check(f"{before}\n\n{section}", 800)]
    if not set(alone) & {chunk.chunk_id for chunk in check(before, 800)}:
        assert behind[len(behind) - len(alone) :] == alone


def _closed(markdown: str) -> str:
    """Without what reaches over a blank line: fences and HTML."""
    return re.sub(r"[`~<]", "x", markdown)


def bodies() -> Iterator[tuple[str, str]]:
    for path in sorted(REAL.glob("german_laws/*.md")) + sorted(REAL.glob("udhr/md/*.md")):
        yield f"{path.parent.name}/{path.name}", path.read_text()
    for path in sorted(REAL.glob("progit/*/corpus.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        yield (
            f"progit/{path.parent.name}",
            "\n\n".join(f"# {r['title']}\n\n{r['text']}" for r in rows),
        )


@pytest.mark.parametrize(("name", "body"), list(bodies()) or [("none", "")])
def test_real_documents_are_covered_within_the_limit(name: str, body: str) -> None:
    if name == "none":
        pytest.skip(f"no real documents: {REAL} is not there")
    found = check(body, 500)
    assert len(found) > 10
    assert sum(chunk.tokens for chunk in found) / len(found) > 50
