"""What is stored stays readable, and what is committed is what the code says."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from contracts.envelope import Envelope, UnknownEvent
from contracts.events import EVENTS, DocumentReceived, subject, wire_type
from contracts.history.upcasters import upcast
from contracts.schema import FOLDER, rendered
from kernel.testing import first, received, to_envelope

SAMPLES = sorted((Path(__file__).parents[2] / "contracts" / "samples").glob("*.json"))


def sample(path: Path) -> Envelope:
    stored = json.loads(path.read_text("utf-8"))
    envelope = to_envelope(first(received()), position=7, version=1)
    return envelope.model_copy(update=stored)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_every_sample_ever_committed_reads_as_the_current_shape(path: Path) -> None:
    event = sample(path).fact()
    assert type(event) is EVENTS[path.name.split(".")[0]]


CURRENT = [p for p in SAMPLES if p.stem in {wire_type(cls) for cls in EVENTS.values()}]


@pytest.mark.parametrize("path", CURRENT, ids=lambda p: p.stem)
def test_a_sample_of_the_current_version_round_trips(path: Path) -> None:
    envelope = sample(path)
    assert envelope.fact().model_dump(mode="json") == envelope.data


def test_every_event_has_a_sample() -> None:
    assert {p.stem for p in CURRENT} >= {wire_type(cls) for cls in EVENTS.values()}


@pytest.mark.parametrize("name", rendered())
def test_the_committed_schema_is_the_generated_one(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == rendered()[name], "run: make schemas"


def test_a_field_that_a_newer_producer_added_is_ignored() -> None:
    envelope = sample(SAMPLES[0])
    wider = envelope.model_copy(update={"data": envelope.data | {"later": 1}})
    assert wider.event() == envelope.event()


def test_a_renamed_field_is_an_error_and_not_a_default() -> None:
    envelope = sample(next(p for p in SAMPLES if p.stem == "Parsed.v1"))
    data = dict(envelope.data)
    data["parse_sha256"] = data.pop("parsed_sha256")
    with pytest.raises(ValidationError):
        envelope.model_copy(update={"data": data}).event()


def test_a_version_newer_than_the_code_is_unknown() -> None:
    envelope = sample(SAMPLES[0]).model_copy(update={"schema_version": 99})
    with pytest.raises(UnknownEvent):
        envelope.event()


def test_upcasters_chain_from_the_stored_version_to_the_current() -> None:
    table = {
        ("X", 1): lambda d: d | {"b": d["a"] + 1},
        ("X", 2): lambda d: d | {"c": d["b"] + 1},
    }
    assert upcast("X", 1, 3, {"a": 1}, table) == {"a": 1, "b": 2, "c": 3}


def test_a_cloudevent_round_trips() -> None:
    envelope = to_envelope(first(received("Закон.md")), position=3, version=1)
    wire = json.loads(json.dumps(envelope.to_cloudevent(), ensure_ascii=False))
    assert Envelope.from_cloudevent(wire) == envelope
    assert all(k.isalnum() and k.islower() for k in wire)


def test_a_subject_holds_no_project_and_no_id() -> None:
    envelope = to_envelope(first(received(), lane="bulk"), position=3, version=1)
    assert envelope.subject == "kb.evt.bulk.DocumentReceived.v1"
    assert subject("live", "Parsed", "*") == "kb.evt.live.Parsed.*"


@pytest.mark.parametrize("project", ["", "A", "../x", "a b", "a" * 64, "проект"])
def test_a_project_name_is_a_plain_word(project: str) -> None:
    with pytest.raises(ValidationError):
        received(project=project)


def test_an_event_is_frozen() -> None:
    event: DocumentReceived = received()
    with pytest.raises(ValidationError):
        event.name = "other"  # type: ignore[misc]
