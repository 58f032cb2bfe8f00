"""A stranger's Markdown on our page: safe, and highlighted to the byte."""

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.ui import markdown

BODY = """# Title

Intro with *em* and `code` here, and [a link](https://x.example/z) end.

> quoted text
> goes on

- item one
- предмет два

| a | b |
|---|---|
| 1 | 2 |

```
# not a heading
```

## Второй заголовок

Last.
""".encode()


def between(first: str, last: str | None = None) -> tuple[int, int]:
    start = BODY.index(first.encode())
    end = (last or first).encode()
    return start, BODY.index(end, start) + len(end)


def marked(page: str) -> str:
    """The text in `<mark>`s, words only."""
    found = re.findall(r"<mark>(.*?)</mark>", page, re.DOTALL)
    return "".join(re.sub(r"<[^>]+>", "", html.unescape(m)) for m in found)


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:x)",
        "![x](http://evil.example/beacon.png)",
        "<div hx-get='/ui/sign-out' hx-trigger='load'>",
        "<javascript:alert(1)>",
        '[x](https://a.example/"onmouseover="alert(1))',
        '```"><script>alert(1)</script>\ncode\n```',
        "[x][r]\n\n[r]: javascript:alert(1)",
        "| <script>alert(1)</script> | b |\n|---|---|\n| x | y |",
    ],
)
def test_no_markup_of_a_document_reaches_the_page(attack: str) -> None:
    for page in (markdown.render(attack.encode()), markdown.snippet(attack, lambda _: True)):
        tags = re.findall(r"<[^>]*>", page)
        joined = " ".join(tags).lower()
        assert not re.search(r"<(script|img|div|iframe|object|style|form|input)\b", joined)
        assert not re.search(r"(javascript|data|vbscript):", joined)
        assert not re.search(r"\s(on\w+|hx-\w+|style)\s*=\s*[^\"]", joined)


@settings(max_examples=150, deadline=None)
@given(
    st.text(
        alphabet=st.sampled_from(list("<>\"'&`*_[]()!#-|~\n\t xы:/=\ufdd0\ufdd1\0\r")), max_size=80
    )
)
def test_whatever_the_text_only_known_tags_come_out(text: str) -> None:
    inline = "em|strong|code|a|br|s|mark|span"
    known = f"p|h[1-6]|pre|ul|ol|li|blockquote|hr|table|thead|tbody|tr|th|td|{inline}"
    for page in (
        markdown.render(text.encode(), passage=(1, max(2, len(text) // 2))),
        markdown.snippet(text, lambda _: True),
    ):
        assert not re.sub(rf"</?({known})(\s[^<>]*)?/?>", "", page).count("<")
        assert "\ufdd0" not in page and "\ufdd1" not in page


def test_a_passage_inside_a_paragraph_is_marked_to_the_character() -> None:
    page = markdown.render(BODY, passage=between("with", "a link"))

    assert marked(page) == "with em and code here, and a link"
    assert page.count('id="passage"') == 1


def test_a_passage_of_whole_blocks_marks_blocks() -> None:
    page = markdown.render(BODY, passage=between("> quoted", "goes on"))

    assert '<p class="passage"><a id="passage"></a>quoted text' in page
    assert "<mark>" not in page


def test_offsets_are_bytes_and_not_characters() -> None:
    assert marked(markdown.render(BODY, passage=between("предмет"))) == "предмет"


def test_a_passage_over_list_table_and_heading_marks_each() -> None:
    page = markdown.render(BODY, passage=between("- item one", "Второй заголовок"))

    assert marked(page) == "item oneпредмет два"
    assert '<tr class="passage">' in page
    assert re.search(r'<h2 id="s\d+" class="passage">', page)
    assert "Last" in page.rpartition("passage")[2]


def test_a_range_that_cuts_markup_falls_back_to_the_block() -> None:
    page = markdown.render(BODY, passage=between("x.example"))

    assert 'href="https://x.example/z"' in page
    assert '<p class="passage">' in page


def test_a_range_that_ends_in_the_middle_of_a_character_breaks_nothing() -> None:
    start, end = between("предмет")
    page = markdown.render(BODY, passage=(start + 1, end - 1))

    assert "предмет" in re.sub(r"<[^>]+>", "", page)


def test_an_outline_has_byte_offsets_and_skips_fenced_code() -> None:
    found = markdown.outline(BODY)

    assert [(h.level, h.text) for h in found] == [(1, "Title"), (2, "Второй заголовок")]
    assert all(BODY[h.start :].startswith(b"#") for h in found)
    assert all(f'id="{h.anchor}"' in markdown.render(BODY) for h in found)


def test_parts_join_to_the_body_and_never_cut_fenced_code() -> None:
    body = BODY * 40
    found = markdown.parts(body, 300)

    assert b"".join(body[p.start : p.end] for p in found) == body
    assert all(body[p.start : p.end].count(b"```") % 2 == 0 for p in found)
    assert max(p.end - p.start for p in found) < 1500
    assert [markdown.part_at(found, p.start) for p in found] == list(range(len(found)))


def test_an_endless_paragraph_is_cut_all_the_same() -> None:
    body = b"word\n" * 200_000

    assert max(p.end - p.start for p in markdown.parts(body)) <= 4 * markdown.PART_BYTES + 5


@pytest.mark.parametrize("body", [b"", b"\n", b"x", b"\xff\xfe\x00broken"])
def test_small_and_broken_bodies_have_one_part(body: bytes) -> None:
    assert len(markdown.parts(body)) == 1
    assert isinstance(markdown.render(body, passage=(0, 1)), str)


def test_a_heading_of_another_part_keeps_its_place_in_the_body() -> None:
    start = BODY.index("## Второй".encode())

    assert f'id="s{start}"' in markdown.render(BODY[start:], base=start)


def test_a_snippet_has_no_headings_and_marks_words() -> None:
    page = markdown.snippet("## Fines\n\nA *fine* of 4 %.", lambda w: w.lower().startswith("fine"))

    assert "<h2" not in page
    assert marked(page) == "Finesfine"
