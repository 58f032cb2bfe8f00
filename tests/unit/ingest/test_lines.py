"""A document's line of versions: whatever comes in whatever order, each instant has one version."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import (
    DocumentReceived,
    Erased,
    Event,
    Indexed,
    Reinstated,
    Superseded,
    Window,
)
from kernel.errors import Refusal
from kernel.testing import received
from services.ingest.accept import Offer, decide
from services.ingest.domain import Line, activate, fold, reinstate, supersede

START = datetime(2020, 1, 1, tzinfo=UTC)
DOCUMENT = "d" * 32
DAYS = st.integers(0, 6)


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def receipt(name: str, valid_from: datetime) -> DocumentReceived:
    return received(name, document_id=DOCUMENT, valid_from=valid_from)


def indexed(of: DocumentReceived) -> Indexed:
    counts = {"chunk_count": 1, "embedded": 1, "reused": 0}
    hashes = {"body_sha256": "b" * 64, "chunks_sha256": "c" * 64}
    return Indexed(**of.ids, **hashes, **counts, embedder="e")


def version_at(windows: tuple[Window, ...], moment: datetime) -> list[str]:
    return [
        w.version_id
        for w in windows
        if w.valid_from <= moment and (w.valid_until is None or w.valid_until > moment)
    ]


class History:
    """The events of one document, as ingest makes them."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @property
    def line(self) -> Line:
        return fold(DOCUMENT, self.events, len(self.events))

    def receive(self, name: str, valid_from: datetime) -> DocumentReceived:
        made = receipt(name, valid_from)
        self.events.append(made)
        return made

    def index(self, made: DocumentReceived) -> Superseded | None:
        event = indexed(made)
        self.events.append(event)
        superseded = supersede(self.line, event)
        if superseded is not None:
            self.events.append(superseded)
        return superseded

    def back(self, made: DocumentReceived, valid_from: datetime) -> None:
        self.events.append(reinstate(self.line, made, valid_from))


def whole(windows: tuple[Window, ...]) -> None:
    """In order, each ends where the next begins, and the last one is open."""
    assert windows[-1].valid_until is None
    for one, two in pairwise(windows):
        assert one.valid_from <= two.valid_from == one.valid_until
        assert one.version_id != two.version_id
    assert version_at(windows, day(-1)) == []
    first = windows[0].valid_from
    for half in range(-2, 30):
        if day(half / 2) >= first:
            assert len(version_at(windows, day(half / 2))) == 1


@given(st.lists(DAYS, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_line_is_the_same_in_whatever_order_versions_are_indexed(
    days: list[int], dice: object
) -> None:
    history = History()
    made = [history.receive(f"v{n}", day(d)) for n, d in enumerate(days)]
    order = list(range(len(days)))
    dice.shuffle(order)  # type: ignore[attr-defined]
    for number in order:
        history.index(made[number])
        whole(history.line.settled)
    expected = sorted(range(len(days)), key=lambda n: (days[n], n))
    line = history.line.settled
    assert [w.version_id for w in line] == [made[n].version_id for n in expected]
    assert [w.valid_from for w in line] == [day(days[n]) for n in expected]


@given(st.lists(DAYS, min_size=1, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_a_history_that_is_loaded_in_any_order_is_the_same_history(
    days: list[int], dice: object
) -> None:
    def loaded(order: list[int]) -> tuple[Window, ...]:
        history = History()
        for number in order:
            history.index(history.receive(f"v{number}", day(number)))
        return history.line.settled

    shuffled = list(days)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    assert loaded(shuffled) == loaded(sorted(days))


def told(history: History, name: str, valid_from: datetime | None, now: datetime) -> str:
    """What an upload of these bytes is, and what follows from it."""
    known = next((m for m in history.line.received.values() if m.name == name), None)
    made = known or receipt(name, valid_from or now)
    offer = Offer(
        project=made.project, source_id=made.source_id, name=name, media_type="text/markdown",
        size_bytes=1, valid_from=valid_from, source="a key", returns=True,
    )  # fmt: skip
    match decide(offer, history.line, made.version_id, now):
        case DocumentReceived():
            history.index(history.receive(name, valid_from or now))
            return "received"
        case Reinstated() as event:
            history.events.append(event)
            return "reinstated"
        case None:
            return "duplicate"


@given(st.dictionaries(DAYS, st.sampled_from("abc"), min_size=1), st.randoms(use_true_random=False))
def test_a_history_in_which_content_returns_may_be_loaded_in_any_order_and_twice(
    said: dict[int, str], dice: object
) -> None:
    history = History()
    order = [*said, *said]
    dice.shuffle(order)  # type: ignore[attr-defined]
    for number in order:
        told(history, said[number], day(number), day(99))
    for half in range(-1, 16):
        known = [number for number in said if number <= half / 2]
        expected = [receipt(said[max(known)], START).version_id] if known else []
        assert version_at(history.line.settled, day(half / 2)) == expected
    assert {told(history, said[n], day(n), day(99)) for n in said} == {"duplicate"}


def test_what_was_valid_anyway_returns_after_what_is_put_between() -> None:
    history = History()
    assert told(history, "a", day(1), day(99)) == "received"
    assert told(history, "a", day(20), day(99)) == "reinstated"
    assert [w.valid_from for w in history.line.settled] == [day(1)], "it is one window still"
    assert told(history, "b", day(10), day(99)) == "received"
    assert [(w.valid_from, w.valid_until) for w in history.line.settled] == [
        (day(1), day(10)), (day(10), day(20)), (day(20), None),
    ]  # fmt: skip


def test_bytes_without_a_stated_beginning_are_a_duplicate_while_they_are_valid() -> None:
    history = History()
    told(history, "a", day(1), day(2))
    assert told(history, "a", None, day(3)) == "duplicate"
    told(history, "b", day(4), day(5))
    assert told(history, "a", None, day(6)) == "reinstated"


def test_another_beginning_of_bytes_on_their_way_is_refused_and_the_same_is_a_duplicate() -> None:
    history = History()
    history.receive("a", day(1))
    assert told(history, "a", day(1), day(3)) == "duplicate"
    assert told(history, "a", None, day(3)) == "duplicate"
    with pytest.raises(Refusal) as refusal:
        told(history, "a", day(2), day(3))
    assert (refusal.value.code, refusal.value.status) == ("not-indexed-yet", 409)


STEPS = st.lists(
    st.tuples(st.sampled_from(["new", "index", "back", "again", "erase"]), DAYS, st.integers(0, 9)),
    max_size=14,
)


class Random(History):
    """Steps that may happen to a document."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[DocumentReceived] = []
        self.waiting: list[DocumentReceived] = []
        self.holes = False
        """An erased version leaves one."""

    def step(self, kind: str, number: int, pick: int) -> None:
        indexed = [m for m in self.made if m.version_id in self.line.indexed]
        if kind == "new":
            self.made.append(self.receive(f"v{len(self.made)}", day(number)))
            self.waiting.append(self.made[-1])
        elif kind == "index" and self.waiting:
            self.index(self.waiting.pop(pick % len(self.waiting)))
        elif indexed:
            self.about(kind, indexed[pick % len(indexed)], day(number))

    def about(self, kind: str, known: DocumentReceived, at: datetime) -> None:
        """What happens to a version that is in the index."""
        if kind == "again":  # a second delivery
            self.index(known)
        elif kind == "back" and self.line.current:
            self.back(known, at)
        elif kind == "erase":
            erased = Erased(**known.ids, reason="request", scope="version", blobs=1)
            self.events.append(erased)
            self.holes = True


@given(STEPS)
def test_each_instant_has_one_version_after_any_history(steps: list[tuple[str, int, int]]) -> None:
    history = Random()
    for kind, number, pick in steps:
        history.step(kind, number, pick)
        windows = history.line.settled
        if windows and not history.holes:
            whole(windows)
        assert all(len(version_at(windows, day(half / 2))) <= 1 for half in range(-2, 30))
        assert {w.version_id for w in windows} <= history.line.indexed


@given(st.lists(st.tuples(st.sampled_from("abcd"), DAYS), min_size=1, max_size=12))
def test_the_newest_word_about_an_instant_counts(said: list[tuple[str, int]]) -> None:
    """Against a plain model: each activation holds until the next beginning. A version comes once,
    anywhere, and may return after all others."""
    windows: tuple[Window, ...] = ()
    begun: list[tuple[int, int, str]] = []
    for n, (letter, number) in enumerate(said):
        known = {v for _, _, v in begun}
        if letter * 32 in known and (number <= begun_last(begun) or ends_with(windows, letter)):
            continue
        windows = activate(windows, letter * 32, day(number))
        begun.append((number, n, letter * 32))
    for half in range(-1, 16):
        before = sorted(b for b in begun if day(b[0]) <= day(half / 2))
        assert version_at(windows, day(half / 2)) == [b[2] for b in before[-1:]]


def begun_last(begun: list[tuple[int, int, str]]) -> int:
    return max(number for number, _, _ in begun)


def ends_with(windows: tuple[Window, ...], letter: str) -> bool:
    return windows[-1].version_id == letter * 32


def test_a_repeated_delivery_changes_nothing() -> None:
    history = History()
    one, two = history.receive("one", day(0)), history.receive("two", day(1))
    assert history.index(one) is None
    assert history.index(two) is not None
    line = history.line.settled
    assert history.index(two) is None and history.index(one) is None
    assert history.line.settled == line


def test_the_version_that_came_later_wins_where_two_begin_together() -> None:
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        history = History()
        made = [history.receive(f"v{n}", day(0 if n else 1)) for n in range(3)]
        for number in order:
            history.index(made[number])
        assert version_at(history.line.settled, day(0)) == [made[2].version_id]
        assert version_at(history.line.settled, day(1)) == [made[0].version_id]
