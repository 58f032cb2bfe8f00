"""The flow table is complete, and the code follows it."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from contracts.events import EVENTS, Event, Failed
from contracts.flow import FLOW, SERVICES, Step, consumed_by, emitted_by, handler_name, table
from kernel.provision import OUTSIDE_USERS, nats_config

ROOT = Path(__file__).parents[2]
WORKER_STEPS = [s for s in FLOW if not isinstance(s.consumes, str)]


def test_every_event_but_failed_has_one_producing_service() -> None:
    for name, cls in EVENTS.items():
        producers = {s.service for s in FLOW if cls in s.emits}
        assert len(producers) == 1 or cls is Failed, f"{name}: {producers}"


def test_every_event_is_produced() -> None:
    produced = {e for s in FLOW for e in s.emits}
    assert produced == set(EVENTS.values())


@pytest.mark.parametrize("step", WORKER_STEPS, ids=lambda s: f"{s.service}-{s.consumes.__name__}")
def test_every_step_has_a_handler_with_a_docstring(step: Step) -> None:
    handlers = import_module(f"services.{step.service}.handlers")
    assert not isinstance(step.consumes, str)
    assert getattr(handlers, handler_name(step.consumes)).__doc__


@pytest.mark.parametrize("service", ["ingest", "scanner", "converter", "indexer"])
def test_no_handler_lacks_a_step(service: str) -> None:
    handlers = import_module(f"services.{service}.handlers")
    found = {n for n in vars(handlers) if n.startswith("on_")}
    steps: set[str] = set()
    for step in consumed_by(service):
        consumes: type[Event] = step.consumes  # type: ignore[assignment]
        steps.add(handler_name(consumes))
    assert found == steps


def test_the_readme_shows_the_table() -> None:
    assert table() in (ROOT / "README.md").read_text("utf-8"), "run: make flow"


def test_only_services_of_the_table_emit() -> None:
    assert {s for s in SERVICES if emitted_by(s)} == set(SERVICES) - {"ui"}


def test_on_the_bus_only_the_relay_may_publish_events() -> None:
    users = dict.fromkeys(("admin", "relay", *SERVICES, *OUTSIDE_USERS), "x")
    named = re.findall(r'user: "(\w+)".*?publish: \[(.*?)\]', nats_config(users), re.DOTALL)
    assert [user for user, _ in named] == [*SERVICES, *OUTSIDE_USERS, "admin", "relay"]
    assert [user for user, subjects in named if "kb.evt." in subjects] == ["relay"]
