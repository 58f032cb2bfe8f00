"""The measures of the parsing evaluation, against values worked out by hand."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import reportlab.pdfgen.canvas

from eval.parsing import places, report, scores
from eval.parsing.engine import Engine
from eval.parsing.made import big, model, web
from eval.parsing.made.texts import WORDS, Words
from eval.parsing.measure import Row
from eval.parsing.outline import outline

TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n"


# -- what a text says ------------------------------------------------------------------------------


def test_depth_is_the_place_in_the_tree_not_the_number_of_signs() -> None:
    text = "## A\n\n##### B\n\n##### C\n\n### D\n\n# E\n"
    assert outline(text).headings == ((1, "a"), (2, "b"), (2, "c"), (2, "d"), (1, "e"))


def test_headings_are_compared_by_their_words() -> None:
    assert outline("# **1.** Über\\_uns!\n").headings == outline("1 über uns\n===\n").headings


def test_a_heading_in_code_is_none() -> None:
    assert outline("```\n# no\n```\n").headings == ()


def test_plain_text_has_no_markup() -> None:
    text = "a **b** [c](http://d) `e` ![f](g)<!-- h -->\ni\n\n<div>j</div>\n"
    assert outline(text).plain == "a b c e i j"


def test_tables_are_rows_of_folded_cells() -> None:
    text = "| A  b | x\\|y |\n|:--|--:|\n| **1** |  |\n"
    assert outline(text).tables == ((("a b", "x|y"), ("1", "")),)


def test_items_have_the_depth_of_their_list() -> None:
    assert outline("- a\n  - b\n- c\n\n1. d\n").items == ((1, "a"), (2, "b"), (1, "c"), (1, "d"))


# -- measures --------------------------------------------------------------------------------------


def test_token_f1_counts_repeats() -> None:
    # 3 words and 2 words, 2 in common: 2 * 2 / 5.
    assert scores.tokens("a a b", "A a") == pytest.approx(0.8)


def test_edit_similarity_counts_insertions_and_deletions() -> None:
    # abcd -> abxd: one deletion, one insertion, over 8 characters.
    assert scores.edit("abcd", "abxd") == pytest.approx(1 - 2 / 8)


def test_edit_similarity_does_not_see_markup() -> None:
    assert scores.edit("# A\n\nb", "**A**\n\n- b") == 1


def test_nothing_against_nothing_is_no_question() -> None:
    assert [score("", "") for score in scores.SCORES.values()] == [None] * len(scores.SCORES)


def test_heading_f1_is_blind_to_levels_and_tree_is_not() -> None:
    wanted, found = "# A\n\n## B\n", "# A\n\n# B\n\n# C\n"
    # 2 and 3 headings, both found: 2 * 2 / 5; with depth only A: 2 * 1 / 5.
    assert scores.headings(wanted, found) == pytest.approx(0.8)
    assert scores.tree(wanted, found) == pytest.approx(0.4)


def test_exact_headings_are_a_recall_of_lines() -> None:
    assert scores.exact_headings("# A\n\n## B c\n", "##  B  c\n\n# a\n") == 0.5


def test_cells_out_of_place_count_for_cells_but_not_for_the_grid() -> None:
    turned = "| a | 1 |\n|---|---|\n| b | 2 |\n"
    assert scores.cells(TABLE, turned) == 1
    # a-b, 1-2 to the right, a-1, b-2 below: turned, each has the other direction.
    assert scores.grid(TABLE, turned) == 0


def test_a_lost_table_and_a_false_one_cost_alike() -> None:
    assert scores.cells(TABLE, "text") == scores.cells("text", TABLE) == 0
    # 4 of 4 cells found, 4 too many: 2 * 4 / 12.
    assert scores.cells(TABLE, f"{TABLE}\ntext\n\n{TABLE}") == pytest.approx(2 / 3)


def test_each_table_is_paired_with_its_best_counterpart() -> None:
    other = "| x | y |\n|---|---|\n| 1 | 9 |\n"
    assert scores.cells(f"{TABLE}\nx\n\n{other}", f"{other}\nx\n\n{TABLE}") == 1


def test_empty_cells_are_jumped_over_by_relations() -> None:
    assert dict(scores.relations((("a", "", "b"), ("", "c", "")))) == {("a", "b", "right"): 1}


def test_items_of_another_depth_are_others() -> None:
    assert scores.items("- a\n- b\n", "- a\n  - b\n") == pytest.approx(0.5)


def test_order_is_the_share_of_pairs_in_order() -> None:
    # Runs: abc bcd cde (p) and fgh (q): q before p turns 3 of 6 pairs round.
    assert scores.order("a b c d e\n\nf g h\n", "f g h\n\nxx\n\na b c d e\n") == pytest.approx(0.5)


def test_order_does_not_care_how_lines_are_cut() -> None:
    assert scores.order("a b c d e f", "a b\n\nc d\n\ne f") == 1


def test_order_of_nothing_in_common_is_no_question() -> None:
    assert scores.order("a b c d", "w x y z") is None


@pytest.mark.parametrize(
    ("places", "count"), [([], 0), ([1, 2, 3], 0), ([3, 2, 1], 3), ([2, 0, 1], 2)]
)
def test_inversions(places: list[int], count: int) -> None:
    assert scores.inversions(places) == count


def test_contained_folds_case_and_white_space() -> None:
    assert scores.contained(["A  b", "c"], "x a\nB y") == 0.5
    assert scores.contained([], "x") is None


# -- report ----------------------------------------------------------------------------------------


def _row(engine: str = "ours", error: str = "", **more: object) -> Row:
    values: dict[str, object] = {
        "kind": "docling", "engine": engine, "name": "a.md", "format": "md", "error": error,
        "reason": "", "bytes": 10, "pages": None, "seconds": 1.0, "cpu_seconds": 0.5,
        "peak_mib": 100.0,
    }  # fmt: skip
    return Row(**(values | more))  # type: ignore[arg-type]


def test_means_leave_out_documents_without_the_question() -> None:
    rows = [_row(scores={"edit": 0.5}), _row(scores={"edit": 1.0, "cells": 0.25})]
    assert "| md     | ours      | 2    |        | 0.750 | 0.250 |" in report.structure(rows)


def test_ratios_compare_the_same_documents() -> None:
    rows = [
        _row(cpu_seconds=3.0, peak_mib=300.0),
        _row("docling", cpu_seconds=1.5),
        _row(name="b.md", cpu_seconds=9.0),
        _row("docling", "Boom", name="b.md"),
    ]
    line = next(x for x in report.speed(rows).splitlines() if "ours" in x)
    assert [c.strip() for c in line.split("|")[-3:-1]] == ["2.00", "3.00"]


def test_a_few_clock_ticks_make_no_ratio() -> None:
    rows = [_row(cpu_seconds=0.02), _row("docling", cpu_seconds=0.01)]
    line = next(x for x in report.speed(rows).splitlines() if "ours" in x)
    assert line.split("|")[-3].strip() == "-"


def test_segments_follow_the_protocol_of_trafilatura() -> None:
    notes = {"wanted": 4, "unwanted": 2}
    rows = [_row(scores={"present": 0.75, "absent": 0.5}, notes=notes)]
    # 3 right, 1 missed, 1 wrong, 1 rightly left out.
    line = report.segments(rows).splitlines()[-1]
    assert [c.strip() for c in line.split("|")[-5:-1]] == ["0.7500", "0.7500", "0.7500", "0.6667"]


def test_costs_tell_the_memory_of_both_processes_together() -> None:
    row = _row(name="rows.csv", bytes=200_000_000, beside_mib=60.0, together_mib=155.0)
    line = report.costs([row]).splitlines()[-1]
    assert [c.strip() for c in line.split("|")[1:4]] == ["rows.csv", "200", "parsed"]
    assert [c.strip() for c in line.split("|")[-4:-1]] == ["100", "60", "155"]


def test_large_files_are_what_they_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in ("_TABLE_BYTES", "_LOG_BYTES", "_HTML_BYTES"):
        monkeypatch.setattr(big, size, 5000)
    names = frozenset({"rows.csv", "emoji.csv", "rows.json", "rows.jsonl", "server.log"})
    texts = {path.name: path.read_text("utf-8") for path in big.write_big(tmp_path, names)}
    assert texts.keys() == names
    assert all(2000 < len(text) <= 5100 for text in texts.values())
    assert len(json.loads(texts["rows.json"])["rows"]) > 10
    assert all(json.loads(line)["text"] for line in texts["rows.jsonl"].splitlines())
    assert "🙂" in texts["emoji.csv"]


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        ("corrupt-document", True),
        ("parse-crash", False),
        ("AttributeError", False),
        ("died", False),
    ],
)
def test_only_codes_of_refusals_are_clean(error: str, meant: bool) -> None:
    assert report.clean(error) is meant


# -- engines ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_engine_answers_measures_and_survives_a_document(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Some plain words.\n", "utf-8")
    with Engine("ours") as engine:
        missing = engine.ask(tmp_path / "missing.txt")
        found = engine.ask(path)
    assert missing.error == "FileNotFoundError"
    assert (found.text, found.error) == ("Some plain words.\n", "")
    assert found.peak_mib > 1
    assert found.together_mib > max(found.peak_mib, found.beside_mib) / 2 > 1
    assert found.beside_mib > 1


def test_a_worker_that_cannot_start_is_told_as_dead(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/bin/false")
    with Engine("pypdf", peers=tmp_path) as engine:
        assert engine.ask(tmp_path).error == "died"


def test_a_document_over_time_is_told_and_the_next_one_is_served(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "python"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nread line\nsleep 60\n", "ascii")
    script.chmod(0o700)
    with Engine("pypdf", timeout=0.2, peers=tmp_path) as engine:
        assert [engine.ask(tmp_path).error for _ in range(2)] == ["timeout", "timeout"]


def test_peers_need_nothing_of_the_project() -> None:
    code = "import sys; sys.argv = ['w', 'none']; import runpy; runpy.run_path(sys.argv[0])"
    worker = Path(report.__file__).with_name("worker.py")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code.replace("'w'", repr(str(worker)))], check=False
    )
    assert done.returncode == 0


# -- made documents --------------------------------------------------------------------------------


@pytest.mark.parametrize("words", WORDS, ids=lambda w: w.language)
def test_made_markdown_says_what_was_made(words: Words) -> None:
    made = model.report(words)
    seen = outline(made.markdown)
    assert [depth for depth, _ in seen.headings] == [1, 2, 3, 3, 2, 3, 2]
    assert [len(table) for table in seen.tables] == [4, 4]
    assert [depth for depth, _ in seen.items] == [1, 2, 2, 1, 1, 1, 1, 1]


def test_passages_of_a_made_document_can_be_told_apart() -> None:
    made = model.report(WORDS[0])
    turned = model.Made("", "en", tuple(reversed(made.blocks)))
    assert scores.order(made.markdown, made.markdown) == 1
    assert (scores.order(made.markdown, turned.markdown) or 0) < 0.2


def test_made_csv_and_json_hold_what_their_markdown_says(tmp_path: Path) -> None:
    text = web.write_csv(WORDS[2], tmp_path / "a.csv", charset="windows-1251", separator=";")
    assert outline(text).tables[0][-1] == ("a;b", "1", "two lines", "2020")
    assert "Подвал;412" in (tmp_path / "a.csv").read_text("windows-1251")
    web.write_json(WORDS[2], tmp_path / "a.json")
    assert list(json.loads((tmp_path / "a.json").read_text("utf-8"))) == ["Цель и охват", "n"]


def test_made_books_have_their_chapters_in_the_order_of_the_spine(tmp_path: Path) -> None:
    web.write_epub(model.report(WORDS[0]), tmp_path / "a.epub")
    with zipfile.ZipFile(tmp_path / "a.epub") as book:
        assert book.namelist()[0] == "mimetype"
        assert WORDS[0].title in book.read("OEBPS/z.xhtml").decode()


def test_nested_lists_lie_inside_their_item() -> None:
    made = model.Made("", "en", (model.Items(((1, "a"), (2, "b"), (2, "c"), (1, "d"))),))
    wanted = "<ul><li>a<ul><li>b</li><li>c</li></ul></li><li>d</li></ul>"
    assert wanted in web.html(model.Made("", "en", (model.Heading(1, "t"), *made.blocks)))


# -- places ----------------------------------------------------------------------------------------


def test_letters_within_spans_are_placed() -> None:
    answer = {"text": "# Žaba\n\nabcd\n", "spans": [(2, 7, None)]}
    # Žaba is five bytes; four of eight letters lie in the span.
    assert places.score(Path("a.docx"), answer) == {"placed": 0.5}


def test_spans_are_looked_up_on_their_page(tmp_path: Path) -> None:
    path = tmp_path / "two.pdf"
    canvas = reportlab.pdfgen.canvas.Canvas(str(path))
    for text in ("first leaf", "second leaf"):
        canvas.drawString(72, 700, text)
        canvas.showPage()
    canvas.save()
    spans = [(0, 10, 1), (12, 23, 1), (12, 23, 2), (0, 10, 9)]
    found = places.score(path, {"text": "first leaf\n\nsecond leaf\n", "spans": spans})
    assert found["on page"] == 0.5


def test_an_answer_without_spans_has_no_places() -> None:
    assert places.score(Path("a.pdf"), {"text": "x"}) == {}
    assert places.score(Path("a.pdf"), {"error": "no-text", "spans": []}) == {}


def test_spans_on_a_page_without_text_are_not_looked_up(tmp_path: Path) -> None:
    path = tmp_path / "scan.pdf"
    canvas = reportlab.pdfgen.canvas.Canvas(str(path))
    canvas.showPage()
    canvas.save()
    assert places.score(path, {"text": "read", "spans": [(0, 4, 1)]}) == {"placed": 1.0}
