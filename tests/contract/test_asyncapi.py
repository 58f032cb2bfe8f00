"""docs/asyncapi.json is what the code says, and events are what it says."""

import json
from typing import Any

import pytest

from contracts.cloudevent import CloudEvent
from contracts.events import EVENTS, subject
from docs import make_asyncapi
from kernel.provision import LANES
from tests.recorded import BEFORE

DOCUMENT = json.loads(make_asyncapi.FILE.read_text("utf-8"))


def test_the_committed_document_is_the_generated_one() -> None:
    committed = make_asyncapi.FILE.read_text("utf-8")
    assert committed == make_asyncapi.rendered(), "run: python -m docs.make_asyncapi"


def test_every_event_has_a_channel_in_every_lane() -> None:
    addresses = {c["address"] for c in DOCUMENT["channels"].values()}
    assert addresses == {
        subject(lane, cls.__name__, cls.schema_version) for lane in LANES for cls in EVENTS.values()
    }


@pytest.mark.parametrize("type_", sorted({e.type for e in BEFORE.events()}))
def test_events_are_what_the_document_says(type_: str) -> None:
    model: Any = CloudEvent.__class_getitem__(EVENTS[type_])
    for envelope in BEFORE.events():
        if envelope.type == type_:
            wire = envelope.current().to_cloudevent()
            read = model.model_validate_json(json.dumps(wire))
            assert set(wire) == set(CloudEvent.model_fields)
            assert read.data == envelope.fact()
