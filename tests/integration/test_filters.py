"""Filters of a question, on a real Postgres: each leg finds what passes them, all of it and nothing
else, at any time and by any knowledge."""

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from contracts.events import Erased
from contracts.query import QueryRequest
from kernel.db import pool
from kernel.errors import Refusal
from kernel.keywords import query_terms
from kernel.log import Log
from kernel.testing import first
from services.search import question as asked
from services.search import scope as scopes
from services.search.question import Question
from tests.integration.lines_world import Lines, one_leg

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION = "the water of the river, das Wasser im Fluss, вода в реке"
TEXTS = (
    "The {} water of the river is cold in winter and nobody swims in it.",
    "Das {} Wasser im Fluss ist kalt, und niemand schwimmt im Winter darin.",
    "Холодная {} вода в реке зимой, и никто в ней не плавает до самой весны.",
    "Nothing {} is said here of what they ask, only of bread and of butter.",
)
TYPES = ("text/markdown", "application/pdf", "text/html")
LABELS = (None, ["class:law", "tag:old"], ["class:law", "class:law/tax", "tag:new", "tag:old"])
ROWS = """
SELECT c.point_id, c.version_id, c.document_id, c.language, c.heading_path, c.text,
       tsvector_to_array(c.terms) AS terms, v.media_type, v.labels, v.received_at
  FROM read.chunk c JOIN read.version v USING (version_id)
"""


def day(number: int) -> datetime:
    return BEGIN + timedelta(days=number)


@pytest.fixture
async def world(database: str) -> AsyncIterator[Lines]:
    db = await pool(database)
    made = Lines(Log(db))
    await made.start()
    yield made
    db.terminate()


async def filled(world: Lines, chance: random.Random, documents: int = 7) -> list[datetime]:
    """Documents of one to three versions; returns a moment of recorded time after each."""
    times = []
    for number in range(documents):
        for version in range(chance.randint(1, 3)):
            sections = [
                f"## {chance.choice(['One', 'Two'])}\n\n{chance.choice(TEXTS)}\n" for _ in range(2)
            ]
            text = f"# {chance.choice(['Act', 'Law'])}\n\n" + "\n".join(sections)
            text = text.replace("{}", f"n{number}v{version}")
            await world.load(f"d{number}", text, day(10 * version + chance.randint(0, 9)))
        times.append(datetime.now(UTC))
    for row in await world.log.pool.fetch("SELECT version_id FROM read.version"):
        await world.log.pool.execute(
            "UPDATE read.version SET media_type = $2, labels = $3, received_at = $4"
            " WHERE version_id = $1",
            row["version_id"],
            chance.choice(TYPES),
            chance.choice(LABELS),
            day(chance.randint(0, 30)),
        )
    return times


def any_filters(chance: random.Random, times: list[datetime], documents: list[str]) -> Any:
    """Some filters, at some time."""
    first, last = sorted((chance.randint(0, 30), chance.randint(0, 30)))
    choices: dict[str, Any] = {
        "heading_prefix": chance.choice([["Act"], ["Law", "One"], ["Two"]]),
        "languages": chance.sample(["en", "de", "ru"], 2),
        "documents": chance.sample(documents, 3),
        "types": chance.choice([["pdf"], ["application/pdf", "web"], ["md"], ["text"]]),
        "tags": chance.choice([["old"], ["new"], ["old", "new"]]),
        "classes": chance.choice([["law"], ["law/tax"], ["law/tax", "art"]]),
        "dated_from": day(first).isoformat(), "dated_until": day(last).isoformat(),
        "received_from": day(first).isoformat(), "received_until": day(last).isoformat(),
    }  # fmt: skip
    named = chance.sample(sorted(choices), chance.choice([1, 1, 2, 3]))
    when: dict[str, Any] = chance.choice([
        {}, {"as_of": day(chance.randint(0, 30)).isoformat()}, {"include_historical": True},
        {"recorded_as_of": chance.choice(times).isoformat(), "as_of": day(15).isoformat()},
    ])  # fmt: skip
    return {name: choices[name] for name in named} | when


async def passing(world: Lines, request: QueryRequest, now: datetime) -> dict[Any, Any]:
    """All passages that pass, by looking at each."""
    windows = [dict(r) for r in await world.log.pool.fetch("SELECT * FROM read.known")]
    here = {w["version_id"] for w in windows if w["current"]}
    rows = await world.log.pool.fetch(ROWS)
    return {
        r["point_id"]: r
        for r in rows
        if _is_like(r, request)
        and r["version_id"] in here
        and any(w["version_id"] == r["version_id"] and _holds(w, request, now) for w in windows)
    }


def _is_like(row: Any, request: QueryRequest) -> bool:
    labels, fit = set(row["labels"] or ()), scopes.fit_of(request)
    prefix = list(request.heading_prefix)
    return (
        row["heading_path"][: len(prefix)] == prefix
        and (not request.languages or row["language"] in request.languages)
        and (not request.documents or row["document_id"] in request.documents)
        and (not fit.media_types or row["media_type"] in fit.media_types)
        and all(f"tag:{tag}" in labels for tag in request.tags)
        and (not request.classes or any(f"class:{c}" in labels for c in request.classes))
        and (request.received_from is None or row["received_at"] >= request.received_from)
        and (request.received_until is None or row["received_at"] <= request.received_until)
    )


def _holds(window: Any, request: QueryRequest, now: datetime) -> bool:
    known = request.recorded_as_of
    said = (
        window["current"]
        if known is None
        else window["recorded_from"] <= known
        and (window["recorded_until"] is None or window["recorded_until"] > known)
    )
    moment = None if request.include_historical else request.as_of or now
    begin, until = window["valid_from"], window["valid_until"]
    return bool(
        said
        and (moment is None or (begin <= moment and (until is None or until > moment)))
        and (request.dated_from is None or begin >= request.dated_from)
        and (request.dated_until is None or begin <= request.dated_until)
    )


@pytest.mark.parametrize("few", [2000, 2, 0], ids=["named", "some named", "sifted"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_each_leg_finds_exactly_what_passes(
    world: Lines, seed: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    times = await filled(world, chance)
    rows = await world.log.pool.fetch("SELECT DISTINCT document_id FROM read.version ORDER BY 1")
    monkeypatch.setattr(scopes, "FEW", few)
    engine = one_leg(world, "fused")
    vector = await world.embedder.embed_query(QUESTION)
    terms, found = set(query_terms(QUESTION).terms), 0
    for _ in range(40):
        monkeypatch.setattr(asked, "CANDIDATES", chance.choice([3, 50]))
        filters = any_filters(chance, times, [r["document_id"] for r in rows])
        request = QueryRequest.model_validate({"query": QUESTION, "top_k": 3, **filters})
        question, now = Question(request), datetime.now(UTC)
        scope = await engine._scopes.open(engine._pool, request)
        legs = await engine._legs(question, scope)
        expected = await passing(world, request, now)
        cosines = dict(zip(expected, await _cosines(world, vector, expected), strict=True))
        order = sorted(cosines, key=lambda p: (-cosines[p], p))[: question.depth]
        assert [round(f.score, 4) for f in legs.dense] == [round(cosines[p], 4) for p in order]
        assert {f.point_id for f in legs.dense} <= set(expected)
        words = {p for p, r in expected.items() if terms & set(r["terms"])}
        assert {f.point_id for f in legs.keyword} <= words
        assert len(legs.keyword) == min(len(words), question.depth)
        found += len(expected)
    assert found > 20


async def _cosines(world: Lines, vector: Any, rows: dict[Any, Any]) -> list[float]:
    if not rows:
        return []
    matrix = await world.embedder.embed_documents([r["text"] for r in rows.values()])
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(vector)
    return [float(s) for s in matrix @ vector / lengths]


async def test_nothing_farther_than_max_distance_comes_from_the_vectors(world: Lines) -> None:
    await filled(world, random.Random(3))
    every = await world.ask(QUESTION, "dense", explain=True)
    scores = [hit.explain.dense.score for hit in every.results if hit.explain and hit.explain.dense]
    middle = sorted(scores)[len(scores) // 2]
    near = await world.ask(QUESTION, "dense", max_distance=1 - middle)
    assert len(near.results) == sum(1 - s <= 1 - middle for s in scores) < len(scores)
    assert (await world.ask(QUESTION, "keyword", max_distance=0)).results


async def test_the_shown_window_is_the_one_within_the_dates(world: Lines) -> None:
    """A version that was valid twice is shown as it was the first time, if that is asked for."""
    ten = await world.load("act", "# Act\n\nThe fine is ten.\n", day(0))
    await world.load("act", "# Act\n\nThe fine is twenty.\n", day(10))
    await world.all_of(await world.back(ten, day(20)))
    options: dict[str, Any] = {"include_historical": True, "dated_until": day(5).isoformat()}
    [hit] = (await world.ask("the fine", **options)).results
    assert (hit.version_id, hit.valid_from) == (ten.version_id, day(0))


@pytest.mark.parametrize("few", [2000, 0], ids=["named", "sifted"])
@pytest.mark.parametrize("leg", ["dense", "keyword"])
async def test_a_change_in_the_middle_shows_the_old_or_the_new(
    world: Lines, leg: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The legs are asked, and validity changes before anything is sifted or confirmed."""
    ten = await world.load("act", "# Act\n\nThe fine is ten.\n", day(0))
    await world.load("act", "# Act\n\nThe fine is twenty.\n", day(10))
    event = await world.back(ten, day(20))
    monkeypatch.setattr(scopes, "FEW", few)
    engine = one_leg(world, leg)
    opened = engine._scopes.open

    async def changed(connection: Any, *args: Any) -> Any:
        scope = await opened(connection, *args)
        if connection is engine._pool:
            await world.all_of(event)
        return scope

    monkeypatch.setattr(engine._scopes, "open", changed)
    request = QueryRequest.model_validate({"query": "fine", "types": ["md"], "tags": []})
    [hit] = (await engine.query(request)).results
    assert "is ten." in hit.text


async def test_an_erased_version_has_no_labels(world: Lines) -> None:
    done = await world.load("act", "# Act\n\nThe fine is ten.\n", day(0))
    await world.log.pool.execute("UPDATE read.version SET labels = '{tag:secret}'")
    erased = Erased(**done.ids, reason="request", scope="document", blobs=1)
    await world.log.append([first(erased)])
    await world.fold()
    assert await world.log.pool.fetchval("SELECT labels FROM read.version") is None


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"languages": ["English"]}, "languages"),
        ({"types": ["PDF"]}, "types"),
        ({"tags": [""]}, "tags"),
        ({"max_distance": 3}, "max_distance"),
        ({"dated_from": "2026-02-01", "dated_until": "2026-01-01"}, "dated_from is after"),
        ({"received_from": "yesterday"}, "received_from"),
    ],
)  # fmt: skip
def test_a_filter_that_means_nothing_is_refused(bad: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        QueryRequest.model_validate({"query": "x", **bad})


async def test_a_type_that_nothing_is_called_is_refused(world: Lines) -> None:
    with pytest.raises(Refusal, match=r"types\.1: no type of file: a media type, an"):
        await world.ask("x", types=["docx", "letter"])
