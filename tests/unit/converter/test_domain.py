"""The canonical body."""

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.artifacts import BodyMeta, ParsedDocument
from kernel.front_matter import front_matter
from kernel.media import HTML, MARKDOWN, PLAIN
from services.converter.domain import canonical, plain_text


def document(markdown: str, title: str = "", media_type: str = MARKDOWN) -> ParsedDocument:
    meta = BodyMeta(title=title, language="en", media_type=media_type)
    return ParsedDocument(markdown=markdown, meta=meta)


def body(markdown: str, media_type: str = MARKDOWN) -> str:
    return canonical(document(markdown, media_type=media_type), "x")[0]


def test_markdown_gets_one_form() -> None:
    text = "Title\n=====\nText  \nmore\n\n\n##   Sub ##\n* item\n\t\n"
    assert body(text) == "# Title\n\nText\nmore\n\n## Sub\n\n* item\n"


def test_line_ends_and_letters_get_one_form() -> None:
    assert body("a\r\nb\u2028c\rd\v\x07e\u0301") == "a\nb\nc\nd\n\u00e9\n"


def test_code_is_kept() -> None:
    text = "```py\n# no heading\n\n\n===\n  x\n```\n"
    assert body(f"a\n{text}b") == f"a\n\n{text}\nb\n"


def test_an_open_fence_is_closed() -> None:
    assert body("~~~~\ncode") == "~~~~\ncode\n~~~~\n"


def test_a_fence_within_a_list_stays_in_its_item() -> None:
    text = "- item\n\n    ```sh\n    # no heading\n\n\n    ===\n    ```\n\n- next\n"
    assert body(text) == text


def test_a_rule_below_several_lines_is_a_rule() -> None:
    assert body("one\ntwo\n---\nthree\n") == "one\ntwo\n\n---\nthree\n"


def test_what_only_looks_like_an_open_fence_stays_text() -> None:
    assert body("a\n```\n\n## B\n", PLAIN) == "a\n\\`\\`\\`\n\n## B\n"
    assert body("a\n ~~~~ b\nc\n", HTML) == "a\n \\~\\~\\~\\~ b\nc\n"
    assert body("````\n```\nx\n```\nb\n", PLAIN) == "\\`\\`\\`\\`\n\n```\nx\n```\n\nb\n"


def test_thousands_of_open_fences_are_text() -> None:
    text = "".join(f"{'`' * (3 + n % 40)}x\n" for n in range(4000))
    assert body(f"{text}~~~\n\n# code\n~~~\n", PLAIN).endswith("x\n\n~~~\n\n# code\n~~~\n")
    assert "x\n```" not in body(text, PLAIN)


def test_a_rule_after_a_blank_line_is_no_underline() -> None:
    assert body("Text\n\n---\n\nmore") == "Text\n\n---\n\nmore\n"


def test_a_table_is_no_heading() -> None:
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert body(text) == text


@pytest.mark.parametrize("start", ["---\ntitle: x\n---\n", "\n\n---\n", "***\n---\n", "- - -\n"])
def test_a_body_cannot_be_taken_for_front_matter(start: str) -> None:
    assert not body(f"{start}Text").startswith(("---", "***", "- - -"))


def test_headings_without_text_are_left_out() -> None:
    assert body("a\n\n#\n\n## ##\n\nb") == "a\n\nb\n"


def test_the_title_comes_from_metadata_then_heading_then_name() -> None:
    assert canonical(document("# H", "Meta"), "name")[1].title == "Meta"
    assert canonical(document("## S\n\n# A [b](c) `d`"), "name")[1].title == "A b d"
    assert canonical(document("## S"), " name ")[1].title == "name"
    assert canonical(document("```\n# code\n```"), "name")[1].title == "name"


def test_an_empty_parse_gives_an_empty_body() -> None:
    assert body(" \n\n") == ""


def test_a_document_of_nothing_but_noise_is_kept() -> None:
    assert body("Page 1 of 2\n\nPage 2 of 2") == "Page 1 of 2\n\nPage 2 of 2\n"


def test_a_law_gets_its_headings() -> None:
    text = "\n".join(
        f"Article {n}\nSubject {n}\n(1) Text of the article {n}.\n" for n in range(1, 5)
    )
    assert "## Article" not in text
    assert body(text).startswith(
        "# Article 1 Subject 1\n\n(1) Text of the article 1.\n\n# Article 2"
    )


def test_plain_text_is_what_a_reader_sees() -> None:
    assert plain_text(r"**A** *b* [c](d) `e` <b>f</b> \# 2*3*4 a_b_c") == "A b c e f # 2*3*4 a_b_c"


def test_front_matter_is_yaml_that_no_title_can_break() -> None:
    meta = BodyMeta(title="a: b\n---\nevil: 1", language="sr", media_type=HTML, author="Ђорђе")
    text = front_matter(meta, {"source": "https://x", "position": 3, "nothing": None})
    assert text.startswith("---\n")
    assert text.endswith("---\n")
    loaded = yaml.safe_load(text.removeprefix("---\n").removesuffix("---\n"))
    assert loaded["title"] == meta.title
    assert loaded["author"] == "Ђорђе"
    assert "nothing" not in loaded
    assert "evil" not in loaded
    assert "Ђорђе" in text


def test_front_matter_says_title_language_source_date_author_parser_and_pages_first() -> None:
    meta = BodyMeta(title="T", language="de", media_type=HTML, author="A", date="2024-01-01",
                    pages=3, parser="docling 2")  # fmt: skip
    text = front_matter(meta, {"valid_from": "2024-01-02", "source": "https://x"})
    assert re.findall(r"^(\w+):", text, re.M) == [
        "title", "language", "source", "date", "author", "parser", "pages", "media_type",
        "valid_from",
    ]  # fmt: skip


@settings(deadline=None)
@given(st.text(max_size=200), st.text(max_size=50), st.text(max_size=50))
def test_front_matter_gives_back_what_went_in(title: str, author: str, source: str) -> None:
    meta = BodyMeta(title=title, language="en", media_type=HTML, author=author)
    text = front_matter(meta, {"source": f"{source}\n---\n{title}"})
    lines = text.split("\n")
    assert (lines[0], lines[-2], lines[-1]) == ("---", "---", "")
    assert not any(line.startswith(("---", "...")) for line in lines[1:-2])
    loaded = yaml.safe_load(text.removeprefix("---\n").removesuffix("---\n"))
    assert (loaded["title"], loaded["author"]) == (title, author)
    assert loaded["source"] == f"{source}\n---\n{title}"


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "",
                "",
                "# A",
                "## B ##",
                "text  ",
                "    indented",
                "```",
                "~~~py",
                "````",
                "---",
                "===",
                "***",
                "- item",
                "* [a](b)",
                "1. one",
                "| a | b |",
                "|---|---|",
                "Page 3 of 9",
                "3",
                "4",
                "5",
                "Article 1",
                "Article 2",
                "§ 3 Name",
                "Члан 4.",
                "Contents",
                "One ..... 1",
                "\f",
                "Two ..... 2",
                "Three ..... 3",
                "Preamble",
                "1 Introduction",
                "2 Method",
                "3 Results",
                "cookies: accept all settings",
                "> quote",
                "<!-- x -->",
                "#",
                "Head",
                "Head",
                "Head",
                "a long line of text that goes on for a while so that it counts as running text.",
            ]
        ),
        st.text(max_size=40),
    ),
    max_size=30,
)


@settings(max_examples=400, deadline=None)
@given(LINES, st.sampled_from([MARKDOWN, HTML]))
def test_what_is_canonical_stays_so(lines: list[str], media_type: str) -> None:
    once, meta, _ = canonical(document("\n".join(lines), media_type=media_type), "name")
    twice, meta_again, _ = canonical(ParsedDocument(markdown=once, meta=meta), "other")
    assert twice == once
    assert meta_again == meta
    assert once == "" or (once.endswith("\n") and not once.endswith("\n\n"))
    assert not once.startswith("---")
