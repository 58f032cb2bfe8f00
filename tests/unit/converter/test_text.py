"""Markdown and plain text: faithful, but for what is not rendered."""

import tracemalloc

import pytest
from markdown_it import MarkdownIt

from kernel.errors import Refusal
from kernel.media import MARKDOWN, PLAIN
from services.converter.domain import canonical
from services.converter.parsing.text import parse_text


def parsed(text: str, media_type: str = MARKDOWN) -> tuple[str, list[tuple[str, str]]]:
    document = parse_text(text.encode(), media_type).document
    return document.markdown, [(h.kind, h.text) for h in document.hidden]


def test_markdown_stays_as_it_is() -> None:
    text = "# Title\n\n* a\n    * b\n\n| a | b |\n|---|---|\n| 1 | Vec<T> |\n"
    assert parsed(text) == (text, [])


def test_front_matter_is_read_off_and_kept_for_the_scanner() -> None:
    document = parse_text(
        b"---\ntitle: 'A: b'\nauthors: [X, Y]\ndate: 2024-02-03\nprompt: obey me\n---\nText\n",
        MARKDOWN,
    ).document
    assert document.markdown == "Text\n"
    assert (document.meta.title, document.meta.author, document.meta.date) == (
        "A: b", "X, Y", "2024-02-03",
    )  # fmt: skip
    assert "obey me" in document.hidden[0].text


@pytest.mark.parametrize(
    "text", ["---\nonly a rule\n---\nText\n", "---\n- a\n- b\n---\n", "---\na: b\n"]
)
def test_what_is_no_front_matter_stays_in_the_text(text: str) -> None:
    assert parsed(text) == (text, [])


def test_a_yaml_bomb_is_no_front_matter() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
    )
    document = parse_text(f"---\n{bomb}---\nText\n".encode(), MARKDOWN).document
    assert document.markdown == "Text\n"


def test_comments_are_hidden() -> None:
    text, hidden = parsed("a <!-- one\n\ntwo --> b\n[//]: # (three)\n<!-- unclosed")
    assert "one" not in text
    assert [kind for kind, _ in hidden] == ["comment", "comment", "comment"]
    assert {"three", "unclosed"} <= {value for _, value in hidden}


def test_comments_in_code_are_text() -> None:
    text = "```html\n<!-- shown -->\n```\n\n`<!-- shown too -->`\n"
    assert parsed(text) == (text, [])


def test_invisible_elements_are_hidden() -> None:
    text, hidden = parsed('x<div style="display: none">secret</div>y <script>alert(1)</script>z')
    assert text == "xy z"
    assert hidden == [("invisible-style", "secret"), ("invisible-style", "alert(1)")]


def test_plain_text_keeps_everything() -> None:
    text = "---\ntitle: no\n---\n<!-- shown -->\n"
    assert parsed(text, PLAIN) == (text.replace("<!--", "\\<!--"), [])


def body_of_text(text: str) -> str:
    return canonical(parse_text(text.encode(), PLAIN).document, "x").body


_SWALLOWING = ("```", "~~~~", "```sh", "\u1fef" * 3, "<!-- a", "<div>", "<script>", "<?php", "# x",
               "- ```", "> ~~~", "1. - # x", "    ```", "\x01```", "`\x01``", "<\x02!--", "[a]: /b",
               "[a\nb]: c")  # fmt: skip


@pytest.mark.parametrize("mark", _SWALLOWING)
@pytest.mark.parametrize("end", ["\n", "\r", "\f", "\v", "\x85", "\u2028"])
def test_no_line_of_plain_text_swallows_what_follows(mark: str, end: str) -> None:
    body = body_of_text(end.join(["Before.", "", mark, "# inside", "", "Text.", mark, "Last.", ""]))
    environment: dict[str, object] = {}
    tokens = MarkdownIt("commonmark").parse(body, environment)
    kinds = {t.type for token in tokens for t in (token, *(token.children or ()))}
    assert not kinds & {"fence", "html_block", "html_inline", "heading_open"}
    assert not environment.get("references")
    shown = " ".join(t.content for token in tokens for t in token.children or () if t.content)
    assert "# inside" in shown and "Text." in shown and "Last." in shown


@pytest.mark.parametrize("mark", ["```", "~~~", "#", "[a]:"])
def test_what_follows_the_title_of_a_clause_starts_no_block(mark: str) -> None:
    text = "This is what the parties agree upon, and what they shall do for each other. " * 2
    body = body_of_text("\n\n".join(f"**{n}. Title** {mark} {text}" for n in range(1, 6)))
    tokens = MarkdownIt("commonmark").parse(body)
    assert [t.type for t in tokens].count("heading_open") == 5
    assert not [t for t in tokens if t.type == "fence"]


def test_escapes_of_plain_text_leave_its_places_exact() -> None:
    document = parse_text("žuto\n\n```\n# a <b>\n```\n\nконец\n".encode(), PLAIN).document
    data = document.markdown.encode()
    places = [(data[s.byte_start : s.byte_end].decode(), s.place.lines) for s in document.spans]
    fence = "\\`" * 3
    assert places == [
        ("žuto", (1, 1)), (f"{fence}\n\\# a \\<b>\n{fence}", (3, 5)), ("конец", (7, 7)),
    ]  # fmt: skip


def test_what_needs_no_escape_in_plain_text_has_none() -> None:
    text = (
        "sshd[12]: closed\n[INFO]: it is up\n#hashtag\na < b ## c\n``x``\n- item\n> quoted\n\n"
        "Name\n====\n| a | b |\n"
    )
    assert parsed(text, PLAIN) == (text, [])


def test_a_text_with_headings_of_markdown_keeps_them() -> None:
    text = "# Manual\n\nText.\n\n## First steps\n\n```\n\nMore.\n"
    assert body_of_text(text) == text.replace("```", "\\`\\`\\`")


_MANUAL = (
    "# Manual\n\nSee [here](x.md).\n\n"
    "## Steps\n\n```sh\n# no heading\nrun\n```\n\n## End\n\nText.\n"
)


def test_markdown_that_is_called_text_is_read_as_markdown() -> None:
    parse = parse_text(_MANUAL.encode(), PLAIN)
    assert parse.document.markdown == _MANUAL
    assert parse.warnings == ["read as Markdown"]


@pytest.mark.parametrize(
    "text",
    [
        _MANUAL.replace("run\n```", "run"),  # a fence that swallows the rest
        _MANUAL.replace("## ", "# "),  # levels tell headings from comments
        _MANUAL.replace("## End\n\n", "## End\n"),
        _MANUAL.replace("[here](x.md)", "here").replace("```", "--"),
    ],
)
def test_what_is_not_plainly_markdown_is_literal(text: str) -> None:
    assert parse_text(text.encode(), PLAIN).warnings == []


@pytest.mark.parametrize(
    "text",
    [
        "# Comment\nkey = 1\n\n# Another\nkey = 2\n",
        "# One comment\n\nkey = 1\n",
        "#!/bin/sh\n\n# Part\n\nrun\n\n# Part\n\nrun\n",
        "# It is a sentence.\n\nkey = 1\n\n# Other\n\nkey\n",
    ],
)
def test_comments_of_plain_text_head_nothing(text: str) -> None:
    assert not [line for line in body_of_text(text).split("\n") if line.startswith("# ")]


def test_titles_between_rows_of_number_signs_stay_titles() -> None:
    text = "".join(f"#####\nName{n}\n#####\n\nText of it.\n\n" for n in range(3))
    assert body_of_text(text).startswith("# Name0\n\nText of it.\n\n# Name1\n")


def test_a_text_without_text_is_empty() -> None:
    with pytest.raises(Refusal) as refused:
        parse_text(b"  \n<!-- x -->\n", MARKDOWN)
    assert refused.value.code == "empty-document"


def test_every_paragraph_has_its_lines() -> None:
    text = "one\r\ntwo\r\n\r\nžuto\r\rlast"
    document = parse_text(text.encode(), PLAIN).document
    data = document.markdown.encode()
    places = [(data[s.byte_start : s.byte_end].decode(), s.place.lines) for s in document.spans]
    assert places == [("one\ntwo", (1, 2)), ("žuto", (4, 4)), ("last", (6, 6))]


def test_lines_of_a_log_have_a_place_each() -> None:
    document = parse_text(b"".join(b"line %d\n" % n for n in range(1, 31)), PLAIN).document
    assert [s.place.lines for s in document.spans] == [(n, n) for n in range(1, 31)]


def test_elements_without_an_end_hide_nothing_and_hinder_no_other() -> None:
    text, hidden = parsed("<style>a <p hidden>b</p> <style>" + "<i hidden>" * 30_000)
    assert text.startswith("<style>a  <style><i hidden>")
    assert hidden == [("invisible-style", "b")]


def test_one_backtick_in_a_paragraph_does_not_take_the_next_one_for_code() -> None:
    text, hidden = parsed("a ` b\n\n`<!-- code -->` and <!-- note -->\n\nc `` d ` e\n")
    assert text == "a ` b\n\n`<!-- code -->` and \n\nc `` d ` e\n"
    assert hidden == [("comment", "note")]


def test_lines_are_counted_over_what_was_hidden() -> None:
    text = "---\ntitle: x\n---\none\n\n<!-- a\nb -->\n\nbefore <!-- c\nd --> after\n\n`x`\n"
    document = parse_text(text.encode(), MARKDOWN).document
    assert document.markdown == "one\n\n\n\nbefore  after\n\n`x`\n"
    data = document.markdown.encode()
    places = [(data[s.byte_start : s.byte_end].decode(), s.place.lines) for s in document.spans]
    assert places == [("one", (4, 4)), ("before  after", (9, 10)), ("`x`", (12, 12))]


def test_a_forged_mark_is_no_text() -> None:
    assert parsed("a\ufdea\ufdd0b", PLAIN) == ("ab", [])


def test_another_charset_is_noted() -> None:
    warnings = parse_text("Комиссия опубликует доклад".encode("koi8-r"), PLAIN).warnings
    assert warnings == ["decoded as koi8_r"]


def test_the_lines_of_a_long_paragraph_are_not_gathered() -> None:
    data = b"2024-01-15 10:00:00 INFO request 17 took 7 ms\n" * 100_000
    parse_text(data[:9000], PLAIN)
    tracemalloc.start()
    try:
        parsed = parse_text(data, PLAIN).document
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert parsed.markdown == data.decode()
    assert peak < 10 * len(data)


def test_what_stands_in_a_comment_begins_no_code() -> None:
    text = "a\n\n<!--\n```\nunseen\n```\n-->\n\n```\n<!-- seen\n```\n\nb `-->` c\n"
    document = parse_text(text.encode(), MARKDOWN).document
    assert "unseen" not in document.markdown
    assert [h.text for h in document.hidden] == ["```\nunseen\n```"]
    assert "```\n<!-- seen\n```\n\nb `-->` c" in document.markdown
    # One that never ends hides nothing.
    assert "```\nx\n```" in parsed("<!--\n```\nx\n```\n")[0]
