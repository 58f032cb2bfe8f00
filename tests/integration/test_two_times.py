"""What a question sees at two times: when a version is valid, and when that was known."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from contracts.events import Erased
from contracts.query import QueryRequest
from kernel.db import pool, queries
from kernel.errors import Refusal
from kernel.keyword_index import KeywordIndex
from kernel.keywords import query_terms
from kernel.log import Log
from kernel.testing import first
from kernel.vectors import VectorFilter
from services.indexer.handlers import on_erased
from services.search import engine, scope
from services.search import question as asked
from services.search.projection import REVISION, digest
from tests.integration.lines_world import LEGS, Lines, one_leg

QUESTION = "maximum fine"


def text(amount: str) -> str:
    return f"# Act\n\n## Fines\n\nThe maximum fine is {amount} euro."


def day(number: int, year: int = 2020) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=number)


def said(amount: str) -> str:
    return f"The maximum fine is {amount} euro."


@pytest.fixture
async def world(database: str) -> AsyncIterator[Lines]:
    db = await pool(database)
    made = Lines(Log(db))
    await made.start()
    yield made
    db.terminate()


async def now(world: Lines) -> datetime:
    """When the newest event was recorded."""
    return (await world.log.read(await world.log.head() - 1))[0].recorded_at


@pytest.mark.parametrize("leg", LEGS)
async def test_a_question_is_answered_by_what_was_known_then(world: Lines, leg: str) -> None:
    await world.load("act", text("ten"), day(0))
    one = await now(world)
    await world.load("act", text("twenty"), day(100))
    two = await now(world)
    await world.load("act", text("thirty"), day(50))  # between the two
    three = await now(world)

    async def at(known: datetime | None, valid: int) -> list[str]:
        more = {} if known is None else {"recorded_as_of": known.isoformat()}
        return await world.texts(QUESTION, leg, as_of=day(valid).isoformat(), **more)

    seen = {
        (name, valid): [t.split()[4] for t in await at(known, valid)]
        for name, known in {"one": one, "two": two, "three": three, "now": None}.items()
        for valid in (-1, 0, 49, 50, 99, 100)
    }
    ten, twenty, thirty = ["ten"], ["twenty"], ["thirty"]
    line = {
        "one": [[], ten, ten, ten, ten, ten],
        "two": [[], ten, ten, ten, ten, twenty],
        "three": [[], ten, ten, thirty, thirty, twenty],
    }
    line["now"] = line["three"]
    expected = {
        (name, valid): words
        for name, row in line.items()
        for valid, words in zip((-1, 0, 49, 50, 99, 100), row, strict=True)
    }
    assert seen == expected


@pytest.mark.parametrize("leg", LEGS)
async def test_history_by_what_was_known_then_is_every_version_that_there_was(
    world: Lines, leg: str
) -> None:
    await world.load("act", text("ten"), day(0))
    await world.load("act", text("twenty"), day(100))
    two = await now(world)
    await world.load("act", text("thirty"), day(50))
    more = {"recorded_as_of": two.isoformat(), "include_historical": True}
    assert await world.texts(QUESTION, leg, **more) == sorted([said("ten"), said("twenty")])
    assert len(await world.texts(QUESTION, leg, include_historical=True)) == 3
    early = {"recorded_as_of": "2000-01-01", "include_historical": True}
    assert await world.texts(QUESTION, leg, **early) == []


async def test_the_windows_of_a_hit_are_those_that_were_known(world: Lines) -> None:
    await world.load("act", text("ten"), day(0))
    one = await now(world)
    await world.load("act", text("twenty"), day(100))
    valid = {"as_of": day(5).isoformat()}
    (hit,) = (await world.ask(QUESTION, **valid)).results
    assert (hit.valid_from, hit.valid_until) == (day(0), day(100))
    (hit,) = (await world.ask(QUESTION, recorded_as_of=one.isoformat(), **valid)).results
    assert (hit.valid_from, hit.valid_until) == (day(0), None)


async def test_without_as_of_it_is_what_was_valid_at_the_time_of_the_knowledge(
    world: Lines,
) -> None:
    await world.load("act", text("ten"), day(0))
    future = datetime.now(UTC) + timedelta(days=365)
    await world.load("act", text("twenty"), future)
    known = (datetime.now(UTC) + timedelta(days=400)).isoformat()
    assert await world.texts(QUESTION, recorded_as_of=known) == [said("twenty")]
    assert await world.texts(QUESTION, recorded_as_of=(await now(world)).isoformat()) == [
        said("ten")
    ]
    assert await world.texts(QUESTION) == [said("ten")]


async def test_a_day_of_knowledge_includes_what_was_recorded_on_it(world: Lines) -> None:
    await world.load("act", text("ten"), day(0))
    today = (await now(world)).date()
    assert await world.texts(QUESTION, recorded_as_of=today.isoformat()) == [said("ten")]
    before = (today - timedelta(days=1)).isoformat()
    assert await world.texts(QUESTION, recorded_as_of=before) == []


@pytest.mark.parametrize("leg", LEGS)
async def test_a_reinstated_version_is_known_from_its_return_on(world: Lines, leg: str) -> None:
    ten = await world.load("act", text("ten"), day(0))
    await world.load("act", text("twenty"), day(100))
    two = await now(world)
    await world.all_of(await world.back(ten, day(200)))
    valid = {"as_of": day(300).isoformat()}
    assert await world.texts(QUESTION, leg, **valid) == [said("ten")]
    then = {"recorded_as_of": two.isoformat()}
    assert await world.texts(QUESTION, leg, **valid, **then) == [said("twenty")]


@pytest.mark.parametrize("leg", LEGS)
async def test_what_was_erased_since_is_not_answered_at_any_time(world: Lines, leg: str) -> None:
    ten = await world.load("act", text("ten"), day(0))
    await world.load("act", text("twenty"), day(100))
    two = await now(world)
    then = {"recorded_as_of": two.isoformat(), "include_historical": True}
    assert len(await world.texts(QUESTION, leg, **then)) == 2
    erased = Erased(
        project="default", document_id=ten.document_id, version_id=ten.version_id,
        source_id=ten.source_id, reason="request", scope="version", blobs=1,
    )  # fmt: skip
    await world.log.append([first(erased)])
    await world.fold()
    assert await world.texts(QUESTION, leg, **then) == [
        said("twenty")
    ]  # its passages are there yet
    await on_erased(erased, index=world.index)
    assert await world.texts(QUESTION, leg, **then) == [said("twenty")]


@pytest.mark.parametrize("leg", LEGS)
async def test_a_replay_of_the_projection_gives_the_same_past(world: Lines, leg: str) -> None:
    ten = await world.load("act", text("ten"), day(0))
    await world.load("act", text("twenty"), day(100))
    two = await now(world)
    await world.load("act", text("thirty"), day(50))
    await world.all_of(await world.back(ten, day(200)))
    live = await digest(world.log.pool)
    past = await world.log.pool.fetchval("SELECT count(*) FROM read.validity_past")
    assert past == 3  # ten for ever, ten until 100, twenty for ever
    await world.projection.replay()
    assert await digest(world.log.pool) == live
    then = {"recorded_as_of": two.isoformat(), "as_of": day(99).isoformat()}
    assert await world.texts(QUESTION, leg, **then) == [said("ten")]


async def test_tables_of_an_earlier_release_are_folded_anew_once(world: Lines) -> None:
    await world.load("act", text("ten"), day(0))
    one = await now(world)
    await world.load("act", text("twenty"), day(100))
    live = await digest(world.log.pool)
    async with world.log.pool.acquire() as connection:
        await connection.execute("DELETE FROM read.validity_past")
        await connection.execute("UPDATE read.validity SET recorded_from = now()")
        await connection.execute("UPDATE log.projection SET revision = 1")
    await world.projection.renew()
    assert await digest(world.log.pool) == live
    revision = await world.log.pool.fetchval("SELECT revision FROM log.projection")
    assert revision == REVISION
    more = {"recorded_as_of": one.isoformat(), "as_of": day(300).isoformat()}
    assert await world.texts(QUESTION, **more) == [said("ten")]
    await world.log.pool.execute("DELETE FROM read.validity_past")
    await world.projection.renew()  # not again
    assert await world.log.pool.fetchval("SELECT count(*) FROM read.validity_past") == 0


@pytest.mark.parametrize("few", [0, 1, 5, 2000])
@pytest.mark.parametrize("leg", LEGS)
async def test_many_versions_are_told_to_the_vectors_in_either_form(
    world: Lines, leg: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "FEW", few)
    for n in range(6):
        await world.load(f"act{n}", text(f"{n}-old"), day(0))
        if n == 3:
            middle = await now(world)
    for n in range(6):
        await world.load(f"act{n}", text(f"{n}-new"), day(10))
    more = {"recorded_as_of": middle.isoformat()}
    for valid in (5, 15):
        found = await world.texts(QUESTION, leg, as_of=day(valid).isoformat(), **more)
        assert found == sorted(said(f"{n}-old") for n in range(4))
    found = await world.texts(QUESTION, leg, as_of=day(15).isoformat())
    assert found == sorted(said(f"{n}-new") for n in range(6))


async def test_valid_passages_are_found_behind_many_nearer_ones(
    world: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "FEW", 1)
    monkeypatch.setattr(engine, "MORE", 2)
    monkeypatch.setattr(asked, "CANDIDATES", 1)
    for n in range(4):
        await world.load(f"old{n}", text(f"and many other words of {n} and of the law"), day(0))
    middle = await now(world)
    for n in range(30):
        await world.load(f"new{n}", text(f"{n}"), day(0))
    then = {"recorded_as_of": middle.isoformat(), "as_of": day(5).isoformat()}
    reply = await world.ask(QUESTION, "dense", **then, top_k=3)
    assert [hit.dense_rank for hit in reply.results] == [1, 2, 3]
    assert all("many other words" in hit.text for hit in reply.results)
    assert len((await world.ask(QUESTION, "dense", **then, top_k=40)).results) == 4


# -- several projects ------------------------------------------------------------------------------


@pytest.mark.parametrize("leg", LEGS)
async def test_several_projects_are_asked_at_once_and_hits_say_theirs(
    world: Lines, leg: str
) -> None:
    for project in ("a", "b", "c"):
        await world.load("act", text(project), day(0), project)
    reply = await world.ask(QUESTION, leg, projects=["a", "c", "a", "nobody"])
    assert sorted(hit.project for hit in reply.results) == ["a", "c"]
    assert await world.texts(QUESTION, leg, project="b") == [said("b")]


async def test_a_word_is_as_rare_as_it_is_in_all_projects_together(world: Lines) -> None:
    """In `small` alone `fine` is rare: by the counts of each project its passage would win."""
    words = {"large": ["fine"] * 8 + ["court"], "small": ["court"] * 8 + ["fine"]}
    for project, of_project in words.items():
        for n, word in enumerate(of_project):
            await world.load(f"d{n}", f"# A\n\nAbout one {word} number{n}.", day(0), project)
    index, moment = KeywordIndex(world.log.pool), VectorFilter(as_of=day(1))
    question = query_terms("fine court")
    both = await index.search([("large", 1), ("small", 1)], question, moment, limit=50)
    assert len(both) == 18
    assert len({round(hit.score, 6) for hit in both}) == 1  # nine passages hold each of the words
    alone = await index.search([("small", 1)], question, moment, limit=50)
    assert len({round(hit.score, 6) for hit in alone}) == 2
    assert await index.search([("large", 2), ("small", 3)], question, moment, limit=50) == []


async def test_projects_are_fused_by_one_rank_for_each_leg(world: Lines) -> None:
    for n, project in enumerate(("a", "b")):
        for m in range(3):
            await world.load(f"d{m}", text(f"{n}{m}"), day(0), project)
    reply = await world.ask(QUESTION, projects=["a", "b"])
    assert sorted(h.dense_rank or 0 for h in reply.results) == [1, 2, 3, 4, 5, 6]
    assert sorted(h.keyword_rank or 0 for h in reply.results) == [1, 2, 3, 4, 5, 6]


async def test_a_project_of_a_model_that_is_not_at_hand_is_refused(world: Lines) -> None:
    for project in ("a", "b"):
        await world.load("act", text(project), day(0), project)
    await world.log.pool.execute("UPDATE read.generation SET embedder = 'x' WHERE project = 'b'")
    for asked_of in ({"projects": ["a", "b"]}, {"project": "b"}):
        with pytest.raises(Refusal) as refused:
            await world.ask(QUESTION, **asked_of)
        assert refused.value.code == "embedder-missing"
    assert await world.texts(QUESTION, project="a") == [said("a")]


def test_a_question_names_one_project_or_several() -> None:
    assert QueryRequest.model_validate({"query": "x"}).bases == ("default",)
    several = QueryRequest.model_validate({"query": "x", "projects": ["b", "a", "b"]})
    assert several.bases == ("b", "a")
    wrong: tuple[dict[str, object], ...] = (
        {"projects": []},
        {"projects": ["a"], "project": "a"},
        {"projects": ["A b"]},
    )
    for bad in wrong:
        with pytest.raises(ValueError):
            QueryRequest.model_validate({"query": "x", **bad})


# -- a deep past -----------------------------------------------------------------------------------


@pytest.mark.parametrize("leg", LEGS)
async def test_where_few_of_many_versions_are_valid_they_are_named(
    world: Lines, leg: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "LEAST", 10)
    for source in range(2):
        for n in range(6):
            await world.load(f"act{source}", text(f"{source}-{n}"), day(n))
    made = scope.Scopes()
    request = QueryRequest.model_validate({"query": QUESTION, "as_of": day(3).isoformat()})
    opened = await made.open(world.log.pool, request)
    assert len(opened.filters["default"].versions or ()) == len(opened.filter.versions or ()) == 2
    for n in range(6):
        found = await world.texts(QUESTION, leg, as_of=day(n).isoformat())
        assert found == [said(f"{source}-{n}") for source in range(2)]
    assert await world.texts(QUESTION, leg, as_of=day(-1).isoformat()) == []
    assert len(await world.texts(QUESTION, leg, include_historical=True)) == 12
    await world.load("other", text("other"), day(0), "shallow")
    both = {"projects": ["default", "shallow"], "as_of": day(5).isoformat()}
    assert len(await world.texts(QUESTION, leg, **both)) == 3


async def test_whether_a_past_is_deep_is_counted_again_after_a_while(
    world: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "LEAST", 4)
    clock = [0.0]
    made = scope.Scopes(clock=lambda: clock[0])
    request = QueryRequest.model_validate({"query": QUESTION})

    async def named() -> bool:
        opened = await made.open(world.log.pool, request)
        return opened.filters["default"].versions is not None

    await world.load("act", text("0"), day(0))
    assert not await named()
    for n in range(1, 6):
        await world.load("act", text(f"{n}"), day(n))
    assert not await named()
    clock[0] = scope.KEEP_S
    assert await named()


@pytest.mark.parametrize("leg", LEGS)
async def test_a_change_between_two_questions_of_a_deep_past_is_seen_by_the_second(
    world: Lines, leg: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same engine, the same moments, nothing counted anew: only validity changes."""
    monkeypatch.setattr(scope, "LEAST", 4)
    first, *_ = [await world.load("act", text(f"{n}"), day(n)) for n in range(6)]
    asked = one_leg(world, leg)

    async def seen(moment: datetime) -> list[str]:
        request = QueryRequest.model_validate({"query": QUESTION, "as_of": moment.isoformat()})
        return [hit.text.splitlines()[-2] for hit in (await asked.query(request)).results]

    half, quarter = day(3) - timedelta(minutes=30), day(3) - timedelta(minutes=15)
    assert (await seen(half), await seen(quarter)) == ([said("2")], [said("2")])
    await world.load("act", text("late"), day(3) - timedelta(hours=1))
    assert (await seen(half), await seen(quarter)) == ([said("late")], [said("late")])
    await world.back(first, day(3) - timedelta(minutes=20))
    await world.fold()  # the vectors do not know yet
    assert (await seen(half), await seen(quarter)) == ([said("late")], [said("0")])


MOMENTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    day(0),
    day(0) + timedelta(microseconds=1),
    day(0) + timedelta(seconds=1),
    day(1),
    datetime(9999, 12, 30, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),  # infinity, to Postgres
]


async def test_the_index_of_instants_leaves_no_window_out(world: Lines) -> None:
    """Each window against each instant: what holds by its times is among what the span brings."""
    missed = await world.log.pool.fetch(
        """SELECT f, u, m FROM unnest($1::timestamptz[]) f,
                (SELECT unnest($1::timestamptz[]) UNION ALL SELECT NULL) until(u),
                unnest($1::timestamptz[]) m
            WHERE f <= m AND (u IS NULL OR u > m)
              AND NOT read.span('p', f, u) @> read.instant('p', m)""",
        MOMENTS,
    )
    assert missed == []


async def test_the_index_of_instants_keeps_projects_apart(world: Lines) -> None:
    other = await world.log.pool.fetchval(
        """SELECT count(*) FROM generate_series(1, 200) one, generate_series(1, 200) two,
                unnest($1::timestamptz[]) m
            WHERE one <> two
              AND read.span('p' || one, '-infinity', NULL) @> read.instant('p' || two, m)""",
        MOMENTS,
    )
    assert other == 0


async def test_valid_versions_of_two_projects_of_one_hash_are_told_apart(
    world: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "LEAST", 4)
    await world.log.pool.execute(
        """CREATE OR REPLACE FUNCTION read.instant(project text, at timestamptz) RETURNS bigint
           LANGUAGE sql IMMUTABLE AS $$ SELECT 5 $$"""
    )
    await world.log.pool.execute("REINDEX TABLE read.validity")
    for project in ("default", "other"):
        for n in range(6):
            await world.load("act", text(f"{project} {n}"), day(n), project)
    for n in range(6):
        opened = await scope.Scopes().open(
            world.log.pool,
            QueryRequest.model_validate({"query": QUESTION, "as_of": day(n).isoformat()}),
        )
        assert len(opened.filters["default"].versions or ()) == 1


async def test_the_valid_versions_are_read_from_the_index_of_instants(world: Lines) -> None:
    sql = queries("services.search", "queries").opening.sql
    async with world.log.pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan = off")
        await connection.execute("SET LOCAL enable_bitmapscan = off")
        plan = "\n".join(
            row[0]
            for row in await connection.fetch(f"EXPLAIN {sql}", ["default"], day(0), 9, ["default"])
        )
    assert "Index Only Scan using validity_instant" in plan
