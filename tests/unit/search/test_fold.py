"""The fold: what it makes of a log does not depend on where its batches end."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.envelope import Envelope
from contracts.events import Converted, Event, Failed
from services.search import fold
from services.search.fold import Changes, Entry, Known, Said, Touched, touched
from tests.made_logs import TEXTS, VERSIONS, logs


class Tables:
    """The tables in memory, by the keys that they have in Postgres."""

    def __init__(self) -> None:
        self.known = Known()
        self.past: dict[tuple[str, ...], fold.Row] = {}
        self.lines: dict[str, int] = {}

    def take(self, batch: Iterable[Entry]) -> None:
        batch = list(batch)
        self.write(fold.fold(self.load(touched(batch)), batch))

    def load(self, ids: Touched) -> Known:
        """As the query `known` does it."""
        versions = {
            id_: row for id_, row in self.known.versions.items()
            if id_ in ids.versions or (row["document_id"] in ids.lines and row["held"] is not None)
        }  # fmt: skip
        own = {self.known.versions[v]["job_id"] for v in ids.versions if v in versions}
        jobs = {
            id_: row for id_, row in self.known.jobs.items()
            if id_ in ids.jobs | own or row["version_id"] in ids.erased
        }  # fmt: skip
        some: dict[str, Said] = {}
        for said in self.known.windows.values():
            if said.document_id in ids.shown:
                some.setdefault(said.document_id, said)
        windows = {
            k: w for k, w in self.known.windows.items()
            if w.document_id in ids.windowed or w.version_id in ids.moved or w in some.values()
        }  # fmt: skip
        return Known(versions, jobs, windows)

    def write(self, changes: Changes) -> None:
        """As the statements `drop_windows` and `write` do it."""
        self.known.versions |= {row["version_id"]: row for row in changes.versions}
        self.known.jobs |= {row["job_id"]: row for row in changes.jobs}
        for key in changes.gone:
            del self.known.windows[key]
        self.known.windows |= {said.key: said for said in map(Said.of, changes.windows)}
        for row in changes.past:
            assert row["recorded_until"] > row["recorded_from"]
            self.past[row["version_id"], row["valid_from"], row["recorded_from"]] = row
        for row in changes.lines:
            id_ = row["document_id"]
            self.lines[id_] = max(row["position"], self.lines.get(id_, 0))

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Tables)
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def entries(log: list[Envelope]) -> list[Entry]:
    """Of the first text there is a title."""
    made = []
    for envelope in log:
        if isinstance(event := envelope.fact(), Event):
            titled = isinstance(event, Converted) and event.meta_sha256 == TEXTS[0]
            job, at = str(envelope.correlation_id), envelope.recorded_at
            made.append(Entry(event, job, envelope.position, at, "Title" if titled else None))
    return made


@given(log=logs(), size=st.integers(2, 9))
@settings(max_examples=300, deadline=None)
def test_one_by_one_or_in_batches_of_any_size_is_the_same(log: list[Envelope], size: int) -> None:
    single, batched, whole = Tables(), Tables(), Tables()
    events = entries(log)
    for at in range(0, len(events), size):
        for entry in events[at : at + size]:
            single.take([entry])
        batched.take(events[at : at + size])
        assert batched == single
    whole.take(events)
    assert whole == single


@given(log=logs())
@settings(max_examples=100, deadline=None)
def test_the_rows_that_are_known_are_not_changed(log: list[Envelope]) -> None:
    tables, events = Tables(), entries(log)
    half = len(events) // 2
    tables.take(events[:half])
    known = tables.load(touched(events[half:]))
    rows = [*known.versions.values(), *known.jobs.values()]
    before = [dict(row) for row in rows]
    assert fold.fold(known, events[half:]) == fold.fold(known, events[half:])
    assert rows == before


def test_nothing_makes_no_change() -> None:
    assert fold.fold(Known(), []) == Changes([], [], [], [], [], [])


def test_what_is_about_an_unknown_version_changes_nothing() -> None:
    failed = Failed(**VERSIONS[0].ids, stage="indexer", code="x", reason="y")
    (entry,) = [Entry(failed, "job", 1, VERSIONS[0].valid_from)]
    assert fold.fold(Known(), [entry]) == Changes([], [], [], [], [], [])


def test_an_event_that_brings_no_state_is_told() -> None:
    from contracts.events import Superseded

    event = Superseded(
        **VERSIONS[0].ids, by_version_id="f" * 32, valid_until=VERSIONS[0].valid_from, windows=()
    )
    with pytest.raises(TypeError, match="Superseded"):
        fold.change(event)
