"""Old versions of events: what they were stays written down, and what they become is fixed."""

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from contracts.envelope import Envelope
from contracts.events import EVENTS
from contracts.history.upcasters import UPCASTERS
from contracts.schema import FOLDER as SCHEMAS
from kernel.erasure import redacted
from kernel.testing import first, received, to_envelope
from tests.recorded import BEFORE

SAMPLES = SCHEMAS.parent / "samples"
LIFTED = Path(__file__).parent / "lifted"
"""What each sample of an old version is in the current shape."""
STORED = sorted(SAMPLES.glob("*.json"))
OLD = [(type_, v) for type_, cls in EVENTS.items() for v in range(1, cls.schema_version)]
FROZEN = {
    "schemas/Erased.v1.json": "30194326148daa80d64b27c673659eba",
    "samples/Erased.v1.json": "edc3559c8c4e5cc9e8239c7ba1081499",
    "samples/Erased.v1.first.json": "afa91f483d2deee43b625cfce2a46d39",
    "samples/Erased.v1.second.json": "ee229705c5e0a07a2236d2f6b3ea8f4d",
}
"""The begin of the SHA-256 of what is written down of old versions."""


def stored(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8")))


def envelope(path: Path) -> Envelope:
    made = to_envelope(first(received()), position=7, version=1)
    return made.model_copy(update=stored(path))


def of_version(type_: str, version: int) -> list[Path]:
    return [p for p in STORED if p.name.startswith(f"{type_}.v{version}.")]


def schema(type_: str, version: int) -> dict[str, Any]:
    return dict(json.loads((SCHEMAS / f"{type_}.v{version}.json").read_text("utf-8")))


@pytest.mark.parametrize(("type_", "version"), OLD)
def test_an_old_version_has_a_schema_samples_and_a_step_to_the_next(
    type_: str, version: int
) -> None:
    assert (type_, version) in UPCASTERS
    assert schema(type_, version)["title"] == type_
    assert of_version(type_, version)


def test_no_step_leads_from_a_version_that_never_was() -> None:
    assert set(UPCASTERS) == set(OLD)


@pytest.mark.parametrize("name", FROZEN)
def test_what_is_written_down_of_an_old_version_is_not_edited(name: str) -> None:
    found = hashlib.sha256((SCHEMAS.parent / name).read_bytes()).hexdigest()
    assert found.startswith(FROZEN[name])


@pytest.mark.parametrize("path", STORED, ids=lambda p: p.stem)
def test_a_sample_is_what_the_schema_of_its_version_says(path: Path) -> None:
    sample = stored(path)
    jsonschema.validate(sample["data"], schema(sample["type"], sample["schema_version"]))


@pytest.mark.parametrize(
    "path", [p for type_, v in OLD for p in of_version(type_, v)], ids=lambda p: p.stem
)
def test_a_sample_of_an_old_version_becomes_what_is_written_down(path: Path) -> None:
    old = envelope(path)
    before = copy.deepcopy(old.data)
    wanted = json.loads((LIFTED / path.name).read_text("utf-8"))
    lifted = old.current()
    assert lifted.fact().model_dump(mode="json") == old.fact().model_dump(mode="json") == wanted
    assert (lifted.schema_version, lifted.subject) == (
        EVENTS[old.type].schema_version,
        f"kb.evt.live.{old.type}.v{EVENTS[old.type].schema_version}",
    )
    assert lifted.current() == lifted
    assert old.data == before
    jsonschema.validate(lifted.data, schema(lifted.type, lifted.schema_version))


@pytest.mark.parametrize("path", STORED, ids=lambda p: p.stem)
def test_what_an_erasure_leaves_of_a_sample_reads(path: Path) -> None:
    whole = envelope(path)
    left = whole.model_copy(update={"data": redacted(whole.type, whole.data)})
    assert type(left.fact()) is type(whole.fact())
    assert left.fact().stream_id == whole.fact().stream_id
    assert left.current().fact() == left.fact()


def test_an_event_that_is_newer_than_this_code_is_left_as_it_is() -> None:
    newer = envelope(STORED[0]).model_copy(update={"schema_version": 99})
    assert newer.current() is newer
    unknown = newer.model_copy(update={"type": "Later"})
    assert unknown.current() is unknown


def test_the_log_of_the_release_before_is_what_its_schemas_say() -> None:
    events = BEFORE.events()
    schemas = {(e.type, e.schema_version): schema(e.type, e.schema_version) for e in events}
    for event in events:
        jsonschema.validate(event.data, schemas[event.type, event.schema_version])
        lifted = event.current()
        jsonschema.validate(lifted.data, schema(lifted.type, lifted.schema_version))
