"""What the chunker promises, case by case; the properties are tried at random elsewhere."""

import re
import tracemalloc

import pytest

from contracts.artifacts import LONGEST_BREADCRUMB, Chunk, breadcrumb, embedded_text
from services.indexer.chunker import CHUNKERS, Cut, cut, manifest, slug

SOURCE = "ab" * 32


def tokens(text: str) -> int:
    return len(re.findall(r"\w{1,4}|[^\w\s]", text))


def chunks(body: str, title: str = "T", limit: int = 500) -> tuple[Chunk, ...]:
    return cut(body, title, SOURCE, "en", Cut(tokens, limit=limit))


def texts(body: str, limit: int = 500) -> list[str]:
    data = body.encode()
    return [data[c.byte_start : c.byte_end].decode() for c in chunks(body, limit=limit)]


def words(number: int, word: str = "word") -> str:
    return " ".join([word] * number)


@pytest.mark.parametrize("body", ["", " ", "\n\n \t\n", "\r\n\r\n", "\u2028\u00a0"])
def test_a_blank_body_has_no_passage(body: str) -> None:
    assert chunks(body) == ()


def test_offsets_are_utf8_bytes() -> None:
    body = "# Глава 👩‍👩‍👧\n\nЧлан први.\n\n## Други\n\nЂурђевак.\n"
    assert texts(body) == ["# Глава 👩‍👩‍👧\n\nЧлан први.", "## Други\n\nЂурђевак."]


def test_a_passage_carries_the_headings_in_force() -> None:
    body = "Preamble.\n\n# A\n\na\n\n## B\n\nb\n\n### C\n\nc\n\n## D\n\nd\n\n# E\n\ne\n"
    assert [c.heading_path for c in chunks(body)] == [
        (), ("A",), ("A", "B"), ("A", "B", "C"), ("A", "D"), ("E",),
    ]  # fmt: skip


def test_a_setext_heading_is_a_heading() -> None:
    body = "Title\n=====\n\ntext\n\nSub\n---\n\nmore\n"
    assert [c.heading_path for c in chunks(body)] == [("Title",), ("Title", "Sub")]
    assert texts(body)[0] == "Title\n=====\n\ntext"


def test_a_long_paragraph_above_a_rule_is_no_heading() -> None:
    body = f"{words(100)}\n---\n\nmore\n"
    assert [c.heading_path for c in chunks(body)] == [()]


@pytest.mark.parametrize(
    "body",
    [
        "# A\n\n```\n# not a heading\n```\n",
        "# A\n\n~~~sh\n# not a heading\n~~~\n\nend\n",
        "# A\n\ntext\n\n    # not a heading\n",
        "# A\n\n<pre>\n# not a heading\n</pre>\n",
        "# A\n\n> # not a section\n",
        "# A\n\n```\n# an open fence\n\n# to the end",
    ],
)
def test_what_only_looks_like_a_heading_is_none(body: str) -> None:
    assert [c.heading_path for c in chunks(body)] == [("A",)]
    assert texts(body) == [body.rstrip()]


def test_markup_is_taken_out_of_a_heading_path() -> None:
    body = (
        "# The *big* `code` [link](http://x) ![alt](i.png) <b>bold</b> &amp; \\*star\\* #\n\ntext"
    )
    assert chunks(body)[0].heading_path == ("The big code link alt bold & *star*",)


def test_a_heading_without_words_is_not_in_the_path() -> None:
    assert [c.heading_path for c in chunks("#\n\na\n\n## B\n\nb")] == [(), ("B",)]


def test_a_path_never_grows_to_a_page() -> None:
    (path,) = {c.heading_path for c in chunks(f"# {words(2000)}\n\ntext")}
    assert len(path[0]) == 200
    assert path[0].endswith("…")


def test_parents_without_text_join_their_first_child() -> None:
    body = "# A\n\n## B\n\n### C\n\ntext\n\n## D\n\nmore"
    assert texts(body) == ["# A\n\n## B\n\n### C\n\ntext", "## D\n\nmore"]
    assert chunks(body)[0].heading_path == ("A", "B", "C")


def test_siblings_without_text_stand_alone() -> None:
    body = "## A\n\n## B\n\ntext\n\n# C"
    assert texts(body) == ["## A", "## B\n\ntext", "# C"]
    assert [c.heading_path for c in chunks(body)] == [("A",), ("B",), ("C",)]


def test_sections_are_never_merged() -> None:
    body = "\n\n".join(f"# H{i}\n\nx" for i in range(5))
    assert len(chunks(body)) == 5


def test_small_neighbours_of_a_section_share_a_passage() -> None:
    body = "# A\n\none\n\n- two\n- three\n\n> four\n\n```\nfive\n```\n\n| six |\n|-----|\n| 6 |\n"
    assert texts(body) == [body.rstrip()]


def test_a_section_that_is_too_large_is_cut_between_blocks() -> None:
    first, second = words(60), words(70)
    assert texts(f"# A\n\n{first}\n\n{second}", limit=100) == [f"# A\n\n{first}", second]


def test_a_paragraph_that_is_too_large_is_cut_between_sentences() -> None:
    body = " ".join(f"Sentence {words(10)} ends here." for _ in range(20))
    found = texts(body, limit=60)
    assert len(found) > 3
    assert all(text.startswith("Sentence") and text.endswith("here.") for text in found)


@pytest.mark.parametrize(
    "kept",
    [
        "nach Art. 5 Abs. 2 Nr. 3 DSGVO",
        "am 13. Mai",
        "z. B. Hunde",
        "ул. 7 и чл. 12",
        "Gebühr usw. und so",
        "nach Dr. Novak",
        "von prof. dr. Ivanić",
        "на ул. Ленина",
        "види чл. Први",
    ],
)
def test_an_abbreviation_ends_no_sentence(kept: str) -> None:
    found = texts(f"{words(40)}. {kept} {words(40)}. {words(30)}.", limit=95)
    assert any(kept in text for text in found)


@pytest.mark.parametrize("end", [".[1]", ".\\[12\\]", ".[^3]", ".**", ".*", ".“[1][2]"])
def test_marks_after_a_full_stop_belong_to_its_sentence(end: str) -> None:
    body = " ".join(f"Sentence {words(10)} ends here{end}" for _ in range(20))
    found = texts(body, limit=70)
    assert len(found) > 3
    assert all(text.startswith("Sentence") and text.endswith(f"here{end}") for text in found)


@pytest.mark.parametrize("end", ["in 2019.", "with 412.", "since 1,200."])
def test_sentences_that_end_in_a_number_are_not_cut(end: str) -> None:
    body = " ".join(f"Sentence {words(10)} ends {end}" for _ in range(20))
    found = texts(body, limit=60)
    assert all(text.startswith("Sentence") and text.endswith(end) for text in found)


def test_a_year_in_front_of_a_noun_is_not_cut_off_where_other_places_do() -> None:
    kept = f"U 1991. Hrvatska {words(30)}"
    found = texts(f"{words(30)}. {kept}. Word {words(30)}.", limit=50)
    assert any(kept in text for text in found)


def test_a_sentence_that_is_too_large_is_cut_between_clauses() -> None:
    body = "; ".join(f"point {words(20)} ends" for _ in range(10)) + "."
    assert all(text.startswith("point") for text in texts(body, limit=60))
    body = ", ".join(f"point {words(20)} ends" for _ in range(10)) + "."
    assert all(text.startswith("point") for text in texts(body, limit=60))


def test_definitions_one_a_line_are_cut_between_lines() -> None:
    body = "In this act:\n" + ";\n".join(f"term {n} – {words(12)}; and more" for n in range(20))
    assert all(re.match(r"term \d+ –|In this", text) for text in texts(body, limit=60))


def test_a_cell_that_is_too_large_is_cut_between_sentences() -> None:
    cell = " ".join(f"Sentence {words(10)} ends here." for _ in range(20))
    found = texts(f"| a | b |\n| - | - |\n| 1 | {cell} |\n", limit=80)
    assert len(found) > 3
    assert all(text.rstrip(" |").endswith("here.") for text in found)


def test_a_sentence_that_is_too_large_is_cut_between_words() -> None:
    found = texts(words(1000, "слово"), limit=100)
    assert {word for text in found for word in text.split()} == {"слово"}
    assert len(found) == 21


def test_one_line_of_a_megabyte_lands() -> None:
    body = "я" * 500_000
    found = texts(body)
    assert "".join(found) == body
    assert all(tokens(text) <= 500 for text in found)


def test_a_cut_keeps_accents_and_joined_emoji_whole() -> None:
    found = texts("👩‍👩‍👧" * 100 + "e\u0301" * 200, limit=40)
    assert len(found) > 10
    assert not [text for text in found if text[0] in "\u0301\u200d" or text[-1] == "\u200d"]


def test_a_list_is_cut_between_items() -> None:
    body = "\n".join(f"- item {n} {words(8)}\n  - nested {n}" for n in range(30))
    assert all(text.startswith("- item") for text in texts(body, limit=60))


def test_code_is_cut_between_lines() -> None:
    body = "```\n" + "\n".join(f"call({n}, {words(5)})" for n in range(40)) + "\n```"
    found = texts(body, limit=60)
    assert len(found) > 4
    assert all(re.match(r"```|call\(\d+", text) for text in found)


def test_an_indent_at_the_start_of_a_passage_is_kept() -> None:
    assert texts("\n\n    code\n      more\n") == ["    code\n      more"]


def test_a_heading_is_not_left_alone_by_a_large_paragraph() -> None:
    found = texts(f"# Heading\n\n{words(99)}", limit=105)
    assert found[0].startswith("# Heading\n\nword")


def test_a_few_last_words_are_not_a_passage() -> None:
    body = "\n\n".join([*[words(30)] * 3, "The end."])
    assert texts(body, limit=95)[-1] == f"{words(30)}\n\nThe end."


def test_what_markdown_does_not_show_is_still_covered() -> None:
    body = "[a]: http://one\n[b]: http://two\n\ntext [a]\n\n<!-- note -->\n\n***\n"
    assert texts(body) == [body.rstrip()]


def test_windows_line_ends_keep_their_places() -> None:
    assert texts("# A\r\n\r\nfirst\r\n\r\n# B\r\rlast\r\n") == ["# A\r\n\r\nfirst", "# B\r\rlast"]


def test_a_lone_carriage_return_ends_a_line() -> None:
    assert texts("# A\r\rfirst\r\r# B\r\rlast") == ["# A\r\rfirst", "# B\r\rlast"]


def test_a_nul_does_not_move_the_offsets() -> None:
    assert texts("a\0b\n\n# C\0\n\nd") == ["a\0b", "# C\0\n\nd"]


TABLE = "| Name | Fine |\n|------|------|\n"


def table(rows: int) -> str:
    return TABLE + "\n".join(f"| Name {n:03} | {n} euro |" for n in range(rows))


def test_a_table_that_opens_a_passage_has_the_paragraph_before_it() -> None:
    intro = f"{words(60)} The fines are these."
    first, second = chunks(f"{intro}\n\n{table(4)}", limit=100)
    assert (first.context, texts(f"{intro}\n\n{table(4)}", limit=100)[1]) == ("", table(4))
    assert second.context.startswith("… word")
    assert second.context.endswith("The fines are these.")


def test_a_table_in_the_same_passage_needs_no_context() -> None:
    assert [c.context for c in chunks(f"Fines:\n\n{table(3)}")] == [""]


def test_a_large_table_is_cut_between_rows_and_repeats_its_head() -> None:
    body = f"Fines:\n\n{table(60)}"
    found = chunks(body, limit=100)
    assert len(found) > 5
    assert all(re.fullmatch(r"(\| Name .*\|\n?)+", text) for text in texts(body, limit=100)[1:])
    assert {c.context for c in found[1:]} == {f"Fines:\n{TABLE.rstrip()}"}
    assert min(c.tokens for c in found[:-1]) > 85  # context is reckoned with before, not after


def test_a_row_that_is_too_large_is_cut_between_cells() -> None:
    row = "|" + "|".join(f" cell {n} {words(4)} " for n in range(60)) + "|"
    body = "|" + "a|" * 60 + "\n|" + "-|" * 60 + "\n" + row
    found = texts(body, limit=100)
    assert len(found) > 5
    assert all(text.startswith("|") for text in found)
    assert all(c.tokens <= 100 for c in chunks(body, limit=100))


def test_a_head_without_rows_is_a_table() -> None:
    assert texts("| a | b |\n|---|---|") == ["| a | b |\n|---|---|"]


def test_tokens_count_what_is_embedded() -> None:
    body = f"Fines:\n\n{table(60)}"
    for chunk, text in zip(chunks(body, limit=100), texts(body, limit=100), strict=True):
        assert (
            chunk.tokens
            == tokens(embedded_text("T", chunk.heading_path, chunk.context, text))
            <= 100
        )


def test_a_counter_that_does_not_add_up_is_still_obeyed() -> None:
    def squared(text: str) -> int:
        return len(text) ** 2 // 100

    found = cut(words(300), "T", SOURCE, "en", Cut(squared, limit=64))
    assert len(found) > 10
    assert all(c.tokens <= 64 for c in found)


def test_a_long_breadcrumb_leaves_room_for_the_passage() -> None:
    body = "".join(f"{'#' * n} {words(39)}\n\n" for n in range(1, 7)) + words(900)
    found = cut(body, words(100), SOURCE, "en", Cut(tokens))
    assert all(c.tokens <= 500 for c in found)
    assert len(found) < 6


def test_a_breadcrumb_is_bounded() -> None:
    crumb = breadcrumb(words(100), tuple(words(39) for _ in range(6)))
    assert len(crumb) <= LONGEST_BREADCRUMB
    assert crumb.count(" > ") == 6
    assert breadcrumb("T", ("T", "A", "B")) == "[T > A > B]"


def test_an_id_says_document_headings_ordinal_and_hash() -> None:
    (chunk,) = chunks("## § 5 Benennung (Muster)\n\ntext")
    assert re.fullmatch(r"abababababababab:§-5-benennung-muster:1:[0-9a-f]{8}", chunk.chunk_id)


def test_the_ordinal_counts_passages_under_one_heading() -> None:
    body = f"# A\n\n{words(300)}\n\n{words(300, 'more')}\n\n# B\n\nx"
    assert [c.chunk_id.split(":")[2] for c in chunks(body)] == ["1", "2", "1"]


def test_ids_do_not_change_by_edits_elsewhere() -> None:
    body = "# A\n\none\n\n# B\n\ntwo\n\n# C\n\nthree"
    edited = body.replace("one", "another text").replace("# C", "# D")
    assert chunks(body)[1].chunk_id == chunks(edited)[1].chunk_id


def test_equal_passages_under_equal_headings_are_numbered() -> None:
    ids = [c.chunk_id for c in chunks("# A\n\nx\n\n# A\n\nx\n\n# A\n\nx")]
    assert ids == [ids[0], f"{ids[0]}-2", f"{ids[0]}-3"]


def test_a_slug_keeps_every_heading_when_it_is_cut() -> None:
    path = ("Ђурђевак " * 20, "e\u0301clair " * 20, "§ 7 Ende")
    name = slug(path)
    assert len(name) <= 160
    assert re.fullmatch(r"ђурђевак[^/]+/éclair[^/]+/§-7-ende~[0-9a-f]{8}", name)
    assert name != slug((*path[:2], "§ 7 Ende 2"))


def test_the_language_of_a_long_passage_is_detected() -> None:
    body = f"# A\n\nshort\n\n# B\n\n{words(60)}\n\n# C\n\n{words(60, 'dies')}"
    options = Cut(tokens, detect=lambda text: "de" if "dies" in text else "unknown")
    assert [c.language for c in cut(body, "T", SOURCE, "sr", options)] == ["sr", "sr", "de"]


def test_a_manifest_names_body_and_chunker() -> None:
    found = manifest("0" * 64, "T", chunks("a"))
    assert (found.chunker, found.title, len(found.chunks)) == (CHUNKERS["heading"], "T", 1)


def test_a_limit_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="room"):
        Cut(tokens, limit=15)


def test_the_rows_of_a_long_table_are_not_held_as_objects() -> None:
    rows = "".join(f"| {n} | plain words of a cell | 2024-01-15 |\n" for n in range(60_000))
    body = f"# Rows\n\n| a | b | c |\n|---|---|---|\n{rows}"
    options = Cut(lambda text: len(text) // 4 + 1)
    cut(body[:500], "T", "d" * 32, "en", options)
    tracemalloc.start()
    try:
        chunks = cut(body, "T", "d" * 32, "en", options)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(chunks) > 1000
    assert peak - kept < 60 * 60_000
