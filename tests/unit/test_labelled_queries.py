"""Our labelled queries: well formed, enough of each kind and language, and true of the data."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from eval import labelled
from eval.labelled import KINDS, LANGUAGES, RETRIEVAL, Base, Query, Target, at, faults, read

with_data = pytest.mark.skipif(
    not RETRIEVAL.exists(), reason="LABELS ARE NOT TESTED: EVALUATION DATA IS NOT THERE"
)


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    return read()


@pytest.fixture(scope="module")
def base() -> Base:
    return Base()


def query(**changed: object) -> Query:
    """A good one, to be spoilt."""
    good = Query("q1", "native", "de", "Wer?", "german_laws/gg.md", ("Art 1",), "de", "why")
    return replace(good, **changed)  # type: ignore[arg-type]


# -- the queries themselves ------------------------------------------------------------------------


def test_the_queries_are_well_formed_and_enough(queries: list[Query]) -> None:
    assert faults(queries) == []


def test_every_language_has_every_kind(queries: list[Query]) -> None:
    counts = Counter((q.kind, q.lang) for q in queries)
    assert [(k, x) for k in KINDS for x in LANGUAGES if counts[k, x] < 2] == []


def test_about_half_of_each_kind_is_held_out(queries: list[Query]) -> None:
    training, held_out = labelled.halves(queries)
    assert len(training) + len(held_out) == len(queries)
    for kind in KINDS:
        share = sum(q.kind == kind for q in held_out) / sum(q.kind == kind for q in queries)
        assert 0.35 < share < 0.65


def test_a_query_stays_in_its_half_when_others_come() -> None:
    # printf q002 | sha256sum begins with ed, q003 with 64.
    assert [query(id=i).held_out for i in ("q002", "q003")] == [True, False]


@pytest.mark.parametrize(
    ("spoilt", "what"),
    [
        (query(kind="easy"), "kind easy"),
        (query(lang="fr"), "language fr"),
        (query(note=" "), "no text or no note"),
        (query(document=""), "an answer"),
        (query(kind="unanswerable"), "an answer"),
        (query(kind="unanswerable", document=""), "looked for in vain"),
        (query(absent=("x",)), "looked for in vain"),
        (query(kind="cross-lingual"), "cross-lingual from de to de"),
        (query(lang="en"), "native from en to de"),
    ],
)
def test_what_is_not_well_formed_is_named(spoilt: Query, what: str) -> None:
    assert any(what in fault for fault in faults([spoilt]) if fault.startswith("q1: "))


def test_twins_and_too_few_are_named() -> None:
    found = faults([query(), query()])
    assert "id twice: q1" in found
    assert "query twice: Wer?" in found
    assert "2 queries, 160 wanted" in found
    assert "0 of exact" in found
    assert "0 in mk" in found


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    line = '{"id": "q1", "kind": "exact", "sections": [], "section": "Art 1"}\n'
    (tmp_path / "queries").write_text(line)
    with pytest.raises(TypeError):
        read(tmp_path / "queries")


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "heading", "same"),
    [
        ("§ 5", "§ 5", True),
        ("§ 5", "§ 5 Benennung", True),
        ("§ 5", "§ 53 Datengeheimnis", False),
        ("Art 20", "Art 20a", False),
        ("Article 1", "Article 1", True),
        ("Article 1", "Article 12", False),
        ("Član 1.", "Član 1.", True),
        ("Benennung", "§ 5 Benennung", False),
    ],
)
def test_a_label_is_the_beginning_of_a_heading(label: str, heading: str, same: bool) -> None:
    assert at(label, heading) is same


@pytest.fixture
def small(tmp_path: Path) -> Base:
    """A law, a declaration in two languages, a help page in two."""
    for name, text in {
        "german_laws/gg.md": "# GG\n\n## Art 1\n\nEins.\n\n## Art 1a\n\nEins a.\n",
        "udhr/md/en.md": "# D\n\n## Preamble\n\nx\n\n## Article 1\n\ny\n",
        "udhr/md/de.md": "# D\n\n## Präambel\n\nx\n\n## Artikel 1\n\ny\n",
        "gnome_help/en/corpus.jsonl": '{"_id": "a/b", "title": "T", "text": "one two three"}\n',
        "gnome_help/hr/corpus.jsonl": '{"_id": "a/b", "title": "N", "text": "jedan"}\n'
        '{"_id": "c/a/b", "title": "M", "text": "dva"}\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return Base(tmp_path)


def test_the_same_section_of_another_language_is_an_answer_too(small: Base) -> None:
    page = query(document="gnome_help/en:a/b", sections=())
    assert small.answers(page) == [Target("gnome_help/en:a/b"), Target("gnome_help/hr:a/b")]
    article = query(document="udhr/md/de.md", sections=("Artikel 1",))
    assert small.answers(article) == [
        Target("udhr/md/de.md", ("Artikel 1",)),
        Target("udhr/md/en.md", ("Article 1",)),
    ]


@pytest.mark.parametrize(
    ("spoilt", "what"),
    [
        (query(document="german_laws/xx.md"), "no document german_laws/xx.md"),
        (query(also=(Target("udhr/md/en.md", ("Article 2",)),)), "not one heading Article 2"),
        (query(document="gnome_help/en:a/c"), "no document gnome_help/en:a/c"),
        (query(sections=("Art 2",)), "not one heading Art 2"),
        (query(sections=()), "is long: name its headings"),
        (query(doc_lang="en"), "is not in en"),
        (query(kind="cross-lingual", lang="hr", document="gnome_help/en:a/b", sections=(),
               doc_lang="en"), "the base has it in hr"),
        (query(document="", absent=("dv.",)), "dv. is there: dva"),
    ],
)  # fmt: skip
def test_a_label_that_is_not_so_is_named(small: Base, spoilt: Query, what: str) -> None:
    assert any(what in fault for fault in small.faults([spoilt]))


def test_a_good_label_has_no_fault(small: Base) -> None:
    assert small.faults([query()]) == []


def test_words_taken_from_the_base_are_found(small: Base) -> None:
    taken = query(query="and one, TWO three?")
    assert small.copied([taken], words=3) == ["q1"]
    assert small.copied([taken], words=4) == []


@with_data
def test_every_label_is_in_the_data_and_nothing_absent_is(queries: list[Query], base: Base) -> None:
    assert base.faults(queries) == []


@with_data
def test_no_query_has_eight_words_in_a_row_of_the_base(queries: list[Query], base: Base) -> None:
    assert base.copied(queries) == []


def test_the_table_has_a_row_for_each_kind_and_the_sum(queries: list[Query]) -> None:
    lines = labelled.table(queries).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == [*KINDS, "all"]
    assert [int(cell) for cell in lines[-1].split("|")[-3:-1]] == [
        len(queries),
        sum(q.held_out for q in queries),
    ]
