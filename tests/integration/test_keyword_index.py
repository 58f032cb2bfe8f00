"""The keyword leg on a real Postgres."""

import asyncio
import math
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from kernel import keyword_index
from kernel.db import pool as open_pool
from kernel.keyword_index import SMALL, KeywordHit, KeywordIndex, Statistics, rarest
from kernel.keywords import Mode, Word, analyse, query_terms, tsvector
from kernel.vectors import VectorFilter, point_id

Pool = asyncpg.Pool
START = datetime(2020, 1, 1, tzinfo=UTC)
NOW = VectorFilter(as_of=START + timedelta(days=1))
ALL = VectorFilter(include_historical=True)

PUT = """
INSERT INTO read.chunk (project, generation, version_id, chunk_id, document_id, source_id, ordinal,
  heading_path, byte_start, byte_end, title, text, language, terms, term_count, point_id)
SELECT $1, $2, v, c, 'doc-' || v, 's', 0, $3::text[], 0, 1, 't', 'x', l, t::tsvector, n, p
FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::int[], $9::uuid[])
  AS u (v, c, l, t, n, p)
"""
VALID = "INSERT INTO read.validity VALUES ($1, 'doc-' || $1, 'law', $2, $3) ON CONFLICT DO NOTHING"


@pytest.fixture
async def pool(database: str) -> AsyncIterator["Pool[Any]"]:
    opened = await open_pool(database)
    yield opened
    await opened.close()


async def put(
    pool: "Pool[Any]",
    texts: dict[str, str],
    *,
    language: str = "en",
    version: str = "v1",
    project: str = "law",
    generation: int = 1,
    headings: tuple[str, ...] = (),
    valid: bool = True,
) -> None:
    """Passages by chunk id; the version is valid from START on."""
    words = [analyse(text, language) for text in texts.values()]
    await pool.execute(
        PUT,
        project,
        generation,
        list(headings),
        [version] * len(texts),
        list(texts),
        [language] * len(texts),
        [tsvector(w) for w in words],
        [len(w) for w in words],
        [point_id(version, chunk) for chunk in texts],
    )
    if valid:
        await pool.execute(VALID, version, START, None)


async def ask(
    pool: "Pool[Any]",
    question: str,
    flt: VectorFilter = NOW,
    *,
    mode: Mode = "or",
    limit: int = 10,
    project: str = "law",
    generation: int = 1,
) -> list[KeywordHit]:
    index = KeywordIndex(pool)
    query = query_terms(question)
    return await index.search([(project, generation)], query, flt, limit=limit, mode=mode)


async def ids(pool: "Pool[Any]", question: str, flt: VectorFilter = NOW, **how: Any) -> list[str]:
    return [hit.chunk_id for hit in await ask(pool, question, flt, **how)]


async def test_a_passage_with_the_rarer_word_comes_first(pool: "Pool[Any]") -> None:
    await put(pool, {"a": "fine fine", "b": "breach", "c": "fine", "d": "fine"})
    assert (await ids(pool, "fine for a breach"))[0] == "b"


async def test_the_score_is_bm25(pool: "Pool[Any]") -> None:
    await put(pool, {"a": "fine fine court", "b": "court"})
    hits = await ask(pool, "fine")
    rare = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    assert [hit.chunk_id for hit in hits] == ["a"]
    assert hits[0].score == pytest.approx(rare * 2 * 2.2 / (2 + 1.2))
    assert hits[0].point_id == point_id("v1", "a")


async def test_the_share_is_of_the_question_and_says_what_is_not_in_the_base(
    pool: "Pool[Any]",
) -> None:
    await put(pool, {"a": "fine court", "b": "breach law", "c": "tax duty"})
    whole = (await ask(pool, "fine court"))[0]
    part = (await ask(pool, "fine xylophone"))[0]
    rare, unknown = math.log(1 + 2.5 / 1.5), math.log(1 + 3.5 / 0.5)
    assert (whole.chunk_id, whole.share) == ("a", 1.0)
    assert part.share == pytest.approx(rare / (rare + unknown))


async def test_a_short_passage_beats_a_long_one(pool: "Pool[Any]") -> None:
    await put(pool, {"long": "fine " + "other words here " * 20, "short": "fine here"})
    assert await ids(pool, "fine") == ["short", "long"]


async def test_more_occurrences_beat_fewer(pool: "Pool[Any]") -> None:
    await put(pool, {"once": "fine court court", "twice": "fine fine court"})
    assert await ids(pool, "fine") == ["twice", "once"]


async def test_the_stem_beats_the_beginning(pool: "Pool[Any]") -> None:
    await put(pool, {"other": "Datenbank", "same": "Datenschutzes"}, language="de")
    assert await ids(pool, "Datenschutz") == ["same", "other"]


MODES = {
    "both": "the fine for a breach",
    "one": "a breach breach breach breach",
    "other": "a fine",
    "none": "the court",
}


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("legacy", {"both"}), ("or", {"both", "one", "other"}), ("and_or", {"both", "one", "other"})],
)
async def test_modes(pool: "Pool[Any]", mode: Mode, expected: set[str]) -> None:
    await put(pool, MODES)
    assert set(await ids(pool, "What is the fine for a breach?", mode=mode)) == expected


async def test_and_or_puts_passages_with_every_word_first(pool: "Pool[Any]") -> None:
    long = "fine breach " + "other text follows here " * 30
    await put(pool, {"every": long, "one": "breach breach"})
    await put(pool, {f"n{i}": "fine" for i in range(30)}, version="v2")
    assert (await ids(pool, "breach fine", mode="or"))[0] == "one"
    assert (await ids(pool, "breach fine", mode="and_or"))[0] == "every"


async def test_legacy_needs_no_repetition_of_an_identifier(pool: "Pool[Any]") -> None:
    await put(pool, {"a": "the variable kb of url", "b": "KB_URL"})
    assert sorted(await ids(pool, "KB_URL", mode="legacy")) == ["a", "b"]
    assert (await ids(pool, "KB_URL"))[0] == "b"


async def test_an_exact_reference_is_first(pool: "Pool[Any]") -> None:
    await put(pool, {f"{n}": f"Article {n} refers to article {n + 1}, 33 times" for n in range(9)})
    await put(pool, {"right": "Article 33 on notification"}, version="v2")
    assert (await ids(pool, "Article 33"))[0] == "right"


async def test_a_question_finds_passages_in_the_other_script(pool: "Pool[Any]") -> None:
    await put(pool, {"a": "Заштита података о личности"}, language="sr")
    assert await ids(pool, "zaštita podataka") == ["a"]
    assert await ids(pool, "zastita podataka") == ["a"]


@pytest.mark.parametrize("question", ["", "the of and", "?!", "'; DROP TABLE read.chunk --'"])
async def test_a_question_without_known_words_finds_nothing(
    pool: "Pool[Any]", question: str
) -> None:
    await put(pool, {"a": "fine"})
    assert await ids(pool, question) == []


@pytest.mark.parametrize("text", ["it's a:b & c | !d <-> (e)", "back\\slash", "'quoted'", "a''b"])
async def test_any_letters_can_be_stored_and_asked(pool: "Pool[Any]", text: str) -> None:
    await put(pool, {"a": text})
    assert await ids(pool, text) == ["a"]


async def test_a_huge_passage_can_be_stored_and_found(pool: "Pool[Any]") -> None:
    await put(pool, {"a": "needle " + "word " * 40_000 + " ".join(f"w{i}" for i in range(20_000))})
    assert await ids(pool, "needle w19999") == ["a"]


async def test_a_huge_question_is_answered(pool: "Pool[Any]") -> None:
    await put(pool, {"a": "needle"})
    assert await ids(pool, "needle " + " ".join(f"pin{i}" for i in range(2000))) == ["a"]


async def test_validity_is_a_filter_inside_the_search(pool: "Pool[Any]") -> None:
    await put(pool, {f"old{i}": "fine" for i in range(60)}, version="v1", valid=False)
    await put(pool, {"new": "fine and many other words of the law"}, version="v2", valid=False)
    await pool.execute(VALID, "v1", START, START + timedelta(days=10))
    await pool.execute(VALID, "v2", START + timedelta(days=10), None)
    moments = [START - timedelta(days=1), START, START + timedelta(days=10)]
    found = [await ids(pool, "fine", VectorFilter(as_of=m), limit=1) for m in moments]
    assert [x[:1] and x[0][:3] for x in found] == [[], "old", "new"]
    assert len(await ids(pool, "fine", ALL, limit=100)) == 61


async def test_a_reinstated_version_is_invisible_in_the_gap(pool: "Pool[Any]") -> None:
    await put(pool, {"a": "fine"}, valid=False)
    await pool.execute(VALID, "v1", START, START + timedelta(days=1))
    await pool.execute(VALID, "v1", START + timedelta(days=5), None)
    found = [
        await ids(pool, "fine", VectorFilter(as_of=START + timedelta(days=d))) for d in (0, 3, 6)
    ]
    assert found == [["a"], [], ["a"]]
    assert await ids(pool, "fine", ALL) == ["a"]


async def test_a_version_without_a_window_is_never_found(pool: "Pool[Any]") -> None:
    await put(pool, {"a": "fine"}, valid=False)
    assert await ids(pool, "fine", ALL) == []


async def test_projects_and_generations_are_apart(pool: "Pool[Any]") -> None:
    await put(pool, {"a": "fine"})
    await put(pool, {"b": "fine"}, project="other")
    await put(pool, {"c": "fine"}, generation=2)
    assert await ids(pool, "fine") == ["a"]
    assert await ids(pool, "fine", project="other") == ["b"]
    assert await ids(pool, "fine", generation=2) == ["c"]
    assert await ids(pool, "fine", project="none") == []


async def test_filters(pool: "Pool[Any]") -> None:
    await put(pool, {"de": "Frist"}, language="de", headings=("Kapitel 1", "§ 5"))
    await put(pool, {"ru": "Frist"}, language="ru", version="v2", headings=("Kapitel 11",))
    moment = NOW.as_of
    german = VectorFilter(moment, languages=frozenset({"de"}))
    under = VectorFilter(moment, heading_prefix=("Kapitel 1",))
    deeper = VectorFilter(moment, heading_prefix=("Kapitel 1", "§ 5", "x"))
    second = VectorFilter(moment, documents=frozenset({"doc-v2"}))
    found = [await ids(pool, "Frist", flt) for flt in (german, under, deeper, second)]
    assert found == [["de"], ["de"], [], ["ru"]]


async def test_ties_are_in_the_same_order_every_time(pool: "Pool[Any]") -> None:
    await put(pool, {f"c{i}": "fine" for i in range(50)})
    first = await ids(pool, "fine", limit=5)
    assert all([await ids(pool, "fine", limit=5) == first for _ in range(5)])


async def test_questions_at_once_disturb_nothing(pool: "Pool[Any]") -> None:
    await put(pool, {f"c{i}": f"fine number{i % 7}" for i in range(200)})
    index = KeywordIndex(pool)
    asked = [
        index.search([("law", 1)], query_terms(f"number{i % 7}"), NOW, limit=100) for i in range(40)
    ]
    answers = await asyncio.gather(*asked)
    assert all(
        {hit.chunk_id for hit in hits} == {f"c{j}" for j in range(200) if j % 7 == i % 7}
        for i, hits in enumerate(answers)
    )


async def put_many(pool: "Pool[Any]", count: int) -> None:
    """`common` in all, `half` or `full`, `rare<n>` in ten, one `single`."""
    texts = {
        f"c{i}": f"common {'half' if i % 2 else 'full'} rare{i // 10} {'single' if i == 7 else ''}"
        for i in range(count)
    }
    await put(pool, texts)
    await pool.execute("ANALYZE read.chunk")


async def test_a_large_base_finds_the_rare_word_among_common_ones(pool: "Pool[Any]") -> None:
    await put_many(pool, SMALL + 500)
    assert (await ids(pool, "common half single", limit=1)) == ["c7"]
    assert set(await ids(pool, "common half rare12", limit=5)) == {
        f"c{i}" for i in range(121, 130, 2)
    }


async def test_a_large_base_answers_with_common_words_when_there_are_no_others(
    pool: "Pool[Any]",
) -> None:
    await put_many(pool, SMALL + 500)
    assert len(await ids(pool, "common words that are missing", limit=50)) == 50
    assert len(await ids(pool, "common single", limit=50)) == 50
    assert (await ids(pool, "common single", limit=50))[0] == "c7"


async def test_frequent_words_alone_read_no_more_than_a_bounded_number_of_passages(
    pool: "Pool[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyword_index, "MOST", 300)
    await put_many(pool, SMALL + 500)
    await put(pool, {"rare": "common words and one zebra"})
    await pool.execute("ANALYZE read.chunk")
    found = await ask(pool, "common", limit=1000)
    assert len(found) == 300
    found = await ask(pool, "common zebra", limit=1000)
    assert found[0].chunk_id == "rare"
    assert 300 <= len(found) <= 301


async def put_versions(pool: "Pool[Any]", count: int) -> None:
    """Versions of one passage each, every one with the frequent word."""
    texts = [
        f"common {'half' if i % 2 else 'full'} {'single' if i == 7 else ''}" for i in range(count)
    ]
    words = [analyse(text, "en") for text in texts]
    names = [f"v{i}" for i in range(count)]
    rows = [["en"] * count, [tsvector(w) for w in words], [len(w) for w in words]]
    points = [point_id(name, name) for name in names]
    await pool.execute(PUT, "law", 1, [], names, names, *rows, points)
    await pool.executemany(VALID, [(name, START, None) for name in names])
    await pool.execute("ANALYZE read.chunk")


def looks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Did the frequent word bring passages too, look by look?"""
    taken: list[bool] = []
    look = KeywordIndex._look

    async def noted(self: KeywordIndex, reading: Any, asked: Any, terms: list[str]) -> Any:
        taken.append("en:common" in terms)
        return await look(self, reading, asked, terms)

    monkeypatch.setattr(KeywordIndex, "_look", noted)
    return taken


async def test_of_few_named_versions_every_word_brings_passages_at_once(
    pool: "Pool[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_versions(pool, SMALL + 500)
    taken = looks(monkeypatch)
    few = VectorFilter(include_historical=True, versions=frozenset({"v7", "v8", "v9"}))
    assert sorted(await ids(pool, "common single", few)) == ["v7", "v8", "v9"]
    assert (await ids(pool, "common single", few))[0] == "v7"
    assert taken == [True, True]
    taken.clear()
    assert (await ids(pool, "common single", NOW, limit=1)) == ["v7"]
    assert taken == [False]  # of all versions the rare one alone


async def test_a_score_among_few_named_versions_is_that_of_the_whole_base(
    pool: "Pool[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_versions(pool, SMALL + 500)
    few = VectorFilter(include_historical=True, versions=frozenset({"v7", "v8", "v9"}))
    at_once = await ask(pool, "common single", few)
    monkeypatch.setattr(Statistics, "part", lambda self, _: self)  # as if they were all
    assert await ask(pool, "common single", few) == at_once


async def test_named_versions_of_more_passages_than_thought_lose_no_rare_word(
    pool: "Pool[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_versions(pool, SMALL + 500)
    await put(pool, {f"t{i}": "common table" for i in range(400)}, version="large")
    await put(pool, {"z": "common zebra"}, version="last")
    await pool.execute("ANALYZE read.chunk")
    monkeypatch.setattr(keyword_index, "MOST", 300)
    taken = looks(monkeypatch)
    both = VectorFilter(include_historical=True, versions=frozenset({"large", "last"}))
    found = await ids(pool, "common zebra", both, limit=1000)
    assert found[0] == "z"
    assert taken == [True, False, True]
    assert 300 <= len(found) <= 301


async def test_a_large_base_is_sampled_once_in_ten_minutes(pool: "Pool[Any]") -> None:
    await put_many(pool, SMALL + 1)
    now = 0.0
    index = KeywordIndex(pool, clock=lambda: now)

    async def known() -> Statistics:
        async with pool.acquire() as connection:
            return await index.statistics(connection, [("law", 1)])

    first = await known()
    assert first.passages == SMALL + 1
    assert first.frequent["en:common"] == pytest.approx(SMALL + 1, rel=0.02)
    assert "en:single" not in first.frequent
    await put(pool, {"more": "common"}, version="v2")
    now = 599.0
    assert await known() is first
    now = 601.0
    later = await known()
    assert (later.passages, first.versions, later.versions) == (SMALL + 2, 1, 2)


async def test_a_growing_small_base_is_counted_anew(pool: "Pool[Any]") -> None:
    index = KeywordIndex(pool)
    async with pool.acquire() as connection:
        assert (await index.statistics(connection, [("law", 1)])).passages == 0
        await put(pool, {"a": "fine"})
        assert (await index.statistics(connection, [("law", 1)])).passages == 1


def test_the_rarest_terms_bring_passages() -> None:
    known = Statistics(100_000, {"a": 50_000.0, "b": 900.0, "c": 90.0})
    assert rarest(["a", "b", "c", "d"], known, 1000) == ["d", "c", "b"]
    assert rarest(["a"], known, 1000) == ["a"]
    assert rarest(["a", "b"], Statistics(SMALL, {"a": 900.0}), 10) == ["a", "b"]


def test_part_of_the_versions_holds_a_part_of_the_passages() -> None:
    known = Statistics(100_000, {"a": 50_000.0}, 1000)
    assert known.part(10) == Statistics(1000, {"a": 500.0}, 10)
    assert known.part(2000) == known
    assert Statistics(5, {}, 0).part(3).passages == 5


def test_words_of_one_place_share_it() -> None:
    assert tsvector([Word(("a", "b"))]) == "'a':1 'b':1"


PUT_LARGE = """
WITH put AS (
  INSERT INTO read.chunk (project, generation, version_id, chunk_id, document_id, source_id,
    ordinal, heading_path, byte_start, byte_end, title, text, language, terms, term_count, point_id)
  SELECT 'law', 1, 'v' || i / 20, 'c' || i, 'd', 's', 0, '{}', 0, 1, 't', repeat(md5(i::text), 40),
         'en', format($$'=word%s':1$$, i % 50)::tsvector, 1,
         gen_random_uuid()
    FROM generate_series(0, $1 - 1) AS i
)
INSERT INTO read.validity
SELECT 'v' || n, 'd', 'law', $2, NULL FROM generate_series(0, $1 / 20) AS n
"""


async def test_passages_without_a_word_of_the_question_are_not_read(pool: "Pool[Any]") -> None:
    """The planner knows nothing of what a version has, and so took all passages of all versions
    for less work than those with the words of a long question."""
    count, question = 50_000, " ".join(["word3", *(f"missing{n}" for n in range(60))])
    await pool.execute(PUT_LARGE, count, START)
    await pool.execute("ANALYZE read.chunk, read.validity")
    index, bases = KeywordIndex(pool), [("law", 1)]
    async with pool.acquire() as connection, connection.transaction():
        await index.statistics(connection, bases)
        before = await fetched(connection)
        hits = await index.search(
            bases, query_terms(question), NOW, limit=50, connection=connection
        )
        assert len(hits) == 50
        assert await fetched(connection) - before < count / 4


async def fetched(connection: Any) -> int:
    """Rows of read.chunk that the transaction has read by an index."""
    asked = (
        "SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relid = 'read.chunk'::regclass"
    )
    return int(await connection.fetchval(asked))
