"""Random histories: what happens to the system happens to the reference, and both say the same."""

import asyncio
import sys
from collections import Counter
from collections.abc import Coroutine
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kernel.errors import Refusal
from tests.model.reference import Document, Kind, Place, Reference, Text, Version
from tests.model.world import COMMON, Turn, World

T = TypeVar("T")
Found = set[tuple[str, str]]
"""(source key, marker)"""
PROJECTS = ("north", "south")
NAMES = ("act.md", "guide.md")
DAYS = [datetime(2000 + n, 1, 1, tzinfo=UTC) for n in (1, 3, 5, 7, 9)]
FUTURE = datetime(2190, 1, 1, tzinfo=UTC)
KINDS: list[tuple[str, Kind]] = [
    ("amber", "plain"), ("birch", "plain"), ("cedar", "plain"), ("delta", "plain"),
    ("ember", "late"), ("fjord", "doubtful"), ("grove", "hostile"),
]  # fmt: skip
TEXTS = [Text(marker, kind) for marker, kind in KINDS]
PATIENCE = 60.0
EVER = [None, *DAYS, FUTURE]

places = st.tuples(st.sampled_from(PROJECTS), st.sampled_from(NAMES))
texts = st.sampled_from(TEXTS)
moments = st.sampled_from(EVER)
turns = st.lists(
    st.builds(
        Turn,
        pick=st.integers(0, 5),
        steps=st.none() | st.integers(0, 25),
        twice=st.booleans(),
        folded=st.booleans(),
    ),
    max_size=8,
)


def words(text: Text) -> str:
    """The bytes of a version: some are too long for one passage."""
    line = f"The {text.marker} of the {COMMON} is {text.kind} in section"
    return f"# {text.marker}\n\n" + "\n\n".join(f"{line} {n}." for n in range(2))


class Histories(RuleBasedStateMachine):
    """`runner` and `pool` are set by whoever runs it."""

    runner: ClassVar[asyncio.Runner]
    pool: ClassVar[Any]
    counts: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.pool)
        self.model = Reference()
        self.ids: dict[tuple[Place, Text], str] = {}
        """Version ids, as the system told them."""
        self.document_ids: dict[Place, str] = {}
        self.job: dict[tuple[Place, Text], str] = {}
        """Newest job of a version."""
        self.past: list[tuple[datetime, Reference]] = []
        """What was known, and when."""
        self.calm = True
        """Does nothing wait to be delivered?"""
        self.touched: set[str] = set(PROJECTS)
        """Projects that are to be looked at."""
        self.sent = 0
        self.do(self.world.start())

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Nothing may wait for what a dead process holds."""

        async def bounded() -> T:
            async with asyncio.timeout(PATIENCE):
                return await work

        return self.runner.run(bounded())

    def count(self, name: str, *projects: str) -> None:
        """A rule runs, on these projects."""
        self.counts[name] += 1
        self.touched.update(projects)

    @initialize(
        first=st.lists(st.tuples(places, texts, moments), min_size=1, max_size=4), turns=turns
    )
    def begin(self, first: list[tuple[Place, Text, datetime | None]], turns: list[Turn]) -> None:
        """Some documents are there."""
        for place, text, at in first:
            self._send(place, text, self._moment(at), False, source=place[1])
            self.calm = False
        self._settle(turns)

    # Rules ----------------------------------------------------------------------------------

    @rule(place=places, text=texts, at=moments, trusted=st.sampled_from([False, False, True]),
          late=st.booleans(), turns=turns)  # fmt: skip
    def send(
        self, place: Place, text: Text, at: datetime | None, trusted: bool, late: bool,
        turns: list[Turn],
    ) -> None:  # fmt: skip
        """Bytes come in: a new document, a new version, the same again, content that returns."""
        self.count("send", place[0])
        self._send(place, text, self._moment(at), trusted, source=place[1])
        self._then(late, turns)

    def _moment(self, at: datetime | None) -> datetime | None:
        """While versions are under way, two of one instant would be ordered by chance."""
        self.sent += 1
        return at and at + timedelta(microseconds=0 if self.calm else self.sent)

    def _send(
        self, place: Place, text: Text, at: datetime | None, trusted: bool, **how: Any
    ) -> None:
        before = datetime.now(UTC)
        # While versions are under way the system may not know yet what it will.
        expected = self.model.answer(place, text, at, before) if self.calm else None
        try:
            done = self.do(
                self.world.send(
                    place[0], place[1], words(text), valid_from=at, trusted=trusted, **how
                )
            )
        except Refusal as refusal:
            assert refusal.code == "not-indexed-yet"
            assert expected in (None, refusal.code), expected
            return
        self.ids[place, text] = done.version_id
        self.document_ids[place] = done.document_id
        self.job[place, text] = done.job_id
        told = "reinstated" if done.reinstated else "received"
        told = "duplicate" if done.duplicate_of else told
        assert expected in (None, told), f"{told}, not {expected}"
        if told == "duplicate":
            return
        if at is None:
            at = self.do(self.world.stated(done.version_id))
            assert before <= at <= datetime.now(UTC), "valid from its receipt on"
        if told == "received":
            self.model.receive(place, text, at, trusted)
        else:
            self.model.reinstate(place, text, at)

    @precondition(lambda self: self.calm and self.model.documents)
    @rule(data=st.data(), text=texts, at=moments, late=st.booleans(), turns=turns)
    def send_next(
        self, data: Any, text: Text, at: datetime | None, late: bool, turns: list[Turn]
    ) -> None:
        """Bytes come in for a document that is there."""
        place = data.draw(st.sampled_from(sorted(self.model.documents)))
        self.count("send next", place[0])
        self._send(place, text, at, False, source=place[1])
        self._then(late, turns)

    @precondition(lambda self: self.calm and self._of("indexed", "working", "failed"))
    @rule(data=st.data(), text=texts, at=moments, turns=turns)
    def supersede(self, data: Any, text: Text, at: datetime | None, turns: list[Turn]) -> None:
        """Bytes come in that say which version they follow, by an id."""
        place, old = data.draw(st.sampled_from(self._of("indexed", "working", "failed")))
        self.count("supersede", place[0])
        self._send(place, text, at, False, supersedes=self.ids[place, old])
        self._then(False, turns)

    @precondition(lambda self: self._stoppable())
    @rule(data=st.data(), late=st.booleans(), turns=turns)
    def cancel(self, data: Any, late: bool, turns: list[Turn]) -> None:
        """A person ends a job."""
        place, text = data.draw(st.sampled_from(self._stoppable()))
        self.count("cancel", place[0])
        done = self.do(self.world.jobs.cancel(self.job[place, text], "person"))
        if self.calm:
            assert done.changed == self.model.cancel(place, text)
        elif done.changed:
            self.model.cancel(place, text)
        self._then(late, turns)

    @precondition(lambda self: self._of())
    @rule(data=st.data(), late=st.booleans(), turns=turns)
    def retry(self, data: Any, late: bool, turns: list[Turn]) -> None:
        """A person has a version tried again."""
        place, text = data.draw(st.sampled_from(self._of()))
        self.count("retry", place[0])
        try:
            self.job[place, text] = self.do(
                self.world.jobs.retry(self.job[place, text], "person")
            ).job_id
        except Refusal as refusal:
            assert refusal.code == "bytes-gone"
            if self.calm:
                assert not self.model.retry(place, text)
        else:
            assert self.model.retry(place, text) or not self.calm
        self._then(late, turns)

    @precondition(lambda self: self.calm and self._of("review"))
    @rule(data=st.data(), decision=st.sampled_from(["release", "release", "reject"]), turns=turns)
    def decide(self, data: Any, decision: Any, turns: list[Turn]) -> None:
        """A person decides about what is in quarantine."""
        place, text = data.draw(st.sampled_from(self._of("review")))
        self.count(decision, place[0])
        self.do(self.world.decide(self.ids[place, text], decision))
        assert self.model.decide(place, text, decision)
        self._then(False, turns)

    @precondition(lambda self: self.calm and self.model.documents)
    @rule(strict=st.booleans(), turns=turns)
    def rescan(self, strict: bool, turns: list[Turn]) -> None:
        """The rules may have become stricter; stored texts are judged by them."""
        self.count("rescan", *PROJECTS)
        self.model.strict = self.world.judge.strict = strict or self.model.strict
        self.do(self.world.rescan())
        self.model.rescan()
        self._then(False, turns)

    @precondition(lambda self: self.model.documents)
    @rule(data=st.data(), late=st.booleans(), turns=turns)
    def erase(self, data: Any, late: bool, turns: list[Turn]) -> None:
        """A document is deleted, whatever is under way."""
        place = data.draw(st.sampled_from(sorted(self.model.documents)))
        self.count("erase", place[0])
        text = next(iter(self.model.documents[place].versions))
        done = self.do(self.world.jobs.delete(self.ids[place, text], "person"))
        gone = self.model.erase(place)
        assert done.versions == gone or not self.calm
        self._then(late, turns)

    @precondition(lambda self: self._of())
    @rule(data=st.data(), late=st.booleans(), turns=turns)
    def erase_version(self, data: Any, late: bool, turns: list[Turn]) -> None:
        """Certain bytes are erased, and the document's other versions stay."""
        place, text = data.draw(st.sampled_from(self._of()))
        self.count("erase version", place[0])
        document = self.document_ids[place]
        gone = self.do(self.world.erase_version(document, self.ids[place, text]))
        assert gone == self.model.erase(place, text) or not self.calm
        self._then(late, turns)

    @precondition(lambda self: self.model.documents)
    @rule(
        project=st.sampled_from(PROJECTS), back=st.booleans(), steps=st.none() | st.integers(0, 60)
    )
    def rebuild(self, project: str, back: bool, steps: int | None) -> None:
        """An index is made anew, or the one before comes back; the process may die on the way."""
        self.count("rollback" if back else "rebuild", project)
        work = self.world.rollback(project) if back else self.world.rebuild(project)
        try:
            self.do(self.world.killed(work, steps))
        except Refusal as refusal:
            assert refusal.code in ("no-standby", "unknown-project")
        self.do(self.world.fold())

    @precondition(lambda self: not self.calm)
    @rule(turns=turns)
    def deliver_some(self, turns: list[Turn]) -> None:
        """Some of what waits is delivered."""
        self.count("deliver")
        for turn in turns:
            self.do(self.world.deliver(turn))
        self.do(self.world.fold())

    @precondition(lambda self: not self.calm)
    @rule(turns=turns)
    def deliver_all(self, turns: list[Turn]) -> None:
        """All that waits is delivered."""
        self.count("settle")
        self._settle(turns)

    # What follows ---------------------------------------------------------------------------

    def _then(self, late: bool, turns: list[Turn]) -> None:
        """The events are delivered now, or late."""
        if late:
            self.calm = False
        else:
            self._settle(turns)

    def _settle(self, turns: list[Turn]) -> None:
        self.do(self.world.settle(turns))
        for (place, text), version in self._versions().items():
            if version.state == "working":
                self.model.settle(place, text)
        self.calm = True
        if self.model.documents:
            self.past.append((self.do(self.world.recorded()), deepcopy(self.model)))

    def _versions(self) -> dict[tuple[Place, Text], Version]:
        return {
            (place, text): version
            for place, document in self.model.documents.items()
            for text, version in document.versions.items()
        }

    def _of(self, *states: str) -> list[tuple[Place, Text]]:
        """Versions in these states; without one: all."""
        return [k for k, v in self._versions().items() if not states or v.state in states]

    def _stoppable(self) -> list[tuple[Place, Text]]:
        """Versions whose job may be ended. Whether one that is shown was found bad before that,
        would be chance."""
        chance = {
            k for k, v in self._versions().items()
            if not self.calm and v.state == "working" and v.shown and self.model.hit(k[1], v)
        }  # fmt: skip
        return [k for k in self._of() if k not in chance]

    # What must hold -------------------------------------------------------------------------

    @invariant()
    def windows_do_not_overlap(self) -> None:
        """Of one document at most one version is valid at any instant."""
        lines: dict[str, list[tuple[datetime, datetime]]] = {}
        for row in self.do(self.world.windows()):
            until = row["valid_until"] or datetime.max.replace(tzinfo=UTC)
            lines.setdefault(row["document_id"], []).append((row["valid_from"], until))
        for spans in lines.values():
            for (_, until), (from_, _) in pairwise(sorted(spans)):
                assert until <= from_, "two versions are valid at once"

    @invariant()
    def while_events_are_under_way_one_sees_the_old_or_the_new(self) -> None:
        """Never both, never neither, and nothing that no model allows, by both legs."""
        if self.calm:
            return
        self.do(self.world.fold())
        now = datetime.now(UTC)
        for project in sorted(self.touched):
            ever, at_once = self._found(project, None), self._found(project, now)
            for place, document in self.model.documents.items():
                if place[0] == project:
                    self._old_or_new(place, document, now, ever, at_once)

    def _old_or_new(
        self, place: Place, document: Document, now: datetime, ever: Found, at_once: Found
    ) -> None:
        old = {t.marker for t in document.at(now)}
        new = {t.marker for t, v in document.versions.items() if v.state == "working"}
        may = {t.marker for t, v in document.versions.items() if v.shown} | new
        here = {marker for name, marker in at_once if name == place[1]}
        always = {marker for name, marker in ever if name == place[1]}
        assert always <= may, f"{place}: {always - may} found"
        assert here <= old | new, f"{place}: {here}, not {old} or one of {new}"
        assert len(here) <= 1, f"{place}: {here} at once"
        risky = {t.marker for t, v in document.versions.items() if self._may_leave(t, v)}
        assert here or not old - risky, f"{place}: neither {old} nor one of {new}"

    def _may_leave(self, text: Text, version: Version) -> bool:
        """Is it tried again, and will the rules find something now?"""
        bad = self.model.hit(text, version) or (text.kind == "hostile" and not version.trusted)
        return version.state == "working" and bad

    @invariant()
    def every_query_is_answered_as_the_model_says(self) -> None:
        """Now, at all times, and around every instant at which something changes."""
        if not self.calm:
            return
        now, some = datetime.now(UTC), EVER[self.counts.total() % len(EVER)]
        for project in sorted(self.touched):
            for moment in (now, None, some):
                self._same(project, moment)

    def _same(self, project: str, moment: datetime | None) -> None:
        found, expected = self._found(project, moment), self.model.found(project, moment)
        assert found == expected, f"{project} at {moment}: {sorted(found)}, not {sorted(expected)}"

    def _found(self, project: str, moment: datetime | None, known: datetime | None = None) -> Found:
        hits = self.do(self.world.ask(project, moment, known))
        names = {v: (p[1], t.marker) for (p, t), v in self.ids.items()}
        for hit in hits:
            legs = (hit.keyword_rank, hit.dense_rank)
            assert None not in legs, f"only one leg found {names[hit.version_id]}"
        return {names[h.version_id] for h in hits}

    @invariant()
    def the_index_holds_what_is_shown(self) -> None:
        """Rows and points are the same, and of exactly the versions that are shown."""
        if not self.calm:
            return
        for project in sorted(self.touched):
            rows, points = self.do(self.world.index_of(project))
            assert {r["version_id"] for r in rows} == {
                self.ids[k] for k, v in self._versions().items() if v.shown and k[0][0] == project
            }
            assert sorted(r["point_id"] for r in rows) == points
        self.touched.clear()

    def teardown(self) -> None:
        """At the end everything is looked at."""
        if sys.exc_info()[0] is not None:
            return  # it failed before
        self._settle([])
        for project in PROJECTS:
            for moment in self._instants(project):
                self._same(project, moment)
        self._what_was_known_is_known_to_have_been()
        self._nothing_erased_is_anywhere()
        assert not self.do(self.world.faults())
        live = self.do(self.world.digests())
        self.do(self.world.projection.replay())
        assert self.do(self.world.digests()) == live, "replay from zero gives other tables"

    def _instants(self, project: str) -> list[datetime | None]:
        begins = {
            row.from_
            for place, document in self.model.documents.items()
            if place[0] == project
            for row in document.rows
        }
        tick = timedelta(microseconds=1)
        around = {b + d for b in begins for d in (-tick, timedelta(), tick)}
        return [None, datetime.now(UTC), *sorted(around)]

    def _what_was_known_is_known_to_have_been(self) -> None:
        """Questions by what was known at earlier times."""
        for known, then in self.past[:: max(1, len(self.past) // 3)]:
            for project in PROJECTS:
                for moment in (None, known, *DAYS[1::2]):
                    found = self._found(project, moment, known)
                    expected = self.model.known(then, project, moment)
                    assert found == expected, (
                        f"{project} at {moment}, known at {known}: {found}, not {expected}"
                    )

    def _nothing_erased_is_anywhere(self) -> None:
        everything = self.do(self.world.everything())
        for text in TEXTS:
            if not self.model.kept(text.marker):
                assert text.marker not in everything, f"{text.marker} is still stored"
