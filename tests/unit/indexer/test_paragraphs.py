"""The paragraph-first strategy: characters, not tokens; neighbours share their border."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.artifacts import Chunk
from services.indexer.chunker import Cut, cut
from services.indexer.paragraphs import CHARACTERS, OVERLAP

DOCUMENT = "cd" * 16


def tokens(text: str) -> int:
    return len(re.findall(r"\w{1,4}|[^\w\s]", text))


def chunks(body: str, most: int = 8192) -> tuple[Chunk, ...]:
    return cut(body, "T", DOCUMENT, "en", Cut(tokens, chunking="paragraph", most=most))


def texts(body: str, most: int = 8192) -> list[str]:
    data = body.encode()
    return [data[c.byte_start : c.byte_end].decode() for c in chunks(body, most)]


def paragraph(number: int, size: int) -> str:
    word = f"w{number} "
    return (word * size)[: size - 1].rstrip() + "."


def test_a_blank_body_has_no_passage() -> None:
    assert chunks(" \n\n") == ()


def test_paragraphs_are_gathered_up_to_two_thousand_characters() -> None:
    body = "\n\n".join(paragraph(n, 600) for n in range(9))
    found = texts(body)
    assert len(found[0]) > 1700
    assert max(map(len, found)) <= CHARACTERS
    assert found[0] == "\n\n".join(paragraph(n, 600) for n in range(3))


def test_a_passage_repeats_the_end_of_the_one_before_it() -> None:
    body = "\n\n".join(paragraph(n, 900) for n in range(6))
    found = chunks(body)
    for before, after in pairwise(found):
        shared = before.byte_end - after.byte_start
        assert 0 < shared <= OVERLAP
        assert body[after.byte_start - 1].isspace()  # begins with a whole word


def test_a_large_paragraph_is_cut_at_sentences() -> None:
    sentence = "The quick brown fox jumps over the lazy dog near the river bank again. "
    found = texts(sentence * 80)
    assert len(found) > 2
    assert all(text.endswith(".") for text in found)


def test_a_sentence_that_is_too_long_is_cut_between_characters() -> None:
    body = "ж" * 7000
    found = chunks(body)
    assert max(c.byte_end - c.byte_start for c in found) <= 2 * CHARACTERS
    assert found[-1].byte_end == len(body.encode())


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    found = texts("слово " * 1500)
    assert {word for text in found for word in text.split()} == {"слово"}


def test_a_large_table_is_cut_at_rows_and_a_list_at_items() -> None:
    table = "\n".join(
        f"| row {n} | One sentence, here. And, of course, another. |" for n in range(99)
    )
    assert all(text.endswith("|") for text in texts(table))
    items = "\n".join(
        f"- item {n}: one sentence, here. And, of course, another." for n in range(99)
    )
    assert all(text.endswith("another.") for text in texts(items))


def test_headings_are_in_the_path_though_they_cut_nothing() -> None:
    body = (
        f"# A\n\n{paragraph(1, 300)}\n\n## B\n\n{paragraph(2, 300)}\n\n# C\n\n{paragraph(3, 1600)}"
    )
    found = chunks(body)
    assert [c.heading_path for c in found] == [("A",), ("C",)]


def test_a_model_that_reads_less_gets_smaller_passages() -> None:
    body = "\n\n".join(paragraph(n, 600) for n in range(9))
    assert max(c.tokens for c in chunks(body, most=128)) <= 128


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text("аб в.", min_size=1, max_size=60).map(lambda t: t * 60),
            st.text(max_size=80),
            st.sampled_from(["# A", "## Б", "| a | b |\n|---|---|\n| c | d |", "```\nx\n```"]),
        ),
        max_size=12,
    ),
    st.sampled_from([64, 512, 8192]),
)
def test_every_body_is_covered_and_ids_differ(blocks: list[str], most: int) -> None:
    body = "\n\n".join(blocks)
    found, data, at = chunks(body, most), body.encode(), 0
    for chunk in found:
        assert not data[at : chunk.byte_start].decode().strip()
        text = data[chunk.byte_start : chunk.byte_end].decode()
        assert text.strip()
        assert len(text) <= CHARACTERS
        assert chunk.byte_end > at
        at = chunk.byte_end
    assert not data[at:].decode().strip()
    assert len({c.chunk_id for c in found}) == len(found)


@pytest.mark.parametrize("edited", ["first", "second"])
def test_ids_of_other_passages_stay_when_a_far_one_is_edited(edited: str) -> None:
    body = "\n\n".join(f"# H{n}\n\n{paragraph(n, 1900)}" for n in range(4))
    changed = body.replace("w0 w0", f"{edited} w0", 1)
    assert chunks(body)[-1].chunk_id == chunks(changed)[-1].chunk_id
