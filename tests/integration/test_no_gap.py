"""While versions take each other's place a question sees the old one or the new one, in every leg.

Each mechanism is switched off once, to see that the test for it is not idle.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts.events import Event, Indexed, Reinstated, Superseded, Window
from contracts.query import QueryRequest
from kernel.db import pool
from kernel.errors import Retry
from kernel.log import Log
from kernel.vectors import VectorIndex, open_index
from kernel.vectors.memory import MemoryIndex
from services.indexer.index import Index
from services.search import engine as engine_module
from services.search import scope
from services.search.scope import Scopes
from tests.integration.lines_world import LEGS, Lines, one_leg

QUESTION = "maximum fine"


def day(number: int) -> datetime:
    return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=number)


def text(amount: str) -> str:
    return f"# Act\n\n## Fines\n\nThe maximum fine is {amount} euro."


def said(amount: str) -> str:
    return f"The maximum fine is {amount} euro."


class Hooked(MemoryIndex):
    """Lets others run before each call and between them; `before` and `after` a search."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], Awaitable[object]] | None = None
        self.after: Callable[[], Awaitable[object]] | None = None

    async def search(self, *args: Any) -> Any:
        await asyncio.sleep(0)
        if (once := self.before) is not None:
            self.before = None
            await once()
        found = await super().search(*args)
        if (once := self.after) is not None:
            self.after = None
            await once()
        return found

    async def set_validity(self, *args: Any) -> None:
        await asyncio.sleep(0)
        await super().set_validity(*args)
        await asyncio.sleep(0)


@pytest.fixture
async def world(database: str) -> AsyncIterator[Lines]:
    db = await pool(database, size=8)
    made = Lines(Log(db), Hooked())
    await made.start()
    yield made
    db.terminate()


def never_unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question believes the vectors."""
    opened = Scopes.open

    async def believing(self: Scopes, connection: Any, request: Any, documents: Any = ()) -> Any:
        scope = await opened(self, connection, request, documents)
        return scope.__class__(
            **{f: getattr(scope, f) for f in scope.__dataclass_fields__ if f != "filters"},
            filters=dict.fromkeys(scope.filters, scope.filter),
        )

    monkeypatch.setattr(Scopes, "open", believing)


def never_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is not asked again."""
    monkeypatch.setattr(engine_module, "ROUNDS", 0)


def never_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectors do not wait for Postgres."""

    async def at_once(self: Index, project: str, document_id: str) -> None:
        async with self.writing(project, document_id) as connection:
            await self.respan(connection, await self.kept(connection, project), document_id)

    monkeypatch.setattr(Index, "revalidate", at_once)


OFF = pytest.mark.parametrize("off", [False, True], ids=["as it is", "switched off"])


@pytest.mark.parametrize("leg", LEGS)
@OFF
async def test_a_version_that_came_back_is_found_before_the_vectors_know(
    world: Lines, leg: str, off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ten = await world.load("act", text("ten"), day(0))
    await world.load("act", text("twenty"), day(100))
    await world.back(ten, day(200))
    assert await world.texts(QUESTION, leg) == [said("twenty")]  # nobody knows yet
    if off:
        never_unsettled(monkeypatch)
    await world.fold()
    expected = [] if off and leg == "dense" else [said("ten")]
    assert await world.texts(QUESTION, leg) == expected
    assert await world.texts(QUESTION, leg, as_of=day(50).isoformat()) == [said("ten")]
    assert await world.texts(QUESTION, leg, as_of=day(150).isoformat()) == [said("twenty")]


@OFF
async def test_the_vectors_do_not_learn_before_postgres(
    world: Lines, off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.load("act", text("ten"), day(0))
    twenty = await world.put("act", text("twenty"), day(100))
    event = await world.settle(twenty)
    assert event
    if off:
        never_waiting(monkeypatch)
    with suppress(Retry):
        await world.index.revalidate("default", event.document_id)
    expected = [] if off else [said("ten")]
    assert await world.texts(QUESTION, "dense") == expected
    await world.all_of(event)
    assert await world.texts(QUESTION, "dense") == [said("twenty")]


@pytest.mark.parametrize("leg", LEGS)
@OFF
async def test_a_change_in_the_middle_of_a_question_shows_the_old_or_the_new(
    world: Lines, leg: str, off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The legs have looked, and then everything changes, before Postgres has its last word."""
    ten = await world.load("act", text("ten"), day(0))
    await world.load("act", text("twenty"), day(100))
    event = await world.back(ten, day(200))
    if off:
        never_again(monkeypatch)
    searched = one_leg(world, leg)
    legs = searched._legs

    async def changed(question: Any, scope: Any, connection: Any = None) -> Any:
        if connection is None:
            passages = searched._sql.passages

            async def late(*args: Any, **more: Any) -> AsyncIterator[Any]:
                await world.all_of(event)
                async for row in passages(*args, **more):
                    yield row

            monkeypatch.setattr(searched, "_sql", Patched(searched._sql, passages=late))
        found = await legs(question, scope, connection)
        monkeypatch.undo() if not off else None
        return found

    searched._legs = changed  # type: ignore[method-assign]
    reply = await searched.query(QueryRequest(query=QUESTION, top_k=50))
    texts = [hit.text.splitlines()[-2] for hit in reply.results]
    assert texts == ([] if off else [said("ten")])


class Patched:
    """Named queries, some of them others."""

    def __init__(self, inner: Any, **others: Any) -> None:
        self._inner, self._others = inner, others

    def __getattr__(self, name: str) -> Any:
        return self._others.get(name) or getattr(self._inner, name)


@pytest.mark.parametrize("what", ["folded", "and the vectors, too"])
@OFF
async def test_a_change_while_the_vectors_are_asked_shows_the_old_or_the_new(
    world: Lines, what: str, off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ten = await world.load("act", text("ten"), day(0))
    await world.load("act", text("twenty"), day(100))
    event = await world.back(ten, day(200))
    if off:
        never_again(monkeypatch)

    async def change() -> None:
        await (world.fold() if what == "folded" else world.all_of(event))

    hooked: Any = world.vectors
    hooked.after = change  # it has found `twenty`
    assert await world.texts(QUESTION, "dense") == ([] if off else [said("ten")])
    hooked.before = change
    assert await world.texts(QUESTION, "dense") == [said("ten")]


@pytest.mark.parametrize("leg", LEGS)
async def test_a_version_between_two_older_ones_changes_only_its_time(
    world: Lines, leg: str
) -> None:
    await world.load("act", text("ten"), day(0))
    await world.load("act", text("twenty"), day(100))
    between = await world.put("act", text("fifteen"), day(50))
    for step in (None, "settled", "folded", "known to the vectors"):
        if step == "settled":
            event = await world.settle(between)
        elif step == "folded":
            await world.fold()
        elif step is not None:
            await world.all_of(event)
        new = step in ("folded", "known to the vectors")
        for valid, amount in ((49, "ten"), (50, "fifteen" if new else "ten"), (100, "twenty")):
            found = await world.texts(QUESTION, leg, as_of=day(valid).isoformat())
            assert found == [said(amount)], (step, valid)


@OFF
async def test_passages_of_a_version_that_is_coming_do_not_crowd_out_the_valid_one(
    world: Lines, off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty passages that are not valid yet are all nearer to the question than the valid one."""
    await world.load("act", "# Act\n\nOf the many words here two are maximum and fine.", day(0))
    many = "".join(f"## Part {n}\n\nThe maximum fine.\n\n" for n in range(60))
    await world.put("act", f"# Act\n\n{many}", day(100))
    await world.fold()
    if off:
        never_again(monkeypatch)
    reply = await world.ask(QUESTION, "dense")
    assert [hit.dense_rank for hit in reply.results] == ([] if off else [1])


# -- everything at once ----------------------------------------------------------------------------


class Busy:
    """Writes a document's history, folds it, and tells the vectors, each in a task of its own."""

    def __init__(self, world: Lines, seed: int) -> None:
        self.world, self.dice = world, random.Random(seed)
        self.untold: asyncio.Queue[Event] = asyncio.Queue()
        self.written = 0

    async def write(self, changes: int) -> None:
        """Supersede, put between, return; in any order."""
        loaded: list[Indexed] = []
        for n in range(1, changes + 1):
            kind = self.dice.choice(["newer", "between", "back"])
            at = datetime.now(UTC) if kind == "newer" else day(self.dice.randrange(1, 2000))
            event: Event | None
            if kind == "back" and len(loaded) > 2:
                moment = datetime.now(UTC) if self.dice.random() < 0.7 else at
                event = await self.world.back(self.dice.choice(loaded), moment)
            else:
                loaded.append(await self.world.put("act", text(str(n)), at))
                event = await self.world.settle(loaded[-1])
            if event:
                await self.untold.put(event)
            self.written += 1
            await asyncio.sleep(self.dice.random() * 0.02)

    async def fold(self) -> None:
        while True:
            await self.world.projection.step()
            await asyncio.sleep(self.dice.random() * 0.01)

    async def tell(self) -> None:
        while True:
            event = await self.untold.get()
            await asyncio.sleep(self.dice.random() * 0.02)
            with suppress(Retry):
                await self.world.index.revalidate(event.project, event.document_id)
                continue
            await self.untold.put(event)


class Said:
    """The lines of the document that the log has, by position; read once each."""

    def __init__(self, log: Log) -> None:
        self._log, self._read = log, 0
        self.lines: list[tuple[int, tuple[Window, ...]]] = []

    async def upto(self, position: int) -> list[tuple[int, tuple[Window, ...]]]:
        """All of them, up to `position` at least."""
        while self._read < position:
            for envelope in await self._log.read(self._read):
                event = envelope.fact()
                if isinstance(event, Superseded | Reinstated):
                    self.lines.append((envelope.position, event.windows))
                self._read = envelope.position
        return self.lines


def valid(line: tuple[Window, ...], moment: datetime) -> str | None:
    for w in line:
        if w.valid_from <= moment and (w.valid_until is None or w.valid_until > moment):
            return w.version_id
    return None


@pytest.fixture(params=["memory", "edge", "a deep past"])
def vectors(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> VectorIndex:
    if request.param == "a deep past":  # the valid versions are named to both legs
        monkeypatch.setattr(scope, "LEAST", 1)
        monkeypatch.setattr(scope, "DEEP", 1)
        monkeypatch.setattr(scope, "KEEP_S", 0.05)
    return open_index(root=tmp_path / "vectors") if request.param == "edge" else Hooked()


async def run(world: Lines, changes: int, seed: int) -> list[str]:
    """Ask all the while; the first that was seen that was neither the old nor the new state."""
    wrong: list[str] = []
    busy, asked = Busy(world, seed), 0
    first = await world.load("act", text("0"), day(0))
    alone = (Window(version_id=first.version_id, valid_from=day(0)),)
    log = Said(world.log)
    background = [asyncio.create_task(job()) for job in (busy.fold, busy.tell)]
    writing = asyncio.create_task(busy.write(changes))

    async def question(leg: str) -> None:
        nonlocal asked
        searched = one_leg(world, leg)
        while not writing.done() and not wrong:
            as_of = random.choice([None, day(random.randrange(1, 2000))])
            began = as_of or datetime.now(UTC)
            before = await world.projection.position()
            reply = await searched.query(QueryRequest(query=QUESTION, top_k=50, as_of=as_of))
            after, ended = await world.projection.position(), as_of or datetime.now(UTC)
            asked += 1
            lines = await log.upto(after)
            states = [line for at, line in lines if at <= before][-1:] or [alone]
            states += [line for at, line in lines if before < at <= after]
            allowed = {valid(line, m) for line in states for m in (began, ended)}
            seen = {hit.version_id for hit in reply.results}
            if len(seen) != 1 or not seen <= allowed:
                wrong.append(f"{leg} {as_of}: {len(seen)} seen, {before} to {after}")

    await asyncio.gather(*(question(leg) for leg in (*LEGS, "dense", "fused")))
    for task in (*background, writing):
        task.cancel()
    assert wrong or (asked > 20 and writing.done() and busy.written == changes)
    return wrong


async def test_a_question_sees_the_old_or_the_new_and_never_both_or_neither(
    database: str, vectors: VectorIndex
) -> None:
    db = await pool(database, size=12)
    world = Lines(Log(db), vectors)
    await world.start()
    wrong = await run(world, changes=40, seed=3)
    await vectors.close()
    db.terminate()
    assert wrong == []


async def test_without_the_mechanisms_something_else_is_seen(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the test above is not idle; which mechanism does what is shown further up."""
    db = await pool(database, size=12)
    world = Lines(Log(db), Hooked())
    await world.start()
    for switch in (never_unsettled, never_again, never_waiting):
        switch(monkeypatch)
    wrong = await run(world, changes=400, seed=4)
    db.terminate()
    assert wrong
